//! Where the files of a chunk lie, and what of them is to be read.

use std::os::fd::{AsFd as _, OwnedFd};

use device::btrfs::places::Places;
use flow::cancel::{Cancel, Stopped};
use tree::{Entry, EntryKind, Status};

use super::batch::{Batch, Fetchable};
use super::limits::ReadOrder;

/// A file that may be worth fetching.
pub(super) struct Candidate<'a> {
    /// Place of its batch in the chunk, and its own among all files of that.
    batch: usize,
    place: usize,
    /// Its number among the works of the batch.
    number: usize,
    entry: &'a Entry,
}

/// A file of which something is to be read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) batch: usize,
    /// Place among the files of the chunk, in the order of names.
    pub(super) place: usize,
    /// Number among the works of its batch.
    pub(super) number: usize,
    pub(super) entry: Entry,
    pub(super) device: u64,
    pub(super) is_cached: bool,
    /// The page cache is known to hold nothing of it.
    pub(super) is_cold: bool,
    pub(super) stretches: Vec<Stretch>,
    /// The addresses are those of the device; else they are inode numbers.
    pub(super) has_addresses: bool,
}

/// A stretch of a file in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Where it lies: reads go by this.
    pub(super) address: u64,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u64,
}

/// All regular files of the batches.
pub(super) fn candidates<W: Fetchable>(batches: &[Batch<W>]) -> Vec<Candidate<'_>> {
    let files = batches.iter().enumerate().flat_map(|(batch, it)| {
        let entries = it.works.iter().map(Fetchable::file).enumerate();
        let is_file = |entry: &&Entry| entry.kind() == EntryKind::File;
        entries.filter_map(move |(number, entry)| Some((batch, number, entry.filter(is_file)?)))
    });
    let numbered = files.enumerate();
    numbered
        .map(|(place, (batch, number, entry))| Candidate { batch, place, number, entry })
        .collect()
}

impl Candidate<'_> {
    /// That of its folder; that of the file itself may be another, where one is mounted on it.
    pub(super) fn device(&self) -> u64 {
        self.entry.directory_device()
    }

    /// The order of the inodes on the disk.
    pub(super) fn order_of_inodes(&self) -> u64 {
        self.entry.inode()
    }

    /// Opens the file and asks where it lies. `None` if there is nothing to be fetched.
    pub(super) fn look(
        &self,
        order: ReadOrder,
        file_bytes_max: u64,
        places: &mut Places,
    ) -> Option<Found> {
        let known = self.entry.status().map(|status| status.version.size_bytes);
        if known.is_some_and(|bytes| bytes == 0 || bytes > file_bytes_max) {
            return None;
        }
        let (file, status) = self.entry.open_file().ok()?;
        let size_bytes = status.version.size_bytes;
        if size_bytes == 0 || size_bytes > file_bytes_max || status.allocated_bytes == 0 {
            return None;
        }
        let cached = device::file::cached_bytes(file.as_fd(), 0..size_bytes);
        let is_cached = cached.is_some_and(|bytes| bytes >= size_bytes);
        let (stretches, has_addresses) =
            if is_cached { (Vec::new(), false) } else { stretches(&file, &status, order, places) };
        let found = Found {
            batch: self.batch,
            place: self.place,
            number: self.number,
            entry: self.entry.clone(),
            device: self.device(),
            is_cached,
            is_cold: cached == Some(0),
            stretches,
            has_addresses,
        };
        (is_cached || !found.stretches.is_empty()).then_some(found)
    }
}

impl Found {
    /// What it takes of the window, in whole pages.
    pub(super) fn bytes(&self) -> u64 {
        let pages = |it: &Stretch| it.length_bytes.next_multiple_of(4096);
        self.stretches.iter().map(pages).sum()
    }
}

/// The stretches, and whether the file system has told their addresses.
fn stretches(
    file: &OwnedFd,
    status: &Status,
    order: ReadOrder,
    places: &mut Places,
) -> (Vec<Stretch>, bool) {
    let size_bytes = status.version.size_bytes;
    let inode = status.identity.inode;
    let whole = Stretch { address: inode, offset_bytes: 0, length_bytes: size_bytes };
    if order == ReadOrder::Inode {
        return (vec![whole], false);
    }
    let of_btrfs = places.extents(file.as_fd(), inode);
    match of_btrfs.or_else(|_| device::extents::extents(file.as_fd())) {
        Ok(extents) => (joined(&extents, size_bytes), true),
        Err(_) => (vec![whole], false),
    }
}

/// Reads what btrfs needs to check the data of these files, which are on one device: else reads of
/// data wait for it, and the heads go there and back.
pub(super) fn load_checksums<'a>(
    files: impl Iterator<Item = &'a Found> + Clone,
    places: &mut Places,
    cancel: &Cancel,
) -> Result<(), Stopped> {
    let with_addresses = files.clone().filter(|it| it.has_addresses);
    let stretches = with_addresses.flat_map(|it| &it.stretches);
    let mut data: Vec<_> = stretches.map(|it| it.address..it.address + it.length_bytes).collect();
    data.sort_unstable_by_key(|it| it.start);
    if let Some(Ok((file, _))) = files.map(|it| it.entry.open_file()).next() {
        let data = data.into_iter().take_while(|_| cancel.check().is_ok());
        // Whatever is not read here comes when the data are read.
        let _ = places.load_checksums(file.as_fd(), data);
    }
    cancel.check()
}

/// The extents as stretches within the file. What goes on where the one before ends is one of
/// them.
fn joined(extents: &[device::extents::Extent], size_bytes: u64) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for extent in extents {
        let offset_bytes = extent.file_offset_bytes;
        let length_bytes = extent.length_bytes.min(size_bytes.saturating_sub(offset_bytes));
        if length_bytes == 0 {
            continue;
        }
        match stretches.last_mut() {
            Some(last)
                if last.address + last.length_bytes == extent.device_offset_bytes
                    && last.offset_bytes + last.length_bytes == offset_bytes =>
            {
                last.length_bytes += length_bytes;
            }
            _ => stretches.push(Stretch {
                address: extent.device_offset_bytes,
                offset_bytes,
                length_bytes,
            }),
        }
    }
    stretches
}
