//! `takeup diagnose`: what other programs printed, and what it means.

use std::process::ExitCode;

use arguments::diagnose::DiagnoseArgs;
use service::diagnose::diagnose;
use service::failure::Failure;
use service::outcome::Outcome;

use crate::outcome::{Form, end, to_standard_output};
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &DiagnoseArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "diagnose", form)
}

fn answer(arguments: &DiagnoseArgs, form: Form) -> Result<Outcome, Failure> {
    let answer = diagnose(&arguments.request())?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&answer)),
        Form::Text => report::diagnose::text(&answer, style(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(answer.outcome())
}
