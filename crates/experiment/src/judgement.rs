//! From runs to sentences: what to set, what it brings, what it costs, and what is not known.
//!
//! This module runs and draws nothing. It takes factors and runs, from a file or a published table,
//! and returns the numbers together with the words for them, so that the terminal, the page and the
//! JSON document say the same. The methods are those of [`statistics`]; `docs/design/statistics.md`
//! says which method is used for what.

mod advice;
mod bounds;
mod cells;
mod comparer;
mod costs;
mod effects;
mod findings;
mod pipes;
mod pool;
mod read_ahead;
pub mod rules;
mod sampling;
mod sweeps;
mod tape;
mod told;
mod typed;
mod verdict;
mod winner;
mod words;
mod worth;

use std::collections::BTreeMap;

use base::finding::Finding;
use base::rounding::Rounding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use advice::{Advice, Gain, Paid, advice};
pub use comparer::Basis;
pub use effects::{Effect, LevelChange};
pub use findings::Seen;
pub use sampling::Dependence;
pub use tape::BUFFERS_MIN;
pub use typed::{KEEP, Typed, UNDO, quoted, set_line};
pub use verdict::{RateVerdict, settle, the_same};

use comparer::Comparer;

use crate::plan::Plan;
use crate::record::{Cell, Factor, Header, RunRecord, Value};
use statistics::curve::PhysicalLimit;
use statistics::interval::Interval;
use statistics::stopping::Stopping;

/// Inputs of a judgement besides the runs.
#[derive(Clone, Debug)]
pub struct JudgementOptions {
    /// Share of experiments whose intervals contain the true value.
    pub confidence: f64,
    /// The rule that ended the repeats by looking at the intervals, if there was one.
    pub stopping: Option<Stopping>,
    /// Two rates whose whole interval lies within this share of each other are the same.
    pub band: f64,
    /// Known upper limits of the rate, which may explain a plateau.
    pub limits: Vec<PhysicalLimit>,
    /// Whether rates or times are compared.
    pub value: Value,
    /// The smallest gain that is worth a change, as a share, if the user gave one.
    pub worth: Option<f64>,
}

impl Default for JudgementOptions {
    fn default() -> JudgementOptions {
        JudgementOptions {
            confidence: 0.95,
            stopping: None,
            band: 0.02,
            limits: Vec::new(),
            value: Value::Rate,
            worth: None,
        }
    }
}

impl JudgementOptions {
    /// Completes the options from the header of an experiment, whose plan has the stopping rule.
    pub fn of(self, header: &Header) -> JudgementOptions {
        let plan: Option<Plan> = serde_json::from_value(header.plan.clone()).ok();
        let stop = plan.map(|plan| plan.stop);
        let worth = stop.as_ref().and_then(|stop| stop.difference_percent);
        JudgementOptions {
            stopping: stop.map(|stop| stop.rule()),
            value: header.value,
            worth: worth.map(|percent| percent / 100.0).or(self.worth),
            ..self
        }
    }
}

/// All conclusions of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The statistics of each combination.
    pub cells: Vec<CellSummary>,
    /// Each factor over its levels, everything else fixed.
    pub sweeps: Vec<Sweep>,
    /// For each load, the index of the cell to use.
    pub recommended: Vec<Recommendation>,
    /// The average effect of each factor, and the interactions of two factors.
    pub effects: Vec<Effect>,
    /// The judgement over conditions that you do not choose. If there are any, the sentences come
    /// from it.
    pub pooled: Option<Box<Pooled>>,
    /// Dependence between successive repeats, for which the intervals are widened.
    pub dependence: Option<Dependence>,
    /// The conclusions in words.
    pub sentences: Vec<Sentence>,
    /// The cells, ready to be compared.
    #[serde(skip)]
    comparer: Comparer,
}

/// An experiment with tape, averaged over framing, file size and medium: all bytes of a repeat
/// divided by all of its time.
#[derive(Clone, Debug, Serialize)]
pub struct Pooled {
    /// Names of the factors that were pooled.
    pub over: Vec<String>,
    /// The factors that remain.
    pub factors: Vec<Factor>,
    /// What was left out, so that all settings are compared over the same conditions.
    pub left_out: Vec<String>,
    /// The judgement of the remaining factors, without sentences.
    pub judgement: Judgement,
}

