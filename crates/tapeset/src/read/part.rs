//! Where a part of a set lies on its medium, and in it each byte of the stored stream.

use archive::stream::StoredOffset;

use super::place::Spot;
use super::walk::LabelledFile;

/// Where a part lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub label: Spot,
    pub volume: u32,
    pub stream_bytes: StoredOffset,
    pub length_bytes: u64,
    pub block_bytes: u64,
}

impl Part {
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

    /// The block with a byte of the stored stream, and where in it.
    pub fn place_of(&self, stream_bytes: StoredOffset) -> (Spot, usize) {
        let at = stream_bytes.saturating_since(self.stream_bytes) + self.length_bytes;
        let over_bytes = (at % self.block_bytes) as usize;
        (self.label.plus(at / self.block_bytes), over_bytes)
    }
}
