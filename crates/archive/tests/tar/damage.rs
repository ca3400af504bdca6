//! Archives that are cut, flipped, mixed up or malicious: the decoder returns, stays within its
//! limits and finds the next sound member.

use crate::header_fixtures::{Header, record};
use crate::read_all::{Item, read, read_with};
use crate::round_trip::{archive_of, member, plain};
use archive::decode::{DecodeError, DecodeLimits, Decoder, Note};
use archive::malformed::Malformed;
use proptest::collection::vec;
use proptest::prelude::*;

fn with_records(records: &[u8]) -> Vec<u8> {
    let extended = Header::ustar("x", records.len() as u64, b'x').with(records);
    [extended, Header::ustar("file", 3, b'0').with(b"abc")].concat()
}

/// The first item is `expected`, and the next file is still found.
fn check(archive: &[u8], expected: DecodeError) {
    let items = read(archive);
    assert_eq!(items[0], Item::Error(expected));
    let [_, Item::Member { content, notes, .. }] = items.as_slice() else {
        panic!("{items:?}");
    };
    assert_eq!(content, b"abc");
    assert_eq!(notes, &[Note::ExtensionLost], "the member may go by a wrong name");
}

#[test]
fn broken_records_are_errors_and_the_file_is_still_found() {
    check(&with_records(b"999 path=x\n"), Malformed::RecordExtent.into());
    check(&with_records(b"-5 path=x\n"), Malformed::RecordLength.into());
    check(&with_records(b"8 path=x\n"), Malformed::RecordNewline.into());
    check(&with_records(b"11 path=x\n5"), Malformed::RecordNewline.into());
    check(&with_records(b"9 path-x\n"), Malformed::RecordKeyword.into());
    check(&with_records(b"99999999999999999999999999 path=x\n"), Malformed::RecordLength.into());
    let value = |keyword: &str| DecodeError::Value { keyword: keyword.as_bytes().to_vec() };
    check(&with_records(&record("size", b"-5")), value("size"));
    check(&with_records(&record("size", b"99999999999999999999")), value("size"));
    check(&with_records(&record("size", b"9223372036854775807")), value("size"));
    check(&with_records(&record("path", b"a\0b")), value("path"));
    check(&with_records(&record("GNU.sparse.numbytes", b"5")), value("GNU.sparse.numbytes"));
    check(&with_records(&record("GNU.sparse.map", b"1,2,3")), value("GNU.sparse.map"));
}

#[test]
fn values_that_a_member_can_do_without_become_notes() {
    let records = [
        record("uid", b"x"),
        record("mtime", b"yesterday"),
        record("uname", b"a\0"),
        record("LIBARCHIVE.xattr.user.a", b"!"),
        record("SCHILY.acl.access", b"user:rubbish"),
    ]
    .concat();
    let items = read(&with_records(&records));
    let [Item::Member { member, notes, .. }] = items.as_slice() else { panic!("{items:?}") };
    // If the owner cannot be read it is the user nobody, not the header's owner, so the file gets
    // no privilege.
    assert_eq!((member.uid, member.modified.seconds), (u64::MAX, 1_000_000));
    assert_eq!((member.user.as_slice(), &member.acl_access), (&b"joerg"[..], &None));
    assert_eq!(notes.len(), 5);
    assert!(notes.contains(&Note::BadValue { keyword: b"uid".to_vec() }));
    for note in notes {
        assert!(!note.to_string().is_empty());
    }
}

