//! From the end of a run to what the user sees, and to the exit code.

use flow::monitor::Monitor;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use base::escape::{Printable, escape};
use base::finding::Certainty;
use flow::monitor::{Harm, Level, Notice};
use flow::run::RunReport;
use model::tape::generation;
use report::summary::RunSummary;
use report::verdict::{RunState, Verdict};
use runs::selection::NotFound;
use serde_json::Value;

use crate::exit_code::{FAILED, LATER_VERSION, WARNED};
use crate::failure::{Failure, near_hint};
use crate::options::CommonArgs;
use crate::standard_error::to_standard_error;
use crate::terminal::{Terminal, colour};

/// How a command that did not fail has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All was done.
    Done,
    /// All was done except what a warning named.
    Warned,
    /// All was done, and the result is bad: an archive is damaged, for example.
    Bad,
    /// A later version wrote the data, which were read as far as this version knows the format.
    Later,
}

impl From<RunState> for Outcome {
    fn from(state: RunState) -> Outcome {
        match state {
            RunState::Done | RunState::Empty => Outcome::Done,
            RunState::Doubtful | RunState::Different | RunState::Incomplete => Outcome::Warned,
            RunState::Later => Outcome::Later,
            RunState::Damaged => Outcome::Bad,
        }
    }
}

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
                summary.to_text(colour)
            } else {
                summary.answer(outcome, colour)
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

/// The certainty of a finding that uses a number from the table of generations.
pub fn certainty(of: generation::Certainty) -> Certainty {
    match of {
        generation::Certainty::Maker | generation::Certainty::Reported => Certainty::Told,
        generation::Certainty::Assumed => Certainty::Assumed,
    }
}

/// Writes text to standard output, without control characters that a terminal would obey.
///
/// # Errors
/// When the write fails.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(Printable::of(bytes).as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| {
        let why = crate::failure::with_causes(&error);
        Failure::of(format!("cannot write standard output: {why}"), None)
    })
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
