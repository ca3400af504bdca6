//! A folder as a set has it.

use rusqlite::OptionalExtension as _;

use super::objects::{CataloguedKind, CataloguedObject, OBJECT_COLUMNS};
use super::sets::KnownSet;
use super::versions::{COLUMNS, Version};
use super::{Catalogue, CatalogueError};

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: Vec<u8>,
    /// `None` of a folder above the sources, which no archive has.
    pub object: Option<CataloguedObject>,
}

impl FolderEntry {
    /// Whether it may have something in it.
    pub fn is_folder(&self) -> bool {
        self.object.as_ref().is_none_or(|object| object.kind == CataloguedKind::Directory)
    }
}

impl Catalogue {
    /// What a set has in a folder, by names; an empty path: at the top of the archive. `None` if
    /// the set has no such folder. Of a path that is no folder, the object alone.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn folder(
        &self,
        set: &KnownSet,
        path: &[u8],
    ) -> Result<Option<Vec<FolderEntry>>, CatalogueError> {
        self.folder_of(set, path).map_err(|error| self.error(error))
    }

    /// Whether a set has something at a path.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn has(&self, set: &KnownSet, path: &[u8]) -> Result<bool, CatalogueError> {
        let read = || match self.node_at(-set.series, path)? {
            None => Ok(false),
            Some((node, _)) => Ok(self.object(node, set)?.is_some()),
        };
        read().map_err(|error: rusqlite::Error| self.error(error))
    }

    fn object(&self, node: i64, set: &KnownSet) -> Result<Option<FolderEntry>, rusqlite::Error> {
        Ok(self.entries(&format!("{} WHERE nodes.id = ?1", select()), node, set)?.pop())
    }

    fn folder_of(
        &self,
        set: &KnownSet,
        path: &[u8],
    ) -> Result<Option<Vec<FolderEntry>>, rusqlite::Error> {
        let Some((node, path)) = self.node_at(-set.series, path)? else { return Ok(None) };
        if !path.is_empty() {
            match self.object(node, set)? {
                None => return Ok(None),
                Some(entry) if !entry.is_folder() => return Ok(Some(vec![entry])),
                Some(_) => {}
            }
        }
        let mut entries = self.entries(&format!("{} WHERE parent = ?1", select()), node, set)?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    /// Those nodes that a query names and that the set has.
    fn entries(
        &self,
        query: &str,
        node: i64,
        set: &KnownSet,
    ) -> Result<Vec<FolderEntry>, rusqlite::Error> {
        let mut select = self.connection.prepare_cached(query)?;
        let mut rows = select.query([node, set.key])?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            let object = match Version::of_row(row, 6)? {
                Some(version) => Some(CataloguedObject::of_row(row, 2, &version.content)?),
                None if self.is_passed(row.get(0)?, set)? => None,
                None => continue,
            };
            entries.push(FolderEntry { name: row.get(1)?, object });
        }
        Ok(entries)
    }

    /// Whether a node that no set has itself is a folder above something of this set.
    fn is_passed(&self, node: i64, set: &KnownSet) -> Result<bool, rusqlite::Error> {
        let any = "SELECT 1 FROM versions WHERE node = ?1 LIMIT 1";
        let has_version = |node: i64| -> Result<bool, rusqlite::Error> {
            let mut select = self.connection.prepare_cached(any)?;
            Ok(select.query_row([node], |_| Ok(())).optional()?.is_some())
        };
        // A folder with a version has one in each set that has something in it.
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            if has_version(node)? {
                let held = "SELECT 1 FROM versions WHERE node = ?1 AND first <= ?2 AND last >= ?2";
                let mut select = self.connection.prepare_cached(held)?;
                if select.query_row([node, set.key], |_| Ok(())).optional()?.is_some() {
                    return Ok(true);
                }
                continue;
            }
            let mut select =
                self.connection.prepare_cached("SELECT id FROM nodes WHERE parent = ?1")?;
            let below = select.query_map([node], |row| row.get(0))?;
            waiting.append(&mut below.collect::<Result<_, _>>()?);
        }
        Ok(false)
    }
}

fn select() -> String {
    format!(
        "SELECT nodes.id, names.name, {OBJECT_COLUMNS}, {COLUMNS} FROM nodes JOIN names ON \
         names.id = nodes.name LEFT JOIN versions ON node = nodes.id AND first <= ?2 AND last >= \
         ?2 LEFT JOIN attributes ON attributes.id = versions.attributes"
    )
}
