//! Large files with all but a few pages in the page cache, through rings of a few blocks: several
//! threads copy their blocks, and one of them finds that its block is not cached.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use runs::backup::BackupOptions;
use tempfile::tempdir;
use testkit::samples::{Random, noise};

use crate::harness::{Recorder, Watchdog, options, run, run_clean};
use crate::index::check_archive;
use crate::trees::write_sparse;

const BLOCK_BYTES: usize = 256 << 10;
const FILES: u64 = 8;
const FILE_BYTES: usize = 18 * BLOCK_BYTES;

/// Files of many small blocks, some with holes, whose ends are rarely ends of ring blocks.
fn many(tree: &Path) -> Vec<PathBuf> {
    std::fs::create_dir(tree).unwrap();
    let write = |number: u64| {
        let path = tree.join(format!("{number:02}"));
        if number.is_multiple_of(4) {
            let runs = [(0, 9 * BLOCK_BYTES), (4 << 20, 512), (5 << 20, 9 * BLOCK_BYTES + 700)];
            write_sparse(&path, 9 << 20, &runs);
        } else {
            std::fs::write(&path, noise(number, FILE_BYTES + number as usize * 70_001)).unwrap();
        }
        path
    };
    (0..FILES).map(write).collect()
}

/// Leaves the file in the page cache but for some blocks, more than is read ahead at once.
fn all_but(mut file: &File, missing: std::ops::Range<u64>) {
    file.seek(SeekFrom::Start(0)).unwrap();
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    device::file::drop_cached(file, missing.start, missing.end - missing.start);
}

/// Backups through rings of four to eight blocks, each compared with a backup that streams nothing.
fn same_through_small_rings(compression: Compression, rounds: u64, change: fn(&mut BackupOptions)) {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    let paths = many(&tree);
    let files: Vec<File> = paths.iter().map(|path| File::open(path).unwrap()).collect();
    files.iter().for_each(|file| file.sync_all().unwrap());
    let target = folder.path().join("archive");
    let mut wanted = options(&[&tree], &target);
    (wanted.block_bytes, wanted.compression) = (BLOCK_BYTES, compression);
    let finished = run_clean(&wanted);
    check_archive(&finished, compression);
    let expected = finished.bytes();
    let mut random = Random::new(7);
    for round in 0..rounds {
        for file in &files {
            let blocks = file.metadata().unwrap().len() / BLOCK_BYTES as u64;
            let first = 1 + random.below(blocks);
            all_but(file, first * BLOCK_BYTES as u64..(first + 6) * BLOCK_BYTES as u64);
        }
        wanted.target = folder.path().join("again").into();
        wanted.ring_bytes = (4 + round as usize % 5) * BLOCK_BYTES;
        change(&mut wanted);
        let finished = run_clean(&wanted);
        assert!(finished.bytes() == expected, "round {round}, {wanted:?}");
        std::fs::remove_file(&finished.archive).unwrap();
    }
}

#[test]
fn whoever_lacks_a_page_of_its_block_holds_up_nobody() {
    same_through_small_rings(Compression::None, 10, |_| ());
}

#[test]
fn a_slow_writer_and_compressors_get_the_same() {
    same_through_small_rings(Compression::None, 2, |it| {
        it.ring_bytes = 4 * it.block_bytes;
        it.rate_limit_bytes_per_second = Some(60 << 20);
    });
    same_through_small_rings(Compression::Zstd { level: 1 }, 4, |it| {
        it.ring_bytes = 6 * it.compression.chunk_bytes();
        it.compress_threads = Some(3);
    });
}

#[test]
fn a_cancel_while_blocks_are_copied_leaves_nothing() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    many(&tree);
    let target = folder.path().join("archive");
    let mut wanted = options(&[&tree], &target);
    (wanted.block_bytes, wanted.ring_bytes) = (4096, 16 << 10);
    for round in 0..30u64 {
        let _watchdog = Watchdog::new(format!("cancel, round {round}"));
        let cancel = Cancel::new();
        let result = std::thread::scope(|scope| {
            let later = cancel.clone();
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(round * 700));
                later.cancel();
            });
            runs::backup::backup(&wanted, &Recorder::default(), &cancel)
        });
        match result {
            Ok(_) => std::fs::remove_file(&target).unwrap(),
            Err(error) => assert_eq!(error.to_string(), "cancelled"),
        }
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the tree is left: {left:?}");
    }
}

#[test]
fn cached_files_that_are_cut_while_they_are_copied_give_an_archive() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    let paths = many(&tree);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(3);
            while !stop.load(Ordering::Relaxed) {
                let path = &paths[random.below(FILES) as usize];
                let file = File::options().write(true).open(path).unwrap();
                file.set_len(random.below(4 << 20)).unwrap();
                std::thread::yield_now();
                file.write_all_at(&noise(4, 5 << 20), 0).unwrap();
            }
        });
        // Whatever fails below, the disturber has to end.
        let result = std::panic::catch_unwind(|| {
            for round in 0..12 {
                let target = folder.path().join(format!("archive-{round}"));
                let mut wanted = options(&[&tree], &target);
                (wanted.block_bytes, wanted.ring_bytes) = (64 << 10, 256 << 10);
                check_archive(&run(&wanted), Compression::None);
                std::fs::remove_file(&target).unwrap();
            }
        });
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
