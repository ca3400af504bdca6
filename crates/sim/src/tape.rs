//! A tape drive in this process.
//!
//! Four layers, as in a machine: a [`Cartridge`] holds blocks and filemarks. A drive executes the
//! commands of the SCSI stream command standard on it. A driver turns them into what read(2),
//! write(2) and `MTIOCTOP` show to a program, errno by errno as the kernel's `st` does.
//! [`VirtualTape`] is an open file of it and implements [`RawTape`]. Faults on demand are in the
//! two lower layers ([`Faults`], [`DriveSettings`]), so that they reach a program as from a real
//! drive.
//!
//! Commands take no time, unless a [`pace::Pace`] adds it; [`real_time`] has one.
//!
//! Not here: the folder in front (`mount`).

mod access_order;
mod answer;
mod check;
mod drive;
mod driver;
mod faults;
mod medium;
mod medium_file;
mod mishap;
mod operation;
mod options;
pub mod pace;
pub mod real_time;
mod target;
mod watched;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use base::failures::lock;
use device::tape::raw::{MtOperation, QuestionError, RawStatus, RawTape, Statistics};
use device::tape::sense::Sense;
use device::tape::{Access, OpenError, Tape, TapeDrive, TapeStatus};
use rustix::io::Errno;

pub use drive::DriveSettings;
pub use driver::{OnClose, OpenDirection, OpenMode, Readiness};
pub use faults::{
    AccessOrders, AfterReadError, Answers, CartridgeMemories, CompressionSwitch, Ends, Faults,
    Persistence, Positioning,
};
pub use medium::{Cartridge, CartridgeSettings, Object, Protection};
pub use medium_file::{MediumFileError, media_in, room_for_medium};
pub use mishap::Mishap;
pub use target::{Completion, SENSE_BYTES, ScsiTarget};
pub use watched::{Call, WatchedTape};

use driver::Driver;

/// A drive for cartridges. Clones are the same drive.
#[derive(Clone)]
pub struct VirtualDrive {
    name: String,
    driver: Arc<Mutex<Driver>>,
}

impl VirtualDrive {
    /// An empty drive; `name` is for messages.
    pub fn new(name: impl Into<String>, settings: DriveSettings) -> VirtualDrive {
        let driver = Arc::new(Mutex::new(Driver::new(settings)));
        VirtualDrive { name: name.into(), driver }
    }

    /// A drive with default settings and a cartridge in it.
    pub fn loaded(cartridge: Cartridge) -> VirtualDrive {
        let drive = VirtualDrive::new("virtual tape", DriveSettings::default());
        drive.insert(cartridge);
        drive
    }

    /// Inserts a cartridge, whatever a program is doing; returns the previous one. The next command
    /// meets a unit attention.
    pub fn insert(&self, cartridge: Cartridge) -> Option<Cartridge> {
        let mut driver = self.lock();
        let before = driver.drive.remove();
        driver.drive.insert(cartridge);
        before
    }

    /// Removes the cartridge, whatever a program is doing.
    pub fn eject(&self) -> Option<Cartridge> {
        self.lock().drive.remove()
    }

    /// The cartridge in the slot, threaded or not.
    pub fn cartridge(&self) -> Option<Cartridge> {
        self.lock().drive.cartridge().cloned()
    }

    /// Whether a cartridge is threaded; false after an unload.
    pub fn is_loaded(&self) -> bool {
        self.lock().drive.is_loaded()
    }

    /// Changes the drive's properties and defects.
    pub fn change_settings(&self, change: impl FnOnce(&mut DriveSettings)) {
        change(&mut self.lock().drive.settings);
    }

    /// Counts commands from here on, of all programs. `mishap` happens to command number `at`, from
    /// 0, and to as many after it as `persistence` says.
    pub fn order_mishap(&self, at: u64, persistence: Persistence, mishap: Mishap) {
        self.lock().drive.mishaps.order(Some((at, persistence, mishap)));
    }

