//! From the end of a run to what the user sees, and to the exit code.

use std::io::Write;
use std::process::ExitCode;

use arguments::run::{CommonArgs, EngineName};
use base::escape::Printable;
use report::run::RunText;
use service::Answer;
use service::failure::Failure;
use service::outcome::Outcome;

use crate::exit_code::FailureExitCode as _;
use crate::exit_code::code_of;
use crate::standard_error::to_standard_error;
use crate::terminal::style;

/// Where the summary goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPlace {
    /// Standard output.
    Output,
    /// Standard error, since standard output carries data.
    Error,
}

/// Prints the end of a run in the requested form.
///
/// # Errors
/// When writing to standard output fails: a truncated document must not look like success.
pub fn print(
    end: &RunText<'_>,
    answer: &impl Answer,
    common: &CommonArgs,
    place: SummaryPlace,
) -> Result<(), Failure> {
    let text = match (common.json, common.quiet) {
        (true, _) => format!("{:#}\n", service::document(answer)),
        (false, true) => {
            to_standard_error(&report::run::bad_verdict(&end.summary.verdict));
            return Ok(());
        }
        (false, false) => {
            let style = match place {
                SummaryPlace::Output => style(&std::io::stdout()),
                SummaryPlace::Error => style(&std::io::stderr()),
            };
            if common.verbose { end.whole(style) } else { end.short(style) }
        }
    };
    match place {
        SummaryPlace::Output => to_standard_output(text.as_bytes()),
        SummaryPlace::Error => {
            to_standard_error(&text);
            Ok(())
        }
    }
}

/// Writes text to standard output, without control characters that a terminal would obey. The
/// reader of a pipe may end early, as `head` does: it has what it wanted.
///
/// # Errors
/// When the write fails.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(Printable::of(bytes).as_bytes()).and_then(|()| output.flush());
    written.or_else(|error| {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Ok(());
        }
        let why = service::failure::with_causes(&error);
        Err(Failure::of(format!("cannot write standard output: {why}"), None))
    })
}

/// The form of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// A document.
    Json,
}

impl Form {
    /// What `--json` asks for.
    pub fn of(json: bool) -> Form {
        if json { Form::Json } else { Form::Text }
    }
}

/// Prints a failure, as a document if requested, and returns the exit code.
pub fn end(result: Result<Outcome, Failure>, name: &str, form: Form) -> ExitCode {
    let json = form == Form::Json;
    let common = CommonArgs {
        json,
        quiet: false,
        verbose: false,
        no_progress: true,
        engine: EngineName::Auto,
    };
    finish(result, name, &common, SummaryPlace::Output)
}

/// Prints a failure, and returns the exit code of the command.
pub fn finish(
    result: Result<Outcome, Failure>,
    name: &str,
    common: &CommonArgs,
    place: SummaryPlace,
) -> ExitCode {
    match result {
        Ok(outcome) => ExitCode::from(code_of(outcome)),
        Err(failure) => {
            if common.json && place == SummaryPlace::Output {
                // An error can be ignored: standard error gets the same message.
                let _ = to_standard_output(failure.to_json(name).as_bytes());
            }
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}
