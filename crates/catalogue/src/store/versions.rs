//! Which version of a file the sets of a series have.
//!
//! A version holds from one key to another, both included. A set that comes between two others, as
//! from a tape that was found later, divides the versions that it contradicts: what holds before it
//! ends at the set before, what holds behind it begins at the set behind.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::tables::NEWEST;

/// What makes a version: everything but the sets that have it and the place of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// A row of `attributes`.
    pub(super) attributes: i64,
    pub(super) size: i64,
    pub(super) modified_seconds: i64,
    pub(super) modified_nanoseconds: i64,
    pub(super) hash: Option<[u8; 16]>,
}

/// Where the bytes of a version are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// A set that has them.
    pub(super) set: i64,
    /// Offset of the header in its archive.
    pub(super) place: i64,
}

/// A row of `versions`, without its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) content: Content,
    pub(super) stored: Stored,
}

/// A set among those of its series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Among {
    pub(super) key: i64,
    /// Keys of the sets before and behind it.
    pub(super) before: Option<i64>,
    pub(super) behind: Option<i64>,
}

/// The columns of [`Version::of_row`].
pub(super) const COLUMNS: &str = "versions.first, versions.last, versions.attributes, \
    versions.size, versions.modified_seconds, versions.modified_nanoseconds, versions.hash, \
    versions.stored, versions.place";

impl Version {
    /// From [`COLUMNS`], the first of which is number `at` of the row; `None` if they are NULL.
    pub(super) fn of_row(row: &Row<'_>, at: usize) -> Result<Option<Version>, rusqlite::Error> {
        let Some(first) = row.get(at)? else { return Ok(None) };
        let content = Content {
            attributes: row.get(at + 2)?,
            size: row.get(at + 3)?,
            modified_seconds: row.get(at + 4)?,
            modified_nanoseconds: row.get(at + 5)?,
            hash: row.get(at + 6)?,
        };
        let stored = Stored { set: row.get(at + 7)?, place: row.get(at + 8)? };
        Ok(Some(Version { first, last: row.get(at + 1)?, content, stored }))
    }
}

impl Content {
    /// The content of both, if it is the same. What an earlier set has of a chain has no hash
    /// here: then the other one's counts.
    fn joined(&self, other: &Content) -> Option<Content> {
        let hash = self.hash.or(other.hash);
        let both = (Content { hash, ..*self }, Content { hash: other.hash.or(hash), ..*other });
        (both.0 == both.1).then_some(both.0)
    }
}

impl Among {
    /// `last` of a version that this set has, and none behind it.
    fn end(&self) -> i64 {
        self.behind.map_or(NEWEST, |_| self.key)
    }

    /// Notes that the set has a node with this content. `now` is the version that held for the set
    /// so far.
    pub(super) fn present(
        &self,
        connection: &Connection,
        node: i64,
        now: Option<Version>,
        content: Content,
        stored: Stored,
    ) -> Result<(), rusqlite::Error> {
        if let Some(now) = now
            && let Some(both) = now.content.joined(&content)
        {
            if both != now.content {
                remove(connection, node, now.first)?;
                insert(connection, node, &Version { content: both, stored, ..now })?;
            }
            return Ok(());
        }
        if let Some(now) = now {
            if now.first == self.key {
                // A path that is twice in the archive: the last one counts, as for every tar.
                remove(connection, node, now.first)?;
                return insert(connection, node, &Version { content, stored, ..now });
            }
            self.divide(connection, node, now)?;
        }
        let mut new = Version { first: self.key, last: self.end(), content, stored };
        // Between two sets that have this very version it goes on.
        if let Some(before) = self.before
            && let Some(left) = one(connection, "last = ?2", node, before)?
            && let Some(both) = left.content.joined(&content)
        {
            remove(connection, node, left.first)?;
            new.first = left.first;
            if left.content.hash.is_some() || content.hash.is_none() {
                new.stored = left.stored;
            }
            new.content = both;
        }
        if let Some(behind) = self.behind
            && let Some(right) = one(connection, "first = ?2", node, behind)?
            && let Some(both) = right.content.joined(&new.content)
        {
            remove(connection, node, right.first)?;
            new.last = right.last;
            if new.content.hash.is_none() && right.content.hash.is_some() {
                new.stored = right.stored;
            }
            new.content = both;
        }
        insert(connection, node, &new)
    }

    /// Notes that the set does not have a node, of which `now` held for it so far.
    pub(super) fn divide(
        &self,
        connection: &Connection,
        node: i64,
        now: Version,
    ) -> Result<(), rusqlite::Error> {
        // `now` begins at a set before: this one has written none yet.
        if let Some(before) = self.before {
            let mut update = connection
                .prepare_cached("UPDATE versions SET last = ?3 WHERE node = ?1 AND first = ?2")?;
            update.execute([node, now.first, before])?;
        }
        match self.behind {
            Some(behind) if now.last >= behind => {
                insert(connection, node, &Version { first: behind, ..now })
            }
            _ => Ok(()),
        }
    }
}

/// Adds a version.
pub(super) fn insert(
    connection: &Connection,
    node: i64,
    version: &Version,
) -> Result<(), rusqlite::Error> {
    let Version { first, last, content, stored } = version;
    let mut insert = connection
        .prepare_cached("INSERT INTO versions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    insert.execute(params![
        node,
        first,
        last,
        content.attributes,
        content.size,
        content.modified_seconds,
        content.modified_nanoseconds,
        content.hash,
        stored.set,
        stored.place,
    ])?;
    Ok(())
}

fn remove(connection: &Connection, node: i64, first: i64) -> Result<(), rusqlite::Error> {
    let mut delete =
        connection.prepare_cached("DELETE FROM versions WHERE node = ?1 AND first = ?2")?;
    delete.execute([node, first])?;
    Ok(())
}

/// The version that holds for the set with this key.
pub(super) fn at(
    connection: &Connection,
    node: i64,
    key: i64,
) -> Result<Option<Version>, rusqlite::Error> {
    one(connection, "first <= ?2 AND last >= ?2", node, key)
}

fn one(
    connection: &Connection,
    which: &str,
    node: i64,
    key: i64,
) -> Result<Option<Version>, rusqlite::Error> {
    let query = format!("SELECT {COLUMNS} FROM versions WHERE node = ?1 AND {which}");
    let mut select = connection.prepare_cached(&query)?;
    let found = select.query_row([node, key], |row| Version::of_row(row, 0)).optional()?;
    Ok(found.flatten())
}
