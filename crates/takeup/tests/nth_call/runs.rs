//! The commands, and what must be true of each when it has ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::campaign::{Case, Run, campaign};
use crate::tree::{self, Object};

fn takeup(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.args(arguments);
    command
}

/// A tree, its archive, and the result of a run without faults.
struct Fixture {
    folder: TempDir,
    objects: BTreeMap<String, Object>,
    archive: Vec<u8>,
}

impl Fixture {
    fn new(options: &[&str]) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        tree::make(&tree);
        let objects = tree::survey(&tree);
        let archive = folder.path().join("set.tar");
        let mut command = takeup(&["backup", "-q", "--to"]);
        command.arg(&archive).arg(&tree).args(options);
        assert!(command.status().unwrap().success());
        let archive = fs::read(archive).unwrap();
        Fixture { folder, objects, archive }
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn set(&self) -> PathBuf {
        self.folder.path().join("set.tar")
    }
}

/// Empties a place.
fn clear(place: &Path) {
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
}

/// Calls whose failure can prevent a run from cleaning up.
const TIDYING: [&str; 3] = ["unlinkat", "statx", "fstat"];

fn no_leftovers(place: &Path, run: &Run) -> Result<(), String> {
    let left: Vec<String> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("takeup-"))
        .collect();
    if left.is_empty() || run.met_call(&TIDYING) || run.met_call(&["newfstatat"]) {
        Ok(())
    } else {
        Err(format!("leaves {left:?}"))
    }
}

/// Every file of the tree is unchanged in the archive, or named in a message.
fn archive_is_true(archive: &Path, expected: &Fixture, run: &Run) -> Result<(), String> {
    let into = tempfile::tempdir().unwrap();
    let mut verify = takeup(&["verify", "-q"]);
    let verified = verify.arg(archive).output().unwrap();
    if verified.status.code() != Some(0) {
        return Err(format!("verify: {}", String::from_utf8_lossy(&verified.stderr)));
    }
    let mut tar = Command::new("tar");
    tar.args(["--xattrs", "-xf"]).arg(archive).arg("-C").arg(into.path());
    let extracted = tar.output().unwrap();
    if !extracted.status.success() {
        return Err(format!("tar: {}", String::from_utf8_lossy(&extracted.stderr)));
    }
    let tree = expected.tree();
    let there = into.path().join(tree.strip_prefix("/").unwrap());
    let there = if there.is_dir() { there } else { into.path().join("tree") };
    differences_are_told(&expected.objects, &there, run)
}

fn differences_are_told(
    expected: &BTreeMap<String, Object>,
    there: &Path,
    run: &Run,
) -> Result<(), String> {
    let there = if there.is_dir() { tree::survey(there) } else { BTreeMap::new() };
    let told = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let folder = path.split('/').next().unwrap_or(path);
        run.ended.errors.contains(name) || run.ended.errors.contains(folder)
    };
    // When a file is left out, its other names have one link fewer and carry the metadata.
    let is_named = |name: &&str| run.ended.errors.contains(*name);
    let linked = |path: &String| path == "small" || path == "second-name";
    let root = run.ended.errors.contains("/tree:") || run.ended.errors.contains("tree: ");
    let untold: Vec<String> = tree::differing(expected, &there)
        .into_iter()
        .filter(|path| !told(path) && !root)
        .filter(|path| !(linked(path) && ["small", "second-name"].iter().any(is_named)))
        .collect();
    if untold.is_empty() { Ok(()) } else { Err(format!("differ without a word: {untold:?}")) }
}

/// `backup` to a file.
struct Backup {
    fixture: Fixture,
    options: Vec<&'static str>,
    old: Option<&'static [u8]>,
}

impl Case for Backup {
    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        let target = place.join("set.tar");
        if let Some(old) = self.old {
            fs::write(&target, old).unwrap();
        }
        let mut command = takeup(&["backup", "-q", "--engine", "pread", "--to"]);
        command.arg(target).arg(self.fixture.tree()).args(&self.options);
        command
    }

    fn check(&self, place: &Path, run: &Run) -> Result<(), String> {
        let target = place.join("set.tar");
        let there = fs::read(&target).ok();
        let whole = there.as_deref() == Some(&self.fixture.archive[..]);
        let before = there.as_deref() == self.old;
        match run.code() {
            0 if !whole => return Err("exit 0 without the archive".into()),
            2 if there.is_none() || before => return Err("exit 2 without an archive".into()),
            2 => archive_is_true(&target, &self.fixture, run)?,
            // The last fsync is that of the folder, after the rename.
            1 if !whole && !before => return Err("no archive under a final name".into()),
            _ => {}
        }
        no_leftovers(place, run)
    }
}

