//! The stage that held a run back, and how long the run would have taken without it. Numbers only;
//! `report` has the words.
//!
//! A stage is *busy* while it works, and while it waits for something that is not a stage: the
//! first one for the source, the writer for the target or for the user's rate limit. All other
//! waits are caused by a neighbour, or by a thread of the same stage whose turn is first. If the
//! stages of a pipeline overlap, the run takes as long as its busiest stage. So that stage is the
//! limit, and without it the run would take as long as the busiest of the others.
//!
//! Two cases need more than that. Stages that share too few cores are all busy at once, since
//! waiting for a core looks like work from inside: then the processor is the limit. And if no stage
//! is busy for most of the run, the stages take turns, as they do with a ring that is too small.
//!
//! A limit is a claim, and is checked against what its stage waited for. Three times are
//! distinguished: on a core, waiting for a core (the kernel counts that for each thread), and the
//! rest, in which the stage waits for a device or for another program. Cores that other programs
//! use up are no limit of a run that waits for its disk. No forecast goes below a bound that the
//! run itself has shown: while requests were in flight to a device, more of them would have found
//! it as slow. If other programs have the cores, a wait for the disk hides behind the wait for a
//! core; behind a slow target it hides in the read-ahead. Then the counters of the disk decide: a
//! disk that had requests for most of the run is the limit, and the time that it took for this
//! run's reads is part of every forecast.

mod stream;

use crate::rate::BURST;
use crate::run::{RunReport, StageKind};
pub use stream::LargerRing;
use stream::{Stream, is_program_or_drive, target_floor_seconds};

/// What held the run back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Unknown: there are no stages, they ran for less than [`SHORTEST_SECONDS`], or for less than
    /// [`LEAST_SHARE`] of a run that mostly wound or changed a tape.
    Unknown,
    /// The job of the bottleneck stage.
    Stage,
    /// A few threads of the bottleneck stage, which has many: there was too little to do in
    /// parallel.
    FewThreads,
    /// What the first stage waited for.
    Source,
    /// What the last stage waited for without working: the rate limit.
    RateLimit,
    /// The cores, which several stages or other programs share.
    Processor,
    /// No stage was busy for [`BUSY_SHARE`] of the run: they waited for each other in turn.
    Turns,
}

/// The stage that a rate limit applies to. With a limit and as the last stage, it waits for the
/// limit while it is blocked. Otherwise, and in any other last stage, no wait means that.
pub const RATE_LIMITED_STAGE: StageKind = StageKind::Write;
/// A shorter run shows nothing: starting threads takes a part of it.
pub const SHORTEST_SECONDS: f64 = 0.02;
/// If the stages ran for a smaller share of a run, none of them is its limit.
pub const LEAST_SHARE: f64 = 0.05;
/// A stage that is busy for less of the run is not the only limit.
pub const BUSY_SHARE: f64 = 0.6;
/// If this share of the run would remain without its limit, the rest counts as equally long.
const AS_LONG: f64 = 0.95;
/// If the bytes take this share of the run at the rate limit, the limit held the run back, even if
/// the stages before the writer are nearly as slow, so that it hardly waited.
pub const RATE_SHARE: f64 = 0.9;
/// Share of the time of all cores from which on they count as used up.
pub const PROCESSOR_SHARE: f64 = 0.85;
/// The processor is the limit if the stage that held the run back had no core for this share of its
/// busy time, had or wanted one for [`CORE_WANTED_SHARE`] of it, and at least
/// [`CORE_WAIT_PROCESSOR_SHARE`] of the cores is used. The second condition is for stages that are
/// woken often, for a slow reader for example: they wait for a core each time, and yet mostly for
/// the reader.
pub const CORE_WAIT_SHARE: f64 = 0.25;
/// The ring is the limit if a larger one would save this share of what a free bottleneck would
/// save.
pub const RING_SHARE: f64 = 0.8;
/// See [`CORE_WAIT_SHARE`].
pub const CORE_WANTED_SHARE: f64 = 0.75;
/// See [`CORE_WAIT_SHARE`].
pub const CORE_WAIT_PROCESSOR_SHARE: f64 = 0.6;

