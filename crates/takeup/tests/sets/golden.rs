//! A chain of every format version, kept for ever: each day comes back as it was.
//!
//! Made with `golden/make.sh`; a new version adds a folder, and replaces none.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{gnu_tar, text};

const VERSIONS: [&str; 1] = ["3"];

/// Names, kinds, permissions, times, targets and sums of a tree, as `make.sh` describes it.
fn described(folder: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sets/golden/describe.sh");
    let output = Command::new("bash").arg(script).arg(folder).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_day_of_old_chains_comes_back() {
    for version in VERSIONS {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sets/golden").join(version);
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::create_dir(here.join("sets")).unwrap();
        let mut archives = Vec::new();
        for entry in fs::read_dir(golden.join("sets")).unwrap() {
            let entry = entry.unwrap();
            let copy = here.join("sets").join(entry.file_name());
            fs::copy(entry.path(), &copy).unwrap();
            archives.push(copy);
        }
        archives.sort();
        for day in 1..=3 {
            let expected = fs::read_to_string(golden.join(format!("day{day}.txt"))).unwrap();
            let (set, into) = (day.to_string(), format!("day{day}"));
            text(here, &["restore", "sets/", "--set", &set, "--into", &into], 0);
            let what = format!("version {version}, day {day}");
            assert_eq!(described(&here.join(into)), expected, "{what}");
            let into = here.join(format!("tar{day}"));
            gnu_tar(&archives[..day], &into);
            assert_eq!(described(&into), expected, "{what}, GNU tar");
        }
        for archive in &archives {
            text(here, &["verify", archive.to_str().unwrap()], 0);
        }
    }
}
