//! Reads a tape block by block, and skips blocks that cannot be read.
//!
//! After an error the position of a drive is unknown: some stand behind the block, some before it,
//! and after a reset at the beginning of the medium. So this counts objects as they pass. After an
//! error it sends the drive to the block once more, then behind it. It asks for no position while
//! the tape moves.

use archive::label::{Label, hex};
use std::time::Instant;

use device::tape::scsi::access_order::Segment;
use device::tape::scsi::attribute::CartridgeMemory;
use device::tape::{BlockMode, QuestionError, Tape, TapeError, TapeRead};
use flow::cancel::Cancel;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;

use super::failure::TapeReadFailure;
use super::label_reader;
use super::place::{self, Spot, go_to};

/// How often an unreadable block is tried again. Drives retry by themselves for minutes.
const RETRIES: u32 = 2;
/// Unreadable blocks in a row after which the medium counts as broken.
const BAD_IN_A_ROW_MAX: u32 = 64;

/// Sense key (SPC-4, 4.5.6).
const MEDIUM_ERROR: u8 = 3;

/// The next object on the tape.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// A block of this many bytes, at the start of the buffer.
    Block(usize),
    /// A filemark; the tape is behind it.
    Filemark,
    EndOfData,
    /// The block is larger than the buffer. The tape is before it.
    LargerBlock,
    /// An unreadable block; the tape is behind it.
    Lost {
        /// What the drive reported.
        why: String,
    },
}

/// The expected medium, checked after errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Where a label is.
    pub label: Spot,
    /// Id of the medium in that label.
    pub medium: [u8; 16],
}

/// Reads a tape and counts its position.
pub(super) struct BlockReader {
    tape: Tape,
    /// Position of the next object; `None` if unknown.
    here: Option<Spot>,
    /// The file in which the tape was when it was opened, also where the block is not known.
    file: Option<u32>,
    identity: Option<Identity>,
    /// Bytes of a block, if the drive has fixed blocks only.
    fixed_bytes: Option<u32>,
    bad_in_a_row: u32,
    /// What was read from this medium.
    pub totals: Totals,
}

/// What was read from a tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks that were read.
    pub blocks: u64,
    pub bytes: u64,
    /// Blocks that could not be read.
    pub lost_blocks: u64,
    /// Reads that failed at first.
    pub retries: u64,
    /// Ways to another place.
    pub winds: u64,
    /// Winding time in nanoseconds.
    pub winding_ns: u64,
}

impl Totals {
    pub(super) fn add(&mut self, more: Totals) {
        self.blocks += more.blocks;
        self.bytes += more.bytes;
        self.lost_blocks += more.lost_blocks;
        self.retries += more.retries;
        self.winds += more.winds;
        self.winding_ns += more.winding_ns;
    }
}

impl BlockReader {
    /// Begins at the tape's position, and asks the drive for it.
    ///
    /// Blocks are read in variable mode, whatever their size, fixed blocks too. The previous user's
    /// block size matters only where the mode cannot be changed.
    pub fn new(mut tape: Tape) -> BlockReader {
        let fixed_bytes = match tape.set_block_mode(BlockMode::Variable) {
            Ok(()) => None,
            Err(_) => match tape.status().map(|status| status.block_mode) {
                Ok(BlockMode::Fixed(bytes)) => Some(bytes),
                _ => None,
            },
        };
        let here = place::ask(&mut tape);
        let file = tape.status().ok().and_then(|status| status.file_number);
        let (identity, bad_in_a_row, totals) = (None, 0, Totals::default());
        BlockReader { tape, here, file, identity, fixed_bytes, bad_in_a_row, totals }
    }

    /// Bytes of every block, if the drive reads no others.
    pub fn fixed_bytes(&self) -> Option<u32> {
        self.fixed_bytes
    }

    /// Name of the drive.
    pub fn device(&self) -> String {
        self.tape.name().to_owned()
    }

