//! Pipelines with a known bottleneck, as the sampler would report them.

mod paces;

use super::*;
use crate::{Drive, Pipe, Wait};

/// A stage by its command line and its seconds working, starved, blocked and waiting for a device.
fn stage(words: &str, seconds: [f64; 4]) -> Stage {
    let [working_seconds, starved_seconds, blocked_seconds, device_seconds] = seconds;
    Stage {
        command: words.to_owned(),
        arguments: words.split(' ').map(str::to_owned).collect(),
        threads: 1,
        processor_seconds: working_seconds,
        working_seconds,
        starved_seconds,
        blocked_seconds,
        device_seconds,
        lifetime_seconds: seconds.iter().sum(),
        ..Stage::default()
    }
}

fn look(stages: Vec<Stage>) -> Look {
    let seconds = stages.iter().map(|stage| stage.lifetime_seconds).fold(0.0, f64::max);
    Look {
        seconds,
        piped_seconds: seconds,
        stages,
        pipes: Vec::new(),
        looks: 500,
        looking_seconds: 0.0,
        cores: 2,
        others_cores: 0.0,
        drive: None,
        absent: Vec::new(),
    }
}

fn rules_of(judgement: &Judgement) -> Vec<&'static str> {
    judgement
        .findings
        .iter()
        .map(|finding| finding.rule.within(&rules::PIPELINE).unwrap().id)
        .collect()
}

fn waits_for(what: &str, stage: Stage) -> Stage {
    let seconds = stage.device_seconds + stage.other_seconds;
    Stage { waits_for: vec![Wait { what: what.to_owned(), seconds }], ..stage }
}

fn writes(what: &str, stage: Stage) -> Stage {
    let device_write_seconds = stage.device_seconds;
    waits_for(what, Stage { device_write_seconds, ..stage })
}

fn gzip_is_slow() -> Look {
    look(vec![
        stage("tar cf - /srv", [1.0, 0.0, 9.0, 0.0]),
        stage("gzip -c", [9.9, 0.1, 0.0, 0.0]),
        stage("dd of=/dev/nst0", [0.2, 9.0, 0.0, 0.8]),
    ])
}

#[test]
fn the_stage_that_all_wait_for_is_the_limit() {
    let typed = "tar cf - /srv | gzip -c | dd of=/dev/nst0";
    let found = judge(&gzip_is_slow(), Some(typed));
    assert_eq!(found.limit, Some(1));
    assert_eq!(rules_of(&found), ["pipeline.work", "pipeline.one-core"]);
    assert_eq!(
        found.findings[0].sentence(),
        "stage 2 (gzip) is the limit: it works for 99 % of the run"
    );
    let predicted = found.predicted.unwrap();
    // 11.1 s of processor time on two cores, of which pigz takes 0.9 for gzip's 9.9 s.
    assert!((predicted.seconds - 5.055).abs() < 1e-3, "{predicted:?}");
    assert_eq!(predicted.command.unwrap(), "tar cf - /srv | pigz -c | dd of=/dev/nst0");
    let advice = found.findings.iter().map(|finding| finding.action.as_deref()).collect::<Vec<_>>();
    let typed = "compress with pigz: tar cf - /srv | pigz -c | dd of=/dev/nst0";
    assert_eq!(advice, [Some(typed), None]);
    assert_eq!(found.waiting_seconds, 0.0);
}

#[test]
fn a_compressor_with_threads_or_without_free_cores_is_left_alone() {
    let mut threads = gzip_is_slow();
    threads.stages[1] = stage("zstd -T0", [9.9, 0.1, 0.0, 0.0]);
    assert_eq!(rules_of(&judge(&threads, None)), ["pipeline.work", "pipeline.level"]);
    let mut one_core = gzip_is_slow();
    one_core.cores = 1;
    assert_eq!(rules_of(&judge(&one_core, None)), ["pipeline.work", "pipeline.level"]);
}

