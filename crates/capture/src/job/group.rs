//! Files that are alike, as one: what a section of a job stands for.

use std::collections::BTreeMap;

use super::super::operation::{Engine, FileKind, SyncCall};
use super::super::profile::{Class, FileProfile, Places};
use super::numbers::whole;

/// Most files of a group's own.
const FILES_MAX: usize = 64;

/// Files of one class on which the same is done, and the numbers of all of them.
#[derive(Clone, Debug)]
pub struct FileGroup {
    pub class: Class,
    /// Names of the files of the job, without a folder.
    pub names: Vec<String>,
    /// What the sections are named by.
    pub name: String,
    /// Paths that were captured, as far as they are known.
    pub paths: Vec<String>,
    /// One of them is a block device.
    pub device: bool,
    /// What keeps its sections in step with each other, where they are.
    pub flow: usize,
    pub engine: Engine,
    pub reads: u64,
    pub writes: u64,
    /// Calls that are neither, nor syncs, nor ended with an error.
    pub other_calls: u64,
    /// Bytes that were read.
    pub read_bytes: Option<u64>,
    /// Bytes that were written.
    pub written_bytes: Option<u64>,
    /// Sizes of reads, and how often, the most frequent first.
    pub read_sizes: Vec<(u64, u64)>,
    pub write_sizes: Vec<(u64, u64)>,
    /// The median of the largest file.
    pub block_bytes: Option<u64>,
    /// As in the profile, the mean over operations.
    pub sequential: Option<f64>,
    /// The mean over writes.
    pub rewrite: Option<f64>,
    /// The mean over operations.
    pub reuse: Option<f64>,
    /// `O_DIRECT`.
    pub direct: Option<bool>,
    /// `O_SYNC`, `O_DSYNC`, or such writes.
    pub synchronous: Option<bool>,
    /// `O_APPEND`.
    pub append: Option<bool>,
    pub sync_call: &'static str,
    /// How many of these.
    pub syncs: u64,
    /// Writes between two that 1 in 10 and 9 in 10 do not exceed, of the file with most.
    pub between_range: Option<[f64; 2]>,
    /// In flight, of each file.
    pub depth: Option<f64>,
    /// Threads of the file that has most.
    pub threads: u32,
    /// Pause of a thread.
    pub think_seconds: Option<f64>,
    /// Time of an operation.
    pub latency_seconds: Option<f64>,
    /// Reads and writes for each second in which the files were used.
    pub rate: f64,
    /// As in the profile.
    pub burstiness: Option<f64>,
    /// Mean size of the files that tell theirs.
    pub size_bytes: Option<u64>,
    /// Where the file that was used most was read and written.
    pub places: Places,
    /// The files are used at the same time, and not one after the other.
    pub beside: bool,
    /// Why something is not known.
    pub unknown: BTreeMap<&'static str, &'static str>,
}

/// What files of one group have in common.
type Alike = (
    (Class, Engine, Option<u64>),
    [Option<bool>; 3],
    &'static str,
    [bool; 4],
    Option<u32>,
    [Vec<u64>; 2],
);

fn alike(file: &FileProfile) -> Alike {
    // Two queues of different depth are no queue of the mean.
    let is_queued = matches!(file.engine, Engine::Libaio | Engine::IoUring);
    let depth = file.depth.filter(|depth| is_queued && *depth >= 1.0);
    (
        (file.class, file.engine, depth.map(|depth| whole(depth.log2()))),
        [file.direct, file.synchronous, file.append],
        file.sync.call,
        [
            file.reads > 0,
            file.writes > 0,
            file.sequential_share.unwrap_or(0.0) >= 0.5,
            file.kind == FileKind::BlockDevice,
        ],
        file.block_bytes.and_then(u64::checked_ilog2),
        [frequent(&file.block_sizes.read), frequent(&file.block_sizes.write)],
    )
}

/// The sizes that one in ten or more have, in their order; none where all have one.
fn frequent(sizes: &[(u64, u64)]) -> Vec<u64> {
    let all: u64 = sizes.iter().map(|(_, calls)| *calls).fold(0, u64::saturating_add);
    let is_frequent = |(_, calls): &&(u64, u64)| *calls as f64 >= 0.1 * all as f64;
    let mut frequent: Vec<u64> =
        sizes.iter().filter(is_frequent).map(|(bytes, _)| *bytes).collect();
    frequent.sort_unstable();
    if frequent.len() < 2 { Vec::new() } else { frequent }
}

