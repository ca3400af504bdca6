//! What fio works on: files and devices that were looked at, and folders of our own that are gone
//! when the experiment is.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::DiskError;
use super::job::Room;
use super::safety::{self, Access, Found, Permission, Permit};

/// Files and devices, each once.
#[derive(Debug, Default)]
pub struct Targets {
    held: Vec<LoadTarget>,
}

/// One of them, as long as it is worked on.
#[derive(Debug)]
pub struct LoadTarget {
    pub path: PathBuf,
    /// What is done to it.
    pub access: Access,
    pub permit: Permit,
}

impl Targets {
    /// Looks at all of them. One that has several names is one, and is written to if that is done
    /// by any of its names.
    ///
    /// # Errors
    /// When one of them has to be left alone.
    pub fn check(wanted: &[(&Path, Access)], permission: Permission) -> Result<Targets, DiskError> {
        let mut once: Vec<(Identity, PathBuf, Access)> = Vec::new();
        for (path, access) in wanted {
            let own = identity(path);
            match once.iter_mut().find(|(known, ..)| *known == own) {
                Some((.., known)) if *access == Access::Writes => *known = Access::Writes,
                Some(_) => {}
                None => once.push((own, (*path).to_owned(), *access)),
            }
        }
        let mut held = Vec::new();
        for (_, path, access) in once {
            let permit = safety::check(&path, access, permission)?;
            held.push(LoadTarget { path, access, permit });
        }
        Ok(Targets { held })
    }

    /// Whether something was not there before.
    pub fn makes_one(&self) -> bool {
        self.held.iter().any(|target| target.permit.found == Found::Nothing)
    }

    /// Whether nothing writes to what has this name.
    pub fn is_only_read(&self, path: &Path) -> bool {
        let own = identity(path);
        let found = self.held.iter().find(|target| identity(&target.path) == own);
        found.is_some_and(|target| target.access == Access::Reads)
    }

    /// Writes what memory holds of them to where they are, and forgets `length_bytes` of each.
    pub fn drop_cached(&self, length_bytes: u64) {
        for target in &self.held {
            if let Ok(file) = File::open(&target.path) {
                let _ = base::interruptible::fdatasync(&file);
                device::file::drop_cached(&file, 0, length_bytes);
            }
        }
    }

    /// Removes those that were not there before.
    ///
    /// # Errors
    /// When one is still there.
    pub fn remove_made(&mut self) -> Result<(), DiskError> {
        for LoadTarget { path, permit, .. } in &mut self.held {
            if permit.found == Found::Nothing && path.is_file() {
                fs::remove_file(&*path)
                    .map_err(|source| DiskError::Remove { path: path.clone(), source })?;
                permit.found = Found::Something;
            }
        }
        Ok(())
    }
}

/// What is one and the same, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Device(u64),
    File(u64, u64),
    Missing(PathBuf),
}

fn identity(path: &Path) -> Identity {
    match fs::metadata(path) {
        Ok(status) if status.file_type().is_block_device() => Identity::Device(status.rdev()),
        Ok(status) => Identity::File(status.dev(), status.ino()),
        Err(_) => Identity::Missing(path.to_owned()),
    }
}

/// A folder that was made for the runs, with all that is in it; it goes when it is dropped.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    /// The one that it is in.
    pub below: PathBuf,
    is_there: bool,
}

/// Folders of that name that killed experiments may have left.
const TRIES_MAX: u32 = 1000;

impl OwnFolder {
    /// Makes a folder that other users cannot read.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(below: &Path) -> Result<OwnFolder, DiskError> {
        let id = std::process::id();
        for attempt in 1..=TRIES_MAX {
            let path = below.join(format!("takeup-bench-{id}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    return Ok(OwnFolder { path, below: below.to_owned(), is_there: true });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(DiskError::Make { path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(DiskError::Make { path: below.to_owned(), source })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it with nothing in it.
    ///
    /// # Errors
    /// When what was in it cannot be removed, or it cannot be made.
    pub fn empty(&self, name: &str) -> Result<PathBuf, DiskError> {
        let path = self.path.join(name);
        remove(&path)?;
        self.folder(name)
    }

    /// A folder in it, with what is in it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, DiskError> {
        let path = self.path.join(name);
        match fs::create_dir(&path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(DiskError::Make { path, source })
            }
            _ => Ok(path),
        }
    }

    /// Writes what memory holds of its file system to where it is.
    pub fn sync(&self) {
        if let Ok(folder) = File::open(&self.path) {
            let _ = rustix::fs::syncfs(&folder);
        }
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// When something is still there.
    pub fn remove(&mut self) -> Result<(), DiskError> {
        if self.is_there {
            remove(&self.path)?;
            self.is_there = false;
        }
        Ok(())
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // Whoever wants to know whether that was possible has removed it.
        let _ = self.remove();
    }
}

fn remove(path: &Path) -> Result<(), DiskError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(DiskError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Least room that a file takes, as most file systems have it.
const BLOCK_BYTES: u64 = 4096;

/// Looks whether files have room below a folder.
///
/// # Errors
/// When they have not, or the folder cannot be looked at.
pub fn check_room(folder: &Path, room: Room) -> Result<(), DiskError> {
    let failed = |error: rustix::io::Errno| DiskError::Open {
        path: folder.to_owned(),
        source: error.into(),
    };
    let found = rustix::fs::statvfs(folder).map_err(failed)?;
    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    let needed_bytes = room.bytes.saturating_add(room.files.saturating_mul(BLOCK_BYTES));
    let path = || folder.to_owned();
    if needed_bytes > free_bytes {
        return Err(DiskError::Room { path: path(), needed_bytes, free_bytes });
    }
    // Some file systems make the heads of files as they are needed, and tell of none.
    if found.f_files > 0 && room.files > found.f_favail {
        let (files, free_files) = (room.files, found.f_favail);
        return Err(DiskError::Files { path: path(), files, free_files });
    }
    Ok(())
}

/// The path as fio takes it. A colon is the end of a name to fio, unless a backslash stands before.
///
/// # Errors
/// When fio would use another file: it cuts off a blank at the end, and all from a `;` or a
/// `#` on.
pub fn fio_name(path: &Path) -> Result<OsString, DiskError> {
    let bytes = path.as_os_str().as_bytes();
    let is_odd = |byte: &u8| b"\\;#".contains(byte) || byte.is_ascii_control();
    if bytes.iter().any(is_odd) || bytes.last().is_some_and(u8::is_ascii_whitespace) {
        return Err(DiskError::Name { path: path.to_owned() });
    }
    let mut name = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if *byte == b':' {
            name.push(b'\\');
        }
        name.push(*byte);
    }
    Ok(OsString::from_vec(name))
}

/// Length of a file or a device.
///
/// # Errors
/// When it cannot be opened.
pub fn length_of(path: &Path) -> Result<u64, DiskError> {
    let length = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|source| DiskError::Length { path: path.to_owned(), source })
}
