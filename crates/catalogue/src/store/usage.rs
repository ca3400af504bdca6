//! Where the bytes of the sets are, folder by folder, and how that changed from set to set.

use std::collections::HashMap;

use rusqlite::OptionalExtension as _;

use super::find::held_by;
use super::sets::KnownSet;
use super::tables::KIND_DIRECTORY;
use super::{Catalogue, CatalogueError, names};

/// Folders inside of each other that are passed because they are alone.
const ALONE_DEEP_MAX: usize = 64;

/// What the sets of a series have at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesUsage {
    /// The path, without those folders of it that are alone in theirs.
    pub path: Vec<u8>,
    /// In the order in which they were made.
    pub sets: Vec<KnownSet>,
    /// What is in it, the most bytes in the newest set first; the path itself, if it is no folder.
    pub below: Vec<Usage>,
}

/// The bytes of a file, or of the files in a folder and below it, as readers see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    pub path: Vec<u8>,
    /// Whether there is something below it.
    pub is_folder: bool,
    /// In each of the sets.
    pub bytes: Vec<u64>,
    /// Of all versions that any of the sets has, each counted once.
    pub versions_bytes: u64,
}

impl Catalogue {
    /// The usage at a path, in each series that has it; an empty path: all of a series.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn usage(&self, path: &[u8]) -> Result<Vec<SeriesUsage>, CatalogueError> {
        let read = || {
            let mut select = self.connection.prepare("SELECT id FROM series ORDER BY id")?;
            let series = select.query_map([], |row| row.get(0))?;
            let mut found = Vec::new();
            for series in series.collect::<Result<Vec<i64>, _>>()? {
                found.extend(self.usage_of(series, path)?);
            }
            Ok(found)
        };
        read().map_err(|error: rusqlite::Error| self.error(error))
    }

    fn usage_of(&self, series: i64, path: &[u8]) -> Result<Option<SeriesUsage>, rusqlite::Error> {
        let sets = self.sets_of(series)?;
        let Some((node, path)) = self.node_at(-series, path)? else { return Ok(None) };
        let (node, path) = self.pass_alone(node, path)?;
        let mut below: HashMap<i64, Usage> = HashMap::new();
        for (child, name) in self.children(node)? {
            let path = join(&path, &name);
            let bytes = vec![0; sets.len()];
            below.insert(child, Usage { path, is_folder: false, bytes, versions_bytes: 0 });
        }
        // It may be a file, or have been one in some sets.
        let (own, bytes) = (path.clone(), vec![0; sets.len()]);
        below.insert(node, Usage { path: own, is_folder: false, bytes, versions_bytes: 0 });
        // As differences from set to set, since a version is in a row of them.
        self.each_version_below(node, |top, level, first, last, size| {
            let Some(usage) = below.get_mut(&top) else { return };
            let held = held_by(&sets, first, last);
            usage.is_folder |= level > 0;
            if held.is_empty() {
                return;
            }
            usage.versions_bytes += size;
            usage.bytes[held.start] = usage.bytes[held.start].wrapping_add(size);
            if let Some(behind) = usage.bytes.get_mut(held.end) {
                *behind = behind.wrapping_sub(size);
            }
        })?;
        let mut below: Vec<Usage> = below.into_values().collect();
        for usage in &mut below {
            let mut sum = 0_u64;
            for bytes in &mut usage.bytes {
                sum = sum.wrapping_add(*bytes);
                *bytes = sum;
            }
        }
        below.retain(|usage| usage.versions_bytes > 0);
        let order = |it: &Usage| (it.bytes.last().copied(), it.versions_bytes);
        below.sort_by(|a, b| order(b).cmp(&order(a)).then_with(|| a.path.cmp(&b.path)));
        Ok((!below.is_empty()).then_some(SeriesUsage { path, sets, below }))
    }

    /// The node of a path below the top of a series.
    pub(super) fn node_at(
        &self,
        top: i64,
        path: &[u8],
    ) -> Result<Option<(i64, Vec<u8>)>, rusqlite::Error> {
        let mut at = (top, Vec::new());
        let child = "SELECT id FROM nodes WHERE parent = ?1 AND name = ?2";
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let Some(number) = names::find(&self.connection, name)? else { return Ok(None) };
            let mut select = self.connection.prepare_cached(child)?;
            let Some(node) = select.query_row([at.0, number], |row| row.get(0)).optional()? else {
                return Ok(None);
            };
            at = (node, join(&at.1, name));
        }
        Ok(Some(at))
    }

    /// Goes down where a folder has one thing in it alone: a table of one row says nothing.
    fn pass_alone(
        &self,
        mut node: i64,
        mut path: Vec<u8>,
    ) -> Result<(i64, Vec<u8>), rusqlite::Error> {
        for _ in 0..ALONE_DEEP_MAX {
            let children = self.children(node)?;
            let [(child, name)] = &children[..] else { break };
            if self.children(*child)?.is_empty() || self.was_no_folder(*child)? {
                break;
            }
            (node, path) = (*child, join(&path, name));
        }
        Ok((node, path))
    }

    /// Whether a set has something else than a folder at a node.
    fn was_no_folder(&self, node: i64) -> Result<bool, rusqlite::Error> {
        let query = "SELECT 1 FROM versions JOIN attributes ON attributes.id = \
                     versions.attributes WHERE node = ?1 AND kind <> ?2 LIMIT 1";
        let mut select = self.connection.prepare_cached(query)?;
        Ok(select.query_row([node, KIND_DIRECTORY], |_| Ok(())).optional()?.is_some())
    }

    fn children(&self, node: i64) -> Result<Vec<(i64, Vec<u8>)>, rusqlite::Error> {
        let query = "SELECT nodes.id, names.name FROM nodes JOIN names ON names.id = nodes.name \
                     WHERE parent = ?1";
        let mut select = self.connection.prepare_cached(query)?;
        let children = select.query_map([node], |row| Ok((row.get(0)?, row.get(1)?)))?;
        children.collect()
    }

    /// Calls for each version at and below the children of a node, and for those of the node
    /// itself: the child or the node, how far below it, the first and last key, and the size.
    fn each_version_below(
        &self,
        node: i64,
        mut take: impl FnMut(i64, i64, i64, i64, u64),
    ) -> Result<(), rusqlite::Error> {
        let query = "WITH RECURSIVE below(id, top, level) AS ( \
                     SELECT id, id, 0 FROM nodes WHERE parent = ?1 \
                     UNION ALL SELECT nodes.id, top, 1 FROM below JOIN nodes ON parent = below.id) \
                     SELECT top, level, first, last, size FROM below \
                     JOIN versions ON node = below.id UNION ALL \
                     SELECT node, 0, first, last, size FROM versions WHERE node = ?1";
        let mut select = self.connection.prepare(query)?;
        let mut rows = select.query([node])?;
        while let Some(row) = rows.next()? {
            let size: i64 = row.get(4)?;
            take(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, size as u64);
        }
        Ok(())
    }
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
    [path, slash, name].concat()
}
