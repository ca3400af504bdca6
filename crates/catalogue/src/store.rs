//! The catalogue: one file of SQLite with what the indexes of many sets say.
//!
//! A catalogue that is missing, locked, damaged or of a later version is an error with a name, and
//! never more than that: all of it can be read again from the indexes.

pub(crate) mod find;
pub(crate) mod folder;
mod leaving;
pub(crate) mod loading;
pub(crate) mod looks;
mod name_blocks;
mod name_pattern;
mod names;
pub(crate) mod objects;
mod replace;
pub(crate) mod sets;
mod tables;
pub(crate) mod usage;
mod versions;

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

/// Version of the tables.
pub const CATALOGUE_VERSION: i64 = 2;
/// `tkup`: what tells a catalogue from other files of SQLite.
const APPLICATION_ID: i64 = 0x746b_7570;
/// How long to wait for another process that writes.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// Prepared statements that are kept.
const STATEMENTS: usize = 64;
/// Memory for pages of the file.
const PAGES_KIB: i64 = 64 << 10;
/// The same while a catalogue is made again: names come in no order.
const PAGES_OF_REBUILD_KIB: i64 = 256 << 10;

/// Why the catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// There is none.
    #[error("there is no catalogue at {}", path.display())]
    Missing { path: PathBuf },
    /// The file is something else.
    #[error("{} is not a catalogue of takeup", path.display())]
    Other { path: PathBuf },
    /// A later version of takeup made it.
    #[error(
        "a later version of takeup made the catalogue {} (version {version}, and this one knows \
         {CATALOGUE_VERSION})",
        path.display()
    )]
    Later { path: PathBuf, version: i64 },
    /// An earlier version made it, and it cannot be changed into one of this version.
    #[error(
        "an earlier version of takeup made the catalogue {}, and it may not be written to",
        path.display()
    )]
    Earlier { path: PathBuf },
    /// Its content contradicts itself.
    #[error("the catalogue {} is damaged", path.display())]
    Damaged { path: PathBuf, source: rusqlite::Error },
    /// Another process uses it.
    #[error("the catalogue {} is in use by another process", path.display())]
    Busy { path: PathBuf },
    /// It can be opened to read at most.
    #[error("cannot open the catalogue {}: it or its folder may not be written to", path.display())]
    NotOpened { path: PathBuf },
    /// Its file system is full.
    #[error("there is no space left for the catalogue {}", path.display())]
    Full { path: PathBuf },
    /// Anything else that SQLite says.
    #[error("cannot use the catalogue {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    /// Its file cannot be made or moved.
    #[error("cannot {what} {}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
}

/// An open catalogue.
#[derive(Debug)]
pub struct Catalogue {
    connection: Connection,
    path: PathBuf,
}

