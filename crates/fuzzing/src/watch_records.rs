//! Any bytes as a record of `takeup watch`: what can be read makes intervals whose columns are
//! numbers and whose sentences are not empty, and is shown on a screen of any size.

use std::path::Path;

use report::table::Colour;
use screen::lines::ScreenLines;
use watch::columns::COLUMNS;
use watch::intervals::{DEVICES_MAX, Interval, IntervalMaker};
use watch::record::RecordReader;

/// More intervals than this take longer than the fuzzer waits.
const INTERVALS_MAX: usize = 64;

/// Checks one input.
pub fn check(input: &[u8]) {
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
            check_interval(&interval, &mut lines);
        }
    }
}

fn check_interval(interval: &Interval, lines: &mut ScreenLines) {
    for device in &interval.devices {
        for column in &COLUMNS {
            let value = (column.value)(&device.columns);
            assert!(value.is_finite() && value >= 0.0, "{} is {value}", column.key);
        }
        device.findings.iter().for_each(|finding| assert!(!finding.sentence().is_empty()));
    }
    lines.of(interval, Some(80));
}
