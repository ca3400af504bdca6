//! Privilege is restored only with its owner, and other users' folders give no way to root's
//! privilege.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use archive::member::MemberKind;
use tree::*;

use crate::fixture::{Archived, destination, file, hard_link, link, other, restore_one};
use crate::round_trip::exact;

/// CAP_NET_RAW, permitted and effective.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const USER: u32 = 65534;

fn privileged(name: &str, uid: u64, gid: u64) -> Archived {
    let mut archived = file(name, b"program");
    archived.member.uid = uid;
    archived.member.gid = gid;
    archived.member.mode = 0o6755;
    archived.member.xattrs = vec![
        (b"security.capability".to_vec(), CAPABILITY.to_vec()),
        (b"trusted.takeup".to_vec(), b"x".to_vec()),
    ];
    archived
}

/// Set-ID bits, and how many privileged attributes.
fn found(path: &Path) -> (u32, usize) {
    let has = |name: &str| rustix::fs::getxattr(path, name, &mut [0; 64][..]).is_ok();
    let attributes = ["security.capability", "trusted.takeup"];
    let count = attributes.iter().filter(|name| has(name)).count();
    (fs::metadata(path).unwrap().mode() & 0o6000, count)
}

fn finish(worker: &mut Worker, archived: &Archived) -> Vec<MetadataProblem> {
    let Created::File(made) = worker.create_file(&archived.member).unwrap() else { panic!() };
    made.finish(&archived.member.path).unwrap()
}

#[test]
fn it_comes_back_with_its_owner_only() {
    testkit::require!(Root);
    let all = exact(ResolveMethod::Auto);
    let numbers = DestinationOptions { owners: Owners::Numbers, ..all };
    let ignore = DestinationOptions { owners: Owners::Ignore, ..all };
    let umask = DestinationOptions { modes: Modes::Umask, ..numbers };
    let with = |privileges, options| DestinationOptions { privileges, ..options };
    let cases = [
        (numbers, (0o6000, 2), 0),
        (ignore, (0, 0), 2),
        (umask, (0, 0), 2),
        (with(Privileges::Keep, ignore), (0o6000, 2), 0),
        (with(Privileges::Keep, umask), (0, 2), 2),
        (with(Privileges::Drop, numbers), (0, 0), 2),
    ];
    for (options, expected, left_off) in cases {
        let home = tempfile::tempdir().unwrap();
        let destination = destination(home.path(), options);
        let mut worker = destination.worker();
        for (name, uid) in [("user", 1234), ("root", 0)] {
            let problems = finish(&mut worker, &privileged(name, uid, uid));
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(found(&home.path().join(name)), expected, "{options:?} {name}");
        }
        assert_eq!(destination.without_privilege(), left_off, "{options:?}");
    }
}

#[test]
fn a_number_that_nobody_has() {
    testkit::require!(Root);
    let options = DestinationOptions { owners: Owners::Numbers, ..exact(ResolveMethod::Auto) };
    let all = u64::from(u32::MAX);
    for (uid, gid, bits) in [(all, 5, 0o2000), (5, all, 0o4000), (all + 1, u64::MAX, 0)] {
        let home = tempfile::tempdir().unwrap();
        let mut worker = destination(home.path(), options).worker();
        let problems = finish(&mut worker, &privileged("x", uid, gid));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].what, MetadataPart::Owner);
        assert_eq!(found(&home.path().join("x")), (bits, 0));
        let status = fs::metadata(home.path().join("x")).unwrap();
        let number = |archived: u64| if archived < all { archived as u32 } else { 0 };
        assert_eq!((status.uid(), status.gid()), (number(uid), number(gid)));
    }
}

