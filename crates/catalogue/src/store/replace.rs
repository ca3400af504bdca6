//! A catalogue that takes the place of another: made beside it, and renamed when it is whole.
//!
//! Not here: what comes into it.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{APPLICATION_ID, BUSY_MAX, Catalogue, CatalogueError, describe};

/// The place of a catalogue, with a new file beside it that nobody else uses.
pub(super) struct Place<'p> {
    path: &'p Path,
    new: PathBuf,
    /// Of the new file, until it has its name.
    _lock: OwnedFd,
}

impl<'p> Place<'p> {
    /// Makes the new file, empty.
    pub(super) fn begin(path: &'p Path) -> Result<Place<'p>, CatalogueError> {
        check_replaceable(path)?;
        let new = beside(path, ".new");
        let lock = begin_new(&new, path)?;
        Ok(Place { path, new, _lock: lock })
    }

    pub(super) fn new_path(&self) -> &Path {
        &self.new
    }

    /// Gives the new file its name.
    pub(super) fn take(self) -> Result<(), CatalogueError> {
        let taken = put_in_place(&self.new, self.path);
        if taken.is_err() {
            self.leave();
        }
        taken
    }

    /// Removes the new file.
    pub(super) fn leave(self) {
        // What failed is said; what cannot be removed is made anew by the next attempt.
        let _ = remove_company(&self.new).and_then(|()| remove(&self.new));
    }
}

/// The name of a file beside another.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CatalogueError {
    let path = path.to_owned();
    move |source| CatalogueError::File { what, path, source }
}

/// Permissions of a catalogue: names of files are nobody else's business.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Makes an empty file, if there is none. One that is there is not opened: its descriptor would
/// take the locks along that SQLite holds on it in this process (fcntl_locking(2)).
pub(super) fn make_private(path: &Path) -> Result<(), CatalogueError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    match base::interruptible::open(path, flags, PRIVATE) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(failed("make", path)(error.into())),
    }
}

/// Refuses to replace what is no catalogue: an archive, say, that somebody names by mistake. One
/// that is damaged is told by its first page.
fn check_replaceable(path: &Path) -> Result<(), CatalogueError> {
    match Catalogue::open(path) {
        Ok(_) | Err(CatalogueError::Missing { .. }) => Ok(()),
        Err(CatalogueError::Damaged { .. } | CatalogueError::Database { .. }) => {
            let mut head = Vec::new();
            let read = std::fs::File::open(path)
                .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
            read.map_err(failed("read", path))?;
            let id = (APPLICATION_ID as u32).to_be_bytes();
            let is_ours = head.get(APPLICATION_ID_AT) == Some(&id[..]);
            is_ours.then_some(()).ok_or_else(|| CatalogueError::Other { path: path.to_owned() })
        }
        Err(error) => Err(error),
    }
}

/// The head of a database, and its application id (sqlite.org/fileformat.html).
const HEAD_BYTES: u64 = 100;
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;

/// Makes an empty file for a catalogue that is to become the one at `path`, or empties what a crash
/// has left. The lock keeps others from doing the same.
fn begin_new(new: &Path, path: &Path) -> Result<OwnedFd, CatalogueError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let opened = base::interruptible::open(new, flags, PRIVATE);
    let file = opened.map_err(|error| failed("make", new)(error.into()))?;
    let lock = FlockOperation::NonBlockingLockExclusive;
    let locked = base::interruptible::lock_unless_in_use(&file, lock);
    let busy = || CatalogueError::Busy { path: path.to_owned() };
    locked.map_err(|error| match error {
        Errno::WOULDBLOCK => busy(),
        other => failed("lock", new)(other.into()),
    })?;
    // Who had the lock may have given the file its name meanwhile.
    let (of_file, of_name) = (rustix::fs::fstat(&file), rustix::fs::stat(new));
    let is_same = matches!((of_file, of_name), (Ok(file), Ok(name))
        if (file.st_dev, file.st_ino) == (name.st_dev, name.st_ino));
    if !is_same {
        return Err(busy());
    }
    remove_company(new)?;
    let emptied = base::interruptible::ftruncate(&file, 0);
    emptied.map_err(|error| failed("empty", new)(error.into()))?;
    Ok(file)
}

/// Makes a finished file safe and gives it its name.
fn put_in_place(new: &Path, path: &Path) -> Result<(), CatalogueError> {
    let file = std::fs::File::open(new).map_err(failed("open", new))?;
    let safe = base::interruptible::fsync(&file);
    safe.map_err(|error| failed("synchronise", new)(error.into()))?;
    end_log(path)?;
    std::fs::rename(new, path).map_err(failed("replace", path))?;
    // The name is safe once its folder is; what cannot be synchronised there is found again.
    if let Some(folder) = path.parent().and_then(|folder| std::fs::File::open(folder).ok()) {
        let _ = base::interruptible::fsync(&folder);
    }
    Ok(())
}

/// Ends the write-ahead log of a catalogue that is to be replaced: SQLite would apply it to the new
/// file. Until the replacement the old one is whole.
fn end_log(path: &Path) -> Result<(), CatalogueError> {
    if !path.exists() {
        return remove_company(path);
    }
    let end = || -> Result<String, rusqlite::Error> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(BUSY_MAX)?;
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))
    };
    match end().map_err(|error| describe(path, error)) {
        Ok(mode) if mode.eq_ignore_ascii_case("wal") => {
            Err(CatalogueError::Busy { path: path.to_owned() })
        }
        Err(busy @ CatalogueError::Busy { .. }) => Err(busy),
        // Of a damaged one nothing is kept.
        _ => remove_company(path),
    }
}

/// Whether all of a catalogue is in its file.
pub(super) fn log_is_empty(path: &Path) -> bool {
    beside(path, "-wal").metadata().map_or(true, |log| log.len() == 0)
}

/// Removes what SQLite keeps beside a file.
fn remove_company(path: &Path) -> Result<(), CatalogueError> {
    ["-journal", "-wal", "-shm"].iter().try_for_each(|end| remove(&beside(path, end)))
}

/// Removes a file, if there is one.
fn remove(path: &Path) -> Result<(), CatalogueError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}
