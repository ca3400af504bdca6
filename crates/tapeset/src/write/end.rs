//! Finds the end of the last set of a medium, and checks it.
//!
//! The tape may go to the end in any way. Then a label near the end is read, which proves that the
//! medium is the same, and from there the tape goes forward over counted filemarks until nothing is
//! read; over a short file by reading it, since a way over filemarks stops the tape. A command that
//! fails on this last way ends it, see [`super::begin`].

use archive::label::Label;
use device::tape::{Filemark, Tape, TapeError, TapePlace, TapeRead};

use super::begin::{Behind, First, look, look_into};
use super::error::TapeSetError;
use super::left::SetsOfMedium;
use super::unfit::{Numbers, Unfit};
use super::volume::Volume;
use crate::block::FIRST_BUFFER_BYTES;
use crate::change::Refused;
use crate::directory::{self, Directory};
use crate::read::{LabelledFile, Spot};

/// Files to check from the end for a label; the first file of the medium has one anyway.
const FILES_LOOKED_AT_MAX: usize = 16;

/// Most bytes of the last file that are read to its end: less than half a second at the speed of
/// LTO-6, where stopping and going on takes two seconds.
const READ_ON_BYTES_MAX: u64 = 64 << 20;

/// A medium with sets.
pub(super) struct Medium {
    pub(super) numbers: Numbers,
    /// Id of the medium.
    pub(super) id: [u8; 16],
    pub(super) block_bytes_max: usize,
}

/// A label near the end; the tape is in its file.
struct Landmark {
    file: u32,
    label: Label,
    /// Whether it is the last label, or just one that is known.
    is_last: bool,
    /// Number of the object where its file begins, if the drive knows it.
    object: Option<u64>,
    /// What it says of the sets on the medium.
    directory: Option<Directory>,
}

impl Landmark {
    /// Whether its file takes less to read than a stop of the tape; `end` is the object behind it.
    fn is_near(&self, end: Option<u64>) -> bool {
        let objects = end.zip(self.object).and_then(|(end, begin)| end.checked_sub(begin));
        let bytes = objects.map(|objects| objects.saturating_mul(self.label.block_bytes.into()));
        bytes.is_some_and(|bytes| bytes <= READ_ON_BYTES_MAX)
    }
}

/// Goes to the end of the medium's data, which is behind a filemark then.
pub(super) fn behind_the_last_set(
    mut tape: Tape,
    medium: &Medium,
    number: u32,
) -> Result<Volume, Unfit> {
    let mut files = tape.to_end_of_data()?;
    // Every filemark is an object: the driver counts too many if the drive reports no residual.
    let end = medium.numbers.ask(&mut tape)?;
    if end.is_some_and(|objects| u64::from(files) > objects) {
        return Err(exchanged(&tape));
    }
    let Some(landmark) = find_label(&mut tape, medium, files)? else {
        return Err(exchanged(&tape));
    };
    let mut last_label = landmark.is_last.then_some(landmark.file);
    if landmark.file < files {
        if landmark.file + 1 == files && landmark.is_near(end) {
            read_on(&mut tape, &landmark.label)?;
        } else {
            let forward = i32::try_from(files - landmark.file).unwrap_or(i32::MAX);
            tape.space_filemarks(forward)?;
        }
        match look(&mut tape, medium.block_bytes_max)? {
            (First::Blank, _) => {
                // Behind a filemark the driver reports every blank check of a read as the end.
                if medium.numbers == Numbers::Told && !tape.nothing_follows()? {
                    return Err(exchanged(&tape));
                }
                let (id, numbers) = (medium.id, medium.numbers);
                let behind = Volume::behind(tape, id, number, files, last_label, numbers);
                let mut volume = behind?;
                volume.name = landmark.label.medium_name;
                volume.sets = SetsOfMedium::behind(landmark.directory.unwrap_or_default());
                return Ok(volume);
            }
            // More files than were counted: the count was not of this whole medium.
            (_, Behind::Filemark) => return Err(exchanged(&tape)),
            (First::Ours(label), _) if label.medium == medium.id => {
                last_label = Some(files);
            }
            (First::Ours(_), _) => return Err(exchanged(&tape)),
            (First::Later(version), _) => return Err(later(version)),
            (First::Foreign | First::TestArea, _) => {}
        }
    }
    // The machine stopped during the previous run: close its last file now.
    over_open_file(&mut tape, medium)?;
    tape.write_filemark(Filemark::Synchronising)?;
    files += 1;
    let (id, numbers) = (medium.id, medium.numbers);
    let mut volume = Volume::behind(tape, id, number, files, last_label, numbers)?;
    volume.name = landmark.label.medium_name;
    Ok(volume)
}

