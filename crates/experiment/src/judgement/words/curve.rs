//! The curve through a sweep in words: what the numbers say about the hardware.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Unit};
use base::format::{counted, rate};
use base::rounding::Rounding;

use super::super::tape::Drive;
pub use super::super::told::between;
use super::super::{
    Basis, CellSummary, Judgement, JudgementOptions, RateVerdict, Sentence, Subject, Sweep, rules,
    tape,
};
use crate::quantities::{self, title};
use crate::record::{Cell, Factor, Level, shown_cell};
use crate::run::neighbours::{CORES, DISK};
use statistics::curve::known::Known;
use statistics::curve::{LARGE_RESIDUAL, Model, PhysicalLimit, Point, matching_limit};
use statistics::interval::Interval;

/// A plateau and a limit that are nearer than this, as a share, count as the same.
const LIMIT_TOLERANCE: f64 = 0.06;

/// The input for the sentences on one curve.
pub struct Curve<'a> {
    pub factors: &'a [Factor],
    pub sweep: &'a Sweep,
    /// The cells.
    pub judgement: &'a Judgement,
    /// The drive, if the experiment has one drive.
    pub drive: Option<&'a Drive>,
    /// What the judgement rests on.
    pub options: &'a JudgementOptions,
}

/// A sentence and its numbers.
struct Told {
    text: String,
    numbers: Vec<(&'static str, f64, Unit)>,
}

/// What a sweep looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// All levels are the same.
    Flat,
    /// A level differs, so that a curve can be fitted.
    Curved,
    /// Unknown: scatter hides any curve.
    Hidden,
    /// The levels ran once: there are points, but the curve is unknown.
    SeenOnce,
}

