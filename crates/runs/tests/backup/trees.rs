//! Trees with everything that a file system can hold: through the backup, out by another program,
//! and compared.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use archive::chunk::Compression;
use flow::backend::Engine;
use runs::backup::BackupOptions;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use tempfile::{TempDir, tempdir};
use testkit::samples::noise;

use crate::harness::{options, run_clean};
use crate::index::check_archive;
use crate::snapshot::{Kind, assert_same, snapshot};
use crate::tools::{bsd_extract, gnu_extract, quiet};

/// Sets the time of the last change, even of a symbolic link.
pub fn set_modified(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub fn mknod(path: &Path, kind: FileType, device: u64) {
    rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o640), device).unwrap();
}

/// Bytes that compress to a half.
pub fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut out = noise(seed, bytes);
    for line in out.chunks_mut(64) {
        let half = line.len() / 2;
        line[..half].fill(b'=');
    }
    out
}

/// A file of `size_bytes` with data only in `runs`.
pub fn write_sparse(path: &Path, size_bytes: u64, runs: &[(u64, usize)]) {
    let file = File::create(path).unwrap();
    file.set_len(size_bytes).unwrap();
    for &(offset, length) in runs {
        file.write_all_at(&noise(offset, length), offset).unwrap();
    }
}

/// Sizes around every boundary: units, blocks, reservations, and more than the ring.
const SIZES: [usize; 17] = [
    0, 1, 511, 512, 513, 1023, 4095, 4096, 65_535, 65_536, 65_537, 1_048_575, 1_048_576, 1_048_577,
    2_097_152, 5_000_000, 17_000_003,
];

/// One of everything.
fn everything(root: &Path) {
    let at = |name: &[u8]| root.join(OsStr::from_bytes(name));
    for size in SIZES {
        std::fs::write(root.join(format!("size-{size:08}")), text(size as u64, size)).unwrap();
    }
    std::fs::create_dir(at(b"empty")).unwrap();
    for name in [&b"new\nline"[..], b"\xff\xfe\x01", b"-rf", b" ", b"\\n", b"\"'", b"a=b\tc", b"*"]
    {
        std::fs::write(at(name), name).unwrap();
    }
    let mut deep = root.to_path_buf();
    for level in 0..40 {
        deep.push(format!("level-{level:02}-of-a-path-that-gets-long"));
        std::fs::create_dir(&deep).unwrap();
    }
    std::fs::write(deep.join("n".repeat(255)), b"at the end of a long path").unwrap();
    std::fs::hard_link(deep.join("n".repeat(255)), at(b"link-to-the-deep")).unwrap();
    symlink("x".repeat(4000), at(b"long-link")).unwrap();
    symlink(OsStr::from_bytes(b"no\xffwhere\n"), at(b"odd-link")).unwrap();
    symlink("size-00000512", at(b"good-link")).unwrap();
    mknod(&at(b"fifo"), FileType::Fifo, 0);
    modes_and_owners(root);
    links(root);
    sparse(root);
    attributes(root);
    set_modified(&at(b"size-00000001"), 1_000_000_000, 123_456_789);
    set_modified(&at(b"size-00000511"), 0, 1);
    set_modified(&at(b"good-link"), 1_234_567_890, 999_999_999);
    set_modified(&at(b"empty"), 1, 500_000_000);
}

fn modes_and_owners(root: &Path) {
    for mode in [0o000, 0o400, 0o111, 0o777, 0o4755, 0o2755, 0o1777] {
        let path = root.join(format!("mode-{mode:04o}"));
        std::fs::write(&path, format!("{mode:o}")).unwrap();
        if testkit::fully!(Root) {
            std::os::unix::fs::chown(&path, Some(mode * 1000), Some(3_000_000_000)).unwrap();
        }
        // An unprivileged reader cannot archive files that it may not read.
        let mode = if testkit::fully!(Root) { mode } else { mode | 0o400 };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }
    if testkit::fully!(Root) {
        mknod(&root.join("null"), FileType::CharacterDevice, rustix::fs::makedev(1, 3));
        mknod(&root.join("loop"), FileType::BlockDevice, rustix::fs::makedev(7, 250));
    }
}

/// Names of one file at both ends of many batches.
fn links(root: &Path) {
    let folder = root.join("links");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..300 {
        std::fs::write(folder.join(format!("{number:04}")), format!("{number}")).unwrap();
    }
    for number in 0..50 {
        let name = folder.join(format!("again-{number:04}"));
        std::fs::hard_link(folder.join(format!("{number:04}")), name).unwrap();
        let name = folder.join(format!("0{number:04}"));
        std::fs::hard_link(folder.join("0299"), name).unwrap();
    }
    symlink("target", folder.join("symbolic")).unwrap();
    std::fs::hard_link(folder.join("symbolic"), folder.join("symbolic-again")).unwrap();
}

