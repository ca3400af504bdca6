//! Finds out whether this process has run out of descriptors or memory, or only a file system said
//! so.
//!
//! `EMFILE` from open(2) has two origins. The kernel returns it when this process has no descriptor
//! left: then no file can be opened any more, and files missing from a run are our failure. A file
//! system may return it too (a FUSE file system answers with any number it likes): then it concerns
//! that one file. To distinguish them, we open something at the same moment that involves no file
//! system.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// The first shortage of this process; 0 without one.
static SHORTAGE: AtomicI32 = AtomicI32::new(0);
/// Another thread may close a file between the failed open and the probe. So the open is repeated
/// this often before the answer is attributed to the file system.
const TRIES: usize = 4;

/// This process had no descriptor or no memory left for something it needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage(Errno);

impl Shortage {
    /// Whether a higher limit of open files would help.
    pub fn is_of_descriptors(self) -> bool {
        self.0 == Errno::MFILE
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Errno::MFILE => "takeup cannot open more files: its limit of open files is reached",
            Errno::NFILE => "takeup cannot open more files: the system's limit is reached",
            _ => "takeup cannot open more files: the system is out of memory",
        })
    }
}

impl std::error::Error for Shortage {}

/// Fails if any call of this process since its start failed for lack of descriptors or memory. A
/// run calls this before it reports that it is complete.
///
/// # Errors
/// The first shortage.
pub fn check_shortage() -> Result<(), Shortage> {
    match SHORTAGE.load(Ordering::Acquire) {
        0 => Ok(()),
        number => Err(Shortage(Errno::from_raw_os_error(number))),
    }
}

/// Records a shortage that a call of the standard library met.
pub fn remember_shortage(error: &std::io::Error) {
    let error = Errno::from_io_error(error);
    if matches!(error, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
        && let Err(shortage) = probe()
    {
        remember(shortage);
    }
}

fn remember(shortage: Errno) {
    let number = shortage.raw_os_error();
    // The first shortage counts; if another thread recorded one first, that one is as good.
    let _ = SHORTAGE.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
}

/// Opens, and records a shortage.
pub(crate) fn opened(open: impl Fn() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let mut result = retry_on_intr(&open);
    for _ in 0..TRIES {
        match result {
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {}
            result => return result,
        }
        if let Err(shortage) = probe() {
            remember(shortage);
            return result;
        }
        result = retry_on_intr(&open);
    }
    result
}

/// Opens the root without involving its file system (`O_PATH`, no component to look up).
fn probe() -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match retry_on_intr(|| rustix::fs::openat(CWD, c"/", flags, Mode::empty())) {
        Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(error),
        _ => Ok(()),
    }
}