/// A folder of root's inside a user's folder is not given to the user because an archive has a
/// folder of that name. The user's own folder gets the metadata.
#[test]
fn what_was_there_is_not_given_away() {
    testkit::require!(Root);
    for (privileges, given) in [(Privileges::WithOwner, false), (Privileges::Keep, true)] {
        let home = tempfile::tempdir().unwrap();
        let options = DestinationOptions { owners: Owners::Numbers, ..exact(ResolveMethod::Auto) };
        let options = DestinationOptions { privileges, ..options };
        for name in ["user", "user/roots", "user/own"] {
            fs::create_dir(home.path().join(name)).unwrap();
            let mode = PermissionsExt::from_mode(if name == "user" { 0o755 } else { 0o700 });
            fs::set_permissions(home.path().join(name), mode).unwrap();
        }
        for name in ["user", "user/own"] {
            chown(home.path().join(name), Some(USER), Some(USER)).unwrap();
        }
        let destination = destination(home.path(), options);
        let mut worker = destination.worker();
        let mut told = Vec::new();
        for name in ["user/roots", "user/own", "user/new"] {
            let mut archived = other(name, MemberKind::Directory);
            (archived.member.uid, archived.member.gid) = (USER.into(), USER.into());
            told.extend(worker.create_directory(&archived.member).unwrap());
        }
        drop(worker);
        destination.finish(|problem| panic!("{problem}: {}", problem.source));
        let look = |name: &str| {
            let status = fs::metadata(home.path().join(name)).unwrap();
            (status.uid(), status.mode() & 0o777)
        };
        assert_eq!(look("user/roots"), if given { (USER, 0o755) } else { (0, 0o700) });
        assert_eq!(told.len(), usize::from(!given));
        assert!(told.iter().all(|problem| problem.what == MetadataPart::FoundDirectory));
        assert_eq!(look("user/own"), (USER, 0o755));
        assert_eq!(look("user/new"), (USER, 0o755));
        let left = fs::read_dir(home.path().join("user")).unwrap().count();
        assert_eq!(left, 3, "no workshop stays");
    }
}

/// An object that another user put at the target of a hard link is not linked to.
#[test]
fn a_link_leads_to_what_was_put_there() {
    testkit::require!(Root);
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("user")).unwrap();
    chown(home.path().join("user"), Some(USER), Some(USER)).unwrap();
    let mut worker = destination(home.path(), exact(ResolveMethod::Auto)).worker();
    restore_one(&mut worker, &file("user/x", b"archived")).unwrap();
    restore_one(&mut worker, &hard_link("good", "user/x")).unwrap();
    fs::remove_file(home.path().join("user/x")).unwrap();
    fs::write(home.path().join("user/x"), "the user's").unwrap();
    let error = restore_one(&mut worker, &hard_link("bad", "user/x")).unwrap_err();
    assert!(matches!(error, RestoreError::LinkChanged { .. }), "{error:?}");
    assert_eq!(fs::read(home.path().join("good")).unwrap(), b"archived");
    assert!(!home.path().join("bad").exists());
}

/// In a folder where others can change names, a link to a symbolic link links to the link itself,
/// not to its target. An object made there has no name of its own before it is complete.
#[test]
fn a_link_to_a_symbolic_link_in_a_folder_of_others() {
    testkit::require!(Root);
    let home = tempfile::tempdir().unwrap();
    let user = home.path().join("user");
    fs::create_dir(&user).unwrap();
    chown(&user, Some(USER), Some(USER)).unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut worker = destination.worker();
    restore_one(&mut worker, &link("user/x", "nowhere")).unwrap();
    restore_one(&mut worker, &hard_link("user/y", "user/x")).unwrap();
    let inode = |name: &str| fs::symlink_metadata(user.join(name)).unwrap().ino();
    assert_eq!(inode("x"), inode("y"));
    assert_eq!(fs::read_link(user.join("y")).unwrap(), Path::new("nowhere"));
    let closed = || {
        let all = fs::read_dir(&user).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        all.filter(|it| it.is_dir() && (it.uid(), it.mode() & 0o777) == (0, 0o700)).count()
    };
    assert_eq!(closed(), 1, "the folder that only root can enter");
    drop(worker);
    destination.finish(|problem| panic!("{problem}: {}", problem.source));
    assert_eq!(closed(), 0);
}

