//! Decompression of one chunk whose ends are known.
//!
//! The caller limits the output before a byte is decompressed, so that a small chunk cannot fill
//! the memory. A chunk must be exactly one frame or member: further bytes behind it are damage,
//! because a wrong length would otherwise swallow the next one.
//!
//! A gzip chunk is refused for its content, not for its coding: libdeflate accepts the reserved
//! length and distance symbols (286, 287, 30, 31; RFC 1951, 3.2.6: they "will never actually
//! occur") and completes codes of one word, where zlib and a `StreamDecoder` stop. No encoder
//! writes either, and length and checksum of the content must match all the same.

use libdeflater::{DecompressionError, Decompressor};
use zstd::zstd_safe::{DCtx, get_error_name};

use super::error::{ChunkError, Coding};
use super::gzip_member::{self, FOOTER_BYTES};
use super::zstd_frame::{self, BlockWalk, FrameHeader, Opening, Walked};
use crate::stream::StoredOffset;

/// Decompresses chunks, one after the other, with contexts that are reused. Every worker thread has
/// its own.
pub struct ChunkDecompressor {
    zstd: DCtx<'static>,
    gzip: Decompressor,
}

impl Default for ChunkDecompressor {
    fn default() -> Self {
        ChunkDecompressor::new()
    }
}

impl ChunkDecompressor {
    /// A decompressor for both codings.
    pub fn new() -> ChunkDecompressor {
        ChunkDecompressor { zstd: DCtx::create(), gzip: Decompressor::new() }
    }

    /// Replaces the content of `out` with the content of `chunk`, which is one frame or member that
    /// starts at `offset_bytes` of the compressed stream (for messages). At most `limit_bytes` are
    /// allocated or written: use `content_bytes_max` of the boundary.
    ///
    /// # Errors
    /// `Damaged`, `Truncated`, `ContentTooLarge`, `NotAFrame`, `DictionaryNeeded`. The content of
    /// `out` is then undefined.
    pub fn decompress(
        &mut self,
        coding: Coding,
        chunk: &[u8],
        offset_bytes: StoredOffset,
        limit_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        let place = Place { coding, offset_bytes, limit_bytes };
        match coding {
            Coding::Zstd => {
                let content_bytes_max = place.measure_zstd(chunk)?;
                out.clear();
                out.reserve(content_bytes_max);
                let result = self.zstd.decompress(out, chunk);
                let length = result.map_err(|code| place.damaged(get_error_name(code)))?;
                place.check_length(length)
            }
            Coding::Gzip => {
                let footer = place.measure_gzip(chunk)?;
                out.resize(footer.content_bytes, 0);
                self.inflate(chunk, &footer, place, out)
            }
        }
    }

    /// Like `decompress`, into a slice. Returns the length of the content, which is at most that of
    /// `out`.
    ///
    /// # Errors
    /// As [`ChunkDecompressor::decompress`].
    pub fn decompress_into(
        &mut self,
        coding: Coding,
        chunk: &[u8],
        offset_bytes: StoredOffset,
        out: &mut [u8],
    ) -> Result<usize, ChunkError> {
        let place = Place { coding, offset_bytes, limit_bytes: out.len() };
        match coding {
            Coding::Zstd => {
                place.measure_zstd(chunk)?;
                self.zstd.decompress(out, chunk).map_err(|code| place.damaged(get_error_name(code)))
            }
            Coding::Gzip => {
                let footer = place.measure_gzip(chunk)?;
                self.inflate(chunk, &footer, place, &mut out[..footer.content_bytes])?;
                Ok(footer.content_bytes)
            }
        }
    }

