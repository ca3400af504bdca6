//! The fixed time of a file and the rate of its bytes, from several lengths together.
//!
//! Two lengths alone give a percentage that holds for no third length. Every file has a fixed time,
//! a filemark or a start of the drive, and then a rate. The lengths come from runs of one file
//! each, or from one run that is cut into more and more files.

use base::finding::{Certainty, Finding, Unit};
use base::format::duration;
use base::rounding::Rounding;

use super::super::{
    CellSummary, Judgement, JudgementOptions, RateVerdict, Sentence, Subject, rules,
};
use super::curve::{between, rate_within};
use crate::record::{Factor, Level};
use statistics::curve::Point;
use statistics::curve::known::{Known, line};
use statistics::mean;

/// The factors that set the length of files: bytes of a run, and number of files.
pub const LENGTHS: [&str; 2] = ["file_bytes", "files"];

/// Largest distance of a length from the line of fixed time and rate, as a share, for the line to
/// explain the rates.
const RESIDUAL_MAX: f64 = 0.05;

/// Lengths that differ by less than this share count as one.
const SAME_LENGTH: f64 = 1e-3;

/// Cells whose files have one length.
struct Length {
    bytes: f64,
    cells: Vec<usize>,
}

/// The sentence, if the lengths differ.
pub fn over_lengths(
    factors: &[Factor],
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Option<Sentence> {
    if !longer_is_faster(judgement) {
        return None;
    }
    let lengths = lengths(judgement);
    let point = |length: &Length| {
        let rate = |&cell: &usize| judgement.cells[cell].bytes_per_second.ln();
        let logs: Vec<f64> = length.cells.iter().map(rate).collect();
        Some(Point { level: length.bytes, bytes_per_second: mean(&logs)?.exp() })
    };
    let points: Option<Vec<Point>> = lengths.iter().map(point).collect();
    let points = points?;
    let found = line(&points)?;
    let groups: Vec<Vec<usize>> = lengths.into_iter().map(|length| length.cells).collect();
    let known = Known::of_line(&points, &judgement.comparer.errors(&groups), options.confidence)?;
    if found.residuals.iter().any(|residual| residual.abs() > RESIDUAL_MAX) {
        return None;
    }
    let fixed = known.overhead_ns;
    let digits = Rounding::within(fixed.low / 1e9, fixed.high / 1e9);
    let seconds = |nanoseconds: f64| digits.seconds(nanoseconds / 1e9);
    let behind = known.bytes_per_second;
    if fixed.low <= 0.05 * fixed.high || !behind.high.is_finite() {
        return None;
    }
    let others =
        |factor: &&Factor| factor.levels.len() > 1 && !LENGTHS.contains(&factor.name.as_str());
    let over = if factors.iter().any(|factor| others(&factor)) {
        ", on average over everything else"
    } else {
        ""
    };
    let filemark = filemark_seconds(judgement);
    let of_it = filemark.map_or(String::new(), |filemark| {
        format!(
            "; the filemark after it takes {}, while the drive writes out its buffer",
            duration(filemark)
        )
    });
    let text = format!(
        "each file takes a fixed {}{}, then its bytes run at {}: from {} lengths{over}{of_it}",
        seconds(found.overhead_ns),
        between(fixed, seconds),
        rate_within(found.bytes_per_second, behind),
        points.len(),
    );
    let finding = Finding::new(&rules::LENGTH, Certainty::Inferred, text)
        .with_number("fixed", found.overhead_ns / 1e9, Unit::Seconds)
        .with_number("fixed_low", fixed.low / 1e9, Unit::Seconds)
        .with_number("fixed_high", fixed.high / 1e9, Unit::Seconds)
        .with_number("rate", found.bytes_per_second, Unit::BytesPerSecond)
        .with_number("rate_low", behind.low, Unit::BytesPerSecond)
        .with_number("rate_high", behind.high, Unit::BytesPerSecond);
    let finding = match filemark {
        Some(filemark) => finding.with_number("filemark", filemark, Unit::Seconds),
        None => finding,
    };
    Some(Sentence::new(Subject::Finding, finding).settled(RateVerdict::Differs))
}

/// Whether longer runs, or fewer files in them, are shown to be faster.
fn longer_is_faster(judgement: &Judgement) -> bool {
    let is = |factor: &str, faster: fn(f64) -> bool| {
        judgement.effects.iter().any(|effect| {
            effect.with.is_none()
                && effect.change.factor == factor
                && effect.verdict == RateVerdict::Differs
                && faster(effect.ratio)
        })
    };
    is(LENGTHS[0], |ratio| ratio > 1.0) || is(LENGTHS[1], |ratio| ratio < 1.0)
}

/// The lengths of files, ascending: as counted while writing, otherwise from the levels.
fn lengths(judgement: &Judgement) -> Vec<Length> {
    let bytes = |cell: &CellSummary| {
        let level = |name: &str| match cell.cell.get(name) {
            Some(Level::Number(number)) => Some(*number as f64),
            _ => None,
        };
        let counted = cell.measures.get("written_file_bytes").copied();
        counted.or_else(|| Some(level(LENGTHS[0])? / level(LENGTHS[1]).unwrap_or(1.0)))
    };
    let cells = judgement.cells.iter().enumerate();
    let mut all: Vec<(f64, usize)> =
        cells.filter_map(|(at, cell)| Some((bytes(cell)?, at))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lengths: Vec<Length> = Vec::new();
    for (bytes, cell) in all {
        match lengths.last_mut() {
            Some(last) if bytes <= last.bytes * (1.0 + SAME_LENGTH) => last.cells.push(cell),
            _ => lengths.push(Length { bytes, cells: vec![cell] }),
        }
    }
    lengths
}

/// The mean time of a filemark.
fn filemark_seconds(judgement: &Judgement) -> Option<f64> {
    let seconds = |cell: &CellSummary| cell.measures.get("filemark_seconds").copied();
    mean(&judgement.cells.iter().filter_map(seconds).collect::<Vec<f64>>())
}
