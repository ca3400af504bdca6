//! One large tree cut into units, and units gathered into shards.
//!
//! The hosts list the tree together: rank 0 hands out folders, a rank lists one and what is below
//! it for a while and gives back what it has not listed. From the sizes rank 0 makes *units*: a
//! folder with all that is below it where that is small, else what lies in the folder itself (of a
//! large one ranges of names) and its folders as units of their own. A shard is a row of units; a
//! unit never lies in two.
//!
//! The last shard has all folders again, without content: extracted last, it gives them their
//! times and permissions, which the files of other shards have changed. It also has the files that
//! are hard links of each other and lie in several units, under all of their names, so that they
//! are links again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tree::SourcePart;

use crate::name::Name;

/// Names that one order to list comes back with at the latest.
const LIST_NAMES: u64 = 50_000;
/// Time after which it comes back.
const LIST_TIME: Duration = Duration::from_millis(300);
/// Files of a folder between two places where it may be cut.
const CUT_FILES: u64 = 5000;
/// Bytes between two such places.
const CUT_BYTES: u64 = 256 << 20;
/// What a file costs beyond its bytes: as long as this many bytes take.
pub const FILE_COST_BYTES: u64 = 64 << 10;
/// Most units of a shard: each holds a descriptor of its folder.
pub const UNITS_MAX: usize = 256;

/// A folder as it was listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFolder {
    /// Its path, as given for the source and below it.
    pub path: Name,
    /// What lies in it and is no folder.
    pub files: u64,
    /// Their bytes on the disk, or of their content where that is less.
    pub bytes: u64,
    /// Where it may be cut: names in the order of their bytes, and what lies from there on.
    pub cuts: Vec<Cut>,
    /// Files in it with further names.
    pub links: Vec<LinkedName>,
    /// Why it was not listed to its end.
    pub problem: Option<String>,
}

/// A place at which a folder may be cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The first name behind it.
    pub from: Name,
    /// Files to the next cut.
    pub files: u64,
    /// Bytes to the next cut.
    pub bytes: u64,
}

/// A file that has several names. Device numbers differ between hosts, so what stands for the file
/// is its inode with what else is the same under all names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkedName {
    pub inode: u64,
    pub names: u64,
    pub bytes: u64,
    pub changed_ns: i128,
    /// In its folder.
    pub name: Name,
}

/// What stands for a file with several names: inode, names, bytes, time of the last change.
type FileKey = (u64, u64, u64, i128);

/// What a rank found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// What was to be listed.
    pub asked: Name,
    pub folders: Vec<ListedFolder>,
    /// Folders that it saw and did not list.
    pub left: Vec<Name>,
    /// Why the folder that was asked for could not be looked at.
    pub failed: Option<String>,
}

/// Whether folders on other file systems are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mounts {
    Enter,
    Leave,
}

/// Lists a folder and what is below it, for a while.
pub fn list(path: &Name, mounts: Mounts) -> Listing {
    let mut listing = Listing { asked: path.clone(), ..Listing::default() };
    let device = match fs::symlink_metadata(path.to_path()) {
        Ok(status) if status.is_dir() => status.dev(),
        Ok(_) => {
            listing.failed =
                Some("it is no folder, or a link to one: name the folder itself".to_owned());
            return listing;
        }
        Err(error) => {
            listing.failed = Some(error.to_string());
            if error.kind() != std::io::ErrorKind::NotFound {
                // It is there, so it gets a place, and the run that cannot read it says so.
                let problem = Some(error.to_string());
                let folder =
                    ListedFolder { path: path.clone(), problem, ..ListedFolder::default() };
                listing.folders.push(folder);
            }
            return listing;
        }
    };
    let begun = Instant::now();
    let mut names = 0;
    // The stack grows with the width of the tree, not with its depth.
    let mut waiting = vec![path.clone()];
    while let Some(next) = waiting.pop() {
        if names > 0 && (names >= LIST_NAMES || begun.elapsed() >= LIST_TIME) {
            waiting.push(next);
            break;
        }
        let (folder, below) = list_one(&next, device, mounts);
        names += 1 + folder.files;
        waiting.extend(below);
        listing.folders.push(folder);
    }
    listing.left = waiting;
    listing
}

