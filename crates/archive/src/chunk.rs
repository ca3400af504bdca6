//! Chunks: pieces of an archive that are compressed on their own.
//!
//! The archive is cut every `Compression::chunk_bytes` and each piece becomes one zstd frame or one
//! gzip member. The pieces are independent, so any number of threads can work on them with the same
//! output. `zstd -d` and `gzip -d` read the pieces one after the other. A match never reaches
//! across the edge of a chunk; chunk size and window make up for that (`docs/design/compression.md`
//! has the numbers).
//!
//! For reading, [`StreamFormat::detect`] recognises the compression, [`BoundaryFinder`] finds the
//! end of a chunk without decompressing it, [`ChunkDecompressor`] opens it, and [`StreamDecoder`]
//! takes over if an end cannot be found in advance. [`seek_table`] is the directory of frames that
//! follows them in zstd's seekable format.
//!
//! There are no files and no threads here; `docs/format.md` draws the bytes.

mod boundary;
mod compress;
mod decompress;
mod error;
mod format;
pub mod gzip_member;
mod padding;
pub mod seek_table;
mod stream;
mod zstd_frame;

use std::fmt;
use std::str::FromStr;

pub use boundary::{Boundary, BoundaryFinder, Input};
pub use compress::ChunkCompressor;
pub use decompress::ChunkDecompressor;
pub use error::{ChunkError, Coding};
pub use format::{OtherFormat, StreamFormat};
pub use padding::{PADDING_BYTES_MIN, encode_padding, padding_to_block};
pub use stream::{StreamDecoder, StreamState, StreamStep};

/// Whether the header of the frame or member at the start of `prefix` is as Takeup writes it,
/// including the bits that readers ignore. In zstd that is one bit, which other writers set alike.
pub fn is_as_written(coding: Coding, prefix: &[u8]) -> bool {
    match coding {
        Coding::Gzip => gzip_member::is_as_written(prefix),
        Coding::Zstd => zstd_frame::is_as_written(prefix),
    }
}

/// Level of `zstd` without a number.
pub const ZSTD_LEVEL_DEFAULT: i32 = 3;
/// Level of `gzip` without a number.
pub const GZIP_LEVEL_DEFAULT: i32 = 6;
/// Lowest and highest zstd level: those of the `zstd` command, including `--ultra` and `--fast=7`.
pub const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -7..=22;
/// Lowest and highest gzip level: those of the `gzip` command, and three slower ones.
pub const GZIP_LEVELS: std::ops::RangeInclusive<i32> = 1..=12;
/// Largest `Compression::chunk_bytes` of any level.
pub const CHUNK_BYTES_MAX: usize = 64 << 20;

/// How an archive is compressed.
///
/// `FromStr` and `Display` use the form of the command line: `zstd:3`, `gzip:6`, `none`; the level
/// may be left out when parsing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// One zstd frame a chunk.
    Zstd {
        /// Level in [`ZSTD_LEVELS`].
        level: i32,
    },
    /// One gzip member a chunk.
    Gzip {
        /// Level in [`GZIP_LEVELS`].
        level: i32,
    },
}

impl Compression {
    /// Archive bytes in every chunk except a last or a cut one. For `None` it is the size of the
    /// pieces that are passed on; the output does not depend on it.
    ///
    /// It is part of the format of a level: another value gives another (equally valid) output.
    pub fn chunk_bytes(&self) -> usize {
        match self {
            Compression::None => 1 << 20,
            Compression::Zstd { level } => compress::zstd_settings(*level).chunk_bytes,
            Compression::Gzip { .. } => 1 << 20,
        }
    }

    /// Checks that Takeup offers the level.
    ///
    /// # Errors
    /// `ChunkError::LevelOutOfRange`.
    pub fn check(&self) -> Result<(), ChunkError> {
        let (name, level, levels) = match self {
            Compression::None => return Ok(()),
            Compression::Zstd { level } => ("zstd", *level, ZSTD_LEVELS),
            Compression::Gzip { level } => ("gzip", *level, GZIP_LEVELS),
        };
        if levels.contains(&level) {
            return Ok(());
        }
        let (lowest, highest) = (*levels.start(), *levels.end());
        Err(ChunkError::LevelOutOfRange { name, level: level.into(), lowest, highest })
    }

    /// The usual suffix of file names with this compression, after `.tar`.
    pub fn suffix(&self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Zstd { .. } => ".zst",
            Compression::Gzip { .. } => ".gz",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => formatter.write_str("none"),
            Compression::Zstd { level } => write!(formatter, "zstd:{level}"),
            Compression::Gzip { level } => write!(formatter, "gzip:{level}"),
        }
    }
}

impl FromStr for Compression {
    type Err = ChunkError;

    fn from_str(text: &str) -> Result<Self, ChunkError> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let number = |default: i32| match level {
            None => Ok(default),
            Some(level) => level
                .parse::<i32>()
                .map_err(|_| ChunkError::LevelNotANumber { text: level.to_owned() }),
        };
        let compression = match name {
            "none" if level.is_none() => Compression::None,
            "none" => return Err(ChunkError::LevelOfNone),
            "zstd" => Compression::Zstd { level: number(ZSTD_LEVEL_DEFAULT)? },
            "gzip" => Compression::Gzip { level: number(GZIP_LEVEL_DEFAULT)? },
            _ => return Err(ChunkError::UnknownName { name: name.to_owned() }),
        };
        compression.check()?;
        Ok(compression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match text.parse::<Compression>() {
            Ok(compression) => compression.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn names_and_levels_are_parsed() {
        check("none", "none");
        check("zstd", "zstd:3");
        check("gzip", "gzip:6");
        check("zstd:-7", "zstd:-7");
        check("zstd:22", "zstd:22");
        check("gzip:12", "gzip:12");
    }

    #[test]
    fn what_is_wrong_is_named() {
        check("xz", "unknown compression (zstd, gzip and none are known): xz");
        check("", "unknown compression (zstd, gzip and none are known): ");
        check("ZSTD", "unknown compression (zstd, gzip and none are known): ZSTD");
        check("zstd:", "compression level is not a whole number: ");
        check("zstd:3.5", "compression level is not a whole number: 3.5");
        check("gzip:0", "gzip has levels 1 to 12, not 0");
        check("zstd:23", "zstd has levels -7 to 22, not 23");
        check("zstd:99999999999", "compression level is not a whole number: 99999999999");
        check("none:1", "compression none takes no level");
    }
}
