//! Findings on experiments with tape: the limits of a drive of a known generation, the filemark at
//! the end of a run, stops below the lowest speed, and zeros, which say nothing about the medium.
//!
//! All of them depend on names of measures and of the environment. Other experiments have none of
//! these, so there are no findings on them.

use base::finding::{Certainty, Finding, Unit};
use model::tape::generation::Generation;

use super::told::told_ratio;
use super::{
    CellSummary, Judgement, JudgementOptions, RateVerdict, Recommendation, Sentence, Subject,
    Sweep, rules,
};
use crate::record::{Cell, Factor, Level, RunRecord, Value, shown_cell};
use base::format::rate;
use base::rounding::Rounding;
use statistics::curve::PhysicalLimit;
use statistics::mean;

/// Compression ratio above which the native rate differs from the rate of the host.
const COMPRESSING: f64 = 1.05;

/// If the interval allows a larger cost than this share, the cost is unknown.
const COST_SEEN: f64 = 0.05;

/// A rate between this share of the lowest speed and the lowest speed may be rounding.
const SPEED_TOLERANCE: f64 = 0.98;

/// The drive of an experiment with one drive whose speeds are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// For use in a sentence: `an LTO-4 drive`.
    name: String,
    native_bytes_per_second: f64,
    lowest_bytes_per_second: f64,
}

impl Drive {
    /// From the records of the runs. Runs on a virtual drive with accelerated time are in its own
    /// time, so that its speeds are those of its generation.
    pub fn of(runs: &[RunRecord]) -> Option<Drive> {
        let mut drives = runs.iter().filter_map(Drive::of_run);
        let first = drives.next()?;
        drives.all(|other| other == first).then_some(first)
    }

    fn of_run(run: &RunRecord) -> Option<Drive> {
        let get = |name: &str| run.environment.get(name);
        let number = |name: &str| get(name)?.parse::<f64>().ok();
        let product = get("drive").map_or("", String::as_str);
        let generation = Generation::of_product(product);
        let native = number("drive native bytes per second");
        let lowest = number("drive lowest bytes per second");
        let virtual_ = if product.starts_with("virtual") { "virtual " } else { "" };
        let article = if virtual_.is_empty() { "an" } else { "a" };
        Some(Drive {
            name: match generation {
                Some(known) => format!("{article} {virtual_}{} drive", known.name),
                None => "the drive".to_owned(),
            },
            native_bytes_per_second: native
                .or(generation.map(|known| known.highest_speed() as f64))?,
            lowest_bytes_per_second: lowest
                .or(generation.map(|known| known.lowest_speed() as f64))?,
        })
    }

    /// The upper limit of the rate of a cell that compresses `ratio` to one.
    pub fn limit(&self, ratio: f64) -> PhysicalLimit {
        let name = &self.name;
        PhysicalLimit {
            name: if ratio > COMPRESSING {
                format!("native rate of {name} with data of {ratio:.2}:1")
            } else {
                format!("native rate of {name}")
            },
            bytes_per_second: self.native_bytes_per_second * ratio.max(1.0),
        }
    }
}

/// Host bytes per byte on the medium: as the drive counted, or as its compression is set. `None` if
/// neither is known.
pub fn ratio(cell: &CellSummary) -> Option<f64> {
    if let Some(&counted) = cell.measures.get("drive_compression_ratio") {
        return Some(counted);
    }
    match (level(cell, "drive_compression"), level(cell, "data")) {
        (Some("off"), _) | (_, Some("random")) => Some(1.0),
        (Some("on"), Some(text)) => text.strip_prefix("text:")?.parse().ok(),
        _ => None,
    }
}

