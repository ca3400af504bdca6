//! What the requests of a device look like: merged, split, as large as a window, or unchanged.

use base::finding::{Certainty, Finding, Unit};
use machine::counters::disk::Direction;
use storage::queue::Queue;

use super::{REQUESTS_MIN, SHARE, kib, milliseconds, requests};
use crate::columns::DirectionColumns;
use crate::intervals::DeviceInterval;
use crate::rules;

/// Requests of a direction count as merged from this share on.
const MERGED_PERCENT: f64 = 20.0;
/// Share of merged writes in write-back of the page cache.
const WRITE_BACK_PERCENT: f64 = 95.0;
/// A page.
const PAGE_KIB: f64 = 4.0;
/// A page plus a tenth, because a few are merged already.
const PAGE_KIB_MAX: f64 = 1.1 * PAGE_KIB;
/// Requests below this size are small.
const SMALL_KIB: f64 = 64.0;
/// Mean size of split requests as a share of the limit.
const SPLIT_SHARE: f64 = 0.75;
/// Reads count as large as the window within this range of ratios.
const WINDOW: std::ops::RangeInclusive<f64> = 0.9..=1.02;
/// Maximum number of writes per flush for a finding.
const FLUSH_WRITES: f64 = 4.0;

/// One direction of a device, with its name.
struct Seen<'a> {
    name: &'static str,
    counted: &'a Direction,
    columns: &'a DirectionColumns,
    /// Requests that may have moved no data: the kernel also counts a flush without data as a
    /// write.
    empty: u64,
}

/// The shape of the requests of a direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Merged, as sequential requests are.
    Merged,
    /// Merged pages.
    WriteBack,
    /// Small, with merging switched off.
    MergingOff,
    /// As large as the read-ahead.
    Window,
    /// Parts of larger requests.
    Split,
    /// Small, and not mergeable.
    NotMerged,
    /// Neither small nor split.
    AsMade,
}

/// One finding per direction, or one for both if they have the same shape.
pub(super) fn findings(device: &DeviceInterval) -> Vec<Finding> {
    let (counted, columns) = (&device.counted, &device.columns);
    let unknown = Queue::default();
    let queue = device.queue.as_ref().unwrap_or(&unknown);
    let read = Seen { name: "reads", counted: &counted.read, columns: &columns.read, empty: 0 };
    let empty = empty_writes(device);
    let write = Seen { name: "writes", counted: &counted.write, columns: &columns.write, empty };
    let bytes = counted.read.bytes().saturating_add(counted.write.bytes());
    let matters = |seen: &Seen<'_>| {
        let of_requests = seen.counted.requests as f64 >= SHARE * requests(device) as f64;
        let of_bytes = bytes > 0 && seen.counted.bytes() as f64 >= SHARE * bytes as f64;
        seen.counted.requests >= REQUESTS_MIN
            && seen.counted.sectors > 0
            && (of_requests || of_bytes)
    };
    let seen: Vec<Seen<'_>> = [read, write].into_iter().filter(matters).collect();
    let mut groups: Vec<(Shape, Vec<&Seen<'_>>)> = Vec::new();
    for one in &seen {
        let shape = shape(one, queue);
        match groups.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, members)) => members.push(one),
            None => groups.push((shape, vec![one])),
        }
    }
    let mut findings: Vec<Finding> =
        groups.iter().map(|(shape, members)| told(*shape, members, queue)).collect();
    findings.extend(discards(device));
    findings.extend(flushes(device));
    findings
}

fn shape(seen: &Seen<'_>, queue: &Queue) -> Shape {
    let size = seen.columns.request_kib;
    let merged = seen.columns.merged_percent;
    let is_split = split_limit(size, queue).is_some();
    if merged >= WRITE_BACK_PERCENT && seen.name == "writes" && piece_kib(seen) <= PAGE_KIB_MAX {
        Shape::WriteBack
    } else if merged >= MERGED_PERCENT {
        Shape::Merged
    } else if queue.nomerges == Some(2) && size < SMALL_KIB {
        Shape::MergingOff
    } else if seen.name == "reads" && windows(size, queue).is_some() {
        Shape::Window
    } else if is_split {
        Shape::Split
    } else if size < SMALL_KIB {
        Shape::NotMerged
    } else {
        Shape::AsMade
    }
}

/// The limit that a request size is near.
enum Limit {
    /// `max_sectors_kb`.
    Sectors(u64),
    /// `max_segments`, in pages: the limit if no two pages are contiguous.
    Pages(u64),
}

impl Limit {
    fn kib(&self) -> f64 {
        match self {
            Limit::Sectors(kib) => *kib as f64,
            Limit::Pages(pages) => *pages as f64 * PAGE_KIB,
        }
    }
}

/// The limit that requests of this size are near.
fn split_limit(kib: f64, queue: &Queue) -> Option<Limit> {
    let limits = [queue.max_sectors_kb.map(Limit::Sectors), queue.max_segments.map(Limit::Pages)];
    limits.into_iter().flatten().find(|limit| kib >= SPLIT_SHARE * limit.kib())
}

