//! Rates of hashing and of copying memory, on one core and on all, in the processor's cache and out
//! of it: the upper bound of any program that reads, hashes and writes.
//!
//! `cargo run --release -p archive --example hash_limits [FILE]`
//!
//! Prints GB/s of the content hash, of the block checksum in one go and in four steps, and of a
//! copy, over pieces of 256 KiB, 1 MiB and 64 MiB, on one thread and on as many as there are cores.
//! The last column is the processor time for 4 GiB in seconds. Each figure is the median of five
//! rounds of a fifth of a second, with all measurements taking turns.
//!
//! With FILE, which the page cache should hold (`cat FILE >/dev/null`), also the seconds to read it
//! and to read and hash it, by one thread and by all cores, each with one buffer of 1 MiB and
//! nothing else to do: no ring, no order, no index. Medians of five, taking turns. No backup of
//! that file can be faster.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archive::index::{BlockHasher, ContentHasher, block_checksum};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(200);
const PIECES: [usize; 3] = [256 << 10, 1 << 20, 64 << 20];

#[derive(Clone, Copy)]
enum Work {
    Content,
    Checksum,
    ChecksumInSteps,
    Copy,
}

const WORKS: [(&str, Work); 4] = [
    ("content hash", Work::Content),
    ("block checksum", Work::Checksum),
    ("in 4 steps", Work::ChecksumInSteps),
    ("copy", Work::Copy),
];

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
    if let Some(path) = std::env::args_os().nth(1) {
        read_whole(&File::open(path).expect("FILE can be opened"), cores);
    }
}

/// Prints the seconds of reading FILE, and of reading and hashing it in steps.
fn read_whole(file: &File, cores: usize) {
    const STEPS: [Option<usize>; 3] = [None, Some(256 << 10), Some(1 << 20)];
    let mut seconds = vec![Vec::new(); STEPS.len() * 2];
    for _ in 0..ROUNDS {
        let mut seconds = seconds.iter_mut();
        for step in STEPS {
            for threads in [1, cores] {
                let started = Instant::now();
                let next = AtomicU64::new(0);
                std::thread::scope(|scope| {
                    (0..threads).for_each(|_| drop(scope.spawn(|| read_some(file, &next, step))));
                });
                seconds.next().expect("one for each").push(started.elapsed().as_secs_f64());
            }
        }
    }
    let mut seconds = seconds.into_iter().map(median);
    for step in STEPS {
        let name = match step {
            None => "read".to_owned(),
            Some(bytes) => format!("read and hash by {} KiB", bytes >> 10),
        };
        let (one, all) = (seconds.next().unwrap_or(0.0), seconds.next().unwrap_or(0.0));
        println!("{name:25} {one:>9.2} s {all:>8.2} s");
    }
}

/// Reads the blocks that no thread has taken yet, in steps, and hashes each step at once.
fn read_some(file: &File, next: &AtomicU64, step: Option<usize>) {
    const BLOCK: u64 = 1 << 20;
    let mut buffer = vec![0; BLOCK as usize];
    loop {
        let at = next.fetch_add(BLOCK, Ordering::Relaxed);
        let mut end = 0;
        for part in buffer.chunks_mut(step.unwrap_or(BLOCK as usize)) {
            let bytes = file.read_at(part, at + end).expect("FILE can be read");
            end += bytes as u64;
            if step.is_some() {
                black_box(ContentHasher::hash_whole(black_box(&part[..bytes])));
                black_box(block_checksum(black_box(&part[..bytes])));
            }
        }
        if end == 0 {
            return;
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
            Work::ChecksumInSteps => {
                let mut hasher = BlockHasher::new(bytes);
                for step in black_box(&data).chunks(bytes / 4) {
                    hasher.update(step, |checksum| _ = black_box(checksum));
                }
            }
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