/// Everything about drives.
pub fn findings(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = in_buffer(runs).into_iter().chain(filemarks(runs)).collect();
    found.extend(filling(factors, runs, judgement));
    found.extend(compression(judgement, options));
    let drive = Drive::of(runs);
    for recommendation in &judgement.recommended {
        let cell = &judgement.cells[recommendation.cell];
        let load = match judgement.recommended.len() {
            1 => String::new(),
            _ => format!("{}: ", shown_cell(&recommendation.load, factors)),
        };
        let stops = drive.as_ref().and_then(|drive| stops(drive, cell));
        let zeros = zeros(cell, drive.as_ref(), options);
        let sentence = |rule, text: String| {
            let finding = Finding::new(rule, Certainty::Inferred, format!("{load}{text}"));
            Sentence::new(Subject::Finding, finding)
        };
        found.extend(stops.map(|text| sentence(&rules::STOPS, text)));
        found.extend(zeros.map(|text| sentence(&rules::ZEROS, text)));
    }
    found
}

/// The cost of the drive's compression for data that do not compress. People switch it off because
/// they fear that cost.
fn compression(judgement: &Judgement, options: &JudgementOptions) -> Option<Sentence> {
    let with = |cell: &CellSummary, compression: &str| {
        let mut cell = cell.cell.clone();
        cell.insert("drive_compression".to_owned(), Level::Text(compression.to_owned()));
        judgement.cells.iter().position(|other| other.cell == cell)
    };
    let is_random_with = |cell: &CellSummary| {
        level(cell, "data") == Some("random") && level(cell, "drive_compression") == Some("on")
    };
    let cells = judgement.cells.iter().enumerate();
    let pairs: Vec<(usize, usize)> = cells
        .filter(|(_, cell)| is_random_with(cell))
        .filter_map(|(on, cell)| Some((on, with(cell, "off")?)))
        .collect();
    let share = 1.0 / pairs.len() as f64;
    let terms: Vec<(f64, usize)> =
        pairs.iter().flat_map(|(on, off)| [(share, *on), (-share, *off)]).collect();
    let contrast = judgement.comparer.contrast(&terms).filter(|_| !pairs.is_empty())?;
    let (ratio, interval) = (contrast.ratio(), contrast.interval(options.confidence)?);
    let verdict = RateVerdict::of(Some(interval), options);
    let at_most = 100.0 * (1.0 - interval.low).max(0.0);
    let (subject, cost) = match verdict {
        RateVerdict::Differs if ratio < 1.0 => {
            let digits = Rounding::within(interval.low, interval.high);
            (Subject::Cost, format!("costs {}", digits.percent(1.0 - ratio)))
        }
        RateVerdict::Same => (Subject::Cost, "costs nothing".to_owned()),
        _ if interval.low > 1.0 - COST_SEEN => {
            (Subject::Cost, format!("costs {:.0} % at most", at_most.ceil()))
        }
        _ => (Subject::Doubt, format!("may cost up to {:.0} %", at_most.ceil())),
    };
    let (shown, between) = told_ratio(ratio, Some(interval));
    let text = format!(
        "drive compression on {cost} with random data: {shown} times the rate of off{between}",
    );
    let finding = Finding::new(&rules::DRIVE_COMPRESSION, Certainty::Inferred, text)
        .with_number("on_by_off", ratio, Unit::Ratio)
        .with_number("low", interval.low, Unit::Ratio)
        .with_number("high", interval.high, Unit::Ratio);
    Some(Sentence::new(subject, finding).settled(verdict))
}

/// Runs shorter than this many of the drive's buffers get a note: the data that are still in the
/// buffer when the last write returns are a large part of such a run.
pub const BUFFERS_MIN: u64 = 3;
/// Length of run to recommend, in buffers of the drive, so that the tape itself is measured.
const BUFFERS: u64 = BUFFERS_MIN;

/// The size of the drive's buffer, if no run was longer. Such runs show the connection to the drive
/// and a filemark, and give no reason to set anything.
pub fn all_in_buffer(runs: &[RunRecord]) -> Option<u64> {
    let is_read = |run: &RunRecord| text(&run.cell, "operation") == Some("read");
    let fits = |run: &RunRecord| {
        let buffer: u64 = run.environment.get("drive buffer bytes")?.parse().ok()?;
        let files = run.measures.get("filemarks").copied().unwrap_or(1.0).max(1.0);
        (run.bytes as f64 / files <= buffer as f64).then_some(buffer)
    };
    let written = runs.iter().filter(|run| run.error.is_none() && !is_read(run));
    let buffers: Option<Vec<u64>> = written.map(fits).collect();
    buffers?.into_iter().max()
}