/// One combination of levels in numbers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CellSummary {
    /// The combination.
    pub cell: Cell,
    /// Rates of its runs, with the number of the repeat. Where times are compared, this and all
    /// fields below hold runs per second.
    pub rates: Vec<(u64, f64)>,
    /// Runs that failed.
    pub failed: usize,
    /// Arithmetic mean of the rates.
    pub mean_bytes_per_second: f64,
    /// Their standard deviation, from two runs on.
    pub standard_deviation: Option<f64>,
    /// All bytes divided by all the time.
    pub harmonic_mean_bytes_per_second: f64,
    /// Geometric mean, to which the interval belongs.
    pub bytes_per_second: f64,
    /// Its interval, from two runs on.
    pub interval: Option<Interval>,
    /// The interval that sets the number of digits of the rate, in tables, sentences and figures:
    /// its own, or the one that follows from a gain, if that is narrower.
    #[serde(skip)]
    pub told_within: Option<Interval>,
    /// Interval of the median, from six runs on.
    pub median_interval: Option<Interval>,
    /// Repeats that do not look like the others.
    pub outliers: Vec<u64>,
    /// Means of the other measures of its runs.
    pub measures: BTreeMap<String, f64>,
    /// The other measures by the number of the repeat.
    #[serde(skip)]
    pub measured: BTreeMap<String, BTreeMap<u64, f64>>,
}

impl CellSummary {
    /// The rounding that its interval supports.
    pub fn digits(&self) -> Rounding {
        Rounding::of(self.told_within.map(|interval| (interval.low, interval.high)))
    }

    /// Its rate or time in words; of a single run, as measured.
    pub fn told(&self, value: Value) -> String {
        self.told_as(self.bytes_per_second, value)
    }

    /// Another speed of this cell, with the same digits.
    pub fn told_as(&self, speed: f64, value: Value) -> String {
        value.told(speed, self.told_within.map(|interval| (interval.low, interval.high)))
    }

    /// Narrows the interval that sets the digits.
    fn tell_within(&mut self, other: Interval) {
        let width = |interval: &Interval| interval.high - interval.low;
        let is_wider = |own: &Interval| width(own) > width(&other);
        if self.told_within.as_ref().is_none_or(is_wider) {
            self.told_within = Some(other);
        }
    }
}

/// One factor over its levels, everything else fixed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    pub factor: String,
    /// What is fixed.
    pub others: Cell,
    /// Cells in the order of the levels, as indices.
    pub cells: Vec<usize>,
    /// Place in `cells` of the highest mean.
    pub best: usize,
    /// Place in `cells` of the simplest level that is as good as the best.
    pub knee: usize,
    /// The curve through it, for numbers from three levels on.
    #[serde(skip)]
    pub model: Option<statistics::curve::Model>,
    /// Whether it passes through a recommended cell, so that there are sentences about it.
    pub is_told: bool,
    /// Each level against the recommended one, or against the knee. The level itself counts as the
    /// same.
    pub verdicts: Vec<RateVerdict>,
    /// Whether all verdicts rest on repeats.
    pub basis: Basis,
    /// Upper bound on how many times as fast another level may be; infinite if a level ran once.
    #[serde(deserialize_with = "statistics::unbounded::above")]
    #[schemars(with = "Option<f64>")]
    pub hidden: f64,
}

/// The cell to use for a load.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The levels of the load.
    pub load: Cell,
    /// The cell to use.
    pub cell: usize,
    /// The cell with the highest mean.
    pub best: usize,
    /// The cell in force, or of the first levels, that the gain is relative to.
    pub baseline: usize,
    /// Number of cells compared.
    pub compared: usize,
    /// Gain over the baseline; 1 where nothing is shown to be faster.
    pub gain: f64,
    /// Interval of the gain, corrected for the number of comparisons, if there are repeats.
    pub gain_interval: Option<Interval>,
    /// Upper bound on the gain of any cell over the baseline; infinite if a cell ran once.
    #[serde(deserialize_with = "statistics::unbounded::above")]
    #[schemars(with = "Option<f64>")]
    pub hidden: f64,
    /// Whether the gain rests on repeats. A gain of single runs has to be repeated before it is
    /// set.
    pub basis: Basis,
    /// Whether the gain is settled; if the baseline is kept, whether anything may be faster.
    pub verdict: RateVerdict,
}

impl Recommendation {
    /// Whether a cell is the one to use. Single runs recommend nothing.
    pub fn is(&self, cell: usize) -> bool {
        self.cell == cell && self.basis == Basis::Repeats
    }

    /// Whether its data are artificial (zeros), which only measure the hardware.
    pub fn is_nobodys(&self) -> bool {
        words::is_nobodys(&self.load)
    }
}

