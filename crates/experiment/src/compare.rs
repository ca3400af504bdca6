//! Compares two experiments: which cells differ, by how much, and which differences are noise.
//!
//! Experiments that ran one after the other are independent samples; a drift between the two is an
//! inseparable part of the difference. If they took turns, repeat by repeat with changing order, as
//! `scripts/fio-agreement` runs them, each repeat of one is compared with the same repeat of the
//! other, which removes a drift. Many cells are many chances of a false alarm: Holm's correction
//! keeps the chance of any at one in twenty.
//!
//! Experiments of different kinds have different factors. A factor that only one of them has, with
//! a single level, does not keep their cells apart; it only says how they were run. Neither does a
//! factor with one level in A and another one in B, because the user may want to compare across it;
//! a sentence names it.

mod apart;
mod short;
mod turns;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::judgement::{
    CellSummary, Judgement, JudgementOptions, RateVerdict, judge, settle, the_same,
};
use crate::power::POWER;
use crate::record::{Cell, Experiment, Factor, Value, shown_cell};
pub use apart::apart;
use base::format::counted;
use base::rounding::{Rounding, percent_at_least};
use statistics::interval::{Interval, of_geometric_mean, of_mean, t_factor};
use statistics::noncentral::{away, typical_estimate};
use statistics::ratio::{independent, paired};
use statistics::{geometric_mean, median, standard_deviation};
use turns::took_turns;

/// Which of two rates that differ is the higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HigherRate {
    /// B is faster.
    Faster,
    /// B is slower.
    Slower,
}

impl HigherRate {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            HigherRate::Faster => "faster",
            HigherRate::Slower => "slower",
        }
    }
}

/// One cell in both.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    pub cell: Cell,
    /// Number of runs in A and in B.
    pub runs: (usize, usize),
    /// Geometric means of A and of B.
    pub bytes_per_second: (f64, f64),
    /// B divided by A.
    pub ratio: f64,
    /// Its interval, not simultaneous.
    pub interval: Option<Interval>,
    /// Degrees of freedom of the interval.
    #[serde(skip)]
    pub degrees: Option<f64>,
    /// Probability of a ratio this far from 1 without a difference, corrected for all cells.
    pub p_value: Option<f64>,
    pub verdict: RateVerdict,
    /// The direction, if they differ.
    pub direction: Option<HigherRate>,
}

impl Pair {
    fn ran_once(&self) -> bool {
        self.runs.0.min(self.runs.1) < 2
    }
}

/// Two experiments side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The factors of the first experiment.
    pub factors: Vec<Factor>,
    /// Cells that both have.
    pub pairs: Vec<Pair>,
    /// Number of cells that only A has.
    pub only_in_a: usize,
    /// Number of cells that only B has.
    pub only_in_b: usize,
    /// Whether they took turns, so that each repeat of B was compared with the same repeat of A.
    pub in_turns: bool,
    /// Factors with a single level that only one of them has, with that level. They were ignored to
    /// find combinations in common.
    pub passed_over: Vec<String>,
    /// Factors that were held at one level in A and at another in B: name, in A, in B.
    pub across: Vec<(String, String, String)>,
    /// Settings and versions that differ, unless both varied them: name, in A, in B.
    pub environment: Vec<(String, String, String)>,
    /// Whether rates or times were compared.
    #[serde(skip_serializing_if = "Value::is_rate")]
    pub value: Value,
    pub sentences: Vec<String>,
}

