//! The time of a stage by itself, the next limit, and work that overlaps with nothing.

use super::super::*;
use super::{look, on_a_drive, rules_of, stage, waits_for, writes};
use crate::{Drive, Pipe};

const MIB: f64 = 1_048_576.0;

/// `head -c 80M noise | pv -qL 16m | gzip -1`: pv sends bursts into a full pipe and sleeps between
/// them; it catches up after it was blocked, so that no buffer saves time.
fn paced() -> Look {
    let mut pv = stage("pv -qL 16m", [0.05, 0.0, 2.4, 0.0]);
    (pv.other_seconds, pv.clock_seconds) = (2.5, 2.5);
    (pv.lifetime_seconds, pv.declared_bytes_per_second) = (4.95, Some(16.0 * MIB));
    pv.declared_by = Some("pv".to_owned());
    let mut head = stage("head -c 80M noise", [0.05, 0.0, 4.9, 0.0]);
    head.bytes_out = Some(80 << 20);
    let mut gzip = stage("gzip -1", [3.2, 1.75, 0.0, 0.0]);
    gzip.bytes_in = Some(80 << 20);
    look(vec![head, waits_for("the clock", pv), gzip])
}

#[test]
fn a_rate_that_is_held_is_the_limit_however_it_is_held() {
    let typed = "head -c 80M noise | pv -qL 16m | gzip -1";
    let found = judge(&paced(), Some(typed));
    assert_eq!((found.limit, rules_of(&found)), (Some(1), vec!["pipeline.pace"]));
    // The data take 5 s at that rate, and the run itself 4.95.
    assert!((found.longest_stage_seconds.unwrap() - 4.95).abs() < 1e-9, "{found:?}");
    let sentence = found.findings[0].sentence();
    let expected = "stage 2 (pv) is the limit: the data take 4.95 s at the rate limit of pv, \
                    16.8 MB/s";
    assert_eq!(sentence, expected);
    // Without the limit of pv, gzip is the next.
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 3.2).abs() < 1e-9, "{predicted:?}");
    assert_eq!(predicted.command.unwrap(), "head -c 80M noise | pv -q | gzip -1");
}

/// zstd has a thread each to read, compress and write. They run one after the other while zstd
/// starves, and at once while it has input.
#[test]
fn threads_that_starved_overlap_when_they_are_fed() {
    let mut seen = paced();
    seen.stages[2] = stage("zstd -9", [3.2, 1.75, 0.0, 0.0]);
    (seen.stages[2].bytes_in, seen.stages[2].threads) = (Some(80 << 20), 3);
    seen.stages[2].processor_seconds = 3.4;
    seen.stages[2].busiest_thread_seconds = Some(2.1);
    let predicted = judge(&seen, None).predicted.unwrap();
    assert!((predicted.seconds - 2.1).abs() < 1e-9, "{predicted:?}");
    // The busiest thread needs no more than all threads, and all need the cores for this long.
    seen.stages[2].busiest_thread_seconds = Some(1.0);
    let predicted = judge(&seen, None).predicted.unwrap();
    assert!((predicted.seconds - 1.75).abs() < 1e-9, "{predicted:?}");
}

/// A program that sleeps by an unknown rule may catch up, or not.
#[test]
fn the_floor_of_what_sleeps_and_waits_is_not_known() {
    let mut seen = paced();
    seen.stages[1].declared_bytes_per_second = None;
    let found = judge(&seen, None);
    assert_eq!(rules_of(&found), ["pipeline.turns", "pipeline.no-advice"]);
    assert_eq!((found.limit, found.longest_stage_seconds), (None, None));
    assert_eq!(found.predicted, None);
    let sentence = found.findings[0].sentence();
    assert!(sentence.contains("the time if all worked at once is not known"), "{sentence}");
    let why = found.findings[1].sentence();
    assert!(why.starts_with("no advice, because stage 2 (pv) waits for the clock"), "{why}");
    // If it never had to wait, its measured time is its own time.
    seen.stages[1].blocked_seconds = 0.1;
    assert!(judge(&seen, None).longest_stage_seconds.is_some());
}

