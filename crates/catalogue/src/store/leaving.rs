//! Sets that leave the catalogue, since their archives are gone.
//!
//! A version holds for the sets between its two ends that are there, so none is rewritten. What
//! holds for no set any more is removed: versions, the nodes that had them, and the rows of gone
//! sets with which no version begins or ends. Names stay until the catalogue is made again.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::{Catalogue, CatalogueError};

/// Versions that are looked at before those of them are removed that hold for no set.
const BATCH: usize = 65_536;

impl Catalogue {
    /// Removes sets, by their numbers, and what they alone had.
    ///
    /// # Errors
    /// When the catalogue cannot be written. It is as it was then.
    pub fn leave(&mut self, sets: &[i64]) -> Result<(), CatalogueError> {
        let leave = || {
            let behaviour = TransactionBehavior::Immediate;
            let transaction = Transaction::new_unchecked(&self.connection, behaviour)?;
            for set in sets {
                transaction.execute("UPDATE sets SET gone = 1 WHERE id = ?1", [set])?;
                transaction.execute("DELETE FROM looks WHERE archive = ?1", [set])?;
            }
            let mentioned = remove_versions(&transaction)?;
            remove_sets(&transaction, &mentioned)?;
            transaction.commit()
        };
        leave().map_err(|error: rusqlite::Error| self.error(error))
    }
}

/// What the versions that stay mention of sets.
#[derive(Default)]
struct Mentioned {
    keys: HashSet<i64>,
    sets: HashSet<i64>,
}

/// The keys of all sets.
struct Keys {
    /// Series that have a set with this key.
    series: HashMap<i64, Vec<i64>>,
    /// Keys of the sets of a series that are there, ascending.
    there: HashMap<i64, Vec<i64>>,
}

impl Keys {
    fn of(connection: &Connection) -> Result<Keys, rusqlite::Error> {
        let mut keys = Keys { series: HashMap::new(), there: HashMap::new() };
        let mut select = connection.prepare("SELECT series, key, gone FROM sets ORDER BY key")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (series, key): (i64, i64) = (row.get(0)?, row.get(1)?);
            keys.series.entry(key).or_default().push(series);
            if row.get::<_, i64>(2)? == 0 {
                keys.there.entry(series).or_default().push(key);
            }
        }
        Ok(keys)
    }

    /// Whether a version may hold for a set. Which series it is of, its first key says, or one of
    /// a few: sets of two series may have the same key.
    fn may_hold(&self, first: i64, last: i64) -> bool {
        let Some(series) = self.series.get(&first) else { return true };
        series.iter().any(|series| {
            self.there.get(series).is_some_and(|there| {
                let next = there.partition_point(|key| *key < first);
                there.get(next).is_some_and(|key| *key <= last)
            })
        })
    }
}

/// Removes the versions that hold for no set.
fn remove_versions(connection: &Connection) -> Result<Mentioned, rusqlite::Error> {
    let keys = Keys::of(connection)?;
    let mut mentioned = Mentioned::default();
    let mut dead: Vec<(i64, i64)> = Vec::new();
    let mut after = (i64::MIN, i64::MIN);
    loop {
        let mut select = connection.prepare_cached(
            "SELECT node, first, last, stored FROM versions WHERE (node, first) > (?1, ?2) \
             ORDER BY node, first LIMIT ?3",
        )?;
        let mut rows = select.query([after.0, after.1, BATCH as i64])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let (first, last) = (row.get(1)?, row.get(2)?);
            after = (row.get(0)?, first);
            seen += 1;
            if keys.may_hold(first, last) {
                mentioned.keys.extend([first, last]);
                mentioned.sets.insert(row.get(3)?);
            } else {
                dead.push(after);
            }
        }
        drop(rows);
        for (node, first) in dead.drain(..) {
            let delete = "DELETE FROM versions WHERE node = ?1 AND first = ?2";
            connection.prepare_cached(delete)?.execute([node, first])?;
            remove_node(connection, node)?;
        }
        if seen < BATCH {
            return Ok(mentioned);
        }
    }
}

/// Removes a node that has no version and nothing below it, and then likewise what is above it.
fn remove_node(connection: &Connection, mut node: i64) -> Result<(), rusqlite::Error> {
    let needed = "SELECT 1 FROM versions WHERE node = ?1 UNION ALL \
                  SELECT 1 FROM nodes WHERE parent = ?1 LIMIT 1";
    // The top of a series is no node, and has a negative number.
    while node > 0 && !connection.prepare_cached(needed)?.exists([node])? {
        let parent = connection
            .prepare_cached("DELETE FROM nodes WHERE id = ?1 RETURNING parent")?
            .query_row([node], |row| row.get(0))
            .optional()?;
        let Some(parent) = parent else { break };
        node = parent;
    }
    Ok(())
}

/// Removes the rows of gone sets that no version mentions, and series without any set.
fn remove_sets(connection: &Connection, mentioned: &Mentioned) -> Result<(), rusqlite::Error> {
    let mut select = connection.prepare("SELECT id, key FROM sets WHERE gone = 1")?;
    let gone = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (set, key) in gone.collect::<Result<Vec<(i64, i64)>, _>>()? {
        if !mentioned.keys.contains(&key) && !mentioned.sets.contains(&set) {
            connection.execute("DELETE FROM sets WHERE id = ?1", [set])?;
        }
    }
    connection.execute(
        "DELETE FROM series WHERE id NOT IN (SELECT series FROM sets) \
         AND NOT EXISTS (SELECT 1 FROM nodes WHERE parent = -series.id)",
        [],
    )?;
    Ok(())
}
