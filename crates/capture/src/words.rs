//! Findings of a profile.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Rule, Severity, Unit};
use base::format::{binary_size, count, counted, duration, percent};

use super::operation::{Engine, FileKind, Unknown};
use super::profile::{Class, Cost, FileProfile, Profile};
use super::rules;

/// The most findings about files; the table has all files.
const MOST: usize = 12;
/// Operations, or bytes, from which on a file gets a finding.
const MUCH_OPERATIONS: u64 = 8;
const MUCH_BYTES: u64 = 1 << 20;
/// From this share on a statement holds for all operations.
const NEARLY_ALL: f64 = 0.9;
/// Up to this share in order a file counts as random.
const HARDLY_ANY: f64 = 0.2;
/// A pause is reported if it is longer than this and than the operation, in seconds.
const LEAST_PAUSE_SECONDS: f64 = 0.000_5;

/// What is missing in the recording, then what its files show, those with the most operations
/// first, then what the recording cost. Files of one class with the same finding share it.
pub fn findings(profile: &Profile) -> Vec<Finding> {
    let mut found = of_missing(profile);
    let all = profile.files.iter().filter(|it| is_place(it) && it.reads + it.writes > 0);
    let mut order: Vec<&FileProfile> = all.clone().filter(|it| is_used_much(it)).collect();
    if order.is_empty() {
        order = all.collect();
    }
    order.sort_by_key(|it| std::cmp::Reverse(it.calls));
    let mut groups: Vec<SimilarFiles<'_>> = Vec::new();
    for file in order {
        for (rule, words) in of_file(file) {
            let is_same = |it: &SimilarFiles<'_>| {
                it.class == file.class && it.rule == rule && it.words == words
            };
            if let Some(at) = groups.iter().position(is_same) {
                groups[at].files.push(file);
            } else if groups.len() < MOST {
                groups.push(SimilarFiles { class: file.class, rule, words, files: vec![file] });
            }
        }
    }
    found.extend(groups.iter().map(|group| group.finding(&profile.files)));
    found.extend(about_recording(profile));
    found
}

/// Whether a file is used more than a library, of which every program reads a few blocks.
pub fn is_used_much(file: &FileProfile) -> bool {
    let bytes = [file.read_bytes, file.written_bytes].into_iter().flatten().max().unwrap_or(0);
    file.reads + file.writes >= MUCH_OPERATIONS || bytes >= MUCH_BYTES
}

/// Whether a file has offsets: pipes, sockets and terminals have none, and clocks and events are
/// descriptors without a file.
pub fn is_place(file: &FileProfile) -> bool {
    let is_anonymous = file.path.as_ref().is_some_and(|path| path.starts_with("anon_inode:"));
    match file.kind {
        FileKind::Regular | FileKind::BlockDevice => true,
        FileKind::Other => !is_anonymous,
        FileKind::CharacterDevice | FileKind::Pipe | FileKind::Socket => false,
    }
}

/// Files with the same finding.
struct SimilarFiles<'a> {
    class: Class,
    rule: &'static Rule,
    words: String,
    files: Vec<&'a FileProfile>,
}

impl SimilarFiles<'_> {
    /// `all` files are those from which the name tells these apart.
    fn finding(&self, all: &[FileProfile]) -> Finding {
        let what = format!("{}: {}", names(&self.files, all), self.words);
        numbered(Finding::new(self.rule, Certainty::Measured, what), &self.files)
    }
}

fn of_missing(profile: &Profile) -> Vec<Finding> {
    let mut found = Vec::new();
    if profile.lost_events > 0 {
        let lost = counted(profile.lost_events, "event was lost", "events were lost");
        let finding = Finding::new(&rules::LOST, Certainty::Told, lost)
            .because("counts are too low, and shares may be wrong")
            .severe(Severity::Warning);
        found.push(finding.with_number("lost events", profile.lost_events as f64, Unit::Count));
    }
    if profile.files_left_out > 0 || profile.operations_left_out > 0 {
        let files = counted(profile.files_left_out, "file has", "files have");
        let operations = counted(profile.operations_left_out, "operation", "operations");
        let what = format!("{files} no profile, because there are too many: {operations} left out");
        let finding = Finding::new(&rules::LEFT_OUT, Certainty::Measured, what);
        let count = profile.operations_left_out as f64;
        found.push(finding.with_number("operations left out", count, Unit::Count));
    }
    found
}

