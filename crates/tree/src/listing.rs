//! One directory of a scan: its open descriptor, its place in the archive and its sorted names.
//!
//! A million names must take megabytes, without an allocation for each. So the names are in one
//! arena, each with its kind, its length and a NUL behind it (system calls use them in place), and
//! a sorted table of 4-byte offsets points at them. Objects of the scan are an `Arc` of the
//! directory and an index. The path of a directory is stored once for all its names. From
//! [`TAIL_BYTES_MAX`] on it is stored as the continuation of an ancestor's path, so that a tree of
//! a hundred thousand levels does not need path bytes in the square of its depth.

mod alone;
mod filter;
mod rules;
mod selective;

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::member::Timestamp;
use base::interruptible::{openat, openat_ahead};
use machine::counters::processor;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, Stat, fstat, statat};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::entry_kind::{EntryKind, kind_of};
use crate::file_systems::FileSystems;
use crate::identity::Identity;
use crate::item::Extent;
use crate::scan_problem::ScanProblem;
use crate::status::{Status, now};
use filter::Filter;
pub use rules::Look;
pub(crate) use rules::{ListRules, NamesBudget};

/// The names of a directory in archive order, without the descriptor.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) identity: Identity,
    pub(crate) source: u32,
    start: SourceStart,
    /// Only set for the holder of a source: the archive path of its one entry.
    entry_path: Option<Vec<u8>>,
    base: Option<Arc<Names>>,
    tail: Vec<u8>,
    path_bytes: usize,
    /// Where the path from the source starts in a path of this directory's entries.
    source_path_bytes: usize,
    arena: Vec<u8>,
    offsets: Vec<u32>,
    /// Everything below is walked, whatever [`crate::ScanOptions::changed`] has.
    pub(crate) extent: Extent,
    /// The state of each object that is no directory, where that is asked for; `None` for one that
    /// is gone. Of a folder that is not walked as a whole also that of each directory.
    statuses: Vec<Option<Status>>,
    /// Names that are there and left out, each with a NUL behind it; where states are asked for.
    pub(crate) excluded: Vec<u8>,
    /// The clock before the directory was read, and after everything in it was looked at.
    pub(crate) looked: (Timestamp, Timestamp),
}

/// Where the path of a source starts, as the user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceStart {
    /// At the root: a slash before the archive path makes the full path.
    Root,
    /// In the working directory, or it had another prefix that was removed.
    Elsewhere,
}

/// A path this long is continued from its ancestor's instead of being copied.
const TAIL_BYTES_MAX: usize = 4096;
/// Kind, length and inode number before each name in the arena.
const RECORD_HEAD_BYTES: usize = 11;

impl Names {
    /// The holder of a source: one name, which the archive calls `path`.
    pub(crate) fn of_source(
        source: u32,
        path: Vec<u8>,
        start: SourceStart,
        name: &CStr,
        status: &Stat,
    ) -> Names {
        let kind = kind_of(status);
        let mut names = Names {
            identity: Identity { device: 0, inode: 0 },
            source,
            start,
            entry_path: Some(path),
            base: None,
            tail: Vec::new(),
            path_bytes: 0,
            source_path_bytes: 0,
            arena: Vec::new(),
            offsets: vec![0],
            extent: Extent::Names,
            statuses: vec![Some(Status::of(status))],
            excluded: Vec::new(),
            looked: (now(), now()),
        };
        names.append(name, kind, status.st_ino);
        names
    }