#[test]
fn a_device_that_is_waited_for_is_named() {
    let slow = waits_for("/dev/nst0", stage("dd of=/dev/nst0", [0.2, 0.3, 0.0, 9.5]));
    let found = judge(&look(vec![stage("tar cf - a", [1.0, 0.0, 9.0, 0.0]), slow]), None);
    assert_eq!(
        (found.limit, rules_of(&found)),
        (Some(1), vec!["pipeline.device", "pipeline.no-advice"])
    );
    let sentence = found.findings[0].sentence();
    assert!(sentence.contains("it waits for /dev/nst0 for 95 % of the run"), "{sentence}");
    assert_eq!(found.predicted, None);
}

#[test]
fn what_sleeps_is_named_by_what_it_sleeps_for() {
    let mut slow = stage("pv -L 10M", [0.1, 0.0, 0.0, 0.0]);
    (slow.other_seconds, slow.lifetime_seconds) = (9.9, 10.0);
    let slow = waits_for("the clock", slow);
    let found = judge(&look(vec![slow, stage("cat", [0.1, 9.9, 0.0, 0.0])]), None);
    assert_eq!(
        (found.limit, rules_of(&found)),
        (Some(0), vec!["pipeline.pace", "pipeline.no-advice"])
    );
}

/// A program that sleeps between small reads has an empty input pipe at times; all others wait for
/// it all the same.
#[test]
fn what_both_neighbours_wait_for_is_the_limit() {
    let mut seen = look(vec![
        stage("cat x", [1.0, 0.0, 9.0, 0.0]),
        stage("pv -L 10M", [7.5, 2.4, 0.1, 0.0]),
        stage("cat", [0.5, 9.5, 0.0, 0.0]),
    ]);
    assert_eq!(judge(&seen, None).limit, None);
    let pipe = |from| Pipe { from, to: from + 1, capacity_bytes: 65536, ..Pipe::default() };
    seen.pipes = vec![pipe(0), pipe(1)];
    assert_eq!(judge(&seen, None).limit, Some(1));
    // A stage that starves for half of the run waits for others half of the time.
    seen.stages[2].starved_seconds = 5.0;
    assert_eq!(judge(&seen, None).limit, None);
}

/// A stage that starves because its source waits for a core is the bottleneck all the same.
#[test]
fn cores_that_others_have_hide_no_limit() {
    let mut seen = look(vec![
        stage("cat x", [3.5, 0.0, 6.5, 0.0]),
        stage("gzip -9", [7.4, 2.6, 0.0, 0.0]),
        stage("cat", [0.1, 9.9, 0.0, 0.0]),
    ]);
    seen.stages[0].processor_seconds = 0.2;
    seen.absent = vec!["pigz"];
    assert_eq!(judge(&seen, None).limit, None);
    seen.stages[0].core_wait_seconds = 2.5;
    let found = judge(&seen, None);
    assert_eq!(found.limit, Some(1));
    let caveat = found.findings[0].caveat.as_deref();
    assert_eq!(caveat, Some("another stage waited for a core for 25 % of the run"));
}

/// `cat | tee copy | cat` on two cores: 0.61 s for tee were told as the time if all worked at once,
/// and no larger pipe brought the run below 0.79 s.
#[test]
fn where_stages_wait_for_cores_no_time_all_at_once_is_told() {
    let mut seen = look(vec![
        stage("cat x", [3.7, 0.0, 6.3, 0.0]),
        stage("tee copy", [7.8, 0.9, 1.3, 0.0]),
        stage("cat", [3.8, 5.2, 0.0, 0.0]),
    ]);
    let told = |seen: &Look| judge(seen, None).longest_stage_seconds;
    assert_eq!(told(&seen), Some(7.8));
    seen.stages[2].core_wait_seconds = 1.8;
    assert_eq!(told(&seen), None);
    assert_eq!(judge(&seen, Some("cat x | tee copy | cat")).predicted, None);
    // Near the run itself it is true whoever waits.
    (seen.stages[1].working_seconds, seen.stages[1].starved_seconds) = (9.5, 0.2);
    seen.stages[1].blocked_seconds = 0.3;
    assert_eq!(told(&seen), Some(9.5));
}

