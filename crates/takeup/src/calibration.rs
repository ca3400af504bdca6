//! `--from RUNS`: the parameters of a drive as measured by an experiment, as text and as a
//! document. `disk` has the same for a disk.

pub mod disk;

use std::path::{Path, PathBuf};

use base::format::{counted, percent, rate, size};
use base::rounding::Rounding;
use experiment::quantities::Unit;
use experiment::record::load;
use loads::calibrate::{
    Beside, Beyond, Calibration, CalibrationError, NotTold, Reach, SPEEDS, Told, calibrate,
};
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use report::table::{Align, Colour, Emphasis, Table};
use serde_json::{Value, json};

use crate::failure::{Failure, with_causes};

/// A record and the parameters that it shows.
#[derive(Clone, Debug)]
pub struct FromRuns {
    path: PathBuf,
    /// The parameters that the record shows.
    pub calibration: Calibration,
    /// The generation that gives all other parameters.
    pub generation: &'static Generation,
}

/// A highest speed that differs by more than this share from the generation's is reported.
const EXPECTED: f64 = 0.1;

impl FromRuns {
    /// Reads a record. `named` is the generation that the user gave; by default it is the one that
    /// the drive reported.
    ///
    /// # Errors
    /// When the file is not a record of one drive, shows no parameter, or is of another generation
    /// than `named`.
    pub fn load(path: &Path, named: Option<&'static Generation>) -> Result<FromRuns, Failure> {
        let experiment = load(path).map_err(|error| Failure::new(&error, None))?;
        let calibration = calibrate(&experiment).map_err(|error| {
            let message =
                format!("cannot calibrate a drive: {}: {}", path.display(), with_causes(&error));
            Failure::of(message, hint(&error))
        })?;
        let generation = match (named, calibration.generation) {
            (Some(named), Some(found)) if named.name != found.name => {
                let message = format!(
                    "{} was measured with {} media, but --drive is {}",
                    path.display(),
                    found.name,
                    named.name
                );
                let hint = "omit --drive to use the generation of the runs";
                return Err(Failure::of(message, Some(hint)));
            }
            (Some(named), _) => named,
            (None, Some(found)) => found,
            (None, None) => {
                let (path, drive) = (path.display(), &calibration.drive);
                let message = format!("unknown generation of the drive: {path}: {drive}");
                return Err(Failure::of(message, Some("add --drive GENERATION, lto1 to lto10")));
            }
        };
        Ok(FromRuns { path: path.to_owned(), calibration, generation })
    }

    /// For people: the parameters that the runs show, and those that they do not.
    pub fn text(&self, colour: Colour) -> String {
        let found = &self.calibration;
        let runs = counted(found.runs as u64, "run", "runs");
        let mut text =
            format!("parameters from {}: {runs} on {}\n", self.path.display(), found.drive);
        text.push_str(&table(&found.told).render(colour));
        let generation = self.generation.title();
        text.push_str(&format!("not measured by these runs, taken from {generation}:\n"));
        text.push_str(&reasons(&found.not_told));
        self.out_of_reach().iter().for_each(|line| text.push_str(&format!("{line}\n")));
        self.beside().iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }

    /// The parameters of the generation that the runs exclude.
    fn out_of_reach(&self) -> Vec<String> {
        let mut drive = TapeParameters::of(self.generation);
        // Parameters that the runs show are not excluded.
        self.calibration.told.iter().for_each(|told| {
            drive.fit(told.parameter, told.value as u64);
        });
        let line = |beyond: Beyond| {
            let Beyond { parameter, assumed, nearest } = beyond;
            let [assumed, nearest] = [assumed, nearest].map(|value| quantity(parameter, value));
            let title = self.generation.title();
            format!("{parameter}: the runs exclude {assumed}, as in {title}; {nearest} is used")
        };
        self.calibration.out_of_reach(&drive).into_iter().map(line).collect()
    }

    /// Other results that the user should know.
    fn beside(&self) -> Vec<String> {
        let found = &self.calibration;
        let mut lines = Vec::new();
        let table = TapeParameters::of(self.generation).highest_bytes_per_second() as f64;
        let speed = found.told.iter().find(|told| told.parameter == SPEEDS);
        if let Some(speed) = speed.map(|told| told.value)
            && (speed / table - 1.0).abs() > EXPECTED
        {
            let side = if speed < table { "below" } else { "above" };
            lines.push(format!(
                "the highest speed is {} {side} that of {} ({}): check the drive and the medium",
                percent((speed / table - 1.0).abs()),
                self.generation.title(),
                rate(table)
            ));
        }
        for one in found.ratios.iter().filter(|one| one.data != "random") {
            lines.push(format!("the drive compresses {} {:.2}:1", one.data, one.value));
        }
        for one in &found.reads {
            let read = Rounding::within(one.interval.low, one.interval.high).rate(one.value);
            lines.push(format!("the drive reads {} at {read}; no parameter has this", one.data));
        }
        lines
    }

