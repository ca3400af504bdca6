//! A file system that is really full, in a chain: no set but whole ones, no leftover, and the next
//! run goes on when there is space.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::samples::noise;

use crate::snapshot::{assert_same, snapshot};
use crate::{TICK, answer, archive, backup, run, text};
use testkit::mounted::{Mounted, image};

/// Leaves so many bytes free, about, and returns the file that takes the others.
fn fill(mounted: &Mounted, free: u64) -> PathBuf {
    let status = rustix::fs::statvfs(mounted.path()).unwrap();
    let ballast = mounted.path().join("ballast");
    let bytes = (status.f_bavail * status.f_frsize).saturating_sub(free);
    fs::write(&ballast, vec![1; bytes as usize]).unwrap();
    ballast
}

fn names(mounted: &Mounted) -> Vec<String> {
    let names = fs::read_dir(mounted.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "lost+found");
    names.sort();
    names
}

/// Two days, then a third for which there is too little space, until there is enough.
fn too_little_space(here: &Path, mounted: &Mounted) {
    let tree = here.join("tree");
    fs::create_dir_all(tree.join("a")).unwrap();
    for number in 0..20 {
        fs::write(tree.join(format!("a/{number}")), noise(number, 20_000)).unwrap();
    }
    std::thread::sleep(TICK);
    let mut days = vec![snapshot(&tree)];
    backup(here, &[]);
    fs::write(tree.join("a/1"), "second day").unwrap();
    std::thread::sleep(TICK);
    days.push(snapshot(&tree));
    backup(here, &["-i"]);
    for number in 5..15 {
        fs::write(tree.join(format!("a/{number}")), noise(100 + number, 30_000)).unwrap();
    }
    std::thread::sleep(TICK);
    days.push(snapshot(&tree));
    let sets = names(mounted);

    // The set takes some 320 kB.
    let mut outcomes = [0, 0];
    for free in (0..12).map(|step| step * 40_000) {
        let ballast = fill(mounted, free);
        let ways: [&[&str]; 2] = [&[], &["--engine", "pread", "-b", "64k"]];
        let way = ways[(free / 40_000 % 2) as usize];
        let output = run(here, &[&["backup", "tree", "--to", "sets/", "-i"], way].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        fs::remove_file(ballast).unwrap();
        if output.status.success() {
            outcomes[1] += 1;
            break;
        }
        outcomes[0] += 1;
        assert_eq!(output.status.code(), Some(1), "{free}: {errors}");
        assert!(errors.contains("no space left on device"), "{free}: {errors}");
        assert_eq!(names(mounted), sets, "{free}: {errors}");
    }
    assert!(outcomes[0] > 3 && outcomes[1] == 1, "{outcomes:?}");
    let last = answer(here, &["restore", "sets/", "--into", "last"]);
    assert_eq!((&last["set"]["number"], &last["set"]["level"]), (&3.into(), &2.into()));
    for (number, was) in days.iter().enumerate() {
        let (set, into) = ((number + 1).to_string(), format!("day{number}"));
        text(here, &["restore", "sets/", "--set", &set, "--into", &into], 0);
        assert_same(was, &snapshot(&here.join(&into).join("tree")), &into);
    }
    let next = backup(here, &["-i"]);
    assert_eq!(next["set"]["unchanged"].as_u64(), Some(22), "{next}");
    text(here, &["verify", archive(here, &next).to_str().unwrap()], 0);
}

#[test]
fn a_chain_on_a_file_system_that_is_full() {
    testkit::require!(Mounts);
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("sets");
    let mounted = Mounted::new(&["-t", "tmpfs", "-o", "size=2m", "tmpfs"], &sets);
    too_little_space(folder.path(), &mounted);
}

/// Here space is reserved before it is used, and what is in the page cache counts late.
#[test]
fn a_chain_on_a_disk_that_is_full() {
    testkit::require!(Ext4);
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    image(&disk, 4 << 20, &["mkfs.ext4", "-q", "-F", "-m", "0"]);
    let sets = folder.path().join("sets");
    let mounted = Mounted::new(&["-o", "loop", disk.to_str().unwrap()], &sets);
    too_little_space(folder.path(), &mounted);
}

/// No inode is left: there is space, and no file can be made.
#[test]
fn a_chain_where_no_file_can_be_made() {
    testkit::require!(Mounts);
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // The root, the lock, two sets.
    let few = ["-t", "tmpfs", "-o", "size=2m,nr_inodes=4", "tmpfs"];
    let mounted = Mounted::new(&few, &here.join("sets"));
    fs::create_dir(here.join("tree")).unwrap();
    fs::write(here.join("tree/file"), "first").unwrap();
    backup(here, &[]);
    fs::write(here.join("tree/file"), "second day").unwrap();
    let done = backup(here, &["-i"]);
    let sets = names(&mounted);
    let failed = text(here, &["backup", "tree", "--to", "sets/", "-i"], 1);
    assert!(failed.contains("no space left on device"), "{failed}");
    assert_eq!(names(&mounted), sets);
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_eq!(fs::read(here.join("back/tree/file")).unwrap(), b"second day");
    fs::remove_file(archive(here, &done)).unwrap();
    let next = backup(here, &["-i"]);
    assert_eq!((&next["set"]["number"], &next["set"]["level"]), (&2.into(), &1.into()), "{next}");
}
