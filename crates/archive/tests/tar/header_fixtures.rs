//! Headers that no program in Debian writes: v7, star and Solaris, and rare cases of GNU's.
//!
//! [`Header`] builds them field by field from the published layouts, independently of our own
//! encoder.

use crate::read_all::{Item, read};
use archive::decode::{DecodeError, Note, Skipped};
use archive::header::find_header;
use archive::malformed::Malformed;
use archive::member::{Extent, Member, MemberKind, Timestamp};

/// A header under construction: every field is written as raw bytes at its offset.
#[derive(Clone)]
pub struct Header([u8; 512]);

impl Header {
    /// A file header of v7 tar: octal numbers that end in a space and a NUL, no magic.
    pub fn v7(name: &str, size: u64) -> Self {
        let header = Self([0; 512]).put(0, name.as_bytes()).put(100, b"   644 \0");
        header.put(108, b"   764 \0").put(116, b"   144 \0").octal(124, size).octal(136, 1_000_000)
    }

    /// POSIX ustar: the same with a magic, names of owners and a type.
    pub fn ustar(name: &str, size: u64, typeflag: u8) -> Self {
        let header = Self::v7(name, size).put(156, &[typeflag]).put(257, b"ustar\x0000");
        header.put(265, b"joerg").put(297, b"bs")
    }

    /// star (xustar): a prefix of 131 bytes, access and change time, and a trailer.
    pub fn star(name: &str, size: u64, typeflag: u8) -> Self {
        let header = Self::ustar(name, size, typeflag);
        header.put(476, b"07346545000 ").put(488, b"07346545000 ").put(508, b"tar\0")
    }

    /// GNU tar's own format.
    pub fn gnu(name: &str, size: u64, typeflag: u8) -> Self {
        Self::ustar(name, size, typeflag).put(257, b"ustar  \0")
    }

    pub fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Twelve bytes: eleven octal digits and a space.
    pub fn octal(self, offset: usize, value: u64) -> Self {
        self.put(offset, format!("{value:011o} ").as_bytes())
    }

