//! The source of an archive, above all a tape: the options of list, restore and verify, and the
//! lines that they print about it at the end.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base::escape::escape;
use base::format::{count, counted, duration, size};
use clap::Args;
use device::source::SourceError;
use flow::cancel::Cancel;
use runs::origin::Origin;
use runs::selection::{NotFound, Selection};
use serde_json::{Value, json};
use tapeset::{SetChoice, TapeOrigin, TapeReading};

use crate::change::{ChangeArgs, Changer};
use crate::options::ArchiveArgs;
use service::failure::Failure;

/// Options for tapes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tape")]
pub struct TapeSourceArgs {
    /// Set on the volume: its number, 1 for the oldest, or the start of its id; by default the last
    /// one
    #[arg(long, value_name = "SET", value_parser = parse_set)]
    set: Option<SetChoice>,
    /// Read this file of the tape, whatever program wrote it; 0 is the first. By default, a tape of
    /// another program is read at its current file
    #[arg(long, value_name = "N", conflicts_with = "set")]
    file: Option<u32>,
    /// Skip this volume of the set: takeup does not ask for it, and warns about what is missing.
    /// Separate several numbers by commas, or repeat the option
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "file",
        value_parser = clap::value_parser!(u32).range(1..))]
    without_volume: Vec<u32>,
    #[command(flatten)]
    change: ChangeArgs,
}

impl TapeSourceArgs {
    /// The source that `from` names.
    ///
    /// # Errors
    /// When options for tapes are given and `from` is not a tape.
    pub fn origin(&self, from: &OsStr, cancel: &Cancel) -> Result<Origin, Failure> {
        let Some(drive) = device::tape::find(Path::new(from)) else {
            let option = match (&self.set, self.file) {
                (Some(_), _) => "--set",
                (_, Some(_)) => "--file",
                _ if !self.without_volume.is_empty() => "--without-volume",
                _ => return Ok(from.into()),
            };
            let hint = "name a tape drive: /dev/nst0 is the first";
            return Err(no_tape(option, Path::new(from), hint));
        };
        Ok(Origin::Tape(TapeOrigin {
            drive: Arc::new(drive),
            set: self.set.clone().unwrap_or_default(),
            file_number: self.file,
            without_volumes: self.without_volume.clone(),
            changer: Arc::new(Mutex::new(Changer::new(&self.change, cancel))),
        }))
    }
}

/// The failure of an option for tapes with a source that is not a tape, or does not exist.
pub fn no_tape(option: &str, from: &Path, hint: &str) -> Failure {
    match std::fs::metadata(from) {
        Err(source) if from != Path::new("-") => {
            Failure::new(&SourceError::Open { path: from.to_owned(), source }, None)
        }
        _ => Failure::of(format!("{option}: {} is not a tape drive", from.display()), Some(hint)),
    }
}

/// Memory for the rings: the option, else a default that is larger for a tape.
pub fn ring_bytes(archive: &ArchiveArgs, from: &Origin) -> usize {
    match (archive.ring, from) {
        (Some(size), _) => size.bytes(),
        (None, Origin::Path(_)) => ArchiveArgs::RING_BYTES,
        (None, Origin::Tape(_)) => tapeset::ring_bytes(ArchiveArgs::RING_BYTES),
    }
}

/// The field `tape` of the document.
pub fn document(tape: &TapeReading) -> Value {
    json!({
        "device": tape.device,
        "set": tape.set,
        "file": tape.file_number,
        "block_bytes": tape.block_bytes,
        "blocks": tape.blocks,
        "bytes": tape.bytes,
        "lost_blocks": tape.lost_blocks,
        "retries": tape.retries,
        "stops": tape.stops,
        "volumes": tape.volumes,
        "volume_changes": tape.changes,
        "read_seconds": tape.read_seconds,
        "ready_seconds": tape.ready_seconds,
        "label_seconds": tape.label_seconds,
        "winding_seconds": tape.winding_seconds,
        "change_seconds": tape.change_seconds,
    })
}