/// `pv -L 12m | xz -0`: with all cores xz takes 2.7 s, and pv takes 4 s whatever xz does.
#[test]
fn a_forecast_goes_on_to_the_next_limit() {
    let mut seen = paced();
    seen.stages.remove(0);
    seen.stages[0].declared_bytes_per_second = Some(20.0 * MIB);
    seen.stages[1] = stage("xz -0", [4.9, 0.05, 0.0, 0.0]);
    seen.stages[1].bytes_in = Some(80 << 20);
    let found = judge(&seen, Some("pv -L 20m noise | xz -0"));
    assert_eq!(found.limit, Some(1));
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 4.0).abs() < 1e-9, "{predicted:?}");
    // A change that has no effect because of the next limit is not proposed.
    seen.stages[0].declared_bytes_per_second = Some(17.0 * MIB);
    assert_eq!(judge(&seen, None).predicted, None);
}

/// A compressor that divides its data into large pieces has few of them in little data.
#[test]
fn more_threads_than_pieces_bring_nothing() {
    let of = |mebibytes: u64| {
        let mut xz = stage("xz -6", [9.9, 0.1, 0.0, 0.0]);
        xz.bytes_in = Some(mebibytes << 20);
        judge(&look(vec![stage("cat x", [0.1, 0.0, 9.9, 0.0]), xz]), None).predicted
    };
    assert!(of(240).is_some());
    assert_eq!(of(20), None);
    // At level 15 zstd divides 30 MiB in two.
    let mut zstd = stage("zstd -15", [9.9, 0.1, 0.0, 0.0]);
    zstd.bytes_in = Some(30 << 20);
    let mut seen = look(vec![stage("cat x", [0.1, 0.0, 9.9, 0.0]), zstd]);
    assert!(judge(&seen, None).predicted.is_some());
    // At 110 MB/s more threads save nothing.
    seen.stages[1].bytes_in = Some(1_100_000_000);
    let found = judge(&seen, Some("cat x | zstd -15"));
    assert_eq!((found.limit, &found.predicted), (Some(1), &None));
    assert_eq!(rules_of(&found), ["pipeline.work", "pipeline.level"], "{found:?}");
}

/// `tar | gzip | dd of=drive`: what the drive does at its end overlaps with nothing.
#[test]
fn the_end_of_a_target_is_added() {
    let mut seen = look(vec![
        stage("tar cf - x", [0.5, 0.0, 9.5, 0.0]),
        stage("gzip -1", [4.7, 0.1, 2.2, 0.0]),
        writes("/dev/nst0", stage("dd obs=64k of=/dev/nst0", [0.1, 3.9, 0.0, 6.0])),
    ]);
    seen.stages[2].flush_seconds = 3.0;
    seen.absent = vec!["pigz"];
    let found = judge(&seen, None);
    assert_eq!(found.limit, None);
    assert!((found.longest_stage_seconds.unwrap() - 7.7).abs() < 1e-9, "{found:?}");
    assert!(found.findings[0].sentence().contains("it would take 7.70 s"), "{found:?}");
    assert!((found.predicted.unwrap().seconds - 7.7).abs() < 1e-9);
}

/// `cat x | zstd -9 | sha512sum - other`: the work of the last stage after its input has ended
/// overlaps with nothing.
#[test]
fn what_a_stage_does_after_its_input_is_added() {
    let mut seen = look(vec![
        stage("cat x", [0.1, 0.0, 5.9, 0.0]),
        stage("zstd -9", [6.0, 0.0, 0.2, 0.0]),
        stage("sha512sum - other", [4.0, 5.0, 0.0, 0.0]),
    ]);
    seen.stages[2].tail_seconds = 3.0;
    (seen.seconds, seen.piped_seconds) = (9.0, 9.0);
    let floor = |look: &Look| judge(look, None).longest_stage_seconds.unwrap();
    assert!((floor(&seen) - 9.0).abs() < 1e-9, "{}", floor(&seen));
    // Before that zstd is the bottleneck.
    assert_eq!(judge(&seen, None).limit, Some(1));
    // The end of a target is a part of it.
    seen.stages[2].flush_seconds = 1.0;
    assert!((floor(&seen) - 9.0).abs() < 1e-9, "{}", floor(&seen));
    // The other stages share the cores without it.
    (seen.seconds, seen.piped_seconds) = (11.0, 11.0);
    seen.stages[1] = stage("zstd -9 -T2", [6.0, 0.0, 0.2, 0.0]);
    (seen.stages[1].threads, seen.stages[1].processor_seconds) = (4, 11.9);
    assert!((floor(&seen) - 10.0).abs() < 1e-9, "{}", floor(&seen));
}

