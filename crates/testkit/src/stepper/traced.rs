//! The traced program from start to end, one stop after the other.
//!
//! A shell waits for a line on its standard input before it becomes the program, so that tracing
//! starts before the first instruction and no code runs between fork and exec. All threads belong
//! to the tracing thread, which only waits for its own children: tests run side by side in one
//! process.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::behind::behind;
use crate::stepper::call::{Call, CallVerdict};

/// Sees each call. The calling thread is stopped meanwhile; the others continue.
pub trait Step {
    /// Before the call.
    fn before(&mut self, call: &Call) -> CallVerdict;
    /// After the call, with its result or a negative error number.
    fn after(&mut self, _call: &Call, _result: i64) {}
}

impl<F: FnMut(&Call) -> CallVerdict> Step for F {
    fn before(&mut self, call: &Call) -> CallVerdict {
        self(call)
    }
}

/// The end of a program.
#[derive(Clone, Debug)]
pub struct ProgramEnd {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// It was killed because it took longer than the limit.
    pub hung: bool,
    /// Its standard output, if that was piped.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: String,
}

/// A program to step through.
#[derive(Debug)]
pub struct Stepped {
    command: Command,
    limit: Duration,
}

/// Stops for the start of this process or thread, and for group stops.
const EVENT_STOP: i32 = libc::PTRACE_EVENT_STOP;

impl Stepped {
    /// `command` with its arguments, environment and folder; standard input is `input`, standard
    /// output and error are piped. It is killed after `limit`.
    pub fn new(command: &Command, input: &str, limit: Duration) -> Stepped {
        let mut shell = Command::new("sh");
        // The path of the input comes before the program.
        shell.args(["-c", r#"read go; input=$1; shift; exec "$@" <"$input""#, "sh", input]);
        behind(&mut shell, command);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Stepped { command: shell, limit }
    }

    /// Redirects standard output.
    pub fn output(mut self, output: impl Into<Stdio>) -> Stepped {
        self.command.stdout(output);
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// When it cannot be started or traced.
    pub fn run(mut self, step: &mut dyn Step) -> io::Result<ProgramEnd> {
        let mut child = self.command.spawn()?;
        let leader = Pid::from_raw(child.id().cast_signed());
        let output = child.stdout.take().map(drain);
        let errors = child.stderr.take().map(drain);
        let (sender, receiver) = channel::<()>();
        let limit = self.limit;
        let watchdog = std::thread::spawn(move || {
            let hung = receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if hung {
                let _ = kill(leader, Signal::SIGKILL);
            }
            hung
        });
        let code = follow(&mut child, leader, step);
        drop(sender);
        let hung = watchdog.join().map_err(|_| io::ErrorKind::Other)?;
        let join = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| {
            thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        let (output, errors) = (join(output), join(errors));
        let errors = String::from_utf8_lossy(&errors).into_owned();
        Ok(ProgramEnd { code: code?, hung, output, errors })
    }
}

fn drain(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// A call in progress.
struct Entered {
    call: Call,
    verdict: CallVerdict,
    /// The memory content where a length was made smaller.
    length_was: Option<u64>,
}

/// Goes from stop to stop. Returns the exit code.
fn follow(child: &mut Child, leader: Pid, step: &mut dyn Step) -> io::Result<Option<i32>> {
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_TRACEEXEC
        | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(leader, options)?;
    ptrace::interrupt(leader)?;
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(b"go\n"))?;
    let mut started = false;
    let mut entered: HashMap<Pid, Entered> = HashMap::new();
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        // A killed thread may be gone before it is resumed.
        let resume = |thread: Pid, signal: Option<Signal>| match ptrace::syscall(thread, signal) {
            Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
            Err(error) => Err(error),
        };
        match waitpid(None, Some(flags))? {
            WaitStatus::Exited(thread, code) if thread == leader => return Ok(Some(code)),
            WaitStatus::Signaled(thread, ..) if thread == leader => return Ok(None),
            WaitStatus::PtraceSyscall(thread) => {
                if started {
                    match stop(thread, &mut entered, step) {
                        Ok(()) | Err(nix::Error::ESRCH) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                resume(thread, None)?;
            }
            WaitStatus::PtraceEvent(thread, _, event) => {
                started |= event == libc::PTRACE_EVENT_EXEC;
                debug_assert!(event == EVENT_STOP || event > 0);
                resume(thread, None)?;
            }
            WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal))?,
            _ => {}
        }
    }
}

/// A thread is stopped before or after a call.
fn stop(thread: Pid, entered: &mut HashMap<Pid, Entered>, step: &mut dyn Step) -> nix::Result<()> {
    let mut registers = ptrace::getregs(thread)?;
    let Some(Entered { call, verdict, length_was }) = entered.remove(&thread) else {
        // A new thread, and the program itself, first stop after the call that made them.
        if registers.rax.cast_signed() == -i64::from(libc::ENOSYS) {
            let call = Call::at_entry(thread, &registers);
            let verdict = step.before(&call);
            let length_was = enter(thread, &mut registers, &call, verdict)?;
            entered.insert(thread, Entered { call, verdict, length_was });
        }
        return Ok(());
    };
    match (verdict, length_was) {
        (CallVerdict::Fail(error) | CallVerdict::FailAfter(error), _) => {
            registers.rax = (-i64::from(error)).cast_unsigned();
            ptrace::setregs(thread, registers)?;
        }
        (CallVerdict::Shorten(_), Some(length)) if call.number == libc::SYS_pwritev2 => {
            set_vector_length(&call, length);
        }
        // The program relies on the call to preserve this register.
        (CallVerdict::Shorten(_), Some(length)) => {
            registers.rdx = length;
            ptrace::setregs(thread, registers)?;
        }
        _ => {}
    }
    step.after(&call, registers.rax.cast_signed());
    Ok(())
}

/// Changes the call that the kernel will see. Returns the length that was made smaller.
fn enter(
    thread: Pid,
    registers: &mut libc::user_regs_struct,
    call: &Call,
    verdict: CallVerdict,
) -> nix::Result<Option<u64>> {
    match verdict {
        CallVerdict::Pass | CallVerdict::FailAfter(_) => Ok(None),
        CallVerdict::Fail(_) => {
            // No call has this number, so the kernel does nothing.
            registers.orig_rax = u64::MAX;
            ptrace::setregs(thread, *registers)?;
            Ok(None)
        }
        CallVerdict::Shorten(most) => {
            let Some(length) = call.length_bytes().filter(|length| *length > most) else {
                return Ok(None);
            };
            if call.number == libc::SYS_pwritev2 {
                set_vector_length(call, most);
            } else {
                registers.rdx = most;
                ptrace::setregs(thread, *registers)?;
            }
            Ok(Some(length))
        }
    }
}

fn set_vector_length(call: &Call, length: u64) {
    if let Some(memory) = call.memory() {
        let written = memory.write_all_at(&length.to_ne_bytes(), call.arguments[1] + 8);
        debug_assert!(written.is_ok(), "the memory of a stopped thread can be written");
    }
}
