//! Sources that are the same and look like others: inode numbers that change from mount to mount,
//! and devices that have another number. Nothing is stored again, and links are kept.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use serde_json::Value;

use crate::renumbered::{Numbers, Renumbered};
use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, stored, stored_in_all};
use testkit::mounted::{Mounted, done, image};

/// Four folders, and six other names of five objects.
fn plant(tree: &Path) {
    fs::create_dir_all(tree.join("a/deep")).unwrap();
    fs::create_dir(tree.join("b")).unwrap();
    for name in ["one", "a/two", "a/deep/three"] {
        fs::write(tree.join(name), format!("content of {name}").repeat(300)).unwrap();
    }
    fs::hard_link(tree.join("a/two"), tree.join("b/zwei")).unwrap();
    fs::hard_link(tree.join("a/deep/three"), tree.join("drei")).unwrap();
    symlink("one", tree.join("b/link")).unwrap();
}
const FOLDERS: u64 = 4;
const OTHERS: u64 = 6;

fn backup(here: &Path, more: &[&str]) -> Value {
    answer(here, &[&["backup", "shown/tree", "--to", "sets/"], more].concat())
}

#[track_caller]
fn comes_back(here: &Path, was: &Snapshot, what: &str) {
    answer(here, &["restore", "sets/", "--into", what, "--no-sync"]);
    assert_same(was, &snapshot(&here.join(what).join("shown/tree")), what);
}

/// The tree `real/tree` is at `shown/tree`.
fn shown() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir_all(here.join("real")).unwrap();
    fs::create_dir(here.join("shown")).unwrap();
    plant(&here.join("real/tree"));
    folder
}

/// Backs up what is shown by one more mount, whose numbers begin at `first`. Returns what there was
/// to see, the answer, and the number of files that the backup opened.
fn day(here: &Path, numbers: Numbers, first: u64, more: &[&str]) -> (Snapshot, Value, u64) {
    let mounted = Renumbered::mount(&here.join("real"), &here.join("shown"), numbers, first);
    let was = snapshot(&here.join("shown/tree"));
    let before = mounted.opened();
    let done = backup(here, more);
    (was, done, mounted.opened() - before)
}

#[test]
fn inode_numbers_that_change_with_each_mount() {
    testkit::require!(Fuse);
    let folder = shown();
    let here = folder.path();
    let tree = here.join("real/tree");
    let (was, first, opened) = day(here, Numbers::OfFiles, 1_000_000, &[]);
    assert_eq!((stored(&first, "full"), opened > 0), (FOLDERS + OTHERS, true));
    comes_back(here, &was, "first");

    // Other numbers, and nothing else.
    let (was, second, opened) = day(here, Numbers::OfFiles, 9_000_000, &["-i"]);
    assert_eq!(second["set"]["level"], 1);
    assert_eq!((second["set"]["unchanged"].as_u64(), opened), (Some(OTHERS), 0), "{second}");
    assert_eq!((stored(&second, "untrusted"), stored_in_all(&second)), (FOLDERS, FOLDERS));
    comes_back(here, &was, "second");

    // Numbers that were those of other files before.
    let (was, third, opened) = day(here, Numbers::OfFiles, 9_000_001, &["-i"]);
    assert_eq!((stored_in_all(&third), opened), (FOLDERS, 0), "{third}");
    comes_back(here, &was, "third");

    // A content that is changed through one of its names, and a folder that is renamed.
    fs::write(tree.join("b/zwei"), "another content").unwrap();
    fs::rename(tree.join("a/deep"), tree.join("b/deep")).unwrap();
    let (was, fourth, opened) = day(here, Numbers::OfFiles, 9_000_003, &["-i"]);
    assert_eq!(stored(&fourth, "size"), 2, "{fourth}");
    // The moved folder and its file, whose other name is stored as a link to it.
    assert_eq!((stored(&fourth, "new"), opened > 0), (2, true), "{fourth}");
    comes_back(here, &was, "fourth");
    let (was, fifth, opened) = day(here, Numbers::OfFiles, 1_000_000, &["-i"]);
    assert_eq!((stored_in_all(&fifth), opened), (FOLDERS, 0), "{fifth}");
    comes_back(here, &was, "fifth");
}

