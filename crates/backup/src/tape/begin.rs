//! What a medium holds, and where on it a set may begin.
//!
//! The first block decides: a blank medium is written from its beginning, one of ours behind what
//! it holds, and anything else is refused unless it is to be written over. Whatever the drive was
//! set to before is set again.

use archive::label::{Found, LABEL_BYTES_MAX, Label};
use device::tape::{
    Access, BlockMode, DriveCompression, Filemark, OpenError, Place, Tape, TapeDrive, TapeError,
    TapeRead,
};
use device::target::Existing;

use super::change::Refused;
use super::error::TapeSetError;
use super::options::BlockLayout;
use super::volume::Volume;

/// Sense key of a read where nothing was ever written, SPC-4 4.5.6.
const BLANK_CHECK: u8 = 8;
/// Files that are looked at from the end on for the label of the set before.
const FILES_LOOKED_AT_MAX: usize = 16;
/// First buffer for a block of unknown size; it is doubled up to the largest that goes through.
const READ_BYTES: usize = 1 << 20;

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

/// A medium that the running set has come to already.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedMedium {
    pub(super) medium: [u8; 16],
    /// Number of the volume; `None` when there was no room for any of the set.
    pub(super) volume: Option<u32>,
}

/// What the beginning of a medium says.
enum First {
    Blank,
    Ours(Label),
    Foreign,
}

/// Where the tape stands after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// In the file that was looked at.
    InFile,
    /// Behind its filemark.
    Filemark,
    /// At the end of the data.
    EndOfData,
}

