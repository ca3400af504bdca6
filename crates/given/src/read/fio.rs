//! fio's normal output, and files of its jobs.

use super::number::{is_usual, leading, unit};
use super::{Before, Met};
use crate::piece::{DirectionRate, Job, Program, Switch, What};

/// A line of a file of jobs. The file begins with a section.
pub(super) fn job_file(text: &str, before: &mut Before) -> Met {
    let line = text.trim();
    if let Some(section) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        // Marks of a forum's posts look like sections.
        let is_mark = matches!(section, "code" | "quote" | "list" | "spoiler");
        let is_name = !section.is_empty()
            && !is_mark
            && !section.contains(['[', '@', '%', '=', ' ', ',', '/']);
        if !is_name {
            return Met::Nothing;
        }
        before.in_job_file = true;
        return Met::Whole(What::Section { is_global: section == "global" });
    }
    if !before.in_job_file {
        return Met::Nothing;
    }
    if line.starts_with(['#', ';']) {
        return Met::Whole(What::Passed);
    }
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let (name, value) = (name.trim(), value.trim());
    if !name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_') {
        before.in_job_file = false;
        return Met::Nothing;
    }
    let mut job = Job::default();
    let is_number = |value: &str| value.parse::<u64>().is_ok();
    match name {
        "bs" | "blocksize" if binary(value).is_none() => job.is_unsure = true,
        "iodepth" | "numjobs" if !is_number(value) => job.is_unsure = true,
        "bssplit" | "bsrange" | "blocksize_range" => job.is_unsure = true,
        "bs" | "blocksize" => job.block_bytes = binary(value),
        "rw" | "readwrite" => job.pattern = Some(value.to_owned()),
        "ioengine" => job.engine = Some(value.to_owned()),
        "iodepth" => job.depth = value.parse().ok(),
        "numjobs" => job.jobs = value.parse().ok(),
        "direct" | "buffered" => {
            job.direct = direct(name, value);
            job.is_unsure = job.direct.is_none();
        }
        _ => return Met::Whole(What::Passed),
    }
    if value.is_empty() {
        return Met::Begun(format!("a job of fio without its {name}"));
    }
    Met::Whole(if job == Job::default() { What::Passed } else { What::JobValue(job) })
}

pub(super) fn printed(text: &str, _: &mut Before) -> Met {
    let line = text.trim();
    if let Some(fields) = line.strip_prefix("3;fio-") {
        return terse(fields);
    }
    if let Some((name, rest)) = line.split_once(": (g=") {
        return if name.is_empty() { Met::Nothing } else { job(rest) };
    }
    if let Some(count) = line.strip_prefix("Starting ") {
        let words: Vec<&str> = count.split(' ').collect();
        if let [count, "process" | "processes" | "thread" | "threads"] = words[..] {
            return Met::of(count.parse().ok().map(What::Processes));
        }
    }
    let is_read = line.starts_with("read: IOPS=");
    if is_read || line.starts_with("write: IOPS=") {
        return match direction(line, is_read) {
            Some(rate) => Met::Whole(What::Direction(rate)),
            None => Met::begun("a rate of fio without its end"),
        };
    }
    let is_read = line.starts_with("read : io=");
    if is_read || line.starts_with("write: io=") {
        return match direction_of_2(line, is_read) {
            Some(rate) => Met::Whole(What::Direction(rate)),
            None => Met::begun("a rate of fio 2 without its end"),
        };
    }
    latency(line)
}

/// `0): rw=randrw, bs=(R) 8192B-8192B, (W) ..., ioengine=libaio, iodepth=8`
fn job(rest: &str) -> Met {
    let of = |name: &str| {
        let (_, value) = rest.split_once(&format!("{name}="))?;
        let value = value.split(',').next()?.trim();
        // A word that was cut in two.
        (!value.contains(' ')).then(|| value.to_owned())
    };
    let has_engine = !rest.contains("ioengine=") || of("ioengine").is_some();
    let depth = of("iodepth").and_then(|it| it.parse().ok()).filter(|_| has_engine);
    let Some(depth) = depth else {
        return if rest.contains("rw=") {
            Met::begun("a job of fio without its depth")
        } else {
            Met::Nothing
        };
    };
    let pattern = of("rw");
    let block = pattern.as_deref().and_then(|pattern| block_of(rest, pattern));
    Met::Whole(What::Job(Job {
        pattern,
        block_bytes: block,
        engine: of("ioengine"),
        depth: Some(depth),
        jobs: None,
        direct: None,
        is_unsure: false,
    }))
}

/// `direct=1`, or its opposite `buffered=0`.
pub(super) fn direct(name: &str, value: &str) -> Option<Switch> {
    match (name, value) {
        ("direct", "1") | ("buffered", "0") => Some(Switch::On),
        ("direct", "0") | ("buffered", "1") => Some(Switch::Off),
        _ => None,
    }
}

