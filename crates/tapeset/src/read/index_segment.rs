//! Copies the index of a set from tape into an unnamed file, where it is used like any index.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use archive::index::{ExtentRecord, IndexReader, IndexSection};
use archive::label::{LABEL_BYTES_MAX, LabelKind};
use archive::stream::ArchiveOffset;

use super::blocks::Met;
use super::drive::{Brought, LoadedDrive, WantedVolume, Which};
use super::failure::TapeReadFailure;
use super::label_reader::read_block;
use super::walk::LabelledFile;
use crate::claims::extents_can_be;
use catalogue::IndexFile;
use machine::unnamed_file;

/// Most parts of a set: 80 bytes each, 20 MiB.
const EXTENTS_MAX: u64 = 1 << 18;
/// Largest index that is kept.
const INDEX_BYTES_MAX: u64 = 1 << 40;

/// The index of a set on tape.
#[derive(Clone, Debug)]
pub struct TapeIndex {
    /// The index, as of any archive.
    pub index: IndexFile,
    /// Locations of the data segments; empty if that section cannot be read.
    pub extents: Arc<Vec<ExtentRecord>>,
    /// The index as stored on tape.
    pub file: Arc<OwnedFd>,
    /// Its length, with the zeros behind it.
    pub length_bytes: u64,
    /// Where the stream that was read before the index begins in the archive; later than 0 if the
    /// first volumes were not available.
    pub stream_begins_bytes: ArchiveOffset,
}

impl TapeIndex {
    /// The index of a set, in a copy of it that was kept in a file; `None` if it is no whole one,
    /// or does not say where the set is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of_copy(copy: File) -> io::Result<Option<TapeIndex>> {
        let length_bytes = copy.metadata()?.len();
        let file = Arc::new(OwnedFd::from(copy));
        let Some(index) = IndexFile::alone(Arc::clone(&file), length_bytes) else {
            return Ok(None);
        };
        let named = index.trailer.named.map(|named| named.set);
        // A set outside of chains is named where its parts are.
        let Some(set) = named.or_else(|| first_of_extents(&index)) else { return Ok(None) };
        let extents = Arc::new(read_extents(&index, set, length_bytes));
        let stream_begins_bytes = ArchiveOffset::START;
        let index = TapeIndex { index, extents, file, length_bytes, stream_begins_bytes };
        Ok((!index.extents.is_empty()).then_some(index))
    }

    /// Id of the set; `None` if its locations are not known.
    pub fn set(&self) -> Option<[u8; 16]> {
        self.extents.first().map(|extent| extent.set)
    }

    /// The media of the set: the number of each volume, and the id of its medium. One that has
    /// nothing but the index is not among them.
    pub fn media(&self) -> Vec<(u32, [u8; 16])> {
        let mut media: Vec<_> =
            self.extents.iter().map(|extent| (extent.volume, extent.medium)).collect();
        media.dedup();
        media
    }
}

/// Whether a set may continue on another volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Following {
    /// Nothing follows on this volume.
    Nothing,
    /// Another set follows on this volume.
    AnotherSet,
}

/// The index that begins at `at`: a copy that is at hand, or as it is read from the tape, which is
/// kept then. `None` if too much of it is missing.
pub(super) fn index_at(
    drive: &mut LoadedDrive,
    at: LabelledFile,
    following: Following,
) -> Result<Option<TapeIndex>, TapeReadFailure> {
    if let Some(copy) = drive.copy_of_index(&at.label) {
        return Ok(Some(copy));
    }
    let index = read_index(drive, at, following)?;
    if let Some(index) = &index {
        drive.keep_index(at.label.set, index);
    }
    Ok(index)
}

