//! The ioctls of `linux/btrfs.h` that no library wraps.
//!
//! Structures have the layout of the kernel's header; the assertions below hold their sizes, which
//! are part of each request's number. What the answers mean is in the parent module.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::ioctl::opcode;

const MAGIC: u8 = 0x94;
/// Bytes of the answer to one search: more than any item, and a node has at most 64 KiB.
const SEARCH_BYTES: usize = 128 << 10;
/// Most bytes that `BTRFS_IOC_INO_PATHS` fills (fs/btrfs/ioctl.c, `btrfs_ioctl_ino_to_path`).
const PATHS_BYTES: usize = 4096;
/// Bytes of the answer's header: bytes left and missing, paths there and missed.
const PATHS_HEADER_BYTES: usize = 16;
const LOOKUP_BYTES: usize = 4080;

/// `struct btrfs_ioctl_search_key`.
#[repr(C)]
#[derive(Clone, Copy)]
struct SearchKey {
    tree: u64,
    object_min: u64,
    object_max: u64,
    offset_min: u64,
    offset_max: u64,
    transaction_min: u64,
    transaction_max: u64,
    kind_min: u32,
    kind_max: u32,
    items: u32,
    unused: u32,
    reserved: [u64; 4],
}

/// `struct btrfs_ioctl_search_args_v2`, with room for the answer.
#[repr(C)]
struct SearchArguments {
    key: SearchKey,
    bytes: u64,
    buffer: [u8; SEARCH_BYTES],
}

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct LookupArguments {
    tree: u64,
    object: u64,
    name: [u8; LOOKUP_BYTES],
}

/// `struct btrfs_ioctl_ino_path_args`.
#[repr(C)]
struct PathsArguments {
    inode: u64,
    bytes: u64,
    reserved: [u64; 4],
    answer: u64,
}

/// `struct btrfs_ioctl_fs_info_args`.
#[repr(C)]
struct FileSystemArguments {
    device_max: u64,
    devices: u64,
    identity: [u8; 16],
    sizes: [u32; 3],
    checksum: [u16; 2],
    flags: u64,
    generation: u64,
    metadata_identity: [u8; 16],
    reserved: [u8; 944],
}

/// `struct btrfs_ioctl_get_subvol_info_args`.
#[repr(C)]
struct SubvolumeArguments {
    tree: u64,
    name: [u8; 256],
    parent: u64,
    folder: u64,
    generation: u64,
    flags: u64,
    identity: [u8; 16],
    parent_identity: [u8; 16],
    received_identity: [u8; 16],
    changed_transaction: u64,
    made_transaction: u64,
    rest: [u64; 18],
}

const _: () = assert!(size_of::<SearchKey>() == 104);
const _: () = assert!(size_of::<LookupArguments>() == 4096);
const _: () = assert!(size_of::<PathsArguments>() == 56);
const _: () = assert!(size_of::<FileSystemArguments>() == 1024);
const _: () = assert!(size_of::<SubvolumeArguments>() == 504);

/// The number has the size without the buffer behind it.
const TREE_SEARCH_V2: u64 = opcode::read_write::<[u64; 14]>(MAGIC, 17) as u64;
const INO_LOOKUP: u64 = opcode::read_write::<LookupArguments>(MAGIC, 18) as u64;
const WAIT_SYNC: u64 = opcode::write::<u64>(MAGIC, 22) as u64;
const START_SYNC: u64 = opcode::read::<u64>(MAGIC, 24) as u64;
const FS_INFO: u64 = opcode::read::<FileSystemArguments>(MAGIC, 31) as u64;
const INO_PATHS: u64 = opcode::read_write::<PathsArguments>(MAGIC, 35) as u64;
const GET_SUBVOL_INFO: u64 = opcode::read::<SubvolumeArguments>(MAGIC, 60) as u64;

/// `BTRFS_FS_INFO_FLAG_GENERATION`.
const WITH_GENERATION: u64 = 1 << 1;

/// The key of an item, in the order of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: u64,
    pub(super) kind: u8,
    pub(super) offset: u64,
}

/// What a search looks for: items from the first key to the last, in leaves that were written in
/// this transaction or later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) tree: u64,
    pub(super) first: Key,
    pub(super) last: Key,
    pub(super) transaction_min: u64,
    /// Most items of one answer.
    pub(super) items_max: u32,
}

/// The answers of a search, one after the other in the same memory.
pub(super) struct Search(Box<SearchArguments>);

impl Search {
    pub(super) fn new() -> Search {
        let key = SearchKey {
            tree: 0,
            object_min: 0,
            object_max: 0,
            offset_min: 0,
            offset_max: 0,
            transaction_min: 0,
            transaction_max: u64::MAX,
            kind_min: 0,
            kind_max: 0,
            items: 0,
            unused: 0,
            reserved: [0; 4],
        };
        let buffer = [0; SEARCH_BYTES];
        Search(Box::new(SearchArguments { key, bytes: SEARCH_BYTES as u64, buffer }))
    }

