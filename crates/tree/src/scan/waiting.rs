//! Sources whose turn is still to come.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::ScanError;
use crate::entry_kind::EntryKind;
use crate::listing::ListRules;
use crate::scan_problem::ScanProblem;
use crate::source::{Source, archive_path};
use crate::source_part::SourcePart;

/// A source whose turn is still to come.
pub(super) enum Waiting {
    Open(Source),
    Named(PathBuf, u32),
}

impl Waiting {
    /// The source, if it is what its part needs.
    pub(super) fn open(self, rules: &ListRules) -> Result<Source, Box<ScanProblem>> {
        let (path, number) = match self {
            Waiting::Open(source) => return Ok(source),
            Waiting::Named(path, number) => (path, number),
        };
        let problem = |error: io::Error| {
            let (path, _) = archive_path(&path);
            Box::new(ScanProblem::open_directory(path, error))
        };
        let source = Source::open(&path, number).map_err(|error| {
            problem(match error {
                ScanError::Source { source, .. } | ScanError::OpenSource { source, .. } => source,
                other => io::Error::other(other),
            })
        })?;
        let is_folder = source.holder.names().kind(0) == EntryKind::Directory;
        if !is_folder && *rules.part_of(number) != SourcePart::Whole {
            return Err(problem(Errno::NOTDIR.into()));
        }
        Ok(source)
    }
}
