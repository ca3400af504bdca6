//! The drive goes away, or is out of space: no hang, a clear error, and an intact medium.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use crate::drive::{Drive, LIMIT, unmount};

const BLOCK: usize = 64 << 10;

fn open(drive: &Drive) -> File {
    OpenOptions::new().read(true).write(true).open(drive.tape()).unwrap()
}

/// Runs a command that must not hang.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(act());
    });
    receiver.recv_timeout(LIMIT).expect("it does not hang")
}

/// A drive that was killed after `blocks` blocks, which follow a first file of two.
fn killed_after(blocks: u8) -> Drive {
    let mut drive = Drive::new();
    drive.dd_in(&[1; 2 * BLOCK], "bs=64k");
    let mut tape = open(&drive);
    for number in 0..blocks {
        tape.write_all(&[number; BLOCK]).unwrap();
    }
    drive.signal("KILL");
    assert_eq!(drive.wait(), None);
    let error = in_time(move || tape.write(&[9; BLOCK]).unwrap_err());
    assert!(matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED)), "{error}");
    drive
}

#[test]
fn killed_with_a_program_at_it() {
    testkit::require!(Fuse);
    let drive = killed_after(10);
    let medium = drive.medium();
    let error = File::open(drive.tape()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, &["--time", "none"]);
    assert!(drive.dd_out("bs=64k") == [1; 2 * BLOCK], "the file before");
    drive.mt(&["rewind"]);
    drive.mt(&["fsf", "1"]);
    let mut tape = open(&drive);
    let mut block = vec![0; BLOCK];
    for number in 0..10 {
        assert_eq!(tape.read(&mut block).unwrap(), BLOCK);
        assert!(block.iter().all(|byte| *byte == number), "block {number}");
    }
}

/// Block `number` of a file, different from every other; every third does not compress.
fn content(number: u64, bytes: usize) -> Vec<u8> {
    let mut random = testkit::samples::Random::numbered(number);
    let mut word = |at: usize| match number % 3 {
        0 => random.bits(),
        1 => number,
        _ => number + at as u64 / 50,
    };
    let mut block: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|at| word(at).to_le_bytes()).collect();
    block.truncate(bytes);
    block
}

/// Writes until the drive is killed after `delay`. Every accepted block must be there afterwards,
/// after the first file. Returns their number.
fn kill_and_look(block_bytes: usize, options: &[&str], delay: Duration) -> u64 {
    let mut drive = Drive::with(options);
    drive.dd_in(&[1; 2 * BLOCK], "bs=64k");
    let mut tape = open(&drive);
    let writing = std::thread::spawn(move || {
        let mut written = 0;
        while tape.write_all(&content(written, block_bytes)).is_ok() {
            written += 1;
        }
        written
    });
    std::thread::sleep(delay);
    drive.signal("KILL");
    drive.wait();
    let written = in_time(move || writing.join().unwrap());
    let medium = drive.medium();
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, options);
    drive.mt(&["fsf", "1"]);
    let mut tape = open(&drive);
    let mut block = vec![0; block_bytes];
    let place = |number: u64| format!("block {number} of {written}, {block_bytes} {options:?}");
    for number in 0..written {
        assert_eq!(tape.read(&mut block).unwrap(), block_bytes, "{}", place(number));
        assert!(block == content(number, block_bytes), "{}", place(number));
    }
    // The last write is there completely, or not at all: after the last block the medium is blank,
    // for which the driver returns EIO.
    match tape.read(&mut block) {
        Ok(more) => {
            let whole = content(written, block_bytes);
            assert!(more == 0 || block[..more] == whole, "{}", place(written));
        }
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EIO), "{}", place(written)),
    }
    drop(tape);
    drive.mt(&["rewind"]);
    assert!(drive.dd_out("bs=64k") == [1; 2 * BLOCK], "the file before");
    written
}

/// Each of these with and without packed blocks, and with a drive in real time.
const OPTIONS: [&[&str]; 4] = [
    &["--time", "none"],
    &["--time", "none", "--compression", "off"],
    &["--speed-up", "1000"],
    &["--speed-up", "20", "--compression", "2"],
];

#[test]
fn killed_at_any_moment() {
    testkit::require!(Fuse);
    let sizes = [512, 10 * 1024 + 1, BLOCK, 1 << 20];
    for (round, options) in OPTIONS.into_iter().enumerate() {
        let delay = Duration::from_millis(5 + 7 * round as u64);
        kill_and_look(sizes[round], options, delay);
    }
}

