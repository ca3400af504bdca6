//! One section of a job: the options that make fio do what a group of files saw, each with where
//! its value comes from.
//!
//! What fio makes of them was looked at with fio 3.33: `percentage_random` does nothing with
//! `rw=rw`; `randwrite:N` with `rw_sequencer=identical` writes each place N times before it goes
//! on; `number_ios` counts reads and writes and no syncs; a sequential section begins again at the
//! front when `io_size` is more than `size`, but ends there with `file_append`; a job of several
//! files syncs the one that it is at; and it divides by zero (SIGFPE) where a section has both
//! `rate_process=poisson` and syncs.

use base::format::{count, counted, percent};

use super::super::operation::{Engine, SyncCall};
use super::super::profile::Class;
use super::group::FileGroup;
use super::numbers::whole;
use super::part::rewrites;
pub use super::part::synced_among_reads;
pub use super::part::{Line, Part, SectionLines};
use super::scale::Scale;
use super::slice::{DEPTH_MAX, Slice, asked_depth, filled};
use super::spread::{self, Load};
use super::{blocks, cadence, extent};

/// Largest weight that fio takes.
const FLOW_MAX: f64 = 1000.0;
/// The weight of syncs: those of writes are several times it, and whole numbers.
const FLOW_OF_SYNCS: f64 = 8.0;

/// Why requests of several sizes go without a map.
const MAP_CUTS: &str = "fio's map of used places would cut the larger requests";

/// A section.
#[derive(Clone, Debug)]
pub struct JobSection {
    /// What stands in brackets.
    pub name: String,
    pub lines: Vec<Line>,
    file_bytes: u64,
    operations: u64,
}

impl JobSection {
    /// The section for a part of a group, that begins when the section of that name has ended.
    pub fn of(
        group: &FileGroup,
        part: Part,
        slice: Slice,
        scale: &Scale,
        after: Option<&str>,
    ) -> JobSection {
        let mut name = match part {
            Part::Reads => format!("{}-reads", group.name),
            Part::Writes | Part::Queued => format!("{}-writes", group.name),
            Part::Syncs => format!("{}-syncs", group.name),
            Part::All => group.name.clone(),
        };
        if slice.number > 1 {
            name.push_str(&format!("-{}", slice.number));
        }
        let mut lines = SectionLines(Vec::new());
        captured(group, &mut lines);
        engine(group, part, &mut lines);
        let block = blocks::add(group, part, &mut lines);
        let jobs = depth(group, part, slice, &mut lines);
        let of_slice = Scale { slice: slice.share, ..*scale };
        let cut = extent::size(group, part, &of_slice, block, jobs, &mut lines);
        let files = group.names.len().max(1) as u64;
        let load = extent::load(group, part, &of_slice, cut / files);
        order(group, part, &load, &mut lines);
        opened(group, &mut lines);
        if part.writes(group) > 0 {
            syncs(group, part, slice, &mut lines);
        }
        pace(group, part, jobs, slice.share, &mut lines);
        if let Some(before) = after {
            let why = "one after the other: at once there would be more in flight";
            lines.add(format!("wait_for={before}"), why);
        }
        JobSection { name, lines: lines.0, file_bytes: cut, operations: load.operations * files }
    }

