//! The rates of a tape drive.

use std::path::PathBuf;

use experiment::plan::{Plan, Stop};
use experiment::record::{Factor, Level};
use loads::tape::{Begin, MediumChanger, Occupied, TapeExecutor, TapeOptions, preset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BegunExperiment, ExperimentDone, ExperimentRequest, ExperimentSurroundings, absolute, factor,
    numbers, words,
};
use crate::failure::Failure;

pub use loads::framing::Framing;
pub use loads::payload::Data;

/// What to measure of a tape drive. Every combination that makes sense is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BenchTapeRequest {
    /// A tape drive; to try a plan, a file, a pipe or `/dev/null`.
    pub target: Option<PathBuf>,
    pub block_bytes: Vec<u64>,
    /// Data to write: `zeros`, `random`, `text:RATIO`, or the path of a file or folder.
    pub data: Vec<String>,
    /// Bytes of one read from the disk of a folder or file.
    pub read_block_bytes: Vec<u64>,
    /// Format around the data.
    pub framing: Vec<Framing>,
    /// Bytes of a run.
    pub file_bytes: Vec<u64>,
    /// Files that a run is divided into, with a filemark after each.
    pub files: Vec<u64>,
    /// The drive's compression; without a level it stays as it is.
    pub drive_compression: Vec<DriveSwitch>,
    /// Memory between the generator and the writer; 0 for one thread that does both in turns.
    pub ring_bytes: Vec<u64>,
    /// What is measured.
    pub operation: Vec<TapeOperation>,
    /// Names of the media.
    pub media: Vec<String>,
    /// A known design.
    pub preset: Option<TapePreset>,
    /// Length of the files of the preset, as a share of their usual length.
    pub scale: f64,
    /// Where runs are written.
    pub place: RunPlace,
    /// Repeats, time limits, files.
    pub experiment: ExperimentRequest,
}

impl Default for BenchTapeRequest {
    fn default() -> BenchTapeRequest {
        BenchTapeRequest {
            target: None,
            block_bytes: vec![64 << 10, 256 << 10, 1 << 20],
            data: vec!["random".to_owned()],
            read_block_bytes: Vec::new(),
            framing: vec![Framing::Raw],
            file_bytes: Vec::new(),
            files: Vec::new(),
            drive_compression: Vec::new(),
            ring_bytes: vec![64 << 20],
            operation: vec![TapeOperation::Write],
            media: Vec::new(),
            preset: None,
            scale: 1.0,
            place: RunPlace::Beginning,
            experiment: ExperimentRequest::default(),
        }
    }
}

/// A setting of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriveSwitch {
    On,
    Off,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TapeOperation {
    Write,
    /// Read it back
    Read,
}

/// Known designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TapePreset {
    /// `btape speed` of Bacula
    Btape,
}

/// Where runs are written, and what becomes of the data on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPlace {
    /// At the beginning of a medium without data.
    Beginning,
    /// At the beginning; data on the medium are overwritten.
    Overwrite,
    /// After what the medium holds.
    Append,
}

/// Default length of a file in bytes: more than three times the buffer of any drive.
const USUAL_LENGTH_BYTES: u64 = 4 << 30;

/// The plan: from its file, or of the request.
///
/// # Errors
/// When the plan cannot be read or run, or the data are not known.
pub fn plan(request: &BenchTapeRequest) -> Result<Plan, Failure> {
    request.experiment.plan_or("tape", || made(request))
}

/// Runs the experiment to its end; `changer` changes media where the plan has several.
///
/// # Errors
/// When it cannot begin or be recorded, no run succeeded, or a setting could not be restored.
pub fn run(
    begun: BegunExperiment,
    request: &BenchTapeRequest,
    changer: Box<dyn MediumChanger>,
    surroundings: &ExperimentSurroundings<'_>,
) -> Result<ExperimentDone, Failure> {
    let (begin, occupied) = match request.place {
        RunPlace::Beginning => (Begin::AtBeginning, Occupied::Keep),
        RunPlace::Overwrite => (Begin::AtBeginning, Occupied::Overwrite),
        RunPlace::Append => (Begin::BehindData, Occupied::Keep),
    };
    begun.run(surroundings, |plan, _| {
        let options = TapeOptions { begin, occupied, changer: Some(changer) };
        Ok(TapeExecutor::new(plan, options)?)
    })
}

fn made(request: &BenchTapeRequest) -> Result<Plan, Failure> {
    let target = request.target.clone().unwrap_or_default();
    let (factors, usual) = factors(request)?;
    Ok(Plan {
        paths: vec![absolute(&target)],
        length_bytes: longest(&factors),
        factors,
        ..request.experiment.empty_plan("tape", usual)
    })
}

/// The largest number of bytes of a run.
fn longest(factors: &[Factor]) -> u64 {
    let lengths = factors.iter().filter(|factor| factor.name == "file_bytes");
    let bytes = lengths.flat_map(|factor| &factor.levels).filter_map(|level| match level {
        Level::Number(bytes) => Some(*bytes),
        Level::Text(_) => None,
    });
    bytes.max().unwrap_or(USUAL_LENGTH_BYTES)
}

/// The factors, and when the experiment ends. Loads come first, the block size last, because curves
/// are drawn over it.
fn factors(request: &BenchTapeRequest) -> Result<(Vec<Factor>, Stop), Failure> {
    let lengths = match &request.file_bytes[..] {
        [] => numbers(&[USUAL_LENGTH_BYTES]),
        lengths => numbers(lengths),
    };
    let lengths = factor("file_bytes", lengths, None);
    let (loads, usual) = match request.preset {
        Some(TapePreset::Btape) => {
            let mut factors = preset::btape(&request.block_bytes, request.scale);
            factors.retain(|factor| factor.name != "block_bytes");
            if !request.file_bytes.is_empty() {
                factors.retain(|factor| factor.name != "file_bytes");
                factors.extend(lengths);
            }
            (factors, preset::btape_stop())
        }
        None => {
            let data = request.data.iter().map(|text| data_level(text));
            let data = data.collect::<Result<Vec<Level>, Failure>>()?;
            let framings = request.framing.iter().map(|framing| word(framing.name())).collect();
            let factors = [factor("data", data, None), factor("framing", framings, None)];
            (factors.into_iter().flatten().chain(lengths).collect(), Stop::default())
        }
    };
    let media = request.media.iter().map(|label| word(label)).collect();
    let settings = [
        factor("files", numbers(&request.files), None),
        factor("operation", words(&request.operation), None),
        factor("medium", media, None),
        factor("drive_compression", words(&request.drive_compression), None),
        factor("ring_bytes", numbers(&request.ring_bytes), None),
        factor("read_block_bytes", numbers(&request.read_block_bytes), None),
        factor("block_bytes", numbers(&request.block_bytes), None),
    ];
    Ok((loads.into_iter().chain(settings.into_iter().flatten()).collect(), usual))
}

/// A file or folder is recorded by its absolute path, so that the experiment can continue from
/// another folder.
fn data_level(text: &str) -> Result<Level, Failure> {
    match text.parse::<Data>() {
        Ok(Data::Path(path)) => Ok(Level::Text(absolute(&path))),
        Ok(other) => Ok(Level::Text(other.to_string())),
        Err(error) => Err(Failure::new(&error, None)),
    }
}

fn word(text: &str) -> Level {
    Level::Text(text.to_owned())
}
