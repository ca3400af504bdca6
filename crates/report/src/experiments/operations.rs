//! The operations of fio as a table: reads, writes, discards and fsyncs of each combination, and of
//! each section of a job, with the device's counters of the same direction.

use crate::page::{Cells, PageTable};
use experiment::judgement::{CellSummary, Judgement};
use experiment::quantities::Unit;
use experiment::record::{Experiment, RunRecord, shown_cell};
use experiment::record::{OperationKind, Operations};
use statistics::histogram::Histogram;
use statistics::mean;

/// Largest number of rows.
const ROWS_MAX: usize = 120;

/// The name of the section in rows over all sections.
const ALL: &str = "all";

/// One row for each kind of operation of each combination, over its good runs; `None` if no
/// operation is known.
pub(super) fn table(experiment: &Experiment, judgement: &Judgement) -> Option<PageTable> {
    let has_sections = sections(&experiment.runs).len() > 1;
    let mut columns = vec![("requests of".to_owned(), Cells::Words)];
    columns.extend(has_sections.then(|| ("section".to_owned(), Cells::Words)));
    columns.push(("operation".to_owned(), Cells::Words));
    let numbers = [
        "rate",
        "requests/s",
        "half within",
        "99 % within",
        "99.9 % within",
        "submitted in",
        "at the device",
        "device request",
        "merged",
    ];
    columns.extend(numbers.map(|name| (name.to_owned(), Cells::Numbers)));
    let mut rows = Vec::new();
    let by_cell = super::good_runs_by_cell(&experiment.runs);
    for cell in &judgement.cells {
        let Some(runs) = by_cell.get(&cell.cell) else { continue };
        let shown = shown_cell(&cell.cell, &experiment.header.factors);
        for part in parts(runs) {
            let mut row = vec![shown.clone()];
            row.extend(has_sections.then(|| part.section.clone()));
            row.push(part.operation.name().to_owned());
            row.extend(part.numbers(cell));
            rows.push(row);
        }
    }
    rows.truncate(ROWS_MAX);
    (!rows.is_empty()).then(|| PageTable { caption: "Operations".to_owned(), columns, rows })
}

/// The table, if a run has several kinds or sections.
pub(super) fn apart(experiment: &Experiment, judgement: &Judgement) -> Option<PageTable> {
    let is_apart = experiment.runs.iter().any(|run| run.operations.len() > 1);
    table(experiment, judgement).filter(|_| is_apart)
}

/// The names of all sections, in their order.
fn sections(runs: &[RunRecord]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.operations) {
        if !names.contains(&one.section.as_str()) {
            names.push(&one.section);
        }
    }
    names
}

/// Operations of one kind over several runs.
struct Part<'a> {
    section: String,
    operation: OperationKind,
    /// The operations of each run.
    runs: Vec<Vec<&'a Operations>>,
    /// Time of each run.
    seconds: Vec<f64>,
    /// Whether it has all operations of its kind, so that the device's counters are about the same.
    is_all: bool,
}

/// The operations of one combination, by section and kind; with several sections, the sums of each
/// kind follow.
fn parts<'a>(runs: &[&'a RunRecord]) -> Vec<Part<'a>> {
    let all: Vec<&Operations> = runs.iter().flat_map(|run| &run.operations).collect();
    let mut keys: Vec<(String, OperationKind)> = Vec::new();
    let mut add = |key: (String, OperationKind)| {
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    all.iter().for_each(|one| add((one.section.clone(), one.operation)));
    let is_one = all.iter().all(|one| one.section == all[0].section);
    if !is_one {
        let mut kinds: Vec<OperationKind> = all.iter().map(|one| one.operation).collect();
        kinds.sort_unstable();
        kinds.into_iter().for_each(|kind| add((ALL.to_owned(), kind)));
    }
    let part = |(section, operation): (String, OperationKind)| {
        let is_all = is_one || section == ALL;
        let is_own =
            |one: &&Operations| one.operation == operation && (is_all || one.section == section);
        let of_run = |run: &&'a RunRecord| run.operations.iter().filter(is_own).collect();
        let time = |run: &&'a RunRecord| {
            let longest = |own: f64, one: &Operations| own.max(one.seconds);
            let own = run.operations.iter().filter(is_own).fold(0.0, longest);
            if is_all { run.seconds } else { own }
        };
        Part {
            operation,
            runs: runs.iter().map(of_run).collect(),
            seconds: runs.iter().map(time).collect(),
            is_all,
            section,
        }
    };
    keys.into_iter().map(part).collect()
}

impl Part<'_> {
    fn numbers(&self, cell: &CellSummary) -> Vec<String> {
        let per_second = |value: fn(&Operations) -> u64| {
            let rates: Vec<f64> = self
                .runs
                .iter()
                .zip(&self.seconds)
                .map(|(own, seconds)| {
                    own.iter().map(|one| value(one) as f64).sum::<f64>() / seconds.max(1e-9)
                })
                .collect();
            mean(&rates).filter(|rate| *rate > 0.0)
        };
        let shown = |value: Option<f64>, unit: Unit| {
            value.map_or_else(|| "-".to_owned(), |value| unit.shown(value))
        };
        let mut latency = Histogram::default();
        let all = || self.runs.iter().flatten();
        all().for_each(|one| latency.merge(&one.latency));
        let within = |share: f64| latency.quantile_ns(share).map(|ns| ns as f64);
        let submitted: Vec<f64> = all().filter_map(|one| one.submission_mean_ns).collect();
        let device = |name: &str| {
            let name = format!("{}{name}", self.operation.device_prefix());
            cell.measures.get(&name).copied().filter(|_| self.is_all)
        };
        vec![
            shown(per_second(|one| one.bytes), Unit::BytesPerSecond),
            shown(per_second(|one| one.requests), Unit::Number),
            shown(within(0.5), Unit::Nanoseconds),
            shown(within(0.99), Unit::Nanoseconds),
            shown(within(0.999), Unit::Nanoseconds),
            shown(mean(&submitted), Unit::Nanoseconds),
            shown(device("await_ns"), Unit::Nanoseconds),
            shown(device("request_bytes"), Unit::Bytes),
            shown(device("merged_percent"), Unit::Percent),
        ]
    }
}
