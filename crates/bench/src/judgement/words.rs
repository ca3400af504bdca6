//! The sentences of a judgement.

use super::effects::Effect;
use super::findings::{doubts, requests};
use super::sweeps::gain;
use super::{CellSummary, Judgement, Options, Recommendation, Sentence, Subject, Sweep};
use super::{rules, tape};
use crate::model::{LARGE_RESIDUAL, Model, matching_limit};
use crate::quantities::{self, Cost, costs, title};
use crate::record::{Cell, Factor, Level, Role, RunRecord, shown_cell};
use crate::statistics::factorial::two_by_two;
use crate::statistics::interval::Interval;
use finding::{Certainty, Finding, Unit};
use report::format::rate;

/// A plateau and a limit that are nearer than this are taken to be the same.
const LIMIT_TOLERANCE: f64 = 0.06;

/// Levels that differ by less than this, as a share, make no difference.
const FLAT: f64 = 0.02;

/// What to set, what it brings and costs, and what the numbers say about the hardware.
pub fn conclusions(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    options: &Options,
) -> Vec<Sentence> {
    let mut all = Vec::new();
    for recommendation in &judgement.recommended {
        let words = Words { factors, judgement, options, recommendation };
        words.settings(&mut all);
        words.gain(&mut all);
        words.costs(&mut all);
    }
    let common = for_all_loads(judgement, options);
    all.extend(common.iter().map(|(settings, share)| one_for_all(settings, *share, factors)));
    let drive = tape::Drive::of(runs);
    for sweep in judgement.sweeps.iter().filter(|sweep| sweep.is_told) {
        all.extend(model_sentences(factors, sweep, judgement, drive.as_ref(), options));
    }
    let first = judgement.recommended.first().map(|found| &judgement.cells[found.cell].cell);
    if let Some(anchor) = common.as_ref().map(|(settings, _)| settings).or(first) {
        all.extend(joint_effects(factors, anchor, judgement, options));
    }
    all.extend(requests(judgement, factors, runs));
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
    all.extend(doubts(factors, runs, &judgement.cells));
    all.extend(repeats(judgement, options));
    all
}