/// A program that wakes up for every few bytes looks as busy as the program that writes them.
#[test]
fn of_two_that_look_alike_the_one_that_had_the_core_is_the_limit() {
    let mut seen =
        look(vec![stage("dd bs=16", [10.0, 0.0, 0.0, 0.0]), stage("cat", [10.0, 0.0, 0.0, 0.0])]);
    seen.stages[1].processor_seconds = 7.0;
    assert_eq!(judge(&seen, None).limit, Some(1 - 1));
    seen.stages[0].processor_seconds = 6.0;
    assert_eq!(judge(&seen, None).limit, Some(2 - 1));
}

#[test]
fn a_quota_is_no_work() {
    let mut slow = stage("gzip -c", [9.9, 0.1, 0.0, 0.0]);
    (slow.throttled_seconds, slow.core_wait_seconds) = (7.0, 7.0);
    slow.processor_seconds = 2.9;
    let stages = vec![stage("cat x", [0.1, 0.0, 9.9, 0.0]), slow];
    let found = judge(&look(stages.clone()), None);
    assert_eq!((found.limit, rules_of(&found)), (Some(1), vec!["pipeline.quota"]));
    // The same without a quota is work.
    let mut free = stages;
    (free[1].throttled_seconds, free[1].core_wait_seconds) = (0.0, 0.0);
    assert_eq!(rules_of(&judge(&look(free), None))[0], "pipeline.work");
}

#[test]
fn cores_that_all_stages_wait_for_are_the_limit() {
    let mut a = stage("xz", [9.9, 0.1, 0.0, 0.0]);
    let mut b = stage("sha256sum", [9.0, 1.0, 0.0, 0.0]);
    (a.processor_seconds, a.core_wait_seconds) = (9.0, 2.0);
    (b.processor_seconds, b.core_wait_seconds) = (9.6, 2.0);
    let found = judge(&look(vec![a.clone(), b.clone()]), None);
    assert_eq!(
        (found.limit, rules_of(&found)),
        (Some(1), vec!["pipeline.cores", "pipeline.no-advice"])
    );
    let mut more = look(vec![a, b]);
    more.cores = 4;
    assert_eq!(rules_of(&judge(&more, None))[0], "pipeline.work");
}

/// One program with a source and a target of its own: gzip straight to tape, or tar.
#[test]
fn what_reads_works_and_writes_by_itself_does_one_at_a_time() {
    let mut slow = waits_for("/dev/nst0", stage("gzip -c", [6.0, 0.0, 0.0, 4.0]));
    slow.device_write_seconds = 4.0;
    let mut seen = look(vec![stage("tar cf - a", [1.0, 0.0, 9.0, 0.0]), slow]);
    let found = judge(&seen, Some("tar cf - a | gzip -c > /dev/nst0"));
    assert_eq!(
        (found.limit, rules_of(&found)),
        (Some(1), vec!["pipeline.work", "pipeline.in-turn", "pipeline.one-core"])
    );
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 6.0).abs() < 1e-9);
    assert_eq!(
        predicted.command.unwrap(),
        "tar cf - a | gzip -c | takeup pipe --block-size 512k > /dev/nst0"
    );
    // It waits for reads: no buffer after it changes that.
    seen.stages[1].device_write_seconds = 0.0;
    let found = judge(&seen, None);
    assert!(!rules_of(&found).contains(&"pipeline.in-turn"), "{found:?}");
}

/// The case of 1999: compressor and tape work in turn, and a single dd makes it worse.
fn in_turn() -> Look {
    look(vec![
        stage("tar cf - /srv", [2.0, 0.0, 8.0, 0.0]),
        stage("gzip -c", [6.0, 0.0, 4.0, 0.0]),
        writes("/dev/nst0", stage("dd obs=512k of=/dev/nst0", [0.2, 5.8, 0.0, 4.0])),
    ])
}

