//! `takeup sim tape` and the programs that use it: mt, tar, dd, mbuffer, takeup itself. Also, what
//! happens when it is killed, unmounted while in use, or out of space for its medium.
//!
//! The scenario table in `crates/sim` tests the semantics of the tape; these tests are about the
//! program and the folder.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod bench;
mod btape;
mod calibrated_disk;
mod diagnose;
mod disk;
mod disk_heads;
mod drive;
mod early;
mod failures;
mod findings;
mod forecast;
mod limits;
#[path = "../command_line/made_record.rs"]
mod made_record;
mod media;
mod operator;
mod programs;
mod sets;
mod typos;

use serde_json::Value;

use drive::{Drive, run, takeup};

#[test]
fn status_tells_what_passed() {
    testkit::require!(Fuse);
    let drive = Drive::with(&["--speed-up", "1000", "--compression", "off"]);
    drive.dd_in(&[7; 4 << 20], "bs=1M");
    let status = drive.status();
    assert_eq!(status["drive"], "LTO-7");
    assert_eq!(status["position"], 5, "four blocks and the filemark of the close");
    assert_eq!(status["file_number"], 1);
    assert_eq!(status["trouble"], Value::Null);
    let time = &status["time"];
    assert_eq!(time["host_bytes"], 4 << 20);
    assert_eq!(time["native_bytes"], 4 << 20, "the close has waited for the medium");
    assert_eq!(time["synchronisations"], 1);
    assert!(time["streaming_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(time["motion"], "still");
}

#[test]
fn status_tells_what_the_drive_is_taken_to_be() {
    testkit::require!(Fuse);
    let set = ["--set", "back_hitch_ns=3.5s", "--set", "speeds_bytes_per_second=90MB,200MB"];
    let drive = Drive::with(&set);
    let time = &drive.status()["time"];
    assert_eq!(time["lowest_bytes_per_second"], 90_000_000);
    let parameters = time["parameters"].as_array().unwrap();
    let of = |name: &str| parameters.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(of("back_hitch_ns")["value"], 3_500_000_000_u64);
    assert_eq!(of("back_hitch_ns")["origin"], "given");
    assert_eq!(of("synchronise_ns")["origin"], "assumed");
    assert_eq!(of("load_ns")["origin"], "maker");
}

#[test]
fn compressible_data_takes_less_of_the_medium() {
    testkit::require!(Fuse);
    let drive = Drive::with(&["--speed-up", "1000"]);
    drive.dd_in(&vec![0; 4 << 20], "bs=1M");
    let time = &drive.status()["time"];
    assert_eq!(time["host_bytes"], 4 << 20);
    assert!(time["native_bytes"].as_u64().unwrap() < 1 << 20, "{time}");
    let drive = Drive::with(&["--speed-up", "1000", "--compression", "2"]);
    drive.dd_in(&vec![0; 4 << 20], "bs=1M");
    assert_eq!(drive.status()["time"]["native_bytes"], 2 << 20);
}

#[test]
fn another_medium() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    drive.dd_in(b"first", "bs=64k");
    let (first, second) = (drive.medium(), drive.folder().join("second"));
    let loading = |medium: &std::path::Path, how: &[&str]| {
        let mut command = takeup();
        command.args(["sim", "load"]).arg(drive.path()).arg(medium).args(how);
        command.output().unwrap()
    };
    let load = |medium: &std::path::Path| {
        let output = loading(medium, &[]);
        assert!(output.status.success(), "{output:?}");
    };
    // A missing name changes nothing, and the loaded cartridge stays.
    let refused = |medium: &std::path::Path, how: &[&str]| {
        let output = loading(medium, how);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(drive.status()["medium"], first.to_str().unwrap());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&second, &[]);
    let folder = drive.folder().display();
    let expected = format!(
        "takeup: no cartridge {folder}/second; {folder} has medium\n\
         hint: add --new to create it\n"
    );
    assert_eq!(text, expected);
    assert!(!second.exists());
    assert!(refused(&first, &["--new"]).contains("exists already\nhint: omit --new"));
    assert!(loading(&second, &["--new"]).status.success());
    assert_eq!(drive.status()["medium"], second.to_str().unwrap());
    drive.dd_in(b"second", "bs=64k");
    load(&first);
    assert_eq!(drive.dd_out("bs=64k"), b"first");
    load(&second);
    assert_eq!(drive.dd_out("bs=64k"), b"second");
    let output = takeup().args(["sim", "eject"]).arg(drive.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(drive.status()["loaded"], false);
    let error = std::fs::File::open(drive.tape()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOMEDIUM));
}

#[test]
fn what_is_no_medium_is_left_alone() {
    testkit::require!(Fuse);
    let drive = Drive::new();
    let file = drive.folder().join("letter");
    std::fs::write(&file, "dear reader").unwrap();
    let output = takeup().args(["sim", "load"]).arg(drive.path()).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let trouble = drive.status()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.ends_with("letter is not a medium file"), "{trouble}");
    assert_eq!(std::fs::read(&file).unwrap(), b"dear reader");
}

#[test]
fn misuse_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let said = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&["sim", "tape", path, "--drive", "lto99"]);
    assert!(text.contains("known are lto1 lto2"), "{text}");
    let text = said(&["sim", "status", path]);
    assert!(text.starts_with("takeup: no virtual drive or disk here"), "{text}");
    assert!(text.contains("hint: start one with `takeup sim tape"), "{text}");
    let file = folder.path().join("letter");
    std::fs::write(&file, "dear reader").unwrap();
    let text = said(&["sim", "tape", path, "--medium", file.to_str().unwrap()]);
    assert!(text.contains("is not a medium file"), "{text}");
}

/// The virtual drive has the measured parameters, with their origin, and those of its generation
/// for the rest; settings override both.
#[test]
fn a_virtual_drive_is_the_one_of_an_experiment() {
    testkit::require!(Fuse);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("drive")).unwrap();
    let runs = folder.path().join("runs.ndjson");
    std::fs::write(&runs, made_record::text(&made_record::made(3))).unwrap();
    let medium = folder.path().join("medium");
    let options = ["--from", runs.to_str().unwrap(), "--set", "synchronise_ns=1"];
    let drive = Drive::on(folder, &medium, &options);
    let status = drive.status();
    assert_eq!(status["drive"], "LTO-4");
    let row = |name: &str| {
        let rows = status["time"]["parameters"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["value"].as_f64().unwrap_or_default(), row["origin"].as_str().unwrap())
    };
    let (buffer, origin) = row("buffer_bytes");
    assert!((80e6..100e6).contains(&buffer) && origin == "fitted", "{buffer} {origin}");
    assert_eq!(row("speeds_bytes_per_second").1, "fitted");
    assert_eq!(row("synchronise_ns"), (1.0, "given"));
    assert_eq!(row("back_hitch_ns").1, "assumed");
    let highest = status["time"]["highest_bytes_per_second"].as_f64().unwrap();
    assert!((highest / 110e6 - 1.0).abs() < 0.02, "{highest}");
}
