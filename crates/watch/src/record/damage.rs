//! Detects damage in a record: absurd numbers, a time that goes back, an impossible device. Such a
//! reading is skipped, and reported with its line and the reason.
//!
//! The limits are far above any real value, so that no real reading is skipped: neither a fast load
//! nor a device whose counters restart is damage.

use std::collections::BTreeMap;

use machine::counters::disk::{DiskCounters, DiskRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tapes::TapeCounters;

/// Damaged lines that are listed; of the rest only the number is known.
pub const LEFT_OUT_MAX: usize = 100;

/// A line whose reading was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// From 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// More than any device moves in a second, including memory.
const BYTES_PER_SECOND_MAX: f64 = 1e12;
/// More requests than any device answers in a second.
const REQUESTS_PER_SECOND_MAX: f64 = 1e9;
/// More requests than any device has in flight.
const IN_FLIGHT_MAX: u32 = 10_000_000;
/// No request takes longer. The kernel counts the time of a request when it ends, all at once.
const REQUEST_SECONDS_MAX: f64 = 86_400.0;
/// The kernel does not read its counters at one instant, so times can go back a little.
const BACK_MS_MAX: u32 = 60_000;
/// Names of disks are shorter (`DISK_NAME_LEN`, include/linux/blkdev.h).
const NAME_BYTES_MAX: usize = 32;
/// Device numbers have 12 and 20 bits (`MINORBITS`, include/linux/kdev_t.h).
const MAJOR_MAX: u32 = (1 << 12) - 1;
const MINOR_MAX: u32 = (1 << 20) - 1;
/// Maximum drift between the two clocks of readings, unless the clock was set.
const LEAP_SECONDS: f64 = 3600.0;
/// The last second of the year 9999.
const UNIX_SECONDS_MAX: i64 = 253_402_300_799;

/// When a reading was made.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the start of the machine.
    pub at_seconds: f64,
    /// The time of day, in seconds since 1970.
    pub unix_seconds: i64,
}

impl Moment {
    /// The damage of this moment, compared with the last valid one.
    pub fn damage(&self, before: Option<Moment>) -> Option<String> {
        if !(0..=UNIX_SECONDS_MAX).contains(&self.unix_seconds) {
            return Some(format!("invalid time of day: {}", self.unix_seconds));
        }
        let before = before?;
        let passed = self.at_seconds - before.at_seconds;
        if passed < 0.0 {
            let back = -passed;
            return Some(format!("its time is {back:.3} s before the previous reading"));
        }
        let by_day = self.unix_seconds.saturating_sub(before.unix_seconds).max(0) as f64;
        let is_leap = passed - by_day > LEAP_SECONDS;
        is_leap.then(|| {
            format!(
                "it is {passed:.0} s after the previous reading, but {by_day:.0} s by the time of \
                 day"
            )
        })
    }
}

/// The damage of a row, this many seconds after the previous row of the device.
pub fn of_row(row: &DiskRow, before: Option<&DiskRow>, seconds: f64) -> Option<String> {
    let of_row = |why: String| Some(format!("{}: {why}", shown(&row.name)));
    let is_name = |byte: u8| byte.is_ascii_graphic();
    if row.name.len() >= NAME_BYTES_MAX || !row.name.bytes().all(is_name) {
        return of_row("no device has such a name".to_owned());
    }
    let (major, minor) = row.number;
    if major > MAJOR_MAX || minor > MINOR_MAX {
        return of_row(format!("no device has the number {major}:{minor}"));
    }
    if row.in_flight > IN_FLIGHT_MAX {
        return of_row(format!("{} requests in flight", row.in_flight));
    }
    let before = before?;
    // Counters that restart belong to another device of that name: nothing to compare.
    let done = row.counters.since_the_same(before.counters)?;
    let seconds = seconds.max(1.0);
    // Discards move no data, and may cover a whole array.
    for (what, direction) in [("read", done.read), ("written", done.write)] {
        let bytes = direction.sectors as f64 * 512.0;
        if bytes > seconds * BYTES_PER_SECOND_MAX {
            return of_row(format!("{bytes:.1e} bytes {what} in {seconds:.0} s"));
        }
    }
    let all = [done.read, done.write, done.discard, done.flush];
    for count in all.iter().flat_map(|it| [it.requests, it.merges]) {
        if count as f64 > seconds * REQUESTS_PER_SECOND_MAX {
            return of_row(format!("{count} requests in {seconds:.0} s"));
        }
    }
    busy_damage(&done, seconds).and_then(of_row)
}

/// The damage of a busy time. Milliseconds wrap after 50 days, so a longer gap proves nothing.
fn busy_damage(done: &DiskCounters, seconds: f64) -> Option<String> {
    let most_ms = (REQUEST_SECONDS_MAX + 2.0 * seconds) * 1000.0;
    let is_back = done.busy_ms > u32::MAX - BACK_MS_MAX;
    let is_too_much = f64::from(done.busy_ms) > most_ms && !is_back;
    let busy_seconds = f64::from(done.busy_ms) / 1000.0;
    is_too_much
        .then(|| format!("busy for {busy_seconds:.0} s of {seconds:.0}, or its time went back"))
}

/// The damage of the requests in flight.
pub fn of_in_flight(in_flight: &BTreeMap<String, Vec<u32>>) -> Option<String> {
    let mut all = in_flight.iter();
    let (name, seen) = all.find(|(_, seen)| seen.iter().any(|count| *count > IN_FLIGHT_MAX))?;
    let most = seen.iter().max().copied().unwrap_or(0);
    Some(format!("{}: {most} requests in flight", shown(name)))
}

/// The damage of the counters of tape drives.
pub fn of_tapes(
    tapes: &BTreeMap<String, TapeCounters>,
    before: &BTreeMap<String, TapeCounters>,
    seconds: f64,
) -> Option<String> {
    let most = seconds.max(1.0) * BYTES_PER_SECOND_MAX;
    tapes.iter().find_map(|(name, now)| {
        let before = before.get(name)?;
        let bytes = [
            now.read_byte_cnt.saturating_sub(before.read_byte_cnt),
            now.write_byte_cnt.saturating_sub(before.write_byte_cnt),
        ];
        let bytes = bytes.into_iter().find(|bytes| *bytes as f64 > most)? as f64;
        Some(format!("{}: {bytes:.1e} bytes in {:.0} s", shown(name), seconds.max(1.0)))
    })
}

/// Two devices with the same number, which is impossible; hidden NVMe paths have no number.
pub fn of_numbers(rows: &[DiskRow]) -> Option<(String, String)> {
    let mut known: BTreeMap<(u32, u32), &str> = BTreeMap::new();
    rows.iter().filter(|row| row.number != (0, 0)).find_map(|row| {
        let other = known.insert(row.number, &row.name)?;
        let (major, minor) = row.number;
        let why = format!("{}: its number {major}:{minor} is that of {}", shown(&row.name), other);
        Some((row.name.clone(), why))
    })
}

/// A name from a damaged file, cut to the length of device names.
fn shown(name: &str) -> String {
    name.chars().take(NAME_BYTES_MAX).map(|one| if one.is_control() { '?' } else { one }).collect()
}
