//! The end of a restore, for people.

use std::os::unix::ffi::OsStrExt as _;

use archive::index::About;
use archive::label::hex;
use base::calendar::time_text;
use base::escape::escape;
use base::format::{count, counted, duration};
use runs::restore::Checksums;
use service::restore::{PlannedOf, RestoreDone, RestoreOverwrite, RestorePlanDone};

use crate::run::{RunText, near_hints};
use crate::tape;

const EXISTING_HINT: &str = "hint: add --overwrite to replace existing files, or \
                             --overwrite=keep-newer to replace only older ones\n";

/// The end of the run, and what of it is checked and on the disk.
pub fn end(done: &RestoreDone) -> RunText<'_> {
    let into = escape(done.request.into.as_os_str().as_bytes());
    let mut lines = done.set.as_ref().map(set_line).unwrap_or_default();
    lines.push_str(&checksums(done.report.checksums));
    lines.push_str(&if done.request.no_sync {
        "the kernel still writes to the disk (--no-sync)\n".to_owned()
    } else {
        let time = duration(done.report.run.synchronise_seconds);
        let is_all = done.report.warnings == 0;
        let what = if is_all { "everything" } else { "what was restored" };
        format!("{what} is on the disk; waiting for it took {time} at the end\n")
    });
    let read = |it| tape::read(it, done.waited.as_ref());
    lines.push_str(&done.report.tape.as_ref().map(read).unwrap_or_default());
    RunText { summary: &done.summary, outcome: format!("restored into {into}"), lines }
}

/// Which set of a folder it was.
fn set_line(set: &About) -> String {
    let archives = counted(set.chain.len() as u64, "archive", "archives");
    let begun = time_text(set.begun_seconds as i64);
    let (job, number) = (escape(set.job.as_bytes()), set.number);
    format!("set {number} of {job}, begun {begun} UTC, from a chain of {archives}\n")
}

/// What to do about files that were not restored, a line each.
pub fn hints(done: &RestoreDone) -> String {
    let is_kept = done.report.existing > 0 && done.request.overwrite == RestoreOverwrite::No;
    let existing = if is_kept { EXISTING_HINT } else { "" };
    existing.to_owned() + &near_hints(&done.report.not_found)
}

/// Which tapes a restore needs, a line each.
pub fn plan(done: &RestorePlanDone) -> String {
    let (which, begun) = match &done.set {
        PlannedOf::Chain(about) => {
            let job = escape(about.job.as_bytes());
            (format!("set {} of {job}", about.number), Some(about.begun_seconds))
        }
        PlannedOf::Alone { set, begun_seconds } => {
            (format!("set {}", &hex(set)[..12]), *begun_seconds)
        }
    };
    let lines = tape::forecast(&done.forecast);
    let begun = tape::begun(begun);
    let end = "the same command without --dry-run restores, and asks for each medium\n";
    format!("{which}{begun}: {lines}{end}")
}

fn checksums(checksums: Checksums) -> String {
    match checksums {
        Checksums::Unknown => String::new(),
        Checksums::Hold { blocks: 1 } => "the checksum of the one block holds\n".to_owned(),
        Checksums::Hold { blocks } => {
            format!("the checksums of all {} blocks hold\n", count(blocks))
        }
        Checksums::Damaged { blocks: 1 } => "the checksum of 1 block does not hold\n".to_owned(),
        Checksums::Damaged { blocks } => {
            format!("the checksums of {} blocks do not hold\n", count(blocks))
        }
    }
}
