//! A regular file while it is restored: written at any offsets, then finished or taken away.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::ftruncate;
use rustix::io::{Errno, pwrite};

use crate::destination::Destination;
use crate::metadata::{Given, Metadata, MetadataProblem, Problems};
use crate::placing::Placed;
use crate::restore_error::RestoreError;

/// A file that is being restored. Dropped without [`RestoreFile::finish`], it is taken away and
/// what it was to replace stays.
#[derive(Debug)]
pub struct RestoreFile {
    destination: Arc<Destination>,
    descriptor: OwnedFd,
    /// Absent once the file is finished.
    placed: Option<Placed>,
    metadata: Metadata,
    given: Given,
    size_bytes: u64,
    end_bytes: u64,
}

impl RestoreFile {
    pub(crate) fn new(
        destination: Arc<Destination>,
        descriptor: OwnedFd,
        placed: Placed,
        metadata: Metadata,
        given: Given,
        size_bytes: u64,
    ) -> RestoreFile {
        let placed = Some(placed);
        RestoreFile { destination, descriptor, placed, metadata, given, size_bytes, end_bytes: 0 }
    }

    /// Writes all of `bytes` at `offset_bytes`. What is never written is a hole.
    ///
    /// # Errors
    /// What pwrite(2) says. The path is the caller's to add.
    pub fn write_at(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<(), std::io::Error> {
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

    /// Says that somebody else wrote up to `end_bytes` through the descriptor.
    pub fn written_to(&mut self, end_bytes: u64) {
        self.end_bytes = self.end_bytes.max(end_bytes);
    }

    /// Gives the file its size, its metadata and, when it replaces another one, its name. `path` is
    /// the member's, for messages. What could not be restored of the metadata is returned.
    ///
    /// # Errors
    /// [`RestoreError::Write`], [`RestoreError::Rename`]; the file is taken away then.
    pub fn finish(mut self, path: &[u8]) -> Result<Vec<MetadataProblem>, RestoreError> {
        if self.end_bytes != self.size_bytes {
            ftruncate(&self.descriptor, self.size_bytes).map_err(|error| RestoreError::Write {
                path: path.to_vec(),
                source: error.into(),
            })?;
        }
        let mut problems = Problems::of(path);
        let (metadata, given) = (&self.metadata, self.given);
        self.destination.apply_to_file(&self.descriptor, metadata, given, &mut problems);
        let found = problems.found;
        if let Some(placed) = self.placed.take() {
            placed.put(path)?;
        }
        Ok(found)
    }
}

impl AsFd for RestoreFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for RestoreFile {
    fn drop(&mut self) {
        if let Some(mut placed) = self.placed.take() {
            placed.abandon();
        }
    }
}
