//! Tools of the tests: trees, archives made by real tools, runs, and a monitor that keeps all
//! messages.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use flow::cancel::Cancel;
use flow::monitor::{Counter, Level, Monitor, Notice};
use runs::list::{ListOptions, ListReport, list};
use runs::restore::{RestoreError, RestoreOptions, RestoreReport, Synchronise, restore};
use runs::verify::{VerifyOptions, VerifyReport, verify};
use tempfile::TempDir;
use testkit::samples::noise;

/// Keeps all notices but details.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Notice>>);

impl Monitor for Kept {
    fn count(&self, _: Counter, _: u64) {}
    fn notice(&self, notice: Notice) {
        if notice.level > Level::Detail {
            self.0.lock().unwrap().push(notice);
        }
    }
}

impl Kept {
    /// `object: text` of the warnings, sorted.
    pub fn warnings(&self) -> Vec<String> {
        self.lines(|level| matches!(level, Level::Warning(_)))
    }

    pub fn notes(&self) -> Vec<String> {
        self.lines(|level| matches!(level, Level::Note | Level::Notable))
    }

    fn lines(&self, is_wanted: impl Fn(Level) -> bool) -> Vec<String> {
        let notices = self.0.lock().unwrap();
        let line = |notice: &Notice| {
            format!("{}: {}", String::from_utf8_lossy(&notice.object), notice.text)
        };
        let mut lines: Vec<_> =
            notices.iter().filter(|notice| is_wanted(notice.level)).map(line).collect();
        lines.sort();
        lines
    }

    #[track_caller]
    pub fn expect_warning(&self, text: &str) {
        let warnings = self.warnings();
        assert!(warnings.iter().any(|line| line.contains(text)), "{text:?} in {warnings:#?}");
    }
}

/// A folder for one test, removed at its end.
pub struct Harness {
    pub folder: TempDir,
}

impl Harness {
    pub fn new() -> Harness {
        Harness { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A tree with a bit of everything that needs no privileges.
    pub fn tree(&self, name: &str) -> PathBuf {
        let root = self.path(name);
        for folder in 0..6 {
            let folder_path = root.join(format!("folder{folder}"));
            fs::create_dir_all(&folder_path).unwrap();
            for file in 0..20usize {
                let length = (folder * 20 + file) * 137 % 9000;
                fs::write(folder_path.join(format!("file{file:02}")), noise(file as u64, length))
                    .unwrap();
            }
        }
        fs::write(root.join("empty"), b"").unwrap();
        fs::write(root.join("unit"), noise(3, 512)).unwrap();
        fs::write(root.join("large"), noise(4, 3_000_001)).unwrap();
        fs::write(root.join("script"), b"#!/bin/sh\n").unwrap();
        fs::set_permissions(root.join("script"), fs::Permissions::from_mode(0o4751)).unwrap();
        symlink("folder1/file03", root.join("link")).unwrap();
        symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        fs::hard_link(root.join("folder2/file05"), root.join("folder4/second-name")).unwrap();
        fs::write(root.join("name with \u{e9} and \n newline"), b"x").unwrap();
        let long = "long".repeat(60);
        fs::create_dir_all(root.join(&long).join(&long)).unwrap();
        fs::write(root.join(&long).join(&long).join("deep"), noise(9, 777)).unwrap();
        fs::create_dir(root.join("closed")).unwrap();
        fs::write(root.join("closed/inside"), b"inside").unwrap();
        let sparse = fs::File::create(root.join("sparse")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, &noise(7, 70_000), 1 << 20).unwrap();
        sparse.set_len(4 << 20).unwrap();
        fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
        run("touch", &["-d", "1969-12-31 23:00:00.123456789", "empty"], &root);
        run("touch", &["-d", "2001-02-03 04:05:06.987654321", "folder3"], &root);
        root
    }

    pub fn restore(&self, archive: &Path, into: &str) -> (RestoreReport, Kept) {
        self.restore_with(RestoreOptions { from: archive.into(), ..Default::default() }, into)
    }

    pub fn restore_with(&self, options: RestoreOptions, into: &str) -> (RestoreReport, Kept) {
        let kept = Kept::default();
        let report = self.try_restore(options, into, &kept);
        (report.unwrap(), kept)
    }

    pub fn try_restore(
        &self,
        options: RestoreOptions,
        into: &str,
        kept: &Kept,
    ) -> Result<RestoreReport, RestoreError> {
        // These tests do not test crashes of the machine.
        let synchronise = Synchronise::No;
        let options = RestoreOptions { into: self.path(into), synchronise, ..options };
        restore(options, kept, &Cancel::new())
    }
}

/// Runs a command in a folder.
#[track_caller]
pub fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program} is needed for the tests: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a shell command in a folder.
#[track_caller]
pub fn shell(command: &str, folder: &Path) {
    run("bash", &["-o", "pipefail", "-c", command], folder);
}

pub fn list_paths(archive: &Path) -> (Vec<String>, ListReport, Kept) {
    list_with(ListOptions { from: archive.into(), ..Default::default() })
}

pub fn list_with(options: ListOptions) -> (Vec<String>, ListReport, Kept) {
    let kept = Kept::default();
    let mut paths = Vec::new();
    let report = list(options, &kept, &Cancel::new(), |listed| {
        paths.push(String::from_utf8_lossy(&listed.member.path).into_owned());
    });
    (paths, report.unwrap(), kept)
}

pub fn verify_archive(archive: &Path, against: Option<&Path>) -> (VerifyReport, Kept) {
    let kept = Kept::default();
    let options = VerifyOptions {
        from: archive.into(),
        against: against.map(Path::to_path_buf),
        ..Default::default()
    };
    let report = verify(options, &kept, &Cancel::new()).unwrap();
    (report, kept)
}

/// Files of the tree below `root` by path, with their content.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A description of everything in a tree, one line for each object, in one order.
pub fn describe(root: &Path) -> Vec<String> {
    let script = r#"find . -printf '%p|%y|%m|%U|%G|%s|%T@|%l|%n\n' | sort |
        sed 's/\(|d|.*|[0-9]*|[0-9]*|\)[0-9]*|/\1-|/'"#;
    let output = Command::new("bash").args(["-c", script]).current_dir(root).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

/// Both trees are the same, contents and metadata. `seconds` cuts the times to whole seconds.
#[track_caller]
pub fn assert_same_tree(expected: &Path, found: &Path, times: Times) {
    run(
        "diff",
        &["-r", "--no-dereference", &expected.to_string_lossy(), &found.to_string_lossy()],
        expected,
    );
    let describe = |root: &Path| -> Vec<String> {
        let lines = describe(root).into_iter();
        lines
            .map(|line| match times {
                Times::Exact => line,
                Times::Seconds => {
                    let mut fields: Vec<&str> = line.split('|').collect();
                    if fields.len() > 6 {
                        fields[6] = fields[6].split('.').next().unwrap();
                    }
                    fields.join("|")
                }
            })
            .collect()
    };
    let (expected, found) = (describe(expected), describe(found));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found);
    }
    assert_eq!(expected.len(), found.len());
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Exact,
    Seconds,
}

/// Writes bytes to a file of the harness.
pub fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).unwrap();
    path.to_path_buf()
}

#[allow(dead_code)]
pub fn exists(path: impl AsRef<OsStr>) -> bool {
    fs::symlink_metadata(Path::new(path.as_ref())).is_ok()
}
