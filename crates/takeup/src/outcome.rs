//! From the end of a run to what the user sees, and to the exit code.

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use backup::report::RunReport;
use flow::limit::{Run, analyse};
use report::explanation::{Command, Context, Volume, explain};
use report::summary::RunSummary;
use rustix::fs::FileType;
use serde_json::Value;

use crate::failure::{FAILED, Failure};
use crate::options::CommonArgs;
use crate::terminal::{Terminal, colour, to_standard_error};

/// Exit code of a run that did its job but for what it warned about.
const WARNED: u8 = 2;

/// How a command that did not fail has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All was done.
    Done,
    /// All but what was warned about.
    Warned,
    /// All was done, and what was looked at is bad.
    Bad,
}

/// Where the summary goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPlace {
    /// Standard output.
    Output,
    /// Standard error, since standard output carries data.
    Error,
}

/// What the words of a summary depend on.
pub struct Ends<'a> {
    /// What was run.
    pub command: Command,
    /// Kind of the source: tree, file, pipe ...
    pub source: &'a str,
    /// Kind of the target.
    pub target: &'a str,
    /// The user's limit.
    pub rate_limit_bytes_per_second: Option<u64>,
}

/// Makes the document of a run.
pub fn summarise(run: &RunReport, ends: &Ends<'_>, terminal: &Terminal) -> RunSummary {
    // No stage can be blamed for the time of a change of volume, and none can save it.
    let change_seconds = run.tape.as_ref().map_or(0.0, |tape| tape.change_seconds);
    let mut stages = run.stages.clone();
    if let Some(writer) = stages.last_mut() {
        writer.blocked_seconds = (writer.blocked_seconds - change_seconds).max(0.0);
    }
    let analysis = analyse(&Run {
        stages: &stages,
        seconds: (run.seconds - change_seconds).max(0.0),
        synchronise_seconds: run.synchronise_seconds,
        rate_limit_bytes_per_second: ends.rate_limit_bytes_per_second,
        cores: run.cores,
        others_seconds: terminal.others_processor_seconds(),
    });
    let context = Context {
        command: ends.command,
        source: ends.source,
        target: ends.target,
        compression: &run.compression,
        mean_file_bytes: (run.files > 0).then(|| run.source_bytes as f64 / run.files as f64),
        rate_limit_bytes_per_second: ends.rate_limit_bytes_per_second,
        volume: if run.archive_bytes > run.ring_bytes {
            Volume::MoreThanRing
        } else {
            Volume::FitsRing
        },
    };
    let words = explain(&analysis, &context).without_changes(change_seconds);
    let mut summary = RunSummary {
        command: command_name(ends.command).to_owned(),
        members: run.members,
        files: run.files,
        source_bytes: run.source_bytes,
        archive_bytes: run.archive_bytes,
        target_bytes: run.target_bytes,
        seconds: run.seconds,
        synchronise_seconds: run.synchronise_seconds,
        bytes_per_second: if run.seconds > 0.0 {
            run.source_bytes as f64 / run.seconds
        } else {
            0.0
        },
        warnings: terminal.warnings(),
        warnings_total: terminal.warnings_total(),
        times_ran_empty: run.times_ran_empty,
        ring_bytes: run.ring_bytes,
        engine: run.engine.to_owned(),
        cores: run.cores,
        endpoint: run.endpoint.to_owned(),
        compression: run.compression.clone(),
        ..RunSummary::default()
    };
    summary.set_stages(&run.stages, &analysis, &words);
    summary
}

/// Prints the summary as the user wants it.
///
/// # Errors
/// When standard output does not take it: a document that is cut off must not look like success.
pub fn print(
    summary: &RunSummary,
    common: &CommonArgs,
    place: SummaryPlace,
) -> Result<(), Failure> {
    print_with(summary, &Value::Null, "", common, place)
}

/// The same with what only one command knows: fields for the document, lines for the text.
pub fn print_with(
    summary: &RunSummary,
    fields: &Value,
    lines: &str,
    common: &CommonArgs,
    place: SummaryPlace,
) -> Result<(), Failure> {
    let text = match (common.json, common.quiet) {
        (true, _) => format!("{:#}\n", merged(summary, fields)),
        (false, true) => return Ok(()),
        (false, false) => {
            let colour = match place {
                SummaryPlace::Output => colour(&std::io::stdout()),
                SummaryPlace::Error => colour(&std::io::stderr()),
            };
            summary.to_text(colour) + lines
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

fn merged(summary: &RunSummary, fields: &Value) -> Value {
    let mut document = summary.to_document();
    if let (Some(document), Some(fields)) = (document.as_object_mut(), fields.as_object()) {
        document.extend(fields.clone());
    }
    document
}

/// Writes to standard output and says when that fails.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    written.map_err(|error| {
        let why = crate::failure::with_causes(&error);
        Failure::of(format!("write standard output: {why}"), None)
    })
}

/// Prints a failure, and gives the exit code of what a command came to.
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
        Err(failure) => {
            if common.json && place == SummaryPlace::Output {
                // The message on standard error tells the same, should this not be read.
                let _ = to_standard_output(failure.to_json(name).as_bytes());
            }
            to_standard_error(&failure.to_text());
            ExitCode::from(FAILED)
        }
    }
}

/// What is at a path, in the words of the explanation; `standard` is what `-` stands for.
pub fn kind_of(path: &OsStr, standard: rustix::fd::BorrowedFd<'_>) -> &'static str {
    let status = if path == "-" { rustix::fs::fstat(standard) } else { rustix::fs::stat(path) };
    let Ok(status) = status else { return "file" };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo => "pipe",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Socket => "stream",
        FileType::Directory => "tree",
        _ => "file",
    }
}

fn command_name(command: Command) -> &'static str {
    match command {
        Command::Backup => "backup",
        Command::Restore => "restore",
        Command::Verify => "verify",
        Command::List => "list",
        Command::Pipe => "pipe",
    }
}
