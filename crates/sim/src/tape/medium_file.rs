//! A cartridge in a file, which survives whatever happens to the process.
//!
//! A head of 4,096 bytes says what the cartridge is; behind it stands one record for each object:
//!
//! ```text
//! head      magic 8 | version 4 | density 1 | zero 3 | capacity 8 | early warning 8 | zero ...
//!           | xxh3 of all before 8
//! record    magic 4 | block length 4 (0xffffffff: a filemark) | native bytes 4 | zero 4 | number 8
//!           | xxh3 of the block 8 | xxh3 of all before 8 | block | zeros to a multiple of 8
//! ```
//!
//! Numbers are little-endian. Records are only appended, and a write in the middle of the tape
//! cuts the file first, so a process that is killed leaves whole records and at most one torn one,
//! which the next opening cuts off. A synchronising filemark waits for the disk; what a power cut
//! takes is behind the last of those, and is found by its checksum. Bytes are stored as they come.
//!
//! A file that may not be written to is a cartridge with its write-protect switch set.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use super::medium::{Cartridge, CartridgeSettings, Entry, ObjectRef, Protection, Storage};

/// Why a medium file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MediumFileError {
    /// It cannot be opened or made.
    #[error("cannot open medium file {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another drive has it.
    #[error("medium file {path} is in another virtual drive")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is no medium file.
    #[error("{path} is no medium file")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a later version.
    #[error("medium file {path} has version {version}, which is not known")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It cannot be read or written.
    #[error("cannot use medium file {path} at byte {offset}")]
    Access {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
}

const HEAD_BYTES: usize = 4096;
const HEAD_MAGIC: &[u8; 8] = b"TKUPMEDM";
const VERSION: u32 = 1;
const RECORD_BYTES: usize = 40;
const RECORD_MAGIC: u32 = 0x4345_524f; // "OREC"
const FILEMARK: u32 = u32::MAX;

impl Cartridge {
    /// The cartridge in file `path`; a new one with `settings` when there is no such file, or it is
    /// empty.
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
        let length = file.metadata().map_err(at(0))?.len();
        if length == 0 {
            let head = encode_head(&settings);
            file.write_all_at(&head, 0).map_err(at(0))?;
            file.sync_all().map_err(at(0))?;
            let storage = FileStorage { file, offsets: vec![HEAD_BYTES as u64] };
            return Ok(Cartridge::with_storage(settings, Vec::new(), Box::new(storage)));
        }
        let mut head = [0; HEAD_BYTES];
        if length < HEAD_BYTES as u64 {
            return Err(MediumFileError::Foreign { path: path.to_owned() });
        }
        file.read_exact_at(&mut head, 0).map_err(at(0))?;
        let settings = CartridgeSettings { protection, ..decode_head(path, &head)? };
        let scan = scan(&file, length).map_err(|(offset, source)| at(offset)(source))?;
        let end = *scan.offsets.last().expect("offsets has the end of the last record");
        if protection == Protection::Writable && end < length {
            // A torn record of a process that was killed.
            file.set_len(end).map_err(at(end))?;
        }
        let storage = FileStorage { file, offsets: scan.offsets };
        Ok(Cartridge::with_storage(settings, scan.entries, Box::new(storage)))
    }
}

/// Blocks in a file.
struct FileStorage {
    file: File,
    /// Where each record begins; the last is where the next one goes.
    offsets: Vec<u64>,
}

impl FileStorage {
    fn end(&self) -> u64 {
        *self.offsets.last().expect("offsets has the end of the last record")
    }
}

