//! Decompression of a stream whose frames or members have no known end.
//!
//! The caller passes in slices of compressed data and gets slices of output; nothing is read or
//! written here. The decoder stops after every frame or member, so that a `BoundaryFinder` can
//! examine the next bytes. It needs the memory of one window (which the caller limits) and, for
//! gzip, of a member header.

use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use super::error::{ChunkError, Coding};
use super::gzip_member::{self, FOOTER_BYTES};
use super::zstd_frame::{self, FrameHeader, HEADER_BYTES_MAX, Opening};
use crate::stream::StoredOffset;

/// The window of `zstd --long=31`, the longest there is.
const WINDOW_LOG_MAX: u32 = 31;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStep {
    /// Bytes of the input that were consumed.
    pub consumed_bytes: usize,
    /// Bytes of the output that are filled.
    pub produced_bytes: usize,
    /// How to continue.
    pub state: StreamState,
}

/// How to continue after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// Call again. If the output was filled to its end, with room, even if there is no more input;
    /// otherwise with more input.
    Inside,
    /// A frame or member ended and its checksum matches. Another one, or the end, or other data may
    /// follow: use a `BoundaryFinder`, or continue if it is known to be another one.
    FrameEnded,
}

/// Decodes one frame or member after the other.
pub struct StreamDecoder {
    /// Where the frame or member starts.
    frame_offset_bytes: StoredOffset,
    /// Offset of the next byte of input.
    offset_bytes: StoredOffset,
    engine: Engine,
}

enum Engine {
    Gzip(Box<GzipStream>),
    Zstd(Box<ZstdStream>),
}

impl StreamDecoder {
    /// A plain `zstd -d` accepts this window too: 128 MiB.
    pub const WINDOW_BYTES_DEFAULT: u64 = 128 << 20;

    /// A decoder for a stream whose first frame or member starts at `offset_bytes`. It refuses a
    /// zstd frame that needs a window of more than `window_bytes_max`; windows have at most 2 GiB.
    pub fn new(coding: Coding, offset_bytes: StoredOffset, window_bytes_max: u64) -> StreamDecoder {
        let engine = match coding {
            Coding::Gzip => Engine::Gzip(Box::new(GzipStream::new())),
            Coding::Zstd => Engine::Zstd(Box::new(ZstdStream::new(window_bytes_max))),
        };
        StreamDecoder { frame_offset_bytes: offset_bytes, offset_bytes, engine }
    }

    /// Compressed bytes consumed so far, plus the offset the decoder started at.
    pub fn offset_bytes(&self) -> StoredOffset {
        self.offset_bytes
    }

    /// Decodes from `input` into `out`, which must have room, until one of them is used up or a
    /// frame or member ends.
    ///
    /// # Errors
    /// `NotAFrame`, `Damaged`, `WindowTooLarge`, `DictionaryNeeded`. The decoder cannot be used
    /// afterwards.
    pub fn push(&mut self, input: &[u8], out: &mut [u8]) -> Result<StreamStep, ChunkError> {
        let step = match &mut self.engine {
            Engine::Gzip(stream) => stream.push(input, out, self.frame_offset_bytes)?,
            Engine::Zstd(stream) => stream.push(input, out, self.frame_offset_bytes)?,
        };
        self.offset_bytes += step.consumed_bytes as u64;
        if step.state == StreamState::FrameEnded {
            self.frame_offset_bytes = self.offset_bytes;
        }
        Ok(step)
    }

    /// Call this when the input has ended and everything was pushed.
    ///
    /// # Errors
    /// `Truncated` if the end is inside a frame or member.
    pub fn finish(&self) -> Result<(), ChunkError> {
        let (coding, between) = match &self.engine {
            Engine::Gzip(stream) => (Coding::Gzip, stream.is_between_members()),
            Engine::Zstd(stream) => (Coding::Zstd, stream.is_between_frames()),
        };
        if between {
            return Ok(());
        }
        let (offset_bytes, end_bytes) = (self.frame_offset_bytes, self.offset_bytes);
        Err(ChunkError::Truncated { coding, offset_bytes, end_bytes })
    }
}

/// Moves bytes from `input` to `held` until `held` has `length_bytes`. Returns the number moved.
fn hold(held: &mut Vec<u8>, input: &[u8], length_bytes: usize) -> usize {
    let moved = length_bytes.saturating_sub(held.len()).min(input.len());
    held.extend_from_slice(&input[..moved]);
    moved
}

enum GzipState {
    Header,
    Deflate,
    Footer,
}

struct GzipStream {
    state: GzipState,
    /// The part of the header or footer received so far.
    held: Vec<u8>,
    inflate: Decompress,
    crc: libdeflater::Crc,
    content_bytes: u64,
}

impl GzipStream {
    fn new() -> GzipStream {
        GzipStream {
            state: GzipState::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            crc: libdeflater::Crc::new(),
            content_bytes: 0,
        }
    }

