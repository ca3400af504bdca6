//! Cost of the walk alone and of walk and capture, on a tree given as argument:
//! `cargo run --release -p tree --example scan_rates -- TREE [LOOK_AHEAD_THREADS] [capture]`.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tree::{Accounts, Capture, CaptureOptions, Capturer, Item, LookAheadLimits, Progress};
use tree::{Scan, ScanOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let tree = PathBuf::from(arguments.next().ok_or("which tree?")?);
    let threads = arguments.next().map_or(Ok(8), |number| number.parse())?;
    let with_capture = arguments.next().is_some();
    let accounts = Arc::new(Accounts::load());
    for _ in 0..5 {
        let began = Instant::now();
        let cpu_before = cpu_time();
        let look_ahead = LookAheadLimits { threads, ..LookAheadLimits::default() };
        let mut scan = Scan::start(
            std::slice::from_ref(&tree),
            ScanOptions { look_ahead, ..ScanOptions::default() },
        )?;
        let mut capturer = Capturer::new(CaptureOptions::default(), Arc::clone(&accounts));
        let (mut entries, mut problems, mut batches) = (0_u64, 0_u64, 0_u64);
        let mut items = Vec::new();
        let mut used = None;
        loop {
            let progress = scan.next_batch(&mut items);
            batches += 1;
            for item in items.drain(..) {
                let Item::Entry(entry) = item else {
                    problems += 1;
                    continue;
                };
                entries += 1;
                if with_capture {
                    match capturer.capture(&entry, used.take()) {
                        Ok(Capture::Object(captured)) => used = Some(captured.member),
                        Ok(Capture::Skipped(_)) => {}
                        Err(_) => problems += 1,
                    }
                }
            }
            if progress != Progress::More {
                break;
            }
        }
        drop(scan);
        println!(
            "{entries} entries, {problems} problems, {batches} batches: {:.1} ms, {:.1} ms of CPU",
            began.elapsed().as_secs_f64() * 1e3,
            (cpu_time() - cpu_before).as_secs_f64() * 1e3,
        );
    }
    Ok(())
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
