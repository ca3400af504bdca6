//! A judgement and a comparison as parts of an answer. If times are compared, their numbers are
//! times: internally everything is computed with speeds in runs per second, which no reader uses.

use std::collections::BTreeMap;

use experiment::compare::{Comparison, HigherRate, Pair};
use experiment::judgement::{
    CellSummary, Dependence, Effect, Judgement, Pooled, RateVerdict, Recommendation, Sentence,
    Sweep,
};
use experiment::record::{Cell, Factor, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::interval::Interval;

/// All conclusions of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JudgementAnswer {
    /// The statistics of each combination.
    pub cells: Vec<JudgedCell>,
    /// Each factor over its levels, everything else fixed.
    pub sweeps: Vec<Sweep>,
    /// For each load, the index of the cell to use.
    pub recommended: Vec<Recommendation>,
    /// The average effect of each factor, and the interactions of two factors.
    pub effects: Vec<Effect>,
    /// The judgement over conditions that the user does not choose. If there are any, the sentences
    /// come from it.
    pub pooled: Option<Box<PooledAnswer>>,
    /// Dependence between successive repeats, for which the intervals are widened.
    pub dependence: Option<Dependence>,
    /// The conclusions in words.
    pub sentences: Vec<Sentence>,
}

/// An experiment with tape, averaged over framing, file size and medium.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PooledAnswer {
    /// Names of the factors that were pooled.
    pub over: Vec<String>,
    /// The factors that remain.
    pub factors: Vec<Factor>,
    /// What was left out, so that all settings are compared over the same conditions.
    pub left_out: Vec<String>,
    /// The judgement of the remaining factors, without sentences.
    pub judgement: JudgementAnswer,
}

/// One combination of levels in numbers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JudgedCell {
    /// If rates are compared.
    Rates(Box<CellSummary>),
    /// If times are compared.
    Times(Box<TimedCell>),
}

/// One combination whose times are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedCell {
    /// The combination.
    pub cell: Cell,
    /// Seconds of its runs, with the number of the repeat.
    pub times: Vec<(u64, f64)>,
    /// Runs that failed.
    pub failed: usize,
    /// Arithmetic mean of the times.
    pub mean_seconds: Option<f64>,
    /// Their standard deviation, from two runs on.
    pub standard_deviation: Option<f64>,
    /// Geometric mean, to which the interval belongs.
    pub seconds: f64,
    /// Its interval, from two runs on.
    pub interval: Option<Interval>,
    /// Interval of the median, from six runs on.
    pub median_interval: Option<Interval>,
    /// Repeats that do not look like the others.
    pub outliers: Vec<u64>,
    /// Means of the other measures of its runs.
    pub measures: BTreeMap<String, f64>,
}

impl JudgementAnswer {
    /// Of a judgement in which this was compared.
    pub fn of(judgement: &Judgement, value: Value) -> JudgementAnswer {
        let pooled = |pooled: &Pooled| {
            Box::new(PooledAnswer {
                over: pooled.over.clone(),
                factors: pooled.factors.clone(),
                left_out: pooled.left_out.clone(),
                judgement: JudgementAnswer::of(&pooled.judgement, value),
            })
        };
        JudgementAnswer {
            cells: judgement.cells.iter().map(|cell| JudgedCell::of(cell, value)).collect(),
            sweeps: judgement.sweeps.clone(),
            recommended: judgement.recommended.clone(),
            effects: judgement.effects.clone(),
            pooled: judgement.pooled.as_deref().map(pooled),
            dependence: judgement.dependence,
            sentences: judgement.sentences.clone(),
        }
    }
}

impl JudgedCell {
    /// Of a cell in which this was compared.
    pub fn of(cell: &CellSummary, value: Value) -> JudgedCell {
        match value {
            Value::Rate => JudgedCell::Rates(Box::new(cell.clone())),
            Value::Time => JudgedCell::Times(Box::new(TimedCell::of(cell))),
        }
    }
}

impl TimedCell {
    /// The mean and the scatter of its times are not the inverses of those of its speeds.
    fn of(cell: &CellSummary) -> TimedCell {
        let times: Vec<(u64, f64)> =
            cell.rates.iter().map(|(repeat, speed)| (*repeat, 1.0 / speed)).collect();
        let seconds: Vec<f64> = times.iter().map(|(_, seconds)| *seconds).collect();
        TimedCell {
            cell: cell.cell.clone(),
            failed: cell.failed,
            mean_seconds: statistics::mean(&seconds),
            standard_deviation: statistics::standard_deviation(&seconds),
            seconds: 1.0 / cell.bytes_per_second,
            interval: cell.interval.map(inverse),
            median_interval: cell.median_interval.map(inverse),
            outliers: cell.outliers.clone(),
            measures: cell.measures.clone(),
            times,
        }
    }
}

/// The longest time belongs to the lowest speed.
fn inverse(speeds: Interval) -> Interval {
    Interval { low: 1.0 / speeds.high, high: 1.0 / speeds.low }
}