/// Reads the index that begins at `at`, over several volumes if needed. `None` if too much of it is
/// missing.
fn read_index(
    drive: &mut LoadedDrive,
    at: LabelledFile,
    following: Following,
) -> Result<Option<TapeIndex>, TapeReadFailure> {
    let file = unnamed_file().map_err(TapeReadFailure::Keep)?;
    let mut length_bytes = 0;
    let mut part = at;
    loop {
        length_bytes = read_part(drive, part, &file, length_bytes)?;
        let owned = Arc::new(OwnedFd::from(file.try_clone().map_err(TapeReadFailure::Keep)?));
        if let Some(index) = IndexFile::alone(Arc::clone(&owned), length_bytes) {
            let extents = Arc::new(read_extents(&index, at.label.set, length_bytes));
            let stream_begins_bytes = ArchiveOffset::START;
            let file = owned;
            let index = TapeIndex { index, extents, file, length_bytes, stream_begins_bytes };
            return Ok(Some(index));
        }
        if following == Following::AnotherSet {
            return Ok(None);
        }
        match next_part(drive, part)? {
            Some(next) => part = next,
            None => return Ok(None),
        }
    }
}

/// Reads one part to its end; returns the length of the index so far.
fn read_part(
    drive: &mut LoadedDrive,
    part: LabelledFile,
    file: &File,
    length_before: u64,
) -> Result<u64, TapeReadFailure> {
    let cancel = drive.cancel.clone();
    let blocks = drive.blocks()?;
    let label = part.label;
    let block_bytes = label.block_bytes as usize;
    let mut buffer = vec![0; block_bytes];
    // From the first block that holds more than the label.
    let first = u64::from(label.length_bytes / label.block_bytes);
    blocks.go_to(part.spot.plus(first))?;
    let mut skip_bytes = label.length_bytes as usize % block_bytes;
    // The stored stream of an index is the file.
    let mut at = label.stream_bytes.bytes();
    // Parts of an index follow each other; a label that claims a gap must not enlarge the file.
    if at > length_before + LABEL_BYTES_MAX as u64 {
        return Ok(length_before);
    }
    let mut length_bytes = length_before;
    let mut lost = None;
    loop {
        match read_block(blocks, &mut buffer, &cancel)? {
            Met::Block(bytes) => {
                let content = &buffer[skip_bytes.min(bytes)..bytes];
                file.write_all_at(content, at).map_err(TapeReadFailure::Keep)?;
            }
            // A hole reads as zeros; the checksums of the index show the damage.
            Met::Lost { why } => lost = Some(why),
            Met::Filemark | Met::EndOfData | Met::LargerBlock => break,
        }
        at += (block_bytes - skip_bytes) as u64;
        skip_bytes = 0;
        length_bytes = length_bytes.max(at);
        if length_bytes > INDEX_BYTES_MAX {
            break;
        }
    }
    file.set_len(length_bytes).map_err(TapeReadFailure::Keep)?;
    // Reported even for the padding of the last block, where it does no harm.
    if let Some(why) = lost {
        drive.tell(format!("a block of the index cannot be read: {why}"));
    }
    Ok(length_bytes)
}

/// The part of an index on the next volume, if that is provided.
fn next_part(
    drive: &mut LoadedDrive,
    part: LabelledFile,
) -> Result<Option<LabelledFile>, TapeReadFailure> {
    let (set, volume) = (part.label.set, part.label.volume + 1);
    match drive.bring(WantedVolume { set, volume, medium: None, which: Which::Exactly }) {
        Ok(Brought::Here) => {}
        Ok(Brought::Without) | Err(TapeReadFailure::VolumeMissing { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    let first = drive.find_set(set)?.map(|here| here.first);
    Ok(first.filter(|file| file.label.kind == LabelKind::Index))
}

/// The set of the first location.
fn first_of_extents(index: &IndexFile) -> Option<[u8; 16]> {
    let section = index.section(IndexSection::Extents).ok()?;
    IndexReader::<ExtentRecord, _>::new(section).next()?.ok().map(|extent| extent.set)
}

fn read_extents(index: &IndexFile, set: [u8; 16], index_bytes: u64) -> Vec<ExtentRecord> {
    let place = index.trailer.section(IndexSection::Extents);
    if place.summary.records > EXTENTS_MAX {
        return Vec::new();
    }
    let Ok(section) = index.section(IndexSection::Extents) else { return Vec::new() };
    let extents: Result<Vec<ExtentRecord>, _> = IndexReader::new(section).collect();
    let can_be = |extents: &Vec<_>| extents_can_be(extents, set, &index.trailer, index_bytes);
    extents.ok().filter(can_be).unwrap_or_default()
}
