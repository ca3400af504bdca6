//! From header to header through a plain archive with random access, for listings.
//!
//! Reads a window at a time, and jumps over content beyond its end. An archive of small files is
//! read nearly whole, one of large files hardly at all.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::stream::{Archive, ArchiveOffset};
use flow::account::Account;
use flow::cancel::{Cancel, Stopped};

use super::cursor::{Lease, Supply};
use flow::gaps::{Gap, Gaps};

/// Bytes of a read. More costs time with large files, less costs calls with small ones.
const WINDOW_BYTES: u64 = 128 << 10;

/// Windows of a file.
pub(crate) struct HeaderSupply<'a> {
    file: Arc<OwnedFd>,
    length_bytes: u64,
    /// In the file, which is the archive.
    offset_bytes: u64,
    gaps: Gaps<Archive>,
    cancel: &'a Cancel,
    bytes_read: Arc<AtomicU64>,
}

impl<'a> HeaderSupply<'a> {
    pub fn new(
        file: Arc<OwnedFd>,
        length_bytes: u64,
        gaps: Gaps<Archive>,
        cancel: &'a Cancel,
    ) -> HeaderSupply<'a> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        HeaderSupply { file, length_bytes, offset_bytes: 0, gaps, cancel, bytes_read }
    }

    /// Counter of the bytes read.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }
}

impl Supply for HeaderSupply<'_> {
    fn next(&mut self, _: &mut Account) -> Result<Option<Lease>, Stopped> {
        self.cancel.check()?;
        let left_bytes = self.length_bytes - self.offset_bytes;
        // Reads stay aligned, so that adjacent windows do not share pages.
        let window_bytes = WINDOW_BYTES - self.offset_bytes % 4096;
        let mut window = vec![0; left_bytes.min(window_bytes) as usize];
        if window.is_empty() {
            return Ok(None);
        }
        let read = base::interruptible::read_at(&self.file, &mut window, self.offset_bytes);
        let why = match read {
            Ok(bytes) if bytes > 0 => {
                window.truncate(bytes);
                None
            }
            Ok(_) => Some("the source became shorter while it was read".to_owned()),
            Err(error) => Some(format!("cannot be read: {}", std::io::Error::from(error))),
        };
        if let Some(why) = why {
            let start_bytes = ArchiveOffset::new(self.offset_bytes);
            let length_bytes = window.len() as u64;
            self.gaps.enter(Gap { start_bytes, length_bytes, why });
        }
        self.offset_bytes += window.len() as u64;
        self.bytes_read.fetch_add(window.len() as u64, Ordering::Relaxed);
        Ok(Some(Lease::Memory(Arc::new(window))))
    }

    fn pass_over(&mut self, bytes: u64) -> u64 {
        let passed = bytes.min(self.length_bytes - self.offset_bytes);
        self.offset_bytes += passed;
        passed
    }

    fn would_wait(&self) -> bool {
        false
    }
}