/// One folder, and the folders in it that are to be entered.
fn list_one(path: &Name, device: u64, mounts: Mounts) -> (ListedFolder, Vec<Name>) {
    let mut folder = ListedFolder { path: path.clone(), ..ListedFolder::default() };
    let mut below = Vec::new();
    let mut found: Vec<(Name, u64)> = Vec::new();
    let entries = match fs::read_dir(path.to_path()) {
        Ok(entries) => entries,
        Err(error) => {
            folder.problem = Some(error.to_string());
            return (folder, below);
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                folder.problem = Some(error.to_string());
                break;
            }
        };
        let name = Name(entry.file_name().as_bytes().to_vec());
        let status = match entry.metadata() {
            Ok(status) => status,
            // What is gone meanwhile needs no place in a shard.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                folder.problem = Some(error.to_string());
                continue;
            }
        };
        if status.is_dir() {
            if mounts == Mounts::Enter || status.dev() == device {
                below.push(path.join(&name.0));
            }
            continue;
        }
        if status.is_file() && status.nlink() > 1 {
            folder.links.push(linked(&name, &status));
        }
        found.push((name, status.len().min(status.blocks() * 512)));
    }
    found.sort();
    add_cuts(&mut folder, &found);
    (folder, below)
}

fn linked(name: &Name, status: &Metadata) -> LinkedName {
    let changed_ns = i128::from(status.ctime()) * 1_000_000_000 + i128::from(status.ctime_nsec());
    let (inode, names, bytes) = (status.ino(), status.nlink(), status.len());
    LinkedName { inode, names, bytes, changed_ns, name: name.clone() }
}

/// Counts the files of a folder, with a place to cut it now and then.
fn add_cuts(folder: &mut ListedFolder, found: &[(Name, u64)]) {
    for (name, bytes) in found {
        folder.files += 1;
        folder.bytes += bytes;
        let full = |cut: &Cut| cut.files >= CUT_FILES || cut.bytes >= CUT_BYTES;
        if folder.cuts.last().is_none_or(full) {
            folder.cuts.push(Cut { from: name.clone(), files: 0, bytes: 0 });
        }
        if let Some(cut) = folder.cuts.last_mut() {
            cut.files += 1;
            cut.bytes += bytes;
        }
    }
}

/// Which part of a folder a unit is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitPart {
    /// The folder and everything below it.
    Whole,
    /// What lies in it and is no folder, from one name to before another.
    Contents { from: Option<Name>, before: Option<Name> },
    /// The folder and all folders below it, without what is in them.
    Folders,
    /// These names in it.
    Named(Vec<Name>),
}

/// What never lies in two shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// The folder.
    pub path: Name,
    pub part: UnitPart,
    /// Files when it was listed.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl Unit {
    /// What it costs, in bytes that take as long.
    fn cost(&self) -> u64 {
        cost(self.files, self.bytes)
    }

    /// The part as a walk has it.
    pub fn source_part(&self) -> SourcePart {
        let bytes = |name: &Option<Name>| name.as_ref().map(|name| name.0.clone());
        match &self.part {
            UnitPart::Whole => SourcePart::Whole,
            UnitPart::Contents { from, before } => {
                SourcePart::Contents { from: bytes(from), before: bytes(before) }
            }
            UnitPart::Folders => SourcePart::Folders,
            UnitPart::Named(names) => {
                SourcePart::Named(names.iter().map(|name| name.0.clone()).collect())
            }
        }
    }
}

fn cost(files: u64, bytes: u64) -> u64 {
    bytes.saturating_add(files.saturating_mul(FILE_COST_BYTES))
}

/// How large shards and units are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// What a shard costs at the least, but for the last ones; at most by a unit more.
    pub shard_bytes: u64,
    /// What a unit costs at most, unless it is one file.
    pub unit_bytes: u64,
}

