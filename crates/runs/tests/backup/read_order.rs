//! Files that are read in the order of the disk make the archive that those read by name make.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use device::file::cached_bytes;
use runs::backup::BackupOptions;
use runs::sweep::ReadOrder;
use tempfile::tempdir;
use testkit::mounted::{Mounted, image};
use testkit::samples::{Random, noise};

use crate::harness::{options, run_clean, try_run};
use crate::index::check_archive;
use crate::trees::write_sparse;

/// Files of all the sizes that are read in different ways, some with holes, written in another
/// order than that of their names; on the disk, and not in the page cache.
fn scattered(root: &Path) -> Vec<PathBuf> {
    let mut names: Vec<u64> = (0..600).collect();
    let mut random = Random::new(3);
    for place in (1..names.len()).rev() {
        names.swap(place, random.below(place as u64 + 1) as usize);
    }
    let write = |number: u64| {
        let path = root.join(format!("folder-{:02}", number % 23)).join(format!("{number:03}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match number {
            0 => std::fs::write(&path, noise(1, 9 << 20)).unwrap(),
            1..6 => std::fs::write(&path, noise(number, 1_300_000 + number as usize)).unwrap(),
            6..40 => write_sparse(&path, 900_000, &[(0, 5000), (300_000, 70_001), (800_000, 9)]),
            40..50 => std::fs::write(&path, []).unwrap(),
            _ => std::fs::write(&path, noise(number, (number * 97) as usize)).unwrap(),
        }
        if number.is_multiple_of(50) {
            std::fs::hard_link(&path, root.join(format!("link-{number}"))).unwrap();
        }
        path
    };
    let paths: Vec<PathBuf> = names.into_iter().map(write).collect();
    paths.iter().for_each(|path| File::open(path).unwrap().sync_all().unwrap());
    forget(&paths);
    paths
}

fn forget(paths: &[PathBuf]) {
    for path in paths {
        device::file::drop_cached(File::open(path).unwrap(), 0, 0);
    }
}

fn cached(path: &Path) -> Option<u64> {
    let file = File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    cached_bytes(file.as_fd(), 0..length)
}

#[test]
fn the_order_of_reads_does_not_show_in_the_archive() {
    let folder = tempdir().unwrap();
    let kinds = [(Compression::None, 1 << 20), (Compression::Zstd { level: 1 }, 48 << 20)];
    check_orders(folder.path(), &kinds);
}

/// Its trees say where files lie.
#[test]
fn nor_does_it_on_btrfs() {
    testkit::require!(Root, LoopDevices, Btrfs);
    let folder = tempdir().unwrap();
    let disk = folder.path().join("disk");
    image(&disk, 512 << 20, &["mkfs.btrfs", "-q", "-f"]);
    let options = ["-o", "loop,noatime,compress=zstd", disk.to_str().unwrap()];
    let mounted = Mounted::new(&options, &folder.path().join("at"));
    check_orders(mounted.path(), &[(Compression::None, 1 << 20)]);
}

/// The archive is the same in all orders of reading, of a tree that is made here.
fn check_orders(folder: &Path, kinds: &[(Compression, usize)]) {
    let tree = folder.join("tree");
    let paths = scattered(&tree);
    let target = folder.join("archive");
    for &(compression, least_ring) in kinds {
        let by_name = BackupOptions {
            compression,
            block_bytes: 64 << 10,
            read_order: ReadOrder::Name,
            ..options(&[&tree], &target)
        };
        let finished = run_clean(&by_name);
        check_archive(&finished, compression);
        let expected = finished.bytes();
        for order in [ReadOrder::Physical, ReadOrder::Inode, ReadOrder::Auto] {
            for window in [Some(300 << 10), Some(20 << 20), None] {
                for (readers, ring_bytes) in [(1, least_ring), (32, 64 << 20)] {
                    forget(&paths);
                    let wanted = BackupOptions {
                        read_order: order,
                        read_window_bytes: window,
                        read_threads: Some(readers),
                        ring_bytes,
                        target: folder.join("again").into(),
                        ..by_name.clone()
                    };
                    let finished = run_clean(&wanted);
                    assert!(finished.bytes() == expected, "{order:?}, {window:?}, {readers}");
                    std::fs::remove_file(&finished.archive).unwrap();
                }
            }
        }
        std::fs::remove_file(&target).unwrap();
    }
}

/// What was fetched for the run goes, and what others had there stays.
#[test]
fn the_page_cache_holds_afterwards_what_it_held_before() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    let mut paths = scattered(&tree);
    paths.sort();
    paths[..200].iter().for_each(|path| drop(std::fs::read(path).unwrap()));
    let before: Vec<Option<u64>> = paths.iter().map(|path| cached(path)).collect();
    let wanted = BackupOptions {
        read_order: ReadOrder::Physical,
        ..options(&[&tree], &folder.path().join("archive"))
    };
    run_clean(&wanted);
    let after: Vec<Option<u64>> = paths.iter().map(|path| cached(path)).collect();
    assert_eq!(before, after);
}

#[test]
fn a_target_that_fails_ends_a_run_whose_files_are_being_fetched() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    scattered(&tree);
    for window in [1 << 20, 1 << 30] {
        let wanted = BackupOptions {
            read_order: ReadOrder::Physical,
            read_window_bytes: Some(window),
            ..options(&[&tree], Path::new("/dev/full"))
        };
        let error = try_run(&wanted).unwrap_err();
        assert!(base::failures::with_causes(&error).contains("No space"), "{error}");
    }
}
