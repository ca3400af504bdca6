//! The runs of a pipeline as an answer. What is not known is null.

use base::finding::Finding;
use pipeline::judge::Predicted;
use pipeline::{Drive, Pipe, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Explained, OtherRun, PipelineRun};
use crate::Answer;

/// The run of a pipeline, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainAnswer {
    #[serde(flatten)]
    pub run: PipelineRunAnswer,
    /// The run without the last stage.
    pub baseline: Option<PipelineRunAnswer>,
    /// The run with the proposed change.
    pub tried: Option<PipelineRunAnswer>,
}

impl Answer for ExplainAnswer {
    const COMMAND: &'static str = "explain";
}

/// One run of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineRunAnswer {
    /// The line; null for processes that ran already.
    pub pipeline: Option<String>,
    /// From the start of the first stage to the end of the last one.
    pub seconds: f64,
    /// Processor time of all programs outside the kernel.
    pub user_seconds: Option<f64>,
    /// Processor time of all programs in the kernel.
    pub system_seconds: Option<f64>,
    /// Cores of the machine.
    pub cores: usize,
    /// Number of samples.
    pub looks: u64,
    /// Processor time that sampling took.
    pub looking_seconds: f64,
    /// The stages in the order of the data.
    pub stages: Vec<Stage>,
    /// The pipes between them, which count stages from 0.
    pub pipes: Vec<Pipe>,
    /// The tape drive that the last stage writes to, where its rate is known.
    pub drive: Option<Drive>,
    /// The stage that is the bottleneck, counted from 1.
    pub limit: Option<usize>,
    /// The run time with perfect overlap.
    pub longest_stage_seconds: Option<f64>,
    /// The run time if the stages ran one after the other.
    pub sum_seconds: f64,
    /// The time in which stages waited for each other although none was the bottleneck.
    pub waiting_seconds: f64,
    /// What stands out, the limit first.
    pub findings: Vec<Finding>,
    /// The change that saves most.
    pub predicted: Option<Predicted>,
    /// How the pipeline failed, if it did.
    pub failed: Option<String>,
    /// Whether Takeup ended it after the requested time.
    pub is_ended: bool,
    /// Whether a signal stopped it.
    pub is_stopped: bool,
}

impl Explained {
    /// As an answer.
    pub fn answer(&self) -> ExplainAnswer {
        let other = |other: &OtherRun| run_answer(&other.run, Some(&other.line));
        ExplainAnswer {
            run: run_answer(&self.run, self.pipeline.as_deref()),
            baseline: self.baseline.as_ref().map(other),
            tried: self.tried.as_ref().map(other),
        }
    }
}

fn run_answer(run: &PipelineRun, pipeline: Option<&str>) -> PipelineRunAnswer {
    let (look, judgement) = (&run.look, &run.judgement);
    PipelineRunAnswer {
        pipeline: pipeline.map(str::to_owned),
        seconds: look.seconds,
        user_seconds: run.processor_seconds.map(|both| both[0]),
        system_seconds: run.processor_seconds.map(|both| both[1]),
        cores: look.cores,
        looks: look.looks,
        looking_seconds: look.looking_seconds,
        stages: look.stages.clone(),
        pipes: look.pipes.clone(),
        drive: look.drive.clone(),
        limit: judgement.limit.map(|at| at + 1),
        longest_stage_seconds: judgement.longest_stage_seconds,
        sum_seconds: judgement.sum_seconds,
        waiting_seconds: judgement.waiting_seconds,
        findings: judgement.findings.clone(),
        predicted: judgement.predicted.clone(),
        failed: run.failed.clone(),
        is_ended: run.is_ended,
        is_stopped: run.is_stopped,
    }
}
