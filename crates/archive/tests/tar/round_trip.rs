//! Encodes and decodes random members.

use crate::read_all::{Item, members, read};
use archive::encode::{
    EncodeError, encode_end_of_archive, encode_global_header, encode_member, encoded_bytes,
};
use archive::header::padding_bytes;
use archive::malformed::Malformed;
use archive::member::{Extent, Member, MemberKind, Timestamp};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// A plain file with nothing special about it.
pub fn plain(path: &[u8]) -> Member {
    Member {
        path: path.to_vec(),
        kind: MemberKind::File,
        mode: 0o644,
        uid: 1000,
        gid: 1000,
        user: b"someone".to_vec(),
        group: b"users".to_vec(),
        modified: Timestamp { seconds: 1_700_000_000, nanoseconds: 123_456_789 },
        size_bytes: 0,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    }
}

/// The archive of `members`, each with the content it needs.
pub fn archive_of(members: &[Member]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members {
        let before = out.len();
        encode_member(member, &mut out).expect("a valid member");
        let encoded = (out.len() - before) as u64;
        assert_eq!(encoded_bytes(member), Ok(encoded), "{member:?}");
        assert_eq!(encoded % 512, 0);
        let content_bytes = member.content_bytes();
        out.extend((0..content_bytes).map(content_byte));
        out.resize(out.len() + padding_bytes(content_bytes) as usize, 0);
    }
    encode_end_of_archive(&mut out);
    out
}

/// The content that [`archive_of`] stores.
pub fn content_byte(at: u64) -> u8 {
    (at % 251) as u8
}

pub fn path() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => b'a'..=b'e', 1 => 1u8..=255];
    let component = vec(byte, 1..60).prop_map(|mut bytes| {
        bytes.retain(|byte| *byte != b'/');
        if bytes.is_empty() { b"x".to_vec() } else { bytes }
    });
    vec(component, 1..9).prop_map(|components| components.join(&b'/'))
}

fn target() -> impl Strategy<Value = Vec<u8>> {
    vec(1u8..=255, 1..300)
}

fn extents() -> impl Strategy<Value = (u64, Vec<Extent>)> {
    let gaps = vec((0u64..100_000, 1u64..5), 0..60);
    (gaps, 0u64..512, 0u64..5_000).prop_map(|(gaps, cut, tail)| {
        let mut end = 0;
        let mut extents = Vec::new();
        for (gap, units) in gaps {
            extents.push(Extent { offset_bytes: end + gap, length_bytes: units * 512 });
            end += gap + units * 512;
        }
        if let Some(last) = extents.last_mut() {
            last.length_bytes -= cut;
        }
        (end + tail, extents)
    })
}

fn kind() -> impl Strategy<Value = (MemberKind, u64, Option<Vec<Extent>>)> {
    let none = |kind| (kind, 0, None);
    prop_oneof![
        (0u64..3000).prop_map(|size| (MemberKind::File, size, None)),
        extents().prop_map(|(size, extents)| (MemberKind::File, size, Some(extents))),
        Just(none(MemberKind::Directory)),
        target().prop_map(move |target| none(MemberKind::SymbolicLink { target })),
        path().prop_map(move |target| none(MemberKind::HardLink { target })),
        Just(none(MemberKind::Fifo)),
        any::<(u32, u32)>()
            .prop_map(move |(major, minor)| none(MemberKind::CharacterDevice { major, minor })),
        any::<(u32, u32)>()
            .prop_map(move |(major, minor)| none(MemberKind::BlockDevice { major, minor })),
    ]
}

