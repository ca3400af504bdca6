//! Every engine over a small file: each block once, and errors where the file ends early.

use std::io::Write;

use rustix::fs::{Mode, OFlags};

use super::super::reading::{Cache, Pages};
use super::*;

const PLAIN: Reading = Reading {
    engine: Engine::Sync,
    cache: Cache::Buffered,
    block_bytes: 4096,
    read_ahead_bytes: None,
    depth: 1,
    readers: 1,
    pages: Pages::Huge,
};

fn file(bytes: usize) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let content: Vec<u8> = (0..bytes).map(|index| (index / 7) as u8).collect();
    file.write_all(&content).unwrap();
    file.as_file().sync_all().unwrap();
    file
}

fn measured(reading: &Reading, file: &tempfile::NamedTempFile) -> Result<Measured, ReadBenchError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let open = |_| base::interruptible::open(file.path(), flags, Mode::empty()).unwrap();
    let files: Vec<OwnedFd> = (0..reading.readers).map(open).collect();
    let length = file.as_file().metadata().unwrap().len();
    read(reading, &files, length, Watching::InFull, &Cancel::new())
}

#[test]
fn every_way_reads_every_block_once() {
    let file = file(1_000_000);
    for engine in [Engine::Sync, Engine::Psync, Engine::Mmap, Engine::IoUring] {
        for (depth, readers) in [(1, 1), (7, 1), (1, 3), (4, 2)] {
            let reading = Reading { engine, depth, readers, ..PLAIN };
            if !reading.is_sensible(None) {
                continue;
            }
            let found = match measured(&reading, &file) {
                Ok(found) => found,
                Err(ReadBenchError::Engine { engine: "io_uring", .. }) => continue,
                Err(error) => panic!("{reading:?}: {error}"),
            };
            let blocks = 1_000_000 / 4096;
            assert_eq!(found.bytes, blocks * 4096, "{reading:?}");
            assert_eq!(found.latency.count(), blocks, "{reading:?}");
            assert_eq!(found.series.bytes.iter().sum::<u64>(), found.bytes, "{reading:?}");
            assert_eq!(found.stages[0].bytes, found.bytes, "{reading:?}");
        }
    }
}

#[test]
fn a_file_that_ends_early_is_an_error() {
    let file = file(100_000);
    for engine in [Engine::Sync, Engine::Psync, Engine::IoUring] {
        for depth in [1, 4] {
            let reading = Reading { engine, depth, ..PLAIN };
            let open =
                base::interruptible::open(file.path(), OFlags::RDONLY, Mode::empty()).unwrap();
            let found = read(&reading, &[open], 200_000, Watching::InFull, &Cancel::new());
            let told = matches!(
                found,
                Err(ReadBenchError::Ended { .. }
                    | ReadBenchError::Engine { engine: "io_uring", .. })
            );
            assert!(told, "{found:?}");
        }
    }
    assert!(measured(&Reading { block_bytes: 1 << 20, ..PLAIN }, &file).is_err());
}

#[test]
fn a_cancel_ends_it() {
    let file = file(100_000);
    let open = base::interruptible::open(file.path(), OFlags::RDONLY, Mode::empty()).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(read(&PLAIN, &[open], 100_000, Watching::InFull, &cancel).is_err());
}
