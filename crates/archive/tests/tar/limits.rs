//! Sizes that are refused, when written and when read, and the reported memory of a member.

use archive::decode::{DecodeError, DecodeLimits, Decoder};
use archive::encode::{EncodeError, encode_member};
use archive::malformed::Malformed;
use archive::member::{Extent, Member, MemberKind, Timestamp};
use archive::sparse::EXTENTS_MAX;

use crate::header_fixtures::Header;
use crate::read_all::{Item, read_with};

fn file(size_bytes: u64, sparse: Option<Vec<Extent>>) -> Member {
    Member {
        path: b"file".to_vec(),
        kind: MemberKind::File,
        mode: 0o644,
        uid: 0,
        gid: 0,
        user: Vec::new(),
        group: Vec::new(),
        modified: Timestamp { seconds: 0, nanoseconds: 0 },
        size_bytes,
        sparse,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    }
}

/// Readers keep sizes in signed 64 bits, and round them up.
#[test]
fn sizes_that_readers_cannot_keep_are_refused() {
    let most = i64::MAX as u64 - (1 << 32);
    let encoded = |size_bytes| encode_member(&file(size_bytes, None), &mut Vec::new());
    assert!(encoded(most).is_ok());
    assert!(matches!(encoded(most + 1), Err(EncodeError::Size { .. })));
}

#[test]
fn maps_that_readers_would_refuse_are_not_written() {
    let runs = |count: usize| {
        let run = |at: usize| Extent { offset_bytes: 1024 * at as u64, length_bytes: 512 };
        let member = file(1024 * count as u64, Some((0..count).map(run).collect()));
        encode_member(&member, &mut Vec::new())
    };
    assert!(runs(EXTENTS_MAX).is_ok());
    let error = runs(EXTENTS_MAX + 1).unwrap_err();
    assert!(error.to_string().contains("1048576"), "{error}");
}

/// An old sparse file continues from extension to extension: it is refused at the first one beyond
/// the limit, and not kept until the last.
#[test]
fn extensions_of_old_sparse_files_have_an_end() {
    let entry = |at: u64| format!("{:011o} {:011o} ", at * 4096, 512).into_bytes();
    let entries = |range: std::ops::Range<u64>| range.flat_map(entry).collect::<Vec<u8>>();
    let header = Header::gnu("file", 46 * 512, b'S').put(386, &entries(0..4)).put(482, &[1]);
    let extension = |from: u64, goes_on: u8| {
        let mut unit = vec![0; 512];
        let entries = entries(from..from + 21);
        unit[..entries.len()].copy_from_slice(&entries);
        unit[504] = goes_on;
        unit
    };
    let limits = DecodeLimits { extents_max: 4, ..DecodeLimits::default() };
    let header = header.octal(483, 1 << 20).with(b"");
    let first = read_with(Decoder::new(limits), &[header.clone(), extension(4, 1)].concat());
    assert!(
        matches!(&first[0], Item::Error(DecodeError::Sparse { source, .. })
            if *source == Malformed::MapTooMany { limit: 4 }),
        "{first:?}"
    );
    let limits = DecodeLimits { extents_max: 100, ..limits };
    let all = [header, extension(4, 1), extension(25, 0)].concat();
    let whole = read_with(Decoder::new(limits), &all);
    assert!(!matches!(&whole[0], Item::Error(DecodeError::Sparse { .. })), "{whole:?}");
}

#[test]
fn every_string_of_a_member_counts() {
    let bare = Member { path: Vec::new(), ..file(0, None) }.memory_bytes();
    let [path, user, group] = [1000, 300, 70].map(Vec::with_capacity);
    let target = Vec::with_capacity(5);
    let kind = MemberKind::SymbolicLink { target };
    let member = Member { path, user, group, kind, ..file(0, None) };
    assert_eq!(member.memory_bytes() - bare, 1375);
    let lists = Member {
        path: Vec::new(),
        acl_access: Some(Vec::with_capacity(40)),
        acl_default: Some(Vec::with_capacity(2)),
        ..file(0, None)
    };
    assert_eq!(lists.memory_bytes() - bare, 42);
}
