//! What becomes of media: told to who keeps account of them, before it happens.

use std::fmt;
use std::sync::Arc;

use archive::label::MediumName;

/// Keeps account of media.
pub trait MediaLog: Send + Sync {
    /// All sets on a medium are about to be written over.
    fn overwrites(&self, medium: [u8; 16]);

    /// A medium is about to get the first part of a set's volume.
    fn takes(&self, medium: NamedMedium, set: [u8; 16], volume: u32);
}

/// A medium, and what people call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedMedium {
    pub medium: [u8; 16],
    pub name: Option<MediumName>,
}

/// What is known of media, besides what is on them.
#[derive(Clone, Default)]
pub struct Media {
    /// Media whose sets nobody needs any more: they are written over.
    pub freed: Vec<[u8; 16]>,
    /// Who keeps account of them.
    pub log: Option<Arc<dyn MediaLog>>,
}

impl fmt::Debug for Media {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Media").field("freed", &self.freed.len()).finish_non_exhaustive()
    }
}
