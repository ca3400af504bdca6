//! The verdict on an archive that was verified, in words.

use base::escape::escape;
use base::format::{count, counted};
use runs::verdict::{RunState, Verdict, no_file};
use runs::verify::VerifyReport;

/// The verdict on the archive: the first line.
pub(super) fn verdict(report: &VerifyReport, beside: Verdict) -> Verdict {
    if !report.is_sound() {
        return Verdict { state: RunState::Damaged, text: damaged(report) };
    }
    if beside.state > RunState::Different {
        return beside;
    }
    let found = differences(report);
    if !found.is_empty() {
        let compared = counted(report.checked.compared, "member", "members");
        let found = found.join(", ");
        let text = format!(
            "DIFFERENT: the archive is sound; of {compared} compared with live files {found}"
        );
        return Verdict { state: RunState::Different, text };
    }
    if beside.state > RunState::Done {
        return beside;
    }
    let empty = match report.run.files {
        0 => format!(", and holds {}", no_file(&report.run)),
        _ => String::new(),
    };
    let text = format!("the archive is sound{empty}: checked with {}", with(report));
    Verdict { state: RunState::Done, text }
}

/// The damage: how many files are hit, each counted once, and what is known of the rest.
fn damaged(report: &VerifyReport) -> String {
    let (hit, checked) = (&report.hit, &report.checked);
    let what = || report.damaged.items.first().map_or("", |first| &first.what);
    let files = match checked.files {
        0 => counted(hit.files, "file", "files"),
        all => format!("{} of {}", count(hit.files), counted(all, "file", "files")),
    };
    let folders = counted(hit.others, "folder or link", "folders or links");
    let hit_what = match (hit.files, hit.others) {
        (0, 0) => escape(what().as_bytes()),
        (0, _) => folders,
        (_, 0) => files,
        _ => format!("{files} and {folders}"),
    };
    let first = match (hit.files + hit.others, escape(&hit.first)) {
        (0, _) => String::new(),
        (1, first) => format!(" ({first})"),
        (_, first) => format!(" ({first} and others)"),
    };
    let between = match hit.blocks {
        0 => String::new(),
        blocks => format!(
            "; {} outside of file contents: a name, an owner or a time may be wrong",
            counted(blocks, "block differs", "blocks differ")
        ),
    };
    let is_known = checked.index && checked.files > 0;
    let rest = match (is_known, hit.files + hit.others) {
        (false, _) => "; without a whole index the rest could not be checked",
        (true, 0) => "; the contents of all files are intact",
        (true, _) => "; the rest is intact",
    };
    format!("DAMAGED: {hit_what}{first}{between}{rest}")
}

/// What the archive was checked with.
fn with(report: &VerifyReport) -> String {
    let checked = &report.checked;
    let mut with = Vec::new();
    if checked.content_hashes > 0 {
        with.push(counted(checked.content_hashes, "content hash", "content hashes"));
    }
    if let Some(blocks) = checked.blocks {
        with.push(counted(blocks, "block checksum", "block checksums"));
    }
    if with.is_empty() {
        "its structure alone, since it has no index".to_owned()
    } else {
        with.join(" and ")
    }
}

fn differences(report: &VerifyReport) -> Vec<String> {
    let found = [
        (
            report.differs.total,
            "differs although it did not change",
            "differ although they did not change",
        ),
        (report.changed.total, "changed since the backup", "changed since the backup"),
        (report.missing.total, "is missing", "are missing"),
        (report.extra.total, "is new", "are new"),
        (report.not_compared.total, "could not be compared", "could not be compared"),
    ];
    let found = found.into_iter().filter(|(number, ..)| *number > 0);
    found.map(|(number, one, many)| counted(number, one, many)).collect()
}
