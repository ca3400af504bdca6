//! Compares the headers of compressed chunks with what Takeup writes.
//!
//! The header of a gzip member has a time, a system, hints and a field for extensions. No checksum
//! of the format covers them, and every reader ignores them; a zstd frame has an unused bit. A flip
//! there does not change content, but shows that the medium flips bits, which a verification must
//! report. If Takeup wrote one member of an archive, it wrote all, since recompressing replaces all
//! of them. Whether the source holds other archives is not known here: `verify` uses the result
//! only for a single archive.

use archive::chunk::{Coding, is_as_written};
use archive::stream::StoredOffset;

use super::table_watch::TableState;

/// What is known of the headers of a compressed archive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outside {
    /// The state of the seek table, if the stream was cut without an index.
    pub table: TableState,
    /// Whether Takeup wrote the headers.
    pub headers: ChunkHeaders,
}

/// Who wrote the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChunkHeaders {
    /// Takeup wrote none, or there are none.
    #[default]
    Foreign,
    /// All are as Takeup writes them.
    AsWritten,
    /// Some are; this is the first that is not.
    Changed(StoredOffset),
}

/// Watches frames or members as they pass.
#[derive(Debug, Default)]
pub(crate) struct FrameWatch {
    any_as_written: bool,
    /// The first that is not as Takeup writes them.
    unlike: Option<StoredOffset>,
    /// The same, once a header as Takeup writes it followed: what comes after an archive on a
    /// device may belong to another program.
    changed: Option<StoredOffset>,
    /// Bytes that are no frame came: what follows may belong to another program.
    is_settled: bool,
}

impl FrameWatch {
    /// A frame begins with these bytes, which hold its whole header.
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

    /// Bytes that are no frame: the end of the archive, or damage that is reported separately.
    /// Older data of a device may follow.
    pub fn settle(&mut self) {
        self.is_settled = true;
    }

    /// The result after all frames. A seek table that matches all frames proves that they belong to
    /// one archive, which nothing follows.
    pub fn headers(&self, table: TableState) -> ChunkHeaders {
        let changed = if table == TableState::Holds { self.unlike } else { self.changed };
        match changed {
            _ if !self.any_as_written => ChunkHeaders::Foreign,
            Some(at) => ChunkHeaders::Changed(at),
            None => ChunkHeaders::AsWritten,
        }
    }
}
