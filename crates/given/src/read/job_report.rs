//! The report that the director of Bacula or Bareos sends of a job: its times, bytes and rate; and
//! the storage daemon's line of a spool.

use super::number::{clock, decimal, grouped, leading, unit};
use super::{Before, Met};
use crate::piece::{Director, JobReport, Outcome, What};

/// Share by which the rounded size in brackets may differ.
const ROUNDED: f64 = 0.01;

pub(super) fn line(text: &str, _: &mut Before) -> Met {
    if let Some(met) = despooled(text) {
        return met;
    }
    if let Some(director) = director(text.trim()) {
        return Met::Whole(What::JobReport(director));
    }
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
        "JobId" => {
            let number = value.parse::<u64>().ok();
            return Met::of(number.map(|_| What::JobReport(JobReport::Job)));
        }
        "Termination" => {
            return Met::of(outcome(value).map(|it| What::JobReport(JobReport::Ended(it))));
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

/// `12-Mar 02:10 bk-dir JobId 42: Bareos bareos-dir 23.0.1 (10Mar24):`
fn director(line: &str) -> Option<JobReport> {
    let rest = line.strip_suffix("):")?;
    let names = [("Bacula ", Director::Bacula), ("Bareos ", Director::Bareos)];
    let (at, director) =
        names.iter().find_map(|(name, director)| Some((rest.find(name)?, *director)))?;
    let words: Vec<&str> = rest[at..].split_whitespace().collect();
    let [_, _, version, date, ..] = words[..] else { return None };
    let major = version.split(|it: char| !it.is_ascii_digit()).next()?;
    let version = major.parse().ok().filter(|_| date.starts_with('('))?;
    Some(JobReport::Director { director, version })
}

/// `Backup OK`, `*** Backup Error ***`, `Backup Canceled`.
fn outcome(value: &str) -> Option<Outcome> {
    let has = |word: &str| value.contains(word);
    if has("Error") {
        return Some(Outcome::Failed);
    }
    if has("Cancel") {
        return Some(Outcome::Canceled);
    }
    if value.starts_with("Backup OK") {
        return Some(Outcome::BackedUp);
    }
    has(" OK").then_some(Outcome::Other)
}

/// `... JobId 42: Despooling elapsed time = 00:17:20, Transfer rate = 150.0 M Bytes/second`
fn despooled(text: &str) -> Option<Met> {
    let (front, rest) = text.split_once("Despooling elapsed time = ")?;
    let read = || {
        let (time, rate) = rest.split_once(", Transfer rate = ")?;
        let (number, name) = leading(rate.trim_end().strip_suffix("Bytes/second")?)?;
        let (factor, _) = unit(name.trim())?;
        Some((clock(time)?, number * factor))
    };
    let job = front.trim_end().strip_suffix(':').and_then(|it| it.rsplit_once("JobId "));
    let job = job.and_then(|(_, it)| it.parse().ok());
    Some(match read() {
        Some((seconds, bytes_per_second)) => {
            let line = JobReport::Despooled { job, seconds, bytes_per_second };
            Met::Whole(What::JobReport(line))
        }
        None => Met::begun("the end of a spool without its rate"),
    })
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