    /// Counts commands from here on, without a mishap.
    pub fn count_commands(&self) {
        self.lock().drive.mishaps.order(None);
    }

    /// Number of commands since counting began.
    pub fn commands(&self) -> u64 {
        self.lock().drive.mishaps.commands()
    }

    /// Switches compression in the drive, as from its panel.
    pub fn set_compression(&self, compression: pace::Compression) {
        self.lock().drive.compression = compression == pace::Compression::On;
    }

    /// Makes commands take time from now on.
    pub fn set_pace(&self, pace: Box<dyn pace::Pace>) {
        self.lock().drive.pace = Some(pace);
    }

    /// Number of the next object, without going through the driver.
    pub fn position(&self) -> u64 {
        self.lock().drive.position()
    }

    /// State of driver and drive, without the side effects of asking through the driver.
    pub fn glance(&self) -> Glance {
        let driver = self.lock();
        let drive = &driver.drive;
        let (file_number, block_number) = driver.place();
        Glance {
            loaded: drive.is_loaded(),
            position: drive.position(),
            file_number: u32::try_from(file_number).ok(),
            block_number: u32::try_from(block_number).ok(),
            block_bytes: drive.block_bytes,
            write_protected: drive.is_protected(),
            compression: drive.compression,
            trouble: drive.trouble(),
        }
    }

    /// open(2) of its device node.
    ///
    /// # Errors
    /// `EBUSY` if it is open already, `ENOMEDIUM`, `EROFS`, `EIO`, as `st` returns.
    pub fn open_raw(&self, mode: OpenMode) -> io::Result<VirtualTape> {
        self.lock().open(mode)?;
        Ok(VirtualTape { driver: Arc::clone(&self.driver), open: true })
    }

    fn lock(&self) -> MutexGuard<'_, Driver> {
        lock(&self.driver)
    }
}

/// State of a drive, see [`VirtualDrive::glance`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// A cartridge is threaded.
    pub loaded: bool,
    /// Number of the next object.
    pub position: u64,
    /// The driver's file number, if known.
    pub file_number: Option<u32>,
    /// The driver's block number in the file, if known.
    pub block_number: Option<u32>,
    /// Block size; 0 means variable.
    pub block_bytes: u32,
    /// The cartridge cannot be written to.
    pub write_protected: bool,
    /// The drive compresses.
    pub compression: bool,
    /// The last storage error of the cartridge.
    pub trouble: Option<String>,
}

impl TapeDrive for VirtualDrive {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, access: Access) -> Result<Tape, OpenError> {
        let device = self.name.clone();
        let direction = match access {
            Access::Write => OpenDirection::ReadWrite,
            Access::Read | Access::Look => OpenDirection::Read,
        };
        // Like opening a real drive: without waiting, then checking.
        let mode = OpenMode { direction, readiness: Readiness::NotNeeded, on_close: OnClose::Stay };
        let mut raw = match self.open_raw(mode) {
            Ok(raw) => raw,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                return Err(OpenError::Busy { device, holder: None });
            }
            Err(source) => return Err(OpenError::Other { device, source }),
        };
        let status = raw.status().map(TapeStatus::from);
        match (access, status) {
            (Access::Look, _) => {}
            // The position is unknown after a reset; a rewind sets it.
            (_, Err(_)) => {}
            (_, Ok(status)) if status.no_medium => return Err(OpenError::NoMedium { device }),
            (_, Ok(status)) if !status.online => {
                return Err(OpenError::NotReady { device, waited_seconds: 0 });
            }
            (Access::Write, Ok(status)) if status.write_protected => {
                return Err(OpenError::WriteProtected { device });
            }
            (_, Ok(_)) => {}
        }
        Ok(Tape::new(Box::new(raw), device))
    }
}

/// An open virtual drive. Dropping it closes it, which writes a filemark after data.
pub struct VirtualTape {
    driver: Arc<Mutex<Driver>>,
    open: bool,
}

