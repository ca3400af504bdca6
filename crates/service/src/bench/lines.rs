//! An experiment and its judgement as lines of JSON, for tools that read one object at a time.
//!
//! The file of runs is NDJSON, too, but raw. Here each run has its rate, the quantiles of its
//! latencies and whether it is an outlier, and the lines after the runs have the results. The
//! single key of a line is its kind: `run`, `cell`, `effect` or `sentence`. The last word of a
//! number's name is its unit.

use std::collections::{BTreeMap, BTreeSet};

use experiment::judgement::{CellSummary, Effect, Judgement, Sentence};
use experiment::record::{
    Cell, Experiment, OperationKind, Operations, PipeUse, ProgramUse, RunRecord,
};
use flow::run::StageReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgedCell;

/// A line: its only key is its kind.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentLine {
    Run(Box<RunLine>),
    /// A combination.
    Cell(MarkedCell),
    /// The effect of a change.
    Effect(Effect),
    /// A conclusion.
    Sentence(Box<Sentence>),
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// Place in the order of all runs, from 1.
    pub order: u64,
    /// Number of the block in which it ran, from 1.
    pub repeat: u64,
    /// When it began.
    pub started_unix_seconds: u64,
    /// The combination that was set.
    pub cell: Cell,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time that it took.
    pub seconds: f64,
    /// Null for a failed run.
    pub bytes_per_second: Option<f64>,
    /// Median of the latencies of its requests.
    pub latency_p50_ns: Option<u64>,
    /// Their 99 % quantile.
    pub latency_p99_ns: Option<u64>,
    /// Whether it does not look like the other runs of its combination.
    pub is_outlier: bool,
    /// Other measures; the last word of each name is the unit.
    pub measures: BTreeMap<String, f64>,
    /// The operations of fio, by kind and section.
    pub operations: Vec<OperationsLine>,
    /// The stages, as in the document of a backup.
    pub stages: Vec<StageReport>,
    /// The programs of a command.
    pub programs: Vec<ProgramUse>,
    /// The pipes between them.
    pub pipes: Vec<PipeUse>,
    /// Notes for the judgement.
    pub notes: Vec<String>,
    pub error: Option<String>,
}

/// Operations of one kind, of one section of a job, with quantiles of their latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationsLine {
    /// Section of the job file, if it has several; otherwise empty.
    pub section: String,
    pub operation: OperationKind,
    /// Bytes moved; 0 for synchronising calls.
    pub bytes: u64,
    /// Number of operations.
    pub requests: u64,
    /// Time of these operations.
    pub seconds: f64,
    /// Bytes for each second.
    pub bytes_per_second: f64,
    /// Operations for each second.
    pub requests_per_second: f64,
    /// Median of their latencies.
    pub latency_p50_ns: Option<u64>,
    /// Their 99 % quantile.
    pub latency_p99_ns: Option<u64>,
    /// Their 99.9 % quantile.
    pub latency_p99_9_ns: Option<u64>,
    /// Mean time until a request was accepted, for asynchronous engines.
    pub submission_mean_ns: Option<f64>,
    /// 99 % quantile of these times, if fio reports their distribution.
    pub submission_p99_ns: Option<u64>,
}

/// A combination, and whether it is recommended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MarkedCell {
    /// Whether it is the one to use for its load.
    pub is_recommended: bool,
    #[serde(flatten)]
    pub cell: JudgedCell,
}

/// One line for each run, combination, effect and conclusion.
pub fn lines<'a>(
    experiment: &'a Experiment,
    judgement: &'a Judgement,
) -> impl Iterator<Item = ExperimentLine> + 'a {
    let cells: BTreeMap<_, _> = judgement.cells.iter().map(|own| (&own.cell, own)).collect();
    let is_recommended: BTreeSet<usize> = (judgement.recommended.iter())
        .filter(|found| found.is(found.cell))
        .map(|found| found.cell)
        .collect();
    let run = move |run: &RunRecord| {
        ExperimentLine::Run(Box::new(RunLine::of(run, cells.get(&run.cell).copied())))
    };
    let cell = move |(index, cell): (usize, &CellSummary)| {
        let is_recommended = is_recommended.contains(&index);
        let cell = JudgedCell::of(cell, experiment.header.value);
        ExperimentLine::Cell(MarkedCell { is_recommended, cell })
    };
    let effects = judgement.effects.iter().cloned().map(ExperimentLine::Effect);
    let sentences = judgement.sentences.iter().cloned().map(Box::new);
    let runs = experiment.runs.iter().map(run);
    let cells = judgement.cells.iter().enumerate().map(cell);
    runs.chain(cells).chain(effects).chain(sentences.map(ExperimentLine::Sentence))
}

