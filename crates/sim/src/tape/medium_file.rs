//! A cartridge in a file, which survives the process.
//!
//! A head of 4,096 bytes has the cartridge's properties; one record for each object follows:
//!
//! ```text
//! head      magic 8 | version 4 | density 1 | zero 3 | capacity 8 | early warning 8
//!           | serial number 16 | volume change reference 4 | zero ... | xxh3 of all before 8
//! record    magic 4 | block length 4 (0xffffffff: a filemark) | native bytes 4
//!           | length of the zstd frame 4 (0: the block as it came) | number 8
//!           | xxh3 of what is stored 8 | xxh3 of all before 8 | block or frame
//!           | zeros to a multiple of 8
//! ```
//!
//! Numbers are little-endian. Records are only appended, and a write in the middle of the tape
//! truncates the file first. So a killed process leaves whole records and at most one torn one,
//! which the next opening cuts off. A synchronising filemark waits for the disk; a power cut only
//! damages records after the last of those, and checksums find them.
//!
//! Serial number and volume change reference are the cartridge's memory chip. The head is written
//! again, in one piece, when the reference changes.
//!
//! A block that shrinks is stored as a frame ([`packing`]). Files of version 1 have no frames, and
//! new blocks in them are stored unpacked.
//!
//! A read-only file is a cartridge with its write-protect switch set.

mod packing;
mod record;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use twox_hash::XxHash3_64;

use super::medium::{
    Cartridge, CartridgeSettings, Chip, Entry, ObjectRef, Packing, Protection, Storage,
};
use packing::Packer;
use record::{
    Content, HEAD_BYTES, Head, HeadError, RECORD_BYTES, Record, Version, decode_head,
    decode_record, encode_head, encode_record,
};

/// Why a medium file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MediumFileError {
    /// It cannot be opened or created.
    #[error("cannot open medium file {path}")]
    Open {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another drive uses it.
    #[error("medium file {path} is in another virtual drive")]
    InUse { path: PathBuf },
    /// A device or a pipe: a medium file must be able to grow.
    #[error("{path} is not a regular file")]
    NoFile { path: PathBuf },
    /// It is not a medium file.
    #[error("{path} is not a medium file")]
    Foreign { path: PathBuf },
    /// A later version wrote it.
    #[error("medium file {path} has version {version}, which takeup does not know")]
    Version { path: PathBuf, version: u32 },
    /// Its generation differs from the one that the drive was started with and simulates.
    #[error("{path} is an {found} medium, but the drive was started with {wanted} media")]
    OtherGeneration {
        path: PathBuf,
        /// Its generation.
        found: String,
        /// The generation of the drive's media.
        wanted: String,
    },
    /// It cannot be read or written.
    #[error("cannot use medium file {path} at byte {offset}")]
    Access {
        path: PathBuf,
        /// Offset in the file.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
}

/// Most medium files of a folder that are listed.
const SHELF_MAX: usize = 1000;

/// The medium files in a folder, by name: readable files with a valid head.
///
/// # Errors
/// When the folder cannot be listed.
pub fn media_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut media = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && is_medium(&entry.path()) {
            media.push(entry.path());
        }
        if media.len() == SHELF_MAX {
            break;
        }
    }
    media.sort();
    Ok(media)
}

fn is_medium(path: &Path) -> bool {
    let mut head = [0; HEAD_BYTES];
    let Ok(file) = File::open(path) else { return false };
    base::interruptible::read_at(&file, &mut head, 0) == Ok(HEAD_BYTES)
        && decode_head(&head).is_ok()
}

