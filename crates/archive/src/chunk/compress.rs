//! Compression of one chunk, and the meaning of each level.
//!
//! A level stands for a size: that of the `zstd` or `gzip` command with the same level on the same
//! data, within a per cent. The parameters that reach it are our own: `docs/design/compression.md`
//! has the measurements behind the numbers here. Changing one changes the output of a level, so it
//! needs a release note.

use libdeflater::{CompressionLvl, Compressor};
use zstd::zstd_safe::{CCtx, CParameter, Strategy, compress_bound, get_error_name};

use super::error::{ChunkError, Coding};
use super::gzip_member::{self, FOOTER_BYTES, HEADER_BYTES, MemberLengths};
use super::{CHUNK_BYTES_MAX, Compression, ZSTD_LEVEL_DEFAULT};

/// Compresses chunks, one after the other, with one context that is reused. Every worker thread has
/// its own. The output depends only on the input and the compression.
pub struct ChunkCompressor {
    compression: Compression,
    engine: Engine,
}

enum Engine {
    None,
    Zstd(Box<ZstdEngine>),
    Gzip(Compressor),
}

struct ZstdEngine {
    /// The library's level with our own window.
    regular: CCtx<'static>,
    /// A faster context, for chunks on which it is nearly as good.
    fast: Option<CCtx<'static>>,
    sample: Vec<u8>,
}

impl ChunkCompressor {
    /// A compressor with one context. Its memory grows with the level: 2 MiB for zstd 3 and for
    /// gzip, 40 MiB for zstd 12, 80 MiB for zstd 19, 640 MiB for zstd 22.
    ///
    /// # Errors
    /// `LevelOutOfRange` for an unchecked level.
    pub fn new(compression: Compression) -> Result<ChunkCompressor, ChunkError> {
        compression.check()?;
        let engine = match compression {
            Compression::None => Engine::None,
            Compression::Zstd { level } => Engine::Zstd(Box::new(ZstdEngine::new(level))),
            Compression::Gzip { level } => Engine::Gzip(gzip_compressor(level)),
        };
        Ok(ChunkCompressor { compression, engine })
    }

    /// The compression it was made for.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Replaces the content of `out` with one frame or member that holds `input`; its capacity is
    /// reused. An empty input gives an empty frame. Without compression the input is copied.
    ///
    /// # Errors
    /// `ChunkTooLarge` beyond [`CHUNK_BYTES_MAX`]; `Compress` when memory runs out.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), ChunkError> {
        if input.len() > CHUNK_BYTES_MAX {
            let limit_bytes = CHUNK_BYTES_MAX;
            return Err(ChunkError::ChunkTooLarge { length_bytes: input.len(), limit_bytes });
        }
        match &mut self.engine {
            Engine::None => {
                out.clear();
                out.extend_from_slice(input);
                Ok(())
            }
            Engine::Zstd(engine) => engine.compress(input, out),
            Engine::Gzip(compressor) => compress_gzip(compressor, input, out),
        }
    }

    /// Like `compress`, but in a form whose length depends only on the length of the input, if the
    /// format has such a form. It is for a last chunk that must be found from the end of a file.
    /// For gzip that is a stored member ([`gzip_member::find_stored_member`] finds it). A zstd
    /// stream has its seek table for that purpose and gets an ordinary frame.
    ///
    /// # Errors
    /// As [`ChunkCompressor::compress`].
    pub fn compress_last(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), ChunkError> {
        if let Engine::Gzip(_) = self.engine {
            out.clear();
            return gzip_member::encode_stored_member(input, out);
        }
        self.compress(input, out)
    }
}

impl ZstdEngine {
    fn new(level: i32) -> ZstdEngine {
        let settings = zstd_settings(level);
        let fast = settings.try_fast.then(|| fast_context(&settings));
        ZstdEngine { regular: regular_context(level, &settings), fast, sample: Vec::new() }
    }

    fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), ChunkError> {
        let context = match &mut self.fast {
            Some(fast) if input.len() >= CHOICE_BYTES_MIN => {
                take_sample(input, &mut self.sample);
                compress_zstd(fast, &self.sample, out)?;
                let fast_bytes = out.len();
                compress_zstd(&mut self.regular, &self.sample, out)?;
                let accepted_bytes = out.len() + out.len() * FAST_EXCESS_PER_MILLE / 1000;
                if fast_bytes <= accepted_bytes { fast } else { &mut self.regular }
            }
            _ => &mut self.regular,
        };
        compress_zstd(context, input, out)
    }
}