/// Where there are several loads: the settings with which the worst served of them loses least, and
/// what share of its best that one keeps.
fn for_all_loads(judgement: &Judgement, options: &Options) -> Option<(Cell, f64)> {
    let loads = &judgement.recommended;
    let settings_of = |cell: &Cell, load: &Cell| -> Cell {
        let own = cell.iter().filter(|(name, _)| !load.contains_key(*name));
        own.map(|(name, level)| (name.clone(), level.clone())).collect()
    };
    let mut worst: Vec<(Cell, usize, f64)> = Vec::new();
    for found in loads.iter().filter(|_| loads.len() > 1) {
        let best = judgement.cells[found.best].mean_bytes_per_second;
        let of_load = judgement.cells.iter().filter(|cell| {
            found.load.iter().all(|(name, level)| cell.cell.get(name) == Some(level))
        });
        for cell in of_load {
            let settings = settings_of(&cell.cell, &found.load);
            let share = cell.mean_bytes_per_second / best;
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
            let text = format!("{load}{}", self.choice(sweep, chosen));
            let finding = Finding::new(&rules::SETTING, Certainty::Inferred, text);
            all.push(Sentence::new(Subject::Set, finding));
            if let Some(text) = self.edge(sweep, chosen) {
                let text = format!("{load}{text}");
                let finding = Finding::new(&rules::NOT_TESTED, Certainty::Unknown, text);
                all.push(Sentence::new(Subject::Doubt, finding));
            }
        }
    }

    fn choice(&self, sweep: &Sweep, chosen: usize) -> String {
        let name = title(&sweep.factor);
        let shown = |place: usize| self.level(sweep, place);
        let speed = |place: usize| rate(self.cell(sweep.cells[place]).mean_bytes_per_second);
        let last = sweep.cells.len() - 1;
        let numeric = self.factor(&sweep.factor).is_some_and(Factor::is_numeric);
        let slowest = sweep.cells.iter().map(|&cell| self.cell(cell).mean_bytes_per_second);
        let slowest = slowest.fold(f64::INFINITY, f64::min);
        let best = self.cell(sweep.cells[sweep.best]).mean_bytes_per_second;
        if slowest >= best * (1.0 - self.options.indifference.max(0.02)) {
            return format!("{name}: no difference, keep {}", shown(chosen));
        }
        let flat = if chosen < sweep.best {
            format!(", as good as the best ({} at {})", speed(sweep.best), shown(sweep.best))
        } else {
            String::new()
        };
        match (numeric, chosen == last) {
            (true, true) => format!(
                "{name}: {} ({}); no knee up to there, the rate still rises at the largest one \
                 tested",
                shown(chosen),
                speed(chosen)
            ),
            (true, false) => {
                format!("{name}: {} ({}); the knee{flat}", shown(chosen), speed(chosen))
            }
            (false, _) => format!("{name}: {} ({}){flat}", shown(chosen), speed(chosen)),
        }
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
            let told = |sweep: &Sweep| sweep.is_told && sweep.cells.contains(&found.cell);
            if !self.judgement.sweeps.iter().any(told) {
                return;
            }
            let speed = rate(self.cell(found.cell).mean_bytes_per_second);
            let load = self.load();
            let text = format!("{load}none: what is in force ({speed}) is as good as all others");
            let finding = Finding::new(&rules::NO_GAIN, Certainty::Inferred, text);
            all.push(Sentence::new(Subject::Gain, finding));
            return;
        }
        let (cell, baseline) = (self.cell(found.cell), self.cell(found.baseline));
        let differing = differing(&cell.cell, &baseline.cell, self.factors);
        let text = format!(
            "{}{:.2} times the rate of {} ({} against {}){}",
            self.load(),
            found.gain,
            shown_cell(&differing, self.factors),
            rate(cell.mean_bytes_per_second),
            rate(baseline.mean_bytes_per_second),
            shown_interval(found.gain_interval, self.options),
        );
        let known =
            if found.gain_interval.is_some() { Certainty::Inferred } else { Certainty::Assumed };
        let mut finding = Finding::new(&rules::GAIN, known, text);
        finding = finding.with_number("gain", found.gain, Unit::Ratio);
        if let Some(interval) = found.gain_interval {
            finding = finding.with_number("low", interval.low, Unit::Ratio);
            finding = finding.with_number("high", interval.high, Unit::Ratio);
        }
        all.push(Sentence::new(Subject::Gain, finding));
    }

    fn costs(&self, all: &mut Vec<Sentence>) {
        let (cell, baseline) =
            (self.cell(self.recommendation.cell), self.cell(self.recommendation.baseline));
        for (measure, Cost { what, growth, is_of_one }) in costs() {
            let (Some(&now), Some(&then)) =
                (cell.measures.get(measure), baseline.measures.get(measure))
            else {
                continue;
            };
            let shown = |value| quantities::Unit::of(measure).shown(value);
            // Nothing that rounds to the same is a cost.
            let differs = shown(now) != shown(then);
            let grows = now > then * growth && differs;
            let is_excess = is_of_one && now > growth;
            if grows || is_excess {
                let instead =
                    if grows { format!(" instead of {}", shown(then)) } else { String::new() };
                let text = format!("{}{what}: {}{instead}", self.load(), shown(now));
                let finding = Finding::new(&rules::COST, Certainty::Measured, text);
                all.push(Sentence::new(Subject::Cost, finding));
            }
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

fn shown_interval(interval: Option<Interval>, options: &Options) -> String {
    match interval {
        Some(interval) => format!(
            "; {:.0} % interval {:.2} to {:.2}{}",
            options.confidence * 100.0,
            interval.low,
            interval.high,
            if interval.contains(1.0) { ": it may be nothing" } else { "" }
        ),
        None => "; one run each, so no interval".to_owned(),
    }
}

fn model_sentences(
    factors: &[Factor],
    sweep: &Sweep,
    judgement: &Judgement,
    drive: Option<&tape::Drive>,
    options: &Options,
) -> Vec<Sentence> {
    let Some(model) = sweep.model.as_ref().filter(|_| sweep.cells.len() > 3) else {
        return Vec::new();
    };
    let rates = sweep.cells.iter().map(|&index| judgement.cells[index].bytes_per_second);
    let (least, most) = rates
        .fold((f64::INFINITY, 0.0f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    let shape = if least >= most * (1.0 - FLAT) { Shape::Flat } else { Shape::Rising };
    let mut found = Vec::new();
    let mut say = |rule, text: String| {
        let finding = Finding::new(rule, Certainty::Inferred, text);
        found.push(Sentence::new(Subject::Finding, finding));
    };
    say(&rules::CURVE, curve(factors, sweep, model, shape));
    // Where the sweep has a knee, what it comes to was measured; else the curve has to tell.
    let highest = if sweep.knee + 1 < sweep.cells.len() {
        judgement.cells[sweep.cells[sweep.best]].bytes_per_second
    } else {
        model.highest_bytes_per_second()
    };
    let best = &judgement.cells[sweep.cells[sweep.best]];
    let mut limits = options.limits.clone();
    limits.extend(drive.and_then(|drive| Some(drive.limit(tape::ratio(best)?))));
    if let Some(limit) = matching_limit(highest, &limits, LIMIT_TOLERANCE) {
        let text = format!(
            "what the {} comes to, {}, is the {} ({})",
            title(&sweep.factor),
            rate(highest),
            limit.name,
            rate(limit.bytes_per_second)
        );
        say(&rules::KNOWN_LIMIT, text);
    }
    for (&index, &residual) in sweep.cells.iter().zip(&model.residuals) {
        if residual.abs() > LARGE_RESIDUAL {
            let cell = &judgement.cells[index];
            let level = cell.cell.get(&sweep.factor);
            let text = format!(
                "{} {}{} does not follow that curve: {}, {:.0} % {} than it says",
                title(&sweep.factor),
                level.map_or(String::new(), |level| level.shown(&sweep.factor)),
                in_brackets(&sweep.others, factors),
                rate(cell.bytes_per_second),
                residual.abs() * 100.0,
                if residual < 0.0 { "less" } else { "more" },
            );
            say(&rules::OFF_THE_CURVE, text);
        }
    }
    found
}

/// ` (data zeros)`, or nothing where there is nothing else.
fn in_brackets(others: &Cell, factors: &[Factor]) -> String {
    match shown_cell(others, factors).as_str() {
        "the only cell" => String::new(),
        shown => format!(" ({shown})"),
    }
}

/// What a sweep looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Flat,
    Rising,
}

fn curve(factors: &[Factor], sweep: &Sweep, model: &Model, shape: Shape) -> String {
    let others = in_brackets(&sweep.others, factors);
    let named = format!("{}{others}", title(&sweep.factor));
    let overhead = report_ns(model.overhead_ns);
    let known = quantities::factor(&sweep.factor);
    // A plateau from the first level on: that level only tells what the fixed time is below.
    if let (Some(plateau), Shape::Flat) = (model.plateau_bytes_per_second, shape) {
        let fixed_time = known.fixed_time;
        return format!("{named}: flat at {}; {fixed_time} below {overhead}", rate(plateau));
    }
    let mut text = format!("{named}: {} {overhead}", known.fixed_time);
    // In the steady state the kernel has the window that is read and the next one under way.
    if known.reads_next_window {
        let latency = report_ns(2.0 * model.overhead_ns);
        text.push_str(&format!(" with two windows under way, that is {latency} of the device"));
    }
    if model.bytes_per_second.is_finite() {
        text.push_str(&format!(", {} behind it", rate(model.bytes_per_second)));
    }
    if let Some(plateau) = model.plateau_bytes_per_second {
        text.push_str(&format!(", plateau at {}", rate(plateau)));
    }
    text.push_str(&format!("; typical residual {:.1} %", model.typical_residual() * 100.0));
    text
}

fn report_ns(nanoseconds: f64) -> String {
    match nanoseconds {
        small if small < 1e3 => format!("{small:.0} ns"),
        middle if middle < 1e6 => format!("{:.1} us", middle / 1e3),
        large => format!("{:.2} ms", large / 1e6),
    }
}

/// What a setting does at each level of a load, where that differs: the interactions that matter.
fn joint_effects(
    factors: &[Factor],
    anchor: &Cell,
    judgement: &Judgement,
    options: &Options,
) -> Vec<Sentence> {
    let varied =
        |role: Role| move |factor: &&Factor| factor.role == role && factor.levels.len() > 1;
    let mut found = Vec::new();
    for setting in factors.iter().filter(varied(Role::Setting)) {
        for load in factors.iter().filter(varied(Role::Load)) {
            let joint = Joint { setting, load, anchor, judgement, options };
            found.extend(joint.sentence());
        }
    }
    found
}

/// A setting at its first and last level with each level of a load, all else as in `anchor`.
struct Joint<'a> {
    setting: &'a Factor,
    load: &'a Factor,
    anchor: &'a Cell,
    judgement: &'a Judgement,
    options: &'a Options,
}

/// Levels of a load that a sentence has room for.
const LOAD_LEVELS_MAX: usize = 4;

impl Joint<'_> {
    fn sentence(&self) -> Option<Sentence> {
        let (first, last) = (self.setting.levels.first()?, self.setting.levels.last()?);
        let pairs: Vec<(&Level, &CellSummary, &CellSummary)> = self
            .load
            .levels
            .iter()
            .filter_map(|level| Some((level, self.find(first, level)?, self.find(last, level)?)))
            .collect();
        let value = |(_, from, to): &&(&Level, &CellSummary, &CellSummary)| {
            to.bytes_per_second / from.bytes_per_second
        };
        let order = |a: &&_, b: &&_| value(a).total_cmp(&value(b));
        let least = pairs.iter().min_by(|a, b| order(a, b))?;
        let most = pairs.iter().max_by(|a, b| order(a, b)).filter(|_| pairs.len() > 1)?;
        let rates = |cell: &CellSummary| cell.rates.iter().map(|(_, rate)| *rate).collect();
        let [aa, ba, ab, bb]: [Vec<f64>; 4] = [least.1, least.2, most.1, most.2].map(rates);
        let joint = two_by_two(&[[&aa, &ab], [&ba, &bb]], self.options.confidence);
        let certainty = match joint.map(|joint| joint.interaction) {
            Some((_, interval)) if interval.contains(1.0) => return None,
            Some((value, interval)) => format!(
                "; they work together ({value:.2} times, {:.2} to {:.2})",
                interval.low, interval.high
            ),
            None => "; one run each".to_owned(),
        };
        let told: Vec<String> =
            pairs.iter().take(LOAD_LEVELS_MAX).map(|pair| self.told(pair)).collect();
        let text = format!(
            "{} {} instead of {} brings {}{certainty}",
            self.setting.title(),
            last.shown(&self.setting.name),
            first.shown(&self.setting.name),
            joined(&told),
        );
        let known = if joint.is_some() { Certainty::Inferred } else { Certainty::Assumed };
        let finding = Finding::new(&rules::JOINT_EFFECT, known, text);
        Some(Sentence::new(Subject::Finding, finding))
    }

    fn find(&self, setting_level: &Level, load_level: &Level) -> Option<&CellSummary> {
        // Other loads at their first levels, where the anchor leaves them open.
        let mut wanted = self.judgement.recommended.first()?.load.clone();
        wanted.extend(self.anchor.clone());
        wanted.insert(self.setting.name.clone(), setting_level.clone());
        wanted.insert(self.load.name.clone(), load_level.clone());
        self.judgement.cells.iter().find(|cell| cell.cell == wanted)
    }

    fn told(&self, (level, from, to): &(&Level, &CellSummary, &CellSummary)) -> String {
        let ratio = gain(to, from, self.options.confidence);
        let value = to.bytes_per_second / from.bytes_per_second;
        let interval = ratio.map(|ratio| ratio.interval);
        let certain = interval.is_none_or(|interval| !interval.contains(1.0));
        let changes = certain && (value - 1.0).abs() > self.options.indifference.max(0.02);
        let words = if changes { format!("{value:.2} times") } else { "nothing".to_owned() };
        let between = interval.map_or(String::new(), |interval| {
            format!(" ({:.2} to {:.2})", interval.low, interval.high)
        });
        format!("{words} with {} {}{between}", self.load.title(), level.shown(&self.load.name))
    }
}

fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What the conditions do that the conclusions are over.
fn conditions(judgement: &Judgement, options: &Options) -> Vec<Sentence> {
    let Some(pooled) = &judgement.pooled else { return Vec::new() };
    let own = judgement
        .effects
        .iter()
        .filter(|effect| effect.with.is_none() && pooled.over.contains(&effect.change.factor));
    let sentence = |effect: &Effect| {
        let change = &effect.change;
        let between = effect.interval.map_or(", one run each".to_owned(), |interval| {
            format!(", {:.2} to {:.2}", interval.low, interval.high)
        });
        let what = if effect.is_real(options) {
            format!("changes the rate by {:+.1} %", 100.0 * (effect.ratio - 1.0))
        } else {
            "makes no difference".to_owned()
        };
        let text = format!(
            "{} {} instead of {} {what} on average over everything else ({:.2} times{between})",
            title(&change.factor),
            change.to.shown(&change.factor),
            change.from.shown(&change.factor),
            effect.ratio,
        );
        let finding = Finding::new(&rules::CONDITION, Certainty::Inferred, text);
        Sentence::new(Subject::Finding, finding.with_number("ratio", effect.ratio, Unit::Ratio))
    };
    own.map(sentence).collect()
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