#[test]
fn extended_headers_beyond_the_limit_are_refused_and_passed_over() {
    let limits = DecodeLimits {
        extended_bytes_max: 1000,
        global_bytes_max: 1000,
        long_name_bytes_max: 600,
        extents_max: 4,
    };
    let comment = |bytes| record("comment", &vec![b'c'; bytes]);
    let first_error = |archive: &[u8]| {
        let mut items = read_with(Decoder::new(limits), archive);
        assert!(matches!(items.pop(), Some(Item::Member { content, .. }) if content == b"abc"));
        items.into_iter().find_map(|item| match item {
            Item::Error(error) => Some(error),
            _ => None,
        })
    };
    let header =
        |typeflag, content: &[u8]| Header::gnu("x", content.len() as u64, typeflag).with(content);
    let file = Header::ustar("file", 3, b'0').with(b"abc");
    let too_large = |bytes| Some(DecodeError::ExtendedTooLarge { bytes, limit_bytes: 1000 });

    let two = [header(b'x', &comment(400)), header(b'x', &comment(400)), file.clone()].concat();
    assert_eq!(first_error(&two), None);
    let three = [header(b'x', &comment(400)), two].concat();
    assert_eq!(first_error(&three), too_large(3 * 413));
    let global = record("uname", &[b'u'; 600]);
    let path = record("path", &[b'p'; 600]);
    let globals = [header(b'g', &global), header(b'g', &path), file.clone()].concat();
    assert_eq!(first_error(&globals), too_large((5 + 600 + 256) + (4 + 600 + 256)));
    let name = [header(b'L', &[b'n'; 601]), file.clone()].concat();
    let error = DecodeError::NameTooLong { bytes: 601, limit_bytes: 600 };
    assert_eq!(first_error(&name), Some(error));
    // Setting one keyword again and again needs no more memory.
    let again = [vec![header(b'g', &comment(900)); 20].concat(), file].concat();
    assert_eq!(first_error(&again), None);
}

#[test]
fn headers_that_claim_much_reserve_nothing() {
    let huge = Header::ustar("x", 16 << 20, b'x').with(b"");
    assert_eq!(read(&huge), [Item::Error(DecodeError::Truncated)]);
    let absurd = Header::ustar("x", 0, b'L').put(124, &[0x80, 0, 0, 0, 0x70, 0, 0, 0, 0, 0, 0, 0]);
    let items = read(&[absurd.with(b""), vec![1; 5120]].concat());
    assert!(matches!(items[0], Item::Error(DecodeError::NameTooLong { .. })));
    assert_eq!(items[1..], [Item::Error(DecodeError::Truncated)]);
}

#[test]
fn sparse_maps_beyond_the_limit_are_refused() {
    let limits = DecodeLimits { extents_max: 4, ..DecodeLimits::default() };
    let runs: Vec<(u64, u64)> = (0..6).map(|at| (at * 4096, 512)).collect();
    let content = vec![b'c'; 6 * 512];
    let expected = Malformed::MapTooMany { limit: 4 };
    let check = |archive: &[u8]| {
        let items = read_with(Decoder::new(limits), archive);
        assert!(
            matches!(&items[0], Item::Error(DecodeError::Sparse { source, .. })
                if *source == expected),
            "{items:?}"
        );
    };
    let lines = |separator: &str| {
        let numbers = runs.iter().flat_map(|(offset, length)| [*offset, *length]);
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(separator)
    };
    let sparse = |records: &[u8], content: &[u8]| {
        let extended = Header::ustar("x", records.len() as u64, b'x').with(records);
        let file = Header::ustar("file", content.len() as u64, b'0').with(content);
        [extended, file].concat()
    };
    let real = record("GNU.sparse.size", b"30000");
    let map = record("GNU.sparse.map", lines(",").as_bytes());
    check(&sparse(&[real.clone(), map].concat(), &content));
    let pairs = runs.iter().flat_map(|(offset, length)| {
        let offset = record("GNU.sparse.offset", offset.to_string().as_bytes());
        [offset, record("GNU.sparse.numbytes", length.to_string().as_bytes())].concat()
    });
    check(&sparse(&real.into_iter().chain(pairs).collect::<Vec<u8>>(), &content));
    let version_1 = [
        record("GNU.sparse.major", b"1"),
        record("GNU.sparse.minor", b"0"),
        record("GNU.sparse.realsize", b"30000"),
    ]
    .concat();
    let mut map = format!("6\n{}\n", lines("\n")).into_bytes();
    map.resize(512, 0);
    check(&sparse(&version_1, &[map, content.clone()].concat()));
    let entries: String =
        runs[..4].iter().map(|(offset, length)| format!("{offset:011o} {length:011o} ")).collect();
    let mut extension = vec![0; 512];
    extension[..96].copy_from_slice(entries.as_bytes());
    let header = Header::gnu("file", content.len() as u64, b'S').put(386, entries.as_bytes());
    let header = header.put(482, &[1]).octal(483, 30_000);
    check(&[header.with(b""), extension, content].concat());
}

