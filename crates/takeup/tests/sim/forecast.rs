//! What a restore or a verification says that it will need, beside what it then does; and what a
//! full ring meant for the drive.

use std::fs;

use serde_json::Value;
use testkit::samples::noise;

use crate::drive::{Drive, takeup};

/// A drive that runs fast, with three sets, and what is known of them.
struct Site {
    drive: Drive,
    state: tempfile::TempDir,
}

impl Site {
    fn new(options: &[&str]) -> Site {
        let usual = ["--speed-up", "1000", "--drive", "lto6", "--compression", "off"];
        let drive = Drive::with(&[&usual, options].concat());
        let site = Site { drive, state: tempfile::tempdir().unwrap() };
        for set in ["home", "mail", "www"] {
            let folder = site.drive.folder().join(set);
            fs::create_dir(&folder).unwrap();
            for file in 0..4 {
                fs::write(folder.join(file.to_string()), noise(file, 2_000_000)).unwrap();
            }
            site.run(&["backup", set, "--to", "drive/nst0", "-q"], 0);
        }
        site
    }

    fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = takeup()
            .current_dir(self.drive.folder())
            .env("XDG_STATE_HOME", self.state.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat(), 0)).unwrap()
    }
}

#[test]
fn a_dry_run_says_where_the_tape_goes_and_the_run_goes_there() {
    testkit::require!(Fuse);
    let site = Site::new(&[]);
    let from_set_1 = ["home/0", "home/3", "--set", "1"];
    let asked = [&["restore", "drive/nst0", "--into", "out"][..], &from_set_1].concat();
    let plan = site.json(&[&asked[..], &["--dry-run"]].concat());
    assert!(!site.drive.folder().join("out").exists(), "a dry run restores nothing");
    assert_eq!(plan["media"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!((&plan["job"], &plan["stops"]), (&Value::Null, &Value::Null), "{plan:#}");
    let bytes = plan["media"][0]["bytes"].as_u64().unwrap();
    assert!((4_000_000..9_000_000).contains(&bytes), "{plan:#}");
    assert!(plan["seconds"].as_f64() > plan["winding_seconds"].as_f64(), "{plan:#}");
    let done = site.json(&asked);
    assert_eq!(done["tape"]["set"], plan["set"], "{done:#}");
    assert_eq!(done["tape"]["locates"], plan["locates"], "{done:#}{plan:#}");
    // From where it stands now the tape is read on, without a way.
    let plan = site.json(&["verify", "drive/nst0", "--set", "2", "--dry-run"]);
    let done = site.json(&["verify", "drive/nst0", "--set", "2"]);
    assert_eq!(plan["set"], done["tape"]["set"]);
    assert_eq!(plan["locates"], done["tape"]["locates"], "{done:#}{plan:#}");
    let said = site.run(&["verify", "drive/nst0", "--dry-run"], 0);
    assert!(said.contains("the same command without --dry-run reads it"), "{said}");
    let said = site.run(&[&asked[..], &["--dry-run", "nothing"]].concat(), 0);
    assert!(said.contains("1 medium, "), "{said}");
    let said = site.run(&["restore", "drive/nst0", "--into", "out", "-n", "none"], 1);
    assert!(said.contains("none of the requested paths is in the set"), "{said}");
    let said = site.run(&["restore", "home", "--into", "out", "--dry-run"], 1);
    assert!(said.contains("--dry-run: home is no tape drive"), "{said}");
}

#[test]
fn a_slow_target_stops_a_drive_with_a_small_buffer_and_a_fast_one_does_not() {
    testkit::require!(Fuse);
    let site = Site::new(&["--set", "buffer_bytes=2M"]);
    let stops = |rate: &str| {
        let options = ["--dry-run", "--ring", "4M", "--target-rate", rate, "--set", "1"];
        site.json(&[&["restore", "drive/nst0", "--into", "out"][..], &options].concat())["stops"]
            .as_u64()
            .unwrap()
    };
    // The speeds of LTO-6 are 40 to 160 MB/s, and this drive's time runs 1000 times as fast.
    assert_eq!(stops("161G"), 0);
    assert!(stops("4G") > 0);
    // What is told is held against the same drive.
    let options = ["--dry-run", "--ring", "4M", "--target-rate", "4G", "--set", "1"];
    let plan = site.json(&[&["restore", "drive/nst0", "--into", "out"][..], &options].concat());
    let from = plan["streams_from_bytes_per_second"].as_u64().unwrap();
    assert_eq!(stops(&from.to_string()), 0, "{plan:#}");
}

#[test]
fn a_full_ring_is_explained() {
    testkit::require!(Fuse);
    let site = Site::new(&["--set", "buffer_bytes=2M"]);
    let restore = ["restore", "drive/nst0", "--into", "out", "--set", "1", "--ring", "4M"];
    let done = site.json(&restore);
    let tape = &done["tape"];
    let waited = &tape["waited"];
    assert_eq!(waited.is_null(), tape["ring_was_full"] == 0, "{tape:#}");
    if let Some(from) = waited["streams_from_bytes_per_second"].as_u64() {
        // Its speeds are 40 to 160 MB/s, its time runs 1000 times as fast.
        assert!((40_000_000_000..=160_000_000_000).contains(&from), "{tape:#}");
        assert!(waited["taken_bytes_per_second"].as_f64() > Some(0.0), "{tape:#}");
    }
}
