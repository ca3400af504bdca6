//! A verification checks the disk: takeup drops the page cache before it reads.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{Case, run, takeup};

/// Bytes that a program and its threads read from devices, as counted by the kernel.
const READ_BYTES: &str = "import subprocess, resource, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock * 512, file=sys.stderr)
sys.exit(done.returncode)";

/// Verifies; returns the bytes read from devices and what the run reports about it.
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

/// Holds the first mebibyte of a file in the page cache until its standard input ends.
const HOLD: &str = "import ctypes, mmap, sys
file = open(sys.argv[1], 'r+b')
memory = mmap.mmap(file.fileno(), 1 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20)) != 0:
    sys.exit(f'mlock: {ctypes.get_errno()}')
print('held', flush=True)
sys.stdin.read()";

/// Pages of the archive that other programs hold in the page cache cannot be dropped. They are read
/// from the disk as well.
#[test]
fn what_somebody_else_holds_in_the_page_cache_is_read_from_the_disk() {
    let case = Case::new(8, 1 << 20);
    let target = case.target();
    assert_eq!(run(&mut case.backup(&target)).code, Some(0));
    let archive = std::fs::File::open(&target).unwrap();
    let archive_bytes = archive.metadata().unwrap().len();
    if device::file::direct_alignment(&archive).is_none() {
        testkit::does_not_apply!("no direct I/O on this disk");
    }
    let cached_bytes = || device::file::cached_bytes(archive.as_fd(), 0..archive_bytes).unwrap();
    let mut holder = Command::new("python3");
    holder.args(["-c", HOLD]).arg(&target).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let (read_bytes, told) = verify(&target, &[]);
    let left_bytes = cached_bytes();
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert_eq!(told["what"], "disk", "{told}");
    assert!(read_bytes >= archive_bytes, "{read_bytes} of {archive_bytes} bytes");
    // The pages that are left are the held ones, and the index at the end, which is read in small
    // pieces.
    assert!((1 << 20..2 << 20).contains(&left_bytes), "{left_bytes} bytes are cached");
}

/// A disk with 4 KiB sectors is also read past the page cache.
#[test]
fn sectors_of_4_kib_are_read_from_the_disk() {
    testkit::require!(Mounts, LoopDevices);
    let case = Case::new(4, 1 << 20);
    let (at, image) = (case.targets(), tempfile::NamedTempFile::new().unwrap());
    image.as_file().set_len(64 << 20).unwrap();
    let shell = |text: &str| {
        let mut command = Command::new("sh");
        let done = command.args(["-euc", text, "sh"]).arg(image.path()).arg(&at).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    shell(
        "device=$(losetup --find --show --sector-size 4096 --direct-io=on \"$1\")
         trap 'losetup --detach \"$device\"' EXIT
         mkfs.ext4 -q \"$device\"
         mount \"$device\" \"$2\"",
    );
    let backup = run(&mut case.backup(&case.target()));
    let verified = std::panic::catch_unwind(|| verify(&case.target(), &[]));
    let archive = std::fs::File::open(case.target()).unwrap();
    let alignment = device::file::direct_alignment(&archive);
    let archive_bytes = archive.metadata().unwrap().len();
    let cached_bytes = device::file::cached_bytes(archive.as_fd(), 0..archive_bytes);
    drop(archive);
    shell("umount \"$2\"");
    assert_eq!(backup.code, Some(0), "{}", backup.errors);
    let (read_bytes, told) = verified.unwrap();
    assert_eq!(alignment.map(|it| it.offset_bytes), Some(4096));
    assert_eq!(told["what"], "disk", "{told}");
    assert!(read_bytes >= archive_bytes, "{read_bytes} of {archive_bytes} bytes");
    assert!(cached_bytes.unwrap() < 1 << 20, "{cached_bytes:?}");
}

#[test]
fn a_file_that_lives_in_memory_is_said_to_come_from_there() {
    testkit::require!(Mounts);
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
