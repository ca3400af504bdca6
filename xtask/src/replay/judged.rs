//! The results of an experiment, read from its document and its file of runs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The document of an experiment or of a report on one.
pub struct Judged {
    document: Value,
    folder: PathBuf,
}

/// Levels of factors that choose cells; a factor that is not named may have any level.
pub type Levels<'a> = &'a [(&'a str, &'a str)];

impl Judged {
    /// A document whose file of runs is in a folder.
    pub fn new(document: Value, folder: &Path) -> Judged {
        Judged { document, folder: folder.to_owned() }
    }

    /// All cells with these levels.
    fn cells(&self, levels: Levels<'_>) -> anyhow::Result<Vec<&Value>> {
        let cells = self.document["judgement"]["cells"].as_array().context("no cells")?;
        let found: Vec<&Value> = cells.iter().filter(|cell| is_at(&cell["cell"], levels)).collect();
        if found.is_empty() {
            bail!("no run of {levels:?} gave a number");
        }
        Ok(found)
    }

    /// The levels of a factor that have a number.
    ///
    /// # Errors
    /// When there are none.
    pub fn levels(&self, factor: &str) -> anyhow::Result<Vec<String>> {
        let mut found: Vec<String> =
            self.cells(&[])?.into_iter().map(|cell| level(&cell["cell"][factor])).collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// The rate of a cell in bytes per second; for several cells, their geometric mean.
    ///
    /// # Errors
    /// When there is none.
    pub fn rate(&self, levels: Levels<'_>) -> anyhow::Result<f64> {
        self.mean(levels, |cell| cell["bytes_per_second"].as_f64())
    }

    /// The time of a cell in seconds; for several cells, their geometric mean.
    ///
    /// # Errors
    /// When there is none.
    pub fn seconds(&self, levels: Levels<'_>) -> anyhow::Result<f64> {
        self.mean(levels, |cell| cell["seconds"].as_f64())
    }

    fn mean(
        &self,
        levels: Levels<'_>,
        number: impl Fn(&Value) -> Option<f64>,
    ) -> anyhow::Result<f64> {
        let cells = self.cells(levels)?;
        let count = cells.len() as f64;
        let logarithms: Option<f64> = cells.into_iter().map(|cell| Some(number(cell)?.ln())).sum();
        Ok((logarithms.with_context(|| format!("no number of {levels:?}"))? / count).exp())
    }

    /// A measure of a cell; for several cells, their mean.
    ///
    /// # Errors
    /// When a cell has none.
    pub fn measure(&self, levels: Levels<'_>, name: &str) -> anyhow::Result<f64> {
        let cells = self.cells(levels)?;
        let count = cells.len() as f64;
        let sum: Option<f64> = cells.iter().map(|cell| cell["measures"][name].as_f64()).sum();
        Ok(sum.with_context(|| format!("{levels:?} has no {name}"))? / count)
    }

    /// The sentences of a rule.
    pub fn told(&self, rule: &str) -> Vec<&str> {
        let sentences = self.document["judgement"]["sentences"].as_array();
        let by_rule = sentences.into_iter().flatten().filter(|one| one["rule"] == rule);
        by_rule.filter_map(|one| one["text"].as_str()).collect()
    }

    /// The knee of a factor, with all other factors at these levels.
    ///
    /// # Errors
    /// When the factor was not varied there.
    pub fn knee(&self, factor: &str, levels: Levels<'_>) -> anyhow::Result<String> {
        let judgement = &self.document["judgement"];
        let mut sweeps = judgement["sweeps"].as_array().into_iter().flatten();
        let sweep = sweeps
            .find(|one| one["factor"] == factor && is_at(&one["others"], levels))
            .with_context(|| format!("no sweep of {factor}"))?;
        let place = sweep["knee"].as_u64().context("no knee")? as usize;
        let cell = sweep["cells"][place].as_u64().context("no cell")? as usize;
        Ok(level(&judgement["cells"][cell]["cell"][factor]))
    }

    /// The upper bound on the rate of a stopped run with these levels, in bytes per second.
    ///
    /// # Errors
    /// When no run of them was stopped.
    pub fn bound(&self, levels: Levels<'_>) -> anyhow::Result<f64> {
        let file = self.document["file"].as_str().context("no file of runs")?;
        let text = std::fs::read_to_string(self.folder.join(file)).context("read the runs")?;
        let runs = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut bounds = runs
            .filter(|line| is_at(&line["run"]["cell"], levels))
            .filter_map(|line| line["run"]["slower_than_bytes_per_second"].as_f64());
        bounds.next().with_context(|| format!("no run of {levels:?} was stopped"))
    }
}

fn is_at(cell: &Value, levels: Levels<'_>) -> bool {
    levels.iter().all(|(factor, wanted)| level(&cell[factor]) == *wanted)
}

/// A level as text.
fn level(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged() -> Judged {
        let cell = |block: u64, rate: f64| {
            let measures = json!({ "device_depth": rate });
            json!({ "cell": { "block_bytes": block, "data": "random" },
                    "bytes_per_second": rate, "measures": measures })
        };
        let sweep = json!({ "factor": "block_bytes", "others": { "data": "random" },
                            "cells": [0, 1], "knee": 1 });
        let told = json!({ "rule": "experiment.curve", "text": "it bends" });
        let document = json!({ "judgement": { "cells": [cell(512, 1.0), cell(1024, 4.0)],
                               "sweeps": [sweep], "sentences": [told] } });
        Judged::new(document, Path::new("."))
    }

    #[test]
    fn cells_are_found_by_their_levels() {
        let judged = judged();
        assert_eq!(judged.rate(&[("block_bytes", "1024")]).unwrap(), 4.0);
        assert!((judged.rate(&[("data", "random")]).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(judged.measure(&[], "device_depth").unwrap(), 2.5);
        assert_eq!(judged.knee("block_bytes", &[("data", "random")]).unwrap(), "1024");
        assert_eq!(judged.told("experiment.curve"), ["it bends"]);
        assert_eq!(judged.levels("block_bytes").unwrap(), ["1024", "512"]);
    }

    #[test]
    fn what_was_not_measured_is_an_error() {
        let judged = judged();
        assert!(judged.rate(&[("data", "zeros")]).is_err());
        assert!(judged.seconds(&[]).is_err());
        assert!(judged.measure(&[], "fio_iops").is_err());
        assert!(judged.knee("depth", &[]).is_err());
        assert!(judged.bound(&[]).is_err());
    }
}
