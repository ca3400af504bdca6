//! `takeup man`: the manual pages, from the same definitions as the help. Hidden: it is for those
//! who package.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::standard_error::to_standard_error;

/// Write the manual pages into a folder
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder
    directory: PathBuf,
}

/// Writes them.
pub fn run(arguments: &ManArgs) -> ExitCode {
    match clap_mangen::generate_to(crate::commands::command(), &arguments.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let directory = arguments.directory.display();
            let why = crate::failure::with_causes(&error);
            let failure = Failure::of(format!("write manual pages: {directory}: {why}"), None);
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}
