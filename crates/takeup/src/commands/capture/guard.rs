//! What a capture leaves if it is killed, taken away by a process of this program that outlives it.
//!
//! A killed process cannot switch off what it has the kernel record: every call of what was
//! recorded would go on to cost more, and the buffers would stay. The guard is started before the
//! recording, holds nothing but the end of a pipe, and waits for its end. The lines that come
//! before name what a validation has made: its folder, and the process that it has started. When
//! the capture ends as it should, all of that is gone, and so is the guard.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use capture::trace::Tracefs;
use machine::processes::Process;
use rustix::process::{Pid, Signal, kill_process};

/// Between two tries: files of a process that was killed are open until all of it has ended.
const STEP: Duration = Duration::from_millis(20);
/// What it says once it is on its own.
const READY: u8 = b'r';
/// That many tries.
const TRIES_MAX: u32 = 500;

/// The other end of a guard, which begins when this is closed.
#[derive(Debug)]
pub struct Guard(Option<ChildStdin>);

impl Guard {
    /// Starts one for this process. A capture goes on where none can be started: what it leaves if
    /// it is killed is left to the next one then.
    pub fn start(tracefs: Option<&Path>) -> Guard {
        // The program as it runs, whatever has become of its file.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("takeup").args(["capture", "--guard"]);
        if let Some(folder) = tracefs {
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            command.arg("--tracefs").arg(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        Guard(command.spawn().ok().and_then(on_its_own))
    }

    /// A folder that is to go.
    pub fn folder(&mut self, folder: &Path) {
        let Ok(known) = fs::symlink_metadata(folder) else { return };
        let mut line = format!("folder {} {} ", known.dev(), known.ino()).into_bytes();
        line.extend_from_slice(folder.as_os_str().as_bytes());
        self.say(&line);
    }

    /// A process that is to end.
    pub fn process(&mut self, pid: u32) {
        if let Some(process) = Process::of(pid) {
            self.say(format!("process {} {}", process.pid, process.start_ticks).as_bytes());
        }
    }

    fn say(&mut self, line: &[u8]) {
        if let Some(pipe) = &mut self.0 {
            // A name with a line break in it cannot be said.
            let is_whole = !line.contains(&b'\n');
            let _ = pipe.write_all(if is_whole { line } else { b"" });
            let _ = pipe.write_all(b"\n");
        }
    }
}

/// Waits until a guard has left the group of this process, whose end would be its own.
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

/// Runs the guard.
pub fn run(tracefs: Option<&Path>) -> ExitCode {
    let parent = std::os::unix::process::parent_id();
    // No signal of a terminal is for it.
    let _ = rustix::process::setsid();
    if rustix::io::write(rustix::stdio::stdout(), &[READY]).is_err() {
        return ExitCode::from(crate::exit_code::FAILED);
    }
    let mut left = Vec::new();
    for line in BufReader::new(std::io::stdin()).split(b'\n') {
        let Ok(line) = line else { break };
        left.extend(Left::parse(&line));
    }
    // Processes first, since they may write to folders.
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
            return ExitCode::SUCCESS;
        }
        std::thread::sleep(STEP);
    }
    ExitCode::from(crate::exit_code::FAILED)
}