/// One stage of an analysed run. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct StageShare {
    /// Its job.
    pub kind: StageKind,
    pub threads: u64,
    /// Seconds of being busy, per thread.
    pub busy_seconds: f64,
    /// The same as a share of the run.
    pub busy_share: f64,
    /// Share of the run in which at least one of its threads was busy.
    pub occupied_share: f64,
    /// Bytes per second while busy, all threads together. If a stage has more threads than there
    /// are cores, they are not all busy at once; then it is per second in which any is busy.
    pub bytes_per_second: f64,
    /// Share of its busy time in which it had a core.
    pub on_core_share: f64,
    /// Share of its busy time in which it was ready to run and had no core.
    pub core_wait_share: f64,
    /// Share of its busy time in which it waited for a neighbour while the program at its end
    /// worked.
    pub hidden_share: f64,
    /// Its share of the processor time that all stages used.
    pub processor_share: f64,
}

/// The analysis of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// What held it back.
    pub cause: Cause,
    pub stages: Vec<StageShare>,
    /// Index of the stage that is the bottleneck.
    pub bottleneck: Option<usize>,
    /// Index of the stage that would be the bottleneck without it.
    pub next: Option<usize>,
    /// Wall time of the run, including changes of volume and the time until the target was ready:
    /// all reported shares are of the whole run, like those of its table. The limit is searched in
    /// the rest.
    pub seconds: f64,
    /// The processor was the limit, and other programs used more of it than the stages.
    pub is_foreign: bool,
    /// Least time of the run if the bottleneck cost nothing; if other programs' use of the cores is
    /// the bottleneck, with the cores for itself.
    pub seconds_without: f64,
    /// Whether [`Analysis::seconds_without`] is known. It is not if the rest is a program that
    /// always had to wait, so that the run does not show its pace.
    pub without_is_known: bool,
    /// What a larger ring would have saved, if the run shows it.
    pub larger_ring: Option<LargerRing>,
    /// Time that the stages would have taken more without overlap.
    pub saved_seconds: f64,
    /// Share of the time of all cores that the stages used.
    pub processor_share: f64,
    /// Share of the time of all cores that other programs used; zero if unknown.
    pub others_share: f64,
    /// Cores that the run could use.
    pub cores: usize,
}

/// Finds the limit of a run.
pub fn analyse(run: &RunReport) -> Analysis {
    let seconds = sane(run.seconds);
    let aside_seconds = seconds - overlapping_seconds(run);
    let times: Vec<Times> = (0..run.stages.len()).map(|index| Times::new(run, index)).collect();
    let processor_seconds: f64 = times.iter().map(|stage| stage.processor_seconds).sum();
    let overlapped_seconds = (seconds - aside_seconds - sane(run.synchronise_seconds)).max(0.0);
    let processor_share = share(processor_seconds, overlapped_seconds * run.cores.max(1) as f64);
    let stages = run
        .stages
        .iter()
        .zip(&times)
        .map(|(report, stage)| StageShare {
            kind: report.kind,
            threads: report.threads,
            busy_seconds: stage.busy_seconds,
            busy_share: share(stage.busy_seconds, seconds),
            occupied_share: share(stage.occupied_seconds, seconds),
            bytes_per_second: stage.bytes_per_second(report.bytes, run.cores),
            on_core_share: share(stage.processor_seconds, stage.thread_seconds()),
            core_wait_share: share(stage.core_wait_seconds, stage.thread_seconds()),
            hidden_share: share(stage.hidden_seconds, stage.busy_seconds),
            processor_share: share(stage.processor_seconds, processor_seconds),
        })
        .collect();
    let all_cores_seconds = seconds * run.cores.max(1) as f64;
    let others_share = share(sane(run.others_seconds.unwrap_or(0.0)), all_cores_seconds);
    let cores = CoreUse { own_share: processor_share, others_share };
    let (cause, bottleneck) = find(run, &times, cores);
    let is_foreign = cause == Cause::Processor && cores.is_foreign();
    let free = bottleneck.map(|index| match cause {
        _ if is_foreign => Free::Cores,
        Cause::RateLimit => Free::RateLimit(index),
        _ => Free::Stage(index),
    });
    let others = |index: &usize| Some(*index) != bottleneck;
    let stream = Stream::new(run);
    let larger_ring = stream.as_ref().and_then(Stream::larger_ring);
    let next = (0..times.len()).filter(others).max_by(|a, b| order(&times, *a, *b));
    let paced = free.map_or(Some(0.0), |free| ends_seconds(run, stream.as_ref(), free));
    let left = free.map_or(seconds, |free| left_seconds(run, &times, free, aside_seconds));
    let seconds_without = left.max(paced.unwrap_or(0.0)).min(seconds);
    Analysis {
        cause: if is_of_the_ring(cause, larger_ring, seconds_without, seconds) {
            Cause::Turns
        } else {
            cause
        },
        stages,
        bottleneck,
        next,
        seconds,
        is_foreign,
        seconds_without,
        without_is_known: paced.is_some() || seconds_without >= AS_LONG * seconds,
        larger_ring,
        saved_seconds: saved_seconds(&times, seconds - aside_seconds),
        processor_share,
        others_share,
        cores: run.cores,
    }
}

