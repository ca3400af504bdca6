//! What a medium holds, and where a set may begin on it.
//!
//! The first block decides, unless the chip of the cartridge says that nothing was written to it
//! since Takeup noted what is on it. Takeup writes a blank medium from its beginning, and a Takeup
//! medium behind its last set. It refuses anything else, unless the user allows overwriting. All
//! settings of the drive are set again.
//!
//! The medium may be exchanged, or the bus reset, at any moment; the tape is then at the beginning
//! of an unknown medium. The drive reports that once, as the failure of the next command. So every
//! command that a drive may refuse for other reasons comes first. Then the label is read, and from
//! there to the first written block no command may fail, even if its answer is not needed.

use std::time::Instant;

use archive::label::{Found, LABEL_BYTES_MAX, Label, LabelError};
use device::tape::scsi::attribute::CartridgeMemory;
use device::tape::test_area;
use device::tape::{
    Access, BlockMode, DriveCompression, OpenError, QuestionError, Tape, TapeError, TapeRead,
};
use device::target::Existing;
use flow::monitor::{Monitor, Pause};

use super::TapeDestination;
use super::end::{Medium, behind_the_last_set};
use super::error::TapeSetError;
use super::left::SetsOfMedium;
use super::named::Naming;
use super::plan::SetPlan;
pub(super) use super::unfit::{Numbers, Unfit, UsedMedium};
use super::volume::Volume;
use crate::block::{FIRST_BUFFER_BYTES, read_any};
use crate::change::Refused;
use crate::directory::Directory;
use crate::known::KnownMedium;
use crate::options::BlockLayout;

/// What the beginning of a medium holds.
#[expect(clippy::large_enum_variant, reason = "one at a time, and never kept")]
pub(super) enum First {
    Blank,
    Ours(Label),
    /// The test area of an experiment.
    TestArea,
    /// A label of a later version.
    Later(u32),
    Foreign,
}

impl First {
    /// Why a medium with this beginning is kept, unless it may be overwritten.
    fn why_kept(&self) -> Refused {
        match self {
            First::Later(version) => Refused::LaterVersion { version: *version },
            First::TestArea => Refused::TestArea,
            First::Blank | First::Ours(_) | First::Foreign => Refused::Foreign,
        }
    }
}

/// The tape's position after the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// In the file that was checked.
    InFile,
    /// Behind its filemark.
    Filemark,
    EndOfData,
}

/// Opens the drive and makes the medium ready for the next block. Reports to `monitor` what it
/// does.
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
    let allowed = if used.is_empty() { plan.existing } else { target.options.later_volumes };
    let memory = match cartridge_memory(&mut tape) {
        // The driver has missed a notice of the drive, and learns of it when it opens the drive.
        Err(error) if error.is_attention() => {
            drop(tape);
            tape = target.drive.open(Access::Write).map_err(unfit_to_open)?;
            None
        }
        asked => asked.unwrap_or_default(),
    };
    let known = memory.as_ref().and_then(|memory| known_medium(memory, target, allowed));
    let naming = Naming::new(target.options.medium_name, memory.as_ref(), used);
    if known.is_none() {
        // First, because the driver of a drive that was reset answers nothing else before.
        tape.rewind()?;
    }
    let limits = tape.limits();
    limits.check(plan.block_bytes as u64).map_err(|source| {
        let device = tape.name().to_owned();
        Unfit::Failed(TapeSetError::BlockSize { device, source })
    })?;
    let block_bytes_max = usize::try_from(limits.block_bytes_max).unwrap_or(FIRST_BUFFER_BYTES);
    switch_compression(&mut tape, target.options.drive_compression)?;
    // Only variable mode reads blocks of any size; drives without it have fixed blocks.
    match tape.set_block_mode(BlockMode::Variable) {
        Err(error) if error.said.is_some_and(|said| said.is_attention()) => {
            return Err(error.into());
        }
        Err(_) => tape.set_block_mode(block_mode)?,
        Ok(()) => {}
    }
    let numbers = Numbers::of(&mut tape);
    let mut volume = match known {
        Some(known) => {
            check_unused(known.medium, used)?;
            // Before the way to its end.
            naming.of_used(known.sets.first().and_then(|set| set.last.label.medium_name))?;
            let medium = Medium { numbers, id: known.medium, block_bytes_max };
            let mut volume = behind_the_last_set(tape, &medium, number)?;
            let all = Directory { sets: known.sets, is_whole: true };
            volume.sets = SetsOfMedium::behind(all);
            volume.name = naming.of_used(volume.name)?;
            volume
        }
        None => {
            let at_hand = AtHand { tape, numbers, block_bytes_max, naming };
            by_its_beginning(at_hand, target, monitor, used, allowed, number)?
        }
    };
    volume.tape.set_block_mode(block_mode)?;
    Ok(volume)
}