impl Curve<'_> {
    /// The sentences on the curve; none for fewer than four levels.
    pub fn sentences(&self) -> Vec<Sentence> {
        let Some(model) = self.sweep.model.as_ref().filter(|_| self.sweep.cells.len() > 3) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let (subject, certainty) = match self.sweep.basis {
            Basis::SingleRuns => (Subject::Seen, Certainty::Measured),
            Basis::Repeats => (Subject::Finding, Certainty::Inferred),
        };
        let mut say = |rule, Told { text, numbers }: Told| {
            let finding = Finding::new(rule, certainty, text);
            let with = |finding: Finding, (name, value, unit)| {
                if f64::is_finite(value) { finding.with_number(name, value, unit) } else { finding }
            };
            found.push(Sentence::new(subject, numbers.into_iter().fold(finding, with)));
        };
        let known = match self.shape() {
            Shape::Hidden => return Vec::new(),
            Shape::SeenOnce => None,
            Shape::Curved if !model.holds() => None,
            Shape::Flat => {
                say(&rules::CURVE, self.flat());
                None
            }
            Shape::Curved => {
                let known = self.known();
                known.iter().for_each(|known| say(&rules::CURVE, self.curved(model, known)));
                known
            }
        };
        let plateau = known.and_then(|known| known.plateau);
        say_all(&mut say, self.limit(model, plateau), self.off_the_curve(model));
        found
    }

    fn shape(&self) -> Shape {
        let verdicts = &self.sweep.verdicts;
        match () {
            () if self.sweep.basis == Basis::SingleRuns => Shape::SeenOnce,
            () if verdicts.contains(&RateVerdict::Differs) => Shape::Curved,
            () if verdicts.iter().all(|&verdict| verdict == RateVerdict::Same) => Shape::Flat,
            () => Shape::Hidden,
        }
    }

    fn named(&self) -> String {
        format!("{}{}", title(&self.sweep.factor), in_brackets(&self.sweep.others, self.factors))
    }

    /// On a flat curve, the time of the smallest level is an upper bound on the fixed time.
    fn flat(&self) -> Told {
        let about = quantities::factor(&self.sweep.factor);
        let best = &self.judgement.cells[self.sweep.cells[self.sweep.best]];
        let flat = format!("{}: {} at every level", self.named(), best.told(self.options.value));
        let cells = self.sweep.cells.iter().map(|&index| &self.judgement.cells[index]);
        let times = cells.filter_map(|cell| match cell.cell.get(&self.sweep.factor)? {
            Level::Number(number) if *number > 0 => Some(*number as f64 / cell.bytes_per_second),
            _ => None,
        });
        match times.min_by(f64::total_cmp) {
            Some(seconds) => {
                let most = Rounding::digits(3).seconds(seconds);
                let words = about.curve;
                let text = format!("{flat}; {} less than {most}{}", words.time, words.besides);
                Told { text, numbers: vec![("fixed_high", seconds, Unit::Seconds)] }
            }
            None => Told { text: flat, numbers: Vec::new() },
        }
    }

    /// The intervals of the curve's parameters.
    fn known(&self) -> Option<Known> {
        let point = |&cell: &usize| {
            let summary = &self.judgement.cells[cell];
            let level = quantities::bytes_at_once(&self.sweep.factor, &summary.cell)?;
            Some((Point { level, bytes_per_second: summary.bytes_per_second }, vec![cell]))
        };
        let (points, groups): (Vec<Point>, Vec<Vec<usize>>) =
            self.sweep.cells.iter().filter_map(point).unzip();
        let errors = self.judgement.comparer.errors(&groups);
        Known::of(&points, &errors, self.options.confidence)
    }

    fn curved(&self, model: &Model, known: &Known) -> Told {
        let about = quantities::factor(&self.sweep.factor);
        let words = about.curve;
        let fixed = fixed_time(model.overhead_ns, known.overhead_ns, 1.0);
        let mut text = format!("{}: {} {fixed}{}", self.named(), words.time, words.besides);
        let seconds = |nanoseconds: f64| nanoseconds / 1e9;
        let mut numbers = vec![
            ("fixed_low", seconds(known.overhead_ns.low), Unit::Seconds),
            ("fixed_high", seconds(known.overhead_ns.high), Unit::Seconds),
        ];
        // In the steady state the kernel reads the current window and the next one at once.
        if about.reads_next_window {
            let latency = fixed_time(model.overhead_ns, known.overhead_ns, 2.0);
            text.push_str(&format!(
                ": as the kernel reads two such windows at once, the device answers after {latency}"
            ));
        }
        let behind = known.bytes_per_second;
        // A rate above a known limit is impossible.
        let highest = self.limits().iter().map(|limit| limit.bytes_per_second).reduce(f64::max);
        let is_possible = highest.is_none_or(|most| behind.high <= most * (1.0 + LIMIT_TOLERANCE));
        if behind.high < 3.0 * behind.low && is_possible {
            let shown = rate_within(model.bytes_per_second, behind);
            text.push_str(&format!(", {} {shown}", words.rate));
            numbers.push(("rate_low", behind.low, Unit::BytesPerSecond));
            numbers.push(("rate_high", behind.high, Unit::BytesPerSecond));
        }
        // If the rate still rises at the last level, or one level is faster than the plateau, there
        // is none.
        let is_beaten = |plateau: Interval| {
            let mut cells = self.sweep.cells.iter().map(|&cell| &self.judgement.cells[cell]);
            cells.any(|cell| cell.bytes_per_second > plateau.high)
        };
        let plateau = known.plateau.filter(|it| !self.rises_to_the_end() && !is_beaten(*it));
        if let Some((plateau, value)) = plateau.zip(model.plateau_bytes_per_second) {
            text.push_str(&format!(", and never faster than {}", rate_within(value, plateau)));
            numbers.push(("plateau_low", plateau.low, Unit::BytesPerSecond));
            numbers.push(("plateau_high", plateau.high, Unit::BytesPerSecond));
        }
        let typical = Rounding::digits(2).percent(model.typical_residual());
        text.push_str(&format!("; a typical level is within {typical} of this"));
        Told { text, numbers }
    }

    /// Whether the recommended level, or the knee, is the last one.
    fn rises_to_the_end(&self) -> bool {
        let last = self.sweep.cells.last();
        let is_set = self.judgement.recommended.iter().any(|found| Some(&found.cell) == last);
        is_set || self.sweep.knee + 1 == self.sweep.cells.len()
    }

    fn limits(&self) -> Vec<PhysicalLimit> {
        let best = &self.judgement.cells[self.sweep.cells[self.sweep.best]];
        let mut limits = self.options.limits.clone();
        limits.extend(self.drive.and_then(|drive| Some(drive.limit(tape::ratio(best)?))));
        limits
    }

    /// The highest rate of the curve, if it matches a known limit.
    fn limit(&self, model: &Model, plateau: Option<Interval>) -> Option<String> {
        let best = &self.judgement.cells[self.sweep.cells[self.sweep.best]];
        // If the sweep has a knee, the highest rate was measured; otherwise it comes from the
        // curve, if its plateau is certain.
        let highest = match (self.rises_to_the_end(), plateau) {
            (true, Some(_)) => model.highest_bytes_per_second(),
            _ => best.bytes_per_second,
        };
        let limits = self.limits();
        let limit = matching_limit(highest, &limits, LIMIT_TOLERANCE)?;
        Some(format!(
            "{}, the most that any {} gives, is the {} ({})",
            best.told_as(highest, self.options.value),
            title(&self.sweep.factor),
            limit.name,
            rate(limit.bytes_per_second)
        ))
    }

    /// Levels that the curve does not explain, or that no curve fits.
    fn off_the_curve(&self, model: &Model) -> Vec<String> {
        if !model.holds() {
            return vec![self.no_curve(model)];
        }
        let told = |place: usize| {
            let (cell, residual) = (self.cell(place), model.residuals[place]);
            let others = [CORES, DISK].iter().filter_map(|name| cell.measured.get(*name));
            let others = match others.map(BTreeMap::len).max() {
                Some(hit) => format!(
                    "; other programs disturbed {hit} of its {}, which may be why",
                    counted(cell.rates.len() as u64, "run", "runs")
                ),
                None => String::new(),
            };
            format!(
                "{} {}{} is out of line: {}, {:.0} % {} than the other levels predict{others}",
                title(&self.sweep.factor),
                self.level(place),
                in_brackets(&self.sweep.others, self.factors),
                cell.told(self.options.value),
                residual.abs() * 100.0,
                if residual < 0.0 { "less" } else { "more" },
            )
        };
        model.strays().map(told).collect()
    }

    fn no_curve(&self, model: &Model) -> String {
        let far: Vec<String> = model.strays().map(|place| self.level(place)).collect();
        format!(
            "{}: a fixed time and a rate do not explain these levels: {} of {} ({}) lie more than \
             {:.0} % off the best fit",
            self.named(),
            far.len(),
            self.sweep.cells.len(),
            far.join(", "),
            LARGE_RESIDUAL * 100.0
        )
    }

    fn cell(&self, place: usize) -> &CellSummary {
        &self.judgement.cells[self.sweep.cells[place]]
    }

    /// The level as it is printed.
    fn level(&self, place: usize) -> String {
        let level = self.cell(place).cell.get(&self.sweep.factor);
        level.map_or(String::new(), |level| level.shown(&self.sweep.factor))
    }
}

