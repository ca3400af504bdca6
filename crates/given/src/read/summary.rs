//! Lines of the summary of a backup program: what, how long, how fast.

use super::number::{clock, leading, unit};
use crate::piece::SummaryLine;

pub(super) fn line(text: &str) -> Option<SummaryLine> {
    let (name, value) = named(text.trim())?;
    let name = name.to_lowercase();
    let ends = |words: &[&str]| words.iter().any(|word| name.ends_with(word));
    if ends(&["speed", "throughput", "rate"]) {
        let (number, rest) = leading(value)?;
        let (decimal, binary) = unit(rest.trim().strip_suffix("/s")?)?;
        return Some(SummaryLine::Rate {
            bytes_per_second: number * decimal,
            binary_bytes_per_second: number * binary,
        });
    }
    if ends(&["size"]) {
        let (number, rest) = leading(value)?;
        let (decimal, binary) = unit(rest.trim()).filter(|_| !rest.trim().is_empty())?;
        return Some(SummaryLine::Size { bytes: number * decimal, binary_bytes: number * binary });
    }
    ends(&["run time", "elapsed time", "duration"])
        .then(|| clock(value).map(SummaryLine::Seconds))?
}

/// `Total Size... 50.51 GB`, `Elapsed time: 0:17:10`.
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once("... ").or_else(|| line.split_once(": "))?;
    (name.len() <= 40 && !value.is_empty())
        .then(|| (name.trim_end_matches('.').trim(), value.trim()))
}
