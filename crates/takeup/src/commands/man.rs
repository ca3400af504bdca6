//! `takeup man`: manual pages, made from the same definitions as the help. Hidden, since only
//! people who package Takeup need it.

use crate::exit_code::FailureExitCode as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::standard_error::to_standard_error;
use service::failure::Failure;

/// Write the manual pages into a folder
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder
    directory: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &ManArgs) -> ExitCode {
    match clap_mangen::generate_to(crate::commands::command(), &arguments.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let directory = arguments.directory.display();
            let why = service::failure::with_causes(&error);
            let failure =
                Failure::of(format!("cannot write manual pages: {directory}: {why}"), None);
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}