#[test]
fn backup_of_a_tree() {
    let options = vec!["--read-threads", "2"];
    let fixture = Fixture::new(&options);
    campaign("backup", &Backup { fixture, options, old: None });
}

#[test]
fn backup_over_an_archive() {
    let options = vec!["--overwrite", "--compress", "zstd:1", "--read-threads", "1"];
    let fixture = Fixture::new(&options);
    let old = Some(&b"what was there before"[..]);
    campaign("backup --overwrite", &Backup { fixture, options, old });
}

/// `backup` to standard output, which is a pipe.
struct ToPipe(Fixture);

impl Case for ToPipe {
    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        let mut command = takeup(&["backup", "-q", "--read-threads", "1", "--to", "-"]);
        command.arg(self.0.tree());
        command
    }

    fn check(&self, place: &Path, run: &Run) -> Result<(), String> {
        match run.code() {
            0 if run.ended.output != self.0.archive => Err("exit 0 without the archive".into()),
            2 => {
                let target = place.join("set.tar");
                fs::write(&target, &run.ended.output).unwrap();
                archive_is_true(&target, &self.0, run)
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn backup_to_a_pipe() {
    campaign("backup to a pipe", &ToPipe(Fixture::new(&[])));
}

/// `restore`.
struct Restore {
    fixture: Fixture,
    /// Over files of other content, under the same names.
    over: bool,
    /// From standard input instead of a file.
    streamed: bool,
}

impl Case for Restore {
    fn input(&self) -> Option<PathBuf> {
        self.streamed.then(|| self.fixture.set())
    }

    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        let into = place.join("into");
        fs::create_dir(&into).unwrap();
        if self.over {
            let tree = into.join(self.fixture.tree().strip_prefix("/").unwrap());
            fs::create_dir_all(&tree).unwrap();
            for name in ["empty", "tiny", "medium", "large", "sparse"] {
                fs::write(tree.join(name), OLD).unwrap();
            }
        }
        let mut command = takeup(&["restore", "-q", "--engine", "pread", "--into"]);
        command.arg(&into);
        if self.streamed {
            command.arg("-")
        } else {
            command.arg(self.fixture.set())
        };
        if self.over {
            command.arg("--overwrite");
        }
        command
    }

    fn check(&self, place: &Path, run: &Run) -> Result<(), String> {
        let into = place.join("into");
        let tree = into.join(self.fixture.tree().strip_prefix("/").unwrap());
        let there = if tree.is_dir() { tree::survey(&tree) } else { BTreeMap::new() };
        for (path, object) in &there {
            if path.contains(".takeup-") {
                if !run.met_call(&TIDYING) {
                    return Err(format!("leaves {path}"));
                }
                continue;
            }
            let expected = self.fixture.objects.get(path).ok_or_else(|| format!("makes {path}"))?;
            let old = self.over && object.content == OLD;
            if object.kind == "file" && object.content != expected.content && !old {
                let length = object.content.len();
                return Err(format!("{path}, {length} bytes, is not what its name says"));
            }
        }
        match run.code() {
            0 if there != self.fixture.objects => Err(format!(
                "exit 0, differs: {:?}",
                tree::differing(&self.fixture.objects, &there)
            )),
            2 => differences_are_told(&self.fixture.objects, &tree, run),
            _ => Ok(()),
        }
    }
}

const OLD: &[u8] = b"what was there before";

#[test]
fn restore_of_a_tree() {
    campaign("restore", &Restore { fixture: Fixture::new(&[]), over: false, streamed: false });
}

#[test]
fn restore_of_a_stream() {
    let restore = Restore { fixture: Fixture::new(&[]), over: false, streamed: true };
    campaign("restore from standard input", &restore);
}

#[test]
fn restore_over_files() {
    let fixture = Fixture::new(&["--compress", "zstd:1"]);
    campaign("restore --overwrite", &Restore { fixture, over: true, streamed: false });
}

/// `verify` and `list`, which read an archive and print results.
struct Reader {
    fixture: Fixture,
    arguments: Vec<&'static str>,
    /// The output without faults; `None` for a damaged archive.
    output: Option<Vec<u8>>,
}

impl Reader {
    fn new(options: &[&str], arguments: &[&'static str]) -> Reader {
        let fixture = Fixture::new(options);
        let done = takeup(arguments).arg(fixture.set()).output().unwrap();
        assert_eq!(done.status.code(), Some(0));
        Reader { fixture, arguments: arguments.to_vec(), output: Some(done.stdout) }
    }

    fn command(&self) -> Command {
        let mut command = takeup(&self.arguments);
        command.arg(self.fixture.set());
        command
    }
}

impl Case for Reader {
    fn prepare(&self, _: &Path) -> Command {
        self.command()
    }

    fn check(&self, _: &Path, run: &Run) -> Result<(), String> {
        let Some(expected) = &self.output else { unreachable!("damaged archives have their own") };
        if run.code() == 0 && self.arguments[0] == "list" && run.ended.output != *expected {
            return Err("exit 0 with another list".into());
        }
        let met_archive = run
            .met
            .as_ref()
            .is_some_and(|met| met.path.as_deref() == Some(&self.fixture.set()) && !met.again);
        let lost = met_archive && run.fault.is_some_and(|fault| !fault.is_no_failure());
        if run.code() == 0 && self.arguments[0] == "verify" && run.met_call(&["pread64"]) && lost {
            return Err("exit 0, and a part was not read".into());
        }
        Ok(())
    }
}

#[test]
fn verify() {
    campaign("verify", &Reader::new(&[], &["verify", "-q", "--engine", "pread"]));
}

#[test]
fn verify_of_a_compressed_archive() {
    let options = ["--compress", "zstd:1"];
    campaign("verify, zstd", &Reader::new(&options, &["verify", "-q", "--engine", "pread"]));
}

#[test]
fn list_from_the_index() {
    campaign("list", &Reader::new(&[], &["list", "-q", "--engine", "pread"]));
}

#[test]
fn list_with_details_held_against_the_archive() {
    let arguments = ["list", "-q", "--engine", "pread", "--long", "--check"];
    campaign("list --long --check", &Reader::new(&["--compress", "zstd:1"], &arguments));
}

/// `verify` of an archive in which one bit is wrong.
struct Damaged(Fixture);

impl Case for Damaged {
    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        let mut command = takeup(&["verify", "-q", "--engine", "pread"]);
        command.arg(self.0.set());
        command
    }

    fn code(&self) -> i32 {
        1
    }

    fn check(&self, _: &Path, run: &Run) -> Result<(), String> {
        match run.code() {
            0 => Err("a damaged archive is called sound".into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn verify_of_a_damaged_archive() {
    let fixture = Fixture::new(&[]);
    let mut archive = fixture.archive.clone();
    let middle = archive.len() / 2;
    archive[middle] ^= 1;
    fs::write(fixture.set(), archive).unwrap();
    campaign("verify, damaged", &Damaged(fixture));
}

/// `pipe` from a file to a file.
struct Pipe(Fixture);

impl Case for Pipe {
    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        let mut command = takeup(&["pipe", "-q", "--engine", "pread", "--block-size", "256k"]);
        command.arg("--from").arg(self.0.set()).arg("--to").arg(place.join("copy"));
        command
    }

    fn check(&self, place: &Path, run: &Run) -> Result<(), String> {
        let there = fs::read(place.join("copy")).ok();
        let whole = there.as_deref() == Some(&self.0.archive[..]);
        match run.code() {
            0 if !whole => return Err("exit 0 without the copy".into()),
            2 => return Err("a copy is whole or not".into()),
            1 if there.is_some() && !whole => return Err("no copy under a final name".into()),
            _ => {}
        }
        no_leftovers(place, run)
    }
}

#[test]
fn pipe_from_file_to_file() {
    campaign("pipe", &Pipe(Fixture::new(&[])));
}

/// `pipe` from standard input to standard output.
struct Through(Fixture);

impl Case for Through {
    fn prepare(&self, place: &Path) -> Command {
        clear(place);
        takeup(&["pipe", "-q", "--block-size", "64k"])
    }

    fn input(&self) -> Option<PathBuf> {
        Some(self.0.set())
    }

    fn check(&self, _: &Path, run: &Run) -> Result<(), String> {
        match run.code() {
            0 if run.ended.output != self.0.archive => Err("exit 0, something is missing".into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn pipe_through() {
    campaign("pipe, standard input to output", &Through(Fixture::new(&[])));
}
