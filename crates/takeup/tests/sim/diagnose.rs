//! `takeup diagnose` on a disk and a drive whose truth is known.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::samples::noise;

use crate::disk::Disk;
use crate::drive::{Drive, run};

fn diagnosed(arguments: &[&str]) -> Value {
    let output = run(&[&["diagnose", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn read_ahead_kib(device: &Path) -> String {
    let name = device.file_name().unwrap().to_str().unwrap();
    fs::read_to_string(format!("/sys/block/{name}/queue/read_ahead_kb")).unwrap()
}

/// A disk that answers after 5.5 ms needs 1.1 MB under way for its 200 MB/s; 128 KiB give 45 MB/s.
#[test]
fn a_short_read_ahead_is_found_and_a_larger_one_tried() {
    testkit::require!(Fuse, LoopDevices, Root);
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let options = ["--size", "384M", "--loop", "--service-time", "5.5ms", "--parallel", "64"];
    let disk = Disk::on(folder, &backing, &[&options[..], &["--bandwidth", "200MB"]].concat());
    let device = disk.told("loop");
    let before = read_ahead_kib(&device);
    // In pieces that are larger than the read-ahead dd would not need it.
    let line = format!("dd if={} of=/dev/null bs=64k", device.display());
    let answer = diagnosed(&["--try", "--budget", "8s", &line]);
    assert_eq!(answer["findings"][0]["rule"], "diagnose.read-ahead", "{answer:#}");
    let step = &answer["steps"][0];
    let command = step["command"].as_str().unwrap();
    assert!(command.starts_with("takeup tune set /dev/loop"), "{command}");
    assert!(step["gain"]["low"].as_f64().unwrap() > 1.5, "{answer:#}");
    let tried = &answer["tried"];
    assert_eq!(tried["not_tried"], Value::Null, "{tried:#}");
    assert!(tried["after"]["low"].as_f64() > tried["before"]["high"].as_f64(), "{tried:#}");
    assert_eq!(read_ahead_kib(&device), before, "the value from before is in force again");
    assert_eq!(disk.status()["writes"], 0, "nothing was written to the disk");
}

/// Each write takes 2 ms beside its bytes: 10 KiB each give 5 MB/s, 64 KiB more than 25.
#[test]
fn small_writes_to_a_drive_are_found_and_nothing_is_written() {
    testkit::require!(Fuse);
    let drive = Drive::with(&["--compression", "off", "--set", "command_overhead_ns=2ms"]);
    let source = tempfile::tempdir().unwrap();
    for file in 0..4 {
        fs::write(source.path().join(format!("{file}")), noise(file, 8 << 20)).unwrap();
    }
    let to = drive.tape();
    let line = format!("tar -cf {} {}", to.display(), source.path().display());
    let answer = diagnosed(&["--budget", "4s", &line]);
    assert_eq!(answer["findings"][0]["rule"], "diagnose.blocks", "{answer:#}");
    let command = answer["steps"][0]["command"].as_str().unwrap();
    assert!(command.starts_with("tar -b "), "{command}");
    assert_eq!(drive.status()["position"], 0, "nothing was written to the tape");
    let kinds: Vec<&str> = answer["stations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|station| station["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["large-files", "target"]);
}
