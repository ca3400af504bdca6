//! A tape drive as an experiment needs it: what is on the medium, where runs go, what is set, and
//! that all of it is as it was in the end.
//!
//! The medium is looked at before anything is written. A blank one, or one with the label of an
//! earlier experiment, is taken; anything else only when that was allowed. A label of our own is
//! the first file of the test area. Runs follow one behind the other, each a file of its own, and
//! begin again behind the label when the rest of the medium is too small: winding to the beginning
//! for every run would cost more time than the runs, and wear one place of the medium.
//!
//! After an error of the drive nothing is known of where it stands, or which medium is in it. So
//! the label is looked for and compared before the next run writes.

mod known;

use std::collections::BTreeMap;

use device::tape::limits::DriveLimits;
use device::tape::raw::MtOperation;
use device::tape::{
    Access, BlockMode, Compression, CompressionError, DriveCompression, Filemark, OpenError, Tape,
    TapeDrive, TapePlace, TapeRead, TapeWrite,
};
use flow::account::Account;
use flow::ring::Block;
use rustix::io::Errno;
use sim::mount::drive::DriveTime;

use super::counters::{Counters, StatusFile};
use super::error::TapeBenchError;
use super::found::{First, behind_data, read_first};
use super::label::Label;
use super::options::{Begin, MediumChanger, Occupied};
use super::transfer::{Medium, Taken};
pub(super) use known::Rates;
use known::{generation, told_capacity, usable};

/// Media that are asked for before a run gives up.
const CHANGE_ATTEMPTS_MAX: u32 = 10;

/// Where on a medium runs are written.
#[derive(Clone, Debug)]
struct Area {
    label: Label,
    /// File of the label; the first run is the next one.
    label_file: u32,
    /// Number of the object behind the label's filemark, where the drive knows it.
    first_object: Option<u64>,
    /// Bytes written behind the label, and files.
    written_bytes: u64,
    files: u32,
    /// Bytes that fit in behind the label, as far as that is known.
    room_bytes: Option<u64>,
}

/// What the drive was set to before.
#[derive(Clone, Copy, Debug)]
struct Settings {
    block_mode: BlockMode,
    compression: Option<Compression>,
}

/// What a position is known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    file: u32,
    object: Option<u64>,
}

/// A drive with a medium.
pub(super) struct MeasuredDrive {
    drive: Box<dyn TapeDrive>,
    status: Option<StatusFile>,
    /// How many times as fast as ours the clock of a virtual drive runs.
    clock_ratio: f64,
    tape: Option<Tape>,
    limits: DriveLimits,
    /// The drive's buffer, as its own log has it.
    log_buffer_bytes: Option<u64>,
    /// What its medium takes, as the drive told before the medium was looked at: later on the
    /// answer could be a notice of another one, which must not be lost.
    told_capacity_bytes: Option<u64>,
    before: Settings,
    compression: Option<Compression>,
    begin: Begin,
    occupied: Occupied,
    area: Option<Area>,
    changer: Option<Box<dyn MediumChanger>>,
    /// The position is not known.
    lost: bool,
}

impl MeasuredDrive {
    /// Opens the drive and checks the medium. Writes nothing yet.
    pub(super) fn open(
        drive: Box<dyn TapeDrive>,
        status: Option<StatusFile>,
        begin: Begin,
        occupied: Occupied,
        changer: Option<Box<dyn MediumChanger>>,
    ) -> Result<MeasuredDrive, TapeBenchError> {
        let mut tape = drive.open(Access::Write)?;
        let block_mode = tape.status()?.block_mode;
        let compression = compression(&mut tape, status.as_ref());
        let before = Settings { block_mode, compression };
        let limits = tape.limits();
        let log_buffer_bytes = tape.sequential_access().ok().and_then(|log| log.buffer_bytes);
        let told_capacity_bytes = told_capacity(&mut tape);
        let clock_ratio = status.as_ref().map_or(1.0, StatusFile::clock_ratio);
        Ok(MeasuredDrive {
            drive,
            status,
            clock_ratio,
            tape: Some(tape),
            limits,
            log_buffer_bytes,
            told_capacity_bytes,
            before,
            compression,
            begin,
            occupied,
            area: None,
            changer,
            lost: false,
        })
    }

