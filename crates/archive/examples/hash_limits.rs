//! What one core and all cores give to hashing and to copying memory, in the processor's cache and
//! out of it: the bound of whatever reads, hashes and writes.
//!
//! `cargo run --release -p archive --example hash_limits`
//!
//! Prints GB/s of the content hash, of the block checksum and of a copy, over pieces of 256 KiB,
//! 1 MiB and 64 MiB, on one thread and on as many as there are cores; and beside the last the
//! seconds of processor time that 4 GiB take by it. Each figure is the median of five rounds of a
//! fifth of a second, the rounds of all taken in turns.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use archive::index::{ContentHasher, block_checksum};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(200);
const PIECES: [usize; 3] = [256 << 10, 1 << 20, 64 << 20];

#[derive(Clone, Copy)]
enum Work {
    Content,
    Checksum,
    Copy,
}

const WORKS: [(&str, Work); 3] =
    [("content hash", Work::Content), ("block checksum", Work::Checksum), ("copy", Work::Copy)];

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rates = vec![Vec::new(); PIECES.len() * WORKS.len() * 2];
    for _ in 0..ROUNDS {
        let mut rates = rates.iter_mut();
        for bytes in PIECES {
            for (_, work) in WORKS {
                for threads in [1, cores] {
                    rates.next().expect("one for each").push(rate(work, bytes, threads));
                }
            }
        }
    }
    println!("{:15} {:>10} {:>10} {:>10}  4 GiB, one core", "", "piece", "one core", "all cores");
    let mut rates = rates.into_iter().map(median);
    for bytes in PIECES {
        for (name, _) in WORKS {
            let (one, all) = (rates.next().unwrap_or(0.0), rates.next().unwrap_or(0.0));
            let seconds = (4u64 << 30) as f64 / one / 1e9;
            let piece = format!("{} KiB", bytes >> 10);
            println!("{name:15} {piece:>10} {one:>10.1} {all:>10.1}  {seconds:.2} s");
        }
    }
}

/// GB/s of all threads together.
fn rate(work: Work, bytes: usize, threads: usize) -> f64 {
    std::thread::scope(|scope| {
        let own = move || one_thread(work, bytes);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(own)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it only computes")).sum()
    })
}

fn one_thread(work: Work, bytes: usize) -> f64 {
    let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 513) as u8).collect();
    let mut other = vec![0; bytes];
    let started = Instant::now();
    let mut done = 0;
    while started.elapsed() < ROUND {
        match work {
            Work::Content => drop(black_box(ContentHasher::hash_whole(black_box(&data)))),
            Work::Checksum => drop(black_box(block_checksum(black_box(&data)))),
            Work::Copy => black_box(&mut other).copy_from_slice(black_box(&data)),
        }
        done += bytes;
    }
    done as f64 / started.elapsed().as_secs_f64() / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
