//! The names of one directory that no scan came to.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use archive::member::Timestamp;
use rustix::fs::fstat;

use super::{ListRules, Look, Names, NamesBudget, SourceStart};
use crate::exclude::Excludes;
use crate::file_systems::FileSystems;
use crate::identity::Identity;
use crate::item::Extent;

impl Names {
    /// All names of a directory; `None` if they cannot be read, or take more than `bytes_max`.
    /// `path` is that of the directory in the archive.
    pub(crate) fn alone(directory: &OwnedFd, path: &[u8], bytes_max: usize) -> Option<Names> {
        let mut names = Names {
            identity: Identity::of(&fstat(directory).ok()?),
            source: 0,
            start: SourceStart::Elsewhere,
            entry_path: None,
            base: None,
            tail: path.to_vec(),
            path_bytes: path.len(),
            source_path_bytes: 0,
            arena: Vec::new(),
            offsets: Vec::new(),
            extent: Extent::Names,
            statuses: Vec::new(),
            excluded: Vec::new(),
            looked: (Timestamp::default(), Timestamp::default()),
        };
        let rules = ListRules {
            excludes: Excludes::default(),
            file_systems: FileSystems::All,
            look: Look::Names,
            changed: None,
            parts: Arc::default(),
            stop: Arc::default(),
        };
        let budget = NamesBudget { held_bytes: AtomicUsize::new(0), bytes_max };
        names.read(directory, &rules, &mut Vec::new(), Some(&budget), &mut 0).ok()?;
        names.sort();
        Some(names)
    }

    /// Position of a name, of names in the order of their bytes.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let at = |offset: &u32| {
            let (_, start, length) = self.record(*offset);
            &self.arena[start..start + length]
        };
        let place = self.offsets.binary_search_by(|offset| at(offset).cmp(name));
        place.ok().map(|place| place as u32)
    }
}
