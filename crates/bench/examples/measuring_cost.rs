//! What measuring costs a run: time for each request of two looks at the clock, the histogram and
//! the series. `cargo run --release -p bench --example measuring_cost`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use bench::histogram::Histogram;
use bench::series::SeriesRecorder;

const REQUESTS: u32 = 10_000_000;

fn main() {
    let start = Instant::now();
    let (mut latency, mut series) = (Histogram::default(), SeriesRecorder::new(start));
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        let ended = black_box(Instant::now());
        latency.add(ended.duration_since(begun).as_nanos() as u64);
        series.add(ended, 1 << 20);
    }
    let each_ns = start.elapsed().as_nanos() as f64 / f64::from(REQUESTS);
    black_box((latency.count(), series));
    for (block, rate) in [(64u64 << 10, 3e9), (1 << 20, 3e9), (1 << 20, 300e6)] {
        let share = each_ns / 1e9 / (block as f64 / rate) * 100.0;
        println!(
            "{each_ns:.0} ns a request: {share:.3} % at {} KiB and {rate:.0e} B/s",
            block >> 10
        );
    }
}
