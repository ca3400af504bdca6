//! Any bytes as what fio printed, and as the kernel's counters of disks. Numbers are claims; no sum
//! of them may overflow, and what was not understood has a message.

use experiment::observed::{Measures, put_direction};
use loads::disk::fio::FioRun;
use machine::counters::disk::{DiskCounters, parse};

/// Checks one input.
pub fn check(input: &[u8]) {
    match FioRun::parse(input) {
        Ok(run) => {
            assert!(run.bytes() >= run.read.bytes.max(run.write.bytes));
            assert!(run.seconds >= 0.0);
            let mut both = run.read.latency.clone();
            both.merge(&run.write.latency);
            let median = both.quantile_ns(0.5);
            assert_eq!(median.is_some(), both.count() > 0);
            assert!(median <= both.quantile_ns(0.99));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match parse(input) {
        Ok(disks) => {
            let all = disks.iter().map(|(_, counters)| *counters);
            let all = all.reduce(DiskCounters::plus).unwrap_or_default();
            for (name, counters) in &disks {
                assert!(!name.is_empty());
                assert_eq!(all.since(*counters).plus(*counters), all);
                let mut measures = Measures::new();
                put_direction(&mut measures, "device_", counters.read.plus(counters.write));
                assert!(measures.values().all(|value| value.is_finite() && *value >= 0.0));
                let merged = measures.get("device_merged_percent");
                assert!(merged.is_none_or(|merged| *merged <= 100.0));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
