//! `takeup tune`: settings of the storage below a path, measured, set, remembered and taken back.
//!
//! What is written, in which order, and how it comes back is `host::settings::changes`'s. Here is
//! what is asked for, what is refused before anything is written, and what is said about it.

mod apply;
mod explanation;
mod readahead;
mod recommendation;
mod show;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use host::settings::changes::{ChangeError, Changes, ThisMachine};

use crate::failure::Failure;

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
    Set(apply::SetArgs),
    Show(show::ShowArgs),
    Revert(show::RevertArgs),
}

/// Runs the command.
pub fn run(arguments: &TuneArgs) -> ExitCode {
    match &arguments.command {
        TuneCommand::Readahead(arguments) => readahead::run(arguments),
        TuneCommand::Set(arguments) => apply::run(arguments),
        TuneCommand::Show(arguments) => show::run(arguments),
        TuneCommand::Revert(arguments) => show::run_revert(arguments),
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

/// The list of changes, and before that whatever a killed experiment has left put back: what is in
/// force now is what is remembered.
fn changes(machine: &ThisMachine) -> Result<Changes<'_>, Failure> {
    super::bench::recovered()
        .map_err(|error| Failure::new(&error, super::bench::guard_hint(&error)))?;
    Changes::open(machine, &list()?).map_err(|error| failure(&error))
}

fn failure(error: &ChangeError) -> Failure {
    let hint = match error {
        ChangeError::List(error) => super::bench::guard_hint(error),
        ChangeError::TooMany => {
            Some("`takeup tune revert` takes them back, and one change sets what stays".to_owned())
        }
        ChangeError::Setting(_) | ChangeError::NoDevice { .. } | ChangeError::Refused { .. } => {
            None
        }
    };
    Failure::new(error, hint)
}