    fn inflate(
        &mut self,
        chunk: &[u8],
        footer: &GzipFooter,
        place: Place,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let deflate = &chunk[footer.header_bytes..chunk.len() - FOOTER_BYTES];
        let length = self.gzip.deflate_decompress(deflate, out).map_err(|error| match error {
            DecompressionError::BadData => place.damaged("deflate data makes no sense"),
            DecompressionError::InsufficientSpace => {
                place.damaged("content is longer than the member says")
            }
        })?;
        if length != footer.content_bytes {
            return Err(place.damaged("content is shorter than the member says"));
        }
        if libdeflater::crc32(out) != footer.content_crc {
            return Err(place.damaged("checksum of the content differs"));
        }
        Ok(())
    }
}

struct GzipFooter {
    header_bytes: usize,
    content_bytes: usize,
    content_crc: u32,
}

#[derive(Clone, Copy)]
struct Place {
    coding: Coding,
    offset_bytes: StoredOffset,
    limit_bytes: usize,
}

impl Place {
    fn damaged(&self, reason: &str) -> ChunkError {
        let (coding, offset_bytes) = (self.coding, self.offset_bytes);
        ChunkError::Damaged { coding, offset_bytes, reason: reason.to_owned() }
    }

    fn truncated(&self, chunk: &[u8]) -> ChunkError {
        let (coding, offset_bytes) = (self.coding, self.offset_bytes);
        ChunkError::Truncated { coding, offset_bytes, end_bytes: offset_bytes + chunk.len() as u64 }
    }

    fn check_length(&self, content_bytes: usize) -> Result<(), ChunkError> {
        if content_bytes <= self.limit_bytes {
            return Ok(());
        }
        Err(ChunkError::ContentTooLarge {
            coding: self.coding,
            offset_bytes: self.offset_bytes,
            limit_bytes: self.limit_bytes as u64,
        })
    }

    /// The most content the frame can hold, after checking its framing.
    fn measure_zstd(&self, chunk: &[u8]) -> Result<usize, ChunkError> {
        let offset_bytes = self.offset_bytes;
        let header: FrameHeader = match zstd_frame::decode_opening(chunk, offset_bytes)? {
            Opening::Frame(header) => header,
            Opening::NeedMore => return Err(self.truncated(chunk)),
            Opening::Skippable { .. } => {
                return Err(ChunkError::NotAFrame { coding: self.coding, offset_bytes });
            }
        };
        if header.dictionary_id != 0 {
            let dictionary_id = header.dictionary_id;
            return Err(ChunkError::DictionaryNeeded { offset_bytes, dictionary_id });
        }
        let walked = BlockWalk::new(header).walk(chunk, offset_bytes)?;
        let Walked::End { frame_bytes, content_bytes_max } = walked else {
            return Err(self.truncated(chunk));
        };
        match frame_bytes.cmp(&(chunk.len() as u64)) {
            std::cmp::Ordering::Greater => return Err(self.truncated(chunk)),
            std::cmp::Ordering::Less => return Err(self.damaged("more bytes follow the frame")),
            std::cmp::Ordering::Equal => {}
        }
        if header.content_bytes.is_some() {
            self.check_length(usize::try_from(content_bytes_max).unwrap_or(usize::MAX))?;
        }
        Ok(usize::try_from(content_bytes_max).unwrap_or(usize::MAX).min(self.limit_bytes))
    }

    fn measure_gzip(&self, chunk: &[u8]) -> Result<GzipFooter, ChunkError> {
        let header = gzip_member::decode_header(chunk, self.offset_bytes)?
            .ok_or_else(|| self.truncated(chunk))?;
        let footer = chunk[header.header_bytes..]
            .last_chunk::<FOOTER_BYTES>()
            .ok_or_else(|| self.truncated(chunk))?;
        let [crc @ .., a, b, c, d] = *footer;
        let content_bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        self.check_length(content_bytes)?;
        let header_bytes = header.header_bytes;
        let named = header.lengths;
        if named.is_some_and(|named| {
            named.member_bytes as usize != chunk.len()
                || named.content_bytes as usize != content_bytes
        }) {
            return Err(self.damaged("lengths in header and footer differ"));
        }
        Ok(GzipFooter { header_bytes, content_bytes, content_crc: u32::from_le_bytes(crc) })
    }
}
