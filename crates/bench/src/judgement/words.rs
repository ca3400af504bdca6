//! The sentences of a judgement.

mod curve;
mod joint;
mod length;

use super::bounds::bounds;
use super::costs::{Grown, grown};
use super::findings::{doubts, named, requests};
use super::pipes::slow_programs;
use super::read_ahead::read_ahead;
use super::typed::Change;
use super::verdict::the_same;
use super::{CellSummary, Judgement, Options, Recommendation, Sentence, Subject, Sweep, Verdict};
use super::{rules, tape};
use crate::quantities::{self, title};
use crate::record::{Cell, Factor, Level, RunRecord, Value, shown_cell};
use crate::statistics::interval::Interval;
use curve::Curve;
use finding::{Certainty, Finding, Unit};
use joint::{conditions, joint_effects};

/// What to set, what it brings and costs, and what the numbers say about the hardware.
pub fn conclusions(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &Options,
) -> Vec<Sentence> {
    let mut all = Vec::new();
    let somebodys: Vec<&Recommendation> =
        judgement.recommended.iter().filter(|found| !is_nobodys(&found.load)).collect();
    if somebodys.is_empty() && !judgement.recommended.is_empty() {
        let text = "what to set: zeros are data that nobody has, and no reason for a setting; \
                    other --data would tell"
            .to_owned();
        let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
        all.push(Sentence::new(Subject::Doubt, finding).settled(Verdict::NotSettled));
    }
    for recommendation in somebodys {
        let words = Words { factors, judgement, options, recommendation };
        words.settings(&mut all);
        words.gain(&mut all);
        words.costs(&mut all);
    }
    let common = for_all_loads(judgement, options);
    all.extend(common.iter().map(|(settings, share)| one_for_all(settings, *share, factors)));
    let drive = tape::Drive::of(runs);
    for sweep in judgement.sweeps.iter().filter(|sweep| sweep.is_told) {
        let drive = drive.as_ref();
        all.extend(Curve { factors, sweep, judgement, drive, options }.sentences());
    }
    let first = judgement.recommended.first().map(|found| &judgement.cells[found.cell].cell);
    if let Some(anchor) = common.as_ref().map(|(settings, _)| settings).or(first) {
        all.extend(joint_effects(factors, anchor, judgement, options));
    }
    all.extend(requests(judgement, factors, runs));
    all.extend(read_ahead(judgement, options));
    all.extend(tape::findings(factors, runs, judgement, options));
    all
}

/// What the conditions do that were pooled, and what is odd about the runs.
pub fn about_runs(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &Options,
) -> Vec<Sentence> {
    let mut all = conditions(judgement, options);
    let over_lengths = length::over_lengths(factors, judgement, options);
    if over_lengths.is_some() {
        // One voice: two lengths against each other say the same less well.
        let is_of_length = |one: &Sentence| {
            one.finding.rule.id == rules::CONDITION.id
                && one.text.starts_with(&format!("{} ", title(length::LENGTH)))
        };
        all.retain(|sentence| !is_of_length(sentence));
    }
    all.extend(over_lengths);
    all.extend(bounds(factors, runs, judgement));
    all.extend(slow_programs(factors, runs, judgement));
    all.extend(doubts(factors, runs, &judgement.cells));
    all.extend(repeats(judgement, options));
    all
}

/// What does not count where conclusions are drawn over conditions.
pub fn left_out(places: &[String]) -> Option<Sentence> {
    let text = format!(
        "left out, so that all settings are compared over the same conditions: {}",
        named(places)?
    );
    Some(Sentence::new(Subject::Doubt, Finding::new(&rules::LEFT_OUT, Certainty::Measured, text)))
}

/// Whether a load is one that only measures the hardware: a drive makes nothing of zeros.
fn is_nobodys(load: &Cell) -> bool {
    load.get("data") == Some(&Level::Text("zeros".to_owned()))
}

/// Where there are several loads: the settings with which the worst served of them loses least, and
/// what share of its best that one keeps.
fn for_all_loads(judgement: &Judgement, options: &Options) -> Option<(Cell, f64)> {
    let loads: Vec<&Recommendation> =
        judgement.recommended.iter().filter(|found| !is_nobodys(&found.load)).collect();
    let settings_of = |cell: &Cell, load: &Cell| -> Cell {
        let own = cell.iter().filter(|(name, _)| !load.contains_key(*name));
        own.map(|(name, level)| (name.clone(), level.clone())).collect()
    };
    let mut worst: Vec<(Cell, usize, f64)> = Vec::new();
    for found in loads.iter().filter(|_| loads.len() > 1) {
        let best = judgement.cells[found.best].bytes_per_second;
        let of_load = judgement.cells.iter().filter(|cell| {
            found.load.iter().all(|(name, level)| cell.cell.get(name) == Some(level))
        });
        for cell in of_load {
            let settings = settings_of(&cell.cell, &found.load);
            let share = cell.bytes_per_second / best;
            match worst.iter_mut().find(|(known, ..)| *known == settings) {
                Some((_, seen, least)) => (*seen, *least) = (*seen + 1, least.min(share)),
                None => worst.push((settings, 1, share)),
            }
        }
    }
    worst.retain(|(_, seen, _)| *seen == loads.len());
    let highest = worst.iter().map(|(.., share)| *share).fold(0.0, f64::max);
    let slack = options.indifference.max(options.assumed_scatter);
    if worst.len() < 2 {
        return None;
    }
    let found = worst.into_iter().find(|(.., share)| *share >= highest - slack)?;
    Some((found.0, found.2))
}

