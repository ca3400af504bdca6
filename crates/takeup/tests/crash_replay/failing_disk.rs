//! A disk that fails at its n-th request, beneath a file system of the kernel. The program sees
//! what the kernel makes of it, such as write errors that only fsync reports, and only once.
//!
//! This also covers errors of io_uring: the kernel makes its transfers, where no tracer sees them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::recorder::{Failure, Lasting, Recorder, Request};
use crate::replay::{EXT4, FileSystem, Mounted, XFS, look_at};
use crate::runs::{Fixture, is_long};

/// How a run on a failing disk ended.
struct Ended {
    output: Output,
    /// Requests that failed.
    failed: usize,
    /// The disk when the run ended, without the refused writes.
    image: Vec<u8>,
}

fn takeup(arguments: &[&str], engine: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.args(&arguments[..1]).args(["-q", "--engine", engine]).args(&arguments[1..]);
    command
}

/// One run on a fresh copy of a disk. Also returns the number of requests.
fn run(
    system: &FileSystem,
    disk: &[u8],
    failure: Failure,
    command: &dyn Fn(&Path) -> Command,
) -> (Ended, usize) {
    let recorder = Recorder::new(disk.to_vec());
    let mounted = Mounted::new(&recorder.path(), system).unwrap();
    recorder.fail(Some(failure));
    let output = command(mounted.path()).output().unwrap();
    let (requests, failed) = recorder.counted(failure.request);
    // Requests of the kernel that are refused later, as by an unmount, do not concern the program.
    // As after a power cut, the disk has what it had accepted.
    let image = recorder.image();
    recorder.fail(None);
    drop(mounted);
    (Ended { output, failed, image }, requests)
}