/// `cat slow | gzip -1`: while cat is blocked the kernel reads ahead, so that its wait for the disk
/// does not show how long the disk needs.
#[test]
fn the_pace_of_what_is_read_ahead_is_not_known() {
    let mut seen = look(vec![
        waits_for("/srv/slow", stage("cat /srv/slow", [0.2, 0.0, 7.3, 2.5])),
        stage("gzip -1", [9.8, 0.2, 0.0, 0.0]),
        stage("cat", [0.1, 9.9, 0.0, 0.0]),
    ]);
    let found = judge(&seen, Some("cat /srv/slow | gzip -1 | cat"));
    assert_eq!((found.limit, found.longest_stage_seconds), (Some(1), None), "{found:?}");
    assert_eq!(found.predicted, None, "what the disk gives a faster gzip is not known");
    assert_eq!(rules_of(&found), ["pipeline.work", "pipeline.one-core"]);
    // cat hardly waited for the disk: the disk is faster than gzip.
    seen.stages[0] = waits_for("/srv/slow", stage("cat /srv/slow", [0.2, 0.0, 9.6, 0.2]));
    assert!(judge(&seen, None).predicted.is_some());
    // cat was blocked so little that the samples show most of the disk's time.
    seen.stages[0] = waits_for("/srv/slow", stage("cat /srv/slow", [0.2, 0.0, 1.8, 8.0]));
    seen.stages[1] = stage("gzip -1", [8.0, 2.0, 0.0, 0.0]);
    let found = judge(&seen, None);
    assert!((found.longest_stage_seconds.unwrap() - 8.2).abs() < 1e-9, "{found:?}");
}

/// `gzip >drive`: with a program that collects its blocks gzip no longer waits for the drive.
#[test]
fn what_has_no_option_for_its_blocks_goes_on_while_another_writes() {
    let mut gzip = writes("/dev/nst0", stage("gzip -1", [4.0, 0.0, 0.0, 6.0]));
    (gzip.bytes_out, gzip.write_bytes_mean) = (Some(163_840_000), Some(16384.0));
    (gzip.write_calls, gzip.flush_seconds) = (10_000, 1.0);
    (gzip.device_write_seconds, gzip.tail_seconds) = (6.0, 1.0);
    let mut seen = small_writes(16384.0);
    seen.stages = vec![stage("cat x", [0.2, 0.0, 9.8, 0.0]), gzip];
    let found = judge(&seen, Some("cat x | gzip -1 >/dev/nst0"));
    let predicted = found.predicted.clone().unwrap();
    assert!(predicted.command.unwrap().contains("gzip -1 | takeup pipe --block-size 64k"));
    // It works for 4 s, and the filemark takes one.
    assert!((predicted.seconds - 5.0).abs() < 1e-9, "{found:?}");
}

/// pigz needs 0.8 of the work of gzip at level 1, and 0.9 at 6; less of data that do not shrink.
#[test]
fn the_work_of_pigz_is_that_of_its_level_and_of_the_data() {
    let seconds = |gzip: &str, kept: Option<u64>| {
        let mut seen = [stage("cat x", [0.0, 0.0, 9.9, 0.0]), stage(gzip, [9.9, 0.1, 0.0, 0.0])];
        (seen[0].bytes_out, seen[1].bytes_in) =
            (kept.map(|_| 1000 << 20), kept.map(|_| 1000 << 20));
        seen[1].bytes_out = kept.map(|kept| kept << 20);
        judge(&look(seen.to_vec()), None).predicted.unwrap().seconds
    };
    let check = |gzip: &str, kept: Option<u64>, work: f64| {
        let found = seconds(gzip, kept);
        assert!((found - (0.1 + work * 9.9 / 2.0)).abs() < 1e-9, "{gzip} {kept:?}: {found}");
    };
    check("gzip -1", None, 0.8);
    check("gzip", None, 0.9);
    check("gzip -1", Some(500), 0.8);
    check("gzip -1", Some(1000), 0.73);
    check("gzip -9", Some(1001), 0.75);
    check("gzip -6", Some(900), 0.825);
}

