//! An index that is put into the catalogue.
//!
//! The records come in the order of the archive: each folder before what is in it, all of a folder
//! together. So the folders that are open are those of one path, and memory grows with the largest
//! folders and not with the tree. When a folder is left, the versions end of what the set before
//! had in it and this one has not. Whether that was deleted, excluded or could not be read, an
//! index does not say.

use std::collections::HashMap;

use archive::index::{FileRecord, RecordKind};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::name_blocks;
use super::names::{Likely, Names};
use super::sets::{self, SetDescription};
use super::tables::{KIND_DIRECTORY, KIND_FILE, KIND_HARD_LINK};
use super::versions::{self, Among, COLUMNS, Content, Stored, Version};
use super::{Catalogue, CatalogueError};

/// An object of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRecord {
    /// What it is. Of an object that an earlier set has, kind, size and time count alone.
    pub record: FileRecord,
    pub held: Held,
}

/// Which set has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The set itself.
    Here,
    /// An earlier one of its chain: the version that held so far goes on. If that set is not in the
    /// catalogue, the version has no hash.
    Earlier,
}

impl From<FileRecord> for SetRecord {
    fn from(record: FileRecord) -> SetRecord {
        SetRecord { record, held: Held::Here }
    }
}

/// What became of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It is in the catalogue now.
    Added {
        /// Objects of all kinds.
        members: u64,
        /// Files among them.
        files: u64,
        /// Objects that an earlier set has, which is not in the catalogue.
        elsewhere: u64,
    },
    /// It was there before.
    Known,
}

/// A set whose records are being added. Nothing is kept of it unless [`SetLoading::finish`]
/// returns.
struct SetLoading<'c> {
    catalogue: &'c Catalogue,
    transaction: Transaction<'c>,
    names: Names,
    attributes: HashMap<[i64; 4], i64>,
    /// Kinds of objects by the numbers of attributes.
    kinds: HashMap<i64, i64>,
    set: i64,
    among: Among,
    /// The open folders, from the top of the series.
    folders: Vec<Folder>,
    /// The path of the innermost one.
    path: Vec<u8>,
    next_node: i64,
    counts: [u64; 3],
    elsewhere: u64,
}

/// A folder whose content is being added.
struct Folder {
    node: i64,
    /// Length of its path.
    path_bytes: usize,
    /// What is in it, by the numbers of names; what the set before had, and what came since.
    children: HashMap<i64, Child>,
    /// Whether the set has a record of it, and so all that is in it.
    is_whole: bool,
}

struct Child {
    node: i64,
    /// What holds for the set.
    version: Option<Version>,
    is_present: bool,
}

impl Catalogue {
    /// Adds the set that the records describe, or finds that it is there.
    ///
    /// # Errors
    /// Those of the records, and of the catalogue. Nothing is kept of the set then.
    pub fn add<R: Into<SetRecord>, E: From<CatalogueError>>(
        &mut self,
        set: &SetDescription,
        records: impl Iterator<Item = Result<R, E>>,
    ) -> Result<Loaded, E> {
        let Some(mut loading) = self.begin(set)? else { return Ok(Loaded::Known) };
        for record in records {
            loading.add(&record?.into())?;
        }
        Ok(loading.finish()?)
    }

    /// Begins a set; `None` if it is known. Its place is noted then.
    fn begin(&self, set: &SetDescription) -> Result<Option<SetLoading<'_>>, CatalogueError> {
        SetLoading::begin(self, set).map_err(|error| self.error(error))
    }
}

