//! The parameters of a disk as measured by an experiment.

use std::path::{Path, PathBuf};

use base::format::counted;
use experiment::record::load;
use loads::calibrate::disk::{DiskCalibration, DiskCalibrationError, calibrate, shown_bound};
use model::disk::DiskParameters;
use report::table::Colour;
use serde_json::{Value, json};

use super::{not_told_document, reasons, table, told_document};
use crate::failure::{Failure, with_causes};

/// A record and the parameters that it shows.
#[derive(Clone, Debug)]
pub struct DiskFromRuns {
    path: PathBuf,
    /// The parameters that the record shows.
    calibration: DiskCalibration,
    /// The preset that gives all other parameters.
    pub preset: String,
    /// The parameters of both together.
    pub parameters: DiskParameters,
}

impl DiskFromRuns {
    /// Reads a record. `named` is the preset that the user gave; by default it is the nearest by
    /// what the kernel reports of the disk.
    ///
    /// # Errors
    /// When the file is not a record of one disk, or shows no parameter.
    pub fn load(path: &Path, named: Option<&str>) -> Result<DiskFromRuns, Failure> {
        let experiment = load(path).map_err(|error| Failure::new(&error, None))?;
        let calibration = calibrate(&experiment).map_err(|error| {
            let message =
                format!("cannot calibrate a disk: {}: {}", path.display(), with_causes(&error));
            Failure::of(message, hint(&error))
        })?;
        let preset = named.unwrap_or(calibration.nearest_preset).to_owned();
        let mut parameters = DiskParameters::named(&preset).expect("presets were checked");
        calibration.apply(&mut parameters);
        Ok(DiskFromRuns { path: path.to_owned(), calibration, preset, parameters })
    }

    /// For people: measured parameters, lower bounds, and the parameters of the preset.
    pub fn text(&self, colour: Colour) -> String {
        let found = &self.calibration;
        let runs = counted(found.runs as u64, "run", "runs");
        let mut text =
            format!("parameters from {}: {runs} on {}\n", self.path.display(), found.disk);
        text.push_str(&table(&found.told).render(colour));
        if !found.bounds.is_empty() {
            text.push_str(&format!("lower bounds; {} is used where it is higher:\n", self.preset));
        }
        for bound in &found.bounds {
            let (name, least) = (bound.parameter, shown_bound(bound));
            text.push_str(&format!("  {name}: {least}; {}\n", bound.why));
        }
        text.push_str(&format!("not measured by these runs, taken from {}:\n", self.preset));
        text.push_str(&reasons(&found.not_told));
        text
    }

    /// For documents.
    pub fn document(&self) -> Value {
        let found = &self.calibration;
        let bounds = found.bounds.iter();
        let bounds: Vec<Value> = bounds
            .map(|bound| {
                json!({
                    "parameter": bound.parameter,
                    "at_least": bound.at_least,
                    "why": bound.why,
                })
            })
            .collect();
        json!({
            "path": self.path.display().to_string(),
            "disk": found.disk,
            "preset": self.preset,
            "runs": found.runs,
            "told": told_document(&found.told),
            "at_least": bounds,
            "not_told": not_told_document(&found.not_told),
        })
    }
}

fn hint(error: &DiskCalibrationError) -> Option<&'static str> {
    match error {
        DiskCalibrationError::NoNumber { .. } => None,
        DiskCalibrationError::SeveralDisks { .. } => Some("make one experiment for each disk"),
        _ => Some(
            "measure most parameters with `takeup bench disk PATH --load read,randread \
             --block-size 4k,64k,1M --depth 1,4,16,64 --repeats 3 -o RUNS`",
        ),
    }
}