impl Sizes {
    /// Shards of about this size at most, and so many of them that all ranks have work to the end.
    pub fn of(total_files: u64, total_bytes: u64, ranks: usize, shard_bytes_max: u64) -> Sizes {
        const SHARDS_OF_A_RANK: u64 = 4;
        const SHARD_BYTES_MIN: u64 = 64 << 20;
        let all = cost(total_files, total_bytes);
        let even = all / (ranks as u64 * SHARDS_OF_A_RANK).max(1);
        let shard_bytes = even.clamp(SHARD_BYTES_MIN.min(shard_bytes_max), shard_bytes_max);
        Sizes { shard_bytes, unit_bytes: (shard_bytes / 8).max(1) }
    }
}

/// The tree as it was listed.
#[derive(Clone, Debug, Default)]
pub struct ListedTree {
    folders: BTreeMap<Name, ListedFolder>,
}

impl ListedTree {
    /// Adds a folder.
    pub fn add(&mut self, folder: ListedFolder) {
        self.folders.insert(folder.path.clone(), folder);
    }

    /// Folders, other objects and bytes.
    pub fn totals(&self) -> (u64, u64, u64) {
        let folders = self.folders.values();
        let sum = folders
            .fold((0, 0), |(files, bytes), folder| (files + folder.files, bytes + folder.bytes));
        (self.folders.len() as u64, sum.0, sum.1)
    }

    /// Folders that were not listed to their end, and why.
    pub fn problems(&self) -> impl Iterator<Item = (&Name, &str)> {
        self.folders.values().filter_map(|it| Some((&it.path, it.problem.as_deref()?)))
    }

    /// The units of this source, in the order of a walk.
    pub fn units(&self, source: &Name, unit_bytes: u64) -> Vec<Unit> {
        let mut totals: BTreeMap<&Name, (u64, u64)> = BTreeMap::new();
        let mut below: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        // The longest paths first, so that a folder comes before the one that holds it.
        let mut paths: Vec<&Name> = self.folders.keys().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.0.len()));
        for path in paths {
            let own = &self.folders[path];
            let total = totals.entry(path).or_default();
            total.0 += own.files;
            total.1 += own.bytes;
            let total = *total;
            let holder = path.parent().filter(|_| path != source);
            if let Some((holder, _)) = holder.and_then(|it| self.folders.get_key_value(&it)) {
                let sum = totals.entry(holder).or_default();
                sum.0 += total.0;
                sum.1 += total.1;
                below.entry(holder).or_default().push(path);
            }
        }
        let mut units = Vec::new();
        let mut waiting = vec![source];
        while let Some(path) = waiting.pop() {
            let Some(folder) = self.folders.get(path) else { continue };
            let (files, bytes) = totals.get(path).copied().unwrap_or_default();
            // What was not listed to its end may hold more than is known.
            if cost(files, bytes) <= unit_bytes || folder.problem.is_some() {
                units.push(Unit { path: path.clone(), part: UnitPart::Whole, files, bytes });
                continue;
            }
            units.extend(contents(folder, unit_bytes));
            let mut folders = below.remove(path).unwrap_or_default();
            folders.sort_by(|left, right| right.cmp(left));
            waiting.extend(folders);
        }
        units
    }

    /// A folder that no unit has, which must not be.
    pub fn uncovered(&self, units: &[Unit]) -> Option<&Name> {
        let places = Places::of(units);
        self.folders.keys().find(|folder| !places.cover(folder))
    }

    /// What the last shard has: the links that lie in several units of all sources, and all
    /// folders.
    pub fn last(&self, sources: &[Name], units: &[Unit]) -> Vec<Unit> {
        let mut last = Vec::new();
        let mut holders: BTreeMap<FileKey, BTreeSet<(&Name, &Name)>> = BTreeMap::new();
        for folder in self.folders.values() {
            for link in &folder.links {
                let key = (link.inode, link.names, link.bytes, link.changed_ns);
                holders.entry(key).or_default().insert((&folder.path, &link.name));
            }
        }
        let places = Places::of(units);
        let mut named: BTreeMap<&Name, Vec<Name>> = BTreeMap::new();
        for names in holders.values().filter(|names| names.len() > 1) {
            let in_units: BTreeSet<usize> =
                names.iter().map(|(folder, name)| places.unit_of(folder, name, units)).collect();
            if in_units.len() > 1 {
                for (folder, name) in names {
                    named.entry(folder).or_default().push((*name).clone());
                }
            }
        }
        for (folder, mut names) in named {
            names.sort();
            let files = names.len() as u64;
            let (path, part) = (folder.clone(), UnitPart::Named(names));
            last.push(Unit { path, part, files, bytes: 0 });
        }
        // Behind the links, which change the folders' times.
        for source in sources {
            last.push(Unit { path: source.clone(), part: UnitPart::Folders, files: 0, bytes: 0 });
        }
        last
    }
}

