//! Older media in a newer drive: which are written, which are only read, which are refused.

use crate::drive::{Drive, run};

fn dd_fails(drive: &Drive) -> String {
    let mut target = std::ffi::OsString::from("of=");
    target.push(drive.tape());
    let output = std::process::Command::new("dd")
        .args(["if=/dev/zero", "bs=64k", "count=1"])
        .arg(target)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_older_medium_is_written_at_its_own_speed() {
    testkit::require!(Fuse);
    let options = ["--medium-generation", "lto6", "--speed-up", "1000", "--compression", "off"];
    let drive = Drive::with(&[&["--drive", "lto7"], &options[..]].concat());
    drive.dd_in(b"written by a newer drive", "bs=64k");
    let time = &drive.status()["time"];
    assert_eq!(time["highest_bytes_per_second"], 160_000_000);
    assert_eq!(time["lowest_bytes_per_second"], 40_000_000);
    assert_eq!(drive.status()["drive"], "LTO-7");
    // Density 5Ah is LTO-6.
    assert!(drive.mt(&["status"]).contains("Density code 0x5a"), "{}", drive.mt(&["status"]));
    // The generation comes from the file, without an option.
    let medium = drive.medium();
    let folder = drive.into_folder();
    let drive = Drive::on(folder, &medium, &["--drive", "lto7", "--time", "none"]);
    assert!(drive.mt(&["status"]).contains("Density code 0x5a"));
    assert_eq!(drive.dd_out("bs=64k"), b"written by a newer drive");
    // The next cartridge must have the same generation.
    let other = drive.folder().join("other");
    make(&other, "lto7");
    let output = run(&["sim", "load", drive.path().to_str().unwrap(), other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let trouble = drive.status()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.ends_with("is an LTO-7 medium, but the drive was started with LTO-6 media"));
}

/// A medium file of that generation.
fn make(path: &std::path::Path, generation: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("drive")).unwrap();
    let drive = Drive::on(folder, path, &["--drive", generation, "--time", "none"]);
    drive.dd_in(b"old data", "bs=64k");
}

#[test]
fn what_is_two_generations_older_is_read_and_not_written() {
    testkit::require!(Fuse);
    let folder = tempfile::tempdir().unwrap();
    let medium = folder.path().join("old");
    make(&medium, "lto5");
    std::fs::create_dir(folder.path().join("drive")).unwrap();
    let drive = Drive::on(folder, &medium, &["--drive", "lto7", "--time", "none"]);
    assert_eq!(drive.dd_out("bs=64k"), b"old data");
    drive.mt(&["rewind"]);
    let said = dd_fails(&drive);
    assert!(said.contains("Read-only file system"), "{said}");
}

#[test]
fn what_a_drive_does_not_take_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let medium = folder.path().join("medium");
    let said = |drive: &str, generation: &str| {
        let medium = medium.to_str().unwrap();
        let arguments = ["--medium", medium, "--medium-generation", generation];
        let output = run(&[&["sim", "tape", path, "--drive", drive], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said("lto8", "lto6");
    let expected = "an LTO-8 drive does not take LTO-6 media: it writes LTO-7, LTO-7 Type M, LTO-8";
    assert!(text.contains(expected), "{text}");
    let text = said("lto7", "m8");
    assert!(text.contains("an LTO-7 drive does not take LTO-7 Type M media"), "{text}");
    let text = said("lto7", "lto5");
    assert!(text.contains("an LTO-7 drive only reads LTO-5 media, and a new medium"), "{text}");
    assert!(!medium.exists());
}

#[test]
fn a_medium_that_is_another_one_is_told() {
    testkit::require!(Fuse);
    let folder = tempfile::tempdir().unwrap();
    let medium = folder.path().join("medium");
    make(&medium, "lto6");
    let text = medium.to_str().unwrap();
    let mountpoint = folder.path().to_str().unwrap();
    let arguments = ["sim", "tape", mountpoint, "--medium", text, "--medium-generation", "lto7"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("medium is an LTO-6 medium, not LTO-7"), "{said}");
    let output = run(&["sim", "tape", mountpoint, "--medium", text, "--drive", "lto9"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("an LTO-9 drive does not take LTO-6 media"), "{said}");
    // The size of a medium does not change either, and was passed over in silence.
    let arguments = ["sim", "tape", mountpoint, "--medium", text, "--drive", "lto6"];
    let output = run(&[&arguments[..], &["--capacity", "20GB"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not of 20.0 GB") && said.contains("leave out --capacity"), "{said}");
}
