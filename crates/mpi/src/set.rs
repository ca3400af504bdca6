//! A tree backed up, verified and restored in shards.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use many::conduct::{Moved, attend, quit};
use many::journal::JournalError;
use many::message::{MailError, Message};
use many::name::Name;
use many::set::{SetError, SetRequest, back_up, read_set, work};
use many::shards::{Reading, ShardOptions};
use many::units::Mounts;
use report::table::Style;
use service::failure::Failure;
use service::many::ManySetAnswer;
use service::outcome::Outcome;

use crate::arguments::{BackupArgs, RestoreArgs, SetArgs, VerifyArgs};
use crate::bench::mail;
use crate::job::Job;
use crate::say::{SetProgress, to_standard_error, to_standard_output};

/// Backs up.
///
/// # Errors
/// When it was not completed; what is sealed stays.
pub fn backup(arguments: &BackupArgs, job: &Job) -> Result<Outcome, Failure> {
    let options = ShardOptions {
        folder: absolute(&arguments.to),
        compression: arguments.compress,
        mounts: if arguments.one_file_system { Mounts::Leave } else { Mounts::Enter },
        threads: arguments.set.threads,
    };
    if !job.is_first() {
        return follow(&options, job);
    }
    let request = SetRequest {
        sources: arguments
            .sources
            .iter()
            .map(|path| Name::from(absolute(path).as_os_str()))
            .collect(),
        options,
        shard_bytes: arguments.shard_size.0.max(1),
        at_once: at_once(&arguments.set),
    };
    tell_differences(job, &arguments.set);
    let progress = SetProgress::new(arguments.set.loudness());
    let written = back_up(&job.ranks, &request, &progress, &job.cancel);
    progress.close();
    let set = written.map_err(|error| failure(&error))?;
    quit(&job.ranks).map_err(|error| mail(&error))?;
    let is_whole = set.warnings == 0 && !set.was_complete;
    show(&ManySetAnswer::written(set), &arguments.set)?;
    Ok(if is_whole { Outcome::Done } else { Outcome::Warned })
}

/// Verifies.
///
/// # Errors
/// When there is no complete set.
pub fn verify(arguments: &VerifyArgs, job: &Job) -> Result<Outcome, Failure> {
    let options = read_options(&arguments.from, &arguments.set);
    read(&options, &Reading::Verify, "verify", &arguments.set, job)
}

/// Restores.
///
/// # Errors
/// When there is no complete set.
pub fn restore(arguments: &RestoreArgs, job: &Job) -> Result<Outcome, Failure> {
    let options = read_options(&arguments.from, &arguments.set);
    let into = absolute(&arguments.into);
    let reading = Reading::Restore { into, replaces: arguments.overwrite };
    read(&options, &reading, "restore", &arguments.set, job)
}

fn read(
    options: &ShardOptions,
    reading: &Reading,
    command: &str,
    arguments: &SetArgs,
    job: &Job,
) -> Result<Outcome, Failure> {
    if !job.is_first() {
        return follow(options, job);
    }
    tell_differences(job, arguments);
    let progress = SetProgress::new(arguments.loudness());
    let read = read_set(&job.ranks, options, reading, at_once(arguments), &progress, &job.cancel);
    progress.close();
    let read = read.map_err(|error| failure(&error))?;
    quit(&job.ranks).map_err(|error| mail(&error))?;
    let is_bad = !read.damaged.is_empty();
    let has_warnings = read.answer.warnings > 0;
    show(&ManySetAnswer::read(command, read), arguments)?;
    Ok(match (is_bad, has_warnings, reading) {
        (true, _, _) | (false, true, Reading::Verify) => Outcome::Bad,
        (false, true, Reading::Restore { .. }) => Outcome::Warned,
        (false, false, _) => Outcome::Done,
    })
}

/// The side of all other ranks.
fn follow(options: &ShardOptions, job: &Job) -> Result<Outcome, Failure> {
    let host = &job.host;
    let own =
        |order: Message, moved: &Moved, cancel: &Cancel| work(order, options, host, moved, cancel);
    attend(&job.ranks, &own, &job.cancel).map_err(|error| mail(&error))?;
    Ok(Outcome::Done)
}

fn read_options(folder: &Path, arguments: &SetArgs) -> ShardOptions {
    ShardOptions {
        folder: absolute(folder),
        compression: Compression::None,
        mounts: Mounts::Enter,
        threads: arguments.threads,
    }
}

fn at_once(arguments: &SetArgs) -> usize {
    arguments.at_once.map_or(usize::MAX, NonZero::get)
}

fn show(answer: &ManySetAnswer, arguments: &SetArgs) -> Result<(), Failure> {
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => format!("{:#}\n", service::document(answer)),
        (false, true) => String::new(),
        (false, false) => report::many::set(answer, Style::PLAIN),
    };
    to_standard_output(&text)
}

/// The same path on every host, wherever the ranks were started, and without a slash at its end.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect()
}

/// Says what differs between the hosts and may matter.
fn tell_differences(job: &Job, arguments: &SetArgs) {
    for difference in job.differences.iter().filter(|_| !arguments.quiet) {
        to_standard_error(&format!("takeup-mpi: {difference}\n"));
    }
}

fn failure(error: &SetError) -> Failure {
    let hint = match error {
        SetError::Host { what, .. } if !what.starts_with("shard") => None,
        SetError::Mail(MailError::Stopped(_)) | SetError::Host { .. } => {
            Some("run the same command to go on: shards that are sealed stay")
        }
        SetError::Mail(MailError::Communication(_)) => {
            Some("run the same command to go on: shards that are sealed stay")
        }
        SetError::Another { .. } => Some("name another folder, or remove the old shards"),
        SetError::Incomplete { .. } => Some("run the backup again: it goes on where it ended"),
        SetError::Journal(JournalError::Taken { .. }) => {
            Some("wait for its end, or name another folder")
        }
        _ => None,
    };
    Failure::new(error, hint.map(str::to_owned))
}
