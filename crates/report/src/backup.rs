//! The end of a backup, for people.

use std::fmt::Write as _;

use archive::index::{About, StoreReason};
use base::format::{count, counted};
use service::backup::BackupDone;

use crate::run::{RunText, wrote};
use crate::tape;

/// The end of the run, and of its set on tape.
pub fn end(done: &BackupDone) -> RunText<'_> {
    let tape = done.tape.as_ref().map(tape::written).unwrap_or_default();
    let lines = done.set.as_ref().map(set_line).unwrap_or_default() + &tape;
    RunText { summary: &done.summary, outcome: wrote(&done.to), lines }
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
    line + "\n"
}
