//! What the model of the kernel's read-ahead (`sim::model::read_ahead`) says of the disk of the
//! example `slow_disk`, to hold measured sweeps against:
//! `cargo run -p bench --example read_ahead_prediction -- [MILLISECONDS [COPY_MB_PER_SECOND]]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use sim::model::disk::DiskParameters;
use sim::model::read_ahead::{Policy, Reader, sequential_bytes_per_second};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let milliseconds = numbers.next().unwrap_or(5.5);
    let copy = (numbers.next().unwrap_or(700.0) * 1e6) as u64;
    // A file system without a block device has no `max_sectors_kb`: reads above the window are
    // bounded by the kernel's usual 128 KiB (`io_pages` of its backing device).
    let disk = DiskParameters {
        request_bytes_max: 128 << 10,
        ..DiskParameters::constant((milliseconds * 1e6) as u64, 1 << 40)
    };
    let reader = Reader { read_bytes: 256 << 10, copy_bytes_per_second: copy };
    for kib in [128u64, 256, 512, 1024, 2048, 4096, 8192, 16384] {
        let policy = Policy::Linux { window_bytes: kib << 10 };
        let rate = sequential_bytes_per_second(&disk, policy, reader);
        println!("{kib:>6} KiB {:>6.1} MB/s", rate as f64 / 1e6);
    }
}
