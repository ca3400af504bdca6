//! Sentences of runs with known limits.

mod disk;

use super::*;
use flow::bottleneck::{BUSY_SHARE, CORE_WAIT_PROCESSOR_SHARE, CORE_WAIT_SHARE};
use flow::bottleneck::{CORE_WANTED_SHARE, PROCESSOR_SHARE, SHORTEST_SECONDS, analyse};
use flow::run::StageReport;
use flow::steps::{Step, StreamSteps};
use std::collections::BTreeSet;

fn stage(kind: StageKind, states: [f64; 3], processor_seconds: f64) -> StageReport {
    let threads = if kind == StageKind::Compress { 2 } else { 1 };
    let one = StageReport::of_one_thread(kind, states);
    StageReport { threads, processor_seconds, bytes: 2_000_000_000, ..one }
}

fn pipe() -> RunReport {
    RunReport {
        command: Command::Pipe,
        source: Endpoint::Pipe,
        target: Endpoint::Pipe,
        compression: "none".to_owned(),
        archive_bytes: 2_000_000_000,
        ring_bytes: 64 << 20,
        seconds: 10.0,
        cores: 2,
        ..RunReport::default()
    }
}

fn backup(compression: &str, file_bytes: u64) -> RunReport {
    RunReport {
        command: Command::Backup,
        source: Endpoint::Tree,
        target: Endpoint::File,
        compression: compression.to_owned(),
        files: 100,
        source_bytes: 100 * file_bytes,
        ..pipe()
    }
}

fn verify(compression: &str) -> RunReport {
    RunReport {
        command: Command::Verify,
        source: Endpoint::File,
        target: Endpoint::Check,
        ..backup(compression, SMALL)
    }
}

const SMALL: u64 = 9_000;

fn words(stages: &[StageReport], run: &RunReport) -> String {
    let run = RunReport { stages: stages.to_vec(), ..run.clone() };
    explain(&analyse(&run), &run).line()
}

/// The short line as it is printed, which fits 100 columns.
fn line(stages: &[StageReport], run: &RunReport) -> String {
    let run = RunReport { stages: stages.to_vec(), ..run.clone() };
    let limit = short(&analyse(&run), &run).unwrap_or_else(|| "not known".to_owned());
    let line = format!("limit: {limit}. -v shows the stages");
    assert!(line.len() <= 100, "{line}");
    line
}

#[test]
fn sentences() {
    let mut text = String::new();
    let mut case = |name: &str, stages: &[StageReport], run: &RunReport| {
        text.push_str(&format!("{name}\n    {}\n    {}\n", words(stages, run), line(stages, run)));
    };
    let run = backup("zstd:9", SMALL);
    let (slow, fast) = ([9.7, 0.3, 0.0], [2.0, 8.0, 0.0]);
    case("no stages", &[], &pipe());
    let full = [2.0, 0.0, 8.0];
    case(
        "slow reader",
        &[stage(StageKind::Read, full, 1.0), stage(StageKind::Write, slow, 1.0)],
        &pipe(),
    );
    let held = [0.3, 0.1, 9.6];
    let limited = RunReport { rate_limit_bytes_per_second: Some(200_000_000), ..pipe() };
    case(
        "rate",
        &[stage(StageKind::Read, [0.4, 0.0, 9.6], 0.4), stage(StageKind::Write, held, 0.3)],
        &limited,
    );
    let starved = [0.3, 9.7, 0.0];
    case(
        "source",
        &[stage(StageKind::Read, starved, 0.3), stage(StageKind::Write, starved, 0.3)],
        &pipe(),
    );
    let tree = |read, compress, write| {
        [
            stage(StageKind::Scan, [0.4, 0.0, 9.6], 0.3),
            stage(StageKind::Read, read, read[0] / 3.0),
            stage(StageKind::Compress, compress, compress[0] * 1.2),
            stage(StageKind::Write, write, write[0] / 2.0),
        ]
    };
    case("level", &tree(fast, slow, fast), &run);
    let gzip = backup("gzip:6", SMALL);
    case("gzip", &tree(fast, slow, fast), &gzip);
    case("small files", &tree(slow, fast, fast), &run);
    let large = backup("zstd:9", 4_000_000_000);
    case("large files", &tree(slow, fast, fast), &large);
    case("slow disk", &tree(fast, fast, slow), &run);
    let share = [
        stage(StageKind::Read, [9.0, 0.0, 1.0], 5.0),
        stage(StageKind::Compress, slow, 11.0),
        stage(StageKind::Write, [5.0, 5.0, 0.0], 2.0),
    ];
    let share = share.map(|stage| {
        let core_wait_seconds = stage.working_seconds * 0.4 * stage.threads as f64;
        StageReport { core_wait_seconds, ..stage }
    });
    case("shared cores", &share, &run);
    let others = RunReport { cores: 4, others_seconds: Some(24.0), ..run.clone() };
    case("others", &share, &others);
    let turns = [
        stage(StageKind::Read, [4.9, 0.0, 5.1], 1.0),
        stage(StageKind::Write, [5.0, 5.0, 0.0], 1.0),
    ];
    case("turns", &turns, &pipe());
    case("turns of little", &turns, &RunReport { archive_bytes: 1 << 20, ..pipe() });
    insta::assert_snapshot!(text);
}

