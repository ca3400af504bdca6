//! The limit of open files of this process.
//!
//! The soft limit is 1,024 nearly everywhere, for programs that call select(2). Takeup does not,
//! and a backup without enough descriptors would miss files. So commands that read and write trees
//! raise it to the hard limit. Programs that they start for the user get the old limit back.

use std::sync::OnceLock;

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

/// A shell line that sets the limit to its value before it was raised; empty if it was not raised.
/// Put it in front of the user's line.
pub fn shell_line() -> String {
    match BEFORE.get() {
        None => String::new(),
        Some(None) => "ulimit -S -n unlimited\n".to_owned(),
        Some(Some(limit)) => format!("ulimit -S -n {limit}\n"),
    }
}