/// ACLs in the kernel's form: ordered, with a mask if there are named entries.
pub fn acl() -> impl Strategy<Value = Vec<u8>> {
    let named = || btree_map(any::<u32>(), 0u16..8, 0..4);
    (named(), named(), 0u16..8, 0u16..8).prop_map(|(users, groups, owner, other)| {
        let mut binary = 2u32.to_le_bytes().to_vec();
        let mut push = |tag: u16, permissions: u16, id: u32| {
            binary.extend_from_slice(&tag.to_le_bytes());
            binary.extend_from_slice(&permissions.to_le_bytes());
            binary.extend_from_slice(&id.to_le_bytes());
        };
        push(0x01, owner, u32::MAX);
        users.iter().for_each(|(id, permissions)| push(0x02, *permissions, *id));
        push(0x04, owner, u32::MAX);
        groups.iter().for_each(|(id, permissions)| push(0x08, *permissions, *id));
        push(0x10, 7, u32::MAX);
        push(0x20, other, u32::MAX);
        binary
    })
}

fn time() -> impl Strategy<Value = Timestamp> {
    let seconds = prop_oneof![0i64..4_000_000_000, i64::MIN + 1..=i64::MAX, -3i64..3];
    let nanoseconds = prop_oneof![Just(0u32), 0u32..1_000_000_000, Just(500_000_000)];
    (seconds, nanoseconds).prop_map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds })
}

prop_compose! {
    pub fn member()(
        path in path(),
        (kind, size_bytes, sparse) in kind(),
        mode in 0u32..0o10000,
        (uid, gid) in prop_oneof![any::<(u64, u64)>(), (0u64..3_000_000, 0u64..3_000_000)],
        (user, group) in (vec(1u8..=255, 0..40), vec(b'a'..=b'z', 0..34)),
        modified in time(),
        xattrs in btree_map(vec(1u8..=255, 1..30), any::<Vec<u8>>(), 0..4),
        (acl_access, acl_default) in (prop::option::of(acl()), prop::option::of(acl())),
    ) -> Member {
        Member {
            path, kind, mode, uid, gid, user, group, modified, size_bytes, sparse,
            xattrs: xattrs.into_iter().collect(),
            acl_access,
            acl_default,
        }
    }
}

proptest! {
    #[test]
    fn members_round_trip(written in vec(member(), 0..8)) {
        let archive = archive_of(&written);
        prop_assert_eq!(&archive, &archive_of(&written), "deterministic");
        let read = members(&archive);
        prop_assert_eq!(read.len(), written.len());
        for (written, (read, content)) in written.iter().zip(read) {
            prop_assert_eq!(written, &read);
            let expected: Vec<u8> = (0..written.content_bytes()).map(content_byte).collect();
            prop_assert_eq!(expected, content);
        }
    }

    #[test]
    fn global_headers_round_trip(values in vec(any::<Vec<u8>>(), 0..5)) {
        let records: Vec<(&[u8], &[u8])> =
            values.iter().map(|value| (&b"comment"[..], value.as_slice())).collect();
        let mut out = Vec::new();
        encode_global_header("GlobalHead", &records, &mut out).expect("valid keywords");
        let expected: Vec<_> =
            records.iter().map(|(keyword, value)| (keyword.to_vec(), value.to_vec())).collect();
        prop_assert_eq!(read(&out), [Item::Global(expected)]);
    }
}

#[test]
fn keywords_that_no_reader_could_get_back_are_refused() {
    let check = |keyword: &[u8], expected| {
        let mut out = Vec::new();
        assert_eq!(encode_global_header("GlobalHead", &[(keyword, b"v")], &mut out), Err(expected));
        assert_eq!(out, b"");
    };
    check(b"a=b", EncodeError::Keyword);
    check(b"", EncodeError::Empty { what: "keyword" });
    check(b"a\0", EncodeError::Nul { what: "keyword" });
}

#[test]
fn a_plain_file_without_fractions_is_one_unit() {
    let mut member = plain(b"etc/fstab");
    member.modified.nanoseconds = 0;
    assert_eq!(encoded_bytes(&member), Ok(512));
    member.modified.nanoseconds = 1;
    assert_eq!(encoded_bytes(&member), Ok(3 * 512));
}

