//! Files already archived under another name.
//!
//! A file with several links is kept here from its first name to its last. So the table holds only
//! files with names still to come (or outside the sources). Its size is bounded: 32 bytes a file,
//! about 33 MiB when full. A file that no longer fits is archived as a separate file, which loses
//! only the link. The caller gets an error for it, to report it.
//!
//! File systems reuse inode numbers as soon as a file is gone. So two names are one file only if
//! the generation is the same as well.

use std::collections::HashMap;

use crate::identity::{Generation, Identity};

/// The table of files with several links.
#[derive(Debug, Default)]
pub struct HardLinks {
    devices: Vec<u64>,
    files: HashMap<Key, First>,
}

/// The answer of the table for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Not seen before: archive the content.
    First,
    /// Seen before; the value that the caller gave at the first name.
    Again(u64),
    /// Its inode number was seen before, for another file: archive the content. The value is what
    /// the caller gave at that file's first name.
    Reused(u64),
}

/// The table is full: archive the content. Later names of this file will not be links to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files with hard links at once, archived as separate files")]
pub struct LinksFull;

/// Most files in the table: seven eighths of 2^20, the load at which the table would double.
pub const FILES_MAX: usize = (1 << 20) / 8 * 7;
/// Most devices. Each mounted file system is one.
const DEVICES_MAX: usize = 1 << 16;

/// Halves of 64-bit numbers, so that key and value together take 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    inode: [u32; 2],
    device_index: u32,
}

#[derive(Clone, Copy, Debug)]
struct First {
    generation: [u32; 2],
    reference: [u32; 2],
    remaining: u32,
}

impl HardLinks {
    /// An empty table.
    pub fn new() -> HardLinks {
        HardLinks::default()
    }

    /// Notes one name of a file with `links` names in all. `reference` is kept at the first name
    /// and returned at the later ones. Call it only for `links > 1`.
    ///
    /// # Errors
    /// [`LinksFull`].
    pub fn note(
        &mut self,
        identity: Identity,
        generation: Generation,
        links: u64,
        reference: u64,
    ) -> Result<Link, LinksFull> {
        let key = Key {
            inode: halves(identity.inode),
            device_index: self.device_index(identity.device).ok_or(LinksFull)?,
        };
        let generation = halves(generation.0);
        let mut link = Link::First;
        if let Some(first) = self.files.get_mut(&key) {
            let earlier = whole(first.reference);
            if first.generation == generation {
                first.remaining -= 1;
                if first.remaining == 0 {
                    self.files.remove(&key);
                }
                return Ok(Link::Again(earlier));
            }
            self.files.remove(&key);
            link = Link::Reused(earlier);
        }
        if self.files.len() == FILES_MAX {
            return Err(LinksFull);
        }
        let remaining = u32::try_from(links.saturating_sub(1)).unwrap_or(u32::MAX);
        if remaining > 0 {
            let reference = halves(reference);
            self.files.insert(key, First { generation, reference, remaining });
        }
        Ok(link)
    }

    /// Number of files with names still to come.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// No file is waiting for another name.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn device_index(&mut self, device: u64) -> Option<u32> {
        let index = self.devices.iter().position(|&known| known == device).or_else(|| {
            (self.devices.len() < DEVICES_MAX).then(|| {
                self.devices.push(device);
                self.devices.len() - 1
            })
        })?;
        u32::try_from(index).ok()
    }
}

fn halves(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

fn whole(halves: [u32; 2]) -> u64 {
    u64::from(halves[0]) << 32 | u64::from(halves[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Generation = Generation(u64::MAX - 7);
    const NEW: Generation = Generation(3);

    #[test]
    fn a_file_leaves_the_table_with_its_last_name() {
        let mut links = HardLinks::new();
        let file = Identity { device: 7, inode: u64::MAX - 3 };
        let elsewhere = Identity { device: 8, ..file };
        let mut note = |file, count, reference| links.note(file, OLD, count, reference);
        assert_eq!(note(file, 3, u64::MAX - 1), Ok(Link::First));
        assert_eq!(note(elsewhere, 2, 5), Ok(Link::First));
        assert_eq!(note(file, 3, 9), Ok(Link::Again(u64::MAX - 1)));
        assert_eq!(note(file, 3, 9), Ok(Link::Again(u64::MAX - 1)));
        assert_eq!(note(elsewhere, 2, 9), Ok(Link::Again(5)));
        assert!(links.is_empty());
    }

    #[test]
    fn an_inode_number_that_is_used_again_is_another_file() {
        let mut links = HardLinks::new();
        let file = Identity { device: 7, inode: 1 };
        assert_eq!(links.note(file, OLD, 2, 1), Ok(Link::First));
        assert_eq!(links.note(file, NEW, 3, 2), Ok(Link::Reused(1)));
        assert_eq!(links.note(file, NEW, 3, 3), Ok(Link::Again(2)));
        assert_eq!(links.note(file, OLD, 2, 4), Ok(Link::Reused(2)));
        assert_eq!(links.note(file, OLD, 2, 5), Ok(Link::Again(4)));
        assert!(links.is_empty());
    }

    #[test]
    fn a_slot_is_32_bytes() {
        assert_eq!(size_of::<(Key, First)>(), 32);
    }
}
