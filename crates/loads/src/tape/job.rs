//! One run as its cell says: what is written, how, and how much of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use device::tape::DriveCompression;

use crate::framing::{Framing, Layout};
use crate::payload::Data;
use crate::payload::tree::Content;
use experiment::record::{Cell, CellError, Factor, Level, number_in, word_in};

/// Whether a run measures writing or reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeWork {
    /// A file is written, up to its synchronising filemark.
    Write,
    /// A file is written, not measured, and read back.
    Read,
}

/// What a run moves through the drive, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct TapeJob {
    pub block_bytes: usize,
    /// What the blocks hold.
    pub data: Data,
    /// The structure around it.
    pub framing: Framing,
    /// Length of the run. Each of its files is rounded up to whole blocks; a tree ends where it
    /// ends.
    pub run_bytes: u64,
    /// Files of the run, with a filemark behind each; `None` cuts it where a program that writes
    /// so would.
    pub files: Option<u64>,
    /// Bytes of one read(2) from the disk; `None` reads as much as there is room in a block.
    pub read_block_bytes: Option<usize>,
    /// What is in the tree that is written, once that is known.
    pub tree: Option<Content>,
    /// What the drive's compression is to be set to; `None` leaves it.
    pub compression: Option<DriveCompression>,
    /// The user's name for the medium that is wanted; `None` takes the one that is there.
    pub medium: Option<String>,
    /// Memory between the generator and the writer; with 0 one thread generates and writes.
    pub ring_bytes: u64,
    /// What is measured.
    pub operation: TapeWork,
}

/// Blocks of other grain are no tar, and no ring is made of them.
const UNIT_BYTES: u64 = 512;
/// The largest block that a tape driver takes is smaller (24 bits).
const BLOCK_BYTES_MAX: u64 = 64 << 20;
const RING_BYTES_MAX: u64 = 8 << 30;
/// More filemarks than this make no run.
const FILES_MAX: u64 = 100_000;
/// What stands around a member of a tar archive at the most, unless names are long: a header, an
/// extended one with its records, and padding.
const AROUND_MEMBER_BYTES: u64 = 2048;
/// What a run is, where its cell does not say.
const USUAL_BLOCK_BYTES: u64 = 1 << 20;

impl TapeJob {
    /// From a cell. `length_bytes` is the length of a run where the cell does not name one.
    pub fn from_cell(cell: &Cell, length_bytes: u64) -> Result<TapeJob, CellError> {
        let block_bytes = block_size_in(cell, "block_bytes", USUAL_BLOCK_BYTES)?;
        let read_block_bytes = if cell.contains_key("read_block_bytes") {
            Some(block_size_in(cell, "read_block_bytes", USUAL_BLOCK_BYTES)? as usize)
        } else {
            None
        };
        let run_bytes = number_in(cell, "file_bytes", length_bytes)?;
        if run_bytes == 0 {
            return Err(CellError::Impossible("a file of no bytes".to_owned()));
        }
        let files = match number_in(cell, "files", 1)? {
            files if (1..=FILES_MAX).contains(&files) => {
                cell.contains_key("files").then_some(files)
            }
            files => {
                let text = format!("{files} files in a run: 1 to {FILES_MAX} are possible");
                return Err(CellError::Impossible(text));
            }
        };
        let ring_bytes = number_in(cell, "ring_bytes", 0)?;
        if ring_bytes > RING_BYTES_MAX {
            let text = format!("a ring of {ring_bytes} bytes: {RING_BYTES_MAX} is the most");
            return Err(CellError::Impossible(text));
        }
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
            run_bytes,
            files,
            read_block_bytes,
            tree: None,
            compression: compression_in(cell)?,
            medium: word_in(cell, "medium")?.map(str::to_owned),
            ring_bytes,
            operation: operation_in(cell)?,
        })
    }

    /// With what is known of its tree.
    #[must_use]
    pub fn with_tree(mut self, trees: &BTreeMap<PathBuf, Content>) -> TapeJob {
        let tree = self.data.tree(self.read_block_bytes);
        self.tree = tree.and_then(|path| trees.get(path)).copied();
        self
    }

    /// How the run is cut into files.
    pub fn layout(&self) -> Layout {
        let block_bytes = self.block_bytes as u64;
        let files = self.files.unwrap_or(1);
        let file_blocks = self.run_bytes.div_ceil(files).div_ceil(block_bytes);
        let blocks = file_blocks.saturating_mul(files);
        let most = self.framing.file_bytes_max().filter(|_| self.files.is_none());
        let most = most.map_or(file_blocks, |bytes| (bytes / block_bytes).max(1));
        Layout { file_blocks: file_blocks.min(most), blocks }
    }

    /// Blocks of the run; of a tree about so many, where it ends before the length of the run.
    pub fn blocks(&self) -> u64 {
        let most = self.layout().blocks;
        let Some(content) = self.tree else { return most };
        let around = match self.framing {
            Framing::Raw => 0,
            Framing::Tar | Framing::Bacula => content.objects * AROUND_MEMBER_BYTES,
        };
        most.min((content.bytes + around).div_ceil(self.block_bytes as u64) + 1)
    }

    /// Bytes of the run, in whole blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks().saturating_mul(self.block_bytes as u64)
    }

    /// Filemarks of the run, one behind each file.
    pub fn filemarks(&self) -> u64 {
        self.blocks().div_ceil(self.layout().file_blocks.max(1))
    }

    /// Blocks of the ring.
    pub fn ring_blocks(&self) -> usize {
        (self.ring_bytes / self.block_bytes as u64).max(2) as usize
    }

    /// Whether the combination means anything. Nothing is generated while a file is read back, so
    /// that one size of the ring stands for all of them; and data that are made are not read from
    /// anywhere, so that one size of reads does.
    pub fn is_sensible(&self, standing: &Standing) -> bool {
        let is_made = !matches!(self.data, Data::Path(_));
        let is_read_back = self.operation == TapeWork::Read;
        let is = |standing: Option<u64>, own: u64| standing.is_none_or(|bytes| bytes == own);
        (!is_read_back || is(standing.ring_bytes, self.ring_bytes))
            && (!(is_made || is_read_back)
                || is(standing.read_block_bytes, self.read_block_bytes.unwrap_or(0) as u64))
    }
}

