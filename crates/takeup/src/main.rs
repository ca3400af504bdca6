//! The binary: arguments become a plan, the plan a run, the run a report.
//!
//! One file under `commands` for each subcommand; whatever they share is beside it. Exit codes: 0
//! done, 1 failed, 2 done with warnings.

mod change;
mod commands;
mod failure;
mod interrupt;
mod options;
mod outcome;
mod quantity;
mod tape_source;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use commands::TakeupArgs;

fn main() -> ExitCode {
    match TakeupArgs::try_parse() {
        Ok(arguments) => commands::run(arguments),
        Err(error) => failure::usage(&error),
    }
}
