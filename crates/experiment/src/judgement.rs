//! From runs to sentences: what to set, what it brings, what it costs, and what is not known.
//!
//! Nothing here runs or draws anything: it takes factors and runs, from a file or from a published
//! table, and returns the numbers together with the words for them, so that the terminal, the page
//! and the JSON document say the same. The methods are those of [`statistics`]; which is
//! used for what is told in `docs/design/statistics.md`.

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
use serde::Serialize;

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

/// What a judgement rests on besides the runs.
#[derive(Clone, Debug)]
pub struct JudgementOptions {
    /// Share of experiments whose intervals hold the truth.
    pub confidence: f64,
    /// Who ended the repeats: nobody, or a look at the intervals.
    pub stopping: Option<Stopping>,
    /// Two rates whose whole interval lies within this share of each other are the same.
    pub band: f64,
    /// What cannot be exceeded: rates that a plateau may come from.
    pub limits: Vec<PhysicalLimit>,
    /// What is compared: told as rates, or as times.
    pub value: Value,
    /// The gain that is worth a change, as a share, where whoever ran it said so.
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
    /// For an experiment with that first line: its plan says by which rule repeats ended.
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

/// All that was concluded.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// Each combination with its runs in numbers.
    pub cells: Vec<CellSummary>,
    /// Each factor over its levels, everything else fixed.
    pub sweeps: Vec<Sweep>,
    /// For each load, the index of the cell to use.
    pub recommended: Vec<Recommendation>,
    /// What each factor does on average, and which two work together.
    pub effects: Vec<Effect>,
    /// The same over conditions that nobody chooses, from which the words come where there are
    /// such.
    pub pooled: Option<Box<Pooled>>,
    /// Repeats that are like the one before, for which the intervals here are wider.
    pub dependence: Option<Dependence>,
    /// The words.
    pub sentences: Vec<Sentence>,
    /// The cells, ready to be compared.
    #[serde(skip)]
    comparer: Comparer,
}

/// An experiment with tape without framing, size of the file and medium: all bytes of a repeat by
/// all their time.
#[derive(Clone, Debug, Serialize)]
pub struct Pooled {
    /// Names of the factors that were pooled.
    pub over: Vec<String>,
    /// Those that remain.
    pub factors: Vec<Factor>,
    /// What was left out, so that all settings are compared over the same conditions.
    pub left_out: Vec<String>,
    /// What they come to; without words of its own.
    pub judgement: Judgement,
}

/// One combination of levels in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// The combination.
    pub cell: Cell,
    /// Rates of its runs, with the number of the repeat; runs by seconds where times are
    /// compared, here and in all that follows.
    pub rates: Vec<(u64, f64)>,
    /// Runs that gave no number.
    pub failed: usize,
    /// Arithmetic mean of the rates.
    pub mean_bytes_per_second: f64,
    /// Their standard deviation, from two runs on.
    pub standard_deviation: Option<f64>,
    /// All bytes by all the time.
    pub harmonic_mean_bytes_per_second: f64,
    /// Geometric mean: what the interval is of.
    pub bytes_per_second: f64,
    /// Its interval, from two runs on.
    pub interval: Option<Interval>,
    /// What its rate is told with the digits of: its interval, or that which a gain over it or of
    /// it leaves, where that is narrower; the same in tables, sentences and figures.
    #[serde(skip)]
    pub told_within: Option<Interval>,
    /// Interval of the median, from six runs on.
    pub median_interval: Option<Interval>,
    /// Repeats that do not look like the others.
    pub outliers: Vec<u64>,
    /// Means of the further numbers of its runs.
    pub measures: BTreeMap<String, f64>,
    /// The same by the number of the repeat.
    #[serde(skip)]
    pub measured: BTreeMap<String, BTreeMap<u64, f64>>,
}

impl CellSummary {
    /// The digits that its rate is known to.
    pub fn digits(&self) -> Rounding {
        Rounding::of(self.told_within.map(|interval| (interval.low, interval.high)))
    }

    /// Its rate or time as it is told: of one run as it was measured.
    pub fn told(&self, value: Value) -> String {
        self.told_as(self.bytes_per_second, value)
    }

    /// A speed that says the same of it, with its digits.
    pub fn told_as(&self, speed: f64, value: Value) -> String {
        value.told(speed, self.told_within.map(|interval| (interval.low, interval.high)))
    }

    /// Its rate is known at least as well as that.
    fn tell_within(&mut self, other: Interval) {
        let width = |interval: &Interval| interval.high - interval.low;
        let is_wider = |own: &Interval| width(own) > width(&other);
        if self.told_within.as_ref().is_none_or(is_wider) {
            self.told_within = Some(other);
        }
    }
}

/// One factor over its levels, everything else fixed.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// The factor.
    pub factor: String,
    /// What is fixed.
    pub others: Cell,
    /// Cells in the order of the levels, as indices.
    pub cells: Vec<usize>,
    /// Place in `cells` of the highest mean.
    pub best: usize,
    /// Place in `cells` of the simplest level that is as good.
    pub knee: usize,
    /// The curve through it, for numbers from three levels on.
    #[serde(skip)]
    pub model: Option<statistics::curve::Model>,
    /// Whether it passes through a recommended cell, so that it is told in words.
    pub is_told: bool,
    /// Each level against the recommended one, or the knee; that one against itself is the same.
    pub verdicts: Vec<RateVerdict>,
    /// Whether all of these rest on repeats.
    pub basis: Basis,
    /// How many times as fast as that one another may be; without a limit where one ran once.
    pub hidden: f64,
}

/// The cell to use for a load.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The levels of the load.
    pub load: Cell,
    /// The cell to use.
    pub cell: usize,
    /// The cell with the highest mean.
    pub best: usize,
    /// The cell of the first levels, against which a gain is told.
    pub baseline: usize,
    /// Cells that were compared.
    pub compared: usize,
    /// Gain over the baseline; 1 where nothing is shown to be faster.
    pub gain: f64,
    /// Interval of the gain as one of so many, where there are repeats.
    pub gain_interval: Option<Interval>,
    /// The largest gain over the baseline that any cell leaves room for; without a limit where one
    /// ran once.
    pub hidden: f64,
    /// Whether the gain rests on repeats; what single runs showed is to be repeated and not set.
    pub basis: Basis,
    /// Whether the gain is there; where the baseline is kept, whether anything may be faster.
    pub verdict: RateVerdict,
}

impl Recommendation {
    /// Whether a cell is the one to use; what was seen in single runs is none.
    pub fn is(&self, cell: usize) -> bool {
        self.cell == cell && self.basis == Basis::Repeats
    }

    /// Whether it is for data that nobody has, which only measure the hardware.
    pub fn is_nobodys(&self) -> bool {
        words::is_nobodys(&self.load)
    }
}

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// What to set.
    Set,
    /// What it brings.
    Gain,
    /// What it costs.
    Cost,
    /// What the numbers say about the hardware.
    Finding,
    /// What single runs showed: no finding, however large.
    Seen,
    /// What is not known, or not right.
    Doubt,
}

impl Subject {
    /// The word in front of its sentences.
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// What it is about.
    pub subject: Subject,
    /// The words.
    pub text: String,
    /// What the interval behind it settles, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RateVerdict>,
    /// What is typed to set it, by program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<Typed>,
    /// What it says to change.
    #[serde(skip)]
    change: Option<typed::SettingToType>,
    /// What was found, of which these are the words.
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

/// One run is never a finding: where every combination ran once, whatever is said was seen once.
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

/// Everything but the words.
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
