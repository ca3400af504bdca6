//! What the numbers of a tape drive mean: each rule is a function of an interval.
//!
//! The kernel counts calls and their times, but nothing about the medium. That a drive stops and
//! starts is inferred from its low rate while it has a command.

use base::finding::{Certainty, Finding, Unit};

use super::{TapeDirection, TapeInterval};
use crate::rules;

/// Minimum number of calls for a finding about them.
const CALLS_MIN: f64 = 20.0;
/// Blocks below this size are small.
const SMALL_KIB: f64 = 64.0;
/// The drive waits for its host if it has a command for less of the time, in per cent.
const WAITING_PERCENT: f64 = 80.0;
/// The drive is busy all the time from this share on.
const ALWAYS_PERCENT: f64 = 95.0;
/// The drive is busy with data if reads and writes take this share of the time.
const DATA_PERCENT: f64 = 75.0;
/// Other commands are reported from this share of the time on.
const OTHERS_PERCENT: f64 = 25.0;
/// The rate is judged if the drive moves data for this share of the time.
const MOVING_PERCENT: f64 = 50.0;
/// No drive streams this slowly, in bytes per second.
const STREAMING_LEAST: f64 = 15e6;
/// Share of short reads for a finding.
const SHORT_SHARE: f64 = 0.5;
/// A command counts as long after this many intervals
const WAITS_INTERVALS: u32 = 2;
/// and this many seconds.
const WAITS_SECONDS: f64 = 10.0;

/// All findings for a drive in an interval of this many seconds.
pub(super) fn findings(drive: &TapeInterval, seconds: f64) -> Vec<Finding> {
    if drive.is_new {
        let what = "the drive appeared, or its counters restarted";
        let finding = Finding::new(&rules::TAPE_CAME, Certainty::Told, what);
        return vec![finding.because("this interval has no numbers")];
    }
    let mut findings: Vec<Finding> = waits(drive).into_iter().collect();
    let calls = (drive.read.per_second + drive.write.per_second) * seconds;
    findings.extend(other_commands(drive));
    if calls >= CALLS_MIN {
        findings.extend(small_blocks(drive));
        findings.extend(short(drive, seconds));
        findings.extend(pace(drive));
    }
    findings
}

/// The share of the time in reads and writes, in per cent.
fn data_percent(drive: &TapeInterval) -> f64 {
    let of = |it: &TapeDirection| it.per_second * it.await_ms / 10.0;
    of(&drive.read) + of(&drive.write)
}

fn kib_per_second(drive: &TapeInterval) -> f64 {
    drive.read.kib_per_second + drive.write.kib_per_second
}

/// The mean size of a block, of both directions.
fn block_kib(drive: &TapeInterval) -> f64 {
    kib_per_second(drive) / (drive.read.per_second + drive.write.per_second)
}

fn small_blocks(drive: &TapeInterval) -> Option<Finding> {
    let size = block_kib(drive);
    (size < SMALL_KIB && size > 0.0).then(|| {
        let what = format!("small blocks: {size:.1} KiB per call");
        let why = "each call is one command with a fixed cost";
        Finding::new(&rules::TAPE_SMALL_BLOCKS, Certainty::Measured, what)
            .because(why)
            .with_number("block", size * 1024.0, Unit::Bytes)
            .with_action("run `takeup bench tape` to find a sufficient block size")
    })
}

fn short(drive: &TapeInterval, seconds: f64) -> Option<Finding> {
    let reads = drive.read.per_second * seconds;
    let short = drive.residuals as f64;
    (reads >= CALLS_MIN && short >= SHORT_SHARE * reads).then(|| {
        let what = format!("{short:.0} of {reads:.0} reads were shorter than requested");
        let why = "blocks on the medium are shorter than the program's buffer";
        Finding::new(&rules::TAPE_SHORT, Certainty::Told, what).because(why).with_number(
            "short",
            short / reads,
            Unit::Share,
        )
    })
}

fn other_commands(drive: &TapeInterval) -> Option<Finding> {
    let others = drive.busy_percent - data_percent(drive);
    (drive.others_per_second > 0.0 && others >= OTHERS_PERCENT).then(|| {
        let what = format!("{others:.0} % of the time in commands that move no data");
        let why = "such as filemarks (which wait for the medium), winding and loading";
        Finding::new(&rules::TAPE_OTHER_COMMANDS, Certainty::Measured, what)
            .because(why)
            .with_number("time", others / 100.0, Unit::Share)
            .with_action("write fewer and longer files to tape, for fewer filemarks")
    })
}

