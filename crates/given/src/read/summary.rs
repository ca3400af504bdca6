//! Lines of the summary of a backup program: what, how long, how fast.

use super::number::{clock, leading, unit};
use crate::piece::SummaryLine;

/// Names of the size of all that was backed up. Others are those of parts, blocks or copies.
const SIZES: [&str; 4] = ["total size", "size", "total data", "data size"];

pub(super) fn line(text: &str) -> Option<SummaryLine> {
    let (name, value) = named(text.trim())?;
    let name = name.to_lowercase();
    let ends = |words: &[&str]| words.iter().any(|word| name.ends_with(word));
    if ends(&["speed", "throughput", "rate"]) {
        let (number, rest) = number(value)?;
        let (decimal, binary) = unit(rest.trim().strip_suffix("/s")?)?;
        return Some(SummaryLine::Rate {
            bytes_per_second: number * decimal,
            binary_bytes_per_second: number * binary,
        });
    }
    if ends(&["size", "data", "bytes", "read", "written", "transferred", "stored"]) {
        let with_unit = number(value).filter(|(_, rest)| !rest.trim().is_empty());
        let read = with_unit.and_then(|(number, rest)| Some((number, unit(rest.trim())?)));
        let Some((number, (decimal, binary))) = read else {
            let is_number = value.starts_with(|it: char| it.is_ascii_digit());
            return is_number.then_some(SummaryLine::OtherSize);
        };
        if !SIZES.contains(&name.as_str()) {
            return Some(SummaryLine::OtherSize);
        }
        return Some(SummaryLine::Size { bytes: number * decimal, binary_bytes: number * binary });
    }
    if !ends(&["run time", "elapsed time", "duration"]) {
        return None;
    }
    // `01:56` may be minutes, or hours.
    let is_sure = value.matches(':').count() == 2;
    let seconds = clock(value).filter(|_| is_sure);
    Some(seconds.map_or(SummaryLine::OtherTime, SummaryLine::Seconds))
}

/// A number that cannot be one with groups of thousands: `1,234`.
fn number(text: &str) -> Option<(f64, &str)> {
    let (number, rest) = leading(text)?;
    let (_, decimals) = text[..text.len() - rest.len()].split_once(',').unwrap_or(("", ""));
    (decimals.len() != 3).then_some((number, rest))
}

/// `Total Size... 50.51 GB`, `Elapsed time: 0:17:10`.
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once("... ").or_else(|| line.split_once(": "))?;
    (name.len() <= 40 && !value.is_empty())
        .then(|| (name.trim_end_matches('.').trim(), value.trim()))
}
