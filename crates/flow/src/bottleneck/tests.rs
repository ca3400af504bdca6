//! What is concluded from stages as they are written down here, and as runs have recorded them.

use super::*;
use crate::run::{Endpoint, StageReport};
use crate::steps::{Step, StreamSteps};
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
    check(&[read, stage(StageKind::Write, [0.4, 9.6, 0.0], 0.4)], (Cause::Source, StageKind::Read));
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
    check(&[read, stage(StageKind::Write, [5.0, 5.0, 0.0], 1.0)], (Cause::Turns, StageKind::Read));
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

/// Stages as runs have recorded them: name, threads, then seconds per thread of working, starved
/// and blocked, occupied seconds, and processor and core wait of all threads together.
type Recorded = (StageKind, u64, [f64; 3], f64, [f64; 2]);

fn recorded(seconds: f64, others_seconds: f64, stages: &[Recorded]) -> RunReport {
    let stages = stages.iter().map(|&(kind, threads, states, occupied_seconds, cores)| {
        let [processor_seconds, core_wait_seconds] = cores;
        let one = StageReport::of_one_thread(kind, states);
        let bytes = 419_445_248;
        StageReport {
            threads,
            occupied_seconds,
            processor_seconds,
            core_wait_seconds,
            bytes,
            ..one
        }
    });
    RunReport {
        stages: stages.collect(),
        seconds,
        cores: 2,
        others_seconds: Some(others_seconds),
        ..RunReport::default()
    }
}

/// One file of 400 MiB on a disk of 150 MB/s, its archive into a pipe. Two busy loops beside it
/// change nothing in what it waits for.
#[test]
fn a_disk_stays_the_limit_whoever_has_the_cores() {
    let two_loops = recorded(
        2.812,
        5.125,
        &[
            (StageKind::Scan, 1, [0.001, 0.0, 0.0], 0.001, [0.0, 0.001]),
            (StageKind::Read, 32, [0.088, 0.002, 0.0], 2.802, [0.044, 0.206]),
            (StageKind::Hash, 2, [0.197, 2.608, 0.0], 0.393, [0.245, 0.483]),
            (StageKind::Write, 1, [0.171, 2.635, 0.0], 0.171, [0.122, 0.092]),
        ],
    );
    let more_loops = recorded(
        2.891,
        5.39,
        &[
            (StageKind::Scan, 1, [0.057, 0.0, 0.0], 0.057, [0.0, 0.001]),
            (StageKind::Read, 32, [0.089, 0.023, 0.0], 2.844, [0.038, 0.668]),
            (StageKind::Hash, 2, [0.193, 2.487, 0.195], 0.38, [0.225, 1.402]),
            (StageKind::Write, 1, [0.574, 2.301, 0.0], 0.574, [0.111, 0.599]),
        ],
    );
    let compressed = recorded(
        2.884,
        3.31,
        &[
            (StageKind::Scan, 1, [0.018, 0.0, 0.0], 0.018, [0.0, 0.002]),
            (StageKind::Read, 32, [0.088, 0.011, 0.0], 2.805, [0.018, 0.195]),
            (StageKind::Hash, 2, [0.221, 2.597, 0.003], 0.435, [0.232, 0.615]),
            (StageKind::Compress, 2, [0.932, 1.933, 0.009], 1.68, [1.455, 0.578]),
            (StageKind::Write, 1, [0.176, 2.703, 0.0], 0.176, [0.084, 0.137]),
        ],
    );
    for run in [&two_loops, &more_loops, &compressed] {
        let idle = RunReport { others_seconds: Some(0.0), ..run.clone() };
        for run in [run, &idle] {
            let analysis = check_run(run, (Cause::FewThreads, StageKind::Read));
            assert!(analysis.seconds_without < 1.1, "{analysis:?}");
        }
    }
}