impl Catalogue {
    /// Opens an existing catalogue to read it. Works where nothing may be written, too.
    ///
    /// # Errors
    /// `Missing`, `Other`, `Later`, `Damaged`, `Busy`, `Database`.
    pub fn open(path: &Path) -> Result<Catalogue, CatalogueError> {
        if !path.exists() {
            return Err(CatalogueError::Missing { path: path.to_owned() });
        }
        // Who may write removes the files of the log behind itself; SQLite opens what is protected
        // to read only.
        match Catalogue::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
            // The write-ahead log wants a file beside it even from readers. Where none can be made
            // nobody writes.
            Err(CatalogueError::NotOpened { .. }) => Catalogue::connect_immutable(path),
            Err(CatalogueError::Full { .. }) if replace::log_is_empty(path) => {
                Catalogue::connect_immutable(path)
            }
            opened => opened,
        }
    }

    fn connect_immutable(path: &Path) -> Result<Catalogue, CatalogueError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Catalogue::connect_as(Path::new(&immutable(path)), path, flags)
    }

    /// Opens a catalogue to write to it, and makes it where there is none.
    ///
    /// # Errors
    /// As [`Catalogue::open`], and `File` where its folder cannot be made.
    pub fn open_or_create(path: &Path) -> Result<Catalogue, CatalogueError> {
        if path.metadata().is_ok_and(|status| status.len() > 0) {
            match Catalogue::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
                Err(CatalogueError::Missing { .. }) => {}
                opened => return opened,
            }
        }
        Catalogue::create(path)
    }

    /// Makes a catalogue in an empty file, which is made if there is none. Names of files are
    /// nobody else's business.
    fn create(path: &Path) -> Result<Catalogue, CatalogueError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = std::fs::create_dir_all(folder);
            made.map_err(replace::failed("make the folder", folder))?;
        }
        replace::make_private(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| describe(path, error))?;
        let catalogue = Catalogue::with(connection, path)?;
        catalogue.make_tables().map_err(|error| describe(path, error))?;
        Ok(catalogue)
    }

    /// Makes the tables, unless another process has just made them. A crash leaves all or none.
    fn make_tables(&self) -> Result<(), rusqlite::Error> {
        self.connection.pragma_update(None, "page_size", 4096)?;
        let behaviour = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, behaviour)?;
        if is_empty(&transaction)? {
            transaction.execute_batch(tables::TABLES)?;
            transaction.execute_batch(tables::TABLES_OF_2)?;
            transaction.execute_batch(tables::NODES_BY_NAME)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", CATALOGUE_VERSION)?;
        }
        transaction.commit()?;
        // Last, so that the first page, which says what the file is, is in the file and not in the
        // log. Not where another process does the same just now; all works with either journal.
        let _ = self.connection.pragma_update(None, "journal_mode", journal_mode(&self.path));
        Ok(())
    }

    fn connect(path: &Path, access: OpenFlags) -> Result<Catalogue, CatalogueError> {
        Catalogue::connect_as(path, path, access)
    }

    /// Opens the file at `path`, of which `name` is what SQLite is told.
    fn connect_as(
        name: &Path,
        path: &Path,
        access: OpenFlags,
    ) -> Result<Catalogue, CatalogueError> {
        let connection =
            Connection::open_with_flags(name, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(|error| describe(path, error))?;
        let catalogue = Catalogue::with(connection, path)?;
        let number = |name: &str| {
            let value = catalogue.connection.pragma_query_value(None, name, |row| row.get(0));
            value.map_err(|error| describe(path, error))
        };
        let (id, version): (i64, i64) = (number("application_id")?, number("user_version")?);
        if id == 0 && is_empty(&catalogue.connection).map_err(|error| describe(path, error))? {
            // Who made it was stopped before the tables.
            return Err(CatalogueError::Missing { path: path.to_owned() });
        }
        if id != APPLICATION_ID {
            return Err(CatalogueError::Other { path: path.to_owned() });
        }
        if version > CATALOGUE_VERSION {
            return Err(CatalogueError::Later { path: path.to_owned(), version });
        }
        if version < CATALOGUE_VERSION {
            catalogue.migrate().map_err(|error| match describe(path, error) {
                CatalogueError::NotOpened { path } => CatalogueError::Earlier { path },
                other => other,
            })?;
        }
        Ok(catalogue)
    }

    /// Makes a catalogue of this version of one of an earlier version. What it has stays as it is.
    fn migrate(&self) -> Result<(), rusqlite::Error> {
        let behaviour = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, behaviour)?;
        // Another process may have done it meanwhile.
        let version = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        if transaction.pragma_query_value(None, "user_version", version)? == 1 {
            transaction.execute_batch(tables::TO_2)?;
            transaction.execute_batch(tables::TABLES_OF_2)?;
            name_blocks::complete(&transaction)?;
            transaction.pragma_update(None, "user_version", CATALOGUE_VERSION)?;
        }
        transaction.commit()
    }

    fn with(connection: Connection, path: &Path) -> Result<Catalogue, CatalogueError> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let set = || {
            connection.busy_timeout(BUSY_MAX)?;
            connection.pragma_update(None, "cache_size", -PAGES_KIB)?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            // Rows refer to each other by our own doing; a look at each for it takes time.
            connection.pragma_update(None, "foreign_keys", false)
        };
        set().map_err(|error| describe(path, error))?;
        Ok(Catalogue { connection, path: path.to_owned() })
    }

    /// Makes a catalogue beside an existing one, lets `fill` put sets into it, and gives it the
    /// name of the existing one when all is on the disk. Until then that stays as it is.
    ///
    /// # Errors
    /// Those of `fill`, and those of making and renaming. `Other` if the file at `path` is no
    /// catalogue; `Busy` if it is in use, or is made anew by another process.
    pub fn rebuild<T, E: From<CatalogueError>>(
        path: &Path,
        fill: impl FnOnce(&mut Catalogue) -> Result<T, E>,
    ) -> Result<T, E> {
        let place = replace::Place::begin(path)?;
        let result =
            Catalogue::create(place.new_path()).map_err(E::from).and_then(|mut catalogue| {
                // Nobody else knows the file, and what a crash leaves of it is made anew.
                catalogue.set_pragma("journal_mode", "DELETE")?;
                catalogue.set_pragma("synchronous", "OFF")?;
                catalogue.set_pragma("cache_size", &format!("-{PAGES_OF_REBUILD_KIB}"))?;
                catalogue.execute("DROP INDEX nodes_by_name")?;
                let filled = fill(&mut catalogue)?;
                catalogue.execute(tables::NODES_BY_NAME)?;
                catalogue.set_pragma("journal_mode", journal_mode(path))?;
                Ok(filled)
            });
        match result {
            Ok(filled) => {
                place.take()?;
                Ok(filled)
            }
            Err(error) => {
                place.leave();
                Err(error)
            }
        }
    }

    fn set_pragma(&self, name: &str, value: &str) -> Result<(), CatalogueError> {
        self.connection.pragma_update(None, name, value).map_err(|error| self.error(error))
    }

    fn execute(&self, statement: &str) -> Result<(), CatalogueError> {
        self.connection.execute_batch(statement).map_err(|error| self.error(error))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of SQLite, as one of this catalogue.
    fn error(&self, error: rusqlite::Error) -> CatalogueError {
        describe(&self.path, error)
    }
}

