//! `takeup completions`: shell completions, made from the same definitions as the help.

use crate::exit_code::FailureExitCode as _;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup completions bash > ~/.local/share/bash-completion/completions/takeup
  takeup completions fish > ~/.config/fish/completions/takeup.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(arguments: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::commands::command(), "takeup", &mut text);
    match to_standard_output(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}
