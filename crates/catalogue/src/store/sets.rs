//! The sets that the catalogue knows.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use super::tables::{KEY_EPOCH_SECONDS, NEWEST};
use super::versions::Among;
use super::{Catalogue, CatalogueError};

/// A set that is to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDescription {
    /// Hash of what its index lists (`Trailer::set_id`), or the identity of a set of a chain and
    /// zeros. With the time it tells the set from all others.
    pub content: [u8; 32],
    /// When it was written, in seconds since 1970.
    pub time_seconds: i64,
    /// Its place among the sets of its series: its time, or a later one if a set before it has
    /// that, since clocks are set back.
    pub order_seconds: i64,
    /// Its archive.
    pub place: PathBuf,
    /// As `--compress` takes it.
    pub compression: String,
    /// Length of the archive before compression.
    pub archive_bytes: u64,
    /// The paths in it that lie below no other: what was backed up.
    pub sources: Vec<Vec<u8>>,
}

/// A set of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSet {
    /// Its number in the catalogue.
    pub number: i64,
    /// The series that it belongs to: sets of the same sources in the same folder.
    pub series: i64,
    /// Its identity, if it is one of a chain.
    pub identity: Option<[u8; 16]>,
    /// Its place in time within the series.
    pub(super) key: i64,
    pub time_seconds: i64,
    pub place: PathBuf,
    pub compression: String,
    /// Objects of all kinds.
    pub members: u64,
    /// Files among them.
    pub files: u64,
    /// Bytes of their contents.
    pub source_bytes: u64,
    pub archive_bytes: u64,
    /// What was backed up.
    pub sources: Vec<Vec<u8>>,
}

impl Catalogue {
    /// All sets, the oldest first.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn sets(&self) -> Result<Vec<KnownSet>, CatalogueError> {
        self.sets_where("1", 0).map_err(|error| self.error(error))
    }

    /// The sets of each series that has some, in the order in which they were made.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn series(&self) -> Result<Vec<Vec<KnownSet>>, CatalogueError> {
        let mut all: BTreeMap<i64, Vec<KnownSet>> = BTreeMap::new();
        for set in self.sets()? {
            all.entry(set.series).or_default().push(set);
        }
        for sets in all.values_mut() {
            sets.sort_by_key(|set| set.key);
        }
        Ok(all.into_values().collect())
    }

    /// The sets of a series, by their keys.
    pub(super) fn sets_of(&self, series: i64) -> Result<Vec<KnownSet>, rusqlite::Error> {
        let mut sets = self.sets_where("series = ?1", series)?;
        sets.sort_by_key(|set| set.key);
        Ok(sets)
    }

    fn sets_where(&self, which: &str, number: i64) -> Result<Vec<KnownSet>, rusqlite::Error> {
        let query = format!(
            "SELECT sets.id, series, key, time_seconds, place, compression, members, files, \
             source_bytes, archive_bytes, sources, content FROM sets \
             JOIN series ON series.id = series \
             WHERE ?1 IS NOT NULL AND gone = 0 AND {which} ORDER BY time_seconds, sets.id"
        );
        let mut select = self.connection.prepare(&query)?;
        let sets = select.query_map([number], |row| {
            let place: Vec<u8> = row.get(4)?;
            let sources: Vec<u8> = row.get(10)?;
            let content: [u8; 32] = row.get(11)?;
            let count = |at| row.get(at).map(|number: i64| number as u64);
            Ok(KnownSet {
                number: row.get(0)?,
                series: row.get(1)?,
                identity: identity(&content),
                key: row.get(2)?,
                time_seconds: row.get(3)?,
                place: PathBuf::from(std::ffi::OsStr::from_bytes(&place)),
                compression: row.get(5)?,
                members: count(6)?,
                files: count(7)?,
                source_bytes: count(8)?,
                archive_bytes: count(9)?,
                sources: sources.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
            })
        })?;
        sets.collect()
    }
}

/// A set of a chain has its identity in the place of a hash, and zeros behind it.
fn identity(content: &[u8; 32]) -> Option<[u8; 16]> {
    let is_identity = content[16..].iter().all(|byte| *byte == 0);
    content.first_chunk().copied().filter(|_| is_identity)
}

/// A set that has a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) set: i64,
    series: i64,
    key: i64,
    /// Whether its archive was gone.
    pub(super) is_gone: bool,
}

/// The row of a set that is known already, or was.
pub(super) fn known(
    connection: &Connection,
    set: &SetDescription,
) -> Result<Option<Row>, rusqlite::Error> {
    let query = "SELECT id, series, key, gone FROM sets WHERE content = ?1 AND time_seconds = ?2";
    let found = params![set.content, set.time_seconds];
    let row = connection.query_row(query, found, |row| {
        let (set, series, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Row { set, series, key, is_gone: row.get::<_, i64>(3)? != 0 })
    });
    row.optional()
}

