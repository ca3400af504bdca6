//! A command in its own process group, which leaves no process behind.
//!
//! The group is led by a guard: a shell that waits for the end of its standard input, which only
//! this process holds open, and then kills the group. So the group ends with this process, even by
//! SIGKILL, and its number cannot be reused while it is in use.
//! What leaves the group by itself (`setsid`, a daemon) was meant to stay, and does.

use std::io::{self, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use machine::counters::processor::children_ns;
use machine::processes::{ProcessBytes, of_group};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::error::ProgramsError;

/// Time between two samples of the programs.
const STEP: Duration = Duration::from_millis(10);
/// How long programs have to end by themselves after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a killed one may take: the kernel may have it wait for a device.
const KILLED: Duration = Duration::from_secs(10);
/// Bytes kept from the end of a command's standard error.
const SAID_BYTES_MAX: usize = 4096;
/// How much of that is reported, in lines and letters.
const SAID_LINES: usize = 3;
const SAID_LETTERS: usize = 300;
/// How long the rest of what was said may take, where a program outside of the group holds on.
const REST: Duration = Duration::from_millis(200);

/// The signals that end the rest are not for the guard.
const GUARD: &str = "trap '' TERM INT HUP QUIT; read -r line; kill -KILL 0";

/// Where what commands print goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOutput {
    /// Nowhere.
    #[default]
    Discarded,
    /// To standard error of this process.
    Shown,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct GroupedCommand<'a> {
    /// The shell, its options, and the line.
    pub arguments: &'a [String],
    /// Where what it prints goes.
    pub output: CommandOutput,
}

/// A command that has ended.
#[derive(Debug)]
pub struct CommandEnd {
    pub status: ExitStatus,
    /// From its start to the end of its last program.
    pub seconds: f64,
    /// By how much its last program outlived the shell.
    pub behind_seconds: f64,
    /// Processor time of all its programs, their own and what the kernel did for them.
    pub user_and_system_ns: Option<[u64; 2]>,
    /// Bytes that calls of all its programs moved.
    pub bytes: Option<ProcessBytes>,
    /// The end of what it wrote to standard error.
    pub said: String,
}

impl CommandEnd {
    /// Processor time of all its programs.
    pub fn processor_ns(&self) -> Option<u64> {
        self.user_and_system_ns.map(|both| both.iter().sum())
    }

    /// How it ended, in words.
    pub fn how(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(127), _) => "status 127, a program was not found".to_owned(),
            (Some(141), _) => "status 141, a program wrote to one that had ended".to_owned(),
            (Some(code), _) => format!("status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "in an unknown way".to_owned(),
        }
    }
}

/// Runs a command to its end; `look` gets the number of its shell every few milliseconds.
///
/// # Errors
/// When it cannot be started or has to be stopped; not when it fails.
pub fn run(
    job: GroupedCommand<'_>,
    cancel: &Cancel,
    look: &mut dyn FnMut(u32),
) -> Result<CommandEnd, ProgramsError> {
    let failed = |source| ProgramsError::Start { what: "/bin/sh".to_owned(), source };
    let group = ProcessGroup::start().map_err(failed)?;
    let used_before = children_ns().ok();
    let start = Instant::now();
    let mut child = group.spawn(job)?;
    let process = child.id();
    let said = Said::of(child.stderr.take(), job.output);
    let shell_ended = match wait_for(process, &group, cancel, look) {
        Ok(moment) => moment,
        Err(error) => {
            if matches!(error, ProgramsError::Stopped(_)) {
                let _ = child.wait();
            }
            return Err(error);
        }
    };
    // The counters of its children stay readable until it is waited for itself.
    let bytes = ProcessBytes::of(process);
    let status = child.wait().map_err(ProgramsError::Wait)?;
    let ended = group.wait_for_the_rest(cancel, &mut || look(process))?.unwrap_or(shell_ended);
    let used = children_ns().ok();
    let since = |(before, now): ([u64; 2], [u64; 2])| {
        [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
    };
    let user_and_system_ns = used_before.zip(used).map(since);
    drop(group);
    Ok(CommandEnd {
        status,
        seconds: ended.duration_since(start).as_secs_f64(),
        behind_seconds: ended.saturating_duration_since(shell_ended).as_secs_f64(),
        user_and_system_ns,
        bytes,
        said: said.end(),
    })
}

/// Until the shell has ended; the moment at which it did.
fn wait_for(
    process: u32,
    group: &ProcessGroup,
    cancel: &Cancel,
    look: &mut dyn FnMut(u32),
) -> Result<Instant, ProgramsError> {
    let ended = watch_end(process)?;
    loop {
        match ended.recv_timeout(STEP) {
            Ok(moment) => return Ok(moment),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ProgramsError::Wait(io::ErrorKind::NotFound.into()));
            }
        }
        if let Err(stopped) = cancel.check() {
            group.tell(Signal::TERM);
            let mut end = ended.recv_timeout(PATIENCE);
            group.tell(Signal::KILL);
            if end.is_err() {
                end = ended.recv_timeout(KILLED);
            }
            return Err(end.map_or(ProgramsError::DoesNotEnd, |_| stopped.into()));
        }
        look(process);
    }
}

