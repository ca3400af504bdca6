//! What a restore reads from which medium, before it reads.

use archive::label::hex;
use tapeset::{Need, OpenTape, TapeIndex, TapeOrigin, TapeStands, WantedBlocks};

use super::chain::{Chain, wanted};
use super::{RestoreError, RestoreOptions, make_plan, pass_all};
use crate::origin::Origin;
use crate::read::excerpt::Excerpt;
use crate::selection::{NotFound, Selection};
use crate::warnings::Warnings;
use flow::cancel::Cancel;
use flow::monitor::Silent;

use crate::read::ReadFailure;

/// What a set gives.
#[derive(Clone, Debug)]
pub struct SetReads {
    /// The name that its archive was given, or its id.
    pub name: String,
    /// The blocks that hold them, in the order in which they are read; `None` where the index of
    /// the set is not known.
    pub blocks: Option<Vec<WantedBlocks>>,
}

/// What a restore reads.
#[derive(Clone, Debug)]
pub struct PlannedReads {
    /// The sets with something that is wanted, in order.
    pub sets: Vec<SetReads>,
    pub not_found: Vec<NotFound>,
}

/// A set of the tape in the drive.
#[derive(Clone, Debug)]
pub struct SetInDrive {
    pub set: [u8; 16],
    /// When its run began, in seconds since 1970, if that is known.
    pub begun_seconds: Option<u64>,
    pub index: TapeIndex,
    /// Where the tape stands, if the drive says so.
    pub stands: Option<TapeStands>,
}

/// Finds a set and its index, as a restore does. The tape is read where it is not known what it
/// holds. `None`: the tape has no sets, or the set has no index, so nothing says how much there is.
///
/// # Errors
/// When the tape cannot be read.
pub fn set_in_drive(
    tape: &TapeOrigin,
    cancel: &Cancel,
) -> Result<Option<SetInDrive>, RestoreError> {
    let mut tape = OpenTape::open(tape, Need::Index, cancel).map_err(ReadFailure::from)?;
    let stands = tape.stands();
    let (Some(label), Some(index)) = (tape.label(), tape.index().cloned()) else {
        return Ok(None);
    };
    // Of a set that was opened by the copy of its index no label was read.
    let begun_seconds = Some(label.time_seconds).filter(|seconds| *seconds > 0);
    let set = label.set;
    Ok(Some(SetInDrive { set, begun_seconds, index, stands }))
}

/// Says what a restore of one set would read.
pub fn set_reads(set: &SetInDrive, selection: &Selection) -> PlannedReads {
    let blocks = Some(blocks(&set.index, selection));
    let mut selection = selection.clone();
    pass_all(&mut selection, &set.index.index);
    let sets = vec![SetReads { name: hex(&set.set), blocks }];
    PlannedReads { sets, not_found: selection.not_found() }
}

/// Says what a restore of a chain on tape would read. No tape is touched.
///
/// # Errors
/// When the index of the set that is restored cannot be read.
pub fn chain_reads(options: &RestoreOptions, chain: &Chain) -> Result<PlannedReads, RestoreError> {
    let warnings = Warnings::new(&Silent);
    let mut selection = options.selection.clone();
    let members = wanted(chain, &mut selection, &warnings)?;
    let mut sets = Vec::new();
    for (part, members) in chain.parts.iter().zip(members) {
        let Some(from) = part.from.clone().filter(|_| members.count() > 0) else { continue };
        let known = match &from {
            Origin::Tape(tape) => tape.known.as_ref().and_then(tapeset::KnownIndex::open),
            Origin::Path(_) => None,
        };
        let selection = Selection::exactly(members);
        let blocks = known.map(|index| blocks(&index, &selection));
        sets.push(SetReads { name: part.name.clone(), blocks });
    }
    Ok(PlannedReads { sets, not_found: selection.not_found() })
}

/// All of the set where its index does not lead to parts of it.
fn blocks(index: &TapeIndex, selection: &Selection) -> Vec<WantedBlocks> {
    let plan = make_plan(&index.index, selection);
    let excerpt = plan.and_then(|plan| Excerpt::new(&index.index, &plan));
    match excerpt {
        Some(excerpt) => index.wanted_blocks(&excerpt.source),
        None => {
            let start = archive::stream::StoredOffset::START;
            let end = index.index.trailer.index_compressed_offset_bytes;
            index.wanted_blocks(&[start..end])
        }
    }
}
