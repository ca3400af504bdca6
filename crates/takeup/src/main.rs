//! The command line of Takeup: it parses arguments, starts the run, and prints its report.
//!
//! Each subcommand has a file in `commands`; what several of them share is beside that folder. The
//! exit codes are in [`commands::EXIT_CODES`].

mod change;
mod commands;
mod exit_code;
mod interrupt;
mod memory;
mod misuse;
mod outcome;
mod progress;
mod standard_error;
mod standard_output;
mod telling;
mod terminal;

use std::process::ExitCode;

use clap::FromArgMatches;

use commands::TakeupArgs;

#[global_allocator]
static MEMORY: memory::OrEnd = memory::OrEnd;

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    set_trap();
    if standard_output::was_closed() {
        return misuse::standard_output_closed();
    }
    let typed = arguments::backup::with_method(std::env::args_os().collect());
    let parsed = commands::command()
        .try_get_matches_from(typed)
        .and_then(|matches| TakeupArgs::from_arg_matches(&matches));
    match parsed {
        Ok(arguments) => commands::run(arguments),
        Err(error) => misuse::usage(error),
    }
}

/// With `TAKEUP_TRAP=STAGE:N` a stage breaks down at its N-th step, for the tests.
#[cfg(debug_assertions)]
fn set_trap() {
    if let Ok(trap) = std::env::var("TAKEUP_TRAP")
        && let Some((stage, passes)) = trap.split_once(':')
        && let Ok(passes) = passes.parse()
    {
        flow::trap::set(stage, passes);
    }
}