    /// Whether blocks of this size go through.
    pub(super) fn check_block(&self, block_bytes: usize) -> Result<(), TapeBenchError> {
        self.limits.check(block_bytes as u64).map_err(|source| TapeBenchError::BlockSize {
            device: self.drive.name().to_owned(),
            source,
        })
    }

    /// Begins the test area on the medium that is in the drive, where none was asked for by name.
    pub(super) fn begin(&mut self) -> Result<(), TapeBenchError> {
        self.begin_area(None)
    }

    /// Sees to it that the medium of this name is in the drive, and has a test area.
    pub(super) fn want_medium(&mut self, medium: &str) -> Result<(), TapeBenchError> {
        if self.area.as_ref().is_some_and(|area| area.label.medium == medium) {
            return Ok(());
        }
        let in_drive = self.label_at_beginning()?;
        if in_drive.as_ref().is_some_and(|label| label.medium == medium) {
            return self.begin_area(Some(medium));
        }
        if self.changer.is_none() {
            // The only one: the user says what is in the drive, unless its label says otherwise.
            return match in_drive.filter(|label| !label.medium.is_empty()) {
                Some(label) if self.occupied == Occupied::Keep => {
                    let device = self.drive.name().to_owned();
                    Err(TapeBenchError::OtherMedium { device, found: label.medium })
                }
                _ => self.begin_area(Some(medium)),
            };
        }
        let no_medium = |source| TapeBenchError::NoMedium { medium: medium.to_owned(), source };
        let mut why: Option<TapeBenchError> = None;
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            self.area = None;
            self.tape = None;
            let device = self.drive.name().to_owned();
            let changer = self.changer.as_mut().expect("it was there a moment ago");
            changer.bring(&device, medium, why.as_ref()).map_err(no_medium)?;
            match self.take_changed(medium) {
                Err(error) if error.another_medium_may_help() => why = Some(error),
                result => return result,
            }
        }
        Err(no_medium(Box::new(why.expect("a change was attempted, and nothing came of it"))))
    }

    fn take_changed(&mut self, medium: &str) -> Result<(), TapeBenchError> {
        self.reopen()?;
        self.told_capacity_bytes = self.tape.as_mut().and_then(told_capacity);
        if let Some(found) = self.label_at_beginning()?
            && !found.medium.is_empty()
            && found.medium != medium
        {
            let device = self.drive.name().to_owned();
            return Err(TapeBenchError::OtherMedium { device, found: found.medium });
        }
        self.begin_area(Some(medium))
    }

    /// Makes everything ready for a run: the settings, and a place with room for `bytes`. Says
    /// what should be known.
    pub(super) fn prepare(
        &mut self,
        wanted: Option<DriveCompression>,
        bytes: u64,
    ) -> Result<Vec<String>, TapeBenchError> {
        if self.lost {
            self.recover()?;
        }
        let area = self.area.as_ref().expect("an area is begun before the first run");
        let end = area.written_bytes.saturating_add(bytes);
        if area.files > 0 && area.room_bytes.is_some_and(|room| end > room) {
            self.back_to_start()?;
        }
        let notes = match wanted {
            Some(wanted) => self.set_compression(wanted)?,
            None => Vec::new(),
        };
        self.tape()?.set_block_mode(BlockMode::Variable)?;
        Ok(notes)
    }

    /// Where the tape stands, at the beginning of a run.
    pub(super) fn mark(&mut self) -> Result<Mark, TapeBenchError> {
        let area = self.area.as_ref().expect("an area is begun before the first run");
        let file = area.label_file + 1 + area.files;
        // A drive that knows its place and does not say it has something else to say, which must
        // not be lost: that it was reset, or has another medium.
        let object = match area.first_object {
            Some(_) => Some(self.tape()?.position()?),
            None => None,
        };
        Ok(Mark { file, object })
    }

    /// Back to the beginning of a file that was written.
    pub(super) fn go_to(&mut self, mark: Mark) -> Result<(), TapeBenchError> {
        let place = TapePlace { file_number: Some(mark.file), block_in_file: None };
        self.tape()?.go_to(place, mark.object)?;
        Ok(())
    }

    /// Files of so many bytes have ended, behind which the tape stands.
    pub(super) fn passed(&mut self, bytes: u64, files: u32) {
        if let Some(area) = &mut self.area {
            area.files += files;
            area.written_bytes += bytes;
        }
    }

    /// The end of the medium came after so many bytes of a file. Whether a run from the start of
    /// the test area may be another matter.
    pub(super) fn met_end(&mut self, bytes: u64) -> Result<bool, TapeBenchError> {
        let area = self.area.as_mut().expect("a run was in it");
        let room = area.written_bytes + bytes;
        area.room_bytes = Some(area.room_bytes.map_or(room, |known| known.min(room)));
        let was_first = area.files == 0;
        self.leave();
        self.back_to_start()?;
        Ok(!was_first)
    }

    /// After a failed run: leaves the medium at a filemark if the drive still obeys commands.
    pub(super) fn leave(&mut self) {
        let Some(tape) = &mut self.tape else { return };
        // Near the end of the medium the driver refuses every other write (st.rst).
        for _ in 0..2 {
            if tape.write_filemark(Filemark::Synchronising).is_ok() {
                self.passed(0, 1);
                return;
            }
        }
        self.lost = true;
    }

    /// After an error of the drive.
    pub(super) fn lose(&mut self) {
        if let Some(tape) = &mut self.tape {
            // No filemark where the drive may stand now (`tapeset::write`, `Volume::let_be`).
            let _ = tape.synchronise();
        }
        self.lost = true;
    }

    /// How many times as fast as ours the drive's clock runs.
    pub(super) fn clock_ratio(&self) -> f64 {
        self.clock_ratio
    }

    pub(super) fn medium(&mut self) -> Result<&mut dyn Medium, TapeBenchError> {
        Ok(self.tape()?)
    }

    /// What was counted so far. Asks the drive: not while it streams.
    pub(super) fn look(&mut self) -> Result<Counters, TapeBenchError> {
        let device = self.drive.name().to_owned();
        let tape = self.tape()?;
        let kernel = tape.statistics();
        let log = match tape.sequential_access() {
            Ok(log) => Some(log),
            // The notice is gone with this question, and the driver does not know of it.
            Err(error) if error.is_attention() => return Err(TapeBenchError::Attention { device }),
            Err(_) => None,
        };
        Ok(Counters { kernel, log, time: self.virtual_time() })
    }

    /// The process that is the drive, of a virtual one.
    pub(super) fn process(&self) -> Option<u32> {
        self.status.as_ref()?.read()?.process
    }

    fn virtual_time(&self) -> Option<DriveTime> {
        self.status.as_ref()?.read()?.time
    }

    /// What a run depends on. Moves no tape; not while the drive streams.
    pub(super) fn environment(&mut self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut put = |name: &str, value: String| {
            if !value.is_empty() {
                found.insert(name.to_owned(), value);
            }
        };
        put("path", self.drive.name().to_owned());
        put("drive block bytes max", self.limits.block_bytes_max.to_string());
        put("drive compression", compression_name(self.compression).to_owned());
        if let Some(area) = &self.area {
            put("medium", area.label.medium.clone());
        }
        if let Some(tape) = &mut self.tape {
            if let Ok(names) = tape.inquiry() {
                put("drive", format!("{} {}", names.vendor, names.product));
                put("drive firmware", names.revision);
            }
            if let Some(generation) = generation(tape) {
                put("medium generation", generation.name.to_owned());
            }
        }
        if let Some(status) = self.status.as_ref().and_then(StatusFile::read) {
            put("drive", format!("virtual {}", status.drive));
        }
        let rates = self.rates();
        let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        put("drive buffer bytes", number(rates.buffer_bytes));
        put("drive native bytes per second", number(rates.highest_bytes_per_second));
        put("drive lowest bytes per second", number(rates.lowest_bytes_per_second));
        found
    }

    /// Sets everything as it was. The tape stays where it is, behind a filemark.
    pub(super) fn put_back(&mut self) -> Result<(), TapeBenchError> {
        if self.lost || self.tape.is_none() {
            // A setting is made at a known place only.
            self.reopen()?;
            self.tape()?.rewind()?;
            self.lost = false;
        }
        let compression = match self.before.compression {
            Some(Compression::On) if self.compression != self.before.compression => {
                self.set_compression(DriveCompression::On).map(drop)
            }
            Some(Compression::Off) if self.compression != self.before.compression => {
                self.set_compression(DriveCompression::Off).map(drop)
            }
            _ => Ok(()),
        };
        let mode = self.before.block_mode;
        self.tape()?.set_block_mode(mode)?;
        compression?;
        self.tape = None;
        Ok(())
    }

    fn tape(&mut self) -> Result<&mut Tape, TapeBenchError> {
        self.tape.as_mut().ok_or_else(|| {
            let device = self.drive.name().to_owned();
            TapeBenchError::Open(OpenError::NoMedium { device })
        })
    }

    fn reopen(&mut self) -> Result<(), TapeBenchError> {
        // One opener at a time.
        self.tape = None;
        self.tape = Some(self.drive.open(Access::Write)?);
        Ok(())
    }

    /// The label in the first block of the medium; leaves the tape somewhere in its first file.
    fn label_at_beginning(&mut self) -> Result<Option<Label>, TapeBenchError> {
        let tape = self.tape()?;
        tape.set_block_mode(BlockMode::Variable)?;
        tape.rewind()?;
        match read_first(tape)? {
            First::Ours(label) => Ok(Some(label)),
            First::Blank | First::Foreign => Ok(None),
        }
    }

    /// Looks at the medium and writes the label of a test area.
    fn begin_area(&mut self, medium: Option<&str>) -> Result<(), TapeBenchError> {
        let label_file = match self.begin {
            Begin::AtBeginning => {
                self.must_be_free()?;
                let tape = self.tape()?;
                tape.rewind()?;
                tape.set_block_mode(BlockMode::Variable)?;
                0
            }
            Begin::BehindData => behind_data(self.tape()?)?,
        };
        let label = Label::new(medium);
        let tape = self.tape()?;
        let written = tape.write(&label.to_block())?;
        if written != TapeWrite::Whole {
            let device = tape.name().to_owned();
            return Err(TapeBenchError::NoRoom { device });
        }
        tape.write_filemark(Filemark::Synchronising)?;
        let first_object = tape.position().ok();
        let room_bytes = self.capacity().filter(|_| label_file == 0).map(usable);
        self.area =
            Some(Area { label, label_file, first_object, written_bytes: 0, files: 0, room_bytes });
        Ok(())
    }

    /// Whether the medium may be written over.
    fn must_be_free(&mut self) -> Result<(), TapeBenchError> {
        if self.occupied == Occupied::Overwrite {
            return Ok(());
        }
        let tape = self.tape()?;
        tape.set_block_mode(BlockMode::Variable)?;
        tape.rewind()?;
        match read_first(tape)? {
            First::Blank | First::Ours(_) => Ok(()),
            First::Foreign => Err(TapeBenchError::HoldsData { device: tape.name().to_owned() }),
        }
    }

    /// To the first run's place, by way of the label: the medium has to be the one that it was.
    fn back_to_start(&mut self) -> Result<(), TapeBenchError> {
        let area = self.area.as_mut().expect("there is no start without an area");
        (area.written_bytes, area.files) = (0, 0);
        let (file, expected) = (area.label_file, area.label.clone());
        let tape = self.tape()?;
        tape.rewind()?;
        tape.set_block_mode(BlockMode::Variable)?;
        if file > 0 {
            tape.go_to(TapePlace { file_number: Some(file), block_in_file: None }, None)?;
        }
        match read_first(tape)? {
            First::Ours(found) if found == expected => Ok(tape.space_filemarks(1)?),
            _ => {
                let device = tape.name().to_owned();
                Err(TapeBenchError::MediumChanged { device })
            }
        }
    }

    /// After an error: opens the drive again and goes to the start of the test area.
    fn recover(&mut self) -> Result<(), TapeBenchError> {
        self.reopen()?;
        self.back_to_start()?;
        self.lost = false;
        Ok(())
    }

    /// Switches the drive's compression, and looks whether it did.
    fn set_compression(&mut self, wanted: DriveCompression) -> Result<Vec<String>, TapeBenchError> {
        let expected = match wanted {
            DriveCompression::On => Compression::On,
            DriveCompression::Off => Compression::Off,
        };
        if self.compression == Some(expected) {
            return Ok(Vec::new());
        }
        let status = self.status.clone();
        let tape = self.tape()?;
        match tape.set_drive_compression(wanted) {
            Ok(found) => {
                self.compression = Some(found);
                return Ok(Vec::new());
            }
            // Where no commands can be sent, the driver can still be told.
            Err(CompressionError::ReadBack { source, .. }) if source.is_unknown() => {}
            Err(error) => return Err(error.into()),
        }
        let count = i32::from(wanted == DriveCompression::On);
        tape.raw().operate(MtOperation::Compression, count).map_err(|source| {
            TapeBenchError::Compression { device: self.drive.name().to_owned(), source }
        })?;
        let found = self.tape.as_mut().and_then(|tape| compression(tape, status.as_ref()));
        self.compression = found.or(Some(expected));
        match found {
            None => Ok(vec![
                "the drive's compression was switched, but the drive cannot report the result"
                    .to_owned(),
            ]),
            Some(found) if found == expected => Ok(Vec::new()),
            Some(_) => {
                Err(TapeBenchError::CompressionNotApplied { device: self.drive.name().to_owned() })
            }
        }
    }
}

