//! The section of a set on tape: the places of its segments' parts on the media.

use super::IndexSection;
use super::section::{Record, private::Codec};
use super::varint::{self, Body, Reason};
use crate::stream::StoredOffset;

/// One part of one data segment. A segment has one part, and another for every change of volume
/// inside it. Parts follow each other in the order in which they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentRecord {
    /// Id of the set, as in its labels.
    pub set: [u8; 16],
    /// Number of the segment, from 1.
    pub segment: u32,
    /// Number of the part of the segment, from 1.
    pub part: u32,
    /// Number of the volume in the set, from 1.
    pub volume: u32,
    /// Id of the medium.
    pub medium: [u8; 16],
    /// Where the part begins in the stored stream of the data segments.
    pub stream_offset_bytes: StoredOffset,
    /// Bytes of the stored stream in the part, without its label. In a compressed set its first
    /// bytes may repeat the last bytes of the previous part.
    pub stream_bytes: u64,
    /// Block number of the part's label on the medium, as `MTIOCPOS` counts. Not every drive knows
    /// it.
    pub label_block: Option<u64>,
    /// Bytes from the start of the label to the first byte of the stored stream.
    pub label_bytes: u32,
    /// Filemarks on the medium before the part, which begins right behind the last of them.
    pub file_number: u32,
}

impl Record for ExtentRecord {
    const SECTION: IndexSection = IndexSection::Extents;
}

impl Codec for ExtentRecord {
    type State = ();

    fn encode(&self, _state: &mut (), body: &mut Vec<u8>) -> Result<(), Reason> {
        self.check()?;
        body.extend_from_slice(&self.set);
        body.extend_from_slice(&self.medium);
        for number in [self.segment, self.part, self.volume, self.label_bytes, self.file_number] {
            varint::put(body, number.into());
        }
        varint::put(body, self.stream_offset_bytes.bytes());
        varint::put(body, self.stream_bytes);
        varint::put(body, self.label_block.map_or(0, |block| block + 1));
        Ok(())
    }

    fn decode(_state: &mut (), body: &mut Body<'_>) -> Result<ExtentRecord, Reason> {
        let record = ExtentRecord {
            set: body.take()?,
            medium: body.take()?,
            segment: body.number_u32()?,
            part: body.number_u32()?,
            volume: body.number_u32()?,
            label_bytes: body.number_u32()?,
            file_number: body.number_u32()?,
            stream_offset_bytes: StoredOffset::new(body.number()?),
            stream_bytes: body.number()?,
            label_block: body.number()?.checked_sub(1),
        };
        record.check().map(|()| record)
    }
}

impl ExtentRecord {
    fn check(&self) -> Result<(), Reason> {
        if self.segment == 0 || self.part == 0 || self.volume == 0 {
            return Err("segments, parts and volumes count from 1");
        }
        if self.label_block == Some(u64::MAX) {
            return Err("block number is larger than 64 bits");
        }
        let end = self.stream_offset_bytes.checked_add(self.stream_bytes);
        end.map(|_| ()).ok_or("offset is larger than 64 bits")
    }

    /// End of the part in the stored stream.
    pub fn stream_end_bytes(&self) -> StoredOffset {
        self.stream_offset_bytes + self.stream_bytes
    }
}
