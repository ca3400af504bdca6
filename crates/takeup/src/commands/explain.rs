//! `takeup explain`: finds the bottleneck of a pipeline of other programs. [`live`] prints the
//! samples so far.

mod live;

use std::process::ExitCode;

use arguments::explain::ExplainArgs;
use flow::cancel::Cancel;
use service::explain::explain;
use service::failure::Failure;
use service::outcome::Outcome;

use self::live::Live;
use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::colour;

/// Runs the command.
pub fn run(arguments: &ExplainArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "explain", form)
}

fn answer(arguments: &ExplainArgs, form: Form) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let explained = explain(&arguments.request()?, &cancel, &mut Live::new(arguments))?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&explained.answer())),
        Form::Text => report::explain::text(&explained, colour(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    if let Some(remark) = report::explain::remark(&explained.end) {
        to_standard_error(&remark);
    }
    Ok(explained.end.outcome())
}
