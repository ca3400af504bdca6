//! A pipe: a buffer between two programs, files or devices.

use std::path::PathBuf;

use flow::cancel::Cancel;
use flow::ring::LastBlock;
use runs::pipe::PipeOptions;
use runs::summary::RunSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{Media, Memory, TapeOptions};

use crate::Answer;
use crate::change::NoChanger;
use crate::failure::Failure;
use crate::interrupted::{left_at, with_left};
use crate::outcome::Outcome;
use crate::run::{EngineChoice, RunMonitor, RunObserver, TargetSettings, destination};

/// What to move where, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipeRequest {
    /// Where the data come from; `-` is standard input.
    pub from: PathBuf,
    /// Where they go; `-` is standard output.
    pub to: PathBuf,
    /// How the target is written.
    #[serde(default)]
    pub target: TargetSettings,
    /// Whether the last block is padded with zeros.
    #[serde(default)]
    pub pad: bool,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
    /// A new file that gets the record of the run.
    #[serde(default)]
    pub record: Option<PathBuf>,
}

/// The end of a pipe.
#[derive(Debug)]
pub struct PipeDone {
    /// The target, as requested.
    pub to: PathBuf,
    pub summary: RunSummary,
}

/// The end of a pipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipeAnswer {
    #[serde(flatten)]
    pub run: RunSummary,
}

impl Answer for PipeAnswer {
    const COMMAND: &'static str = "pipe";
}

impl PipeDone {
    /// As an answer.
    pub fn answer(&self) -> PipeAnswer {
        PipeAnswer { run: self.summary.clone() }
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.summary.verdict.state.into()
    }
}

/// Moves data.
///
/// # Errors
/// When source or target cannot be opened, read or written, or the options do not fit each other.
pub fn pipe(
    request: &PipeRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
) -> Result<PipeDone, Failure> {
    let target = &request.target;
    let options = PipeOptions {
        from: request.from.clone().into(),
        to: destination(
            &request.to,
            TapeOptions::default(),
            Media::default(),
            Memory::default(),
            NoChanger::shared(),
        ),
        block_bytes: target.block_bytes(),
        ring_bytes: target.ring_bytes(0),
        start_fill_percent: target.start_fill_percent.unwrap_or(0),
        rate_limit_bytes_per_second: target.rate_limit_bytes_per_second,
        last_block: if request.pad { LastBlock::Padded } else { LastBlock::Short },
        engine: request.engine.into(),
        existing: target.existing(),
        mode: target.mode()?,
    };
    let mut monitor =
        RunMonitor::new(observer).recording(request.record.as_deref(), Some(&request.to))?;
    let report = runs::pipe::pipe(&options, &monitor, cancel)
        .map_err(|error| with_left(error.into(), cancel, || left_at(&request.to)))?;
    let summary = monitor.summarise(report, |_| {});
    Ok(PipeDone { to: request.to.clone(), summary })
}