    /// The names of the directory that is entry `index` of `parent`; empty at first.
    fn of_child(parent: &Arc<Names>, index: u32, identity: Identity) -> Names {
        let mut names = Names {
            identity,
            source: parent.source,
            start: parent.start,
            entry_path: None,
            base: parent.base.clone(),
            tail: Vec::new(),
            path_bytes: 0,
            source_path_bytes: 0,
            arena: Vec::new(),
            offsets: Vec::new(),
            extent: parent.extent,
            statuses: Vec::new(),
            excluded: Vec::new(),
            looked: (now(), now()),
        };
        if parent.tail.len() > TAIL_BYTES_MAX {
            names.base = Some(Arc::clone(parent));
            names.tail.extend_from_slice(parent.name_bytes(index));
        } else {
            parent.append_tail_path(index, &mut names.tail);
        }
        let base_bytes = names.base.as_ref().map_or(0, |base| base.path_bytes + 1);
        names.path_bytes = base_bytes + names.tail.len();
        names.source_path_bytes = if !parent.is_source_holder() {
            parent.source_path_bytes
        } else if names.path_bytes == 0 {
            0
        } else {
            names.path_bytes + 1
        };
        names
    }

    pub(crate) fn len(&self) -> u32 {
        self.offsets.len() as u32
    }

    pub(crate) fn name(&self, index: u32) -> &CStr {
        let (_, start, length) = self.record(self.offsets[index as usize]);
        CStr::from_bytes_with_nul(&self.arena[start..start + length + 1])
            .expect("append() stored a C string")
    }

    /// The name without the NUL behind it, which is not looked for.
    pub(crate) fn name_bytes(&self, index: u32) -> &[u8] {
        let (_, start, length) = self.record(self.offsets[index as usize]);
        &self.arena[start..start + length]
    }

    pub(crate) fn kind(&self, index: u32) -> EntryKind {
        EntryKind::from_byte(self.arena[self.offsets[index as usize] as usize])
    }

    /// The inode number that getdents(2) reported; at a mount point that of the folder below it.
    pub(crate) fn inode(&self, index: u32) -> u64 {
        let start = self.offsets[index as usize] as usize + 3;
        let bytes = self.arena[start..start + 8].try_into().expect("append() stored eight bytes");
        u64::from_ne_bytes(bytes)
    }

    pub(crate) fn is_source_holder(&self) -> bool {
        self.entry_path.is_some()
    }

    /// Length of the directory's own archive path in bytes.
    pub(crate) fn path_bytes(&self) -> usize {
        self.path_bytes
    }

