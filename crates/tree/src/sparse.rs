//! Maps of the data in sparse files.
//!
//! A map is bounded, but a file may have any number of runs. If there are too many, the smallest
//! holes are archived as zeros, and the largest are kept. The choice depends on the file alone.

use std::io;
use std::os::fd::AsFd;

use archive::member::Extent;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Most runs of data in a map; 16 bytes each, twice as many while a map is made.
pub const EXTENTS_MAX: usize = 1 << 16;
/// How often a run may vanish between the two queries for it.
const VANISHED_MAX: usize = 1000;

/// Where a file has data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseMap {
    /// Runs of data in ascending order, [`EXTENTS_MAX`] at most. Between two of them is a hole.
    pub extents: Vec<Extent>,
    /// Holes that were filled with zeros because there were too many.
    pub filled_holes: u64,
    pub filled_bytes: u64,
}

/// Queries the file system for the runs of data of an open file. `None` if there is no hole, or if
/// the file system does not report holes. Call it only if fewer blocks are allocated than the size
/// needs ([`crate::Captured::may_be_sparse`]).
///
/// Moves the file position, which `SEEK_DATA` and `SEEK_HOLE` of lseek(2) need. The map is the
/// state of the file at this moment: read what it lists, and call [`crate::recheck`] afterwards.
///
/// # Errors
/// Errors of lseek(2).
pub fn sparse_map(file: impl AsFd, size_bytes: u64) -> io::Result<Option<SparseMap>> {
    let file = file.as_fd();
    let mut map = SparseMap::default();
    let (mut at, mut vanished) = (0, 0);
    while at < size_bytes {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // lseek(2): ENXIO when there is no data behind the offset.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if start >= size_bytes {
            break;
        }
        at = seek(file, SeekFrom::Hole(start))?.min(size_bytes);
        if at <= start {
            // Another program is changing the file: data have become a hole.
            at = start;
            vanished += 1;
            if vanished > VANISHED_MAX {
                return Ok(None);
            }
            continue;
        }
        map.extents.push(Extent { offset_bytes: start, length_bytes: at - start });
        if map.extents.len() == 2 * EXTENTS_MAX {
            map.fill_smallest_holes(EXTENTS_MAX);
        }
    }
    map.fill_smallest_holes(EXTENTS_MAX);
    let whole = Extent { offset_bytes: 0, length_bytes: size_bytes };
    Ok(if size_bytes == 0 || map.extents == [whole] { None } else { Some(map) })
}

impl SparseMap {
    /// Fills the smallest holes until `runs_max` runs are left; among equal holes the first are
    /// kept. Filling some before all are known gives the same result: a hole that is not among the
    /// largest so far is not among the largest of all.
    fn fill_smallest_holes(&mut self, runs_max: usize) {
        let Some(excess) = self.extents.len().checked_sub(runs_max).filter(|it| *it > 0) else {
            return;
        };
        let hole =
            |pair: &[Extent]| pair[1].offset_bytes - pair[0].offset_bytes - pair[0].length_bytes;
        // Of two equal holes the first counts as larger.
        let mut holes: Vec<(u64, std::cmp::Reverse<u32>)> = (0u32..)
            .zip(self.extents.windows(2))
            .map(|(number, pair)| (hole(pair), std::cmp::Reverse(number)))
            .collect();
        let (_, largest_filled, _) = holes.select_nth_unstable(excess - 1);
        let largest_filled = *largest_filled;
        let mut joined: Vec<Extent> = Vec::with_capacity(runs_max);
        for (number, run) in (0u32..).zip(&self.extents) {
            let before = match joined.last_mut() {
                None => None,
                Some(last) => {
                    let bytes = run.offset_bytes - last.offset_bytes - last.length_bytes;
                    let is_filled = (bytes, std::cmp::Reverse(number - 1)) <= largest_filled;
                    is_filled.then_some((last, bytes))
                }
            };
            match before {
                None => joined.push(*run),
                Some((last, bytes)) => {
                    last.length_bytes += bytes + run.length_bytes;
                    self.filled_holes += 1;
                    self.filled_bytes += bytes;
                }
            }
        }
        self.extents = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_of(holes: &[u64]) -> SparseMap {
        let mut map = SparseMap::default();
        let mut offset_bytes = 0;
        for hole in holes.iter().chain([&0]) {
            map.extents.push(Extent { offset_bytes, length_bytes: 10 });
            offset_bytes += 10 + hole;
        }
        map
    }

    fn holes_of(map: &SparseMap) -> Vec<u64> {
        let pairs = map.extents.windows(2);
        pairs.map(|it| it[1].offset_bytes - it[0].offset_bytes - it[0].length_bytes).collect()
    }

    #[test]
    fn the_smallest_holes_are_filled_and_of_equal_ones_the_last() {
        let mut map = map_of(&[5, 9, 5, 2, 5, 7]);
        map.fill_smallest_holes(4);
        assert_eq!(holes_of(&map), [5, 9, 7]);
        assert_eq!((map.filled_holes, map.filled_bytes), (3, 12));
        let all: u64 = map.extents.iter().map(|run| run.length_bytes).sum();
        assert_eq!(all, 7 * 10 + 12);
        let before = map.clone();
        map.fill_smallest_holes(4);
        assert_eq!(map, before);
    }

    #[test]
    fn filling_early_ends_with_the_same_holes() {
        let sizes: Vec<u64> = (0..400u64).map(|number| number * number % 37 + 1).collect();
        let mut at_once = map_of(&sizes);
        at_once.fill_smallest_holes(30);
        let mut in_steps = SparseMap::default();
        for run in map_of(&sizes).extents {
            in_steps.extents.push(run);
            if in_steps.extents.len() == 60 {
                in_steps.fill_smallest_holes(30);
            }
        }
        in_steps.fill_smallest_holes(30);
        assert_eq!(in_steps, at_once);
    }
}
