//! A set that ends early: its medium is full, and there is no other.
//!
//! What does not fit is dropped, and the set is cut back to the end of a segment, so that its index
//! has room on the same medium. Each segment is a complete archive, so what is left is a set like
//! any other, with fewer members. No byte of another set is touched: the tape goes back to a label
//! of this set, which is read before anything is written there.
//!
//! A set that has no whole segment on its last medium cannot be cut there, nor one on a drive that
//! does not know its position: they stay incomplete.

use archive::index::ExtentRecord;
use archive::label::MediumName;
use archive::stream::StoredOffset;
use device::tape::{Access, BlockMode, DriveCompression, TapePlace};

use super::TapeDestination;
use super::begin::{First, look};
use super::error::TapeSetError;
use super::left::SetsOfMedium;
use super::plan::SetPlan;
use super::unfit::Numbers;
use super::volume::Volume;
use crate::block::FIRST_BUFFER_BYTES;
use crate::options::BlockLayout;

/// Room for labels, and for what the index grows by when it is cut.
const SPARE_BYTES: u64 = 1 << 20;
/// Most that data may take less on the medium than their index, where the drive compresses both.
const COMPRESSED_MORE: u64 = 4;

/// A medium that is full.
#[derive(Clone, Debug)]
pub(super) struct FullMedium {
    pub(super) medium: [u8; 16],
    pub(super) name: Option<MediumName>,
    pub(super) number: u32,
    pub(super) previous: Option<u32>,
    pub(super) sets: SetsOfMedium,
}

impl FullMedium {
    pub(super) fn of(volume: &Volume) -> FullMedium {
        FullMedium {
            medium: volume.medium,
            name: volume.name,
            number: volume.number,
            previous: volume.previous,
            sets: volume.sets.clone(),
        }
    }
}

/// Where a set is cut: in front of this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Place in the stored stream.
    pub stored_bytes: StoredOffset,
    /// The first segment that is dropped.
    pub(super) segment: u32,
    file_number: u32,
    label_block: u64,
}

/// The latest place on a medium where a set can be cut so that its index has room behind it.
/// `extents` are the parts of the set, `end` is the place up to which they were written.
pub(super) fn place(
    extents: &[ExtentRecord],
    medium: &[u8; 16],
    end: StoredOffset,
    index_bytes: u64,
    compression: Option<DriveCompression>,
) -> Option<Cut> {
    let factor = match compression {
        Some(DriveCompression::Off) => 1,
        _ => COMPRESSED_MORE,
    };
    let needed_bytes = index_bytes.saturating_add(SPARE_BYTES).saturating_mul(factor);
    let opens_segment =
        |extent: &&ExtentRecord| extent.medium == *medium && extent.part == 1 && extent.segment > 1;
    let has_room = |extent: &&ExtentRecord| end - extent.stream_offset_bytes >= needed_bytes;
    let extent = extents.iter().rev().filter(opens_segment).find(has_room)?;
    // A drive that does not know its position has no one command that leads there.
    let label_block = extent.label_block?;
    Some(Cut {
        stored_bytes: extent.stream_offset_bytes,
        segment: extent.segment,
        file_number: extent.file_number,
        label_block,
    })
}

/// Goes back to the place on the medium, once its label there was read. From the label on, a
/// command that fails ends it, see [`super::begin`].
pub(super) fn reopen(
    target: &TapeDestination,
    plan: &SetPlan,
    set: [u8; 16],
    full: &FullMedium,
    cut: &Cut,
) -> Result<Volume, TapeSetError> {
    let mut tape = target.drive.open(Access::Write)?;
    if let Some(wanted) = target.options.drive_compression {
        tape.set_drive_compression(wanted)?;
    }
    let layout = match target.options.layout {
        BlockLayout::Variable => BlockMode::Variable,
        BlockLayout::Fixed => BlockMode::Fixed(plan.block_bytes as u32),
    };
    // Only variable mode reads blocks of any size; drives without it have fixed blocks.
    if tape.set_block_mode(BlockMode::Variable).is_err() {
        tape.set_block_mode(layout)?;
    }
    let numbers = Numbers::of(&mut tape);
    let place = TapePlace { file_number: Some(cut.file_number), block_in_file: Some(0) };
    tape.go_to(place, Some(cut.label_block))?;
    let (first, _) = look(&mut tape, plan.block_bytes.max(FIRST_BUFFER_BYTES))?;
    let is_it = matches!(first, First::Ours(label) if label.medium == full.medium
        && label.set == set
        && label.segment == cut.segment);
    if !is_it {
        return Err(TapeSetError::Exchanged { device: tape.name().to_owned() });
    }
    // By one command. A way of several, as to any other place, would pass over the failure by which
    // the drive reports that the medium was exchanged, and end at that place of another medium.
    tape.seek(cut.label_block)?;
    tape.set_block_mode(layout)?;
    let mut volume =
        Volume::behind(tape, full.medium, full.number, cut.file_number, full.previous, numbers)?;
    volume.name = full.name;
    volume.sets = full.sets.clone();
    volume.sets.cut(cut.file_number);
    volume.holds_part = true;
    volume.told();
    Ok(volume)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(segment: u32, part: u32, medium: u8, offset: u64, bytes: u64) -> ExtentRecord {
        ExtentRecord {
            set: [1; 16],
            segment,
            part,
            volume: medium.into(),
            medium: [medium; 16],
            stream_offset_bytes: StoredOffset::new(offset),
            stream_bytes: bytes,
            label_block: Some(offset >> 20),
            label_bytes: 1 << 20,
            file_number: segment,
        }
    }

    #[test]
    fn the_latest_cut_with_room_on_this_medium_is_taken() {
        let mib = 1 << 20;
        let extents = [
            part(1, 1, 1, 0, 100 * mib),
            part(2, 1, 1, 100 * mib, 50 * mib),
            part(2, 2, 2, 150 * mib, 50 * mib),
            part(3, 1, 2, 200 * mib, 100 * mib),
            part(4, 1, 2, 300 * mib, 10 * mib),
        ];
        let end = StoredOffset::new(310 * mib);
        let cut = |index_bytes, medium: u8, compression| {
            place(&extents, &[medium; 16], end, index_bytes, compression).map(|cut| cut.segment)
        };
        let off = Some(DriveCompression::Off);
        assert_eq!(cut(9 * mib, 2, off), Some(4));
        assert_eq!(cut(10 * mib, 2, off), Some(3), "with room for labels");
        assert_eq!(cut(9 * mib, 2, None), Some(3), "the index may be compressed less");
        assert_eq!(cut(110 * mib, 2, off), None, "segment 2 began on another medium");
        assert_eq!(cut(110 * mib, 1, off), Some(2));
        assert_eq!(cut(310 * mib, 1, off), None, "nothing would be left of the set");
    }
}
