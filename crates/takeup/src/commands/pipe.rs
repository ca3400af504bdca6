//! `takeup pipe`: a buffer in a pipeline.

use std::process::ExitCode;

use arguments::pipe::PipeArgs;
use flow::cancel::Cancel;
use service::failure::Failure;
use service::outcome::Outcome;
use service::pipe::pipe;

use crate::outcome::{SummaryPlace, finish, print};
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &PipeArgs) -> ExitCode {
    let is_taken = arguments.is_to_standard_output();
    let place = if is_taken { SummaryPlace::Error } else { SummaryPlace::Output };
    finish(move_data(arguments, place), "pipe", &arguments.common, place)
}

fn move_data(arguments: &PipeArgs, place: SummaryPlace) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let mut terminal = Terminal::new(&arguments.common);
    let result = pipe(&arguments.request(), &terminal, &cancel);
    terminal.close();
    let done = result?;
    print(&report::pipe::end(&done), &done.answer(), &arguments.common, place)?;
    Ok(done.outcome())
}