fn say_all(
    say: &mut impl FnMut(&'static base::finding::Rule, Told),
    limit: Option<String>,
    off: Vec<String>,
) {
    let plain = |text| Told { text, numbers: Vec::new() };
    limit.into_iter().for_each(|text| say(&rules::KNOWN_LIMIT, plain(text)));
    off.into_iter().for_each(|text| say(&rules::OFF_THE_CURVE, plain(text)));
}

/// ` (data zeros)`, or nothing if nothing else is fixed.
fn in_brackets(others: &Cell, factors: &[Factor]) -> String {
    match shown_cell(others, factors).as_str() {
        "the only combination" => String::new(),
        shown => format!(" ({shown})"),
    }
}

/// A time and its interval; a bound if the lower end is near zero, a range if the interval is wide.
fn fixed_time(value: f64, known: Interval, times: f64) -> String {
    let scaled = known.map(|nanoseconds| times * nanoseconds / 1e9);
    let digits = Rounding::within(scaled.low, scaled.high);
    let shown = |seconds: f64| digits.seconds(seconds);
    match scaled {
        Interval { low, high } if low < 0.05 * high => {
            format!("less than {}", Rounding::digits(2).seconds(high))
        }
        Interval { low, high } if high > 3.0 * low => {
            format!("between {} and {}", shown(low), shown(high))
        }
        known => format!("{}{}", shown(times * value / 1e9), between(known, shown)),
    }
}

/// A rate and its interval.
pub fn rate_within(value: f64, known: Interval) -> String {
    let digits = Rounding::within(known.low, known.high);
    format!("{}{}", digits.rate(value), between(known, |rate| digits.rate_digits(rate)))
}

#[cfg(test)]
mod tests {
    use super::super::super::judge;
    use super::*;
    use crate::record::RunRecord;

    const WINDOWS: [u64; 8] =
        [256 << 10, 512 << 10, 1 << 20, 2 << 20, 2560 << 10, 4 << 20, 8 << 20, 16 << 20];

    /// All sentences on five runs of each window at these rates.
    fn told(rates: [f64; 8]) -> String {
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (place, (window, rate)) in WINDOWS.into_iter().zip(rates).enumerate() {
                runs.push(RunRecord {
                    cell: [("read_ahead_bytes".to_owned(), Level::Number(window))].into(),
                    repeat,
                    bytes: rate as u64,
                    seconds: 1.0 + 0.001 * ((repeat + place as u64) % 3) as f64,
                    ..RunRecord::default()
                });
            }
        }
        let levels = WINDOWS.map(Level::Number).to_vec();
        let factors = [Factor::new("read_ahead_bytes", levels)];
        let judgement = judge(&factors, &runs, &JudgementOptions::default());
        judgement.sentences.iter().map(|one| one.text.clone() + "\n").collect()
    }

    /// A disk of 5.5 ms and 600 MB/s behind a loop device, whose windows step. A curve through them
    /// would give wrong values (3.7 ms, 900 MB/s), and once did with narrow intervals.
    #[test]
    fn levels_that_follow_no_curve_are_told_no_numbers_of_one() {
        let text = told([72.8e6, 143e6, 200e6, 210e6, 250e6, 525e6, 394e6, 484e6]);
        assert!(text.contains("do not explain these levels: 3 of 8"), "{text}");
        for wrong in ["the device answers after", "to bridge", "out of line", "never faster than"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
        let rising = WINDOWS.map(|window| 1.0 / (1.0 / 600e6 + 2.75e-3 / window as f64));
        let text = told(rising);
        assert!(text.contains("the device answers after 5.5"), "{text}");
        assert!(!text.contains("explain these levels"), "{text}");
    }
}
