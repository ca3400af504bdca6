//! A cartridge: the sequence of objects (blocks and filemarks) on it.
//!
//! Writing in the middle ends the recording there, as on any tape. A [`Storage`] keeps the bytes:
//! memory ([`Cartridge::blank`]) or a medium file ([`super::medium_file`]).
//!
//! Not here: positions, see the drive.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use base::failures::lock;
use device::tape::scsi::attribute::CartridgeMemory;

use super::faults::Faults;

/// Whether the cartridge may be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// It may.
    #[default]
    Writable,
    /// Its write-protect switch is set.
    Protected,
}

/// Properties of a new cartridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CartridgeSettings {
    /// Native capacity in bytes. Filemarks take none.
    pub capacity_bytes: u64,
    /// The drive warns from this many bytes before the end.
    pub early_warning_bytes: u64,
    /// Write protection.
    pub protection: Protection,
    /// Density code; 0x5c is LTO-7.
    pub density: u8,
}

impl Default for CartridgeSettings {
    /// An LTO-7 cartridge as small as the lab's: 64 MiB, warning 4 MiB before the end.
    fn default() -> CartridgeSettings {
        CartridgeSettings {
            capacity_bytes: 64 << 20,
            early_warning_bytes: 4 << 20,
            protection: Protection::Writable,
            density: 0x5c,
        }
    }
}

/// The memory chip of a cartridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chip {
    /// By its maker.
    pub(super) serial: [u8; 16],
    /// Volume change reference: another number after each first write since it was read.
    pub(super) change_reference: u32,
    /// What is printed on the cartridge.
    pub(super) barcode: Option<String>,
    /// Nothing was written since the number was read, or since the cartridge was loaded.
    is_as_read: bool,
}

impl Chip {
    /// The chip of a cartridge with this serial number.
    pub(super) fn new(serial: [u8; 16], change_reference: u32) -> Chip {
        Chip { serial, change_reference, barcode: None, is_as_read: true }
    }

    /// The serial number as hosts get it.
    pub(super) fn serial_text(&self) -> String {
        self.serial.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// With what is printed on the cartridge.
    pub(super) fn with_barcode(self, barcode: Option<String>) -> Chip {
        Chip { barcode, ..self }
    }

    /// The chip of a new cartridge.
    pub(super) fn of_new_cartridge() -> Chip {
        // Without random numbers all are alike, as without the command.
        Chip::new(base::random::id().unwrap_or_default(), 1)
    }
}

/// The content of a medium, object by object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    Block(Vec<u8>),
    Filemark,
}

/// A cartridge. Clones are the same cartridge.
#[derive(Clone)]
pub struct Cartridge {
    medium: Arc<Mutex<Medium>>,
}

impl Cartridge {
    /// An empty cartridge, kept in memory.
    pub fn blank(settings: CartridgeSettings) -> Cartridge {
        let storage = Box::new(MemoryStorage::default());
        Cartridge::with_storage(settings, Chip::of_new_cartridge(), Vec::new(), storage)
    }

    /// An empty cartridge of that capacity, kept in memory; otherwise like
    /// [`CartridgeSettings::default`], with a warning a sixteenth before the end.
    pub fn of_capacity(capacity_bytes: u64) -> Cartridge {
        Cartridge::blank(CartridgeSettings {
            capacity_bytes,
            early_warning_bytes: capacity_bytes / 16,
            ..CartridgeSettings::default()
        })
    }

    pub(super) fn with_storage(
        settings: CartridgeSettings,
        chip: Chip,
        entries: Vec<Entry>,
        storage: Box<dyn Storage>,
    ) -> Cartridge {
        let synchronised = entries.len();
        let (faults, trouble) = (Faults::default(), None);
        let medium = Medium { settings, chip, entries, storage, synchronised, faults, trouble };
        Cartridge { medium: Arc::new(Mutex::new(medium)) }
    }

    /// Whether both are the same cartridge.
    pub fn is_same(&self, other: &Cartridge) -> bool {
        Arc::ptr_eq(&self.medium, &other.medium)
    }