impl<'c> SetLoading<'c> {
    fn begin(
        catalogue: &'c Catalogue,
        description: &SetDescription,
    ) -> Result<Option<SetLoading<'c>>, rusqlite::Error> {
        let connection = &catalogue.connection;
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let (set, series, among) = match sets::known(&transaction, description)? {
            Some(row) if !row.is_gone => {
                sets::move_to(&transaction, row.set, &description.place)?;
                transaction.commit()?;
                return Ok(None);
            }
            // What it alone had is gone, so it is read again.
            Some(row) => sets::bring_back(&transaction, row, &description.place)?,
            None => sets::insert(&transaction, description)?,
        };
        let last_node = "SELECT coalesce(max(id), 0) FROM nodes";
        let last_node: i64 = transaction.query_row(last_node, [], |row| row.get(0))?;
        let kinds = kinds(&transaction)?;
        let mut loading = SetLoading {
            catalogue,
            transaction,
            names: Names::new(if last_node == 0 { Likely::New } else { Likely::Known }),
            attributes: HashMap::new(),
            kinds,
            set,
            among,
            folders: Vec::new(),
            path: Vec::new(),
            next_node: last_node + 1,
            counts: [0; 3],
            elsewhere: 0,
        };
        loading.open_folder(-series, 0, Whole::No, Known::Maybe)?;
        Ok(Some(loading))
    }

    fn add(&mut self, record: &SetRecord) -> Result<(), CatalogueError> {
        self.put(&record.record, record.held).map_err(|error| self.catalogue.error(error))
    }

    fn put(&mut self, record: &FileRecord, held: Held) -> Result<(), rusqlite::Error> {
        let path = &record.path;
        while !self.is_open(path) {
            self.leave()?;
        }
        let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        // Folders above a source have no record.
        while self.next_name_at() < name_at {
            let begin = self.next_name_at();
            let length = path[begin..].iter().position(|byte| *byte == b'/').unwrap_or_default();
            let (node, known) = self.pass(&path[begin..begin + length])?;
            self.enter(&path[..begin + length], node, Whole::No, known)?;
        }
        let name = self.names.number(&self.transaction, &path[name_at..])?;
        let (node, known) = self.child_by(name)?;
        let content = self.content(record)?;
        let place = record.header_offset_bytes.bytes() as i64;
        let stored = Stored { set: self.set, place };
        let top = self.folders.last_mut().expect("the series is open");
        let child = top.children.get_mut(&name).expect("it was made or found");
        let now = if child.is_present {
            // A path that is twice in the archive.
            versions::at(&self.transaction, node, self.among.key)?
        } else {
            child.version
        };
        child.is_present = true;
        let goes_on =
            held == Held::Earlier && now.is_some_and(|now| self.goes_on(&now.content, &content));
        if !goes_on {
            self.elsewhere += u64::from(held == Held::Earlier);
            self.among.present(&self.transaction, node, now, content, stored)?;
        }
        self.count(record);
        // Also of what an earlier set has: it may have become a file in a set that is not here.
        let is_changed =
            !goes_on && now.is_some_and(|now| now.content.attributes != content.attributes);
        if record.kind == RecordKind::Directory {
            self.enter(path, node, Whole::Yes, known)
        } else if is_changed {
            // It may have been a folder.
            self.empty(node)
        } else {
            Ok(())
        }
    }

    /// Whether an object that an earlier set of the chain has is the one that the catalogue has of
    /// the set before. If that is not the earlier set, it may be another one.
    fn goes_on(&self, now: &Content, entry: &Content) -> bool {
        let kind = |of: &Content| self.kinds.get(&of.attributes).copied();
        // Only a member says that it is a link.
        let is_link = kind(now) == Some(KIND_HARD_LINK) && kind(entry) == Some(KIND_FILE);
        let is_alike = kind(now) == kind(entry) && now.size == entry.size;
        let time = |of: &Content| (of.modified_seconds, of.modified_nanoseconds);
        (is_alike || is_link) && time(now) == time(entry)
    }

    fn count(&mut self, record: &FileRecord) {
        let [members, files, source_bytes] = &mut self.counts;
        *members += 1;
        if let RecordKind::File { stored_bytes, .. } = record.kind {
            *files += 1;
            *source_bytes += stored_bytes;
        }
    }

    /// Whether a path lies below the innermost open folder.
    fn is_open(&self, path: &[u8]) -> bool {
        let folder = &self.path[..];
        folder.is_empty()
            || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Where the name of something in the innermost open folder begins in its path.
    fn next_name_at(&self) -> usize {
        if self.path.is_empty() { 0 } else { self.path.len() + 1 }
    }

    /// The node of a folder without a record in the innermost open one. What is below it is there.
    fn pass(&mut self, name: &[u8]) -> Result<(i64, Known), rusqlite::Error> {
        let name = self.names.number(&self.transaction, name)?;
        let found = self.child_by(name)?;
        let child = self.folders.last_mut().and_then(|top| top.children.get_mut(&name));
        child.expect("it was made or found").is_present = true;
        Ok(found)
    }

    /// The node of something in the innermost open folder, by the number of its name.
    fn child_by(&mut self, name: i64) -> Result<(i64, Known), rusqlite::Error> {
        let top = self.folders.last_mut().expect("the series is open");
        if let Some(child) = top.children.get(&name) {
            return Ok((child.node, Known::Maybe));
        }
        let node = self.next_node;
        self.next_node += 1;
        let mut insert =
            self.transaction.prepare_cached("INSERT INTO nodes VALUES (?1, ?2, ?3)")?;
        insert.execute([node, top.node, name])?;
        top.children.insert(name, Child { node, version: None, is_present: false });
        Ok((node, Known::No))
    }

    fn content(&mut self, record: &FileRecord) -> Result<Content, rusqlite::Error> {
        let (kind, size, hash) = match &record.kind {
            RecordKind::File { size_bytes, content_hash, .. } => {
                (KIND_FILE, *size_bytes, content_hash.as_ref())
            }
            RecordKind::Directory => (KIND_DIRECTORY, 0, None),
            RecordKind::SymbolicLink => (2, 0, None),
            RecordKind::HardLink { .. } => (KIND_HARD_LINK, 0, None),
            RecordKind::Fifo => (4, 0, None),
            RecordKind::CharacterDevice => (5, 0, None),
            RecordKind::BlockDevice => (6, 0, None),
        };
        let row = [kind, record.mode.into(), record.uid as i64, record.gid as i64];
        let attributes = match self.attributes.get(&row) {
            Some(number) => *number,
            None => {
                let number = attributes(&self.transaction, row)?;
                self.attributes.insert(row, number);
                self.kinds.insert(number, kind);
                number
            }
        };
        Ok(Content {
            attributes,
            size: size as i64,
            modified_seconds: record.modified.seconds,
            modified_nanoseconds: record.modified.nanoseconds.into(),
            hash: hash.and_then(|hash| hash.first_chunk().copied()),
        })
    }

    fn enter(
        &mut self,
        path: &[u8],
        node: i64,
        whole: Whole,
        known: Known,
    ) -> Result<(), rusqlite::Error> {
        self.open_folder(node, path.len(), whole, known)?;
        self.path.clear();
        self.path.extend_from_slice(path);
        Ok(())
    }

    fn open_folder(
        &mut self,
        node: i64,
        path_bytes: usize,
        whole: Whole,
        known: Known,
    ) -> Result<(), rusqlite::Error> {
        let mut children = HashMap::new();
        if known == Known::Maybe {
            let query = format!(
                "SELECT nodes.id, nodes.name, {COLUMNS} FROM nodes LEFT JOIN versions ON node = \
                 nodes.id AND first <= ?2 AND last >= ?2 WHERE parent = ?1"
            );
            let mut select = self.transaction.prepare_cached(&query)?;
            let mut rows = select.query([node, self.among.key])?;
            while let Some(row) = rows.next()? {
                let version = Version::of_row(row, 2)?;
                let child = Child { node: row.get(0)?, version, is_present: false };
                children.insert(row.get(1)?, child);
            }
        }
        self.folders.push(Folder { node, path_bytes, children, is_whole: whole == Whole::Yes });
        Ok(())
    }

    /// Leaves the innermost open folder: what did not come is not in the set.
    fn leave(&mut self) -> Result<(), rusqlite::Error> {
        let Some(folder) = self.folders.pop() else { return Ok(()) };
        let above = self.folders.last().map_or(0, |above| above.path_bytes);
        self.path.truncate(above);
        if !folder.is_whole {
            return Ok(());
        }
        for child in folder.children.into_values().filter(|child| !child.is_present) {
            if let Some(version) = child.version {
                self.among.divide(&self.transaction, child.node, version)?;
            }
            self.empty(child.node)?;
        }
        Ok(())
    }

    /// Notes that nothing is below a node.
    fn empty(&self, node: i64) -> Result<(), rusqlite::Error> {
        let mut waiting = below(&self.transaction, node)?;
        while let Some(node) = waiting.pop() {
            if let Some(version) = versions::at(&self.transaction, node, self.among.key)? {
                self.among.divide(&self.transaction, node, version)?;
            }
            waiting.append(&mut below(&self.transaction, node)?);
        }
        Ok(())
    }

    /// All records were added.
    fn finish(mut self) -> Result<Loaded, CatalogueError> {
        let catalogue = self.catalogue;
        let mut end = || {
            while !self.folders.is_empty() {
                self.leave()?;
            }
            name_blocks::complete(&self.transaction)?;
            sets::count(&self.transaction, self.set, self.counts)
        };
        let ended = end().and_then(|()| self.transaction.commit());
        ended.map_err(|error| catalogue.error(error))?;
        let [members, files, _] = self.counts;
        Ok(Loaded::Added { members, files, elsewhere: self.elsewhere })
    }
}

/// Whether the set has all of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// Whether earlier sets can know a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Maybe,
    No,
}

fn below(connection: &Connection, node: i64) -> Result<Vec<i64>, rusqlite::Error> {
    let mut select = connection.prepare_cached("SELECT id FROM nodes WHERE parent = ?1")?;
    let below = select.query_map([node], |row| row.get(0))?;
    below.collect()
}

fn kinds(connection: &Connection) -> Result<HashMap<i64, i64>, rusqlite::Error> {
    let mut select = connection.prepare_cached("SELECT id, kind FROM attributes")?;
    let kinds = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    kinds.collect()
}

fn attributes(connection: &Connection, row: [i64; 4]) -> Result<i64, rusqlite::Error> {
    let find = "SELECT id FROM attributes WHERE (kind, mode, uid, gid) = (?1, ?2, ?3, ?4)";
    if let Some(number) = connection.query_row(find, row, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    let insert = "INSERT INTO attributes (kind, mode, uid, gid) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(insert, params![row[0], row[1], row[2], row[3]])?;
    Ok(connection.last_insert_rowid())
}
