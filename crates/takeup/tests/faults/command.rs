//! The binary as a child process under a watchdog, and the trees it works on.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};
use testkit::samples::noise;

/// Runs take a few seconds, in the long form minutes. A run that takes longer than this hangs.
fn hang() -> Duration {
    let long = std::env::var_os("TAKEUP_LONG").is_some();
    Duration::from_secs(if long { 600 } else { 60 })
}

/// A folder with a tree in it, and room for targets beside.
pub struct Case {
    pub folder: TempDir,
    pub tree: PathBuf,
}

impl Case {
    /// Files of noise, which does not compress.
    pub fn new(files: u64, file_bytes: usize) -> Case {
        let folder = tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for number in 0..files {
            std::fs::write(tree.join(number.to_string()), noise(number, file_bytes)).unwrap();
        }
        let targets = folder.path().join("targets");
        std::fs::create_dir(&targets).unwrap();
        Case { folder, tree }
    }

    /// A place for a target; nothing else is in its folder.
    pub fn target(&self) -> PathBuf {
        self.targets().join("set.tar")
    }

    pub fn targets(&self) -> PathBuf {
        self.folder.path().join("targets")
    }

    /// A backup of the tree.
    pub fn backup(&self, target: &Path) -> Command {
        let mut command = takeup();
        command.arg("backup").arg(&self.tree).arg("--to").arg(target);
        command
    }

    /// The output of an undisturbed run.
    pub fn reference(&self, options: &[&str]) -> Vec<u8> {
        let target = self.folder.path().join("reference");
        let done = run(self.backup(&target).args(options));
        assert_eq!(done.code, Some(0), "{}", done.errors);
        let bytes = std::fs::read(&target).unwrap();
        let tar = Command::new("tar").arg("-tf").arg(&target).output().unwrap();
        assert!(tar.status.success() && tar.stderr.is_empty(), "tar reads the reference");
        std::fs::remove_file(&target).unwrap();
        bytes
    }
}

pub fn takeup() -> Command {
    Command::new(env!("CARGO_BIN_EXE_takeup"))
}

/// Names in a folder, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// How a run ended.
#[derive(Debug)]
pub struct Done {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub output: Vec<u8>,
    pub errors: String,
}

impl Done {
    /// The lines about the failure: one, and perhaps a hint.
    pub fn assert_failed(&self, expected: &str) {
        assert_eq!(self.code, Some(1), "{}", self.errors);
        let told: Vec<&str> =
            self.errors.lines().filter(|line| !line.starts_with("hint: ")).collect();
        assert_eq!(told.len(), 1, "one line tells what happened: {}", self.errors);
        let line = told[0].strip_prefix("takeup: ").expect("the line says who speaks");
        // The failed byte of a write is only known where writes do not overlap.
        let line = match line.split_once("write at byte ") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
                format!("{before}write at byte N{after}")
            }
            None => line.to_owned(),
        };
        assert_eq!(line, expected);
    }
}

/// A run under way.
pub struct Running {
    pub child: Child,
    what: String,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running::start_with(command, Stdio::null())
    }

    pub fn start_with(command: &mut Command, input: Stdio) -> Running {
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { what: format!("{command:?}"), child: command.spawn().unwrap() }
    }

    pub fn signal(&self, signal: Signal) {
        // The process has not been waited for, so its number is still its own.
        let _ = kill_process(self.pid(), signal);
    }

    /// Waits until the program handles or ignores the signal: until its bit is set in `field` of
    /// proc_pid_status(5), `SigCgt` or `SigIgn`.
    pub fn until_it_heeds(&self, signal: Signal, field: &str) {
        let bit = 1u64 << (signal.as_raw() - 1);
        let path = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let end = Instant::now() + hang();
        loop {
            let status = std::fs::read_to_string(&path).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
            let mask = u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap();
            if mask & bit != 0 {
                return;
            }
            assert!(Instant::now() < end, "no {field} of {signal:?}: {}", self.what);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end. A run that hangs is killed and fails the test.
    pub fn wait(self) -> Done {
        let pid = self.pid();
        let (sender, receiver) = channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let hangs = receiver.recv_timeout(hang()) == Err(RecvTimeoutError::Timeout);
            if hangs {
                let _ = kill_process(pid, Signal::KILL);
            }
            hangs
        });
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        drop(sender);
        let errors = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!watchdog.join().unwrap(), "hangs: {}\n{errors}", self.what);
        Done { code: status.code(), output: stdout, errors }
    }
}

pub fn run(command: &mut Command) -> Done {
    Running::start(command).wait()
}
