//! The drive: commands of the SCSI stream command standard (SSC) acting on a cartridge.
//!
//! A command succeeds or returns a [`Check`] with the sense data: key, codes, the three bits and
//! the residual. The driver on top ([`super::driver`]) decides what a program sees of it, as in
//! reality.
//!
//! Not here: the time of a command, see [`super::pace`].

mod mishaps;
mod settings;
mod timing;

use device::tape::sense::Sense;

pub use settings::DriveSettings;

pub(super) use super::check::{
    BLANK_CHECK, Check, HARDWARE_ERROR, ILLEGAL_REQUEST, MEDIUM_ERROR, NO_SENSE, RECOVERED_ERROR,
    UNIT_ATTENTION, VOLUME_OVERFLOW,
};
use super::check::{DATA_PROTECT, NOT_READY, write_error};
use super::faults::{AfterReadError, CompressionSwitch, Ends, Positioning};
use super::medium::{Cartridge, Medium, ObjectRef, Packing, Protection};
use super::mishap::Mishaps;
use super::pace::{Act, Compression, Pace};

/// What SPACE counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Blocks(i32),
    Filemarks(i32),
    ToEndOfData,
}

/// Whether a command returns before the medium has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    ForMedium,
    Not,
}

/// The drive, with or without a cartridge.
pub(super) struct Drive {
    pub(super) settings: DriveSettings,
    /// In the slot.
    cartridge: Option<Cartridge>,
    /// Threaded: ready for commands.
    loaded: bool,
    /// Number of the next object.
    position: u64,
    /// Pending conditions, which the next command reports instead of being executed.
    attention: Option<Sense>,
    /// Objects in the drive's buffer.
    buffering: bool,
    pub(super) compression: bool,
    /// Block size of the mode parameters; 0 means variable.
    pub(super) block_bytes: u32,
    /// Adds the time of commands.
    pub(super) pace: Option<Box<dyn Pace>>,
    pub(super) mishaps: Mishaps,
    /// Whether its TapeAlert flags were read.
    pub(super) were_alerts_read: bool,
    /// The order that was recommended last, as RECEIVE RECOMMENDED ACCESS ORDER answers.
    pub(super) recommended: Vec<u8>,
}

impl Drive {
    pub(super) fn new(settings: DriveSettings) -> Drive {
        let compression = settings.compression_switch != CompressionSwitch::Absent;
        Drive {
            settings,
            cartridge: None,
            loaded: false,
            position: 0,
            attention: None,
            buffering: false,
            compression,
            block_bytes: 0,
            pace: None,
            mishaps: Mishaps::default(),
            were_alerts_read: false,
            recommended: Vec::new(),
        }
    }

    // Actions of an operator.

    /// A cartridge is inserted; the drive loads it.
    pub(super) fn insert(&mut self, cartridge: Cartridge) {
        cartridge.lock().read_change_reference();
        self.cartridge = Some(cartridge);
        self.loaded = true;
        self.position = 0;
        self.buffering = false;
        self.recommended.clear();
        // Not ready to ready change, medium may have changed.
        self.attention = Some(Check::of(UNIT_ATTENTION, 0x28, 0x00).sense);
        self.took_load();
    }

    /// The eject button is pressed. The buffer is written to the medium first.
    pub(super) fn remove(&mut self) -> Option<Cartridge> {
        // The button is no command, so there is no program to report to.
        let _ = self.flush();
        if self.loaded {
            self.took(Act::Unload);
        }
        self.loaded = false;
        self.cartridge.take()
    }

    pub(super) fn cartridge(&self) -> Option<&Cartridge> {
        self.cartridge.as_ref()
    }

