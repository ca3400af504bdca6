//! `takeup tune`: measures, sets, remembers and reverts settings of the storage below a path.

mod guard;
mod host;

use std::process::ExitCode;

use arguments::tune::{
    ReadAheadArgs, TuneArgs, TuneCommand, TuneConfirmArgs, TunePersistArgs, TuneQueueArgs,
    TuneRevertArgs, TuneSetArgs, TuneShowArgs,
};
use service::Answer;
use service::failure::Failure;
use service::outcome::Outcome;
use service::tune::{confirm, persist, queue, read_ahead, revert, set, show};

use crate::commands::bench::disk;
use crate::outcome::{Form, end, to_standard_output};
use crate::terminal::style;
use host::Host;

/// Runs the command.
pub fn run(arguments: &TuneArgs) -> ExitCode {
    match &arguments.command {
        TuneCommand::ReadAhead(arguments) => run_read_ahead(arguments),
        TuneCommand::Queue(arguments) => run_queue(arguments),
        TuneCommand::Set(arguments) => run_set(arguments),
        TuneCommand::Show(arguments) => run_show(arguments),
        TuneCommand::Revert(arguments) => run_revert(arguments),
        TuneCommand::Confirm(arguments) => run_confirm(arguments),
        TuneCommand::Persist(arguments) => run_persist(arguments),
        TuneCommand::Guard(arguments) => guard::run(arguments),
    }
}

fn run_read_ahead(arguments: &ReadAheadArgs) -> ExitCode {
    let form = Form::of(arguments.measure.json);
    let host = Host::measuring(&arguments.measure);
    let done = read_ahead::tune_read_ahead(&arguments.request(), &host).and_then(|tuned| {
        let text = || report::tune::read_ahead::text(&tuned, style(&std::io::stdout()));
        print(form, &tuned.answer(), text)?;
        Ok(tuned.outcome())
    });
    end(done, "tune readahead", form)
}

fn run_queue(arguments: &TuneQueueArgs) -> ExitCode {
    let form = Form::of(arguments.measure.json);
    let host = Host::measuring(&arguments.measure);
    let tuned = queue::tune_queue(&arguments.request(), &host, disk::failure);
    let done = tuned.and_then(|tuned| {
        let text = || report::tune::queue::text(&tuned, style(&std::io::stdout()));
        print(form, &tuned.answer(), text)?;
        Ok(tuned.outcome())
    });
    end(done, "tune queue", form)
}

fn run_set(arguments: &TuneSetArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = arguments.request().and_then(|request| {
        let set = set::set(&request, &Host::default())?;
        print(form, &set.answer(), || report::tune::apply::text(&set.applied))?;
        Ok(set.applied.outcome())
    });
    end(done, "tune set", form)
}

fn run_show(arguments: &TuneShowArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = show::show().and_then(|shown| {
        print(form, &shown.answer(), || report::tune::show::text(&shown))?;
        Ok(Outcome::Done)
    });
    end(done, "tune show", form)
}

fn run_revert(arguments: &TuneRevertArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = revert::revert(arguments.request(), &Host::default()).and_then(|reverted| {
        print(form, &reverted.answer(), || report::tune::show::reverted(&reverted))?;
        let outcome = reverted.outcome();
        reverted.not_removed.map_or(Ok(outcome), Err)
    });
    end(done, "tune revert", form)
}

fn run_confirm(arguments: &TuneConfirmArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = confirm::confirm(&Host::default()).and_then(|confirmed| {
        print(form, &confirmed.answer(), || report::tune::confirmed(&confirmed))?;
        Ok(confirmed.outcome())
    });
    end(done, "tune confirm", form)
}

fn run_persist(arguments: &TunePersistArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    let done = persist::persist(arguments.request(), &Host::default()).and_then(|persisted| {
        print(form, &persisted.answer(), || report::tune::persist::text(&persisted))?;
        Ok(persisted.outcome())
    });
    end(done, "tune persist", form)
}

/// Prints the answer or the text.
fn print<A: Answer>(form: Form, answer: &A, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(answer)),
        Form::Text => text(),
    };
    to_standard_output(text.as_bytes())
}
