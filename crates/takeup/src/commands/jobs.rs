//! `takeup run`, `status`, `check-config` and `units`: backups that a file names.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use arguments::jobs::{CheckConfigArgs, RunArgs, StatusArgs, UnitsArgs};
use arguments::run::CommonArgs;
use flow::cancel::Cancel;
use service::Answer;
use service::failure::Failure;
use service::jobs::{
    JobAnswer, TrialRequest, VerifiedArchive, check_config, run_job, status, try_job, units,
};
use service::media::{MediaRequest, MediumAnswer, media};
use service::outcome::Outcome;
use service::telling::{Ended, Telling, write_status};

use crate::change::Changer;
use crate::outcome::{Form, SummaryPlace, end, finish, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::telling;
use crate::terminal::{Terminal, style};

/// Runs a job.
pub fn run(arguments: &RunArgs) -> ExitCode {
    let result = match arguments.trial_request() {
        Some(request) => try_one(&request, arguments),
        None => run_one(arguments),
    };
    finish(result, "run", &arguments.common, SummaryPlace::Output)
}

fn run_one(arguments: &RunArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let request = arguments.request();
    let who = service::jobs::telling(&request, arguments.telling.request());
    let told = Telling::begin(&who, "run", &request.job);
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let changer = Changer::asking(&cancel);
    let result = run_job(&request, &terminal, &cancel, changer);
    terminal.close();
    let result = result.map(|done| (done.answer(), done));
    telling::end(told, &result, |(_, done)| done.outcome(), |(answer, _)| ended(answer));
    let (answer, done) = result?;
    let text = report::jobs::ran(&done, style(&std::io::stdout()));
    print_end(&answer, &text, done.outcome(), &arguments.common)
}

fn ended(answer: &JobAnswer) -> Ended<'_> {
    let is_whole = |it: &VerifiedArchive| it.sound && !it.unread && it.part.is_none();
    Ended {
        run: answer.backup.as_ref().map(|it| &it.run),
        tape: answer.backup.as_ref().and_then(|it| it.tape.as_ref()),
        job: Some(answer),
        is_verified: !answer.verified.is_empty() && answer.verified.iter().all(is_whole),
        seconds: answer.seconds,
        ..Ended::default()
    }
}

fn try_one(request: &TrialRequest, arguments: &RunArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let result = try_job(request, &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    let done = result?;
    print_end(&done, &report::jobs::tried(&done), done.outcome(), &arguments.common)
}

/// Prints the end of a run; of a quiet one only what is to be looked at.
fn print_end(
    answer: &impl Answer,
    text: &str,
    outcome: Outcome,
    common: &CommonArgs,
) -> Result<Outcome, Failure> {
    match (common.json, common.quiet, outcome) {
        (true, ..) => print(answer, Form::Json, text)?,
        (false, false, _) => to_standard_output(text.as_bytes())?,
        (false, true, Outcome::Done) => {}
        (false, true, _) => to_standard_error(text),
    }
    Ok(outcome)
}

/// Says how the jobs stand.
pub fn run_status(arguments: &StatusArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = status(&arguments.request()).and_then(|done| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let answer = done.answer();
        if let Some(path) = &arguments.metrics {
            write_status(path, &answer, known_media(arguments))?;
        }
        print(&answer, form, &report::jobs::status(&done, now))?;
        Ok(done.outcome())
    });
    end(done, "status", form)
}

/// The media that hold sets. What is not known of them is said, and no reason to fail.
fn known_media(arguments: &StatusArgs) -> Option<service::telling::Media> {
    let request = MediaRequest { config: arguments.request().config, read: None };
    let (known, untold) = match media(&request, &Cancel::new()) {
        Ok(known) => (Some(known.media), known.warnings),
        Err(failure) => (None, vec![format!("nothing is known of tapes: {}", failure.message())]),
    };
    for line in untold {
        to_standard_error(&format!("takeup: --metrics: {line}\n"));
    }
    let count = |media: &[MediumAnswer], is_free: bool| {
        media.iter().filter(|medium| medium.free == is_free).count() as u64
    };
    known.map(|media| service::telling::Media {
        free: count(&media, true),
        kept: count(&media, false),
    })
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
