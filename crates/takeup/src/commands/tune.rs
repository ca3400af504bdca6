//! `takeup tune`: measures, sets, remembers and reverts settings of the storage below a path.
//!
//! `storage::settings::changes` decides what is written, in which order, and how it is reverted.
//! This module has the options, the checks before a write, and the output.

mod apply;
mod confirm;
mod explanation;
mod gain;
mod guard;
mod levels;
mod measuring;
mod persist;
mod queue;
mod queue_advice;
mod readahead;
mod recommendation;
mod show;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use storage::settings::Pending;
use storage::settings::changes::{ChangeError, Changes, Reverted, ThisMachine, remembered};

use service::failure::Failure;

/// Measure, set and revert read-ahead and queue settings
///
/// Takeup saves the old values in a list before it changes anything: `takeup tune revert` restores
/// them, even after a crash or a restart.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(Debug, Subcommand)]
enum TuneCommand {
    Readahead(readahead::ReadaheadArgs),
    Queue(Box<queue::QueueArgs>),
    Set(apply::SetArgs),
    Show(show::ShowArgs),
    Revert(show::RevertArgs),
    Confirm(confirm::ConfirmArgs),
    Persist(persist::PersistArgs),
    #[command(hide = true)]
    Guard(guard::GuardArgs),
}

/// Runs the command.
pub fn run(arguments: &TuneArgs) -> ExitCode {
    match &arguments.command {
        TuneCommand::Readahead(arguments) => readahead::run(arguments),
        TuneCommand::Queue(arguments) => queue::run(arguments),
        TuneCommand::Set(arguments) => apply::run(arguments),
        TuneCommand::Show(arguments) => show::run(arguments),
        TuneCommand::Revert(arguments) => show::run_revert(arguments),
        TuneCommand::Confirm(arguments) => confirm::run(arguments),
        TuneCommand::Persist(arguments) => persist::run(arguments),
        TuneCommand::Guard(arguments) => guard::run(arguments),
    }
}

/// The file with the list of changes: others cannot write there, and it outlives a restart.
fn list() -> Result<PathBuf, Failure> {
    let named = service::state::named_folder("TAKEUP_STATE_DIR");
    let folder = if rustix::process::geteuid().is_root() {
        named.or_else(|| Some(PathBuf::from("/var/lib/takeup")))
    } else {
        named.or_else(service::state::users_folder)
    };
    let folder = folder.ok_or_else(|| {
        let hint = "set XDG_STATE_HOME or HOME";
        Failure::of("no folder for the list of changes", Some(hint))
    })?;
    Ok(folder.join("changes.json"))
}

/// The message for an empty list. Each user has a list: a user who changed something with sudo
/// would search his own list in vain.
fn nothing_in_list(nothing: &str) -> String {
    if rustix::process::geteuid().is_root() {
        format!("{nothing}\n")
    } else {
        format!("{nothing} in your list; root has a separate list\n")
    }
}

/// Restores settings that a killed experiment left changed, reports it, and returns their number.
fn recovered() -> Result<usize, Failure> {
    let count = service::state::recovered()
        .map_err(|error| Failure::new(&error, service::state::guard_hint(&error)))?;
    if count > 0 {
        let settings = base::format::counted(count as u64, "setting", "settings");
        crate::standard_error::to_standard_error(&format!(
            "takeup: restored {settings} that a killed experiment had changed\n"
        ));
    }
    Ok(count)
}

/// Settings that an experiment has changed, or left changed when it was killed; changes nothing.
fn pending() -> Result<Option<Pending>, Failure> {
    let Some(journal) = service::state::journal() else { return Ok(None) };
    storage::settings::pending(&journal)
        .map_err(|error| Failure::new(&error, service::state::guard_hint(&error)))
}

/// The list of changes, after restoring what a killed experiment left changed, so that the list
/// remembers the true old values.
fn changes(machine: &ThisMachine) -> Result<Changes<'_>, Failure> {
    recovered()?;
    Changes::open(machine, &list()?).map_err(|error| failure(&error))
}

/// Restores trials that are over but whose guard has died, and reports them.
fn put_back_overdue() -> Result<Reverted, Failure> {
    let list = list()?;
    let is_overdue = remembered(&list)
        .map_err(|error| failure(&error))?
        .iter()
        .any(|change| change.is_overdue(&ThisMachine));
    if !is_overdue {
        return Ok(Reverted::default());
    }
    let reverted = changes(&ThisMachine)?.put_back_overdue().map_err(|error| failure(&error))?;
    let told = show::reverted_words(&reverted, 0);
    let lines: String = told.lines().map(|line| format!("takeup: {line}\n")).collect();
    crate::standard_error::to_standard_error(&format!(
        "takeup: a trial is over and was not confirmed:\n{lines}"
    ));
    Ok(reverted)
}

fn failure(error: &ChangeError) -> Failure {
    let hint = match error {
        ChangeError::List(error) => service::state::guard_hint(error),
        ChangeError::TooMany => {
            Some("run `takeup tune revert`, then set what is to stay in one change".to_owned())
        }
        ChangeError::Foreign { .. } => {
            Some("move the file away if it is not needed; takeup did not change it".to_owned())
        }
        ChangeError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Some("check that udev is installed".to_owned())
        }
        ChangeError::File { .. } => Some("run as root to write udev rules".to_owned()),
        ChangeError::Setting(_) | ChangeError::NoDevice { .. } | ChangeError::Refused { .. } => {
            None
        }
    };
    Failure::new(error, hint)
}
