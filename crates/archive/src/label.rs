//! The label: the header of every part of a set on tape, which identifies the part.
//!
//! Other tar readers have to skip it silently. So it is a pax global header with a `comment`
//! record, compressed like the data behind it. Its length keeps the stream behind it at its place
//! in the blocks: see [`Label::length_bytes`].
//!
//! After a change of volume, the label of a plain set also begins what GNU tar's multi-volume
//! reading requires ([`Continuation`]). Not here: where blocks go, and when volumes change.
//! `docs/format.md` draws the bytes.

mod directory;
mod names;

use std::fmt::Write as _;

use twox_hash::XxHash3_64;

use crate::chunk::{
    Boundary, BoundaryFinder, ChunkCompressor, ChunkDecompressor, ChunkError, Coding, Compression,
    Input, PADDING_BYTES_MIN, StreamFormat, encode_padding,
};
use crate::encode::{EncodeError, encode_global_header, encode_member, encode_volume_name};
use crate::header::{self, UNIT_BYTES};
use crate::member::Member;
use crate::pax;
use crate::stream::StoredOffset;
pub use directory::{DIRECTORY_BYTES_MAX, find_directory};
pub use names::{HostName, JobText, LabelledSet, MediumName};

/// Longest label that is read or written: a block, the odd bytes of another, and headers.
pub const LABEL_BYTES_MAX: usize = 64 << 20;

/// Every text of a label is shorter than this, so a reader needs no more of the records.
const TEXT_BYTES_MAX: usize = 1000;
/// Most of a compressed stream, and most of its content, that is searched for a label.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Records of one global header. libarchive refuses headers of more than 1 MiB.
const RECORDS_BYTES_MAX: usize = 512 << 10;
/// Version of the label, as in [`START`].
pub const LABEL_VERSION: u32 = 1;
const START: &str = "takeup 1 ";
const START_OF_ANY: &[u8] = b"takeup ";
/// Shortest global header: a header unit and one unit of records.
const GLOBAL_BYTES_MIN: usize = 2 * UNIT_BYTES;

/// The content of the part behind a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelKind {
    /// A stretch of the archive.
    Data,
    /// The index of the set, never compressed.
    Index,
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Id of the set: random, the same in all labels of one run.
    pub set: [u8; 16],
    /// The content behind the label.
    pub kind: LabelKind,
    /// Number of the segment in the set, from 1. The index is the last one.
    pub segment: u32,
    /// Number of the part of the segment, from 1: one more for every change of volume inside it.
    pub part: u32,
    /// Number of the volume in the set, from 1.
    pub volume: u32,
    /// Id of the medium: random, assigned with the first label at its beginning.
    pub medium: [u8; 16],
    /// Offset in the stored stream of the bytes behind the label. The index has a stored stream of
    /// its own.
    pub stream_bytes: StoredOffset,
    /// Bytes of every block of the set.
    pub block_bytes: u32,
    /// Bytes from the start of the label to the first byte behind it: a whole number of blocks,
    /// and `stream_bytes` modulo block size. [`Label::encode`] computes it.
    pub length_bytes: u32,
    /// Compression of the data segments.
    pub compression: Compression,
    /// Number of the file (filemarks counted from the beginning of this medium) that begins with
    /// the last label of the previous set. If that set is complete, this is the label of its index.
    pub previous: Option<u32>,
    /// When the run began, in seconds since 1970.
    pub time_seconds: u64,
    /// The machine that wrote it, if its name is known; older sets have none.
    pub host: Option<HostName>,
    /// What people call the medium, if it has a name.
    pub medium_name: Option<MediumName>,
    /// Which set of a chain it belongs to; `None` outside of chains.
    pub chain: Option<LabelledSet>,
}

/// How a plain set continues on another volume.
#[derive(Clone, Copy, Debug)]
pub enum Continuation<'a> {
    /// Nothing continues: the label begins a segment.
    None,
    /// The previous volume ended between members, or in a header.
    Between,
    /// The previous volume ended in the content of a member.
    Inside {
        /// The member, as in its header.
        member: &'a Member,
        /// Bytes of content that follow, without padding.
        rest_bytes: u64,
    },
}

/// What the start of a part of a set contains.
#[expect(clippy::large_enum_variant, reason = "one at a time, and never kept")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Label(Label),
    /// Undecided until this many bytes of the part are there.
    NeedMore {
        /// Least length of the prefix, in bytes; more than the present one.
        prefix_bytes: usize,
    },
    /// Something else.
    Foreign,
}

