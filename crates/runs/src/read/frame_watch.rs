//! The outside of compressed chunks, held against what Takeup writes there.
//!
//! A gzip member's header has a time, a system, hints and a field for extensions, which no checksum
//! of the format covers and every reader passes over; a zstd frame has a bit that nobody uses. A
//! flip there harms no content, but a medium that flips bits is damaged, and who asks whether an
//! archive is sound wants to hear of it. Where one member of an archive is ours, all are: whoever
//! compresses an archive anew leaves none of ours. Whether the source holds other archives, whose
//! members are not ours, is not known here: `verify` asks only where there is one.

use archive::chunk::{Coding, is_as_written};
use archive::stream::StoredOffset;

use super::table_watch::TableState;

/// What is known of the outside of a compressed archive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outside {
    /// What became of the seek table, where the stream was cut without an index.
    pub table: TableState,
    /// Whether the headers of the chunks are ours.
    pub headers: ChunkHeaders,
}

/// Who has written the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChunkHeaders {
    /// None is ours, or there are none.
    #[default]
    Foreign,
    /// All are as Takeup writes them.
    AsWritten,
    /// Some are, and this is the first that is not.
    Changed(StoredOffset),
}

/// Frames or members as they go by.
#[derive(Debug, Default)]
pub(crate) struct FrameWatch {
    any_as_written: bool,
    /// The first that is not as Takeup writes them.
    unlike: Option<StoredOffset>,
    /// The same, once one as Takeup writes them came behind it: what lies behind an archive on a
    /// device may be anyone's.
    changed: Option<StoredOffset>,
    /// Bytes that are no frame came: what lies behind them may be anyone's.
    is_settled: bool,
}

impl FrameWatch {
    /// One begins with these bytes, which hold all of its header.
    pub fn frame(&mut self, coding: Coding, bytes: &[u8], offset_bytes: StoredOffset) {
        if self.is_settled {
            return;
        }
        if is_as_written(coding, bytes) {
            self.any_as_written = true;
            self.changed = self.unlike;
        } else {
            self.unlike.get_or_insert(offset_bytes);
        }
    }

    /// Bytes that are no frame: the end of the archive, or damage that is told by itself. What a
    /// device held before may lie behind them.
    pub fn settle(&mut self) {
        self.is_settled = true;
    }

    /// What is known once all have gone by. A seek table that is that of all frames in front of it
    /// shows that they are of one archive, the last one too, which no other comes behind.
    pub fn headers(&self, table: TableState) -> ChunkHeaders {
        let changed = if table == TableState::Holds { self.unlike } else { self.changed };
        match changed {
            _ if !self.any_as_written => ChunkHeaders::Foreign,
            Some(at) => ChunkHeaders::Changed(at),
            None => ChunkHeaders::AsWritten,
        }
    }
}
