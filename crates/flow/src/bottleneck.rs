//! Which stage held a run back, and what it would have been without it. Numbers only; the words are
//! made elsewhere.
//!
//! A stage is *busy* while it works, and also while it waits for something that is no stage: the
//! first one for the source, the writer for the target or for the user's own rate limit. All other
//! waiting is the fault of a neighbour, or of a thread of the same stage whose turn is first. In a
//! pipeline whose stages overlap the run takes as long as its busiest stage, which is why that one
//! is the limit, and why the run without it would take as long as the busiest of the others.
//!
//! Two cases need more than that. Stages that share too few cores are all busy at once, since
//! waiting for a core looks like work from inside: there the processor is the limit. And when no
//! stage is busy for most of the run they take turns, as they do with a ring that is too small.

use crate::run::{RunReport, StageKind};

/// What held the run back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing can be said: no stages, or a run of less than [`SHORTEST_SECONDS`].
    Unknown,
    /// The job of the bottleneck stage.
    Stage,
    /// A few threads of the bottleneck stage, which has many: there was not more to do at a time.
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

/// The stage that is held to a rate limit: with one, as the last stage, it waits for it when it is
/// blocked. Without one, and in any other last stage, no waiting means that.
pub const RATE_LIMITED_STAGE: StageKind = StageKind::Write;
/// A run that is shorter says nothing: starting threads takes a part of it.
pub const SHORTEST_SECONDS: f64 = 0.02;
/// A stage that is busy for less of the run than this is not its limit alone.
pub const BUSY_SHARE: f64 = 0.6;
/// Share of the time of all cores from which on they count as used up.
pub const PROCESSOR_SHARE: f64 = 0.85;
/// A stage that had no core for this share of its busy time, and had or wanted one for
/// [`CORE_WANTED_SHARE`] of it, is limited by the processor, if the cores are used to
/// [`CORE_WAIT_PROCESSOR_SHARE`] at least. One that is woken often, for a slow reader for example,
/// waits for a core each time and yet for the reader most of the time.
pub const CORE_WAIT_SHARE: f64 = 0.25;
/// See [`CORE_WAIT_SHARE`].
pub const CORE_WANTED_SHARE: f64 = 0.75;
/// See [`CORE_WAIT_SHARE`].
pub const CORE_WAIT_PROCESSOR_SHARE: f64 = 0.6;

/// One stage of an analysed run. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct StageShare {
    /// Its job.
    pub kind: StageKind,
    /// Its threads.
    pub threads: u64,
    /// Seconds of being busy, per thread.
    pub busy_seconds: f64,
    /// The same as a share of the run.
    pub busy_share: f64,
    /// Share of the run in which at least one of its threads was busy.
    pub occupied_share: f64,
    /// Bytes per second of being busy, all threads together.
    pub bytes_per_second: f64,
    /// Share of its busy time in which it had a core.
    pub on_core_share: f64,
    /// Its share of the processor time that all stages used.
    pub processor_share: f64,
}

/// What there is to say about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// What held it back.
    pub cause: Cause,
    /// The stages.
    pub stages: Vec<StageShare>,
    /// Index of the stage to blame.
    pub bottleneck: Option<usize>,
    /// Index of the stage that would be to blame without it.
    pub next: Option<usize>,
    /// Wall time of the run, without changes of volume.
    pub seconds: f64,
    /// What it would have taken if the bottleneck cost nothing, at least.
    pub seconds_without: f64,
    /// What the stages would have taken more, one after the other.
    pub saved_seconds: f64,
    /// Share of the time of all cores that the stages used.
    pub processor_share: f64,
    /// Share of the time of all cores that other programs used; zero where that is not known.
    pub others_share: f64,
    /// Cores that the run could use.
    pub cores: usize,
}

