//! The kernel's limit for one request of a FUSE file system, `fs.fuse.max_pages_limit`.
//!
//! Kernels from 6.13 have it (Documentation/admin-guide/sysctl/fs.rst); before, and by default, it
//! is 256 pages. It counts when a file system is mounted, so it is raised for that moment only. A
//! lock on `/dev/fuse` keeps two drives that are mounted at once from undoing each other's limit.

use std::fs::{self, File};

use rustix::fs::FlockOperation;

const PATH: &str = "/proc/sys/fs/fuse/max_pages_limit";
const DEFAULT_PAGES: u64 = 256;
/// What a request can say of its pages (`u16`).
const PAGES_MAX: u64 = 65_535;

/// The limit while it is raised; dropping it puts it back.
#[derive(Debug)]
pub struct Raised {
    pages: u64,
    before: Option<u64>,
    /// Closing it ends the lock.
    _lock: Option<File>,
}

impl Raised {
    /// What passes in one piece, from memory that begins at a page, in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.pages * page_bytes()
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It was possible to raise it a moment ago.
            let _ = fs::write(PATH, before.to_string());
        }
    }
}

/// Most bytes of one request to a file system that is mounted now.
pub fn request_bytes_max() -> u64 {
    in_force().unwrap_or(DEFAULT_PAGES).saturating_mul(page_bytes())
}

/// Raises the limit for blocks of that size, if that is needed and allowed.
pub fn raise(block_bytes: u64) -> Raised {
    let lock = File::open("/dev/fuse").ok();
    if let Some(lock) = &lock {
        // Held for the moment of a mount. Where there is no lock the worst is a smaller limit.
        let _ = base::interruptible::flock(lock, FlockOperation::LockExclusive);
    }
    let Some(present) = in_force() else {
        return Raised { pages: DEFAULT_PAGES, before: None, _lock: lock };
    };
    // One page more for a block that does not begin at a page.
    let wanted = (block_bytes.div_ceil(page_bytes()) + 1).min(PAGES_MAX);
    if wanted <= present || fs::write(PATH, wanted.to_string()).is_err() {
        return Raised { pages: present, before: None, _lock: lock };
    }
    Raised { pages: wanted, before: Some(present), _lock: lock }
}

/// In pages, of kernels that have it.
fn in_force() -> Option<u64> {
    fs::read_to_string(PATH).ok()?.trim().parse().ok()
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody raises it while this is looked at.
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
