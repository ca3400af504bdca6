//! What a medium holds, and where on it a set may begin.
//!
//! The first block decides: a blank medium is written from its beginning, one of ours behind what
//! it holds, and anything else is refused unless it is to be written over. Whatever the drive was
//! set to before is set again.

use archive::label::{Found, LABEL_BYTES_MAX, Label};
use device::tape::scsi::{BLOCK_LIMITS_BYTES, BlockLimits, READ_BLOCK_LIMITS};
use device::tape::{
    Access, BlockMode, Filemark, OpenError, Tape, TapeDrive, TapeError, TapeRead, TapeStatus,
};
use device::target::Existing;

use super::change::Refused;
use super::error::TapeSetError;
use super::options::{BlockLayout, DriveCompression};
use super::volume::Volume;

/// Sense key of a read where nothing was ever written, SPC-4 4.5.6.
const BLANK_CHECK: u8 = 8;
/// Files that are looked at from the end on for the label of the set before.
const FILES_LOOKED_AT_MAX: u32 = 16;
/// First buffer for a block of unknown size; it is doubled up to the largest there is, 2^24 - 1.
const READ_BYTES: usize = 1 << 20;
const READ_BYTES_MAX: usize = 1 << 24;

/// How volumes are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) block_bytes: usize,
    pub(crate) layout: BlockLayout,
    pub(crate) existing: Existing,
    pub(crate) drive_compression: Option<DriveCompression>,
}

/// Why a medium is not written to.
pub(super) enum Unfit {
    /// Another one may be better.
    Refused(Refused),
    /// No other one will help.
    Failed(TapeSetError),
}

impl From<TapeError> for Unfit {
    /// A medium that cannot be looked at may be the medium's fault.
    fn from(error: TapeError) -> Unfit {
        Unfit::Failed(error.into())
    }
}

/// A medium that the running set has been written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedMedium {
    pub(super) medium: [u8; 16],
    pub(super) volume: u32,
}

/// What the beginning of a medium says.
enum First {
    Blank,
    Ours(Label),
    Foreign,
}

/// Opens the drive and makes the medium in it ready to take the next block.
pub(super) fn open_volume(
    drive: &dyn TapeDrive,
    writing: &Writing,
    used: &[UsedMedium],
    number: u32,
) -> Result<Volume, Unfit> {
    let mut tape = drive.open(Access::Write).map_err(unfit_to_open)?;
    check_block_size(&mut tape, writing.block_bytes)?;
    switch_compression(&mut tape, writing.drive_compression)?;
    // Blocks of any size can be read in variable mode only; a drive without it has fixed blocks.
    if tape.set_block_mode(BlockMode::Variable).is_err() {
        tape.set_block_mode(block_mode(writing))?;
    }
    tape.rewind()?;
    let first = look(&mut tape)?;
    if let First::Ours(label) = &first
        && let Some(earlier) = used.iter().find(|used| used.medium == label.medium)
    {
        return Err(Unfit::Refused(Refused::SameSet { volume: earlier.volume }));
    }
    let mut volume = match (first, writing.existing) {
        (First::Foreign, Existing::Keep) => return Err(Unfit::Refused(Refused::Foreign)),
        (First::Ours(label), Existing::Keep) => behind_the_last_set(tape, &label, number)?,
        (First::Blank, _) | (_, Existing::Replace) => {
            tape.rewind()?;
            let medium = super::random_id().map_err(Unfit::Failed)?;
            Volume::at_beginning(tape, medium, number)
        }
    };
    volume.tape.set_block_mode(block_mode(writing))?;
    Ok(volume)
}

fn unfit_to_open(error: OpenError) -> Unfit {
    match error {
        OpenError::NoMedium { .. } | OpenError::NotReady { .. } => {
            Unfit::Refused(Refused::NoMedium)
        }
        OpenError::WriteProtected { .. } => Unfit::Refused(Refused::WriteProtected),
        error => Unfit::Failed(error.into()),
    }
}

fn block_mode(writing: &Writing) -> BlockMode {
    match writing.layout {
        BlockLayout::Variable => BlockMode::Variable,
        BlockLayout::Fixed => BlockMode::Fixed(writing.block_bytes as u32),
    }
}

