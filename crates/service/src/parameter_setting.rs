//! A parameter of the model of a drive that the user sets.

use base::names::there_are;
use model::tape::parameters::TapeParameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A parameter and its new value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterSetting {
    /// Its name, with the unit as its last word.
    pub name: String,
    /// One value, in that unit; several for the speeds.
    pub values: Vec<u64>,
}

/// The parameter that is a list.
pub const SPEEDS: &str = "speeds_bytes_per_second";
/// Largest number of speeds; drives have a dozen or two.
const SPEEDS_MAX: usize = 100;

impl ParameterSetting {
    /// A setting. Only the drive knows whether it has such a parameter.
    ///
    /// # Errors
    /// A text for the user who typed it, if there are too many values.
    pub fn new(name: &str, values: Vec<u64>) -> Result<ParameterSetting, String> {
        if values.len() > SPEEDS_MAX {
            return Err(format!("more than {SPEEDS_MAX} speeds"));
        }
        Ok(ParameterSetting { name: name.to_owned(), values })
    }

    /// Changes the parameter of `drive`.
    ///
    /// # Errors
    /// If the drive has no parameter of that name, or not so many values of it.
    pub fn apply(&self, drive: &mut TapeParameters) -> Result<(), Failure> {
        let is_known = match (&self.values[..], self.name == SPEEDS) {
            (speeds, true) if speeds.len() > SPEEDS_MAX => {
                return Err(Failure::of(format!("more than {SPEEDS_MAX} speeds"), None));
            }
            (speeds @ [_, ..], true) => {
                drive.set_speeds(speeds);
                true
            }
            ([value], false) => drive.set(&self.name, *value),
            _ => false,
        };
        if is_known {
            return Ok(());
        }
        let rows = drive.rows();
        let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let there_are = there_are(&self.name, &known);
        let what = format!("unknown drive parameter: {}: {there_are}", self.name);
        Err(Failure::of(what, Some("see their names with takeup plan --parameters")))
    }
}
