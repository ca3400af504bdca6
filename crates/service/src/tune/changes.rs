//! The list of changes: where it lies, whose it is, and what is restored before it is used.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::StorageError;
use storage::settings::Pending;
use storage::settings::changes::SettingsChange;
use storage::settings::changes::{
    Changes, Left, Reverted, ThisMachine, remembered as remembered_in,
};

use super::{TuneHost, TuneNotice};
use crate::failure::Failure;
use crate::state;

/// Whose list it is: each user has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOwner {
    /// The list of root.
    Root,
    /// The list of an ordinary user, who would search it in vain for what was set with sudo.
    User,
}

impl ListOwner {
    /// The user of this process.
    pub fn now() -> ListOwner {
        if rustix::process::geteuid().is_root() { ListOwner::Root } else { ListOwner::User }
    }
}

/// The file with the list of changes: others cannot write there, and it outlives a restart.
pub(super) fn list() -> Result<PathBuf, Failure> {
    let named = state::named_folder("TAKEUP_STATE_DIR");
    let folder = match ListOwner::now() {
        ListOwner::Root => named.or_else(|| Some(PathBuf::from("/var/lib/takeup"))),
        ListOwner::User => named.or_else(state::users_folder),
    };
    let folder = folder.ok_or_else(|| {
        let hint = "set XDG_STATE_HOME or HOME";
        Failure::of("no folder for the list of changes", Some(hint))
    })?;
    Ok(folder.join("changes.json"))
}

/// Restores settings that a killed experiment left changed, reports it, and returns their number.
pub(super) fn recovered(host: &dyn TuneHost) -> Result<usize, Failure> {
    let count =
        state::recovered().map_err(|error| Failure::new(&error, state::guard_hint(&error)))?;
    if count > 0 {
        host.notice(&TuneNotice::Recovered(count));
    }
    Ok(count)
}

/// Settings that an experiment has changed, or left changed when it was killed; changes nothing.
pub(super) fn pending() -> Result<Option<Pending>, Failure> {
    let Some(journal) = state::journal() else { return Ok(None) };
    storage::settings::pending(&journal)
        .map_err(|error| Failure::new(&error, state::guard_hint(&error)))
}

/// The changes in the list, without its lock.
pub(super) fn remembered() -> Result<Vec<SettingsChange>, Failure> {
    remembered_in(&list()?).map_err(|error| failure(&error))
}

/// The list of changes, after restoring what a killed experiment left changed, so that the list
/// remembers the true old values.
pub(super) fn changes<'a>(
    machine: &'a ThisMachine,
    host: &dyn TuneHost,
) -> Result<Changes<'a>, Failure> {
    recovered(host)?;
    Changes::open(machine, &list()?).map_err(|error| failure(&error))
}

/// Restores trials that are over but whose guard has died, and reports them.
pub(super) fn put_back_overdue(host: &dyn TuneHost) -> Result<Reverted, Failure> {
    if !remembered()?.iter().any(|change| change.is_overdue(&ThisMachine)) {
        return Ok(Reverted::default());
    }
    let reverted =
        changes(&ThisMachine, host)?.put_back_overdue().map_err(|error| failure(&error))?;
    let owner = ListOwner::now();
    host.notice(&TuneNotice::TrialOver { reverted: reverted.clone(), owner });
    Ok(reverted)
}

/// The failure for an error of the list.
pub(super) fn failure(error: &StorageError) -> Failure {
    let hint = match error {
        StorageError::TooMany => {
            Some("run `takeup tune revert`, then set what is to stay in one change".to_owned())
        }
        StorageError::Foreign { .. } => {
            Some("move the file away if it is not needed; takeup did not change it".to_owned())
        }
        StorageError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Some("check that udev is installed".to_owned())
        }
        StorageError::File { .. } => Some("run as root to write udev rules".to_owned()),
        _ => state::guard_hint(error),
    };
    Failure::new(error, hint)
}

/// A setting that was restored, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftAnswer {
    /// Name of the device at the time of the change.
    pub device: String,
    /// The setting, by the name of its file.
    pub name: String,
    /// The value from before the change.
    pub before: String,
    /// The value before the revert; null if it could not be read.
    pub found: Option<String>,
}

impl From<&Left> for LeftAnswer {
    fn from(left: &Left) -> LeftAnswer {
        LeftAnswer {
            device: left.changed.device.name.clone(),
            name: left.changed.kind.file_name().to_owned(),
            before: left.changed.before.clone(),
            found: left.found.clone(),
        }
    }
}

/// Several of them.
pub(super) fn lefts(lefts: &[Left]) -> Vec<LeftAnswer> {
    lefts.iter().map(LeftAnswer::from).collect()
}
