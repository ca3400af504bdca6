//! Programs in the working directory with the names of those that Takeup starts: none of them runs,
//! whatever PATH is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::{TempDir, tempdir};

use crate::block_devices::LoopDevice;
use crate::command::{Done, names_in, run, takeup};

/// The programs that Takeup starts. `cargo xtask tidy` finds `Command::new` elsewhere.
const PROGRAMS: [&str; 10] = [
    "losetup", "smartctl", "vxtunefs", "dmsetup", "zpool", "udevadm", "getent", "fio", "sh", "bash",
];

/// PATHs that search the working directory: unset, empty, with an empty or a relative element at
/// the beginning, in the middle or at the end.
const SEARCHES: [Option<&str>; 7] = [
    None,
    Some(""),
    Some("."),
    Some(":/usr/bin:/bin"),
    Some("/usr/bin::/bin"),
    Some("/nowhere:"),
    Some("planted:../planted:/usr/bin:/bin"),
];

/// A folder with a program of each name, which leaves its name in another folder when it runs.
struct Planted {
    folder: TempDir,
}

impl Planted {
    fn new() -> Planted {
        let folder = tempdir().unwrap();
        fs::create_dir_all(folder.path().join("planted/planted")).unwrap();
        fs::create_dir(folder.path().join("ran")).unwrap();
        for below in ["planted", "planted/planted"] {
            for program in PROGRAMS {
                let path = folder.path().join(below).join(program);
                let ran = folder.path().join("ran");
                fs::write(&path, format!("#!/bin/sh\n: > {}/$$-{program}\n", ran.display()))
                    .unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        Planted { folder }
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("planted")
    }

    /// A new name for the output of a run.
    fn output(&self) -> PathBuf {
        let made = names_in(self.folder.path()).len();
        self.folder.path().join(format!("{made}.ndjson"))
    }

    /// A command in the folder, once for each PATH.
    #[track_caller]
    fn check(&self, command: impl Fn() -> Command, is_right: impl Fn(&Done) -> bool) {
        for path in SEARCHES {
            let mut command = command();
            command.current_dir(self.place()).env_remove("PATH");
            if let Some(path) = path {
                command.env("PATH", path);
            }
            let done = run(&mut command);
            let ran = names_in(&self.folder.path().join("ran"));
            assert_eq!(ran, [""; 0], "PATH {path:?}: {command:?}");
            assert!(is_right(&done), "PATH {path:?}: {command:?}: {done:?}");
        }
    }
}

fn with(arguments: &[&str]) -> Command {
    let mut command = takeup();
    command.args(arguments);
    command
}

fn is_done(done: &Done) -> bool {
    done.code == Some(0)
}

#[test]
fn a_probe_starts_none() {
    testkit::require!(LoopDevices);
    let (planted, device) = (Planted::new(), LoopDevice::new(1 << 20));
    let path = device.path.to_str().unwrap();
    planted.check(|| with(&["probe", path]), is_done);
    planted.check(|| with(&["probe", "/"]), is_done);
}

#[test]
fn an_experiment_starts_none() {
    testkit::require!(Fio);
    let planted = Planted::new();
    let file = planted.folder.path().join("file");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let load = ["--load", "read", "--block-size", "64k", "--depth", "1", "--runtime", "200ms"];
    let disk = || {
        let mut command = with(&["bench", "disk", "-q", "--repeats", "1", "--repeats-max", "1"]);
        command.arg(&file).args(load).arg("-o").arg(planted.output());
        command
    };
    planted.check(disk, is_done);
}

#[test]
fn the_run_that_validates_a_job_starts_none() {
    testkit::require!(Tracefs, Fio);
    let planted = Planted::new();
    let write = |number: u32| {
        let (milliseconds, offset) = (number + 1, number * 4096);
        let call = format!("pwrite64(3</srv/x>, \"\"..., 4096, {offset}) = 4096 <0.00001>");
        format!("1 0.{milliseconds:03}001 {call}\n")
    };
    let trace = planted.folder.path().join("trace");
    fs::write(&trace, (0..200).map(write).collect::<String>()).unwrap();
    let validate = || {
        let mut command = with(&["capture", "--validate", "--import"]);
        command.arg(&trace).arg("--folder").arg(planted.folder.path());
        command
    };
    planted.check(validate, is_done);
}

#[test]
fn the_shell_of_a_line_is_found_elsewhere() {
    let planted = Planted::new();
    for shell in ["sh", "bash"] {
        let line = || {
            let command = ["--command", "a=:", "--command", "b=:", "--repeats", "2", "-q", "-o"];
            let mut run = with(&["bench", "run", "--shell", shell]);
            run.args(command).arg(planted.output());
            run
        };
        planted.check(line, is_done);
    }
}

#[test]
fn a_setting_that_is_changed_starts_none() {
    testkit::require!(LoopDevices, KernelSettings);
    let (planted, device) = (Planted::new(), LoopDevice::new(1 << 20));
    let state = tempdir().unwrap();
    let tune = |arguments: &[&str]| {
        let mut command = with(&["tune"]);
        command.args(arguments).env("TAKEUP_STATE_DIR", state.path());
        command
    };
    let path = device.path.to_str().unwrap();
    planted.check(
        || tune(&["set", path, "read_ahead_kb=64", "--settle", "10ms"]),
        |done| is_done(done) && is_done(&run(&mut tune(&["revert"]))),
    );
}

/// `getent` runs where nsswitch.conf(5) names more than files; the command gets such a file in its
/// own mount namespace.
#[test]
fn a_backup_and_a_restore_ask_none_for_names() {
    testkit::require!(Mounts);
    let planted = Planted::new();
    let switch = planted.folder.path().join("nsswitch");
    fs::write(&switch, "passwd: files systemd\ngroup: files systemd\n").unwrap();
    let tree = planted.folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "content").unwrap();
    std::os::unix::fs::chown(tree.join("file"), Some(54_321), Some(54_321)).unwrap();
    let archive = planted.folder.path().join("archive");
    let script =
        format!("/bin/mount --bind {} /etc/nsswitch.conf && exec \"$@\"", switch.display());
    let inside = |arguments: &[&Path]| {
        let mut command = Command::new("/usr/bin/unshare");
        command.args(["-m", "/bin/sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_takeup")]);
        command.args(arguments);
        command
    };
    let [backup, to, overwrite] = ["backup", "--to", "--overwrite"].map(Path::new);
    planted.check(|| inside(&[backup, &tree, to, &archive, overwrite]), is_done);
    let out = planted.folder.path().join("out");
    let [restore, into, overwrite, owners, names] =
        ["restore", "--into", "--overwrite", "--owners", "names"].map(Path::new);
    planted.check(|| inside(&[restore, &archive, into, &out, overwrite, owners, names]), is_done);
}