/// Number of read-ahead windows in reads of this size: one, or two after
/// `POSIX_FADV_SEQUENTIAL` (mm/fadvise.c).
fn windows(kib: f64, queue: &Queue) -> Option<u64> {
    let window = queue.read_ahead_kb.filter(|window| *window > 0)?;
    let goes_through = |kib: u64| queue.max_sectors_kb.is_none_or(|limit| kib <= limit);
    [1, 2].into_iter().find(|times| {
        let all = times * window;
        goes_through(all) && WINDOW.contains(&(kib / all as f64))
    })
}

/// The mean size of requests before merging, if none was empty.
fn piece_kib(seen: &Seen<'_>) -> f64 {
    let made = seen.counted.requests.saturating_add(seen.counted.merges);
    seen.counted.sectors as f64 / 2.0 / (made.max(1)) as f64
}

impl Seen<'_> {
    /// Requests without those that may have been empty.
    fn full(&self) -> u64 {
        self.counted.requests.saturating_sub(self.empty).max(1)
    }

    /// The mean size over this many requests; a range if some may have been empty.
    fn size(&self, of_all: u64, of_full: u64) -> String {
        let of = |count: u64| kib(self.counted.sectors as f64 / 2.0 / count.max(1) as f64);
        either(of(of_all), of(of_full))
    }

    /// The size of a request at the device.
    fn request_size(&self) -> String {
        self.size(self.counted.requests, self.full())
    }

    /// The size of a request before merging.
    fn piece_size(&self) -> String {
        let with_joined = |requests: u64| requests.saturating_add(self.counted.merges);
        self.size(with_joined(self.counted.requests), with_joined(self.full()))
    }

    /// The share that was merged.
    fn merged(&self, decimals: usize) -> String {
        let merges = self.counted.merges as f64;
        let of = |requests: u64| 100.0 * merges / (merges + requests as f64).max(1.0);
        let [least, most] =
            [self.counted.requests, self.full()].map(|it| format!("{:.decimals$}", of(it)));
        format!("{} %", either(least, most))
    }
}

/// One value, or a range if they differ.
fn either(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} to {most}") }
}

