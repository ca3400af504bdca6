//! Errors of experiments with commands.

use std::io;
use std::path::PathBuf;

use flow::cancel::Stopped;
use storage::StorageError;

use experiment::plan::PlanError;
use experiment::run::gate::GateError;

/// Why an experiment with commands cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The plan has no commands.
    #[error("a plan of commands needs [commands]")]
    NoCommands,
    /// One of them cannot be run as it is.
    #[error(transparent)]
    Command(#[from] PlanError),
    /// The shell does not exist, or is not a shell.
    #[error("shell {shell}: {why}")]
    Shell {
        /// As named.
        shell: String,
        /// What is wrong with it.
        why: String,
    },
    /// The shell does not understand a line.
    #[error("{what}: {line:?}: {said}")]
    Syntax {
        /// `command tar`, or what comes before or behind a run.
        what: String,
        line: String,
        /// The shell's own words.
        said: String,
    },
    /// The program that a line begins with is not there.
    #[error("{what}: {line:?}: no program {program}")]
    NoProgram {
        /// `command tar`, or what comes before or behind a run.
        what: String,
        line: String,
        /// Its first word.
        program: String,
    },
    /// What is watched is not known.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It cannot be started.
    #[error("start {what}")]
    Start { what: String, source: io::Error },
    /// The end of a started command is not known.
    #[error("wait for the command")]
    Wait(#[source] io::Error),
    /// A program that no signal ends: it waits for a device in the kernel.
    #[error("the command does not end, even after SIGKILL")]
    DoesNotEnd,
    /// It said that it failed.
    #[error("{part} failed: {status}{}", said_of(said))]
    Failed {
        /// `the command`, or what comes before or behind it.
        part: String,
        /// How it ended.
        status: String,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// It was to begin together with other hosts, and did not.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// What is to be watched cannot be looked at.
    #[error("look at {}", path.display())]
    Look { path: PathBuf, source: io::Error },
}

fn said_of(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