/// Shorter times before the data are not reported.
const SECONDS_WORTH_NAMING: f64 = 0.1;

/// Two lines for the end of the text.
pub fn lines(tape: &TapeReading) -> String {
    let what = match (&tape.set, tape.file_number) {
        (Some(set), _) => format!("set {}", &set[..set.len().min(8)]),
        (None, Some(number)) => format!("file {number}"),
        (None, None) => "a file".to_owned(),
    };
    let blocks = counted(tape.blocks, "block", "blocks");
    let mut text = format!("{what} of the tape in {}: {blocks}", tape.device);
    if tape.block_bytes > 0 {
        text.push_str(&format!(" of {}", size(tape.block_bytes)));
    }
    let winding_seconds = tape.ready_seconds - tape.label_seconds + tape.winding_seconds;
    if tape.ready_seconds + tape.winding_seconds >= SECONDS_WORTH_NAMING {
        let (wound, read) = (duration(winding_seconds), duration(tape.label_seconds));
        text.push_str(&format!(", {wound} for winding, {read} for reading its labels and index"));
    }
    if let Some(seconds) = tape.read_seconds {
        text.push_str(&format!(", {} in reads", duration(seconds)));
    }
    if tape.changes > 0 {
        text.push_str(&format!(
            ", {} of volume",
            counted(tape.changes.into(), "change", "changes")
        ));
    }
    if tape.lost_blocks > 0 {
        text.push_str(&format!(", {} unreadable", count(tape.lost_blocks)));
    }
    text.push('\n');
    text.push_str(&match tape.stops {
        0 => "the tape never had to wait\n".to_owned(),
        1 => "the tape had to stop once for a full ring\n".to_owned(),
        stops => format!("the tape had to stop {} times for a full ring\n", count(stops)),
    });
    text
}

/// A hint that names another set of the volume with the paths that the last set does not have.
pub fn in_another_set(tape: &TapeOrigin, missing: &[NotFound], cancel: &Cancel) -> Option<String> {
    if tape.file_number.is_some() {
        return None;
    }
    let mut selection = Selection::new(missing.iter().map(|missing| missing.path.clone()));
    let mut holds = Vec::new();
    let mut look = |set: u32, path: &[u8]| {
        if holds.last() != Some(&set) && selection.selects(path) {
            holds.push(set);
        }
    };
    tapeset::look_through_sets(tape, cancel, &mut look).ok()?;
    holds.sort_unstable();
    let last = holds.last()?;
    let sets: Vec<String> = holds.iter().map(u32::to_string).collect();
    let what = missing.first().map_or(String::new(), |missing| escape(&missing.path));
    let which = match holds.len() {
        1 => format!("set {last} of this volume has"),
        _ => format!("sets {} of this volume have", sets.join(", ")),
    };
    Some(format!("{which} {what}: add --set {last}; `takeup list DEVICE --sets` shows all sets"))
}

/// A number, or hexadecimal digits.
fn parse_set(text: &str) -> Result<SetChoice, String> {
    /// Longer numbers are ids without a letter.
    const NUMBER_DIGITS_MAX: usize = 5;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() <= NUMBER_DIGITS_MAX {
        return match text.parse() {
            Ok(number @ 1..) => Ok(SetChoice::Number(number)),
            _ => Err("sets count from 1".to_owned()),
        };
    }
    let is_id = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        Ok(SetChoice::Id(text.to_owned()))
    } else {
        Err("not a number and not the start of an id".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_by_number_or_id() {
        assert_eq!(parse_set("1"), Ok(SetChoice::Number(1)));
        assert_eq!(parse_set("00017"), Ok(SetChoice::Number(17)));
        assert_eq!(parse_set("ab12"), Ok(SetChoice::Id("ab12".into())));
        assert_eq!(parse_set("123456"), Ok(SetChoice::Id("123456".into())));
        for wrong in ["", "0", "-1", "last", "g", &"a".repeat(33)] {
            assert!(parse_set(wrong).is_err(), "{wrong}");
        }
    }
}