fn one_for_all(settings: &Cell, share: f64, factors: &[Factor]) -> Sentence {
    let text = format!(
        "one setting for all of them: {}; each gets {:.0} % of its best or more",
        shown_cell(settings, factors),
        (share * 100.0).floor()
    );
    let finding = Finding::new(&rules::ONE_FOR_ALL, Certainty::Inferred, text);
    Sentence::new(Subject::Set, finding.with_number("share_of_best", share, Unit::Share))
}

struct Words<'a> {
    factors: &'a [Factor],
    judgement: &'a Judgement,
    options: &'a Options,
    recommendation: &'a Recommendation,
}

impl Words<'_> {
    /// `with random data: `, or nothing where there is only one load.
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
            // The sweep through the recommended cell; what to set is that cell's level.
            let chosen = sweep.cells.iter().position(|&cell| cell == recommended).unwrap_or(0);
            all.push(self.choice(&load, sweep, chosen));
            if let Some(text) = self.edge(sweep, chosen) {
                let text = format!("{load}{text}");
                let finding = Finding::new(&rules::NOT_TESTED, Certainty::Unknown, text);
                all.push(Sentence::new(Subject::Doubt, finding));
            }
        }
    }

    /// What to set, and which levels are as good or cannot be told from it.
    fn choice(&self, load: &str, sweep: &Sweep, chosen: usize) -> Sentence {
        let name = format!("{load}{}", title(&sweep.factor));
        let shown = self.level(sweep, chosen);
        let has = |verdict: Verdict| sweep.verdicts.contains(&verdict);
        let certainty = if sweep.is_assumed { Certainty::Assumed } else { Certainty::Inferred };
        let change = self.change(sweep, chosen);
        // What is not in force cannot be kept: it came with what is recommended.
        let keeps = change.as_ref().is_none_or(|change| change.from == change.to);
        let stay = if keeps {
            format!("keep {shown}")
        } else {
            format!("the gain was measured with {shown}")
        };
        if !has(Verdict::Differs) && has(Verdict::NotSettled) {
            let text = format!(
                "{name}: not settled, {stay}: another level may still be up to {:.0} % \
                 faster, more repeats would tell",
                (100.0 * (sweep.hidden - 1.0)).ceil()
            );
            let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
            return Sentence::new(Subject::Doubt, finding).settled(Verdict::NotSettled);
        }
        if !has(Verdict::Differs) {
            let same = the_same(self.options);
            let text = format!("{name}: {same} at every level, {stay}");
            let finding = Finding::new(&rules::SETTING, certainty, text);
            return Sentence::new(Subject::Set, finding).settled(Verdict::Same);
        }
        let text = format!(
            "{name}: {shown} ({}){}{}{}",
            self.options.value.shown(self.cell(sweep.cells[chosen]).bytes_per_second),
            self.place_of(sweep, chosen),
            self.levels_that(sweep, chosen, Verdict::Same, &the_same(self.options)),
            self.levels_that(sweep, chosen, Verdict::NotSettled, "not told apart from it"),
        );
        let finding = Finding::new(&rules::SETTING, certainty, text);
        Sentence { change, ..Sentence::new(Subject::Set, finding).settled(Verdict::Differs) }
    }

    /// From the level in force to the one that is recommended.
    fn change(&self, sweep: &Sweep, chosen: usize) -> Option<Change> {
        let level = |cell: usize| self.cell(cell).cell.get(&sweep.factor).cloned();
        let (from, to) = (level(self.recommendation.baseline)?, level(sweep.cells[chosen])?);
        Some(Change { factor: sweep.factor.clone(), from, to })
    }

    /// Whether it is the knee, or there is none.
    fn place_of(&self, sweep: &Sweep, chosen: usize) -> &'static str {
        let numeric = self.factor(&sweep.factor).is_some_and(Factor::is_numeric);
        let differs = |place: usize| sweep.verdicts[place] == Verdict::Differs;
        let is_last = chosen + 1 == sweep.cells.len();
        let is_above = (0..chosen).any(differs);
        match (numeric && is_above, is_last) {
            (true, true) if differs(chosen - 1) => match self.options.value {
                Value::Rate => {
                    "; no knee up to there, the rate still rises at the largest one tested"
                }
                Value::Time => {
                    "; no knee up to there, the time still falls at the largest one tested"
                }
            },
            (true, false) => "; the knee",
            _ => "",
        }
    }

    /// `; the same within 2 %: 1 MiB, 2 MiB`.
    fn levels_that(&self, sweep: &Sweep, chosen: usize, verdict: Verdict, what: &str) -> String {
        let places = 0..sweep.cells.len();
        let own = places.filter(|&place| place != chosen && sweep.verdicts[place] == verdict);
        let shown: Vec<String> = own.map(|place| self.level(sweep, place)).collect();
        if shown.is_empty() { String::new() } else { format!("; {what}: {}", shown.join(", ")) }
    }

    /// What lies outside of the levels.
    fn edge(&self, sweep: &Sweep, chosen: usize) -> Option<String> {
        let numeric = self.factor(&sweep.factor)?.is_numeric();
        let name = title(&sweep.factor);
        let edge = self.level(sweep, sweep.cells.len() - 1);
        (numeric && chosen + 1 == sweep.cells.len())
            .then(|| format!("whether a {name} above {edge} is faster still was not tested"))
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
        let text = format!(
            "{}{:.2} times {} {} ({} against {}){}",
            self.load(),
            found.gain,
            match self.options.value {
                Value::Rate => "the rate of",
                Value::Time => "as fast as",
            },
            shown_cell(&differing, self.factors),
            // One mean: where runs are missing the gain is not the ratio of the plain ones.
            self.options.value.shown(found.gain * baseline.bytes_per_second),
            self.options.value.shown(baseline.bytes_per_second),
            shown_interval(found, self.options),
        );
        // A gain from one run each is not shown.
        let (subject, known) = match found.gain_interval {
            Some(_) => (Subject::Gain, Certainty::Inferred),
            None => (Subject::Doubt, Certainty::Assumed),
        };
        let mut finding = Finding::new(&rules::GAIN, known, text);
        finding = finding.with_number("gain", found.gain, Unit::Ratio);
        if let Some(interval) = found.gain_interval {
            finding = finding.with_number("low", interval.low, Unit::Ratio);
            finding = finding.with_number("high", interval.high, Unit::Ratio);
        }
        all.push(Sentence::new(subject, finding).settled(found.verdict));
    }

    /// What is in force is kept: because nothing is faster, or because nothing is known.
    fn no_gain(&self) -> Option<Sentence> {
        let found = self.recommendation;
        let told = |sweep: &&Sweep| sweep.is_told && sweep.cells.contains(&found.cell);
        let sweeps = self.judgement.sweeps.iter().filter(told).count();
        let speed = self.options.value.shown(self.cell(found.cell).bytes_per_second);
        let load = self.load();
        if found.verdict == Verdict::Same && sweeps > 0 {
            let text = format!(
                "{load}none: nothing is faster than what is in force ({speed}) by {:.0} % or more",
                self.options.band * 100.0
            );
            let finding = Finding::new(&rules::NO_GAIN, Certainty::Inferred, text);
            return Some(Sentence::new(Subject::Gain, finding).settled(found.verdict));
        }
        // Of one setting its own sentence says it.
        (sweeps > 1).then(|| {
            let text = format!(
                "{load}whether anything is faster than what is in force ({speed}): another \
                 combination may still be up to {:.0} % faster",
                (100.0 * (found.hidden - 1.0)).ceil()
            );
            let finding = Finding::new(&rules::NOT_SETTLED, Certainty::Unknown, text);
            Sentence::new(Subject::Doubt, finding).settled(Verdict::NotSettled)
        })
    }

    fn costs(&self, all: &mut Vec<Sentence>) {
        let (cell, baseline) =
            (self.cell(self.recommendation.cell), self.cell(self.recommendation.baseline));
        for Grown { measure, what, now, then } in grown(cell, baseline) {
            let shown = |value| quantities::Unit::of(measure).shown(value);
            // Nothing that rounds to the same is a cost.
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

fn shown_interval(found: &Recommendation, options: &Options) -> String {
    let Some(Interval { low, high }) = found.gain_interval else {
        return "; one run each, so no interval".to_owned();
    };
    let interval = format!("; {:.0} % interval {low:.2} to {high:.2}", options.confidence * 100.0);
    match found.compared {
        2 => interval,
        many => format!("{interval} as one of {many} that were compared"),
    }
}

/// Whether there were repeats at all.
fn repeats(judgement: &Judgement, options: &Options) -> Option<Sentence> {
    let single = judgement.cells.iter().filter(|cell| cell.rates.len() == 1).count();
    (single > 0).then(|| {
        let text = format!(
            "{single} of {} cells ran once only: what a second run would give is not known, \
             {:.0} % scatter is assumed",
            judgement.cells.len(),
            options.assumed_scatter * 100.0
        );
        let finding = Finding::new(&rules::ONE_RUN_EACH, Certainty::Assumed, text);
        Sentence::new(Subject::Doubt, finding)
    })
}