/// Why a label cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// A header of it cannot be encoded.
    #[error("cannot write a label")]
    Encode(#[from] EncodeError),
    /// It cannot be compressed.
    #[error("cannot compress a label")]
    Compress(#[from] ChunkError),
    /// The compression is unknown.
    #[error(transparent)]
    Compression(ChunkError),
    /// The block size is invalid.
    #[error("invalid block size: {block_bytes} bytes is not a multiple of 512 below 2^25")]
    BlockSize {
        /// The block size as given.
        block_bytes: u32,
    },
    /// It starts like a label but is invalid.
    #[error("damaged label: {reason}")]
    Damaged {
        /// The cause.
        reason: &'static str,
    },
    /// It starts like a label of an unknown later version.
    #[error(
        "a later version of takeup wrote the label (version {version}, and this one knows \
         {LABEL_VERSION})"
    )]
    Later {
        /// Which one.
        version: u32,
    },
}

impl Label {
    /// Coding of the label and of the data behind it; `None` if plain.
    pub fn coding(&self) -> Option<Coding> {
        match (self.kind, self.compression) {
            (LabelKind::Index, _) | (_, Compression::None) => None,
            (_, Compression::Zstd { .. }) => Some(Coding::Zstd),
            (_, Compression::Gzip { .. }) => Some(Coding::Gzip),
        }
    }

    /// Offset of a byte of the stored stream from the start of the label. `None` for bytes before
    /// the part.
    pub fn place_in_part(&self, stream_bytes: StoredOffset) -> Option<u64> {
        Some(stream_bytes.checked_since(self.stream_bytes)? + u64::from(self.length_bytes))
    }

    /// The label in its form on the medium. Sets `length_bytes` to its length.
    ///
    /// # Errors
    /// `BlockSize`; `Encode` if a member that continues has a name that no header can store.
    pub fn encode(&mut self, continuation: Continuation<'_>) -> Result<Vec<u8>, LabelError> {
        self.encode_with(continuation, None)
    }

    /// As [`Label::encode`], with a directory of the medium in a header of its own, which
    /// [`find_directory`] reads. Only for a label that is not compressed.
    ///
    /// # Errors
    /// See [`Label::encode`].
    pub fn encode_with(
        &mut self,
        continuation: Continuation<'_>,
        directory: Option<&str>,
    ) -> Result<Vec<u8>, LabelError> {
        let block_bytes = self.block_bytes;
        if block_bytes == 0 || !block_bytes.is_multiple_of(512) || block_bytes >= 1 << 25 {
            return Err(LabelError::BlockSize { block_bytes });
        }
        let over = self.stream_bytes % u64::from(block_bytes);
        let mut length = over as usize + block_bytes as usize;
        loop {
            self.length_bytes = length as u32;
            let encoded = match self.coding() {
                None => self.encode_plain(continuation, directory, length)?,
                Some(coding) => self.encode_compressed(coding, length)?,
            };
            match encoded {
                Some(label) => return Ok(label),
                None => length += block_bytes as usize,
            }
            if length > LABEL_BYTES_MAX {
                return Err(LabelError::Damaged { reason: "it is longer than 64 MiB" });
            }
        }
    }

    /// Looks for a label at the start of a part; `prefix` is the beginning of the part.
    ///
    /// # Errors
    /// `Damaged` for a label of ours that is not consistent.
    pub fn find(prefix: &[u8]) -> Result<Found, LabelError> {
        if prefix.len() < UNIT_BYTES {
            return Ok(Found::NeedMore { prefix_bytes: UNIT_BYTES });
        }
        let coding = match StreamFormat::detect(prefix) {
            StreamFormat::Plain => return find_plain(prefix),
            StreamFormat::Other(_) => return Ok(Found::Foreign),
            StreamFormat::Compressed(coding) => coding,
        };
        let mut finder = BoundaryFinder::new(coding, FRAME_BYTES_MAX);
        let (frame_bytes, content_bytes_max) = match finder.examine(prefix, Input::MoreMayFollow) {
            Ok(Boundary::Chunk { compressed_bytes, content_bytes_max }) => {
                (compressed_bytes, content_bytes_max)
            }
            Ok(Boundary::NeedMore { prefix_bytes }) if prefix_bytes <= FRAME_BYTES_MAX => {
                return Ok(Found::NeedMore { prefix_bytes });
            }
            _ => return Ok(Found::Foreign),
        };
        const START: StoredOffset = StoredOffset::START;
        let mut content = Vec::new();
        let frame = &prefix[..frame_bytes];
        let limit_bytes = content_bytes_max.min(FRAME_BYTES_MAX);
        let opened =
            ChunkDecompressor::new().decompress(coding, frame, START, limit_bytes, &mut content);
        if opened.is_err() {
            return Ok(Found::Foreign);
        }
        match find_plain(&content)? {
            Found::NeedMore { .. } => Ok(Found::Foreign),
            found => Ok(found),
        }
    }

