//! Shows changed settings, and whether they still hold.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::Pending;
use storage::settings::changes::{Now, SettingsChange, ThisMachine, look};
use storage::settings::device::KnownBy;

use super::changes::{ListOwner, pending, remembered};
use crate::Answer;
use crate::failure::Failure;

/// The changed settings.
#[derive(Debug)]
pub struct TuneShown {
    /// The changes, the oldest first.
    pub changes: Vec<ShownChange>,
    /// What an experiment has changed at the moment.
    pub pending: Option<Pending>,
    /// Whose list it is.
    pub owner: ListOwner,
    /// When it was read, in seconds of Unix time.
    pub now_unix_seconds: u64,
}

/// A change with the present values.
#[derive(Debug)]
pub struct ShownChange {
    pub change: SettingsChange,
    /// Its settings as they are now.
    pub now: Vec<Now>,
    /// The trial, for a change on trial.
    pub trial: Option<ShownTrial>,
}

/// A trial as it is now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownTrial {
    /// Its end, in seconds of Unix time.
    pub until_unix_seconds: u64,
    /// The time to its end; zero if it is overdue.
    pub left: Duration,
    /// The process that restores the change.
    pub guard_pid: u32,
    /// Whether that process runs.
    pub is_guarded: bool,
}

/// The changes in the list with the present values. Changes nothing.
///
/// # Errors
/// When the list or the journal of experiments cannot be used.
pub fn show() -> Result<TuneShown, Failure> {
    let shown = |change: SettingsChange| {
        let now = look(&ThisMachine, &change);
        let trial = change.left(&ThisMachine).zip(change.trial.as_ref());
        let trial = trial.map(|(left, trial)| ShownTrial {
            until_unix_seconds: trial.until_unix_seconds,
            left,
            guard_pid: trial.guard.pid,
            is_guarded: trial.guard.runs(),
        });
        ShownChange { change, now, trial }
    };
    Ok(TuneShown {
        changes: remembered()?.into_iter().map(shown).collect(),
        pending: pending()?,
        owner: ListOwner::now(),
        now_unix_seconds: experiment::run::unix_seconds(),
    })
}

/// The changed settings, as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneShowAnswer {
    /// The changes, the oldest first.
    pub changes: Vec<ShownChangeAnswer>,
    /// What an experiment has changed at the moment.
    pub experiment: Option<PendingAnswer>,
}

impl Answer for TuneShowAnswer {
    const COMMAND: &'static str = "tune show";
}

/// Settings that an experiment has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingAnswer {
    /// The process of the experiment.
    pub pid: u32,
    /// Whether it still runs, and will restore them.
    pub runs: bool,
    /// The names of the settings.
    pub settings: String,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownChangeAnswer {
    /// The path that it was made for, as typed.
    pub path: String,
    /// When, in seconds of Unix time.
    pub made_unix_seconds: u64,
    /// The trial, for a change on trial.
    pub trial: Option<ShownTrialAnswer>,
    pub settings: Vec<ShownSettingAnswer>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownTrialAnswer {
    /// Its end, in seconds of Unix time.
    pub until_unix_seconds: u64,
    /// The time to its end; 0 if it is overdue.
    pub seconds_left: f64,
    /// Whether its end is over.
    pub overdue: bool,
    /// The process that restores the change.
    pub guard: u32,
    /// Whether that process runs.
    pub guarded: bool,
}

/// A setting of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownSettingAnswer {
    /// The present name of the device; null if it is gone.
    pub device: Option<String>,
    /// The name of the device at the time of the change.
    pub device_then: String,
    /// What the device is known by.
    pub known_by: KnownBy,
    /// The setting, by the name of its file.
    pub name: String,
    /// The value before the change.
    pub before: String,
    /// The value that was set; null if the kernel may have reset it with another setting.
    pub set: Option<String>,
    /// The value in force.
    pub now: Option<String>,
    /// Whether it holds the value that was set.
    pub holds: bool,
}

impl TuneShown {
    /// As an answer.
    pub fn answer(&self) -> TuneShowAnswer {
        let experiment = self.pending.as_ref().map(|it| PendingAnswer {
            pid: it.pid,
            runs: it.runs,
            settings: it.what.clone(),
        });
        TuneShowAnswer { changes: self.changes.iter().map(change).collect(), experiment }
    }
}

fn change(shown: &ShownChange) -> ShownChangeAnswer {
    let trial = |trial: ShownTrial| ShownTrialAnswer {
        until_unix_seconds: trial.until_unix_seconds,
        seconds_left: trial.left.as_secs_f64(),
        overdue: trial.left.is_zero(),
        guard: trial.guard_pid,
        guarded: trial.is_guarded,
    };
    let setting = |now: &Now| ShownSettingAnswer {
        device: now.name.clone(),
        device_then: now.changed.device.name.clone(),
        known_by: now.changed.device.known_by.clone(),
        name: now.changed.kind.file_name().to_owned(),
        before: now.changed.before.clone(),
        set: now.changed.set.clone(),
        now: now.value.clone(),
        holds: now.holds(),
    };
    ShownChangeAnswer {
        path: shown.change.for_path.clone(),
        made_unix_seconds: shown.change.made_unix_seconds,
        trial: shown.trial.map(trial),
        settings: shown.now.iter().map(setting).collect(),
    }
}
