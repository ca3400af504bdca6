//! The source of an archive, above all a tape: what the requests of list, restore and verify say of
//! it, and what their answers do.

use std::path::Path;
use std::sync::Arc;

use base::escape::escape;
use device::source::SourceError;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Level, Monitor as _, Notice};
use model::tape::parameters::TapeParameters;
use runs::origin::Origin;
use runs::selection::{NotFound, Selection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{SetChoice, SetOnVolume, TapeOrigin, TapeReading};

use crate::change::{self, SharedChanger};
use crate::failure::Failure;
use crate::run::{ArchiveSettings, RunMonitor, bytes};
use crate::tape_forecast::WaitedAnswer;
use crate::tape_memory::{self, Copies};
use crate::virtual_drive::VirtualDrive;

/// Which set of the volume, and what changes volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TapeSourceSettings {
    /// The set on the volume; `None`: the last one.
    pub set: Option<SetWanted>,
    /// Number of a tape file, from 0, that is read whatever program wrote it.
    pub file: Option<u32>,
    /// Numbers of volumes to skip, from 1.
    pub without_volumes: Vec<u32>,
    /// Shell command that loads another volume into the drive.
    pub change_command: Option<String>,
    /// Whether the medium is ejected at the end.
    pub eject: bool,
}

impl TapeSourceSettings {
    /// Whether the last set is read since none is named.
    pub(crate) fn names_no_set(&self) -> bool {
        self.set.is_none() && self.file.is_none()
    }
}

/// A set on a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetWanted {
    /// By its number, 1 for the oldest.
    Number(u32),
    /// By the start of its id.
    Id(String),
}

impl TapeSourceSettings {
    /// The source that `from` names.
    ///
    /// # Errors
    /// When settings for tapes are given and `from` is not a tape.
    pub(crate) fn origin(
        &self,
        from: &Path,
        cancel: &Cancel,
        changer: SharedChanger,
    ) -> Result<Origin, Failure> {
        let Some(drive) = device::tape::find(from) else {
            let option = match (&self.set, self.file) {
                (Some(_), _) => "--set",
                (_, Some(_)) => "--file",
                _ if !self.without_volumes.is_empty() => "--without-volume",
                _ if self.eject => "--eject",
                _ => return Ok(from.into()),
            };
            return Err(no_tape(option, from, "name a tape drive: /dev/nst0 is the first"));
        };
        let set = match &self.set {
            None => SetChoice::Last,
            Some(SetWanted::Number(number)) => SetChoice::Number(*number),
            // A whole identity leads to the set on whatever volume it is.
            Some(SetWanted::Id(id)) => match whole_id(id) {
                Some(id) => SetChoice::Anywhere(id),
                None => SetChoice::Id(id.clone()),
            },
        };
        Ok(Origin::Tape(TapeOrigin {
            drive: Arc::new(drive),
            set,
            file_number: self.file,
            without_volumes: self.without_volumes.clone(),
            known: None,
            memory: tape_memory::of_this_user(Copies::All),
            motion: motion_of(from),
            changer: change::chosen(self.change_command.as_deref(), changer, cancel),
        }))
    }
}

/// How a virtual drive moves, as it is set; a real one is known by its generation, once it is open.
pub(crate) fn motion_of(drive: &Path) -> Option<Arc<TapeParameters>> {
    let (parameters, _) = VirtualDrive::parameters_of_tape(drive.to_str()?)?;
    Some(Arc::new(parameters))
}

/// The identity, where all of its digits are there.
fn whole_id(digits: &str) -> Option<[u8; 16]> {
    let is_whole = digits.len() == 32;
    let number = is_whole.then(|| u128::from_str_radix(digits, 16).ok()).flatten();
    number.map(u128::to_be_bytes)
}

/// The failure of an option for tapes with a source that is not a tape, or does not exist.
pub(crate) fn no_tape(option: &str, from: &Path, hint: &str) -> Failure {
    match std::fs::metadata(from) {
        Err(source) if from != Path::new("-") => {
            Failure::new(&SourceError::Open { path: from.to_owned(), source }, None)
        }
        _ => Failure::of(format!("{option}: {} is not a tape drive", from.display()), Some(hint)),
    }
}

/// Default memory of the rings, except for tapes.
const RING_BYTES: usize = 64 << 20;

/// Memory for the rings: as requested, else a default that is larger for a tape.
pub(crate) fn ring_bytes(archive: &ArchiveSettings, from: &Origin) -> usize {
    match (archive.ring_bytes, from) {
        (Some(size), _) => bytes(size),
        (None, Origin::Path(_)) => RING_BYTES,
        (None, Origin::Tape(_)) => tapeset::ring_bytes(RING_BYTES),
    }
}