/// Compares B with A.
pub fn compare(a: &Experiment, b: &Experiment, options: &JudgementOptions) -> Comparison {
    let mut passed_over = Vec::new();
    let across = held_apart(a, b);
    let (a, b) = (without(a, &across), without(b, &across));
    let (a, b): (&Experiment, &Experiment) = (
        &without_lonely(&a, &b, "A", &mut passed_over),
        &without_lonely(&b, &a, "B", &mut passed_over),
    );
    let in_turns = took_turns(&a.runs, &b.runs);
    let judged = |one: &Experiment| judge(&a.header.factors, &one.runs, options);
    let (judged_a, judged_b) = (judged(a), judged(b));
    let (in_a, in_b) = (by_cell(&judged_a), by_cell(&judged_b));
    let in_both = |cell: &CellSummary| Some(pair(cell, in_b.get(&cell.cell)?, in_turns, options));
    let mut pairs: Vec<Pair> = judged_a.cells.iter().filter_map(in_both).collect();
    decide(&mut pairs, options);
    let lonely = |mine: &Judgement, other: &BTreeMap<&Cell, &CellSummary>| {
        mine.cells.iter().filter(|cell| !other.contains_key(&cell.cell)).count()
    };
    let mut comparison = Comparison {
        factors: a.header.factors.clone(),
        only_in_a: lonely(&judged_a, &in_b),
        only_in_b: lonely(&judged_b, &in_a),
        pairs,
        in_turns,
        passed_over,
        across,
        environment: environment(a, b),
        value: options.value,
        sentences: Vec::new(),
    };
    comparison.sentences = sentences(&comparison);
    comparison.sentences.extend(short::runs([("A", &judged_a), ("B", &judged_b)]));
    comparison
}

fn by_cell(judgement: &Judgement) -> BTreeMap<&Cell, &CellSummary> {
    judgement.cells.iter().map(|summary| (&summary.cell, summary)).collect()
}

/// Factors with a single level in both, but not the same level.
fn held_apart(a: &Experiment, b: &Experiment) -> Vec<(String, String, String)> {
    let one = |factor: &Factor| match &factor.levels[..] {
        [level] => Some(level.shown(&factor.name)),
        _ => None,
    };
    let in_both = |factor: &Factor| {
        let other = b.header.factors.iter().find(|other| other.name == factor.name)?;
        let (in_a, in_b) = (one(factor)?, one(other)?);
        (in_a != in_b).then(|| (factor.name.clone(), in_a, in_b))
    };
    a.header.factors.iter().filter_map(in_both).collect()
}

/// Removes these factors. Copies only if there are any: experiments may have 100,000 runs.
fn without<'e>(
    experiment: &'e Experiment,
    held: &[(String, String, String)],
) -> Cow<'e, Experiment> {
    if held.is_empty() {
        return Cow::Borrowed(experiment);
    }
    let mut kept = experiment.clone();
    let is_held = |name: &String| held.iter().any(|(held, ..)| held == name);
    kept.header.factors.retain(|factor| !is_held(&factor.name));
    kept.runs.iter_mut().for_each(|run| run.cell.retain(|name, _| !is_held(name)));
    Cow::Owned(kept)
}

/// An experiment without the single-level factors that the other one does not have.
fn without_lonely<'e>(
    experiment: &'e Experiment,
    other: &Experiment,
    name: &str,
    passed_over: &mut Vec<String>,
) -> Cow<'e, Experiment> {
    let is_known = |factor: &Factor| other.header.factors.iter().any(|own| own.name == factor.name);
    let mut kept = Cow::Borrowed(experiment);
    let is_lonely = |factor: &Factor| factor.levels.len() == 1 && !is_known(factor);
    for factor in experiment.header.factors.iter().filter(|factor| is_lonely(factor)) {
        let level = factor.levels[0].shown(&factor.name);
        passed_over.push(format!("{} {level} in {name}", factor.title()));
        let kept = kept.to_mut();
        kept.header.factors.retain(|own| own.name != factor.name);
        kept.runs.iter_mut().for_each(|run| drop(run.cell.remove(&factor.name)));
    }
    kept
}

fn pair(a: &CellSummary, b: &CellSummary, in_turns: bool, options: &JudgementOptions) -> Pair {
    let rates = |cell: &CellSummary| cell.rates.iter().map(|(_, rate)| *rate).collect::<Vec<_>>();
    let ratio = if in_turns {
        paired(&same_repeats(a, b), options.confidence)
    } else {
        independent(&rates(b), &rates(a), options.confidence)
    };
    Pair {
        cell: a.cell.clone(),
        runs: (a.rates.len(), b.rates.len()),
        bytes_per_second: (a.bytes_per_second, b.bytes_per_second),
        ratio: ratio.map_or(b.bytes_per_second / a.bytes_per_second, |ratio| ratio.ratio),
        interval: ratio.map(|ratio| ratio.interval),
        degrees: ratio.map(|ratio| ratio.degrees),
        p_value: ratio.map(|ratio| ratio.p_value),
        verdict: RateVerdict::NotSettled,
        direction: None,
    }
}

