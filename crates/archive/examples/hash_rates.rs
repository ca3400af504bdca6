//! How fast content hashes of small files are computed one by one and in batches.
//!
//! `cargo run --release -p archive --example hash_rates`
//!
//! Prints nanoseconds for each of 100,000 contents of log-normal length averaging 9 KB, in
//! alternating rounds. The contents are in memory, mostly in the processor's cache.
#![allow(clippy::print_stdout)]

use archive::index::{ContentBatch, ContentHasher};
use std::time::Instant;

fn main() {
    let lengths: Vec<usize> = lengths().collect();
    let total_bytes: usize = lengths.iter().sum();
    let data: Vec<u8> = (0..4usize << 20).map(|at| (at * 7 + at / 513) as u8).collect();
    println!("{} contents, {total_bytes} bytes", lengths.len());
    let mut batch = ContentBatch::new();
    let mut hashes = Vec::new();
    for round in 0..5 {
        let mut folded = [0u8; 2];
        let started = Instant::now();
        for &length in &lengths {
            let mut hasher = ContentHasher::whole();
            hasher.update(&data[length..2 * length]);
            folded[0] ^= hasher.finish()[0];
        }
        let one_by_one = started.elapsed();
        let started = Instant::now();
        for lengths in lengths.chunks(64) {
            let contents: Vec<&[u8]> =
                lengths.iter().map(|&length| &data[length..2 * length]).collect();
            batch.hash_whole(&contents, &mut hashes);
            hashes.iter().for_each(|hash| folded[1] ^= hash[0]);
        }
        let batched = started.elapsed();
        assert_eq!(folded[0], folded[1], "both ways give the same hashes");
        let each = |time: std::time::Duration| time.as_nanos() / lengths.len() as u128;
        println!("round {round}: one by one {} ns, batched {} ns", each(one_by_one), each(batched));
    }
}

/// Log-normal lengths by the Box-Muller transform over a linear congruential generator.
fn lengths() -> impl Iterator<Item = usize> {
    let mut state = 12_345u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 1.0) / (1u64 << 31) as f64
    };
    (0..100_000).map(move |_| {
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        ((8.6 + normal).exp() as usize).min(1 << 20)
    })
}