fn verified(last: StageReport, decompress: [f64; 3], run: &RunReport) -> String {
    let decompress = stage(StageKind::Decompress, decompress, decompress[0] * 0.9);
    words(&[stage(StageKind::Read, [1.0, 0.0, 9.0], 0.5), decompress, last], run)
}

#[test]
fn whoever_has_zstd_is_not_told_to_take_it() {
    let hash = || stage(StageKind::Hash, [1.0, 9.0, 0.0], 0.9);
    let slow = [9.8, 0.2, 0.0];
    for (compression, advised) in [("zstd", false), ("zstd:9", false), ("gzip", true)] {
        let text = verified(hash(), slow, &verify(compression));
        assert!(text.starts_with("decompress was the limit"), "{text}");
        assert_eq!(text.contains("zstd for the next backup"), advised, "{text}");
        assert!(text.contains("cores would help"), "{text}");
    }
}

#[test]
fn hashing_takes_all_cores_in_a_backup_and_those_asked_for_in_verify() {
    let hash = |threads| StageReport { threads, ..stage(StageKind::Hash, [9.8, 0.2, 0.0], 9.5) };
    let idle = [1.0, 9.0, 0.0];
    let text = verified(hash(2), idle, &verify("zstd"));
    assert!(text.ends_with("more or faster cores would help"), "{text}");
    let text = verified(hash(1), idle, &verify("zstd"));
    assert!(text.ends_with("more --threads would help"), "{text}");
    let text = verified(hash(1), idle, &backup("zstd:9", SMALL));
    assert!(text.ends_with("more or faster cores would help"), "{text}");
    let few = StageReport {
        threads: 4,
        occupied_seconds: 9.8,
        ..stage(StageKind::Hash, [2.5, 0.1, 7.4], 2.4)
    };
    let text = verified(few, idle, &verify("zstd"));
    assert!(text.contains("at least one of its 4 threads"), "{text}");
    assert!(text.contains("one thread hashes each file"), "{text}");
}

/// A stage that works on a core is no evidence of a slow disk.
#[test]
fn what_works_on_a_core_is_not_told_to_get_a_faster_disk() {
    let on_core = |kind| {
        let last = stage(kind, [9.5, 0.1, 0.4], 9.5);
        verified(last, [1.0, 0.0, 9.0], &verify("zstd"))
    };
    let waiting = |kind| {
        let last = stage(kind, [9.5, 0.1, 0.4], 0.5);
        verified(last, [1.0, 0.0, 9.0], &verify("zstd"))
    };
    for kind in [StageKind::Scan, StageKind::Compare, StageKind::Create] {
        let text = on_core(kind);
        assert!(!text.contains("disk"), "{kind:?}: {text}");
        assert!(text.contains("would help"), "{kind:?}: {text}");
        assert!(waiting(kind).contains("disk"), "{kind:?}: {}", waiting(kind));
    }
}

