//! MODE SENSE: the medium, buffering and block size of a drive, and whether it compresses.

use super::super::raw::QuestionError;
use super::prefix;

const COMMAND: &str = "MODE SENSE";

/// Page of data compression.
pub const COMPRESSION_PAGE: u8 = 0x0f;
/// Page of the device configuration.
pub const CONFIGURATION_PAGE: u8 = 0x10;

/// MODE SENSE (6) for one page, with its current values. Answers have at most 252 bytes.
pub fn sense(page: u8) -> [u8; 6] {
    [0x1a, 0, page & 0x3f, 0, 252, 0]
}

/// The header before the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeHeader {
    /// Medium type; its meaning depends on the maker.
    pub medium_type: u8,
    /// The medium cannot be written to.
    pub write_protected: bool,
    /// 0 when a write waits for the medium, 1 and 2 when it waits for the drive's buffer only.
    pub buffered_mode: u8,
    /// Density code of the medium; 0 when unknown or no medium is there.
    pub density: u8,
    /// Bytes of a block in fixed mode, 0 in variable mode.
    pub block_bytes: u32,
    /// Where the pages begin.
    pages_offset: usize,
}

impl ModeHeader {
    /// From an answer of MODE SENSE (6).
    ///
    /// # Errors
    /// When it is too short.
    pub fn parse(bytes: &[u8]) -> Result<ModeHeader, QuestionError> {
        let [_, medium_type, specific, descriptor_bytes] = *prefix::<4>(COMMAND, bytes)?;
        let mut header = ModeHeader {
            medium_type,
            write_protected: specific & 0x80 != 0,
            buffered_mode: specific >> 4 & 7,
            pages_offset: 4 + usize::from(descriptor_bytes),
            ..ModeHeader::default()
        };
        if descriptor_bytes >= 8 {
            let descriptor = prefix::<12>(COMMAND, bytes)?;
            header.density = descriptor[4];
            header.block_bytes =
                u32::from_be_bytes([0, descriptor[9], descriptor[10], descriptor[11]]);
        }
        Ok(header)
    }
}

/// Whether the drive compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// It cannot.
    Unable,
    /// It can compress, but does not.
    Off,
    /// It does.
    On,
}

impl Compression {
    /// From an answer of MODE SENSE (6) for [`COMPRESSION_PAGE`].
    ///
    /// # Errors
    /// When the page is missing or too short.
    pub fn parse(bytes: &[u8]) -> Result<Compression, QuestionError> {
        /// `DCE`: data compression enabled.
        const ENABLED: u8 = 0x80;
        /// `DCC`: data compression capable.
        const CAPABLE: u8 = 0x40;
        let flags = page(bytes, COMPRESSION_PAGE, 3)?[2];
        Ok(match (flags & CAPABLE != 0, flags & ENABLED != 0) {
            (_, true) => Compression::On,
            (true, false) => Compression::Off,
            (false, false) => Compression::Unable,
        })
    }
}

/// The page of an answer, at least `needed` bytes long.
fn page(bytes: &[u8], wanted: u8, needed: usize) -> Result<&[u8], QuestionError> {
    let offset = ModeHeader::parse(bytes)?.pages_offset;
    let short = || QuestionError::Short {
        command: COMMAND,
        bytes: bytes.len(),
        needed: offset.saturating_add(needed),
    };
    let page = bytes.get(offset..).ok_or_else(short)?;
    let [code, length] = *page.first_chunk::<2>().ok_or_else(short)?;
    if code & 0x3f != wanted {
        let found = code & 0x3f;
        return Err(QuestionError::OtherPage { command: COMMAND, expected: wanted, found });
    }
    let end = 2 + usize::from(length);
    let page = &page[..end.min(page.len())];
    if page.len() < needed { Err(short()) } else { Ok(page) }
}
