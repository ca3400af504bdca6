//! The kernel's limit for one request of a FUSE file system, `fs.fuse.max_pages_limit`.
//!
//! Kernels from 6.13 have it (Documentation/admin-guide/sysctl/fs.rst); before, and by default, it
//! is 256 pages. The kernel reads it at mount time, so Takeup raises it only for that moment. A
//! lock on `/dev/fuse` stops two drives that are mounted at once from undoing each other's limit.

use std::fs::{self, File};

use rustix::fs::FlockOperation;

const PATH: &str = "/proc/sys/fs/fuse/max_pages_limit";
const DEFAULT_PAGES: u64 = 256;
/// The largest page count that fits a request (`u16`).
const PAGES_MAX: u64 = 65_535;

/// The raised limit; dropping this restores the old one.
#[derive(Debug)]
pub struct Raised {
    pages: u64,
    before: Option<u64>,
    /// Closing it ends the lock.
    _lock: Option<File>,
}

impl Raised {
    /// The largest request, in bytes, from page-aligned memory.
    pub fn block_bytes(&self) -> u64 {
        self.pages * page_bytes()
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Writing it worked a moment ago.
            let _ = fs::write(PATH, before.to_string());
        }
    }
}

/// The largest request, in bytes, of a file system that is mounted now.
pub fn request_bytes_max() -> u64 {
    in_force().unwrap_or(DEFAULT_PAGES).saturating_mul(page_bytes())
}

/// Raises the limit for blocks of that size, if needed and permitted.
pub fn raise(block_bytes: u64) -> Raised {
    let lock = File::open("/dev/fuse").ok();
    if let Some(lock) = &lock {
        // Held only during a mount. Without a lock, the worst case is a smaller limit.
        let _ = base::interruptible::flock(lock, FlockOperation::LockExclusive);
    }
    let Some(present) = in_force() else {
        return Raised { pages: DEFAULT_PAGES, before: None, _lock: lock };
    };
    // One page more, for a block that is not page-aligned.
    let wanted = (block_bytes.div_ceil(page_bytes()) + 1).min(PAGES_MAX);
    if wanted <= present || fs::write(PATH, wanted.to_string()).is_err() {
        return Raised { pages: present, before: None, _lock: lock };
    }
    Raised { pages: wanted, before: Some(present), _lock: lock }
}

/// The limit in pages, on kernels that have it.
fn in_force() -> Option<u64> {
    fs::read_to_string(PATH).ok()?.trim().parse().ok()
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the limit under the lock, so that no other mount has it raised.
    fn locked() -> Option<u64> {
        let lock = File::open("/dev/fuse").unwrap();
        base::interruptible::flock(&lock, FlockOperation::LockExclusive).unwrap();
        in_force()
    }

    #[test]
    fn the_limit_is_raised_for_a_moment_only() {
        testkit::require!(Root, Fuse);
        let before = locked();
        let more = (before.unwrap_or(DEFAULT_PAGES) + 7) * page_bytes();
        for block_bytes in [4096, more] {
            let raised = raise(block_bytes);
            let passes = raised.block_bytes() >= block_bytes;
            // Kernels before 6.13 have no limit that could be raised.
            assert!(passes || before.is_none(), "{raised:?}");
            assert_eq!(in_force().unwrap_or(DEFAULT_PAGES) * page_bytes(), raised.block_bytes());
            drop(raised);
            assert_eq!(locked(), before);
        }
    }
}