    /// The last storage error of the cartridge.
    pub(super) fn trouble(&self) -> Option<String> {
        self.medium(|medium| medium.trouble()).flatten()
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Density code of the medium; 0 without one.
    pub(super) fn density(&self) -> u8 {
        self.medium(|medium| medium.settings.density).unwrap_or(0)
    }

    pub(super) fn is_protected(&self) -> bool {
        self.medium(|medium| medium.settings.protection) == Some(Protection::Protected)
    }

    /// Whether the next write would get the early warning.
    pub(super) fn is_near_end(&self) -> bool {
        self.medium(|medium| medium.is_near_end(self.position)).unwrap_or(false)
    }

    // Commands.

    /// TEST UNIT READY.
    pub(super) fn test_unit_ready(&mut self) -> Result<(), Check> {
        self.command(|_| Ok(()))
    }

    /// The condition that a command reports instead of being executed.
    fn ready(&mut self) -> Result<(), Check> {
        self.notice()?;
        if !self.loaded {
            return Err(Check::of(NOT_READY, 0x3a, 0x00));
        }
        // A test may have cut the medium.
        self.position = self.position.min(self.length());
        Ok(())
    }

    /// READ(6), one block of any length. `Ok` has the bytes read; with `suppress` (SILI) also if
    /// the block is shorter or longer.
    pub(super) fn read_block(
        &mut self,
        buffer: &mut [u8],
        suppress: Suppress,
    ) -> Result<usize, Check> {
        self.command(|drive| {
            drive.begin_read()?;
            let asked = buffer.len();
            let from = drive.position;
            let actual = drive.next_block(buffer, asked as u64)?;
            drive.took_read(from, actual.min(asked));
            if actual == asked || suppress == Suppress::IncorrectLength {
                return Ok(actual.min(asked));
            }
            Err(Check::wrong_length(asked as i64 - actual as i64))
        })
    }

    /// READ(6) of blocks of `self.block_bytes`; the residual counts blocks.
    pub(super) fn read_blocks(&mut self, buffer: &mut [u8]) -> Result<usize, Check> {
        self.command(|drive| {
            drive.begin_read()?;
            let block_bytes = drive.block_bytes as usize;
            let count = (buffer.len() / block_bytes) as u64;
            let from = drive.position;
            let mut result = Ok(buffer.len());
            let mut done = 0;
            for part in buffer.chunks_exact_mut(block_bytes) {
                let left = count - done as u64;
                match drive.next_block(part, left) {
                    Ok(actual) if actual == block_bytes => done += 1,
                    Ok(_) => result = Err(Check::wrong_length(left as i64)),
                    Err(check) => result = Err(check.left(left)),
                }
                if result.is_err() {
                    break;
                }
            }
            drive.took_read(from, done * block_bytes);
            result
        })
    }

    /// WRITE(6), one block of any length.
    pub(super) fn write_block(&mut self, block: &[u8]) -> Result<(), Check> {
        self.command(|drive| {
            drive.begin_write()?;
            let from = drive.position;
            drive.put_block(block)?;
            drive.took_write(from, block.len());
            drive.warn_of_end()
        })
        .map_err(|check| match check.sense.key {
            VOLUME_OVERFLOW => check.left(block.len() as u64),
            _ => check,
        })
    }

    /// WRITE(6), blocks of `self.block_bytes`; the residual counts blocks.
    pub(super) fn write_blocks(&mut self, data: &[u8]) -> Result<(), Check> {
        self.command(|drive| {
            drive.begin_write()?;
            let block_bytes = drive.block_bytes as usize;
            let count = (data.len() / block_bytes) as u64;
            let from = drive.position;
            for (done, block) in data.chunks_exact(block_bytes).enumerate() {
                if let Err(check) = drive.put_block(block) {
                    drive.took_write(from, done * block_bytes);
                    return Err(check.left(count - done as u64));
                }
            }
            drive.took_write(from, data.len());
            drive.warn_of_end()
        })
    }

    /// WRITE FILEMARKS. With count 0 and [`Wait::ForMedium`] it synchronises.
    pub(super) fn write_filemarks(&mut self, count: u32, wait: Wait) -> Result<(), Check> {
        self.command(|drive| {
            drive.begin_write()?;
            for _ in 0..count {
                drive.put(ObjectRef::Filemark, 0, Packing::Leave)?;
            }
            drive.took(Act::Filemark);
            if wait == Wait::ForMedium {
                drive.flush()?;
            }
            match count {
                0 => Ok(()),
                _ => drive.warn_of_end(),
            }
        })
    }

    /// Writes the buffer to the medium, and nothing else.
    pub(super) fn synchronise(&mut self) -> Result<(), Check> {
        self.command(|drive| drive.flush())
    }

    /// REWIND.
    pub(super) fn rewind(&mut self) -> Result<(), Check> {
        self.command(|drive| {
            drive.flush()?;
            drive.position = 0;
            drive.took(Act::Locate(0));
            Ok(())
        })
    }

    /// ERASE: removes everything after the position.
    pub(super) fn erase(&mut self) -> Result<(), Check> {
        self.command(|drive| {
            drive.begin_write()?;
            drive.flush()?;
            let position = drive.position;
            drive.with_medium(|medium| medium.truncate(position)).map_err(|_| write_error())
        })
    }

    /// SPACE. The residual is the part that could not be spaced over.
    pub(super) fn space(&mut self, space: Space) -> Result<(), Check> {
        self.command(|drive| {
            drive.flush()?;
            let result = drive.space_over(space);
            drive.took_locate();
            result
        })
    }

    fn space_over(&mut self, space: Space) -> Result<(), Check> {
        let (count, filemarks) = match space {
            Space::ToEndOfData => {
                self.position = self.length();
                return Ok(());
            }
            Space::Blocks(count) => (count, false),
            Space::Filemarks(count) => (count, true),
        };
        if self.settings.ends == Ends::Vague {
            return self.space_vaguely(count, filemarks);
        }
        let mut left = u64::from(count.unsigned_abs());
        while left > 0 {
            let is_filemark =
                if count > 0 { self.step_forward(left)? } else { self.step_back(left)? };
            if is_filemark && !filemarks {
                return Err(Check::at_filemark(left));
            }
            if is_filemark == filemarks {
                left -= 1;
            }
        }
        Ok(())
    }

    /// See [`Ends::Vague`].
    fn space_vaguely(&mut self, count: i32, filemarks: bool) -> Result<(), Check> {
        let is_filemark = |drive: &Drive| {
            let next = drive.with_medium(|medium| medium.entry(drive.position));
            next.is_some_and(|entry| entry.block_bytes.is_none())
        };
        let mut left = count.unsigned_abs();
        while left > 0 {
            left -= u32::from(!filemarks || is_filemark(self));
            let stepped = if count > 0 { self.step_forward(0) } else { self.step_back(0) };
            stepped.map_err(|check| Check::of(NO_SENSE, 0x00, check.sense.qualifier))?;
        }
        Ok(())
    }

    /// LOCATE.
    pub(super) fn locate(&mut self, position: u64) -> Result<(), Check> {
        self.command(|drive| {
            drive.must_know_numbers()?;
            drive.flush()?;
            drive.position = position.min(drive.length());
            drive.took_locate();
            if drive.position == position { Ok(()) } else { Err(Check::end_of_data(0)) }
        })
    }

    /// LOAD UNLOAD with the load bit.
    pub(super) fn load(&mut self) -> Result<(), Check> {
        self.command_at_any_time(|drive| {
            if drive.cartridge.is_none() {
                return Err(Check::of(NOT_READY, 0x3a, 0x00));
            }
            if !drive.loaded {
                drive.loaded = true;
                drive.attention = Some(Check::of(UNIT_ATTENTION, 0x28, 0x00).sense);
            }
            drive.flush()?;
            drive.position = 0;
            drive.took_load();
            Ok(())
        })
    }

    /// LOAD UNLOAD without it. The cartridge stays in the slot.
    pub(super) fn unload(&mut self) -> Result<(), Check> {
        self.command(|drive| {
            drive.flush()?;
            drive.loaded = false;
            drive.position = 0;
            drive.took(Act::Unload);
            Ok(())
        })
    }

    /// READ POSITION.
    pub(super) fn read_position(&mut self) -> Result<u64, Check> {
        self.command(|drive| {
            drive.must_know_numbers()?;
            Ok(drive.position)
        })
    }

    /// MODE SELECT of the block descriptor.
    pub(super) fn select_block_bytes(&mut self, block_bytes: u32) -> Result<(), Check> {
        self.command_at_any_time(|drive| {
            drive.notice()?;
            let settings = &drive.settings;
            let known = u32::from(settings.block_bytes_min)..=settings.block_bytes_max;
            if block_bytes != 0 && !known.contains(&block_bytes) {
                // Invalid field in parameter list.
                return Err(Check::of(ILLEGAL_REQUEST, 0x26, 0x00));
            }
            drive.block_bytes = block_bytes;
            Ok(())
        })
    }

    // Steps of commands.

    fn begin_read(&mut self) -> Result<(), Check> {
        self.flush()?;
        self.took_notice();
        Ok(())
    }

    fn must_know_numbers(&self) -> Result<(), Check> {
        match self.settings.positioning {
            Positioning::Numbered => Ok(()),
            Positioning::Unsupported => Err(Check::of(ILLEGAL_REQUEST, 0x20, 0x00)),
        }
    }

    fn begin_write(&mut self) -> Result<(), Check> {
        self.took_notice();
        if !self.is_protected() { Ok(()) } else { Err(Check::of(DATA_PROTECT, 0x27, 0x00)) }
    }

    /// Resets the bus if the cartridge's faults demand it at this object.
    fn reset_if_due(&mut self) -> Result<(), Check> {
        let position = self.position;
        let reset = self.with_medium(|medium| {
            let due = medium.faults.takes_reset(position);
            if due { medium.lose_buffer().map(|()| true) } else { Ok(false) }
        });
        match reset {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.buffering = false;
                self.position = 0;
                // Power on, reset, or bus device reset occurred.
                Err(Check::of(UNIT_ATTENTION, 0x29, 0x00))
            }
            Err(_) => Err(write_error()),
        }
    }