/// Whether blocks of this size go through, before any is written.
fn check_block_size(tape: &mut Tape, block_bytes: usize) -> Result<(), Unfit> {
    let device = tape.name().to_owned();
    let too_large = |limit_bytes: u64, who| {
        let device = device.clone();
        Unfit::Failed(TapeSetError::BlockTooLarge { device, block_bytes, limit_bytes, who })
    };
    let mut answer = [0; BLOCK_LIMITS_BYTES];
    let answered = tape.raw().command(&READ_BLOCK_LIMITS, &mut answer).ok();
    let limits = answered.and_then(|bytes| BlockLimits::parse(&answer[..bytes]).ok());
    if let Some(limits) = limits {
        if limits.bytes_max > 0 && block_bytes as u64 > u64::from(limits.bytes_max) {
            return Err(too_large(limits.bytes_max.into(), "the drive"));
        }
        if (block_bytes as u64) < u64::from(limits.bytes_min) {
            let limit_bytes = limits.bytes_min.into();
            let error = TapeSetError::BlockTooSmall { device, block_bytes, limit_bytes };
            return Err(Unfit::Failed(error));
        }
    }
    match tape.raw().transfer_bytes_max() {
        Some(limit_bytes) if block_bytes as u64 > limit_bytes => {
            Err(too_large(limit_bytes, "the host adapter"))
        }
        _ if block_bytes >= READ_BYTES_MAX => Err(too_large(READ_BYTES_MAX as u64 - 1, "SCSI")),
        _ => Ok(()),
    }
}

fn switch_compression(tape: &mut Tape, wanted: Option<DriveCompression>) -> Result<(), Unfit> {
    let _ = (tape, wanted);
    Ok(())
}

/// Reads the label at the position of the tape.
fn look(tape: &mut Tape) -> Result<First, TapeError> {
    let mut start = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match tape.read(&mut buffer) {
            Ok(TapeRead::Block(bytes)) => start.extend_from_slice(&buffer[..bytes]),
            Ok(TapeRead::LargerBlock) if buffer.len() < READ_BYTES_MAX => {
                buffer.resize(2 * buffer.len(), 0);
                continue;
            }
            Ok(TapeRead::LargerBlock) => return Ok(First::Foreign),
            Ok(TapeRead::EndOfData) if start.is_empty() => return Ok(First::Blank),
            Ok(TapeRead::EndOfData | TapeRead::Filemark) => return Ok(First::Foreign),
            Err(error) if start.is_empty() && is_blank(tape, &error) => return Ok(First::Blank),
            Err(error) => return Err(error),
        }
        match Label::find(&start) {
            Ok(Found::Label(label)) => return Ok(First::Ours(label)),
            Ok(Found::NeedMore { prefix_bytes }) if prefix_bytes <= LABEL_BYTES_MAX => {}
            // A label that does not hold together is not ours to write behind.
            Ok(Found::NeedMore { .. } | Found::Foreign) | Err(_) => return Ok(First::Foreign),
        }
    }
}

fn is_blank(tape: &mut Tape, error: &TapeError) -> bool {
    error.said.is_some_and(|sense| sense.key == BLANK_CHECK)
        || tape.status().is_ok_and(|status| status.at_end_of_data)
}

/// Goes to the end of what the medium holds, which is behind a filemark.
fn behind_the_last_set(mut tape: Tape, first: &Label, number: u32) -> Result<Volume, Unfit> {
    let mut files = count_files(&mut tape)?;
    let closed = files > 0 && is_behind_filemark(&mut tape)?;
    // A file that lacks its filemark counts as one.
    let last = if closed { files - 1 } else { files };
    let previous = last_label(&mut tape, last)?;
    tape.to_end_of_data()?;
    if !closed {
        // The run before died with the machine: what it wrote last is closed now.
        tape.write_filemark(Filemark::Synchronising)?;
        files += 1;
    }
    Ok(Volume::behind(tape, first.medium, number, files, previous))
}

/// Goes to the end of the data; the number of filemarks before it.
fn count_files(tape: &mut Tape) -> Result<u32, TapeError> {
    tape.to_end_of_data()?;
    if let TapeStatus { file_number: Some(files), .. } = tape.status()? {
        return Ok(files);
    }
    // With MT_ST_FAST_EOM the driver does not know.
    tape.rewind()?;
    let mut files = 0;
    while tape.space_filemarks(1).is_ok() {
        files += 1;
    }
    tape.to_end_of_data()?;
    Ok(files)
}

/// Whether a filemark is the last thing before the end of the data, where the tape stands.
fn is_behind_filemark(tape: &mut Tape) -> Result<bool, TapeError> {
    tape.space_filemarks(-1)?;
    tape.space_filemarks(1)?;
    let mut buffer = vec![0; READ_BYTES];
    match tape.read(&mut buffer) {
        Ok(TapeRead::Block(_) | TapeRead::LargerBlock) => Ok(false),
        Ok(TapeRead::Filemark | TapeRead::EndOfData) => Ok(true),
        Err(error) if is_blank(tape, &error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Number of the last file, from `last` on backwards, that begins with a label of ours.
fn last_label(tape: &mut Tape, last: u32) -> Result<Option<u32>, TapeError> {
    for file in (0..=last).rev().take(FILES_LOOKED_AT_MAX as usize) {
        tape.rewind()?;
        if file > 0 {
            tape.space_filemarks(file as i32)?;
        }
        if let First::Ours(_) = look(tape)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}