/// A scan waits for room among the names that it has found, which no ring holds; and a ring that
/// holds all of it is large enough.
#[test]
fn a_larger_ring_is_for_stages_that_it_keeps_waiting() {
    let told = |scan, read, archive_bytes| {
        let stages = [
            stage(StageKind::Scan, scan, 0.3),
            stage(StageKind::Read, read, 1.0),
            stage(StageKind::Write, [4.0, 6.0, 0.0], 0.5),
        ];
        words(&stages, &RunReport { archive_bytes, ..backup("none", SMALL) })
    };
    let (works, waits) = ([4.0, 0.0, 0.0], [4.0, 0.0, 4.0]);
    let all = 2_000_000_000;
    let text = told(works, waits, all);
    assert!(text.contains("a larger --ring may help"), "{text}");
    assert!(!told(waits, works, all).contains("--ring"), "{}", told(waits, works, all));
    assert!(!told(works, waits, 1 << 20).contains("--ring"));
}

/// Data that fit into the ring may still be most of the work of stages that take turns.
#[test]
fn opening_takes_the_time_only_where_no_stage_does() {
    let with = |busy: f64| {
        let rest = 10.0 - busy;
        let stages = [
            stage(StageKind::Read, [busy, 0.0, rest], busy / 2.0),
            stage(StageKind::Write, [busy, rest, 0.0], busy / 2.0),
        ];
        let run = RunReport { archive_bytes: 1, ring_bytes: 2, ..backup("none", SMALL) };
        words(&stages, &run)
    };
    let said = "too little data to tell: opening and closing took most of the time";
    assert!(with(2.0).contains(said), "{}", with(2.0));
    assert!(!with(4.0).contains(said), "{}", with(4.0));
}

#[test]
fn nobody_is_told_of_a_rate_limit_that_was_not_set() {
    for kind in [
        StageKind::Compare,
        StageKind::Hash,
        StageKind::Check,
        StageKind::Parse,
        StageKind::Decompress,
        StageKind::Create,
        StageKind::Write,
    ] {
        for states in [[0.3, 0.1, 9.6], [2.5, 0.1, 7.4], [9.5, 0.1, 0.4]] {
            let last = StageReport { threads: 4, ..stage(kind, states, states[0]) };
            let text = verified(last, [1.0, 0.0, 9.0], &verify("zstd"));
            assert!(!text.contains("rate"), "{text}");
        }
    }
}

fn id(finding: Finding) -> &'static str {
    finding.rule.within(&rules::LIMIT).unwrap().id
}

#[test]
fn every_rule_speaks_and_no_other() {
    let cases = |kind, states: [f64; 3], run: &RunReport| {
        let last = stage(StageKind::Write, [0.3, 9.7, 0.0], 0.1);
        let first = StageReport { occupied_seconds: 9.0, ..stage(kind, states, states[0]) };
        let run = RunReport { stages: vec![first, last], ..run.clone() };
        id(explain(&analyse(&run), &run))
    };
    let (busy, run) = ([9.0, 0.0, 1.0], pipe());
    let one_core = RunReport { cores: 1, ..run.clone() };
    let held = stage(StageKind::Write, [0.3, 0.1, 9.6], 0.1);
    let limited = RunReport {
        rate_limit_bytes_per_second: Some(1),
        stages: vec![stage(StageKind::Read, [0.3, 0.0, 9.7], 0.1), held],
        ..run.clone()
    };
    let shared = RunReport {
        stages: [StageKind::Read, StageKind::Write]
            .map(|kind| stage(kind, [9.0, 1.0, 0.0], 5.0))
            .to_vec(),
        ..one_core
    };
    let spoke = BTreeSet::from([
        cases(StageKind::Read, busy, &RunReport { seconds: 0.01, ..run.clone() }),
        cases(StageKind::Read, busy, &run),
        cases(StageKind::Read, [0.3, 9.7, 0.0], &run),
        cases(StageKind::Compress, [4.0, 0.0, 6.0], &run),
        cases(StageKind::Read, [4.0, 0.0, 6.0], &run),
        id(explain(&analyse(&limited), &limited)),
        id(explain(&analyse(&shared), &shared)),
    ]);
    let listed: BTreeSet<&str> = rules::LIMIT.rules.iter().map(|rule| rule.id).collect();
    assert_eq!(spoke, listed);
}

