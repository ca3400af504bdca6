//! A regular file during its restore: written at any offset, then completed or removed.
//!
//! For a large file space is reserved ahead of what is written, where that keeps it in one piece
//! and costs nothing: see [`Reserved`].
//!
//! It has no name until it is complete (O_TMPFILE), so nothing is left of it if the process ends
//! early. If the file system does not support that, it has a temporary name meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::member::Member;
use base::interruptible::{fallocate, fsync, ftruncate};
use rustix::fs::{FallocateFlags, fstat, fstatfs};
use rustix::io::{Errno, pwrite};

use crate::attributes::Handle;
use crate::destination::{Destination, Overwrite, Replaced};
use crate::folder::Folder;
use crate::identity::Identity;
use crate::metadata::{Metadata, MetadataProblem, Problems};
use crate::placing::{Placed, clear_directory, link_file_as, link_file_over};
use crate::restore_error::RestoreError;

/// A file that is being restored. If it is dropped without [`RestoreFile::finish`], it is removed
/// and the file it would have replaced stays.
#[derive(Debug)]
pub struct RestoreFile {
    pub(crate) destination: Arc<Destination>,
    pub(crate) descriptor: OwnedFd,
    pub(crate) home: Home,
    pub(crate) overwrite: Overwrite,
    /// Whether an object with its name exists.
    pub(crate) replaces: bool,
    pub(crate) metadata: Metadata,
    pub(crate) size_bytes: u64,
    pub(crate) end_bytes: u64,
    pub(crate) reserved: Reserved,
}

/// Space that is reserved for a file behind its end, in steps. ext4 and XFS would otherwise choose
/// a place for what has been written so far whenever they write pages back. Its size stays that of
/// what was written, so that an unfinished file never looks whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// Nothing is reserved.
    Not,
    /// Up to this offset, and more when the writing comes there.
    To { end_bytes: u64 },
    /// Something is, and no more can be.
    Part,
}

/// Files up to this size are written at once.
const UNRESERVED_FILE_BYTES_MAX: u64 = 256 << 10;
/// Bytes that are reserved at once. An archive may lie about a size: so much less is free
/// meanwhile.
const RESERVED_STEP_BYTES: u64 = 64 << 20;
/// `f_type` of statfs(2), from <linux/magic.h>. btrfs would not compress what is reserved, and on
/// an aged btrfs files have more pieces with reservation than without.
const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;

impl Reserved {
    /// What is possible for a new file: something if it is large and has no holes.
    pub(crate) fn of(file: &OwnedFd, member: &Member) -> Reserved {
        if member.size_bytes <= UNRESERVED_FILE_BYTES_MAX || member.sparse.is_some() {
            return Reserved::Not;
        }
        match fstatfs(file).map(|status| status.f_type as u64) {
            Ok(EXT4 | XFS) => Reserved::To { end_bytes: 0 },
            _ => Reserved::Not,
        }
    }
}

/// Where a file is while it is written.
#[derive(Debug)]
pub(crate) enum Home {
    /// It has no name yet.
    Unnamed {
        /// Its final directory.
        folder: Arc<Folder>,
        /// Its name there.
        name: Vec<u8>,
    },
    /// It has a temporary name.
    Named(Placed),
}

