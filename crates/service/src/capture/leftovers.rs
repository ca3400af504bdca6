//! A second process of Takeup that cleans up if a capture is killed.
//!
//! A killed process cannot stop the kernel's recording: every call of the recorded processes would
//! cost more from then on, and the buffers would stay. The guard starts before anything else, reads
//! a pipe from the capture and waits for its end. Lines on the pipe name what the capture makes:
//! the shell that waits to become the command, before it exists; and of a validation its folder,
//! and the process. When the capture ends normally, nothing of that is left, and the guard ends.

use std::fs;
use std::io::{BufRead, Read as _, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use capture::trace::Tracefs;
use machine::processes::{Process, running};
use machine::threads::arguments;
use rustix::process::{Pid, Signal, kill_process};

use crate::outcome::Outcome;

/// Time between two tries: files of a killed process stay open until all of it has ended.
const STEP: Duration = Duration::from_millis(20);
/// What the guard writes once it has its own session.
const READY: u8 = b'r';
/// The most tries.
const TRIES_MAX: u32 = 500;
/// The fewest tries where a shell may be held: the pipe ends in the middle of its start, before the
/// kernel shows its arguments.
const TRIES_MIN: u32 = 5;

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

    /// Names the shell script of a command that is about to be started and held.
    pub fn held(&mut self, script: &str) {
        self.say(format!("held {script}").as_bytes());
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
    Folder {
        path: PathBuf,
        device: u64,
        number: u64,
    },
    Process(Process),
    /// A shell with this script.
    Held(String),
}

impl Left {
    fn parse(line: &[u8]) -> Option<Left> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse().ok();
        if let Some(rest) = line.strip_prefix(b"process ") {
            let mut parts = rest.splitn(2, |byte| *byte == b' ');
            let pid = u32::try_from(text(parts.next()?)?).ok()?;
            return Some(Left::Process(Process { pid, start_ticks: text(parts.next()?)? }));
        }
        if let Some(script) = line.strip_prefix(b"held ") {
            return Some(Left::Held(String::from_utf8_lossy(script).into_owned()));
        }
        let mut parts = line.strip_prefix(b"folder ")?.splitn(3, |byte| *byte == b' ');
        let (device, number) = (text(parts.next()?)?, text(parts.next()?)?);
        let path = PathBuf::from(std::ffi::OsString::from_vec(parts.next()?.to_vec()));
        Some(Left::Folder { path, device, number })
    }

    fn take_away(&self) {
        match self {
            Left::Process(process) => kill(*process),
            Left::Held(script) => {
                for process in running() {
                    if arguments(process.pid).get(2) == Some(script) {
                        kill(process);
                    }
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

fn kill(process: Process) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| process.runs()) {
        let _ = kill_process(pid, Signal::KILL);
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
    let opened = match tracefs {
        Some(folder) => Tracefs::at(folder),
        None => Tracefs::open(),
    };
    let is_folder = |it: &&Left| matches!(it, Left::Folder { .. });
    let may_be_held = left.iter().any(|it| matches!(it, Left::Held(_)));
    let tries_min = if may_be_held { TRIES_MIN } else { 1 };
    for tries in 1..=TRIES_MAX {
        // Processes first: they may write to the folders.
        left.iter().filter(|it| !is_folder(it)).for_each(Left::take_away);
        left.iter().filter(is_folder).for_each(Left::take_away);
        let own = opened.as_ref().map_or(0, |it| it.remove_left(Some(parent)));
        let has_folder =
            left.iter().any(|it| matches!(it, Left::Folder { path, .. } if path.exists()));
        if own == 0 && !has_folder && tries >= tries_min {
            return Outcome::Done;
        }
        std::thread::sleep(STEP);
    }
    Outcome::Bad
}