    /// The drive's counters in the kernel, which cost the drive nothing.
    pub fn statistics(&mut self) -> Option<device::tape::raw::Statistics> {
        self.tape.statistics()
    }

    /// What the chip of the cartridge says. Only where the tape does not stream.
    pub fn cartridge_memory(&mut self) -> Result<CartridgeMemory, QuestionError> {
        self.tape.cartridge_memory()
    }

    /// The order in which the drive recommends to read segments. Only where the tape does not
    /// stream.
    pub fn access_order(
        &mut self,
        segments: &[Segment],
    ) -> Result<Option<Vec<usize>>, QuestionError> {
        self.tape.access_order(segments)
    }

    /// How the drive moves, by its generation and maker.
    pub fn motion(&mut self) -> Option<TapeParameters> {
        let generation = Generation::of_density(self.tape.status().ok()?.density)?;
        let product = self.tape.inquiry().map(|names| names.product).unwrap_or_default();
        Some(TapeParameters::of(generation.in_drive(&product)))
    }

    /// Position of the next object, if known.
    pub fn here(&self) -> Option<Spot> {
        self.here
    }

    /// The file in which the tape stood when it was opened, if known.
    pub fn opened_in(&self) -> Option<u32> {
        self.file
    }

    /// The same as [`Self::here`], with the absolute number, if the drive knows it. Sends a
    /// command.
    pub fn here_with_number(&mut self) -> Spot {
        let mut here = self.here.unwrap_or_default();
        if here.absolute.is_none() {
            here.absolute = self.tape.position().ok();
            self.here = self.here.map(|_| here);
        }
        here
    }

    /// What was read does not say where the tape is now.
    pub fn forget_place(&mut self) {
        self.here = None;
    }

    /// Sets the expected medium.
    pub fn identify(&mut self, identity: Identity) {
        self.identity = Some(identity);
    }

    /// Checks that a label belongs to this medium. A drive may have reported a change of medium to
    /// a command whose answer was ignored.
    pub fn check_identity(&self, label: &Label) -> Result<(), TapeReadFailure> {
        match self.identity {
            Some(identity) if identity.medium != label.medium => {
                let (device, found) = (self.device(), format!("its id is {}", hex(&label.medium)));
                Err(TapeReadFailure::Exchanged { device, found })
            }
            _ => Ok(()),
        }
    }

    /// Checks, by a label elsewhere, that this is still the same medium, after an expected label
    /// was missing. Moves the tape.
    pub fn check_medium_elsewhere(&mut self, place: Spot) -> Result<(), TapeReadFailure> {
        let device = self.device();
        self.here = None;
        match self.identity {
            Some(identity) if identity.label != place => {
                go_to(&mut self.tape, identity.label)?;
                label_reader::check_medium(&mut self.tape, identity.medium)
            }
            _ => {
                let found = format!("no label is there ({place})");
                Err(TapeReadFailure::Exchanged { device, found })
            }
        }
    }

    /// The position as the drive counts, if the driver does not know the file. Sends a command.
    pub fn number(&mut self) -> Option<u64> {
        self.tape.position().ok()
    }

    /// Goes to an object by its number.
    pub fn go_to_number(&mut self, number: u64) -> Result<(), TapeReadFailure> {
        self.here = None;
        Ok(self.wind(|tape| tape.seek(number))?)
    }

    /// Steps back over the last block.
    pub fn step_back(&mut self, to: Spot) -> Result<(), TapeReadFailure> {
        self.here = None;
        match self.wind(|tape| tape.space_blocks(-1)) {
            Ok(()) => self.here = Some(to),
            Err(_) => self.go_to(to)?,
        }
        Ok(())
    }

    /// Goes to a position, if the tape is not there.
    pub fn go_to(&mut self, to: Spot) -> Result<(), TapeReadFailure> {
        if self.here.take() != Some(to) {
            self.wind(|tape| go_to(tape, to))?;
        }
        self.here = Some(to);
        Ok(())
    }

