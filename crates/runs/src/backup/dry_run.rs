//! What a backup would store: the walk and its decisions, and no content read or written.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archive::index::{About, EntryState, ObjectKind, StoreReason, TreeEntry};
use flow::cancel::Cancel;
use flow::monitor::{Counter, Monitor};
use tree::{Entry, EntryKind, Identity, Progress, Status};

use super::decide::Decider;
use super::descriptors::InHand;
use super::entries::Entries;
use super::error::BackupError;
use super::options::{BackupOptions, SetOptions};
use super::run::{counted_about, now};
use super::start_scan;
use super::work::Work;
use crate::report::ListReport;
use crate::sweep::ReadOrder;

/// Largest files that are named.
const LARGEST_MAX: usize = 10;
/// Folders that are named.
const FOLDERS_NAMED_MAX: usize = 5;
/// Folders that are told apart; what lies in others is counted for their source.
const FOLDERS_MAX: usize = 100_000;
/// How far below its source a folder is that is told apart.
const FOLDER_LEVELS: usize = 2;

/// What a backup would store.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The set, with what it counts.
    pub about: About,
    /// What a list of changes did.
    pub list: Option<ListReport>,
    /// Files with a content, each once whatever names it has.
    pub files: u64,
    /// Their bytes, without holes.
    pub bytes: u64,
    /// Bytes of holes, which are not stored.
    pub hole_bytes: u64,
    /// Further names of files.
    pub links: u64,
    /// Folders that could not be listed.
    pub problems: u64,
    /// The folders with most of the bytes, the first with most.
    pub folders: Vec<StoredFolder>,
    /// The largest files, the largest first.
    pub largest: Vec<StoredFile>,
}

/// A folder and the bytes that would be stored of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFolder {
    /// As the archive has it.
    pub path: Vec<u8>,
    pub bytes: u64,
}

/// A file that would be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// As the archive has it.
    pub path: Vec<u8>,
    pub bytes: u64,
    pub reason: StoreReason,
}

/// A content that would be stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredContent<'a> {
    pub entry: &'a Entry,
    pub size_bytes: u64,
    /// Without holes.
    pub stored_bytes: u64,
}

