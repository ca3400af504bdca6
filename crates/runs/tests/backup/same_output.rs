//! The same tree and options give the same bytes, however many threads work on it, whatever moves
//! the data, and however small the ring is.

use std::path::Path;

use archive::chunk::Compression;
use flow::backend::Engine;
use runs::backup::BackupOptions;
use tempfile::tempdir;
use testkit::samples::noise;

use crate::harness::{options, run_clean};
use crate::index::check_archive;
use crate::trees::{text, write_sparse};

/// Small files in several folders, files larger than a reservation, links and holes.
fn mixed(root: &Path) {
    for folder in 0..12 {
        let folder_path = root.join(format!("folder-{folder:02}"));
        std::fs::create_dir(&folder_path).unwrap();
        for number in 0..70u64 {
            let size = (number * number * 7 + folder) as usize;
            let path = folder_path.join(format!("{number:03}"));
            std::fs::write(&path, text(number, size)).unwrap();
            if number % 10 == 0 {
                std::fs::hard_link(&path, root.join(format!("link-{folder}-{number}"))).unwrap();
            }
        }
    }
    std::fs::write(root.join("large"), text(1, 9_000_001)).unwrap();
    std::fs::write(root.join("zlarge"), noise(2, 3_000_000)).unwrap();
    write_sparse(&root.join("holes"), 40 << 20, &[(0, 10), (5 << 20, 4 << 20), (39 << 20, 70_000)]);
}

/// The difference of a further run.
type Variation = (&'static str, fn(&mut BackupOptions));

fn check_all(compression: Compression, variations: &[Variation]) {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    mixed(&tree);
    let target = folder.path().join("archive");
    let mut first = options(&[&tree], &target);
    first.compression = compression;
    first.ring_bytes = 64 << 20;
    first.block_bytes = 64 << 10;
    let finished = run_clean(&first);
    let set_id = check_archive(&finished, compression).trailer.set_id;
    let expected = finished.bytes();
    for (name, change) in variations {
        let mut wanted = first.clone();
        change(&mut wanted);
        wanted.target = folder.path().join("again").into();
        let finished = run_clean(&wanted);
        assert!(finished.bytes() == expected, "{name}");
        std::fs::remove_file(&finished.archive).unwrap();
    }
    // Another block size is another archive only in its index.
    let mut wanted = first.clone();
    wanted.block_bytes = 20 << 10;
    wanted.target = folder.path().join("again").into();
    let parts = check_archive(&run_clean(&wanted), compression);
    assert_ne!(parts.trailer.set_id, set_id, "checksums of other blocks make another set");
}

const READ_1: Variation = ("1 reader", |it| it.read_threads = Some(1));
const READ_2: Variation = ("2 readers", |it| it.read_threads = Some(2));
const READ_32: Variation = ("32 readers", |it| it.read_threads = Some(32));
const AGAIN: Variation = ("second run", |_| ());
const PREAD: Variation = ("pread", |it| it.engine = Engine::Threads);
const COMPRESS_1: Variation = ("1", |it| it.compress_threads = Some(1));
const COMPRESS_2: Variation = ("2", |it| it.compress_threads = Some(2));
const COMPRESS_5: Variation = ("5", |it| it.compress_threads = Some(5));

#[test]
fn plain_output_depends_on_tree_and_options_alone() {
    check_all(
        Compression::None,
        &[
            AGAIN,
            READ_1,
            READ_2,
            READ_32,
            PREAD,
            ("ring of 4", |it| it.ring_bytes = 4 * it.block_bytes),
            ("ring of 5, pread", |it| {
                it.ring_bytes = 5 * it.block_bytes;
                it.engine = Engine::Threads;
            }),
            ("start fill", |it| it.start_fill_percent = 90),
        ],
    );
}

#[test]
fn zstd_output_depends_on_tree_and_options_alone() {
    let smallest = |it: &mut BackupOptions| it.ring_bytes = 6 * it.compression.chunk_bytes();
    check_all(
        Compression::Zstd { level: 3 },
        &[AGAIN, READ_1, READ_32, PREAD, COMPRESS_1, COMPRESS_2, COMPRESS_5, ("ring", smallest)],
    );
}

#[test]
fn gzip_output_depends_on_tree_and_options_alone() {
    let smallest = |it: &mut BackupOptions| it.ring_bytes = 6 * it.compression.chunk_bytes();
    check_all(
        Compression::Gzip { level: 2 },
        &[AGAIN, READ_1, READ_32, PREAD, COMPRESS_1, COMPRESS_2, COMPRESS_5, ("ring", smallest)],
    );
}

#[test]
fn io_uring_gives_what_pread_gives() {
    testkit::require!(IoUring);
    check_all(Compression::None, &[("io_uring", |it| it.engine = Engine::IoUring), PREAD]);
}

#[test]
fn impossible_sizes_are_refused() {
    let folder = tempdir().unwrap();
    let target = folder.path().join("archive");
    let check = |block_bytes: usize, ring_bytes: usize, expected: &str| {
        let mut wanted = options(&[folder.path()], &target);
        (wanted.block_bytes, wanted.ring_bytes) = (block_bytes, ring_bytes);
        let error = crate::harness::try_run(&wanted).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!target.exists());
    };
    check(0, 1 << 20, "a block size of 0 bytes is not a multiple of 512");
    check(1000, 1 << 20, "a block size of 1000 bytes is not a multiple of 512");
    check(512, 2047, "a ring of 2047 bytes is too small for blocks of 512 bytes");
}