    /// A copy of its content.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub fn objects(&self) -> io::Result<Vec<Object>> {
        let mut medium = self.lock();
        (0..medium.len()).map(|number| medium.object(number)).collect()
    }

    /// A copy of object `number`; a filemark if there is none.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub fn object(&self, number: u64) -> io::Result<Object> {
        self.lock().object(number)
    }

    /// Number of objects on it.
    pub fn len(&self) -> u64 {
        self.lock().len()
    }

    /// Whether nothing was ever written to it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Native bytes of the blocks on it.
    pub fn used_bytes(&self) -> u64 {
        let medium = self.lock();
        medium.bytes_before(medium.len())
    }

    /// Density code of its generation.
    pub fn density(&self) -> u8 {
        self.lock().settings.density
    }

    /// Makes it read-only from now on, whatever its switch.
    pub fn protect(&self) {
        self.lock().settings.protection = Protection::Protected;
    }

    /// Native bytes that fit.
    pub fn capacity_bytes(&self) -> u64 {
        self.lock().settings.capacity_bytes
    }

    /// What its chip says, without a drive that reads it.
    pub fn memory(&self) -> CartridgeMemory {
        let medium = self.lock();
        CartridgeMemory {
            serial: Some(medium.chip.serial_text()),
            change_reference: Some(medium.chip.change_reference),
            barcode: medium.chip.barcode.clone(),
        }
    }

    /// Native bytes before the end from which on the drive warns.
    pub fn early_warning_bytes(&self) -> u64 {
        self.lock().settings.early_warning_bytes
    }

    /// Sets the write-protect switch. A drive reads it when the cartridge is loaded.
    pub fn set_protection(&self, protection: Protection) {
        self.lock().settings.protection = protection;
    }

    /// Sets its faults.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Removes everything from object `number` on, like a run that died.
    ///
    /// # Errors
    /// When the storage cannot be written.
    pub fn cut(&self, number: u64) -> io::Result<()> {
        self.lock().truncate(number)
    }

    /// Replaces its content by these objects, like a medium with wrong data.
    ///
    /// # Errors
    /// When the storage cannot be written.
    pub fn record(&self, objects: &[Object]) -> io::Result<()> {
        let mut medium = self.lock();
        medium.truncate(0)?;
        for object in objects {
            let (object, native_bytes) = match object {
                Object::Block(bytes) => (ObjectRef::Block(bytes), bytes.len() as u32),
                Object::Filemark => (ObjectRef::Filemark, 0),
            };
            medium.append(object, native_bytes, Packing::Leave)?;
        }
        Ok(())
    }

    /// A cartridge in memory with the same content and settings, without faults.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub fn duplicate(&self) -> io::Result<Cartridge> {
        let copy = Cartridge::blank(self.lock().settings.clone());
        let mut medium = self.lock();
        for number in 0..medium.len() {
            let native_bytes = medium.bytes_before(number + 1) - medium.bytes_before(number);
            let (object, native_bytes) = (medium.object(number)?, native_bytes as u32);
            let object = match &object {
                Object::Block(bytes) => ObjectRef::Block(bytes),
                Object::Filemark => ObjectRef::Filemark,
            };
            copy.lock().append(object, native_bytes, Packing::Leave)?;
        }
        drop(medium);
        copy.lock().synchronise()?;
        Ok(copy)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Medium> {
        // A thread that died in the middle of a test leaves the medium as a power cut would.
        lock(&self.medium)
    }
}

/// An object that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectRef<'a> {
    Block(&'a [u8]),
    Filemark,
}

/// Whether a storage should try to pack a block. That does not change the block's size on tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// The drive does not compress, or the block does not shrink.
    Leave,
    /// The drive compresses, and the block is likely to shrink.
    Shrink,
}

/// Keeps the bytes of a cartridge.
pub(super) trait Storage: Send {
    /// Appends an object; it takes `native_bytes` of the tape.
    fn append(
        &mut self,
        object: ObjectRef<'_>,
        native_bytes: u32,
        packing: Packing,
    ) -> io::Result<()>;
    /// Removes all objects from `number` on.
    fn truncate(&mut self, number: u64) -> io::Result<()>;
    /// The first bytes of block `number`, as many as fit into `bytes`.
    fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Returns when all objects would survive a power cut.
    fn synchronise(&mut self) -> io::Result<()>;
    /// Keeps the chip's volume change reference.
    fn keep_change_reference(&mut self, _reference: u32) -> io::Result<()> {
        Ok(())
    }
}

/// What is known of an object without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Bytes of a block; none for a filemark.
    pub(super) block_bytes: Option<u32>,
    /// Native bytes from the beginning to the end of this object.
    pub(super) end_bytes: u64,
}

/// The content of a cartridge.
pub(super) struct Medium {
    pub(super) settings: CartridgeSettings,
    pub(super) faults: Faults,
    pub(super) chip: Chip,
    entries: Vec<Entry>,
    storage: Box<dyn Storage>,
    /// Objects before this one are on the medium for good; the others are in the drive's buffer.
    synchronised: usize,
    /// The last error of the storage.
    trouble: Option<String>,
}

