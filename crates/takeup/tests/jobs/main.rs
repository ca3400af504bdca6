//! Jobs that a file names: run, verified, thinned out, and how they stand; and the sets of a
//! folder.
#![allow(clippy::unwrap_used)]

mod catalogue;
#[path = "../sim/drive.rs"]
#[allow(dead_code, clippy::print_stderr, reason = "shared with the tests of the drive")]
mod drive;
mod folder;
mod forget;
mod hooks;
mod lost_state;
mod on_tape;
mod read_back;
mod routine;
mod safety;
mod trial;
mod units;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than a clock of a file system stands still: what is older is not doubtful.
const TICK: Duration = Duration::from_millis(70);

/// A place with a source, a file of jobs and a state of its own.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// With a source of five files, and this behind the begin of its job.
    fn new(more: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("home")).unwrap();
        for number in 0..5 {
            place.write(number, &format!("file {number}\n").repeat(100));
        }
        place.configure(more);
        std::thread::sleep(TICK);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, number: u32, text: &str) {
        std::fs::write(self.path(&format!("home/{number}.txt")), text).unwrap();
    }

    /// The job `homes`, with more behind it.
    fn configure(&self, more: &str) {
        let (home, sets) = (self.path("home"), self.path("sets"));
        let (home, sets) = (home.display(), sets.display());
        let text = format!("[jobs.homes]\nsources = ['{home}']\nto = '{sets}/'\n{more}");
        std::fs::write(self.path("takeup.toml"), text).unwrap();
    }

    fn takeup(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.takeup().args(arguments).output().unwrap()
    }

    /// What the program prints on both streams; it ends with this code.
    #[track_caller]
    fn text(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// The document of a command that ends with this code.
    #[track_caller]
    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the job, which ends with this code.
    #[track_caller]
    fn job(&self, more: &[&str], code: i32) -> Value {
        self.json(&[&["run", "homes", "--config", "takeup.toml"], more].concat(), code)
    }

    /// How the job stands.
    #[track_caller]
    fn status(&self, code: i32) -> Value {
        self.json(&["status", "--config", "takeup.toml"], code)["jobs"][0].clone()
    }

    /// The archives, in the order of their names.
    fn archives(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("sets")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut archives: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "tar")).collect();
        archives.sort();
        archives
    }
}

/// The path of the archive that a run wrote.
fn archive(answer: &Value) -> PathBuf {
    answer["backup"]["archive"].as_str().unwrap().into()
}

/// Changes a byte in the middle of a file.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.windows(6).position(|it| it == b"file 3").unwrap();
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