#[test]
fn stages_that_take_turns_are_told_what_overlap_would_bring() {
    let typed = "tar cf - /srv | gzip -c | dd obs=512k of=/dev/nst0";
    let found = judge(&in_turn(), Some(typed));
    assert_eq!(
        (found.limit, rules_of(&found)),
        (None, vec!["pipeline.turns", "pipeline.lone-blocker"])
    );
    assert!((found.longest_stage_seconds.unwrap() - 6.0).abs() < 1e-9);
    assert!((found.sum_seconds - 12.2).abs() < 1e-9);
    assert!((found.waiting_seconds - 4.0).abs() < 1e-9);
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 6.0).abs() < 1e-9);
    assert_eq!(
        predicted.command.unwrap(),
        "tar cf - /srv | gzip -c | takeup pipe --block-size 512k --overwrite --to /dev/nst0"
    );
    // A line that does not match the samples is not changed.
    let other = judge(&in_turn(), Some("tar cf - /srv | dd obs=512k of=/dev/nst0"));
    assert_eq!(other.predicted.unwrap().command, None);
}

#[test]
fn a_dd_that_only_waits_for_its_input_takes_no_turns() {
    let mut seen = in_turn();
    seen.absent = vec!["pigz"];
    seen.stages[2] = stage("dd obs=512k", [0.2, 9.7, 0.0, 0.1]);
    assert_eq!(rules_of(&judge(&seen, None)), ["pipeline.turns", "pipeline.no-advice"]);
}

#[test]
fn small_calls_and_small_pipes_are_told() {
    let mut slow = stage("dd bs=512", [9.9, 0.1, 0.0, 0.0]);
    (slow.bytes_out, slow.write_bytes_mean) = (Some(1 << 30), Some(512.0));
    let mut seen = look(vec![slow, stage("cat", [1.0, 9.0, 0.0, 0.0])]);
    let pipe = Pipe { from: 0, to: 1, capacity_bytes: 4096, ..Pipe::default() };
    seen.pipes.push(pipe);
    let found = rules_of(&judge(&seen, None));
    assert_eq!(found, ["pipeline.work", "pipeline.small-calls", "pipeline.small-pipe"]);
    seen.pipes[0].capacity_bytes = 65536;
    seen.stages[0].write_bytes_mean = Some(65536.0);
    assert_eq!(rules_of(&judge(&seen, None)), ["pipeline.work", "pipeline.no-advice"]);
    // A few small calls are not reported.
    seen.stages[0].write_bytes_mean = Some(512.0);
    seen.stages[0].bytes_out = Some(51_200);
    assert_eq!(rules_of(&judge(&seen, None)), ["pipeline.work", "pipeline.no-advice"]);
}

#[test]
fn a_blocking_factor_is_ignored_where_tar_compresses_into_its_archive() {
    let check = |words: &str, expected: bool| {
        let found = judge(&look(vec![stage(words, [9.9, 0.1, 0.0, 0.0])]), None);
        let is_told = rules_of(&found).contains(&"pipeline.tar-blocking");
        assert_eq!(is_told, expected, "{words}");
    };
    check("tar czf /dev/nst0 -b 128 /srv", true);
    check("tar cbfz 128 /dev/nst0 /srv", true);
    check("tar -c --zstd --blocking-factor=128 --file=/dev/nst0 /srv", true);
    check("tar -cb128 -I pigz -f /dev/nst0 /srv", true);
    // Into a pipe tar writes blocks itself.
    check("tar czf - -b 128 /srv", false);
    check("tar cf /dev/nst0 -b 128 /srv", false);
    check("tar czf /dev/nst0 /srv", false);
    check("gtar czf /dev/nst0 -b 128 /srv", false);
}

