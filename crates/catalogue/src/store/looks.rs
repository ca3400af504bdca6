//! Files that were looked at, so that those which have not changed are not opened again.

use std::collections::HashMap;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rusqlite::params;

use super::{Catalogue, CatalogueError};

/// Most files that are remembered; further ones are opened each time.
pub const LOOKS_MAX: usize = 200_000;

/// What shows that a file is the one that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub bytes: u64,
    pub modified_seconds: i64,
    pub modified_nanoseconds: i64,
}

/// What was found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub stamp: Stamp,
    /// The number of the set that it has; `None`: it has no index.
    pub set: Option<i64>,
}

impl From<&std::fs::Metadata> for Stamp {
    fn from(status: &std::fs::Metadata) -> Stamp {
        Stamp {
            bytes: status.len(),
            modified_seconds: status.mtime(),
            modified_nanoseconds: status.mtime_nsec(),
        }
    }
}

impl Catalogue {
    /// All files that were looked at.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn looks(&self) -> Result<HashMap<PathBuf, Look>, CatalogueError> {
        let read = || {
            let mut select = self.connection.prepare("SELECT * FROM looks")?;
            let looks = select.query_map([], |row| {
                let path = std::ffi::OsString::from_vec(row.get(0)?);
                let stamp = Stamp {
                    bytes: row.get::<_, i64>(1)? as u64,
                    modified_seconds: row.get(2)?,
                    modified_nanoseconds: row.get(3)?,
                };
                Ok((PathBuf::from(path), Look { stamp, set: row.get(4)? }))
            })?;
            looks.collect::<Result<_, _>>()
        };
        read().map_err(|error: rusqlite::Error| self.error(error))
    }

    /// Notes what was found in files.
    ///
    /// # Errors
    /// When the catalogue cannot be written.
    pub fn note_looks(&mut self, looks: &[(PathBuf, Look)]) -> Result<(), CatalogueError> {
        let note = || {
            let transaction = self.connection.unchecked_transaction()?;
            let count = "SELECT count(*) FROM looks";
            let known: i64 = transaction.query_row(count, [], |row| row.get(0))?;
            let room = LOOKS_MAX.saturating_sub(known as usize);
            for (path, Look { stamp, set }) in looks.iter().take(room) {
                let mut insert = transaction
                    .prepare_cached("INSERT OR REPLACE INTO looks VALUES (?1, ?2, ?3, ?4, ?5)")?;
                insert.execute(params![
                    path.as_os_str().as_bytes(),
                    stamp.bytes as i64,
                    stamp.modified_seconds,
                    stamp.modified_nanoseconds,
                    set,
                ])?;
            }
            transaction.commit()
        };
        note().map_err(|error: rusqlite::Error| self.error(error))
    }

    /// Forgets files that are gone.
    ///
    /// # Errors
    /// When the catalogue cannot be written.
    pub fn forget_looks(&mut self, paths: &[PathBuf]) -> Result<(), CatalogueError> {
        let forget = || {
            let transaction = self.connection.unchecked_transaction()?;
            for path in paths {
                let path = path.as_os_str().as_bytes();
                transaction.execute("DELETE FROM looks WHERE path = ?1", [path])?;
            }
            transaction.commit()
        };
        forget().map_err(|error: rusqlite::Error| self.error(error))
    }
}
