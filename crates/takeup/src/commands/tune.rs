//! `takeup tune`: settings of the storage below a path, measured, set, remembered and taken back.
//!
//! What is written, in which order, and how it comes back is `storage::settings::changes`'s. Here
//! is what is asked for, what is refused before anything is written, and what is said about it.

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

/// Find and set read-ahead and queues, so that they can be taken back
///
/// What is changed is written to a list before the first write, with the values that were in force:
/// `takeup tune revert` puts them back, also after a crash or a restart.
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

/// Where changes are remembered: a place where others cannot write and that outlives a restart.
fn list() -> Result<PathBuf, Failure> {
    let named = super::bench::named_folder("TAKEUP_STATE_DIR");
    let folder = if rustix::process::geteuid().is_root() {
        named.or_else(|| Some(PathBuf::from("/var/lib/takeup")))
    } else {
        named.or_else(super::bench::users_folder)
    };
    let folder = folder.ok_or_else(|| {
        let hint = "XDG_STATE_HOME or HOME says where your programs keep such";
        Failure::of("there is no folder to remember changes in", Some(hint))
    })?;
    Ok(folder.join("changes.json"))
}

/// That a list has nothing of it: each user has one, and who has set something with sudo would look
/// in vain in his own.
fn nothing_in_list(nothing: &str) -> String {
    if rustix::process::geteuid().is_root() {
        format!("{nothing}\n")
    } else {
        format!("{nothing}: this list is your own, and root has another\n")
    }
}

/// What a killed experiment has left is not what is in force, and is put back, which is told; how
/// many settings that were.
fn recovered() -> Result<usize, Failure> {
    let count = super::bench::recovered()
        .map_err(|error| Failure::new(&error, super::bench::guard_hint(&error)))?;
    if count > 0 {
        let settings = base::format::counted(count as u64, "setting", "settings");
        crate::standard_error::to_standard_error(&format!(
            "takeup: {settings} that a killed experiment had left put back\n"
        ));
    }
    Ok(count)
}

/// What an experiment has changed, or left when it was killed; nothing is touched.
fn pending() -> Result<Option<Pending>, Failure> {
    let Some(journal) = super::bench::journal() else { return Ok(None) };
    storage::settings::pending(&journal)
        .map_err(|error| Failure::new(&error, super::bench::guard_hint(&error)))
}

/// The list of changes, and before that whatever a killed experiment has left put back: what is in
/// force now is what is remembered.
fn changes(machine: &ThisMachine) -> Result<Changes<'_>, Failure> {
    recovered()?;
    Changes::open(machine, &list()?).map_err(|error| failure(&error))
}

/// Puts back what was set for a while and ought to be back already, since its guard is gone; says
/// so where there was such.
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
        "takeup: its time is over and nobody had confirmed it:\n{lines}"
    ));
    Ok(reverted)
}

fn failure(error: &ChangeError) -> Failure {
    let hint = match error {
        ChangeError::List(error) => super::bench::guard_hint(error),
        ChangeError::TooMany => {
            Some("`takeup tune revert` takes them back, and one change sets what stays".to_owned())
        }
        ChangeError::Foreign { .. } => {
            Some("look at it, and move it away if nobody needs it: it was left as it is".to_owned())
        }
        ChangeError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Some("is there udev on this machine?".to_owned())
        }
        ChangeError::File { .. } => Some("rules of udev are written by root".to_owned()),
        ChangeError::Setting(_) | ChangeError::NoDevice { .. } | ChangeError::Refused { .. } => {
            None
        }
    };
    Failure::new(error, hint)
}