/// What the recording cost, and what it could not see: less than what it shows.
fn about_recording(profile: &Profile) -> impl Iterator<Item = Finding> {
    let unseen = profile.unseen.iter();
    let unseen = unseen.map(|it| Finding::new(&rules::UNSEEN, Certainty::Unknown, it.clone()));
    profile.cost.as_ref().map(cost).into_iter().chain(unseen)
}

fn cost(cost: &Cost) -> Finding {
    let share = cost.events_per_second * cost.event_seconds;
    let what = format!(
        "the recording cost the programs {} of processor time per second: {} events a second at \
         {:.0} ns each",
        duration(share),
        count(whole(cost.events_per_second)),
        cost.event_seconds * 1e9,
    );
    Finding::new(&rules::COST, Certainty::Inferred, what)
        .because(format!("the recorder itself used {} in all", duration(cost.recorder_seconds)))
        .with_number("events for each second", cost.events_per_second, Unit::Count)
        .with_number("an event", cost.event_seconds, Unit::Seconds)
        .with_number("taking them", cost.recorder_seconds, Unit::Seconds)
}

/// How many operations have none of their direction before them.
fn firsts(file: &FileProfile) -> u64 {
    u64::from(file.reads > 0) + u64::from(file.writes > 0)
}

/// Whether all operations but the first of each direction, which has none before it, go on where
/// one has ended: a file that is copied in one piece has two, its data and its end.
fn is_first_alone(file: &FileProfile, sequential_share: f64) -> bool {
    let (operations, firsts) = (file.reads + file.writes, firsts(file));
    let misses = (1.0 - sequential_share) * operations as f64;
    operations > firsts && misses < firsts as f64 + 0.5
}

/// The share of operations that go on where one ended, without the first of each direction, which
/// has none before it. `None` where there is no other.
pub fn share_in_order(file: &FileProfile, sequential_share: f64) -> Option<f64> {
    let operations = file.reads + file.writes;
    let others = operations.checked_sub(firsts(file)).filter(|others| *others > 0)?;
    Some((sequential_share * operations as f64 / others as f64).min(1.0))
}

/// The rules that apply to a file, with the words of each.
fn of_file(file: &FileProfile) -> Vec<(&'static Rule, String)> {
    if file.class == Class::WriteAheadLog && file.writes > file.reads {
        return vec![(&rules::LOG, log(file))];
    }
    let sequential = file.sequential_share;
    let in_order = sequential.map(|it| it + file.rewrite_share.unwrap_or(0.0));
    let (rule, order) = match (sequential, in_order) {
        (Some(share), _) if share >= NEARLY_ALL || is_first_alone(file, share) => {
            (&rules::IN_ORDER, "front to back".to_owned())
        }
        (_, Some(share)) if share <= HARDLY_ANY && file.reads + file.writes > 1 => {
            (&rules::RANDOM, "at random".to_owned())
        }
        (Some(_), _) if file.reads + file.writes == 1 => (&rules::MIXED, "once".to_owned()),
        (Some(share), _) => {
            let share = share_in_order(file, share).unwrap_or(share);
            (&rules::MIXED, format!("{} in order", percent(share)))
        }
        (None, _) => (&rules::MIXED, "in an unknown order".to_owned()),
    };
    let mut words = format!("{} {order}, {}", direction(file), pieces(file));
    words.push_str(&how(file));
    let mut said = vec![(rule, words)];
    if file.sync.operations_between.is_some() {
        let call = file.sync.call;
        let words = match Cadence::of(file) {
            Cadence::Even(1) => format!("data are synced after every write, by {call}"),
            Cadence::Even(every) => {
                format!("data are synced after every {} writes, by {call}", count(every))
            }
            Cadence::Uneven(words) => format!("data are synced by {call} {words}"),
        };
        said.push((&rules::SYNCED, words));
    }
    said
}

/// How often a file is synced.
enum Cadence {
    /// A sync after every so many writes.
    Even(u64),
    /// In bunches, or at uneven distances; the words say how many syncs for how many writes.
    Uneven(String),
}

impl Cadence {
    /// How far the mean, and 8 in 10 of all distances, may be from the median for an even cadence,
    /// as a share of the median.
    const EVEN: f64 = 0.2;

