//! What a medium begins with, and whether it is one of ours all the same.
//!
//! A medium of ours begins with a label. Its first block is also the one that is lost first: to a
//! write that never reached the tape, to wear. So a medium without a label at its front is not yet
//! somebody else's: the file behind the first one is looked at, over one filemark; and if there is
//! one, and the first block is such that nobody would notice, the last ones. What GNU tar writes by
//! default no set has in its first block, and is not searched.
//!
//! What this does not find, [`super::file`] meets in passing.

use archive::chunk::StreamFormat;
use archive::header::{UNIT_BYTES, find_header};
use flow::cancel::Cancel;

use super::blocks::BlockReader;
use super::failure::TapeReadFailure;
use super::label_reader::{Opening, read_opening};
use super::place::Spot;
use super::sign::Sign;
use super::walk::{LabelledFile, Walk};

/// Files that are looked at from the end on: a set that was not closed may end in a file without
/// its label.
const LAST_FILES: u32 = 2;
/// Magic and version of the headers that GNU tar writes unless told otherwise, and where they are.
const GNU_MAGIC: &[u8] = b"ustar  \0";
const MAGIC_AT: usize = 257;

/// What a tape begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A label of ours, or what should be one.
    Ours {
        /// A label: the first one, or another of the medium.
        found: LabelledFile,
        /// Why the first one is none, if so.
        damage: Option<String>,
    },
    /// Something else.
    Foreign {
        /// That it is none all the same, though no label was found.
        sign: Option<Sign>,
    },
    /// Nothing.
    Blank,
}

/// Where labels are looked for when a medium does not begin with one, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Search {
    /// Nowhere.
    Nowhere,
    /// At the front of the second file.
    SecondFile,
    /// There and, if there is one, at the front of the last ones.
    LastFiles,
    /// At the front of every file.
    Everywhere,
}

/// Looks what the tape in the drive begins with: at the least as far as `search` says. Rewinds it,
/// and leaves it somewhere.
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
        Opening::Filemark => ("nothing is there".to_owned(), Search::LastFiles),
        Opening::Unreadable { why } => (why, Search::Everywhere),
        Opening::Foreign => seems(&bytes),
    };
    let search = search.max(seems);
    if search == Search::Nowhere {
        return Ok(Beginning::Foreign { sign: None });
    }
    let met = match second_file(blocks, cancel)? {
        Met::Other if search > Search::SecondFile => last_files(blocks, search, cancel)?,
        Met::Nothing if search == Search::Everywhere => last_files(blocks, search, cancel)?,
        met => met,
    };
    Ok(match met {
        Met::Label(found) => Beginning::Ours { found, damage: Some(why) },
        Met::Index(sign) => Beginning::Foreign { sign: Some(sign) },
        Met::Other | Met::Nothing => Beginning::Foreign { sign: None },
    })
}

/// What the first block is in words, and how likely one of a set of ours.
fn seems(bytes: &[u8]) -> (String, Search) {
    let may_open_an_archive = match StreamFormat::detect(bytes) {
        StreamFormat::Plain => find_header(&bytes[..bytes.len().min(UNIT_BYTES)]).is_some(),
        StreamFormat::Compressed(_) => true,
        StreamFormat::Other(_) => false,
    };
    let (what, search) = if bytes.iter().all(|byte| *byte == 0) {
        ("zeros are there", Search::LastFiles)
    } else if bytes.len() >= UNIT_BYTES && bytes[MAGIC_AT..].starts_with(GNU_MAGIC) {
        ("an archive of GNU tar is there", Search::Nowhere)
    } else if may_open_an_archive {
        // Behind its label a set goes on like any archive: it would be read without a word.
        ("something else is there", Search::LastFiles)
    } else {
        ("something else is there", Search::SecondFile)
    };
    (what.to_owned(), search)
}

/// What is at the front of a file.
enum Met {
    Label(LabelledFile),
    Index(Sign),
    Other,
    /// There is no such file.
    Nothing,
}

/// Looks at the front of the second file. What the drive says of places that may not be there
/// counts for nothing.
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

/// Looks from the end of the data backwards.
fn last_files(
    blocks: &mut BlockReader,
    search: Search,
    cancel: &Cancel,
) -> Result<Met, TapeReadFailure> {
    let mut met = Met::Other;
    let mut walk = Walk::new(blocks, cancel)?;
    let files = if search == Search::Everywhere { u32::MAX } else { LAST_FILES };
    let label = walk.last_file_of(files, |bytes, file| {
        if let (Met::Other, found) = (&met, index_at_front(bytes, file)) {
            met = found;
        }
    })?;
    Ok(label.map_or(met, Met::Label))
}

fn index_at_front(bytes: &[u8], file: u32) -> Met {
    Sign::in_opening(bytes, || format!("file {file} of the tape")).map_or(Met::Other, Met::Index)
}
