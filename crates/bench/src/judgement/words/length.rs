//! What a file costs however long it is, and how fast its bytes are: several lengths together.
//!
//! Two lengths set against each other are a percentage that holds for these two and no third one.
//! Every file has a fixed time, a filemark or a start of the drive, and a rate behind it.

use finding::{Certainty, Finding, Unit};
use report::rounding::Rounding;

use super::super::{Judgement, Options, Sentence, Subject, Verdict, rules};
use super::curve::{between, rate_within};
use crate::model::Point;
use crate::model::known::{Known, line};
use crate::record::{Factor, Level};
use crate::statistics::mean;

/// The factor whose levels are lengths of files.
pub const LENGTH: &str = "file_bytes";

/// A fixed time and a rate over the lengths of files, where their rates differ and this explains
/// them: no length lies further than this off it.
const RESIDUAL_MAX: f64 = 0.05;

/// The sentence, where the lengths differ.
pub fn over_lengths(
    factors: &[Factor],
    judgement: &Judgement,
    options: &Options,
) -> Option<Sentence> {
    let factor = factors.iter().find(|factor| factor.name == LENGTH && factor.is_numeric())?;
    let effect = judgement
        .effects
        .iter()
        .find(|effect| effect.with.is_none() && effect.change.factor == LENGTH)?;
    if effect.verdict != Verdict::Differs || effect.ratio < 1.0 {
        return None;
    }
    let at = |level: &Level| -> Vec<usize> {
        let cells = judgement.cells.iter().enumerate();
        cells.filter(|(_, own)| own.cell.get(LENGTH) == Some(level)).map(|(at, _)| at).collect()
    };
    let groups: Vec<Vec<usize>> = factor.levels.iter().map(at).collect();
    let point = |(level, cells): (&Level, &Vec<usize>)| {
        let Level::Number(bytes) = level else { return None };
        let logs: Vec<f64> =
            cells.iter().map(|&cell| judgement.cells[cell].bytes_per_second.ln()).collect();
        Some(Point { level: *bytes as f64, bytes_per_second: mean(&logs)?.exp() })
    };
    let points: Option<Vec<Point>> = factor.levels.iter().zip(&groups).map(point).collect();
    let points = points?;
    let found = line(&points)?;
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
    let over = if factors.iter().filter(|factor| factor.levels.len() > 1).count() > 1 {
        ", on average over everything else"
    } else {
        ""
    };
    let text = format!(
        "a file takes {}{} however long it is, then its bytes run at {}: from {} lengths{over}",
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
    Some(Sentence::new(Subject::Finding, finding).settled(Verdict::Differs))
}