/// Which unit has a folder.
struct Places<'a> {
    whole: BTreeMap<&'a Name, usize>,
    contents: BTreeMap<&'a Name, Vec<usize>>,
}

impl<'a> Places<'a> {
    fn of(units: &'a [Unit]) -> Places<'a> {
        let mut places = Places { whole: BTreeMap::new(), contents: BTreeMap::new() };
        for (place, unit) in units.iter().enumerate() {
            if unit.part == UnitPart::Whole {
                places.whole.insert(&unit.path, place);
            } else {
                places.contents.entry(&unit.path).or_default().push(place);
            }
        }
        places
    }

    /// Whether what lies in a folder has a unit.
    fn cover(&self, folder: &Name) -> bool {
        self.contents.contains_key(folder) || self.whole_above(folder).is_some()
    }

    /// The place of the unit that has a folder and all that is below it.
    fn whole_above(&self, folder: &Name) -> Option<usize> {
        let mut above = Some(folder.clone());
        while let Some(path) = above {
            if let Some(place) = self.whole.get(&path) {
                return Some(*place);
            }
            above = path.parent().filter(|parent| parent.0.len() < path.0.len());
        }
        None
    }

    /// The place of the unit that has a file; that of none where it has no unit.
    fn unit_of(&self, folder: &Name, name: &Name, units: &[Unit]) -> usize {
        if let Some(place) = self.whole_above(folder) {
            return place;
        }
        let has = |place: &&usize| match &units[**place].part {
            UnitPart::Contents { from, before } => {
                from.as_ref().is_none_or(|from| name >= from)
                    && before.as_ref().is_none_or(|before| name < before)
            }
            _ => false,
        };
        let own = self.contents.get(folder);
        own.and_then(|own| own.iter().find(has)).copied().unwrap_or(usize::MAX)
    }
}

/// What lies in a folder itself, in units of at most this cost where the cuts allow.
fn contents(folder: &ListedFolder, unit_bytes: u64) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    if folder.cuts.is_empty() {
        // What appears in it has its place all the same.
        let part = UnitPart::Contents { from: None, before: None };
        units.push(Unit { path: folder.path.clone(), part, files: 0, bytes: 0 });
    }
    for cut in &folder.cuts {
        let fits = units
            .last()
            .is_some_and(|unit| cost(unit.files + cut.files, unit.bytes + cut.bytes) <= unit_bytes);
        if !fits {
            let is_first = units.is_empty();
            let from = (!is_first).then(|| cut.from.clone());
            if let Some(Unit { part: UnitPart::Contents { before, .. }, .. }) = units.last_mut() {
                *before = Some(cut.from.clone());
            }
            let part = UnitPart::Contents { from, before: None };
            units.push(Unit { path: folder.path.clone(), part, files: 0, bytes: 0 });
        }
        if let Some(unit) = units.last_mut() {
            unit.files += cut.files;
            unit.bytes += cut.bytes;
        }
    }
    units
}

/// Units in rows, each a shard.
pub fn gather(units: Vec<Unit>, sizes: Sizes) -> Vec<Vec<Unit>> {
    let mut shards: Vec<Vec<Unit>> = Vec::new();
    let mut held = u64::MAX;
    for unit in units {
        let full =
            held >= sizes.shard_bytes || shards.last().is_none_or(|shard| shard.len() >= UNITS_MAX);
        if full {
            shards.push(Vec::new());
            held = 0;
        }
        held = held.saturating_add(unit.cost());
        if let Some(shard) = shards.last_mut() {
            shard.push(unit);
        }
    }
    shards
}

#[cfg(test)]
mod tests;