/// A pipe between two stages that work by turns.
#[test]
fn a_buffer_behind_what_works_in_bursts() {
    let mut bursts = stage("sh bursts", [4.0, 0.0, 2.0, 0.0]);
    (bursts.other_seconds, bursts.lifetime_seconds) = (4.0, 10.0);
    let gzip = stage("gzip -1", [6.0, 4.0, 0.0, 0.0]);
    let mut seen = look(vec![waits_for("the clock", bursts), gzip]);
    seen.stages[0].bytes_out = Some(200 << 20);
    let found = judge(&seen, Some("sh bursts | gzip -1 >x"));
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 8.0).abs() < 1e-9, "{predicted:?}");
    assert_eq!(predicted.command.unwrap(), "sh bursts | takeup pipe --ring 256M | gzip -1 >x");
    // More than any buffer holds.
    seen.absent = vec!["pigz"];
    seen.stages[0].bytes_out = Some(8 << 30);
    assert_eq!(judge(&seen, None).predicted, None);
}

/// Pauses of 4.5 s in 5.9: the bursts are the limit, and a buffer still saves the rest.
#[test]
fn a_buffer_behind_bursts_that_are_the_limit() {
    let mut bursts = stage("bash bursts", [0.1, 0.0, 1.3, 0.0]);
    (bursts.other_seconds, bursts.lifetime_seconds) = (4.5, 5.9);
    let gzip = stage("gzip -1", [1.35, 4.55, 0.0, 0.0]);
    let mut seen = look(vec![waits_for("the clock", bursts), gzip]);
    seen.stages[0].bytes_out = Some(60 << 20);
    seen.pipes = vec![Pipe { from: 0, to: 1, ..Pipe::default() }];
    let found = judge(&seen, Some("bash bursts | gzip -1 >x"));
    assert_eq!((found.limit, rules_of(&found)), (Some(0), vec!["pipeline.pace"]));
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - 4.6).abs() < 1e-9, "{predicted:?}");
    assert!(predicted.command.unwrap().contains("bursts | takeup pipe --ring 64M | gzip"));
}

/// Both work most of the time, and more cores for the longer one save more than a buffer.
#[test]
fn the_longest_of_two_that_take_turns_is_the_limit_where_it_can_be_shared() {
    let mut bursts = stage("bash bursts", [0.1, 0.0, 1.6, 0.0]);
    (bursts.other_seconds, bursts.lifetime_seconds) = (0.6, 2.3);
    let gzip = stage("gzip -1", [1.8, 0.5, 0.0, 0.0]);
    let mut seen = look(vec![waits_for("the clock", bursts), gzip]);
    seen.stages[0].bytes_out = Some(75 << 20);
    let found = judge(&seen, Some("bash bursts | gzip -1 >x"));
    assert_eq!(found.limit, Some(1));
    assert_eq!(rules_of(&found), ["pipeline.work", "pipeline.one-core"]);
    assert!(found.predicted.unwrap().command.unwrap().contains("pigz"));
    // It saves no more than gzip becomes faster: the pauses stay.
    let predicted = judge(&seen, None).predicted.unwrap();
    assert!((predicted.seconds - (2.3 - (1.8 - 0.8 * 1.8 / 2.0))).abs() < 1e-9, "{predicted:?}");
    // Without pigz only a buffer between the stages can help.
    seen.absent = vec!["pigz"];
    let found = judge(&seen, Some("bash bursts | gzip -1 >x"));
    assert_eq!((found.limit, rules_of(&found)), (None, vec!["pipeline.turns"]));
    assert!(found.predicted.unwrap().command.unwrap().contains("takeup pipe"));
}

/// `gzip | dd of=drive`: pigz gives the drive its data faster than it writes them.
#[test]
fn the_stage_that_can_be_shared_is_the_limit_if_that_brings_most() {
    let mut dd = writes("/dev/nst0", stage("dd obs=64k of=/dev/nst0", [0.1, 1.2, 0.0, 2.6]));
    (dd.bytes_out, dd.write_bytes_mean, dd.write_calls) = (Some(90 << 20), Some(65536.0), 1440);
    (dd.device_write_seconds, dd.flush_seconds) = (2.6, 0.3);
    let gzip = stage("gzip -1", [2.2, 0.1, 1.6, 0.0]);
    let mut seen = look(vec![stage("cat x", [0.1, 0.0, 3.8, 0.0]), gzip, dd]);
    seen.drive = small_writes(1.0).drive;
    let drive = seen.drive.as_mut().unwrap();
    (drive.highest_bytes_per_second, drive.interface_bytes_per_second) = (80e6, Some(320e6));
    drive.synchronise_seconds = Some(0.3);
    let typed = "cat x | gzip -1 | dd obs=64k of=/dev/nst0";
    let found = judge(&seen, Some(typed));
    assert_eq!((found.limit, rules_of(&found)[0]), (Some(1), "pipeline.work"), "{found:?}");
    let predicted = found.predicted.unwrap();
    assert_eq!(predicted.command.unwrap(), typed.replace("gzip", "pigz"));
    // 94.4 MB at 80 MB/s and the filemark.
    assert!((predicted.seconds - 1.48).abs() < 1e-2, "{}", predicted.seconds);
}

