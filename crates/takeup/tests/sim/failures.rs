//! The drive goes away, or has no room: no hang, a clear error, and a medium that is intact.

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

/// Runs something that must not hang.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(act());
    });
    receiver.recv_timeout(LIMIT).expect("it does not hang")
}

/// A drive that was used for `blocks` blocks behind one file of two, and then killed.
fn killed_after(blocks: u8) -> Option<Drive> {
    let mut drive = Drive::new()?;
    drive.dd_in(&[1; 2 * BLOCK], "bs=64k");
    let mut tape = open(&drive);
    for number in 0..blocks {
        tape.write_all(&[number; BLOCK]).unwrap();
    }
    drive.signal("KILL");
    assert_eq!(drive.wait(), None);
    let error = in_time(move || tape.write(&[9; BLOCK]).unwrap_err());
    assert!(matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED)), "{error}");
    Some(drive)
}

#[test]
fn killed_with_a_program_at_it() {
    let Some(drive) = killed_after(10) else { return };
    let medium = drive.medium();
    let error = File::open(drive.tape()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, &["--time", "none"]).unwrap();
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

#[test]
fn killed_at_any_moment() {
    for _ in 0..5 {
        let Some(mut drive) = Drive::new() else { return };
        drive.dd_in(&[1; 2 * BLOCK], "bs=64k");
        let mut tape = open(&drive);
        let writing = std::thread::spawn(move || {
            let mut written = 0_u64;
            while tape.write_all(&vec![(written % 251) as u8; BLOCK]).is_ok() {
                written += 1;
            }
            written
        });
        std::thread::sleep(Duration::from_millis(15));
        drive.signal("KILL");
        drive.wait();
        let written = in_time(move || writing.join().unwrap());
        let medium = drive.medium();
        let folder = drive.into_folder();
        let drive = Drive::on(folder, &medium, &["--time", "none"]).unwrap();
        drive.mt(&["fsf", "1"]);
        let mut tape = open(&drive);
        let mut block = vec![0; BLOCK];
        for number in 0..written {
            assert_eq!(tape.read(&mut block).unwrap(), BLOCK, "block {number} of {written}");
            assert!(block.iter().all(|byte| u64::from(*byte) == number % 251));
        }
    }
}

#[test]
fn ended_with_a_program_at_it() {
    let Some(mut drive) = Drive::new() else { return };
    let mut tape = open(&drive);
    tape.write_all(&[1; BLOCK]).unwrap();
    drive.signal("TERM");
    // Whoever has it open keeps it for a moment; nobody else gets in.
    assert_eq!(drive.wait(), Some(1));
    let error = in_time(move || tape.write(&[2; BLOCK]).unwrap_err());
    assert!(matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED)), "{error}");
    let medium = drive.medium();
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, &["--time", "none"]).unwrap();
    // No filemark: the program never closed the tape.
    let mut block = vec![0; BLOCK];
    assert_eq!(open(&drive).read(&mut block).unwrap(), BLOCK);
    assert!(block == [1; BLOCK]);
}

#[test]
fn ended_with_nobody_at_it() {
    let Some(mut drive) = Drive::new() else { return };
    drive.dd_in(&[1; BLOCK], "bs=64k");
    drive.signal("INT");
    assert_eq!(drive.wait(), Some(0));
    assert!(!drive.tape().exists());
}

#[test]
fn unmounted_from_outside() {
    let Some(mut drive) = Drive::new() else { return };
    drive.dd_in(&[1; BLOCK], "bs=64k");
    unmount(&drive.path());
    assert_eq!(drive.wait(), Some(0));
}

#[test]
fn a_wait_for_the_tape_ends_with_the_drive() {
    // A rewind over a whole medium takes about a minute and a half.
    let Some(mut drive) = Drive::with(&["--compression", "off"]) else { return };
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
    let Some(drive) = Drive::new() else { return };
    let small = drive.folder().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&small)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        return eprintln!("not tested: only root mounts a small file system");
    }
    let load = crate::takeup()
        .args(["sim", "load"])
        .arg(drive.path())
        .arg(small.join("medium"))
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
