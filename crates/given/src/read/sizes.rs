//! The end of `dd`.

use super::number::{decimal, leading};
use super::{Before, Met};
use crate::piece::{Copied, What};

pub(super) fn copied(text: &str, _: &mut Before) -> Met {
    let line = text.trim();
    if is_records(line) {
        return Met::Whole(What::Passed);
    }
    let Some((bytes, rest)) = line.split_once(" bytes ") else { return Met::Nothing };
    let Some(bytes) = decimal(bytes).filter(|it| it.fract() == 0.0) else { return Met::Nothing };
    if !rest.starts_with('(') && !rest.starts_with("copied") && !rest.starts_with("transferred") {
        return Met::Nothing;
    }
    let incomplete = || Met::begun("the end of dd without its time and rate");
    let times = rest.split_once("copied, ").or_else(|| rest.split_once("transferred in "));
    let Some((seconds, rest)) = times.and_then(|(_, times)| leading(times)) else {
        return incomplete();
    };
    if rest.starts_with("e-") {
        // In no time at all.
        return Met::Whole(What::Passed);
    }
    let is_gnu = rest.starts_with(" s, ") && rest.trim_end().ends_with("B/s");
    let is_bsd = rest.starts_with(" sec") && rest.trim_end().ends_with("bytes/sec)");
    if !is_gnu && !is_bsd {
        return incomplete();
    }
    if seconds <= 0.0 || bytes < 1.0 {
        return Met::Whole(What::Passed);
    }
    Met::Whole(What::Copied(Copied { bytes: bytes as u64, seconds }))
}

/// `27+1 records in`.
fn is_records(line: &str) -> bool {
    let count = line.strip_suffix(" records in").or_else(|| line.strip_suffix(" records out"));
    let parts = count.and_then(|it| it.split_once('+'));
    let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    parts.is_some_and(|(whole, part)| is_digits(whole) && is_digits(part))
}