/// Rates of B and of A in their common repeats.
fn same_repeats(a: &CellSummary, b: &CellSummary) -> Vec<(f64, f64)> {
    // Of two runs of one repeat, use the first.
    let in_a: BTreeMap<u64, f64> = a.rates.iter().rev().copied().collect();
    b.rates.iter().filter_map(|(repeat, b)| Some((*b, *in_a.get(repeat)?))).collect()
}

/// Corrects the p-values for their number, and sets the verdicts.
fn decide(pairs: &mut [Pair], options: &JudgementOptions) {
    let ratios: Vec<_> = pairs.iter().map(|pair| (pair.p_value, pair.interval)).collect();
    for (pair, settled) in pairs.iter_mut().zip(settle(&ratios, options)) {
        let Some((corrected, verdict)) = settled else { continue };
        (pair.p_value, pair.verdict) = (Some(corrected), verdict);
        let way = if pair.ratio > 1.0 { HigherRate::Faster } else { HigherRate::Slower };
        pair.direction = (pair.verdict == RateVerdict::Differs).then_some(way);
    }
}

/// Settings that differ, each with all its values, except those that both experiments varied.
fn environment(a: &Experiment, b: &Experiment) -> Vec<(String, String, String)> {
    let values = |experiment: &Experiment| {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, value) in experiment.runs.iter().flat_map(|run| &run.environment) {
            values.entry(name.clone()).or_default().insert(value.clone());
        }
        values
    };
    let (in_a, in_b) = (values(a), values(b));
    if in_a.is_empty() || in_b.is_empty() {
        return Vec::new();
    }
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = in_a.keys().chain(in_b.keys()).collect();
    let differs = |name: &&String| -> Option<(String, String, String)> {
        let of = |values: &BTreeMap<String, BTreeSet<String>>| {
            values.get(*name).unwrap_or(&none).clone()
        };
        let (a, b) = (of(&in_a), of(&in_b));
        let are_varied = a.len() > 1 && b.len() > 1;
        let shown = |values: BTreeSet<String>| match values.len() {
            0 => "-".to_owned(),
            _ => Vec::from_iter(values).join(", "),
        };
        (a != b && !are_varied).then(|| ((*name).clone(), shown(a), shown(b)))
    };
    names.iter().filter_map(differs).collect()
}

/// The difference, as a share, that four of five comparisons find among `cells`: with Holm's
/// correction the first difference has to pass Bonferroni's limit. Computed from the half width of
/// the pair's own interval, with a correction for few runs.
fn would_be_seen(pair: &Pair, cells: usize) -> Option<f64> {
    let (interval, degrees) = (pair.interval?, pair.degrees?);
    let half = (interval.high / interval.low).ln() / 2.0;
    let error = half / t_factor(0.95, degrees)? / typical_estimate(degrees);
    let limit = t_factor(1.0 - 0.05 / cells.max(1) as f64, degrees)?;
    Some((error * away(limit, POWER, degrees)?).exp_m1())
}

fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut texts = Vec::new();
    for direction in [HigherRate::Faster, HigherRate::Slower] {
        let own = comparison.pairs.iter().filter(|pair| pair.direction == Some(direction));
        texts.extend(own.map(|pair| differing(pair, direction, comparison)));
    }
    texts.extend(same(comparison));
    texts.extend(not_settled(comparison));
    let few = comparison.pairs.iter().filter(|pair| pair.ran_once()).count() as u64;
    if few > 0 {
        texts.push(format!(
            "{} ran fewer than twice in A or B: one run settles nothing, repeat them (--repeats 5)",
            counted(few, "combination", "combinations")
        ));
    }
    // Single runs together show no more than each of them alone.
    let repeated = comparison.pairs.iter().filter(|pair| !pair.ran_once());
    let ratios: Vec<f64> = repeated.map(|pair| pair.ratio).collect();
    if let Some(all) = geometric_mean(&ratios).filter(|_| ratios.len() > 1) {
        let interval = of_geometric_mean(&ratios, 0.95);
        let (all, between) = told(all, interval);
        texts.push(format!(
            "over all {} combinations B runs at {all} times {} A{between}",
            ratios.len(),
            times_what(comparison.value)
        ));
    }
    texts.push(if comparison.in_turns {
        "A and B took turns: each repeat of B is compared with the same repeat of A".to_owned()
    } else {
        "A and B did not take turns: whatever changed between them is part of every difference; \
         alternate the runs of A and B"
            .to_owned()
    });
    texts.extend(shifted(comparison));
    if !comparison.across.is_empty() {
        let told = |(name, a, b): &(String, String, String)| {
            format!("{} {a} in A and {b} in B", crate::quantities::title(name))
        };
        let across: Vec<String> = comparison.across.iter().map(told).collect();
        texts.push(format!("compared across {}", across.join(", ")));
    }
    if !comparison.passed_over.is_empty() {
        texts.push(format!(
            "ignored, as only one of A and B has them: {}",
            comparison.passed_over.join(", ")
        ));
    }
    if comparison.only_in_a + comparison.only_in_b > 0 {
        texts.push(format!(
            "not compared: {} only A has, {} only B has",
            counted(comparison.only_in_a as u64, "combination that", "combinations that"),
            counted(comparison.only_in_b as u64, "combination that", "combinations that"),
        ));
    }
    texts
}

/// The words after the number of times.
fn times_what(value: Value) -> &'static str {
    match value {
        Value::Rate => "the rate of",
        Value::Time => "as fast as",
    }
}

/// A ratio with the digits that its interval supports, and that interval.
fn told(ratio: f64, interval: Option<Interval>) -> (String, String) {
    let digits = Rounding::of(interval.map(|interval| (interval.low, interval.high)));
    let between = interval.map_or(String::new(), |Interval { low, high }| {
        format!(" ({} to {})", digits.number(low), digits.number(high))
    });
    (digits.number(ratio), between)
}

fn differing(pair: &Pair, direction: HigherRate, comparison: &Comparison) -> String {
    let (ratio, between) = told(pair.ratio, pair.interval);
    format!(
        "{}: B is {}, {ratio} times {} A{between}: {} against {}",
        shown_cell(&pair.cell, &comparison.factors),
        direction.name(),
        times_what(comparison.value),
        comparison.value.shown(pair.bytes_per_second.1),
        comparison.value.shown(pair.bytes_per_second.0),
    )
}

/// The number of combinations that are shown to be the same.
fn same(comparison: &Comparison) -> Option<String> {
    let count = comparison.pairs.iter().filter(|pair| pair.verdict == RateVerdict::Same).count();
    (count > 0).then(|| {
        let all = counted(comparison.pairs.len() as u64, "combination", "combinations");
        let is = if count == 1 { "is" } else { "are" };
        format!("{count} of {all} {is} {}", the_same(&JudgementOptions::default()))
    })
}

/// The number of combinations that are not settled, and the difference that would have been found.
fn not_settled(comparison: &Comparison) -> Option<String> {
    let all = comparison.pairs.len();
    let open = comparison.pairs.iter();
    let open = open.filter(|pair| pair.verdict == RateVerdict::NotSettled && !pair.ran_once());
    let count = open.clone().count();
    let seen: Vec<f64> = open.filter_map(|pair| would_be_seen(pair, all)).collect();
    (count > 0).then(|| {
        format!(
            "{count} of {} not settled: this many runs find a difference of {} % in four of five \
             comparisons; a smaller one needs more repeats",
            counted(all as u64, "combination is", "combinations are"),
            percent_at_least(median(&seen).unwrap_or(0.0)),
        )
    })
}