    /// Bytes that the names take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.arena.len()
            + self.offsets.len() * size_of::<u32>()
            + self.statuses.len() * size_of::<Option<Status>>()
            + self.excluded.len()
    }

    /// The state of entry `index`, if it was asked for and the object was there.
    pub(crate) fn status(&self, index: u32) -> Option<&Status> {
        self.statuses.get(index as usize)?.as_ref()
    }

    /// Puts what is no directory in front of the directories, and looks at each of it; at the
    /// directories, too, if not all of them will be opened.
    fn look(&mut self, descriptor: &OwnedFd, rules: &ListRules, order: LookOrder) {
        let is_folder = |offset: &u32| {
            EntryKind::from_byte(self.arena[*offset as usize]) == EntryKind::Directory
        };
        // A stable sort: the names stay in order.
        self.offsets.sort_by_key(is_folder);
        let looked_at = if self.is_selective(rules) { self.len() } else { self.first_directory() };
        let look = |index| {
            let name = self.name(index);
            let stat = statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.ok().map(|stat| Status::of(&stat))
        };
        self.statuses = match order {
            LookOrder::Names => (0..looked_at).map(look).collect(),
            LookOrder::Inodes => {
                let mut by_inode: Vec<u32> = (0..looked_at).collect();
                by_inode.sort_unstable_by_key(|index| self.inode(*index));
                let mut statuses = vec![None; looked_at as usize];
                by_inode.into_iter().for_each(|index| statuses[index as usize] = look(index));
                statuses
            }
        };
        self.looked.1 = now();
    }

    /// Position of the first directory, of names whose states were asked for: they come last.
    pub(crate) fn first_directory(&self) -> u32 {
        let is_object = |offset: &u32| {
            EntryKind::from_byte(self.arena[*offset as usize]) != EntryKind::Directory
        };
        self.offsets.partition_point(is_object) as u32
    }

    /// Appends the archive path of entry `index`.
    pub(crate) fn append_entry_path(&self, index: u32, path: &mut Vec<u8>) {
        if let Some(given) = &self.entry_path {
            path.extend_from_slice(given);
            return;
        }
        self.append_path(path);
        if self.path_bytes != 0 {
            path.push(b'/');
        }
        path.extend_from_slice(self.name_bytes(index));
    }

    /// Appends the archive path of the directory; nothing for a source called `.`.
    pub(crate) fn append_path(&self, path: &mut Vec<u8>) {
        if let Some(base) = &self.base {
            base.append_path(path);
            path.push(b'/');
        }
        path.extend_from_slice(&self.tail);
    }

    /// The part of entry `index`'s path behind the base.
    fn append_tail_path(&self, index: u32, tail: &mut Vec<u8>) {
        match &self.entry_path {
            Some(given) if given == b"." => {}
            Some(given) => tail.extend_from_slice(given),
            None => {
                tail.extend_from_slice(&self.tail);
                if self.path_bytes != 0 {
                    tail.push(b'/');
                }
                tail.extend_from_slice(self.name_bytes(index));
            }
        }
    }

    fn append(&mut self, name: &CStr, kind: EntryKind, inode: u64) {
        let bytes = name.to_bytes_with_nul();
        // Linux refuses longer names: NAME_MAX is 255, FUSE's own limit 1024 and PATH_MAX 4096.
        let length = u16::try_from(bytes.len() - 1).expect("a name is shorter than PATH_MAX");
        self.arena.push(kind as u8);
        self.arena.extend_from_slice(&length.to_ne_bytes());
        self.arena.extend_from_slice(&inode.to_ne_bytes());
        self.arena.extend_from_slice(bytes);
    }

    fn record(&self, offset: u32) -> (u8, usize, usize) {
        let offset = offset as usize;
        let length = u16::from_ne_bytes([self.arena[offset + 1], self.arena[offset + 2]]);
        (self.arena[offset], offset + RECORD_HEAD_BYTES, usize::from(length))
    }

    /// Sorts the names by their bytes. Names of a directory tend to start alike, so their common
    /// prefix is skipped and the next four bytes are compared first.
    fn sort(&mut self) {
        let bytes_at = |offset: u32| {
            let (_, start, length) = self.record(offset);
            &self.arena[start..start + length]
        };
        let (mut offset, mut count) = (0, 0);
        let mut shared: Option<&[u8]> = None;
        while offset < self.arena.len() {
            let name = bytes_at(offset as u32);
            let prefix = shared.unwrap_or(name);
            let same = prefix.iter().zip(name).take_while(|(left, right)| left == right).count();
            shared = Some(&prefix[..same]);
            count += 1;
            offset += RECORD_HEAD_BYTES + name.len() + 1;
        }
        let skip = shared.map_or(0, <[u8]>::len);
        let mut keys: Vec<(u32, u32)> = Vec::with_capacity(count);
        offset = 0;
        while offset < self.arena.len() {
            let name = bytes_at(offset as u32);
            let mut key = [0; 4];
            let taken = (name.len() - skip).min(4);
            key[..taken].copy_from_slice(&name[skip..skip + taken]);
            keys.push((u32::from_be_bytes(key), offset as u32));
            offset += RECORD_HEAD_BYTES + name.len() + 1;
        }
        keys.sort_unstable_by(|left, right| {
            let by_key = left.0.cmp(&right.0);
            by_key.then_with(|| bytes_at(left.1)[skip..].cmp(&bytes_at(right.1)[skip..]))
        });
        self.offsets = keys.into_iter().map(|(_, offset)| offset).collect();
        // collect() keeps the allocation of the keys, and the arena grew by doubling.
        self.offsets.shrink_to_fit();
        self.arena.shrink_to_fit();
    }
}

/// A subdirectory to be opened and listed.
#[derive(Debug)]
pub(crate) struct ListingJob {
    pub(crate) parent: Arc<Directory>,
    pub(crate) index: u32,
    /// What was asked for; `None`: as the parent's extent and the changed paths have it.
    pub(crate) wanted: Option<Extent>,
}