#[test]
fn the_list_says_what_is_gone_by() {
    let says = |rule: &Rule, share: f64| {
        let share = percent(share);
        assert!(rule.speaks_when.contains(&share), "{} does not say {share}", rule.id);
    };
    for rule in [&rules::STAGE, &rules::FEW_THREADS, &rules::TURNS] {
        says(rule, BUSY_SHARE);
    }
    for rule in [&rules::STAGE, &rules::PROCESSOR] {
        says(rule, PROCESSOR_SHARE);
    }
    for share in [CORE_WAIT_SHARE, CORE_WANTED_SHARE, CORE_WAIT_PROCESSOR_SHARE] {
        says(&rules::PROCESSOR, share);
    }
    assert!(rules::UNKNOWN.speaks_when.contains(&duration(SHORTEST_SECONDS)));
}

#[test]
fn changes_of_volume_are_nobodys_limit_and_that_is_said() {
    let stages = [
        stage(StageKind::Read, [9.0, 0.0, 1.0], 1.0),
        stage(StageKind::Write, [2.0, 8.0, 0.0], 1.0),
    ];
    let plain = words(&stages, &pipe());
    assert!(!plain.contains("volume"), "{plain}");
    let changed = words(&stages, &RunReport { seconds: 105.0, change_seconds: 95.0, ..pipe() });
    assert!(changed.contains("changes of volume took 1 min 35 s of it, outside the stages"));
    // All shares are of the whole run, and no stage saves the time of a change.
    assert!(
        plain.contains("busy for 90 % of 10.0 s") && plain.contains("2.00 s instead of 10.0 s")
    );
    assert!(changed.contains("busy for 9 % of 1 min 45 s"), "{changed}");
    assert!(changed.contains("1 min 37 s instead of 1 min 45 s"), "{changed}");
}

#[test]
fn a_run_of_no_length_has_a_sentence() {
    let stages = [stage(StageKind::Read, [0.0; 3], 0.0)];
    let text = words(&stages, &RunReport { seconds: 0.0, ..pipe() });
    assert_eq!(text, "the run was too short to say what its limit was");
}

/// One small file from a tape; the rest of the run is winding.
#[test]
fn of_a_run_that_wound_nearly_all_the_time_winding_is_told() {
    let stages = [StageReport::of_one_thread(StageKind::Read, [0.05, 0.0, 0.0])];
    let tape = RunReport {
        source: Endpoint::Tape,
        seconds: 70.0,
        ready_seconds: 36.0,
        label_seconds: 0.5,
        winding_seconds: 33.9,
        ..pipe()
    };
    let expected = "no stage was the limit: of 1 min 10 s winding took 1 min 09 s, reading labels \
                    and index 500 ms";
    assert_eq!(words(&stages, &tape), expected);
}

/// The stage that was busiest is not the limit of a run that wound for most of its time.
#[test]
fn in_short_what_the_tape_took_goes_before_a_stage() {
    let stages = [
        stage(StageKind::Read, [0.1, 0.0, 0.3], 0.1),
        stage(StageKind::Write, [0.02, 0.0, 0.38], 0.02),
    ];
    let wound = RunReport {
        target: Endpoint::Tape,
        seconds: 6.8,
        ready_seconds: 6.4,
        synchronise_seconds: 0.3,
        ..pipe()
    };
    let expected = "limit: none of the stages; of 6.80 s winding took 6.40 s. -v shows the stages";
    assert_eq!(line(&stages, &wound), expected);
    let changed = RunReport { ready_seconds: 0.0, change_seconds: 6.0, ..wound };
    let expected =
        "limit: none of the stages; of 6.80 s changes of volume took 6.00 s. -v shows the stages";
    assert_eq!(line(&stages, &changed), expected);
}