/// Reads the rest of the file with this label, and its filemark.
fn read_on(tape: &mut Tape, label: &Label) -> Result<(), Unfit> {
    let mut buffer = vec![0; label.block_bytes as usize];
    loop {
        match tape.read(&mut buffer) {
            Ok(TapeRead::Block(_)) => {}
            Ok(TapeRead::Filemark) => return Ok(()),
            // There was a filemark when the tape came from the end.
            Ok(TapeRead::LargerBlock | TapeRead::EndOfData) => return Err(exchanged(tape)),
            // The medium is to blame, and not what became of it.
            Err(error) if error.said.is_some_and(|said| said.is_unreadable()) => {
                return Ok(tape.space_filemarks(1)?);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nothing is written behind an unreadable set: it would not be found from there.
fn later(version: u32) -> Unfit {
    Unfit::Refused(Refused::LaterVersion { version })
}

fn exchanged(tape: &Tape) -> Unfit {
    Unfit::Failed(TapeSetError::Exchanged { device: tape.name().to_owned() })
}

/// Looks for a label of this medium, from the last file backwards. `None` if even the one at its
/// beginning is missing.
fn find_label(tape: &mut Tape, medium: &Medium, files: u32) -> Result<Option<Landmark>, Unfit> {
    let last = files.saturating_sub(1);
    let near = (0..=last).rev().take(FILES_LOOKED_AT_MAX).map(|file| (file, true));
    for (file, is_last) in near.chain([(0, false)]) {
        to_file(tape, medium.numbers, file, files)?;
        let absolute = medium.numbers.ask(tape)?;
        let mut bytes = Vec::new();
        match look_into(tape, medium.block_bytes_max, &mut bytes)? {
            (First::Ours(label), _) if label.medium == medium.id => {
                let spot = Spot { file, block: 0, absolute };
                let found = LabelledFile { spot, label };
                let directory = if file == last { directory_of(tape, found, bytes)? } else { None };
                let object = absolute;
                return Ok(Some(Landmark { file, label, is_last, object, directory }));
            }
            (First::Later(version), _) => return Err(later(version)),
            _ => {}
        }
        if file > 0 {
            tape.to_end_of_data()?;
        }
    }
    Ok(None)
}

/// What the label says of the sets on the medium; `label_bytes` is the beginning of it, behind
/// which the tape stands.
fn directory_of(
    tape: &mut Tape,
    file: LabelledFile,
    mut label_bytes: Vec<u8>,
) -> Result<Option<Directory>, TapeError> {
    directory::read_behind(file, &mut label_bytes, |block| match tape.read(block) {
        Ok(TapeRead::Block(bytes)) => Ok(Some(bytes)),
        Ok(_) => Ok(None),
        // The medium is to blame, and not what became of it.
        Err(error) if error.said.is_some_and(|said| said.is_unreadable()) => Ok(None),
        Err(error) => Err(error),
    })
}

/// Skips the blocks of a file that ends with the data.
fn over_open_file(tape: &mut Tape, medium: &Medium) -> Result<(), Unfit> {
    if medium.numbers == Numbers::Told {
        return Ok(tape.over_open_file()?);
    }
    // Drives that report less do not tell this end from other errors while they space (tgt).
    let mut buffer = vec![0; FIRST_BUFFER_BYTES.min(medium.block_bytes_max)];
    loop {
        match tape.read(&mut buffer)? {
            TapeRead::Block(_) if tape.was_past_the_end(&mut buffer)? => return Ok(()),
            TapeRead::Block(_) => {}
            TapeRead::LargerBlock => tape.space_blocks(1)?,
            TapeRead::Filemark => return Err(exchanged(tape)),
            TapeRead::EndOfData => return Ok(()),
        }
    }
}

/// Goes to the beginning of a file, from the end of data behind `files` filemarks: backwards if the
/// drive knows its position, otherwise from the beginning (tgt's drive goes back too far).
fn to_file(tape: &mut Tape, numbers: Numbers, file: u32, files: u32) -> Result<(), TapeError> {
    let back = i32::try_from(files - file + 1).unwrap_or(i32::MAX);
    if file == 0 || numbers == Numbers::Unknown {
        return tape.go_to(TapePlace { file_number: Some(file), block_in_file: None }, None);
    }
    tape.space_filemarks(-back)?;
    tape.space_filemarks(1)
}
