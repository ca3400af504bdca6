//! A virtual drive that is mounted until it is dropped.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest time of any step before it counts as hanging.
pub const LIMIT: Duration = Duration::from_secs(60);

pub fn takeup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.env("LC_ALL", "C").stdin(Stdio::null());
    // What tests learn of tapes is not for the user who runs them.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

pub fn run(arguments: &[&str]) -> Output {
    takeup().args(arguments).output().unwrap()
}

/// `takeup sim tape` on a folder of its own.
pub struct Drive {
    folder: TempDir,
    program: Child,
}

impl Drive {
    /// A drive that takes no time, with a medium file. It needs FUSE.
    pub fn new() -> Drive {
        Drive::with(&["--time", "none"])
    }

    /// A drive with these options and a medium file of 64 MiB.
    pub fn with(options: &[&str]) -> Drive {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("drive")).unwrap();
        let medium = folder.path().join("medium");
        Drive::on(folder, &medium, options)
    }

    /// A drive in `folder`/drive with that medium, of 64 MiB unless the options say otherwise.
    pub fn on(folder: TempDir, medium: &Path, options: &[&str]) -> Drive {
        let is_given = options.contains(&"--capacity");
        let capacity: &[&str] = if is_given { &[] } else { &["--capacity", "64M"] };
        let mut program = takeup()
            .args(["sim", "tape", "--medium"])
            .arg(medium)
            .args(capacity)
            .args(options)
            .arg(folder.path().join("drive"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let errors = program.stderr.take().unwrap();
        BufReader::new(errors).read_line(&mut line).unwrap();
        assert!(line.contains("drive at"), "{line}");
        Drive { folder, program }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("drive")
    }

    pub fn tape(&self) -> PathBuf {
        self.path().join("nst0")
    }

    pub fn medium(&self) -> PathBuf {
        self.folder.path().join("medium")
    }

    pub fn status(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path().join("status")).unwrap()).unwrap()
    }

    /// Writes a file with dd at the start of the tape. Returns once the filemark is written.
    pub fn dd_in(&self, data: &[u8], block: &str) {
        self.mt(&["rewind"]);
        let mut target = std::ffi::OsString::from("of=");
        target.push(self.tape());
        let mut dd = Command::new("dd")
            .args([block, "iflag=fullblock", "status=none"])
            .arg(target)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        dd.stdin.take().unwrap().write_all(data).unwrap();
        assert!(dd.wait().unwrap().success());
        // The open waits until the last close is complete.
        self.mt(&["status"]);
    }

    /// Reads the first file of the tape with dd.
    pub fn dd_out(&self, block: &str) -> Vec<u8> {
        self.mt(&["rewind"]);
        let mut source = std::ffi::OsString::from("if=");
        source.push(self.tape());
        let output = Command::new("dd").args([block, "status=none"]).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// mt of mt-st: that of cpio only accepts character devices.
    pub fn mt(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("mt-st").arg("-f").arg(self.tape()).args(arguments).output().unwrap();
        assert!(output.status.success(), "mt-st {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let id = self.program.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end of the program; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.program.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "the drive does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The folder, for another drive, once this one is gone.
    pub fn into_folder(mut self) -> TempDir {
        let _ = self.program.kill();
        let _ = self.program.wait();
        unmount(&self.path());
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        unmount(&self.path());
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Unmounts lazily, with the program that is allowed to.
pub fn unmount(path: &Path) {
    let quiet = |command: &mut Command| {
        command.arg(path).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !quiet(Command::new("umount").arg("-l")) {
        quiet(Command::new("fusermount3").arg("-uz"));
    }
}
