//! A typing error has no effect: takeup checks every input before it writes anything, so that a
//! missing name leaves the tape, and the file, unchanged.

use std::fs;
use std::process::{Output, Stdio};

use crate::drive::{Drive, takeup};

/// The content of the tape, and of the file that stands for other targets.
const PRECIOUS: &[u8] = b"what took a night to write";

/// A drive with data on its medium, and a file with the same data.
fn precious() -> Drive {
    let drive = Drive::new();
    drive.dd_in(PRECIOUS, "bs=64k");
    drive.mt(&["rewind"]);
    fs::write(drive.folder().join("file"), PRECIOUS).unwrap();
    drive
}

/// The command in the drive's folder; `TAPE` is the drive.
fn mistyped(drive: &Drive, command: &str) -> Output {
    let tape = drive.tape();
    let words = command.split(' ');
    let words = words.map(|word| if word == "TAPE" { tape.to_str().unwrap() } else { word });
    takeup().args(words).current_dir(drive.folder()).output().unwrap()
}

#[track_caller]
fn costs_nothing(drive: &Drive, command: &str, expected: &str) {
    let output = mistyped(drive, command);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");
    assert!(errors.contains(expected), "{command}: {errors}");
    assert_eq!(drive.dd_out("bs=64k"), PRECIOUS, "{command}");
    drive.mt(&["rewind"]);
    assert_eq!(fs::read(drive.folder().join("file")).unwrap(), PRECIOUS, "{command}");
    let mut left: Vec<_> = fs::read_dir(drive.folder()).unwrap().collect();
    left.retain(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        !["drive", "medium", "file", "plan.toml"].iter().any(|known| name == *known)
    });
    assert!(left.is_empty(), "{command}: {left:?}");
}

#[test]
fn a_name_that_is_not_there_costs_no_tape_and_no_file() {
    testkit::require!(Fuse);
    let drive = precious();
    let plan = mistyped(&drive, "bench tape TAPE --data zeros,srcc --print-plan");
    fs::write(drive.folder().join("plan.toml"), plan.stdout).unwrap();
    for target in ["TAPE", "file"] {
        for (command, expected) in [
            ("bench tape TARGET --overwrite --length 1M --data srcc", "srcc"),
            ("bench tape TARGET --overwrite --length 1M --data zeros,srcc", "srcc"),
            ("bench tape TARGET --overwrite --length 1M --data drive", "all files in it are empty"),
            ("bench tape TARGET --overwrite --length 1M -o folderr/runs", "folderr/runs"),
            ("pipe --from srcc --to TARGET --overwrite", "srcc"),
            ("backup srcc --to TARGET --overwrite --force", "srcc"),
            ("backup drive srcc --to TARGET --overwrite --force", "srcc"),
        ] {
            costs_nothing(&drive, &command.replace("TARGET", target), expected);
        }
    }
    costs_nothing(&drive, "bench tape --overwrite --plan plan.toml", "srcc");
    costs_nothing(&drive, "bench tape --overwrite --plan plann.toml", "plann.toml");
    costs_nothing(&drive, "bench disk file --destructive --job jobb.fio", "jobb.fio");
    costs_nothing(&drive, "plan srcc --drive lto7 --chart file", "srcc");
    costs_nothing(&drive, "report srcc --html file", "srcc");
}

#[test]
fn data_that_are_the_target_are_not_written_over() {
    testkit::require!(Fuse);
    let drive = precious();
    let said = "file is both the data and the target";
    costs_nothing(&drive, "bench tape file --overwrite --length 1M --data file", said);
    costs_nothing(&drive, "bench tape file --overwrite --length 1M --data ./drive/../file", said);
    let said = "nst0 is both the data and the target";
    costs_nothing(&drive, "bench tape TAPE --overwrite --length 1M --data TAPE", said);
}

/// `tarr cf - /srv | takeup pipe --to /dev/nst0 --overwrite`: the shell starts both.
#[test]
fn a_stream_of_nothing_costs_no_tape() {
    testkit::require!(Fuse);
    let drive = precious();
    costs_nothing(&drive, "pipe --to TAPE --overwrite", "the input is empty");
    // At the end of the data a filemark is harmless.
    drive.mt(&["eod"]);
    let output = mistyped(&drive, "pipe --to TAPE");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_drive_that_cannot_be_mounted_leaves_no_medium() {
    testkit::require!(Fuse);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("drive")).unwrap();
    for (options, expected) in [
        (["--set", "back_hich_ns=1s", "drive"], "back_hich_ns"),
        (["--capacity", "1G", "drve"], "drve"),
    ] {
        let mut command = takeup();
        command.args(["sim", "tape", "--medium", "medium"]).args(options).stdout(Stdio::null());
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{output:?}");
        assert!(!folder.path().join("medium").exists(), "{options:?}");
    }
}

/// A drive is not mounted on a file, or in the folder of a killed drive: the file stays unchanged,
/// the message for the folder has the command to unmount it, and no medium is made.
#[test]
fn a_drive_is_not_mounted_on_a_file_or_over_a_broken_mount() {
    testkit::require!(Fuse);
    let mut drive = Drive::new();
    fs::write(drive.folder().join("file"), PRECIOUS).unwrap();
    drive.signal("KILL");
    drive.wait();
    for (place, expected) in [("file", "not a folder"), ("drive", "umount")] {
        let mut command = takeup();
        command.args(["sim", "tape", "--time", "none", "--medium"]);
        command.arg(drive.folder().join("another")).arg(drive.folder().join(place));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{place}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{place}: {output:?}");
        assert!(!drive.folder().join("another").exists(), "{place}");
    }
    assert_eq!(fs::read(drive.folder().join("file")).unwrap(), PRECIOUS);
}

/// A refused stream does not move the tape: the next one is written where it should be.
#[test]
fn a_refused_stream_leaves_the_tape_where_it_stood() {
    testkit::require!(Fuse);
    let drive = precious();
    fs::write(drive.folder().join("other"), b"something else").unwrap();
    let refused = mistyped(&drive, "pipe --from other --to TAPE");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--overwrite"), "{refused:?}");
    let allowed = mistyped(&drive, "pipe --from other --to TAPE --overwrite");
    assert!(allowed.status.success(), "{allowed:?}");
    assert_eq!(drive.dd_out("bs=64k"), b"something else");
}
