//! The model of a disk from an experiment on it.

use std::path::{Path, PathBuf};

use experiment::record::load;
use loads::calibrate::CalibrationError;
use loads::calibrate::disk::{Bound, DiskCalibration, calibrate};
use model::disk::DiskParameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CalibratedParameter, UnknownParameters};
use crate::failure::{Failure, with_causes};

/// A record and the parameters that it shows.
#[derive(Clone, Debug)]
pub struct DiskFromRuns {
    pub path: PathBuf,
    /// The parameters that it shows.
    pub calibration: DiskCalibration,
    /// The preset that the other parameters come from.
    pub preset: String,
    /// The resulting parameters.
    pub parameters: DiskParameters,
}

impl DiskFromRuns {
    /// Reads a record. `named` is the preset that the user gave; without it, it is the most similar
    /// one by what the kernel reported of the disk.
    ///
    /// # Errors
    /// If it is not a record of one disk with results.
    pub fn load(path: &Path, named: Option<&str>) -> Result<DiskFromRuns, Failure> {
        let experiment = load(path).map_err(|error| Failure::new(&error, None))?;
        let calibration = calibrate(&experiment).map_err(|error| {
            let message =
                format!("cannot model the disk from {}: {}", path.display(), with_causes(&error));
            Failure::of(message, hint(&error))
        })?;
        let preset = named.unwrap_or(calibration.nearest_preset).to_owned();
        let mut parameters = DiskParameters::named(&preset).expect("presets were checked");
        calibration.apply(&mut parameters);
        Ok(DiskFromRuns { path: path.to_owned(), calibration, preset, parameters })
    }

    /// As a part of an answer.
    pub fn answer(&self) -> CalibratedDisk {
        let found = &self.calibration;
        CalibratedDisk {
            path: self.path.display().to_string(),
            disk: found.disk.clone(),
            preset: self.preset.clone(),
            runs: found.runs as u64,
            told: found.told.iter().map(CalibratedParameter::from).collect(),
            at_least: found.bounds.iter().map(ParameterBound::from).collect(),
            not_told: found.not_told.iter().map(UnknownParameters::from).collect(),
        }
    }
}

/// What an experiment shows of its disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedDisk {
    /// The record; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// The disk's name, with its model if known.
    pub disk: String,
    /// The preset that the other parameters come from.
    pub preset: String,
    /// Runs that succeeded.
    pub runs: u64,
    /// The parameters that the runs show.
    pub told: Vec<CalibratedParameter>,
    /// The parameters of which the runs show a lower bound.
    pub at_least: Vec<ParameterBound>,
    /// The parameters that the runs do not show.
    pub not_told: Vec<UnknownParameters>,
}

/// A lower bound of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterBound {
    pub parameter: String,
    /// The bound, in the unit that the name ends with.
    pub at_least: f64,
    /// Why no more is known.
    pub why: String,
}

impl From<&Bound> for ParameterBound {
    fn from(bound: &Bound) -> ParameterBound {
        ParameterBound {
            parameter: bound.parameter.to_owned(),
            at_least: bound.at_least,
            why: bound.why.clone(),
        }
    }
}

fn hint(error: &CalibrationError) -> Option<&'static str> {
    match error {
        CalibrationError::NoNumber { .. } => None,
        CalibrationError::SeveralDisks { .. } => Some("run one experiment for each of them"),
        _ => Some(
            "measure more: takeup bench disk PATH --load read,randread --block-size 4k,64k,1M \
             --depth 1,4,16,64 --repeats 3 -o RUNS",
        ),
    }
}