impl Catalogue {
    /// The number of a set that the catalogue has.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn number_of(&self, set: &SetDescription) -> Result<Option<i64>, CatalogueError> {
        let row = known(&self.connection, set).map_err(|error| self.error(error))?;
        Ok(row.filter(|row| !row.is_gone).map(|row| row.set))
    }

    /// Notes that the archive of a set is at another place.
    ///
    /// # Errors
    /// When the catalogue cannot be written.
    pub fn move_to(&mut self, set: i64, place: &Path) -> Result<(), CatalogueError> {
        move_to(&self.connection, set, place).map_err(|error| self.error(error))
    }
}

/// Notes that the archive of a set is there again. Returns what [`insert`] does.
pub(super) fn bring_back(
    connection: &Connection,
    row: Row,
    place: &Path,
) -> Result<(i64, i64, Among), rusqlite::Error> {
    move_to(connection, row.set, place)?;
    connection.execute("UPDATE sets SET gone = 0 WHERE id = ?1", [row.set])?;
    Ok((row.set, row.series, among(connection, row.series, row.key)?))
}

/// A key among those of the sets of a series, also of those that are gone.
fn among(connection: &Connection, series: i64, key: i64) -> Result<Among, rusqlite::Error> {
    let beside = |which: &str| -> Result<Option<i64>, rusqlite::Error> {
        let query = format!("SELECT {which} ?2 AND series = ?1");
        connection.query_row(&query, [series, key], |row| row.get(0))
    };
    Ok(Among {
        key,
        before: beside("max(key) FROM sets WHERE key <")?,
        behind: beside("min(key) FROM sets WHERE key >")?,
    })
}

/// Notes where the archive of a known set is now.
pub(super) fn move_to(
    connection: &Connection,
    set: i64,
    place: &Path,
) -> Result<(), rusqlite::Error> {
    let place = place.as_os_str().as_bytes();
    connection.execute("UPDATE sets SET place = ?2 WHERE id = ?1", params![set, place])?;
    Ok(())
}

/// Adds a set, and its series if it is the first one. Returns the numbers of both, and its place
/// among the others.
pub(super) fn insert(
    connection: &Connection,
    set: &SetDescription,
) -> Result<(i64, i64, Among), rusqlite::Error> {
    let mut sources = set.sources.clone();
    sources.sort();
    sources.dedup();
    let sources = sources.join(&0);
    let folder = set.place.parent().unwrap_or(Path::new("")).as_os_str().as_bytes();
    let of_series = "SELECT id FROM series WHERE sources = ?1 AND folder = ?2";
    let both = params![sources, folder];
    let found = connection.query_row(of_series, both, |row| row.get(0)).optional()?;
    let series: i64 = match found {
        Some(series) => series,
        None => {
            let insert = "INSERT INTO series (sources, folder) VALUES (?1, ?2)";
            connection.execute(insert, params![sources, folder])?;
            connection.last_insert_rowid()
        }
    };
    let key = free_key(connection, series, set.order_seconds)?;
    let among = among(connection, series, key)?;
    connection.execute(
        "INSERT INTO sets (series, key, content, time_seconds, place, compression, members, files, \
         source_bytes, archive_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7)",
        params![
            series,
            key,
            set.content,
            set.time_seconds,
            set.place.as_os_str().as_bytes(),
            set.compression,
            set.archive_bytes as i64,
        ],
    )?;
    Ok((connection.last_insert_rowid(), series, among))
}

/// The key of a time, or the next one that no set of the series has.
fn free_key(
    connection: &Connection,
    series: i64,
    time_seconds: i64,
) -> Result<i64, rusqlite::Error> {
    let mut key =
        time_seconds.saturating_sub(KEY_EPOCH_SECONDS).clamp(i32::MIN.into(), NEWEST - (1 << 20));
    let taken = "SELECT count(*) FROM sets WHERE series = ?1 AND key = ?2";
    while connection.query_row(taken, [series, key], |row| row.get::<_, i64>(0))? > 0 {
        key += 1;
    }
    Ok(key)
}

/// Notes what a set that was loaded holds.
pub(super) fn count(
    connection: &Connection,
    set: i64,
    [members, files, source_bytes]: [u64; 3],
) -> Result<(), rusqlite::Error> {
    connection.execute(
        "UPDATE sets SET members = ?2, files = ?3, source_bytes = ?4 WHERE id = ?1",
        params![set, members as i64, files as i64, source_bytes as i64],
    )?;
    Ok(())
}
