//! A command behind another one, such as a shell that prepares something for it and becomes it.

use std::process::Command;

/// Appends program and arguments of a command to those of the one before it, which gets its
/// environment and its folder.
pub(crate) fn behind(first: &mut Command, command: &Command) {
    first.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => first.env(name, value),
            None => first.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        first.current_dir(folder);
    }
}