/// All cells differ by the same factor, as after a change, but also as on another day.
fn shifted(comparison: &Comparison) -> Option<String> {
    let logs: Vec<f64> = comparison.pairs.iter().map(|pair| pair.ratio.ln()).collect();
    let half = |pair: &Pair| Some((pair.interval?.high / pair.interval?.low).ln() / 2.0);
    let halves: Option<Vec<f64>> = comparison.pairs.iter().map(half).collect();
    let typical = median(&halves?)?;
    if comparison.in_turns || logs.len() < 3 || standard_deviation(&logs)? > typical {
        return None;
    }
    let all = of_mean(&logs, 0.95)?.map(f64::exp);
    (!all.contains(1.0)).then(|| {
        let digits = Rounding::within(all.low, all.high);
        format!(
            "all combinations differ by about the same factor ({} to {} times): a machine that is \
             faster or slower on another day looks the same",
            digits.number(all.low),
            digits.number(all.high)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{FORMAT, Header, Level, Role, RunRecord};
    use statistics::random::Random;

    /// Six cells, five repeats, 10 % scatter; cell 3 is `gain` times as fast.
    fn experiment(seed: u64, gain: f64) -> Experiment {
        let mut random = Random::new(seed);
        let levels: Vec<Level> = (0..6).map(|power| Level::Number(4096 << power)).collect();
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (index, level) in levels.iter().enumerate() {
                let speed = 1e8 * if index == 3 { gain } else { 1.0 };
                let seconds = 1e9 / (speed * (0.1 * random.normal()).exp());
                let cell = Cell::from([("block_bytes".to_owned(), level.clone())]);
                let bytes = 1_000_000_000;
                runs.push(RunRecord { cell, repeat, bytes, seconds, ..RunRecord::default() });
            }
        }
        let header = Header {
            format: FORMAT,
            kind: "read".into(),
            title: String::new(),
            value: Value::Rate,
            factors: vec![Factor {
                name: "block_bytes".into(),
                levels,
                role: Role::Setting,
                present: None,
            }],
            plan: serde_json::Value::Null,
            seed,
            started_unix_seconds: 0,
        };
        Experiment { header, runs, torn_bytes: 0 }
    }

    #[test]
    fn identical_systems_are_told_apart_at_most_once_in_twenty() {
        let alarms = (0..1000)
            .filter(|seed| {
                let (a, b) = (experiment(2 * seed, 1.0), experiment(2 * seed + 1, 1.0));
                let comparison = compare(&a, &b, &JudgementOptions::default());
                comparison.pairs.iter().any(|pair| pair.verdict == RateVerdict::Differs)
            })
            .count();
        assert!(alarms <= 50, "{alarms} of 1000");
    }

    #[test]
    fn what_would_be_seen_is_found_in_four_of_five() {
        let seen = |seed: u64| {
            let (a, b) = (experiment(2 * seed, 1.0), experiment(2 * seed + 1, 1.0));
            let pairs = compare(&a, &b, &JudgementOptions::default()).pairs;
            would_be_seen(&pairs[3], pairs.len()).unwrap()
        };
        let all: Vec<f64> = (0..200).map(seen).collect();
        let gain = 1.0 + median(&all).unwrap();
        let found = (0..300)
            .filter(|seed| {
                let (a, b) = (experiment(2 * seed, 1.0), experiment(2 * seed + 1, gain));
                compare(&a, &b, &JudgementOptions::default()).pairs[3].direction
                    == Some(HigherRate::Faster)
            })
            .count();
        assert!((210..=270).contains(&found), "{found} of 300 at {gain}");
    }

    /// Runs of A and B in turns, on a machine that becomes slower by a tenth with every repeat.
    fn in_turns(experiment: &mut Experiment, begins: u64) {
        for run in &mut experiment.runs {
            // The order alternates.
            let swapped = if run.repeat % 2 == 0 { 2040 - begins } else { begins };
            run.started_unix_seconds = swapped + 100 * run.repeat;
            run.seconds *= 1.1f64.powi(run.repeat as i32);
        }
    }

    #[test]
    fn experiments_that_took_turns_are_compared_repeat_by_repeat() {
        let found = (0..100)
            .filter(|seed| {
                let (mut a, mut b) = (experiment(2 * seed, 1.0), experiment(2 * seed + 1, 1.6));
                in_turns(&mut a, 1000);
                in_turns(&mut b, 1040);
                let comparison = compare(&a, &b, &JudgementOptions::default());
                assert!(comparison.in_turns);
                comparison.pairs[3].direction == Some(HigherRate::Faster)
            })
            .count();
        assert!(found >= 80, "{found} of 100");
        let (mut a, mut b) = (experiment(1, 1.0), experiment(2, 1.0));
        in_turns(&mut a, 1000);
        in_turns(&mut b, 1040);
        b.runs.iter_mut().for_each(|run| run.started_unix_seconds = 1040 + 100 * run.repeat);
        a.runs.iter_mut().for_each(|run| run.started_unix_seconds = 1000 + 100 * run.repeat);
        assert!(!compare(&a, &b, &JudgementOptions::default()).in_turns, "A is always first");
        b.runs.iter_mut().for_each(|run| run.started_unix_seconds += 960);
        assert!(!compare(&a, &b, &JudgementOptions::default()).in_turns, "one after the other");
        in_turns(&mut b, 1000);
        b.runs.iter_mut().for_each(|run| run.started_unix_seconds = 0);
        assert!(!compare(&a, &b, &JudgementOptions::default()).in_turns, "times are not known");
    }

    #[test]
    fn a_factor_of_one_level_in_one_of_them_keeps_nothing_apart() {
        let (a, mut b) = (experiment(1, 1.0), experiment(2, 1.0));
        b.header.factors.push(Factor {
            name: "jobs".into(),
            levels: vec![Level::Number(1)],
            role: Role::Setting,
            present: None,
        });
        b.runs.iter_mut().for_each(|run| drop(run.cell.insert("jobs".into(), Level::Number(1))));
        let comparison = compare(&a, &b, &JudgementOptions::default());
        assert_eq!((comparison.pairs.len(), comparison.only_in_b), (6, 0));
        assert_eq!(comparison.passed_over, ["jobs 1 in B"]);
        b.header.factors[1].levels.push(Level::Number(2));
        assert!(
            compare(&a, &b, &JudgementOptions::default()).pairs.is_empty(),
            "a factor with two levels"
        );
    }

    #[test]
    fn a_difference_is_found_in_its_cell() {
        let found = (0..200)
            .filter(|seed| {
                let (a, b) = (experiment(2 * seed, 1.0), experiment(2 * seed + 1, 1.6));
                let comparison = compare(&a, &b, &JudgementOptions::default());
                comparison.pairs[3].direction == Some(HigherRate::Faster)
            })
            .count();
        assert!(found >= 190, "{found} of 200");
        let (mut a, b) = (experiment(1, 1.6), experiment(2, 1.0));
        let comparison = compare(&a, &b, &JudgementOptions::default());
        assert_eq!(comparison.pairs[3].verdict, RateVerdict::Differs);
        assert_eq!(comparison.pairs[3].direction, Some(HigherRate::Slower));
        assert!(comparison.sentences[0].starts_with("block size 32 KiB: B is slower"));
        a.runs.retain(|run| run.repeat == 1);
        let comparison = compare(&a, &b, &JudgementOptions::default());
        assert!(comparison.pairs.iter().all(|pair| pair.verdict == RateVerdict::NotSettled));
        assert!(comparison.sentences[0].starts_with("6 combinations ran fewer than twice"));
        // Quiet runs of one system show that it is the same.
        let quiet = |seed| {
            let mut one = experiment(seed, 1.0);
            one.runs.iter_mut().for_each(|run| run.seconds = 10.0 + 0.01 * (run.seconds - 10.0));
            one
        };
        let comparison = compare(&quiet(3), &quiet(4), &JudgementOptions::default());
        assert!(comparison.pairs.iter().all(|pair| pair.verdict == RateVerdict::Same));
        assert_eq!(comparison.sentences[0], "6 of 6 combinations are the same within 2 %");
    }

    #[test]
    fn single_runs_have_no_mean_over_all() {
        let text = |repeats: u64| {
            let (mut a, mut b) = (experiment(1, 1.0), experiment(2, 1.0));
            a.runs.retain(|run| run.repeat <= repeats);
            b.runs.retain(|run| run.repeat <= repeats);
            compare(&a, &b, &JudgementOptions::default()).sentences.join("\n")
        };
        assert!(text(3).contains("over all"), "{}", text(3));
        assert!(!text(1).contains("over all"), "{}", text(1));
        assert!(text(1).contains("one run settles nothing"), "{}", text(1));
    }
}
