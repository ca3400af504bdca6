//! The program on tape drives under the kernel's own driver.
//!
//! Every test runs in the lab's guest, once on tgtd's drive and once on `sim`'s (`cargo xtask lab`;
//! `docs/lab.md`). It needs `$TAKEUP_TAPE`, a drive whose medium may be overwritten, and
//! `cartridge`, which changes the medium. Elsewhere it is ignored, with the reason. Tests that only
//! work on one of the drives are in a module `on_sim_drive` or `on_tgtd_drive`, which the lab
//! leaves out on the other.
#![allow(clippy::unwrap_used)]

mod autoloader;
mod bench;
mod chains;
mod drive;
mod ends;
mod foreign;
mod layers;
mod medium;
mod sets;
mod snapshot_hook;
mod stacks;
mod trees;
mod volumes;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The drive under test.
pub fn device() -> String {
    std::env::var("TAKEUP_TAPE").expect("$TAKEUP_TAPE names a tape drive; cargo xtask lab sets it")
}

/// The output of a program, for assertions and for the message when they fail.
pub struct Said {
    /// Exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

impl Said {
    fn from(output: Output) -> Said {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code(),
            output: text(&output.stdout),
            errors: text(&output.stderr),
        }
    }

    /// Asserts the exit code and returns itself.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Said {
        let (output, errors) = (&self.output, &self.errors);
        assert_eq!(self.code, Some(code), "--- output\n{output}\n--- errors\n{errors}");
        self
    }

    /// Asserts that standard error has all of these.
    #[track_caller]
    pub fn complains(self, parts: &[&str]) -> Said {
        for part in parts {
            assert!(self.errors.contains(part), "no {part:?} in {}", self.errors);
        }
        self
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.output)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.output, self.errors))
    }
}

/// Reads a document as an answer and writes it again: it is the same.
#[track_caller]
pub fn check<A: service::Answer + serde::de::DeserializeOwned>(printed: &serde_json::Value) -> A {
    let answer: A = serde_json::from_value(printed.clone())
        .unwrap_or_else(|error| panic!("no answer of {}: {error}: {printed:#}", A::COMMAND));
    assert_eq!(&service::document(&answer), printed);
    answer
}

/// The program with arguments, not started. It is killed after a minute and a half, with exit code
/// 137, far longer than any test needs: a hanging one must not stop all others.
pub fn takeup<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", "--foreground", "90", env!("CARGO_BIN_EXE_takeup")]);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Said {
    Said::from(takeup(arguments).output().unwrap())
}

/// Runs a shell script, in which `$TAPE` is the drive (as for GNU tar and mt), in a folder.
pub fn shell(folder: &Path, script: &str) -> Said {
    let output = Command::new("timeout")
        .args(["--signal", "KILL", "300", "sh", "-euc", script])
        .env("TAPE", device())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said::from(output)
}

/// A shell function that lets LVM look only at the given disks, by a configuration in the folder
/// `lvm`. Without it each command of LVM reads 128 KiB of every disk there, also of those whose
/// reads are counted beside it, for the other drive. Nobody makes the names of devices in the guest
/// but LVM itself.
pub const LVM_ONLY_OF: &str = "\
    lvm_only_of() {
        mkdir lvm
        printf 'activation {\\n udev_sync = 0\\n udev_rules = 0\\n}\\n' >lvm/lvm.conf
        printf 'devices {\\n global_filter = [' >>lvm/lvm.conf
        printf ' \"a|^%s$|\",' \"$@\" >>lvm/lvm.conf
        printf ' \"r|.*|\" ]\\n}\\n' >>lvm/lvm.conf
        export LVM_SYSTEM_DIR=$PWD/lvm
    }\n";

/// Lets the operator do something; returns its output, without the end of the line.
#[track_caller]
pub fn cartridge(words: &[&str]) -> String {
    let said = Said::from(Command::new("cartridge").args(words).output().unwrap()).with_code(0);
    said.output.trim_end().to_owned()
}

/// Makes a blank cartridge and loads it.
#[track_caller]
pub fn fresh(name: &str, mib: u32) {
    cartridge(&["new", name, &mib.to_string()]);
    cartridge(&["load", name]);
}

/// Rewinds with mt.
#[track_caller]
pub fn rewind() {
    shell(Path::new("/"), "mt rewind").with_code(0);
}

/// Backs `source` up to the drive with these options besides.
pub fn backup(source: &Path, options: &[&str]) -> Said {
    let device = device();
    let source = source.to_str().unwrap();
    let mut arguments = vec!["backup", source, "--to", &device, "--ring", "96M"];
    arguments.extend(options);
    run(&arguments)
}

/// Restores from the drive into `folder` with these options and paths.
pub fn restore(folder: &Path, options: &[&str]) -> Said {
    let device = device();
    let folder = folder.to_str().unwrap();
    let mut arguments = vec!["restore", &device, "--into", folder, "--no-sync", "--ring", "96M"];
    arguments.extend(options);
    run(&arguments)
}

/// Lists the set on the drive.
pub fn list(options: &[&str]) -> Said {
    let device = device();
    let mut arguments = vec!["list", &device, "--ring", "96M"];
    arguments.extend(options);
    run(&arguments)
}

/// Verifies the set on the drive.
pub fn verify(options: &[&str]) -> Said {
    let device = device();
    let mut arguments = vec!["verify", &device, "--ring", "96M"];
    arguments.extend(options);
    run(&arguments)
}