/// Looks for the limit of a run.
pub fn analyse(run: &RunReport) -> Analysis {
    let seconds = overlapping_seconds(run);
    let times: Vec<Times> = (0..run.stages.len()).map(|index| Times::new(run, index)).collect();
    let processor_seconds: f64 = times.iter().map(|stage| stage.processor_seconds).sum();
    let overlapped_seconds = (seconds - sane(run.synchronise_seconds)).max(0.0);
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
            bytes_per_second: if stage.busy_seconds > 1e-9 {
                report.bytes as f64 / stage.busy_seconds
            } else {
                0.0
            },
            on_core_share: share(stage.processor_seconds, stage.busy_seconds * stage.threads),
            processor_share: share(stage.processor_seconds, processor_seconds),
        })
        .collect();
    let all_cores_seconds = seconds * run.cores.max(1) as f64;
    let others_share = share(sane(run.others_seconds.unwrap_or(0.0)), all_cores_seconds);
    let (cause, bottleneck) = find(run, &times, [processor_share, others_share]);
    let others = |index: &usize| Some(*index) != bottleneck;
    let next = (0..times.len()).filter(others).max_by(|a, b| order(&times, *a, *b));
    Analysis {
        cause,
        stages,
        bottleneck,
        next,
        seconds,
        seconds_without: seconds_without(run, &times, bottleneck, seconds),
        saved_seconds: saved_seconds(&times, seconds),
        processor_share,
        others_share,
        cores: run.cores,
    }
}

/// The times of one stage, per thread unless it says otherwise, cleaned of what cannot be.
struct Times {
    threads: f64,
    /// From the first to the last moment of its threads.
    whole_seconds: f64,
    busy_seconds: f64,
    /// At least one thread is busy.
    occupied_seconds: f64,
    starved_seconds: f64,
    /// Part of it that is spent waiting for the source (first stage) or a rate limit (last).
    outside_seconds: f64,
    /// What it would take with a core of its own for each thread.
    alone_seconds: f64,
    /// All threads together.
    processor_seconds: f64,
    core_wait_seconds: f64,
}

impl Times {
    fn new(run: &RunReport, index: usize) -> Times {
        let report = &run.stages[index];
        let threads = report.threads.max(1) as f64;
        let working = sane(report.working_seconds);
        let (starved, blocked) = (sane(report.starved_seconds), sane(report.blocked_seconds));
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
        let busy_seconds = working + outside_seconds + synchronise;
        let core_wait_seconds = sane(report.core_wait_seconds).min(busy_seconds * threads);
        Times {
            threads,
            whole_seconds: working + starved + blocked + synchronise,
            busy_seconds,
            occupied_seconds: sane(report.occupied_seconds).max(busy_seconds),
            starved_seconds: starved,
            outside_seconds,
            alone_seconds: busy_seconds - core_wait_seconds / threads,
            processor_seconds: sane(report.processor_seconds),
            core_wait_seconds,
        }
    }
}

fn find(
    run: &RunReport,
    times: &[Times],
    [own_share, others_share]: [f64; 2],
) -> (Cause, Option<usize>) {
    let seconds = overlapping_seconds(run);
    let Some(busiest) = (0..times.len()).max_by(|a, b| order(times, *a, *b)) else {
        return (Cause::Unknown, None);
    };
    if seconds < SHORTEST_SECONDS {
        return (Cause::Unknown, Some(busiest));
    }
    let stage = &times[busiest];
    let thread_seconds = stage.busy_seconds * stage.threads;
    let core_wait_share = share(stage.core_wait_seconds, thread_seconds);
    let core_wanted_seconds = stage.core_wait_seconds + stage.processor_seconds;
    let crowded = core_wait_share >= CORE_WAIT_SHARE
        && share(core_wanted_seconds, thread_seconds) >= CORE_WANTED_SHARE
        && own_share + others_share >= CORE_WAIT_PROCESSOR_SHARE;
    if own_share >= PROCESSOR_SHARE || crowded {
        return processor_limit(times, own_share);
    }
    if share(stage.busy_seconds, seconds) < BUSY_SHARE {
        return match few_of_many(times, seconds) {
            Some(index) => (Cause::FewThreads, Some(index)),
            None => (Cause::Turns, Some(busiest)),
        };
    }
    let mostly_outside = stage.outside_seconds > stage.busy_seconds / 2.0;
    let is_last = busiest + 1 == run.stages.len() && run.stages.len() > 1;
    let cause = if mostly_outside && is_last {
        Cause::RateLimit
    } else if mostly_outside {
        Cause::Source
    } else {
        Cause::Stage
    };
    (cause, Some(busiest))
}