/// gzip works for a third of the run, and pigz would give a drive that stops now and then its data
/// faster than it writes them: no bottleneck, and still the best change.
#[test]
fn more_cores_for_what_is_no_limit_may_bring_most() {
    let mut dd = writes("/dev/nst0", stage("dd obs=64k of=/dev/nst0", [0.2, 1.2, 0.0, 4.6]));
    (dd.bytes_out, dd.write_bytes_mean, dd.write_calls) = (Some(88 << 20), Some(65536.0), 1408);
    (dd.device_write_seconds, dd.flush_seconds) = (4.6, 0.4);
    let gzip = stage("gzip -1", [2.1, 0.1, 3.8, 0.0]);
    let mut seen = look(vec![stage("cat x", [0.1, 0.0, 5.9, 0.0]), gzip, dd]);
    seen.drive = small_writes(1.0).drive;
    let drive = seen.drive.as_mut().unwrap();
    (drive.highest_bytes_per_second, drive.interface_bytes_per_second) = (48e6, Some(190e6));
    (drive.lowest_bytes_per_second, drive.stop_seconds) = (Some(48e6), Some(0.4));
    drive.synchronise_seconds = Some(0.3);
    let typed = "cat x | gzip -1 | dd obs=64k of=/dev/nst0";
    let found = judge(&seen, Some(typed));
    assert_eq!((found.limit, rules_of(&found)[0]), (Some(2), "pipeline.device"), "{found:?}");
    let predicted = found.predicted.unwrap();
    let buffered = found.longest_stage_seconds.unwrap();
    assert!(predicted.seconds < 0.97 * buffered, "{predicted:?} {buffered}");
    assert_eq!(predicted.command.unwrap(), typed.replace("gzip", "pigz"));
}

/// `gzip | dd of=drive`: dd waits for the drive, which runs out of data at times. The drive's time
/// for the writes is known, and with a buffer it needs no more.
#[test]
fn a_drive_with_a_buffer_in_front_takes_what_its_commands_take() {
    let mut dd = writes("/dev/nst0", stage("dd obs=64k of=/dev/nst0", [0.1, 0.8, 0.0, 2.1]));
    (dd.bytes_out, dd.write_bytes_mean, dd.write_calls) = (Some(46 << 20), Some(65536.0), 736);
    (dd.device_write_seconds, dd.flush_seconds) = (2.1, 0.3);
    let gzip = stage("gzip -1", [1.1, 0.1, 1.8, 0.0]);
    let mut seen = look(vec![stage("cat x", [0.1, 0.0, 2.9, 0.0]), gzip, dd]);
    seen.drive = small_writes(1.0).drive;
    let drive = seen.drive.as_mut().unwrap();
    (drive.highest_bytes_per_second, drive.interface_bytes_per_second) = (39e6, Some(156e6));
    drive.synchronise_seconds = Some(0.29);
    let typed = "cat x | gzip -1 | dd obs=64k of=/dev/nst0";
    let found = judge(&seen, Some(typed));
    // dd waits for it for 70 % of the run.
    assert_eq!(found.limit, Some(2), "{found:?}");
    // 48.2 MB at 39 MB/s and a filemark.
    assert!((found.predicted.clone().unwrap().seconds - 1.527).abs() < 1e-2, "{found:?}");
    // A drive that starts with a full buffer collects that first, at the pace of gzip.
    seen.drive.as_mut().unwrap().start_bytes = Some(f64::from(16 << 20));
    let floor = judge(&seen, Some(typed)).longest_stage_seconds.unwrap();
    let expected = 1.1 * 16.0 / 46.0 + f64::from(46 << 20) / 39e6 + 0.29;
    assert!((floor - expected).abs() < 1e-9, "{floor} {expected}");
    seen.drive.as_mut().unwrap().start_bytes = None;
    // dd waits for less than two thirds of the run: the stages take turns.
    let mut turns = seen.clone();
    (turns.stages[2].device_seconds, turns.stages[2].working_seconds) = (1.9, 0.3);
    let found = judge(&turns, Some(typed));
    assert_eq!((found.limit, rules_of(&found)[0]), (None, "pipeline.turns"), "{found:?}");
    // Except with a drive that writes for nearly all of it: 2.29 s and the filemark, of 3 s.
    turns.drive.as_mut().unwrap().highest_bytes_per_second = 21e6;
    let found = judge(&turns, Some(typed));
    assert_eq!((found.limit, rules_of(&found)[0]), (Some(2), "pipeline.device"), "{found:?}");
    // A drive that gzip cannot keep going stops with or without a buffer: at 80 MB/s it writes the
    // data in 0.6 s of the 1.1 s, and half of what it collects in a stop of 0.4 s at the end.
    let drive = seen.drive.as_mut().unwrap();
    drive.highest_bytes_per_second = 80e6;
    (drive.lowest_bytes_per_second, drive.stop_seconds) = (Some(80e6), Some(0.4));
    let floor = judge(&seen, None).longest_stage_seconds.unwrap();
    let medium = (46 << 20) as f64 / 80e6;
    let expected = 1.1 + 0.29 + 0.2 * (1.0 + medium / 1.1);
    assert!((floor - expected).abs() < 1e-9, "{floor} {expected}");
}