/// A thread that waits for the end of a process without reaping it, and reports the time.
fn watch_end(process: u32) -> Result<Receiver<Instant>, ProgramsError> {
    let (tell, told) = channel();
    let number = Pid::from_raw(process.cast_signed()).ok_or(io::ErrorKind::NotFound);
    let number = number.map_err(|kind| ProgramsError::Wait(kind.into()))?;
    let wait = move || loop {
        match waitid(WaitId::Pid(number), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
            Ok(_) => {
                let _ = tell.send(Instant::now());
                return;
            }
        }
    };
    thread::Builder::new().spawn(wait).map_err(ProgramsError::Wait)?;
    Ok(told)
}

/// The group of one command, with its guard. What is left in it is killed when this is dropped, and
/// when this process ends.
pub(crate) struct ProcessGroup {
    guard: Child,
    number: Pid,
}

impl ProcessGroup {
    /// A group with nothing but its guard.
    pub(crate) fn start() -> io::Result<ProcessGroup> {
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let number = Pid::from_child(&guard);
        Ok(ProcessGroup { guard, number })
    }

    fn spawn(&self, job: GroupedCommand<'_>) -> Result<Child, ProgramsError> {
        let (shell, arguments) = job.arguments.split_first().expect("a job has a shell");
        let stdout = match job.output {
            CommandOutput::Discarded => Stdio::null(),
            // Both go to where people look; standard output is for the result.
            CommandOutput::Shown => {
                rustix::io::dup(rustix::stdio::stderr()).map_or_else(|_| Stdio::null(), Stdio::from)
            }
        };
        let start = |source| ProgramsError::Start { what: shell.clone(), source };
        machine::programs::shell(shell)
            .map_err(start)?
            .args(arguments)
            .process_group(self.number())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)
    }

    /// Its number, for a program that is to be started in it.
    pub(crate) fn number(&self) -> i32 {
        self.number.as_raw_nonzero().get()
    }

    fn tell(&self, signal: Signal) {
        // A process that has ended meanwhile needs no signal.
        let _ = kill_process_group(self.number, signal);
    }

    /// Programs that a shell does not wait for, as those of a process substitution, belong to the
    /// command all the same; when the last of them ended, if there were any.
    fn wait_for_the_rest(
        &self,
        cancel: &Cancel,
        look: &mut dyn FnMut(),
    ) -> Result<Option<Instant>, ProgramsError> {
        let group = self.number().cast_unsigned();
        let mut ended = None;
        while of_group(group).iter().any(|&process| process != group) {
            if let Err(stopped) = cancel.check() {
                self.tell(Signal::TERM);
                thread::sleep(STEP);
                return Err(stopped.into());
            }
            look();
            thread::sleep(STEP);
            ended = Some(Instant::now());
        }
        Ok(ended)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.tell(Signal::KILL);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// What a command says, as it comes: the end of it.
struct Said {
    tail: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Said {
    fn of(pipe: Option<impl Read + Send + 'static>, output: CommandOutput) -> Said {
        let tail = Arc::new(Mutex::new(Vec::new()));
        let (tell, ended) = channel();
        let own = Arc::clone(&tail);
        // It ends with the last program that holds the pipe.
        thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let mut bytes = [0; 4096];
            while let Ok(count) = pipe.read(&mut bytes) {
                if count == 0 {
                    break;
                }
                if output == CommandOutput::Shown {
                    let _ = io::stderr().write_all(&bytes[..count]);
                }
                let mut tail = own.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&bytes[..count]);
                let over = tail.len().saturating_sub(SAID_BYTES_MAX);
                tail.drain(..over);
            }
            drop(tell);
        });
        Said { tail, ended }
    }

    /// Its most informative lines, joined.
    fn end(self) -> String {
        let _ = self.ended.recv_timeout(REST);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = telling(&lines).join("; ");
        let over = last.chars().count().saturating_sub(SAID_LETTERS);
        let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
        let shown: String = last.chars().skip(over).map(plain).collect();
        if over > 0 { format!("... {shown}") } else { shown }
    }
}

