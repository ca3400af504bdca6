//! A tree of files as a backup reads it: in the order of the walk, file after file, each from its
//! disk.
//!
//! One thread reads, one call at a time, as `tar` and Bacula's file daemon do; what many readers
//! at once bring is `takeup backup`'s business. What the page cache holds of a file is dropped
//! before it is read, so that each run finds the disk as the first one did. Names and inodes stay
//! in memory: without being root nobody can drop them.
//!
//! A file that changes meanwhile keeps the length that it had: what is missing are zeros. Holes are
//! read, a file with several names is read at each of them, other file systems are left out. What
//! cannot be read is counted, and the run goes on without it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::member::{Member, MemberKind, Timestamp};
use base::failures::with_causes;
use base::format::counted;
use device::file::{cached_bytes, drop_cached};
use rustix::io::Errno;
use tree::{
    Accounts, Attributes, Capture, CaptureOptions, Captured, Capturer, FileSystems, Identity, Item,
    LookAheadLimits, Progress, Scan, ScanOptions,
};

use super::PayloadError;

/// More than this share of what was read in the page cache, and the disk was not what was measured.
const CACHED_SHARE: f64 = 0.01;

/// Which objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedObjects {
    /// All, with all that an archive keeps of them.
    Objects,
    /// Files that hold something.
    Contents,
}

/// How a tree is read.
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    pub wanted: WantedObjects,
    /// Bytes of one read(2), through memory of its own; without it, a read goes to where its bytes
    /// are wanted and is as long as there is room.
    pub read_block_bytes: Option<usize>,
    /// The file that is written to, where that is one: it is no part of the tree.
    pub output: Option<Identity>,
}

/// What was found in a tree, or read of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// All objects: files, directories and others.
    pub objects: u64,
    /// Files that hold something.
    pub files: u64,
    /// What they hold.
    pub bytes: u64,
}

impl Content {
    fn add(&mut self, member: &Member) {
        self.objects += 1;
        self.files += u64::from(member.size_bytes > 0);
        self.bytes += member.size_bytes;
    }
}

/// A tree on its way through an experiment.
pub struct Tree {
    path: PathBuf,
    wanted: WantedObjects,
    scan: Scan,
    is_over: bool,
    items: VecDeque<Item>,
    capturer: Capturer,
    ahead: Option<Captured>,
    file: Option<Open>,
    buffer: Option<Buffer>,
    seen: Content,
    /// Bytes that the page cache kept although they were to be dropped.
    cached: u64,
    unread: Unread,
    /// Files that became shorter.
    changed: u64,
}

/// The file that is being read.
struct Open {
    file: OwnedFd,
    left: u64,
    is_whole: bool,
}

/// What one read(2) gave, and how much of that was taken.
struct Buffer {
    memory: Vec<u8>,
    filled: usize,
    taken: usize,
}

/// What could not be read: how much of that there was, and what came first.
#[derive(Debug, Default)]
struct Unread {
    count: u64,
    first: String,
}

impl Unread {
    fn add(&mut self, what: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = what();
        }
        self.count += 1;
    }
}

/// Looks at all of a tree and reads nothing of it.
///
/// # Errors
/// It is not there, or all files in it are empty.
pub fn survey(path: &Path, output: Option<Identity>) -> Result<Content, PayloadError> {
    let wanted = WantedObjects::Objects;
    let mut tree = Tree::start(path, TreeOptions { wanted, read_block_bytes: None, output })?;
    let mut content = Content::default();
    while let Some(captured) = tree.find() {
        content.add(&captured.member);
    }
    if content.bytes == 0 {
        return Err(PayloadError::EmptyTree { path: path.to_owned() });
    }
    Ok(content)
}

impl Tree {
    /// From its beginning.
    ///
    /// # Errors
    /// It is not there, or there is nothing to read.
    pub fn open(path: &Path, options: TreeOptions) -> Result<Tree, PayloadError> {
        let mut tree = Tree::start(path, options)?;
        if tree.is_at_end() {
            return Err(PayloadError::EmptyTree { path: path.to_owned() });
        }
        Ok(tree)
    }

    fn start(path: &Path, options: TreeOptions) -> Result<Tree, PayloadError> {
        let attributes = match options.wanted {
            WantedObjects::Objects => Attributes::Read,
            WantedObjects::Contents => Attributes::Ignore,
        };
        // One thread, as the programs that this stands for.
        let look_ahead = LookAheadLimits { threads: 0, ..LookAheadLimits::default() };
        let scanning =
            ScanOptions { file_systems: FileSystems::One, look_ahead, ..ScanOptions::default() };
        let capturing =
            CaptureOptions { attributes, output: options.output, begun: Timestamp::default() };
        let scan = Scan::start(&[path.to_owned()], scanning)?;
        Ok(Tree {
            path: path.to_owned(),
            wanted: options.wanted,
            scan,
            is_over: false,
            items: VecDeque::new(),
            capturer: Capturer::new(capturing, Arc::new(Accounts::load())),
            ahead: None,
            file: None,
            buffer: options.read_block_bytes.map(|bytes| Buffer {
                memory: vec![0; bytes],
                filled: 0,
                taken: 0,
            }),
            seen: Content::default(),
            cached: 0,
            unread: Unread::default(),
            changed: 0,
        })
    }

