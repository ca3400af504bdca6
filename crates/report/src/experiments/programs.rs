//! The programs of commands as a table: the resources of each, and how full the pipe behind it was.

use crate::page::{Cells, PageTable};
use base::format::size;
use experiment::judgement::Judgement;
use experiment::record::{Experiment, RunRecord, shown_cell};
use experiment::record::{PipeUse, ProgramUse};
use statistics::mean;

/// Largest number of rows.
const ROWS_MAX: usize = 60;
/// A smaller share of all bytes gets no row.
const REST_SHARE: f64 = 0.01;

/// One row for each program of each combination, means over its good runs; `None` if no run has
/// programs.
pub(super) fn table(experiment: &Experiment, judgement: &Judgement) -> Option<PageTable> {
    let mut rows = Vec::new();
    let by_cell = super::good_runs_by_cell(&experiment.runs);
    for cell in &judgement.cells {
        let Some(runs) = by_cell.get(&cell.cell) else { continue };
        let shown = shown_cell(&cell.cell, &experiment.header.factors);
        let mut names: Vec<&String> = Vec::new();
        for program in runs.iter().flat_map(|run| &run.programs) {
            if !names.contains(&&program.name) {
                names.push(&program.name);
            }
        }
        rows.extend(names.iter().map(|name| row(&shown, name, runs)));
        rows.extend(rest(&shown, runs));
    }
    rows.truncate(ROWS_MAX);
    let numbers = ["processor", "read", "written", "pipe behind it", "full", "empty"];
    let words = ["programs of", "program"].map(|name| (name.to_owned(), Cells::Words));
    let mut columns = words.to_vec();
    columns.extend(numbers.map(|name| (name.to_owned(), Cells::Numbers)));
    (!rows.is_empty()).then(|| PageTable { caption: "Programs".to_owned(), columns, rows })
}

/// Bytes that the shell counted for all its programs after the last look at each of them. Only
/// their sum is known. `None` if it is almost nothing.
fn rest(shown: &str, runs: &[&RunRecord]) -> Option<Vec<String>> {
    let unseen = |total: &str, value: fn(&ProgramUse) -> Option<u64>| {
        let of_run = |run: &&RunRecord| {
            let total = run.measures.get(total).copied()?;
            let seen = run.programs.iter().map(value).sum::<Option<u64>>()? as f64;
            Some((total, (total - seen).max(0.0)))
        };
        let (totals, rests): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(of_run).unzip();
        let (total, rest) = (mean(&totals)?, mean(&rests)?);
        (rest > REST_SHARE * total).then_some(rest)
    };
    let read = unseen("called_read_bytes", |program| program.read_bytes);
    let written = unseen("called_write_bytes", |program| program.written_bytes);
    if read.is_none() && written.is_none() {
        return None;
    }
    let bytes = |value: Option<f64>| value.map_or("-".to_owned(), |it| size(it as u64));
    let mut cells = vec![shown.to_owned(), "after the last look".to_owned(), "-".to_owned()];
    cells.extend([bytes(read), bytes(written)]);
    cells.extend(["-", "-", "-"].map(str::to_owned));
    Some(cells)
}

fn row(shown: &str, name: &str, runs: &[&RunRecord]) -> Vec<String> {
    let of = |value: &dyn Fn(&RunRecord) -> Option<f64>| {
        mean(&runs.iter().filter_map(|run| value(run)).collect::<Vec<f64>>())
    };
    let program = |run: &RunRecord, value: &dyn Fn(&ProgramUse) -> Option<f64>| {
        value(run.programs.iter().find(|program| program.name == name)?)
    };
    let pipe = |run: &RunRecord, value: &dyn Fn(&PipeUse) -> Option<f64>| {
        value(run.pipes.iter().find(|pipe| pipe.from == name)?)
    };
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{it:.0} %"));
    let bytes = |value: Option<f64>| value.map_or("-".to_owned(), |it| size(it as u64));
    let used = of(&|run| {
        program(run, &|program| Some(100.0 * program.processor_seconds / run.seconds.max(1e-9)))
    });
    let of_bytes = |value: fn(&ProgramUse) -> Option<u64>| {
        of(&|run| program(run, &|program| value(program).map(|bytes| bytes as f64)))
    };
    vec![
        shown.to_owned(),
        name.to_owned(),
        percent(used),
        bytes(of_bytes(|program| program.read_bytes)),
        bytes(of_bytes(|program| program.written_bytes)),
        percent(of(&|run| pipe(run, &|pipe| pipe.fill_percent))),
        percent(of(&|run| pipe(run, &|pipe| pipe.full_percent))),
        percent(of(&|run| pipe(run, &|pipe| pipe.empty_percent))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_behind_the_last_look_has_a_row() {
        let run = |seen: u64| {
            let program = ProgramUse {
                name: "cat".to_owned(),
                read_bytes: Some(seen),
                written_bytes: Some(seen),
                ..ProgramUse::default()
            };
            let totals = [("called_read_bytes", 300e6), ("called_write_bytes", 300e6)];
            RunRecord {
                programs: vec![program],
                measures: totals.map(|(name, value)| (name.to_owned(), value)).into(),
                ..RunRecord::default()
            }
        };
        let row = rest("command a", &[&run(250_000_000), &run(270_000_000)]).unwrap();
        assert_eq!(row[1..5], ["after the last look", "-", "40.0 MB", "40.0 MB"]);
        assert_eq!(rest("command a", &[&run(299_000_000)]), None);
        let mut unknown = run(0);
        unknown.programs[0].read_bytes = None;
        unknown.programs[0].written_bytes = None;
        assert_eq!(rest("command a", &[&unknown]), None, "of others' programs nothing is known");
    }
}
