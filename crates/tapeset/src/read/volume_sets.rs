//! What is on the volume in the drive, set by set: for lists of sets, and copies of their indexes.

use archive::index::RecordKind;
use archive::label::{LabelledSet, MediumName, hex};
use catalogue::{IndexFile, Sources};
use flow::cancel::Cancel;

use super::beginning::{Beginning, Search};
use super::drive::LoadedDrive;
use super::failure::TapeReadFailure;
use super::index_segment::{Following, TapeIndex, index_at};
use super::origin::TapeOrigin;
use super::sets_here::GoOn;
use super::walk::SetHere;

/// A set of a volume, as `list --sets` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOnVolume {
    /// Its number on the volume, from 1.
    pub number: u32,
    pub id: String,
    /// When its run began, in seconds since 1970.
    pub time_seconds: u64,
    /// The machine that wrote it, if the label has it.
    pub host: Option<String>,
    /// Its job, level and parent, of a set of a chain.
    pub chain: Option<LabelledSet>,
    /// Number of the volume in the set.
    pub volume: u32,
    /// Id of the medium.
    pub medium: [u8; 16],
    /// What the medium is called.
    pub medium_name: Option<MediumName>,
    /// Numbers of the first and the last segment with a part on this volume, index included.
    pub segments: (u32, u32),
    /// Whether its index is here.
    pub has_index: bool,
    /// Whether another set follows it on this volume: without an index it is incomplete then.
    pub followed: bool,
    /// Compression in the form of the option.
    pub compression: String,
    pub block_bytes: u32,
    /// Number of its first file on the volume.
    pub first_file: u32,
    /// Its contents; `None` if its index is not on this volume, or cannot be read.
    pub contents: Option<SetContents>,
}

/// The contents of a set, from its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetContents {
    /// The sources as given, at most [`ROOTS_MAX`].
    pub roots: Vec<Vec<u8>>,
    /// Number of all sources.
    pub roots_total: u64,
    /// Objects of all kinds.
    pub members: u64,
    /// Files among them.
    pub files: u64,
    /// Bytes of their contents, without holes.
    pub source_bytes: u64,
    /// Bytes of the archive before compression, with what pads its segments.
    pub archive_bytes: u64,
    /// Why it ended early, if it did: its medium was full, and there was no other.
    pub ended_early: Option<String>,
}

/// Most sources of a set that are listed.
pub const ROOTS_MAX: usize = 8;

impl SetContents {
    /// Counts the members of an index, and shows each path to `look`.
    fn of(index: &IndexFile, look: &mut dyn FnMut(&[u8])) -> Option<SetContents> {
        let archive_bytes = index.trailer.archive_bytes;
        let ended_early = index.of_the_run().pop();
        let mut contents = SetContents { archive_bytes, ended_early, ..SetContents::default() };
        let mut sources = Sources::default();
        for record in index.files().ok()? {
            let record = record.ok()?;
            look(&record.path);
            contents.members += 1;
            if let RecordKind::File { stored_bytes, .. } = record.kind {
                contents.files += 1;
                contents.source_bytes += stored_bytes;
            }
            if sources.begins_with(&record.path) {
                contents.roots_total += 1;
                if contents.roots.len() < ROOTS_MAX {
                    contents.roots.push(record.path);
                }
            }
        }
        Some(contents)
    }
}

/// Whether the index of a set is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    No,
    Yes,
    /// And none of an older set.
    YesAndNoMore,
}

/// Copies of indexes of sets on the volume in the drive, the newest set's first. `choose` is asked
/// for each set, which has neither number nor contents then. Sets whose index is on another volume
/// are passed over. A volume without sets has none.
///
/// # Errors
/// When the drive cannot be read.
pub fn copy_indexes(
    origin: &TapeOrigin,
    cancel: &Cancel,
    choose: &mut dyn FnMut(&SetOnVolume) -> Wanted,
) -> Result<Vec<(SetOnVolume, TapeIndex)>, TapeReadFailure> {
    let mut drive = LoadedDrive::new(origin.clone(), cancel.clone());
    if !drive.recognise()? {
        let Beginning::Ours { .. } = drive.beginning(Search::LastFiles)? else {
            return Ok(Vec::new());
        };
    }
    let mut copies = Vec::new();
    drive.look_through(|drive, here| {
        if !here.last.begins_index() {
            return Ok(GoOn::Yes);
        }
        cancel.check()?;
        let set = on_volume((here, 0));
        let choice = choose(&set);
        if choice != Wanted::No {
            let index = index_at(drive, here.last, Following::AnotherSet)?;
            copies.extend(index.map(|index| (set, index)));
        }
        Ok(if choice == Wanted::YesAndNoMore { GoOn::No } else { GoOn::Yes })
    })?;
    Ok(copies)
}