#[test]
fn what_was_too_short_or_not_seen_has_no_limit() {
    let mut seen = gzip_is_slow();
    (seen.seconds, seen.piped_seconds) = (0.2, 0.2);
    let found = judge(&seen, None);
    assert_eq!((found.limit, rules_of(&found)), (None, vec!["pipeline.short"]));
    let mut hidden = gzip_is_slow();
    hidden.stages[0].is_hidden = true;
    assert!(rules_of(&judge(&hidden, None)).contains(&"pipeline.not-seen"));
    assert_eq!(judge(&Look::default(), None).limit, None);
}

/// Programs beside the pipeline are not part of it, and the time before it does not change.
#[test]
fn only_the_pipeline_itself_can_be_made_faster() {
    let mut seen = gzip_is_slow();
    seen.seconds = 16.0;
    let found = judge(&seen, None);
    assert_eq!(found.limit, Some(1));
    assert!((found.predicted.unwrap().seconds - (5.055 + 6.0)).abs() < 1e-3);
}

#[test]
fn cores_that_others_have_are_not_free() {
    let mut seen = gzip_is_slow();
    seen.others_cores = 2.0;
    let found = judge(&seen, None);
    assert_eq!(
        (rules_of(&found), found.predicted),
        (vec!["pipeline.work", "pipeline.level"], None)
    );
}

#[test]
fn decompressing_and_what_was_told_its_threads_are_left_alone() {
    let told = |words: &str| {
        let mut seen = gzip_is_slow();
        seen.stages[1] = stage(words, [9.9, 0.1, 0.0, 0.0]);
        rules_of(&judge(&seen, None)).contains(&"pipeline.one-core")
    };
    for words in ["gzip -cd", "gzip --decompress", "xz -dc", "zstd -19 --single-thread", "xz -T2"] {
        assert!(!told(words), "{words}");
    }
    for words in ["gzip -9", "xz -6e", "zstd -19 -c", "/bin/bzip2"] {
        assert!(told(words), "{words}");
    }
}

/// tar czf: a program that the stage started does the work.
#[test]
fn who_works_inside_a_stage_is_named() {
    let mut seen = look(vec![stage("tar czf /srv.tar.gz /srv", [9.9, 0.1, 0.0, 0.0])]);
    seen.stages[0].works_most = Some("gzip".to_owned());
    let found = judge(&seen, Some("tar czf /srv.tar.gz /srv"));
    assert_eq!(rules_of(&found), ["pipeline.work", "pipeline.one-core"]);
    let sentence = found.findings[0].sentence();
    assert!(sentence.ends_with("it works for 99 % of the run, most of it in gzip"), "{sentence}");
    assert_eq!(found.predicted.unwrap().command, None);
    let action = found.findings[1].action.as_deref();
    assert_eq!(action, Some("compress with all cores: tar -I 'pigz'"));
}

/// Stages that take turns without waiting for a target get no proposal for the target.
#[test]
fn a_buffer_is_for_a_target_that_is_waited_for() {
    let mut seen = in_turn();
    seen.absent = vec!["pigz"];
    seen.stages[2] = stage("sort -rn", [4.0, 5.8, 0.0, 0.2]);
    assert_eq!(judge(&seen, None).predicted, None);
    // No buffer shortens the wait at the end until the medium has everything.
    let mut flushes = in_turn();
    flushes.stages[2].flush_seconds = 4.0;
    flushes.absent = vec!["pigz"];
    assert_eq!(judge(&flushes, None).predicted, None);
}

#[test]
fn whoever_is_outside_can_be_the_limit() {
    let found = judge(&look(vec![stage("cat r", [1.0, 0.0, 9.0, 0.0])]), None);
    assert_eq!(
        (found.limit, rules_of(&found)),
        (None, vec!["pipeline.outside", "pipeline.no-advice"])
    );
    let sentence = found.findings[0].sentence();
    assert!(sentence.contains("stage 1 (cat) waits for 90 % of the run"), "{sentence}");
    let starved = judge(&look(vec![stage("cat", [1.0, 9.0, 0.0, 0.0])]), None);
    assert_eq!(rules_of(&starved), ["pipeline.outside", "pipeline.no-advice"]);
    assert_eq!(judge(&gzip_is_slow(), None).limit, Some(1));
}