/// A few lines in their order. Programs put their name in front of what went wrong, as tar and bash
/// do, and not in front of what they count, as dd does: where such lines are there, the first one
/// of each program, and then the last ones; else the last lines.
fn telling<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let last = |from: &[usize]| from[from.len().saturating_sub(SAID_LINES)..].to_vec();
    let every: Vec<usize> = (0..lines.len()).collect();
    let named: Vec<usize> =
        every.iter().copied().filter(|&at| speaker(lines[at]).is_some()).collect();
    let mut speakers = Vec::new();
    let is_first = |&at: &usize| {
        let name = speaker(lines[at]);
        let is_new = !speakers.contains(&name);
        speakers.extend(is_new.then_some(name));
        is_new
    };
    let mut told: Vec<usize> = named.iter().copied().filter(is_first).take(SAID_LINES).collect();
    let others = named.iter().rev().copied().filter(|at| !told.contains(at));
    let others: Vec<usize> = others.take(SAID_LINES - told.len()).collect();
    told.extend(others);
    if told.is_empty() {
        told = last(&every);
    }
    told.sort_unstable();
    told.into_iter().map(|at| lines[at]).collect()
}

/// The program that a line begins with: `tar: x: Cannot stat`.
fn speaker(line: &str) -> Option<&str> {
    let (name, said) = line.split_once(": ")?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./+-".contains(letter);
    (!name.is_empty() && name.chars().all(is_plain) && !said.trim().is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_line(line: &str, cancel: &Cancel) -> Result<CommandEnd, ProgramsError> {
        let arguments = ["sh", "-c", line].map(str::to_owned);
        let job = GroupedCommand { arguments: &arguments, output: CommandOutput::Discarded };
        run(job, cancel, &mut |_| {})
    }

    #[test]
    fn what_a_command_says_at_its_end_is_kept() {
        let ended =
            run_line("seq 100000 >&2; echo last words >&2; exit 3", &Cancel::new()).unwrap();
        assert_eq!(ended.how(), "status 3");
        assert_eq!(ended.said, "99999; 100000; last words");
        assert!(ended.bytes.unwrap().written_bytes > 500_000);
        // The one that failed is not the one that spoke last.
        // Lines in one piece each, as a program of its own writes them; those that tar writes in
        // two others may come in between.
        let line = "{ echo 'tar: /no/such: Cannot stat' >&2; exit 2; } | \
                    { cat; echo '20+0 records in' >&2; echo '20+0 records out' >&2; }";
        let said = run_line(line, &Cancel::new()).unwrap().said;
        assert!(said.contains("tar: /no/such: Cannot stat"), "{said}");
        assert!(!said.contains("records"), "{said}");
        let killed = run_line("kill -9 $$", &Cancel::new()).unwrap();
        assert_eq!(killed.how(), "signal 9");
    }

    #[test]
    fn every_program_that_complains_is_told() {
        let check = |lines: &[&str], expected: &[&str]| assert_eq!(telling(lines), expected);
        check(&["a: one", "a: two", "a: three", "a: four"], &["a: one", "a: three", "a: four"]);
        check(&["a: one", "a: two", "b: x", "1+0 records in"], &["a: one", "a: two", "b: x"]);
        check(&["a: 1", "b: 2", "c: 3", "d: 4"], &["a: 1", "b: 2", "c: 3"]);
        check(&["w", "x y: 1", "y", "z"], &["x y: 1", "y", "z"]);
        check(
            &["bash: line 2: nosuch: command not found"; 1],
            &["bash: line 2: nosuch: command not found"],
        );
        check(&[], &[]);
    }

    #[test]
    fn processor_time_is_that_of_all_programs() {
        let line = "head -c 1G /dev/zero | cat >/dev/null; true";
        let ended = run_line(line, &Cancel::new()).unwrap();
        // A gigabyte through a pipe takes more than a fiftieth of a second of any processor.
        assert!(ended.processor_ns().unwrap() > 20_000_000, "{ended:?}");
    }

    /// A shell that has ended is not the end while its programs work.
    #[test]
    fn a_program_that_the_shell_does_not_wait_for_belongs_to_the_run() {
        let ended = run_line("sleep 0.4 & exit 0", &Cancel::new()).unwrap();
        assert!(ended.seconds >= 0.4 && ended.behind_seconds > 0.2, "{ended:?}");
    }

    #[test]
    fn what_is_stopped_is_gone_also_what_does_not_listen() {
        let cancel = Cancel::new();
        let stop = cancel.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            stop.cancel();
        });
        let line = "trap '' TERM; sleep 1357911 | cat & sleep 1357912 & while :; do sleep 1; done";
        let error = run_line(line, &cancel).unwrap_err();
        assert!(matches!(error, ProgramsError::Stopped(_)), "{error}");
        let left = Command::new("pgrep").args(["-f", "sleep 135791[12]"]).output().unwrap();
        assert!(left.stdout.is_empty(), "{left:?}");
    }
}