    /// From the text that [`Label::text`] gives.
    ///
    /// # Errors
    /// When it is not such a text, or not a whole one.
    pub fn of_text(text: &str) -> Result<Label, LabelError> {
        match decode_comment(text.as_bytes())? {
            Found::Label(label) => Ok(label),
            _ => Err(LabelError::Damaged { reason: "it is not a label" }),
        }
    }

    /// The text of the record, without its padding: fields and their checksum.
    pub fn text(&self) -> String {
        let kind = match self.kind {
            LabelKind::Data => "data",
            LabelKind::Index => "index",
        };
        let previous = self.previous.map_or_else(|| "-".to_owned(), |file| file.to_string());
        let mut text = format!(
            "{START}set={} kind={kind} segment={} part={} volume={} medium={} stream={} block={} \
             length={} compression={} previous={previous} time={} ",
            hex(&self.set),
            self.segment,
            self.part,
            self.volume,
            hex(&self.medium),
            self.stream_bytes,
            self.block_bytes,
            self.length_bytes,
            self.compression,
            self.time_seconds,
        );
        if let Some(host) = &self.host {
            write!(text, "host={} ", host.as_str()).expect("a string takes any text");
        }
        if let Some(name) = &self.medium_name {
            write!(text, "name={name} ").expect("a string takes any text");
        }
        if let Some(set) = &self.chain {
            set.push_fields(&mut text);
        }
        let check = XxHash3_64::oneshot(text.as_bytes());
        write!(text, "check={check:016x}").expect("a string takes any text");
        text
    }

    /// What the header is called, for those who look at a tape with `dd | head`. Readers of tar
    /// pass over it.
    fn header_name(&self) -> String {
        let host = self.host.as_ref().map(|host| format!("{} ", host.as_str()));
        let set = self.chain.as_ref().map(|set| format!("{} ", set.words()));
        let (host, set) = (host.unwrap_or_default(), set.unwrap_or_default());
        let seconds = i64::try_from(self.time_seconds).unwrap_or(i64::MAX);
        let time = base::calendar::time_text(seconds).replace(' ', "T");
        format!("takeup {host}{set}{time}Z volume {}", self.volume)
    }

    /// `None` if it does not fit the length.
    fn encode_plain(
        &self,
        continuation: Continuation<'_>,
        directory: Option<&str>,
        length_bytes: usize,
    ) -> Result<Option<Vec<u8>>, LabelError> {
        let mut tail = Vec::new();
        let mut records: Vec<(&[u8], Vec<u8>)> = Vec::new();
        match continuation {
            Continuation::None => {}
            // After the global header of a new volume GNU tar skips one header, because it expects
            // the rest of a file there. So we write a header that every reader knows as the name of
            // a volume.
            Continuation::Between => {
                encode_volume_name(format!("takeup volume {}", self.volume).as_bytes(), &mut tail);
            }
            Continuation::Inside { member, rest_bytes } => {
                let digits = |number: u64| number.to_string().into_bytes();
                records.push((b"GNU.volume.filename", member.path.clone()));
                records.push((b"GNU.volume.size", digits(rest_bytes)));
                // GNU tar compares the sum of both with the size of the file, including holes.
                let before_bytes = member.size_bytes.saturating_sub(rest_bytes);
                records.push((b"GNU.volume.offset", digits(before_bytes)));
                let mut rest = member.clone();
                rest.size_bytes = rest_bytes;
                rest.sparse = None;
                rest.xattrs.clear();
                rest.acl_access = None;
                rest.acl_default = None;
                encode_member(&rest, &mut tail)?;
            }
        }
        let Some(global_bytes) = length_bytes.checked_sub(tail.len()) else { return Ok(None) };
        let global = self.encode_global(&records, directory, global_bytes)?;
        let Some(mut out) = global else { return Ok(None) };
        out.extend_from_slice(&tail);
        Ok(Some(out))
    }