/// A drive that stops for want of data keeps going if it gets them faster than it writes them: pigz
/// saves more than a buffer, with which gzip is still too slow.
#[test]
fn what_feeds_a_drive_that_stops_may_keep_it_going() {
    let mut dd = writes("/dev/nst0", stage("dd obs=256k of=/dev/nst0", [0.1, 1.6, 0.0, 11.4]));
    (dd.bytes_out, dd.write_bytes_mean, dd.write_calls) = (Some(92_000_000), Some(262e3), 351);
    (dd.device_write_seconds, dd.flush_seconds) = (11.4, 0.4);
    let gzip = stage("gzip -1", [2.1, 0.1, 10.9, 0.0]);
    let mut seen = look(vec![stage("cat x", [0.1, 0.0, 13.0, 0.0]), gzip, dd]);
    seen.drive = small_writes(1.0).drive;
    let drive = seen.drive.as_mut().unwrap();
    (drive.highest_bytes_per_second, drive.interface_bytes_per_second) = (64e6, Some(256e6));
    (drive.lowest_bytes_per_second, drive.stop_seconds) = (Some(64e6), Some(0.366));
    (drive.command_seconds, drive.synchronise_seconds) = (Some(84e-6), Some(0.366));
    let typed = "cat x | gzip -1 | dd obs=256k of=/dev/nst0";
    let found = judge(&seen, Some(typed));
    let expected = ["pipeline.device", "pipeline.drive-stops", "pipeline.one-core"];
    assert_eq!(rules_of(&found)[..3], expected, "{found:?}");
    let predicted = found.predicted.unwrap();
    assert_eq!(predicted.command.unwrap(), typed.replace("gzip", "pigz"));
    // 92 MB at 64 MB/s and a filemark.
    assert!((predicted.seconds - 1.8035).abs() < 1e-9, "{}", predicted.seconds);
    // If the drive writes them in 0.77 s, pigz is too slow as well, and a buffer is proposed.
    seen.drive.as_mut().unwrap().highest_bytes_per_second = 120e6;
    let predicted = judge(&seen, Some(typed)).predicted.unwrap();
    assert!(predicted.command.unwrap().contains("takeup pipe"));
}

