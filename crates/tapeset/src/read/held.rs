//! What was read before its turn: it waits in an unnamed file.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use archive::stream::StoredOffset;
use machine::unnamed_file;

use super::failure::TapeReadFailure;
use super::feed::Feed;

/// Most bytes that wait. A tape is read in the order of the stream where more would.
pub const HELD_BYTES_MAX: u64 = 4 << 30;
/// The part of the free space of temporary files that they may take.
const FREE_DIVISOR: u64 = 4;
/// Bytes that are copied at once.
const STEP_BYTES: usize = 1 << 20;

/// Pieces of the stored stream that wait, by their number in it.
#[derive(Default)]
pub(super) struct Held {
    file: Option<File>,
    end_bytes: u64,
    pieces: BTreeMap<usize, HeldPiece>,
    /// The piece that is being read.
    current: HeldPiece,
}

/// Where a piece is in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HeldPiece {
    at_bytes: u64,
    length_bytes: u64,
    /// What cannot be read of it: from where in the piece, place in the stream, length, why.
    gaps: Vec<(u64, StoredOffset, u64, String)>,
}

impl Held {
    /// Most bytes that may wait now: none where no file can be made.
    pub fn bytes_max(&mut self) -> u64 {
        if self.file.is_none() {
            self.file = unnamed_file().ok();
        }
        let free = self.file.as_ref().and_then(|file| rustix::fs::fstatvfs(file).ok());
        let free = free.map_or(0, |free| free.f_bavail.saturating_mul(free.f_frsize));
        HELD_BYTES_MAX.min(free / FREE_DIVISOR)
    }

    /// Begins a piece.
    pub fn begin(&mut self) -> Result<(), TapeReadFailure> {
        if self.file.is_none() {
            self.file = Some(unnamed_file().map_err(TapeReadFailure::Keep)?);
        }
        self.current = HeldPiece { at_bytes: self.end_bytes, ..HeldPiece::default() };
        Ok(())
    }

    /// Adds bytes to the piece.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), TapeReadFailure> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_all_at(bytes, self.end_bytes).map_err(TapeReadFailure::Keep)?;
        self.end_bytes += bytes.len() as u64;
        self.current.length_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Adds a gap of the stream to the piece.
    pub fn put_gap(&mut self, start_bytes: StoredOffset, bytes: u64, why: &str) {
        let at = self.current.length_bytes;
        self.current.gaps.push((at, start_bytes, bytes, why.to_owned()));
    }

    /// Ends the piece: it has this number.
    pub fn end(&mut self, number: usize) {
        self.pieces.insert(number, std::mem::take(&mut self.current));
    }

    /// Passes a piece on, if it waits.
    pub fn pass_on(&mut self, number: usize, feed: &mut Feed<'_>) -> Result<bool, TapeReadFailure> {
        let (Some(piece), Some(file)) = (self.pieces.remove(&number), &self.file) else {
            return Ok(false);
        };
        let mut buffer = vec![0; STEP_BYTES];
        let mut passed = 0;
        let gaps = piece.gaps.into_iter().map(Some).chain([None]);
        for gap in gaps {
            let to = gap.as_ref().map_or(piece.length_bytes, |(at, ..)| *at);
            while passed < to {
                let now = (to - passed).min(STEP_BYTES as u64) as usize;
                let read = file.read_exact_at(&mut buffer[..now], piece.at_bytes + passed);
                read.map_err(TapeReadFailure::Keep)?;
                feed.put(&buffer[..now])?;
                passed += now as u64;
            }
            if let Some((_, start_bytes, bytes, why)) = gap {
                feed.put_gap(start_bytes, bytes, why)?;
            }
        }
        if self.pieces.is_empty() {
            self.end_bytes = 0;
        }
        Ok(true)
    }
}
