//! Finds the end of the next chunk without decompressing it.
//!
//! The finder examines the start of the remaining compressed stream, a prefix that the caller
//! lengthens on request. It returns the exact length of the next frame or member, or that the
//! length cannot be found this way, or not within the limit. Zstd frames show their length by their
//! block headers, whatever wrote them. Of gzip members only ours show it. So the caller needs to
//! hold no more than the limit, and the finder holds nothing.

use super::error::{ChunkError, Coding};
use super::gzip_member::{self, FOOTER_BYTES};
use super::zstd_frame::{self, BlockWalk, FrameHeader, Opening, Walked};
use crate::stream::StoredOffset;

/// Whether bytes may follow the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// More bytes may come.
    MoreMayFollow,
    /// The prefix reaches to the end of the input.
    Ended,
}

/// The finder's answer for the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A chunk of `compressed_bytes`, completely in the prefix, ready for a `ChunkDecompressor`.
    Chunk {
        /// Length of the frame or member.
        compressed_bytes: usize,
        /// Most content it can hold, within the limit; the exact length if the frame has it.
        content_bytes_max: usize,
    },
    /// A skippable zstd frame (a seek table, for example), which the caller drops. It may reach
    /// beyond the prefix.
    Skippable { compressed_bytes: u64 },
    /// The prefix must be longer before there is an answer.
    NeedMore {
        /// Least length of the prefix, in bytes; larger than the present one.
        prefix_bytes: usize,
    },
    /// The end is unknown or beyond the limits: a `StreamDecoder` takes over, from the first byte
    /// of the prefix to the end of this frame or member.
    Stream,
    /// No frame or member starts here, but at least one came before.
    Trailing,
    /// The input ended with the last frame or member.
    End,
}

/// Finds one boundary after the other in a compressed stream.
#[derive(Clone, Debug)]
pub struct BoundaryFinder {
    coding: Coding,
    limit_bytes: usize,
    offset_bytes: StoredOffset,
    walk: Option<(FrameHeader, BlockWalk)>,
    any_before: bool,
}

impl BoundaryFinder {
    /// A finder for a stream whose first frame or member is at the start of the first prefix. The
    /// stream decoder has to take a chunk of more than `limit_bytes`, compressed or not.
    pub fn new(coding: Coding, limit_bytes: usize) -> BoundaryFinder {
        BoundaryFinder {
            coding,
            limit_bytes,
            offset_bytes: StoredOffset::START,
            walk: None,
            any_before: false,
        }
    }

    /// Where the prefix starts in the compressed stream.
    pub fn offset_bytes(&self) -> StoredOffset {
        self.offset_bytes
    }

    /// The caller has removed `compressed_bytes`, a whole frame or member, from the prefix.
    pub fn advance(&mut self, compressed_bytes: u64) {
        self.offset_bytes += compressed_bytes;
        self.walk = None;
        self.any_before = true;
    }

    /// Examines the start of `prefix`. Between two calls to `advance` the prefix may grow but must
    /// not change.
    ///
    /// # Errors
    /// `Truncated` if the input ended inside a frame or member; `NotAFrame` if the very first bytes
    /// are not one; `Damaged` if the framing is invalid; `DictionaryNeeded`.
    pub fn examine(&mut self, prefix: &[u8], input: Input) -> Result<Boundary, ChunkError> {
        if prefix.is_empty() && input == Input::Ended && self.any_before {
            return Ok(Boundary::End);
        }
        let boundary = match self.coding {
            Coding::Gzip => self.examine_gzip(prefix),
            Coding::Zstd => self.examine_zstd(prefix),
        };
        match boundary {
            Err(ChunkError::NotAFrame { .. }) if self.any_before => Ok(Boundary::Trailing),
            // Less than a magic number behind a frame: not the remains of a frame.
            Ok(Boundary::NeedMore { .. })
                if input == Input::Ended
                    && self.any_before
                    && prefix.len() < self.magic_bytes() =>
            {
                Ok(Boundary::Trailing)
            }
            Ok(Boundary::NeedMore { .. }) if input == Input::Ended => Err(self.truncated(prefix)),
            Ok(Boundary::NeedMore { prefix_bytes }) if prefix_bytes > self.limit_bytes => {
                Ok(Boundary::Stream)
            }
            other => other,
        }
    }

