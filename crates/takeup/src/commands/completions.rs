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

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap_complete::Shell;

    /// All values that an argument of a command below this one takes by name, and whether it is an
    /// option: `clap_complete` proposes no values of other arguments to fish.
    fn values_below(command: &Command, found: &mut Vec<(String, bool)>) {
        for argument in command.get_arguments().filter(|it| it.get_action().takes_values()) {
            let is_option = !argument.is_positional();
            let values = argument.get_possible_values();
            found.extend(values.iter().map(|value| (value.get_name().to_owned(), is_option)));
        }
        for below in command.get_subcommands() {
            values_below(below, found);
        }
    }

    #[test]
    fn every_named_value_is_proposed_by_every_shell() {
        let mut command = crate::commands::command();
        let mut values = Vec::new();
        values_below(&command, &mut values);
        // Of enumerations, and of options that take other values, too.
        for value in ["randwrite", "io_uring", "lto10", "ibm-lto3", "nvme", "zstd", "bacula"] {
            assert!(values.iter().any(|(known, _)| known == value), "{value}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "takeup", &mut text);
            let text = String::from_utf8(text).unwrap();
            let proposed =
                values.iter().filter(|(_, is_option)| shell != Shell::Fish || *is_option);
            for (value, _) in proposed {
                let escaped = value.replace(':', "\\:");
                assert!(text.contains(value) || text.contains(&escaped), "{shell}: {value}");
            }
        }
    }
}
