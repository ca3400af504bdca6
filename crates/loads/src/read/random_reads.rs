//! What a read-ahead costs others: single pages at random places through the page cache, as a
//! database reads them, with the setting in force.

use std::time::Instant;

use rustix::fs::{Mode, OFlags};

use super::{ReadBenchError, Subject};
use experiment::observed::Measures;
use statistics::histogram::Histogram;
use statistics::random::Random;

const PAGE_BYTES: usize = 4096;

/// Reads `count` pages at random places of the first `length_bytes`.
///
/// What the kernel reads around each page comes out of the device's counters; a device that others
/// use meanwhile shows their reads too.
pub fn measure(
    subject: &Subject,
    count: u64,
    length_bytes: u64,
) -> Result<Measures, ReadBenchError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let failed = |error: rustix::io::Errno| ReadBenchError::RandomRead {
        path: subject.path.clone(),
        source: error.into(),
    };
    let file = base::interruptible::open(&subject.path, flags, Mode::empty()).map_err(failed)?;
    device::file::drop_cached(&file, 0, length_bytes);
    let pages = usize::try_from(length_bytes / PAGE_BYTES as u64).unwrap_or(usize::MAX);
    let mut measures = Measures::new();
    if pages < 16 {
        return Ok(measures);
    }
    // The same places for every cell.
    let mut random = Random::new(length_bytes);
    let mut latency = Histogram::default();
    let mut page = vec![0u8; PAGE_BYTES];
    let before = subject.device.counters();
    for _ in 0..count {
        let offset = random.below(pages) as u64 * PAGE_BYTES as u64;
        let begun = Instant::now();
        base::interruptible::read_at(&file, &mut page, offset).map_err(failed)?;
        latency.add(begun.elapsed().as_nanos() as u64);
    }
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            measures.insert(name.to_owned(), value);
        }
    };
    put("random_read_p50_ns", latency.quantile_ns(0.5).map(|ns| ns as f64));
    put("random_read_p99_ns", latency.quantile_ns(0.99).map(|ns| ns as f64));
    let counted = before.zip(subject.device.counters());
    let bytes = counted.map(|(before, now)| now.since(before).read.bytes() as f64 / count as f64);
    put("random_read_device_bytes", bytes);
    Ok(measures)
}