impl Drop for MeasuredDrive {
    /// The way out through an error or a panic.
    fn drop(&mut self) {
        if self.tape.is_some() {
            let _ = self.put_back();
        }
    }
}

impl Medium for Tape {
    fn write(&mut self, block: &Block, _: &mut Account) -> Result<Taken, TapeBenchError> {
        match Tape::write(self, block)? {
            TapeWrite::Whole => Ok(Taken::Whole),
            TapeWrite::EndOfMedium(_) => Ok(Taken::EndOfMedium),
        }
    }

    fn end_file(&mut self) -> Result<(), TapeBenchError> {
        // Near the end of a medium the driver refuses every other write (st.rst, "EOM Behaviour
        // When Writing").
        match self.write_filemark(Filemark::Synchronising) {
            Err(error) if Errno::from_io_error(&error.source) == Some(Errno::NOSPC) => {
                Ok(self.write_filemark(Filemark::Synchronising)?)
            }
            ended => Ok(ended?),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TapeBenchError> {
        match Tape::read(self, buffer)? {
            TapeRead::Block(bytes) => Ok(Some(bytes)),
            TapeRead::Filemark => Ok(None),
            TapeRead::EndOfData => Err(TapeBenchError::NoFilemark),
            TapeRead::LargerBlock => Err(TapeBenchError::LargerBlock),
        }
    }
}

fn compression(tape: &mut Tape, status: Option<&StatusFile>) -> Option<Compression> {
    if let Ok(found) = tape.drive_compression() {
        return Some(found);
    }
    let is_on = status?.read()?.compression;
    Some(if is_on { Compression::On } else { Compression::Off })
}

fn compression_name(compression: Option<Compression>) -> &'static str {
    match compression {
        Some(Compression::On) => "on",
        Some(Compression::Off) => "off",
        Some(Compression::Unable) => "none",
        None => "unknown",
    }
}
