//! `takeup doctor`: what a bug report needs, and what stands in the way of Takeup here.

use std::process::ExitCode;

use arguments::doctor::DoctorArgs;
use service::doctor::doctor;
use service::failure::Failure;
use service::outcome::Outcome;

use crate::outcome::{Form, end, to_standard_output};
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &DoctorArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "doctor", form)
}

fn answer(arguments: &DoctorArgs, form: Form) -> Result<Outcome, Failure> {
    let answer = doctor(arguments.request());
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&answer)),
        Form::Text => report::doctor::text(&answer, style(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}