#[test]
fn sizes_at_the_edge_of_the_field() {
    let edge = 8u64 << 30;
    for (size_bytes, units) in [(edge - 1, 1), (edge, 3), (1 << 62, 3)] {
        let mut member = plain(b"large");
        member.modified.nanoseconds = 0;
        member.size_bytes = size_bytes;
        let mut out = Vec::new();
        encode_member(&member, &mut out).expect("a valid member");
        assert_eq!(out.len(), units * 512);
        match read(&out).as_slice() {
            [Item::Member { member: read, .. }] => assert_eq!(**read, member),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn path_edges_keep_their_bytes() {
    let component = |length: usize| vec![b'n'; length];
    let mut paths: Vec<Vec<u8>> = (98..=102).chain(254..=260).map(component).collect();
    for (prefix, name) in [(1, 100), (155, 100), (155, 99), (156, 100), (155, 101), (50, 51)] {
        paths.push([component(prefix), component(name)].join(&b'/'));
    }
    paths.push([vec![b'p'; 99], b"/".to_vec(), component(160)].concat());
    paths.push([b"/".to_vec(), component(100)].concat());
    paths.push([b"/".to_vec(), component(99)].concat());
    for path in paths {
        for kind in
            [MemberKind::File, MemberKind::Directory, MemberKind::HardLink { target: path.clone() }]
        {
            let mut member = plain(&path);
            member.kind = kind;
            member.modified.nanoseconds = 0;
            assert_eq!(members(&archive_of(&[member.clone()])), [(member, Vec::new())]);
        }
    }
}

#[test]
fn what_no_reader_could_get_back_is_refused() {
    let check = |change: fn(&mut Member), expected: EncodeError| {
        let mut member = plain(b"file");
        change(&mut member);
        let mut out = b"before".to_vec();
        assert_eq!(encode_member(&member, &mut out), Err(expected.clone()));
        assert_eq!(out, b"before");
        assert_eq!(encoded_bytes(&member), Err(expected));
    };
    check(|m| m.path = b"".to_vec(), EncodeError::Empty { what: "path" });
    check(|m| m.path = b"a\0b".to_vec(), EncodeError::Nul { what: "path" });
    check(|m| m.path = b"a/".to_vec(), EncodeError::TrailingSlash);
    check(|m| m.user = b"a\0".to_vec(), EncodeError::Nul { what: "user name" });
    check(
        |m| m.kind = MemberKind::SymbolicLink { target: Vec::new() },
        EncodeError::Empty { what: "link target" },
    );
    check(
        |m| m.modified.nanoseconds = 1_000_000_000,
        EncodeError::Nanoseconds { nanoseconds: 1_000_000_000 },
    );
    check(|m| m.modified.seconds = i64::MIN, EncodeError::Time);
    check(|m| m.size_bytes = u64::MAX, EncodeError::Size { size_bytes: u64::MAX });
    check(|m| m.acl_access = Some(vec![1, 0, 0, 0]), EncodeError::Acl(Malformed::AclForm));
    check(
        |m| m.xattrs = vec![(b"".to_vec(), b"value".to_vec())],
        EncodeError::Empty { what: "attribute name" },
    );
    check(
        |m| m.sparse = Some(vec![Extent { offset_bytes: 0, length_bytes: 1 }]),
        EncodeError::Sparse(Malformed::MapBeyondEnd { offset_bytes: 0 }),
    );
    check(
        |m| {
            m.size_bytes = 5000;
            m.sparse = Some(vec![
                Extent { offset_bytes: 7, length_bytes: 100 },
                Extent { offset_bytes: 4096, length_bytes: 100 },
            ]);
        },
        EncodeError::Sparse(Malformed::MapPartialUnit { offset_bytes: 7 }),
    );
    let mut member = plain(b"file");
    member.xattrs = vec![(b"user.large".to_vec(), vec![0; 17 << 20])];
    let mut out = Vec::new();
    assert!(matches!(encode_member(&member, &mut out), Err(EncodeError::ExtendedTooLarge { .. })));
    assert_eq!(out, b"");
}

#[test]
fn the_root_directory_keeps_its_slash() {
    let mut root = plain(b"/");
    root.kind = MemberKind::Directory;
    assert_eq!(members(&archive_of(&[root.clone()])), [(root, Vec::new())]);
}
