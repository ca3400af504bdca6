//! What a medium begins with, and whether it is a Takeup medium.
//!
//! A Takeup medium begins with a label. But its first block is also the first to be lost: to a
//! write that never reached the tape, or to wear. So a medium without a label is checked further,
//! over one filemark: the front of the second file. If that exists, and the first block could have
//! been overwritten unnoticed, the last files are checked, too. The default format of GNU tar never
//! appears in the first block of a set, and is not checked further.
//!
//! [`super::file`] meets what this does not find.

use archive::chunk::StreamFormat;
use archive::header::{UNIT_BYTES, find_header};
use flow::cancel::Cancel;

use super::blocks::BlockReader;
use super::failure::TapeReadFailure;
use super::label_reader::{Opening, read_opening};
use super::place::Spot;
use super::sign::Sign;
use super::walk::{LabelledFile, Walk};

/// Files to check from the end: a set that was not closed may end in a file without a label.
const LAST_FILES: u32 = 2;
/// Magic and version of GNU tar's default headers, and their position.
const GNU_MAGIC: &[u8] = b"ustar  \0";
const MAGIC_AT: usize = 257;

/// What a tape begins with.
#[expect(clippy::large_enum_variant, reason = "one at a time, and never kept")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A Takeup medium.
    Ours {
        /// A label: the first one, or another one of the medium.
        found: LabelledFile,
        /// Why the first label is missing, if it is.
        damage: Option<String>,
    },
    /// A medium of another program.
    Foreign {
        /// A sign that it is a Takeup medium all the same, though no label was found.
        sign: Option<Sign>,
        /// Its first block, if the tape still stands behind that.
        first: Option<Vec<u8>>,
    },
    /// A blank medium.
    Blank,
}

/// Where to look for labels if the medium does not begin with one, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Search {
    Nowhere,
    /// At the front of the second file.
    SecondFile,
    /// There and, if it exists, at the front of the last files.
    LastFiles,
    /// At the front of every file.
    Everywhere,
}

/// Finds out what the tape in the drive begins with, searching at least as far as `search` says.
/// Rewinds the tape and leaves it anywhere.
pub(super) fn look(
    blocks: &mut BlockReader,
    search: Search,
    cancel: &Cancel,
) -> Result<Beginning, TapeReadFailure> {
    let spot = Spot::start_of(0, None);
    blocks.go_to(spot)?;
    let mut bytes = Vec::new();
    let (why, seems) = match read_opening(blocks, &mut bytes, cancel)? {
        Opening::Label(label) => {
            let found = LabelledFile { spot, label };
            return Ok(Beginning::Ours { found, damage: None });
        }
        Opening::EndOfData => return Ok(Beginning::Blank),
        Opening::Filemark => ("the file is empty".to_owned(), Search::LastFiles),
        Opening::Unreadable { why } => (why, Search::Everywhere),
        Opening::Foreign => seems(&bytes),
    };
    let search = search.max(seems);
    if search == Search::Nowhere {
        let behind = Spot { block: 1, ..spot };
        let is_behind = blocks.here().is_some_and(|here| here.is_at(behind));
        return Ok(Beginning::Foreign { sign: None, first: is_behind.then_some(bytes) });
    }
    let met = match second_file(blocks, cancel)? {
        Met::Other if search > Search::SecondFile => last_files(blocks, search, cancel)?,
        Met::Nothing if search == Search::Everywhere => last_files(blocks, search, cancel)?,
        met => met,
    };
    Ok(match met {
        Met::Label(found) => Beginning::Ours { found, damage: Some(why) },
        Met::Index(sign) => Beginning::Foreign { sign: Some(sign), first: None },
        Met::Other | Met::Nothing => Beginning::Foreign { sign: None, first: None },
    })
}

/// The first block in words, and how likely it belongs to a set.
fn seems(bytes: &[u8]) -> (String, Search) {
    let may_open_an_archive = match StreamFormat::detect(bytes) {
        StreamFormat::Plain => find_header(&bytes[..bytes.len().min(UNIT_BYTES)]).is_some(),
        StreamFormat::Compressed(_) => true,
        StreamFormat::Other(_) => false,
    };
    let (what, search) = if bytes.iter().all(|byte| *byte == 0) {
        ("the file begins with zeros", Search::LastFiles)
    } else if bytes.len() >= UNIT_BYTES && bytes[MAGIC_AT..].starts_with(GNU_MAGIC) {
        ("the file is an archive of GNU tar", Search::Nowhere)
    } else if may_open_an_archive {
        // Behind its label a set continues like any archive, and would be read without a warning.
        ("the file begins with other data", Search::LastFiles)
    } else {
        ("the file begins with other data", Search::SecondFile)
    };
    (what.to_owned(), search)
}

/// What a file begins with.
#[expect(clippy::large_enum_variant, reason = "one at a time, and never kept")]
enum Met {
    Label(LabelledFile),
    Index(Sign),
    Other,
    /// There is no such file.
    Nothing,
}

/// Checks the front of the second file. Errors of the drive do not count, since the file may not
/// exist.
fn second_file(blocks: &mut BlockReader, cancel: &Cancel) -> Result<Met, TapeReadFailure> {
    let spot = Spot::start_of(1, None);
    if blocks.go_to(spot).is_err() {
        return Ok(Met::Nothing);
    }
    let mut bytes = Vec::new();
    match read_opening(blocks, &mut bytes, cancel) {
        Ok(Opening::Label(label)) => Ok(Met::Label(LabelledFile { spot, label })),
        Ok(Opening::EndOfData) => Ok(Met::Nothing),
        Err(error @ (TapeReadFailure::Stopped(_) | TapeReadFailure::Label { .. })) => Err(error),
        _ => Ok(index_at_front(&bytes, 1)),
    }
}

/// Checks files backwards from the end of data.
fn last_files(
    blocks: &mut BlockReader,
    search: Search,
    cancel: &Cancel,
) -> Result<Met, TapeReadFailure> {
    let mut met = Met::Other;
    let mut walk = Walk::new(blocks, cancel, None)?;
    let files = if search == Search::Everywhere { u32::MAX } else { LAST_FILES };
    let label = walk.last_file_of(blocks, files, |bytes, file| {
        if let (Met::Other, found) = (&met, index_at_front(bytes, file)) {
            met = found;
        }
    })?;
    Ok(label.map_or(met, Met::Label))
}

fn index_at_front(bytes: &[u8], file: u32) -> Met {
    Sign::in_opening(bytes, || format!("file {file} of the tape")).map_or(Met::Other, Met::Index)
}
