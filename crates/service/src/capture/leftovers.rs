//! A second process of Takeup that cleans up if a capture is killed.
//!
//! A killed process cannot stop the kernel's recording: every call of the recorded processes would
//! cost more from then on, and the buffers would stay. The guard starts before the recording, reads
//! a pipe from the capture and waits for its end. Lines on the pipe name what a validation made:
//! its folder, and the process that it started. When the capture ends normally, nothing of that is
//! left, and the guard ends.

use std::fs;
use std::io::{BufRead, Read as _, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use capture::trace::Tracefs;
use machine::processes::Process;
use rustix::process::{Pid, Signal, kill_process};

use crate::outcome::Outcome;

/// Time between two tries: files of a killed process stay open until all of it has ended.
const STEP: Duration = Duration::from_millis(20);
/// What the guard writes once it has its own session.
const READY: u8 = b'r';
/// The most tries.
const TRIES_MAX: u32 = 500;

/// Makes the command that starts this program as a guard, for a tracefs that is not at a usual
/// place: there [`guard`] runs, between the standard input and the standard output.
pub type GuardCommand = fn(tracefs: Option<&Path>) -> Command;

/// The pipe to a guard, which starts to clean up when this is closed.
#[derive(Debug)]
pub(super) struct LeftoverGuard(Option<ChildStdin>);

impl LeftoverGuard {
    /// Starts a guard for this process. If that fails, the capture goes on without it, and the next
    /// capture removes what a killed one leaves.
    pub fn start(mut command: Command) -> LeftoverGuard {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        LeftoverGuard(command.spawn().ok().and_then(on_its_own))
    }

    /// Names a folder to remove.
    pub fn folder(&mut self, folder: &Path) {
        let Ok(known) = fs::symlink_metadata(folder) else { return };
        let mut line = format!("folder {} {} ", known.dev(), known.ino()).into_bytes();
        line.extend_from_slice(folder.as_os_str().as_bytes());
        self.say(&line);
    }

    /// Names a process to kill.
    pub fn process(&mut self, pid: u32) {
        if let Some(process) = Process::of(pid) {
            self.say(format!("process {} {}", process.pid, process.start_ticks).as_bytes());
        }
    }

    fn say(&mut self, line: &[u8]) {
        if let Some(pipe) = &mut self.0 {
            // The protocol has no way to send a name with a line break.
            let is_whole = !line.contains(&b'\n');
            let _ = pipe.write_all(if is_whole { line } else { b"" });
            let _ = pipe.write_all(b"\n");
        }
    }
}

/// Waits until a guard has left the process group of the capture, which may be killed as a group.
fn on_its_own(mut child: Child) -> Option<ChildStdin> {
    let mut said = [0];
    child.stdout.take()?.read_exact(&mut said).ok()?;
    child.stdin.take().filter(|_| said == [READY])
}

/// What a line names.
enum Left {
    Folder { path: PathBuf, device: u64, number: u64 },
    Process(Process),
}

impl Left {
    fn parse(line: &[u8]) -> Option<Left> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse().ok();
        if let Some(rest) = line.strip_prefix(b"process ") {
            let mut parts = rest.splitn(2, |byte| *byte == b' ');
            let pid = u32::try_from(text(parts.next()?)?).ok()?;
            return Some(Left::Process(Process { pid, start_ticks: text(parts.next()?)? }));
        }
        let mut parts = line.strip_prefix(b"folder ")?.splitn(3, |byte| *byte == b' ');
        let (device, number) = (text(parts.next()?)?, text(parts.next()?)?);
        let path = PathBuf::from(std::ffi::OsString::from_vec(parts.next()?.to_vec()));
        Some(Left::Folder { path, device, number })
    }

    fn take_away(&self) {
        match self {
            Left::Process(process) => {
                let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
                if let Some(pid) = pid.filter(|_| process.runs()) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            Left::Folder { path, device, number } => {
                let is_same =
                    |known: &fs::Metadata| (known.dev(), known.ino()) == (*device, *number);
                if fs::symlink_metadata(path).is_ok_and(|known| known.is_dir() && is_same(&known)) {
                    let _ = fs::remove_dir_all(path);
                }
            }
        }
    }
}

/// Runs the guard: reads what a capture made until its end, and removes it.
pub fn guard(tracefs: Option<&Path>, input: impl BufRead, mut output: impl Write) -> Outcome {
    let parent = std::os::unix::process::parent_id();
    // Signals of the terminal must not reach the guard.
    let _ = rustix::process::setsid();
    if output.write_all(&[READY]).and_then(|()| output.flush()).is_err() {
        return Outcome::Bad;
    }
    let mut left = Vec::new();
    for line in input.split(b'\n') {
        let Ok(line) = line else { break };
        left.extend(Left::parse(&line));
    }
    // Processes first: they may write to the folders.
    let is_process = |it: &&Left| matches!(it, Left::Process(_));
    left.iter().filter(is_process).for_each(Left::take_away);
    let opened = match tracefs {
        Some(folder) => Tracefs::at(folder),
        None => Tracefs::open(),
    };
    for _ in 0..TRIES_MAX {
        left.iter().filter(|it| !is_process(it)).for_each(Left::take_away);
        let own = opened.as_ref().map_or(0, |it| it.remove_left(Some(parent)));
        let has_folder =
            left.iter().any(|it| matches!(it, Left::Folder { path, .. } if path.exists()));
        if own == 0 && !has_folder {
            return Outcome::Done;
        }
        std::thread::sleep(STEP);
    }
    Outcome::Bad
}