/// Lets each request fail in turn, once and for good.
fn campaign(
    name: &str,
    system: &FileSystem,
    disk: &[u8],
    requests: &[Request],
    command: &dyn Fn(&Path) -> Command,
    check: &dyn Fn(&Ended) -> Result<(), String>,
) {
    let (mut runs, mut failed, mut codes, mut wrong) = (0, 0, [0; 3], Vec::new());
    for &request in requests {
        let never = Failure { request, at: usize::MAX, lasting: Lasting::Once };
        let (undisturbed, total) = run(system, disk, never, command);
        assert_eq!(undisturbed.output.status.code(), Some(0), "{name}");
        check(&undisturbed).unwrap();
        for lasting in [Lasting::Once, Lasting::Forever] {
            let stride = if is_long() { 1 } else { 3 };
            let mut at = 1;
            loop {
                let failure = Failure { request, at, lasting };
                let (ended, _) = run(system, disk, failure, command);
                runs += 1;
                failed += usize::from(ended.failed > 0);
                let code = ended.output.status.code();
                let errors = String::from_utf8_lossy(&ended.output.stderr);
                let told = errors.contains("takeup: ") || errors.contains("warning");
                let judged = match code {
                    Some(code @ 0..=2) if !errors.contains("panicked") => {
                        codes[code as usize] += 1;
                        if code == 0 || told { check(&ended) } else { Err("says nothing".into()) }
                    }
                    _ => Err("breaks down".into()),
                };
                if let Err(why) = judged {
                    wrong.push(format!("  {failure:?}: {why}; exit {code:?}: {errors}"));
                }
                if at >= total.max(1) {
                    break;
                }
                at += stride;
            }
        }
    }
    eprintln!(
        "{name} on {}: {runs} runs, {failed} met a failure; {} done, {} failed, {} done with \
         warnings",
        system.name(),
        codes[0],
        codes[1],
        codes[2]
    );
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

fn backup_to(system: &FileSystem, engine: &str) {
    let fixture = Fixture::new();
    let disk = system.disk(|_| {});
    let command = |place: &Path| {
        let mut command = takeup(&["backup", "--to"], engine);
        command.arg(place.join("set.tar")).arg(fixture.tree());
        command
    };
    let check = |ended: &Ended| {
        let code = ended.output.status.code();
        let there = look_at(system, &ended.image, |place| fs::read(place.join("set.tar")).ok());
        match (code, there) {
            (Some(0), Ok(Some(archive))) if archive == fixture.archive => Ok(()),
            (Some(0), _) => Err("it was done, and the archive is not on the disk".into()),
            (_, Ok(Some(archive))) if archive != fixture.archive => {
                Err(format!("{} bytes under the final name", archive.len()))
            }
            _ => Ok(()),
        }
    };
    let requests = [Request::Write, Request::Flush];
    campaign(&format!("backup, {engine}"), system, &disk, &requests, &command, &check);
}

fn restore_to(system: &FileSystem) {
    let fixture = Fixture::new();
    let disk = system.disk(|place| fs::create_dir(place.join("into")).unwrap());
    let command = |place: &Path| {
        let mut command = takeup(&["restore", "--into"], "pread");
        command.arg(place.join("into")).arg(fixture.set());
        command
    };
    let check = |ended: &Ended| {
        if ended.output.status.code() != Some(0) {
            return Ok(());
        }
        match look_at(system, &ended.image, |place| fixture.is_restored(place)) {
            Ok(true) => Ok(()),
            _ => Err("it was done, and the files are not on the disk".into()),
        }
    };
    let requests = [Request::Write, Request::Flush];
    campaign("restore", system, &disk, &requests, &command, &check);
}

/// The archive is on the failing disk; the files are restored elsewhere.
fn restore_from(system: &FileSystem, engine: &str) {
    let fixture = Fixture::new();
    let disk = system.disk(|place| {
        fs::copy(fixture.set(), place.join("set.tar")).unwrap();
    });
    let into = tempfile::tempdir().unwrap();
    let command = |place: &Path| {
        let _ = fs::remove_dir_all(into.path().join("into"));
        let mut command = takeup(&["restore", "--into"], engine);
        command.arg(into.path().join("into")).arg(place.join("set.tar"));
        command
    };
    let check = |ended: &Ended| match ended.output.status.code() {
        Some(0) if !fixture.is_restored(into.path()) => {
            Err("done, and something is missing".into())
        }
        _ => Ok(()),
    };
    let name = format!("restore from it, {engine}");
    campaign(&name, system, &disk, &[Request::Read], &command, &check);
}

/// The tree is on the failing disk; the archive is elsewhere.
fn backup_from(system: &FileSystem, engine: &str) {
    let fixture = Fixture::new();
    let disk = system.disk(|place| {
        let mut copy = Command::new("cp");
        assert!(copy.arg("-a").arg(fixture.tree()).arg(place).status().unwrap().success());
    });
    let target = tempfile::tempdir().unwrap();
    let archive = target.path().join("set.tar");
    let command = |place: &Path| {
        let _ = fs::remove_file(&archive);
        let mut command = takeup(&["backup", "--to"], engine);
        command.arg(&archive).arg(place.join("tree"));
        command
    };
    let check = |ended: &Ended| {
        let errors = String::from_utf8_lossy(&ended.output.stderr);
        match ended.output.status.code() {
            Some(1) if archive.exists() => return Err("failed, with an archive".into()),
            Some(1) => return Ok(()),
            _ => {}
        }
        for (name, content) in &fixture.contents {
            let wildcard = format!("*tree/{name}");
            let mut tar = Command::new("tar");
            tar.args(["-xOf"]).arg(&archive).args(["--wildcards", &wildcard]);
            let is_whole = tar.output().unwrap().stdout == *content;
            let last = name.rsplit('/').next().unwrap_or(name);
            let told =
                errors.contains(last) || errors.contains("folder") || errors.contains("tree:");
            if !is_whole && !told {
                return Err(format!("{name} is missing without a word"));
            }
        }
        Ok(())
    };
    let name = format!("backup from it, {engine}");
    campaign(&name, system, &disk, &[Request::Read], &command, &check);
}

#[test]
fn a_backup_to_it() {
    testkit::require!(Fuse, LoopDevices, Ext4, Xfs, IoUring);
    for engine in ["io_uring", "pread"] {
        backup_to(&EXT4, engine);
        if is_long() {
            backup_to(&XFS, engine);
        }
    }
}

#[test]
fn a_restore_to_it() {
    testkit::require!(Fuse, LoopDevices, Ext4, Xfs);
    restore_to(&EXT4);
    if is_long() {
        restore_to(&XFS);
    }
}

#[test]
fn a_restore_from_it() {
    testkit::require!(Fuse, LoopDevices, Ext4, Xfs, IoUring);
    for engine in ["io_uring", "pread"] {
        restore_from(&EXT4, engine);
    }
}

#[test]
fn a_backup_from_it() {
    testkit::require!(Fuse, LoopDevices, Ext4, Xfs, IoUring);
    for engine in ["io_uring", "pread"] {
        backup_from(&EXT4, engine);
    }
}
