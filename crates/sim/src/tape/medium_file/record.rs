//! The head of a medium file and the header of a record, as bytes.
//!
//! Not here: their positions, and the blocks.

use twox_hash::XxHash3_64;

use super::super::medium::{CartridgeSettings, Chip, Protection};

/// Bytes of the head.
pub const HEAD_BYTES: usize = 4096;
/// Bytes of a record without its block.
pub const RECORD_BYTES: usize = 40;

const HEAD_MAGIC: &[u8; 8] = b"TKUPMEDM";
const RECORD_MAGIC: u32 = 0x4345_524f; // "OREC"
const FILEMARK: u32 = u32::MAX;
/// The longest block that is packed: a WRITE(6) has 24 bits for its length.
pub const PACKED_LENGTH_MAX: u32 = 1 << 24;

/// What a medium file may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Unpacked blocks.
    Plain,
    /// Also packed blocks. A program that knows version 1 only would take such a record for the
    /// torn end of the file and cut it off, so it must refuse the whole file.
    Packed,
}

/// The head of a medium file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub settings: CartridgeSettings,
    /// `None` in files of before cartridges had one.
    pub chip: Option<Chip>,
    pub version: Version,
}

/// Why a head is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// It is something else, or damaged.
    Foreign,
    /// A later version wrote it.
    Version(u32),
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Filemark,
    /// An unpacked block of this length.
    Plain(u32),
    /// A block that is a zstd frame.
    Packed {
        /// Length of the block.
        length: u32,
        /// Length of the frame, which is less.
        stored: u32,
    },
}

/// The fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it holds.
    pub content: Content,
    /// Bytes that the object takes on tape.
    pub native_bytes: u32,
    /// Number of the object, from the beginning of the medium.
    pub number: u64,
    /// xxh3 of the stored block or frame.
    pub checksum: u64,
}

impl Content {
    /// Bytes of the block; none for a filemark.
    pub fn block_bytes(self) -> Option<u32> {
        match self {
            Content::Filemark => None,
            Content::Plain(length) | Content::Packed { length, .. } => Some(length),
        }
    }

    /// Stored bytes after the header, without padding.
    pub fn stored_bytes(self) -> u32 {
        match self {
            Content::Filemark => 0,
            Content::Plain(length) => length,
            Content::Packed { stored, .. } => stored,
        }
    }

    /// Bytes of the whole record.
    pub fn record_bytes(self) -> u64 {
        (RECORD_BYTES as u64 + u64::from(self.stored_bytes())).next_multiple_of(8)
    }
}

impl Version {
    fn number(self) -> u32 {
        match self {
            Version::Plain => 1,
            Version::Packed => 2,
        }
    }
}

/// The head of a medium file.
pub fn encode_head(
    settings: &CartridgeSettings,
    chip: &Chip,
    version: Version,
) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(HEAD_MAGIC);
    head[8..12].copy_from_slice(&version.number().to_le_bytes());
    head[12] = settings.density;
    head[16..24].copy_from_slice(&settings.capacity_bytes.to_le_bytes());
    head[24..32].copy_from_slice(&settings.early_warning_bytes.to_le_bytes());
    head[32..48].copy_from_slice(&chip.serial);
    head[48..52].copy_from_slice(&chip.change_reference.to_le_bytes());
    let checksum = XxHash3_64::oneshot(&head[..HEAD_BYTES - 8]);
    head[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    head
}

/// Reads a head.
///
/// # Errors
/// When it is something else or has a later version.
pub fn decode_head(head: &[u8; HEAD_BYTES]) -> Result<Head, HeadError> {
    let checksum = XxHash3_64::oneshot(&head[..HEAD_BYTES - 8]).to_le_bytes();
    if head[..8] != *HEAD_MAGIC || head[HEAD_BYTES - 8..] != checksum {
        return Err(HeadError::Foreign);
    }
    let version = match u32_at(head, 8) {
        1 => Version::Plain,
        2 => Version::Packed,
        later => return Err(HeadError::Version(later)),
    };
    let settings = CartridgeSettings {
        density: head[12],
        capacity_bytes: u64_at(head, 16),
        early_warning_bytes: u64_at(head, 24),
        protection: Protection::Writable,
    };
    let mut serial = [0; 16];
    serial.copy_from_slice(&head[32..48]);
    let chip = (serial != [0; 16]).then(|| Chip::new(serial, u32_at(head, 48)));
    Ok(Head { settings, chip, version })
}

/// The header of a record.
pub fn encode_record(record: &Record) -> [u8; RECORD_BYTES] {
    let (length, stored) = match record.content {
        Content::Filemark => (FILEMARK, 0),
        Content::Plain(length) => (length, 0),
        Content::Packed { length, stored } => (length, stored),
    };
    let mut bytes = [0; RECORD_BYTES];
    bytes[..4].copy_from_slice(&RECORD_MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..12].copy_from_slice(&record.native_bytes.to_le_bytes());
    bytes[12..16].copy_from_slice(&stored.to_le_bytes());
    bytes[16..24].copy_from_slice(&record.number.to_le_bytes());
    bytes[24..32].copy_from_slice(&record.checksum.to_le_bytes());
    let own = XxHash3_64::oneshot(&bytes[..32]);
    bytes[32..].copy_from_slice(&own.to_le_bytes());
    bytes
}

/// Reads the header of a record; `None` if it is something else, or nothing that this version
/// writes.
pub fn decode_record(bytes: &[u8; RECORD_BYTES], version: Version) -> Option<Record> {
    if u32_at(bytes, 0) != RECORD_MAGIC || XxHash3_64::oneshot(&bytes[..32]) != u64_at(bytes, 32) {
        return None;
    }
    let content = match (u32_at(bytes, 4), u32_at(bytes, 12)) {
        (FILEMARK, 0) => Content::Filemark,
        (length, 0) => Content::Plain(length),
        (length, stored)
            if version == Version::Packed && stored < length && length <= PACKED_LENGTH_MAX =>
        {
            Content::Packed { length, stored }
        }
        _ => return None,
    };
    Some(Record {
        content,
        native_bytes: u32_at(bytes, 8),
        number: u64_at(bytes, 16),
        checksum: u64_at(bytes, 24),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