    fn magic_bytes(&self) -> usize {
        match self.coding {
            Coding::Gzip => 2,
            Coding::Zstd => 4,
        }
    }

    fn truncated(&self, prefix: &[u8]) -> ChunkError {
        let (coding, offset_bytes) = (self.coding, self.offset_bytes);
        ChunkError::Truncated {
            coding,
            offset_bytes,
            end_bytes: offset_bytes + prefix.len() as u64,
        }
    }

    fn examine_gzip(&mut self, prefix: &[u8]) -> Result<Boundary, ChunkError> {
        let Some(header) = gzip_member::decode_header(prefix, self.offset_bytes)? else {
            let least_bytes = gzip_member::HEADER_BYTES;
            let doubled_bytes = prefix.len().saturating_mul(2);
            return Ok(Boundary::NeedMore { prefix_bytes: doubled_bytes.max(least_bytes) });
        };
        let Some(lengths) = header.lengths else { return Ok(Boundary::Stream) };
        let compressed_bytes = lengths.member_bytes as usize;
        let content_bytes_max = lengths.content_bytes as usize;
        let too_short = compressed_bytes < header.header_bytes + FOOTER_BYTES;
        if too_short || compressed_bytes.max(content_bytes_max) > self.limit_bytes {
            return Ok(Boundary::Stream);
        }
        if compressed_bytes > prefix.len() {
            return Ok(Boundary::NeedMore { prefix_bytes: compressed_bytes });
        }
        Ok(Boundary::Chunk { compressed_bytes, content_bytes_max })
    }

    fn examine_zstd(&mut self, prefix: &[u8]) -> Result<Boundary, ChunkError> {
        let (header, mut walk) = match self.walk {
            Some(walk) => walk,
            None => match zstd_frame::decode_opening(prefix, self.offset_bytes)? {
                Opening::NeedMore => {
                    let least_bytes = if prefix.len() < 8 { 8 } else { prefix.len() + 1 };
                    return Ok(Boundary::NeedMore { prefix_bytes: least_bytes });
                }
                Opening::Skippable { content_bytes } => {
                    return Ok(Boundary::Skippable {
                        compressed_bytes: 8 + u64::from(content_bytes),
                    });
                }
                Opening::Frame(header) => (header, BlockWalk::new(header)),
            },
        };
        if header.dictionary_id != 0 {
            let (offset_bytes, dictionary_id) = (self.offset_bytes, header.dictionary_id);
            return Err(ChunkError::DictionaryNeeded { offset_bytes, dictionary_id });
        }
        let limit = self.limit_bytes as u64;
        if header.content_bytes.is_some_and(|content| content > limit) {
            return Ok(Boundary::Stream);
        }
        let walked = walk.walk(prefix, self.offset_bytes)?;
        self.walk = Some((header, walk));
        let (frame_bytes, content_bytes_max) = match walked {
            Walked::End { frame_bytes, content_bytes_max } => (frame_bytes, content_bytes_max),
            Walked::NeedMore { prefix_bytes } if prefix_bytes > limit => {
                return Ok(Boundary::Stream);
            }
            Walked::NeedMore { prefix_bytes } => {
                return Ok(Boundary::NeedMore { prefix_bytes: prefix_bytes as usize });
            }
        };
        if frame_bytes.max(content_bytes_max) > limit {
            return Ok(Boundary::Stream);
        }
        let compressed_bytes = frame_bytes as usize;
        if compressed_bytes > prefix.len() {
            return Ok(Boundary::NeedMore { prefix_bytes: compressed_bytes });
        }
        let content_bytes_max = content_bytes_max as usize;
        Ok(Boundary::Chunk { compressed_bytes, content_bytes_max })
    }
}
