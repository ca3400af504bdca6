//! Runs that ask btrfs what has changed: nothing is missed, and nothing else is read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::samples::Random;

use crate::changes::World;
use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, archive, backup, gnu_tar, run, stored, stored_in_all, text};
use testkit::mounted::{Mounted, done, image};

/// A btrfs file system of its own.
struct Disk {
    folder: tempfile::TempDir,
    _mounted: Mounted,
    device: String,
}

impl Disk {
    fn new() -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        image(&disk, 512 << 20, &["mkfs.btrfs", "-q", "-f"]);
        let all = folder.path().join("all");
        // Access times count as changes, and the tests read.
        let mounted = Mounted::new(&["-o", "loop,noatime", disk.to_str().unwrap()], &all);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.contains(all.to_str().unwrap())).unwrap();
        let device = mount.split(' ').next().unwrap().to_owned();
        Disk { folder, _mounted: mounted, device }
    }

    /// The path of a subvolume beside the mounted ones.
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("all").join(name)
    }

    /// A folder for a run, in which `tree` is this subvolume.
    fn shown(&self, name: &str) -> (PathBuf, Mounted) {
        let here = self.folder.path().join(format!("run-{name}"));
        let mounted = self.mount(name, &here.join("tree"));
        (here, mounted)
    }

    fn mount(&self, name: &str, at: &Path) -> Mounted {
        Mounted::new(&["-o", &format!("noatime,subvol={name}"), &self.device], at)
    }

    /// What has changed is committed, and not in the last transaction: a set that is told nothing
    /// of btrfs counts that as changed since.
    fn commit(&self) {
        for what in ["before", "after"] {
            fs::write(self.at("mark"), what).unwrap();
            done("btrfs", &["filesystem", "sync", self.at("mark").to_str().unwrap()]);
        }
    }

    /// A subvolume as `tree` in a folder for a run.
    fn subvolume(&self, name: &str) -> (PathBuf, Mounted) {
        btrfs(&["subvolume", "create"], &[&self.at(name)]);
        self.shown(name)
    }
}

#[track_caller]
fn btrfs(what: &[&str], paths: &[&Path]) {
    let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    done("btrfs", &[what, &paths].concat());
}

const BY_BTRFS: [&str; 3] = ["-i", "--changed-from", "btrfs:tree"];

