//! The targets of the product, and whether runs reach them.
//!
//! Every comparison is a ratio formed within a round; the bound of a target has its direction. The
//! targets are defined here once, in the words of the table that users see.

use std::collections::BTreeMap;

use statistics::geometric_mean;

use crate::contenders::RING_BYTES;
use crate::estimate::Estimate;
use crate::record::Run;

const MEBIBYTE: f64 = (1u64 << 20) as f64;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seconds of the other program over seconds of the product.
    Speed,
    /// Seconds of the product over seconds of the other program.
    Time,
    /// Output bytes of the product over those of the other program.
    OutputSize,
    /// Processor time of the product's whole pipeline over that of the other pipeline.
    Cpu,
    /// Processor time of the product, in seconds.
    CpuSeconds,
    /// Processor time of the product alone over that of the other program alone.
    ProgramCpu,
    /// Largest resident set of the product beyond the ring, in MiB.
    MemoryBeyondRing,
    /// Seconds per file, largest over smallest scale that differ most.
    ProportionPerFile,
    /// Seconds per byte, likewise.
    ProportionPerByte,
    /// Seconds of the product on a drive over those of the slower of source and drive.
    OverSourceAndDrive,
    /// Back-hitches of the product.
    BackHitches,
    /// Back-hitches of the product over those of the other program.
    BackHitchRatio,
    /// Relative difference of the other program's back-hitches from the model's; one back-hitch
    /// more or less does not count.
    BackHitchesOffModel,
    /// Relative difference of the rate of a drive from its nominal one.
    RateOffNominal,
}

/// The good side of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The number or more.
    AtLeast(f64),
    /// The number or less.
    AtMost(f64),
}

/// One line of the table of targets.
#[derive(Clone, Copy, Debug)]
pub struct PeerTarget {
    /// Name of the work; the start of the name for a row over several works.
    pub work: &'static str,
    /// The contender to compare with; the floor and fio go by the first word of their names.
    pub against: &'static str,
    /// The compared quantity.
    pub measure: Measure,
    /// The requirement.
    pub bound: Bound,
}

/// Whether a target is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetVerdict {
    /// The whole interval is on the good side.
    Reached,
    /// The typical value is on the good side, but a part of the interval is not, or there is none.
    TypicalOnly,
    /// The typical value is on the bad side.
    Missed,
    /// There are no runs.
    NotMeasured,
}