/// At most one finding: whether the drive or the host waits.
fn pace(drive: &TapeInterval) -> Option<Finding> {
    let data = data_percent(drive);
    let while_moving = kib_per_second(drive) * 1024.0 / (data / 100.0).max(1e-9);
    let rate = base::format::rate(kib_per_second(drive) * 1024.0);
    if data >= MOVING_PERCENT && block_kib(drive) >= SMALL_KIB && while_moving < STREAMING_LEAST {
        let moving = base::format::rate(while_moving);
        let what = format!("the drive stops and starts: {moving} while it has a command");
        let why = "no drive streams that slowly";
        let finding = Finding::new(&rules::TAPE_STOPS, Certainty::Inferred, what).because(why);
        return Some(finding.with_number("rate", while_moving, Unit::BytesPerSecond));
    }
    let busy = drive.busy_percent;
    if busy < WAITING_PERCENT {
        let idle = 100.0 - busy;
        let what = format!("the drive waits for its host: no command for {idle:.0} % of the time");
        let why = format!("it gets {rate}; below its lowest streaming speed the tape stops");
        let finding = Finding::new(&rules::TAPE_HOST_SLOWER, Certainty::Measured, what);
        let finding = finding.because(why).with_number("busy", busy / 100.0, Unit::Share);
        return Some(
            finding.with_action("put `takeup pipe` before it, which fills a buffer first"),
        );
    }
    (busy >= ALWAYS_PERCENT && data >= DATA_PERCENT).then(|| {
        let what = format!("the host waits for the drive: {rate}");
        let why = "the drive has a command all the time, and takes one at a time";
        Finding::new(&rules::TAPE_BUSY, Certainty::Measured, what).because(why).with_number(
            "busy",
            busy / 100.0,
            Unit::Share,
        )
    })
}