/// A drive that stops and starts makes its writer wait much longer than the data take: how much of
/// that a buffer saves is not known.
#[test]
fn a_drive_that_stops_has_no_floor() {
    let mut seen = small_writes(65536.0);
    let gzip = stage("gzip -1", [1.8, 0.0, 8.2, 0.0]);
    seen.stages.insert(0, stage("cat x", [0.1, 0.0, 9.9, 0.0]));
    seen.stages.insert(1, gzip);
    seen.stages[2] = Stage { starved_seconds: 2.0, ..seen.stages[2].clone() };
    seen.stages[2].device_write_seconds = 7.5;
    (seen.stages[2].device_seconds, seen.stages[2].working_seconds) = (7.6, 0.4);
    let drive = seen.drive.as_mut().unwrap();
    (drive.highest_bytes_per_second, drive.command_seconds) = (300e6, Some(50e-6));
    let typed = "cat x | gzip -1 | dd obs=64k of=/dev/nst0";
    let found = judge(&seen, Some(typed));
    assert_eq!(rules_of(&found)[..2], ["pipeline.device", "pipeline.drive-stops"], "{found:?}");
    assert_eq!((found.longest_stage_seconds, &found.predicted), (None, &None));
    let action = found.findings[1].action.clone().unwrap();
    assert!(action.ends_with("| takeup pipe --block-size 64k --overwrite --to /dev/nst0"));
    // With a known time of a stop: gzip delivers 72.8 MB in 1.8 s, the drive writes them in 0.24 s,
    // and writes half of what it collects in a stop at the end.
    let drive = seen.drive.as_mut().unwrap();
    (drive.lowest_bytes_per_second, drive.stop_seconds) = (Some(300e6), Some(2.0));
    seen.stages[2].bytes_out = Some(72_800_000);
    let predicted = judge(&seen, Some(typed)).predicted.unwrap();
    let expected = 1.8 + 1.0 + 2.0 / 2.0 * (1.0 + 72.8 / 300.0 / 1.8);
    assert!((predicted.seconds - expected).abs() < 1e-9, "{predicted:?}");
    seen.drive.as_mut().unwrap().lowest_bytes_per_second = Some(30e6);
    let predicted = judge(&seen, Some(typed)).predicted.unwrap();
    assert!((predicted.seconds - 2.8).abs() < 1e-9, "{predicted:?}");
    // Waits within the drive's own time for the data are no stops.
    seen.stages[2].bytes_out = Some(300_000_000);
    seen.drive.as_mut().unwrap().highest_bytes_per_second = 40e6;
    assert!(!rules_of(&judge(&seen, None)).contains(&"pipeline.drive-stops"));
}

fn small_writes(bytes_each: f64) -> Look {
    let mut tar = writes("/dev/nst0", stage("tar -b 20 -cf /dev/nst0 x", [0.5, 0.0, 0.0, 9.5]));
    tar.device_write_seconds = 9.0;
    (tar.bytes_out, tar.write_bytes_mean) = (Some(300_000_000), Some(bytes_each));
    (tar.bytes_in, tar.read_bytes_mean) = (tar.bytes_out, tar.write_bytes_mean);
    tar.system_seconds = 0.8;
    tar.write_calls = (300_000_000.0 / bytes_each) as u64;
    let drive = Drive {
        name: "/dev/nst0".to_owned(),
        highest_bytes_per_second: 150e6,
        lowest_bytes_per_second: None,
        stop_seconds: None,
        start_bytes: None,
        compresses: false,
        command_seconds: Some(200e-6),
        interface_bytes_per_second: Some(600e6),
        synchronise_seconds: Some(1.0),
    };
    Look { drive: Some(drive), ..look(vec![tar]) }
}

