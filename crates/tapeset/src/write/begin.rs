//! What a medium holds, and where on it a set may begin.
//!
//! The first block decides: a blank medium is written from its beginning, one of ours behind what
//! it holds, and anything else is refused unless it is to be written over. Whatever the drive was
//! set to before is set again.
//!
//! Somebody may exchange the medium at any moment, and the bus may be reset: the tape stands at the
//! beginning of who knows what then. The drive tells that once, to the next command, as its
//! failure. So everything that a drive may refuse for reasons of its own comes first; then a label
//! is read, and from there to the first block that is written no command may fail, be it one whose
//! answer could be done without.

use std::time::Instant;

use archive::label::{Found, LABEL_BYTES_MAX, Label, LabelError};
use device::tape::test_area;
use device::tape::{Access, BlockMode, DriveCompression, OpenError, Tape, TapeError, TapeRead};
use device::target::Existing;
use flow::monitor::{Monitor, Pause};

use super::TapeDestination;
use super::end::{Medium, behind_the_last_set};
use super::error::TapeSetError;
use super::plan::SetPlan;
pub(super) use super::unfit::{Numbers, Unfit, UsedMedium};
use super::volume::Volume;
use crate::block::{FIRST_BUFFER_BYTES, read_any};
use crate::change::Refused;
use crate::options::BlockLayout;

/// What the beginning of a medium says.
pub(super) enum First {
    Blank,
    Ours(Label),
    /// The test area of an experiment.
    TestArea,
    /// A label of a later version, which it says.
    Later(u32),
    Foreign,
}

impl First {
    /// Why a medium that begins so, and is not to be replaced, is kept as it is.
    fn why_kept(&self) -> Refused {
        match self {
            First::Later(version) => Refused::LaterVersion { version: *version },
            First::TestArea => Refused::TestArea,
            First::Blank | First::Ours(_) | First::Foreign => Refused::Foreign,
        }
    }
}

/// Where the tape stands after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// In the file that was looked at.
    InFile,
    /// Behind its filemark.
    Filemark,
    /// At the end of the data.
    EndOfData,
}

/// Opens the drive and makes the medium in it ready to take the next block. `monitor` hears what it
/// does meanwhile.
pub(super) fn open_volume(
    target: &TapeDestination,
    monitor: &dyn Monitor,
    plan: &SetPlan,
    used: &[UsedMedium],
    number: u32,
) -> Result<Volume, Unfit> {
    monitor.pause(Some(Pause::Winding));
    let opened = make_ready(target, monitor, plan, used, number);
    monitor.pause(None);
    opened
}