/// `bs=(R) 4096B-4096B, (W) 8192B-8192B, (T) ...`, of older versions `bs=4K-4K/8K-8K/4K-4K`: the
/// block of the direction in which the job goes, if it is one size.
fn block_of(rest: &str, pattern: &str) -> Option<u64> {
    let (_, sizes) = rest.split_once("bs=")?;
    let sizes = sizes.split_once(", ioengine").map_or(sizes, |(sizes, _)| sizes);
    let of: Vec<&str> = if sizes.starts_with('(') {
        sizes.split(", ").filter_map(|it| it.split_once(") ")).map(|(_, it)| it).collect()
    } else {
        sizes.split('/').collect()
    };
    let one = |at: usize| {
        let (least, most) = of.get(at)?.split_once('-')?;
        binary(least).filter(|it| binary(most) == Some(*it))
    };
    match pattern.trim_start_matches("rand") {
        "read" => one(0),
        "write" => one(1),
        _ => one(0).filter(|it| one(1) == Some(*it)),
    }
}

/// `read: IOPS=20.0k, BW=156MiB/s (164MB/s)(27.4GiB/180003msec)`
fn direction(line: &str, is_read: bool) -> Option<DirectionRate> {
    let (_, rest) = line.split_once("IOPS=")?;
    let (number, rest) = leading(rest)?;
    let (name, rest) = rest.split_once(',')?;
    let (factor, _) = unit(name)?;
    let (_, rate) = rest.split_once("BW=")?;
    let (bytes, rest) = leading(rate)?;
    let (name, rest) = rest.split_once("/s ")?;
    let (thousand, binary) = unit(name)?;
    // The end of the line: bytes and time in brackets.
    rest.contains("msec)").then_some(())?;
    let bytes = bytes * if name.contains('i') { binary } else { thousand };
    Some(DirectionRate { is_read, per_second: number * factor, bytes_per_second: bytes })
}

/// `read : io=7884.0KB, bw=864925B/s, iops=211, runt=  9334msec`: fio 2 means 1024 by `K`.
fn direction_of_2(line: &str, is_read: bool) -> Option<DirectionRate> {
    line.ends_with("msec").then_some(())?;
    let (_, rest) = line.split_once(", bw=")?;
    let (rate, rest) = rest.split_once("/s, iops=")?;
    let (bytes, name) = leading(rate)?;
    let (_, binary) = unit(name)?;
    let (number, rest) = leading(rest)?;
    let (name, rest) = rest.split_once(',')?;
    let (thousand, _) = unit(name.trim())?;
    rest.trim_start().starts_with("runt=").then_some(())?;
    let (per_second, bytes_per_second) = (number * thousand, bytes * binary);
    Some(DirectionRate { is_read, per_second, bytes_per_second })
}

/// `lat (usec): min=133, max=10495, avg=1168.66, stdev=586.53`
fn latency(line: &str) -> Met {
    let Some(rest) = line.strip_prefix("lat (") else { return Met::Nothing };
    let Some((name, rest)) = rest.split_once("): min=") else { return Met::Nothing };
    let factor = match name {
        "nsec" => 1e-9,
        "usec" => 1e-6,
        "msec" => 1e-3,
        _ => return Met::Nothing,
    };
    let mean = rest.split_once("avg=").and_then(|(_, it)| leading(it.trim_start()));
    match mean.filter(|_| rest.contains("stdev=")) {
        Some((mean, _)) => Met::Whole(What::MeanLatency(mean * factor)),
        None => Met::begun("a latency of fio without its mean"),
    }
}

/// A size as fio has it: powers of 1024.
pub(super) fn binary(text: &str) -> Option<u64> {
    let (number, name) = leading(text)?;
    let (_, factor) = unit(name)?;
    let bytes = number * factor;
    (bytes.fract() == 0.0 && bytes >= 1.0).then_some(bytes as u64)
}

/// Fields of a direction in terse output, and what stands in front of both (fio's HOWTO).
const TERSE_FIELDS: usize = 41;
const TERSE_BEFORE: usize = 5;

/// Terse output of version 3: `3;fio-3.33;NAME;0;0;...`. It does not say how it was made.
fn terse(fields: &str) -> Met {
    let fields: Vec<&str> = fields.split(';').collect();
    // The prefix had the first one.
    let of = |at: usize| fields.get(at - 1).and_then(|it| it.parse::<f64>().ok());
    let number = |at: usize| of(at).filter(|it| is_usual(*it));
    let mut pieces = vec![What::Job(Job { is_unsure: true, ..Job::default() })];
    for (at, is_read) in [(TERSE_BEFORE, true), (TERSE_BEFORE + TERSE_FIELDS, false)] {
        // Bandwidth, requests, and the mean latency.
        let all = [at + 1, at + 2, at + 34].map(number);
        let [Some(kib), Some(per_second), Some(latency)] = all else {
            return Met::begun("terse output of fio without its end");
        };
        if per_second > 0.0 {
            let bytes_per_second = kib * 1024.0;
            let rate = DirectionRate { is_read, per_second, bytes_per_second };
            pieces.push(What::Direction(rate));
            pieces.push(What::MeanLatency(latency * 1e-6));
        }
    }
    // The last number that is used has something behind it.
    if fields.len() <= TERSE_BEFORE + 2 * TERSE_FIELDS {
        return Met::begun("terse output of fio without its end");
    }
    Met::Whole(What::Document { program: Program::Fio, pieces })
}
