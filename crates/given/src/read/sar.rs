//! `sar -d`, with names of the kernel (`dev8-0`) or of `-p`, clocks of 12 and of 24 hours, and the
//! columns of old and new versions.

use super::number::decimal;
use super::{Before, Met};
use crate::piece::{DiskReport, Interval, What};

/// Columns of a table, and where the name of the device stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    names: Vec<String>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    /// `--pretty`
    Last,
}

const SECTOR_BYTES: f64 = 512.0;

pub(super) fn row(text: &str, before: &mut Before) -> Met {
    let Some((interval, rest)) = behind_clock(text.trim()) else { return Met::Nothing };
    let words: Vec<&str> = rest.split_whitespace().collect();
    if let Some(met) = header(&words, before) {
        return met;
    }
    let Some(columns) = before.sar.clone() else { return Met::Nothing };
    let needed = columns.names.len();
    let (device, numbers) = match (columns.place, &words[..]) {
        (_, []) => return Met::Nothing,
        (Place::First, [device, numbers @ ..]) => (Some(*device), numbers),
        (Place::Last, [numbers @ .., device]) if decimal(device).is_none() => {
            (Some(*device), numbers)
        }
        (Place::Last, numbers) => (None, numbers),
    };
    if !numbers.iter().all(|word| decimal(word).is_some()) || device.is_some_and(is_title) {
        // Another table begins.
        before.sar = before.sar.take().filter(|_| !words.iter().any(|word| is_title(word)));
        return Met::Nothing;
    }
    let (found, device) = (numbers.len(), device.filter(|it| is_device(it)));
    let Some(device) = device.filter(|_| found == needed) else {
        return Met::Begun(format!("a row of sar with {found} of {needed} columns"));
    };
    let numbers: Vec<f64> = numbers.iter().filter_map(|word| decimal(word)).collect();
    match columns.report(device, &numbers, interval) {
        Some(report) => Met::Whole(What::DiskReport(report)),
        None => Met::begun("a row of sar without its rates"),
    }
}

/// What stands behind `17:45:01`, `05:43:15 PM` or `Average:`.
fn behind_clock(line: &str) -> Option<(Interval, &str)> {
    if let Some(rest) = line.strip_prefix("Average:") {
        return Some((Interval::Average, rest));
    }
    let (time, rest) = line.split_once(' ')?;
    let digits = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
    (time.split(':').count() == 3 && time.split(':').all(digits)).then_some(())?;
    let rest = rest.trim_start();
    let half = ["AM ", "PM "].iter().find_map(|half| rest.strip_prefix(half));
    Some((Interval::One, half.unwrap_or(rest)))
}

/// The line of columns. Those of other tables end this one.
fn header(words: &[&str], before: &mut Before) -> Option<Met> {
    let is_rates = |it: &str| matches!(it, "rd_sec/s" | "rkB/s");
    let (names, place) = match words {
        ["DEV", "tps", rates, ..] if is_rates(rates) => (&words[1..], Place::First),
        ["tps", rates, ..] if is_rates(rates) => (words, Place::Last),
        // The rest of the line was wrapped.
        ["DEV"] | ["DEV", "tps"] => return Some(Met::begun(CUT_HEADER)),
        _ => return None,
    };
    let names = match (place, names) {
        (Place::First, [.., "%util"]) => names,
        (Place::Last, [names @ .., "DEV"]) => names,
        _ => return Some(Met::begun(CUT_HEADER)),
    };
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    before.sar = Some(Columns { names, place });
    Some(Met::Whole(What::Passed))
}

const CUT_HEADER: &str = "columns of sar -d without their end";

/// A name of a column.
fn is_title(word: &str) -> bool {
    word.contains('/') || word.starts_with('%') || word.bytes().all(|it| it.is_ascii_uppercase())
}

fn is_device(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
}

impl Columns {
    fn report(&self, device: &str, numbers: &[f64], interval: Interval) -> Option<DiskReport> {
        let of = |names: &[&str]| {
            let at = self.names.iter().position(|name| names.contains(&name.as_str()))?;
            numbers.get(at).copied()
        };
        let either = |kib: &str, sectors: &str| {
            of(&[kib]).map(|it| it * 1024.0).or_else(|| of(&[sectors]).map(|it| it * SECTOR_BYTES))
        };
        Some(DiskReport {
            device: device.to_owned(),
            requests_per_second: of(&["tps"])?,
            read_bytes_per_second: either("rkB/s", "rd_sec/s")?,
            written_bytes_per_second: either("wkB/s", "wr_sec/s")?,
            request_bytes: either("areq-sz", "avgrq-sz")?,
            in_flight: of(&["aqu-sz", "avgqu-sz"])?,
            busy_percent: of(&["%util"])?,
            interval,
        })
    }
}
