//! Rules that hold for all listings of a scan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::changed_paths::ChangedPaths;
use crate::exclude::Excludes;
use crate::file_systems::FileSystems;
use crate::source_part::SourcePart;

/// Rules that hold for all listings of a scan.
#[derive(Debug)]
pub(crate) struct ListRules {
    pub(crate) excludes: Excludes,
    pub(crate) file_systems: FileSystems,
    pub(crate) look: Look,
    pub(crate) changed: Option<Arc<ChangedPaths>>,
    /// By the number of the source; a source that has none is walked as a whole.
    pub(crate) parts: Arc<[SourcePart]>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl ListRules {
    /// The part of a source that is walked.
    pub(crate) fn part_of(&self, source: u32) -> &SourcePart {
        self.parts.get(source as usize).unwrap_or(&SourcePart::Whole)
    }
}

/// What a scan finds out of each object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Its name and kind; names in the order of their bytes.
    #[default]
    Names,
    /// Its state, too; of a directory first what is no directory.
    Status,
}

/// Bytes of names in the look-ahead, and their limit.
#[derive(Debug)]
pub(crate) struct NamesBudget {
    pub(crate) held_bytes: AtomicUsize,
    pub(crate) bytes_max: usize,
}

impl NamesBudget {
    pub(crate) fn is_spent(&self) -> bool {
        self.held_bytes.load(Ordering::Relaxed) >= self.bytes_max
    }
}