    /// The header with its checksum and `content`, padded.
    pub fn with(&self, content: &[u8]) -> Vec<u8> {
        let mut bytes = self.0.to_vec();
        bytes[148..156].fill(b' ');
        let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

fn only_member(archive: &[u8]) -> (Member, Vec<u8>, Vec<Note>) {
    let mut items = read(archive);
    match (items.pop(), items.is_empty()) {
        (Some(Item::Member { member, content, notes }), true) => (*member, content, notes),
        (last, _) => panic!("{items:?} {last:?}"),
    }
}

#[test]
fn v7_files_directories_and_links() {
    let (member, content, notes) = only_member(&Header::v7("usr/adm/messages", 5).with(b"hello"));
    assert_eq!(member.path, b"usr/adm/messages");
    assert_eq!((member.mode, member.uid, member.gid), (0o644, 0o764, 0o144));
    assert_eq!(member.modified, Timestamp { seconds: 1_000_000, nanoseconds: 0 });
    assert_eq!((member.kind, content.as_slice(), notes), (MemberKind::File, &b"hello"[..], vec![]));
    assert_eq!((member.user, member.group), (vec![], vec![]));

    let (member, ..) = only_member(&Header::v7("usr/adm/", 0).with(b""));
    assert_eq!((member.path.as_slice(), member.kind), (&b"usr/adm"[..], MemberKind::Directory));

    // The size of a link is that of the file, which does not follow.
    let link = Header::v7("usr/link", 5).put(156, b"1").put(157, b"usr/adm/messages");
    let (member, content, _) = only_member(&link.with(b""));
    assert_eq!(member.kind, MemberKind::HardLink { target: b"usr/adm/messages".to_vec() });
    assert_eq!((member.size_bytes, content.len()), (0, 0));
}

#[test]
fn checksums_over_signed_bytes_are_accepted() {
    let header = Header::v7("\u{fc}ber", 0);
    let mut bytes = header.with(b"");
    bytes[148..156].fill(b' ');
    let sum: i32 = bytes.iter().map(|byte| i32::from(*byte as i8)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let (member, ..) = only_member(&bytes);
    assert_eq!(member.path, "\u{fc}ber".as_bytes());
}

#[test]
fn star_headers_have_a_shorter_prefix() {
    let (member, content, _) =
        only_member(&Header::star("name", 3, b'0').put(345, b"opt/schily").with(b"abc"));
    assert_eq!(member.path, b"opt/schily/name");
    assert_eq!((member.user.as_slice(), member.group.as_slice()), (&b"joerg"[..], &b"bs"[..]));
    assert_eq!(content, b"abc");

    let prefix = [b'p'; 131];
    let (member, ..) = only_member(&Header::star("name", 0, b'0').put(345, &prefix).with(b""));
    assert_eq!(member.path, [&prefix[..], b"/name"].concat());
}

/// star keeps four runs in the header and 21 in each extension; the real size lies at 452.
#[test]
fn star_sparse_files_old_and_new() {
    let entry = |offset: u64, length: u64| format!("{offset:011o} {length:011o} ").into_bytes();
    let runs: Vec<Extent> =
        (0..6).map(|at| Extent { offset_bytes: at * 10_000, length_bytes: 512 }).collect();
    let entries: Vec<u8> =
        runs.iter().flat_map(|run| entry(run.offset_bytes, run.length_bytes)).collect();
    let base = Header::star("holes", 6 * 512, b'S').octal(452, 60_000);
    let mut extension = vec![0; 512];

    let old = base.clone().put(355, b"1").put(356, &entries[..96]);
    extension[..48].copy_from_slice(&entries[96..]);
    let data = vec![7; 6 * 512];
    let archive = [old.with(&[]), extension.clone(), data.clone()].concat();
    let (member, content, _) = only_member(&archive);
    assert_eq!((member.size_bytes, member.sparse.as_ref()), (60_000, Some(&runs)));
    assert_eq!(content, data);

    extension[..144].copy_from_slice(&entries);
    let new = base.put(345, b"/");
    let (member, content, _) = only_member(&[new.with(&[]), extension, data.clone()].concat());
    assert_eq!((member.path.as_slice(), member.size_bytes), (&b"holes"[..], 60_000));
    assert_eq!((member.sparse, content), (Some(runs), data));
}

#[test]
fn star_acls_carry_ids_behind_the_names() {
    let text = b"user::rwx,user:lisa:r-x:502,group::r-x,group:toolies:rwx:102,mask::rwx,other::r--";
    let records = record("SCHILY.acl.access", text);
    let extended = Header::star("PaxHeader", records.len() as u64, b'x').with(&records);
    let archive = [extended, Header::star("file", 0, b'0').with(b"")].concat();
    let (member, _, notes) = only_member(&archive);
    assert_eq!(notes, []);
    let acl = member.acl_access.expect("an ACL");
    assert_eq!(acl.len(), 4 + 6 * 8);
    assert_eq!(acl[4 + 8..4 + 16], [2, 0, 5, 0, 0xf6, 1, 0, 0], "user 502, r-x");
    assert_eq!(acl[4 + 24..4 + 32], [8, 0, 7, 0, 102, 0, 0, 0], "group 102, rwx");
}

pub fn record(keyword: &str, value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let length = (rest..rest + 9).find(|length| rest + length.to_string().len() == *length);
    let length = length.expect("a length of fewer than nine digits").to_string();
    [length.as_bytes(), b" ", keyword.as_bytes(), b"=", value, b"\n"].concat()
}

#[test]
fn solaris_extended_headers_and_acls() {
    let path = "very/".repeat(60) + "long";
    let records = [
        record("path", path.as_bytes()),
        record("SUN.devmajor", b"1f"),
        record("SUN.devminor", b"2a"),
        record("mtime", b"1234567890.5"),
    ]
    .concat();
    let acl = b"1000004\0user::rwx,user:lisa:r-x,mask:r-x,group::r-x,other:r-x\0";
    let archive = [
        Header::ustar("device/X.1", records.len() as u64, b'X').with(&records),
        Header::ustar("device", acl.len() as u64, b'A').with(acl),
        Header::ustar("device", 0, b'3').put(329, b"000000 \0").put(337, b"000000 \0").with(b""),
    ]
    .concat();
    let items = read(&archive);
    let [Item::Skip { why: Skipped::SolarisAcl, content }, Item::Member { member, .. }] =
        items.as_slice()
    else {
        panic!("{items:?}");
    };
    assert_eq!(content, acl);
    assert_eq!(member.path, path.as_bytes());
    assert_eq!(member.kind, MemberKind::CharacterDevice { major: 0x1f, minor: 0x2a });
    assert_eq!(member.modified, Timestamp { seconds: 1_234_567_890, nanoseconds: 500_000_000 });
}

#[test]
fn gnu_base_256_numbers() {
    let mut size = [0u8; 12];
    (size[0], size[11]) = (0x80, 3);
    let mut owner = [0u8; 8];
    owner.copy_from_slice(&(0x8000_0000_0000_0000u64 | 3_000_000).to_be_bytes());
    let header = Header::gnu("file", 0, b'0').put(124, &size).put(108, &owner);
    let header = header.put(116, &(-2i64).to_be_bytes()).put(136, &[0xff; 12]);
    let (member, content, notes) = only_member(&header.with(b"abc"));
    assert_eq!(content, b"abc");
    assert_eq!((member.uid, member.gid), (3_000_000, 4_294_967_294));
    assert_eq!(member.modified, Timestamp { seconds: -1, nanoseconds: 0 });
    assert_eq!(notes, []);
}

#[test]
fn hard_links_may_have_content_in_pax_archives_only() {
    let link = Header::ustar("link", 3, b'1').put(157, b"file");
    let (member, content, _) = only_member(&link.with(b""));
    assert_eq!(
        (&member.kind, content.len()),
        (&MemberKind::HardLink { target: b"file".to_vec() }, 0)
    );
    let records = record("mtime", b"5.5");
    let extended = Header::ustar("x", records.len() as u64, b'x').with(&records);
    let (_, content, _) = only_member(&[extended, link.with(b"abc")].concat());
    assert_eq!(content, b"abc");
}

#[test]
fn unknown_types_are_files_with_a_note() {
    let (member, content, notes) = only_member(&Header::ustar("odd", 3, b'Q').with(b"abc"));
    assert_eq!((member.kind, content), (MemberKind::File, b"abc".to_vec()));
    assert_eq!(notes, [Note::UnknownTypeflag(b'Q')]);
    let (member, _, notes) = only_member(&Header::ustar("contiguous", 3, b'7').with(b"abc"));
    assert_eq!((member.kind, notes), (MemberKind::File, vec![]));
}

#[test]
fn numbers_that_cannot_be_read() {
    let bad = Header::ustar("file", 0, b'0').put(108, b"12x45  \0").put(100, b"rw-r--r-");
    let (member, _, notes) = only_member(&bad.with(b""));
    assert_eq!((member.uid, member.mode), (65534, 0));
    let field = |field| Note::BadField { field };
    assert_eq!(notes, [field("mode"), field("uid")]);
    for size in [&b"zzz"[..], &[0xff; 12], &[0xbf; 12]] {
        let header = Header::ustar("file", 0, b'0').put(124, size);
        assert_eq!(read(&header.with(b"")), [Item::Garbage(Malformed::HeaderSize)], "{size:?}");
    }
}

#[test]
fn global_records_hold_until_overridden() {
    let extended = |typeflag: u8, records: &[Vec<u8>]| {
        let records = records.concat();
        Header::ustar("x", records.len() as u64, typeflag).with(&records)
    };
    let file = || Header::ustar("file", 0, b'0').with(b"");
    let archive = [
        extended(b'g', &[record("uname", b"global"), record("mtime", b"7.5")]),
        file(),
        extended(b'x', &[record("uname", b"local")]),
        file(),
        extended(b'x', &[record("uname", b""), record("mtime", b"")]),
        file(),
        extended(b'g', &[record("uname", b"later")]),
        file(),
        vec![0; 1024],
        file(),
    ]
    .concat();
    let seen: Vec<(Vec<u8>, i64)> = read(&archive)
        .into_iter()
        .filter_map(|item| match item {
            Item::Member { member, .. } => Some((member.user, member.modified.seconds)),
            _ => None,
        })
        .collect();
    let expected: [(&[u8], i64); 5] = [
        (b"global", 7),
        (b"local", 7),
        (b"joerg", 1_000_000),
        (b"later", 7),
        (b"joerg", 1_000_000),
    ];
    assert_eq!(seen, expected.map(|(user, seconds)| (user.to_vec(), seconds)));
}

#[test]
fn xattrs_in_all_spellings() {
    let records = [
        record("LIBARCHIVE.xattr.user.enc%3Doded", b"AAH/"),
        record("SCHILY.xattr.user.a%3Db", b"first"),
        record("SCHILY.xattr.user.a%3Db", b"second"),
        record("RHT.security.selinux", b"system_u:object_r:etc_t:s0"),
    ]
    .concat();
    let extended = Header::ustar("x", records.len() as u64, b'x').with(&records);
    let archive = [extended, Header::ustar("file", 0, b'0').with(b"")].concat();
    let (member, _, notes) = only_member(&archive);
    assert_eq!(notes, []);
    let expected: [(&[u8], &[u8]); 3] = [
        (b"security.selinux", b"system_u:object_r:etc_t:s0\0"),
        (b"user.a=b", b"second"),
        (b"user.enc=oded", b"\x00\x01\xff"),
    ];
    assert_eq!(member.xattrs, expected.map(|(name, value)| (name.to_vec(), value.to_vec())));
}

#[test]
fn headers_are_found_at_any_alignment() {
    let header = Header::ustar("file", 0, b'0').with(b"");
    let gnu = Header::gnu("file", 0, b'0').with(b"");
    for at in [0, 1, 255, 511, 512, 700] {
        let garbage: Vec<u8> = b"ustar\0".iter().copied().cycle().take(at).collect();
        for header in [&header, &gnu] {
            assert_eq!(find_header(&[&garbage, header.as_slice()].concat()), Some(at));
            let cut = [&garbage, &header[..511]].concat();
            assert_eq!(find_header(&cut), None, "half a header at {at}");
        }
    }
    assert_eq!(find_header(b""), None);
    assert_eq!(find_header(&Header::v7("no-magic", 0).with(b"")), None);
}

/// Old GNU sparse header: four runs at 386, extension flag at 482, real size at 483.
#[test]
fn old_gnu_sparse_maps_that_lie() {
    let entry = |offset: u64, length: u64| format!("{offset:011o}\0{length:011o}\0").into_bytes();
    let check = |entries: &[(u64, u64)], stored: u64, real: u64, expected: Malformed| {
        let entries: Vec<u8> =
            entries.iter().flat_map(|(offset, length)| entry(*offset, *length)).collect();
        let header = Header::gnu("holes", stored, b'S').put(386, &entries).octal(483, real);
        let content = vec![1; stored as usize];
        let behind = Header::gnu("behind", 0, b'0').with(b"");
        let items = read(&[header.with(&content), behind].concat());
        let error = DecodeError::Sparse { path: b"holes".to_vec(), source: expected };
        assert_eq!(items[0], Item::Error(error));
        assert!(matches!(&items[1], Item::Member { member, .. } if member.path == b"behind"));
        assert_eq!(items.len(), 2, "the content of the broken member is passed over");
    };
    check(&[(0, 512), (100, 512)], 1024, 9000, Malformed::MapOrder { offset_bytes: 100 });
    check(&[(4096, 512), (0, 512)], 1024, 9000, Malformed::MapOrder { offset_bytes: 0 });
    check(&[(8800, 512)], 512, 9000, Malformed::MapBeyondEnd { offset_bytes: 8800 });
    check(&[(0, 512)], 1024, 9000, Malformed::MapStored { stored_bytes: 1024 });
    check(&[(0, 1024)], 512, 9000, Malformed::MapStored { stored_bytes: 512 });
}
