//! What an experiment found, as an answer.

use experiment::record::Cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ExperimentDone, JudgementAnswer};
use crate::Answer;

/// What an experiment found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentAnswer {
    /// `bench read`, `bench disk`, `bench tape` or `bench run`.
    pub command: String,
    /// Number of runs in the file.
    pub runs: u64,
    /// The file of runs; bytes that are no UTF-8 are replaced.
    pub file: String,
    /// Why the experiment ended.
    pub ended: String,
    /// Combinations that did not run.
    pub not_run: Vec<Cell>,
    /// What follows from all runs of the file.
    pub judgement: JudgementAnswer,
}

impl Answer for ExperimentAnswer {
    const COMMAND: &'static str = "bench";

    fn command(&self) -> &str {
        &self.command
    }
}

impl ExperimentDone {
    /// As an answer.
    pub fn answer(&self) -> ExperimentAnswer {
        let header = &self.experiment.header;
        ExperimentAnswer {
            command: format!("bench {}", header.kind),
            runs: self.experiment.runs.len() as u64,
            file: self.path.display().to_string(),
            ended: self.ended.words().to_owned(),
            not_run: self.not_run.clone(),
            judgement: JudgementAnswer::of(&self.judgement, header.value),
        }
    }
}

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutBackAnswer {
    pub settings: u64,
}

impl Answer for PutBackAnswer {
    const COMMAND: &'static str = "bench put-back";
}