    /// Reads the next object into `buffer` if it is a block, and returns the block's length, which
    /// may differ from the buffer's. The tape is behind it then.
    fn next_block(&mut self, buffer: &mut [u8], left: u64) -> Result<usize, Check> {
        self.reset_if_due()?;
        let position = self.position;
        let mut read = self.with_medium(|medium| read_object(medium, position, buffer, left));
        if let Err(check) = &mut read
            && check.sense.key == BLANK_CHECK
            && self.settings.ends == Ends::Vague
        {
            *check = Check { end_of_medium: true, ..Check::of(BLANK_CHECK, 0x00, 0x00) };
        }
        match read {
            Ok(_) => self.position += 1,
            Err(check) if check.filemark => self.position += 1,
            Err(check) if check.sense.key == MEDIUM_ERROR => {
                let after = self.with_medium(|medium| medium.faults.after_read_error);
                self.position += u64::from(after == AfterReadError::Behind);
            }
            Err(_) => {}
        }
        read
    }

    fn put_block(&mut self, block: &[u8]) -> Result<(), Check> {
        let compression = if self.compression { Compression::On } else { Compression::Off };
        let native_bytes = match &mut self.pace {
            Some(pace) => pace.native_bytes(block, compression),
            None => block.len() as u32,
        };
        let position = self.position;
        if self.with_medium(|medium| medium.faults.unwritable.contains(&position)) {
            return Err(write_error());
        }
        if !self.with_medium(|medium| medium.fits(position, native_bytes)) {
            return Err(Check::medium_full(0));
        }
        let packing = self.packing(block, native_bytes);
        self.put(ObjectRef::Block(block), native_bytes, packing)
    }

