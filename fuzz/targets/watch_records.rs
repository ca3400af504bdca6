//! Any bytes as a record of `takeup watch`: what can be read makes intervals whose columns are
//! numbers and whose sentences are not empty, and is shown on a screen of any size.

#![no_main]

use std::path::Path;

use archive_fuzz::budget::Budget;
use libfuzzer_sys::fuzz_target;
use report::table::Colour;
use screen::lines::ScreenLines;
use watch::columns::COLUMNS;
use watch::intervals::{DEVICES_MAX, Interval, IntervalMaker};
use watch::record::RecordReader;

/// More intervals than this take longer than the fuzzer waits.
const INTERVALS_MAX: usize = 64;

fuzz_target!(|input: &[u8]| {
    let _budget = Budget::of(input);
    let mut reader = match RecordReader::of(input, Path::new("input")) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut watch = IntervalMaker::default();
    let mut lines = ScreenLines::new(Colour::Plain);
    let mut last_seconds = f64::NEG_INFINITY;
    for _ in 0..INTERVALS_MAX {
        let reading = match reader.next_reading() {
            Ok(Some(reading)) => reading,
            Ok(None) => return,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        assert!(reading.at_seconds >= last_seconds && reading.rows.len() <= DEVICES_MAX);
        last_seconds = reading.at_seconds;
        if let Some(interval) = watch.next(reading) {
            check(&interval, &mut lines);
        }
    }
});

fn check(interval: &Interval, lines: &mut ScreenLines) {
    for device in &interval.devices {
        for column in &COLUMNS {
            let value = (column.value)(&device.columns);
            assert!(value.is_finite() && value >= 0.0, "{} is {value}", column.key);
        }
        device.findings.iter().for_each(|finding| assert!(!finding.sentence().is_empty()));
    }
    lines.of(interval, Some(80));
}
