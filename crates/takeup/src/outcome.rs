//! From the end of a run to what the user sees, and to the exit code.

use crate::exit_code::FailureExitCode as _;
use flow::monitor::Monitor;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use base::escape::{Printable, escape};
use flow::monitor::{Harm, Level, Notice};
use flow::run::RunReport;
use runs::selection::NotFound;
use runs::summary::RunSummary;
use runs::verdict::{RunState, Verdict};
use serde_json::Value;

use crate::exit_code::{FAILED, LATER_VERSION, WARNED};
use crate::options::{CommonArgs, EngineName};
use crate::standard_error::to_standard_error;
use crate::terminal::{Terminal, colour};
use service::failure::{Failure, near_hint};
use service::outcome::Outcome;

/// Where the summary goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPlace {
    /// Standard output.
    Output,
    /// Standard error, since standard output carries data.
    Error,
}

/// Makes the document of a run, and its record if requested. A record that cannot be written is
/// only a warning, since the run itself succeeded.
pub fn summarise(run: RunReport, terminal: &mut Terminal) -> RunSummary {
    summarise_with(run, terminal, |_| {})
}

/// The same; `complete` adds what only one command knows, to the record too.
pub fn summarise_with(
    run: RunReport,
    terminal: &mut Terminal,
    complete: impl Fn(&mut RunSummary),
) -> RunSummary {
    let [others_on_source_bytes, others_on_target_bytes] = terminal.others_on_disks();
    let others_seconds = terminal.others_processor_seconds();
    let time = terminal.source_disk_time();
    let run = RunReport {
        others_seconds,
        others_on_source_bytes,
        others_on_target_bytes,
        source_disk_seconds: time.map(|time| time.busy_seconds),
        source_disk_own_seconds: time.map(|time| time.own_seconds),
        source_disk_in_flight: time.map(|time| time.in_flight),
        ..run
    };
    let whole = |run: RunReport, terminal: &Terminal| {
        let verdict = terminal.verdict(&run);
        let summary = RunSummary::new(run, terminal.warnings(), terminal.warnings_total());
        let mut summary = RunSummary { verdict, ..summary };
        complete(&mut summary);
        summary
    };
    let summary = whole(run, terminal);
    let Some(Err(failure)) = terminal.take_recording().map(|it| it.keep(&summary)) else {
        return summary;
    };
    let text = format!("cannot keep the record: {}", failure.message());
    terminal.notice(Notice { level: Level::Warning(Harm::Beside), object: Vec::new(), text });
    whole(summary.run, terminal)
}

/// Prints the summary in the requested form; `outcome` is what the run made, such as `wrote NAME`.
///
/// # Errors
/// When writing to standard output fails: a truncated document must not look like success.
pub fn print(
    summary: &RunSummary,
    outcome: &str,
    common: &CommonArgs,
    place: SummaryPlace,
) -> Result<(), Failure> {
    print_with(summary, outcome, &Value::Null, "", common, place)
}

/// The same, with fields for the document and lines for the text that only one command has.
pub fn print_with(
    summary: &RunSummary,
    outcome: &str,
    fields: &Value,
    lines: &str,
    common: &CommonArgs,
    place: SummaryPlace,
) -> Result<(), Failure> {
    let text = match (common.json, common.quiet) {
        (true, _) => format!("{:#}\n", merged(summary, fields)),
        (false, true) => {
            tell(&summary.verdict);
            return Ok(());
        }
        (false, false) => {
            let colour = match place {
                SummaryPlace::Output => colour(&std::io::stdout()),
                SummaryPlace::Error => colour(&std::io::stderr()),
            };
            let text = if common.verbose {
                report::run::text(summary, colour)
            } else {
                report::run::answer(summary, outcome, colour)
            };
            text + lines
        }
    };
    match place {
        SummaryPlace::Output => to_standard_output(text.as_bytes()),
        SummaryPlace::Error => {
            to_standard_error(&text);
            Ok(())
        }
    }
}

/// What a run that wrote to `to` has made; empty for standard output, which has no name.
pub fn wrote(to: &OsStr) -> String {
    match to.as_bytes() {
        b"-" => String::new(),
        name => format!("wrote {}", escape(name)),
    }
}

/// Prints a bad verdict where no summary is printed, as with `--quiet`.
pub fn tell(verdict: &Verdict) {
    if !verdict.text.is_empty() && verdict.state != RunState::Done {
        to_standard_error(&format!("takeup: {}\n", verdict.text));
    }
}

fn merged(summary: &RunSummary, fields: &Value) -> Value {
    let mut document = summary.to_document();
    if let (Some(document), Some(fields)) = (document.as_object_mut(), fields.as_object()) {
        document.extend(fields.clone());
    }
    document
}

/// Writes text to standard output, without control characters that a terminal would obey.
///
/// # Errors
/// When the write fails.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(Printable::of(bytes).as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| {
        let why = service::failure::with_causes(&error);
        Failure::of(format!("cannot write standard output: {why}"), None)
    })
}

/// The form of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// A document.
    Json,
}

impl Form {
    /// What `--json` asks for.
    pub fn of(json: bool) -> Form {
        if json { Form::Json } else { Form::Text }
    }
}

/// Prints a failure, as a document if requested, and returns the exit code.
pub fn end(result: Result<Outcome, Failure>, name: &str, form: Form) -> ExitCode {
    let json = form == Form::Json;
    let common = CommonArgs {
        json,
        quiet: false,
        verbose: false,
        no_progress: true,
        engine: EngineName::Auto,
    };
    finish(result, name, &common, SummaryPlace::Output)
}

/// Prints a failure, and returns the exit code of the command.
pub fn finish(
    result: Result<Outcome, Failure>,
    name: &str,
    common: &CommonArgs,
    place: SummaryPlace,
) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Warned) => ExitCode::from(WARNED),
        Ok(Outcome::Bad) => ExitCode::from(FAILED),
        Ok(Outcome::Later) => ExitCode::from(LATER_VERSION),
        Err(failure) => {
            if common.json && place == SummaryPlace::Output {
                // An error can be ignored: standard error gets the same message.
                let _ = to_standard_output(failure.to_json(name).as_bytes());
            }
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

/// Most missing paths for which a similar path is proposed.
const NEAR_TOLD_MAX: usize = 5;

/// Hints with similar paths of the archive for missing ones, a line each.
pub fn near_hints(missing: &[NotFound]) -> String {
    let line = |missing: &NotFound| {
        Some(format!("hint: {}\n", near_hint(&missing.path, missing.near.as_ref()?)))
    };
    missing.iter().filter_map(line).take(NEAR_TOLD_MAX).collect()
}