#[test]
fn sparse_maps_longer_than_the_content_are_refused() {
    let records = [
        record("GNU.sparse.major", b"1"),
        record("GNU.sparse.minor", b"0"),
        record("GNU.sparse.name", b"sparse"),
        record("GNU.sparse.realsize", b"30000"),
    ]
    .concat();
    let extended = Header::ustar("x", records.len() as u64, b'x').with(&records);
    let behind = Header::ustar("behind", 3, b'0').with(b"abc");
    for content in [&b""[..], b"3\n0\n5\n", &[b'1'; 512]] {
        let header = Header::ustar("x", content.len() as u64, b'0').with(content);
        let items = read(&[extended.clone(), header, behind.clone()].concat());
        assert!(
            matches!(&items[0], Item::Error(DecodeError::Sparse { path, .. }) if path == b"sparse"),
            "{items:?}"
        );
        assert!(matches!(&items[1], Item::Member { content, .. } if content == b"abc"));
    }
    let unknown = record("GNU.sparse.major", b"2");
    let items = read(&with_records(&unknown));
    let source = Malformed::MapVersion { major: 2, minor: 0 };
    assert_eq!(items, [Item::Error(DecodeError::Sparse { path: b"file".to_vec(), source })]);
}

#[test]
fn headers_without_a_member_behind_are_dangling() {
    let records = record("path", b"lost");
    let extended = Header::ustar("x", records.len() as u64, b'x').with(&records);
    assert_eq!(read(&extended), [Item::Error(DecodeError::Dangling)]);
    let ended = [extended.clone(), vec![0; 1024]].concat();
    assert_eq!(read(&ended), [Item::Error(DecodeError::Dangling), Item::End]);
    assert_eq!(read(&extended[..512]), [Item::Error(DecodeError::Truncated)]);
}

#[test]
fn a_damaged_header_costs_one_member() {
    let members = [plain(b"one"), plain(b"two"), plain(b"three")];
    let mut archive = archive_of(&members);
    let second = archive_of(&members[..1]).len() - 1024;
    archive[second + 1024] ^= 1;
    let paths: Vec<Vec<u8>> = read(&archive)
        .into_iter()
        .filter_map(|item| match item {
            Item::Member { member, .. } => Some(member.path),
            _ => None,
        })
        .collect();
    assert_eq!(paths, [b"one".to_vec(), b"three".to_vec()]);
}

proptest! {
    #[test]
    fn any_bytes_are_answered(units in vec(vec(any::<u8>(), 512), 0..20)) {
        read(&units.concat());
    }

    /// Flips, cuts and doubles at random places: no panic, and no member that violates the
    /// contract.
    #[test]
    fn damaged_archives_are_answered(
        members in vec(member(), 1..4),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..10),
        cut in any::<prop::sample::Index>(),
        repair in any::<bool>(),
    ) {
        let mut archive = archive_of(&members);
        for (at, byte) in flips {
            let at = at.index(archive.len());
            archive[at] = byte;
            if repair {
                repair_checksum(&mut archive, at / 512 * 512);
            }
        }
        archive.truncate(cut.index(archive.len() + 1));
        for item in read(&archive) {
            if let Item::Member { member, .. } = item {
                prop_assert!(!member.path.is_empty() && !member.path.contains(&0));
                prop_assert!(member.modified.nanoseconds < 1_000_000_000);
                prop_assert!(member.mode <= 0o7777);
                if let Some(extents) = &member.sparse {
                    let checked = archive::sparse::check_extents(extents, member.size_bytes);
                    prop_assert!(checked.is_ok());
                }
                let names: Vec<_> = member.xattrs.iter().map(|(name, _)| name).collect();
                prop_assert!(names.is_sorted());
            }
        }
    }
}

/// Gives a damaged header a matching checksum, so that the damage is not detected by it.
fn repair_checksum(archive: &mut [u8], at: usize) {
    let unit = &mut archive[at..at + 512];
    if &unit[257..262] == b"ustar" {
        unit[148..156].fill(b' ');
        let sum: u32 = unit.iter().map(|byte| u32::from(*byte)).sum();
        unit[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}
