//! The file of udev rules that keeps changes over a restart.
//!
//! Takeup writes the text to the list before it writes the file. So it can recognise its own file
//! byte by byte, even after a crash in between. It never overwrites or removes any other file.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use serde::{Deserialize, Serialize};

use super::Changes;
use crate::StorageError;

/// A file that Takeup wrote, or was about to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persisted {
    pub path: PathBuf,
    /// All texts that it may have, the newest last.
    texts: Vec<String>,
}

/// What was done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Nothing: it was up to date, or absent.
    AsItWas,
    /// It was written or removed.
    Done,
}

/// The state of the file of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// There is no file.
    Nothing,
    /// It has these rules.
    These,
    /// It has other rules that Takeup wrote before.
    Others,
    /// Takeup did not write it, or it was edited.
    Foreign,
}

/// Compares the file with a text, and reads the list without its lock.
///
/// # Errors
/// When the list is not trusted or cannot be parsed, or the file cannot be read.
pub fn kept(list: &Path, path: &Path, text: &str) -> Result<Kept, StorageError> {
    match own_text(path, super::read(list)?.persisted.as_ref()) {
        Ok(None) => Ok(Kept::Nothing),
        Ok(Some(found)) if found == text => Ok(Kept::These),
        Ok(Some(_)) => Ok(Kept::Others),
        Err(StorageError::Foreign { .. }) => Ok(Kept::Foreign),
        Err(error) => Err(error),
    }
}

impl Changes<'_> {
    /// Writes the file; replaces an older one of Takeup.
    ///
    /// # Errors
    /// When the file exists and is not ours, or cannot be written.
    pub fn persist(&mut self, path: &Path, text: &str) -> Result<FileState, StorageError> {
        let found = own_text(path, self.list.persisted.as_ref())?;
        if found.as_deref() == Some(text) {
            return Ok(FileState::AsItWas);
        }
        let texts = found.iter().cloned().chain([text.to_owned()]).collect();
        self.list.persisted = Some(Persisted { path: path.to_owned(), texts });
        self.write_list()?;
        let written = write(path, text, found.is_some());
        written.map_err(|source| failed("write", path, source))?;
        let texts = vec![text.to_owned()];
        self.list.persisted = Some(Persisted { path: path.to_owned(), texts });
        self.write_list()?;
        Ok(FileState::Done)
    }

    /// Removes the file that Takeup wrote, if there is one.
    ///
    /// # Errors
    /// When it was edited, or cannot be removed.
    pub fn unpersist(&mut self) -> Result<FileState, StorageError> {
        let Some(persisted) = self.list.persisted.clone() else { return Ok(FileState::AsItWas) };
        let path = &persisted.path;
        let found = own_text(path, Some(&persisted))?;
        if found.is_some() {
            let removed = fs::remove_file(path).and_then(|()| synchronise_folder(path));
            removed.map_err(|source| failed("remove", path, source))?;
        }
        self.list.persisted = None;
        self.write_list()?;
        Ok(if found.is_some() { FileState::Done } else { FileState::AsItWas })
    }

    /// The file that keeps changes, if there is one.
    pub fn persisted(&self) -> Option<&Path> {
        self.list.persisted.as_ref().map(|persisted| &*persisted.path)
    }
}

/// The text of a file that is ours; `None` if there is no file.
fn own_text(path: &Path, persisted: Option<&Persisted>) -> Result<Option<String>, StorageError> {
    let status = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, error)),
        Ok(status) => status,
    };
    let own = persisted.filter(|persisted| persisted.path == path);
    let foreign = || StorageError::Foreign { path: path.to_owned() };
    let own = own.filter(|_| status.is_file()).ok_or_else(foreign)?;
    // No text of ours is longer than the list that holds it.
    let bytes = fs::read(path).map_err(|source| failed("read", path, source))?;
    let text = own.texts.iter().find(|text| text.as_bytes() == bytes);
    text.cloned().map(Some).ok_or_else(foreign)
}

/// The file gets its name when it is complete. udev ignores names that begin with a dot.
fn write(path: &Path, text: &str, is_there: bool) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let put = || {
        let mut file = File::create_new(&unfinished)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let flags = if is_there { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(CWD, &unfinished, CWD, path, flags)?;
        synchronise_folder(path)
    };
    put().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

fn synchronise_folder(path: &Path) -> io::Result<()> {
    base::interruptible::fsync(File::open(path.parent().unwrap_or(Path::new("/")))?)?;
    Ok(())
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> StorageError {
    StorageError::File { what, path: path.to_owned(), source }
}
