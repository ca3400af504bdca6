//! Keeps changes on trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::changes::{Reverted, SettingsChange, ThisMachine};

use super::TuneHost;
use super::changes::{LeftAnswer, ListOwner, changes, failure, lefts, put_back_overdue};
use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// What was confirmed.
#[derive(Debug)]
pub struct TuneConfirmed {
    /// The changes that stay.
    pub confirmed: Vec<SettingsChange>,
    /// Changes whose time was over already.
    pub overdue: Reverted,
    /// Whose list it is.
    pub owner: ListOwner,
}

/// Keeps the changes on trial; those whose time is over are restored instead.
///
/// # Errors
/// When the list cannot be used, or a setting cannot be restored.
pub fn confirm(host: &dyn TuneHost) -> Result<TuneConfirmed, Failure> {
    let overdue = put_back_overdue(host)?;
    let confirmed = changes(&ThisMachine, host)?.confirm().map_err(|it| failure(&it))?;
    Ok(TuneConfirmed { confirmed, overdue, owner: ListOwner::now() })
}

/// What was confirmed, as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneConfirmAnswer {
    /// The paths of the changes that stay, as typed.
    pub confirmed: Vec<String>,
    /// Settings that were restored because the time was over.
    pub put_back: Vec<LeftAnswer>,
}

impl Answer for TuneConfirmAnswer {
    const COMMAND: &'static str = "tune confirm";
}

impl TuneConfirmed {
    /// With a warning where the time was over.
    pub fn outcome(&self) -> Outcome {
        if self.overdue == Reverted::default() { Outcome::Done } else { Outcome::Warned }
    }

    /// As an answer.
    pub fn answer(&self) -> TuneConfirmAnswer {
        TuneConfirmAnswer {
            confirmed: self.confirmed.iter().map(|change| change.for_path.clone()).collect(),
            put_back: lefts(&self.overdue.put_back),
        }
    }
}
