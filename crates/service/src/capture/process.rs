//! The recorded process: one that already runs, or a command that Takeup starts.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use machine::processes::{Process, ProcessTimes};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::leftovers::LeftoverGuard;
use crate::failure::Failure;

/// How long a command may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two checks whether it has ended.
const STEP: Duration = Duration::from_millis(10);
/// The shell stops itself until the recording has begun; then it becomes the command. The name at
/// the end is how the guard finds one that nobody will release.
const HELD: &str = "kill -STOP $$ && exec \"$@\" # ";
/// The flag of kernel threads (`PF_KTHREAD`, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The recorded process.
pub(super) enum CapturedProcess {
    /// It ran before, and goes on after the capture.
    Running(Process),
    /// Takeup started it, and ends it with the capture.
    Started {
        /// The command.
        child: Child,
        /// How it ended, once that is known.
        status: Option<ExitStatus>,
    },
}

impl CapturedProcess {
    /// A running process.
    pub fn of(pid: u32) -> Result<CapturedProcess, Failure> {
        let Some(times) = ProcessTimes::of(pid) else {
            let hint = "list the processes: ps -e; a container may hide those of other users";
            return Err(Failure::of(format!("there is no process {pid}"), Some(hint)));
        };
        if times.has_ended {
            let hint = "the parent process has not yet collected its exit status";
            return Err(Failure::of(format!("process {pid} has ended"), Some(hint)));
        }
        let leader = thread_group(pid);
        if leader.is_some_and(|leader| leader != pid) {
            let text = format!("{pid} is a thread of process {}", leader.unwrap_or(pid));
            return Err(Failure::of(text, Some("name the process: all its threads are recorded")));
        }
        if is_kernel_thread(pid) {
            let hint = "the writes come from other programs; `takeup watch` shows the disk";
            let text = format!("process {pid} is a kernel thread, which makes no system calls");
            return Err(Failure::of(text, Some(hint)));
        }
        if std::fs::read_dir(format!("/proc/{pid}/fd")).is_err() {
            let hint = "run it as root, for example with sudo";
            let text = format!("process {pid} belongs to another user");
            return Err(Failure::of(text, Some(hint)));
        }
        Ok(CapturedProcess::Running(Process { pid, start_ticks: times.start_ticks }))
    }

    /// Starts a command, which waits until it is released. If this process is killed before that,
    /// the guard ends the command.
    pub fn start<S: AsRef<OsStr>>(
        command: &[S],
        guard: &mut LeftoverGuard,
    ) -> Result<CapturedProcess, Failure> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let own = std::process::id();
        let script = format!("{HELD}takeup-{own}-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        guard.held(&script);
        let child = Command::new("/bin/sh")
            .args(["-c", &script, "takeup capture"])
            .args(command)
            .spawn()
            .map_err(|error| Failure::of(format!("cannot start /bin/sh: {error}"), None))?;
        let pid = Pid::from_child(&child);
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
        Ok(CapturedProcess::Started { child, status: None })
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        match self {
            CapturedProcess::Running(process) => process.pid,
            CapturedProcess::Started { child, .. } => child.id(),
        }
    }

    /// Lets a started command run.
    pub fn release(&self) -> Result<(), Failure> {
        match self {
            CapturedProcess::Running(_) => Ok(()),
            CapturedProcess::Started { child, .. } => {
                kill_process(Pid::from_child(child), Signal::CONT).map_err(|error| {
                    Failure::of(format!("cannot start the command: {error}"), None)
                })
            }
        }
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        match self {
            CapturedProcess::Running(process) => process.runs(),
            CapturedProcess::Started { child, status } => {
                if status.is_none() {
                    *status = child.try_wait().ok().flatten();
                }
                status.is_none()
            }
        }
    }

    /// Whether it still runs, without collecting its exit status: that would add its counters to
    /// this process, and the caller counts them.
    pub fn runs_still(&self) -> bool {
        match self {
            CapturedProcess::Running(process) => process.runs(),
            CapturedProcess::Started { child, .. } => Process::of(child.id()).is_some(),
        }
    }

    /// Ends a started command that still runs. Returns how it failed if it ended by itself.
    pub fn end(&mut self) -> Result<Option<String>, Failure> {
        let has_ended = !self.runs();
        let CapturedProcess::Started { child, status } = self else { return Ok(None) };
        if has_ended {
            return Ok(status.filter(|status| !status.success()).map(how));
        }
        let pid = Pid::from_child(child);
        let _ = kill_process(pid, Signal::TERM);
        let told = Instant::now();
        while told.elapsed() < PATIENCE {
            if let Ok(Some(_)) = child.try_wait() {
                return Ok(None);
            }
            std::thread::sleep(STEP);
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(None)
    }
}

impl Drop for CapturedProcess {
    fn drop(&mut self) {
        if let CapturedProcess::Started { child, status: None } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => "status 127: command not found".to_owned(),
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no known status".to_owned(),
    }
}

fn status_field(pid: u32, name: &str) -> Option<u32> {
    let text = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

fn thread_group(pid: u32) -> Option<u32> {
    status_field(pid, "Tgid")
}

/// The flags are the ninth field of proc_pid_stat(5).
fn is_kernel_thread(pid: u32) -> bool {
    let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let behind = text.rsplit_once(") ").map_or("", |it| it.1);
    let flags = behind.split(' ').nth(6).and_then(|it| it.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & KERNEL_THREAD != 0)
}