/// The sets of the volume in the drive, oldest first, as their labels have them: without contents.
///
/// # Errors
/// When the drive cannot be read, or the volume holds no set.
pub fn labelled_sets(
    origin: &TapeOrigin,
    cancel: &Cancel,
) -> Result<Vec<SetOnVolume>, TapeReadFailure> {
    let mut drive = with_sets(origin, cancel)?;
    let mut sets = drive.sets(|_| false)?;
    sets.reverse();
    Ok(sets.iter().zip(1..).map(on_volume).collect())
}

/// A drive whose medium holds sets.
fn with_sets(origin: &TapeOrigin, cancel: &Cancel) -> Result<LoadedDrive, TapeReadFailure> {
    let mut drive = LoadedDrive::new(origin.clone(), cancel.clone());
    if !drive.recognise()? {
        match drive.beginning(Search::LastFiles)? {
            Beginning::Ours { .. } => {}
            Beginning::Blank => return Err(TapeReadFailure::Blank { device: drive.device() }),
            Beginning::Foreign { .. } => {
                return Err(TapeReadFailure::NoSets { device: drive.device() });
            }
        }
    }
    Ok(drive)
}

/// The sets of the volume in the drive, oldest first.
///
/// # Errors
/// When the drive cannot be read, or the volume holds no set.
pub fn sets_on_volume(
    origin: &TapeOrigin,
    cancel: &Cancel,
) -> Result<Vec<SetOnVolume>, TapeReadFailure> {
    look_through_sets(origin, cancel, &mut |_, _| {})
}

/// Like [`sets_on_volume`], and shows each path of each set to `look`, with the number of the set
/// from the newest, which is 0: how many there are is known at the end.
///
/// # Errors
/// See [`sets_on_volume`].
pub fn look_through_sets(
    origin: &TapeOrigin,
    cancel: &Cancel,
    look: &mut dyn FnMut(usize, &[u8]),
) -> Result<Vec<SetOnVolume>, TapeReadFailure> {
    let mut drive = with_sets(origin, cancel)?;
    let mut contents = Vec::new();
    let mut sets =
        drive.look_through(|drive, here| {
            cancel.check()?;
            let from_newest = contents.len();
            // Parts on other volumes are not asked for.
            let index = if here.last.begins_index() {
                index_at(drive, here.last, Following::AnotherSet)?
            } else {
                None
            };
            contents.push(index.and_then(|index| {
                SetContents::of(&index.index, &mut |path| look(from_newest, path))
            }));
            Ok(GoOn::Yes)
        })?;
    sets.reverse();
    let mut told: Vec<SetOnVolume> = sets.iter().zip(1..).map(on_volume).collect();
    for (set, contents) in told.iter_mut().rev().zip(contents) {
        set.contents = contents;
    }
    Ok(told)
}

fn on_volume((here, number): (&SetHere, u32)) -> SetOnVolume {
    SetOnVolume {
        number,
        id: hex(&here.first.label.set),
        time_seconds: here.first.label.time_seconds,
        host: here.first.label.host.map(|host| host.as_str().to_owned()),
        chain: here.first.label.chain,
        volume: here.first.label.volume,
        medium: here.first.label.medium,
        medium_name: here.first.label.medium_name,
        segments: (here.first.label.segment, here.last.label.segment),
        has_index: here.last.begins_index(),
        followed: here.followed,
        compression: here.first.label.compression.to_string(),
        block_bytes: here.first.label.block_bytes,
        first_file: here.first_file,
        contents: None,
    }
}
