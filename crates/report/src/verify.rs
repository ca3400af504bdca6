//! The end of a verification, for people.

use std::path::Path;

use archive::label::hex;
use base::escape::escape_path;
use base::format::counted;
use runs::verify::{ReadFrom, VerifyReport};
use service::verify::{VerifyDone, VerifyPlanDone};

use crate::run::RunText;
use crate::tape;

/// The end of the run, and what it compared, with what, and where it read from.
pub fn end(done: &VerifyDone) -> RunText<'_> {
    let report = &done.report;
    let mut lines = compared(report);
    lines.push_str(&elsewhere(done.against.as_deref(), report));
    lines.push_str(&origin(report.read_from));
    let read = |it| tape::read(it, done.waited.as_ref());
    lines.push_str(&report.tape.as_ref().map(read).unwrap_or_default());
    RunText { summary: &done.summary, outcome: "read".to_owned(), lines }
}

/// Which tapes a verification needs, a line each.
pub fn plan(done: &VerifyPlanDone) -> String {
    let (set, begun) = (&hex(&done.set)[..12], tape::begun(done.begun_seconds));
    let lines = tape::forecast(&done.forecast);
    let end = "the same command without --dry-run reads it, and asks for each medium\n";
    format!("set {set}{begun}: {lines}{end}")
}

/// A line on what was compared, if anything was.
fn compared(report: &VerifyReport) -> String {
    match report.checked.compared {
        0 => String::new(),
        members => format!("{} compared with live files\n", counted(members, "member", "members")),
    }
}

/// A line for a comparison with the wrong folder, and which was probably meant.
fn elsewhere(against: Option<&Path>, report: &VerifyReport) -> String {
    let Some((against, found)) = against.zip(report.elsewhere.as_ref()) else {
        return String::new();
    };
    let named = |path: &Path| escape_path(path);
    let meant = match &found.probably {
        Some(folder) => format!("try --against {}", named(folder)),
        None => "it must hold the paths that `takeup list` shows".to_owned(),
    };
    // `elsewhere` is set when all of a few members are missing, or nine in ten of many.
    let found = report.checked.compared.saturating_sub(report.missing.total);
    let how_much = if found == 0 { "nothing" } else { "next to nothing" };
    format!("{how_much} of the archive is below {}: {meant}\n", named(against))
}

/// A line on whether the bytes came from the disk or the page cache.
fn origin(read_from: ReadFrom) -> String {
    match read_from {
        ReadFrom::Stream => String::new(),
        ReadFrom::Disk => "the archive was read from the disk, not the page cache\n".to_owned(),
        ReadFrom::Partly { cached_bytes } => format!(
            "{} of the archive may have come from the page cache, which could not drop it\n",
            base::format::size(cached_bytes)
        ),
        ReadFrom::Unknown => "the archive may have come from the page cache: this kernel does not \
                              report whether it dropped it\n"
            .to_owned(),
        ReadFrom::Cache => {
            "the archive may have come from the page cache (--cached), not the disk\n".to_owned()
        }
    }
}
