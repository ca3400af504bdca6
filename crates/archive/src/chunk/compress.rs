//! Compression of one chunk, and what each level means.
//!
//! A level names a size: what the `zstd` or `gzip` command of that level makes of the same data,
//! within a per cent. How it is reached is ours: `docs/design/compression.md` has the measurements
//! behind the numbers here. Changing one changes the output of a level, so it needs a release note.

use libdeflater::{CompressionLvl, Compressor};
use zstd::zstd_safe::{CCtx, CParameter, compress_bound, get_error_name};

use super::error::{ChunkError, Coding};
use super::gzip_member::{self, FOOTER_BYTES, HEADER_BYTES, MemberLengths};
use super::{CHUNK_BYTES_MAX, Compression, CompressionError};

/// Compresses chunks, one after the other, with one context that is reused. Every worker thread has
/// its own. The output depends on the input and the compression only.
pub struct ChunkCompressor {
    compression: Compression,
    engine: Engine,
}

enum Engine {
    None,
    Zstd(CCtx<'static>),
    Gzip(Compressor),
}

impl ChunkCompressor {
    /// A compressor with its memory allocated: under 2 MiB up to zstd level 4 and for gzip, tens of
    /// MiB for the highest zstd levels.
    ///
    /// # Errors
    /// `LevelOutOfRange` for a level that was not checked before.
    pub fn new(compression: Compression) -> Result<ChunkCompressor, CompressionError> {
        compression.check()?;
        let engine = match compression {
            Compression::None => Engine::None,
            Compression::Zstd { level } => Engine::Zstd(zstd_context(level)),
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
            Engine::Zstd(context) => compress_zstd(context, input, out),
            Engine::Gzip(compressor) => compress_gzip(compressor, input, out),
        }
    }

    /// As `compress`, but in a form whose length depends on the length of the input only where the
    /// format has such a form: for a last chunk that is to be found from the end of a file. That is
    /// a stored gzip member ([`gzip_member::find_stored_member`] finds it); a zstd stream has its
    /// seek table for the purpose and gets an ordinary frame.
    ///
    /// # Errors
    /// As for `compress`.
    pub fn compress_last(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), ChunkError> {
        if let Engine::Gzip(_) = self.engine {
            out.clear();
            return gzip_member::encode_stored_member(input, out);
        }
        self.compress(input, out)
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

/// What a zstd level is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZstdSettings {
    pub chunk_bytes: usize,
    window_log: u32,
    /// Sizes of the two hash tables of the double-fast strategy, where they differ from the
    /// library's: smaller tables stay in the processor's second-level cache.
    tables: Option<(u32, u32)>,
}

/// Chunks are 8 MiB, with a window as large as the chunk. From level 13 on, where the library's own
/// window reaches 4 MiB and more, a chunk holds several windows, as `zstd -T0` would have it.
pub(super) fn zstd_settings(level: i32) -> ZstdSettings {
    let (chunk_bytes, window_log) = match level {
        ..=12 => (8 << 20, 23),
        13..=19 => (32 << 20, 23),
        20.. => (CHUNK_BYTES_MAX, 26),
    };
    ZstdSettings { chunk_bytes, window_log, tables: (level == 3).then_some((16, 14)) }
}

fn zstd_context(level: i32) -> CCtx<'static> {
    let settings = zstd_settings(level);
    let mut context = CCtx::create();
    let mut set = |parameter| {
        context.set_parameter(parameter).expect("a checked level and constants within bounds");
    };
    set(CParameter::CompressionLevel(level));
    set(CParameter::WindowLog(settings.window_log));
    set(CParameter::ChecksumFlag(true));
    set(CParameter::ContentSizeFlag(true));
    if let Some((hash_log, chain_log)) = settings.tables {
        set(CParameter::HashLog(hash_log));
        set(CParameter::ChainLog(chain_log));
    }
    context
}

/// gzip's levels in libdeflate's: the fastest one that is no larger than `pigz` of that level.
fn gzip_compressor(level: i32) -> Compressor {
    let level = match level {
        1 => 1,
        2 => 2,
        3 | 4 => 3,
        5 => 4,
        6 => 5,
        7 => 6,
        8 => 7,
        level => level,
    };
    Compressor::new(CompressionLvl::new(level).expect("a checked level"))
}