/// The long form: `TAKEUP_LONG=1`.
#[test]
fn killed_at_many_moments() {
    testkit::require!(Fuse);
    testkit::long_run!();
    let mut written = 0;
    for block_bytes in [1, 512, 4096, 10 * 1024 + 1, BLOCK, 256 << 10, 1 << 20] {
        for options in OPTIONS {
            for round in 0..10_u64 {
                let delay = Duration::from_micros(1000 + 4700 * round);
                written += kill_and_look(block_bytes, options, delay);
            }
        }
    }
    assert!(written > 0);
}

#[test]
fn ended_with_a_program_at_it() {
    testkit::require!(Fuse);
    let mut drive = Drive::new();
    let mut tape = open(&drive);
    tape.write_all(&[1; BLOCK]).unwrap();
    drive.signal("TERM");
    // A program with the drive open keeps it for a moment; others cannot open it.
    assert_eq!(drive.wait(), Some(1));
    let error = in_time(move || tape.write(&[2; BLOCK]).unwrap_err());
    assert!(matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED)), "{error}");
    let medium = drive.medium();
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, &["--time", "none"]);
    // No filemark: the program never closed the tape.
    let mut block = vec![0; BLOCK];
    assert_eq!(open(&drive).read(&mut block).unwrap(), BLOCK);
    assert!(block == [1; BLOCK]);
}

#[test]
fn ended_with_nobody_at_it() {
    testkit::require!(Fuse);
    let mut drive = Drive::new();
    drive.dd_in(&[1; BLOCK], "bs=64k");
    drive.signal("INT");
    assert_eq!(drive.wait(), Some(0));
    assert!(!drive.tape().exists());
}

#[test]
fn unmounted_from_outside() {
    testkit::require!(Fuse);
    let mut drive = Drive::new();
    drive.dd_in(&[1; BLOCK], "bs=64k");
    unmount(&drive.path());
    assert_eq!(drive.wait(), Some(0));
}

#[test]
fn a_wait_for_the_tape_ends_with_the_drive() {
    testkit::require!(Fuse);
    // A rewind over a whole medium takes about a minute and a half.
    let mut drive = Drive::with(&["--compression", "off"]);
    let mut tape = open(&drive);
    tape.write_all(&[1; BLOCK]).unwrap();
    let closing = std::thread::spawn(move || drop(tape));
    std::thread::sleep(Duration::from_millis(300));
    drive.signal("TERM");
    drive.wait();
    in_time(move || closing.join().unwrap());
}

#[test]
fn no_room_for_the_medium() {
    testkit::require!(Fuse, Mounts);
    let options = ["--time", "none", "--compression", "off"];
    let drive = Drive::with(&options);
    let small = drive.folder().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&small)
        .status()
        .unwrap();
    assert!(mounted.success());
    let load = crate::takeup()
        .args(["sim", "load"])
        .arg(drive.path())
        .arg(small.join("medium"))
        .arg("--new")
        .status()
        .unwrap();
    assert!(load.success());
    let mut tape = open(&drive);
    let mut written = 0;
    let error = loop {
        match tape.write(&[written; BLOCK]) {
            Ok(bytes) => assert_eq!(bytes, BLOCK),
            Err(error) => break error,
        }
        written += 1;
        assert!(written < 20, "there is room for less than a MiB");
    };
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    let trouble = drive.status()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("No space left on device"), "{trouble}");
    drop(tape);
    drive.mt(&["rewind"]);
    let mut tape =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(drive.tape()).unwrap();
    let mut block = vec![0; BLOCK];
    for number in 0..written {
        assert_eq!(tape.read(&mut block).unwrap(), BLOCK);
        assert!(block.iter().all(|byte| *byte == number));
    }
    drop(tape);
    drop(drive);
    unmount(&small);
}

#[test]
fn a_medium_leaves_its_disk_a_reserve() {
    testkit::require!(Fuse, Mounts);
    let drive = Drive::with(&["--time", "none", "--compression", "off"]);
    let small = drive.folder().join("small");
    fs::create_dir(&small).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=40m", "tmpfs"];
    assert!(Command::new("mount").args(mount).arg(&small).status().unwrap().success());
    let mut load = crate::takeup();
    load.args(["sim", "load", "--new"]).arg(drive.path()).arg(small.join("medium"));
    assert!(load.status().unwrap().success());
    let mut tape = open(&drive);
    let block = testkit::samples::noise(3, BLOCK);
    let mut written = 0;
    while tape.write(&block).is_ok() {
        written += 1;
        assert!(written < 40 * 16, "there is room for less than 40 MiB");
    }
    assert!(written > 30 * 16, "{written}");
    let free = rustix::fs::statvfs(&small).unwrap();
    assert!(free.f_bavail * free.f_frsize >= 2 << 20, "a twentieth is left");
    let trouble = drive.status()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("kept free"), "{trouble}");
    drop(tape);
    drop(drive);
    unmount(&small);
}
