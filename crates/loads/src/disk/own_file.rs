//! A file of our own below a folder, for loads on a folder. It has no name: it is gone when this
//! process and fio are, however they end, and nothing that is in the folder is touched.
//!
//! fio opens it by its descriptor in `/proc`. fio would lay out a file that is too short, and
//! delete it first, so this file has its whole length from the start.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use flow::cancel::Cancel;
use machine::unnamed_file_in;

use super::error::DiskError;
use super::process;
use crate::read::Pages;

/// Sizes of the writes that fill it; the first one that divides its length is used.
const FILL_BYTES: [u64; 3] = [1 << 20, 4096, 512];

/// The file, open.
#[derive(Debug)]
pub struct OwnFile {
    file: File,
    length_bytes: u64,
    is_filled: bool,
}

impl OwnFile {
    /// Makes it, without content.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(below: &Path, length_bytes: u64) -> Result<OwnFile, DiskError> {
        let failed = |source| DiskError::Make { path: below.to_owned(), source };
        let file = unnamed_file_in(below).map_err(failed)?;
        file.set_len(length_bytes).map_err(failed)?;
        Ok(OwnFile { file, length_bytes, is_filled: false })
    }

    /// Where fio finds it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Fills it once: a hole would be read from nowhere. Then it is on the disk, and not in memory.
    ///
    /// # Errors
    /// When fio cannot write it, or the run is stopped.
    pub fn prepare(&mut self, cancel: &Cancel) -> Result<(), DiskError> {
        if !self.is_filled {
            process::run(&self.fill(), None, Pages::Small, &mut || {}, cancel)?;
            self.is_filled = true;
        }
        let _ = base::interruptible::fdatasync(&self.file);
        device::file::drop_cached(&self.file, 0, self.length_bytes);
        Ok(())
    }

    fn fill(&self) -> Vec<OsString> {
        let block = FILL_BYTES.into_iter().find(|block| self.length_bytes.is_multiple_of(*block));
        let mut name = OsString::from("--filename=");
        name.push(self.path());
        let mut arguments: Vec<OsString> = vec![
            "--name=takeup".into(),
            "--output-format=json".into(),
            "--thread".into(),
            // Data that a device cannot compress or join.
            "--refill_buffers".into(),
            "--ioengine=psync".into(),
            "--rw=write".into(),
            format!("--bs={}", block.unwrap_or(512)).into(),
            format!("--size={}", self.length_bytes).into(),
        ];
        arguments.push(name);
        arguments
    }
}