    /// Reads and writes that it makes.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Bytes that its files take.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

fn captured(group: &FileGroup, lines: &mut SectionLines) {
    let known: Vec<&str> =
        group.paths.iter().map(String::as_str).filter(|path| !path.is_empty()).collect();
    let first = known.first().copied().unwrap_or("a file whose name is not known");
    lines.say(match group.paths.len() {
        0 | 1 => format!("captured: {first}"),
        several => format!("captured: {first} and {} more that are alike", several - 1),
    });
    if group.device {
        lines.say("captured from a block device; a file replaces it");
    }
    let own = group.names.join(":");
    let why = match (group.names.len(), group.paths.len()) {
        (1, 0 | 1) => "its own file".to_owned(),
        (1, several) => {
            format!("one file for {several}: with several, fio syncs only the current one")
        }
        (own, several) => format!("{own} own files for {several}"),
    };
    lines.add(format!("filename={own}"), why);
    if group.names.len() > 1 && !group.beside {
        let why = "the files were used one after the other";
        lines.add("file_service_type=sequential", why);
    }
}

fn engine(group: &FileGroup, part: Part, lines: &mut SectionLines) {
    if part == Part::Syncs && group.sync_call != SyncCall::Ring.name() {
        let origin = "syncs were calls, but fio's io_uring submits syncs to the ring";
        return lines.add("ioengine=psync", origin);
    }
    if part == Part::Syncs {
        let origin = "one at a time: fio repeats the syncs of a deeper ring (3.33)";
        return lines.add("ioengine=io_uring", origin);
    }
    let calls = |calls: &str| format!("{} by {calls}", count(group.operations()));
    let (engine, by) = match group.engine {
        Engine::Sync => ("sync", "read and write"),
        Engine::Psync => ("psync", "pread and pwrite"),
        Engine::Vsync => ("vsync", "readv and writev"),
        Engine::Pvsync => ("pvsync", "preadv and pwritev"),
        Engine::Pvsync2 => ("pvsync2", "preadv2 and pwritev2"),
        Engine::Libaio => ("libaio", "io_submit"),
        Engine::IoUring => ("io_uring", "requests of a ring"),
        Engine::Mmap => ("mmap", "pages of a mapped file"),
        Engine::Splice => ("splice", "splice, sendfile or copy_file_range"),
        Engine::Unknown => {
            let value = Some("ioengine=psync".to_owned());
            return lines.assume(value, "engine", "the recording names no call", "psync");
        }
    };
    lines.add(format!("ioengine={engine}"), calls(by));
}

/// How many requests are in flight; returns the jobs that a section stands for.
fn depth(group: &FileGroup, part: Part, slice: Slice, lines: &mut SectionLines) -> u64 {
    if part == Part::Syncs {
        lines.say("a request for each sync: fio makes no sync without one");
        return 1;
    }
    let known = group.depth.map(|depth| depth.clamp(1.0, DEPTH_MAX));
    if group.is_queued() {
        let files = if group.beside { group.names.len() as f64 } else { 1.0 };
        match known {
            Some(depth) => {
                let all = asked_depth(group, depth);
                let each =
                    if files > 1.0 { format!(" in each of {files} files") } else { "".into() };
                let mut origin = format!("9 in 10 began with {depth} in flight or fewer{each}");
                if slice.depth.is_some() {
                    origin.push_str(", by several sections: fio makes each a power of two");
                }
                // What fio makes of it, whatever it is told.
                let is_ring = group.engine == Engine::IoUring;
                let one = if is_ring { all.next_power_of_two() } else { all };
                lines.add(format!("iodepth={}", slice.depth.unwrap_or(one)), origin);
            }
            None => {
                let why = group.reason("depth");
                lines.assume(Some("iodepth=1".to_owned()), "depth", why, "1");
            }
        }
        return 1;
    }
    let Some(depth) = known else {
        lines.assume(None, "depth", group.reason("depth"), "one thread");
        return 1;
    };
    let jobs = whole(depth).clamp(1, u64::from(group.threads.max(1)));
    if jobs > 1 {
        let threads = counted(u64::from(group.threads), "thread", "threads");
        let origin = format!("{depth} in flight from {threads}, one of each at a time");
        lines.add(format!("numjobs={jobs}"), origin);
    } else {
        lines.say(format!("depth {depth}: one at a time, as this engine always does"));
    }
    jobs
}

/// Where in the file.
fn order(group: &FileGroup, part: Part, load: &Load, lines: &mut SectionLines) {
    let (reads, writes) = (part.reads(group), part.writes(group));
    let plain = match (reads > 0, writes > 0) {
        (true, true) => "rw",
        (true, false) => "read",
        (false, _) => "write",
    };
    if reads > 0 && writes > 0 {
        let share = (reads as f64 / (reads + writes) as f64 * 100.0).round();
        let origin = format!("{} reads, {} writes", count(reads), count(writes));
        lines.add(format!("rwmixread={share}"), origin);
    }
    let Some(sequential) = group.sequential else {
        return assumed_order(group, plain, load, lines);
    };
    let rewritten = rewrites(group).filter(|_| writes > 0 && reads == 0);
    let again = if reads > 0 { 0.0 } else { group.rewrite.unwrap_or(0.0) };
    let elsewhere = (1.0 - sequential - again).max(0.0);
    // The first of each file and kind follows none, nor does it where the file begins again.
    let passes = (reads + writes) as f64 * load.mean_bytes / load.file_bytes.max(1) as f64;
    let firsts = (group.paths.len() * 2) as f64 * (1.0 + passes) + 0.5;
    let random = if elsewhere * (reads + writes) as f64 <= firsts {
        0.0
    } else {
        (elsewhere / (1.0 - again).max(1e-3) * 100.0).round().min(100.0)
    };
    let by_chance = rewritten.is_none() && sequential <= load.in_order_by_chance(group);
    let random = if by_chance && random > 0.0 { 100.0 } else { random };
    if let Some((times, share)) = rewritten {
        let origin = format!("{} of writes begin within the previous one", percent(share));
        lines.add(format!("rw=randwrite:{times}"), origin);
        lines.add("rw_sequencer=identical", "each place is written that often, then the next");
        let origin = format!(
            "{} of writes begin elsewhere: {random} % of the new places",
            percent(elsewhere)
        );
        lines.add(format!("percentage_random={random}"), origin);
        return;
    }
    let origin = format!("{} begin where an earlier one ended", percent(sequential));
    if random == 0.0 {
        lines.add(format!("rw={plain}"), origin);
        return behind_the_queued(group, part, load, lines);
    }
    lines.add(format!("rw=rand{plain}"), origin);
    if random < 100.0 {
        lines.add(format!("percentage_random={random}"), "the others");
    }
    if random < 90.0 {
        let why = match group.reuse {
            Some(reuse) => format!("a place may be used again: {} were", percent(reuse)),
            None => "a place may be used again".to_owned(),
        };
        return lines.add("norandommap=1", why);
    }
    let spread = spread::of(group, load);
    for (value, origin) in spread.lines(load, group.reuse) {
        lines.add(value, origin);
    }
    if load.is_one_size || matches!(spread, spread::Spread::Even) {
        return;
    }
    lines.add("norandommap=1", MAP_CUTS);
}

/// Writes in order that two sections share do not both begin at the front.
fn behind_the_queued(group: &FileGroup, part: Part, load: &Load, lines: &mut SectionLines) {
    if part != Part::Syncs {
        return;
    }
    let (queued, synced) = (Part::Queued.operations(group), part.operations(group));
    let ahead = load.operations as f64 * queued as f64 / synced.max(1) as f64;
    let block_bytes = load.block_bytes.max(1);
    let blocks = load.file_bytes / block_bytes;
    let offset = whole(ahead) % blocks.max(1) * block_bytes;
    if offset > 0 {
        let origin = "after the writes without a sync, in the same order";
        lines.add(format!("offset={offset}"), origin);
    }
}

/// Where in the file, if that was not seen.
fn assumed_order(group: &FileGroup, plain: &str, load: &Load, lines: &mut SectionLines) {
    let in_order = matches!(group.class, Class::WriteAheadLog | Class::Stream);
    let (rw, taken) = if in_order {
        (plain.to_owned(), "in order, as such files are,")
    } else {
        (format!("rand{plain}"), "at random")
    };
    let why = group.reason("sequential_share");
    lines.assume(Some(format!("rw={rw}")), "order", why, taken);
    if !in_order && !load.is_one_size {
        lines.add("norandommap=1", MAP_CUTS);
    }
}

/// With which flags it is opened.
fn opened(group: &FileGroup, lines: &mut SectionLines) {
    match group.direct {
        Some(true) => lines.add("direct=1", "opened with O_DIRECT"),
        Some(false) => lines.say("buffered: opened without O_DIRECT"),
        None => lines.assume(None, "O_DIRECT", group.reason("direct"), "buffered"),
    }
    match group.synchronous {
        Some(true) => lines.add("sync=dsync", "each write waits until it is on the disk"),
        Some(false) => {}
        None => {
            let why = group.reason("synchronous");
            lines.assume(None, "O_SYNC", why, "writes that do not wait");
        }
    }
}

/// How what was written gets to the disk.
fn syncs(group: &FileGroup, part: Part, slice: Slice, lines: &mut SectionLines) {
    if group.syncs == 0 {
        return;
    }
    let mean = group.writes as f64 / group.syncs as f64;
    if matches!(part, Part::Queued | Part::Syncs) {
        lines.add(format!("flow_id={}", group.flow), "in step with the other section");
    }
    if part == Part::Queued {
        let (queued, synced) = (part.operations(group), Part::Syncs.operations(group));
        let each = queued as f64 / synced.max(1) as f64;
        let weight = (each * slice.share * FLOW_OF_SYNCS).round().clamp(1.0, FLOW_MAX);
        let what = if part.reads(group) > 0 { "reads and writes" } else { "writes" };
        let origin = format!("{each:.1} {what} for each one with a sync after it");
        return lines.add(format!("flow={weight}"), origin);
    }
    let mut every = slice.every.unwrap_or_else(|| whole(mean).max(1));
    if part == Part::Syncs {
        lines.add(format!("flow={FLOW_OF_SYNCS}"), "the weight of one request");
        every = 1;
    }
    let made = match part {
        Part::Syncs => group.syncs,
        Part::All if let Some(every) = synced_among_reads(group) => {
            (group.operations() - (filled(group) - 1).min(group.operations())) / every
        }
        _ => cadence::made(whole(group.writes as f64 * slice.share), every, filled(group)),
    };
    let mut origin = format!(
        "{} {} of {} writes, one for {}",
        count(group.syncs),
        group.sync_call,
        count(group.writes),
        super::super::words::short_number(mean),
    );
    if slice.share < 1.0 {
        origin.push_str("; this section has its share");
    } else if made != group.syncs {
        origin.push_str(&format!("; this makes {}", count(made)));
    }
    if let Some([low, high]) = group.between_range.filter(|[low, high]| high - low > mean.max(1.0))
    {
        origin.push_str(&format!(
            "; they came in bunches ({low:.0} to {high:.0} writes between two), which fio does not \
             do"
        ));
    }
    let option = match group.sync_call {
        "fdatasync" => format!("fdatasync={every}"),
        "sync_file_range" => format!("sync_file_range=write:{every}"),
        _ => format!("fsync={every}"),
    };
    lines.add(option, origin);
    match group.sync_call {
        "sync_file_range" => {
            lines.say("the flags of sync_file_range are not known; write is an assumption");
        }
        call if call == SyncCall::Ring.name() => {
            lines.say(
                "whether the ring was asked for fsync or fdatasync is not seen; fsync is an \
                       assumption",
            );
        }
        "sync" => lines.say("fio cannot sync a whole file system; it uses fsync instead"),
        _ => {}
    }
}

/// How fast.
fn pace(group: &FileGroup, part: Part, jobs: u64, slice: f64, lines: &mut SectionLines) {
    if !group.pauses() {
        lines.say(format!("{:.0} a second, without pauses: as fast as answers come", group.rate));
        return;
    }
    let share = |own: u64| group.rate * slice * own as f64 / group.operations().max(1) as f64;
    let directions = [part.reads(group), part.writes(group)];
    let rates: Vec<f64> = directions.iter().map(|own| share(*own) / jobs as f64).collect();
    let all: f64 = rates.iter().sum();
    let think = group.think_seconds.unwrap_or(0.0);
    if rates.iter().any(|rate| *rate > 0.0 && *rate < 10.0) {
        let micros = (1e6 / all.max(1e-6)).round().clamp(1.0, 6e7);
        let origin = format!("{all:.2} a second: one after such a time, in µs");
        return lines.add(format!("thinktime={micros}"), origin);
    }
    // Of a direction that there is not fio wants a number as well.
    let value = |rate: &f64| format!("{}", rate.round().max(1.0));
    let value = match rates[..] {
        [reads, writes] if reads > 0.0 && writes > 0.0 => {
            format!("{},{}", value(&reads), value(&writes))
        }
        _ => value(&all),
    };
    let origin = format!("a thread pauses for {:.3} ms between two requests", think * 1e3);
    lines.add(format!("rate_iops={value}"), origin);
    if let Some(bursts) = group.burstiness.filter(|bursts| *bursts >= 0.5) {
        let origin = format!("variance of the counts over their mean {bursts:.1}; a clock has 0");
        if group.syncs > 0 && part.writes(group) > 0 {
            lines.say(format!("{origin}; fio 3.33 crashes with rate_process=poisson beside syncs"));
        } else {
            lines.add("rate_process=poisson", origin);
        }
    }
}
