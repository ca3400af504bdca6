//! The model of a drive from an experiment on it (`--from RUNS`); [`disk`] has the same for a disk.

pub mod disk;

use std::path::{Path, PathBuf};

use experiment::record::load;
use loads::calibrate::{
    Beside, Beyond, Calibration, CalibrationError, NotTold, Reach, SPEEDS, Told, calibrate,
};
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, with_causes};

/// A record and the parameters that it shows.
#[derive(Clone, Debug)]
pub struct FromRuns {
    pub path: PathBuf,
    /// The parameters that it shows.
    pub calibration: Calibration,
    /// The generation that the other parameters come from.
    pub generation: &'static Generation,
}

/// Distance of the highest speed from that of the generation, as a share, that gets a warning.
const EXPECTED: f64 = 0.1;

impl FromRuns {
    /// Reads a record. `named` is the generation that the user gave; without it, the generation is
    /// what the drive reported.
    ///
    /// # Errors
    /// If it is not a record of one drive with results, or if the drive is not `named`.
    pub fn load(path: &Path, named: Option<&'static Generation>) -> Result<FromRuns, Failure> {
        let experiment = load(path).map_err(|error| Failure::new(&error, None))?;
        let calibration = calibrate(&experiment).map_err(|error| {
            let message =
                format!("cannot model the drive from {}: {}", path.display(), with_causes(&error));
            Failure::of(message, hint(&error))
        })?;
        let generation = match (named, calibration.generation) {
            (Some(named), Some(found)) if named.name != found.name => {
                let message = format!(
                    "{} was made on a drive with {} media, but --drive says {}",
                    path.display(),
                    found.name,
                    named.name
                );
                return Err(Failure::of(
                    message,
                    Some("leave --drive out to use the drive of the runs"),
                ));
            }
            (Some(named), _) => named,
            (None, Some(found)) => found,
            (None, None) => {
                let (path, drive) = (path.display(), &calibration.drive);
                let message = format!("unknown generation of {drive}, in {path}");
                return Err(Failure::of(message, Some("add --drive, lto1 to lto10")));
            }
        };
        Ok(FromRuns { path: path.to_owned(), calibration, generation })
    }

    /// Values of the generation that the runs rule out.
    pub fn out_of_reach(&self) -> Vec<Beyond> {
        let mut drive = TapeParameters::of(self.generation);
        // Fitted values are in reach.
        self.calibration.told.iter().for_each(|told| {
            drive.fit(told.parameter, told.value as u64);
        });
        self.calibration.out_of_reach(&drive)
    }

    /// How far the highest speed is above that of the generation, as a share of it, below zero for
    /// a lower one; `None` if the difference is as small as expected.
    pub fn unexpected_speed(&self) -> Option<f64> {
        let table = TapeParameters::of(self.generation).highest_bytes_per_second() as f64;
        let speed = self.calibration.told.iter().find(|told| told.parameter == SPEEDS)?;
        let above = speed.value / table - 1.0;
        (above.abs() > EXPECTED).then_some(above)
    }

    /// As a part of an answer.
    pub fn answer(&self) -> CalibratedDrive {
        let found = &self.calibration;
        CalibratedDrive {
            path: self.path.display().to_string(),
            drive: found.drive.clone(),
            generation: self.generation.name.to_owned(),
            runs: found.runs as u64,
            told: found.told.iter().map(CalibratedParameter::from).collect(),
            not_told: found.not_told.iter().map(UnknownParameters::from).collect(),
            ratios: found.ratios.iter().map(NumberOfData::from).collect(),
            read_bytes_per_second: found.reads.iter().map(NumberOfData::from).collect(),
        }
    }
}

/// What an experiment shows of its drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedDrive {
    /// The record; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// What the drive calls itself.
    pub drive: String,
    /// The generation that the other parameters come from.
    pub generation: String,
    /// Runs that succeeded.
    pub runs: u64,
    /// The parameters that the runs show.
    pub told: Vec<CalibratedParameter>,
    /// The parameters that the runs do not show.
    pub not_told: Vec<UnknownParameters>,
    /// Compression ratio of the drive for each kind of data.
    pub ratios: Vec<NumberOfData>,
    /// Rates of reading back for each kind of data.
    pub read_bytes_per_second: Vec<NumberOfData>,
}

/// A parameter that the runs show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedParameter {
    pub parameter: String,
    /// In the unit that the name ends with.
    pub value: f64,
    /// Lower end of the interval: at least 95 of 100 experiments have the value in theirs.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Runs that it comes from.
    pub runs: u64,
    /// Which runs these are, in words.
    pub from: String,
}

/// Parameters that the runs do not show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownParameters {
    /// Their names.
    pub parameters: Vec<String>,
    /// Why, and what would show them.
    pub why: String,
    /// An upper bound of the value, in the unit of the name.
    pub at_most: Option<u64>,
    /// A lower bound of the value, in the unit of the name.
    pub at_least: Option<u64>,
}

/// A number that was measured with one kind of data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumberOfData {
    /// The data, as the experiment names them.
    pub data: String,
    pub value: f64,
    /// Lower end of the interval: at least 95 of 100 experiments have the value in theirs.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Runs that it comes from.
    pub runs: u64,
}

impl From<&Told> for CalibratedParameter {
    fn from(told: &Told) -> CalibratedParameter {
        CalibratedParameter {
            parameter: told.parameter.to_owned(),
            value: told.value,
            low: told.interval.low,
            high: told.interval.high,
            runs: told.runs as u64,
            from: told.from.clone(),
        }
    }
}

impl From<&NotTold> for UnknownParameters {
    fn from(one: &NotTold) -> UnknownParameters {
        let [at_most, at_least] = match one.bound {
            Some(Reach::AtMost(most)) => [Some(most), None],
            Some(Reach::AtLeast(least)) => [None, Some(least)],
            None => [None, None],
        };
        UnknownParameters {
            parameters: one.parameters.iter().map(|name| (*name).to_owned()).collect(),
            why: one.why.clone(),
            at_most,
            at_least,
        }
    }
}

impl From<&Beside> for NumberOfData {
    fn from(one: &Beside) -> NumberOfData {
        NumberOfData {
            data: one.data.clone(),
            value: one.value,
            low: one.interval.low,
            high: one.interval.high,
            runs: one.runs as u64,
        }
    }
}

fn hint(error: &CalibrationError) -> Option<&'static str> {
    match error {
        CalibrationError::OtherKind { .. } | CalibrationError::NoDrive { .. } => {
            Some("make a record: takeup bench tape /dev/nst0 --data zeros,random -o RUNS")
        }
        CalibrationError::Once | CalibrationError::Nothing { .. } => Some(
            "measure more: takeup bench tape /dev/nst0 --data zeros,random --block-size \
             16k,64k,256k,1M --repeats 3",
        ),
        CalibrationError::SeveralDrives { .. }
        | CalibrationError::SeveralDisks { .. }
        | CalibrationError::SeveralGenerations { .. } => {
            Some("run one experiment for each of them")
        }
        CalibrationError::OwnJob | CalibrationError::NoNumber { .. } => None,
    }
}
