//! Our archives, restored by GNU tar and bsdtar and listed by Python's tarfile.

use crate::round_trip::{archive_of, content_byte, plain};
use crate::tools::{Tool, disk_path, has_holes, modified, xattr};
use archive::encode::{encode_end_of_archive, encode_global_header, encode_member};
use archive::member::{Extent, Member, MemberKind, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

/// Restores `members` with each program in each locale and passes the folder to `check`.
fn restored(members: &[Member], quiet: &[Tool], check: impl Fn(Tool, &Path)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("archive.tar");
    std::fs::write(&archive, archive_of(members)).expect("space in the temporary folder");
    for tool in Tool::ALL {
        for locale in ["C", "C.UTF-8"] {
            let into = folder.path().join(format!("{tool:?}-{locale}"));
            std::fs::create_dir(&into).expect("a new folder");
            let messages = tool.extract(&archive, &into, locale);
            if quiet.contains(&tool) {
                assert_eq!(messages, "", "{tool:?} {locale}");
            }
            check(tool, &into);
        }
    }
}

fn expected_content(member: &Member) -> Vec<u8> {
    let stored: Vec<u8> = (0..member.content_bytes()).map(content_byte).collect();
    crate::read_all::expand(member, &stored)
}

#[test]
fn names_of_any_bytes_and_length_come_back() {
    let long = |length: usize, byte: u8| vec![byte; length];
    let mut paths = vec![
        b"plain".to_vec(),
        "ünïcödé".as_bytes().to_vec(),
        b"latin-\xfc\xff\xfe".to_vec(),
        b"line\nfeed and \x01".to_vec(),
        b"equals=percent%".to_vec(),
        long(100, b'x'),
        long(101, b'y'),
        long(255, b'z'),
        [&long(120, b'l')[..], b"\xe9\xff"].concat(),
        [long(90, b'p'), long(99, b'q')].join(&b'/'),
        [long(200, b'p'), long(99, b'q')].join(&b'/'),
        vec![long(200, 0xf0); 5].join(&b'/'),
    ];
    paths.push([&long(150, b'd')[..], b"/", &long(150, b'e')].concat());
    let members: Vec<Member> = paths
        .iter()
        .map(|path| {
            let mut member = plain(path);
            member.size_bytes = 700;
            member
        })
        .collect();
    // GNU tar prints that it ignores `hdrcharset`, which libarchive needs for such names.
    restored(&members, &[Tool::Bsdtar], |tool, into| {
        for member in &members {
            let file = disk_path(into, &member.path);
            let content = std::fs::read(&file);
            assert_eq!(content.ok(), Some(expected_content(member)), "{tool:?} {file:?}");
            assert_eq!(modified(&file), member.modified, "{tool:?} {file:?}");
        }
    });
}

/// Without `hdrcharset` both print nothing. libarchive complains under a locale that is not UTF-8,
/// as it does about its own archives, and still restores the name.
#[test]
fn long_utf8_names_need_no_character_set() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("archive.tar");
    let member = plain("é".repeat(60).as_bytes());
    std::fs::write(&archive, archive_of(std::slice::from_ref(&member)))
        .expect("space in the folder");
    for tool in Tool::ALL {
        let into = folder.path().join(format!("{tool:?}"));
        std::fs::create_dir(&into).expect("a new folder");
        assert_eq!(tool.extract(&archive, &into, "C.UTF-8"), "", "{tool:?}");
        assert!(disk_path(&into, &member.path).exists(), "{tool:?}");
    }
    restored(std::slice::from_ref(&member), &[Tool::GnuTar], |tool, into| {
        assert!(disk_path(into, &member.path).exists(), "{tool:?}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Random members of the kinds that every user may create, under names of any bytes.
    #[test]
    fn random_members_come_back(parts in vec(restorable(), 1..12)) {
        let mut members: Vec<Member> = Vec::new();
        for (index, mut member) in parts.into_iter().enumerate() {
            // A folder of its own each, so that no path runs through another member.
            let mut path = format!("{index}").into_bytes();
            for component in member.path.split(|byte| *byte == b'/') {
                path.extend([b"/c", component].concat());
            }
            member.path = path;
            members.push(member);
        }
        restored(&members, &[], |tool, into| {
            for member in &members {
                compare(tool, member, &disk_path(into, &member.path));
            }
        });
    }
}

/// Random members that every program can restore: times and owners that file systems can store.
fn restorable() -> impl Strategy<Value = Member> {
    let seconds = 0i64..4_000_000_000;
    (crate::round_trip::member(), seconds, 0u32..1 << 31, 0u32..1 << 31).prop_map(
        |(mut member, seconds, uid, gid)| {
            if matches!(
                member.kind,
                MemberKind::HardLink { .. }
                    | MemberKind::CharacterDevice { .. }
                    | MemberKind::BlockDevice { .. }
            ) {
                member.kind = MemberKind::Fifo;
            }
            (member.uid, member.gid) = (u64::from(uid), u64::from(gid));
            member.modified.seconds = seconds;
            // Set-ID bits are cleared when a file gets a new owner, before or after the mode is
            // set.
            member.mode &= 0o777;
            member.mode |= 0o400;
            (member.acl_access, member.acl_default) = (None, None);
            member.xattrs.clear();
            member
        },
    )
}

fn compare(tool: Tool, member: &Member, file: &Path) {
    let status = file.symlink_metadata();
    let status = status.unwrap_or_else(|error| panic!("{tool:?} {file:?}: {error}"));
    if testkit::fully!(Root) {
        let owner = (u64::from(status.uid()), u64::from(status.gid()));
        assert_eq!(owner, (member.uid, member.gid), "{tool:?} {file:?}");
    }
    assert_eq!(modified(file), member.modified, "{tool:?} {file:?}");
    match &member.kind {
        MemberKind::SymbolicLink { target } => {
            let link = std::fs::read_link(file).expect("a symbolic link");
            assert_eq!(link.as_os_str().as_bytes(), target, "{tool:?} {file:?}");
            return;
        }
        MemberKind::File => {
            let content = std::fs::read(file).expect("our own file");
            assert!(content == expected_content(member), "{tool:?} {file:?}");
        }
        MemberKind::Directory => assert!(status.is_dir(), "{tool:?} {file:?}"),
        _ => assert!(status.file_type().is_fifo(), "{tool:?} {file:?}"),
    }
    assert_eq!(status.mode() & 0o7777, member.mode, "{tool:?} {file:?}");
}

#[test]
fn kinds_modes_and_links_come_back() {
    // bsdtar sets set-user-ID only on files whose owner it could restore.
    let set_user_id = if testkit::fully!(Root) { 0o4751 } else { 0o751 };
    let kinds = [
        ("dir", MemberKind::Directory, 0o1755),
        ("dir/file", MemberKind::File, set_user_id),
        ("dir/empty-dir", MemberKind::Directory, 0o700),
        ("dir/link", MemberKind::HardLink { target: b"dir/file".to_vec() }, set_user_id),
        ("dir/symlink", MemberKind::SymbolicLink { target: b"../\xff somewhere".to_vec() }, 0o777),
        ("dir/long-symlink", MemberKind::SymbolicLink { target: vec![b't'; 300] }, 0o777),
        ("dir/raw-symlink", MemberKind::SymbolicLink { target: vec![0xe9; 300] }, 0o777),
        ("dir/fifo", MemberKind::Fifo, 0o600),
    ];
    let mut members: Vec<Member> = kinds
        .into_iter()
        .map(|(path, kind, mode)| Member { kind, mode, ..plain(path.as_bytes()) })
        .collect();
    members[1].size_bytes = 5;
    restored(&members, &[Tool::Bsdtar], |tool, into| {
        let status = |path: &str| into.join(path).symlink_metadata().expect("restored");
        for member in &members {
            let path = std::str::from_utf8(&member.path).expect("the names above");
            let status = status(path);
            if let MemberKind::SymbolicLink { target } = &member.kind {
                let link = std::fs::read_link(into.join(path)).expect("a symbolic link");
                assert_eq!(link.as_os_str().as_bytes(), target, "{tool:?} {path}");
            } else {
                assert_eq!(status.mode() & 0o7777, member.mode, "{tool:?} {path}");
            }
            assert_eq!(modified(&into.join(path)), member.modified, "{tool:?} {path}");
            assert_eq!(status.is_dir(), member.kind == MemberKind::Directory);
            assert_eq!(status.file_type().is_fifo(), member.kind == MemberKind::Fifo);
        }
        assert_eq!(status("dir/link").ino(), status("dir/file").ino(), "{tool:?}");
    });
}

#[test]
fn times_come_back() {
    let times = [(0, 0), (0, 1), (1_700_000_000, 0), (1_700_000_000, 100_000_000), (-5, 0)];
    let late = [(1 << 33, 7), (4_000_000_000, 999_999_999)];
    let members: Vec<Member> = times
        .into_iter()
        .chain(late)
        .map(|(seconds, nanoseconds)| {
            let mut member = plain(format!("{seconds}.{nanoseconds}").as_bytes());
            member.modified = Timestamp { seconds, nanoseconds };
            member
        })
        .collect();
    // GNU tar prints a note about times before 1970 and in the future.
    restored(&members, &[Tool::Bsdtar], |tool, into| {
        for member in &members {
            let found = modified(&disk_path(into, &member.path));
            assert_eq!(found, member.modified, "{tool:?}");
        }
    });
}

#[test]
fn sparse_files_come_back_with_their_holes() {
    let extent = |offset_bytes, length_bytes| Extent { offset_bytes, length_bytes };
    let many = (0..3000).map(|index| extent(index * 8192, 512)).collect();
    let maps: [(&str, u64, Vec<Extent>); 6] = [
        ("sparse/all-hole", 1 << 20, vec![]),
        ("empty", 0, vec![]),
        ("sparse/hole-at-end", 1 << 20, vec![extent(0, 4096), extent(65536, 1)]),
        ("sparse/data-at-end", (1 << 20) + 77, vec![extent(1 << 20, 77)]),
        ("sparse/many", 3000 * 8192, many),
        ("sparse/beyond-8-gib", 20 << 30, vec![extent(10 << 30, 4096)]),
    ];
    let mut members: Vec<Member> = maps
        .into_iter()
        .map(|(path, size_bytes, extents)| {
            let mut member = plain(path.as_bytes());
            member.size_bytes = size_bytes;
            member.sparse = Some(extents);
            member
        })
        .collect();
    let mut long_name = members[2].clone();
    long_name.path = [&b"sparse/"[..], &[b'\xfe'; 200]].concat();
    members.push(long_name);
    members.push(plain(b"behind"));
    restored(&members, &[Tool::Bsdtar], |tool, into| {
        for member in &members {
            let file = disk_path(into, &member.path);
            let length = file.metadata().expect("restored").len();
            assert_eq!(length, member.size_bytes, "{tool:?} {file:?}");
            if length < 1 << 30 {
                let content = std::fs::read(&file).expect("readable");
                assert!(content == expected_content(member), "{tool:?} {file:?}");
            }
            assert_eq!(has_holes(&file), length > 0, "{tool:?} {file:?}");
        }
    });
}

#[test]
fn xattrs_and_acls_come_back() {
    let mut file = plain(b"file");
    file.mode = 0o664;
    file.xattrs = vec![
        (b"user.binary".to_vec(), vec![0, 1, b'\n', b'=', 0xff]),
        (b"user.empty".to_vec(), Vec::new()),
        (b"user.large".to_vec(), vec![b'v'; 2000]),
        (b"user.text".to_vec(), b"value".to_vec()),
    ];
    let acl = |entries: &[(u16, u16, u32)]| {
        let mut binary = 2u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            binary.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
            binary.extend(id.to_le_bytes());
        }
        Some(binary)
    };
    // libarchive cuts ids in ACLs off at 2^31 - 1.
    let none = u32::MAX;
    file.acl_access = acl(&[
        (0x01, 6, none),
        (0x02, 7, 12345),
        (0x02, 0, 2_147_483_647),
        (0x04, 4, none),
        (0x08, 5, 54321),
        (0x10, 6, none),
        (0x20, 4, none),
    ]);
    let mut directory = plain(b"directory");
    directory.kind = MemberKind::Directory;
    directory.mode = 0o755;
    directory.acl_default =
        acl(&[(0x01, 7, none), (0x02, 1, 1), (0x04, 5, none), (0x10, 5, none), (0x20, 0, none)]);
    let members = [file, directory];
    restored(&members, &[Tool::Bsdtar], |tool, into| {
        let [file, directory] = &members;
        let path = into.join("file");
        for (name, value) in &file.xattrs {
            assert_eq!(xattr(&path, name).as_ref(), Some(value), "{tool:?} {name:?}");
        }
        assert_eq!(xattr(&path, b"system.posix_acl_access"), file.acl_access, "{tool:?}");
        let path = into.join("directory");
        assert_eq!(xattr(&path, b"system.posix_acl_default"), directory.acl_default, "{tool:?}");
    });
}

#[test]
fn gnu_tar_gets_equals_signs_in_attribute_names() {
    let mut file = plain(b"file");
    file.xattrs = vec![(b"user.a=b%c".to_vec(), b"value".to_vec())];
    let xattrs = file.xattrs.clone();
    restored(&[file], &[], |tool, into| {
        // libarchive does not decode GNU tar's escapes and restores `user.a%3Db%25c`.
        if tool == Tool::GnuTar {
            let (name, value) = &xattrs[0];
            assert_eq!(xattr(&into.join("file"), name).as_ref(), Some(value));
        }
    });
}

/// Lists `archive` with numeric owners.
fn listing(tool: Tool, archive: &Path) -> String {
    let arguments = ["-tv", "--numeric-owner", "-f"].map(OsStr::new);
    let arguments = [&arguments[..], &[archive.as_os_str()]].concat();
    let (listing, messages) = tool.run(archive.parent().expect("a file"), "C.UTF-8", &arguments);
    assert_eq!(messages, "");
    String::from_utf8(listing).expect("the names are ASCII")
}

#[test]
fn owners_sizes_and_devices_are_listed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("archive.tar");
    let mut large = plain(b"large");
    large.size_bytes = 9 << 30;
    let mut owned = plain(b"owned");
    (owned.uid, owned.gid) = (2_097_152, 4_000_000_000);
    let mut device = plain(b"device");
    device.kind = MemberKind::CharacterDevice { major: 195, minor: 254 };
    let mut out = Vec::new();
    encode_global_header("GlobalHead", &[(b"comment", b"takeup set 1")], &mut out)
        .expect("a valid keyword");
    encode_member(&owned, &mut out).expect("a valid member");
    encode_member(&device, &mut out).expect("a valid member");
    encode_member(&large, &mut out).expect("a valid member");
    std::fs::write(&archive, &out).expect("space in the temporary folder");
    // The content and the end-of-archive mark are a hole: they read as zeros.
    let file = std::fs::OpenOptions::new().write(true).open(&archive).expect("just written");
    file.set_len(out.len() as u64 + large.size_bytes + 1024).expect("sparse files");
    for tool in Tool::ALL {
        let listing = listing(tool, &archive);
        let lines: Vec<Vec<&str>> =
            listing.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3, "{tool:?}: {listing}");
        assert!(listing.contains("2097152"), "{tool:?}: {listing}");
        assert!(listing.contains("4000000000"), "{tool:?}: {listing}");
        assert!(listing.contains("195,254"), "{tool:?}: {listing}");
        assert!(listing.contains("9663676416"), "{tool:?}: {listing}");
    }
}