/// Opens the drive and makes the medium in it ready to take the next block.
pub(super) fn open_volume(
    drive: &dyn TapeDrive,
    writing: &Writing,
    used: &[UsedMedium],
    number: u32,
) -> Result<Volume, Unfit> {
    let mut tape = drive.open(Access::Write).map_err(unfit_to_open)?;
    // First of all, since a driver whose drive was reset answers nothing else before that.
    tape.rewind()?;
    let limits = tape.limits();
    limits.check(writing.block_bytes as u64).map_err(|source| {
        let device = tape.name().to_owned();
        Unfit::Failed(TapeSetError::BlockSize { device, source })
    })?;
    let block_bytes_max = usize::try_from(limits.block_bytes_max).unwrap_or(READ_BYTES);
    switch_compression(&mut tape, writing.drive_compression)?;
    // Blocks of any size can be read in variable mode only; a drive without it has fixed blocks.
    if tape.set_block_mode(BlockMode::Variable).is_err() {
        tape.set_block_mode(block_mode(writing))?;
    }
    tape.rewind()?;
    let (first, _) = look(&mut tape, block_bytes_max)?;
    if let First::Ours(label) = &first
        && let Some(earlier) = used.iter().find(|used| used.medium == label.medium)
    {
        return Err(Unfit::Refused(match earlier.volume {
            Some(volume) => Refused::SameSet { volume },
            None => Refused::Full,
        }));
    }
    let mut volume = match (first, writing.existing) {
        (First::Foreign, Existing::Keep) => return Err(Unfit::Refused(Refused::Foreign)),
        (First::Ours(label), Existing::Keep) => {
            behind_the_last_set(tape, &label, number, block_bytes_max)?
        }
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

fn switch_compression(tape: &mut Tape, wanted: Option<DriveCompression>) -> Result<(), Unfit> {
    if let Some(wanted) = wanted {
        let switched = tape.set_drive_compression(wanted);
        switched.map_err(|error| Unfit::Failed(error.into()))?;
    }
    Ok(())
}

/// Reads the label at the position of the tape, in blocks of up to `block_bytes_max`.
fn look(tape: &mut Tape, block_bytes_max: usize) -> Result<(First, Behind), TapeError> {
    let mut start = Vec::new();
    let mut buffer = vec![0; READ_BYTES.min(block_bytes_max)];
    loop {
        match tape.read(&mut buffer) {
            Ok(TapeRead::Block(bytes)) => start.extend_from_slice(&buffer[..bytes]),
            Ok(TapeRead::LargerBlock) if buffer.len() < block_bytes_max => {
                buffer.resize((2 * buffer.len()).min(block_bytes_max), 0);
                continue;
            }
            Ok(TapeRead::LargerBlock) => return Ok((First::Foreign, Behind::InFile)),
            Ok(TapeRead::EndOfData) if start.is_empty() => {
                return Ok((First::Blank, Behind::EndOfData));
            }
            Ok(TapeRead::EndOfData) => return Ok((First::Foreign, Behind::EndOfData)),
            Ok(TapeRead::Filemark) => return Ok((First::Foreign, Behind::Filemark)),
            Err(error) if start.is_empty() && is_blank(tape, &error) => {
                return Ok((First::Blank, Behind::EndOfData));
            }
            Err(error) => return Err(error),
        }
        match Label::find(&start) {
            Ok(Found::Label(label)) => return Ok((First::Ours(label), Behind::InFile)),
            Ok(Found::NeedMore { prefix_bytes }) if prefix_bytes <= LABEL_BYTES_MAX => {}
            // A label that does not hold together is not ours to write behind.
            Ok(Found::NeedMore { .. } | Found::Foreign) | Err(_) => {
                return Ok((First::Foreign, Behind::InFile));
            }
        }
    }
}

fn is_blank(tape: &mut Tape, error: &TapeError) -> bool {
    error.said.is_some_and(|sense| sense.key == BLANK_CHECK)
        || tape.status().is_ok_and(|status| status.at_end_of_data)
}

/// Goes to the end of what the medium holds, which is behind a filemark.
fn behind_the_last_set(
    mut tape: Tape,
    first: &Label,
    number: u32,
    block_bytes_max: usize,
) -> Result<Volume, Unfit> {
    let mut files = tape.to_end_of_data()?;
    let end = look_at_end(&mut tape, files, block_bytes_max)?;
    tape.to_end_of_data()?;
    if end.ending == Ending::Open {
        // The run before died with the machine: what it wrote last is closed now.
        tape.write_filemark(Filemark::Synchronising)?;
        files += 1;
    }
    Ok(Volume::behind(tape, first.medium, number, files, end.last_label))
}

/// How the data on a medium end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// With a filemark.
    Closed,
    /// With a block.
    Open,
}

/// The end of a medium that holds sets.
struct MediumEnd {
    ending: Ending,
    /// Number of the last file that begins with a label of ours.
    last_label: Option<u32>,
}

/// Looks at the last files of a medium with so many filemarks, from whose end the tape starts.
fn look_at_end(
    tape: &mut Tape,
    files: u32,
    block_bytes_max: usize,
) -> Result<MediumEnd, TapeError> {
    if files == 0 {
        return Ok(MediumEnd { ending: Ending::Open, last_label: Some(0) });
    }
    let mut last_label = None;
    to_file(tape, files - 1, files)?;
    let (found, behind) = look(tape, block_bytes_max)?;
    if let First::Ours(_) = found {
        last_label = Some(files - 1);
    }
    if behind == Behind::InFile {
        tape.space_filemarks(1)?;
    }
    let ending = match look(tape, block_bytes_max)? {
        (First::Blank, _) => Ending::Closed,
        (First::Ours(_), _) => {
            last_label = Some(files);
            Ending::Open
        }
        (First::Foreign, _) => Ending::Open,
    };
    for file in (0..files - 1).rev().take(FILES_LOOKED_AT_MAX) {
        if last_label.is_some() {
            break;
        }
        tape.to_end_of_data()?;
        to_file(tape, file, files)?;
        if let (First::Ours(_), _) = look(tape, block_bytes_max)? {
            last_label = Some(file);
        }
    }
    Ok(MediumEnd { ending, last_label })
}

/// To the beginning of a file, from the end of data behind `files` filemarks: backwards where the
/// drive knows where it is, and else from the beginning (tgt's drive goes back too far).
fn to_file(tape: &mut Tape, file: u32, files: u32) -> Result<(), TapeError> {
    let back = i32::try_from(files - file + 1).unwrap_or(i32::MAX);
    if file == 0 || tape.position().is_err() {
        return tape.go_to(Place { file_number: Some(file), block_in_file: None }, None);
    }
    tape.space_filemarks(-back)?;
    tape.space_filemarks(1)
}