/// The sentence that says why nothing is recommended then.
fn in_buffer(runs: &[RunRecord]) -> Option<Sentence> {
    let buffer = all_in_buffer(runs)?;
    let text = format!(
        "no setting is recommended: every run fits into the drive's buffer ({}), so the rates show \
         the connection and a filemark, not the tape; use runs of {} or more (--length)",
        base::format::size(buffer),
        base::format::size(BUFFERS * buffer),
    );
    let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text).with_number(
        "buffer",
        buffer as f64,
        Unit::Bytes,
    );
    Some(Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled))
}

/// Block sizes that look slower only because the runs are so short that filling the drive's buffer
/// matters. The tape starts to move once there is something to write, and until then a run goes at
/// the host's rate. A host that is faster than the tape fills the buffer in less time than the tape
/// needs for the same data, so the effect is at most the buffer's share of the run.
fn filling(factors: &[Factor], runs: &[RunRecord], judgement: &Judgement) -> Vec<Sentence> {
    let buffers = runs.iter().filter_map(|run| run.environment.get("drive buffer bytes"));
    let buffer = buffers.filter_map(|text| text.parse::<f64>().ok()).fold(0.0, f64::max);
    let shortest = |cell: &CellSummary| {
        let own = runs.iter().filter(|run| run.error.is_none() && run.cell == cell.cell);
        let files = |run: &RunRecord| run.measures.get("filemarks").copied().unwrap_or(1.0);
        own.map(|run| run.bytes as f64 / files(run).max(1.0)).reduce(f64::min)
    };
    let one = |sweep: &Sweep| {
        let place = |one: &Recommendation| sweep.cells.iter().position(|it| *it == one.cell);
        let recommended = &judgement.recommended;
        let (chosen, load) = recommended.iter().find_map(|one| Some((place(one)?, &one.load)))?;
        let load = match recommended.len() {
            1 => String::new(),
            _ => format!("{}: ", shown_cell(load, factors)),
        };
        let best = &judgement.cells[sweep.cells[chosen]];
        let held_bytes = buffer * ratio(best).unwrap_or(1.0).max(1.0);
        let run_bytes = shortest(best)?;
        let share = held_bytes / run_bytes;
        let smaller = sweep.cells[..chosen].iter().zip(&sweep.verdicts);
        let ruled_out = smaller
            .filter(|(_, verdict)| **verdict == RateVerdict::Differs)
            .map(|(&index, _)| &judgement.cells[index]);
        let slower = |cell: &CellSummary| best.bytes_per_second / cell.bytes_per_second - 1.0;
        let may_be: Vec<&CellSummary> = ruled_out
            .filter(|cell| (0.0..=share).contains(&slower(cell)))
            .filter(|cell| level(cell, "data") != Some("zeros"))
            .filter(|cell| level(cell, "operation") != Some("read"))
            .collect();
        let least = may_be.iter().map(|cell| slower(cell)).reduce(f64::min)?;
        let level = |cell: &&CellSummary| Some(cell.cell.get(&sweep.factor)?.shown(&sweep.factor));
        let names = may_be.iter().filter_map(level).collect::<Vec<_>>().join(", ");
        let text = format!(
            "{load}block size: {names} may be as fast in a long backup: filling the drive's buffer \
             ({}) before the tape moves takes up to {:.0} % of runs of {}; use runs of {} or more \
             (--length)",
            base::format::size(held_bytes.round() as u64),
            100.0 * share,
            base::format::size(run_bytes.round() as u64),
            base::format::size((2.0 * held_bytes / least).round() as u64),
        );
        let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text)
            .with_number("buffer", held_bytes, Unit::Bytes)
            .with_number("share", share, Unit::Ratio);
        Some(Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled))
    };
    let told = judgement.sweeps.iter().filter(|it| it.is_told && it.factor == "block_bytes");
    if all_in_buffer(runs).is_some() { Vec::new() } else { told.filter_map(one).collect() }
}

