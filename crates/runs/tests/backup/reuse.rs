//! Inode numbers that are reused while a backup runs: the new file is not taken for another name of
//! the old one, whether or not the file system records birth times.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use archive::chunk::Compression;
use runs::backup::BackupOptions;
use runs::sweep::ReadOrder;
use tempfile::tempdir;

use crate::harness::{Finished, options, run};
use crate::index::check_archive;
use crate::living::{Thing, World, mount};
use crate::tools::python_members;

/// Most entries of a batch: a file this many entries later is opened after the first was finished.
const BATCH: usize = 300;

/// Type and content of a file of the archive, by the end of its path.
fn file(finished: &Finished, path: &str) -> (u8, Vec<u8>) {
    let parts = check_archive(finished, Compression::None);
    let members = python_members(&finished.archive);
    let member = members.iter().find(|it| it.path.ends_with(path.as_bytes())).unwrap();
    let content = &parts.archive[member.content_offset as usize..][..member.size as usize];
    (member.type_flag, content.to_vec())
}

/// Files are read in the order of their names, one after the other.
fn one_reader(source: &Path, target: &Path) -> BackupOptions {
    let (read_threads, read_order) = (Some(1), ReadOrder::Name);
    BackupOptions { read_threads, read_order, ..options(&[source], target) }
}

fn assert_told(finished: &Finished, new: &str, old: &str) {
    let told = finished.warnings();
    let [(object, text)] = &told[..] else { panic!("one warning: {told:?}") };
    assert!(object.ends_with(new), "{object}");
    assert!(text.starts_with("has the inode number of ") && text.contains(old), "{text}");
}

#[test]
fn without_times_of_birth() {
    testkit::require!(Fuse);
    let mut world = World::steady("m", |world| {
        let before = world.inode("z");
        ["a", "z", "z2"].into_iter().for_each(|name| world.unlink(name));
        world.add_file("z", 3000);
        world.link("z", "z2");
        assert_eq!(world.inode("z"), before, "the number is used again");
    });
    world.add_file("a", 3000);
    (0..BATCH).for_each(|number| world.add_file(&format!("b{number:04}"), 10));
    world.link("a", "z");
    world.link("a", "z2");
    let mounted = mount(world);
    let folder = tempdir().unwrap();
    let finished = run(&one_reader(mounted.path(), &folder.path().join("archive")));
    let (flag, content) = file(&finished, "/z");
    assert_eq!(flag, b'0', "a file of its own");
    assert!(mounted.stop().was("z", &Thing::File(Arc::new(content.clone()))));
    assert_ne!(content, file(&finished, "/a").1);
    assert_eq!(file(&finished, "/z2").0, b'1', "the new file has its own other name");
    assert_told(&finished, "/z", "/a");
}

/// A new file with this inode number; `None` if the file system does not reuse it.
fn take_number(folder: &Path, wanted: u64) -> Option<PathBuf> {
    let made = (0..5000).map(|number| folder.join(format!("try-{number}")));
    let mut others = Vec::new();
    let mut found = None;
    for path in made {
        fs::write(&path, "").unwrap();
        if fs::metadata(&path).unwrap().ino() == wanted {
            found = Some(path);
            break;
        }
        others.push(path);
    }
    others.iter().for_each(|path| fs::remove_file(path).unwrap());
    found
}

#[test]
fn on_the_file_system_of_this_machine() {
    testkit::require!(Fuse, Mounts);
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("m")).unwrap();
    fs::write(tree.join("a"), "the old file").unwrap();
    (0..BATCH).for_each(|number| fs::write(tree.join(format!("b{number:04}")), "x").unwrap());
    fs::hard_link(tree.join("a"), tree.join("z")).unwrap();
    let reused = Arc::new(Mutex::new(false));
    let world = World::steady("now", {
        let (tree, outside, reused) = (tree.clone(), folder.path().to_owned(), Arc::clone(&reused));
        move |_| {
            let number = fs::metadata(tree.join("z")).unwrap().ino();
            for name in ["a", "z"] {
                fs::remove_file(tree.join(name)).unwrap();
            }
            let new = take_number(&outside, number);
            *reused.lock().unwrap() = new.is_some();
            let new = new.unwrap_or_else(|| outside.join("other"));
            fs::write(&new, "the new file").unwrap();
            fs::rename(&new, tree.join("z")).unwrap();
            fs::hard_link(tree.join("z"), outside.join("z2")).unwrap();
        }
    });
    let mounted = mount(world);
    std::process::Command::new("mount")
        .arg("--bind")
        .args([mounted.path(), &tree.join("m")])
        .status()
        .map(|status| assert!(status.success(), "this test needs mount --bind"))
        .unwrap();
    let bound = crate::sources::Mount(tree.join("m"));
    let finished = run(&one_reader(&tree, &folder.path().join("archive")));
    drop(bound);
    assert_eq!(file(&finished, "/z"), (b'0', b"the new file".to_vec()));
    assert_eq!(file(&finished, "/a"), (b'0', b"the old file".to_vec()));
    if *reused.lock().unwrap() {
        assert_told(&finished, "/z", "/a");
    } else {
        assert_eq!(finished.warnings(), [], "no number was used again here");
    }
}

#[test]
fn a_file_that_only_gets_another_name_stays_one_file() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), "one file").unwrap();
    fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
    let finished = run(&one_reader(&tree, &folder.path().join("archive")));
    assert_eq!(file(&finished, "/b").0, b'1');
    assert_eq!(finished.warnings(), []);
}
