//! What has changed in a btrfs subvolume since a transaction, from the kernel itself; and in
//! [`places`], where the data of files lie.
//!
//! Each transaction of a btrfs file system has a number, its generation, and each inode has the
//! number of the transaction that changed it last. Nodes of the tree have such a number, too, so
//! that a search for what changed does not read the rest of the tree.
//!
//! A deletion and a new name show as a change of the folder. A subvolume in a subvolume has a tree
//! of its own, which is searched as well; one that came to its place since counts as changed as a
//! whole, since its own numbers do not say that it was elsewhere.
//!
//! Not here: which generation a set noted, and what is mounted over a subvolume.

mod ioctl;
pub mod places;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base::interruptible::openat;
use rustix::fs::{CWD, Mode, OFlags, fstatfs, syncfs};
use rustix::io::Errno;

use ioctl::{Info, Key, Search, Wanted};

/// `BTRFS_SUPER_MAGIC`.
const BTRFS: u64 = 0x9123_683e;
/// The inode of the root of a subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const ROOT_INODE: u64 = 256;
/// The last number that an inode can have (`BTRFS_LAST_FREE_OBJECTID`).
const INODE_MAX: u64 = -256_i64 as u64;
/// The tree with the subvolumes (`BTRFS_ROOT_TREE_OBJECTID`).
const TREE_OF_TREES: u64 = 1;
/// Kinds of items: `BTRFS_INODE_ITEM_KEY`, `BTRFS_DIR_INDEX_KEY`, `BTRFS_ROOT_ITEM_KEY` and
/// `BTRFS_ROOT_REF_KEY`.
const INODE_ITEM: u8 = 1;
const DIR_INDEX: u8 = 96;
const ROOT_ITEM: u8 = 132;
const ROOT_REF: u8 = 156;
/// `BTRFS_ROOT_SUBVOL_RDONLY`.
const READ_ONLY: u64 = 1;
/// Bytes in front of each item that a search finds (`struct btrfs_ioctl_search_header`).
const HEADER_BYTES: usize = 32;
/// Subvolumes in subvolumes, at most: more are no tree but a mistake here.
const SUBVOLUMES_MAX: usize = 1 << 20;

