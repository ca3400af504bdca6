//! What a restore of a chain reads from which medium, before it reads.

use tapeset::{TapeIndex, WantedBlocks};

use super::chain::{Chain, wanted};
use super::{RestoreError, RestoreOptions, make_plan};
use crate::origin::Origin;
use crate::read::excerpt::Excerpt;
use crate::selection::{NotFound, Selection};
use crate::warnings::Warnings;
use flow::monitor::Silent;

/// What a set of the chain gives.
#[derive(Clone, Debug)]
pub struct SetReads {
    pub name: String,
    /// Objects that are wanted of it.
    pub objects: u64,
    /// The blocks that hold them, in the order in which they are read; `None` where the index of
    /// the set is not known.
    pub blocks: Option<Vec<WantedBlocks>>,
}

/// What a restore of a chain reads.
#[derive(Clone, Debug)]
pub struct ChainReads {
    /// The sets with something that is wanted, in order.
    pub sets: Vec<SetReads>,
    pub not_found: Vec<NotFound>,
}

/// Says what a restore of a chain on tape would read. No tape is touched.
///
/// # Errors
/// When the index of the set that is restored cannot be read.
pub fn chain_reads(options: &RestoreOptions, chain: &Chain) -> Result<ChainReads, RestoreError> {
    let warnings = Warnings::new(&Silent);
    let mut selection = options.selection.clone();
    let members = wanted(chain, &mut selection, &warnings)?;
    let mut sets = Vec::new();
    for (part, members) in chain.parts.iter().zip(members) {
        let objects = members.count() as u64;
        let Some(from) = part.from.clone().filter(|_| objects > 0) else { continue };
        let known = match &from {
            Origin::Tape(tape) => tape.known.as_ref().and_then(tapeset::KnownIndex::open),
            Origin::Path(_) => None,
        };
        let selection = Selection::exactly(members);
        let options = RestoreOptions { from, selection, ..options.clone() };
        let blocks = known.map(|index| blocks(&index, &options));
        sets.push(SetReads { name: part.name.clone(), objects, blocks });
    }
    Ok(ChainReads { sets, not_found: selection.not_found() })
}

/// All of the set where its index does not lead to parts of it.
fn blocks(index: &TapeIndex, options: &RestoreOptions) -> Vec<WantedBlocks> {
    let plan = make_plan(&index.index, options);
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
