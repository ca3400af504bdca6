//! Settings of the storage below a path: measured, set, remembered and reverted.
//!
//! `storage::settings::changes` decides what is written, in which order, and how it is reverted.
//! Here is what may be set and what is refused, how a setting is measured, and what is recommended.
//!
//! # Map
//!
//! - [`read_ahead`]: measures which read-ahead is best for a path.
//! - [`queue`]: measures which queue settings are best for a load.
//! - [`set`]: sets values; [`apply`] does it for the other commands, too.
//! - [`show`], [`confirm`], [`revert`], [`persist`]: what happens to a change afterwards.
//! - [`guard`]: the process that reverts a change on trial.
//! - [`measuring`]: the experiments behind a recommendation.
//! - [`gain`]: the gain of a setting; [`read_ahead_advice`] and [`queue_advice`]: what follows.
//! - [`explanation`]: why a window is large enough.
//! - [`levels`]: the values that can be tried; [`subject`]: the file to read.
//! - [`changes`]: the list of changes.

pub mod apply;
pub mod changes;
pub mod confirm;
pub mod explanation;
pub mod gain;
pub mod guard;
pub mod levels;
pub mod measuring;
pub mod persist;
pub mod queue;
pub mod queue_advice;
pub mod read_ahead;
pub mod read_ahead_advice;
pub mod revert;
pub mod set;
pub mod show;
pub mod subject;

use std::path::Path;
use std::process::Command;

use experiment::record::Factor;
use experiment::run::Observer;
use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::changes::Reverted;

use changes::ListOwner;
use measuring::Forecast;

/// The command that ends a trial and keeps the change.
pub const CONFIRM: &str = "takeup tune confirm";

/// Something that the user must see while the command runs.
#[derive(Clone, Debug)]
pub enum TuneNotice {
    /// Settings that a killed experiment had changed were restored: their number.
    Recovered(usize),
    /// A trial is over and was not confirmed.
    TrialOver {
        /// What was restored.
        reverted: Reverted,
        /// Whose list it is.
        owner: ListOwner,
    },
    /// How long the measurement takes.
    Forecast(Forecast),
}

/// What a command that changes settings needs from the program that runs it.
pub trait TuneHost {
    /// The user must see this.
    fn notice(&self, notice: &TuneNotice);
    /// The command that runs [`guard::stand`] for a list of changes, and writes [`guard::READY`]
    /// before.
    fn guard(&self, list: &Path) -> Command;
    /// Waits that long, or until the user stops it.
    fn settle(&self, seconds: f64) -> SettleWait;
}

/// How long a wait was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SettleWait {
    pub seconds: f64,
    /// Whether the user stopped it.
    pub is_stopped: bool,
}

/// What a command that measures needs besides.
pub trait MeasuringHost: TuneHost {
    /// All checks are done, and minutes of measuring begin: from now on a signal stops the
    /// measurement, and settings are restored.
    fn measuring_begins(&self);
    /// Stops the measurement.
    fn cancel(&self) -> &Cancel;
    /// Shows the progress of an experiment until it is dropped.
    fn observer<'a>(&'a self, factors: &'a [Factor]) -> Box<dyn Observer + 'a>;
}

/// The commands for a recommendation, as they are typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneCommandsAnswer {
    /// Sets it.
    pub apply: String,
    /// Keeps it over a restart; null if nothing does.
    pub keep: Option<String>,
    /// Reverts it.
    pub undo: String,
}