/// What was read of a tape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeSourceAnswer {
    pub device: String,
    /// Id of the set; null on a tape of another program.
    pub set: Option<String>,
    /// Number of the file, for other tapes or if requested.
    pub file: Option<u32>,
    /// Bytes of a full block; 0 when unknown.
    pub block_bytes: u64,
    /// Blocks that were read, labels and indexes included.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// Blocks that cannot be read.
    pub lost_blocks: u64,
    /// Reads that failed at first.
    pub retries: u64,
    /// How often the ring was full, so that the drive had to wait, or to stop where its own buffer
    /// was full, too.
    pub ring_was_full: u64,
    /// Volumes of the set that were read from, in order.
    pub volumes: Vec<u32>,
    pub volume_changes: u32,
    /// Time in reads, as the kernel counts it for this drive.
    pub read_seconds: Option<f64>,
    /// Time until the first byte: the tape is wound, and labels and the index are read.
    pub ready_seconds: f64,
    /// Part of `ready_seconds` for reading; the rest is winding.
    pub label_seconds: f64,
    /// How often the tape was sent to another place.
    pub locates: u64,
    /// Winding time after that.
    pub winding_seconds: f64,
    /// Time for changes of volume.
    pub change_seconds: f64,
    /// What became of the drive where the ring was full; null where it never was, or the drive is
    /// not known.
    pub waited: Option<WaitedAnswer>,
}

impl From<&TapeReading> for TapeSourceAnswer {
    fn from(tape: &TapeReading) -> TapeSourceAnswer {
        TapeSourceAnswer {
            device: tape.device.clone(),
            set: tape.set.clone(),
            file: tape.file_number,
            block_bytes: tape.block_bytes,
            blocks: tape.blocks,
            bytes: tape.bytes,
            lost_blocks: tape.lost_blocks,
            retries: tape.retries,
            ring_was_full: tape.ring_was_full,
            volumes: tape.volumes.clone(),
            volume_changes: tape.changes,
            read_seconds: tape.read_seconds,
            ready_seconds: tape.ready_seconds,
            label_seconds: tape.label_seconds,
            locates: tape.winds,
            winding_seconds: tape.winding_seconds,
            change_seconds: tape.change_seconds,
            waited: None,
        }
    }
}

/// Names the newest set that has its end, where the last set of a tape was read and has none:
/// whoever reads it would take the tape for lost. To be called before the medium is ejected.
pub(crate) fn tell_complete_set(
    settings: &TapeSourceSettings,
    tape: Option<&TapeOrigin>,
    read: Option<&TapeReading>,
    monitor: &RunMonitor<'_>,
    cancel: &Cancel,
) {
    let is_cut_off = monitor.harmed(Harm::CutOff) > 0;
    let Some(tape) = tape.filter(|_| is_cut_off && settings.names_no_set()) else { return };
    let Ok(sets) = tapeset::labelled_sets(tape, cancel) else { return };
    // Another tape may be in the drive by now.
    let is_last = sets.last().is_some_and(|last| {
        read.and_then(|read| read.set.as_ref()).is_none_or(|set| *set == last.id)
    });
    let Some(text) = complete_set(&sets).filter(|_| is_last) else { return };
    monitor.notice(Notice { level: Level::Notable, object: Vec::new(), text });
}

fn complete_set(sets: &[SetOnVolume]) -> Option<String> {
    let (last, earlier) = sets.split_last()?;
    if last.has_index {
        return None;
    }
    let complete = earlier.iter().rev().find(|set| set.has_index)?;
    Some(format!(
        "set {}, the last one, has no end on this tape: the run that wrote it did not complete, or \
         continued on another one. Set {number} has its end: add --set {number}",
        last.number,
        number = complete.number
    ))
}

/// A hint that names another set of the volume with the paths that the last set does not have.
pub(crate) fn in_another_set(
    tape: &TapeOrigin,
    missing: &[NotFound],
    cancel: &Cancel,
) -> Option<String> {
    if tape.file_number.is_some() {
        return None;
    }
    let mut selection = Selection::new(missing.iter().map(|missing| missing.path.clone()));
    let mut from_newest = Vec::new();
    let mut look = |set: usize, path: &[u8]| {
        if from_newest.last() != Some(&set) && selection.selects(path) {
            from_newest.push(set);
        }
    };
    let sets = tapeset::look_through_sets(tape, cancel, &mut look).ok()?;
    let mut holds: Vec<u32> = from_newest
        .iter()
        .filter_map(|set| sets.iter().rev().nth(*set))
        .map(|set| set.number)
        .collect();
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