    /// For documents.
    pub fn document(&self) -> Value {
        let found = &self.calibration;
        let beside = |one: &Beside| {
            json!({
                "data": one.data,
                "value": one.value,
                "low": one.interval.low,
                "high": one.interval.high,
                "runs": one.runs,
            })
        };
        json!({
            "path": self.path.display().to_string(),
            "drive": found.drive,
            "generation": self.generation.name,
            "runs": found.runs,
            "told": told_document(&found.told),
            "not_told": not_told_document(&found.not_told),
            "ratios": found.ratios.iter().map(beside).collect::<Vec<_>>(),
            "read_bytes_per_second": found.reads.iter().map(beside).collect::<Vec<_>>(),
        })
    }
}

/// The measured parameters, for people.
fn table(told: &[Told]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        right("value"),
        right("between"),
        right("runs"),
        ("measured from", Align::Left),
    ]);
    for told in told {
        let digits = Rounding::within(told.interval.low, told.interval.high);
        let [low, high] =
            [told.interval.low, told.interval.high].map(|end| shown(told, end, digits));
        let name = if told.parameter == SPEEDS { "highest speed" } else { told.parameter };
        let cells = vec![
            name.to_owned(),
            shown(told, told.value, digits),
            format!("{low} and {high}"),
            told.runs.to_string(),
            told.from.clone(),
        ];
        table.row(cells, Emphasis::None);
    }
    table
}

/// The parameters that were not measured, a line for each reason.
fn reasons(not_told: &[NotTold]) -> String {
    let line = |one: &NotTold| format!("  {}: {}\n", one.parameters.join(", "), one.why);
    not_told.iter().map(line).collect()
}

fn told_document(told: &[Told]) -> Vec<Value> {
    let one = |told: &Told| {
        json!({
            "parameter": told.parameter,
            "value": told.value,
            "low": told.interval.low,
            "high": told.interval.high,
            "runs": told.runs,
            "from": told.from,
        })
    };
    told.iter().map(one).collect()
}

fn not_told_document(not_told: &[NotTold]) -> Vec<Value> {
    let one = |one: &NotTold| {
        let [at_most, at_least] = match one.bound {
            Some(Reach::AtMost(most)) => [Some(most), None],
            Some(Reach::AtLeast(least)) => [None, Some(least)],
            None => [None, None],
        };
        json!({
            "parameters": one.parameters,
            "why": one.why,
            "at_most": at_most,
            "at_least": at_least,
        })
    };
    not_told.iter().map(one).collect()
}

/// A parameter that is assumed.
fn quantity(parameter: &str, value: u64) -> String {
    match Unit::of(parameter) {
        Unit::Nanoseconds => Rounding::digits(3).seconds(value as f64 / 1e9),
        Unit::BytesPerSecond => rate(value as f64),
        _ => size(value),
    }
}

fn shown(told: &Told, value: f64, digits: Rounding) -> String {
    match Unit::of(told.parameter) {
        Unit::Number => digits.number(value),
        Unit::BytesPerSecond => digits.rate(value),
        Unit::Nanoseconds => {
            Rounding::within(told.interval.low / 1e9, told.interval.high / 1e9).seconds(value / 1e9)
        }
        _ => size(value.max(0.0) as u64),
    }
}

fn hint(error: &CalibrationError) -> Option<&'static str> {
    match error {
        CalibrationError::OtherKind { .. } | CalibrationError::NoDrive { .. } => {
            Some("record a drive with `takeup bench tape /dev/nst0 --data zeros,random -o RUNS`")
        }
        CalibrationError::Once | CalibrationError::Nothing { .. } => Some(
            "measure most parameters with `takeup bench tape /dev/nst0 --data zeros,random \
             --block-size 16k,64k,256k,1M --repeats 3`",
        ),
        CalibrationError::SeveralDrives { .. } | CalibrationError::SeveralGenerations { .. } => {
            Some("make one experiment for each drive and generation")
        }
        CalibrationError::NoNumber { .. } => None,
    }
}