/// Each rule has a test above.
#[test]
fn every_rule_has_a_case() {
    let text = concat!(include_str!("tests.rs"), include_str!("tests/paces.rs"));
    let is_tested = |id: &str| text.matches(&format!("\"{id}\"")).count() > 0;
    for rule in rules::PIPELINE.rules {
        assert!(is_tested(rule.id), "{}", rule.id);
    }
}

fn on_a_drive(compresses: bool, stages: Vec<Stage>) -> Look {
    let name = "/dev/nst0".to_owned();
    let drive = Drive {
        name,
        highest_bytes_per_second: 10e6,
        lowest_bytes_per_second: None,
        stop_seconds: None,
        start_bytes: None,
        compresses,
        command_seconds: None,
        interface_bytes_per_second: None,
        synchronise_seconds: None,
    };
    Look { drive: Some(drive), ..look(stages) }
}

/// It reads for 5 s and writes 80 MB in 4 s, most of it into the drive's buffer.
fn in_turns() -> Stage {
    let tar = writes("/dev/nst0", stage("tar cf /dev/nst0 /srv", [0.4, 0.0, 0.0, 9.4]));
    Stage { device_write_seconds: 4.0, bytes_out: Some(80_000_000), ..tar }
}

#[test]
fn no_buffer_is_faster_than_the_drive_behind_it() {
    let typed = "tar cf - /srv > /dev/nst0";
    let of = |look: &Look| judge(look, Some(typed)).predicted.unwrap().seconds;
    assert!((of(&look(vec![in_turns()])) - 5.8).abs() < 0.01);
    assert!((of(&on_a_drive(false, vec![in_turns()])) - 8.0).abs() < 0.01);
    // The drive may make data smaller, but not data that are compressed already.
    assert!((of(&on_a_drive(true, vec![in_turns()])) - 5.8).abs() < 0.01);
    let gzip = stage("gzip -c", [2.0, 0.0, 7.8, 0.0]);
    assert!((of(&on_a_drive(true, vec![gzip, in_turns()])) - 8.0).abs() < 0.01);
    let said = judge(&on_a_drive(false, vec![in_turns()]), Some(typed));
    let caveat = said.findings[0].caveat.clone().unwrap();
    assert_eq!(caveat, "/dev/nst0 writes 10.0 MB/s at most: 8.00 s for the data");
}

/// The cost of a command is not published for any real drive: long waits may be commands or stops,
/// and the time without stops is not known.
#[test]
fn a_real_drive_that_is_waited_for_for_long_may_have_stopped() {
    let typed = "tar cf - /srv > /dev/nst0";
    let of = |bytes: u64| {
        let tar = Stage { device_write_seconds: 9.0, bytes_out: Some(bytes), ..in_turns() };
        judge(&on_a_drive(true, vec![tar]), Some(typed))
    };
    let near_its_rate = of(80_000_000);
    assert!(near_its_rate.longest_stage_seconds.is_some());
    let far_below = of(20_000_000);
    assert_eq!((far_below.longest_stage_seconds, far_below.predicted), (None, None));
    let texts = |it: &Finding| [it.sentence(), it.caveat.clone().unwrap_or_default()].concat();
    let all: String = far_below.findings.iter().map(texts).collect();
    assert!(all.contains("the highest rate of what stage 1 (tar) waits for is not known"), "{all}");
}

#[test]
fn what_the_drive_cannot_be_given_faster_is_not_proposed() {
    let tar = Stage { bytes_out: Some(96_000_000), ..in_turns() };
    assert_eq!(judge(&on_a_drive(false, vec![tar]), None).predicted, None);
}
