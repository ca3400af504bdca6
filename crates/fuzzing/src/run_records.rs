//! Any bytes as a file of runs: what can be read survives being written again, and can be judged,
//! shown and compared with itself.

use std::path::Path;

use experiment::compare::compare;
use experiment::judgement::{JudgementOptions, judge};
use experiment::record::{Experiment, header_line, read, run_line};
use report::table::Style;

/// More runs than this take the judgement longer than the fuzzer waits.
const RUNS_MAX: usize = 64;

/// Checks one input.
pub fn check(input: &[u8]) {
    let experiment = match read(input, Path::new("input")) {
        Ok(experiment) => experiment,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(experiment.torn_bytes <= input.len() as u64);
    assert_eq!(written_and_read(&experiment), Experiment { torn_bytes: 0, ..experiment.clone() });
    if experiment.runs.len() > RUNS_MAX {
        return;
    }
    let judgement =
        judge(&experiment.header.factors, &experiment.runs, &JudgementOptions::default());
    assert!(judgement.cells.len() <= experiment.runs.len());
    let text = report::experiments::text(&experiment, &judgement, Style::PLAIN);
    assert!(judgement.cells.is_empty() || !text.is_empty());
    let same = compare(&experiment, &experiment, &JudgementOptions::default());
    assert_eq!((same.only_in_a, same.only_in_b), (0, 0));
}

fn written_and_read(experiment: &Experiment) -> Experiment {
    let mut lines = header_line(&experiment.header);
    experiment.runs.iter().for_each(|run| lines.extend(run_line(run)));
    read(lines.as_slice(), Path::new("written")).expect("what was written can be read")
}
