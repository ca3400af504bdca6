//! Reverts changed settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::changes::{Reverted, ThisMachine};

use super::TuneHost;
use super::changes::{LeftAnswer, ListOwner, changes, failure, lefts, recovered};
use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// What to revert: all changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneRevertRequest {
    /// Whether devices that are gone are removed from the list of changes.
    #[serde(default)]
    pub forget: bool,
}

/// What was reverted.
#[derive(Debug)]
pub struct TuneReverted {
    /// As asked for.
    pub request: TuneRevertRequest,
    /// Settings of a killed experiment that were restored before: their number.
    pub recovered: usize,
    /// The changes.
    pub reverted: Reverted,
    /// Settings that were removed from the list: their number.
    pub forgotten: usize,
    /// The file of rules that kept changes over a restart.
    pub rules: Option<String>,
    /// Why that file is still there.
    pub not_removed: Option<Failure>,
    /// Whose list it is.
    pub owner: ListOwner,
}

/// Reverts all changes.
///
/// # Errors
/// When the list cannot be used, or a setting cannot be restored.
pub fn revert(request: TuneRevertRequest, host: &dyn TuneHost) -> Result<TuneReverted, Failure> {
    let recovered = recovered(host)?;
    let mut changes = changes(&ThisMachine, host)?;
    // First remove the rules, which would set the values again when a device appears.
    let rules = changes.persisted().map(|path| path.display().to_string());
    let unpersisted = changes.unpersist();
    let reverted = changes.revert().map_err(|error| failure(&error))?;
    let forgotten =
        if request.forget { changes.forget_gone().map_err(|error| failure(&error))? } else { 0 };
    Ok(TuneReverted {
        request,
        recovered,
        reverted,
        forgotten,
        rules,
        not_removed: unpersisted.err().map(|error| failure(&error)),
        owner: ListOwner::now(),
    })
}

/// What was reverted, as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneRevertAnswer {
    /// Settings of a killed experiment that were restored before: their number.
    pub recovered: usize,
    /// Settings that have their old value again.
    pub put_back: Vec<LeftAnswer>,
    /// Settings that a restart has reset, and that hold a value that Takeup did not set.
    pub left_alone: Vec<LeftAnswer>,
    /// Settings that another program has set during a trial.
    pub set_by_others: Vec<LeftAnswer>,
    /// Settings of devices that are gone.
    pub gone: Vec<LeftAnswer>,
    /// Settings of such devices that were removed from the list: their number.
    pub given_up: usize,
    /// The file of rules that was removed.
    pub removed: Option<String>,
}

impl Answer for TuneRevertAnswer {
    const COMMAND: &'static str = "tune revert";
}

impl TuneReverted {
    /// The file of rules that was removed.
    pub fn removed(&self) -> Option<&str> {
        self.rules.as_deref().filter(|_| self.not_removed.is_none())
    }

    /// With a warning where a device is gone and stays in the list.
    pub fn outcome(&self) -> Outcome {
        let is_whole = self.reverted.gone.is_empty() || self.request.forget;
        if is_whole { Outcome::Done } else { Outcome::Warned }
    }

    /// As an answer.
    pub fn answer(&self) -> TuneRevertAnswer {
        TuneRevertAnswer {
            recovered: self.recovered,
            put_back: lefts(&self.reverted.put_back),
            left_alone: lefts(&self.reverted.forgotten),
            set_by_others: lefts(&self.reverted.theirs),
            gone: lefts(&self.reverted.gone),
            given_up: self.forgotten,
            removed: self.removed().map(str::to_owned),
        }
    }
}
