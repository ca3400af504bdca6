//! Maps of sparse files: GNU's format 1.0 as text at the front of the content, the checks of all
//! maps, and their limit.
//!
//! We write format 1.0 and read it here. The maps of formats 0.0 and 0.1 (pax records) and of old
//! GNU and star headers (binary entries) are collected in `decode` and checked here. Source: GNU
//! tar manual, "Storing Sparse Files".

use crate::header::{UNIT_BYTES, Unit};
use crate::malformed::Malformed;
use crate::member::Extent;
use crate::pax;

/// Most data runs of one file that are encoded, and the default limit for decoding: 16 MiB of map.
pub const EXTENTS_MAX: usize = 1 << 20;

/// Checks order and bounds of a map and returns the sum of its runs.
///
/// # Errors
/// `MapOrder` and `MapBeyondEnd`.
pub fn check_extents(extents: &[Extent], size_bytes: u64) -> Result<u64, Malformed> {
    let mut end = 0;
    let mut sum = 0;
    for Extent { offset_bytes, length_bytes } in extents.iter().copied() {
        if offset_bytes < end {
            return Err(Malformed::MapOrder { offset_bytes });
        }
        end = offset_bytes
            .checked_add(length_bytes)
            .filter(|end| *end <= size_bytes)
            .ok_or(Malformed::MapBeyondEnd { offset_bytes })?;
        // No overflow: disjoint runs below `size_bytes` cannot sum to more than it.
        sum += length_bytes;
    }
    Ok(sum)
}

/// Checks what writers must ensure in addition to [`check_extents`]: GNU tar 1.34 reads every run
/// from the start of a unit, libarchive 3.6 right behind the previous run (found by trying both).
/// So only runs of whole units mean the same to both. The last one may end anywhere.
pub(crate) fn check_whole_units(extents: &[Extent]) -> Result<(), Malformed> {
    let inner = &extents[..extents.len().saturating_sub(1)];
    match inner.iter().find(|extent| extent.length_bytes % UNIT_BYTES as u64 != 0) {
        Some(extent) => Err(Malformed::MapPartialUnit { offset_bytes: extent.offset_bytes }),
        None => Ok(()),
    }
}

/// Widens the data runs of a file of `size_bytes` to whole units of the file and joins those that
/// touch, as the encoder requires, whatever the granularity of the file system's holes. The last
/// run may end with the file. Runs have to be in ascending order.
#[must_use]
pub fn align_extents(extents: &[Extent], size_bytes: u64) -> Vec<Extent> {
    let unit = UNIT_BYTES as u64;
    let mut aligned: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents.iter().filter(|extent| extent.length_bytes > 0) {
        let start = extent.offset_bytes / unit * unit;
        let end = extent.offset_bytes.saturating_add(extent.length_bytes);
        let end = end.checked_next_multiple_of(unit).unwrap_or(size_bytes).min(size_bytes);
        match aligned.last_mut() {
            Some(last) if start <= last.offset_bytes + last.length_bytes => {
                last.length_bytes = last.length_bytes.max(end.saturating_sub(last.offset_bytes));
            }
            _ if start < end => {
                aligned.push(Extent { offset_bytes: start, length_bytes: end - start });
            }
            _ => {}
        }
    }
    aligned
}

/// The entry behind the last run from which GNU tar takes the size of a file that ends in a hole.
fn final_hole(extents: &[Extent], size_bytes: u64) -> Option<Extent> {
    let end = extents.last().map_or(0, |last| last.offset_bytes + last.length_bytes);
    (extents.is_empty() || end < size_bytes)
        .then_some(Extent { offset_bytes: size_bytes, length_bytes: 0 })
}

/// Length of what [`push_map`] appends, padding included.
pub(crate) fn map_bytes(extents: &[Extent], size_bytes: u64) -> u64 {
    let final_hole = final_hole(extents, size_bytes);
    let entries = extents.len() + usize::from(final_hole.is_some());
    let lines = extents.iter().chain(&final_hole).map(|extent| {
        pax::decimal_bytes(extent.offset_bytes) + pax::decimal_bytes(extent.length_bytes) + 2
    });
    let text = pax::decimal_bytes(entries as u64) + 1 + lines.sum::<usize>();
    text.next_multiple_of(UNIT_BYTES) as u64
}

/// Appends a map in format 1.0: the number of entries, then offset and length of each, one decimal
/// number a line, padded with NULs to whole units.
pub(crate) fn push_map(extents: &[Extent], size_bytes: u64, out: &mut Vec<u8>) {
    let start = out.len();
    let final_hole = final_hole(extents, size_bytes);
    let mut push_line = |value: u64| {
        pax::push_decimal(value, out);
        out.push(b'\n');
    };
    push_line((extents.len() + usize::from(final_hole.is_some())) as u64);
    for extent in extents.iter().chain(&final_hole) {
        push_line(extent.offset_bytes);
        push_line(extent.length_bytes);
    }
    let text = out.len() - start;
    out.resize(start + text.next_multiple_of(UNIT_BYTES), 0);
}

/// Reads a map in format 1.0, unit by unit.
#[derive(Debug)]
pub struct MapReader {
    extents_max: usize,
    numbers_left: Option<u64>,
    digits: Option<u64>,
    offset_bytes: Option<u64>,
    extents: Vec<Extent>,
    units: u64,
}

