//! Where the segments of a set on tape end: one list for all stages.
//!
//! A reader that holds its turn closes a segment when it is long enough: the end-of-archive mark,
//! then zeros up to a whole block of the ring. The list has the place before these bytes are
//! committed, so a stage that sees the block knows that a segment ends with it. Compressors pad the
//! stored stream there, and pass the place on as it is behind them.
//!
//! Capacity: the stage that passes a place removes it, so the list has as many entries as the ring
//! has segment ends. A segment is at least a block.

use std::sync::{Mutex, MutexGuard};

use archive::chunk::{Coding, Compression, encode_padding, padding_to_block};
use archive::stream::{ArchiveOffset, StoredOffset, stored_plain};
use base::failures::lock;
use flow::account::Account;
use flow::cancel::Stopped;
use flow::ring::{Marks, Producer};

/// Bytes of the end-of-archive mark.
const MARK_BYTES: u64 = 1024;

/// Lengths of the chunks so far, compressed and uncompressed; 8 bytes each.
pub type Chunks = Vec<(u32, u32)>;

/// The segments of a run.
pub struct Segments {
    /// Length at which a segment is closed, in bytes of the archive.
    length_bytes: u64,
    /// What the stored stream is padded to.
    block_bytes: usize,
    coding: Option<Coding>,
    /// Start of the current segment in the archive.
    start_bytes: Mutex<ArchiveOffset>,
    /// Ends in the archive, for the compressors.
    archive_ends: Marks<ArchiveOffset, ()>,
    /// Ends in the stored stream, for the writer.
    stored_ends: Marks<StoredOffset, ()>,
    /// Chunks of the stored stream so far.
    pub chunks: Mutex<Chunks>,
}

impl Segments {
    /// Segments of `length_bytes` or a little more, on blocks of `block_bytes`.
    pub fn new(length_bytes: u64, block_bytes: usize, compression: Compression) -> Segments {
        let coding = match compression {
            Compression::None => None,
            Compression::Gzip { .. } => Some(Coding::Gzip),
            Compression::Zstd { .. } => Some(Coding::Zstd),
        };
        Segments {
            length_bytes,
            block_bytes,
            coding,
            start_bytes: Mutex::default(),
            archive_ends: Marks::default(),
            stored_ends: Marks::default(),
            chunks: Mutex::default(),
        }
    }

    /// Closes the segment if it is long enough. Called between members, with the turn held. Returns
    /// the bytes that this took.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn close_if_full(
        &self,
        producer: &Producer,
        account: &mut Account,
    ) -> Result<u64, Stopped> {
        let start = *lock(&self.start_bytes);
        if position(producer) - start < self.length_bytes {
            return Ok(0);
        }
        self.close(producer, account)
    }

    /// Bytes after which the current segment is long enough.
    pub fn room_bytes(&self, producer: &Producer) -> u64 {
        let filled = position(producer) - *lock(&self.start_bytes);
        self.length_bytes.saturating_sub(filled)
    }

    /// Closes the last segment, unless it is empty. Returns the bytes that this took.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn close_last(&self, producer: &Producer, account: &mut Account) -> Result<u64, Stopped> {
        let position = position(producer);
        let start = *lock(&self.start_bytes);
        if position > ArchiveOffset::START && position == start {
            return Ok(0);
        }
        self.close(producer, account)
    }

    fn close(&self, producer: &Producer, account: &mut Account) -> Result<u64, Stopped> {
        let position = position(producer);
        let ring_block = producer.block_bytes() as u64;
        let end = (position + MARK_BYTES).round_up(ring_block);
        *lock(&self.start_bytes) = end;
        match self.coding {
            None => self.stored_ends.put(stored_plain(end), ()),
            Some(_) => self.archive_ends.put(end, ()),
        }
        let mut rest = (end - position) as usize;
        while rest > 0 {
            let now = rest.min(producer.block_bytes());
            let mut reservation = producer.reserve(now, account)?;
            reservation.filler().zeros(now);
            reservation.commit();
            rest -= now;
        }
        Ok(end - position)
    }

    /// The padding behind a chunk if a segment ends there: `archive_end` is the end of its content
    /// in the archive, `stored_end` its own end in the stored stream. Called once for each chunk,
    /// in order, before the padding is passed on.
    pub fn padding_behind(
        &self,
        archive_end: ArchiveOffset,
        stored_end: StoredOffset,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        let Some(coding) = self.coding else { return };
        if self.archive_ends.take_at(archive_end).is_none() {
            return;
        }
        encode_padding(coding, padding_to_block(stored_end, self.block_bytes), out);
        self.stored_ends.put(stored_end + out.len() as u64, ());
    }

    /// Lengths of the chunks so far.
    pub fn chunks(&self) -> MutexGuard<'_, Chunks> {
        lock(&self.chunks)
    }

    /// Whether a segment ends at this place of the stored stream. True once for each end: the
    /// writer asks at each place between two blocks, in order.
    pub fn take_end(&self, place: StoredOffset) -> bool {
        self.stored_ends.take_at(place).is_some()
    }
}

/// The readers' position in the archive, which their ring holds.
fn position(producer: &Producer) -> ArchiveOffset {
    producer.position_bytes().same_in()
}
