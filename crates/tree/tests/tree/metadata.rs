//! Owners by name, bits and attributes that chown clears, and every kind of difference.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use archive::member::{MemberKind, Timestamp};
use tree::*;

use crate::fixture::{Archived, destination, file, hard_link, link, other, restore_one};
use crate::round_trip::exact;

/// `security.capability` in version 2: CAP_NET_RAW permitted and effective.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn capabilities_and_special_bits_outlive_the_owner() {
    testkit::require!(Root);
    let home = tempfile::tempdir().unwrap();
    let destination = destination(&home.path().join("into"), exact(ResolveMethod::Auto));
    let mut archived = file("ping", b"program");
    archived.member.uid = 1234;
    archived.member.gid = 4321;
    archived.member.mode = 0o6755;
    archived.member.xattrs = vec![(b"security.capability".to_vec(), CAPABILITY.to_vec())];
    restore_one(&mut destination.worker(), &archived).unwrap();
    let path = home.path().join("into/ping");
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    assert_eq!(metadata.mode() & 0o7777, 0o6755);
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(&path, "security.capability", &mut value[..]).unwrap();
    assert_eq!(value[..length], CAPABILITY);
}

#[test]
fn owners_by_name_then_by_number() {
    testkit::require!(Root);
    let accounts = Accounts::load();
    let (nobody, group) =
        (accounts.user_id(b"nobody").unwrap(), accounts.group_id(b"sys").unwrap());
    let named = |user: &str, group: &str| {
        let mut archived = file("x", b"");
        archived.member.uid = 777;
        archived.member.gid = 888;
        archived.member.user = user.into();
        archived.member.group = group.into();
        archived
    };
    let check = |owners, archived: Archived, expected: (u32, u32)| {
        let home = tempfile::tempdir().unwrap();
        let options = DestinationOptions { owners, ..DestinationOptions::for_this_user() };
        restore_one(&mut destination(home.path(), options).worker(), &archived).unwrap();
        let metadata = fs::metadata(home.path().join("x")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), expected, "{owners:?}");
    };
    check(Owners::Names, named("nobody", "sys"), (nobody, group));
    check(Owners::Names, named("no-such-user", "sys"), (777, group));
    check(Owners::Names, named("", ""), (777, 888));
    check(Owners::Numbers, named("nobody", "sys"), (777, 888));
    check(Owners::Ignore, named("nobody", "sys"), (0, 0));
}

/// Restores `archived` and `second`, changes the tree, and compares with `archived`.
fn check(archived: &Archived, change: &dyn Fn(&std::path::Path), expected: &[Difference]) {
    let home = tempfile::tempdir().unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut worker = destination.worker();
    restore_one(&mut worker, &file("second", b"second")).unwrap();
    restore_one(&mut worker, archived).unwrap();
    destination.finish(|problem| panic!("{problem}"));
    let options = CompareOptions { attributes: Attributes::Read, owners: CompareOwners::Compare };
    let mut live = LiveTree::open(home.path(), options, Arc::default()).unwrap();
    assert_eq!(live.compare(&archived.member).unwrap().differences, []);
    change(&home.path().join("x"));
    let differences = live.compare(&archived.member).unwrap().differences;
    let modified = |one: &&Difference| !matches!(one, Difference::Modified { .. });
    let differences: Vec<_> = differences.iter().filter(modified).cloned().collect();
    assert_eq!(differences, expected);
}

#[test]
fn every_difference_is_found() {
    let mut plain = file("x", b"content");
    plain.member.xattrs = vec![(b"user.a".to_vec(), b"1".to_vec())];
    let attribute = |name: &str, how| Difference::Attribute { name: name.into(), how };
    let set = |path: &std::path::Path, name: &str| {
        rustix::fs::setxattr(path, name, b"2", rustix::fs::XattrFlags::empty()).unwrap();
    };
    check(&plain, &|path| fs::remove_file(path).unwrap(), &[Difference::Missing]);
    check(
        &plain,
        &|path| {
            fs::remove_file(path).unwrap();
            symlink("y", path).unwrap();
        },
        &[Difference::Kind { live: EntryKind::SymbolicLink }],
    );
    check(
        &plain,
        &|path| fs::write(path, "longer content").unwrap(),
        &[Difference::Size { archived_bytes: 7, live_bytes: 14 }],
    );
    check(
        &plain,
        &|path| fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap(),
        &[Difference::Mode { archived: 0o644, live: 0o600 }],
    );
    check(&plain, &|path| set(path, "user.a"), &[attribute("user.a", AttributeDifference::Value)]);
    check(&plain, &|path| set(path, "user.b"), &[attribute("user.b", AttributeDifference::Added)]);
    check(
        &plain,
        &|path| rustix::fs::removexattr(path, "user.a").unwrap(),
        &[attribute("user.a", AttributeDifference::Missing)],
    );
    check(
        &link("x", "here"),
        &|path| {
            fs::remove_file(path).unwrap();
            symlink("there", path).unwrap();
        },
        &[Difference::LinkTarget { live: b"there".to_vec() }],
    );
    check(
        &hard_link("x", "second"),
        &|path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "second").unwrap();
        },
        &[Difference::NotLinked],
    );
}

#[test]
fn owners_and_devices_are_compared() {
    testkit::require!(Root);
    check(
        &file("x", b"content"),
        &|path| std::os::unix::fs::chown(path, Some(5), Some(6)).unwrap(),
        &[Difference::User { archived: 0, live: 5 }, Difference::Group { archived: 0, live: 6 }],
    );
    let null = other("x", MemberKind::CharacterDevice { major: 1, minor: 3 });
    check(
        &null,
        &|path| {
            fs::remove_file(path).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            let kind = rustix::fs::FileType::CharacterDevice;
            let device = rustix::fs::makedev(1, 5);
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, device).unwrap();
        },
        &[Difference::Device { live_major: 1, live_minor: 5 }],
    );
}

/// Archives that keep whole seconds are compared to the second, others to the nanosecond.
#[test]
fn times_are_compared_as_they_were_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    std::fs::write(&path, "").unwrap();
    let at = |seconds, nanoseconds| {
        let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let options = CompareOptions { attributes: Attributes::Ignore, owners: CompareOwners::Ignore };
    let mut live = LiveTree::open(home.path(), options, Arc::new(Accounts::load())).unwrap();
    let cases = [
        ((1000, 0), (1000, 500), true),
        ((1000, 7), (1000, 500), false),
        ((1000, 7), (1000, 7), true),
        ((1000, 500), (1000, 0), false),
        ((1000, 0), (1001, 0), false),
    ];
    for (was, is, same) in cases {
        at(is.0, is.1);
        let mut archived = file("file", b"").member;
        archived.mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        archived.modified = Timestamp { seconds: was.0 as i64, nanoseconds: was.1 };
        let differences = live.compare(&archived).unwrap().differences;
        assert_eq!(differences.is_empty(), same, "{was:?} {is:?}: {differences:?}");
    }
}
