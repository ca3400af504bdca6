//! `takeup restore`: writes the members of an archive into a directory.

use std::process::ExitCode;

use arguments::restore::RestoreArgs;
use flow::cancel::Cancel;
use service::failure::Failure;
use service::outcome::Outcome;
use service::restore::restore;

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, print};
use crate::standard_error::to_standard_error;
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &RestoreArgs) -> ExitCode {
    finish(restore_members(arguments), "restore", &arguments.common, SummaryPlace::Output)
}

fn restore_members(arguments: &RestoreArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let result = restore(&arguments.request(), &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    let done = result?;
    to_standard_error(&report::restore::hints(&done));
    let end = report::restore::end(&done);
    print(&end, &done.answer(), &arguments.common, SummaryPlace::Output)?;
    Ok(done.outcome())
}