    fn is_between_members(&self) -> bool {
        matches!(self.state, GzipState::Header) && self.held.is_empty()
    }

    fn push(
        &mut self,
        input: &[u8],
        out: &mut [u8],
        offset_bytes: StoredOffset,
    ) -> Result<StreamStep, ChunkError> {
        let (mut consumed_bytes, mut produced_bytes) = (0, 0);
        loop {
            let rest = &input[consumed_bytes..];
            match self.state {
                GzipState::Header => {
                    let (consumed, complete) = self.take_header(rest, offset_bytes)?;
                    consumed_bytes += consumed;
                    if !complete {
                        break;
                    }
                }
                GzipState::Deflate => {
                    let room = &mut out[produced_bytes..];
                    let (consumed, produced) = self.inflate(rest, room, offset_bytes)?;
                    consumed_bytes += consumed;
                    produced_bytes += produced;
                    if matches!(self.state, GzipState::Deflate) {
                        break;
                    }
                }
                GzipState::Footer => {
                    consumed_bytes += hold(&mut self.held, rest, FOOTER_BYTES);
                    if self.held.len() < FOOTER_BYTES {
                        break;
                    }
                    self.check_footer(offset_bytes)?;
                    let state = StreamState::FrameEnded;
                    return Ok(StreamStep { consumed_bytes, produced_bytes, state });
                }
            }
        }
        Ok(StreamStep { consumed_bytes, produced_bytes, state: StreamState::Inside })
    }

    /// Consumes input up to the end of the header. Returns whether it is complete.
    fn take_header(
        &mut self,
        input: &[u8],
        offset_bytes: StoredOffset,
    ) -> Result<(usize, bool), ChunkError> {
        let held_before = self.held.len();
        let mut moved = 0;
        loop {
            // Grown in steps, because the length is known only once the header is complete. From
            // ten bytes on, a quarter is at least one byte more.
            let length_bytes = (self.held.len() + self.held.len() / 4).max(10);
            moved += hold(&mut self.held, &input[moved..], length_bytes);
            if let Some(header) = gzip_member::decode_header(&self.held, offset_bytes)? {
                self.held.clear();
                self.inflate.reset(false);
                self.crc = libdeflater::Crc::new();
                self.content_bytes = 0;
                self.state = GzipState::Deflate;
                return Ok((header.header_bytes - held_before, true));
            }
            if moved == input.len() {
                return Ok((moved, false));
            }
        }
    }

    fn inflate(
        &mut self,
        input: &[u8],
        out: &mut [u8],
        offset_bytes: StoredOffset,
    ) -> Result<(usize, usize), ChunkError> {
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(input, out, FlushDecompress::None)
            .map_err(|_| gzip_damaged(offset_bytes, "deflate data makes no sense"))?;
        let consumed = (self.inflate.total_in() - before_in) as usize;
        let produced = (self.inflate.total_out() - before_out) as usize;
        self.crc.update(&out[..produced]);
        self.content_bytes += produced as u64;
        if status == Status::StreamEnd {
            self.state = GzipState::Footer;
        }
        Ok((consumed, produced))
    }

    fn check_footer(&mut self, offset_bytes: StoredOffset) -> Result<(), ChunkError> {
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        let (crc, length) = (word(&self.held[..4]), word(&self.held[4..]));
        self.held.clear();
        self.state = GzipState::Header;
        if crc != self.crc.sum() {
            return Err(gzip_damaged(offset_bytes, "checksum of the content differs"));
        }
        // RFC 1952: the length modulo 2^32.
        if length != self.content_bytes as u32 {
            return Err(gzip_damaged(offset_bytes, "length of the content differs"));
        }
        Ok(())
    }
}

fn gzip_damaged(offset_bytes: StoredOffset, reason: &str) -> ChunkError {
    ChunkError::Damaged { coding: Coding::Gzip, offset_bytes, reason: reason.to_owned() }
}

enum ZstdState {
    Header,
    /// The header was checked; this much of it has been passed to the library.
    Replay {
        given_bytes: usize,
    },
    Blocks,
    Skip {
        rest_bytes: u64,
    },
}

struct ZstdStream {
    state: ZstdState,
    /// The part of the frame header received so far.
    held: Vec<u8>,
    context: DCtx<'static>,
    window_bytes_max: u64,
    /// The last output was filled to its end, so there may be more output without more input.
    more_to_flush: bool,
}

impl ZstdStream {
    fn new(window_bytes_max: u64) -> ZstdStream {
        let mut context = DCtx::create();
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
            .expect("31 is the library's own upper bound on 64-bit machines");
        let (state, held) = (ZstdState::Header, Vec::new());
        ZstdStream { state, held, context, window_bytes_max, more_to_flush: false }
    }

    fn is_between_frames(&self) -> bool {
        matches!(self.state, ZstdState::Header) && self.held.is_empty()
    }

