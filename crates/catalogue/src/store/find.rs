//! Files by a glob.
//!
//! A glob is compared with names first, which are fewer than files; the files of a name come from
//! an index. Only then a glob with a slash is compared with whole paths.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Bound;

use globset::{GlobBuilder, GlobMatcher};
use rusqlite::{Connection, params};

use super::name_pattern::NamePattern;
use super::objects::{CataloguedObject, OBJECT_COLUMNS};
use super::sets::KnownSet;
use super::versions::{COLUMNS, Content, Version};
use super::{Catalogue, CatalogueError};
use super::{name_blocks, names};

/// A version of a file, and the sets that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion {
    pub object: CataloguedObject,
    /// The sets that have it, by their number, the oldest first.
    pub sets: Vec<i64>,
    /// Whether the newest set of the series is among them.
    pub is_newest: bool,
}

/// A path with all of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersions {
    pub path: Vec<u8>,
    /// The series whose sets have it.
    pub series: i64,
    /// The oldest first.
    pub versions: Vec<FoundVersion>,
}

/// What a glob found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// In the order of their paths, at most as many as were wanted.
    pub files: Vec<FileVersions>,
    /// How many paths there are.
    pub total: u64,
}

/// A glob, compiled: of names and, where it has a slash, of paths.
struct Pattern<'g> {
    /// What the last part of the glob is, if it has no special character.
    literal: Option<&'g [u8]>,
    /// What every name that matches begins with.
    start: &'g [u8],
    name: NamePattern,
    path: Option<GlobMatcher>,
}

impl<'g> Pattern<'g> {
    fn new(glob: &'g str) -> Result<Pattern<'g>, globset::Error> {
        let compile = |glob: &str| {
            let glob = GlobBuilder::new(glob).literal_separator(true).build()?;
            Ok::<_, globset::Error>(glob.compile_matcher())
        };
        let whole = glob.trim_matches('/');
        let last = match whole.rsplit('/').next() {
            // The slash may be one of an alternative: `a/{b,c/d}`.
            _ if whole.contains('/') && whole.contains(['{', '[']) => "**",
            last => last.unwrap_or(whole),
        };
        let special = last.find(['*', '?', '[', '{', '\\']);
        let is_path = glob.trim_end_matches('/').contains('/');
        // `**` stands for any number of folders, and so for any name at its end.
        let of_names = if last == "**" { "*" } else { last };
        Ok(Pattern {
            literal: special.is_none().then_some(last.as_bytes()),
            start: &last.as_bytes()[..special.unwrap_or(last.len())],
            name: NamePattern::new(of_names)?,
            path: is_path.then(|| compile(whole)).transpose()?,
        })
    }
}

impl Catalogue {
    /// The files that a glob matches, over all sets. A glob without a slash is that of a name at
    /// any depth; one with a slash is that of a path in the archive, where `*` stops at a slash and
    /// `**` does not.
    ///
    /// # Errors
    /// The first is that of the glob, the second that of the catalogue.
    pub fn find(
        &self,
        glob: &str,
        most: usize,
    ) -> Result<Result<Found, CatalogueError>, globset::Error> {
        let pattern = Pattern::new(glob)?;
        Ok(self.matches(&pattern, most).map_err(|error| self.error(error)))
    }

    /// The versions of a path in a series, the oldest first.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn versions_at(
        &self,
        series: i64,
        path: &[u8],
    ) -> Result<Vec<FoundVersion>, CatalogueError> {
        let read = || {
            let Some((node, _)) = self.node_at(-series, path)? else { return Ok(Vec::new()) };
            self.versions(node, &self.sets_of(series)?)
        };
        read().map_err(|error: rusqlite::Error| self.error(error))
    }

