//! Signs that a tape file, read as another program's, is a piece of a Takeup set.

use std::fmt;

use archive::index::{INDEX_HEADER_BYTES, is_index_header};
use archive::label::{Found, Label, hex};

/// A Takeup label or index in an unexpected place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    place: String,
    /// Id of the set, if a label has it; an index without its label does not.
    set: Option<[u8; 16]>,
}

impl fmt::Display for Sign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match self.set.map(|set| hex(&set)) {
            Some(set) => write!(
                formatter,
                "{place} has a label of set {}: this file is only a damaged piece of that set; \
                 --set {0} reads the set",
                &set[..8]
            ),
            None => write!(
                formatter,
                "{place} has a Takeup index: this file is only a damaged piece of the set that the \
                 index describes"
            ),
        }
    }
}

impl Sign {
    /// In the first block of a file.
    pub fn in_opening(block: &[u8], place: impl FnOnce() -> String) -> Option<Sign> {
        match Label::find(block) {
            Ok(Found::Label(label)) => Some(Sign { place: place(), set: Some(label.set) }),
            _ if block.len() >= INDEX_HEADER_BYTES && is_index_header(block) => {
                Some(Sign { place: place(), set: None })
            }
            _ => None,
        }
    }

    /// In any other block. Content may look like a label, but is seldom at the front of a block
    /// that is as long as the label says.
    pub fn in_passing(block: &[u8], place: impl FnOnce() -> String) -> Option<Sign> {
        match Label::find(block) {
            Ok(Found::Label(label)) if label.block_bytes as usize == block.len() => {
                Some(Sign { place: place(), set: Some(label.set) })
            }
            _ => None,
        }
    }
}