    /// Reads on to a position at most `blocks_max` objects ahead: a locate command would stop the
    /// tape. False if reading does not lead there.
    pub fn read_on_to(
        &mut self,
        to: Spot,
        blocks_max: u64,
        scratch: &mut [u8],
        cancel: &Cancel,
    ) -> Result<bool, TapeReadFailure> {
        if self.here.is_none() {
            return self.read_on_by_number(to, blocks_max, scratch, cancel);
        }
        let is_near = |here: Spot| match (here.absolute, to.absolute) {
            (Some(now), Some(there)) if now <= there => there - now <= blocks_max,
            _ => {
                let in_this_file = here.file == to.file && here.block <= to.block;
                let at_next_file = here.file + 1 == to.file && to.block == 0;
                (in_this_file && to.block - here.block <= blocks_max) || at_next_file
            }
        };
        for _ in 0..=blocks_max {
            let Some(here) = self.here.filter(|here| is_near(*here)) else { break };
            if (here.file, here.block) == (to.file, to.block) {
                return Ok(true);
            }
            match self.read(scratch, cancel)? {
                Met::Block(_) | Met::Lost { .. } | Met::Filemark => {}
                Met::EndOfData | Met::LargerBlock => break,
            }
        }
        Ok(self.here.is_some_and(|here| (here.file, here.block) == (to.file, to.block)))
    }

    /// The same where only the number of the object is known: the driver forgets the file when it
    /// is sent to a number (st.rst), also for whoever opens the drive next.
    fn read_on_by_number(
        &mut self,
        to: Spot,
        blocks_max: u64,
        scratch: &mut [u8],
        cancel: &Cancel,
    ) -> Result<bool, TapeReadFailure> {
        let (Some(there), Ok(now)) = (to.absolute, self.tape.position()) else { return Ok(false) };
        let is_near = there.checked_sub(now).is_some_and(|between| between <= blocks_max);
        // A read in fixed mode may return several blocks.
        if !is_near || self.fixed_bytes.is_some() {
            return Ok(false);
        }
        for _ in now..there {
            match self.read(scratch, cancel) {
                Ok(Met::Block(_) | Met::Filemark) => {}
                Err(TapeReadFailure::Stopped(stopped)) => return Err(stopped.into()),
                // What cannot be read here is wound over.
                _ => return Ok(false),
            }
        }
        self.here = Some(to);
        Ok(true)
    }

    /// Skips a block without reading it.
    pub fn pass_over_block(&mut self) -> Result<(), TapeReadFailure> {
        self.tape.space_blocks(1)?;
        self.here = self.here.map(|here| here.plus(1));
        Ok(())
    }

    /// Goes behind the data. Returns the number of the file that would begin there, or of the last
    /// file if no filemark closes it.
    pub fn go_to_end(&mut self) -> Result<u32, TapeReadFailure> {
        self.here = None;
        Ok(self.wind(Tape::to_end_of_data)?)
    }

    /// Moves the tape, and measures the time.
    fn wind<T>(&mut self, go: impl FnOnce(&mut Tape) -> T) -> T {
        let begun = Instant::now();
        let gone = go(&mut self.tape);
        self.totals.winds += 1;
        self.totals.winding_ns += begun.elapsed().as_nanos() as u64;
        gone
    }

