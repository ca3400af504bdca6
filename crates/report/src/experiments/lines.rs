//! An experiment and its judgement as lines of JSON, for tools that read one object at a time.
//!
//! The file of runs is NDJSON, too, but raw. Here each run has its rate, the quantiles of its
//! latencies and whether it is an outlier, and the lines after the runs have the results. The
//! single key of a line is its kind: `run`, `cell`, `effect` or `sentence`. The last word of a
//! number's name is its unit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::document;
use experiment::judgement::{CellSummary, Judgement};
use experiment::record::Operations;
use experiment::record::{Experiment, RunRecord};

/// One line for each run, combination, effect and conclusion.
pub fn ndjson(experiment: &Experiment, judgement: &Judgement) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: Value| {
        text.push_str(&json!({ name: value }).to_string());
        text.push('\n');
    };
    let cells: BTreeMap<_, _> = judgement.cells.iter().map(|own| (&own.cell, own)).collect();
    let is_recommended: BTreeSet<usize> = (judgement.recommended.iter())
        .filter(|found| found.is(found.cell))
        .map(|found| found.cell)
        .collect();
    for run in &experiment.runs {
        put("run", run_object(run, cells.get(&run.cell).copied()));
    }
    for (index, cell) in judgement.cells.iter().enumerate() {
        let mut object = document(cell, experiment.header.value);
        object["is_recommended"] = is_recommended.contains(&index).into();
        put("cell", object);
    }
    judgement.effects.iter().for_each(|effect| put("effect", json!(effect)));
    judgement.sentences.iter().for_each(|sentence| put("sentence", json!(sentence)));
    text
}

fn run_object(run: &RunRecord, cell: Option<&CellSummary>) -> Value {
    let quantile = |share: f64| run.latency.as_ref()?.quantile_ns(share);
    json!({
        "order": run.order,
        "repeat": run.repeat,
        "started_unix_seconds": run.started_unix_seconds,
        "cell": run.cell,
        "bytes": run.bytes,
        "seconds": run.seconds,
        "bytes_per_second": run.bytes_per_second(),
        "latency_p50_ns": quantile(0.5),
        "latency_p99_ns": quantile(0.99),
        "is_outlier": cell.is_some_and(|cell| cell.outliers.contains(&run.repeat)),
        "measures": run.measures,
        "operations": run.operations.iter().map(Operations::document).collect::<Vec<Value>>(),
        "stages": run.stages,
        "programs": run.programs,
        "pipes": run.pipes,
        "notes": run.notes,
        "error": run.error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::judgement::{JudgementOptions, judge};
    use experiment::record::{Factor, Header, Level, Role, Value as Compared};

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
        let text = ndjson(&Experiment { header, runs, torn_bytes: 0 }, &judgement);
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line.as_object().unwrap().len() == 1), "{text}");
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