/// The targets, in the order of the works.
pub const TARGETS: &[PeerTarget] = &[
    target("small-cold", "tar", Measure::Speed, Bound::AtLeast(3.5)),
    target("small-cold", "floor", Measure::Time, Bound::AtMost(1.5)),
    target("small-cold-null", "floor", Measure::Time, Bound::AtMost(1.3)),
    target("small-warm", "tar", Measure::Speed, Bound::AtLeast(1.3)),
    target("small-warm-null", "floor", Measure::Time, Bound::AtMost(1.9)),
    target("small-warm-null", "itself", Measure::CpuSeconds, Bound::AtMost(1.0)),
    target("large-cold", "tar", Measure::Speed, Bound::AtLeast(1.8)),
    target("large-cold", "fio", Measure::Speed, Bound::AtLeast(0.9)),
    target("large-cold-null", "fio", Measure::Speed, Bound::AtLeast(0.95)),
    target("large-warm", "tar", Measure::Speed, Bound::AtLeast(1.3)),
    target("large-warm-null", "cat", Measure::Speed, Bound::AtLeast(0.6)),
    target("verify-large", "fio", Measure::Speed, Bound::AtLeast(0.95)),
    target("read-large", "fio", Measure::Speed, Bound::AtLeast(0.98)),
    target("mixed-zstd", "tar|zstd", Measure::Speed, Bound::AtLeast(1.25)),
    target("mixed-zstd", "tar|zstd", Measure::OutputSize, Bound::AtMost(1.01)),
    target("mixed-gzip", "tar|pigz", Measure::Speed, Bound::AtLeast(2.5)),
    target("mixed-gzip", "tar|pigz", Measure::OutputSize, Bound::AtMost(1.02)),
    target("restore-small", "tar", Measure::Speed, Bound::AtLeast(2.0)),
    target("restore-memory", "tar", Measure::Speed, Bound::AtLeast(1.5)),
    target("restore-memory", "tar", Measure::Cpu, Bound::AtMost(1.15)),
    target("pipe", "mbuffer", Measure::Speed, Bound::AtLeast(1.4)),
    target("pipe", "mbuffer", Measure::Cpu, Bound::AtMost(1.0)),
    target("pipe", "mbuffer", Measure::ProgramCpu, Bound::AtMost(1.0)),
    target("tape-lto5", "source, drive", Measure::OverSourceAndDrive, Bound::AtMost(1.02)),
    target("tape-lto5", "itself", Measure::BackHitches, Bound::AtMost(0.0)),
    target("tape-lto7", "source, drive", Measure::OverSourceAndDrive, Bound::AtMost(1.02)),
    target("tape-lto7", "itself", Measure::BackHitches, Bound::AtMost(0.0)),
    target("tape-slow-source", "takeup-unpaced", Measure::BackHitchRatio, Bound::AtMost(1.0)),
    target("tape-slow-source", "mbuffer", Measure::BackHitchRatio, Bound::AtMost(1.0)),
    target("tape-slow-source", "takeup", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("tape-slow-source", "takeup-4g", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("tape-slow-source", "takeup-unpaced", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("tape-slow-source", "dd", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("tape-slow-source", "mbuffer", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("tape-slow-source", "mbuffer-4g", Measure::BackHitchesOffModel, Bound::AtMost(0.1)),
    target("drive-rate", "nominal", Measure::RateOffNominal, Bound::AtMost(0.02)),
    target("scale-files-100k", "ring", Measure::MemoryBeyondRing, Bound::AtMost(64.0)),
    target("scale-files-1m", "ring", Measure::MemoryBeyondRing, Bound::AtMost(64.0)),
    target("scale-files-", "itself", Measure::ProportionPerFile, Bound::AtMost(1.15)),
    target("scale-bytes-", "itself", Measure::ProportionPerByte, Bound::AtMost(1.15)),
];

impl PeerTarget {
    /// The result of the runs: one number and its interval.
    pub fn measured(&self, runs: &[Run]) -> Option<Estimate> {
        let ours = |run: &&Run| run.work == self.work && is(&run.contender, "takeup");
        match self.measure {
            Measure::Speed => self.paired(runs, |product, other| other.seconds / product.seconds),
            Measure::Time => self.paired(runs, |product, other| product.seconds / other.seconds),
            Measure::Cpu => {
                self.paired(runs, |product, other| product.cpu_seconds() / other.cpu_seconds())
            }
            Measure::ProgramCpu => self.paired(runs, |product, other| {
                program_cpu_seconds(product, "takeup") / program_cpu_seconds(other, self.against)
            }),
            Measure::CpuSeconds => {
                Estimate::of(&runs.iter().filter(ours).map(Run::cpu_seconds).collect::<Vec<_>>())
            }
            Measure::OutputSize => {
                let size = |name: &str| {
                    let found = runs.iter().rev().find(|run| {
                        run.work == self.work
                            && is(&run.contender, name)
                            && run.output_bytes.is_some()
                    });
                    found.and_then(|run| run.output_bytes).map(|bytes| bytes as f64)
                };
                Some(Estimate::exact(size("takeup")? / size(self.against)?))
            }
            Measure::MemoryBeyondRing => {
                let beyond: Vec<f64> = runs
                    .iter()
                    .filter(ours)
                    .flat_map(|run| &run.uses)
                    .filter(|stage| stage.program == "takeup")
                    .map(|stage| stage.max_rss_bytes.saturating_sub(RING_BYTES) as f64 / MEBIBYTE)
                    .collect();
                Estimate::of(&beyond)
            }
            Measure::OverSourceAndDrive
            | Measure::BackHitches
            | Measure::BackHitchRatio
            | Measure::BackHitchesOffModel
            | Measure::RateOffNominal => self.measured_on_tape(runs),
            Measure::ProportionPerFile => {
                self.proportion(runs, |run| run.seconds / run.input_files as f64)
            }
            Measure::ProportionPerByte => {
                self.proportion(runs, |run| run.seconds / run.input_bytes as f64)
            }
        }
    }

    fn measured_on_tape(&self, runs: &[Run]) -> Option<Estimate> {
        match self.measure {
            Measure::OverSourceAndDrive => {
                let ratio = |product: &Run, source: &Run| {
                    let drive_seconds =
                        product.tape.as_ref().map_or(0.0, |tape| tape.model_seconds);
                    product.seconds / source.seconds.max(drive_seconds)
                };
                Estimate::of(&paired(runs, self.work, "takeup", "takeup-source", ratio))
            }
            Measure::BackHitches => {
                let those = runs_of(runs, self.work, "takeup");
                Estimate::of(&those.filter_map(back_hitches).collect::<Vec<_>>())
            }
            Measure::BackHitchRatio => self.paired(runs, |product, other| {
                let of = |run| back_hitches(run).unwrap_or(f64::INFINITY);
                // A run without any counts as one: the ratio is then no worse than this.
                of(product).max(1.0) / of(other).max(1.0)
            }),
            Measure::BackHitchesOffModel => {
                let off = |run: &Run| {
                    let tape = run.tape.as_ref()?;
                    let off = tape.back_hitches.abs_diff(tape.model_back_hitches);
                    Some(match off {
                        0 | 1 => 0.0,
                        _ => off as f64 / tape.model_back_hitches.max(1) as f64,
                    })
                };
                Estimate::of(
                    &runs_of(runs, self.work, self.against).filter_map(off).collect::<Vec<_>>(),
                )
            }
            Measure::RateOffNominal => {
                let off = |run: &Run| {
                    let tape = run.tape.as_ref()?;
                    let rate = tape.rate?.bytes_per_second();
                    Some((rate / tape.highest_bytes_per_second as f64 - 1.0).abs())
                };
                // The worst drive of each round: all must keep their time.
                let mut worst = BTreeMap::<u64, f64>::new();
                for run in runs.iter().filter(|run| run.work == self.work) {
                    if let Some(off) = off(run) {
                        let known = worst.entry(run.round).or_default();
                        *known = known.max(off);
                    }
                }
                Estimate::of(&worst.into_values().collect::<Vec<_>>())
            }
            _ => None,
        }
    }

    /// Compares a measured number with the requirement.
    pub fn verdict(&self, measured: Option<Estimate>) -> TargetVerdict {
        let Some(measured) = measured else { return TargetVerdict::NotMeasured };
        let good = |value: f64| match self.bound {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        };
        let all = measured.interval.is_some_and(|ends| good(ends.low) && good(ends.high));
        match (good(measured.typical), all) {
            (true, true) => TargetVerdict::Reached,
            (true, false) => TargetVerdict::TypicalOnly,
            (false, _) => TargetVerdict::Missed,
        }
    }

    /// The requirement, in words.
    pub fn asked(&self) -> String {
        let (word, number) = match self.bound {
            Bound::AtLeast(number) => ("at least", number),
            Bound::AtMost(number) => ("at most", number),
        };
        let what = match self.measure {
            Measure::Speed => "times as fast",
            Measure::Time => "times its time",
            Measure::OutputSize => "times its size",
            Measure::CpuSeconds => "seconds of processor time",
            Measure::Cpu => "times its processor time, whole pipeline",
            Measure::ProgramCpu => "times its processor time, program alone",
            Measure::MemoryBeyondRing => "MiB beyond the ring",
            Measure::ProportionPerFile => "between scales, per file",
            Measure::ProportionPerByte => "between scales, per byte",
            Measure::OverSourceAndDrive => "times the slower of source and drive",
            Measure::BackHitches => "back-hitches",
            Measure::BackHitchRatio => "times its back-hitches",
            Measure::BackHitchesOffModel => "of the model's back-hitches away from them",
            Measure::RateOffNominal => "of the rate away from it, the worst drive",
        };
        format!("{word} {number} {what}")
    }

    fn paired(&self, runs: &[Run], ratio: impl Fn(&Run, &Run) -> f64) -> Option<Estimate> {
        Estimate::of(&paired(runs, self.work, "takeup", self.against, ratio))
    }

    /// The scales whose typical costs differ most, compared round by round.
    fn proportion(&self, runs: &[Run], cost: impl Fn(&Run) -> f64) -> Option<Estimate> {
        let ours: Vec<&Run> = runs
            .iter()
            .filter(|run| run.work.starts_with(self.work) && run.contender == "takeup")
            .collect();
        let mut names: Vec<&str> = ours.iter().map(|run| run.work.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let costs_of = |name: &str| -> Vec<(u64, f64)> {
            let those = ours.iter().filter(|run| run.work == name);
            those.map(|run| (run.round, cost(run))).collect()
        };
        let mut scales: Vec<(f64, &str)> = names
            .iter()
            .filter_map(|name| {
                let costs: Vec<f64> = costs_of(name).iter().map(|(_, cost)| *cost).collect();
                Some((geometric_mean(&costs)?, *name))
            })
            .collect();
        scales.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some((_, cheap)), Some((_, dear))) = (scales.first(), scales.last()) else {
            return None;
        };
        if cheap == dear {
            return None;
        }
        let cheap = costs_of(cheap);
        let ratios: Vec<f64> = costs_of(dear)
            .iter()
            .filter_map(|(round, cost)| {
                let (_, other) = cheap.iter().find(|(other, _)| other == round)?;
                Some(cost / other)
            })
            .collect();
        Estimate::of(&ratios)
    }
}

/// Ratios of the runs of two contenders at a work, one for each round that has both.
pub fn paired(
    runs: &[Run],
    work: &str,
    first: &str,
    second: &str,
    ratio: impl Fn(&Run, &Run) -> f64,
) -> Vec<f64> {
    let with_other = |run: &Run| {
        let other = runs_of(runs, work, second).find(|other| other.round == run.round)?;
        Some(ratio(run, other))
    };
    runs_of(runs, work, first).filter_map(with_other).collect()
}

const fn target(
    work: &'static str,
    against: &'static str,
    measure: Measure,
    bound: Bound,
) -> PeerTarget {
    PeerTarget { work, against, measure, bound }
}

fn runs_of<'a>(runs: &'a [Run], work: &'a str, name: &'a str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.work == work && is(&run.contender, name))
}

fn back_hitches(run: &Run) -> Option<f64> {
    run.tape.as_ref().map(|tape| tape.back_hitches as f64)
}

/// Whether a contender has this name; "fio" stands for "fio io_uring 1M depth 8" too.
pub fn is(contender: &str, name: &str) -> bool {
    contender.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn program_cpu_seconds(run: &Run, program: &str) -> f64 {
    let those = run.uses.iter().filter(|stage| stage.program == program);
    those.map(|stage| stage.user_seconds + stage.system_seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::StageUse;
    use crate::tape::{DriveRateReport, TapeRun};

    fn run(work: &str, contender: &str, round: u64, seconds: f64) -> Run {
        Run {
            work: work.to_string(),
            contender: contender.to_string(),
            round,
            seconds,
            uses: vec![StageUse {
                program: contender.to_string(),
                user_seconds: seconds,
                system_seconds: 1.0,
                max_rss_bytes: RING_BYTES + (10 << 20),
            }],
            input_files: if work.ends_with("1m") { 100 } else { 10 },
            input_bytes: 1000,
            ..Run::default()
        }
    }

    fn find(work: &str, against: &str, measure: Measure) -> PeerTarget {
        let those = |t: &&PeerTarget| (t.work, t.against, t.measure) == (work, against, measure);
        *TARGETS.iter().find(those).unwrap()
    }

    #[test]
    fn ratios_are_formed_within_rounds() {
        let tar = find("small-cold", "tar", Measure::Speed);
        // Round 2 of the product is missing, round 3 is twice as slow for both.
        let runs = [
            run("small-cold", "takeup", 1, 1.0),
            run("small-cold", "tar", 1, 4.0),
            run("small-cold", "tar", 2, 1.0),
            run("small-cold", "takeup", 3, 2.0),
            run("small-cold", "tar", 3, 8.0),
            run("small-cold", "tar|pv", 3, 1.0),
            run("small-warm", "tar", 3, 1.0),
        ];
        let measured = tar.measured(&runs).unwrap();
        assert_eq!(measured.shown(6, ""), "4.000000");
        assert_eq!(tar.verdict(Some(measured)), TargetVerdict::Reached);
    }

    #[test]
    fn the_interval_decides_between_reached_and_typical_only() {
        let floor = find("small-cold", "floor", Measure::Time);
        let runs = |last| {
            [1.0, 1.1, last].into_iter().enumerate().flat_map(move |(round, seconds)| {
                let round = round as u64 + 1;
                let name = "floor 32 threads, path order";
                [run("small-cold", "takeup", round, seconds), run("small-cold", name, round, 1.0)]
            })
        };
        let verdict = |last| {
            let runs: Vec<_> = runs(last).collect();
            floor.verdict(floor.measured(&runs))
        };
        assert_eq!(verdict(1.05), TargetVerdict::Reached);
        assert_eq!(verdict(1.6), TargetVerdict::TypicalOnly);
        assert_eq!(floor.verdict(None), TargetVerdict::NotMeasured);
        let slow: Vec<_> = runs(1.05)
            .map(|mut run| {
                run.seconds *= if run.contender == "takeup" { 2.0 } else { 1.0 };
                run
            })
            .collect();
        assert_eq!(floor.verdict(floor.measured(&slow)), TargetVerdict::Missed);
    }

    fn on_tape(run: Run, model_seconds: f64, back_hitches: [u64; 2]) -> Run {
        let rate = DriveRateReport {
            seconds: 10.0,
            bytes: 990_000_000 + 10_000_000 * run.round,
            native_bytes: 0,
            drive_cpu_seconds: 0.0,
        };
        let tape = TapeRun {
            highest_bytes_per_second: 100_000_000,
            back_hitches: back_hitches[0],
            model_seconds,
            model_back_hitches: back_hitches[1],
            rate: Some(rate),
            ..TapeRun::default()
        };
        Run { tape: Some(tape), ..run }
    }

    #[test]
    fn a_tape_run_is_held_against_the_slower_of_source_and_drive() {
        let runs = [
            on_tape(run("tape-lto5", "takeup", 1, 30.3), 30.0, [0, 0]),
            run("tape-lto5", "takeup-source", 1, 20.0),
            on_tape(run("tape-lto5", "takeup", 2, 44.0), 30.0, [2, 0]),
            run("tape-lto5", "takeup-source", 2, 40.0),
        ];
        let over = find("tape-lto5", "source, drive", Measure::OverSourceAndDrive);
        let measured = over.measured(&runs).unwrap();
        assert!((measured.typical - (1.01f64 * 1.1).sqrt()).abs() < 1e-9, "{measured:?}");
        let stops = find("tape-lto5", "itself", Measure::BackHitches);
        assert_eq!(stops.verdict(stops.measured(&runs)), TargetVerdict::Missed);
    }

    #[test]
    fn one_back_hitch_is_no_difference_and_the_worst_drive_counts() {
        let slow = "tape-slow-source";
        let runs = [
            on_tape(run(slow, "mbuffer", 1, 1.0), 1.0, [4, 3]),
            on_tape(run(slow, "mbuffer", 2, 1.0), 1.0, [15, 20]),
            on_tape(run(slow, "takeup", 1, 1.0), 1.0, [2, 2]),
        ];
        let off = find(slow, "mbuffer", Measure::BackHitchesOffModel).measured(&runs).unwrap();
        assert!((off.typical - 0.125).abs() < 1e-9, "{off:?}");
        let ratio = find(slow, "mbuffer", Measure::BackHitchRatio).measured(&runs).unwrap();
        assert!((ratio.typical - 0.5).abs() < 1e-9, "{ratio:?}");
        let runs = [
            on_tape(run("drive-rate", "lto3", 1, 1.0), 1.0, [0, 0]),
            on_tape(run("drive-rate", "lto4", 2, 1.0), 1.0, [0, 0]),
            on_tape(run("drive-rate", "lto5", 2, 1.0), 1.0, [0, 0]),
        ];
        let off = find("drive-rate", "nominal", Measure::RateOffNominal).measured(&runs).unwrap();
        assert!((off.typical - 0.005).abs() < 1e-9, "{off:?}");
    }

    #[test]
    fn memory_processor_time_and_proportion() {
        let runs = [
            run("scale-files-1m", "takeup", 1, 11.0),
            run("scale-files-10k", "takeup", 1, 1.0),
            run("pipe", "takeup", 1, 2.0),
            run("pipe", "mbuffer", 1, 5.0),
        ];
        let value = |work, against, measure| {
            let target = find(work, against, measure);
            target.measured(&runs).unwrap().typical
        };
        for (work, against, measure, expected) in [
            ("scale-files-1m", "ring", Measure::MemoryBeyondRing, 10.0),
            ("scale-files-", "itself", Measure::ProportionPerFile, 1.1),
            ("pipe", "mbuffer", Measure::Cpu, 0.5),
            ("pipe", "mbuffer", Measure::ProgramCpu, 0.5),
        ] {
            let measured = value(work, against, measure);
            assert!((measured - expected).abs() < 1e-9, "{work}: {measured}");
        }
    }
}