/// Prints the members that Python's tarfile finds in an archive, one a line.
const PYTHON: &str = "
import sys, tarfile
with tarfile.open(sys.argv[1], errors='surrogateescape', encoding='utf-8') as archive:
    for m in archive:
        name = m.name.encode('utf-8', 'surrogateescape').hex()
        link = m.linkname.encode('utf-8', 'surrogateescape').hex()
        print(name, m.type.decode(), oct(m.mode), m.uid, m.gid, m.size, '%.3f' % m.mtime, link)
";

#[test]
fn python_agrees() {
    testkit::require!(Python3);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("archive.tar");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut members = Vec::new();
    for length in [1, 99, 100, 101, 156, 254, 257, 700] {
        let mut path = vec![b'n'; length];
        (60..length).step_by(60).for_each(|at| path[at] = b'/');
        let mut file = plain(&path);
        file.size_bytes = length as u64;
        file.uid = length as u64 * 10_000;
        let target = path.clone();
        let link = Member { kind: MemberKind::SymbolicLink { target }, ..plain(b"link") };
        members.extend([file, link, Member { kind: MemberKind::Directory, ..plain(&path) }]);
    }
    std::fs::write(&archive, archive_of(&members)).expect("space in the temporary folder");
    let output = Command::new("python3").args(["-c", PYTHON]).arg(&archive).output();
    let output = output.expect("python3 was there a moment ago");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("hexadecimal");
    let expected: Vec<String> = members
        .iter()
        .map(|member| {
            let (typeflag, link) = match &member.kind {
                MemberKind::SymbolicLink { target } => ('2', hex(target)),
                MemberKind::Directory => ('5', String::new()),
                _ => ('0', String::new()),
            };
            let Member { mode, uid, gid, size_bytes, .. } = member;
            let path = hex(&member.path);
            format!("{path} {typeflag} 0o{mode:o} {uid} {gid} {size_bytes} 1700000000.123 {link}")
        })
        .collect();
    assert_eq!(lines.lines().map(str::trim_end).collect::<Vec<_>>(), trimmed(&expected));
}

fn trimmed(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.trim_end()).collect()
}

#[test]
fn an_archive_without_members_is_empty_to_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = folder.path().join("archive.tar");
    let mut out = Vec::new();
    encode_end_of_archive(&mut out);
    std::fs::write(&archive, &out).expect("space in the temporary folder");
    for tool in Tool::ALL {
        assert_eq!(listing(tool, &archive), "", "{tool:?}");
    }
}
