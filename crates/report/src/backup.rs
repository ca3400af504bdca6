//! The end of a backup, for people.

use std::fmt::Write as _;

use archive::index::{About, StoreReason};
use base::escape::escape;
use base::format::{count, counted, duration, size};
use runs::backup::ListUse;
use service::backup::BackupDone;
use service::dry_run::{CompressedAnswer, DryRunDone, SampledContents, TapesAnswer};
use service::sets::ListUsed;

use crate::run::{RunText, wrote};
use crate::tape;

/// The end of the run, and of its set on tape.
pub fn end(done: &BackupDone) -> RunText<'_> {
    let tape = done.tape.as_ref().map(tape::written).unwrap_or_default();
    let list = done.list.as_ref().map(list_line).unwrap_or_default();
    let lines = done.set.as_ref().map(set_line).unwrap_or_default() + &list + &tape;
    RunText { summary: &done.summary, outcome: wrote(&done.to), lines }
}

/// What a backup would store.
pub fn would_store(done: &DryRunDone) -> String {
    let found = &done.found;
    let (files, bytes) = (counted(found.files, "file", "files"), size(found.bytes));
    let mut text = format!("would store {files}, {bytes} before compression\n");
    if done.is_set {
        text.push_str(&set_line(&found.about));
    }
    text.push_str(&done.list.as_ref().map(list_line).unwrap_or_default());
    if let Some(sampled) = &done.sampled {
        text.push_str(&sampled_lines(sampled, found.bytes));
    }
    if let Some(tapes) = &done.tapes {
        text.push_str(&tape_lines(tapes));
    }
    if found.hole_bytes > 0 {
        let _ = writeln!(text, "{} of holes are left out", size(found.hole_bytes));
    }
    if found.links > 0 {
        let names = counted(found.links, "further name", "further names");
        let _ = writeln!(text, "{names} of files with hard links take no space");
    }
    if found.problems > 0 {
        let folders = counted(found.problems, "folder", "folders");
        let _ = writeln!(text, "{folders} could not be listed");
    }
    if !found.folders.is_empty() {
        text.push_str("most of it in\n");
    }
    for folder in &found.folders {
        let _ = writeln!(text, "{:>10}  {}/", size(folder.bytes), escape(&folder.path));
    }
    if !found.largest.is_empty() {
        text.push_str("the largest files, and why\n");
    }
    for file in &found.largest {
        let (bytes, reason) = (size(file.bytes), file.reason.name());
        let _ = writeln!(text, "{bytes:>10}  {}  ({reason})", escape(&file.path));
    }
    text
}

/// How far the contents compress, and what that rests on.
fn sampled_lines(sampled: &SampledContents, all_bytes: u64) -> String {
    let mut text = String::new();
    let (number, read) = (sampled.stretches, size(sampled.read_bytes));
    let stretches = counted(number, "stretch", "stretches");
    let estimates =
        [(sampled.compressed, "compressed"), (sampled.in_drive, "if the drive compresses")];
    for (share, how) in estimates {
        let Some(share) = share else { continue };
        let left = CompressedAnswer::of(share, all_bytes);
        let by = if left.low_bytes == left.high_bytes {
            format!("by all of it, {read}")
        } else {
            let (low, high) = (size(left.low_bytes), size(left.high_bytes));
            format!("{low} to {high}, by {stretches}, {read}")
        };
        let _ = writeln!(text, "about {} {how}: {by}", size(left.bytes));
    }
    if text.is_empty() {
        let _ = writeln!(text, "how far it compresses is not known: {stretches} could be read");
    }
    text
}

/// Tapes and time.
fn tape_lines(it: &TapesAnswer) -> String {
    let (tapes, time) = (counted(it.tapes, "empty tape", "empty tapes"), duration(it.seconds));
    let data = match it.ratio {
        Some(ratio) => format!("at a ratio of {ratio:.2}"),
        None => "if nothing compresses".to_owned(),
    };
    let mut text = format!(
        "{tapes} {data}; {time} in the drive if the source keeps up with it: {}\n",
        it.drive
    );
    if let Some(generation) = &it.generation {
        let _ = writeln!(
            text,
            "with the rate of the source: takeup plan SOURCE --drive {generation}; of your drive: \
             `takeup bench tape -o RUNS`, then --from RUNS"
        );
    }
    text
}

/// What a list of changes did.
fn list_line(list: &ListUsed) -> String {
    let paths = counted(list.paths, "path", "paths");
    let folders = counted(list.report.folders_read, "folder was read", "folders were read");
    match list.using {
        Some(ListUse::Follow) => format!("by a list of {paths}: {folders}\n"),
        Some(ListUse::Audit) => {
            let missed = match list.report.missed {
                0 => "nothing".to_owned(),
                missed => counted(missed, "change", "changes"),
            };
            format!("an audit of a list of {paths}: {folders}; the list missed {missed}\n")
        }
        None => "the list of changes was not used\n".to_owned(),
    }
}

/// What a set of a chain holds, and what it leaves to the sets before it.
fn set_line(set: &About) -> String {
    let level = match set.level {
        0 => "a full set".to_owned(),
        level => format!("level {level}"),
    };
    let stored: u64 = set.stored.iter().map(|(_, objects)| objects).sum();
    let mut line =
        format!("set {}: {level}, {} stored", set.number, counted(stored, "object", "objects"));
    if set.level > 0 {
        let reason = |(reason, objects): &(StoreReason, u64)| {
            format!("{} {}", reason.name(), count(*objects))
        };
        let reasons: Vec<String> = set.stored.iter().map(reason).collect();
        if !reasons.is_empty() {
            let _ = write!(line, " ({})", reasons.join(", "));
        }
        let (unchanged, deleted) = (count(set.unchanged), count(set.deleted));
        let _ = write!(line, ", {unchanged} unchanged, {deleted} deleted");
    }
    if set.left > 0 {
        let _ = write!(line, ", {} left for the next set", count(set.left));
    }
    line + "\n"
}