/// On a machine with other work: write waited for a core 1 % of its time, which is negligible.
#[test]
fn cores_that_were_hardly_waited_for_are_not_named() {
    let text = |core_wait_seconds: f64| {
        let write =
            StageReport { core_wait_seconds, ..stage(StageKind::Write, [9.7, 0.3, 0.0], 1.0) };
        let others = RunReport { others_seconds: Some(19.6), ..pipe() };
        words(&[stage(StageKind::Read, [0.4, 0.0, 9.6], 0.4), write], &others)
    };
    assert!(!text(0.1).contains("other programs"), "{}", text(0.1));
    let held = text(2.0);
    assert!(
        held.contains("other programs used 98 % of the cores, and write waited for a core"),
        "{held}"
    );
}

/// Eight bursts of ten blocks with a pause after each, into a ring of two blocks, and to a program
/// that takes 20 MB/s by the clock: it makes up for each pause.
fn bursts_to_a_clock(ring_blocks: usize) -> RunReport {
    let (mut read, mut write) = (Vec::new(), Vec::new());
    let (mut now, mut free, mut written, mut owed) = (0.0_f64, vec![0.0_f64], 0.0_f64, 0.0_f64);
    for number in 0..80_usize {
        let cost = if number % 10 == 9 { 0.4 } else { 0.001 };
        let room = if number < ring_blocks { 0.0 } else { free[number + 1 - ring_blocks] };
        let blocked = (room - now).max(0.0);
        now += blocked + cost;
        read.push(Step { cost_seconds: cost, waited_seconds: blocked, ..Step::default() });
        let starved = (now - written).max(0.0);
        // The clock went on while no data came.
        owed += starved;
        let saved = owed.min(0.049);
        owed -= saved;
        let took = 0.05 - saved;
        written = written.max(now) + took;
        free.push(written);
        write.push(Step { cost_seconds: took, waited_seconds: starved, ..Step::default() });
    }
    let sum = |of: &[Step], part: fn(&Step) -> f64| of.iter().map(part).sum::<f64>();
    let states = [
        [sum(&read, |it| it.cost_seconds), 0.0, sum(&read, |it| it.waited_seconds)],
        [sum(&write, |it| it.cost_seconds), sum(&write, |it| it.waited_seconds), 0.0],
    ];
    RunReport {
        seconds: written,
        archive_bytes: 80 << 20,
        ring_bytes: (ring_blocks as u64) << 20,
        stages: vec![
            StageReport::of_one_thread(StageKind::Read, states[0]),
            StageReport::of_one_thread(StageKind::Write, states[1]),
        ],
        steps: Some(StreamSteps { read, write, ring_blocks, block_bytes: 1 << 20 }),
        ..pipe()
    }
}

#[test]
fn a_ring_too_small_for_the_bursts_is_named_with_what_a_larger_one_brings() {
    let run = bursts_to_a_clock(2);
    let analysis = analyse(&run);
    let text = explain(&analysis, &run).line();
    let ring = analysis.larger_ring.expect("a larger ring brings something");
    let with = bursts_to_a_clock(usize::try_from(ring.bytes >> 20).unwrap()).seconds;
    assert!((ring.seconds - with).abs() < 0.1 * run.seconds, "{ring:?}, {with}: {text}");
    assert!(text.starts_with("the ring of 2.10 MB was the limit"), "{text}");
    assert!(text.contains("; --ring "), "{text}");
    // Neither end costs less than its own pace: eight pauses of 0.4 s, 80 blocks of 50 ms.
    assert!(analysis.seconds_without > 3.1, "{analysis:?}");
    // A ring that holds a burst is not mentioned.
    let run = bursts_to_a_clock(64);
    let analysis = analyse(&run);
    assert_eq!(analysis.larger_ring, None);
    // The pauses are still there without the clock: eight of 0.4 s.
    assert!(analysis.seconds_without > 3.1, "{analysis:?}");
}