fn sparse(root: &Path) {
    write_sparse(&root.join("hole-only"), 9 << 30, &[]);
    write_sparse(&root.join("hole-behind"), 20 << 30, &[(0, 4096), (10 << 30, 8192)]);
    write_sparse(&root.join("hole-before"), (3 << 20) + 17, &[(2 << 20, (1 << 20) + 17)]);
    let many: Vec<_> = (0..500).map(|run| (run * 16_384, 4096)).collect();
    write_sparse(&root.join("many-runs"), 10 << 20, &many);
    let large: Vec<_> = (0..6).map(|run| (run * (8 << 20), 3 << 20)).collect();
    write_sparse(&root.join("large-runs"), 50 << 20, &large);
}

fn attributes(root: &Path) {
    let set = |name: &str, attribute: &str, value: &[u8]| {
        rustix::fs::lsetxattr(root.join(name), attribute, value, XattrFlags::empty())
            .expect("the folder for temporary files has extended attributes");
    };
    set("size-00000512", "user.colour", b"blue\0green\n=");
    set("size-00000512", "user.empty", b"");
    set("empty", "user.large", &noise(7, 2000));
    let acl = |entry: &str, name: &str| {
        quiet(Command::new("setfacl").args(["-m", entry]).arg(root.join(name)));
    };
    acl("u:12345:r--,g:54321:rw-", "size-00000513");
    acl("d:u:12345:rwx", "empty");
}

struct Case {
    folder: TempDir,
    tree: PathBuf,
}

impl Case {
    fn new(make: impl FnOnce(&Path)) -> Case {
        let folder = tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        make(&tree);
        Case { folder, tree }
    }

