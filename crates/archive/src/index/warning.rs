//! Warnings of the run that wrote the archive, kept with it.

use super::IndexSection;
use super::section::{Record, private::Codec};
use super::varint::{self, Body, Reason};

const PATH_BYTES_MAX: usize = 1 << 20;
const TEXT_BYTES_MAX: usize = 64 << 10;

/// One warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningRecord {
    /// The path concerned; may be empty.
    pub path: Vec<u8>,
    /// The text as it was printed.
    pub text: String,
}

impl Record for WarningRecord {
    const SECTION: IndexSection = IndexSection::Warnings;
}

impl Codec for WarningRecord {
    type State = ();

    fn encode(&self, _state: &mut (), body: &mut Vec<u8>) -> Result<(), Reason> {
        if self.path.len() > PATH_BYTES_MAX {
            return Err("path is longer than 1 MiB");
        }
        if self.text.len() > TEXT_BYTES_MAX {
            return Err("text is longer than 64 KiB");
        }
        varint::put_bytes(body, &self.path);
        varint::put_bytes(body, self.text.as_bytes());
        Ok(())
    }

    fn decode(_state: &mut (), body: &mut Body<'_>) -> Result<WarningRecord, Reason> {
        let path = body.bytes(PATH_BYTES_MAX)?.to_vec();
        let text = std::str::from_utf8(body.bytes(TEXT_BYTES_MAX)?);
        Ok(WarningRecord { path, text: text.map_err(|_| "text is not UTF-8")?.to_owned() })
    }
}
