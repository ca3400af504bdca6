//! `takeup verify`: reads an archive back, and compares it with the live files.

use std::process::ExitCode;

use arguments::verify::VerifyArgs;
use base::escape::escape_path;
use flow::cancel::Cancel;
use service::failure::Failure;
use service::outcome::Outcome;
use service::telling::Ended;
use service::verify::{verify, verify_plan};
use service::verify_sets::{VerifySetsDone, VerifySetsRequest, verify_sets};

use crate::change::Changer;
use crate::outcome::{SummaryPlace, finish, print, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::telling;
use crate::terminal::Terminal;

/// Runs the command.
pub fn run(arguments: &VerifyArgs) -> ExitCode {
    let result = match (arguments.sets_request(), arguments.not_for_sets()) {
        _ if arguments.dry_run => say(arguments),
        (Some(_), Some(option)) if arguments.names_tape_sets() => Err(not_for_tape_sets(option)),
        (Some(_), Some(option)) => Err(not_for_sets(option)),
        (Some(request), None) => verify_folder(&request, arguments),
        (None, _) => verify_archive(arguments),
    };
    finish(result, "verify", &arguments.common, SummaryPlace::Output)
}

/// Says which media are needed.
fn say(arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let done = verify_plan(&arguments.request(), &cancel, Changer::asking(&cancel))?;
    let text = if arguments.common.json {
        format!("{:#}\n", service::document(&done.answer()))
    } else {
        report::verify::plan(&done)
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn verify_archive(arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let request = arguments.request();
    let told = telling::begin(&arguments.telling, "verify", &escape_path(&request.from));
    let mut terminal = Terminal::new(&arguments.common).folding_repeats();
    let result = verify(&request, &terminal, &cancel, Changer::asking(&cancel));
    terminal.close();
    let result = result.map(|done| (done.answer(), done));
    telling::end(
        told,
        &result,
        |(_, done)| done.outcome(),
        |(answer, _)| Ended {
            run: Some(&answer.run),
            is_verified: answer.sound,
            seconds: answer.run.run.seconds,
            ..Ended::default()
        },
    );
    let (answer, done) = result?;
    let end = report::verify::end(&done);
    print(&end, &answer, &arguments.common, SummaryPlace::Output)?;
    Ok(done.outcome())
}

/// The failure of an option that would go unheeded.
pub(super) fn not_for_sets(option: &str) -> Failure {
    let hint = "name an archive in it";
    Failure::of(format!("{option} is not for a folder of sets"), Some(hint))
}

fn not_for_tape_sets(option: &str) -> Failure {
    let hint = "choose one set with --set";
    Failure::of(format!("{option} is not for all sets of a tape"), Some(hint))
}

fn verify_folder(request: &VerifySetsRequest, arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let common = &arguments.common;
    let told = telling::begin(&arguments.telling, "verify", &escape_path(&request.from));
    let mut terminal = Terminal::new(common).folding_repeats();
    let result = verify_sets(request, &terminal, &cancel, &Changer::asking(&cancel));
    terminal.close();
    telling::end(told, &result, VerifySetsDone::outcome, |done| Ended {
        is_verified: done.answer().sound,
        seconds: done.seconds,
        ..Ended::default()
    });
    let done = result?;
    let text = report::jobs::verified_sets(&done);
    match (common.json, common.quiet, done.outcome()) {
        (true, ..) => {
            let document = format!("{:#}\n", service::document(&done.answer()));
            to_standard_output(document.as_bytes())?;
        }
        (false, false, _) => to_standard_output(text.as_bytes())?,
        (false, true, Outcome::Done) => {}
        (false, true, _) => to_standard_error(&text),
    }
    Ok(done.outcome())
}