impl MapReader {
    /// A reader that refuses maps of more than `extents_max` entries.
    #[must_use]
    pub fn new(extents_max: usize) -> Self {
        Self {
            extents_max,
            numbers_left: None,
            digits: None,
            offset_bytes: None,
            extents: Vec::new(),
            units: 0,
        }
    }

    /// Takes the next unit of the content; `true` if the map ends in it.
    ///
    /// # Errors
    /// `Number` and `TooMany`. [`check_extents`] checks order and bounds.
    pub fn push(&mut self, unit: &Unit) -> Result<bool, Malformed> {
        self.units += 1;
        for byte in unit {
            match byte {
                b'0'..=b'9' => {
                    let value = self.digits.unwrap_or(0).checked_mul(10);
                    let value = value.and_then(|value| value.checked_add(u64::from(byte - b'0')));
                    self.digits = Some(value.ok_or(Malformed::MapNumber)?);
                }
                b'\n' => {
                    let value = self.digits.take().ok_or(Malformed::MapNumber)?;
                    self.take_number(value)?;
                    if self.numbers_left == Some(0) {
                        return Ok(true);
                    }
                }
                _ => return Err(Malformed::MapNumber),
            }
        }
        Ok(false)
    }

    /// Units taken so far.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The runs, without entries of length 0.
    #[must_use]
    pub fn into_extents(self) -> Vec<Extent> {
        self.extents
    }

    fn take_number(&mut self, value: u64) -> Result<(), Malformed> {
        let Some(left) = &mut self.numbers_left else {
            if value > self.extents_max as u64 {
                return Err(Malformed::MapTooMany { limit: self.extents_max });
            }
            self.numbers_left = Some(2 * value);
            return Ok(());
        };
        *left -= 1;
        match self.offset_bytes.take() {
            None => self.offset_bytes = Some(value),
            Some(offset_bytes) if value > 0 => {
                self.extents.push(Extent { offset_bytes, length_bytes: value });
            }
            Some(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(map: &[u8], extents_max: usize) -> Result<Vec<Extent>, Malformed> {
        let mut reader = MapReader::new(extents_max);
        for unit in map.chunks_exact(UNIT_BYTES) {
            if reader.push(unit.try_into().expect("a whole unit"))? {
                assert_eq!(reader.units() as usize, map.len() / UNIT_BYTES);
                return Ok(reader.into_extents());
            }
        }
        panic!("the map has no end");
    }

    #[test]
    fn maps_that_lie_are_refused() {
        let check = |text: &str, expected| {
            let mut map = text.as_bytes().to_vec();
            map.resize(text.len().next_multiple_of(UNIT_BYTES), 0);
            assert_eq!(read(&map, 3), Err(expected), "{text}");
        };
        check("4\n", Malformed::MapTooMany { limit: 3 });
        check("\n", Malformed::MapNumber);
        check("1\n5", Malformed::MapNumber);
        check("1\n-5\n", Malformed::MapNumber);
        check("99999999999999999999\n", Malformed::MapNumber);
        let extent = |offset_bytes, length_bytes| Extent { offset_bytes, length_bytes };
        let check = |extents: &[Extent], size, expected| {
            assert_eq!(check_extents(extents, size), expected, "{extents:?}");
        };
        check(&[extent(0, 5), extent(5, 5)], 10, Ok(10));
        check(&[extent(0, 5), extent(4, 1)], 10, Err(Malformed::MapOrder { offset_bytes: 4 }));
        check(&[extent(6, 5)], 10, Err(Malformed::MapBeyondEnd { offset_bytes: 6 }));
        check(&[extent(u64::MAX, 2)], 10, Err(Malformed::MapBeyondEnd { offset_bytes: u64::MAX }));
    }

    proptest! {
        #[test]
        fn aligned_runs_cover_the_same_bytes(
            gaps in prop::collection::vec((0u64..2000, 1u64..2000), 0..20),
            tail in 0u64..2000,
        ) {
            let mut extents = Vec::new();
            let mut end = 0;
            for (gap, length_bytes) in gaps {
                extents.push(Extent { offset_bytes: end + gap, length_bytes });
                end += gap + length_bytes;
            }
            let size_bytes = end + tail;
            let aligned = align_extents(&extents, size_bytes);
            prop_assert!(check_extents(&aligned, size_bytes).is_ok());
            prop_assert_eq!(check_whole_units(&aligned), Ok(()));
            let units = |extents: &[Extent]| {
                let mut units = std::collections::BTreeSet::new();
                for extent in extents {
                    let end = extent.offset_bytes + extent.length_bytes;
                    units.extend(extent.offset_bytes / 512..end.div_ceil(512));
                }
                units
            };
            prop_assert_eq!(units(&aligned), units(&extents));
            prop_assert_eq!(align_extents(&aligned, size_bytes), aligned);
        }

        #[test]
        fn maps_round_trip(
            gaps in prop::collection::vec((1u64..1 << 40, 1u64..1 << 40), 0..200),
            tail in 0u64..3,
        ) {
            let mut extents = Vec::new();
            let mut end = 0;
            for (gap, length_bytes) in gaps {
                extents.push(Extent { offset_bytes: end + gap, length_bytes });
                end += gap + length_bytes;
            }
            let mut map = Vec::new();
            push_map(&extents, end + tail, &mut map);
            prop_assert_eq!(map.len() as u64, map_bytes(&extents, end + tail));
            prop_assert_eq!(read(&map, 201)?, extents);
        }
    }
}
