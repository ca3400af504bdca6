//! The file to read for a measurement: the file or device itself, or the largest file in a folder.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use storage::layers::Storage;

use super::apply::storage;
use crate::failure::Failure;
use crate::largest_file::largest_below;

/// A smaller file cannot distinguish windows.
const BYTES_MIN: u64 = 4 << 20;

/// The file to read.
#[derive(Debug)]
pub struct TuneSubject {
    /// The file or device.
    pub file: PathBuf,
    pub length_bytes: u64,
    /// The storage below it.
    pub storage: Storage,
}

impl TuneSubject {
    /// The file to read for a path.
    ///
    /// # Errors
    /// When there is no file that is large enough, or it cannot be opened.
    pub fn find(path: &Path) -> Result<TuneSubject, Failure> {
        let failed = |error: rustix::io::Errno| {
            let error = std::io::Error::from(error);
            Failure::of(
                format!("{}: {}", path.display(), crate::failure::with_causes(&error)),
                None,
            )
        };
        let status = rustix::fs::stat(path).map_err(failed)?;
        let too_small = || {
            Failure::of(
                format!("{}: no file or device of at least 4 MiB to read", path.display()),
                Some("name a large file on the same file system: the read-ahead is the same"),
            )
        };
        let file = if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            largest_below(path).map_err(failed)?.ok_or_else(too_small)?.path
        } else {
            path.to_owned()
        };
        let file = std::path::absolute(&file).unwrap_or(file);
        // Report a missing permission first, not a file that is too small.
        let source = device::source::Source::open(file.as_os_str())
            .map_err(|error| Failure::new(&error, None))?;
        let length_bytes = source.length_bytes.unwrap_or(0);
        if length_bytes < BYTES_MIN {
            return Err(too_small());
        }
        Ok(TuneSubject { storage: storage(&file)?, file, length_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_small_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small"), vec![1; 8192]).unwrap();
        assert!(TuneSubject::find(folder.path()).is_err(), "no file is large enough");
        assert!(TuneSubject::find(&folder.path().join("small")).is_err());
    }

    /// For a file that cannot be opened, the error must not be that it is too small.
    #[test]
    fn what_cannot_be_opened_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let told = TuneSubject::find(&path).err().unwrap().to_text();
        assert!(told.contains("socket") && !told.contains("4 MiB"), "{told}");
        let told = TuneSubject::find(folder.path()).err().unwrap().to_text();
        assert!(told.contains("no file or device of at least 4 MiB"), "{told}");
    }
}