impl RestoreFile {
    /// Writes all of `bytes` at `offset_bytes`. Unwritten ranges become holes.
    ///
    /// # Errors
    /// What pwrite(2) says. The caller adds the path.
    pub fn write_at(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<(), std::io::Error> {
        self.reserve(offset_bytes, offset_bytes + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            match pwrite(&self.descriptor, &bytes[done..], offset_bytes + done as u64) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.end_bytes = self.end_bytes.max(offset_bytes + bytes.len() as u64);
        Ok(())
    }

    /// Reserves space for what is written from `from_bytes` to `to_bytes`, and some behind it, if
    /// that is possible. What is skipped stays a hole. What is wrong with the disk, a full one for
    /// example, the write reports.
    fn reserve(&mut self, from_bytes: u64, to_bytes: u64) {
        while let Reserved::To { end_bytes } = self.reserved
            && end_bytes < to_bytes.min(self.size_bytes)
        {
            let start_bytes = end_bytes.max(from_bytes);
            let step_bytes = RESERVED_STEP_BYTES.min(self.size_bytes - start_bytes);
            let flags = FallocateFlags::KEEP_SIZE;
            self.reserved = match fallocate(&self.descriptor, flags, start_bytes, step_bytes) {
                Ok(()) => Reserved::To { end_bytes: start_bytes + step_bytes },
                Err(_) => Reserved::Part,
            };
        }
    }

    /// Records that the caller wrote up to `end_bytes` through the descriptor.
    pub fn written_to(&mut self, end_bytes: u64) {
        self.end_bytes = self.end_bytes.max(end_bytes);
    }

    /// Gives the file its size, its metadata and then its name. `path` is the member's. Returns the
    /// metadata that could not be restored.
    ///
    /// # Errors
    /// [`RestoreError::Exists`], [`RestoreError::DirectoryInTheWay`], [`RestoreError::Write`],
    /// [`RestoreError::Rename`]; then the file is removed, and an existing object stays.
    pub fn finish(self, path: &[u8]) -> Result<Vec<MetadataProblem>, RestoreError> {
        let write = |error: Errno| RestoreError::Write { path: path.into(), source: error.into() };
        if self.end_bytes != self.size_bytes {
            ftruncate(&self.descriptor, self.size_bytes).map_err(write)?;
        }
        let mut problems = Problems::of(path);
        let stat = fstat(&self.descriptor).map_err(write)?;
        let handle = Handle::Open(self.descriptor.as_fd());
        let inheritance = self.folder().inheritance;
        let policy = self.destination.policy();
        policy.apply(handle, &self.metadata, &stat, inheritance, &mut problems);
        let found = self.destination.take_problems(problems);
        let destination = Arc::clone(&self.destination);
        let folder = Arc::clone(self.folder());
        self.put(path)?;
        destination.remember(&folder, path, Identity::of(&stat));
        Ok(found)
    }

    /// Gives the partial file another name in the same directory, if that is free, and no metadata.
    ///
    /// # Errors
    /// [`RestoreError::Exists`], [`RestoreError::Rename`]; then the file is removed.
    pub fn keep_as(self, name: &[u8]) -> Result<(), RestoreError> {
        if self.reserved != Reserved::Not {
            // Gives back what was reserved behind its end; otherwise it would only waste space.
            let _ = ftruncate(&self.descriptor, self.end_bytes);
        }
        match self.home {
            Home::Unnamed { folder, .. } => link_file_as(&self.descriptor, &folder, name, name),
            Home::Named(placed) => placed.rename_to(name).put(name),
        }
    }

    fn folder(&self) -> &Arc<Folder> {
        match &self.home {
            Home::Unnamed { folder, .. } => folder,
            Home::Named(placed) => &placed.folder,
        }
    }

    fn put(self, path: &[u8]) -> Result<(), RestoreError> {
        let (folder, name) = match self.home {
            Home::Unnamed { folder, name } => (folder, name),
            Home::Named(placed) => {
                if self.replaces {
                    flush(&self.destination, &self.descriptor, path)?;
                    clear(&placed.folder, placed.name(), path)?;
                }
                return placed.put(path);
            }
        };
        let mut folder = folder;
        for attempt in 0..2 {
            if self.replaces {
                break;
            }
            match link_file_as(&self.descriptor, &folder, &name, path) {
                // The directory was removed meanwhile, by this archive or by another program.
                Err(RestoreError::Rename { source, .. }) if attempt == 0 && is_missing(&source) => {
                    folder = self.destination.folder_again(path)?;
                }
                Err(RestoreError::Exists { .. }) if self.overwrite == Overwrite::Replace => break,
                result => {
                    folder.is_populated.fetch_or(result.is_err(), Ordering::Relaxed);
                    return result;
                }
            }
        }
        flush(&self.destination, &self.descriptor, path)?;
        clear(&folder, &name, path)?;
        link_file_over(&self.descriptor, &folder, &name, path)
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

/// Writes a file to the disk before it replaces another one. Not every file system does that
/// itself, and after a power cut neither file would be there.
fn flush(destination: &Destination, file: &OwnedFd, path: &[u8]) -> Result<(), RestoreError> {
    if destination.replaced() == Replaced::Unflushed {
        return Ok(());
    }
    let failed = |error: Errno| RestoreError::Write { path: path.into(), source: error.into() };
    fsync(file).map_err(failed)
}

fn clear(folder: &Folder, name: &[u8], path: &[u8]) -> Result<(), RestoreError> {
    clear_directory(folder, name, path).unwrap_or_else(|error| {
        Err(RestoreError::Rename { path: path.to_vec(), source: error.into() })
    })
}

impl AsFd for RestoreFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
