//! The limit of open files of this process.
//!
//! The soft limit is 1,024 nearly everywhere, for programs that call select(2). Takeup does not,
//! and a backup without enough descriptors would miss files. So commands that read and write trees
//! raise it to the hard limit. Programs that they start for the user get the old limit back.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

use base::interruptible::openat;
use rustix::fs::{CWD, Mode, OFlags, RawDir};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    BEFORE.get_or_init(|| current);
    // If the kernel refuses, the old limit holds, and `limit` returns it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The limit that holds.
pub fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Number of open descriptors of this process; 0 if the kernel does not report it. The standard
/// library's directories are not used: they panic when closing one fails.
pub fn open_now() -> usize {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = openat(CWD, c"/proc/self/fd", flags, Mode::empty()) else { return 0 };
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut room);
    let mut count = 0;
    while let Some(Ok(_)) = entries.next() {
        count += 1;
    }
    count
}

/// A shell line that sets the limit to its value before it was raised; empty if it was not raised.
/// Put it in front of the user's line.
pub fn shell_line() -> String {
    match BEFORE.get() {
        None => String::new(),
        Some(None) => "ulimit -S -n unlimited\n".to_owned(),
        Some(Some(limit)) => format!("ulimit -S -n {limit}\n"),
    }
}
