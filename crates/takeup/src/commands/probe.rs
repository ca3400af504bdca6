//! `takeup probe`: a tape drive, its settings and findings about it; for any other path, the layers
//! of storage below it.

use std::process::ExitCode;

use arguments::probe::ProbeArgs;
use report::layers::TreeLines;
use service::failure::Failure;
use service::outcome::Outcome;
use service::probe::{Probed, probe};

use crate::outcome::{Form, end, to_standard_output};
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &ProbeArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "probe", form)
}

fn answer(arguments: &ProbeArgs, form: Form) -> Result<Outcome, Failure> {
    let probed = probe(&arguments.request())?;
    let style = style(&std::io::stdout());
    let text = match (form, &probed) {
        (Form::Json, _) => format!("{:#}\n", service::document(&probed.answer())),
        (Form::Text, Probed::Drive(drive)) => report::probe::text(drive, style),
        (Form::Text, Probed::Layers(layers)) => {
            report::layers::tree(layers, TreeLines::of_locale(), style)
        }
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}