/// Nothing is reported about a folder that stays as it is and matches the archive.
#[test]
fn a_folder_that_is_as_archived_is_not_told_of() {
    testkit::require!(Root);
    let numbers = DestinationOptions { owners: Owners::Numbers, ..exact(ResolveMethod::Auto) };
    let ignore = DestinationOptions { owners: Owners::Ignore, ..numbers };
    let cases = [
        (numbers, 0, 0o700, 0),
        (numbers, USER, 0o700, 1),
        (ignore, USER, 0o700, 0),
        (ignore, 0, 0o700, 0),
        (numbers, 0, 0o755, 1),
        (ignore, 0, 0o755, 1),
    ];
    for (options, uid, mode, told) in cases {
        let home = tempfile::tempdir().unwrap();
        for (name, mode) in [("user", 0o755), ("user/roots", 0o700)] {
            fs::create_dir(home.path().join(name)).unwrap();
            fs::set_permissions(home.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        chown(home.path().join("user"), Some(USER), Some(USER)).unwrap();
        let mut archived = other("user/roots", MemberKind::Directory);
        (archived.member.uid, archived.member.mode) = (uid.into(), mode);
        let destination = destination(home.path(), options);
        let problems = destination.worker().create_directory(&archived.member).unwrap();
        assert_eq!(problems.len(), told, "{options:?} {uid} {mode:o}: {problems:?}");
    }
}

/// A folder that was removed while a file in it was being written is made again with the file.
#[test]
fn a_folder_that_is_removed_meanwhile() {
    let home = tempfile::tempdir().unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut worker = destination.worker();
    restore_one(&mut worker, &other("folder", MemberKind::Directory)).unwrap();
    let archived = file("folder/x", b"");
    let Created::File(made) = worker.create_file(&archived.member).unwrap() else { panic!() };
    // With a name the file would be in the folder, which then could not be removed.
    let is_unnamed = fs::read_dir(home.path().join("folder")).unwrap().count() == 0;
    if is_unnamed {
        fs::remove_dir(home.path().join("folder")).unwrap();
    }
    made.finish(b"folder/x").unwrap();
    assert!(home.path().join("folder/x").is_file());
}

/// The kernel silently stores the nearest time that the file system supports.
#[test]
fn a_time_that_cannot_be_held_is_told() {
    let home = tempfile::tempdir().unwrap();
    let mut worker = destination(home.path(), exact(ResolveMethod::Auto)).worker();
    for (name, seconds) in [("a", 1 << 40), ("b", -(1 << 40)), ("c", 0), ("d", 1), ("e", 1 << 33)] {
        let mut archived = file(name, b"");
        archived.member.modified.seconds = seconds;
        let problems = finish(&mut worker, &archived);
        let held = fs::metadata(home.path().join(name)).unwrap().mtime();
        assert_eq!(problems.len(), usize::from(held != seconds), "{seconds} {problems:?}");
        assert!(problems.iter().all(|problem| problem.what == MetadataPart::Times));
    }
}

/// Attributes of a folder are set at once, privilege at the end.
#[test]
fn attributes_of_folders() {
    testkit::require!(Root, Attributes);
    let home = tempfile::tempdir().unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut archived = other("folder", MemberKind::Directory);
    archived.member.uid = 1234;
    archived.member.gid = 1234;
    archived.member.mode = 0o2755;
    archived.member.xattrs =
        vec![(b"trusted.takeup".to_vec(), b"t".to_vec()), (b"user.note".to_vec(), b"n".to_vec())];
    restore_one(&mut destination.worker(), &archived).unwrap();
    let path = home.path().join("folder");
    let has = |name: &str| rustix::fs::getxattr(&path, name, &mut [0; 64][..]).is_ok();
    assert_eq!((has("user.note"), has("trusted.takeup")), (true, false));
    destination.finish(|problem| panic!("{problem}: {}", problem.source));
    assert_eq!((has("user.note"), has("trusted.takeup")), (true, true));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o2755);
}

/// A folder that another user put in the place of a restored one gets no metadata.
#[test]
fn another_folder_at_the_end() {
    let home = tempfile::tempdir().unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut archived = other("folder", MemberKind::Directory);
    archived.member.mode = 0o777;
    restore_one(&mut destination.worker(), &archived).unwrap();
    fs::rename(home.path().join("folder"), home.path().join("moved")).unwrap();
    fs::create_dir(home.path().join("folder")).unwrap();
    fs::set_permissions(home.path().join("folder"), PermissionsExt::from_mode(0o700)).unwrap();
    let mut told = Vec::new();
    destination.finish(|problem| told.push(problem.what));
    assert_eq!(told, [MetadataPart::Directory]);
    assert_eq!(fs::metadata(home.path().join("folder")).unwrap().mode() & 0o777, 0o700);
}

/// If a closed folder could not be made, its contents are not restored into an open one. If the
/// archive has it again, and it can be made then, its contents are restored.
#[test]
fn nothing_below_a_folder_that_failed() {
    let home = tempfile::tempdir().unwrap();
    let options = DestinationOptions { overwrite: Overwrite::Refuse, ..exact(ResolveMethod::Auto) };
    fs::write(home.path().join("closed"), "in the way").unwrap();
    let mut worker = destination(home.path(), options).worker();
    let mut closed = other("closed", MemberKind::Directory);
    closed.member.mode = 0o700;
    let error = restore_one(&mut worker, &closed).unwrap_err();
    assert!(matches!(error, RestoreError::Exists { .. }), "{error:?}");
    fs::remove_file(home.path().join("closed")).unwrap();
    let below = file("closed/deeper/secret", b"secret");
    let error = restore_one(&mut worker, &below).unwrap_err();
    let is_refused = matches!(error, RestoreError::Refused { reason: Refusal::Changed, .. });
    assert!(is_refused, "{error:?}");
    assert!(!home.path().join("closed").exists());
    restore_one(&mut worker, &closed).unwrap();
    restore_one(&mut worker, &below).unwrap();
}