/// The time that the filemark at its end costs each run.
fn filemarks(runs: &[RunRecord]) -> Option<Sentence> {
    let both = |run: &RunRecord| {
        let without = *run.measures.get("without_filemark_bytes_per_second")?;
        let with = run.bytes_per_second()?;
        Some((without / with, *run.measures.get("filemark_seconds")?))
    };
    let (ratios, seconds): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(both).unzip();
    let (ratio, seconds) = (mean(&ratios)?, mean(&seconds)?);
    let text = if ratio - 1.0 < 0.005 {
        format!(
            "the synchronising filemark after each file costs less than 0.5 % ({} on average)",
            base::format::duration(seconds.max(0.0))
        )
    } else {
        let higher = match ratio {
            times if times >= 2.0 => {
                format!("be {} times as high", Rounding::digits(2).number(times))
            }
            more => format!("be {:.1} % higher", 100.0 * (more - 1.0)),
        };
        format!(
            "the synchronising filemark after each file takes {} on average: without it the rates \
             would {higher}, with data still in the drive's buffer",
            base::format::duration(seconds),
        )
    };
    let finding = Finding::new(&rules::FILEMARK, Certainty::Measured, text)
        .with_number("filemark", seconds, Unit::Seconds)
        .with_number("without_by_with", ratio, Unit::Ratio);
    Some(Sentence::new(Subject::Finding, finding))
}

/// A finding on a cell that is slower than the tape can move.
fn stops(drive: &Drive, cell: &CellSummary) -> Option<String> {
    let ratio = ratio(cell)?;
    let lowest = drive.lowest_bytes_per_second * ratio.max(1.0);
    let host = cell.bytes_per_second;
    let counted = cell.measures.get("drive_back_hitches").copied();
    // The drive's own count is certain; and of zeros hardly anything reaches the tape.
    let is_known_not_to = counted.is_some_and(|stops| stops < 0.5);
    if is_known_not_to || level(cell, "data") == Some("zeros") {
        return None;
    }
    let name = &drive.name;
    (host < lowest * SPEED_TOLERANCE).then(|| {
        let counted = match counted {
            Some(stops) => format!(", {stops:.1} times in a run on average"),
            None => String::new(),
        };
        format!(
            "{} is below what the lowest speed of {name} needs ({}): it stops, winds back and \
             starts again{counted}",
            cell.told(Value::Rate),
            rate(lowest)
        )
    })
}

/// A finding on zeros: in a drive that compresses they say nothing about the medium.
fn zeros(cell: &CellSummary, drive: Option<&Drive>, options: &JudgementOptions) -> Option<String> {
    let compresses = level(cell, "drive_compression") != Some("off");
    let native = drive.map(|drive| drive.native_bytes_per_second);
    let is_above = native.is_none_or(|native| cell.bytes_per_second > native * 1.1);
    let is_matched = options
        .limits
        .iter()
        .any(|limit| (cell.bytes_per_second / limit.bytes_per_second).ln().abs() < 0.06);
    (level(cell, "data") == Some("zeros") && compresses && is_above && !is_matched).then(|| {
        format!(
            "{} shows the host, its interface and the drive's commands, not the tape: zeros \
             compress to almost nothing",
            cell.told(Value::Rate)
        )
    })
}

fn level<'a>(cell: &'a CellSummary, factor: &str) -> Option<&'a str> {
    text(&cell.cell, factor)
}