impl Cartridge {
    /// The cartridge in file `path`; a new one with `settings` if the file is missing or empty.
    ///
    /// # Errors
    /// When the file is something else, in use, or cannot be read.
    pub fn in_file(path: &Path, settings: CartridgeSettings) -> Result<Cartridge, MediumFileError> {
        let (file, protection) = open(path)?;
        lock(path, &file)?;
        let at = |offset: u64| {
            let path = path.to_owned();
            move |source| MediumFileError::Access { path, offset, source }
        };
        let status = file.metadata().map_err(at(0))?;
        // The length of a disk is 0, too, and would look like an empty file.
        if !status.is_file() {
            return Err(MediumFileError::NoFile { path: path.to_owned() });
        }
        let length = status.len();
        if length == 0 {
            let version = Version::Packed;
            let chip = Chip::of_new_cartridge().with_barcode(barcode(path));
            file.write_all_at(&encode_head(&settings, &chip, version), 0).map_err(at(0))?;
            file.sync_all().map_err(at(0))?;
            let head = Head { settings: settings.clone(), chip: Some(chip.clone()), version };
            let storage = FileStorage::new(file, head, vec![HEAD_BYTES as u64]);
            return Ok(Cartridge::with_storage(settings, chip, Vec::new(), Box::new(storage)));
        }
        let mut head = [0; HEAD_BYTES];
        if length < HEAD_BYTES as u64 {
            return Err(MediumFileError::Foreign { path: path.to_owned() });
        }
        file.read_exact_at(&mut head, 0).map_err(at(0))?;
        let head = decode_head(&head).map_err(|error| refused(path, error))?;
        let (version, settings) = (head.version, head.settings.clone());
        let settings = CartridgeSettings { protection, ..settings };
        let chip = head.chip.clone().unwrap_or_else(Chip::of_new_cartridge);
        let chip = chip.with_barcode(barcode(path));
        let scan = scan(&file, version, length).map_err(|(offset, source)| at(offset)(source))?;
        let end = *scan.offsets.last().expect("offsets has the end of the last record");
        if protection == Protection::Writable && end < length {
            // A torn record of a killed process.
            file.set_len(end).map_err(at(end))?;
        }
        let head = Head { chip: Some(chip.clone()), ..head };
        let storage = FileStorage::new(file, head, scan.offsets);
        Ok(Cartridge::with_storage(settings, chip, scan.entries, Box::new(storage)))
    }
}

/// Free space that a medium leaves on its disk: a simulated tape must not fill the disk of the
/// machine.
const RESERVE_BYTES_MAX: u64 = 1 << 30;
/// The same as a share of a small disk.
const RESERVE_PARTS: u64 = 20;

/// Bytes that a medium may still take of `file`'s disk, and the reserve.
fn room(file: &File) -> io::Result<(u64, u64)> {
    let status = rustix::fs::fstatvfs(file)?;
    let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
    let reserve = RESERVE_BYTES_MAX.min(bytes(status.f_blocks) / RESERVE_PARTS);
    Ok((bytes(status.f_bavail).saturating_sub(reserve), reserve))
}

/// Free bytes on the disk of the medium file, if known.
#[must_use]
pub fn room_for_medium(path: &Path) -> Option<u64> {
    Some(room(&File::open(path).ok()?).ok()?.0)
}

/// Longest barcode of the standard (SPC-4, 7.4.2.4.8).
const BARCODE_BYTES_MAX: usize = 32;

/// The barcode: what the file is called, without the end of its name.
fn barcode(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let is_barcode =
        name.len() <= BARCODE_BYTES_MAX && name.bytes().all(|it| it.is_ascii_graphic());
    is_barcode.then(|| name.to_owned())
}

/// Blocks in a file.
struct FileStorage {
    file: File,
    head: Head,
    /// Offsets of the records; the last is the end of the file.
    offsets: Vec<u64>,
    packer: Packer,
    /// Bytes that may be written before the free space is checked again.
    looked_for_bytes: u64,
    /// A stored block, and a block of which a part is requested.
    stored: Vec<u8>,
    whole: Vec<u8>,
}

impl FileStorage {
    fn new(file: File, head: Head, offsets: Vec<u64>) -> FileStorage {
        let (stored, whole) = (Vec::new(), Vec::new());
        let (packer, looked_for_bytes) = (Packer::new(), 0);
        FileStorage { file, head, offsets, packer, looked_for_bytes, stored, whole }
    }

