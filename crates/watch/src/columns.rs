//! The columns of `iostat -x`, from the counters of a device over an interval.
//!
//! Names, units and arithmetic are those of sysstat's `iostat` (12.6), including the order of
//! operations, so that the same counters give the same output to the last digit. The clock of
//! `iostat` has hundredths of a second; an interval here may have any length.

use machine::counters::disk::{Direction, DiskCounters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The columns of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirectionColumns {
    /// `r/s`: finished requests.
    pub requests_per_second: f64,
    /// `rkB/s`, of 1024 bytes.
    pub kib_per_second: f64,
    /// `rrqm/s`: requests merged into another one before the device.
    pub merges_per_second: f64,
    /// `%rrqm`: the share of merged requests, in per cent.
    pub merged_percent: f64,
    /// `r_await`: mean latency of a request in milliseconds, including the wait.
    pub await_ms: f64,
    /// `rareq-sz`: mean size of a request at the device, in KiB.
    pub request_kib: f64,
}

/// All columns of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Columns {
    pub read: DirectionColumns,
    pub write: DirectionColumns,
    pub discard: DirectionColumns,
    /// `f/s`: flushes of the device's cache.
    pub flushes_per_second: f64,
    /// `f_await`: mean latency of a flush in milliseconds.
    pub flush_await_ms: f64,
    /// `aqu-sz`: mean requests in flight, including those that wait.
    pub queue_length: f64,
    /// `%util`: share of the time with at least one request in flight, in per cent. May exceed 100.
    pub busy_percent: f64,
}

/// The part of the table that a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnGroup {
    Read,
    Write,
    Discard,
    /// Flushes.
    Flush,
    /// The device as a whole.
    Whole,
}

/// A column.
pub struct Column {
    /// Its part of the table.
    pub group: ColumnGroup,
    /// Its heading in a table.
    pub head: &'static str,
    /// Its key in a document.
    pub key: &'static str,
    pub value: fn(&Columns) -> f64,
}

macro_rules! columns {
    ($($group:ident $head:literal $key:literal $value:expr;)*) => {
        [$(Column { group: ColumnGroup::$group, head: $head, key: $key, value: $value }),*]
    };
}

/// All columns, in the order of `iostat -x -o JSON`.
pub const COLUMNS: [Column; 22] = columns! {
    Read "r/s" "r/s" |it| it.read.requests_per_second;
    Write "w/s" "w/s" |it| it.write.requests_per_second;
    Discard "d/s" "d/s" |it| it.discard.requests_per_second;
    Flush "f/s" "f/s" |it| it.flushes_per_second;
    Read "rkB/s" "rkB/s" |it| it.read.kib_per_second;
    Write "wkB/s" "wkB/s" |it| it.write.kib_per_second;
    Discard "dkB/s" "dkB/s" |it| it.discard.kib_per_second;
    Read "rrqm/s" "rrqm/s" |it| it.read.merges_per_second;
    Write "wrqm/s" "wrqm/s" |it| it.write.merges_per_second;
    Discard "drqm/s" "drqm/s" |it| it.discard.merges_per_second;
    Read "%rrqm" "rrqm" |it| it.read.merged_percent;
    Write "%wrqm" "wrqm" |it| it.write.merged_percent;
    Discard "%drqm" "drqm" |it| it.discard.merged_percent;
    Read "r_await" "r_await" |it| it.read.await_ms;
    Write "w_await" "w_await" |it| it.write.await_ms;
    Discard "d_await" "d_await" |it| it.discard.await_ms;
    Flush "f_await" "f_await" |it| it.flush_await_ms;
    Read "rareq-sz" "rareq-sz" |it| it.read.request_kib;
    Write "wareq-sz" "wareq-sz" |it| it.write.request_kib;
    Discard "dareq-sz" "dareq-sz" |it| it.discard.request_kib;
    Whole "aqu-sz" "aqu-sz" |it| it.queue_length;
    Whole "%util" "util" |it| it.busy_percent;
};

impl Columns {
    /// The columns of counters over this many seconds; all 0 for a time of 0.
    pub fn of(counted: &DiskCounters, seconds: f64) -> Columns {
        // `iostat` counts time in integer hundredths, 50 for 0.5 s; this gives the same value.
        let hundredths = (seconds * 1e8).round() / 1e6;
        if hundredths.is_nan() || hundredths <= 0.0 {
            return Columns::default();
        }
        let per_second = |count: f64| count / hundredths * 100.0;
        let direction = |it: &Direction| DirectionColumns {
            requests_per_second: per_second(it.requests as f64),
            kib_per_second: per_second(it.sectors as f64) / 2.0,
            merges_per_second: per_second(it.merges as f64),
            merged_percent: ratio(it.merges as f64, it.merges as f64 + it.requests as f64) * 100.0,
            await_ms: ratio(f64::from(it.time_ms), it.requests as f64),
            request_kib: ratio(it.sectors as f64, it.requests as f64) / 2.0,
        };
        let flush = direction(&counted.flush);
        Columns {
            read: direction(&counted.read),
            write: direction(&counted.write),
            discard: direction(&counted.discard),
            flushes_per_second: flush.requests_per_second,
            flush_await_ms: flush.await_ms,
            queue_length: per_second(f64::from(counted.weighted_ms)) / 1000.0,
            busy_percent: per_second(f64::from(counted.busy_ms)) / 10.0,
        }
    }
}

/// One by another, 0 of none.
fn ratio(count: f64, all: f64) -> f64 {
    if all > 0.0 { count / all } else { 0.0 }
}

/// A value as `iostat` prints it: two decimals.
pub fn printed(value: f64) -> String {
    if value == 0.0 { "0.00".to_owned() } else { format!("{value:.2}") }
}

