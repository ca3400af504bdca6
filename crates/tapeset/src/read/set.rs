//! Chooses a set and gets its index.
//!
//! The search begins on the volume in the drive. The index of a set is the last thing on its last
//! volume. A run that needs the contents first (`list`, a restore of a few paths) asks for that
//! volume. A run that reads everything (`restore`, `verify`) begins at the first volume and meets
//! the index at the end, since changes of volume take longest.

use archive::chunk::Compression;
use archive::label::{Label, LabelKind, hex};

use super::drive::{Brought, LoadedDrive, WantedVolume, Which};
use super::failure::TapeReadFailure;
use super::index_segment::{Following, TapeIndex, index_at};
use super::origin::SetChoice;
use super::walk::{LabelledFile, SetHere};

/// Most volumes that are asked for in search of an index.
const VOLUMES_MAX: u32 = 1000;

/// What a set is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All of it: the index is used if it is at hand.
    Everything,
    /// The contents of its index: other volumes are asked for.
    Index,
}

/// A set that was found.
pub(crate) struct OpenSet {
    pub(super) drive: LoadedDrive,
    pub id: [u8; 16],
    /// One of its labels: block size and compression are the same in all.
    pub(super) label: Label,
    /// Its part on the volume where it was found, unless the index has the locations.
    pub(super) here: Option<SetHere>,
    pub index: Option<TapeIndex>,
}

impl OpenSet {
    /// Bytes of every block of the set.
    pub fn block_bytes(&self) -> usize {
        self.label.block_bytes as usize
    }

    /// Compression of its data.
    pub fn compression(&self) -> Compression {
        self.label.compression
    }

    /// Whether the index has all locations.
    pub fn knows_its_parts(&self) -> bool {
        self.index.as_ref().is_some_and(|index| !index.extents.is_empty())
    }
}

/// Opens a set on the volume in the drive, which begins with a Takeup label.
pub(super) fn open_set(
    mut drive: LoadedDrive,
    choice: &SetChoice,
    need: Need,
) -> Result<OpenSet, TapeReadFailure> {
    let (last, here) = choose(&mut drive, choice)?;
    open_found(drive, last, here, need)
}

/// Opens a set whose last file on the volume in the drive is `last`.
pub(super) fn open_found(
    drive: LoadedDrive,
    last: LabelledFile,
    here: Option<SetHere>,
    need: Need,
) -> Result<OpenSet, TapeReadFailure> {
    let mut set = OpenSet { drive, id: last.label.set, label: last.label, here, index: None };
    // What a set has that counts on others is of use with its index alone.
    let counts_on_others = last.label.chain.is_some_and(|chain| chain.level > 0);
    if last.begins_index() {
        set.index = index_at(&mut set.drive, last, following(set.here))?;
    } else {
        set.index = set.drive.copy_of_index(&last.label);
        if set.index.is_none() && (need == Need::Index || counts_on_others) {
            set.index = search_index(&mut set.drive, set.here)?;
        }
    }
    if !set.knows_its_parts() && set.here.is_none() {
        set.here = set.drive.find_set(set.id)?;
    }
    Ok(set)
}

/// The last file of the chosen set on this volume; and its other files here, unless the index has
/// them.
fn choose(
    drive: &mut LoadedDrive,
    choice: &SetChoice,
) -> Result<(LabelledFile, Option<SetHere>), TapeReadFailure> {
    let device = drive.device();
    if let SetChoice::Last | SetChoice::Anywhere(_) = choice {
        return drive.last_set()?.ok_or(TapeReadFailure::NoSets { device });
    }
    let mut sets = drive.sets(|_| false)?;
    sets.reverse();
    let number_of_sets = sets.len();
    let missing = |wanted: String| TapeReadFailure::NoSuchSet {
        device: device.clone(),
        wanted,
        sets: match number_of_sets {
            0 => "none".to_owned(),
            1 => "one".to_owned(),
            more => format!("{more}"),
        },
    };
    let here = match choice {
        SetChoice::Last | SetChoice::Anywhere(_) => {
            sets.pop().ok_or_else(|| missing("at all".to_owned()))?
        }
        SetChoice::Number(number) => {
            let index = (*number as usize).checked_sub(1);
            let here = index.and_then(|index| sets.get(index)).copied();
            here.ok_or_else(|| missing(number.to_string()))?
        }
        SetChoice::Id(prefix) => {
            let is_it = |here: &&SetHere| {
                hex(&here.first.label.set).starts_with(&prefix.to_ascii_lowercase())
            };
            let mut matching = sets.iter().filter(is_it);
            let here = matching.next().copied().ok_or_else(|| missing(prefix.clone()))?;
            if matching.next().is_some() {
                let (device, wanted) = (device.clone(), prefix.clone());
                return Err(TapeReadFailure::AmbiguousSet { device, wanted });
            }
            here
        }
    };
    Ok((here.last, Some(here)))
}

fn following(here: Option<SetHere>) -> Following {
    if here.is_some_and(|here| here.followed) { Following::AnotherSet } else { Following::Nothing }
}

/// Looks for the index on other volumes, starting from the volume in the drive. `None` if no volume
/// with it is provided.
fn search_index(
    drive: &mut LoadedDrive,
    mut here: Option<SetHere>,
) -> Result<Option<TapeIndex>, TapeReadFailure> {
    // Unavailable volumes after the last one that was found.
    let mut without = 0;
    for _ in 0..VOLUMES_MAX {
        let Some(found) = here else { return Ok(None) };
        if found.last.begins_index() {
            return index_at(drive, found.last, following(here));
        }
        let label = found.last.label;
        let (volume, which) = match label.kind {
            // The index began on the previous volume.
            LabelKind::Index => (label.volume.saturating_sub(1), Which::Exactly),
            LabelKind::Data if found.followed => return Ok(None),
            LabelKind::Data => (label.volume + 1 + without, Which::OrLater),
        };
        match drive.bring(WantedVolume { set: label.set, volume, medium: None, which }) {
            Ok(Brought::Here) => {
                here = drive.find_set(label.set)?;
                without = 0;
            }
            // Then it is incomplete, and cannot be read.
            Ok(Brought::Without) if which == Which::Exactly => return Ok(None),
            Ok(Brought::Without) => without += 1,
            Err(TapeReadFailure::VolumeMissing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
