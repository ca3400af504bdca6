//! The sentences of a judgement.

mod curve;
mod joint;
mod length;
mod once;
mod together;
mod two_blocks;

pub use together::together;

use super::bounds::bounds;
use super::comparer::Against;
use super::costs::{Grown, grown};
use super::findings::{doubts, named, requests};
use super::pipes::slow_programs;
use super::read_ahead::read_ahead;
pub use super::told::told_ratio;
use super::typed::SettingToType;
use super::verdict::the_same;
use super::worth::instead;
use super::{
    Basis, CellSummary, Judgement, JudgementOptions, RateVerdict, Recommendation, Sentence,
    Subject, Sweep,
};
use super::{rules, tape};
use crate::quantities::{self, title};
use crate::record::{Cell, Factor, Level, Role, RunRecord, Value, shown_cell};
use base::finding::{Certainty, Finding, Unit};
use base::rounding::Rounding;
use curve::Curve;
use joint::{conditions, joint_effects, turned};
use once::repeats;
use statistics::interval::Interval;

/// What to set, what it brings and costs, and what the numbers say about the hardware.
pub fn conclusions(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Vec<Sentence> {
    let mut all = Vec::new();
    let somebodys: Vec<&Recommendation> =
        judgement.recommended.iter().filter(|found| !is_nobodys(&found.load)).collect();
    if somebodys.is_empty() && !judgement.recommended.is_empty() {
        let text = "no setting is recommended: all data were zeros, which no backup has; measure \
                    with other --data"
            .to_owned();
        let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
        all.push(Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled));
    }
    for recommendation in somebodys {
        let words = Words { factors, judgement, options, recommendation };
        match instead(factors, runs, judgement, options) {
            Some(sentence) => all.push(sentence),
            None => {
                words.settings(&mut all);
                words.gain(&mut all);
                words.costs(&mut all);
            }
        }
    }
    let common = for_all_loads(judgement, options);
    all.extend(common.iter().filter_map(|common| one_for_all(common, factors, judgement)));
    let drive = tape::Drive::of(runs);
    for sweep in judgement.sweeps.iter().filter(|sweep| sweep.is_told) {
        let drive = drive.as_ref();
        all.extend(Curve { factors, sweep, judgement, drive, options }.sentences());
    }
    let first = judgement.recommended.first().map(|found| &judgement.cells[found.cell].cell);
    if let Some(anchor) = common.as_ref().map(|common| &common.settings).or(first) {
        all.extend(joint_effects(factors, anchor, judgement, options));
    }
    all.extend(turned(factors, judgement));
    all.extend(requests(judgement, factors, runs));
    all.extend(read_ahead(judgement, options));
    all.extend(two_blocks::which_matters(judgement, options));
    all.extend(tape::findings(factors, runs, judgement, options));
    all
}

/// Sentences on the effects of the pooled conditions, and on what is odd about the runs.
pub fn about_runs(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &JudgementOptions,
) -> Vec<Sentence> {
    let mut all = conditions(judgement, options);
    let over_lengths = length::over_lengths(factors, judgement, options);
    if over_lengths.is_some() {
        // The sentence over all lengths replaces the comparison of two lengths.
        let is_of_length = |one: &Sentence| {
            let names = length::LENGTHS.map(|name| format!("{} ", title(name)));
            one.finding.rule == rules::CONDITION.id
                && names.iter().any(|name| one.text.starts_with(name))
        };
        all.retain(|sentence| !is_of_length(sentence));
    }
    all.extend(over_lengths);
    all.extend(bounds(factors, runs, judgement, options.value));
    all.extend(slow_programs(factors, runs, judgement));
    all.extend(doubts(factors, runs, judgement));
    all.extend(repeats(factors, judgement));
    all
}

/// The sentence on runs that were left out when conditions were pooled.
pub fn left_out(places: &[String]) -> Option<Sentence> {
    let text =
        format!("left out, to compare all settings under the same conditions: {}", named(places)?);
    Some(Sentence::new(Subject::Doubt, Finding::new(&rules::LEFT_OUT, Certainty::Measured, text)))
}

