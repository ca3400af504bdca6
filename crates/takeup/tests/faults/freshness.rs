//! A verification says something of the disk: what is cached is dropped before it is read.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::{Case, run, takeup};

/// Bytes that a program and its threads read from devices, by the kernel's account of it.
const READ_BYTES: &str = "import subprocess, resource, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock * 512, file=sys.stderr)
sys.exit(done.returncode)";

/// Verifies, and returns what was read from devices and what the run says about that.
fn verify(archive: &Path, options: &[&str]) -> (u64, Value) {
    let mut command = Command::new("python3");
    command.args(["-c", READ_BYTES]).arg(takeup().get_program());
    let done = run(command.args(["verify", "--json", "-q"]).args(options).arg(archive));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    let read_bytes = done.errors.trim().parse().expect("one number");
    let document: Value = serde_json::from_slice(&done.output).unwrap();
    (read_bytes, document["read_from"].clone())
}

#[test]
fn what_was_written_just_now_is_read_from_the_disk() {
    let case = Case::new(8, 1 << 20);
    let target = case.target();
    for options in [&[][..], &["--engine", "pread"]] {
        assert_eq!(run(case.backup(&target).arg("--overwrite")).code, Some(0));
        let archive_bytes = std::fs::metadata(&target).unwrap().len();
        let (read_bytes, told) = verify(&target, options);
        assert_eq!(told["what"], "disk", "the folder for temporary files is on a disk: {told}");
        assert!(read_bytes >= archive_bytes, "{read_bytes} of {archive_bytes} bytes");
        let (_, told) = verify(&target, &[options, &["--cached"]].concat());
        assert_eq!(told["what"], "page cache");
    }
}

#[test]
fn a_file_that_lives_in_memory_is_said_to_come_from_there() {
    needs::require!(Mounts);
    let case = Case::new(2, 1 << 20);
    let at = case.targets();
    let mount = |arguments: &[&str]| {
        let status = Command::new(arguments[0]).args(&arguments[1..]).arg(&at).status().unwrap();
        assert!(status.success());
    };
    mount(&["mount", "-t", "tmpfs", "tmpfs"]);
    let backup = run(&mut case.backup(&case.target()));
    let (_, told) = verify(&case.target(), &[]);
    mount(&["umount"]);
    assert_eq!(backup.code, Some(0), "{}", backup.errors);
    assert_eq!(told["what"], "page cache and disk");
    assert!(told["cached_bytes"].as_u64().unwrap() > 2 << 20, "{told}");
}

#[test]
fn a_pipe_says_nothing_of_a_disk() {
    let case = Case::new(1, 1000);
    let archive = case.reference(&[]);
    std::fs::write(case.target(), archive).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat \"$1\" | \"$0\" verify - --json -q"]).arg(takeup().get_program());
    let done = run(shell.arg(case.target()));
    let document: Value = serde_json::from_slice(&done.output).unwrap();
    assert_eq!(document["read_from"]["what"], "stream");
}
