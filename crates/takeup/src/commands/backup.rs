//! `takeup backup`: writes files into an archive.

use std::process::ExitCode;

use arguments::backup::BackupArgs;
use base::escape::escape_path;
use flow::cancel::Cancel;
use service::backup::{BackupDone, backup};
use service::dry_run::dry_run;
use service::failure::Failure;
use service::outcome::Outcome;
use service::telling::Ended;

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, print, to_standard_output};
use crate::telling;
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &BackupArgs) -> ExitCode {
    let is_taken = arguments.is_to_standard_output();
    let place = if is_taken { SummaryPlace::Error } else { SummaryPlace::Output };
    let result = if arguments.dry_run { say(arguments) } else { back_up(arguments, place) };
    finish(result, "backup", &arguments.common, place)
}

/// Says what would be stored.
fn say(arguments: &BackupArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let mut terminal = Terminal::new(&arguments.common);
    let result = dry_run(&arguments.request(), arguments.sampling(), &terminal, &cancel);
    terminal.close();
    let done = result?;
    let text = if arguments.common.json {
        format!("{:#}\n", service::document(&done.answer()))
    } else {
        report::backup::would_store(&done)
    };
    to_standard_output(text.as_bytes())?;
    Ok(done.outcome())
}

fn back_up(arguments: &BackupArgs, place: SummaryPlace) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let request = arguments.request();
    let told = telling::begin(&arguments.telling, "backup", &escape_path(&request.to));
    let mut terminal = Terminal::new(&arguments.common);
    let result = backup(&request, &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    telling::end(told, &result, BackupDone::outcome, |done| Ended {
        run: Some(&done.summary),
        tape: done.tape.as_ref(),
        seconds: done.summary.run.seconds,
        ..Ended::default()
    });
    let done = result?;
    print(&report::backup::end(&done), &done.answer(), &arguments.common, place)?;
    Ok(done.outcome())
}