/// Whether a larger ring would save nearly as much as a free bottleneck: then the ring held the run
/// back.
fn is_of_the_ring(
    cause: Cause,
    larger_ring: Option<LargerRing>,
    seconds_without: f64,
    seconds: f64,
) -> bool {
    let overlaps = matches!(cause, Cause::Stage | Cause::Source | Cause::Turns);
    larger_ring.is_some_and(|ring| {
        overlaps && seconds - ring.seconds >= RING_SHARE * (seconds - seconds_without)
    })
}

/// The times of one stage, per thread unless stated otherwise, without impossible values.
struct Times {
    threads: f64,
    /// From the first to the last moment of its threads.
    whole_seconds: f64,
    busy_seconds: f64,
    /// Time in which at least one thread is busy.
    occupied_seconds: f64,
    starved_seconds: f64,
    /// Part of the busy time in which it waited for a neighbour while the program at its end
    /// worked.
    hidden_seconds: f64,
    /// Part of the busy time spent waiting for the source (first stage) or a rate limit (last).
    outside_seconds: f64,
    /// Time that it would take with a core for each thread.
    alone_seconds: f64,
    /// All threads together.
    processor_seconds: f64,
    core_wait_seconds: f64,
}

impl Times {
    fn new(run: &RunReport, index: usize) -> Times {
        let report = &run.stages[index];
        let there = report.threads.max(1);
        let threads = match run.compressed_pieces {
            // Threads that had no piece were of no use.
            Some(pieces) if report.kind == StageKind::Compress => there.min(pieces.max(1)),
            _ => there,
        };
        // The wait of the others is no time of the stage.
        let of_use = there as f64 / threads as f64;
        let threads = threads as f64;
        let [working, starved, blocked] =
            [report.working_seconds, report.starved_seconds, report.blocked_seconds].map(sane);
        let whole = working + starved + blocked;
        let (working, blocked) = (working * of_use, blocked * of_use);
        let starved = (whole - working - blocked).max(0.0);
        let is_last = index + 1 == run.stages.len();
        let mut outside_seconds = 0.0;
        if index == 0 {
            outside_seconds += starved;
        }
        let limited = run.rate_limit_bytes_per_second.is_some();
        if is_last && limited && report.kind == RATE_LIMITED_STAGE {
            outside_seconds += blocked;
        }
        let synchronise = if is_last { sane(run.synchronise_seconds) } else { 0.0 };
        // Work of the program at its end counts as work of that end, even while no stage waited for
        // it.
        let hidden_seconds = hidden_seconds(run, index, is_last).min(starved.max(blocked));
        let starved = if is_last { (starved - hidden_seconds).max(0.0) } else { starved };
        if index == 0 {
            outside_seconds += hidden_seconds.min(blocked);
        }
        let at_target = if is_last && index > 0 { hidden_seconds } else { 0.0 };
        let busy_seconds = working + outside_seconds + synchronise + at_target;
        // Waiting for a core after being woken is no part of its work.
        let processor_seconds = sane(report.processor_seconds);
        let off_core_seconds = (busy_seconds * threads - processor_seconds).max(0.0);
        let core_wait_seconds = sane(report.core_wait_seconds).min(off_core_seconds);
        Times {
            threads,
            whole_seconds: working + starved + at_target + blocked + synchronise,
            hidden_seconds,
            busy_seconds,
            occupied_seconds: sane(report.occupied_seconds).max(busy_seconds),
            starved_seconds: starved,
            outside_seconds,
            alone_seconds: busy_seconds - core_wait_seconds / threads,
            processor_seconds,
            core_wait_seconds,
        }
    }

    fn bytes_per_second(&self, bytes: u64, cores: usize) -> f64 {
        let are_many = self.threads > cores.max(1) as f64;
        let seconds = if are_many { self.occupied_seconds } else { self.busy_seconds };
        if seconds > 1e-9 { bytes as f64 / seconds } else { 0.0 }
    }