impl VirtualTape {
    /// close(2), with its result.
    ///
    /// # Errors
    /// When the filemark, or what was written before it, did not reach the medium.
    pub fn close(mut self) -> io::Result<()> {
        self.open = false;
        Ok(lock(&self.driver).close()?)
    }

    /// Waits until everything written is on the medium, and changes nothing else.
    ///
    /// # Errors
    /// When it did not reach the medium.
    pub fn settle(&mut self) -> io::Result<()> {
        Ok(lock(&self.driver).settle()?)
    }

    /// `MTIOCTOP` with any operation number of `linux/mtio.h`.
    ///
    /// # Errors
    /// As `st` returns; `ENOSYS` for unknown operations.
    pub fn operate_by_number(&mut self, operation: i16, count: i32) -> io::Result<()> {
        Ok(lock(&self.driver).operate(operation, count)?)
    }
}

impl Drop for VirtualTape {
    fn drop(&mut self) {
        if self.open {
            // Dropping cannot return the error; `close` does.
            let _ = lock(&self.driver).close();
        }
    }
}

impl RawTape for VirtualTape {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(lock(&self.driver).read(buffer)?)
    }

    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        Ok(lock(&self.driver).write(block)?)
    }

    fn operate(&mut self, operation: MtOperation, count: i32) -> io::Result<()> {
        self.operate_by_number(operation as i16, count)
    }

    fn status(&mut self) -> io::Result<RawStatus> {
        Ok(lock(&self.driver).status()?)
    }

    fn position(&mut self) -> io::Result<u64> {
        Ok(lock(&self.driver).position()?)
    }

    fn command(&mut self, command: &[u8], data: &mut [u8]) -> Result<usize, QuestionError> {
        lock(&self.driver).command(command, data)
    }

    fn command_with(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError> {
        lock(&self.driver).command_with(command, data)
    }

    fn statistics(&mut self) -> Option<Statistics> {
        Some(lock(&self.driver).statistics())
    }

    fn last_sense(&mut self) -> Option<Sense> {
        lock(&self.driver).last_sense()
    }

    fn transfer_bytes_max(&mut self) -> Option<u64> {
        lock(&self.driver).drive.settings.transfer_bytes_max
    }
}

/// A rack of cartridges beside a drive, with a changer.
#[derive(Clone)]
pub struct Library {
    drive: VirtualDrive,
    cartridges: Arc<Vec<Cartridge>>,
}

impl Library {
    /// A drive with a rack. Nothing is loaded.
    pub fn new(drive: VirtualDrive, cartridges: impl IntoIterator<Item = Cartridge>) -> Library {
        Library { drive, cartridges: Arc::new(cartridges.into_iter().collect()) }
    }

    /// The drive.
    pub fn drive(&self) -> &VirtualDrive {
        &self.drive
    }

    /// All cartridges, loaded or not.
    pub fn cartridges(&self) -> &[Cartridge] {
        &self.cartridges
    }

    /// Loads cartridge `slot` in place of the current one. `false` if the slot does not exist; the
    /// drive is unchanged then.
    pub fn load(&self, slot: usize) -> bool {
        match self.cartridges.get(slot) {
            Some(cartridge) => {
                self.drive.insert(cartridge.clone());
                true
            }
            None => false,
        }
    }

    /// Slot of the cartridge in the drive.
    pub fn loaded_slot(&self) -> Option<usize> {
        let inside = self.drive.cartridge()?;
        self.cartridges.iter().position(|cartridge| cartridge.is_same(&inside))
    }

    /// Loads the next cartridge, or the first if the drive is empty; returns its slot. `None` after
    /// the last one.
    pub fn load_next(&self) -> Option<usize> {
        let slot = self.loaded_slot().map_or(0, |slot| slot + 1);
        self.load(slot).then_some(slot)
    }
}
