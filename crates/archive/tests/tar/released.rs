//! Archives of released versions: they must still be readable, and today's encoder must still write
//! them byte for byte. A new version adds a fixture, it never replaces one.

use crate::read_all::members;
use crate::round_trip::{archive_of, plain};
use archive::member::{Extent, Member, MemberKind, Timestamp};

/// One member of every kind and one for every record that can be written.
fn one_of_each() -> Vec<Member> {
    let member = |path: &[u8], kind| Member { kind, ..plain(path) };
    let file = |path: &[u8], size_bytes| Member { size_bytes, ..plain(path) };
    let mut members = vec![
        member(b"top", MemberKind::Directory),
        file(b"top/file", 700),
        member(b"top/link", MemberKind::HardLink { target: b"top/file".to_vec() }),
        member(b"top/symlink", MemberKind::SymbolicLink { target: b"file".to_vec() }),
        member(b"top/long", MemberKind::SymbolicLink { target: vec![b't'; 101] }),
        member(b"top/fifo", MemberKind::Fifo),
        member(b"top/sda", MemberKind::BlockDevice { major: 8, minor: 0 }),
        member(b"top/tty", MemberKind::CharacterDevice { major: 5, minor: 1 << 24 }),
        file(&[&[b'p'; 90][..], b"/", &[b'n'; 90]].concat(), 0),
        member(&[&[b'd'; 101][..], b"/\xff"].concat(), MemberKind::Directory),
        file(&[b'x'; 101], 0),
    ];
    let mut owned = file(b"owned", 1);
    (owned.uid, owned.gid, owned.mode) = (3_000_000, 4_000_000_000, 0o7777);
    (owned.user, owned.group) = (vec![b'u'; 32], vec![b'g'; 31]);
    let mut old = file(b"old", 0);
    old.modified = Timestamp { seconds: -2, nanoseconds: 500_000_000 };
    let mut whole = file(b"whole-second", 0);
    whole.modified.nanoseconds = 0;
    let mut attributed = file(b"attributed", 0);
    attributed.xattrs =
        vec![(b"user.a=b".to_vec(), b"\0\n".to_vec()), (b"user.c".to_vec(), Vec::new())];
    let entry = |tag: u8, permissions: u8, id: u32| {
        [&[tag, 0, permissions, 0][..], &id.to_le_bytes()].concat()
    };
    let entries = [
        entry(1, 7, u32::MAX),
        entry(2, 5, 1000),
        entry(4, 4, u32::MAX),
        entry(8, 6, 50),
        entry(16, 7, u32::MAX),
        entry(32, 0, u32::MAX),
    ];
    attributed.acl_access = Some([vec![2, 0, 0, 0], entries.concat()].concat());
    attributed.acl_default = attributed.acl_access.clone();
    let mut sparse = file(b"top/sparse", 100_000);
    sparse.sparse = Some(vec![
        Extent { offset_bytes: 4096, length_bytes: 512 },
        Extent { offset_bytes: 65_536, length_bytes: 100 },
    ]);
    members.extend([owned, old, whole, attributed, sparse]);
    members
}

#[test]
fn version_0_1_0() {
    let fixture: &[u8] = include_bytes!("fixtures/0.1.0.tar");
    let written = one_of_each();
    let read: Vec<Member> = members(fixture).into_iter().map(|(member, _)| member).collect();
    assert_eq!(read, written);
    assert!(archive_of(&written) == fixture, "the encoder writes other bytes than version 0.1.0");
}