    fn put(
        &mut self,
        object: ObjectRef<'_>,
        native_bytes: u32,
        packing: Packing,
    ) -> Result<(), Check> {
        self.reset_if_due()?;
        let position = self.position;
        self.with_medium(|medium| {
            medium.truncate(position)?;
            medium.append(object, native_bytes, packing)
        })
        .map_err(|_| write_error())?;
        self.position += 1;
        self.buffering = true;
        Ok(())
    }

    fn warn_of_end(&self) -> Result<(), Check> {
        if self.is_near_end() { Err(Check::early_warning()) } else { Ok(()) }
    }

    /// Writes the buffer to the medium.
    fn flush(&mut self) -> Result<(), Check> {
        if !std::mem::take(&mut self.buffering) {
            return Ok(());
        }
        self.took(Act::Synchronise);
        let lost = self.with_medium(|medium| {
            let first = medium.faults.lost_from.filter(|&first| first < medium.len());
            if let Some(first) = first {
                medium.faults.lost_from = None;
                medium.truncate(first)?;
            }
            medium.synchronise().map(|()| first)
        });
        match lost {
            Ok(None) => Ok(()),
            Ok(Some(first)) => {
                self.position = first;
                let mut check = write_error();
                check.sense.deferred = true;
                Err(check)
            }
            Err(_) => Err(write_error()),
        }
    }

    /// Whether the object that was passed is a filemark.
    fn step_forward(&mut self, left: u64) -> Result<bool, Check> {
        let position = self.position;
        match self.with_medium(|medium| medium.entry(position)) {
            None => Err(Check::end_of_data(left)),
            Some(entry) => {
                self.position += 1;
                Ok(entry.block_bytes.is_none())
            }
        }
    }

    fn step_back(&mut self, left: u64) -> Result<bool, Check> {
        let Some(before) = self.position.checked_sub(1) else {
            return Err(Check::at_beginning(left));
        };
        self.position = before;
        let entry = self.with_medium(|medium| medium.entry(before));
        Ok(entry.is_some_and(|entry| entry.block_bytes.is_none()))
    }

    fn length(&self) -> u64 {
        self.medium(|medium| medium.len()).unwrap_or(0)
    }

    fn medium<T>(&self, look: impl FnOnce(&mut Medium) -> T) -> Option<T> {
        self.cartridge.as_ref().map(|cartridge| look(&mut cartridge.lock()))
    }

    fn with_medium<T>(&self, act: impl FnOnce(&mut Medium) -> T) -> T {
        self.medium(act).expect("a ready drive has a cartridge")
    }
}

/// Whether READ reports a block that is shorter or longer than requested (SILI bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suppress {
    Nothing,
    IncorrectLength,
}

fn read_object(
    medium: &mut Medium,
    position: u64,
    buffer: &mut [u8],
    left: u64,
) -> Result<usize, Check> {
    let Some(entry) = medium.entry(position) else {
        return Err(Check::end_of_data(left));
    };
    if medium.faults.fails_to_read(position) {
        return Err(Check::of(MEDIUM_ERROR, 0x11, 0x00).left(left));
    }
    let Some(block_bytes) = entry.block_bytes else {
        return Err(Check::at_filemark(left));
    };
    let shortened = medium.faults.shortened.get(&position).copied().unwrap_or(u32::MAX);
    let block_bytes = block_bytes.min(shortened) as usize;
    let transferred = block_bytes.min(buffer.len());
    match medium.read(position, &mut buffer[..transferred]) {
        Ok(()) => Ok(block_bytes),
        Err(_) => Err(Check::of(HARDWARE_ERROR, 0x44, 0x00).left(left)),
    }
}