    /// Global headers of exactly `bytes`, in whole units: the label in the first, the directory in
    /// the second, followed by as many empty ones as are needed to fill the rest.
    fn encode_global(
        &self,
        records: &[(&[u8], Vec<u8>)],
        directory: Option<&str>,
        bytes: usize,
    ) -> Result<Option<Vec<u8>>, LabelError> {
        let text = self.text();
        let others: usize =
            records.iter().map(|(key, value)| pax::record_bytes(key.len(), value.len())).sum();
        let least = pax::record_bytes(COMMENT.len(), text.len()) + others;
        let least = UNIT_BYTES + least.next_multiple_of(UNIT_BYTES);
        let directory = directory.map(directory::comment);
        let second = directory.as_ref().map_or(0, |it| global_bytes_of(it.len()));
        if bytes < least + second {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(bytes);
        let mut rest = bytes;
        let mut first = Some(text.into_bytes());
        let name = self.header_name();
        if let Some(directory) = directory {
            push_global(&name, first.take().unwrap_or_default(), records, least, &mut out)?;
            rest -= least;
            // What is left is nothing, or enough for another header.
            let odd = if rest - second < GLOBAL_BYTES_MIN { rest - second } else { 0 };
            push_global(&name, directory, &[], second + odd, &mut out)?;
            rest -= second + odd;
        }
        while rest > 0 {
            let least = if first.is_some() { least } else { GLOBAL_BYTES_MIN };
            let now = global_length(rest, least);
            let value = first.take();
            let others = if value.is_some() { records } else { &[] };
            push_global(&name, value.unwrap_or_default(), others, now, &mut out)?;
            rest -= now;
        }
        Ok(Some(out))
    }

    fn encode_compressed(
        &self,
        coding: Coding,
        length_bytes: usize,
    ) -> Result<Option<Vec<u8>>, LabelError> {
        let mut content = Vec::new();
        let text = self.text().into_bytes();
        let bytes = global_bytes_of(text.len());
        push_global(&self.header_name(), text, &[], bytes, &mut content)?;
        let mut out = Vec::new();
        let compressor = ChunkCompressor::new(self.compression);
        compressor.map_err(LabelError::Compression)?.compress(&content, &mut out)?;
        let Some(padding_bytes) = length_bytes.checked_sub(out.len()) else { return Ok(None) };
        if padding_bytes > 0 && padding_bytes < PADDING_BYTES_MIN {
            return Ok(None);
        }
        encode_padding(coding, padding_bytes, &mut out);
        Ok(Some(out))
    }
}

const COMMENT: &[u8] = b"comment";

/// Bytes of a global header with a comment of this length.
fn global_bytes_of(comment_bytes: usize) -> usize {
    let record = pax::record_bytes(COMMENT.len(), comment_bytes);
    GLOBAL_BYTES_MIN.max(UNIT_BYTES + record.next_multiple_of(UNIT_BYTES))
}

/// Length of the next global header if `rest` bytes have to be filled and it needs `least`. The
/// remainder is zero, or enough for another header.
fn global_length(rest: usize, least: usize) -> usize {
    let largest = (UNIT_BYTES + RECORDS_BYTES_MAX).max(least);
    if rest <= largest {
        return rest;
    }
    largest.min(rest - GLOBAL_BYTES_MIN).max(least)
}

/// Appends a global header of exactly `bytes`, with its comment padded with spaces.
fn push_global(
    name: &str,
    mut comment: Vec<u8>,
    others: &[(&[u8], Vec<u8>)],
    bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let taken: usize =
        others.iter().map(|(key, value)| pax::record_bytes(key.len(), value.len())).sum();
    let room = bytes - UNIT_BYTES - taken;
    // The digits of the length may leave one byte over, which becomes padding of the unit.
    let around = pax::record_bytes(COMMENT.len(), room) - room;
    let mut filled = room.saturating_sub(around);
    while pax::record_bytes(COMMENT.len(), filled + 1) <= room {
        filled += 1;
    }
    comment.resize(filled.max(comment.len()), b' ');
    let mut records: Vec<(&[u8], &[u8])> = vec![(COMMENT, &comment)];
    records.extend(others.iter().map(|(key, value)| (*key, &value[..])));
    let start = out.len();
    encode_global_header(name, &records, out)?;
    debug_assert_eq!(out.len() - start, bytes, "the comment fills the header");
    Ok(())
}

fn find_plain(prefix: &[u8]) -> Result<Found, LabelError> {
    let Some((unit, records)) = prefix.split_first_chunk::<UNIT_BYTES>() else {
        return Ok(Found::NeedMore { prefix_bytes: UNIT_BYTES });
    };
    if unit[header::TYPEFLAG] != b'g' || !header::checksum_holds(unit) {
        return Ok(Found::Foreign);
    }
    let Some(size) = header::unsigned(&unit[header::SIZE]) else { return Ok(Found::Foreign) };
    let wanted = size.min(TEXT_BYTES_MAX as u64) as usize;
    let Some(records) = records.get(..wanted) else {
        return Ok(Found::NeedMore { prefix_bytes: UNIT_BYTES + wanted });
    };
    let digits = records.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some(comment) = records[digits..].strip_prefix(b" comment=") else {
        return Ok(Found::Foreign);
    };
    decode_comment(comment)
}

/// The label that a comment begins with.
fn decode_comment(comment: &[u8]) -> Result<Found, LabelError> {
    let reason = |reason| LabelError::Damaged { reason };
    let Some(fields) = comment.strip_prefix(START.as_bytes()) else {
        let Some(rest) = comment.strip_prefix(START_OF_ANY) else { return Ok(Found::Foreign) };
        if !rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(Found::Foreign);
        }
        return Err(match later_version(rest) {
            Some(version) => LabelError::Later { version },
            None => reason("unknown version"),
        });
    };
    let text = START.len() + checked_bytes(fields).ok_or(reason("its end is missing"))?;
    let (text, check) = comment.split_at(text);
    if check_of(check) != Some(XxHash3_64::oneshot(text)) {
        return Err(reason("its checksum does not match"));
    }
    decode_fields(&text[START.len()..]).map(Found::Label).map_err(reason)
}