/// The first levels of a plan: those that stand for all where a factor means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub ring_bytes: Option<u64>,
    pub read_block_bytes: Option<u64>,
}

impl Standing {
    /// Of a plan with these factors.
    pub fn of(factors: &[Factor]) -> Standing {
        let first = |name: &str| {
            let factor = factors.iter().find(|factor| factor.name == name)?;
            match factor.levels.first()? {
                Level::Number(bytes) => Some(*bytes),
                Level::Text(_) => None,
            }
        };
        Standing { ring_bytes: first("ring_bytes"), read_block_bytes: first("read_block_bytes") }
    }
}

fn block_size_in(cell: &Cell, name: &str, usual: u64) -> Result<u64, CellError> {
    let bytes = number_in(cell, name, usual)?;
    if (UNIT_BYTES..=BLOCK_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(UNIT_BYTES) {
        return Ok(bytes);
    }
    let what = if name == "block_bytes" { "blocks" } else { "reads" };
    Err(CellError::Impossible(format!(
        "{what} of {bytes} bytes: {UNIT_BYTES} to {BLOCK_BYTES_MAX} in steps of {UNIT_BYTES} are \
         possible"
    )))
}

fn compression_in(cell: &Cell) -> Result<Option<DriveCompression>, CellError> {
    match word_in(cell, "drive_compression")? {
        None => Ok(None),
        Some("on") => Ok(Some(DriveCompression::On)),
        Some("off") => Ok(Some(DriveCompression::Off)),
        Some(other) => Err(CellError::Unknown {
            what: format!("drive compression {other:?}"),
            known: "on and off",
        }),
    }
}

fn operation_in(cell: &Cell) -> Result<TapeWork, CellError> {
    match word_in(cell, "operation")? {
        None | Some("write") => Ok(TapeWork::Write),
        Some("read") => Ok(TapeWork::Read),
        Some(other) => Err(CellError::Unknown {
            what: format!("operation {other:?}"),
            known: "write and read",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::record::cell;

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
        let ring = |bytes| Standing { ring_bytes: Some(bytes), read_block_bytes: None };
        assert!(!named.is_sensible(&ring(0)) && named.is_sensible(&ring(1 << 20)));
        assert!(TapeJob { operation: TapeWork::Write, ..named }.is_sensible(&ring(0)));
    }

    #[test]
    fn a_run_is_cut_into_files_of_whole_blocks() {
        let of = |levels: &[(&str, &str)]| TapeJob::from_cell(&cell(levels), 10 << 20).unwrap();
        let four = of(&[("files", "4"), ("block_bytes", "1048576")]);
        assert_eq!(four.layout(), Layout { file_blocks: 3, blocks: 12 });
        assert_eq!(four.bytes(), 12 << 20);
        // A tree that ends before.
        let content = Content { objects: 2, files: 1, bytes: 3 << 20 };
        let ends = TapeJob { tree: Some(content), ..four.clone() };
        assert_eq!(ends.blocks(), 4);
        let endless = TapeJob { tree: Some(Content { bytes: 1 << 40, ..content }), ..four };
        assert_eq!(endless.blocks(), 12);
    }

    /// As `btape speed file_size=1` was seen to do it.
    #[test]
    fn bacula_ends_a_file_before_it_has_a_gigabyte() {
        let of = |levels: &[(&str, &str)]| {
            let all = [&[("block_bytes", "64512")][..], levels].concat();
            TapeJob::from_cell(&cell(&all), 1 << 30).unwrap().layout()
        };
        assert_eq!(of(&[("framing", "bacula")]), Layout { file_blocks: 15_500, blocks: 16_645 });
        let whole = Layout { file_blocks: 16_645, blocks: 16_645 };
        assert_eq!(of(&[("framing", "bacula"), ("files", "1")]), whole);
        assert_eq!(of(&[("framing", "tar")]), whole);
        let short = Layout { file_blocks: 10, blocks: 10 };
        assert_eq!(of(&[("framing", "bacula"), ("file_bytes", "645120")]), short);
    }

    #[test]
    fn data_that_are_made_are_not_read_in_blocks() {
        let plan = |data: &str, read: &str| {
            let cell = cell(&[("data", data), ("read_block_bytes", read)]);
            TapeJob::from_cell(&cell, 1 << 20).unwrap()
        };
        let standing = Standing { ring_bytes: None, read_block_bytes: Some(4096) };
        assert!(plan("zeros", "4096").is_sensible(&standing));
        assert!(!plan("zeros", "65536").is_sensible(&standing));
        assert!(plan("/srv", "65536").is_sensible(&standing));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (levels, expected) in [
            (vec![("block_bytes", "1000")], "in steps of 512"),
            (vec![("block_bytes", "0")], "512 to"),
            (vec![("block_bytes", "many")], "a number was expected"),
            (vec![("file_bytes", "0")], "no bytes"),
            (vec![("files", "0")], "1 to 100000 are possible"),
            (vec![("read_block_bytes", "1000")], "reads of 1000 bytes"),
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
