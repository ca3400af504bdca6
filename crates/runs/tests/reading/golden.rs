//! Archives of every format version, kept for ever: Takeup and other tools read them, and the
//! restored files match a list that was made once.
//!
//! Version 1 has no mark at its front and no hash over the index; version 2 has both. They were
//! made with `golden/tree.sh` and `golden/archives.sh`; a new version adds a folder, and replaces
//! none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use flow::cancel::Cancel;
use runs::list::{HeaderCheck, ListOptions};
use runs::origin::Origin;
use runs::restore::RestoreOptions;
use runs::verify::{VerifyOptions, verify};
use sim::tape::{Cartridge, CartridgeSettings};
use tapeset::TapeOrigin;

use crate::from_tape::harness::TapeHarness;
use crate::harness::{Harness, Kept, list_with, shell};

const VERSIONS: [&str; 2] = ["1", "2"];
const ARCHIVES: [&str; 3] = ["none.tar", "zstd.tar.zst", "gzip.tar.gz"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The describing script's output for a folder.
fn described(folder: &Path, what: &str) -> String {
    let script = golden("describe.sh");
    let output = Command::new("bash").arg(script).arg(folder).arg(what).env("LC_ALL", "C").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Times in whole seconds, and none of links: Python keeps no more.
fn as_python_has_it(text: &str) -> String {
    const TIME: usize = 6;
    let line = |line: &str| {
        let mut fields: Vec<&str> = line.split('|').collect();
        if let Some(time) = fields.get(TIME) {
            let seconds = time.split('.').next().unwrap_or_default();
            fields[TIME] = if fields[1] == "l" { "-" } else { seconds };
        }
        fields.join("|") + "\n"
    };
    text.lines().map(line).collect()
}

#[track_caller]
fn assert_is_golden(folder: &Path, case: &str) {
    for what in ["objects", "attributes"] {
        let expected = fs::read_to_string(golden(&format!("{what}.txt"))).unwrap();
        assert_eq!(described(folder, what), expected, "{case}, {what}");
    }
}

#[test]
fn read_by_us() {
    testkit::require!(Root, Attributes, AccessRules);
    for version in VERSIONS {
        for archive in ARCHIVES {
            let (harness, case) = (Harness::new(), format!("version {version}, {archive}"));
            let path = golden(version).join(archive);
            let (_, kept) = harness.restore(&path, "out");
            assert_eq!(kept.warnings(), Vec::<String>::new(), "{case}");
            assert_is_golden(&harness.path("out"), &case);
            let (kept, options) = (
                Kept::default(),
                VerifyOptions { from: path.clone().into(), ..Default::default() },
            );
            let report = verify(options, &kept, &Cancel::new()).unwrap();
            assert!(report.is_sound() && kept.warnings().is_empty(), "{case}: {report:?}");
            assert_eq!((report.checked.content_hashes, report.checked.blocks), (10, Some(1)));
            for check in [HeaderCheck::Sample, HeaderCheck::All] {
                let options =
                    ListOptions { from: path.clone().into(), check, ..Default::default() };
                let (paths, _, kept) = list_with(options);
                assert_eq!(kept.warnings(), Vec::<String>::new(), "{case}");
                assert_eq!(paths.len(), 18, "{case}");
            }
        }
    }
}

#[test]
fn sets_on_tape_are_read_by_us() {
    testkit::require!(Root, Attributes, AccessRules);
    for version in VERSIONS {
        let harness = TapeHarness::new(1, 1 << 20);
        let medium = harness.plain.path("medium");
        fs::copy(golden(version).join("tape.medium"), &medium).unwrap();
        let cartridge = Cartridge::in_file(&medium, CartridgeSettings::default()).unwrap();
        harness.library.drive().insert(cartridge);
        let (kept, origin) = (Kept::default(), harness.origin());
        let origin = TapeOrigin { drive: Arc::new(harness.library.drive().clone()), ..origin };
        let options = RestoreOptions { from: Origin::Tape(origin), ..Default::default() };
        harness.plain.try_restore(options, "out", &kept).unwrap();
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_is_golden(&harness.plain.path("out"), &format!("version {version}, tape"));
        let (report, kept) = harness.verify(None);
        assert!(report.unwrap().is_sound(), "{:?}", kept.warnings());
    }
}

#[test]
fn read_by_others() {
    testkit::require!(Root, Attributes, AccessRules, GnuTar, Bsdtar);
    let python =
        "import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('out')";
    let tools = [
        ("GNU tar", "tar -xp --xattrs --xattrs-include='*' --acls --numeric-owner -C out"),
        ("bsdtar", "bsdtar -xp --xattrs --acls --numeric-owner -C out -f -"),
        ("Python", &format!("python3 -c \"{python}\"")),
    ];
    for version in VERSIONS {
        for archive in ARCHIVES {
            let path = golden(version).join(archive).to_string_lossy().into_owned();
            let open = match archive {
                "none.tar" => "cat",
                "zstd.tar.zst" => "zstd -dqc",
                _ => "gzip -dc",
            };
            for (tool, extract) in tools {
                let (harness, case) =
                    (Harness::new(), format!("version {version}, {archive}, {tool}"));
                // GNU tar and Python stop reading at the end mark, before the index.
                let command =
                    format!("mkdir out && {open} {path} > a.tar && {extract} < a.tar 2> errors");
                shell(&command, harness.folder.path());
                // GNU tar finds times before 1970 worth a word.
                let errors = fs::read_to_string(harness.path("errors")).unwrap();
                let errors = errors.lines().filter(|line| !line.contains("implausibly old"));
                let errors: String = errors.collect();
                assert_eq!(errors, "", "{case}");
                if tool != "Python" {
                    assert_is_golden(&harness.path("out"), &case);
                    continue;
                }
                let expected = fs::read_to_string(golden("objects.txt")).unwrap();
                let found = described(&harness.path("out"), "objects");
                assert_eq!(as_python_has_it(&found), as_python_has_it(&expected), "{case}");
            }
        }
    }
}