    /// The next items that the kernel finds, as it lays them out, and how many they are.
    pub(super) fn next(
        &mut self,
        file: BorrowedFd<'_>,
        wanted: &Wanted,
    ) -> io::Result<(u32, &[u8])> {
        let arguments = &mut *self.0;
        arguments.key.tree = wanted.tree;
        arguments.key.object_min = wanted.first.object;
        arguments.key.kind_min = wanted.first.kind.into();
        arguments.key.offset_min = wanted.first.offset;
        arguments.key.object_max = wanted.last.object;
        arguments.key.kind_max = wanted.last.kind.into();
        arguments.key.offset_max = wanted.last.offset;
        arguments.key.transaction_min = wanted.transaction_min;
        arguments.key.items = wanted.items_max;
        arguments.bytes = SEARCH_BYTES as u64;
        let pointer: *mut SearchArguments = arguments;
        // SAFETY: the kernel reads the key and the number of bytes, and writes at most so many
        // behind them; all of it lives across the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TREE_SEARCH_V2 as _, pointer) })?;
        Ok((arguments.key.items, &arguments.buffer))
    }
}

/// The path of a folder below the root of the subvolume with this tree, with a slash behind each
/// name.
pub(super) fn folder_path(file: BorrowedFd<'_>, tree: u64, folder: u64) -> io::Result<Vec<u8>> {
    let mut arguments = Box::new(LookupArguments { tree, object: folder, name: [0; LOOKUP_BYTES] });
    let pointer: *mut LookupArguments = &raw mut *arguments;
    // SAFETY: the kernel reads and writes this structure, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), INO_LOOKUP as _, pointer) })?;
    let bytes = arguments.name.iter().position(|byte| *byte == 0).unwrap_or(LOOKUP_BYTES);
    Ok(arguments.name[..bytes].to_vec())
}

/// The paths of an inode below the root of the subvolume of the file, as far as 4 KiB hold them.
///
/// # Errors
/// `ENAMETOOLONG` where they hold none; `ENOENT` where it has no name.
pub(super) fn paths(file: BorrowedFd<'_>, inode: u64) -> io::Result<Vec<Vec<u8>>> {
    let mut answer = [0_u64; PATHS_BYTES / 8];
    let mut arguments = PathsArguments {
        inode,
        bytes: PATHS_BYTES as u64,
        reserved: [0; 4],
        answer: answer.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel reads the structure and writes at most `bytes` at `answer`; both live
    // across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), INO_PATHS as _, &raw mut arguments) })?;
    let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let (there, missed) = (number(8) as usize, number(12));
    if there == 0 && missed > 0 {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    let behind_header = &bytes[PATHS_HEADER_BYTES..];
    let path = |place: &u64| {
        let path = behind_header.get(usize::try_from(*place).ok()?..)?;
        Some(path[..path.iter().position(|byte| *byte == 0)?].to_vec())
    };
    Ok(answer[PATHS_HEADER_BYTES / 8..].iter().take(there).filter_map(path).collect())
}

/// What a file system is, and which transaction its changes go into.
pub(super) struct FileSystem {
    pub(super) identity: [u8; 16],
    /// The number of the running transaction, or of the last one where none runs: no later change
    /// has a lower one. `None` before Linux 5.9.
    pub(super) generation: Option<u64>,
}

/// `BTRFS_IOC_FS_INFO`.
pub(super) fn file_system(file: BorrowedFd<'_>) -> io::Result<FileSystem> {
    let mut arguments = FileSystemArguments {
        device_max: 0,
        devices: 0,
        identity: [0; 16],
        sizes: [0; 3],
        checksum: [0; 2],
        flags: WITH_GENERATION,
        generation: 0,
        metadata_identity: [0; 16],
        reserved: [0; 944],
    };
    // SAFETY: the kernel reads and writes this structure, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), FS_INFO as _, &raw mut arguments) })?;
    let has_generation = arguments.flags & WITH_GENERATION != 0 && arguments.generation > 0;
    let generation = has_generation.then_some(arguments.generation);
    Ok(FileSystem { identity: arguments.identity, generation })
}

/// What a subvolume is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub(super) tree: u64,
    pub(super) flags: u64,
    pub(super) identity: [u8; 16],
    /// Of a snapshot: what it was taken of; else zeros.
    pub(super) parent_identity: [u8; 16],
    /// The transaction of its last change, and the one that made it.
    pub(super) changed: u64,
    pub(super) made: u64,
}

/// `BTRFS_IOC_GET_SUBVOL_INFO`, of the subvolume that a file is in.
pub(super) fn subvolume(file: BorrowedFd<'_>) -> io::Result<Info> {
    let mut arguments = SubvolumeArguments {
        tree: 0,
        name: [0; 256],
        parent: 0,
        folder: 0,
        generation: 0,
        flags: 0,
        identity: [0; 16],
        parent_identity: [0; 16],
        received_identity: [0; 16],
        changed_transaction: 0,
        made_transaction: 0,
        rest: [0; 18],
    };
    // SAFETY: the kernel writes this structure, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), GET_SUBVOL_INFO as _, &raw mut arguments) })?;
    Ok(Info {
        tree: arguments.tree,
        flags: arguments.flags,
        identity: arguments.identity,
        parent_identity: arguments.parent_identity,
        changed: arguments.changed_transaction,
        made: arguments.made_transaction,
    })
}

/// Begins to commit the running transaction. Returns its number, or that of the last one where none
/// runs.
pub(super) fn start_commit(file: BorrowedFd<'_>) -> io::Result<u64> {
    let mut transaction = 0_u64;
    // SAFETY: the kernel writes one number, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), START_SYNC as _, &raw mut transaction) })?;
    Ok(transaction)
}

/// Waits until a transaction is on the disk.
pub(super) fn wait_for_commit(file: BorrowedFd<'_>, transaction: u64) -> io::Result<()> {
    // SAFETY: the kernel reads one number, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), WAIT_SYNC as _, &raw const transaction) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