impl Storage for FileStorage {
    fn append(&mut self, object: ObjectRef<'_>, native_bytes: u32) -> io::Result<()> {
        let (block, length) = match object {
            ObjectRef::Block(block) => (block, block.len() as u32),
            ObjectRef::Filemark => (&[][..], FILEMARK),
        };
        let number = self.offsets.len() as u64 - 1;
        let record = encode_record(length, native_bytes, number, xxh3_64(block));
        let begin = self.end();
        let bytes = stored_bytes(length);
        let padding = [0; 8];
        let padding = &padding[..bytes as usize - RECORD_BYTES - block.len()];
        if let Err(error) = write_all_at(&self.file, [&record, block, padding], begin) {
            // What was written of it would be torn; if this fails too, the next opening cuts it.
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
        let record = read_record(&self.file, begin)?.ok_or(io::ErrorKind::InvalidData)?;
        if bytes.len() == record.length as usize {
            self.file.read_exact_at(bytes, begin + RECORD_BYTES as u64)?;
            return match xxh3_64(bytes) == record.checksum {
                true => Ok(()),
                false => Err(io::ErrorKind::InvalidData.into()),
            };
        }
        // Only a part is wanted; the rest is read for the checksum.
        let mut whole = vec![0; record.length as usize];
        self.file.read_exact_at(&mut whole, begin + RECORD_BYTES as u64)?;
        if xxh3_64(&whole) != record.checksum || bytes.len() > whole.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.copy_from_slice(&whole[..bytes.len()]);
        Ok(())
    }

    fn synchronise(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn open(path: &Path) -> Result<(File, Protection), MediumFileError> {
    let mut options = OpenOptions::new();
    let writable = options.read(true).write(true).create(true).truncate(false).open(path);
    match writable {
        Ok(file) if file.metadata().is_ok_and(|status| !status.permissions().readonly()) => {
            Ok((file, Protection::Writable))
        }
        // Root opens what may not be written to all the same.
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
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(MediumFileError::InUse { path }),
        Err(error) => Err(MediumFileError::Open { path, source: error.into() }),
    }
}

/// Writes parts one behind the other; a short write goes on.
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

/// Bytes of a record with its block.
fn stored_bytes(length: u32) -> u64 {
    let block = if length == FILEMARK { 0 } else { u64::from(length) };
    (RECORD_BYTES as u64 + block).next_multiple_of(8)
}

fn encode_head(settings: &CartridgeSettings) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(HEAD_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12] = settings.density;
    head[16..24].copy_from_slice(&settings.capacity_bytes.to_le_bytes());
    head[24..32].copy_from_slice(&settings.early_warning_bytes.to_le_bytes());
    let checksum = xxh3_64(&head[..HEAD_BYTES - 8]);
    head[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    head
}

fn decode_head(path: &Path, head: &[u8; HEAD_BYTES]) -> Result<CartridgeSettings, MediumFileError> {
    let path = || path.to_owned();
    let checksum = xxh3_64(&head[..HEAD_BYTES - 8]).to_le_bytes();
    if head[..8] != *HEAD_MAGIC || head[HEAD_BYTES - 8..] != checksum {
        return Err(MediumFileError::Foreign { path: path() });
    }
    match u32_at(head, 8) {
        VERSION => Ok(CartridgeSettings {
            density: head[12],
            capacity_bytes: u64_at(head, 16),
            early_warning_bytes: u64_at(head, 24),
            protection: Protection::Writable,
        }),
        version => Err(MediumFileError::Version { path: path(), version }),
    }
}

/// What a record says of its object.
struct Record {
    length: u32,
    native_bytes: u32,
    number: u64,
    checksum: u64,
}

fn encode_record(length: u32, native: u32, number: u64, checksum: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..4].copy_from_slice(&RECORD_MAGIC.to_le_bytes());
    record[4..8].copy_from_slice(&length.to_le_bytes());
    record[8..12].copy_from_slice(&native.to_le_bytes());
    record[16..24].copy_from_slice(&number.to_le_bytes());
    record[24..32].copy_from_slice(&checksum.to_le_bytes());
    let own = xxh3_64(&record[..32]);
    record[32..].copy_from_slice(&own.to_le_bytes());
    record
}

/// The record at `offset`; none when something else stands there.
fn read_record(file: &File, offset: u64) -> io::Result<Option<Record>> {
    let mut record = [0; RECORD_BYTES];
    file.read_exact_at(&mut record, offset)?;
    let whole = u32_at(&record, 0) == RECORD_MAGIC && xxh3_64(&record[..32]) == u64_at(&record, 32);
    Ok(whole.then(|| Record {
        length: u32_at(&record, 4),
        native_bytes: u32_at(&record, 8),
        number: u64_at(&record, 16),
        checksum: u64_at(&record, 24),
    }))
}

/// What stands in a medium file.
struct Scan {
    entries: Vec<Entry>,
    offsets: Vec<u64>,
}

/// Goes from record to record as far as they are whole; blocks behind the last filemark are read
/// too, as a power cut may have taken them.
fn scan(file: &File, length: u64) -> Result<Scan, (u64, io::Error)> {
    let mut scan = Scan { entries: Vec::new(), offsets: vec![HEAD_BYTES as u64] };
    let mut offset = HEAD_BYTES as u64;
    let mut checksums = Vec::new();
    let mut end_bytes = 0;
    while length - offset >= RECORD_BYTES as u64 {
        let record = match read_record(file, offset) {
            Ok(Some(record)) if record.number == scan.entries.len() as u64 => record,
            Ok(_) => break,
            Err(source) => return Err((offset, source)),
        };
        let bytes = stored_bytes(record.length);
        if length - offset < bytes {
            break;
        }
        end_bytes += u64::from(record.native_bytes);
        let is_filemark = record.length == FILEMARK;
        let block_bytes = (!is_filemark).then_some(record.length);
        scan.entries.push(Entry { block_bytes, end_bytes });
        offset += bytes;
        scan.offsets.push(offset);
        match is_filemark {
            true => checksums.clear(),
            false => checksums.push(record.checksum),
        }
    }
    let first = scan.entries.len() - checksums.len();
    let mut block = Vec::new();
    for (number, checksum) in (first..).zip(checksums) {
        let begin = scan.offsets[number];
        block.resize(scan.entries[number].block_bytes.unwrap_or(0) as usize, 0);
        file.read_exact_at(&mut block, begin + RECORD_BYTES as u64)
            .map_err(|source| (begin, source))?;
        if xxh3_64(&block) != checksum {
            scan.entries.truncate(number);
            scan.offsets.truncate(number + 1);
            break;
        }
    }
    Ok(scan)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::super::medium::Object;
    use super::*;

    fn block(number: u8, bytes: usize) -> Object {
        Object::Block((0..bytes).map(|at| (at as u8).wrapping_mul(number | 1)).collect())
    }

    fn append(cartridge: &Cartridge, object: &Object) {
        let mut medium = cartridge.lock();
        match object {
            Object::Block(bytes) => {
                medium.append(ObjectRef::Block(bytes), bytes.len() as u32 / 2).unwrap();
            }
            Object::Filemark => medium.append(ObjectRef::Filemark, 0).unwrap(),
        }
    }

    fn objects() -> Vec<Object> {
        vec![block(1, 512), block(2, 7), Object::Filemark, block(3, 100_000), block(4, 1)]
    }

    fn settings() -> CartridgeSettings {
        CartridgeSettings { capacity_bytes: 1 << 30, density: 0x5e, ..CartridgeSettings::default() }
    }

    fn filled(path: &Path) {
        let cartridge = Cartridge::in_file(path, settings()).unwrap();
        objects().iter().for_each(|object| append(&cartridge, object));
    }

    fn reopened(path: &Path) -> Cartridge {
        Cartridge::in_file(path, CartridgeSettings::default()).unwrap()
    }

    #[test]
    fn comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let cartridge = reopened(&path);
        assert_eq!(cartridge.objects().unwrap(), objects());
        assert_eq!(cartridge.lock().settings, settings());
        assert_eq!(cartridge.used_bytes(), 256 + 3 + 50_000);
    }

    #[test]
    fn writing_in_the_middle_cuts_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let cartridge = reopened(&path);
        cartridge.cut(2).unwrap();
        append(&cartridge, &block(9, 64));
        drop(cartridge);
        let expected = [block(1, 512), block(2, 7), block(9, 64)];
        assert_eq!(reopened(&path).objects().unwrap(), expected);
    }