/// Where each name has a number of its own, names of one file cannot be seen as such; each comes
/// back with its content.
#[test]
fn inode_numbers_of_names() {
    testkit::require!(Fuse);
    let folder = shown();
    let here = folder.path();
    let (was, ..) = day(here, Numbers::OfNames, 1, &[]);
    comes_back(here, &was, "first");
    fs::write(here.join("real/tree/aaa"), "so that all numbers move on").unwrap();
    let (was, second, opened) = day(here, Numbers::OfNames, 1, &["-i"]);
    assert_eq!((stored(&second, "new"), opened), (1, 1), "{second}");
    assert_eq!(second["set"]["unchanged"], OTHERS, "{second}");
    comes_back(here, &was, "second");
}

fn text(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// A disk on another device: as after a start of the machine, at another port, or a snapshot of it.
#[test]
fn a_device_with_another_number() {
    testkit::require!(Ext4);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (shown, other) = (here.join("shown"), here.join("other"));
    let (disk, copy) = (text(here, "disk"), text(here, "copy"));
    image(Path::new(&disk), 16 << 20, &["mkfs.ext4", "-q", "-F"]);
    let device = |mounted: &Mounted| fs::metadata(mounted.path()).unwrap().dev();

    let mounted = Mounted::new(&["-o", "loop", &disk], &shown);
    plant(&shown.join("tree"));
    // Links are not doubtful from the second on before the run began.
    std::thread::sleep(TICK + std::time::Duration::from_secs(1));
    let first_device = device(&mounted);
    let was = snapshot(&shown.join("tree"));
    assert_eq!(stored(&backup(here, &[]), "full"), FOLDERS + OTHERS);
    drop(mounted);

    fs::copy(&disk, &copy).unwrap();
    // The first device is in use, so that the copy gets another.
    let _first = Mounted::new(&["-o", "loop,ro", &disk], &other);
    let mounted = Mounted::new(&["-o", "loop,ro", &copy], &shown);
    assert_ne!(device(&mounted), first_device);
    let second = backup(here, &["-i"]);
    assert_eq!(second["set"]["level"], 1);
    assert_eq!(stored_in_all(&second), 0, "{second}");
    assert_eq!(second["set"]["unchanged"], FOLDERS + OTHERS);
    comes_back(here, &was, "second");
}

/// Each day a snapshot of the day is mounted at the source: it is the same file system.
#[test]
fn a_snapshot_of_btrfs_at_the_same_place() {
    testkit::require!(Btrfs);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (shown, all) = (here.join("shown"), here.join("all"));
    let disk = text(here, "disk");
    image(Path::new(&disk), 256 << 20, &["mkfs.btrfs", "-q", "-f"]);
    let _all = Mounted::new(&["-o", "loop", &disk], &all);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.contains(all.to_str().unwrap())).unwrap();
    let device = mount.split(' ').next().unwrap();
    let at = |name: &str| text(&all, name);
    done("btrfs", &["subvolume", "create", &at("live")]);
    plant(&all.join("live/tree"));
    std::thread::sleep(TICK + std::time::Duration::from_secs(1));
    let day = |name: &str, more: &[&str]| {
        done("btrfs", &["subvolume", "snapshot", "-r", &at("live"), &at(name)]);
        let _mounted = Mounted::new(&["-o", &format!("subvol={name}"), device], &shown);
        (snapshot(&shown.join("tree")), backup(here, more))
    };
    assert_eq!(stored(&day("monday", &[]).1, "full"), FOLDERS + OTHERS);
    let (_, tuesday) = day("tuesday", &["-i"]);
    assert_eq!((&tuesday["set"]["level"], stored_in_all(&tuesday)), (&1.into(), 0), "{tuesday}");
    fs::write(all.join("live/tree/one"), "changed").unwrap();
    let (was, wednesday) = day("wednesday", &["-i"]);
    assert_eq!((stored(&wednesday, "size"), stored_in_all(&wednesday)), (1, 2), "{wednesday}");
    comes_back(here, &was, "wednesday");
}