/// The version of a label, if it is a later one and the label is not damaged: if it has a checksum
/// in our form, the checksum must match.
fn later_version(rest: &[u8]) -> Option<u32> {
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let version: u32 = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    let fields = end + 1;
    if let Some(bytes) = checked_bytes(&rest[fields..]) {
        let (text, check) = rest.split_at(fields + bytes);
        let text = [START_OF_ANY, text].concat();
        check_of(check).filter(|check| *check == XxHash3_64::oneshot(&text))?;
    }
    (version > LABEL_VERSION).then_some(version)
}

/// The checksum in the text behind the fields.
fn check_of(text: &[u8]) -> Option<u64> {
    let digits = text.get(b"check=".len()..)?.get(..16)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Bytes of the fields in front of the checksum.
fn checked_bytes(text: &[u8]) -> Option<usize> {
    let mut bytes = 0;
    for field in text.split(|byte| *byte == b' ') {
        if field.starts_with(b"check=") {
            return Some(bytes);
        }
        bytes += field.len() + 1;
    }
    None
}

fn decode_fields(text: &[u8]) -> Result<Label, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8 text")?;
    let field = |name: &str| {
        let mut fields = text.split(' ');
        fields
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
            .ok_or("a field is missing")
    };
    let number = |name| field(name)?.parse::<u64>().map_err(|_| "a field is not a number");
    let short = |name| field(name)?.parse::<u32>().map_err(|_| "a field is not a number");
    let label = Label {
        set: id(field("set")?)?,
        kind: match field("kind")? {
            "data" => LabelKind::Data,
            "index" => LabelKind::Index,
            _ => return Err("unknown kind"),
        },
        segment: short("segment")?,
        part: short("part")?,
        volume: short("volume")?,
        medium: id(field("medium")?)?,
        stream_bytes: StoredOffset::new(number("stream")?),
        block_bytes: short("block")?,
        length_bytes: short("length")?,
        compression: field("compression")?.parse().map_err(|_| "unknown compression")?,
        previous: match field("previous")? {
            "-" => None,
            _ => Some(short("previous")?),
        },
        time_seconds: number("time")?,
        host: field("host").ok().and_then(|name| HostName::new(name.as_bytes())),
        medium_name: field("name").ok().and_then(MediumName::new),
        chain: LabelledSet::of_fields(|name| field(name).ok()),
    };
    let block = u64::from(label.block_bytes);
    let fits = block > 0
        && block.is_multiple_of(512)
        && u64::from(label.length_bytes) >= block
        && label.length_bytes as usize <= LABEL_BYTES_MAX
        && u64::from(label.length_bytes) % block == label.stream_bytes % block;
    if !fits || label.segment == 0 || label.part == 0 || label.volume == 0 {
        return Err("its numbers contradict each other");
    }
    Ok(label)
}

/// 32 hexadecimal digits.
pub fn hex(id: &[u8; 16]) -> String {
    id.iter().fold(String::with_capacity(32), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

fn id(text: &str) -> Result<[u8; 16], &'static str> {
    let wrong = "an id is not 32 hexadecimal digits";
    let digits = text.as_bytes();
    if digits.len() != 32 || !digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(wrong);
    }
    u128::from_str_radix(text, 16).map(u128::to_be_bytes).map_err(|_| wrong)
}

#[cfg(test)]
mod tests;