/// What a sentence is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Set,
    /// What it brings.
    Gain,
    Cost,
    /// What the numbers say about the hardware.
    Finding,
    /// What single runs showed. It is never a finding, however large.
    Seen,
    /// What is unknown, or wrong with the runs.
    Doubt,
}

impl Subject {
    /// The heading of its sentences.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Set => "set",
            Subject::Gain => "gain",
            Subject::Cost => "cost",
            Subject::Finding => "finding",
            Subject::Seen => "seen once",
            Subject::Doubt => "not known",
        }
    }
}

/// A conclusion in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sentence {
    /// What it is about.
    pub subject: Subject,
    /// The text of the sentence.
    pub text: String,
    /// The verdict of its interval, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RateVerdict>,
    /// Commands that set it, by program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<Typed>,
    /// The change that it recommends.
    #[serde(skip)]
    change: Option<typed::SettingToType>,
    /// The finding behind the words.
    #[serde(flatten)]
    pub finding: Finding,
}

impl Sentence {
    fn new(subject: Subject, finding: Finding) -> Sentence {
        let text = finding.sentence();
        Sentence { subject, text, verdict: None, typed: Vec::new(), change: None, finding }
    }

    fn settled(self, verdict: RateVerdict) -> Sentence {
        Sentence { verdict: Some(verdict), ..self }
    }
}

/// Judges an experiment.
pub fn judge(factors: &[Factor], runs: &[RunRecord], options: &JudgementOptions) -> Judgement {
    let mut judgement = numbers(factors, runs, options);
    judgement.sentences = match pool::pool(factors, runs) {
        Some(pool) => {
            let inner = numbers(&pool.factors, &pool.runs, options);
            let mut told = words::conclusions(&pool.factors, &pool.runs, &inner, options);
            told = words::together(told, &pool.factors, &inner);
            told.extend(words::left_out(&pool.left_out));
            judgement.pooled = Some(Box::new(Pooled {
                over: pool.over.iter().map(|factor| factor.name.clone()).collect(),
                factors: pool.factors,
                left_out: pool.left_out,
                judgement: inner,
            }));
            told
        }
        None => {
            let told = words::conclusions(factors, runs, &judgement, options);
            words::together(told, factors, &judgement)
        }
    };
    judgement.sentences.extend(words::about_runs(factors, runs, &judgement, options));
    never_a_finding(&mut judgement);
    typed::attach(&mut judgement.sentences, runs);
    let mut sentences = std::mem::take(&mut judgement.sentences);
    match &judgement.pooled {
        Some(pooled) => {
            winner::put_first(&mut sentences, &pooled.factors, &pooled.judgement, runs);
        }
        None => winner::put_first(&mut sentences, factors, &judgement, runs),
    }
    judgement.sentences = sentences;
    judgement.sentences.sort_by_key(|sentence| sentence.subject);
    judgement
}

/// A single run is never a finding: if every combination ran once, all sentences become "seen
/// once".
fn never_a_finding(judgement: &mut Judgement) {
    if judgement.cells.iter().any(|cell| cell.rates.len() > 1) {
        return;
    }
    for sentence in &mut judgement.sentences {
        if sentence.subject < Subject::Seen {
            sentence.subject = Subject::Seen;
            sentence.verdict = None;
            sentence.change = None;
        }
    }
}

/// The judgement without its sentences.
fn numbers(factors: &[Factor], runs: &[RunRecord], options: &JudgementOptions) -> Judgement {
    let mut cells = cells::summarise(factors, runs, options);
    let mut comparer = Comparer::new(factors, &cells, options);
    let dependence = sampling::dependence(&cells, findings::machine(runs));
    if let Some(Dependence { widened, .. }) = dependence {
        comparer.widen();
        for cell in &mut cells {
            cell.interval = cell.interval.map(|interval| interval.widened(widened));
            cell.median_interval = cell.median_interval.map(|interval| interval.widened(widened));
            cell.told_within = cell.interval;
        }
    }
    let recommended = match tape::all_in_buffer(runs) {
        Some(_) => Vec::new(),
        None => sweeps::recommend(factors, &cells, &comparer, options),
    };
    for found in recommended.iter().filter(|found| found.cell != found.baseline) {
        let Some(gain) = found.gain_interval else { continue };
        for index in [found.cell, found.baseline] {
            let rate = cells[index].bytes_per_second;
            cells[index].tell_within(gain.map(|end| end / found.gain * rate));
        }
    }
    Judgement {
        sweeps: sweeps::sweeps(factors, &cells, &recommended, &comparer, options),
        effects: effects::effects(factors, &cells, &comparer, options),
        comparer,
        recommended,
        cells,
        pooled: None,
        dependence,
        sentences: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
