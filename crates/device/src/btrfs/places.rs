//! Where the data of files lie, and their checksums, as the trees of btrfs say it.
//!
//! `FIEMAP` has the same places, but looks into the tree of all extents for each one, to tell
//! whether something else shares it: on a disk with heads a seek for nothing. And each leaf of the
//! tree of checksums has those of some MiB of data (crc32c: 16): reads of data wait for it. A disk
//! that has data to read takes long to come to a leaf, as that lies far from them.
//!
//! The kernel answers those only who have `CAP_SYS_ADMIN`.
//!
//! Not here: what to do where it does not, and which data are worth it.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::fstatfs;

use super::ioctl::{Key, Search, Wanted};
use super::{BTRFS, BtrfsError, array, failed, long, parse};
use crate::extents::{EXTENTS_MAX, Extent};

/// The tree of the file that is asked.
const OWN_TREE: u64 = 0;
/// `BTRFS_CSUM_TREE_OBJECTID`, and the object of its items, `BTRFS_EXTENT_CSUM_OBJECTID`.
const CHECKSUM_TREE: u64 = 7;
const CHECKSUMS: u64 = -10_i64 as u64;
/// Kinds of items: `BTRFS_EXTENT_DATA_KEY` and `BTRFS_EXTENT_CSUM_KEY`.
const EXTENT_DATA: u8 = 108;
const EXTENT_CHECKSUM: u8 = 128;
/// `BTRFS_FILE_EXTENT_REG`: neither within the item nor without data.
const REGULAR: u8 = 1;
/// A leaf of 16 KiB has 500 of the longest checksums, of 4 KiB each.
const LEAF_DATA_BYTES: u64 = 1 << 20;

/// Asks for places, with the memory for the answers.
pub struct Places {
    search: Search,
    /// A kernel that refuses one question refuses all.
    is_refused: bool,
}

impl Default for Places {
    fn default() -> Places {
        Places { search: Search::new(), is_refused: false }
    }
}

impl Places {
    /// The first [`EXTENTS_MAX`] extents of a file with this inode number, as of
    /// [`crate::extents::extents`]. Addresses are those of the file system.
    ///
    /// # Errors
    /// `NotBtrfs`, `NotAllowed`, `Open`, `Search`, `Answer`.
    pub fn extents(&mut self, file: BorrowedFd<'_>, inode: u64) -> Result<Vec<Extent>, BtrfsError> {
        self.check(file)?;
        let key = |offset| Key { object: inode, kind: EXTENT_DATA, offset };
        let wanted = Wanted {
            tree: OWN_TREE,
            first: key(0),
            last: key(u64::MAX),
            transaction_min: 0,
            items_max: EXTENTS_MAX as u32,
        };
        let found = self.search(file, &wanted)?;
        found.iter().filter_map(|(key, item)| extent(key.offset, item).transpose()).collect()
    }

    /// Reads the checksums of the data at these addresses into the memory of the kernel, of a file
    /// system that this file is on.
    ///
    /// # Errors
    /// As of [`Places::extents`].
    pub fn load_checksums(
        &mut self,
        file: BorrowedFd<'_>,
        data: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<(), BtrfsError> {
        self.check(file)?;
        for range in data {
            let last = range.end.saturating_sub(1);
            for address in range.step_by(LEAF_DATA_BYTES as usize).chain([last]) {
                // The way to the first item behind it leads through the leaf of those before it.
                let key = |offset| Key { object: CHECKSUMS, kind: EXTENT_CHECKSUM, offset };
                let wanted = Wanted {
                    tree: CHECKSUM_TREE,
                    first: key(address),
                    last: key(u64::MAX),
                    transaction_min: 0,
                    items_max: 1,
                };
                self.search.next(file, &wanted).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn search(
        &mut self,
        file: BorrowedFd<'_>,
        wanted: &Wanted,
    ) -> Result<Vec<(Key, &[u8])>, BtrfsError> {
        let answer = self.search.next(file, wanted).map_err(failed);
        self.is_refused = matches!(answer, Err(BtrfsError::NotAllowed));
        let (count, bytes) = answer?;
        parse(count, bytes)
    }

    fn check(&self, file: BorrowedFd<'_>) -> Result<(), BtrfsError> {
        if self.is_refused {
            return Err(BtrfsError::NotAllowed);
        }
        let status = fstatfs(file).map_err(|error| BtrfsError::Open(error.into()))?;
        if status.f_type as u64 & 0xffff_ffff != BTRFS { Err(BtrfsError::NotBtrfs) } else { Ok(()) }
    }
}

/// `struct btrfs_file_extent_item` as a place on the disk; `None` if it has none of its own.
fn extent(file_offset_bytes: u64, item: &[u8]) -> Result<Option<Extent>, BtrfsError> {
    let [compression] = array(item, 16)?;
    let [kind] = array(item, 20)?;
    if kind != REGULAR {
        return Ok(None);
    }
    let (address, offset, length_bytes) = (long(item, 21)?, long(item, 37)?, long(item, 45)?);
    // A hole.
    if address == 0 {
        return Ok(None);
    }
    // What is compressed is read from its beginning.
    let offset = if compression == 0 { offset } else { 0 };
    let device_offset_bytes = address.saturating_add(offset);
    Ok(Some(Extent { file_offset_bytes, device_offset_bytes, length_bytes }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item(compression: u8, kind: u8, numbers: [u64; 4]) -> Vec<u8> {
        let mut item = vec![0; 16];
        item.extend([compression, 0, 0, 0, kind]);
        numbers.iter().for_each(|it| item.extend(it.to_le_bytes()));
        item
    }

    #[test]
    fn an_item_is_a_place_or_has_none() {
        // Address and length of what lies there, where in it this part begins, and its length.
        let numbers = [1 << 30, 65536, 8192, 4096];
        let place = |bytes: Vec<u8>| extent(12288, &bytes).unwrap();
        let at = |device_offset_bytes| {
            Some(Extent { file_offset_bytes: 12288, device_offset_bytes, length_bytes: 4096 })
        };
        assert_eq!(place(item(0, REGULAR, numbers)), at((1 << 30) + 8192));
        assert_eq!(place(item(1, REGULAR, numbers)), at(1 << 30));
        let in_the_item = 0;
        let without_data = 2;
        assert_eq!(place(item(0, in_the_item, numbers)), None);
        assert_eq!(place(item(0, without_data, numbers)), None);
        let hole = [0, 0, 0, 4096];
        assert_eq!(place(item(0, REGULAR, hole)), None);
        let cut = &item(0, REGULAR, numbers)[..50];
        assert!(matches!(extent(0, cut), Err(BtrfsError::Answer)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_place_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = extent(0, &bytes);
        }
    }
}