    fn matches(&self, pattern: &Pattern<'_>, most: usize) -> Result<Found, rusqlite::Error> {
        let mut paths = Paths::new(&self.connection);
        let mut sets: HashMap<i64, Vec<KnownSet>> = HashMap::new();
        let mut found: Vec<(Vec<u8>, i64, i64)> = Vec::new();
        let mut total = 0;
        let mut nodes = self.connection.prepare("SELECT id FROM nodes WHERE name = ?1")?;
        for name in self.names(pattern)? {
            let mut rows = nodes.query([name])?;
            while let Some(row) = rows.next()? {
                let node: i64 = row.get(0)?;
                let (path, series) = paths.of(node)?;
                let fits = |glob: &GlobMatcher| glob.is_match(as_path(&path));
                if !pattern.path.as_ref().is_none_or(fits) {
                    continue;
                }
                let sets = match sets.entry(series) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(self.sets_of(series)?),
                };
                if !self.is_in_a_set(node, sets)? {
                    continue;
                }
                total += 1;
                found.push((path, series, node));
                // Twice as many as are wanted, and then the smallest of them.
                if found.len() >= most.max(1024).saturating_mul(2) {
                    found.sort_unstable();
                    found.truncate(most);
                }
            }
        }
        found.sort_unstable();
        found.truncate(most);
        let mut files = Vec::new();
        for (path, series, node) in found {
            let versions = self.versions(node, &sets[&series])?;
            files.push(FileVersions { path, series, versions });
        }
        Ok(Found { files, total })
    }

    /// The numbers of the names that a pattern matches.
    fn names(&self, pattern: &Pattern<'_>) -> Result<Vec<i64>, rusqlite::Error> {
        if let Some(name) = pattern.literal {
            return Ok(names::find(&self.connection, name)?.into_iter().collect());
        }
        let mut matching = Vec::new();
        let Bound::Excluded(end) = behind_all(pattern.start) else {
            name_blocks::each(&self.connection, &pattern.name.finder(), |number, name| {
                if pattern.name.matches(name) {
                    matching.push(number);
                }
            })?;
            return Ok(matching);
        };
        let query = "SELECT id, name FROM names WHERE name >= ?1 AND name < ?2";
        let mut select = self.connection.prepare(query)?;
        let mut rows = select.query(params![pattern.start, end])?;
        while let Some(row) = rows.next()? {
            let name = row.get_ref(1)?.as_blob().unwrap_or_default();
            if pattern.name.matches(name) {
                matching.push(row.get(0)?);
            }
        }
        Ok(matching)
    }

    /// Whether one of the sets has a version. Folders above a source have none.
    fn is_in_a_set(&self, node: i64, sets: &[KnownSet]) -> Result<bool, rusqlite::Error> {
        let query = "SELECT first, last FROM versions WHERE node = ?1";
        let mut select = self.connection.prepare_cached(query)?;
        let mut rows = select.query([node])?;
        while let Some(row) = rows.next()? {
            if !held_by(sets, row.get(0)?, row.get(1)?).is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The versions of a node. Where the sets between two of the same content are gone, they are
    /// one.
    fn versions(&self, node: i64, sets: &[KnownSet]) -> Result<Vec<FoundVersion>, rusqlite::Error> {
        let query = format!(
            "SELECT {COLUMNS}, {OBJECT_COLUMNS} FROM versions JOIN attributes ON attributes.id = \
             versions.attributes WHERE node = ?1 ORDER BY first"
        );
        let mut select = self.connection.prepare_cached(&query)?;
        let mut rows = select.query([node])?;
        let mut versions: Vec<FoundVersion> = Vec::new();
        let mut before: Option<(Content, usize)> = None;
        while let Some(row) = rows.next()? {
            let Some(version) = Version::of_row(row, 0)? else { continue };
            let held = held_by(sets, version.first, version.last);
            if held.is_empty() {
                continue;
            }
            let is_newest = held.end == sets.len();
            let numbers = sets[held.clone()].iter().map(|set| set.number);
            let joins = before == Some((version.content, held.start));
            before = Some((version.content, held.end));
            if let Some(last) = versions.last_mut().filter(|_| joins) {
                last.sets.extend(numbers);
                last.is_newest = is_newest;
                continue;
            }
            versions.push(FoundVersion {
                object: CataloguedObject::of_row(row, 9, &version.content)?,
                sets: numbers.collect(),
                is_newest,
            });
        }
        Ok(versions)
    }
}

/// Which sets a version holds for that begins and ends with these keys.
pub(super) fn held_by(sets: &[KnownSet], first: i64, last: i64) -> std::ops::Range<usize> {
    let begin = sets.partition_point(|set| set.key < first);
    begin..sets.partition_point(|set| set.key <= last).max(begin)
}

fn as_path(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt as _;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// The least name behind all that begin with `start`.
fn behind_all(start: &[u8]) -> Bound<Vec<u8>> {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

/// Paths of nodes. The folders above are kept, since files of one folder come together often.
struct Paths<'c> {
    connection: &'c Connection,
    folders: HashMap<i64, (Vec<u8>, i64)>,
}

/// Folders whose paths are kept.
const FOLDERS_MAX: usize = 100_000;

impl<'c> Paths<'c> {
    fn new(connection: &'c Connection) -> Paths<'c> {
        Paths { connection, folders: HashMap::new() }
    }

    /// The path of a node, and its series.
    fn of(&mut self, node: i64) -> Result<(Vec<u8>, i64), rusqlite::Error> {
        let query = "SELECT parent, names.name FROM nodes JOIN names ON names.id = nodes.name \
                     WHERE nodes.id = ?1";
        let mut at = node;
        let mut above: Vec<(i64, Vec<u8>)> = Vec::new();
        let (mut path, series) = loop {
            if at < 0 {
                break (Vec::new(), -at);
            }
            if let Some(known) = self.folders.get(&at) {
                break known.clone();
            }
            let mut select = self.connection.prepare_cached(query)?;
            let (parent, name) = select.query_row([at], |row| Ok((row.get(0)?, row.get(1)?)))?;
            above.push((at, name));
            at = parent;
        };
        if self.folders.len() > FOLDERS_MAX {
            self.folders.clear();
        }
        while let Some((at, name)) = above.pop() {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            if at != node {
                self.folders.insert(at, (path.clone(), series));
            }
        }
        Ok((path, series))
    }
}
