//! What is known of media without reading them: where their sets are, and copies of indexes.
//!
//! Whoever keeps it may lose it: the tape has everything. A medium is known only as long as its
//! memory chip says that nothing was written to it since. Wherever copy and tape differ, the tape
//! is right: data are compared with the checksums of the index as they are read.

use std::fmt;
use std::sync::Arc;

use archive::label::MediumName;
use device::tape::scsi::attribute::CartridgeMemory;

use crate::read::{SetHere, TapeIndex};

/// A medium as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMedium {
    /// Id of the medium, as its labels have it.
    pub medium: [u8; 16],
    /// What its chip said then.
    pub memory: CartridgeMemory,
    /// All sets on it, newest first.
    pub sets: Vec<SetHere>,
}

/// Keeps what is known of media.
pub trait KnownMedia: Send + Sync {
    /// The medium with this chip, if nothing was written to it since it was noted.
    fn medium(&self, memory: &CartridgeMemory) -> Option<KnownMedium>;

    /// A copy of the index of a set.
    fn index(&self, set: [u8; 16]) -> Option<TapeIndex>;

    /// What people call a medium.
    fn name(&self, medium: [u8; 16]) -> Option<MediumName>;

    /// Notes how a medium was left. Nothing depends on whether that succeeds.
    fn note(&self, medium: &KnownMedium);

    /// Keeps a copy of an index that was read from tape. Nothing depends on whether that succeeds.
    fn keep(&self, set: [u8; 16], index: &TapeIndex);
}

/// Where that is kept, if anywhere.
#[derive(Clone, Default)]
pub struct Memory(pub Option<Arc<dyn KnownMedia>>);

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Memory").field(&self.0.is_some()).finish()
    }
}

impl Memory {
    pub(crate) fn medium(&self, memory: &CartridgeMemory) -> Option<KnownMedium> {
        let is_whole = |known: &KnownMedium| {
            memory.is_unchanged_since(&known.memory)
                && known.sets.iter().all(|set| set.last.label.medium == known.medium)
        };
        self.0.as_ref()?.medium(memory).filter(is_whole)
    }

    /// The copy of an index, if it is of this set.
    pub(crate) fn index(&self, set: [u8; 16]) -> Option<TapeIndex> {
        self.0.as_ref()?.index(set).filter(|index| index.set() == Some(set))
    }

    pub(crate) fn name(&self, medium: [u8; 16]) -> Option<MediumName> {
        self.0.as_ref()?.name(medium)
    }

    pub(crate) fn note(&self, medium: impl FnOnce() -> Option<KnownMedium>) {
        if let Some(known) = &self.0
            && let Some(medium) = medium()
        {
            known.note(&medium);
        }
    }

    pub(crate) fn keep(&self, set: [u8; 16], index: &TapeIndex) {
        if let Some(known) = &self.0 {
            known.keep(set, index);
        }
    }
}