fn text<'a>(cell: &'a Cell, factor: &str) -> Option<&'a str> {
    match cell.get(factor)? {
        Level::Text(text) => Some(text),
        Level::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_the_time_of_a_faster_clock_are_held_against_its_own_speeds() {
        let mut run = RunRecord::default();
        let environment = [
            ("drive", "virtual LTO-7"),
            ("drive native bytes per second", "306000000"),
            ("drive lowest bytes per second", "101000000"),
        ];
        run.environment.extend(environment.map(|(name, text)| (name.into(), text.into())));
        let plain = Drive::of(&[run.clone()]).unwrap();
        assert_eq!(plain.limit(1.0).bytes_per_second, 306e6);
        run.measures.insert("drive_clock_ratio".into(), 100.0);
        assert_eq!(Drive::of(&[run.clone()]), Some(plain));
        let other = RunRecord::default();
        assert_eq!(
            Drive::of(&[run.clone(), other]).map(|drive| drive.name),
            Some("a virtual LTO-7 drive".into())
        );
        run.environment.insert("drive native bytes per second".into(), "1".into());
        assert_eq!(Drive::of(&[run, RunRecord::default()]).unwrap().native_bytes_per_second, 1.0);
    }

    /// Runs of two block sizes on a drive with a buffer of 100 MB.
    fn judged(bytes: u64) -> Vec<Sentence> {
        judged_at(40e6, bytes)
    }

    fn judged_at(first_rate: f64, bytes: u64) -> Vec<Sentence> {
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (block, rate) in [(64u64 << 10, first_rate), (1 << 20, 90e6)] {
                let jitter = 1.0 + 0.002 * ((repeat + block) % 3) as f64;
                let mut run = RunRecord {
                    cell: [("block_bytes".to_owned(), Level::Number(block))].into(),
                    repeat,
                    bytes,
                    seconds: bytes as f64 / rate * jitter,
                    ..RunRecord::default()
                };
                run.environment.insert("drive buffer bytes".into(), "100000000".into());
                let without = ("without_filemark_bytes_per_second", 51.0 * rate / jitter);
                let measures = [without, ("filemark_seconds", 4.0)];
                run.measures = measures.map(|(name, value)| (name.to_owned(), value)).into();
                runs.push(run);
            }
        }
        let levels = vec![Level::Number(64 << 10), Level::Number(1 << 20)];
        let factors = [Factor::new("block_bytes", levels)];
        super::super::judge(&factors, &runs, &JudgementOptions::default()).sentences
    }

    #[test]
    fn what_filling_the_buffer_takes_is_no_reason_for_larger_blocks() {
        let told = |rate, bytes| {
            let all = judged_at(rate, bytes);
            let own = all.into_iter().find(|one| one.text.contains("may be as fast in a long"));
            own.map(|one| one.text)
        };
        // A twentieth of each run, and 4 % slower.
        let text = told(86.5e6, 2_000_000_000).unwrap();
        assert!(text.starts_with("block size: 64 KiB may be as fast"), "{text}");
        assert!(text.contains("up to 5 % of runs of 2.00 GB; use runs of 4.9"), "{text}");
        // In runs that are long enough, and if the difference is larger than that.
        assert_eq!(told(86.5e6, 20_000_000_000), None);
        assert_eq!(told(80e6, 2_000_000_000), None);
        assert_eq!(told(40e6, 40_000_000), None);
    }

    #[test]
    fn runs_that_the_buffer_holds_are_no_reason_to_set_anything() {
        let (short, long) = (judged(40_000_000), judged(4_000_000_000));
        let is_set = |one: &Sentence| matches!(one.subject, Subject::Set | Subject::Gain);
        assert!(long.iter().any(is_set) && !short.iter().any(is_set), "{short:#?}");
        let why = |all: &[Sentence]| {
            let own = |one: &&Sentence| {
                one.text.starts_with("no setting is recommended: every run fits into")
            };
            all.iter().find(own).map(|one| (one.subject, one.verdict, one.text.clone()))
        };
        let (subject, verdict, text) = why(&short).unwrap();
        assert_eq!((subject, verdict), (Subject::Doubt, Some(RateVerdict::NotSettled)));
        assert!(text.contains("runs of 300 MB or more (--length)"), "{text}");
        assert_eq!(why(&long), None);
        let told = |all: &[Sentence], what: &str| all.iter().any(|one| one.text.contains(what));
        assert!(told(&short, "would be 51 times as high"), "{short:#?}");
    }
}