/// 40 MB from a disk of 30 MB/s into a program of 13 MB/s: the kernel reads ahead, and nobody waits
/// for the disk.
#[test]
fn a_disk_behind_a_read_ahead_is_there_without_the_target() {
    let run = recorded(
        3.17,
        0.1,
        &[
            (StageKind::Read, 5, [0.2, 0.0, 2.9], 0.25, [0.1, 0.0]),
            (StageKind::Write, 1, [2.98, 0.19, 0.0], 2.98, [0.1, 0.0]),
        ],
    );
    let run = RunReport { source_disk_own_seconds: Some(1.34), ..run };
    let analysis = check_run(&run, (Cause::Stage, StageKind::Write));
    assert!((analysis.seconds_without - 1.34).abs() < 1e-9, "{analysis:?}");
}

/// What a stage behind the reader is said to cost is never more than what the reader did not.
#[test]
fn no_promise_beats_a_device_with_requests_in_flight() {
    // All threads of the hash stage busy on the processor, the disk occupied for most of the run.
    let run = recorded(
        3.05,
        0.0,
        &[
            (StageKind::Read, 32, [0.06, 0.0, 0.02], 2.4, [0.04, 0.0]),
            (StageKind::Hash, 2, [2.6, 0.4, 0.0], 3.0, [5.2, 0.0]),
            (StageKind::Write, 1, [0.1, 2.9, 0.0], 0.1, [0.1, 0.0]),
        ],
    );
    let analysis = check_run(&run, (Cause::Stage, StageKind::Hash));
    assert!(analysis.seconds_without > 2.2, "{analysis:?}");
}

#[test]
fn cores_that_others_have_are_the_limit_of_what_wants_them() {
    let run = recorded(
        10.0,
        14.0,
        &[
            (StageKind::Read, 4, [0.5, 0.0, 9.5], 1.5, [0.9, 0.5]),
            (StageKind::Compress, 2, [9.7, 0.3, 0.0], 9.9, [5.4, 13.5]),
            (StageKind::Write, 1, [0.5, 9.5, 0.0], 0.5, [0.1, 0.3]),
        ],
    );
    let analysis = check_run(&run, (Cause::Processor, StageKind::Compress));
    assert!(analysis.is_foreign);
    // With the cores for itself it has all of its work to do still.
    assert!((3.0..4.0).contains(&analysis.seconds_without), "{analysis:?}");
    let alone = RunReport { others_seconds: Some(0.0), ..run };
    assert_ne!(analyse(&alone).cause, Cause::Processor, "it waits, but the cores are free");
}

/// Others have all cores, so that a wait for the disk looks like one for a core; the disk knows.
#[test]
fn a_disk_that_was_busy_all_the_time_is_the_limit_whoever_has_the_cores() {
    let run = recorded(
        3.44,
        6.7,
        &[
            (StageKind::Scan, 1, [0.04, 0.0, 0.0], 0.04, [0.0, 0.022]),
            (StageKind::Read, 32, [0.089, 0.101, 0.0], 2.85, [0.071, 2.54]),
            (StageKind::Hash, 2, [0.102, 3.13, 0.0], 0.2, [0.094, 1.36]),
            (StageKind::Write, 1, [0.002, 3.06, 0.0], 0.002, [0.003, 0.35]),
        ],
    );
    let disk = |busy: f64, own: f64| RunReport {
        source_disk_seconds: Some(busy),
        source_disk_own_seconds: Some(own),
        ..run.clone()
    };
    check_run(&disk(3.3, 1.8), (Cause::FewThreads, StageKind::Read));
    // A disk that had rests is not, and is in the promise all the same.
    let analysis = check_run(&disk(2.0, 1.8), (Cause::Processor, StageKind::Read));
    assert!((1.8..3.44).contains(&analysis.seconds_without), "{analysis:?}");
}

#[test]
fn what_is_waited_for_on_being_woken_is_no_work() {
    // Of a stage that is woken for each block the kernel counts a wait for a core each time.
    let run = recorded(
        10.0,
        15.0,
        &[
            (StageKind::Read, 1, [9.8, 0.1, 0.1], 9.8, [0.5, 0.4]),
            (StageKind::Hash, 2, [0.5, 9.5, 0.0], 1.0, [0.9, 9.0]),
        ],
    );
    let analysis = check_run(&run, (Cause::Stage, StageKind::Read));
    assert!(analysis.stages[1].core_wait_share <= 0.11, "{analysis:?}");
}