/// Why btrfs did not say what has changed.
#[derive(Debug, thiserror::Error)]
pub enum BtrfsError {
    #[error("it is not on btrfs")]
    NotBtrfs,
    #[error("it is not the root of a subvolume")]
    NotASubvolume,
    /// The kernel shows trees to those only who have `CAP_SYS_ADMIN`.
    #[error("the kernel does not let this user search a btrfs file system")]
    NotAllowed,
    #[error("the kernel cannot search it")]
    Search(#[source] io::Error),
    #[error("the file system cannot be synchronised")]
    Synchronise(#[source] io::Error),
    #[error("cannot open it")]
    Open(#[source] io::Error),
    /// An item is shorter than its kind has to be.
    #[error("the kernel's answer is not understood")]
    Answer,
}

/// Whose generations can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A subvolume, as it is at each time.
    Live,
    /// Snapshots of a subvolume that were never written to. They hold no other subvolumes, so they
    /// are not compared with the subvolume itself.
    Snapshots,
}

/// A subvolume at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub line: Line,
    /// UUID of the file system.
    pub file_system: [u8; 16],
    /// UUID of the subvolume, or of the one that the snapshots are of.
    pub subvolume: [u8; 16],
    /// Whatever changes later does so in this transaction or in a later one.
    pub generation: u64,
}

/// Something that has changed, by its path below the subvolume; empty for its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed<'a> {
    /// This object; of a folder not what is in it.
    Itself(&'a [u8]),
    /// Perhaps everything in this folder, at any depth.
    Whole(&'a [u8]),
}

/// A subvolume, by its root or by something in it.
#[derive(Debug)]
pub struct Subvolume {
    file: File,
    info: Info,
    file_system: [u8; 16],
}

impl Subvolume {
    /// The subvolume that a folder or a file is in.
    ///
    /// # Errors
    /// `NotBtrfs`, `Open`, `Search`.
    pub fn of(path: &Path) -> Result<Subvolume, BtrfsError> {
        // A named pipe would wait, and a device might do anything.
        let status = path.metadata().map_err(BtrfsError::Open)?;
        if !status.is_dir() && !status.is_file() {
            return Err(BtrfsError::NotBtrfs);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(CWD, path, flags, Mode::empty());
        Subvolume::from_file(File::from(file.map_err(|error| BtrfsError::Open(error.into()))?))
    }

    /// The subvolume of which this folder is the root.
    ///
    /// # Errors
    /// As of [`Subvolume::of`], and `NotASubvolume`.
    pub fn at(path: &Path) -> Result<Subvolume, BtrfsError> {
        let subvolume = Subvolume::of(path)?;
        let status = subvolume.file.metadata().map_err(BtrfsError::Open)?;
        if !status.is_dir() || status.ino() != ROOT_INODE {
            return Err(BtrfsError::NotASubvolume);
        }
        Ok(subvolume)
    }

    fn from_file(file: File) -> Result<Subvolume, BtrfsError> {
        let kind = fstatfs(&file).map_err(|error| BtrfsError::Open(error.into()))?.f_type;
        if kind as u64 & 0xffff_ffff != BTRFS {
            return Err(BtrfsError::NotBtrfs);
        }
        let info = ioctl::subvolume(file.as_fd()).map_err(failed)?;
        let file_system = ioctl::file_system(file.as_fd()).map_err(failed)?.identity;
        Ok(Subvolume { file, info, file_system })
    }

    /// Its state, without waiting for the disk. `None` where the kernel does not report the running
    /// transaction (before Linux 5.9).
    ///
    /// # Errors
    /// `Search`.
    pub fn state(&self) -> Result<Option<State>, BtrfsError> {
        let now = ioctl::file_system(self.file.as_fd()).map_err(failed)?.generation;
        Ok(now.map(|generation| self.state_at(generation)))
    }

    /// Its state, after everything that has changed so far was written to the disk: only then a
    /// search finds all of it.
    ///
    /// # Errors
    /// `Synchronise`.
    pub fn synchronised(&self) -> Result<State, BtrfsError> {
        let failed = BtrfsError::Synchronise;
        syncfs(&self.file).map_err(|error| failed(error.into()))?;
        let transaction = ioctl::start_commit(self.file.as_fd()).map_err(failed)?;
        ioctl::wait_for_commit(self.file.as_fd(), transaction).map_err(failed)?;
        // It takes no more changes, so those that come now are in later ones.
        Ok(self.state_at(transaction + 1))
    }

    fn state_at(&self, generation: u64) -> State {
        let Info { identity, parent_identity, changed, made, flags, .. } = self.info;
        let is_untouched = flags & READ_ONLY != 0 && parent_identity != [0; 16] && changed <= made;
        let (line, subvolume, generation) = if is_untouched {
            (Line::Snapshots, parent_identity, made)
        } else {
            (Line::Live, identity, generation)
        };
        State { line, file_system: self.file_system, subvolume, generation }
    }

    /// Passes on what has changed in a transaction or later, here and in the subvolumes in it,
    /// until `each` breaks off. Only what [`Subvolume::synchronised`] wrote to the disk is found.
    ///
    /// # Errors
    /// `NotAllowed` without `CAP_SYS_ADMIN`; `Search`; `Answer`.
    pub fn changed_since(
        &self,
        generation: u64,
        mut each: impl FnMut(Changed<'_>) -> ControlFlow<()>,
    ) -> Result<(), BtrfsError> {
        let mut search = Search::new();
        let file = self.file.try_clone().map_err(BtrfsError::Open)?;
        let mut waiting = vec![(file, self.info.tree, Vec::new())];
        let mut subvolumes = 0;
        while let Some((file, tree, path)) = waiting.pop() {
            subvolumes += 1;
            let changes = Changes { file: &file, tree, generation, path: &path };
            if changes.objects(&mut search, &mut each)?.is_break() {
                return Ok(());
            }
            for nested in changes.subvolumes(&mut search)? {
                let open = if nested.is_new || subvolumes + waiting.len() >= SUBVOLUMES_MAX {
                    None
                } else {
                    self.open_nested(&nested)
                };
                if let Some(file) = open {
                    waiting.push((file, nested.tree, nested.path));
                } else if each(Changed::Whole(&nested.path)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The root of a subvolume in this one, if it is what its path leads to.
    fn open_nested(&self, nested: &Nested) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = Path::new(OsStr::from_bytes(&nested.path));
        let file = File::from(openat(&self.file, path, flags, Mode::empty()).ok()?);
        let opened = Subvolume::from_file(file).ok()?;
        let is_it = opened.info.tree == nested.tree && opened.file_system == self.file_system;
        is_it.then_some(opened.file)
    }
}

/// The search of one subvolume.
struct Changes<'a> {
    file: &'a File,
    tree: u64,
    generation: u64,
    /// Its path below the subvolume that was named.
    path: &'a [u8],
}

/// A subvolume in another one.
struct Nested {
    tree: u64,
    path: Vec<u8>,
    /// It came to its place since.
    is_new: bool,
}

impl Changes<'_> {
    fn objects(
        &self,
        search: &mut Search,
        each: &mut impl FnMut(Changed<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, BtrfsError> {
        let wanted = Wanted {
            tree: self.tree,
            first: Key { object: ROOT_INODE, kind: INODE_ITEM, offset: 0 },
            last: Key { object: INODE_MAX, kind: u8::MAX, offset: u64::MAX },
            transaction_min: self.generation,
            items_max: u32::MAX,
        };
        let mut inodes = Vec::new();
        let mut flow = ControlFlow::Continue(());
        items(search, self.file, wanted, |found| {
            inodes.clear();
            for (key, item) in found {
                if key.kind == INODE_ITEM && InodeItem::read(item)?.is_since(self.generation) {
                    inodes.push(key.object);
                }
            }
            for inode in &inodes {
                flow = self.names(*inode, each)?;
                if flow.is_break() {
                    break;
                }
            }
            Ok(flow)
        })?;
        Ok(flow)
    }

    /// Passes on the names of an inode.
    fn names(
        &self,
        inode: u64,
        each: &mut impl FnMut(Changed<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, BtrfsError> {
        if inode == ROOT_INODE {
            return Ok(each(Changed::Itself(self.path)));
        }
        let names = match ioctl::paths(self.file.as_fd(), inode) {
            Ok(names) => names,
            // It lost its last name since: its folder changed with that, so the next search has it.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        for name in names {
            if each(Changed::Itself(&join(self.path, &name))).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The subvolumes in this one.
    fn subvolumes(&self, search: &mut Search) -> Result<Vec<Nested>, BtrfsError> {
        let wanted = Wanted {
            tree: TREE_OF_TREES,
            first: Key { object: self.tree, kind: ROOT_REF, offset: 0 },
            last: Key { object: self.tree, kind: ROOT_REF, offset: u64::MAX },
            transaction_min: 0,
            items_max: u32::MAX,
        };
        let mut references = Vec::new();
        items(search, self.file, wanted, |found| {
            for (key, item) in found {
                if key.kind == ROOT_REF && key.object == self.tree {
                    references.push((key.offset, RootReference::read(item)?));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        references.into_iter().map(|(tree, it)| self.nested(search, tree, &it)).collect()
    }

    fn nested(
        &self,
        search: &mut Search,
        tree: u64,
        reference: &RootReference,
    ) -> Result<Nested, BtrfsError> {
        let folder = match reference.folder {
            ROOT_INODE => Vec::new(),
            inode => ioctl::folder_path(self.file.as_fd(), self.tree, inode).map_err(failed)?,
        };
        let path = join(self.path, &[&folder[..], &reference.name].concat());
        let key = Key { object: reference.folder, kind: DIR_INDEX, offset: reference.sequence };
        let wanted = Wanted {
            tree: self.tree,
            first: key,
            last: key,
            transaction_min: 0,
            items_max: u32::MAX,
        };
        let mut since = None;
        items(search, self.file, wanted, |found| {
            for (found, item) in found {
                if found == key {
                    since = FolderEntry::read(item)?.names_since(tree);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        // Without an entry it is just being moved.
        let is_new = since.is_none_or(|since| since >= self.generation);
        Ok(Nested { tree, path, is_new })
    }
}

/// Passes on what a search finds, answer by answer.
fn items(
    search: &mut Search,
    file: &File,
    mut wanted: Wanted,
    mut each: impl FnMut(Vec<(Key, &[u8])>) -> Result<ControlFlow<()>, BtrfsError>,
) -> Result<(), BtrfsError> {
    loop {
        let (count, bytes) = search.next(file.as_fd(), &wanted).map_err(failed)?;
        let found = parse(count, bytes)?;
        let Some((last, _)) = found.last() else { return Ok(()) };
        let next = after(*last);
        if each(found)?.is_break() {
            return Ok(());
        }
        match next {
            Some(next) if next <= wanted.last => wanted.first = next,
            _ => return Ok(()),
        }
    }
}

/// The key that follows another one.
fn after(key: Key) -> Option<Key> {
    if let Some(offset) = key.offset.checked_add(1) {
        return Some(Key { offset, ..key });
    }
    if let Some(kind) = key.kind.checked_add(1) {
        return Some(Key { kind, offset: 0, ..key });
    }
    Some(Key { object: key.object.checked_add(1)?, kind: 0, offset: 0 })
}

/// The items of an answer: headers in the machine's order of bytes, each with its item behind it.
fn parse(count: u32, bytes: &[u8]) -> Result<Vec<(Key, &[u8])>, BtrfsError> {
    let mut found = Vec::new();
    let mut rest = bytes;
    for _ in 0..count {
        let (header, behind) = rest.split_at_checked(HEADER_BYTES).ok_or(BtrfsError::Answer)?;
        let long = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let short = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let kind = u8::try_from(short(24)).map_err(|_| BtrfsError::Answer)?;
        let key = Key { object: long(8), kind, offset: long(16) };
        let item_bytes = short(28) as usize;
        let (item, behind) = behind.split_at_checked(item_bytes).ok_or(BtrfsError::Answer)?;
        found.push((key, item));
        rest = behind;
    }
    Ok(found)
}

/// `struct btrfs_inode_item`, as far as it is needed. Items are little-endian.
struct InodeItem {
    transaction: u64,
    links: u32,
}

impl InodeItem {
    fn read(item: &[u8]) -> Result<InodeItem, BtrfsError> {
        Ok(InodeItem { transaction: long(item, 8)?, links: long(item, 40)? as u32 })
    }

    /// Whether it changed in this transaction or later. One without a name is deleted, and open.
    fn is_since(&self, generation: u64) -> bool {
        self.transaction >= generation && self.links > 0
    }
}

/// `struct btrfs_root_ref`: where a subvolume is in another one.
struct RootReference {
    folder: u64,
    sequence: u64,
    name: Vec<u8>,
}

impl RootReference {
    fn read(item: &[u8]) -> Result<RootReference, BtrfsError> {
        let name_bytes = usize::from(u16::from_le_bytes(array(item, 16)?));
        let name = item.get(18..18 + name_bytes).ok_or(BtrfsError::Answer)?.to_vec();
        Ok(RootReference { folder: long(item, 0)?, sequence: long(item, 8)?, name })
    }
}

/// `struct btrfs_dir_item`, as far as it is needed.
struct FolderEntry {
    object: u64,
    kind: u8,
    transaction: u64,
}

impl FolderEntry {
    fn read(item: &[u8]) -> Result<FolderEntry, BtrfsError> {
        let kind = *item.get(8).ok_or(BtrfsError::Answer)?;
        Ok(FolderEntry { object: long(item, 0)?, kind, transaction: long(item, 17)? })
    }

    /// The transaction since when it names this subvolume.
    fn names_since(&self, tree: u64) -> Option<u64> {
        (self.object == tree && self.kind == ROOT_ITEM).then_some(self.transaction)
    }
}

fn long(item: &[u8], at: usize) -> Result<u64, BtrfsError> {
    Ok(u64::from_le_bytes(array(item, at)?))
}

fn array<const N: usize>(item: &[u8], at: usize) -> Result<[u8; N], BtrfsError> {
    let bytes = item.get(at..at + N).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(BtrfsError::Answer)
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let name = name.strip_prefix(b"/").unwrap_or(name);
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn failed(error: io::Error) -> BtrfsError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => BtrfsError::NotAllowed,
        _ => BtrfsError::Search(error),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(key: Key, bytes: &[u8]) -> Vec<u8> {
        let mut out = 7_u64.to_ne_bytes().to_vec();
        out.extend(key.object.to_ne_bytes());
        out.extend(key.offset.to_ne_bytes());
        out.extend(u32::from(key.kind).to_ne_bytes());
        out.extend((bytes.len() as u32).to_ne_bytes());
        out.extend(bytes);
        out
    }

    #[test]
    fn an_answer_is_cut_into_its_items() {
        let keys = [(256, INODE_ITEM, 0), (256, DIR_INDEX, 2), (257, INODE_ITEM, 0)];
        let keys = keys.map(|(object, kind, offset)| Key { object, kind, offset });
        let items = [&b"first"[..], b"", b"third"];
        let mut bytes: Vec<u8> =
            keys.iter().zip(items).flat_map(|(key, bytes)| item(*key, bytes)).collect();
        let expected: Vec<_> = keys.into_iter().zip(items).collect();
        assert_eq!(parse(3, &bytes).unwrap(), expected);
        bytes.extend([0; 100]);
        assert_eq!(parse(3, &bytes).unwrap(), expected);
        assert!(parse(0, &bytes).unwrap().is_empty());
        assert!(matches!(parse(9, &bytes), Err(BtrfsError::Answer)));
    }

    #[test]
    fn keys_follow_each_other() {
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(after(key(1, 2, 3)), Some(key(1, 2, 4)));
        assert_eq!(after(key(1, 2, u64::MAX)), Some(key(1, 3, 0)));
        assert_eq!(after(key(1, u8::MAX, u64::MAX)), Some(key(2, 0, 0)));
        assert_eq!(after(key(u64::MAX, u8::MAX, u64::MAX)), None);
    }

    #[test]
    fn what_is_no_subvolume_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let is_btrfs = fstatfs(File::open(folder.path()).unwrap()).unwrap().f_type as u64 == BTRFS;
        let error = Subvolume::at(folder.path()).unwrap_err();
        assert!(
            matches!(error, BtrfsError::NotBtrfs) || is_btrfs,
            "a folder of another file system: {error}"
        );
        let missing = Subvolume::at(&folder.path().join("missing")).unwrap_err();
        assert!(matches!(missing, BtrfsError::Open(_)), "{missing}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(
            count in 0_u32..20,
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            if let Ok(found) = parse(count, &bytes) {
                prop_assert_eq!(found.len(), count as usize);
            }
            let _ = (InodeItem::read(&bytes), RootReference::read(&bytes));
            let _ = FolderEntry::read(&bytes);
        }
    }
}