impl Medium {
    /// The last error of the storage.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.trouble = Some(error.to_string());
        }
        result
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Object `number`; `None` after the last.
    pub(super) fn entry(&self, number: u64) -> Option<Entry> {
        self.entries.get(usize::try_from(number).ok()?).copied()
    }

    /// Native bytes before object `number`.
    pub(super) fn bytes_before(&self, number: u64) -> u64 {
        let before = (number as usize).min(self.entries.len());
        before.checked_sub(1).map_or(0, |last| self.entries[last].end_bytes)
    }

    /// Whether `native_bytes` more fit after object `number`.
    pub(super) fn fits(&self, number: u64, native_bytes: u32) -> bool {
        self.bytes_before(number) + u64::from(native_bytes) <= self.settings.capacity_bytes
    }

    /// Whether the drive warns of the end when it is before object `number`.
    pub(super) fn is_near_end(&self, number: u64) -> bool {
        let limit = self.settings.capacity_bytes.saturating_sub(self.settings.early_warning_bytes);
        self.bytes_before(number) >= limit
    }

    pub(super) fn append(
        &mut self,
        object: ObjectRef<'_>,
        native_bytes: u32,
        packing: Packing,
    ) -> io::Result<()> {
        self.changes()?;
        let appended = self.storage.append(object, native_bytes, packing);
        self.note(appended)?;
        let end_bytes = self.bytes_before(self.len()) + u64::from(native_bytes);
        let block_bytes = match object {
            ObjectRef::Block(bytes) => Some(bytes.len() as u32),
            ObjectRef::Filemark => None,
        };
        self.entries.push(Entry { block_bytes, end_bytes });
        Ok(())
    }

    pub(super) fn truncate(&mut self, number: u64) -> io::Result<()> {
        if number < self.len() {
            self.changes()?;
            let truncated = self.storage.truncate(number);
            self.note(truncated)?;
            self.entries.truncate(number as usize);
            self.synchronised = self.synchronised.min(self.entries.len());
        }
        Ok(())
    }

    /// The volume change reference, which the next write changes from now on.
    pub(super) fn read_change_reference(&mut self) -> u32 {
        self.chip.is_as_read = true;
        self.chip.change_reference
    }

    /// What is on the medium is about to change (SPC-4, 7.4.2.2.8).
    fn changes(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.chip.is_as_read) {
            return Ok(());
        }
        self.chip.change_reference = self.chip.change_reference.wrapping_add(1).max(1);
        let kept = self.storage.keep_change_reference(self.chip.change_reference);
        self.note(kept)
    }

    pub(super) fn synchronise(&mut self) -> io::Result<()> {
        let synchronised = self.storage.synchronise();
        self.note(synchronised)?;
        self.synchronised = self.entries.len();
        Ok(())
    }

    /// The drive lost its buffer: objects that were not synchronised are gone.
    pub(super) fn lose_buffer(&mut self) -> io::Result<()> {
        self.truncate(self.synchronised as u64)
    }

    /// The first bytes of block `number`, as many as fit into `bytes`.
    pub(super) fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        let read = self.storage.read(number, bytes);
        self.note(read)
    }

    fn object(&mut self, number: u64) -> io::Result<Object> {
        match self.entry(number).and_then(|entry| entry.block_bytes) {
            None => Ok(Object::Filemark),
            Some(block_bytes) => {
                let mut bytes = vec![0; block_bytes as usize];
                self.read(number, &mut bytes)?;
                Ok(Object::Block(bytes))
            }
        }
    }
}

/// Blocks in memory; a filemark has no bytes.
#[derive(Default)]
struct MemoryStorage {
    objects: Vec<Box<[u8]>>,
}

impl Storage for MemoryStorage {
    fn append(&mut self, object: ObjectRef<'_>, _: u32, _: Packing) -> io::Result<()> {
        self.objects.push(match object {
            ObjectRef::Block(bytes) => bytes.into(),
            ObjectRef::Filemark => Box::default(),
        });
        Ok(())
    }

    fn truncate(&mut self, number: u64) -> io::Result<()> {
        self.objects.truncate(number as usize);
        Ok(())
    }

    fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(&self.objects[number as usize][..bytes.len()]);
        Ok(())
    }

    fn synchronise(&mut self) -> io::Result<()> {
        Ok(())
    }
}