/// Joins the files that are alike. `seconds` is the length of the recording.
pub fn joined(files: &[&FileProfile], seconds: f64) -> Vec<FileGroup> {
    let mut by_likeness: BTreeMap<Alike, Vec<&FileProfile>> = BTreeMap::new();
    for file in files {
        by_likeness.entry(alike(file)).or_default().push(file);
    }
    by_likeness.values().map(|files| FileGroup::of(files, seconds)).collect()
}

/// Gives groups and their files names of their own.
pub fn name(groups: &mut [FileGroup]) {
    let mut used: BTreeMap<&'static str, u32> = BTreeMap::new();
    for (at, group) in groups.iter_mut().enumerate() {
        group.flow = at + 1;
        let class = class_name(group.class);
        let number = used.entry(class).or_default();
        *number += 1;
        group.name = if *number == 1 { class.to_owned() } else { format!("{class}-{number}") };
        // A sync goes to the file that fio happens to be at.
        let files = if group.syncs > 0 { 1 } else { group.paths.len().clamp(1, FILES_MAX) };
        let file = |index| format!("takeup-{}.{index}", group.name);
        group.names = (0..files).map(file).collect();
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::WriteAheadLog => "write-ahead-log",
        Class::Data => "data",
        Class::Temporary => "temporary",
        Class::Stream => "stream",
        Class::Messages => "messages",
        Class::Device => "device",
        Class::Other => "other",
    }
}

impl FileGroup {
    /// The numbers of some files together, of which there is at least one, all of one likeness or
    /// all files of one group of a job.
    pub fn of(files: &[&FileProfile], seconds: f64) -> FileGroup {
        let first = most_used(files);
        let mean = |of: fn(&FileProfile) -> Option<f64>, weight: fn(&FileProfile) -> u64| {
            mean(files, of, weight)
        };
        let syncs = files.iter().map(|file| file.sync.calls).sum();
        let writes: u64 = files.iter().map(|file| file.writes).sum();
        let reads: u64 = files.iter().map(|file| file.reads).sum();
        let known_sizes = || files.iter().filter_map(|file| file.size_bytes);
        let spans: Vec<[usize; 2]> = files.iter().filter_map(|file| span(file)).collect();
        FileGroup {
            class: first.class,
            names: Vec::new(),
            name: String::new(),
            paths: files.iter().map(|file| file.path.clone().unwrap_or_default()).collect(),
            device: files.iter().any(|file| file.kind == FileKind::BlockDevice),
            flow: 0,
            engine: first.engine,
            reads,
            writes,
            other_calls: files.iter().map(|file| other_calls(file)).sum(),
            read_bytes: sum(files, |file| file.read_bytes),
            written_bytes: sum(files, |file| file.written_bytes),
            read_sizes: sizes(files, |file| &file.block_sizes.read),
            write_sizes: sizes(files, |file| &file.block_sizes.write),
            block_bytes: first.block_bytes,
            sequential: mean(|file| file.sequential_share, FileProfile::operations),
            rewrite: mean(|file| file.rewrite_share, |file| file.writes),
            reuse: mean(|file| file.reuse_share, FileProfile::operations),
            direct: first.direct,
            synchronous: first.synchronous,
            append: first.append,
            sync_call: if syncs > 0 { first.sync.call } else { "none" },
            syncs,
            between_range: first.sync.operations_range,
            depth: mean(|file| file.depth, FileProfile::operations),
            threads: files.iter().map(|file| file.threads).max().unwrap_or(1),
            think_seconds: mean(|file| file.think_seconds, FileProfile::operations),
            latency_seconds: mean(|file| file.latency_seconds, FileProfile::operations),
            rate: (reads + writes) as f64 / used_seconds(&spans, seconds),
            burstiness: mean(|file| file.burstiness, FileProfile::operations),
            size_bytes: known_sizes().sum::<u64>().checked_div(known_sizes().count() as u64),
            places: first.places.clone(),
            beside: are_beside(&spans),
            unknown: files.iter().rev().flat_map(|file| file.unknown.clone()).collect(),
        }
    }

