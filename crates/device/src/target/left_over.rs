//! What killed runs left in a folder: partial files whose final names no later run has.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{TargetError, remove_left_over};

/// The end of a partial file's name.
pub(super) const PARTIAL_END: &str = ".takeup-partial";

/// A partial file that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOver {
    pub name: OsString,
    pub bytes: u64,
}

/// Removes the partial files in a folder that no run is writing to. `is_ours` gets the final name.
///
/// # Errors
/// When the folder cannot be read. A file that cannot be removed is left.
pub fn remove_left_overs(
    folder: &Path,
    is_ours: impl Fn(&OsStr) -> bool,
) -> io::Result<Vec<LeftOver>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = base::interruptible::open(folder, flags, Mode::empty())?;
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = final_name(&name).is_some_and(&is_ours);
        let Some(status) = entry.metadata().ok().filter(|status| is_ours && status.is_file())
        else {
            continue;
        };
        let path = folder.join(&name);
        let gone: Result<bool, TargetError> = remove_left_over(&directory, &name, &path);
        if matches!(gone, Ok(true)) {
            removed.push(LeftOver { name, bytes: status.len() });
        }
    }
    Ok(removed)
}

/// The name that a partial file would have got.
fn final_name(partial: &OsStr) -> Option<&OsStr> {
    let name = partial.as_bytes().strip_prefix(b".")?.strip_suffix(PARTIAL_END.as_bytes())?;
    Some(OsStr::from_bytes(name))
}
