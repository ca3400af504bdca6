//! Compares all headers of an archive with its index while they are listed.

use archive::index::{FileRecord, IndexError};
use flow::monitor::Harm;

use crate::read::cross_check::disagreement;
use crate::read::members::Found;
use crate::read::{Damage, ReadFailure};
use crate::warnings::Warnings;
use catalogue::IndexFile;

/// The records of an index, followed along the archive.
pub(super) struct AgainstIndex<'a> {
    records: std::iter::Peekable<Box<dyn Iterator<Item = Result<FileRecord, IndexError>> + 'a>>,
}

impl<'a> AgainstIndex<'a> {
    pub fn new(index: &'a IndexFile) -> Result<AgainstIndex<'a>, ReadFailure> {
        let files = index.files().map_err(|source| ReadFailure::SetUp { what: "index", source })?;
        let records: Box<dyn Iterator<Item = _>> = Box::new(files);
        Ok(AgainstIndex { records: records.peekable() })
    }

    /// A member of the archive.
    pub fn member(&mut self, found: &Found, warnings: &Warnings<'_>) {
        let at = found.header_offset_bytes;
        let before = |record: &Result<FileRecord, IndexError>| {
            record.as_ref().is_ok_and(|record| record.header_offset_bytes < at)
        };
        while let Some(Ok(record)) = self.records.next_if(before) {
            let text = "is in the index but not in the archive: it is lost";
            warnings.warn(Harm::Damage, &record.path, text);
        }
        let here = |record: &Result<FileRecord, IndexError>| {
            record.as_ref().is_ok_and(|record| record.header_offset_bytes == at)
        };
        let Some(Ok(record)) = self.records.next_if(here) else {
            warnings.warn(
                Harm::Damage,
                &found.member.path,
                "is in the archive but not in its index",
            );
            return;
        };
        if let Some(what) = disagreement(&record, &found.member, found.content_offset_bytes) {
            warnings.warn(Harm::Damage, &record.path, what);
        }
    }

    /// The end of the archive.
    pub fn conclude(&mut self, warnings: &Warnings<'_>) {
        for record in self.records.by_ref() {
            match record {
                Ok(record) => {
                    let text = "is in the index but not in the archive: it is lost";
                    warnings.warn(Harm::Damage, &record.path, text);
                }
                Err(error) => {
                    let why = error.to_string();
                    warnings.damage(&Damage::of_index(why));
                    return;
                }
            }
        }
    }
}