/// `reads of 8.0 KiB and writes of 4.0 KiB`; a range if some may have been empty.
fn sizes(members: &[&Seen<'_>]) -> String {
    let one = |seen: &&Seen<'_>| format!("{} of {}", seen.name, seen.request_size());
    members.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// `86 % of reads and 91 % of writes`.
fn shares(members: &[&Seen<'_>]) -> String {
    let one = |seen: &&Seen<'_>| format!("{} of {}", seen.merged(0), seen.name);
    members.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn told(shape: Shape, members: &[&Seen<'_>], queue: &Queue) -> Finding {
    let finding = match shape {
        Shape::Merged => merged(members),
        Shape::WriteBack => write_back(members),
        Shape::MergingOff => merging_off(members),
        Shape::Window => window(members, queue),
        Shape::Split => split(members, queue),
        Shape::NotMerged => not_merged(members),
        Shape::AsMade => as_made(members),
    };
    members.iter().fold(finding, with_numbers)
}

/// The numbers of a direction, each with its name.
fn with_numbers(finding: Finding, seen: &&Seen<'_>) -> Finding {
    let (size, merged) = match seen.name {
        "reads" => ("read size", "reads merged"),
        _ => ("write size", "writes merged"),
    };
    finding.with_number(size, seen.columns.request_kib * 1024.0, Unit::Bytes).with_number(
        merged,
        seen.columns.merged_percent / 100.0,
        Unit::Share,
    )
}

fn merged(members: &[&Seen<'_>]) -> Finding {
    let what = format!("sequential: {} are merged before the device", shares(members));
    let pieces: Vec<String> = members
        .iter()
        .map(|seen| {
            let (piece, size) = (seen.piece_size(), seen.request_size());
            format!("{} of {piece} become {size}", seen.name)
        })
        .collect();
    let why = format!("{}: fewer and larger requests for the same bytes", pieces.join(", "));
    Finding::new(&rules::MERGED, Certainty::Inferred, what).because(why)
}

fn write_back(members: &[&Seen<'_>]) -> Finding {
    let seen = members[0];
    let share = seen.merged(1);
    let what = format!("write-back of the page cache: {share} of its writes are merged");
    let (piece, size) = (seen.piece_size(), seen.request_size());
    let why = format!("pages of {piece} become requests of {size}");
    let finding = Finding::new(&rules::WRITE_BACK, Certainty::Inferred, what).because(why);
    Finding {
        caveat: Some("small sequential writes of a program look the same".to_owned()),
        ..finding
    }
}

fn merging_off(members: &[&Seen<'_>]) -> Finding {
    let what = format!("merging is switched off (nomerges is 2): {}", sizes(members));
    let why = "the device gets many small requests instead of a few large ones";
    let finding = Finding::new(&rules::MERGING_OFF, Certainty::Told, what).because(why);
    finding.with_action("set nomerges to 0, so that the kernel merges adjacent requests")
}

fn as_made(members: &[&Seen<'_>]) -> Finding {
    let what = format!("{} go to the device unchanged", sizes(members));
    let why = "hardly any are merged, and no limit splits them";
    Finding::new(&rules::AS_MADE, Certainty::Measured, what).because(why)
}

fn window(members: &[&Seen<'_>], queue: &Queue) -> Finding {
    let window = queue.read_ahead_kb.unwrap_or(0);
    let twice = windows(members[0].columns.request_kib, queue) == Some(2);
    let (as_large, who) = if twice {
        ("twice", "sequential reads of a file with POSIX_FADV_SEQUENTIAL")
    } else {
        ("as large as", "sequential reads of a file, limited by the read-ahead")
    };
    let why = format!("{who}; or a program with reads of this size");
    let what = format!("{}, {as_large} the read-ahead window of {window} KiB", sizes(members));
    let finding = Finding::new(&rules::READ_AHEAD_WINDOW, Certainty::Inferred, what).because(why);
    let finding = finding.with_number("read-ahead", window as f64 * 1024.0, Unit::Bytes);
    finding.with_action("run `takeup bench read FILE --read-ahead` to find a sufficient window")
}

fn split(members: &[&Seen<'_>], queue: &Queue) -> Finding {
    let limit = split_limit(members[0].columns.request_kib, queue);
    let (near, why) = match limit {
        Some(Limit::Pages(pages)) => (
            format!("{pages} pages of {} (max_segments)", kib(PAGE_KIB)),
            "larger requests are split where pages are not contiguous",
        ),
        _ => {
            let limit = queue.max_sectors_kb.unwrap_or(0);
            let near = format!("the limit of {limit} KiB (max_sectors_kb)");
            (near, "larger requests are split there")
        }
    };
    let what = format!("{}, near {near}", sizes(members));
    let finding = Finding::new(&rules::SPLIT, Certainty::Inferred, what).because(why);
    let bytes = limit.map_or(0.0, |limit| limit.kib() * 1024.0);
    let finding = finding.with_number("limit", bytes, Unit::Bytes);
    finding.with_action("run `takeup bench disk DEVICE --max-sectors-kb` to measure the cost")
}

fn not_merged(members: &[&Seen<'_>]) -> Finding {
    let joins = members.iter().map(|seen| seen.columns.merged_percent).fold(0.0, f64::max);
    let merge = match joins {
        none if none < 0.5 => "nothing to merge".to_owned(),
        some => format!("at most {some:.0} % merge"),
    };
    let what = format!("random, or one at a time: {merge}");
    let why = format!("{} go to the device unchanged", sizes(members));
    Finding::new(&rules::NOT_MERGED, Certainty::Inferred, what).because(why)
}

fn discards(device: &DeviceInterval) -> Option<Finding> {
    let discard = &device.counted.discard;
    let all = requests(device);
    if discard.requests < REQUESTS_MIN || (discard.requests as f64) < SHARE * all as f64 {
        return None;
    }
    let columns = &device.columns.discard;
    let what =
        format!("discards of {} in {}", kib(columns.request_kib), milliseconds(columns.await_ms));
    let percent = 100.0 * discard.requests as f64 / all as f64;
    let why = format!("{percent:.0} % of all requests free space and move no data");
    let finding = Finding::new(&rules::DISCARDS, Certainty::Measured, what).because(why);
    Some(finding.with_number("discards", discard.requests as f64, Unit::Count))
}

/// Writes that may have been flushes without data; 0 if flushes are few, or if no write would be
/// left to move the data.
fn empty_writes(device: &DeviceInterval) -> u64 {
    let (flush, write) = (device.counted.flush.requests, device.counted.write.requests);
    let are_many = flush as f64 >= SHARE * write as f64;
    if are_many && flush < write { flush } else { 0 }
}

fn flushes(device: &DeviceInterval) -> Option<Finding> {
    let (flush, write) = (&device.counted.flush, &device.counted.write);
    let for_each = |writes: u64| writes as f64 / flush.requests as f64;
    if flush.requests < REQUESTS_MIN || for_each(write.requests) > FLUSH_WRITES {
        return None;
    }
    let time = milliseconds(device.columns.flush_await_ms);
    let most = for_each(write.requests);
    let least = for_each(write.requests.saturating_sub(flush.requests));
    let what =
        format!("a flush of the device's cache for each {least:.1} to {most:.1} writes, in {time}");
    let why = "programs wait until their data are safe (fsync)";
    let finding = Finding::new(&rules::FLUSHES, Certainty::Measured, what).because(why);
    let caveat = "the kernel also counts a flush without data as a write";
    let finding = Finding { caveat: Some(caveat.to_owned()), ..finding };
    Some(finding.with_number("flushes", flush.requests as f64, Unit::Count))
}
