//! The state of one object below a source, for what a walk has not passed.

use std::io;
use std::path::Path;

use base::interruptible::openat;
use rustix::fs::{AtFlags, Mode, OFlags, statat};

use crate::ScanError;
use crate::source::Source;
use crate::status::Status;

/// The state of what lies below a source; `path` is empty for the source itself. No symbolic link
/// below the source is followed.
///
/// # Errors
/// Of the source, as [`crate::Scan::start`]; of the path, those of openat(2) and fstatat(2).
pub fn status_below(source: &Path, path: &[u8]) -> Result<io::Result<Status>, ScanError> {
    let holder = Source::open(source, 0)?.holder;
    let look = || -> io::Result<Status> {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let mut name = holder.names().name(0).to_bytes();
        let mut directory = None;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for next in names {
            let opened = match &directory {
                None => openat(&*holder, name, flags, Mode::empty())?,
                Some(directory) => openat(directory, name, flags, Mode::empty())?,
            };
            (directory, name) = (Some(opened), next);
        }
        let stat = match &directory {
            None => statat(&*holder, name, AtFlags::SYMLINK_NOFOLLOW)?,
            Some(directory) => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?,
        };
        Ok(Status::of(&stat))
    };
    Ok(look())
}
