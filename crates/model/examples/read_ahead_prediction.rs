//! Predictions of the read-ahead model (`model::read_ahead`) for a virtual disk (`takeup sim disk
//! --service-time .. --bandwidth .. --parallel .. --loop`), to compare with measured sweeps:
//!
//! ```text
//! cargo run -p model --example read_ahead_prediction -- [MILLISECONDS [DISK_MB_PER_SECOND \
//!     [COPY_MB_PER_SECOND [PARALLEL [REQUEST_KIB]]]]]
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use model::disk::DiskParameters;
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};

/// A level this close to the best counts as good: the band of the judgement.
const AS_GOOD: f64 = 0.98;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap());
    let mut number = |usual: f64| numbers.next().unwrap_or(usual);
    let milliseconds = number(5.5);
    let disk_rate = number(400.0) * 1e6;
    let copy_rate = number(3000.0) * 1e6;
    let servers = number(32.0) as usize;
    // A loop device's `max_sectors_kb`; the kernel's usual 128 KiB if there is no block device.
    let request_kib = number(1280.0) as u64;
    let disk = DiskParameters {
        servers,
        link_bytes_per_second: disk_rate as u64,
        request_bytes_max: request_kib << 10,
        ..DiskParameters::constant((milliseconds * 1e6) as u64, 1 << 40)
    };
    let reader = Reader { read_bytes: 256 << 10, copy_bytes_per_second: copy_rate as u64 };
    let rate = |policy| sequential_bytes_per_second(&disk, policy, reader) as f64;
    let levels = [128u64, 256, 512, 1024, 2048, 4096, 8192, 16384];
    let rates = levels.map(|kib| rate(Policy::Linux { window_bytes: kib << 10 }));
    let best = rates.iter().copied().fold(0.0, f64::max);
    println!("no page cache {:>6.1} MB/s", rate(Policy::Direct) / 1e6);
    let mut knee = None;
    for (kib, rate) in levels.into_iter().zip(rates) {
        println!("{kib:>9} KiB {:>6.1} MB/s", rate / 1e6);
        knee = knee.or((rate >= best * AS_GOOD).then_some(kib));
    }
    println!("knee: {} KiB", knee.unwrap());
}