impl ExperimentLine {
    /// The line as text, without a line end; the keys are in the order of the alphabet, as in every
    /// document.
    ///
    /// # Panics
    /// Never: it is made of numbers, texts, and maps with texts as keys.
    pub fn to_json(&self) -> String {
        serde_json::to_value(self).expect("a line can be written as JSON").to_string()
    }
}

impl RunLine {
    fn of(run: &RunRecord, cell: Option<&CellSummary>) -> RunLine {
        let quantile = |share: f64| run.latency.as_ref()?.quantile_ns(share);
        RunLine {
            order: run.order,
            repeat: run.repeat,
            started_unix_seconds: run.started_unix_seconds,
            cell: run.cell.clone(),
            bytes: run.bytes,
            seconds: run.seconds,
            bytes_per_second: run.bytes_per_second(),
            latency_p50_ns: quantile(0.5),
            latency_p99_ns: quantile(0.99),
            is_outlier: cell.is_some_and(|cell| cell.outliers.contains(&run.repeat)),
            measures: run.measures.clone(),
            operations: run.operations.iter().map(OperationsLine::of).collect(),
            stages: run.stages.clone(),
            programs: run.programs.clone(),
            pipes: run.pipes.clone(),
            notes: run.notes.clone(),
            error: run.error.clone(),
        }
    }
}

impl OperationsLine {
    fn of(operations: &Operations) -> OperationsLine {
        let seconds = operations.seconds.max(1e-9);
        OperationsLine {
            section: operations.section.clone(),
            operation: operations.operation,
            bytes: operations.bytes,
            requests: operations.requests,
            seconds: operations.seconds,
            bytes_per_second: operations.bytes as f64 / seconds,
            requests_per_second: operations.requests as f64 / seconds,
            latency_p50_ns: operations.latency.quantile_ns(0.5),
            latency_p99_ns: operations.latency.quantile_ns(0.99),
            latency_p99_9_ns: operations.latency.quantile_ns(0.999),
            submission_mean_ns: operations.submission_mean_ns,
            submission_p99_ns: operations.submission_p99_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::judgement::{JudgementOptions, judge};
    use experiment::record::{Factor, Header, Level, Role, Value as Compared};
    use serde_json::Value;

    #[test]
    fn every_line_is_an_object_with_one_key() {
        let levels = vec![Level::Number(1), Level::Number(2)];
        let factor =
            Factor { name: "block_bytes".into(), levels, role: Role::Setting, present: None };
        let run = |depth: u64, repeat: u64, bytes: u64| RunRecord {
            cell: [("block_bytes".to_owned(), Level::Number(depth))].into(),
            repeat,
            bytes,
            seconds: 2.0,
            ..RunRecord::default()
        };
        let mut failed = run(2, 2, 0);
        failed.error = Some("no".into());
        let runs = vec![
            run(1, 1, 100),
            run(1, 2, 110),
            run(2, 1, 300),
            run(2, 3, 310),
            run(1, 3, 105),
            failed,
        ];
        let header = Header {
            format: 1,
            kind: "read".into(),
            title: String::new(),
            value: Compared::Rate,
            factors: vec![factor],
            plan: Value::Null,
            seed: 1,
            started_unix_seconds: 1,
        };
        let judgement = judge(&header.factors, &runs, &JudgementOptions::default());
        let experiment = Experiment { header, runs, torn_bytes: 0 };
        let typed = lines(&experiment, &judgement);
        let read = |line: ExperimentLine| -> Value {
            let text = line.to_json();
            let again: ExperimentLine = serde_json::from_str(&text).unwrap();
            assert_eq!(again.to_json(), text);
            serde_json::from_str(&text).unwrap()
        };
        let lines: Vec<Value> = typed.map(read).collect();
        assert!(lines.iter().all(|line| line.as_object().unwrap().len() == 1), "{lines:?}");
        let of =
            |name: &str| -> Vec<&Value> { lines.iter().filter_map(|it| it.get(name)).collect() };
        assert_eq!(of("run").len(), 6);
        assert_eq!(of("run")[2]["bytes_per_second"], 150.0);
        assert_eq!(of("run")[5]["bytes_per_second"], Value::Null);
        assert_eq!(of("run")[5]["error"], "no");
        let recommended: Vec<&Value> =
            of("cell").into_iter().map(|cell| &cell["is_recommended"]).collect();
        assert_eq!(recommended, [false, true]);
        assert_eq!(of("effect")[0]["change"]["factor"], "block_bytes");
        assert!(of("sentence").iter().any(|sentence| sentence["subject"] == "set"));
    }
}