/// The number that [`printed`] shows, without printing and reading each of 22 columns of all
/// devices: that is left to values that lie in the middle of two hundredths.
fn rounded(value: f64) -> f64 {
    let hundredths = value * 100.0;
    let away = (hundredths - hundredths.floor() - 0.5).abs();
    // So far all whole numbers are there, and a hundredth of each is the nearest to it that is.
    if hundredths.abs() < 1e9 && away > 1e-3 {
        return hundredths.round() / 100.0;
    }
    printed(value).parse().unwrap_or_default()
}

/// The columns of a device as the object that `iostat -x -o JSON` has for it: the same keys in the
/// same order, and values with two decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IostatObject {
    pub disk_device: String,
    /// `r/s`.
    #[serde(rename = "r/s")]
    pub read_requests_per_second: f64,
    /// `w/s`.
    #[serde(rename = "w/s")]
    pub write_requests_per_second: f64,
    /// `d/s`.
    #[serde(rename = "d/s")]
    pub discard_requests_per_second: f64,
    /// `f/s`.
    #[serde(rename = "f/s")]
    pub flushes_per_second: f64,
    /// `rkB/s`.
    #[serde(rename = "rkB/s")]
    pub read_kib_per_second: f64,
    /// `wkB/s`.
    #[serde(rename = "wkB/s")]
    pub write_kib_per_second: f64,
    /// `dkB/s`.
    #[serde(rename = "dkB/s")]
    pub discard_kib_per_second: f64,
    /// `rrqm/s`.
    #[serde(rename = "rrqm/s")]
    pub read_merges_per_second: f64,
    /// `wrqm/s`.
    #[serde(rename = "wrqm/s")]
    pub write_merges_per_second: f64,
    /// `drqm/s`.
    #[serde(rename = "drqm/s")]
    pub discard_merges_per_second: f64,
    /// `%rrqm`.
    #[serde(rename = "rrqm")]
    pub read_merged_percent: f64,
    /// `%wrqm`.
    #[serde(rename = "wrqm")]
    pub write_merged_percent: f64,
    /// `%drqm`.
    #[serde(rename = "drqm")]
    pub discard_merged_percent: f64,
    /// `r_await`.
    #[serde(rename = "r_await")]
    pub read_await_ms: f64,
    /// `w_await`.
    #[serde(rename = "w_await")]
    pub write_await_ms: f64,
    /// `d_await`.
    #[serde(rename = "d_await")]
    pub discard_await_ms: f64,
    /// `f_await`.
    #[serde(rename = "f_await")]
    pub flush_await_ms: f64,
    /// `rareq-sz`.
    #[serde(rename = "rareq-sz")]
    pub read_request_kib: f64,
    /// `wareq-sz`.
    #[serde(rename = "wareq-sz")]
    pub write_request_kib: f64,
    /// `dareq-sz`.
    #[serde(rename = "dareq-sz")]
    pub discard_request_kib: f64,
    /// `aqu-sz`.
    #[serde(rename = "aqu-sz")]
    pub queue_length: f64,
    /// `%util`.
    #[serde(rename = "util")]
    pub busy_percent: f64,
}

impl IostatObject {
    /// The object of a device.
    pub fn of(device: &str, columns: &Columns) -> IostatObject {
        IostatObject {
            disk_device: device.to_owned(),
            read_requests_per_second: rounded(columns.read.requests_per_second),
            write_requests_per_second: rounded(columns.write.requests_per_second),
            discard_requests_per_second: rounded(columns.discard.requests_per_second),
            flushes_per_second: rounded(columns.flushes_per_second),
            read_kib_per_second: rounded(columns.read.kib_per_second),
            write_kib_per_second: rounded(columns.write.kib_per_second),
            discard_kib_per_second: rounded(columns.discard.kib_per_second),
            read_merges_per_second: rounded(columns.read.merges_per_second),
            write_merges_per_second: rounded(columns.write.merges_per_second),
            discard_merges_per_second: rounded(columns.discard.merges_per_second),
            read_merged_percent: rounded(columns.read.merged_percent),
            write_merged_percent: rounded(columns.write.merged_percent),
            discard_merged_percent: rounded(columns.discard.merged_percent),
            read_await_ms: rounded(columns.read.await_ms),
            write_await_ms: rounded(columns.write.await_ms),
            discard_await_ms: rounded(columns.discard.await_ms),
            flush_await_ms: rounded(columns.flush_await_ms),
            read_request_kib: rounded(columns.read.request_kib),
            write_request_kib: rounded(columns.write.request_kib),
            discard_request_kib: rounded(columns.discard.request_kib),
            queue_length: rounded(columns.queue_length),
            busy_percent: rounded(columns.busy_percent),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_rounded_is_what_is_printed(value in -1e8f64..1e10, steps in 0i64..4_000_000) {
            // Any value, one that ends at a hundredth, and one in the middle of two.
            for value in [value, steps as f64 / 100.0, steps as f64 / 200.0, value / 1e9] {
                let expected: f64 = printed(value).parse().unwrap();
                prop_assert_eq!(rounded(value), expected, "{}", value);
            }
        }
    }
    #[test]
    fn the_object_has_the_columns_of_the_table() {
        let columns = Columns { queue_length: 1.234, busy_percent: 5.678, ..Columns::default() };
        let object = IostatObject::of("sda", &columns);
        let text = serde_json::to_string(&object).unwrap();
        let mut last = 0;
        for column in &COLUMNS {
            let value = rounded((column.value)(&columns));
            let at = text.find(&format!("\"{}\":{value:?}", column.key)).unwrap();
            assert!(at > last, "{} in {text}", column.key);
            last = at;
        }
        let again: IostatObject = serde_json::from_str(&text).unwrap();
        assert_eq!(again, object);
    }
}
