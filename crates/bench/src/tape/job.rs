//! One run as its cell says: what is written, how, and how much of it.

use device::tape::DriveCompression;

use crate::framing::Framing;
use crate::payload::Data;
use crate::record::{Cell, CellError, Factor, Level, number_in, word_in};

/// Whether a run measures writing or reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file is written, up to its synchronising filemark.
    Write,
    /// A file is written, not measured, and read back.
    Read,
}

/// What a run moves through the drive, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct TapeJob {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// What the blocks hold.
    pub data: Data,
    /// The structure around it.
    pub framing: Framing,
    /// Length of the file; it is rounded up to whole blocks.
    pub file_bytes: u64,
    /// What the drive's compression is to be set to; `None` leaves it.
    pub compression: Option<DriveCompression>,
    /// The user's name for the medium that is wanted; `None` takes the one that is there.
    pub medium: Option<String>,
    /// Memory between the generator and the writer; with 0 one thread generates and writes.
    pub ring_bytes: u64,
    /// What is measured.
    pub operation: Operation,
}

/// Blocks of other grain are no tar, and no ring is made of them.
const UNIT_BYTES: u64 = 512;
/// The largest block that a tape driver takes is smaller (24 bits).
const BLOCK_BYTES_MAX: u64 = 64 << 20;
const RING_BYTES_MAX: u64 = 8 << 30;
/// What a run is, where its cell does not say.
const USUAL_BLOCK_BYTES: u64 = 1 << 20;

impl TapeJob {
    /// From a cell. `length_bytes` is the length of a file where the cell does not name one.
    pub fn from_cell(cell: &Cell, length_bytes: u64) -> Result<TapeJob, CellError> {
        let block_bytes = number_in(cell, "block_bytes", USUAL_BLOCK_BYTES)?;
        if !(UNIT_BYTES..=BLOCK_BYTES_MAX).contains(&block_bytes)
            || !block_bytes.is_multiple_of(UNIT_BYTES)
        {
            return Err(CellError::Impossible(format!(
                "blocks of {block_bytes} bytes: {UNIT_BYTES} to {BLOCK_BYTES_MAX} in steps of \
                 {UNIT_BYTES} are possible"
            )));
        }
        let file_bytes = number_in(cell, "file_bytes", length_bytes)?;
        if file_bytes == 0 {
            return Err(CellError::Impossible("a file of no bytes".to_owned()));
        }
        let ring_bytes = number_in(cell, "ring_bytes", 0)?;
        if ring_bytes > RING_BYTES_MAX {
            let text = format!("a ring of {ring_bytes} bytes: {RING_BYTES_MAX} is the most");
            return Err(CellError::Impossible(text));
        }
        let compression = match word_in(cell, "drive_compression")? {
            None => None,
            Some("on") => Some(DriveCompression::On),
            Some("off") => Some(DriveCompression::Off),
            Some(other) => {
                return Err(CellError::Unknown {
                    what: format!("drive compression {other:?}"),
                    known: "on and off",
                });
            }
        };
        let operation = match word_in(cell, "operation")? {
            None | Some("write") => Operation::Write,
            Some("read") => Operation::Read,
            Some(other) => {
                return Err(CellError::Unknown {
                    what: format!("operation {other:?}"),
                    known: "write and read",
                });
            }
        };
        let parsed = |error: &dyn std::fmt::Display| CellError::Impossible(error.to_string());
        Ok(TapeJob {
            block_bytes: block_bytes as usize,
            data: word_in(cell, "data")?
                .unwrap_or("random")
                .parse()
                .map_err(|error| parsed(&error))?,
            framing: word_in(cell, "framing")?
                .unwrap_or("raw")
                .parse()
                .map_err(|error| parsed(&error))?,
            file_bytes,
            compression,
            medium: word_in(cell, "medium")?.map(str::to_owned),
            ring_bytes,
            operation,
        })
    }

    /// Blocks of the file.
    pub fn blocks(&self) -> u64 {
        self.file_bytes.div_ceil(self.block_bytes as u64)
    }

    /// Bytes of the file, in whole blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks() * self.block_bytes as u64
    }

    /// Blocks of the ring.
    pub fn ring_blocks(&self) -> usize {
        (self.ring_bytes / self.block_bytes as u64).max(2) as usize
    }

    /// Whether the combination means anything: nothing is generated while a file is read, so that
    /// one size of the ring stands for all of them. `standing_ring_bytes` is that one.
    pub fn is_sensible(&self, standing_ring_bytes: Option<u64>) -> bool {
        self.operation == Operation::Write
            || standing_ring_bytes.is_none_or(|bytes| bytes == self.ring_bytes)
    }
}

/// The first size of the ring of a plan: the one that stands for all where it means nothing.
pub fn standing_ring_bytes(factors: &[Factor]) -> Option<u64> {
    let ring = factors.iter().find(|factor| factor.name == "ring_bytes")?;
    match ring.levels.first()? {
        Level::Number(bytes) => Some(*bytes),
        Level::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::cell;

    #[test]
    fn a_cell_says_what_passes() {
        let plain = TapeJob::from_cell(&cell(&[]), 3 << 20).unwrap();
        assert_eq!((plain.block_bytes, plain.bytes(), plain.compression), (1 << 20, 3 << 20, None));
        let named = cell(&[
            ("block_bytes", "65536"),
            ("file_bytes", "65537"),
            ("drive_compression", "off"),
            ("medium", "LTO-4"),
            ("ring_bytes", "1048576"),
            ("operation", "read"),
            ("data", "zeros"),
            ("framing", "tar"),
        ]);
        let named = TapeJob::from_cell(&named, 1).unwrap();
        assert_eq!((named.blocks(), named.bytes(), named.ring_blocks()), (2, 131_072, 16));
        assert_eq!(named.compression, Some(DriveCompression::Off));
        assert_eq!((named.data.clone(), named.framing), (Data::Zeros, Framing::Tar));
        assert!(!named.is_sensible(Some(0)) && named.is_sensible(Some(1 << 20)));
        assert!(TapeJob { operation: Operation::Write, ..named }.is_sensible(Some(0)));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (levels, expected) in [
            (vec![("block_bytes", "1000")], "in steps of 512"),
            (vec![("block_bytes", "0")], "512 to"),
            (vec![("block_bytes", "many")], "a number was expected"),
            (vec![("file_bytes", "0")], "no bytes"),
            (vec![("ring_bytes", "99999999999")], "is the most"),
            (vec![("operation", "erase")], "known are write and read"),
            (vec![("drive_compression", "7")], "a word was expected"),
            (vec![("framing", "cpio")], "cpio"),
        ] {
            let error = TapeJob::from_cell(&cell(&levels), 1).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