    /// The cadence of a file with two syncs or more.
    fn of(file: &FileProfile) -> Cadence {
        let sync = &file.sync;
        let mean = file.writes as f64 / sync.calls.max(1) as f64;
        let median = sync.operations_between.unwrap_or(mean);
        let [low, high] = sync.operations_range.unwrap_or([median; 2]);
        let is_near = |it: f64| (it - median).abs() <= (Cadence::EVEN * median).max(0.05);
        // Writes before the first sync and after the last are in the mean only.
        let ends = (file.writes as f64 - median * (sync.calls.max(2) - 1) as f64).abs();
        let is_mean = is_near(mean) || ends <= 2.0 * median;
        if median >= 1.0 && is_near(low) && is_near(high) && is_mean {
            return Cadence::Even(whole(median));
        }
        let writes = counted(file.writes, "write", "writes");
        let mut words = format!(
            "{} for {writes}, one for {} on average",
            counted(sync.calls, "time", "times"),
            short_number(mean),
        );
        if low < mean / 2.0 && median < mean * 0.75 {
            words.push_str(match whole(median) {
                0 => ", in bunches: half of them with no write between",
                1 => ", in bunches: half of them with at most one write between",
                _ => ", in bunches",
            });
        }
        Cadence::Uneven(words)
    }
}

/// A number, with a decimal where it matters.
pub fn short_number(value: f64) -> String {
    if value >= 10.0 || (value - value.round()).abs() < 0.05 {
        count(whole(value))
    } else {
        format!("{value:.1}")
    }
}

fn log(file: &FileProfile) -> String {
    let mut words = format!("written {}", pieces(file));
    match (file.sync.call, file.sync.operations_between) {
        (call, Some(_)) => words.push_str(&match Cadence::of(file) {
            Cadence::Even(1) => format!(", each followed by {call}"),
            Cadence::Even(every) => format!(", {call} after every {} writes", count(every)),
            Cadence::Uneven(words) => format!(", {call} {words}"),
        }),
        (_, None) if file.synchronous == Some(true) => {}
        ("none", None) => words.push_str(", never synced"),
        (call, None) => words.push_str(&format!(", {call} once")),
    }
    if file.rewrite_share.is_some_and(|it| it >= 0.5) {
        words.push_str(", the last block again and again");
    } else if file.sequential_share.is_some_and(|it| it >= NEARLY_ALL) {
        words.push_str(", front to back");
    }
    words + &how(file)
}

fn direction(file: &FileProfile) -> String {
    match (file.reads, file.writes) {
        (_, 0) => "read".to_owned(),
        (0, _) => "written".to_owned(),
        _ => format!("read and written ({} reads)", percent(file.read_share.unwrap_or(0.0))),
    }
}

/// Sizes of the operations, and the call.
fn pieces(file: &FileProfile) -> String {
    let mut by_size: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, count) in file.block_sizes.read.iter().chain(&file.block_sizes.write) {
        *by_size.entry(*bytes).or_default() += count;
    }
    let size = match file.block_bytes {
        None => "in blocks of unknown size".to_owned(),
        Some(median) => {
            let all = by_size.values().sum::<u64>() + file.block_sizes.others;
            let of_median = by_size.get(&median).copied().unwrap_or(0);
            if of_median as f64 >= all as f64 * NEARLY_ALL {
                format!("{} at a time", binary_size(median))
            } else {
                format!("in blocks of many sizes around {}", binary_size(median))
            }
        }
    };
    match call(file) {
        Some(call) => format!("{size} by {call}"),
        None => size,
    }
}

fn call(file: &FileProfile) -> Option<String> {
    let names = match file.engine {
        Engine::Sync => ["read", "write"],
        Engine::Psync => ["pread", "pwrite"],
        Engine::Vsync => ["readv", "writev"],
        Engine::Pvsync => ["preadv", "pwritev"],
        Engine::Pvsync2 => ["preadv2", "pwritev2"],
        Engine::Libaio => ["io_submit"; 2],
        Engine::IoUring => ["io_uring"; 2],
        Engine::Mmap => ["a mapping"; 2],
        Engine::Splice => ["splice, sendfile or copy_file_range"; 2],
        Engine::Unknown => return None,
    };
    Some(match (file.reads, file.writes) {
        (_, 0) => names[0].to_owned(),
        (0, _) => names[1].to_owned(),
        _ if names[0] == names[1] => names[0].to_owned(),
        _ => format!("{} and {}", names[0], names[1]),
    })
}

