//! Where a part of a set is on its medium, and where in it each byte of the stored stream is.

use archive::stream::StoredOffset;

use super::place::Spot;
use super::walk::LabelledFile;

/// Location of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub label: Spot,
    pub volume: u32,
    pub stream_bytes: StoredOffset,
    pub length_bytes: u64,
    pub block_bytes: u64,
}

impl Part {
    /// What the label of the file says of it.
    pub fn of(file: LabelledFile) -> Part {
        let LabelledFile { spot, label } = file;
        Part {
            label: spot,
            volume: label.volume,
            stream_bytes: label.stream_bytes,
            length_bytes: label.length_bytes.into(),
            block_bytes: label.block_bytes.into(),
        }
    }

    /// The block with a byte of the stored stream, and the offset in it.
    pub fn place_of(&self, stream_bytes: StoredOffset) -> (Spot, usize) {
        let at = stream_bytes.saturating_since(self.stream_bytes) + self.length_bytes;
        let over_bytes = (at % self.block_bytes) as usize;
        (self.label.plus(at / self.block_bytes), over_bytes)
    }
}
