//! From the end of a run to those who are told of it ([`service::telling`]).

use arguments::telling::TellingArgs;
use service::failure::Failure;
use service::outcome::Outcome;
use service::telling::{Ended, Telling};

use crate::exit_code::{FailureExitCode as _, code_of};
use crate::standard_error::to_standard_error;

/// Tells that a run begins, of what the user calls `name`.
pub fn begin(arguments: &TellingArgs, command: &'static str, name: &str) -> Telling {
    Telling::begin(&arguments.request(), command, name)
}

/// Tells how it ended. `ended` fills in what is known of a run that has a result; the exit code is
/// the one that the command ends with.
pub fn end<T>(
    telling: Telling,
    result: &Result<T, Failure>,
    outcome: impl FnOnce(&T) -> Outcome,
    ended: impl for<'a> FnOnce(&'a T) -> Ended<'a>,
) {
    let ended = match result {
        Ok(done) => Ended { exit_code: code_of(outcome(done)), ..ended(done) },
        Err(failure) => Ended { exit_code: failure.code(), ..Ended::default() },
    };
    for line in telling.end(&ended) {
        to_standard_error(&format!("takeup: {line}\n"));
    }
}