    fn push(
        &mut self,
        input: &[u8],
        out: &mut [u8],
        offset_bytes: StoredOffset,
    ) -> Result<StreamStep, ChunkError> {
        let mut consumed_bytes = 0;
        let step = |consumed_bytes, produced_bytes, state| {
            Ok(StreamStep { consumed_bytes, produced_bytes, state })
        };
        loop {
            let rest = &input[consumed_bytes..];
            match self.state {
                ZstdState::Header => {
                    let (consumed, complete) = self.take_header(rest, offset_bytes)?;
                    consumed_bytes += consumed;
                    if !complete {
                        return step(consumed_bytes, 0, StreamState::Inside);
                    }
                }
                ZstdState::Replay { given_bytes } => {
                    let held = std::mem::take(&mut self.held);
                    let (given, _, ended) = self.decode(&held[given_bytes..], out, offset_bytes)?;
                    debug_assert!(!ended, "a frame header alone ends no frame");
                    let given_bytes = given_bytes + given;
                    if given_bytes == held.len() {
                        self.state = ZstdState::Blocks;
                    } else {
                        self.held = held;
                        self.state = ZstdState::Replay { given_bytes };
                    }
                }
                // The library counts calls without progress, and fails at the sixteenth.
                ZstdState::Blocks if rest.is_empty() && !self.more_to_flush => {
                    return step(consumed_bytes, 0, StreamState::Inside);
                }
                ZstdState::Blocks => {
                    let (consumed, produced, ended) = self.decode(rest, out, offset_bytes)?;
                    consumed_bytes += consumed;
                    let state = if ended {
                        self.state = ZstdState::Header;
                        StreamState::FrameEnded
                    } else {
                        StreamState::Inside
                    };
                    return step(consumed_bytes, produced, state);
                }
                ZstdState::Skip { rest_bytes } => {
                    let skipped = rest_bytes.min(rest.len() as u64);
                    consumed_bytes += skipped as usize;
                    if skipped < rest_bytes {
                        self.state = ZstdState::Skip { rest_bytes: rest_bytes - skipped };
                        return step(consumed_bytes, 0, StreamState::Inside);
                    }
                    self.state = ZstdState::Header;
                    return step(consumed_bytes, 0, StreamState::FrameEnded);
                }
            }
        }
    }

    fn take_header(
        &mut self,
        input: &[u8],
        offset_bytes: StoredOffset,
    ) -> Result<(usize, bool), ChunkError> {
        let mut consumed = 0;
        while self.held.len() < HEADER_BYTES_MAX {
            let length_bytes = self.held.len() + 1;
            let moved = hold(&mut self.held, &input[consumed..], length_bytes);
            consumed += moved;
            match zstd_frame::decode_opening(&self.held, offset_bytes)? {
                Opening::Frame(header) => {
                    self.start_frame(header, offset_bytes)?;
                    return Ok((consumed, true));
                }
                Opening::Skippable { content_bytes } => {
                    self.held.clear();
                    self.state = ZstdState::Skip { rest_bytes: content_bytes.into() };
                    return Ok((consumed, true));
                }
                Opening::NeedMore if moved == 0 => break,
                Opening::NeedMore => {}
            }
        }
        Ok((consumed, false))
    }

    fn start_frame(
        &mut self,
        header: FrameHeader,
        offset_bytes: StoredOffset,
    ) -> Result<(), ChunkError> {
        if header.dictionary_id != 0 {
            let dictionary_id = header.dictionary_id;
            return Err(ChunkError::DictionaryNeeded { offset_bytes, dictionary_id });
        }
        let (window_bytes, limit_bytes) = (header.window_bytes, self.window_bytes_max);
        if window_bytes > limit_bytes.min(1 << WINDOW_LOG_MAX) {
            return Err(ChunkError::WindowTooLarge { offset_bytes, window_bytes, limit_bytes });
        }
        self.context
            .reset(ResetDirective::SessionOnly)
            .map_err(|code| zstd_damaged(offset_bytes, code))?;
        self.state = ZstdState::Replay { given_bytes: 0 };
        Ok(())
    }

    /// Bytes consumed, bytes produced, and whether the frame ended.
    fn decode(
        &mut self,
        input: &[u8],
        out: &mut [u8],
        offset_bytes: StoredOffset,
    ) -> Result<(usize, usize, bool), ChunkError> {
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(out);
        let hint = self
            .context
            .decompress_stream(&mut target, &mut source)
            .map_err(|code| zstd_damaged(offset_bytes, code))?;
        let (consumed, produced) = (source.pos(), target.pos());
        self.more_to_flush = produced == out.len();
        Ok((consumed, produced, hint == 0))
    }
}

fn zstd_damaged(offset_bytes: StoredOffset, code: usize) -> ChunkError {
    let reason = get_error_name(code).to_owned();
    ChunkError::Damaged { coding: Coding::Zstd, offset_bytes, reason }
}