fn waits(drive: &TapeInterval) -> Option<Finding> {
    let stuck = drive.stuck;
    (stuck.intervals >= WAITS_INTERVALS && stuck.seconds >= WAITS_SECONDS).then(|| {
        let time = base::format::duration(stuck.seconds);
        let what = format!("a command is in progress, and none has ended for {time}");
        let why = "it winds, loads or erases, which takes minutes, or it hangs";
        Finding::new(&rules::TAPE_WAITS, Certainty::Measured, what)
            .because(why)
            .with_number("without an end", stuck.seconds, Unit::Seconds)
            .with_action("check the kernel's log (dmesg) for a command that hangs")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::Reading;
    use crate::intervals::IntervalMaker;
    use crate::tapes::TapeCounters;

    const SECONDS: f64 = 10.0;

    /// Load of a drive in ten seconds.
    #[derive(Clone, Copy, Default)]
    struct Load {
        /// Calls, KiB of one, milliseconds of one.
        read: (u64, u64, f64),
        write: (u64, u64, f64),
        /// Other commands, and seconds in all of them.
        others: (u64, f64),
        short: u64,
    }

    fn counters(load: Load, times: u64) -> TapeCounters {
        let ns = |(calls, _, ms): (u64, u64, f64)| (calls as f64 * ms * 1e6) as u64;
        let (read_ns, write_ns) = (ns(load.read), ns(load.write));
        TapeCounters {
            read_cnt: times * load.read.0,
            read_byte_cnt: times * load.read.0 * load.read.1 * 1024,
            read_ns: times * read_ns,
            write_cnt: times * load.write.0,
            write_byte_cnt: times * load.write.0 * load.write.1 * 1024,
            write_ns: times * write_ns,
            other_cnt: times * load.others.0,
            io_ns: times * (read_ns + write_ns + (load.others.1 * 1e9) as u64),
            resid_cnt: times * load.short,
            in_flight: 0,
        }
    }

    fn reading(at: u64, drive: TapeCounters) -> Reading {
        Reading {
            at_seconds: at as f64 * SECONDS,
            tapes: BTreeMap::from([("st0".to_owned(), drive)]),
            ..Reading::default()
        }
    }

    fn ids(load: Load) -> Vec<&'static str> {
        let mut watch = IntervalMaker::default();
        assert!(watch.next(reading(0, counters(load, 1))).is_none());
        let interval = watch.next(reading(1, counters(load, 2))).unwrap();
        interval.tapes[0]
            .findings
            .iter()
            .map(|it| it.rule.within(&rules::TAPE).unwrap().id)
            .collect()
    }

    /// 4000 blocks of 256 KiB are 105 MB/s.
    fn writes(calls: u64, kib: u64, ms: f64) -> Load {
        Load { write: (calls, kib, ms), ..Load::default() }
    }

    #[test]
    fn each_rule_speaks_where_it_must_and_nowhere_else() {
        let streaming = writes(4000, 256, 2.4);
        let reads = |short| Load { read: (4000, 256, 2.4), short, ..Load::default() };
        let with_others = |seconds| Load { others: (3, seconds), ..writes(2000, 256, 2.4) };
        let cases = [
            ("tape.small-blocks", writes(9000, 10, 1.0), true),
            ("tape.small-blocks", writes(9000, 64, 1.0), false),
            ("tape.small-blocks", writes(19, 10, 1.0), false),
            ("tape.host-slower", writes(4000, 256, 1.9), true),
            ("tape.host-slower", writes(4000, 256, 2.1), false),
            ("tape.host-slower", Load::default(), false),
            ("tape.busy", streaming, true),
            ("tape.busy", writes(4000, 256, 2.3), false),
            ("tape.busy", with_others(5.0), false),
            ("tape.other-commands", with_others(3.0), true),
            ("tape.other-commands", with_others(2.0), false),
            ("tape.other-commands", streaming, false),
            // 52 MB in 9 s of commands, and 210 MB in the same time.
            ("tape.stops", writes(200, 256, 45.0), true),
            ("tape.stops", writes(800, 256, 11.25), false),
            // The host is slow, and the drive is not: 52 MB in a second.
            ("tape.stops", writes(200, 256, 5.0), false),
            // Small blocks.
            ("tape.stops", writes(9000, 10, 1.0), false),
            ("tape.short", reads(2000), true),
            ("tape.short", reads(1999), false),
            ("tape.short", Load { short: 4000, ..streaming }, false),
        ];
        for (rule, load, speaks) in cases {
            let found = ids(load);
            assert_eq!(found.contains(&rule), speaks, "{rule} in {found:?}");
        }
        let of = |speaks: bool| -> BTreeSet<&str> {
            cases.iter().filter(|case| case.2 == speaks).map(|case| case.0).collect()
        };
        // These two need more than one interval, and have their own test.
        let own_tests = ["tape.waits", "tape.came"];
        for rule in rules::TAPE.rules {
            let has_both = of(true).contains(rule.id) && of(false).contains(rule.id);
            assert!(has_both || own_tests.contains(&rule.id), "{}", rule.id);
        }
        assert_eq!(ids(Load::default()), [""; 0]);
    }

    #[test]
    fn a_command_that_does_not_end_is_told_and_one_that_ends_is_not() {
        let winding = TapeCounters { other_cnt: 7, in_flight: 1, ..TapeCounters::default() };
        let ended = TapeCounters { other_cnt: 8, ..winding };
        let mut watch = IntervalMaker::default();
        let mut told = |at, drive| {
            let interval = watch.next(reading(at, drive));
            let findings = interval.map(|it| it.tapes[0].findings.clone()).unwrap_or_default();
            findings.iter().map(Finding::sentence).collect::<Vec<_>>()
        };
        assert_eq!(told(0, winding), [""; 0]);
        // It may have begun a moment ago.
        assert_eq!(told(1, winding), [""; 0]);
        assert_eq!(
            told(2, winding),
            ["a command is in progress, and none has ended for 20.0 s: it winds, loads or \
                 erases, which takes minutes, or it hangs"]
        );
        assert_eq!(told(3, ended), [""; 0]);
        // It counts from 0 again.
        let anew = TapeCounters::default();
        assert_eq!(
            told(4, anew),
            ["the drive appeared, or its counters restarted: this interval has no numbers"]
        );
        assert_eq!(told(5, anew), [""; 0]);
    }
}
