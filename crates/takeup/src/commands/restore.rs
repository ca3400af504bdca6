//! `takeup restore`: writes the members of an archive into a directory.

use std::process::ExitCode;

use arguments::restore::RestoreArgs;
use base::escape::escape_path;
use flow::cancel::Cancel;
use service::failure::Failure;
use service::outcome::Outcome;
use service::restore::{RestoreDone, restore, restore_plan};
use service::telling::Ended;

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, print, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::telling;
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &RestoreArgs) -> ExitCode {
    let result = if arguments.dry_run { say(arguments) } else { restore_members(arguments) };
    finish(result, "restore", &arguments.common, SummaryPlace::Output)
}

/// Says which tapes are needed.
fn say(arguments: &RestoreArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let done = restore_plan(
        &arguments.request(),
        arguments.target_bytes_per_second(),
        &cancel,
        Changer::asking(&cancel),
    )?;
    let text = if arguments.common.json {
        format!("{:#}\n", service::document(&done.answer()))
    } else {
        report::restore::plan(&done)
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn restore_members(arguments: &RestoreArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let request = arguments.request();
    let told = telling::begin(&arguments.telling, "restore", &escape_path(&request.from));
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let result = restore(&request, &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    telling::end(told, &result, RestoreDone::outcome, |done| Ended {
        run: Some(&done.summary),
        seconds: done.summary.run.seconds,
        ..Ended::default()
    });
    let done = result?;
    to_standard_error(&report::restore::hints(&done));
    let end = report::restore::end(&done);
    print(&end, &done.answer(), &arguments.common, SummaryPlace::Output)?;
    Ok(done.outcome())
}