/// Two experiments side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentComparison {
    /// The factors of the first experiment.
    pub factors: Vec<Factor>,
    /// Cells that both have.
    pub pairs: Vec<ExperimentPair>,
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
    #[serde(default, skip_serializing_if = "Value::is_rate")]
    pub value: Value,
    pub sentences: Vec<String>,
}

/// One cell in both experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExperimentPair {
    /// If rates are compared.
    Rates(RatePair),
    /// If times are compared.
    Times(TimePair),
}

/// One cell in both, by its rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatePair {
    /// Geometric means of A and of B.
    pub bytes_per_second: (f64, f64),
    /// What the two have in common with times.
    #[serde(flatten)]
    pub compared: ComparedCell,
}

/// One cell in both, by its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePair {
    /// Geometric means of A and of B.
    pub seconds: (f64, f64),
    /// What the two have in common with rates.
    #[serde(flatten)]
    pub compared: ComparedCell,
}

/// What is said of a cell in both, whether rates or times are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCell {
    pub cell: Cell,
    /// Number of runs in A and in B.
    pub runs: (usize, usize),
    /// The speed of B divided by that of A.
    pub ratio: f64,
    /// Its interval, not simultaneous.
    pub interval: Option<Interval>,
    /// Probability of a ratio this far from 1 without a difference, corrected for all cells.
    pub p_value: Option<f64>,
    pub verdict: RateVerdict,
    /// The direction, if they differ.
    pub direction: Option<HigherRate>,
}

impl ExperimentComparison {
    /// Of a comparison.
    pub fn of(comparison: &Comparison) -> ExperimentComparison {
        let value = comparison.value;
        ExperimentComparison {
            factors: comparison.factors.clone(),
            pairs: comparison.pairs.iter().map(|pair| ExperimentPair::of(pair, value)).collect(),
            only_in_a: comparison.only_in_a,
            only_in_b: comparison.only_in_b,
            in_turns: comparison.in_turns,
            passed_over: comparison.passed_over.clone(),
            across: comparison.across.clone(),
            environment: comparison.environment.clone(),
            value,
            sentences: comparison.sentences.clone(),
        }
    }
}

impl ExperimentPair {
    fn of(pair: &Pair, value: Value) -> ExperimentPair {
        let (a, b) = pair.bytes_per_second;
        let compared = ComparedCell {
            cell: pair.cell.clone(),
            runs: pair.runs,
            ratio: pair.ratio,
            interval: pair.interval,
            p_value: pair.p_value,
            verdict: pair.verdict,
            direction: pair.direction,
        };
        match value {
            Value::Rate => ExperimentPair::Rates(RatePair { bytes_per_second: (a, b), compared }),
            Value::Time => {
                ExperimentPair::Times(TimePair { seconds: (1.0 / a, 1.0 / b), compared })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::judgement::{JudgementOptions, judge};
    use experiment::record::{Level, RunRecord};
    use serde_json::json;

    fn judgement(value: Value) -> Judgement {
        let factors = [Factor::new("depth", vec![Level::Number(1), Level::Number(2)])];
        let run = |repeat: u64, depth: u64, seconds: f64| RunRecord {
            cell: Cell::from([("depth".to_owned(), Level::Number(depth))]),
            repeat,
            bytes: 1,
            seconds,
            value,
            ..RunRecord::default()
        };
        let runs = [run(1, 1, 2.0), run(2, 1, 4.0), run(1, 2, 1.0), run(2, 2, 1.5)];
        judge(&factors, &runs, &JudgementOptions { value, ..JudgementOptions::default() })
    }

    #[test]
    fn speeds_become_times() {
        let judgement = judgement(Value::Time);
        let told = json!(JudgementAnswer::of(&judgement, Value::Time));
        let cell = &told["cells"][0];
        assert_eq!(cell["times"], json!([[1, 2.0], [2, 4.0]]));
        assert_eq!((&cell["mean_seconds"], &cell["failed"]), (&json!(3.0), &json!(0)));
        assert_eq!(cell["standard_deviation"], json!(2f64.sqrt()));
        assert!((cell["seconds"].as_f64().unwrap() - 8f64.sqrt()).abs() < 1e-12, "{cell}");
        let own = judgement.cells[0].interval.unwrap();
        assert_eq!(cell["interval"], json!({ "low": 1.0 / own.high, "high": 1.0 / own.low }));
        for gone in ["rates", "bytes_per_second", "mean_bytes_per_second"] {
            assert!(cell.get(gone).is_none(), "{gone}");
        }
    }

    /// A combination that ran once has no bound, which JSON writes as null.
    #[test]
    fn a_judgement_is_read_as_it_was_written() {
        let mut all = [judgement(Value::Rate), judgement(Value::Time)];
        all[0].sweeps[0].hidden = f64::INFINITY;
        for (judgement, value) in all.iter().zip([Value::Rate, Value::Time]) {
            let answer = json!(JudgementAnswer::of(judgement, value));
            let read: JudgementAnswer = serde_json::from_value(answer.clone()).unwrap();
            assert_eq!(json!(read), answer);
        }
        assert_eq!(json!(JudgementAnswer::of(&all[0], Value::Rate)), json!(all[0]));
    }
}