    /// Wherever a killed process has stopped writing, what was whole before is there.
    #[test]
    fn torn_at_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let whole = std::fs::read(&path).unwrap();
        let mut ends = vec![HEAD_BYTES];
        for object in objects() {
            let length = if let Object::Block(bytes) = &object { bytes.len() } else { 0 };
            ends.push(ends.last().unwrap() + (RECORD_BYTES + length).next_multiple_of(8));
        }
        let cuts = (HEAD_BYTES..HEAD_BYTES + 1500).chain(whole.len() - 200..=whole.len());
        for cut in cuts {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let left = ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(reopened(&path).objects().unwrap(), objects()[..left], "cut at {cut}");
            assert_eq!(std::fs::metadata(&path).unwrap().len(), ends[left] as u64);
        }
    }

    #[test]
    fn a_power_cut_takes_what_is_behind_the_last_filemark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let length = bytes.len();
        bytes[length - 50_000..length - 1000].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(reopened(&path).objects().unwrap(), objects()[..3]);
    }

    #[test]
    fn damage_before_a_filemark_is_a_read_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEAD_BYTES + RECORD_BYTES + 100] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let cartridge = reopened(&path);
        assert_eq!(cartridge.len(), 5);
        let mut medium = cartridge.lock();
        assert!(medium.read(0, &mut [0; 512]).is_err());
        assert!(medium.read(0, &mut [0; 10]).is_err());
        medium.read(1, &mut [0; 7]).unwrap();
    }

    #[test]
    fn only_one_drive_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        let first = Cartridge::in_file(&path, settings()).unwrap();
        let second = Cartridge::in_file(&path, settings()).map(|_| ());
        assert!(matches!(second, Err(MediumFileError::InUse { .. })));
        drop(first);
        reopened(&path);
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        for content in [vec![1; 10], vec![1; 10_000], encode_head(&settings())[..100].to_vec()] {
            std::fs::write(&path, &content).unwrap();
            let opened = Cartridge::in_file(&path, settings()).map(|_| ());
            assert!(matches!(opened, Err(MediumFileError::Foreign { .. })));
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_read_only_file_is_protected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("medium");
        filled(&path);
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        let cartridge = reopened(&path);
        assert_eq!(cartridge.lock().settings.protection, Protection::Protected);
        assert_eq!(cartridge.objects().unwrap(), objects());
    }
}