    /// Bytes of the present file that were not read yet.
    pub fn left(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.left)
    }

    /// Whether nothing is left, neither of the present file nor behind it.
    pub fn is_at_end(&mut self) -> bool {
        if self.left() > 0 {
            return false;
        }
        if self.ahead.is_none() {
            self.ahead = self.find();
        }
        self.ahead.is_none()
    }

    /// Goes on to the next object, whatever was left of the present one.
    pub fn next_member(&mut self) -> Option<Member> {
        self.file = None;
        let Captured { member, file, .. } = self.ahead.take().or_else(|| self.find())?;
        self.seen.objects += 1;
        let left = member.size_bytes;
        if let Some(file) = file.filter(|_| left > 0) {
            self.seen.files += 1;
            drop_cached(&file, 0, left);
            self.cached += cached_bytes(file.as_fd(), 0..left).unwrap_or(0).min(left);
            self.file = Some(Open { file, left, is_whole: true });
            if let Some(buffer) = &mut self.buffer {
                (buffer.filled, buffer.taken) = (0, 0);
            }
        }
        Some(member)
    }

    /// The present object cannot be had for a reason of the caller's: it counts as one that could
    /// not be read.
    pub fn give_up(&mut self, member: &Member, why: &dyn std::fmt::Display) {
        self.file = None;
        self.unread.add(|| format!("{}: {why}", String::from_utf8_lossy(&member.path)));
    }

    /// Fills `out`, which is no longer than what is left of the present file, with what follows.
    pub fn read(&mut self, out: &mut [u8]) {
        let Some(open) = &mut self.file else {
            out.fill(0);
            return;
        };
        debug_assert!(out.len() as u64 <= open.left, "more than the file holds");
        let (filled, error) = match &mut self.buffer {
            Some(buffer) => buffer.read(&open.file, out),
            None => fill(&open.file, out),
        };
        if filled < out.len() && open.is_whole {
            open.is_whole = false;
            match error {
                Some(error) => self.unread.add(|| error.to_string()),
                None => self.changed += 1,
            }
        }
        out[filled..].fill(0);
        open.left -= out.len() as u64;
        self.seen.bytes += out.len() as u64;
    }

    /// What was read so far.
    pub fn seen(&self) -> Content {
        self.seen
    }

    /// What should be known of it when a run is judged; the same text for all runs that have it,
    /// as long as the tree stays as it is.
    pub fn cautions(&self) -> Vec<String> {
        let path = self.path.display();
        let mut cautions = Vec::new();
        if self.cached as f64 > CACHED_SHARE * self.seen.bytes as f64 {
            cautions.push(format!(
                "files of {path} cannot be dropped from the page cache, or lie in memory: what is \
                 read of them shows no disk"
            ));
        }
        if self.unread.count > 0 {
            let (count, first) = (self.unread.count, &self.unread.first);
            let what = counted(count, "object was", "objects were");
            cautions.push(format!("{what} not read in {path}, first {first}"));
        }
        if self.changed > 0 {
            let what = counted(self.changed, "file", "files");
            cautions.push(format!("{what} in {path} became shorter while being read"));
        }
        cautions
    }

    /// The next object of the walk that is wanted and can be had.
    fn find(&mut self) -> Option<Captured> {
        loop {
            let Some(item) = self.items.pop_front() else {
                if self.is_over {
                    return None;
                }
                let mut batch = Vec::new();
                self.is_over = self.scan.next_batch(&mut batch) != Progress::More;
                self.items.extend(batch);
                continue;
            };
            let entry = match item {
                Item::Entry(entry) => entry,
                Item::Folder(folder) => folder.entry,
                Item::Problem(problem) => {
                    self.unread.add(|| with_causes(&problem));
                    continue;
                }
            };
            match self.capturer.capture(&entry, None) {
                Ok(Capture::Object(found)) if self.wants(&found) => return Some(found),
                Ok(_) => {}
                Err(error) => self.unread.add(|| {
                    let path = entry.path();
                    format!("{}: {}", String::from_utf8_lossy(&path), with_causes(&error))
                }),
            }
        }
    }

    fn wants(&self, found: &Captured) -> bool {
        let holds = found.member.kind == MemberKind::File && found.member.size_bytes > 0;
        self.wanted == WantedObjects::Objects || holds
    }
}

impl Buffer {
    /// As [`fill`], by reads of one length.
    fn read(&mut self, file: &OwnedFd, out: &mut [u8]) -> (usize, Option<Errno>) {
        let mut at = 0;
        while at < out.len() {
            if self.taken == self.filled {
                self.taken = 0;
                self.filled = match read_once(file, &mut self.memory) {
                    Ok(0) => return (at, None),
                    Ok(bytes) => bytes,
                    Err(error) => return (at, Some(error)),
                };
            }
            let bytes = (self.filled - self.taken).min(out.len() - at);
            out[at..at + bytes].copy_from_slice(&self.memory[self.taken..][..bytes]);
            self.taken += bytes;
            at += bytes;
        }
        (at, None)
    }
}

/// Bytes that were read into `out`, and what ended that too early where it was an error.
fn fill(file: &OwnedFd, out: &mut [u8]) -> (usize, Option<Errno>) {
    let mut at = 0;
    while at < out.len() {
        match read_once(file, &mut out[at..]) {
            Ok(0) => break,
            Ok(bytes) => at += bytes,
            Err(error) => return (at, Some(error)),
        }
    }
    (at, None)
}

fn read_once(file: &OwnedFd, out: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(file, &mut *out) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tree").field("path", &self.path).field("seen", &self.seen).finish()
    }
}