/// The result of listing a subdirectory.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// `None` if the directory could not be opened or must not be entered.
    pub(crate) directory: Option<Arc<Directory>>,
    /// Positions of its subdirectories.
    pub(crate) subdirectories: Vec<u32>,
    /// A problem to report before the names.
    pub(crate) problem: Option<Box<ScanProblem>>,
    /// The state of the directory itself, from before its names were read.
    pub(crate) status: Option<Status>,
    /// The names are only those on the way to a changed path.
    pub(crate) is_on_the_way: bool,
    /// Too large for the look-ahead; it is listed again when its turn comes.
    pub(crate) deferred: bool,
}

/// In which order the objects of a directory are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookOrder {
    /// Their states are in memory.
    Names,
    /// The directory came from the disk, and most file systems have the states there in the order
    /// of these numbers.
    Inodes,
}

/// Bytes per getdents(2); larger buffers bring nothing on ext4 and XFS.
pub(crate) const GETDENTS_BYTES: usize = 64 << 10;
/// Offsets into the arena have 32 bits.
const ARENA_BYTES_MAX: usize = u32::MAX as usize - (64 << 10);

impl ListingJob {
    /// Opens and lists the directory. With a budget it is a look-ahead, which gives up when the
    /// budget or the table of open files is full. Without a budget the directory is needed now.
    pub(crate) fn list(
        &self,
        rules: &ListRules,
        buffer: &mut Vec<u8>,
        budget: Option<&NamesBudget>,
    ) -> Listed {
        let parent = self.parent.names();
        let name = parent.name(self.index);
        let opened = match budget {
            Some(_) => open_directory_ahead(&self.parent, name),
            None => open_directory(&self.parent, name),
        };
        let descriptor = match opened {
            Ok(descriptor) => descriptor,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) if budget.is_some() => {
                return Listed::deferred();
            }
            Err(error) => return self.failed(ScanProblem::open_directory, error),
        };
        let stat = match fstat(&descriptor) {
            Ok(stat) => stat,
            Err(error) => return self.failed(ScanProblem::open_directory, error),
        };
        let (identity, status) = (Identity::of(&stat), Some(Status::of(&stat)));
        let crosses = !parent.is_source_holder() && identity.device != parent.identity.device;
        if crosses && rules.file_systems == FileSystems::One {
            return Listed { status, ..Listed::default() };
        }
        let mut names = Names::of_child(parent, self.index, identity);
        let waits = processor::thread_waits();
        if let Some(wanted) = self.wanted {
            names.extent = wanted;
        }
        if self.is_only_on_the_way(&names, rules) && names.take_on_the_way(&descriptor, rules) {
            return Listed::on_the_way(Directory::new(descriptor, names), status);
        }
        let mut accounted_bytes = 0;
        let result = names.read(&descriptor, rules, buffer, budget, &mut accounted_bytes);
        if let Some(budget) = budget {
            budget.held_bytes.fetch_sub(accounted_bytes, Ordering::Relaxed);
        }
        let mut listed = Listed { status, ..Listed::default() };
        match result {
            Ok(()) | Err(Stop::Cancelled) => {}
            Err(Stop::Budget) => return Listed::deferred(),
            Err(Stop::Error(error)) => {
                let problem = ScanProblem::read_directory(self.path(), error.into());
                listed.problem = Some(Box::new(problem));
            }
        }
        names.sort();
        if rules.look == Look::Status {
            let has_waited = processor::thread_waits() > waits;
            let order = if has_waited { LookOrder::Inodes } else { LookOrder::Names };
            names.look(&descriptor, rules, order);
        }
        listed.subdirectories = names.subdirectories(rules);
        if let Some(budget) = budget {
            budget.held_bytes.fetch_add(names.held_bytes(), Ordering::Relaxed);
        }
        listed.directory = Some(Directory::new(descriptor, names));
        listed
    }

    pub(crate) fn path(&self) -> Vec<u8> {
        let mut path = Vec::new();
        self.parent.names().append_entry_path(self.index, &mut path);
        path
    }

    fn failed(&self, problem: fn(Vec<u8>, io::Error) -> ScanProblem, error: Errno) -> Listed {
        let problem = Some(Box::new(problem(self.path(), error.into())));
        let name = self.parent.names().name(self.index);
        let stat = statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let status = stat.as_ref().map(Status::of);
        Listed { problem, status, ..Listed::default() }
    }
}

