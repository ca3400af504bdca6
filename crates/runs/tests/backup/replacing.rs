//! The file that a new archive replaces: its owner, mode and ACL are kept, and an archive that has
//! far less does not replace a good one.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use device::target::{Existing, FileMode};
use runs::backup::{BackupOptions, Shrinking};
use tempfile::{TempDir, tempdir};
use testkit::samples::noise;

use crate::harness::{Finished, options, run, run_clean, try_run};
use crate::sources::Mount;

struct Place {
    folder: TempDir,
    wanted: BackupOptions,
}

/// A tree of some files, and a target beside it.
fn place(files: u64) -> Place {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..files {
        fs::write(tree.join(number.to_string()), noise(number, 10_000)).unwrap();
    }
    let wanted = options(&[&tree], &folder.path().join("set.tar"));
    Place { folder, wanted: BackupOptions { existing: Existing::Replace, ..wanted } }
}

impl Place {
    fn target(&self) -> PathBuf {
        self.folder.path().join("set.tar")
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Owner, group and permissions of the target.
    fn access(&self) -> (u32, u32, u32) {
        let status = fs::metadata(self.target()).unwrap();
        (status.uid(), status.gid(), status.mode() & 0o7777)
    }

    fn assert_nothing_left(&self) {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|it| it.unwrap().file_name());
        let hidden: Vec<_> =
            names.filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn owner_and_mode_stay() {
    testkit::require!(Root);
    for (owner, mode) in [((1234, 1235), 0o600), ((0, 1235), 0o640), ((1234, 0), 0o444)] {
        let place = place(3);
        fs::write(place.target(), "old").unwrap();
        chown(place.target(), Some(owner.0), Some(owner.1)).unwrap();
        set_mode(&place.target(), mode);
        run_clean(&place.wanted);
        assert_eq!(place.access(), (owner.0, owner.1, mode));
    }
}

#[test]
fn a_new_archive_of_roots_is_roots_alone() {
    testkit::require!(Root);
    let place = place(3);
    run_clean(&place.wanted);
    assert_eq!(place.access(), (0, 0, 0o600));
    let asked = BackupOptions { mode: FileMode::Exactly(0o644), ..place.wanted.clone() };
    run_clean(&asked);
    assert_eq!(place.access().2, 0o644);
    run_clean(&place.wanted);
    assert_eq!(place.access().2, 0o644, "what it was before");
    fs::remove_file(place.target()).unwrap();
    let asked = BackupOptions { mode: FileMode::Exactly(0o640), ..place.wanted.clone() };
    run_clean(&asked);
    assert_eq!(place.access(), (0, 0, 0o640));
}

#[test]
fn a_set_id_bit_is_not_handed_on() {
    let place = place(1);
    fs::write(place.target(), "old").unwrap();
    set_mode(&place.target(), 0o6755);
    run_clean(&place.wanted);
    assert_eq!(place.access().2, 0o755);
}

const ACL: &str = "system.posix_acl_access";

/// An ACL in the kernel's format: owner rw, user 1234 r, group r, mask r, others nothing.
fn acl() -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    let entries = [(1u16, 6u16, u32::MAX), (2, 4, 1234), (4, 4, u32::MAX), (16, 4, u32::MAX)];
    for (tag, rights, id) in entries.into_iter().chain([(32, 0, u32::MAX)]) {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&rights.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn acl_of(path: &Path) -> Option<Vec<u8>> {
    let mut room = [0; 1000];
    let bytes = rustix::fs::getxattr(path, ACL, &mut room[..]).ok()?;
    Some(room[..bytes].to_vec())
}

#[test]
fn the_acl_stays_and_that_of_the_folder_does_not_come() {
    testkit::require!(AccessRules);
    let place = place(1);
    let flags = rustix::fs::XattrFlags::empty();
    fs::write(place.target(), "old").unwrap();
    rustix::fs::setxattr(place.target(), ACL, &acl(), flags).unwrap();
    run_clean(&place.wanted);
    assert_eq!(acl_of(&place.target()), Some(acl()));
    assert_eq!(place.access().2, 0o640, "the mask is where the group's rights are shown");
    fs::remove_file(place.target()).unwrap();
    fs::write(place.target(), "old").unwrap();
    set_mode(&place.target(), 0o640);
    rustix::fs::setxattr(place.folder.path(), "system.posix_acl_default", &acl(), flags).unwrap();
    run_clean(&place.wanted);
    assert_eq!((acl_of(&place.target()), place.access().2), (None, 0o640));
}

#[test]
fn a_pipe_keeps_them_too() {
    testkit::require!(Root);
    let place = place(1);
    fs::write(place.target(), "old").unwrap();
    chown(place.target(), Some(1234), Some(1235)).unwrap();
    set_mode(&place.target(), 0o600);
    let options = runs::pipe::PipeOptions {
        from: place.tree().join("0").into(),
        to: place.target().into(),
        block_bytes: 4096,
        ring_bytes: 1 << 20,
        start_fill_percent: 0,
        rate_limit_bytes_per_second: None,
        last_block: flow::ring::LastBlock::Short,
        engine: flow::backend::Engine::Auto,
        existing: Existing::Replace,
        mode: FileMode::Usual,
    };
    let monitor = crate::harness::Recorder::default();
    runs::pipe::pipe(&options, &monitor, &flow::cancel::Cancel::new()).unwrap();
    assert_eq!(place.access(), (1234, 1235, 0o600));
    assert_eq!(fs::read(place.target()).unwrap(), noise(0, 10_000));
}

/// Runs a backup that must leave the archive that is there.
fn assert_refused(place: &Place, wanted: &BackupOptions, expected: &str) {
    let before = fs::read(place.target()).unwrap();
    let error = try_run(wanted).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(fs::read(place.target()).unwrap() == before, "the old archive is there");
    place.assert_nothing_left();
}

#[test]
fn an_empty_mount_point_does_not_replace_a_good_archive() {
    testkit::require!(Mounts);
    for compression in [
        archive::chunk::Compression::None,
        archive::chunk::Compression::Zstd { level: 1 },
        archive::chunk::Compression::Gzip { level: 1 },
    ] {
        let mut place = place(20);
        place.wanted.compression = compression;
        run_clean(&place.wanted);
        let hidden = Mount::tmpfs(&place.tree(), "size=1m");
        assert_refused(&place, &place.wanted, " instead of 21 members, ");
        let forced = BackupOptions { shrinking: Shrinking::Allow, ..place.wanted.clone() };
        assert_eq!(run_clean(&forced).report.members, 1);
        drop(hidden);
        run_clean(&place.wanted);
    }
}

#[test]
fn half_of_the_bytes_or_of_the_members_is_missed() {
    let place = place(10);
    run_clean(&place.wanted);
    for number in 0..4 {
        fs::remove_file(place.tree().join(number.to_string())).unwrap();
    }
    run_clean(&place.wanted);
    for number in 4..8 {
        fs::remove_file(place.tree().join(number.to_string())).unwrap();
    }
    assert_refused(&place, &place.wanted, " instead of 7 members, ");
    for number in 0..10 {
        fs::write(place.tree().join(number.to_string()), "small").unwrap();
    }
    assert_refused(&place, &place.wanted, ": 11 instead of 7 members, ");
}

#[test]
fn what_is_no_archive_is_replaced_by_any() {
    let place = place(0);
    fs::write(place.target(), noise(7, 1 << 20)).unwrap();
    run_clean(&place.wanted);
}

#[test]
fn a_folder_that_dies_while_it_is_listed_does_not_replace_a_good_archive() {
    testkit::require!(Fuse);
    let mut good = crate::living::World::new(1, u64::MAX);
    (0..40).for_each(|number| good.add_file(&format!("{number:02}"), 100));
    let place = place(0);
    let mounted = crate::living::mount(good);
    let wanted = BackupOptions {
        sources: vec![mounted.path().to_owned()],
        existing: Existing::Replace,
        ..place.wanted.clone()
    };
    run_clean(&wanted);
    mounted.stop().fail_listing_behind = Some(3);
    assert_refused(&place, &wanted, " instead of 41 members, ");
    mounted.stop().fail_listing_behind = Some(30);
    let Finished { report, .. } = run(&wanted);
    assert!((21..41).contains(&report.members), "{}", report.members);
}

#[test]
fn a_source_that_cannot_be_listed_ends_the_run_before_the_target_is_touched() {
    testkit::require!(Fuse);
    let place = place(3);
    run_clean(&place.wanted);
    let mut world = crate::living::World::new(1, u64::MAX);
    world.fail_listing_behind = Some(0);
    let mounted = crate::living::mount(world);
    let mut wanted = place.wanted.clone();
    wanted.sources.push(mounted.path().to_owned());
    assert_refused(&place, &wanted, "cannot open source: ");
    wanted.target = place.folder.path().join("none").into();
    try_run(&wanted).unwrap_err();
    assert!(!place.folder.path().join("none").exists());
}