    /// Reads the next block into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8], cancel: &Cancel) -> Result<Met, TapeReadFailure> {
        cancel.check()?;
        match self.tape.read(buffer) {
            Ok(read) => Ok(self.count(read)),
            Err(error) => self.try_again(buffer, error, cancel),
        }
    }

    fn count(&mut self, read: TapeRead) -> Met {
        self.bad_in_a_row = 0;
        match read {
            TapeRead::Block(bytes) => {
                // A read in fixed mode may return several blocks.
                let blocks = self.fixed_bytes.map_or(1, |fixed| bytes as u64 / u64::from(fixed));
                self.totals.blocks += blocks;
                self.totals.bytes += bytes as u64;
                self.here = self.here.map(|here| here.plus(blocks));
                Met::Block(bytes)
            }
            TapeRead::Filemark => {
                self.here = self.here.map(Spot::behind_filemark);
                Met::Filemark
            }
            TapeRead::EndOfData => Met::EndOfData,
            TapeRead::LargerBlock => Met::LargerBlock,
        }
    }

    fn try_again(
        &mut self,
        buffer: &mut [u8],
        first: TapeError,
        cancel: &Cancel,
    ) -> Result<Met, TapeReadFailure> {
        self.totals.retries += 1;
        let Some(here) = self.here else {
            // Most drives stand behind the block now.
            return self.give_up(first);
        };
        let mut last = first;
        for _ in 0..RETRIES {
            cancel.check()?;
            self.return_to(here, &last)?;
            match self.tape.read(buffer) {
                Ok(read) => return Ok(self.count(read)),
                Err(error) => last = error,
            }
        }
        self.give_up(last)
    }

    /// Goes to a position after an error, and checks that the medium is the same.
    fn return_to(&mut self, here: Spot, after: &TapeError) -> Result<(), TapeReadFailure> {
        let device = self.device();
        let lost = |source| TapeReadFailure::PlaceLost { device, place: here.to_string(), source };
        // A bad spot does not suggest another medium. Other errors do, since the driver keeps its
        // count when the medium is exchanged.
        let is_medium_error = after.said.is_some_and(|sense| sense.key == MEDIUM_ERROR);
        if !is_medium_error && let Some(identity) = self.identity {
            if let Err(error) = go_to(&mut self.tape, identity.label) {
                return Err(lost(error));
            }
            label_reader::check_medium(&mut self.tape, identity.medium)?;
        }
        // Without absolute numbers the driver's count decides, which may be wrong now.
        if here.absolute.is_none()
            && let Err(error) = self.tape.rewind()
        {
            return Err(lost(error));
        }
        go_to(&mut self.tape, here).map_err(lost)
    }

    fn give_up(&mut self, error: TapeError) -> Result<Met, TapeReadFailure> {
        self.bad_in_a_row += 1;
        self.totals.lost_blocks += 1;
        let (device, blocks) = (self.device(), self.bad_in_a_row);
        if blocks > BAD_IN_A_ROW_MAX {
            return Err(TapeReadFailure::Broken { device, blocks, source: error });
        }
        if let Some(here) = self.here {
            self.return_to(here.plus(1), &error)?;
            self.here = Some(here.plus(1));
        }
        Ok(Met::Lost { why: base::failures::with_causes(&error) })
    }
}

#[cfg(test)]
mod tests {
    use archive::chunk::Compression;
    use archive::label::LabelKind;
    use archive::stream::StoredOffset;
    use device::tape::{Access, TapeDrive};
    use sim::tape::{Cartridge, VirtualDrive};

    use super::*;

    #[test]
    fn a_label_of_another_medium_is_told() {
        let drive = VirtualDrive::loaded(Cartridge::of_capacity(1 << 20));
        let mut blocks = BlockReader::new(drive.open(Access::Read).unwrap());
        let label = |medium| Label {
            set: [1; 16],
            kind: LabelKind::Data,
            segment: 1,
            part: 1,
            volume: 1,
            medium: [medium; 16],
            stream_bytes: StoredOffset::START,
            block_bytes: 4096,
            length_bytes: 4096,
            compression: Compression::None,
            previous: None,
            time_seconds: 0,
            host: None,
            medium_name: None,
            chain: None,
        };
        assert!(blocks.check_identity(&label(2)).is_ok(), "nobody has said which one it is");
        blocks.identify(Identity { label: Spot::start_of(0, None), medium: [3; 16] });
        assert!(blocks.check_identity(&label(3)).is_ok());
        let error = blocks.check_identity(&label(2)).unwrap_err();
        assert!(
            matches!(&error, TapeReadFailure::Exchanged { found, .. } if found.contains("0202"))
        );
    }
}