    /// Of being busy, all threads together.
    fn thread_seconds(&self) -> f64 {
        self.busy_seconds * self.threads
    }

    /// The least time that it would have taken undisturbed: its work spread over its threads, and
    /// at least the time in which one of them waited for its end. From a device with requests in
    /// flight all the time, more requests would not have got more.
    fn least_seconds(&self) -> f64 {
        let wanted = share(self.processor_seconds + self.core_wait_seconds, self.thread_seconds());
        self.alone_seconds.max(self.occupied_seconds * (1.0 - wanted))
    }
}

/// How long the program at the end of a stage worked while the stage waited for the ring.
fn hidden_seconds(run: &RunReport, index: usize, is_last: bool) -> f64 {
    let Some(steps) = &run.steps else { return 0.0 };
    let (steps, bytes) = match (index, is_last) {
        (0, false) => (&steps.read, run.source_bytes),
        (_, true) => (&steps.write, run.target_bytes),
        _ => return 0.0,
    };
    let hidden = steps.iter().fold(0.0, |sum, step| sum + sane(step.hidden_seconds));
    // Only the first blocks of a long run are kept.
    let kept_bytes = steps.len() as f64 * run.steps.as_ref().map_or(0, |it| it.block_bytes) as f64;
    sane(hidden * (bytes as f64 / kept_bytes.max(1.0)).max(1.0))
}

/// Shares of the time of all cores.
#[derive(Clone, Copy)]
struct CoreUse {
    own_share: f64,
    others_share: f64,
}

impl CoreUse {
    /// Whether other programs use more of them.
    fn is_foreign(self) -> bool {
        self.others_share > self.own_share
    }

    /// Whether stages with these times had no core when they needed one.
    fn is_short_for(self, times: &[&Times]) -> bool {
        let sum = |part: fn(&Times) -> f64| times.iter().map(|stage| part(stage)).sum::<f64>();
        let busy = sum(Times::thread_seconds);
        let waited = sum(|stage| stage.core_wait_seconds);
        let had = sum(|stage| stage.processor_seconds);
        share(waited, busy) >= CORE_WAIT_SHARE
            && share(waited + had, busy) >= CORE_WANTED_SHARE
            && self.own_share + self.others_share >= CORE_WAIT_PROCESSOR_SHARE
    }
}

fn find(run: &RunReport, times: &[Times], cores: CoreUse) -> (Cause, Option<usize>) {
    let seconds = overlapping_seconds(run);
    let Some(busiest) = (0..times.len()).max_by(|a, b| order(times, *a, *b)) else {
        return (Cause::Unknown, None);
    };
    if seconds < SHORTEST_SECONDS || seconds < LEAST_SHARE * sane(run.seconds) {
        return (Cause::Unknown, Some(busiest));
    }
    // Flushing at the end uses no core: if it is the longer part, the cores before it are not the
    // limit of the run.
    let is_mostly_flushing = share(sane(run.synchronise_seconds), seconds) >= 0.5;
    if cores.own_share >= PROCESSOR_SHARE && !is_mostly_flushing {
        return processor_limit(times, cores.own_share, seconds);
    }
    let limited = rate_limit_seconds(run);
    if times.len() > 1
        && share(limited, seconds) >= RATE_SHARE
        && limited >= times[busiest].busy_seconds
    {
        return (Cause::RateLimit, Some(times.len() - 1));
    }
    let is_busy = share(times[busiest].busy_seconds, seconds) >= BUSY_SHARE;
    let few = if is_busy { None } else { few_of_many(times, seconds) };
    let held_back = if is_busy { Some(busiest) } else { few };
    let asked: Vec<&Times> = match held_back {
        Some(index) => vec![&times[index]],
        None => times.iter().collect(),
    };
    match held_back {
        _ if cores.is_short_for(&asked)
            && cores.is_foreign()
            && let Some(read) = kept_the_disk_busy(run, times, seconds) =>
        {
            let is_busy = share(times[read].busy_seconds, seconds) >= BUSY_SHARE;
            (if is_busy { Cause::Stage } else { Cause::FewThreads }, Some(read))
        }
        _ if cores.is_short_for(&asked) && cores.is_foreign() => {
            (Cause::Processor, held_back.or(Some(busiest)))
        }
        _ if cores.is_short_for(&asked) => processor_limit(times, cores.own_share, seconds),
        None => match waits_for_the_disk(run, times, seconds) {
            Some(read) => (Cause::FewThreads, Some(read)),
            None if limited >= BUSY_SHARE * seconds => (Cause::RateLimit, Some(times.len() - 1)),
            None => (Cause::Turns, Some(busiest)),
        },
        Some(index) if !is_busy => (Cause::FewThreads, Some(index)),
        Some(index) => (stage_or_outside(run, times, index), Some(index)),
    }
}