    /// Makes sure that the disk keeps its reserve after a record of this size. Other programs write
    /// there, too, so at most half of the free space is counted on.
    fn keep_reserve(&mut self, bytes: u64) -> io::Result<()> {
        if self.looked_for_bytes < bytes {
            let (room, reserve) = room(&self.file)?;
            if room < bytes {
                let text = format!("No space left on device: {reserve} bytes are kept free");
                return Err(io::Error::new(io::ErrorKind::StorageFull, text));
            }
            self.looked_for_bytes = (room / 2).max(bytes);
        }
        self.looked_for_bytes -= bytes;
        Ok(())
    }

    fn end(&self) -> u64 {
        *self.offsets.last().expect("offsets has the end of the last record")
    }

    /// The block of a record, into `block`, which has its length.
    fn read_block(&mut self, record: &Record, begin: u64, block: &mut [u8]) -> io::Result<()> {
        let offset = begin + RECORD_BYTES as u64;
        let is_whole = |stored: &[u8]| {
            if XxHash3_64::oneshot(stored) == record.checksum {
                Ok(())
            } else {
                Err(io::Error::from(io::ErrorKind::InvalidData))
            }
        };
        let Content::Packed { stored, .. } = record.content else {
            self.file.read_exact_at(block, offset)?;
            return is_whole(block);
        };
        self.stored.resize(stored as usize, 0);
        self.file.read_exact_at(&mut self.stored, offset)?;
        is_whole(&self.stored)?;
        self.packer.unpack(&self.stored, block)
    }
}

impl Storage for FileStorage {
    fn append(
        &mut self,
        object: ObjectRef<'_>,
        native_bytes: u32,
        packing: Packing,
    ) -> io::Result<()> {
        let begin = self.end();
        if let ObjectRef::Block(block) = object {
            self.keep_reserve(block.len() as u64 + RECORD_BYTES as u64)?;
        }
        let (content, stored) = match object {
            ObjectRef::Filemark => (Content::Filemark, &[][..]),
            ObjectRef::Block(block) => {
                let length = block.len() as u32;
                let is_tried = packing == Packing::Shrink && self.head.version == Version::Packed;
                match is_tried.then(|| self.packer.pack(block)).flatten() {
                    Some(frame) => (Content::Packed { length, stored: frame.len() as u32 }, frame),
                    None => (Content::Plain(length), block),
                }
            }
        };
        let number = self.offsets.len() as u64 - 1;
        let record =
            Record { content, native_bytes, number, checksum: XxHash3_64::oneshot(stored) };
        let bytes = content.record_bytes();
        let padding = [0; 8];
        let padding = &padding[..bytes as usize - RECORD_BYTES - stored.len()];
        let parts = [&encode_record(&record), stored, padding];
        if let Err(error) = write_all_at(&self.file, parts, begin) {
            // A partial record would be torn; if truncating fails, too, the next opening cuts it.
            let _ = self.file.set_len(begin);
            return Err(error);
        }
        self.offsets.push(begin + bytes);
        Ok(())
    }

    fn truncate(&mut self, number: u64) -> io::Result<()> {
        let number = number as usize;
        if number + 1 < self.offsets.len() {
            self.file.set_len(self.offsets[number])?;
            self.offsets.truncate(number + 1);
        }
        Ok(())
    }

    fn read(&mut self, number: u64, bytes: &mut [u8]) -> io::Result<()> {
        let begin = self.offsets[number as usize];
        let record = read_record(&self.file, self.head.version, begin)?;
        let record = record.ok_or(io::ErrorKind::InvalidData)?;
        let length = record.content.block_bytes().unwrap_or(0) as usize;
        match bytes.len().cmp(&length) {
            Ordering::Equal => self.read_block(&record, begin, bytes),
            Ordering::Greater => Err(io::ErrorKind::InvalidData.into()),
            Ordering::Less => {
                // Only a part is requested; the rest is read for the checksum.
                let mut whole = std::mem::take(&mut self.whole);
                whole.resize(length, 0);
                let read = self.read_block(&record, begin, &mut whole);
                bytes.copy_from_slice(&whole[..bytes.len()]);
                self.whole = whole;
                read
            }
        }
    }