fn make_ready(
    target: &TapeDestination,
    monitor: &dyn Monitor,
    plan: &SetPlan,
    used: &[UsedMedium],
    number: u32,
) -> Result<Volume, Unfit> {
    let block_mode = match target.options.layout {
        BlockLayout::Variable => BlockMode::Variable,
        BlockLayout::Fixed => BlockMode::Fixed(plan.block_bytes as u32),
    };
    let mut tape = target.drive.open(Access::Write).map_err(unfit_to_open)?;
    // First of all, since a driver whose drive was reset answers nothing else before that.
    tape.rewind()?;
    let limits = tape.limits();
    limits.check(plan.block_bytes as u64).map_err(|source| {
        let device = tape.name().to_owned();
        Unfit::Failed(TapeSetError::BlockSize { device, source })
    })?;
    let block_bytes_max = usize::try_from(limits.block_bytes_max).unwrap_or(FIRST_BUFFER_BYTES);
    switch_compression(&mut tape, target.options.drive_compression)?;
    // Blocks of any size can be read in variable mode only; a drive without it has fixed blocks.
    match tape.set_block_mode(BlockMode::Variable) {
        Err(error) if error.said.is_some_and(|said| said.is_attention()) => {
            return Err(error.into());
        }
        Err(_) => tape.set_block_mode(block_mode)?,
        Ok(()) => {}
    }
    let numbers = Numbers::of(&mut tape);
    tape.rewind()?;
    let existing = if used.is_empty() { plan.existing } else { target.options.later_volumes };
    monitor.pause(Some(Pause::ReadingLabel));
    let begun = Instant::now();
    let looked = look(&mut tape, block_bytes_max);
    let label_seconds = begun.elapsed().as_secs_f64();
    monitor.pause(Some(Pause::Winding));
    let first = match looked {
        Ok((first, _)) => first,
        // Of the first medium nothing has to be known that is to be written over.
        Err(error) if is_given_away(&error, used, existing) => First::Foreign,
        Err(error) => return Err(error.into()),
    };
    if let First::Ours(label) = &first
        && let Some(earlier) = used.iter().find(|used| used.medium == label.medium)
    {
        return Err(Unfit::Refused(match earlier.volume {
            Some(volume) => Refused::SameSet { volume },
            None => Refused::Full,
        }));
    }
    let mut volume = match (first, existing) {
        (First::Ours(label), Existing::Keep) => {
            let medium = Medium { numbers, first: label, block_bytes_max };
            behind_the_last_set(tape, &medium, number)?
        }
        (First::Blank, _) | (_, Existing::Replace) => {
            tape.rewind()?;
            let medium = super::random_id().map_err(Unfit::Failed)?;
            Volume::at_beginning(tape, medium, number, numbers)
        }
        // What is not known to be free stays.
        (kept, Existing::Keep) => return Err(Unfit::Refused(kept.why_kept())),
    };
    volume.tape.set_block_mode(block_mode)?;
    volume.label_seconds = label_seconds;
    Ok(volume)
}

fn unfit_to_open(error: OpenError) -> Unfit {
    match error {
        OpenError::NoMedium { .. } => Unfit::Refused(Refused::NoMedium),
        OpenError::NotReady { .. } => Unfit::Refused(Refused::NotReady),
        OpenError::WriteProtected { .. } => Unfit::Refused(Refused::WriteProtected),
        error => Unfit::Failed(error.into()),
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
pub(super) fn look(tape: &mut Tape, block_bytes_max: usize) -> Result<(First, Behind), TapeError> {
    let mut start = Vec::new();
    let mut buffer = vec![0; FIRST_BUFFER_BYTES.min(block_bytes_max)];
    loop {
        match read_any(tape, &mut buffer, block_bytes_max)? {
            TapeRead::Block(bytes) => start.extend_from_slice(&buffer[..bytes]),
            TapeRead::LargerBlock => return Ok((First::Foreign, Behind::InFile)),
            TapeRead::EndOfData if start.is_empty() => {
                return Ok((First::Blank, Behind::EndOfData));
            }
            TapeRead::EndOfData => return Ok((First::Foreign, Behind::EndOfData)),
            TapeRead::Filemark => return Ok((First::Foreign, Behind::Filemark)),
        }
        match Label::find(&start) {
            Ok(Found::Label(label)) => return Ok((First::Ours(label), Behind::InFile)),
            Ok(Found::NeedMore { prefix_bytes }) if prefix_bytes <= LABEL_BYTES_MAX => {}
            Err(LabelError::Later { version }) => {
                return Ok((First::Later(version), Behind::InFile));
            }
            // A label that does not hold together is not ours to write behind.
            Ok(Found::NeedMore { .. } | Found::Foreign) | Err(_) => {
                let is_test = test_area::begins(&start);
                let first = if is_test { First::TestArea } else { First::Foreign };
                return Ok((first, Behind::InFile));
            }
        }
    }
}

/// Whether a medium that cannot be read may be written to all the same: the drive has to say
/// itself that it is the medium, since any other failure may be the notice of another one.
fn is_given_away(error: &TapeError, used: &[UsedMedium], existing: Existing) -> bool {
    used.is_empty()
        && existing == Existing::Replace
        && error.said.is_some_and(|said| said.is_unreadable())
}
