//! Errors of compressed bytes, of seek tables, and of names and levels of compressions.

use super::seek_table::FRAMES_MAX;
use crate::stream::StoredOffset;
use std::fmt;

/// A coding that chunks are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl fmt::Display for Coding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        })
    }
}

/// Compressing or decompressing failed, or the requested compression does not exist. Offsets are in
/// the compressed stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The coding does not allow the bytes, or a checksum does not match.
    #[error("damaged {coding} data at byte {offset_bytes} of the compressed archive: {reason}")]
    Damaged {
        coding: Coding,
        /// Where the frame or member starts.
        offset_bytes: StoredOffset,
        /// The cause.
        reason: String,
    },
    /// The input ends inside a frame or member.
    #[error(
        "{coding} data is cut off at byte {end_bytes} of the compressed archive, inside the piece \
         at byte {offset_bytes}"
    )]
    Truncated {
        coding: Coding,
        /// Where the frame or member starts.
        offset_bytes: StoredOffset,
        /// Where the input ended.
        end_bytes: StoredOffset,
    },
    /// The content is larger than the caller allows.
    #[error(
        "{coding} data at byte {offset_bytes} of the compressed archive holds more than \
         {limit_bytes} bytes"
    )]
    ContentTooLarge {
        coding: Coding,
        /// Where the frame or member starts.
        offset_bytes: StoredOffset,
        /// Most bytes allowed.
        limit_bytes: u64,
    },
    /// Decompressing needs a larger window than the caller allows.
    #[error(
        "zstd frame at byte {offset_bytes} of the compressed archive needs {window_bytes} bytes of \
         memory and the limit is {limit_bytes}"
    )]
    WindowTooLarge {
        /// Where the frame starts.
        offset_bytes: StoredOffset,
        /// Window of the frame.
        window_bytes: u64,
        /// Most bytes allowed.
        limit_bytes: u64,
    },
    /// The frame was compressed with a dictionary that the archive does not hold.
    #[error(
        "zstd frame at byte {offset_bytes} of the compressed archive needs dictionary \
         {dictionary_id}"
    )]
    DictionaryNeeded {
        /// Where the frame starts.
        offset_bytes: StoredOffset,
        dictionary_id: u32,
    },
    /// No frame or member starts here.
    #[error("no {coding} data starts at byte {offset_bytes} of the compressed archive")]
    NotAFrame {
        /// The coding expected.
        coding: Coding,
        /// Where it was expected.
        offset_bytes: StoredOffset,
    },
    /// The compressor failed, which happens only without memory.
    #[error("{coding} compressor failed: {reason}")]
    Compress {
        coding: Coding,
        /// The compressor's message.
        reason: String,
    },
    /// The chunk to compress exceeds the largest chunk.
    #[error("chunk of {length_bytes} bytes is larger than {limit_bytes} bytes")]
    ChunkTooLarge {
        length_bytes: usize,
        /// Most bytes allowed.
        limit_bytes: usize,
    },
    #[error("unknown compression (zstd, gzip and none are known): {name}")]
    UnknownName {
        /// The name as given.
        name: String,
    },
    /// The text behind the colon is not a number.
    #[error("compression level is not a whole number: {text}")]
    LevelNotANumber {
        /// The level as given.
        text: String,
    },
    /// The compression has no such level.
    #[error("{name} has levels {lowest} to {highest}, not {level}")]
    LevelOutOfRange {
        /// Name of the compression.
        name: &'static str,
        /// The level as given.
        level: i64,
        /// Lowest level.
        lowest: i32,
        /// Highest level.
        highest: i32,
    },
    /// `none` was given a level.
    #[error("compression none takes no level")]
    LevelOfNone,
    /// More frames than [`FRAMES_MAX`].
    #[error("seek table with more than {FRAMES_MAX} frames")]
    TooManyFrames,
    /// A frame too large for the 32-bit fields.
    #[error("frame of {length_bytes} bytes does not fit a seek table")]
    FrameTooLarge { length_bytes: u64 },
    /// Only some frames have a checksum.
    #[error("seek table with a checksum for some frames only")]
    MixedChecksums,
    /// The footer is there, but the data before it do not match it.
    #[error("damaged seek table: {reason}")]
    DamagedSeekTable {
        /// The cause.
        reason: &'static str,
    },
}