/// The medium, if its chip says that it is as it was noted, and the set comes behind what is on it:
/// then the beginning of the tape need not be looked at. A label near the end is, in any case.
fn known_medium(
    memory: &CartridgeMemory,
    target: &TapeDestination,
    allowed: Existing,
) -> Option<KnownMedium> {
    if allowed != Existing::Keep {
        return None;
    }
    let known = target.memory.medium(memory);
    let is_freed = |known: &KnownMedium| target.media.freed.contains(&known.medium);
    known.filter(|known| !known.sets.is_empty() && !is_freed(known))
}

/// What the chip of the cartridge says, where the driver is ready for a question.
fn cartridge_memory(tape: &mut Tape) -> Result<Option<CartridgeMemory>, QuestionError> {
    if tape.status().is_err() {
        return Ok(None);
    }
    tape.cartridge_memory().map(Some)
}

/// An open tape, and what the drive can do.
struct AtHand {
    tape: Tape,
    numbers: Numbers,
    block_bytes_max: usize,
    naming: Naming,
}

/// Makes a medium ready by what it begins with.
fn by_its_beginning(
    at_hand: AtHand,
    target: &TapeDestination,
    monitor: &dyn Monitor,
    used: &[UsedMedium],
    allowed: Existing,
    number: u32,
) -> Result<Volume, Unfit> {
    let AtHand { mut tape, numbers, block_bytes_max, naming } = at_hand;
    tape.rewind()?;
    monitor.pause(Some(Pause::ReadingLabel));
    let begun = Instant::now();
    let looked = look(&mut tape, block_bytes_max);
    let label_seconds = begun.elapsed().as_secs_f64();
    monitor.pause(Some(Pause::Winding));
    let first = match looked {
        Ok((first, _)) => first,
        // A first medium that may be overwritten is not checked.
        Err(error) if is_given_away(&error, used, allowed) => First::Foreign,
        Err(error) => return Err(error.into()),
    };
    let (before, name_before) = match &first {
        First::Ours(label) => (Some(label.medium), label.medium_name),
        _ => (None, None),
    };
    if let Some(medium) = before {
        check_unused(medium, used)?;
    }
    let is_freed = before.is_some_and(|medium| target.media.freed.contains(&medium));
    let existing = if is_freed { Existing::Replace } else { allowed };
    let mut volume = match (first, existing) {
        (First::Ours(label), Existing::Keep) => {
            // Before the way to its end. A name that came with a later set is seen there.
            naming.of_used(name_before)?;
            let medium = Medium { numbers, id: label.medium, block_bytes_max };
            let mut volume = behind_the_last_set(tape, &medium, number)?;
            volume.name = naming.of_used(volume.name)?;
            volume
        }
        (First::Blank, _) | (_, Existing::Replace) => {
            tape.rewind()?;
            let medium = super::random_id().map_err(Unfit::Failed)?;
            let mut volume = Volume::at_beginning(tape, medium, number, numbers);
            volume.replaced = before;
            volume.name = naming.of_new(name_before);
            volume
        }
        // A medium that is not known to be free is kept.
        (kept, Existing::Keep) => return Err(Unfit::Refused(kept.why_kept())),
    };
    volume.label_seconds = label_seconds;
    Ok(volume)
}

/// Refuses a medium that this set has used already.
fn check_unused(medium: [u8; 16], used: &[UsedMedium]) -> Result<(), Unfit> {
    match used.iter().find(|used| used.medium == medium) {
        None => Ok(()),
        Some(UsedMedium { volume: Some(volume), .. }) => {
            Err(Unfit::Refused(Refused::SameSet { volume: *volume }))
        }
        Some(UsedMedium { volume: None, .. }) => Err(Unfit::Refused(Refused::Full)),
    }
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

/// Reads the label at the tape's position, in blocks of up to `block_bytes_max`.
pub(super) fn look(tape: &mut Tape, block_bytes_max: usize) -> Result<(First, Behind), TapeError> {
    look_into(tape, block_bytes_max, &mut Vec::new())
}

/// The same; the bytes that were read are in `start`.
pub(super) fn look_into(
    tape: &mut Tape,
    block_bytes_max: usize,
    start: &mut Vec<u8>,
) -> Result<(First, Behind), TapeError> {
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
        match Label::find(start) {
            Ok(Found::Label(label)) => return Ok((First::Ours(label), Behind::InFile)),
            Ok(Found::NeedMore { prefix_bytes }) if prefix_bytes <= LABEL_BYTES_MAX => {}
            Err(LabelError::Later { version }) => {
                return Ok((First::Later(version), Behind::InFile));
            }
            // Takeup does not write behind an inconsistent label.
            Ok(Found::NeedMore { .. } | Found::Foreign) | Err(_) => {
                let is_test = test_area::begins(start);
                let first = if is_test { First::TestArea } else { First::Foreign };
                return Ok((first, Behind::InFile));
            }
        }
    }
}

/// Whether an unreadable medium may be written to: the drive must blame the medium itself, since
/// any other failure may report a change of medium.
fn is_given_away(error: &TapeError, used: &[UsedMedium], existing: Existing) -> bool {
    used.is_empty()
        && existing == Existing::Replace
        && error.said.is_some_and(|said| said.is_unreadable())
}
