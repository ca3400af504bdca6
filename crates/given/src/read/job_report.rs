//! The report that the director of Bacula or Bareos sends of a job: its times, bytes and rate.

use super::number::{decimal, grouped, leading, unit};
use super::{Before, Met};
use crate::piece::{JobReport, What};

/// Share by which the rounded size in brackets may differ.
const ROUNDED: f64 = 0.01;

pub(super) fn line(text: &str, _: &mut Before) -> Met {
    let Some((name, value)) = text.trim().split_once(':') else { return Met::Nothing };
    let value = value.trim();
    let read = match name {
        "FD Bytes Written" => bytes(value).map(JobReport::ClientBytes),
        "SD Bytes Written" => bytes(value).map(JobReport::StoredBytes),
        "Software Compression" => compression(value),
        // Other programs have these names, too.
        "Elapsed time" => {
            return match elapsed(value) {
                Some(seconds) => Met::Whole(What::JobReport(JobReport::Elapsed(seconds))),
                None if begins_like_elapsed(value) => Met::begun("a job report without its time"),
                None => Met::Nothing,
            };
        }
        "Rate" => {
            let rate = value.strip_suffix(" KB/s").and_then(decimal);
            return Met::of(rate.map(|it| What::JobReport(JobReport::Rate(it * 1e3))));
        }
        _ => return Met::Nothing,
    };
    match read {
        Some(line) => Met::Whole(What::JobReport(line)),
        None => Met::Begun(format!("a job report without its {name}")),
    }
}

/// `198,836,224 (198.8 MB)`: two numbers, so that one which lost digits is found.
fn bytes(value: &str) -> Option<u64> {
    let (bytes, rounded) = value.split_once(" (")?;
    let bytes = grouped(bytes)?;
    let (number, name) = leading(rounded.strip_suffix("B)")?)?;
    let (factor, _) = unit(name.trim())?;
    let is_same = (number * factor - bytes as f64).abs() <= bytes as f64 * ROUNDED;
    is_same.then_some(bytes)
}

/// `None`, `42.3 %`, `61.9% 2.6:1`, `42.3 % (gzip)`
fn compression(value: &str) -> Option<JobReport> {
    if value == "None" {
        return Some(JobReport::Uncompressed);
    }
    let (share, _) = value.split_once('%')?;
    let share = share.split_whitespace().next_back()?;
    Some(JobReport::Compressed(decimal(share)? / 100.0))
}

/// `1 hour 34 mi`
fn begins_like_elapsed(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let is_number = words.next().is_some_and(|word| word.parse::<u32>().is_ok());
    let names = ["days", "hours", "mins", "secs"];
    is_number && words.next().is_some_and(|word| names.iter().any(|name| name.starts_with(word)))
}

/// `1 hour 34 mins 41 secs`
fn elapsed(value: &str) -> Option<f64> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let mut seconds = 0.0;
    for pair in words.chunks(2) {
        let [number, name] = pair else { return None };
        let factor = match name.trim_end_matches('s') {
            "day" => 86_400.0,
            "hour" => 3600.0,
            "min" => 60.0,
            "sec" => 1.0,
            _ => return None,
        };
        seconds += f64::from(number.parse::<u32>().ok()?) * factor;
    }
    (!words.is_empty()).then_some(seconds)
}
