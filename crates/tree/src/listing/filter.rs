//! Which names of a directory are left out.

use super::{ListRules, Names, SourceStart};
use crate::entry_kind::EntryKind;
use crate::exclude::{Candidacy, Excludes};
use crate::source_part::SourcePart;

/// Matches the names of one directory; paths are built only if a glob needs them.
pub(super) struct Filter<'a> {
    excludes: &'a Excludes,
    part: &'a SourcePart,
    /// `/`, the archive path of the directory and a slash, when needed.
    path: Vec<u8>,
    /// Where the path from the source starts in `path`.
    relative_from: usize,
    start: SourceStart,
}

impl<'a> Filter<'a> {
    pub(super) fn new(rules: &'a ListRules, names: &Names) -> Filter<'a> {
        let (excludes, part) = (&rules.excludes, rules.part_of(names.source));
        let mut filter =
            Filter { excludes, part, path: Vec::new(), relative_from: 1, start: names.start };
        if excludes.needs_paths() {
            filter.path.push(b'/');
            names.append_path(&mut filter.path);
            if names.path_bytes != 0 {
                filter.path.push(b'/');
            }
            filter.relative_from = 1 + names.source_path_bytes;
        }
        filter
    }

    /// The part of the source that is walked.
    pub(super) fn part(&self) -> &'a SourcePart {
        self.part
    }

    pub(super) fn excludes(&mut self, name: &[u8], kind: EntryKind) -> bool {
        if self.excludes.is_empty() {
            return false;
        }
        let prefix_bytes = self.path.len();
        if prefix_bytes > 0 {
            self.path.extend_from_slice(name);
        }
        let matches = self.excludes.matches(&Candidacy {
            name,
            path: self.path.get(self.relative_from..).unwrap_or_default(),
            absolute: (self.start == SourceStart::Root).then_some(&self.path[..]),
            is_directory: kind == EntryKind::Directory,
        });
        self.path.truncate(prefix_bytes);
        matches
    }
}
