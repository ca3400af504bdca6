//! How many files this process may have open at once.
//!
//! The soft limit is 1,024 nearly everywhere, for the sake of programs that call select(2). Takeup
//! does not, and a backup that lacks descriptors would lack files. So commands that read and write
//! trees raise it to the hard limit; a program that they start for the user gets the old one back.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    BEFORE.get_or_init(|| current);
    // Where that is refused the old limit holds, and `limit` says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The limit that holds.
pub fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// A line for the shell that sets the limit as it was before it was raised; empty where it was
/// not. Put it in front of a line of the user's.
pub fn shell_line() -> String {
    match BEFORE.get() {
        None => String::new(),
        Some(None) => "ulimit -S -n unlimited\n".to_owned(),
        Some(Some(limit)) => format!("ulimit -S -n {limit}\n"),
    }
}