/// The name of a file that nobody changes (sqlite.org/uri.html).
fn immutable(path: &Path) -> String {
    let mut name = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                name.push(char::from(*byte));
            }
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name + "?immutable=1"
}

/// Whether a database has no table.
fn is_empty(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let count = "SELECT count(*) FROM sqlite_schema";
    connection.query_row(count, [], |row| Ok(row.get::<_, i64>(0)? == 0))
}

/// The file beside a write-ahead log cannot get its length (`SQLITE_IOERR_SHMSIZE`).
const NO_ROOM_FOR_LOG: i32 = 4874;

/// What an error of SQLite means to who wanted the catalogue at a path.
fn describe(path: &Path, source: rusqlite::Error) -> CatalogueError {
    let path = path.to_owned();
    if source.sqlite_error().is_some_and(|error| error.extended_code == NO_ROOM_FOR_LOG) {
        return CatalogueError::Full { path };
    }
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => CatalogueError::Full { path },
        Some(ErrorCode::NotADatabase) => CatalogueError::Other { path },
        Some(ErrorCode::DatabaseCorrupt) => CatalogueError::Damaged { path, source },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CatalogueError::Busy { path },
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            CatalogueError::NotOpened { path }
        }
        _ => CatalogueError::Database { path, source },
    }
}

/// The write-ahead log needs memory that processes share, which file systems of other machines do
/// not give (sqlite.org/wal.html): there the catalogue has a rollback journal.
fn journal_mode(path: &Path) -> &'static str {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let kind = rustix::fs::statfs(folder.unwrap_or(Path::new("."))).map(|status| status.f_type);
    match kind {
        Ok(kind) if NETWORK_FILE_SYSTEMS.contains(&(kind as u32)) => "DELETE",
        _ => "WAL",
    }
}

/// Numbers of file systems whose files other machines may write (statfs(2), `linux/magic.h`): NFS,
/// SMB, CIFS, Ceph, AFS, 9P, FUSE, OCFS2, GFS2.
const NETWORK_FILE_SYSTEMS: [u32; 9] = [
    0x6969,
    0xfe53_4d42,
    0xff53_4d42,
    0x00c3_6400,
    0x5346_414f,
    0x0102_1997,
    0x6573_5546,
    0x7461_636f,
    0x0116_1970,
];

#[cfg(test)]
mod tests;
