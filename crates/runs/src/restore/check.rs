//! Reports checksums at the end of a restore: which files are in blocks that differ.

use std::ops::Range;

use archive::index::RecordKind;
use archive::stream::ArchiveOffset;
use flow::monitor::Harm;

use super::{Checksums, RestoreOptions};
use crate::read::block_check::BlockCheck;
use crate::read::late_check::LateOutcome;
use crate::selection::Selection;
use crate::warnings::Warnings;

/// Most files that are named in warnings.
const NAMED_MAX: u64 = 10_000;

/// Warns of blocks that differ, if the index came after them.
fn conclude_late(
    late: &LateOutcome,
    lost: &[Range<ArchiveOffset>],
    warnings: &Warnings<'_>,
) -> Checksums {
    if late.differing_count == 0 {
        return Checksums::Hold { blocks: late.blocks };
    }
    let (count, blocks) = (late.differing_count, late.blocks);
    // Missing bytes were reported before.
    let block_bytes = u64::from(late.block_bytes);
    let mut read = late.differing.iter().map(|block| ArchiveOffset::of_block(*block, block_bytes));
    let Some(first) = read.find(|start| !touches(lost, *start, *start + block_bytes)) else {
        return Checksums::Damaged { blocks: count };
    };
    let text = format!(
        "checksums do not hold: {count} of {blocks} blocks, the first at byte {first} of the \
         archive; files restored from there are damaged, and `takeup verify` names them"
    );
    warnings.warn(Harm::Blocks, b"", text);
    Checksums::Damaged { blocks: count }
}

/// Warns of the members whose headers are in `lost`, missing ranges of the archive, and of the
/// files in damaged blocks.
pub(crate) fn conclude(
    check: Option<&BlockCheck>,
    late: Option<LateOutcome>,
    lost: &[Range<ArchiveOffset>],
    options: &RestoreOptions,
    warnings: &Warnings<'_>,
) -> Checksums {
    if let Some(late) = late {
        return conclude_late(&late, lost, warnings);
    }
    let Some(check) = check else { return Checksums::Unknown };
    name_lost(check, lost, &mut options.selection.clone(), warnings);
    let (blocks, differing_count, mut differing) = check.outcome();
    // Files with missing content were named while they were written.
    let block_bytes = u64::from(check.index.trailer.block_bytes);
    differing.retain(|block| {
        let start = ArchiveOffset::of_block(*block, block_bytes);
        !touches(lost, start, start + block_bytes)
    });
    if differing_count == 0 {
        return Checksums::Hold { blocks };
    }
    let text = format!("checksums do not hold: {differing_count} of {blocks} blocks");
    warnings.warn(Harm::Blocks, b"", text);
    // In a compressed archive a block differs because a chunk was lost, whose files were named
    // before.
    if !check.index.is_compressed() {
        name_files(check, &differing, &mut options.selection.clone(), warnings);
    }
    Checksums::Damaged { blocks: differing_count }
}

/// Names the members that were not restored because their headers are missing. Only the index knows
/// them then.
fn name_lost(
    check: &BlockCheck,
    lost: &[Range<ArchiveOffset>],
    selection: &mut Selection,
    warnings: &Warnings<'_>,
) {
    if lost.is_empty() {
        return;
    }
    let Ok(files) = check.index.files() else { return };
    let mut named = 0;
    for record in files.map_while(Result::ok) {
        let (from, to) = (record.header_offset_bytes, record.content_offset_bytes);
        if touches(lost, from, to) && selection.selects(&record.path) && named < NAMED_MAX {
            named += 1;
            warnings.warn(Harm::Damage, &record.path, "lost: its header cannot be read");
        }
    }
}

/// Whether one of the ascending ranges has a byte in common with `from..to`.
fn touches(ranges: &[Range<ArchiveOffset>], from: ArchiveOffset, to: ArchiveOffset) -> bool {
    let at = ranges.partition_point(|range| range.end <= from);
    ranges.get(at).is_some_and(|range| range.start < to)
}

/// Names the files in damaged blocks whose hash does not hold. A block of a megabyte holds a
/// hundred small files, and a flipped bit has hit one of them, or a header, or padding.
fn name_files(
    check: &BlockCheck,
    differing: &[u64],
    selection: &mut Selection,
    warnings: &Warnings<'_>,
) {
    let block_bytes = u64::from(check.index.trailer.block_bytes);
    let Ok(files) = check.index.files() else { return };
    let mut named = 0;
    for record in files.map_while(Result::ok) {
        let RecordKind::File { stored_bytes: stored_bytes @ 1.., .. } = record.kind else {
            continue;
        };
        let end_bytes = record.content_offset_bytes + stored_bytes;
        let first = record.content_offset_bytes.block(block_bytes);
        let at = differing.partition_point(|block| *block < first);
        let inside = differing
            .get(at)
            .is_some_and(|block| ArchiveOffset::of_block(*block, block_bytes) < end_bytes);
        if !inside || !selection.selects(&record.path) || named >= NAMED_MAX {
            continue;
        }
        let text = match check.index.hash_holds(&record) {
            Some(true) => continue,
            Some(false) => "its content in the archive is not what was backed up: the hash differs",
            None => "lies in a block whose checksum does not hold",
        };
        named += 1;
        warnings.warn(Harm::Damage, &record.path, text);
    }
}