/// Whether a load only measures the hardware: a drive compresses zeros to almost nothing.
pub fn is_nobodys(load: &Cell) -> bool {
    load.get("data") == Some(&Level::Text("zeros".to_owned()))
}

/// One setting for several loads.
struct Common {
    settings: Cell,
    /// The load that loses most with it, and its best cell.
    worst: (Cell, usize),
    /// Smallest share of its best rate that any load keeps, by the intervals.
    share: f64,
    /// The same by the means.
    mean_share: f64,
    /// Whether these settings are in force.
    is_present: bool,
}

/// With several loads: the settings in force, unless others are shown to be faster for a load; then
/// the settings with which the worst-served load loses least.
fn for_all_loads(judgement: &Judgement, options: &JudgementOptions) -> Option<Common> {
    let loads: Vec<&Recommendation> =
        judgement.recommended.iter().filter(|found| !is_nobodys(&found.load)).collect();
    let settings_of = |cell: &Cell, load: &Cell| -> Cell {
        let own = cell.iter().filter(|(name, _)| !load.contains_key(*name));
        own.map(|(name, level)| (name.clone(), level.clone())).collect()
    };
    let is_better = |found: &&&Recommendation| found.cell != found.baseline;
    let changes = loads.iter().any(|found| is_better(&found));
    let mut worst: Vec<(Common, usize, f64)> = Vec::new();
    for found in loads.iter().filter(|_| loads.len() > 1) {
        let best = judgement.cells[found.best].bytes_per_second;
        let of_load = judgement.cells.iter().enumerate().filter(|(_, cell)| {
            found.load.iter().all(|(name, level)| cell.cell.get(name) == Some(level))
        });
        for (index, cell) in of_load.filter(|(index, _)| changes || *index == found.baseline) {
            let settings = settings_of(&cell.cell, &found.load);
            let told = cell.bytes_per_second / best;
            let least = judgement.comparer.at_least(index, found.best);
            match worst.iter_mut().find(|(known, ..)| known.settings == settings) {
                Some((known, seen, share)) => {
                    *seen += 1;
                    if least < known.share {
                        (known.share, known.worst) = (least, (found.load.clone(), found.best));
                    }
                    *share = share.min(told);
                }
                None => {
                    let is_present = index == found.baseline;
                    let own = (found.load.clone(), found.best);
                    let one =
                        Common { settings, worst: own, share: least, mean_share: told, is_present };
                    worst.push((one, 1, told));
                }
            }
        }
    }
    worst.retain(|(_, seen, _)| *seen == loads.len());
    let highest = worst.iter().map(|(.., share)| *share).fold(0.0, f64::max);
    let mut found = worst.into_iter().find(|(.., share)| *share >= highest - options.band);
    if let Some((own, _, share)) = &mut found {
        own.mean_share = *share;
    }
    found.map(|(own, ..)| own)
}

/// Below this share of its best rate a load counts as not served by a setting.
const SERVES_SHARE: f64 = 0.8;

/// The sentence; `None` for single runs, and if no setting was varied.
fn one_for_all(common: &Common, factors: &[Factor], judgement: &Judgement) -> Option<Sentence> {
    let is_choice = |factor: &Factor| factor.role == Role::Setting && factor.levels.len() > 1;
    if common.share <= 0.0 || !factors.iter().any(is_choice) {
        return None;
    }
    let (load, best) = &common.worst;
    let best = &judgement.cells[*best].cell;
    let own: Cell = best
        .iter()
        .filter(|(name, _)| !load.contains_key(*name))
        .map(|(name, level)| (name.clone(), level.clone()))
        .collect();
    let settings = shown_cell(&common.settings, factors);
    let (worst, own_shown) = (shown_cell(load, factors), shown_cell(&own, factors));
    let share = (common.share * 100.0).floor();
    let serves = common.mean_share >= SERVES_SHARE;
    let text = if !serves {
        let mean = base::format::percent(common.mean_share);
        format!(
            "no setting suits every load: the best compromise, {settings}, gives {worst} {mean} of \
             its rate with {own_shown}"
        )
    } else {
        let keep = if common.is_present { "keep " } else { "" };
        let loses = if own == common.settings {
            "every load is at its best with it".to_owned()
        } else {
            format!(
                "{worst} loses most and keeps at least {share:.0} % of its rate with {own_shown}"
            )
        };
        format!("one setting for every load: {keep}{settings}; {loses}")
    };
    let finding = Finding::new(&rules::ONE_FOR_ALL, Certainty::Inferred, text);
    Some(Sentence::new(
        if serves { Subject::Set } else { Subject::Finding },
        finding.with_number("share_of_best", common.share, Unit::Share),
    ))
}

