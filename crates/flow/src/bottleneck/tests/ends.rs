//! The share of programs, disks and limits at the ends of a run.

use super::*;
use crate::run::Endpoint;
use crate::steps::{Step, StreamSteps};

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

/// 40 MB at 20 MB/s at most into a program: the time without the limit is unknown.
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

/// Four bursts of eight blocks with 0.15 s after each, 0.1 s of it while the ring had no room: the
/// target takes 20 ms a block.
#[test]
fn pauses_behind_a_full_ring_are_part_of_the_source() {
    let waits = |number: usize| if number.is_multiple_of(8) && number > 0 { 0.1 } else { 0.0 };
    let read: Vec<Step> = (0..32)
        .map(|number| Step {
            cost_seconds: if waits(number) > 0.0 { 0.05 } else { 0.001 },
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
    // Without observations of the program, the disk is the limit and the rest is unknown.
    let analysis = check_run(&with(0.0), (Cause::FewThreads, StageKind::Read));
    assert!(!analysis.without_is_known, "{analysis:?}");
}