    /// Backs up, extracts with another program, compares.
    fn check(&self, compression: Compression, extract: fn(&Path, &Path)) {
        let target = self.folder.path().join("archive");
        let mut wanted = options(&[&self.tree], &target);
        wanted.compression = compression;
        let finished = run_clean(&wanted);
        let into = tempdir().unwrap();
        extract(&target, into.path());
        let name = self.tree.strip_prefix("/").unwrap();
        let expected = snapshot(&self.tree);
        assert_same(&expected, &snapshot(&into.path().join(name)), &compression.to_string());
        assert_eq!(finished.report.members, expected.len() as u64);
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn gnu_tar_gives_everything_back() {
    let case = Case::new(everything);
    case.check(Compression::None, gnu_extract);
}

#[test]
fn gnu_tar_gives_everything_back_from_zstd() {
    Case::new(everything).check(Compression::Zstd { level: 1 }, gnu_extract);
}

#[test]
fn gnu_tar_gives_everything_back_from_gzip() {
    Case::new(everything).check(Compression::Gzip { level: 1 }, gnu_extract);
}

#[test]
fn bsdtar_gives_everything_back() {
    let case = Case::new(everything);
    // libarchive 3.6 keeps a hole at the end of a file only as far as it writes after it, and makes
    // no holes by itself.
    for name in ["hole-only", "hole-behind", "hole-before", "many-runs", "large-runs"] {
        std::fs::remove_file(case.tree.join(name)).unwrap();
    }
    case.check(Compression::None, bsd_extract);
}

#[test]
fn holes_stay_holes() {
    let case = Case::new(sparse);
    let made = snapshot(&case.tree);
    let holes =
        made.values().filter(|object| matches!(object.kind, Kind::File { has_holes: true, .. }));
    assert_eq!(holes.count(), 5, "the file system makes holes");
    let target = case.folder.path().join("archive");
    let finished = run_clean(&options(&[&case.tree], &target));
    assert!(finished.report.target_bytes < 32 << 20, "no hole is stored");
}

#[test]
fn the_index_is_right() {
    let case = Case::new(|root| {
        everything(root);
        // Its zeros would have to be held in memory to be compared.
        std::fs::remove_file(root.join("hole-only")).unwrap();
        write_sparse(&root.join("small-hole-only"), 3_000_000, &[]);
    });
    let target = case.folder.path().join("archive");
    for compression in
        [Compression::None, Compression::Zstd { level: 3 }, Compression::Gzip { level: 6 }]
    {
        for block_bytes in [512, 10 * 512, 1 << 20, 4 << 20] {
            let mut wanted = options(&[&case.tree], &target);
            wanted.compression = compression;
            wanted.block_bytes = block_bytes;
            wanted.ring_bytes = 64 << 20;
            let parts = check_archive(&run_clean(&wanted), compression);
            assert_eq!(parts.trailer.block_bytes as usize, block_bytes);
            std::fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn twenty_thousand_files_in_one_directory() {
    let case = Case::new(|root| {
        for number in 0..20_000 {
            std::fs::write(root.join(format!("{number:x}")), number.to_string()).unwrap();
        }
    });
    case.check(Compression::None, gnu_extract);
}

#[test]
fn an_empty_tree() {
    let case = Case::new(|_| {});
    case.check(Compression::None, gnu_extract);
    case.check(Compression::Zstd { level: 3 }, gnu_extract);
    let finished = run_clean(&options(&[&case.tree], &case.folder.path().join("a")));
    check_archive(&finished, Compression::None);
}

#[test]
fn an_archive_that_is_read_in_pieces_ends_where_it_ends() {
    // GNU tar reads records of 10 KiB: an end that is not on such a boundary must not make it warn
    // or read on into the index.
    for size in [0, 512, 3 * 512, 9 * 512, 17 * 512, 20 * 512, 1 << 20] {
        let case = Case::new(|root| std::fs::write(root.join("f"), noise(1, size)).unwrap());
        let target = case.folder.path().join("archive");
        let finished = run_clean(&options(&[&case.tree], &target));
        let listed = quiet(
            Command::new("sh").args(["-c", "cat \"$1\" | tar tf - | wc -l", "sh"]).arg(&target),
        );
        assert_eq!(String::from_utf8(listed).unwrap().trim(), "2");
        check_archive(&finished, Compression::None);
    }
}

#[test]
fn large_cold_files_are_read_past_the_cache_and_whole() {
    let case = Case::new(|root| {
        std::fs::write(root.join("a"), noise(1, 9_000_001)).unwrap();
        std::fs::write(root.join("b"), noise(2, (20 << 20) + 512)).unwrap();
        std::fs::write(root.join("c"), noise(3, 12 << 20)).unwrap();
        write_sparse(&root.join("d"), 60 << 20, &[(4096, 9 << 20), (30 << 20, (12 << 20) + 5)]);
        for name in ["a", "b", "c", "d"] {
            let file = File::open(root.join(name)).unwrap();
            file.sync_all().unwrap();
            device::file::drop_cached(&file, 0, 0);
        }
    });
    let target = case.folder.path().join("archive");
    for engine in [Engine::Auto, Engine::Threads] {
        for block_bytes in [1 << 20, 20 << 9] {
            for name in ["a", "b", "c", "d"] {
                let file = File::open(case.tree.join(name)).unwrap();
                device::file::drop_cached(&file, 0, 0);
            }
            let mut wanted = options(&[&case.tree], &target);
            (wanted.engine, wanted.block_bytes) = (engine, block_bytes);
            check_archive(&run_clean(&wanted), Compression::None);
            let into = tempdir().unwrap();
            gnu_extract(&target, into.path());
            let name = case.tree.strip_prefix("/").unwrap();
            let (expected, actual) = (snapshot(&case.tree), snapshot(&into.path().join(name)));
            assert_same(&expected, &actual, &format!("{engine:?}, {block_bytes}"));
            std::fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn large_files_of_which_the_cache_lacks_something_are_whole() {
    const LENGTH: usize = (24 << 20) + 700;
    let case = Case::new(|root| {
        std::fs::write(root.join("large"), noise(1, LENGTH)).unwrap();
        write_sparse(&root.join("sparse"), 60 << 20, &[(8192, 9 << 20), (30 << 20, 15 << 20)]);
    });
    // Missing pages: none, the first, some in the middle, the end.
    let missing = [0..0, 0..4096, 5 << 20..6 << 20, (13 << 20) + 4096..LENGTH as u64];
    let target = case.folder.path().join("archive");
    let files = ["large", "sparse"].map(|name| File::open(case.tree.join(name)).unwrap());
    files.iter().for_each(|file| file.sync_all().unwrap());
    for range in missing {
        for ring_bytes in [4 << 20, 64 << 20] {
            for mut file in &files {
                file.seek(SeekFrom::Start(0)).unwrap();
                std::io::copy(&mut file, &mut std::io::sink()).unwrap();
                if !range.is_empty() {
                    device::file::drop_cached(file, range.start, range.end - range.start);
                }
            }
            let wanted = BackupOptions { ring_bytes, ..options(&[&case.tree], &target) };
            check_archive(&run_clean(&wanted), Compression::None);
            let into = tempdir().unwrap();
            gnu_extract(&target, into.path());
            let name = case.tree.strip_prefix("/").unwrap();
            let (expected, actual) = (snapshot(&case.tree), snapshot(&into.path().join(name)));
            assert_same(&expected, &actual, &format!("{range:?} missing, ring of {ring_bytes}"));
            std::fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn a_path_of_many_kilobytes() {
    let case = Case::new(|root| {
        // No path of the whole length may be handed to the kernel: PATH_MAX is 4096.
        let mut at: std::os::fd::OwnedFd = File::open(root).unwrap().into();
        for level in 0..100 {
            let name = format!("{level:03}{}", "-".repeat(200));
            rustix::fs::mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
            at = base::interruptible::openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
        }
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file =
            base::interruptible::openat(&at, "f", flags, Mode::from_raw_mode(0o644)).unwrap();
        rustix::io::write(&file, b"far away").unwrap();
    });
    let finished = run_clean(&options(&[&case.tree], &case.folder.path().join("archive")));
    let parts = check_archive(&finished, Compression::None);
    let last = parts.files.last().unwrap();
    assert_eq!((parts.files.len(), last.path.ends_with(b"/f")), (102, true));
    assert!(last.path.len() > 20_000);
    quiet(Command::new("rm").arg("-rf").arg(&case.tree));
}