#[test]
fn a_reader_that_always_waited_has_shown_no_pace() {
    let read = vec![Step { cost_seconds: 0.1, waited_seconds: 0.0, ..Step::default() }; 40];
    let write = vec![Step { cost_seconds: 0.001, waited_seconds: 0.099, ..Step::default() }; 40];
    let run = RunReport {
        seconds: 4.0,
        archive_bytes: 40 << 20,
        stages: vec![
            StageReport::of_one_thread(StageKind::Read, [0.1, 3.9, 0.0]),
            StageReport::of_one_thread(StageKind::Write, [0.04, 3.96, 0.0]),
        ],
        steps: Some(StreamSteps { read, write, ring_blocks: 2, block_bytes: 1 << 20 }),
        ..pipe()
    };
    let text = explain(&analyse(&run), &run).line();
    assert!(text.starts_with("the source was the limit"), "{text}");
    assert!(text.contains("does not show what a faster source would bring"), "{text}");
    // A device that takes all at once has no clock.
    let run = RunReport { target: Endpoint::CharacterDevice, ..run };
    let text = explain(&analyse(&run), &run).line();
    assert!(text.contains("the run would have taken 40 ms instead of 4.00 s"), "{text}");
}

/// A disk and a program behind it that take equally long; and a program that never showed its pace.
#[test]
fn a_faster_stage_is_promised_only_where_less_is_left() {
    let read = |seconds| StageReport {
        threads: 4,
        occupied_seconds: 9.8,
        ..stage(StageKind::Read, [seconds, 0.0, 10.0 - seconds], 0.2)
    };
    let text = |write: [f64; 3], steps: Option<StreamSteps>| {
        let run = RunReport {
            steps,
            target: Endpoint::Pipe,
            source_disk_seconds: Some(9.8),
            source_disk_in_flight: Some(2.0),
            ..backup("none", 4_000_000_000)
        };
        words(&[read(9.7), stage(StageKind::Write, write, 0.1)], &run)
    };
    let steps = |steps: Vec<Step>| {
        Some(StreamSteps { read: Vec::new(), write: steps, ring_blocks: 4, block_bytes: 1 << 20 })
    };
    let cost = |cost_seconds: f64| Step { cost_seconds, ..Step::default() };
    let slow = text([9.6, 0.4, 0.0], steps(vec![cost(0.24); 40]));
    assert!(
        slow.contains("no change to this stage alone would help: write takes as long"),
        "{slow}"
    );
    assert!(!slow.contains("a faster disk"), "{slow}");
    let waited = Step { waited_seconds: 0.24, ..cost(0.001) };
    let unknown = text([0.1, 9.9, 0.0], steps(vec![waited; 40]));
    assert!(unknown.contains("its own speed is unknown"), "{unknown}");
    assert!(unknown.contains("a faster disk may help"), "{unknown}");
}

#[test]
fn threads_are_proposed_where_there_are_pieces_for_them() {
    let text = |pieces: u64| {
        let stages = [
            stage(StageKind::Read, [1.0, 0.0, 9.0], 0.5),
            StageReport { threads: 1, ..stage(StageKind::Compress, [9.5, 0.5, 0.0], 9.4) },
            stage(StageKind::Write, [0.5, 9.5, 0.0], 0.1),
        ];
        words(&stages, &RunReport { compressed_pieces: Some(pieces), ..backup("zstd:15", SMALL) })
    };
    assert!(text(20).contains("--compress-threads 2"), "{}", text(20));
    assert!(!text(2).contains("threads 2") && text(2).contains("zstd:1"), "{}", text(2));
}

/// Others have the cores, and the reader of the pipe always waited: it may be as slow.
#[test]
fn cores_are_no_promise_before_a_program_that_did_not_show_its_pace() {
    let text = |target| {
        let compress = StageReport {
            core_wait_seconds: 9.0,
            ..stage(StageKind::Compress, [9.7, 0.3, 0.0], 9.0)
        };
        let stages = [
            stage(StageKind::Read, [0.5, 0.0, 9.5], 0.3),
            compress,
            stage(StageKind::Write, [0.2, 9.8, 0.0], 0.1),
        ];
        let steps = Some(StreamSteps::default());
        let others_seconds = Some(10.5);
        let run = RunReport { target, steps, others_seconds, ..backup("zstd:9", SMALL) };
        words(&stages, &run)
    };
    let (file, piped) = (text(Endpoint::File), text(Endpoint::Pipe));
    assert!(file.contains("run it when they are idle"), "{file}");
    assert!(
        piped.contains("does not show what having the cores for itself would bring"),
        "{piped}"
    );
    assert!(!piped.contains("run it when they are idle"), "{piped}");
}
