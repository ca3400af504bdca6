//! A file that a command writes beside what it prints: a page, a table, a chart.
//!
//! The file is opened before the work starts, so that a name that cannot be written fails at once.
//! It gets its name when it is complete: a command that fails leaves the old file.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use device::target::{Existing, FileMode, Target};

use crate::failure::{Failure, with_causes};

/// An output file that is open.
pub struct OutputFile {
    target: Target,
    path: PathBuf,
}

impl OutputFile {
    /// Opens a file that will get this name and replace any file with the name.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn open(path: &Path) -> Result<OutputFile, Failure> {
        let mode = if path.exists() { FileMode::Usual } else { FileMode::Exactly(usual_mode()) };
        let target = Target::open(path.as_os_str(), Existing::Replace, mode)
            .map_err(|error| Failure::new(&error, None))?;
        Ok(OutputFile { target, path: path.to_owned() })
    }

    /// The same for a file that other users read: a service may have a narrow umask.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn open_for_all(path: &Path) -> Result<OutputFile, Failure> {
        let mode = FileMode::Exactly(0o644);
        let target = Target::open(path.as_os_str(), Existing::Replace, mode)
            .map_err(|error| Failure::new(&error, None))?;
        Ok(OutputFile { target, path: path.to_owned() })
    }

    /// Opens a file that will get this name, which must be new.
    ///
    /// # Errors
    /// When the name exists, or the file cannot be created.
    pub fn open_new(path: &Path) -> Result<OutputFile, Failure> {
        let mode = FileMode::Exactly(usual_mode());
        let target = Target::open(path.as_os_str(), Existing::Keep, mode)
            .map_err(|error| Failure::new(&error, None))?;
        Ok(OutputFile { target, path: path.to_owned() })
    }

    /// Writes the whole content. The file has no name yet.
    ///
    /// # Errors
    /// When the write fails.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        let descriptor: &OwnedFd = &self.target.file;
        let file = descriptor.try_clone().map(std::fs::File::from);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| {
            let why = with_causes(&error);
            Failure::of(format!("write {}: {why}", self.path.display()), None)
        })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be synchronised or renamed.
    pub fn complete(self) -> Result<(), Failure> {
        self.target.complete().map(drop).map_err(|error| Failure::new(&error, None))
    }
}

/// Writes all files before any of them gets its name.
///
/// # Errors
/// When one cannot be written.
pub fn write_all(texts: Vec<(PathBuf, String)>) -> Result<(), Failure> {
    let mut files = Vec::new();
    for (path, text) in texts {
        let mut file = OutputFile::open(&path)?;
        file.write(&text)?;
        files.push(file);
    }
    files.into_iter().try_for_each(OutputFile::complete)
}

/// The umask alone decides who may read a page, unlike an archive.
fn usual_mode() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    0o666 & !mask.bits()
}

/// Whether two paths lead to one file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    match (rustix::fs::stat(a), rustix::fs::stat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        (Err(_), Err(_)) => a == b,
        _ => false,
    }
}
