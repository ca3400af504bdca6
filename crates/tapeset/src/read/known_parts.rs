//! Reads the parts of a set where its index has them, in the order that winds the tape least.

use std::ops::Range;

use archive::index::ExtentRecord;
use archive::label::{Label, hex};
use archive::stream::StoredOffset;
use device::tape::scsi::access_order::Segment;

use super::blocks::Identity;
use super::drive::{Brought, WantedVolume, Which};
use super::failure::TapeReadFailure;
use super::index_segment::TapeIndex;
use super::label_reader::{Opening, read_opening};
use super::order::{READ_THROUGH_BLOCKS, reading_order};
use super::part::Part;
use super::place::Spot;
use super::stitch::{Stitcher, Turn};
use super::wanted_blocks::{Piece, WantedBlocks};

impl Stitcher<'_, '_> {
    /// Reads the parts where the index has them.
    pub(super) fn read_known(
        &mut self,
        index: &TapeIndex,
        ranges: Option<&[Range<StoredOffset>]>,
    ) -> Result<(), TapeReadFailure> {
        let extents = &index.extents;
        let end = extents.iter().map(ExtentRecord::stream_end_bytes).max().unwrap_or_default();
        self.end.last_segment = extents.last().map_or(0, |extent| extent.segment);
        self.end.index = Some(index.clone());
        let whole = StoredOffset::START..end;
        let pieces = index.pieces(ranges.unwrap_or(std::slice::from_ref(&whole)));
        let order = self.order_of(index, &pieces)?;
        let mut next = 0;
        for number in order {
            if self.stopped() {
                return Ok(());
            }
            self.turn = if number == next { Turn::Now } else { Turn::Later };
            if self.turn == Turn::Later {
                self.held.begin()?;
            }
            let Piece { range, extent } = &pieces[number];
            self.stream_bytes = range.start;
            match extent {
                Some(extent) => self.read_extent(&extents[*extent], range.end)?,
                None => self.lose(range.end - range.start, "the index has no location for them")?,
            }
            if self.turn == Turn::Later {
                self.held.end(number);
                continue;
            }
            next += 1;
            while self.held.pass_on(next, self.feed)? {
                next += 1;
            }
        }
        Ok(())
    }

    /// The order in which the tape visits pieces of the stream: numbers in `pieces`.
    fn order_of(
        &mut self,
        index: &TapeIndex,
        pieces: &[Piece],
    ) -> Result<Vec<usize>, TapeReadFailure> {
        let blocks = |piece: &Piece| {
            piece.extent.map(|extent| index.blocks_of(&piece.range, &index.extents[extent]))
        };
        let wanted: Option<Vec<WantedBlocks>> = pieces.iter().map(blocks).collect();
        // What has no location is a gap, in its place.
        let Some(wanted) = wanted.filter(|_| pieces.len() > 1) else {
            return Ok((0..pieces.len()).collect());
        };
        let motion = self.set.drive.motion();
        let stands = self.set.drive.stands()?;
        let ahead_bytes_max = self.held.bytes_max();
        let mut failure = None;
        let recommended = |segments: &[Segment]| {
            self.set.drive.recommended_order(segments).unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
        };
        let order = reading_order(&wanted, stands, motion.as_deref(), ahead_bytes_max, recommended);
        failure.map_or(Ok(order), Err)
    }

    /// Reads a part, from the stream's position to `to_bytes`.
    fn read_extent(
        &mut self,
        extent: &ExtentRecord,
        to_bytes: StoredOffset,
    ) -> Result<(), TapeReadFailure> {
        let fresh = self.set.drive.medium != Some(extent.medium);
        if fresh {
            let (set, volume, medium) = (self.set.id, extent.volume, Some(extent.medium));
            let which = Which::Exactly;
            let wanted = WantedVolume { set, volume, medium, which };
            if self.bring(wanted)? == Brought::Without {
                self.do_without(volume);
                let missing = to_bytes - self.stream_bytes;
                return self.lose(missing, &format!("volume {volume} is not available"));
            }
        }
        self.enter_volume(extent.volume);
        let mut part = Part {
            label: Spot::start_of(extent.file_number, extent.label_block),
            volume: extent.volume,
            stream_bytes: extent.stream_offset_bytes,
            length_bytes: extent.label_bytes.into(),
            block_bytes: self.set.block_bytes() as u64,
        };
        let (first, _) = part.place_of(self.stream_bytes);
        self.volume_before = extent.volume;
        let is_unsure = fresh && !self.set.drive.is_as_noted;
        self.checked = self.checked.filter(|label| !fresh && label.file == extent.file_number);
        if let Some(checked) = self.checked {
            // Going back for it would stop the tape.
            part.label = checked;
        } else if is_unsure || first.block <= READ_THROUGH_BLOCKS {
            if self.check_label(extent, &mut part)? == Labelled::NoPart {
                let missing = to_bytes - self.stream_bytes;
                return self.lose(missing, "the segment is not where the index has it");
            }
            self.checked = Some(part.label);
        }
        self.read_part(part, Some(to_bytes)).map(|_| ())
    }

    /// Reads the label of a part, to check that the index describes this tape.
    fn check_label(
        &mut self,
        extent: &ExtentRecord,
        part: &mut Part,
    ) -> Result<Labelled, TapeReadFailure> {
        let cancel = self.set.drive.cancel.clone();
        let medium = extent.medium;
        self.go_on_to(part.label)?;
        let blocks = self.set.drive.blocks()?;
        loop {
            let opening = read_opening(blocks, &mut Vec::new(), &cancel)?;
            let by_number = part.label.absolute.take_if(|_| part.label.file > 0);
            match opening {
                // The position is right, and the index knows the label.
                Opening::Unreadable { why } => {
                    part.label.absolute = by_number;
                    self.set.drive.miss_label(medium, part.label.file, &why);
                    return Ok(Labelled::Part);
                }
                Opening::Label(label) if is_of(&label, extent) => {
                    part.label.absolute = by_number;
                    blocks.identify(Identity { label: part.label, medium });
                    return Ok(Labelled::Part);
                }
                // Blocks may have been lost before it: locate by file instead.
                _ if by_number.is_some() => blocks.go_to(part.label)?,
                Opening::Label(label) => {
                    let (number, set) = (label.segment, hex(&label.set));
                    let (segment, place) = (extent.segment, part.label);
                    let found = format!(
                        "segment {number} of set {set} is where segment {segment} should begin \
                         ({place})"
                    );
                    return Err(TapeReadFailure::Exchanged { device: blocks.device(), found });
                }
                without => {
                    // On another medium there would be no label here, either.
                    blocks.check_medium_elsewhere(part.label)?;
                    let (why, labelled) = match without {
                        Opening::Foreign => ("the file begins with other data", Labelled::Part),
                        _ => ("there are no data", Labelled::NoPart),
                    };
                    self.set.drive.miss_label(medium, part.label.file, why);
                    return Ok(labelled);
                }
            }
        }
    }
}

fn is_of(label: &Label, extent: &ExtentRecord) -> bool {
    label.set == extent.set && (label.segment, label.part) == (extent.segment, extent.part)
}

/// What was found in the place of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labelled {
    /// A part, with or without its label.
    Part,
    /// Nothing.
    NoPart,
}
