//! `takeup explain`: finds the bottleneck of a pipeline of other programs. [`live`] prints the
//! samples so far.

mod live;

use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;

use arguments::explain::ExplainArgs;
use flow::cancel::Cancel;
use service::explain::explain;
use service::failure::Failure;
use service::outcome::Outcome;

use self::live::Live;
use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &ExplainArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "explain", form)
}

/// Warns of `takeup explain -- tar cf - /srv | gzip`, of which the shell takes the second program:
/// it gets the report in the place of the data.
fn say_where_quotes_belong(arguments: &ExplainArgs, form: Form) {
    let is_piped =
        std::fs::metadata("/proc/self/fd/1").is_ok_and(|output| output.file_type().is_fifo());
    if let (Some(program), Form::Text, true) = (arguments.single_program(), form, is_piped) {
        to_standard_error(&format!(
            "takeup: note: only {program} is explained, and the pipe gets the report; put a whole \
             pipeline in quotes: `takeup explain '{program} … | …'`\n"
        ));
    }
}

fn answer(arguments: &ExplainArgs, form: Form) -> Result<Outcome, Failure> {
    let request = arguments.request()?;
    say_where_quotes_belong(arguments, form);
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let explained = explain(&request, &cancel, &mut Live::new(arguments))?;
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&explained.answer())),
        Form::Text => report::explain::text(&explained, style(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    if let Some(remark) = report::explain::remark(&explained.end) {
        to_standard_error(&remark);
    }
    Ok(explained.end.outcome())
}