/// Walks the sources and decides, as the backup with these options would. `each` gets every content
/// that would be stored, once whatever names it has.
///
/// # Errors
/// When a source cannot be found, the index of the set before cannot be read, or the run was
/// stopped.
pub fn dry_run(
    options: &BackupOptions,
    set: &SetOptions,
    each: &mut dyn FnMut(StoredContent<'_>),
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<DryRun, BackupError> {
    let scan_options = tree::ScanOptions {
        excludes: tree::Excludes::new(&options.excludes)?,
        file_systems: options.file_systems,
        look: tree::Look::Status,
        parts: options.parts.clone().into(),
        changed: set.followed(),
        look_ahead: InHand::for_run(options.read_threads, ReadOrder::Name, monitor).look_ahead,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut scan = start_scan(options, scan_options, monitor)?;
    let top = Top::of(&set.about);
    let mut decider = Decider::new(set, top, [None, None], now(), monitor)?;
    let mut sizes = Sizes::default();
    loop {
        cancel.check()?;
        base::interruptible::check_shortage()?;
        let mut items = Vec::with_capacity(tree::BATCH_ITEMS_MAX);
        let progress = scan.next_batch(&mut items);
        let works = decider.decide(items, &mut scan)?;
        monitor.count(Counter::Members, works.len() as u64);
        sizes.add(&works, each);
        match progress {
            Progress::More => {}
            Progress::End => break,
            Progress::Stopped => {
                return Err(BackupError::Stopped(flow::cancel::Stopped::Failed));
            }
        }
    }
    let decided = decider.finish()?;
    let about = counted_about(&set.about, &decided.counts);
    let list = decided.list;
    let (folders, largest) = decided.entries.named();
    let Sizes { files, bytes, hole_bytes, links, problems, .. } = sizes;
    Ok(DryRun { about, list, files, bytes, hole_bytes, links, problems, folders, largest })
}

/// The folders with most of what a set stores, and its largest files.
///
/// # Errors
/// Those of the entries.
pub fn most_stored<E>(
    entries: impl Iterator<Item = Result<TreeEntry, E>>,
    about: &About,
) -> Result<(Vec<StoredFolder>, Vec<StoredFile>), E> {
    let mut top = Top::of(about);
    for entry in entries {
        top.count(&entry?);
    }
    Ok(top.named())
}

/// Sums over what would be stored.
#[derive(Default)]
struct Sizes {
    files: u64,
    bytes: u64,
    hole_bytes: u64,
    links: u64,
    problems: u64,
    seen: HashSet<Identity>,
}

impl Sizes {
    fn add(&mut self, works: &[Work], each: &mut dyn FnMut(StoredContent<'_>)) {
        for work in works {
            match work {
                Work::Entry(entry) => {
                    let stored_bytes = entry.status().and_then(|status| self.file(status));
                    if let (Some(stored_bytes), Some(status)) = (stored_bytes, entry.status()) {
                        let size_bytes = status.version.size_bytes;
                        each(StoredContent { entry, size_bytes, stored_bytes });
                    }
                }
                Work::Problem(_) => self.problems += 1,
                Work::Folder { .. } | Work::Relink(_) | Work::Left(_) => {}
            }
        }
    }

    /// The bytes of a content that was not seen before, without holes.
    fn file(&mut self, status: &Status) -> Option<u64> {
        if status.kind != EntryKind::File {
            return None;
        }
        if status.links > 1 && !self.seen.insert(status.identity) {
            self.links += 1;
            return None;
        }
        let size = status.version.size_bytes;
        let stored = size.min(status.allocated_bytes);
        self.files += 1;
        self.bytes += stored;
        self.hole_bytes += size - stored;
        Some(stored)
    }
}

/// The largest of what would be stored.
struct Top<'a> {
    about: &'a About,
    folders: BTreeMap<Vec<u8>, u64>,
    largest: BinaryHeap<Reverse<(u64, Vec<u8>, StoreReason)>>,
    seen: HashSet<(u32, u64)>,
}

impl Entries for Top<'_> {
    fn add(&mut self, entry: &TreeEntry) -> Result<(), BackupError> {
        self.count(entry);
        Ok(())
    }
}

impl<'a> Top<'a> {
    fn of(about: &'a About) -> Top<'a> {
        let (folders, largest, seen) = Default::default();
        Top { about, folders, largest, seen }
    }

    fn count(&mut self, entry: &TreeEntry) {
        let is_file = entry.kind == ObjectKind::File && entry.state == EntryState::Stored;
        if !is_file || (entry.links > 1 && !self.seen.insert((entry.source, entry.inode))) {
            return;
        }
        let source = self.about.sources.get(entry.source as usize);
        let source = source.map_or(&b""[..], |source| &source.archive_path);
        let folder = folder_of(&entry.path, source);
        let is_told_apart = self.folders.len() < FOLDERS_MAX || self.folders.contains_key(folder);
        let folder = if is_told_apart { folder } else { source };
        *self.folders.entry(folder.to_vec()).or_default() += entry.size_bytes;
        self.largest.push(Reverse((entry.size_bytes, entry.path.clone(), entry.reason)));
        if self.largest.len() > LARGEST_MAX {
            self.largest.pop();
        }
    }

    fn named(self) -> (Vec<StoredFolder>, Vec<StoredFile>) {
        let folder = |(path, bytes)| StoredFolder { path, bytes };
        let mut folders: Vec<StoredFolder> = self.folders.into_iter().map(folder).collect();
        folders.sort_by(|a, b| (b.bytes, &a.path).cmp(&(a.bytes, &b.path)));
        folders.truncate(FOLDERS_NAMED_MAX);
        folders.retain(|folder| folder.bytes > 0);
        let largest = self.largest.into_sorted_vec().into_iter();
        let file = |Reverse((bytes, path, reason))| StoredFile { path, bytes, reason };
        (folders, largest.map(file).filter(|file| file.bytes > 0).collect())
    }
}

/// The folder of a path, at most some levels below the source.
fn folder_of<'a>(path: &'a [u8], source: &[u8]) -> &'a [u8] {
    let begin = if path.starts_with(source) { source.len() } else { 0 };
    let slashes = path.iter().enumerate().skip(begin + 1).filter(|(_, byte)| **byte == b'/');
    match slashes.map(|(at, _)| at).take(FOLDER_LEVELS).last() {
        Some(end) => &path[..end],
        None => &path[..begin.min(path.len())],
    }
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn folders_are_two_levels_below_their_source() {
        assert_eq!(folder_of(b"home/eva/a/b/c", b"home"), b"home/eva/a");
        assert_eq!(folder_of(b"home/eva/x", b"home"), b"home/eva");
        assert_eq!(folder_of(b"home/x", b"home"), b"home");
        assert_eq!(folder_of(b"home", b"home"), b"home");
    }
}