/// Operations in flight, direct, synchronous, and pauses.
fn how(file: &FileProfile) -> String {
    let mut words = match file.depth.map(whole) {
        None => String::new(),
        Some(0 | 1) => "; one in flight".to_owned(),
        Some(depth) => format!("; {} in flight", count(depth)),
    };
    if file.direct == Some(true) {
        words.push_str(", direct");
    }
    if file.synchronous == Some(true) {
        words.push_str(", each write waits for the disk");
    }
    let least = file.latency_seconds.unwrap_or(0.0).max(LEAST_PAUSE_SECONDS);
    if let Some(pause) = file.think_seconds.filter(|it| *it >= least) {
        words.push_str(&format!(", pauses of {}", rounded(pause)));
    }
    words
}

/// A rounded pause, so that files with nearly the same pause share a finding.
fn rounded(seconds: f64) -> String {
    if seconds < 0.001 {
        return "less than 1 ms".to_owned();
    }
    let unit = 10_f64.powi(floor(seconds.log10()));
    format!("about {}", duration((seconds / unit).round() * unit))
}

/// The name of the first file, and the number of others.
fn names(files: &[&FileProfile], all: &[FileProfile]) -> String {
    let first = files.first().map_or_else(String::new, |it| distinct_name(it, all));
    match files.len() {
        0 | 1 => first,
        all => format!("{first} and {} more", count(all as u64 - 1)),
    }
}

/// The end of a file's path: its last two parts, and as many more as tell it from the other files
/// in `all`.
pub fn distinct_name<'a>(
    file: &FileProfile,
    all: impl IntoIterator<Item = &'a FileProfile>,
) -> String {
    let short = short_name(file);
    let Some(path) = &file.path else { return short };
    let others = all.into_iter().filter_map(|it| it.path.as_deref()).filter(|it| it != path);
    let others: Vec<&str> = others.filter(|it| short_path(it) == short).collect();
    if others.is_empty() {
        return short;
    }
    // Each longer end of the path begins behind a slash.
    let mut ends = path.rmatch_indices('/').skip(2).map(|(slash, _)| &path[slash + 1..]);
    let is_distinct = |end: &&str| {
        let ends_alike = |it: &&str| it.strip_suffix(end).is_some_and(|it| it.ends_with('/'));
        !end.is_empty() && !others.iter().any(ends_alike)
    };
    ends.find(is_distinct).unwrap_or(path.as_str()).to_owned()
}

/// The last two parts of a file's path.
pub fn short_name(file: &FileProfile) -> String {
    match &file.path {
        Some(path) => short_path(path),
        None if are_many(file) => "files closed before their names were seen".to_owned(),
        None => "a file of unknown name".to_owned(),
    }
}

/// Whether this stands for all files that a recording could not look up before they were closed.
pub fn are_many(file: &FileProfile) -> bool {
    file.path.is_none() && file.unknown.get("path") == Some(&Unknown::Closed.reason())
}

/// The last two parts of a path; the whole path if it is shorter.
pub fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.rsplitn(3, '/').collect();
    match parts[..] {
        [_, "", _] | [_, "dev", ""] => path.to_owned(),
        [name, folder, _] => format!("{folder}/{name}"),
        _ => path.to_owned(),
    }
}

fn numbered(finding: Finding, files: &[&FileProfile]) -> Finding {
    let sum = |of: fn(&FileProfile) -> u64| files.iter().map(|it| of(it)).sum::<u64>() as f64;
    let mut finding = finding.with_number("reads", sum(|it| it.reads), Unit::Count).with_number(
        "writes",
        sum(|it| it.writes),
        Unit::Count,
    );
    let first = files[0];
    let shares = [
        ("sequential share", first.sequential_share, Unit::Share),
        ("rewrite share", first.rewrite_share, Unit::Share),
        ("block", first.block_bytes.map(|it| it as f64), Unit::Bytes),
        ("writes between two syncs", first.sync.operations_between, Unit::Count),
        ("writes for each sync", first.sync.operations_mean, Unit::Count),
        ("in flight", first.depth, Unit::Count),
    ];
    for (name, value, unit) in shares {
        if let Some(value) = value {
            finding = finding.with_number(name, value, unit);
        }
    }
    finding
}

#[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number there is")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number there is")]
fn floor(value: f64) -> i32 {
    value.floor() as i32
}

#[cfg(test)]
mod tests;
