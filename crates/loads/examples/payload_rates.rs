//! How fast the data of an experiment with tape are made, on one core, beside copying memory:
//! `cargo run --release -p loads --example payload_rates`. Least time of several rounds, which
//! other work on the machine disturbs least; then what a drive and zstd -3 make of the data.
//!
//! A drive takes 0.3 to 0.4 GB/s, and 1.2 GB/s with data that compress (LTO-9, 12 Gbit/s SAS).

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use loads::framing::{Framer, Framing, Layout};
use loads::payload::{Data, Payload, PayloadError};
use model::compressibility::Compressibility;

/// A block, which stays in the second-level cache as it would in a small ring.
const BLOCK_BYTES: usize = 1 << 20;
/// More than any cache holds: a ring of usual size.
const RING_BLOCKS: usize = 128;
const ROUNDS: usize = 7;

fn main() -> Result<(), PayloadError> {
    let mut ring = vec![1u8; BLOCK_BYTES * RING_BLOCKS];
    let from = vec![2u8; BLOCK_BYTES];
    show("copy of memory", best(&mut ring, |block| block.copy_from_slice(black_box(&from))));
    for data in ["zeros", "random", "text:1.5", "text:2", "text:3", "text:5"] {
        let data: Data = data.parse()?;
        let mut payload = Payload::open(&data, 1)?;
        let mut result = Ok(());
        let rate = best(&mut ring, |block| result = payload.fill(block));
        result?;
        show(&data.to_string(), rate);
    }
    for framing in [Framing::Tar, Framing::Bacula] {
        for block_bytes in [64 << 10, BLOCK_BYTES] {
            let payload = Payload::open(&Data::Random, 1)?;
            let layout = Layout { file_blocks: u64::MAX, blocks: u64::MAX };
            let mut framer = Framer::new(framing, block_bytes, payload, layout)?;
            let mut result = Ok(());
            let mut sealed = vec![0; block_bytes];
            let rate = best(&mut ring, |block| {
                for part in block.chunks_mut(block_bytes) {
                    result = framer.block(part).map(drop);
                    if framing.is_sealed() {
                        framing.seal(part, black_box(&mut sealed));
                    }
                }
            });
            result?;
            show(&format!("random, {framing}, {} KiB", block_bytes >> 10), rate);
        }
    }
    for data in ["random", "text:1.5", "text:2", "text:3", "text:5"] {
        let (drive, zstd) = ratios(&data.parse()?)?;
        println!("{data:24} {drive:5.2}:1 in a drive        {zstd:5.2}:1 by zstd -3");
    }
    Ok(())
}

fn ratios(data: &Data) -> Result<(f64, f64), PayloadError> {
    let mut bytes = vec![0; 4 * BLOCK_BYTES];
    Payload::open(data, 1)?.fill(&mut bytes)?;
    let mut drive = Compressibility::new();
    drive.add(&bytes);
    let packed = zstd::bulk::compress(&bytes, 3).map_or(f64::NAN, |packed| packed.len() as f64);
    Ok((drive.ratio(), bytes.len() as f64 / packed))
}

/// Bytes per second of the fastest round, in a block that is used again and in a whole ring.
fn best(ring: &mut [u8], mut fill: impl FnMut(&mut [u8])) -> (f64, f64) {
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..RING_BLOCKS {
            fill(black_box(&mut ring[..BLOCK_BYTES]));
        }
        least[0] = least[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        ring.chunks_mut(BLOCK_BYTES).for_each(|block| fill(black_box(block)));
        least[1] = least[1].min(start.elapsed().as_secs_f64());
    }
    let bytes = (BLOCK_BYTES * RING_BLOCKS) as f64;
    (bytes / least[0], bytes / least[1])
}

fn show(name: &str, (block, ring): (f64, f64)) {
    println!("{name:24} {:5.1} GB/s in one block  {:5.1} GB/s in a ring", block / 1e9, ring / 1e9);
}