/// Pieces of a sample, bytes of each, the smallest chunk that is worth a sample, and how much
/// larger (in thousandths) the fast compression of the sample may be. From measurements:
/// `docs/design/compression.md`. They determine the output, like a level does.
const SAMPLE_PIECES: usize = 3;
const SAMPLE_PIECE_BYTES: usize = 32 << 10;
const CHOICE_BYTES_MIN: usize = 1 << 20;
const FAST_EXCESS_PER_MILLE: usize = 35;

/// Pieces spread evenly over the chunk.
fn take_sample(input: &[u8], sample: &mut Vec<u8>) {
    sample.clear();
    let room_bytes = input.len() - SAMPLE_PIECE_BYTES;
    for piece in 0..SAMPLE_PIECES {
        let at = room_bytes * (2 * piece + 1) / (2 * SAMPLE_PIECES);
        sample.extend_from_slice(&input[at..at + SAMPLE_PIECE_BYTES]);
    }
}

fn compress_zstd(
    context: &mut CCtx<'static>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ChunkError> {
    out.clear();
    out.reserve(compress_bound(input.len()));
    match context.compress2(out, input) {
        Ok(_) => Ok(()),
        Err(code) => Err(ChunkError::Compress {
            coding: Coding::Zstd,
            reason: get_error_name(code).to_owned(),
        }),
    }
}

fn compress_gzip(
    compressor: &mut Compressor,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ChunkError> {
    let bound_bytes = compressor.deflate_compress_bound(input.len());
    out.resize(HEADER_BYTES + bound_bytes + FOOTER_BYTES, 0);
    let deflate_bytes = compressor
        .deflate_compress(input, &mut out[HEADER_BYTES..HEADER_BYTES + bound_bytes])
        .map_err(|error| ChunkError::Compress {
            coding: Coding::Gzip,
            reason: format!("{error:?}"),
        })?;
    out.truncate(HEADER_BYTES + deflate_bytes);
    out.extend_from_slice(&libdeflater::crc32(input).to_le_bytes());
    out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    let lengths =
        MemberLengths { member_bytes: out.len() as u32, content_bytes: input.len() as u32 };
    out[..HEADER_BYTES].copy_from_slice(&gzip_member::encode_header(lengths));
    Ok(())
}

/// The parameters of a zstd level, if they differ from the library's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZstdSettings {
    pub chunk_bytes: usize,
    window_log: u32,
    /// Whether chunks are tried with the fast strategy first.
    try_fast: bool,
}

/// Chunks are 8 MiB with a window as large as the chunk: what a match loses at the edge of the
/// chunk, it gains by reaching further inside. The slow levels get longer chunks, so that their
/// longer windows are worth having.
pub(super) fn zstd_settings(level: i32) -> ZstdSettings {
    let (chunk_bytes, window_log) = match level {
        ..=12 => (8 << 20, 23),
        13..=19 => (32 << 20, 25),
        20.. => (CHUNK_BYTES_MAX, 26),
    };
    ZstdSettings { chunk_bytes, window_log, try_fast: level == ZSTD_LEVEL_DEFAULT }
}

fn regular_context(level: i32, settings: &ZstdSettings) -> CCtx<'static> {
    let mut context = CCtx::create();
    let mut set = |parameter| {
        context.set_parameter(parameter).expect("a checked level and constants within bounds");
    };
    set(CParameter::CompressionLevel(level));
    set(CParameter::WindowLog(settings.window_log));
    set(CParameter::ChecksumFlag(true));
    set(CParameter::ContentSizeFlag(true));
    context
}

/// One hash table of 2^17 places, half a second-level cache of 1 MiB, and matches from six bytes
/// on: up to a third faster than level 3 proper, and on many data as small.
fn fast_context(settings: &ZstdSettings) -> CCtx<'static> {
    let mut context = regular_context(ZSTD_LEVEL_DEFAULT, settings);
    let mut set = |parameter| {
        context.set_parameter(parameter).expect("constants within bounds");
    };
    set(CParameter::Strategy(Strategy::ZSTD_fast));
    set(CParameter::HashLog(17));
    set(CParameter::MinMatch(6));
    context
}

/// Maps gzip's levels to libdeflate's, whose level N - 1 is smaller than zlib's N and several times
/// as fast. Levels above 9 are libdeflate's own.
fn gzip_compressor(level: i32) -> Compressor {
    let level = match level {
        2..=9 => level - 1,
        level => level,
    };
    Compressor::new(CompressionLvl::new(level).expect("a checked level"))
}