/// The stage of which some thread is busy nearly always, while everything behind it starves.
fn few_of_many(times: &[Times], seconds: f64) -> Option<usize> {
    let starves = |stage: &Times| share(stage.starved_seconds, stage.whole_seconds) >= 0.5;
    (0..times.len()).rev().find(|&index| {
        times[index].threads > 1.0
            && share(times[index].occupied_seconds, seconds) >= BUSY_SHARE
            && times[index + 1..].iter().all(starves)
    })
}

/// The cores are used up: by one stage nearly alone, or by several.
fn processor_limit(times: &[Times], own_share: f64) -> (Cause, Option<usize>) {
    let used: f64 = times.iter().map(|stage| stage.processor_seconds).sum();
    let by_use =
        |a: &usize, b: &usize| times[*a].processor_seconds.total_cmp(&times[*b].processor_seconds);
    let Some(most) = (0..times.len()).max_by(by_use) else { return (Cause::Unknown, None) };
    let nearly_alone = share(times[most].processor_seconds, used) >= PROCESSOR_SHARE;
    let cause =
        if nearly_alone && own_share >= PROCESSOR_SHARE { Cause::Stage } else { Cause::Processor };
    (cause, Some(most))
}

fn seconds_without(
    run: &RunReport,
    times: &[Times],
    bottleneck: Option<usize>,
    seconds: f64,
) -> f64 {
    let Some(bottleneck) = bottleneck else { return seconds };
    let longest = times.iter().map(|stage| stage.whole_seconds).fold(0.0, f64::max);
    let serial_seconds = (seconds - longest).max(0.0);
    let others = || times.iter().enumerate().filter(|(index, _)| *index != bottleneck);
    let busiest = others().map(|(_, stage)| stage.alone_seconds).fold(0.0, f64::max);
    let processor: f64 = others().map(|(_, stage)| stage.processor_seconds).sum();
    let shortest = busiest.max(processor / run.cores.max(1) as f64);
    (serial_seconds + shortest).min(seconds)
}

fn saved_seconds(times: &[Times], seconds: f64) -> f64 {
    let one_after_the_other: f64 = times.iter().map(|stage| stage.alone_seconds).sum();
    (one_after_the_other - seconds).max(0.0)
}

/// By busy time; of equals the later stage is the lower, since what is read first is waited for
/// first.
fn order(times: &[Times], a: usize, b: usize) -> std::cmp::Ordering {
    times[a].busy_seconds.total_cmp(&times[b].busy_seconds).then(b.cmp(&a))
}

/// Wall time without the changes of volume, which no stage can be blamed for and none can save.
fn overlapping_seconds(run: &RunReport) -> f64 {
    (sane(run.seconds) - sane(run.change_seconds)).max(0.0)
}

