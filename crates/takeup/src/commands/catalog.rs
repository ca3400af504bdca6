//! `takeup catalog`: which archive has which version of which file.

use std::process::ExitCode;

use arguments::catalog::{
    CatalogArgs, CatalogCommand, CatalogDiffArgs, CatalogDuArgs, CatalogFindArgs,
    CatalogForgetArgs, CatalogJobsArgs, CatalogLsArgs, CatalogMediaArgs, CatalogSetsArgs,
    CatalogWhyArgs,
};
use flow::cancel::Cancel;
use service::catalog::{CatalogLoadRequest, CaughtUp, diff, du, find, load, ls, sets, why};
use service::failure::Failure;
use service::jobs::history;
use service::media::media;
use service::outcome::Outcome;
use service::retention::forget;

use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;

/// Runs the command.
pub fn run(arguments: &CatalogArgs) -> ExitCode {
    match &arguments.command {
        CatalogCommand::Add(arguments) => run_load(&arguments.request(), arguments.json()),
        CatalogCommand::Rebuild(arguments) => run_load(&arguments.request(), arguments.json()),
        CatalogCommand::Find(arguments) => run_find(arguments),
        CatalogCommand::Ls(arguments) => run_ls(arguments),
        CatalogCommand::Sets(arguments) => run_sets(arguments),
        CatalogCommand::Du(arguments) => run_du(arguments),
        CatalogCommand::Why(arguments) => run_why(arguments),
        CatalogCommand::Diff(arguments) => run_diff(arguments),
        CatalogCommand::Forget(arguments) => run_forget(arguments),
        CatalogCommand::Jobs(arguments) => run_jobs(arguments),
        CatalogCommand::Media(arguments) => run_media(arguments),
    }
}

fn run_load(request: &CatalogLoadRequest, json: bool) -> ExitCode {
    let form = Form::of(json);
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let done = load(request, &cancel).and_then(|loaded| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&loaded.answer())),
            Form::Text => report::catalog::loaded(&loaded),
        };
        print(&text, loaded.outcome())
    });
    end(done, request.existing.command(), form)
}

fn run_find(arguments: &CatalogFindArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = find(&arguments.request(), tell).and_then(|found| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&found.answer())),
            Form::Text => report::catalog::found(&found),
        };
        print(&text, found.outcome())
    });
    end(done, "catalog find", form)
}

fn run_media(arguments: &CatalogMediaArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let done = media(&arguments.request(), &cancel).and_then(|media| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&media)),
            Form::Text => report::media::media(&media),
        };
        let is_fine = media.warnings.is_empty();
        print(&text, if is_fine { Outcome::Done } else { Outcome::Warned })
    });
    end(done, "catalog media", form)
}

/// Tells what the catalogue took in before it was asked.
fn tell(caught_up: &CaughtUp) {
    to_standard_error(&report::catalog::caught_up(caught_up));
}

fn run_sets(arguments: &CatalogSetsArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = sets(&arguments.request(), tell).and_then(|sets| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&sets.answer())),
            Form::Text => report::catalog::sets(&sets.sets),
        };
        print(&text, sets.outcome())
    });
    end(done, "catalog sets", form)
}

fn run_ls(arguments: &CatalogLsArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = ls(&arguments.request(), tell).and_then(|found| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&found.answer())),
            Form::Text => report::catalog_ls::ls(&found),
        };
        print(&text, found.outcome())
    });
    end(done, "catalog ls", form)
}

fn run_du(arguments: &CatalogDuArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = du(&arguments.request(), tell).and_then(|found| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&found.answer())),
            Form::Text => report::catalog_du::du(&found),
        };
        print(&text, found.outcome())
    });
    end(done, "catalog du", form)
}

fn run_why(arguments: &CatalogWhyArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = why(&arguments.request()).and_then(|found| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&found.answer())),
            Form::Text => report::catalog::why(&found),
        };
        print(&text, Outcome::Done)
    });
    end(done, "catalog why", form)
}

fn run_diff(arguments: &CatalogDiffArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = diff(&arguments.request()).and_then(|found| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&found.answer())),
            Form::Text => report::catalog::diff(&found),
        };
        print(&text, Outcome::Done)
    });
    end(done, "catalog diff", form)
}

fn run_forget(arguments: &CatalogForgetArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = forget(&arguments.request()).and_then(|done| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&done.answer())),
            Form::Text => report::jobs::forgotten(&done),
        };
        print(&text, done.outcome())
    });
    end(done, "catalog forget", form)
}

fn run_jobs(arguments: &CatalogJobsArgs) -> ExitCode {
    let form = Form::of(arguments.json());
    let done = history(&arguments.request()).and_then(|answer| {
        let text = match form {
            Form::Json => format!("{:#}\n", service::document(&answer)),
            Form::Text => report::jobs::history(&answer),
        };
        print(&text, Outcome::Done)
    });
    end(done, "catalog jobs", form)
}

fn print(text: &str, outcome: Outcome) -> Result<Outcome, Failure> {
    to_standard_output(text.as_bytes())?;
    Ok(outcome)
}
