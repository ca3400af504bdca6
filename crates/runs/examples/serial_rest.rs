//! The cost of the part of a backup that must happen in archive order: no number of cores makes it
//! faster, so it bounds the rate of the engine.
//!
//! `cargo run --release -p runs --example serial_rest`
//!
//! Hashing itself is not included: stretches and block checksums are computed in any order.
//! Included are joining the stretches of large files, the records of the index, turns, and passing
//! blocks of 1 MiB through a ring with two consumers. Medians of nine rounds, in memory, on one
//! core.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use archive::index::{
    BlockChecksum, BlockHasher, ContentTree, FileLayout, FileRecord, IndexWriter, RecordKind,
    Stretch,
};
use archive::member::Timestamp;
use archive::stream::ArchiveOffset;
use flow::account::{Account, Stage, ThreadState};
use flow::cancel::Cancel;
use flow::ring::{RingOptions, ring};
use flow::run::StageKind;
use flow::turnstile::{Turn, Turnstile};

const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 1000;
const FILES: usize = 100_000;
const ROUNDS: usize = 9;

fn main() {
    let stage = Stage::new(StageKind::Hash);
    let mut account = stage.open();
    let join = median(|| join(BLOCKS));
    let checksums = median(|| checksums(BLOCKS));
    let turns = median(|| turns(BLOCKS, &mut account));
    let blocks = median(|| blocks(BLOCKS, &mut account));
    let records = median(|| records(FILES));
    let gigabytes = (BLOCKS * BLOCK_BYTES) as f64 / 1e9;
    let for_each_gigabyte = |seconds: f64| seconds * 1e3 / gigabytes;
    let all = join + checksums + turns + blocks;
    println!("for each GB of one large file, in blocks of 1 MiB:");
    for (what, seconds) in [
        ("joining stretches", join),
        ("records of block checksums", checksums),
        ("turns", turns),
        ("blocks through the ring", blocks),
        ("all", all),
    ] {
        println!("  {what:28} {:7.3} ms", for_each_gigabyte(seconds));
    }
    println!(
        "  so one stream ends at {:.0} GB/s, if memory and devices gave that",
        gigabytes / all
    );
    println!("for each file: record of the index {:.3} us", records * 1e6 / FILES as f64);
}

fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut seconds: Vec<f64> = (0..ROUNDS).map(|_| run()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[ROUNDS / 2]
}

/// Joins the stretches of a file that begins after its header, in the middle of a chunk.
fn join(blocks: usize) -> f64 {
    let data: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at * 7 + at / 513) as u8).collect();
    let first_bytes = BLOCK_BYTES - 1536;
    let tree = ContentTree::whole((first_bytes + (blocks - 1) * BLOCK_BYTES) as u64);
    let mut at = 0;
    let stretches: Vec<Stretch> = (0..blocks)
        .map(|number| {
            let bytes = if number == 0 { first_bytes } else { BLOCK_BYTES };
            let stretch = tree.hash(at, &data[..bytes], |_| ());
            at += bytes as u64;
            stretch
        })
        .collect();
    let mut joined = tree.begin();
    let started = Instant::now();
    stretches.into_iter().for_each(|stretch| joined.add(stretch));
    let seconds = started.elapsed().as_secs_f64();
    assert_ne!(joined.finish(), [0; 32], "a hash came of it");
    seconds
}

fn checksums(blocks: usize) -> f64 {
    let mut hasher = BlockHasher::new(BLOCK_BYTES);
    let (mut writer, mut section) = (IndexWriter::<BlockChecksum>::default(), Vec::new());
    let block = vec![0; BLOCK_BYTES];
    let started = Instant::now();
    for number in 0..blocks as u64 {
        let record = |checksum| {
            let pushed = writer.push(&BlockChecksum(checksum), &mut section);
            pushed.expect("a checksum fits");
        };
        hasher.update_around(&block, 0..BLOCK_BYTES, &[number], record);
    }
    started.elapsed().as_secs_f64()
}

fn turns(blocks: usize, account: &mut Account) -> f64 {
    let turnstile = Turnstile::new(Cancel::new());
    let started = Instant::now();
    for ticket in 0..blocks as u64 {
        turnstile
            .enter(ticket, account, ThreadState::Blocked)
            .map(Turn::pass)
            .expect("nobody cancels");
    }
    started.elapsed().as_secs_f64()
}

fn blocks(blocks: usize, account: &mut Account) -> f64 {
    let options = RingOptions { block_bytes: BLOCK_BYTES, blocks: 4, consumers: 2 };
    let (producer, consumers) = ring(options, Cancel::new()).expect("there is memory");
    let started = Instant::now();
    for _ in 0..blocks {
        producer.reserve(BLOCK_BYTES, account).expect("there is room").commit();
        for consumer in &consumers {
            consumer.next(account).map(drop).expect("a block is ready");
        }
    }
    started.elapsed().as_secs_f64()
}

fn records(files: usize) -> f64 {
    let records: Vec<FileRecord> = (0..files as u64)
        .map(|number| FileRecord {
            path: format!("srv/data/folder-{:04}/file-{number:06}.dat", number / 250).into_bytes(),
            kind: RecordKind::File {
                size_bytes: 9000 + number % 5000,
                stored_bytes: 9000 + number % 5000,
                layout: FileLayout::Whole,
                content_hash: Some([number as u8; 32]),
            },
            header_offset_bytes: ArchiveOffset::new(number * 10_240),
            content_offset_bytes: ArchiveOffset::new(number * 10_240 + 512),
            mode: 0o644,
            uid: 1000,
            gid: 1000,
            modified: Timestamp { seconds: 1_700_000_000 + number as i64, nanoseconds: 0 },
            changed: Timestamp { seconds: 1_700_000_000 + number as i64, nanoseconds: 0 },
        })
        .collect();
    let (mut writer, mut section) = (IndexWriter::<FileRecord>::default(), Vec::new());
    let started = Instant::now();
    for record in &records {
        writer.push(record, &mut section).expect("a record fits");
    }
    started.elapsed().as_secs_f64()
}
