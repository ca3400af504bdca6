//! Compares zstd's seek table with the frames.
//!
//! The table is a skippable frame, which decompressors ignore. So it is the one part of an archive
//! without a checksum, but every byte of it follows from the frames.

use archive::chunk::seek_table::SeekTableBuilder;

/// Most frames that are kept, 8 bytes each: 8 TiB in chunks of 8 MiB.
const FRAMES_MAX: usize = 1 << 20;
/// Bytes of a table besides its entries of 8 bytes.
const AROUND_BYTES: u64 = 17;

/// The state of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TableState {
    /// No table after the last frame.
    #[default]
    Missing,
    /// It matches the frames byte for byte.
    Holds,
    /// It does not match.
    Differs,
}

/// The frames so far, and the table after them.
#[derive(Debug, Default)]
pub(crate) struct TableWatch {
    frames: Vec<(u64, u64)>,
    /// Some frames were not kept, or have unknown lengths.
    unknown: bool,
    expected: Vec<u8>,
    passed_bytes: usize,
    state: TableState,
}

impl TableWatch {
    /// A frame and the length of its content.
    pub fn frame(&mut self, compressed_bytes: u64, content_bytes: u64) {
        if self.is_settled() {
            return;
        }
        self.state = TableState::Missing;
        if self.frames.len() == FRAMES_MAX {
            self.unknown = true;
        } else {
            self.frames.push((compressed_bytes, content_bytes));
        }
    }

    /// A frame of unknown length.
    pub fn unknown_frame(&mut self) {
        if !self.is_settled() {
            (self.unknown, self.state) = (true, TableState::Missing);
        }
    }

    /// A skippable frame begins: the table, if it has its length.
    pub fn begin_skippable(&mut self, bytes: u64) {
        if self.is_settled() {
            return;
        }
        self.expected.clear();
        self.passed_bytes = 0;
        if bytes != 8 * self.frames.len() as u64 + AROUND_BYTES || self.unknown {
            return;
        }
        let mut table = SeekTableBuilder::new();
        let pushed = self
            .frames
            .iter()
            .all(|(compressed, content)| table.push(*compressed, *content, None).is_ok());
        if pushed {
            self.expected = table.encode();
            self.state = TableState::Holds;
            self.frames.clear();
        }
    }

    /// Bytes of it.
    pub fn skippable(&mut self, bytes: &[u8]) {
        if self.expected.is_empty() || self.is_settled() {
            return;
        }
        let end = self.passed_bytes + bytes.len();
        if self.expected.get(self.passed_bytes..end) != Some(bytes) {
            self.state = TableState::Differs;
        }
        self.passed_bytes = end;
    }

    /// Whether a table passed that matches all frames before it. Data after it on a device are
    /// remains of an older archive.
    fn is_settled(&self) -> bool {
        let passed = !self.expected.is_empty() && self.passed_bytes == self.expected.len();
        passed && self.state == TableState::Holds
    }

    /// The result after all frames.
    pub fn state(&self) -> TableState {
        let cut_off = !self.expected.is_empty() && self.passed_bytes < self.expected.len();
        if cut_off { TableState::Missing } else { self.state }
    }
}