fn sane(seconds: f64) -> f64 {
    // A year and more is no run of ours; the limit keeps sums finite.
    if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StageReport;
    use proptest::prelude::*;

    fn stage(kind: StageKind, states: [f64; 3], processor_seconds: f64) -> StageReport {
        let bytes = 1_000_000_000;
        StageReport { processor_seconds, bytes, ..StageReport::of_one_thread(kind, states) }
    }

    fn run(stages: &[StageReport]) -> RunReport {
        RunReport { stages: stages.to_vec(), seconds: 10.0, cores: 2, ..RunReport::default() }
    }

    fn check(stages: &[StageReport], expected: (Cause, StageKind)) -> Analysis {
        check_run(&run(stages), expected)
    }

    #[track_caller]
    fn check_run(run: &RunReport, expected: (Cause, StageKind)) -> Analysis {
        let analysis = analyse(run);
        let stage = analysis.bottleneck.map(|index| analysis.stages[index].kind);
        assert_eq!((analysis.cause, stage), (expected.0, Some(expected.1)), "{analysis:?}");
        analysis
    }

    #[test]
    fn the_stage_that_works_while_the_others_wait_is_the_limit() {
        let analysis = check(
            &[
                stage(StageKind::Read, [2.0, 0.0, 8.0], 1.0),
                stage(StageKind::Compress, [9.8, 0.2, 0.0], 9.5),
                stage(StageKind::Write, [4.0, 6.0, 0.0], 1.0),
            ],
            (Cause::Stage, StageKind::Compress),
        );
        assert_eq!(analysis.next, Some(2));
        assert!((analysis.seconds_without - 4.0).abs() < 0.3);
        assert!((analysis.saved_seconds - 5.8).abs() < 1e-6);
    }

    #[test]
    fn a_first_stage_that_starves_waits_for_the_source() {
        let read = stage(StageKind::Read, [0.5, 9.5, 0.0], 0.5);
        check(
            &[read, stage(StageKind::Write, [0.4, 9.6, 0.0], 0.4)],
            (Cause::Source, StageKind::Read),
        );
    }

    #[test]
    fn a_writer_that_is_blocked_is_held_to_the_limit_of_the_user() {
        let write = stage(StageKind::Write, [0.4, 0.1, 9.5], 0.4);
        let stages = [stage(StageKind::Read, [0.5, 0.0, 9.5], 0.5), write];
        let limited = RunReport { rate_limit_bytes_per_second: Some(100_000_000), ..run(&stages) };
        check_run(&limited, (Cause::RateLimit, StageKind::Write));
        let analysis = analyse(&run(&stages));
        assert_ne!(analysis.cause, Cause::RateLimit, "the user set none");
    }

    #[test]
    fn no_other_last_stage_is_held_to_a_rate() {
        // Three of four threads wait for their turn behind the fourth, which has a large file.
        for kind in [
            StageKind::Compare,
            StageKind::Hash,
            StageKind::Check,
            StageKind::Parse,
            StageKind::Decompress,
            StageKind::Create,
        ] {
            let mut last = stage(kind, [2.5, 0.1, 7.4], 2.4);
            (last.threads, last.occupied_seconds) = (4, 9.8);
            let stages = [stage(StageKind::Read, [1.0, 0.0, 9.0], 0.5), last];
            check(&stages, (Cause::FewThreads, kind));
            let limited = RunReport { rate_limit_bytes_per_second: Some(1), ..run(&stages) };
            check_run(&limited, (Cause::FewThreads, kind));
            let alone =
                [stage(StageKind::Read, [6.5, 0.0, 3.5], 0.5), stage(kind, [1.0, 0.1, 8.9], 0.9)];
            check(&alone, (Cause::Stage, StageKind::Read));
        }
    }

    #[test]
    fn stages_that_share_all_cores_are_limited_by_the_processor() {
        let analysis = check(
            &[
                stage(StageKind::Read, [9.0, 0.0, 1.0], 7.4),
                stage(StageKind::Compress, [9.9, 0.1, 0.0], 9.9),
                stage(StageKind::Write, [3.0, 7.0, 0.0], 2.0),
            ],
            (Cause::Processor, StageKind::Compress),
        );
        assert!((analysis.processor_share - 0.965).abs() < 1e-6);
    }

    #[test]
    fn one_stage_that_uses_all_cores_is_the_limit_itself() {
        let mut compress = stage(StageKind::Compress, [9.9, 0.1, 0.0], 19.0);
        compress.threads = 2;
        let read = stage(StageKind::Read, [1.0, 0.0, 9.0], 0.5);
        check(
            &[read, compress, stage(StageKind::Write, [1.0, 9.0, 0.0], 0.3)],
            (Cause::Stage, StageKind::Compress),
        );
    }

    #[test]
    fn synchronising_counts_for_the_last_stage() {
        let stages = [
            stage(StageKind::Read, [3.0, 0.0, 1.0], 1.0),
            stage(StageKind::Write, [2.0, 2.0, 0.0], 1.0),
        ];
        let run = RunReport { synchronise_seconds: 6.0, ..run(&stages) };
        let analysis = analyse(&run);
        assert_eq!((analysis.cause, analysis.bottleneck), (Cause::Stage, Some(1)));
        assert!((analysis.seconds_without - 3.0).abs() < 1e-6, "{analysis:?}");
    }

    #[test]
    fn stages_that_take_turns_are_told() {
        let read = stage(StageKind::Read, [5.0, 0.0, 5.0], 1.0);
        check(
            &[read, stage(StageKind::Write, [5.0, 5.0, 0.0], 1.0)],
            (Cause::Turns, StageKind::Read),
        );
    }

    #[test]
    fn one_busy_thread_of_many_is_found() {
        let mut read = stage(StageKind::Read, [0.5, 9.5, 0.0], 0.3);
        (read.threads, read.occupied_seconds) = (20, 9.8);
        let scan = stage(StageKind::Scan, [0.1, 0.0, 0.0], 0.1);
        let analysis = check(
            &[scan, read, stage(StageKind::Write, [0.3, 9.7, 0.0], 0.2)],
            (Cause::FewThreads, StageKind::Read),
        );
        assert!(analysis.seconds_without < 1.0, "{analysis:?}");
    }

    #[test]
    fn a_stage_that_waits_for_a_core_is_limited_by_the_processor() {
        let mut read = stage(StageKind::Read, [9.5, 0.0, 0.5], 4.0);
        read.core_wait_seconds = 5.0;
        let stages = [read, stage(StageKind::Write, [3.0, 7.0, 0.0], 2.0)];
        let mut run = RunReport { others_seconds: Some(12.0), ..run(&stages) };
        let analysis = analyse(&run);
        assert_eq!((analysis.cause, analysis.bottleneck), (Cause::Processor, Some(0)));
        assert!((analysis.others_share - 0.6).abs() < 1e-6);
        run.others_seconds = Some(0.0);
        assert_eq!(analyse(&run).cause, Cause::Stage, "it waits, but the cores are free");
    }

    fn any_seconds() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            0.0..1e-9f64,
            0.0..100.0f64,
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(-1.0),
            Just(f64::MAX)
        ]
    }

    prop_compose! {
        fn any_stage()(
            threads in 0u64..64, working_seconds in any_seconds(),
            starved_seconds in any_seconds(), blocked_seconds in any_seconds(),
            processor_seconds in any_seconds(), core_wait_seconds in any_seconds(),
            occupied_seconds in any_seconds(), bytes in any::<u64>(),
        ) -> StageReport {
            StageReport {
                kind: StageKind::Write, threads, working_seconds, starved_seconds, blocked_seconds,
                processor_seconds, core_wait_seconds, occupied_seconds, bytes,
                apart_seconds: 0.0,
            }
        }
    }

    proptest! {
        #[test]
        fn every_input_has_a_sensible_answer(
            stages in proptest::collection::vec(any_stage(), 0..6),
            seconds in any_seconds(), synchronise_seconds in any_seconds(),
            change_seconds in any_seconds(), cores in 0usize..130,
            others_seconds in proptest::option::of(any_seconds()),
            rate_limit_bytes_per_second in proptest::option::of(any::<u64>()),
        ) {
            let count = stages.len();
            let analysis = analyse(&RunReport {
                stages,
                seconds,
                synchronise_seconds,
                change_seconds,
                rate_limit_bytes_per_second,
                cores,
                others_seconds,
                ..RunReport::default()
            });
            prop_assert_eq!(analysis.bottleneck.is_some(), count > 0);
            prop_assert_eq!(analysis.next.is_some(), count > 1);
            prop_assert!(analysis.next.is_none() || analysis.next != analysis.bottleneck);
            prop_assert!(analysis.seconds_without.is_finite());
            prop_assert!((0.0..=analysis.seconds).contains(&analysis.seconds_without));
            prop_assert!(analysis.saved_seconds.is_finite() && analysis.saved_seconds >= 0.0);
            prop_assert!((0.0..=1.0).contains(&analysis.processor_share));
            for stage in &analysis.stages {
                for share in [stage.busy_share, stage.on_core_share, stage.processor_share] {
                    prop_assert!((0.0..=1.0).contains(&share));
                }
                prop_assert!(stage.busy_seconds.is_finite() && stage.bytes_per_second.is_finite());
            }
        }
    }
}