/// Levels whose whole interval lies within this share of the best one make next to no difference.
const NEXT_TO_NOTHING: f64 = 0.15;

struct Words<'a> {
    factors: &'a [Factor],
    judgement: &'a Judgement,
    options: &'a JudgementOptions,
    recommendation: &'a Recommendation,
}

impl Words<'_> {
    /// `with random data: `, or nothing if there is only one load.
    fn load(&self) -> String {
        match self.judgement.recommended.len() {
            0 | 1 => String::new(),
            _ => format!("{}: ", shown_cell(&self.recommendation.load, self.factors)),
        }
    }

    fn cell(&self, index: usize) -> &CellSummary {
        &self.judgement.cells[index]
    }

    fn settings(&self, all: &mut Vec<Sentence>) {
        let load = self.load();
        let recommended = self.recommendation.cell;
        for sweep in &self.judgement.sweeps {
            if !(sweep.is_told && sweep.cells.contains(&recommended)) {
                continue;
            }
            // For the sweep through the recommended cell, recommend that cell's level.
            let chosen = sweep.cells.iter().position(|&cell| cell == recommended).unwrap_or(0);
            let choice = self.choice(&load, sweep, chosen);
            // If all levels are the same, this sentence would repeat it.
            let is_same = choice.verdict == Some(RateVerdict::Same);
            all.extend(self.where_it_no_longer_matters(&load, sweep, chosen).filter(|_| !is_same));
            all.push(choice);
            if let Some(text) = self.edge(sweep, chosen) {
                let text = format!("{load}{text}");
                let finding = Finding::new(&rules::NOT_TESTED, Certainty::Unknown, text);
                all.push(Sentence::new(Subject::Doubt, finding));
            }
        }
    }

    /// What to set, and which levels are as good or not distinguishable from it.
    fn choice(&self, load: &str, sweep: &Sweep, chosen: usize) -> Sentence {
        let name = format!("{load}{}", title(&sweep.factor));
        let shown = self.level(sweep, chosen);
        let has = |verdict: RateVerdict| sweep.verdicts.contains(&verdict);
        let is_seen_once = self.recommendation.basis == Basis::SingleRuns;
        if sweep.basis == Basis::SingleRuns && (is_seen_once || !has(RateVerdict::Differs)) {
            return self.seen(&name, sweep, chosen);
        }
        let certainty = Certainty::Inferred;
        let change = self.change(sweep, chosen);
        // Do not say "keep" for a level that is not in force: it came with the recommended cell.
        let keeps = change.as_ref().is_none_or(|change| change.from == change.to);
        let stay = if keeps {
            format!("keep {shown}")
        } else {
            format!("the gain was measured with {shown}")
        };
        // Levels shown to be slower settle nothing about those that may be faster.
        let is_open =
            !has(RateVerdict::Differs) || self.recommendation.verdict == RateVerdict::NotSettled;
        if is_open && has(RateVerdict::NotSettled) {
            let text = format!(
                "{name}: not settled, {stay}: another level may still be {} faster; add repeats to \
                 settle it",
                up_to(sweep.hidden)
            );
            let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
            return Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled);
        }
        if !has(RateVerdict::Differs) {
            let same = the_same(self.options);
            let text = format!("{name}: {same} at every level, {stay}");
            let finding = Finding::new(&rules::SETTING, certainty, text);
            return Sentence::new(Subject::Set, finding).settled(RateVerdict::Same);
        }
        let text = format!(
            "{name}: {shown} ({}){}{}{}",
            self.cell(sweep.cells[chosen]).told(self.options.value),
            self.place_of(sweep, chosen),
            self.levels_that(sweep, chosen, RateVerdict::Same, &the_same(self.options)),
            self.open_levels(sweep, chosen),
        );
        let finding = Finding::new(&rules::SETTING, certainty, text);
        Sentence { change, ..Sentence::new(Subject::Set, finding).settled(RateVerdict::Differs) }
    }

    /// What single runs showed: the fastest level, and how near to it the chosen one is.
    fn seen(&self, name: &str, sweep: &Sweep, chosen: usize) -> Sentence {
        let speed = |place: usize| self.cell(sweep.cells[place]).bytes_per_second;
        let (own, best) = (self.level(sweep, chosen), self.level(sweep, sweep.best));
        let near = if chosen == sweep.best {
            String::new()
        } else {
            let share = 100.0 * (speed(sweep.best) / speed(chosen) - 1.0);
            format!(
                ", and {own} ({}) came within {share:.1} % of it",
                self.options.value.shown(speed(chosen))
            )
        };
        let text = format!(
            "{name}: {best} was the fastest ({}){near}; from single runs",
            self.options.value.shown(speed(sweep.best))
        );
        let finding = Finding::new(&rules::SEEN_ONCE, Certainty::Measured, text);
        Sentence::new(Subject::Seen, finding)
    }

    /// From the level in force to the one that is recommended.
    fn change(&self, sweep: &Sweep, chosen: usize) -> Option<SettingToType> {
        let level = |cell: usize| self.cell(cell).cell.get(&sweep.factor).cloned();
        let (from, to) = (level(self.recommendation.baseline)?, level(sweep.cells[chosen])?);
        Some(SettingToType { factor: sweep.factor.clone(), from, to })
    }

    /// Describes whether the chosen level is the knee, or whether there is no knee.
    fn place_of(&self, sweep: &Sweep, chosen: usize) -> &'static str {
        let numeric = self.factor(&sweep.factor).is_some_and(Factor::is_numeric);
        let differs = |place: usize| sweep.verdicts[place] == RateVerdict::Differs;
        let is_last = chosen + 1 == sweep.cells.len();
        // If a smaller level may be as fast, the chosen one is not the smallest.
        let is_above = chosen > 0 && (0..chosen).all(differs);
        match (numeric && is_above, is_last) {
            (true, true) => match self.options.value {
                Value::Rate => ", the largest tested: the rate still rises there",
                Value::Time => ", the largest tested: the time still falls there",
            },
            (true, false) => ", the smallest that is as fast as any",
            _ => "",
        }
    }

    /// `; the same within 2 %: 1 MiB, 2 MiB`.
    fn levels_that(
        &self,
        sweep: &Sweep,
        chosen: usize,
        verdict: RateVerdict,
        what: &str,
    ) -> String {
        let places = 0..sweep.cells.len();
        let own = places.filter(|&place| place != chosen && sweep.verdicts[place] == verdict);
        let shown: Vec<String> = own.map(|place| self.level(sweep, place)).collect();
        if shown.is_empty() { String::new() } else { format!("; {what}: {}", shown.join(", ")) }
    }

    /// `; 64 KiB may be as fast: 8 % slower to 1 % faster`, for each level that is not settled.
    fn open_levels(&self, sweep: &Sweep, chosen: usize) -> String {
        let is_open =
            |place: &usize| *place != chosen && sweep.verdicts[*place] == RateVerdict::NotSettled;
        let open: Vec<usize> = (0..sweep.cells.len()).filter(is_open).collect();
        let cells: Vec<usize> = open.iter().map(|&place| sweep.cells[place]).collect();
        let against = self.judgement.comparer.against(sweep.cells[chosen], &cells);
        let told = |(&place, against): (&usize, &Against)| {
            let side = |ratio: f64| {
                let percent = (100.0 * (ratio - 1.0).abs()).ceil();
                format!("{percent:.0} % {}", if ratio < 1.0 { "slower" } else { "faster" })
            };
            let Interval { low, high } = against.interval;
            let level = self.level(sweep, place);
            match against.basis {
                Basis::Repeats => format!("{level} ({} to {})", side(low), side(high)),
                Basis::SingleRuns => format!("{level} (ran once)"),
            }
        };
        let told: Vec<String> = open.iter().zip(&against).map(told).collect();
        if told.is_empty() {
            String::new()
        } else {
            format!("; may be as fast: {}", told.join(", "))
        }
    }

    /// The level from which on a number makes almost no difference, if there is one. It is the
    /// answer when no single level can be distinguished from the others.
    fn where_it_no_longer_matters(
        &self,
        load: &str,
        sweep: &Sweep,
        chosen: usize,
    ) -> Option<Sentence> {
        let count = sweep.cells.len();
        let is_numeric = self.factor(&sweep.factor).is_some_and(Factor::is_numeric);
        if !is_numeric || count < 3 || sweep.basis != Basis::Repeats {
            return None;
        }
        let comparer = &self.judgement.comparer;
        let best = sweep.cells[sweep.best];
        let least: Vec<f64> =
            sweep.cells.iter().map(|&cell| comparer.at_least(cell, best)).collect();
        let within = |from: usize| 1.0 - least[from..].iter().copied().fold(1.0, f64::min);
        let from = (0..count - 1).find(|&from| within(from) <= NEXT_TO_NOTHING)?;
        // A level that is shown to be faster matters, however small the difference.
        if chosen < from || sweep.verdicts[from..].contains(&RateVerdict::Differs) {
            return None;
        }
        let percent = (100.0 * within(from)).ceil().max(1.0);
        let name = title(&sweep.factor);
        let text = if from == 0 {
            format!("{load}{name} does not matter: all levels are within {percent:.0} %")
        } else {
            let level = self.level(sweep, from);
            format!("{load}{name} does not matter from {level} on: all within {percent:.0} %")
        };
        let finding = Finding::new(&rules::PLATEAU, Certainty::Inferred, text);
        let finding = finding.with_number("within", within(from), Unit::Share);
        Some(Sentence::new(Subject::Set, finding).settled(RateVerdict::Same))
    }

    /// A note that larger levels were not tested.
    fn edge(&self, sweep: &Sweep, chosen: usize) -> Option<String> {
        let numeric = self.factor(&sweep.factor)?.is_numeric();
        let name = title(&sweep.factor);
        let edge = self.level(sweep, sweep.cells.len() - 1);
        (numeric && chosen + 1 == sweep.cells.len())
            .then(|| format!("no {name} above {edge} was tested; a larger one may be faster"))
    }

    fn level(&self, sweep: &Sweep, place: usize) -> String {
        let cell = self.cell(sweep.cells[place]);
        cell.cell.get(&sweep.factor).map_or(String::new(), |level| level.shown(&sweep.factor))
    }

    fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    fn gain(&self, all: &mut Vec<Sentence>) {
        let found = self.recommendation;
        if found.cell == found.baseline {
            all.extend(self.no_gain());
            return;
        }
        let (cell, baseline) = (self.cell(found.cell), self.cell(found.baseline));
        let differing = differing(&cell.cell, &baseline.cell, self.factors);
        if found.basis == Basis::SingleRuns {
            all.push(self.seen_gain(&differing));
            return;
        }
        let value = self.options.value;
        let (of_all, then) = (cell.told(value), baseline.told(value));
        // If runs are missing, the gain is not the ratio of the plain means.
        let now = cell.told_as(found.gain * baseline.bytes_per_second, value);
        let missing = if now == of_all { "" } else { ", as if no run were missing" };
        let (gain, between) = told_ratio(found.gain, found.gain_interval);
        let text = format!(
            "{}{gain} times {} {}{between}: {now} against {then}{missing}",
            self.load(),
            self.times_what(),
            shown_cell(&differing, self.factors),
        );
        let mut finding = Finding::new(&rules::GAIN, Certainty::Inferred, text);
        finding = finding.with_number("gain", found.gain, Unit::Ratio);
        if let Some(interval) = found.gain_interval {
            finding = finding.with_number("low", interval.low, Unit::Ratio);
            finding = finding.with_number("high", interval.high, Unit::Ratio);
        }
        all.push(Sentence::new(Subject::Gain, finding).settled(found.verdict));
    }

    /// The words after the number of times.
    fn times_what(&self) -> &'static str {
        match self.options.value {
            Value::Rate => "the rate of",
            Value::Time => "as fast as",
        }
    }

    /// How much faster a single run was, and the scatter that would explain it. The scatter is
    /// unknown, so the sentence says how large it would have to be.
    fn seen_gain(&self, differing: &Cell) -> Sentence {
        let found = self.recommendation;
        let (cell, baseline) = (self.cell(found.cell), self.cell(found.baseline));
        let scatter = self.judgement.comparer.explaining_scatter(found.gain.ln());
        let text = format!(
            "{}about {} times {} {}, in one run each: {} against {}; if runs differ by {} or more, \
             chance alone explains it",
            self.load(),
            Rounding::of(None).number(found.gain),
            self.times_what(),
            shown_cell(differing, self.factors),
            cell.told(self.options.value),
            baseline.told(self.options.value),
            if scatter < 1.0 {
                Rounding::of(None).percent(scatter)
            } else {
                format!("a factor of {}", Rounding::of(None).number(1.0 + scatter))
            },
        );
        let finding = Finding::new(&rules::SEEN_ONCE, Certainty::Measured, text)
            .with_number("gain", found.gain, Unit::Ratio)
            .with_number("explaining_scatter", scatter, Unit::Share);
        Sentence::new(Subject::Seen, finding)
    }

    /// The settings in force are kept, because nothing is faster or because nothing is settled.
    fn no_gain(&self) -> Option<Sentence> {
        let found = self.recommendation;
        let told = |sweep: &&Sweep| sweep.is_told && sweep.cells.contains(&found.cell);
        let sweeps = self.judgement.sweeps.iter().filter(told).count();
        let speed = self.cell(found.cell).told(self.options.value);
        let load = self.load();
        if found.verdict == RateVerdict::Same && sweeps > 0 {
            let text = format!(
                "{load}none: nothing is faster than what is in force ({speed}) by {:.0} % or more",
                self.options.band * 100.0
            );
            let finding = Finding::new(&rules::NO_GAIN, Certainty::Inferred, text);
            return Some(Sentence::new(Subject::Gain, finding).settled(found.verdict));
        }
        // With one setting, the sentence on that setting says it.
        (sweeps > 1 && found.basis == Basis::Repeats).then(|| {
            let text = format!(
                "{load}what is in force ({speed}) may not be the fastest: another combination may \
                 still be {} faster",
                up_to(found.hidden)
            );
            let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
            Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled)
        })
    }

    fn costs(&self, all: &mut Vec<Sentence>) {
        let (cell, baseline) =
            (self.cell(self.recommendation.cell), self.cell(self.recommendation.baseline));
        for Grown { measure, what, now, then } in grown(cell, baseline) {
            let shown = |value| quantities::Unit::of(measure).shown(value);
            // A difference that disappears in rounding is not a cost.
            let then = then.map(shown).filter(|then| *then != shown(now));
            let instead = then.map_or(String::new(), |then| format!(" instead of {then}"));
            let text = format!("{}{what}: {}{instead}", self.load(), shown(now));
            let finding = Finding::new(&rules::COST, Certainty::Measured, text);
            all.push(Sentence::new(Subject::Cost, finding));
        }
    }
}

/// The levels of the baseline that are not those of the cell.
fn differing(cell: &Cell, baseline: &Cell, factors: &[Factor]) -> Cell {
    let differs = |name: &String| cell.get(name) != baseline.get(name);
    let known = |name: &String| factors.iter().any(|factor| factor.name == *name);
    baseline
        .iter()
        .filter(|(name, _)| differs(name) && known(name))
        .map(|(name, level)| (name.clone(), level.clone()))
        .collect()
}

/// `up to 12 %`, rounded up; for a single run no bound is known.
fn up_to(hidden: f64) -> String {
    match hidden {
        bound if bound.is_finite() => format!("up to {:.0} %", (100.0 * (bound - 1.0)).ceil()),
        _ => "much".to_owned(),
    }
}
