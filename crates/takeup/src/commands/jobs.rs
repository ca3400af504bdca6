//! `takeup run`, `status`, `check-config` and `units`: backups that a file names.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use arguments::jobs::{CheckConfigArgs, RunArgs, StatusArgs, UnitsArgs};
use flow::cancel::Cancel;
use service::Answer;
use service::failure::Failure;
use service::jobs::{check_config, run_job, status, units};
use service::outcome::Outcome;

use crate::change::Changer;
use crate::outcome::{Form, SummaryPlace, end, finish, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::{Terminal, style};

/// Runs a job.
pub fn run(arguments: &RunArgs) -> ExitCode {
    finish(run_one(arguments), "run", &arguments.common, SummaryPlace::Output)
}

fn run_one(arguments: &RunArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let common = &arguments.common;
    let mut terminal = Terminal::new(common).folding_repeats();
    let changer = Changer::asking(&cancel);
    let result = run_job(&arguments.request(), &terminal, &cancel, changer);
    terminal.close();
    let done = result?;
    if common.json {
        print(&done.answer(), Form::Json, "")?;
    } else {
        let text = report::jobs::ran(&done, style(&std::io::stdout()));
        match (common.quiet, done.outcome()) {
            (false, _) => to_standard_output(text.as_bytes())?,
            (true, Outcome::Done) => {}
            (true, _) => to_standard_error(&text),
        }
    }
    Ok(done.outcome())
}

/// Says how the jobs stand.
pub fn run_status(arguments: &StatusArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = status(&arguments.request()).and_then(|done| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        print(&done.answer(), form, &report::jobs::status(&done, now))?;
        Ok(done.outcome())
    });
    end(done, "status", form)
}

/// Checks the file with the jobs.
pub fn run_check(arguments: &CheckConfigArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = check_config(&arguments.request()).and_then(|done| {
        print(&done.answer(), form, &report::jobs::checked(&done))?;
        Ok(done.outcome())
    });
    end(done, "check-config", form)
}

/// Prints or writes the units of a job.
pub fn run_units(arguments: &UnitsArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = units(&arguments.request()).and_then(|done| {
        print(&done.answer(), form, &report::jobs::units(&done))?;
        Ok(Outcome::Done)
    });
    end(done, "units", form)
}

fn print(answer: &impl Answer, form: Form, text: &str) -> Result<(), Failure> {
    match form {
        Form::Json => to_standard_output(format!("{:#}\n", service::document(answer)).as_bytes()),
        Form::Text => to_standard_output(text.as_bytes()),
    }
}