#[test]
fn a_target_that_is_made_ready_is_nobodys_fault() {
    let stages = [
        stage(StageKind::Read, [1.0, 0.0, 0.5], 0.5),
        stage(StageKind::Write, [1.4, 0.1, 0.0], 0.2),
    ];
    let ready = RunReport { ready_seconds: 8.5, ..run(&stages) };
    let analysis = check_run(&ready, (Cause::Stage, StageKind::Write));
    // What is told is of the whole run, as the table has it; nobody can save the time before.
    assert!((analysis.seconds - 10.0).abs() < 1e-9, "{analysis:?}");
    assert!((analysis.stages[1].busy_share - 0.14).abs() < 1e-9, "{analysis:?}");
    assert!((analysis.seconds_without - 9.5).abs() < 1e-9, "{analysis:?}");
    check_run(&run(&stages), (Cause::Turns, StageKind::Write));
}

/// A small file from a tape: no stage is what 70 seconds of winding are blamed on.
#[test]
fn a_run_that_is_nearly_all_winding_has_no_limit() {
    let stages = [
        stage(StageKind::Read, [0.1, 0.0, 0.0], 0.0),
        stage(StageKind::Create, [1.4, 0.1, 0.0], 1.4),
    ];
    let cause = |winding_seconds, ready_seconds| {
        let more = RunReport { ready_seconds, winding_seconds, ..run(&stages) };
        analyse(&RunReport { seconds: 1.5 + winding_seconds + ready_seconds, ..more }).cause
    };
    assert_ne!(cause(0.0, 0.0), Cause::Unknown);
    assert_ne!(cause(6.0, 2.0), Cause::Unknown);
    assert_eq!(cause(34.0, 36.0), Cause::Unknown);
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

#[test]
fn few_of_many_threads_that_take_all_cores_are_limited_by_the_processor() {
    // 48 readers of small cached files: three of them work at a time, on two cores.
    let mut read = stage(StageKind::Read, [0.6, 8.8, 0.3], 18.5);
    (read.threads, read.occupied_seconds) = (48, 9.8);
    let mut hash = stage(StageKind::Hash, [0.7, 9.3, 0.0], 1.1);
    hash.threads = 2;
    let write = stage(StageKind::Write, [0.1, 9.9, 0.0], 0.2);
    let scan = stage(StageKind::Scan, [0.3, 0.0, 9.7], 0.1);
    let analysis = check(&[scan, read, hash, write], (Cause::Processor, StageKind::Read));
    // Not what 48 of them would do if each had a core of its own.
    assert!((analysis.stages[1].bytes_per_second - 1e9 / 9.8).abs() < 1e3, "{analysis:?}");
    // Two threads have two cores: both count.
    assert!((analysis.stages[2].bytes_per_second - 1e9 / 0.7).abs() < 1e3, "{analysis:?}");
}

/// Large files from a disk of 30 MB/s through `zstd:12` on one thread: 1.71 s, without the disk
/// 0.99 s, without compression 1.34 s.
#[test]
fn a_disk_with_requests_for_longer_than_any_stage_has_work_is_the_limit() {
    let run = recorded(
        1.71,
        0.1,
        &[
            (StageKind::Scan, 1, [0.001, 0.0, 0.0], 0.001, [0.0, 0.0]),
            (StageKind::Read, 5, [0.44, 0.0, 0.0], 1.36, [0.03, 0.01]),
            (StageKind::Hash, 2, [0.02, 1.6, 0.0], 0.04, [0.04, 0.01]),
            (StageKind::Compress, 1, [0.97, 0.74, 0.0], 0.97, [0.95, 0.01]),
            (StageKind::Write, 1, [0.01, 1.7, 0.0], 0.01, [0.01, 0.01]),
        ],
    );
    check_run(&run, (Cause::Turns, StageKind::Compress));
    let disk = |seconds| RunReport {
        source_disk_seconds: Some(seconds),
        source_disk_own_seconds: Some(seconds),
        ..run.clone()
    };
    let analysis = check_run(&disk(1.33), (Cause::FewThreads, StageKind::Read));
    assert!((0.9..1.1).contains(&analysis.seconds_without), "{analysis:?}");
    check_run(&disk(0.9), (Cause::Turns, StageKind::Compress));
}

/// 40 MB at 20 MB/s at most into a program: what that takes without the limit nobody has seen.
#[test]
fn without_a_rate_limit_the_ends_are_there_still() {
    let read = stage(StageKind::Read, [0.4, 0.0, 1.6], 0.3);
    let write = stage(StageKind::Write, [0.6, 0.0, 1.4], 0.1);
    let limited = |target| RunReport {
        seconds: 2.0,
        rate_limit_bytes_per_second: Some(20_000_000),
        target,
        steps: Some(StreamSteps::default()),
        ..run(&[read.clone(), write.clone()])
    };
    let program = check_run(&limited(Endpoint::Pipe), (Cause::RateLimit, StageKind::Write));
    assert!(!program.without_is_known, "{program:?}");
    let file = check_run(&limited(Endpoint::File), (Cause::RateLimit, StageKind::Write));
    assert!(file.without_is_known, "{file:?}");
    assert!((file.seconds_without - 0.6).abs() < 1e-9, "{file:?}");
}

/// The reader of the pipe always waited; with the cores for itself the run may meet it.
#[test]
fn what_the_cores_would_bring_is_not_known_before_a_program_that_always_waited() {
    let foreign = recorded(
        10.0,
        14.0,
        &[
            (StageKind::Read, 4, [0.5, 0.0, 9.5], 1.5, [0.9, 0.5]),
            (StageKind::Compress, 2, [9.7, 0.3, 0.0], 9.9, [5.4, 13.5]),
            (StageKind::Write, 1, [0.5, 9.5, 0.0], 0.5, [0.1, 0.3]),
        ],
    );
    let steps = Some(StreamSteps::default());
    let piped = RunReport { target: Endpoint::Pipe, steps, ..foreign.clone() };
    let analysis = check_run(&piped, (Cause::Processor, StageKind::Compress));
    assert!(analysis.is_foreign && !analysis.without_is_known, "{analysis:?}");
    assert!(analyse(&foreign).without_is_known);
}

/// Four bursts of eight blocks with 0.15 s behind each, of which 0.1 s lie in the time in which the
/// ring had no room: the target takes 20 ms a block.
#[test]
fn pauses_behind_a_full_ring_are_part_of_the_source() {
    let waits = |number: usize| if number % 8 == 0 && number > 0 { 0.1 } else { 0.0 };
    let read: Vec<Step> = (0..32)
        .map(|number| Step {
            cost_seconds: if number % 8 == 0 && number > 0 { 0.05 } else { 0.001 },
            waited_seconds: waits(number),
            hidden_seconds: waits(number),
        })
        .collect();
    let sum = |it: fn(&Step) -> f64| read.iter().map(it).sum::<f64>();
    let seconds = 0.64;
    let stages = [
        stage(StageKind::Read, [sum(|it| it.cost_seconds), 0.0, seconds - 0.17], 0.01),
        stage(StageKind::Write, [seconds, 0.0, 0.0], 0.01),
    ];
    let write = vec![Step { cost_seconds: 0.02, ..Step::default() }; 32];
    let steps = StreamSteps { read: read.clone(), write, ring_blocks: 8, block_bytes: 1 << 20 };
    let piped = RunReport {
        seconds,
        archive_bytes: 32 << 20,
        source: Endpoint::Pipe,
        target: Endpoint::Pipe,
        steps: Some(steps),
        ..run(&stages)
    };
    let analysis = check_run(&piped, (Cause::Stage, StageKind::Write));
    assert!((0.45..0.5).contains(&analysis.seconds_without), "{analysis:?}");
}

/// 20 MB at 20 MB/s at most, which a disk of 45 MB/s gives nearly as fast through `gzip:6`.
#[test]
fn a_run_that_is_as_fast_as_its_rate_limit_is_held_back_by_it() {
    let mut read = stage(StageKind::Read, [0.3, 0.0, 0.0], 0.05);
    (read.threads, read.occupied_seconds) = (3, 0.9);
    let write = stage(StageKind::Write, [0.01, 0.95, 0.04], 0.01);
    let limited = |target_bytes| RunReport {
        seconds: 1.0,
        target_bytes,
        rate_limit_bytes_per_second: Some(20_000_000),
        target: Endpoint::CharacterDevice,
        ..run(&[read.clone(), write.clone()])
    };
    let analysis = check_run(&limited(20_400_000), (Cause::RateLimit, StageKind::Write));
    // The disk is there without the limit, too.
    assert!((0.85..0.95).contains(&analysis.seconds_without), "{analysis:?}");
    let analysis = check_run(&limited(15_000_000), (Cause::FewThreads, StageKind::Read));
    assert!((analysis.seconds_without - 0.65).abs() < 1e-6, "{analysis:?}");
    // A source that takes all of the run is named before a limit that takes nearly as much.
    let program = stage(StageKind::Read, [0.01, 0.99, 0.0], 0.01);
    let both = RunReport { stages: vec![program, write.clone()], ..limited(20_400_000) };
    let analysis = check_run(&both, (Cause::Source, StageKind::Read));
    assert!((analysis.seconds_without - 0.92).abs() < 1e-6, "{analysis:?}");
    // A few pieces of compression, that hardly overlap with the writer.
    let compress = stage(StageKind::Compress, [0.55, 0.45, 0.0], 0.5);
    let short = stage(StageKind::Read, [0.1, 0.0, 0.9], 0.1);
    let few = RunReport { stages: vec![short, compress, write.clone()], ..limited(16_000_000) };
    check_run(&few, (Cause::RateLimit, StageKind::Write));
}

/// 18 MB of small files through `zstd:15`, which makes one piece of it: one of two threads has it,
/// when all is read. Without the disk 0.79 s, without compression 0.65 s.
#[test]
fn threads_without_a_piece_do_not_share_the_work() {
    let run = recorded(
        1.55,
        0.1,
        &[
            (StageKind::Read, 20, [0.57, 0.3, 0.0], 0.66, [0.3, 0.05]),
            (StageKind::Compress, 2, [0.45, 1.1, 0.0], 0.9, [0.9, 0.0]),
            (StageKind::Write, 1, [0.01, 1.54, 0.0], 0.01, [0.01, 0.0]),
        ],
    );
    let run = RunReport { compressed_pieces: Some(1), ..run };
    let analysis = analyse(&run);
    assert_eq!(analysis.bottleneck, Some(1), "{analysis:?}");
    assert!((analysis.stages[1].busy_seconds - 0.9).abs() < 1e-9, "{analysis:?}");
    let many = analyse(&RunReport { compressed_pieces: Some(50), ..run });
    assert!((many.stages[1].busy_seconds - 0.45).abs() < 1e-9, "{many:?}");
}

/// A disk of 30 MB/s and a reader of 12 MB/s, which takes as long with half of the bytes: it always
/// has something in its pipe still when the next piece comes.
#[test]
fn a_target_that_never_had_nothing_to_do_is_the_limit() {
    let mut read = stage(StageKind::Read, [0.7, 0.0, 0.0], 0.1);
    (read.threads, read.occupied_seconds) = (2, 1.33);
    let write = stage(StageKind::Write, [0.19, 1.36, 0.0], 0.02);
    let with = |hidden: f64| {
        let step =
            Step { cost_seconds: 0.01, waited_seconds: 0.068, hidden_seconds: hidden / 20.0 };
        let steps = StreamSteps {
            read: Vec::new(),
            write: vec![step; 20],
            ring_blocks: 64,
            block_bytes: 1 << 20,
        };
        let stages = [read.clone(), write.clone()];
        RunReport {
            seconds: 1.55,
            target: Endpoint::Pipe,
            target_bytes: 20 << 20,
            steps: Some(steps),
            ..run(&stages)
        }
    };
    let analysis = check_run(&with(1.3), (Cause::Stage, StageKind::Write));
    assert!(analysis.stages[1].hidden_share > 0.8, "{analysis:?}");
    assert!((1.2..1.35).contains(&analysis.seconds_without), "{analysis:?}");
    // With nothing seen of it, it is the disk, and what is left is not known.
    let analysis = check_run(&with(0.0), (Cause::FewThreads, StageKind::Read));
    assert!(!analysis.without_is_known, "{analysis:?}");
}