    fn synchronise(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn keep_change_reference(&mut self, reference: u32) -> io::Result<()> {
        let Some(chip) = &mut self.head.chip else { return Ok(()) };
        chip.change_reference = reference;
        let head = encode_head(&self.head.settings, chip, self.head.version);
        self.file.write_all_at(&head, 0)
    }
}

fn open(path: &Path) -> Result<(File, Protection), MediumFileError> {
    let mut options = OpenOptions::new();
    let writable = options.read(true).write(true).create(true).truncate(false).open(path);
    match writable {
        Ok(file) if file.metadata().is_ok_and(|status| !status.permissions().readonly()) => {
            Ok((file, Protection::Writable))
        }
        // Root can open a read-only file for writing.
        Ok(file) => Ok((file, Protection::Protected)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::ROFS | Errno::PERM) => match File::open(path) {
                Ok(file) => Ok((file, Protection::Protected)),
                Err(source) => Err(MediumFileError::Open { path: path.to_owned(), source }),
            },
            _ => Err(MediumFileError::Open { path: path.to_owned(), source: error }),
        },
    }
}

fn lock(path: &Path, file: &File) -> Result<(), MediumFileError> {
    let path = path.to_owned();
    match base::interruptible::lock_unless_in_use(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(MediumFileError::InUse { path }),
        Err(error) => Err(MediumFileError::Open { path, source: error.into() }),
    }
}

/// Writes parts one after the other; continues after a short write.
fn write_all_at(file: &File, parts: [&[u8]; 3], mut offset: u64) -> io::Result<()> {
    let mut slices = parts.map(IoSlice::new);
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match rustix::io::pwritev(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn refused(path: &Path, error: HeadError) -> MediumFileError {
    let path = path.to_owned();
    match error {
        HeadError::Foreign => MediumFileError::Foreign { path },
        HeadError::Version(version) => MediumFileError::Version { path, version },
    }
}

/// The record at `offset`; `None` if there is none.
fn read_record(file: &File, version: Version, offset: u64) -> io::Result<Option<Record>> {
    let mut bytes = [0; RECORD_BYTES];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(decode_record(&bytes, version))
}

/// The content of a medium file.
struct Scan {
    entries: Vec<Entry>,
    offsets: Vec<u64>,
}

/// Reads record by record as long as they are valid. The blocks after the last filemark are read
/// too, since a power cut may have damaged them.
fn scan(file: &File, version: Version, length: u64) -> Result<Scan, (u64, io::Error)> {
    let mut scan = Scan { entries: Vec::new(), offsets: vec![HEAD_BYTES as u64] };
    let mut offset = HEAD_BYTES as u64;
    // Records after the last filemark.
    let mut stored = Vec::new();
    let mut end_bytes = 0_u64;
    while length - offset >= RECORD_BYTES as u64 {
        let record = match read_record(file, version, offset) {
            Ok(Some(record)) if record.number == scan.entries.len() as u64 => record,
            Ok(_) => break,
            Err(source) => return Err((offset, source)),
        };
        let bytes = record.content.record_bytes();
        if length - offset < bytes {
            break;
        }
        end_bytes += u64::from(record.native_bytes);
        let block_bytes = record.content.block_bytes();
        scan.entries.push(Entry { block_bytes, end_bytes });
        offset += bytes;
        scan.offsets.push(offset);
        match record.content {
            Content::Filemark => stored.clear(),
            content => stored.push((content.stored_bytes(), record.checksum)),
        }
    }
    let first = scan.entries.len() - stored.len();
    let mut bytes = Vec::new();
    for (number, (stored_bytes, checksum)) in (first..).zip(stored) {
        let begin = scan.offsets[number];
        bytes.resize(stored_bytes as usize, 0);
        file.read_exact_at(&mut bytes, begin + RECORD_BYTES as u64)
            .map_err(|source| (begin, source))?;
        if XxHash3_64::oneshot(&bytes) != checksum {
            scan.entries.truncate(number);
            scan.offsets.truncate(number + 1);
            break;
        }
    }
    Ok(scan)
}