    /// Reads and writes.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes
    }

    /// Bytes that were moved, as far as that is known.
    pub fn moved_bytes(&self) -> u64 {
        self.read_bytes.unwrap_or(0).saturating_add(self.written_bytes.unwrap_or(0))
    }

    /// Share of reads in reads and writes.
    pub fn read_share(&self) -> Option<f64> {
        (self.operations() > 0).then(|| self.reads as f64 / self.operations() as f64)
    }

    /// Why a field of the profile is not known.
    pub fn reason(&self, field: &str) -> &'static str {
        self.unknown.get(field).copied().unwrap_or("too few operations show it")
    }

    /// Whether the program waits for each answer before it asks again, with a pause that counts.
    pub fn pauses(&self) -> bool {
        const PAUSE_SECONDS_MIN: f64 = 50e-6;
        let think = self.think_seconds.unwrap_or(0.0);
        let wait = self.latency_seconds.unwrap_or(0.0);
        let alone = self.depth.is_none_or(|depth| depth < 1.5);
        alone && !self.is_queued() && think > PAUSE_SECONDS_MIN && think > 0.1 * wait
    }

    /// Whether syncs have a section of their own, each behind a write: fio's engine for rings asks
    /// the ring for its syncs, so that calls are not its own, and makes those of a ring of a depth
    /// of 4 four times (3.33: `fsync=8` has 181 for 400 writes). Its `libaio` makes calls.
    pub fn syncs_beside(&self) -> bool {
        let is_deep = self.depth.is_some_and(|depth| depth >= 1.5);
        let is_call = self.sync_call != SyncCall::Ring.name();
        self.engine == Engine::IoUring
            && (is_call || is_deep)
            && self.syncs > 0
            && self.writes > self.syncs
    }

    /// The same of a ring with more syncs than writes: a section of some of the reads and writes,
    /// one at a time and each with a sync behind it, beside one of the rest without.
    pub fn syncs_among_reads_beside(&self) -> bool {
        let is_deep = self.depth.is_some_and(|depth| depth >= 1.5);
        self.engine == Engine::IoUring
            && is_deep
            && self.reads > 0
            && self.syncs >= self.writes
            && self.writes > 0
            && self.syncs < self.operations()
    }

    /// Whether one thread may have several requests in flight.
    pub fn is_queued(&self) -> bool {
        matches!(self.engine, Engine::Libaio | Engine::IoUring)
    }
}

impl FileProfile {
    /// Reads and writes.
    fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

fn most_used<'a>(files: &[&'a FileProfile]) -> &'a FileProfile {
    let most = files
        .iter()
        .copied()
        .reduce(|most, file| if file.operations() > most.operations() { file } else { most });
    most.expect("a group has a file")
}

fn other_calls(file: &FileProfile) -> u64 {
    file.calls.saturating_sub(file.reads + file.writes + file.sync.calls + file.errors)
}

/// Of those that tell, by their weight.
fn mean(
    files: &[&FileProfile],
    of: impl Fn(&FileProfile) -> Option<f64>,
    weight: impl Fn(&FileProfile) -> u64,
) -> Option<f64> {
    let (mut all, mut weights) = (0.0, 0.0);
    for file in files {
        if let Some(value) = of(file) {
            all += value * weight(file) as f64;
            weights += weight(file) as f64;
        }
    }
    (weights > 0.0).then(|| all / weights)
}

fn sum(files: &[&FileProfile], of: impl Fn(&FileProfile) -> Option<u64>) -> Option<u64> {
    files.iter().try_fold(0u64, |sum, file| of(file).map(|value| sum.saturating_add(value)))
}

fn sizes(files: &[&FileProfile], of: impl Fn(&FileProfile) -> &Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, calls) in files.iter().flat_map(|file| of(file)) {
        *counts.entry(*bytes).or_default() += calls;
    }
    let mut sizes: Vec<(u64, u64)> = counts.into_iter().collect();
    sizes.sort_by_key(|(bytes, calls)| (std::cmp::Reverse(*calls), *bytes));
    sizes
}

/// From the first to the last hundredth of the recording in which a file was used.
fn span(file: &FileProfile) -> Option<[usize; 2]> {
    let used = |bytes: &[u64; 2]| bytes[0] > 0 || bytes[1] > 0;
    let first = file.series.iter().position(used)?;
    Some([first, file.series.iter().rposition(used)?])
}

/// The part of the recording from the first use of the files to the last.
fn used_seconds(spans: &[[usize; 2]], seconds: f64) -> f64 {
    let first = spans.iter().map(|span| span[0]).min().unwrap_or(0);
    let last = spans.iter().map(|span| span[1]).max().unwrap_or(99);
    let share = (last - first + 1) as f64 / 100.0;
    (seconds * share.min(1.0)).max(1e-3)
}

/// Whether files are used at the same time: the sum of their spans is clearly more than the whole.
fn are_beside(spans: &[[usize; 2]]) -> bool {
    let long = |span: &[usize; 2]| span[1] - span[0] + 1;
    let first = spans.iter().map(|span| span[0]).min().unwrap_or(0);
    let last = spans.iter().map(|span| span[1]).max().unwrap_or(0);
    // Each takes a whole hundredth, also where it was used for less.
    let sum: usize = spans.iter().map(long).sum();
    sum as f64 > 1.5 * (last - first + 1) as f64
}
