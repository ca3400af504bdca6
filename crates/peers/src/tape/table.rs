//! The counters of drives, as rows of a second table.

use crate::estimate::Estimate;
use crate::record::Run;

/// Heads of the columns.
pub const HEADS: [&str; 9] = [
    "work",
    "contender",
    "drive",
    "seconds",
    "model",
    "streaming",
    "MB/s then",
    "back-hitches (model)",
    "drive CPU s/GB",
];

/// A row for each contender that wrote to a drive, in the order of the first run.
pub fn rows(runs: &[Run]) -> Vec<Vec<String>> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for run in runs.iter().filter(|run| run.tape.is_some()) {
        let key = (run.work.as_str(), run.contender.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    // Rounds vary the order, and the first starts with the second of the list, so works are grouped
    // here.
    let works: Vec<&str> = seen.iter().map(|(work, _)| *work).collect();
    seen.sort_by_key(|(work, _)| works.iter().position(|other| other == work));
    seen.into_iter().map(|(work, contender)| row(runs, work, contender)).collect()
}

fn row(runs: &[Run], work: &str, contender: &str) -> Vec<String> {
    let those: Vec<&Run> = runs
        .iter()
        .filter(|run| (run.work.as_str(), run.contender.as_str()) == (work, contender))
        .collect();
    let middle = |value: &dyn Fn(&Run) -> Option<f64>| {
        Estimate::of(&those.iter().filter_map(|run| value(run)).collect::<Vec<_>>())
    };
    let drive = those.iter().find_map(|run| run.tape.as_ref()).map(|tape| tape.drive.clone());
    let tape = |run: &Run| run.tape.clone();
    let share = |run: &Run| Some(100.0 * tape(run)?.streaming_share(run.seconds));
    let rate = |run: &Run| {
        let tape = tape(run)?;
        let rate = tape.rate.map(|rate| rate.bytes_per_second());
        Some(rate.unwrap_or_else(|| tape.streaming_bytes_per_second()) / 1e6)
    };
    let cpu = |run: &Run| {
        let tape = tape(run)?;
        let (seconds, bytes) = match tape.rate {
            Some(rate) => (rate.drive_cpu_seconds, rate.bytes),
            None => (tape.drive_cpu_seconds, tape.host_bytes),
        };
        Some(seconds * 1e9 / bytes.max(1) as f64)
    };
    let hitches = text(middle(&|run| Some(tape(run)?.back_hitches as f64)), 0);
    let foretold = text(middle(&|run| Some(tape(run)?.model_back_hitches as f64)), 0);
    vec![
        work.to_string(),
        contender.to_string(),
        drive.unwrap_or_default(),
        text(middle(&|run| Some(run.seconds)), 2),
        text(middle(&|run| Some(tape(run)?.model_seconds)), 2),
        format!("{} %", text(middle(&share), 0)),
        text(middle(&rate), 1),
        format!("{hitches} ({foretold})"),
        text(middle(&cpu), 2),
    ]
}

fn text(estimate: Option<Estimate>, decimals: usize) -> String {
    estimate.map_or_else(|| "-".to_string(), |estimate| estimate.shown(decimals, ""))
}