/// Time that the target's bytes take at the rate limit, minus the bytes that may go at once.
fn rate_limit_seconds(run: &RunReport) -> f64 {
    let is_limited = run.stages.last().is_some_and(|last| last.kind == RATE_LIMITED_STAGE);
    match run.rate_limit_bytes_per_second {
        Some(rate) if is_limited && rate > 0 => {
            let seconds = run.target_bytes as f64 / rate as f64;
            (sane(seconds) - BURST.as_secs_f64()).max(0.0)
        }
        _ => 0.0,
    }
}

/// The reading stage, if the disk of the source had requests for the share of the run that makes a
/// stage the limit, and all later stages starved.
fn kept_the_disk_busy(run: &RunReport, times: &[Times], seconds: f64) -> Option<usize> {
    let busy = share(sane(run.source_disk_seconds?), seconds);
    let read = run.stages.iter().position(|stage| stage.kind == StageKind::Read)?;
    let starves = |stage: &Times| share(stage.starved_seconds, stage.whole_seconds) >= 0.5;
    let is_waited_for = times[read + 1..].iter().all(starves);
    (busy >= BUSY_SHARE && is_waited_for).then_some(read)
}

/// The reading stage, if the disk of the source had requests for most of the run, for as long as
/// the readers waited for it, and clearly longer than any other stage had work: the other stages'
/// work overlaps with it or is less.
fn waits_for_the_disk(run: &RunReport, times: &[Times], seconds: f64) -> Option<usize> {
    /// A stage that works nearly as long may take turns with it.
    const CLEARLY: f64 = 1.2;
    let read = run.stages.iter().position(|stage| stage.kind == StageKind::Read)?;
    let disk = sane(run.source_disk_own_seconds.or(run.source_disk_seconds)?);
    let disk = disk.min(times[read].occupied_seconds);
    let others = times.iter().enumerate().filter(|(index, _)| *index != read);
    let most = others.map(|(_, stage)| stage.alone_seconds).fold(0.0, f64::max);
    (share(disk, seconds) >= BUSY_SHARE && disk >= CLEARLY * most).then_some(read)
}

/// Whether a busy stage works, or waits for something that is not a stage.
fn stage_or_outside(run: &RunReport, times: &[Times], index: usize) -> Cause {
    let stage = &times[index];
    let mostly_outside = stage.outside_seconds > stage.busy_seconds / 2.0;
    let is_last = index + 1 == run.stages.len() && run.stages.len() > 1;
    match (mostly_outside, is_last) {
        (true, true) => Cause::RateLimit,
        (true, false) => Cause::Source,
        (false, _) => Cause::Stage,
    }
}

/// The stage that nearly always has a busy thread, while all later stages starve. Of several, the
/// one with the longest time: what trickles out of it keeps later threads busy in turn, too.
fn few_of_many(times: &[Times], seconds: f64) -> Option<usize> {
    let starves = |stage: &Times| share(stage.starved_seconds, stage.whole_seconds) >= 0.5;
    let is_one = |index: &usize| {
        times[*index].threads > 1.0
            && share(times[*index].occupied_seconds, seconds) >= BUSY_SHARE
            && times[index + 1..].iter().all(starves)
    };
    let occupied = |index: &usize| times[*index].occupied_seconds;
    (0..times.len())
        .filter(is_one)
        .max_by(|a, b| occupied(a).total_cmp(&occupied(b)).then(b.cmp(a)))
}

/// The cores are used up: by one stage nearly alone, or by several. A stage with many threads, of
/// which few get a core at a time, is busy for little of the run and yet takes all cores; then the
/// processor is reported as the limit.
fn processor_limit(times: &[Times], own_share: f64, seconds: f64) -> (Cause, Option<usize>) {
    let used: f64 = times.iter().map(|stage| stage.processor_seconds).sum();
    let by_use =
        |a: &usize, b: &usize| times[*a].processor_seconds.total_cmp(&times[*b].processor_seconds);
    let Some(most) = (0..times.len()).max_by(by_use) else { return (Cause::Unknown, None) };
    let nearly_alone = share(times[most].processor_seconds, used) >= PROCESSOR_SHARE;
    let is_busy = share(times[most].busy_seconds, seconds) >= BUSY_SHARE;
    let is_stage = nearly_alone && is_busy && own_share >= PROCESSOR_SHARE;
    (if is_stage { Cause::Stage } else { Cause::Processor }, Some(most))
}