impl Listed {
    fn deferred() -> Listed {
        Listed { deferred: true, ..Listed::default() }
    }
}

/// Why a directory was not read to its end.
enum Stop {
    Error(Errno),
    Budget,
    Cancelled,
}

impl Names {
    fn read(
        &mut self,
        descriptor: &OwnedFd,
        rules: &ListRules,
        buffer: &mut Vec<u8>,
        budget: Option<&NamesBudget>,
        accounted_bytes: &mut usize,
    ) -> Result<(), Stop> {
        let mut filter = Filter::new(rules, self);
        buffer.clear();
        buffer.reserve(GETDENTS_BYTES);
        let room: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(descriptor, room);
        loop {
            if entries.is_buffer_empty() {
                if rules.stop.load(Ordering::Relaxed) {
                    return Err(Stop::Cancelled);
                }
                if let Some(budget) = budget {
                    let more_bytes = self.arena.len() - *accounted_bytes;
                    *accounted_bytes = self.arena.len();
                    budget.held_bytes.fetch_add(more_bytes, Ordering::Relaxed);
                    if budget.is_spent() && *accounted_bytes > GETDENTS_BYTES {
                        return Err(Stop::Budget);
                    }
                }
            }
            let entry = match entries.next() {
                None => return Ok(()),
                Some(Ok(entry)) => entry,
                Some(Err(Errno::INTR)) => continue,
                Some(Err(error)) => return Err(Stop::Error(error)),
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || !filter.part().has_name(name.to_bytes()) {
                continue;
            }
            let mut kind = EntryKind::from_file_type(entry.file_type());
            if kind == EntryKind::Unknown {
                kind = statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(EntryKind::Unknown, |stat| kind_of(&stat));
            }
            if !filter.part().has_kind(kind) {
                continue;
            }
            if filter.excludes(name.to_bytes(), kind) {
                if rules.look == Look::Status {
                    self.excluded.extend_from_slice(name.to_bytes_with_nul());
                }
                continue;
            }
            if self.arena.len() > ARENA_BYTES_MAX {
                return Err(Stop::Error(Errno::FBIG));
            }
            self.append(name, kind, entry.ino());
        }
    }
}

/// Opens a directory below another one, never through a symbolic link.
pub(crate) fn open_directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    quietly(|flags| openat(&parent, name, flags, Mode::empty()))
}

/// The same as a look-ahead.
pub(crate) fn open_directory_ahead(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    quietly(|flags| openat_ahead(&parent, name, flags, Mode::empty()))
}

/// Opens a directory, without changing its access time if allowed.
fn quietly(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let quietly = OFlags::NOATIME | OFlags::NONBLOCK;
    match open(flags | quietly) {
        // Only the owner may read without changing the access time.
        Err(Errno::PERM) => open(flags),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a path applies to its length, including the continued parts.
    #[test]
    fn the_length_of_a_path_is_that_of_its_bytes() {
        let nothing = Identity { device: 0, inode: 0 };
        let name = std::ffi::CString::new([b'n'; 200]).unwrap();
        let source = (SourceStart::Elsewhere, c"srv", rustix::fs::stat("/").unwrap());
        let names = Names::of_source(0, b"srv".to_vec(), source.0, source.1, &source.2);
        let mut parent = Arc::new(names);
        let mut continued = 0;
        for _ in 0..100 {
            let mut child = Names::of_child(&parent, 0, nothing);
            let mut path = Vec::new();
            child.append_path(&mut path);
            assert_eq!(child.path_bytes(), path.len());
            continued += usize::from(child.base.is_some());
            child.offsets.push(0);
            child.append(&name, EntryKind::Directory, 0);
            parent = Arc::new(child);
        }
        assert!((1..100).contains(&continued), "{continued}");
    }
}
