//! What measuring costs a run: the same reads with latencies, series and counters, and with nothing
//! but a count of bytes, in turns.
//!
//! `cargo run --release -p loads --example measuring_cost -- [FILE [ROUNDS]]`. From the page cache,
//! where a block is there at once and every look at the clock counts most; of FILE, when one is
//! named, also past the cache. Without FILE one of 1 GiB in the temporary folder is read.
//! Processor time is told beside the time: other programs on the machine do not disturb it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use experiment::observed::{About, Before};
use flow::cancel::Cancel;
use loads::read::{Cache, Engine, Pages, Reading, Watching, read};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use statistics::bytes_over_time::SeriesRecorder;
use statistics::histogram::Histogram;
use statistics::ratio::paired;
use storage::layers::Storage;

const REQUESTS: u32 = 10_000_000;
/// As `takeup bench read` reads without being told.
const LENGTH_BYTES: u64 = 1 << 30;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let named = arguments.next().map(PathBuf::from);
    let rounds: usize = arguments.next().map_or(200, |text| text.parse().unwrap());
    println!("looks at the clock, histogram and series: {:.0} ns a request", each_ns());
    let mut own = tempfile::NamedTempFile::new().unwrap();
    if named.is_none() {
        let block = vec![1u8; 1 << 20];
        (0..LENGTH_BYTES >> 20).for_each(|_| own.write_all(&block).unwrap());
    }
    let path = named.as_deref().unwrap_or(own.path());
    println!("looking at the counters before and after: {:.0} us a run", counters_us(path));
    let cached = Reading {
        engine: Engine::Psync,
        cache: Cache::Buffered,
        block_bytes: 1 << 20,
        read_ahead_bytes: None,
        depth: 1,
        readers: 1,
        pages: Pages::Huge,
    };
    for block_bytes in [64 << 10, 256 << 10, 1 << 20] {
        let reading = Reading { block_bytes, ..cached };
        compare("page cache, psync", path, &reading, rounds);
    }
    if named.is_some() {
        let direct = Reading { cache: Cache::Direct, ..cached };
        compare("direct, psync", path, &direct, rounds);
        let deep = Reading { engine: Engine::IoUring, depth: 8, ..direct };
        compare("direct, io_uring, depth 8", path, &deep, rounds);
    }
}

/// Time of what is done for each request, by itself.
fn each_ns() -> f64 {
    let start = Instant::now();
    let (mut latency, mut series) = (Histogram::default(), SeriesRecorder::new(start));
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        let ended = black_box(Instant::now());
        latency.add(ended.duration_since(begun).as_nanos() as u64);
        series.add(ended, 1 << 20);
    }
    black_box((latency.count(), series));
    start.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
}

/// Time that the counters take of each run, however long it is.
fn counters_us(path: &Path) -> f64 {
    const LOOKS: u32 = 200;
    let device = Storage::of(path).unwrap();
    let start = Instant::now();
    for _ in 0..LOOKS {
        black_box(Before::look(&device).measures(&device, About::Reading, 1));
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(LOOKS)
}

/// Rounds of one run each, the first one by turns; the ratio of their times.
fn compare(name: &str, path: &Path, reading: &Reading, rounds: usize) {
    let device = Storage::of(path).unwrap();
    // Fills the page cache, and is not counted.
    run(path, reading, Watching::InFull, &device);
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let order = match round % 2 {
            0 => [Watching::InFull, Watching::BytesOnly],
            _ => [Watching::BytesOnly, Watching::InFull],
        };
        let times = order.map(|watched| (watched, run(path, reading, watched, &device)));
        let of = |wanted| times.iter().find(|(watched, _)| *watched == wanted).unwrap().1;
        pairs.push((of(Watching::InFull), of(Watching::BytesOnly)));
    }
    let bare = pairs.iter().map(|(_, bare)| bare.seconds).sum::<f64>() / rounds as f64;
    println!(
        "{name}, {} KiB, {:.0} MB/s: time {}, processor time {}; {rounds} rounds",
        reading.block_bytes >> 10,
        LENGTH_BYTES as f64 / bare / 1e6,
        more(&pairs, |run| run.seconds),
        more(&pairs, |run| run.processor_seconds),
    );
}

/// How much more the measured runs took, with its 95 % interval.
fn more(pairs: &[(Took, Took)], what: impl Fn(&Took) -> f64) -> String {
    let pairs: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (what(a), what(b))).collect();
    let found = paired(&pairs, 0.95).unwrap();
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let (low, high) = (percent(found.interval.low), percent(found.interval.high));
    format!("{:+.2} % ({low:+.2} to {high:+.2})", percent(found.ratio))
}

/// What a run took.
#[derive(Clone, Copy)]
struct Took {
    seconds: f64,
    processor_seconds: f64,
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// One run with all that belongs to its measuring.
fn run(path: &Path, reading: &Reading, watched: Watching, device: &Storage) -> Took {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
    if reading.cache == Cache::Direct {
        flags |= OFlags::DIRECT;
    }
    let files: Vec<OwnedFd> = vec![base::interruptible::open(path, flags, Mode::empty()).unwrap()];
    let length = File::open(path).unwrap().metadata().unwrap().len().min(LENGTH_BYTES);
    let (start, processor) = (Instant::now(), processor_seconds());
    let before = (watched == Watching::InFull).then(|| Before::look(device));
    let measured = read(reading, &files, length, watched, &Cancel::new()).unwrap();
    if let Some(before) = before {
        black_box(before.measures(device, About::Reading, measured.bytes));
    }
    Took {
        seconds: start.elapsed().as_secs_f64(),
        processor_seconds: processor_seconds() - processor,
    }
}
