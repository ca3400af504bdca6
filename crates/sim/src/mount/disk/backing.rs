//! The storage of a virtual disk: a file, as sparse as the written data, or a block device.
//!
//! A disk has one size. Reads and writes that begin at its end or beyond move nothing. If the file
//! system of its file is full, the bytes are lost: the program sees an input/output error, as from
//! a broken disk, and `status` shows the cause.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base::failures::lock;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};

use crate::mount::MountError;

/// Whether the disk can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Yes.
    ReadWrite,
    /// Its write-protect switch is set.
    ReadOnly,
}

const SECTOR_BYTES: u64 = 512;

/// The storage of a disk.
#[derive(Debug)]
pub struct Backing {
    file: File,
    path: PathBuf,
    bytes: u64,
    access: Access,
    trouble: Mutex<Option<String>>,
}

impl Backing {
    /// Opens it; a missing file is created, sparse, with `size_bytes`.
    ///
    /// # Errors
    /// When it cannot be opened, has another size, or is in use.
    pub fn open(
        path: &Path,
        size_bytes: Option<u64>,
        access: Access,
    ) -> Result<Backing, MountError> {
        let owned = || path.to_owned();
        let failed = |source| MountError::Open { path: owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(access == Access::ReadWrite);
        if access == Access::ReadWrite {
            // A block device is claimed, which fails if it is in use: a mounted device must not
            // change below its file system (open(2), O_EXCL). For files the flag has no effect.
            options.custom_flags(OFlags::EXCL.bits() as i32);
        }
        let mut file = match (options.open(path), size_bytes) {
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MountError::NoSize { path: owned() });
            }
            (Err(error), Some(bytes)) if error.kind() == io::ErrorKind::NotFound => {
                make(path, bytes).map_err(failed)?;
                options.open(path).map_err(failed)?
            }
            (Err(error), _) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Err(MountError::Mounted { path: owned() });
            }
            (opened, _) => opened.map_err(failed)?,
        };
        let kind = file.metadata().map_err(failed)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(MountError::Kind { path: owned() });
        }
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if let Some(wanted_bytes) = size_bytes.filter(|wanted| *wanted != bytes) {
            return Err(MountError::OtherSize { path: owned(), bytes, wanted_bytes });
        }
        let bytes = bytes / SECTOR_BYTES * SECTOR_BYTES;
        if bytes == 0 {
            return Err(MountError::Empty { path: owned() });
        }
        let lock = match access {
            Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
            Access::ReadOnly => FlockOperation::NonBlockingLockShared,
        };
        if base::interruptible::lock_unless_in_use(&file, lock)
            == Err(rustix::io::Errno::WOULDBLOCK)
        {
            return Err(MountError::InUse { path: owned() });
        }
        Ok(Backing { file, path: owned(), bytes, access, trouble: Mutex::new(None) })
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be written.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The last error, in words.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Bytes of a request that are on the disk.
    pub fn within(&self, offset: u64, bytes: u64) -> u64 {
        self.bytes.saturating_sub(offset).min(bytes)
    }

    /// Fills the buffer. If the file was truncated meanwhile, missing bytes are zeros.
    ///
    /// # Errors
    /// When the file cannot be read; the error is kept.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => {
                    buffer[filled..].fill(0);
                    break;
                }
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.keep("read", offset, error)),
            }
        }
        Ok(())
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When there is no room, above all; the error is kept.
    pub fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset).map_err(|error| self.keep("write", offset, error))
    }

    /// Waits until everything would survive a power cut.
    ///
    /// # Errors
    /// When the system has lost data.
    pub fn flush(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| self.keep("flush", 0, error))
    }

    /// Replaces a range by zeros, and frees its room.
    ///
    /// # Errors
    /// When the file supports neither.
    pub fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        base::interruptible::fallocate(&self.file, punch, offset, bytes)
            .map_err(|error| self.keep("discard", offset, error.into()))
    }

    /// Allocates room for a range, whose bytes stay.
    ///
    /// # Errors
    /// When there is no room.
    pub fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        base::interruptible::fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, bytes)
            .map_err(|error| self.keep("allocate", offset, error.into()))
    }

    fn keep(&self, what: &str, offset: u64, error: io::Error) -> io::Error {
        let text = format!("cannot {what} {} at {offset}: {error}", self.path.display());
        *lock(&self.trouble) = Some(text);
        error
    }
}

/// A sparse file; removed again if it cannot be that large.
fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(bytes).inspect_err(|_| {
        // The first error counts.
        let _ = std::fs::remove_file(path);
    })
}