/// Whether the disk of the source is the end of this stage.
fn is_of_the_source(kind: StageKind) -> bool {
    matches!(kind, StageKind::Scan | StageKind::Read)
}

/// What is removed to see how long the rest of a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Free {
    /// All work of a stage, its end included.
    Stage(usize),
    /// The rate limit that holds back a stage, but not its end.
    RateLimit(usize),
    /// Other programs on the cores.
    Cores,
}

/// The least time that the programs and drives at the ends need; `None` if one of them did not show
/// its pace.
fn ends_seconds(run: &RunReport, stream: Option<&Stream<'_>>, free: Free) -> Option<f64> {
    let last = run.stages.len().saturating_sub(1);
    let source = || stream.map_or(Some(0.0), |stream| stream.seconds_without(last));
    let target = || match stream {
        Some(stream) => stream.seconds_without(0),
        None => target_floor_seconds(run),
    };
    match free {
        Free::Stage(index) => match stream {
            Some(stream) => stream.seconds_without(index),
            None if index < last => target_floor_seconds(run),
            None => Some(0.0),
        },
        // The target took what the limit let through.
        Free::RateLimit(_) if is_program_or_drive(run.target) => None,
        Free::RateLimit(_) => source(),
        Free::Cores => Some(source()?.max(target()?)),
    }
}

/// The least time that the stages, the disk of the source and the rate limit need.
fn left_seconds(run: &RunReport, times: &[Times], free: Free, aside_seconds: f64) -> f64 {
    let seconds = (sane(run.seconds) - aside_seconds).max(0.0);
    let disk = match free {
        Free::Stage(index) if is_of_the_source(run.stages[index].kind) => 0.0,
        _ => sane(run.source_disk_own_seconds.unwrap_or(0.0)),
    };
    let limited = if matches!(free, Free::RateLimit(_)) { 0.0 } else { rate_limit_seconds(run) };
    let stages = seconds_without(run, times, free, seconds);
    (aside_seconds + stages.max(disk).min(seconds)).max(limited)
}

/// Without the part that is `free`.
fn seconds_without(run: &RunReport, times: &[Times], free: Free, seconds: f64) -> f64 {
    let longest = times.iter().map(|stage| stage.whole_seconds).fold(0.0, f64::max);
    let serial_seconds = (seconds - longest).max(0.0);
    let others = || times.iter().enumerate().filter(|(index, _)| Free::Stage(*index) != free);
    let least = |(index, stage): (usize, &Times)| match free {
        Free::RateLimit(limited) if index == limited => {
            (stage.busy_seconds - stage.outside_seconds).max(0.0)
        }
        _ => stage.least_seconds(),
    };
    let busiest = others().map(least).fold(0.0, f64::max);
    let processor: f64 = others().map(|(_, stage)| stage.processor_seconds).sum();
    let shortest = busiest.max(processor / run.cores.max(1) as f64);
    (serial_seconds + shortest).min(seconds)
}

fn saved_seconds(times: &[Times], seconds: f64) -> f64 {
    let one_after_the_other: f64 = times.iter().map(|stage| stage.alone_seconds).sum();
    (one_after_the_other - seconds).max(0.0)
}

/// By busy time; if equal, the earlier stage is the limit, since the later ones wait for it.
fn order(times: &[Times], a: usize, b: usize) -> std::cmp::Ordering {
    times[a].busy_seconds.total_cmp(&times[b].busy_seconds).then(b.cmp(&a))
}

/// Wall time without what no stage can be blamed for and none can save: preparing and winding a
/// tape, and changes of volume.
fn overlapping_seconds(run: &RunReport) -> f64 {
    let apart = [run.ready_seconds, run.winding_seconds, run.change_seconds];
    (sane(run.seconds) - apart.into_iter().map(sane).sum::<f64>()).max(0.0)
}

fn sane(seconds: f64) -> f64 {
    // No run takes a year; the limit keeps sums finite.
    if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
