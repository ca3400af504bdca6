//! Other programs, and Takeup, on the virtual drive.

use std::fs;
use std::io::Read;
use std::process::Command;

use testkit::samples::noise;

use crate::drive::{Drive, takeup};

fn number(status: &str, name: &str) -> i64 {
    let rest = &status[status.find(name).unwrap() + name.len()..];
    let digits = rest.split(|sign: char| sign != '-' && !sign.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

#[test]
fn mt_finds_its_way() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    for file in 0..3 {
        let data = vec![file; 10_000];
        drive.mt(&["eod"]);
        fs::write(drive.folder().join("data"), &data).unwrap();
        let mut target = std::ffi::OsString::from("of=");
        target.push(drive.tape());
        let mut source = std::ffi::OsString::from("if=");
        source.push(drive.folder().join("data"));
        let mut dd = Command::new("dd");
        dd.args(["bs=4k", "status=none"]).arg(source).arg(target);
        assert!(dd.status().unwrap().success());
    }
    let place = |drive: &Drive| {
        let status = drive.mt(&["status"]);
        (number(&status, "File number="), number(&status, "block number="))
    };
    assert_eq!(place(&drive), (3, 0));
    drive.mt(&["rewind"]);
    drive.mt(&["fsf", "2"]);
    assert_eq!(place(&drive), (2, 0));
    drive.mt(&["fsr", "2"]);
    assert_eq!(place(&drive), (2, 2));
    drive.mt(&["bsr", "1"]);
    assert_eq!(place(&drive), (2, 1));
    assert_eq!(drive.mt(&["tell"]), "At block 9.\n");
    drive.mt(&["bsf", "1"]);
    assert_eq!(drive.mt(&["tell"]), "At block 7.\n");
    drive.mt(&["seek", "4"]);
    assert_eq!(drive.mt(&["tell"]), "At block 4.\n");
    drive.mt(&["setblk", "2048"]);
    assert!(drive.mt(&["status"]).contains("Tape block size 2048 bytes"));
    drive.mt(&["setblk", "0"]);
    drive.mt(&["compression", "0"]);
    assert_eq!(drive.status()["compression"], false);
    // After a seek the driver does not know the file number; a rewind restores it.
    drive.mt(&["rewind"]);
    drive.mt(&["eod"]);
    assert!(drive.mt(&["status"]).contains("EOD"));
    drive.mt(&["weof", "2"]);
    assert_eq!(place(&drive), (5, 0));
    drive.mt(&["eject"]);
    assert!(drive.mt(&["status"]).contains("DR_OPEN"));
    drive.mt(&["load"]);
    assert!(drive.mt(&["status"]).contains("BOT ONLINE"));
}

/// No file can be created in a drive's folder, and a missing name is reported as missing.
#[test]
fn a_file_that_is_not_there_is_not_there() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let beside = |name: &str| drive.tape().with_file_name(name);
    let missing = Some(rustix::io::Errno::NOENT.raw_os_error());
    let refused = Some(rustix::io::Errno::PERM.raw_os_error());
    assert_eq!(fs::write(beside("nst9"), "x").unwrap_err().raw_os_error(), missing);
    assert_eq!(fs::create_dir(beside("folder")).unwrap_err().raw_os_error(), refused);
    assert_eq!(fs::remove_file(drive.tape()).unwrap_err().raw_os_error(), refused);
    let renamed = fs::rename(drive.tape(), beside("nst8"));
    assert_eq!(renamed.unwrap_err().raw_os_error(), refused);
    let output = takeup().args(["bench", "tape"]).arg(beside("nst9")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nst9: no such tape drive"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn tar_in_blocks_of_many_sizes() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let tree = drive.folder().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("noise"), noise(0, 3_000_000)).unwrap();
    fs::write(tree.join("note"), "a note\n").unwrap();
    for factor in ["1", "20", "128", "512", "2048"] {
        drive.mt(&["rewind"]);
        let tar = |arguments: &[&str]| {
            let output = Command::new("tar")
                .args(["-b", factor, "-f"])
                .arg(drive.tape())
                .args(arguments)
                .current_dir(drive.folder())
                .output()
                .unwrap();
            assert!(output.status.success(), "-b {factor} {arguments:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        tar(&["-c", "tree"]);
        drive.mt(&["rewind"]);
        assert_eq!(tar(&["-t"]).lines().count(), 3);
        drive.mt(&["rewind"]);
        let out = drive.folder().join(factor);
        fs::create_dir(&out).unwrap();
        tar(&["-x", "-C", out.to_str().unwrap()]);
        assert!(fs::read(out.join("tree/noise")).unwrap() == noise(0, 3_000_000));
    }
}

#[test]
fn blocks_of_8_mib_come_in_one_piece() {
    testkit::require!(Fuse, LargeFuseRequests);
    let drive = Drive::new();
    let data = noise(0, 16 << 20);
    drive.dd_in(&data, "bs=8M");
    assert_eq!(drive.status()["position"], 3, "two blocks and a filemark");
    assert!(drive.dd_out("bs=8M") == data);
}

/// The size of FUSE requests was fixed at the mount; it is larger than the current setting.
#[test]
fn takeup_writes_blocks_of_8_mib() {
    testkit::require!(Fuse, LargeFuseRequests);
    let drive = Drive::new();
    fs::write(drive.folder().join("data"), noise(0, 10 << 20)).unwrap();
    let output = takeup()
        .current_dir(drive.folder())
        .args(["backup", "data", "--block-size", "8M", "--to"])
        .arg(drive.tape())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    drive.mt(&["rewind"]);
    let block = fs::File::open(drive.tape()).unwrap().read(&mut vec![0; 8 << 20]).unwrap();
    assert_eq!(block, 8 << 20);
    let probe = takeup().args(["probe"]).arg(drive.tape()).output().unwrap();
    let text = String::from_utf8(probe.stdout).unwrap();
    assert!(text.contains("FUSE takes       8 MiB at most"), "{text}");
    assert!(text.contains("8 MiB, the drive's limit"), "{text}");
}

#[test]
fn mbuffer_writes_blocks() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let data = noise(0, 5 << 20);
    let source = drive.folder().join("data");
    fs::write(&source, &data).unwrap();
    let status = Command::new("mbuffer")
        .args(["-q", "-s", "256k", "-m", "4M", "-f", "-i"])
        .arg(&source)
        .arg("-o")
        .arg(drive.tape())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(drive.mt(&["tell"]), "At block 21.\n");
    assert!(drive.dd_out("bs=256k") == data);
}

#[test]
fn st0_rewinds() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    fs::write(drive.path().join("st0"), "one block").unwrap();
    assert_eq!(drive.mt(&["tell"]), "At block 0.\n");
    assert_eq!(fs::read(drive.path().join("st0")).unwrap(), b"one block");
    assert_eq!(drive.mt(&["tell"]), "At block 0.\n");
}

#[test]
fn takeup_writes_what_it_and_tar_read() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let tree = drive.folder().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("noise"), noise(0, 3_000_000)).unwrap();
    let output = takeup()
        .current_dir(drive.folder())
        .args(["backup", "tree", "--to"])
        .arg(drive.tape())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    for arguments in [&["list"][..], &["verify"], &["restore", "--into", "back"]] {
        let output = takeup()
            .current_dir(drive.folder())
            .args(arguments)
            .arg(drive.tape())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    assert!(fs::read(drive.folder().join("back/tree/noise")).unwrap() == noise(0, 3_000_000));
    drive.mt(&["rewind"]);
    let out = drive.folder().join("out");
    fs::create_dir(&out).unwrap();
    let tar = Command::new("tar")
        .args(["-b", "2048", "-x", "-C"])
        .arg(&out)
        .arg("-f")
        .arg(drive.tape())
        .output()
        .unwrap();
    assert!(tar.status.success(), "{tar:?}");
    assert!(fs::read(out.join("tree/noise")).unwrap() == noise(0, 3_000_000));
}
