//! The runs, and what must be true of every disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::replay::{
    BTRFS, Counts, Crash, EXT4, EXT4_STRICT, EXT4_WRITEBACK, FileSystem, Recorded, XFS, record,
};

fn takeup(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.args(&arguments[..1]).args(["-q", "--engine", "pread"]).args(&arguments[1..]);
    command
}

pub fn is_long() -> bool {
    std::env::var_os("TAKEUP_LONG").is_some()
}

/// Every how many barriers a disk is tried, and how many parts of the writes after each.
fn effort() -> (usize, u64) {
    if is_long() { (1, 3) } else { (5, 1) }
}

/// A tree of small files, and its archive.
pub struct Fixture {
    folder: TempDir,
    /// By name in the tree.
    pub contents: BTreeMap<String, Vec<u8>>,
    pub archive: Vec<u8>,
}

/// Bytes that differ from file to file, without zeros.
fn content(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 31 + at / 251 + seed * 101) % 255 + 1) as u8).collect()
}

impl Fixture {
    pub fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("folder")).unwrap();
        let sizes = [("one", 700), ("two", 9_000), ("three", 300_000), ("folder/four", 70_000)];
        let mut contents = BTreeMap::new();
        for (seed, (name, bytes)) in sizes.into_iter().enumerate() {
            fs::write(tree.join(name), content(seed, bytes)).unwrap();
            contents.insert(name.to_owned(), content(seed, bytes));
        }
        let archive = folder.path().join("set.tar");
        let mut command = takeup(&["backup", "--to"]);
        assert!(command.arg(&archive).arg(&tree).status().unwrap().success());
        let archive = fs::read(archive).unwrap();
        Fixture { folder, contents, archive }
    }

    pub fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    pub fn set(&self) -> PathBuf {
        self.folder.path().join("set.tar")
    }

    /// Whether all files of the tree are in the folder `into` of this place.
    pub fn is_restored(&self, place: &Path) -> bool {
        let tree = self.restored(place);
        self.contents
            .iter()
            .all(|(name, content)| fs::read(tree.join(name)).ok().as_ref() == Some(content))
    }

    /// Where the tree is below `place` when it is restored there.
    fn restored(&self, place: &Path) -> PathBuf {
        let tree = self.tree();
        let below = tree.strip_prefix("/").unwrap();
        let whole = place.join("into").join(below);
        if whole.is_dir() { whole } else { place.join("into/tree") }
    }
}

fn tell(name: &str, recorded: &Recorded, counts: &Counts) {
    eprintln!(
        "{name} on {}: {} writes, {} barriers, {} disks looked at, {} of them behind the end",
        recorded.system.name(),
        counts.writes,
        counts.barriers,
        counts.disks,
        counts.after_the_end
    );
}

const OLD: &[u8] = b"what was there before";

/// A backup, new or over an old one.
fn backup(system: FileSystem, old: Option<&[u8]>) {
    let fixture = Fixture::new();
    let disk = system.disk(|place| {
        if let Some(old) = old {
            fs::write(place.join("set.tar"), old).unwrap();
        }
    });
    let recorded = record(system, disk, |place| {
        let mut command = takeup(&["backup", "--to"]);
        command.arg(place.join("set.tar")).arg(fixture.tree());
        if old.is_some() {
            command.arg("--overwrite");
        }
        command
    });
    assert_eq!(recorded.ended.code, Some(0), "{}", recorded.ended.errors);
    let (stride, subsets) = effort();
    let counts = recorded.crashes(stride, subsets, |crash: &Crash<'_>| {
        let there = fs::read(crash.place.join("set.tar")).ok();
        let whole = there.as_deref() == Some(&fixture.archive[..]);
        match (whole, there.as_deref() == old, crash.ended) {
            (true, ..) | (_, true, false) => Ok(()),
            (_, _, true) => Err("it was done, and the archive is not there".into()),
            _ => Err(format!("{:?} bytes, not the archive", there.map(|bytes| bytes.len()))),
        }
    });
    tell(if old.is_some() { "backup --overwrite" } else { "backup" }, &recorded, &counts);
}

/// A restore, into nothing or over old files.
fn restore(system: FileSystem, over: bool) {
    let fixture = Fixture::new();
    let disk = system.disk(|place| {
        fs::create_dir(place.join("into")).unwrap();
        if over {
            // The layout of a restore, with other content.
            let mut command = takeup(&["restore", "--into"]);
            let done = command.arg(place.join("into")).arg(fixture.set()).status().unwrap();
            assert!(done.success());
            for name in fixture.contents.keys() {
                fs::write(fixture.restored(place).join(name), OLD).unwrap();
            }
        }
    });
    let recorded = record(system, disk, |place| {
        let mut command = takeup(&["restore", "--into"]);
        command.arg(place.join("into")).arg(fixture.set());
        if over {
            command.arg("--overwrite");
        }
        command
    });
    assert_eq!(recorded.ended.code, Some(0), "{}", recorded.ended.errors);
    let (stride, subsets) = effort();
    let mut unfinished = 0;
    let counts = recorded.crashes(stride, subsets, |crash: &Crash<'_>| {
        let tree = fixture.restored(crash.place);
        for (name, content) in &fixture.contents {
            let there = fs::read(tree.join(name)).ok();
            let is_new = there.as_ref() == Some(content);
            let is_old = over && there.as_deref() == Some(OLD);
            if crash.ended && !is_new {
                return Err(format!("it was done, and {name} is not there"));
            }
            if over && !is_new && !is_old {
                let bytes = there.map(|bytes| bytes.len());
                return Err(format!("{name} is neither old nor new: {bytes:?} bytes"));
            }
            unfinished += u32::from(there.is_some() && !is_new && !is_old);
        }
        Ok(())
    });
    tell(if over { "restore --overwrite" } else { "restore" }, &recorded, &counts);
    eprintln!("  {unfinished} names without their content before the run was done");
}

macro_rules! form {
    (short) => {};
    (long) => {
        testkit::long_run!();
    };
}

/// All runs on one file system; those that are `long` have their short form on another one.
macro_rules! on {
    ($module:ident, $system:expr, $need:ident, new: $new:ident, over: $over:ident) => {
        mod $module {
            use super::*;

            #[test]
            fn backup() {
                testkit::require!(Fuse, LoopDevices, $need);
                form!($new);
                super::backup($system, None);
            }

            #[test]
            fn backup_over_an_archive() {
                testkit::require!(Fuse, LoopDevices, $need);
                form!($over);
                super::backup($system, Some(OLD));
            }

            #[test]
            fn restore() {
                testkit::require!(Fuse, LoopDevices, $need);
                form!($new);
                super::restore($system, false);
            }

            #[test]
            fn restore_over_files() {
                testkit::require!(Fuse, LoopDevices, $need);
                form!($over);
                super::restore($system, true);
            }
        }
    };
}

on!(ext4, EXT4, Ext4, new: long, over: long);
on!(ext4_without_help, EXT4_STRICT, Ext4, new: short, over: short);
on!(ext4_writeback, EXT4_WRITEBACK, Ext4, new: long, over: long);
on!(xfs, XFS, Xfs, new: long, over: short);
on!(btrfs, BTRFS, Btrfs, new: long, over: short);