/// Blocks of 10 KiB, each of which costs as much as a block of 64 KiB.
#[test]
fn small_writes_to_a_tape_are_told_and_what_larger_ones_save() {
    let typed = "tar -b 20 -cf /dev/nst0 x";
    let found = judge(&small_writes(10240.0), Some(typed));
    assert_eq!(rules_of(&found), ["pipeline.device", "pipeline.small-tape-writes"]);
    let finding = &found.findings[1];
    let expected = "stage 1 (tar) writes 10 KiB to /dev/nst0 per call: 307 us each, 9.00 s in \
                    all: each write costs a fixed time beside its bytes";
    assert_eq!(finding.sentence(), expected);
    // 29,296 writes of 290 us beside their bytes, with as many reads, become 4,578. The kernel
    // takes 0.8 s for all calls, of which 0.15 s are copying: 11.1 us for each.
    let predicted = found.predicted.unwrap();
    assert!((predicted.seconds - (10.0 - 24_718.0 * (290e-6 + 22.2e-6))).abs() < 0.01);
    assert_eq!(predicted.command.unwrap(), "tar -b 128 -cf /dev/nst0 x");
    assert!(finding.gain.as_ref().unwrap().starts_with("-b 128 saves about 7.7"), "{finding:?}");
    // A drive no longer stops if larger writes come faster than it writes: 300 MB at 150 MB/s, and
    // a filemark. If they do not, the time is not known.
    let mut stops = small_writes(10240.0);
    stops.drive.as_mut().unwrap().command_seconds = Some(20e-6);
    (stops.seconds, stops.piped_seconds) = (40.0, 40.0);
    let tar = &mut stops.stages[0];
    (tar.device_seconds, tar.device_write_seconds) = (39.5, 39.0);
    tar.lifetime_seconds = 40.0;
    let predicted = judge(&stops, Some(typed)).predicted.unwrap();
    assert!((predicted.seconds - 3.0).abs() < 1e-9, "{predicted:?}");
    stops.drive.as_mut().unwrap().interface_bytes_per_second = Some(160e6);
    let found = judge(&stops, Some(typed));
    let change = found.predicted.as_ref().unwrap().change.as_str();
    assert_eq!(change, "put a buffer in front of the drive");
    let action = found.findings[1].action.clone().unwrap();
    assert!(action.ends_with("the drive stops for want of data, and may no longer do so then"));
    // Large writes are not reported.
    let large = judge(&small_writes(65536.0), Some(typed));
    assert!(!rules_of(&large).contains(&"pipeline.small-tape-writes"), "{large:?}");
    // A drive at its highest rate gains nothing by larger writes.
    let mut busy = small_writes(10240.0);
    busy.drive.as_mut().unwrap().highest_bytes_per_second = 31e6;
    assert_eq!(judge(&busy, Some(typed)).predicted, None);
    // The cost of a write to a real drive is not known.
    let mut real = small_writes(10240.0);
    real.drive = None;
    let found = judge(&real, Some(typed));
    assert_eq!(found.predicted, None);
    let action = found.findings[1].action.clone().unwrap();
    assert!(action.starts_with("write 64 KiB per call: -b 128; how much it saves"), "{action}");
}

/// Every judgement ends with advice, or with the reason why there is none.
#[test]
fn there_is_advice_or_a_reason() {
    let reason = |look: &Look| {
        let found = judge(look, None);
        let last = found.findings.last().unwrap().clone();
        (last.rule, last.action.is_some(), last.what)
    };
    let mut seen =
        look(vec![stage("cat x", [1.0, 0.0, 9.0, 0.0]), stage("gzip -1", [9.9, 0.1, 0.0, 0.0])]);
    seen.absent = vec!["pigz"];
    let (rule, has_action, what) = reason(&seen);
    assert_eq!((&*rule, has_action), ("pipeline.no-advice", false));
    let expected = "no advice, because no installed program is known to do the work of stage 2 \
                    (gzip) faster";
    assert_eq!(what, expected);
    seen.absent.clear();
    seen.others_cores = 1.0;
    let expected = "no advice, because other programs use 1.0 of 2 cores, which leaves 0.0 for \
                    more threads of stage 2 (gzip)";
    assert_eq!(reason(&seen).2, expected);
    // A lower level needs less work.
    seen.stages[1] = stage("gzip -9", [9.9, 0.1, 0.0, 0.0]);
    assert_eq!(reason(&seen).0, "pipeline.level");
    let slow = waits_for("/srv/x", stage("cat /srv/x", [0.2, 0.3, 0.0, 9.5]));
    let reads = look(vec![slow, stage("cat", [0.2, 9.8, 0.0, 0.0])]);
    let (rule, has_action, _) = reason(&reads);
    assert_eq!((&*rule, has_action), ("pipeline.reads", true));
    let drive = on_a_drive(false, vec![writes("/dev/nst0", stage("dd", [0.1, 0.0, 0.0, 9.9]))]);
    let mut drive = drive;
    drive.stages[0].bytes_out = Some(98_000_000);
    let expected = "no advice, because the drive is at its highest rate, 10.0 MB/s";
    assert_eq!(reason(&drive).2, expected);
}

/// A replacement for bzip2 is proposed only if it is installed.
#[test]
fn what_is_not_installed_is_not_proposed() {
    let mut seen =
        look(vec![stage("cat x", [1.0, 0.0, 9.0, 0.0]), stage("bzip2 -c", [9.9, 0.1, 0.0, 0.0])]);
    let of = |seen: &Look| judge(seen, Some("cat x | bzip2 -c")).predicted.map(|it| it.change);
    assert_eq!(of(&seen).unwrap(), "compress with lbzip2");
    seen.absent = vec!["lbzip2"];
    assert_eq!(of(&seen).unwrap(), "compress with pbzip2");
    seen.absent = vec!["lbzip2", "pbzip2"];
    assert_eq!(of(&seen), None);
}
