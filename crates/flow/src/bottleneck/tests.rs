//! Analyses of stages that are written down here, and of recorded runs.

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

/// A small restore: both cores are used for a second, then the disk takes all of it for nine.
#[test]
fn cores_that_were_used_before_a_long_flush_are_not_the_limit() {
    let decompress = stage(StageKind::Decompress, [1.0, 0.0, 0.0], 1.0);
    let mut create = stage(StageKind::Create, [0.9, 0.1, 0.0], 0.9);
    create.core_wait_seconds = 0.3;
    let stages = [stage(StageKind::Read, [0.1, 0.0, 0.9], 0.05), decompress, create];
    let run = RunReport { synchronise_seconds: 9.0, ..run(&stages) };
    check_run(&run, (Cause::Stage, StageKind::Create));
    // Without it they are.
    let run = RunReport { seconds: 1.0, synchronise_seconds: 0.0, ..run };
    assert_eq!(analyse(&run).cause, Cause::Processor);
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

/// One file of 400 MiB on a disk of 150 MB/s, its archive into a pipe. Two busy loops beside it do
/// not change what it waits for.
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

/// 40 MB from a disk of 30 MB/s into a program of 13 MB/s: the kernel reads ahead, and no thread
/// waits for the disk.
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

/// The cost of a stage behind the reader is never more than the time that the reader did not take.
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
    // The sentence is about the whole run, like the table; no stage can save the time before.
    assert!((analysis.seconds - 10.0).abs() < 1e-9, "{analysis:?}");
    assert!((analysis.stages[1].busy_share - 0.14).abs() < 1e-9, "{analysis:?}");
    assert!((analysis.seconds_without - 9.5).abs() < 1e-9, "{analysis:?}");
    check_run(&run(&stages), (Cause::Turns, StageKind::Write));
}

/// A small file from a tape: no stage is blamed for 70 seconds of winding.
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
    // Not the rate of 48 threads with a core each.
    assert!((analysis.stages[1].bytes_per_second - 1e9 / 9.8).abs() < 1e3, "{analysis:?}");
    // Two threads have two cores: both count.
    assert!((analysis.stages[2].bytes_per_second - 1e9 / 0.7).abs() < 1e3, "{analysis:?}");
}

mod ends;