/// A change of the subvolumes in a tree: made, removed, and put back to what they were before.
fn change_subvolumes(tree: &Path, random: &mut Random, next: &mut u32) -> String {
    let sub = tree.join("sub");
    let copies: Vec<PathBuf> =
        fs::read_dir(tree.join("copies")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let chosen = (!copies.is_empty()).then(|| copies[random.index(copies.len())].clone());
    match (random.below(6), chosen) {
        (0, Some(copy)) => {
            let aside = tree.join("aside");
            fs::rename(&sub, &aside).unwrap();
            fs::rename(&copy, &sub).unwrap();
            fs::rename(&aside, &copy).unwrap();
            format!("{} in the place of the subvolume", copy.display())
        }
        (1, Some(copy)) => {
            btrfs(&["subvolume", "delete"], &[&copy]);
            format!("{} removed", copy.display())
        }
        (2, Some(copy)) => {
            *next += 1;
            fs::rename(copy, tree.join(format!("copies/{next}"))).unwrap();
            "a copy moved".to_owned()
        }
        (3, _) => {
            *next += 1;
            btrfs(&["subvolume", "snapshot"], &[&sub, &tree.join(format!("copies/{next}"))]);
            "snapshot".to_owned()
        }
        (4, _) => {
            *next += 1;
            let copy = tree.join(format!("copies/{next}"));
            btrfs(&["subvolume", "create"], &[&copy]);
            // It may come to the place of the first one, in whose folder the changes are made.
            fs::create_dir(copy.join("inner")).unwrap();
            fs::write(copy.join("inner/file"), random.bytes(50)).unwrap();
            "a new subvolume".to_owned()
        }
        (_, Some(copy)) => {
            fs::write(copy.join("inner/written"), random.bytes(70)).unwrap();
            "a file in a copy".to_owned()
        }
        _ => "nothing".to_owned(),
    }
}

struct Day {
    was: Snapshot,
    set: String,
    chain: Vec<PathBuf>,
}

/// Returns folders that were read, and folders.
fn history(disk: &Disk, seed: u64) -> [u64; 2] {
    let (here, _mounted) = disk.subvolume(&format!("seed-{seed}"));
    let tree = here.join("tree");
    btrfs(&["subvolume", "create"], &[&tree.join("sub")]);
    fs::create_dir(tree.join("copies")).unwrap();
    let mut worlds = ["inner", "sub/inner"].map(|path| World::new(tree.join(path), 10_000 + seed));
    let mut random = Random::new(seed + 2_000_000);
    let (mut days, mut told): (Vec<Day>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut counts, mut next) = ([0, 0], 0);
    for day in 0..3 + random.index(3) {
        for world in worlds.iter_mut().filter(|_| day > 0) {
            for _ in 0..random.below(4) {
                told.push(format!("{day}: {}", world.change()));
            }
        }
        for _ in 0..random.below(3) {
            told.push(format!("{day}: {}", change_subvolumes(&tree, &mut random, &mut next)));
        }
        if random.below(4) > 0 {
            std::thread::sleep(TICK);
        }
        let was = snapshot(&tree);
        let more: &[&str] = match (day, random.below(4)) {
            (0, _) => &[],
            (_, 0) => &["-i", "--changed-from", "btrfs:tree/", "--audit-every", "1"],
            _ => &BY_BTRFS,
        };
        let done = backup(&here, more);
        if day > 0 {
            let changed = &done["changed_from"];
            assert_eq!(changed["missed"], 0, "seed {seed}: {told:#?}\n{done}");
            if changed["looked"] == "list" {
                counts[0] += changed["folders_read"].as_u64().unwrap();
                counts[1] += was.values().filter(|it| it.is_folder()).count() as u64;
            } else {
                assert_eq!(changed["looked"], "audit");
            }
        }
        if random.below(2) == 0 {
            worlds[random.index(2)].edit();
        }
        let mut chain = days.last().map(|day| day.chain.clone()).unwrap_or_default();
        chain.push(archive(&here, &done));
        days.push(Day { was, set: done["set"]["set"].as_str().unwrap().to_owned(), chain });
    }
    for (number, day) in days.iter().enumerate() {
        let what = format!("seed {seed}, day {number} of {} ({told:#?})", days.len());
        let into = format!("takeup-{number}");
        answer(&here, &["restore", "sets/", "--no-sync", "--set", &day.set, "--into", &into]);
        assert_same(&day.was, &snapshot(&here.join(into).join("tree")), &format!("{what}, takeup"));
        let into = here.join(format!("tar-{number}"));
        gnu_tar(&day.chain, &into);
        assert_same(&day.was, &snapshot(&into.join("tree")), &format!("{what}, GNU tar"));
        fs::remove_dir_all(into).unwrap();
    }
    counts
}

#[test]
fn every_day_comes_back_by_what_btrfs_says() {
    testkit::require!(Btrfs);
    let disk = Disk::new();
    let seeds = if std::env::var_os("TAKEUP_LONG").is_some() { 200 } else { 10 };
    let mut sums = [0, 0];
    for seed in 0..seeds {
        let counts = history(&disk, seed);
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    // The runs are no full looks in disguise, though much in these trees is doubtful.
    assert!(sums[0] < sums[1], "{sums:?}");
}

/// Ten folders of three files in each of these, one of them a level deeper.
fn plant(disk: &Disk, tops: &[&Path]) {
    for number in 0..10 {
        for top in tops {
            let path = top.join(format!("{number}"));
            fs::create_dir_all(path.join("deep")).unwrap();
            for name in ["a", "b", "deep/c"] {
                fs::write(path.join(name), format!("{name} of {number}")).unwrap();
            }
        }
    }
    std::thread::sleep(TICK);
    disk.commit();
}

#[track_caller]
fn comes_back(here: &Path) {
    answer(here, &["restore", "sets/", "--into", "back", "--no-sync"]);
    assert_same(&snapshot(&here.join("tree")), &snapshot(&here.join("back/tree")), "back");
    fs::remove_dir_all(here.join("back")).unwrap();
}

/// Backs up by what btrfs says; returns the answer, and the folders that were read.
#[track_caller]
fn by_btrfs(here: &Path) -> (Value, u64) {
    let done = backup(here, &BY_BTRFS);
    assert_eq!(done["changed_from"]["looked"], "list", "{done}");
    let folders = done["changed_from"]["folders_read"].as_u64().unwrap();
    (done, folders)
}

#[test]
fn only_what_has_changed_is_read() {
    testkit::require!(Btrfs);
    let disk = Disk::new();
    let (here, _mounted) = disk.subvolume("live");
    let here = &here;
    let tree = here.join("tree");
    let sub = tree.join("sub");
    btrfs(&["subvolume", "create"], &[&sub]);
    plant(&disk, &[&tree, &sub]);
    backup(here, &[]);
    let (done, folders) = by_btrfs(here);
    assert_eq!((folders, stored_in_all(&done)), (0, 0), "{done}");

    fs::write(tree.join("3/b"), "another content").unwrap();
    fs::remove_file(tree.join("sub/7/deep/c")).unwrap();
    std::thread::sleep(TICK);
    let (done, folders) = by_btrfs(here);
    // 3, sub/7/deep, and sub/7, since it holds a folder that has changed.
    assert_eq!((folders, stored(&done, "size")), (3, 1), "{done}");
    assert_eq!(done["set"]["deleted"], 1);
    comes_back(here);
    let (done, folders) = by_btrfs(here);
    assert_eq!((folders, stored_in_all(&done)), (0, 0), "{done}");

    // Of the same size, its time set back; attributes; a folder under another name.
    let before = fs::metadata(tree.join("4/a")).unwrap().modified().unwrap();
    fs::write(tree.join("4/a"), "A OF 4").unwrap();
    fs::File::options().write(true).open(tree.join("4/a")).unwrap().set_modified(before).unwrap();
    set_attribute(&tree.join("5/deep/c"));
    fs::rename(tree.join("6"), tree.join("sixth")).unwrap();
    std::thread::sleep(TICK);
    let (done, folders) = by_btrfs(here);
    // 4, 5/deep, tree, sixth and sixth/deep, and sub, on a device that the walk did not see before.
    assert_eq!((folders, stored(&done, "ctime")), (6, 2), "{done}");
    comes_back(here);

    // A generation that is named, whatever the set before noted.
    let all = backup(here, &["-i", "--changed-from", "btrfs:tree@0"]);
    assert_eq!(all["changed_from"]["folders_read"], 1 + 20 + 1 + 20, "{all}");
    let none = backup(here, &["-i", "--changed-from", "btrfs:tree@999999999"]);
    assert_eq!(none["changed_from"]["folders_read"], 0, "{none}");
}

fn set_attribute(path: &Path) {
    rustix::fs::setxattr(path, "user.note", b"new", rustix::fs::XattrFlags::empty()).unwrap();
}

/// What no generation shows: mounts, sources elsewhere, another subvolume at the same place.
#[test]
fn what_btrfs_cannot_know_is_looked_at() {
    testkit::require!(Btrfs);
    let disk = Disk::new();
    let (here, mounted) = disk.subvolume("live");
    let here = &here;
    let tree = here.join("tree");
    plant(&disk, &[&tree]);
    fs::create_dir(here.join("other")).unwrap();
    let backup = |more: &[&str]| {
        answer(here, &[&["backup", "tree", "other", "--to", "sets/"], more].concat())
    };
    backup(&[]);
    let over = Mounted::new(&["-t", "tmpfs", "tmpfs"], &tree.join("2/deep"));
    fs::create_dir(tree.join("2/deep/folder")).unwrap();
    fs::write(tree.join("2/deep/folder/inside"), "of another file system").unwrap();
    fs::write(here.join("other/file"), "elsewhere").unwrap();
    std::thread::sleep(TICK);
    let done = backup(&BY_BTRFS);
    // 2, 2/deep and 2/deep/folder, and other.
    assert_eq!(done["changed_from"]["folders_read"], 4, "{done}");
    assert_eq!((stored(&done, "new"), &done["set"]["deleted"]), (3, &1.into()), "{done}");
    let said = [&["backup", "tree", "other", "--to", "sets/", "-n"], &BY_BTRFS[..]].concat();
    let said = text(here, &said, 0);
    assert!(said.contains("other is not in it, and looked at as a whole"), "{said}");
    comes_back(here);
    fs::write(tree.join("2/deep/folder/inside"), "written there").unwrap();
    drop(over);
    std::thread::sleep(TICK);
    let done = backup(&BY_BTRFS);
    assert_eq!((stored(&done, "new"), &done["set"]["deleted"]), (1, &2.into()), "{done}");
    comes_back(here);

    // An older snapshot in its place has no younger generations.
    btrfs(&["subvolume", "snapshot"], &[&disk.at("live"), &disk.at("old")]);
    fs::write(tree.join("1/a"), "will be undone").unwrap();
    std::thread::sleep(TICK);
    backup(&BY_BTRFS);
    drop(mounted);
    let _old = disk.mount("old", &tree);
    let done = backup(&BY_BTRFS);
    assert_eq!(done["changed_from"]["looked"], "everything", "{done}");
    comes_back(here);
    assert_eq!(backup(&BY_BTRFS)["changed_from"]["looked"], "list");
}

/// A snapshot of each day is mounted at the source.
#[test]
fn snapshots_of_one_subvolume_are_compared() {
    testkit::require!(Btrfs);
    let disk = Disk::new();
    btrfs(&["subvolume", "create"], &[&disk.at("live")]);
    plant(&disk, &[&disk.at("live")]);
    let here = disk.folder.path().join("run");
    let day = |name: &str, more: &[&str]| {
        btrfs(&["subvolume", "snapshot", "-r"], &[&disk.at("live"), &disk.at(name)]);
        let mounted = disk.mount(name, &here.join("tree"));
        (backup(&here, more), mounted)
    };
    day("monday", &[]);
    fs::write(disk.at("live/8/a"), "of tuesday").unwrap();
    std::thread::sleep(TICK);
    let (done, mounted) = day("tuesday", &BY_BTRFS);
    let changed = &done["changed_from"];
    assert_eq!(changed["looked"], "list", "{done}");
    assert!(changed["folders_read"].as_u64() <= Some(3), "of 21 folders: {changed}");
    assert_eq!(stored(&done, "size"), 1, "{done}");
    comes_back(&here);
    drop(mounted);
    // One that was written to is on a line of its own.
    btrfs(&["subvolume", "snapshot"], &[&disk.at("live"), &disk.at("written")]);
    fs::write(disk.at("written/1/a"), "only here").unwrap();
    std::thread::sleep(TICK);
    make_read_only(&disk.at("written"));
    let mounted = disk.mount("written", &here.join("tree"));
    let done = backup(&here, &BY_BTRFS);
    assert_eq!(done["changed_from"]["looked"], "everything", "{done}");
    comes_back(&here);
    drop(mounted);
    // In this one the file is as it was, since before the one that was written to.
    let (done, _mounted) = day("wednesday", &BY_BTRFS);
    assert_eq!(done["changed_from"]["looked"], "everything", "{done}");
    comes_back(&here);
}

fn make_read_only(path: &Path) {
    done("btrfs", &["property", "set", path.to_str().unwrap(), "ro", "true"]);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    testkit::require!(Btrfs);
    let disk = Disk::new();
    let (here, _mounted) = disk.subvolume("live");
    let here = &here;
    plant(&disk, &[&here.join("tree")]);
    backup(here, &[]);
    for (from, expected) in [
        ("btrfs:tree/1", "it is not the root of a subvolume"),
        ("btrfs:tree/1/a", "it is not the root of a subvolume"),
        ("btrfs:sets", "it is not on btrfs"),
        ("btrfs:missing", "cannot open it: no such file"),
        ("btrfs:", "cannot open it: no such file"),
    ] {
        let said =
            text(here, &["backup", "tree", "--to", "sets/", "-i", "--changed-from", from], 1);
        assert!(said.contains(expected), "{from}: {said}");
    }
    let output = std::process::Command::new("setpriv")
        .args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])
        .arg(env!("CARGO_BIN_EXE_takeup"))
        .args(["backup", "tree", "--to", "sets/"])
        .args(BY_BTRFS)
        .current_dir(here)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("does not let this user search a btrfs file system"), "{said}");
    assert!(said.contains("hint: run it as root, or leave out --changed-from"), "{said}");
    assert_eq!(run(here, &["backup", "tree", "--to", "sets/", "-i"]).status.code(), Some(0));
}
