//! Files with several names: later names become links to the first one.

use tree::{HardLinks, Link};

use super::draft::Draft;
use crate::spool::Spool;

/// Files with several names, and the names under which they are in the archive.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    links: HardLinks,
    names: Spool,
}

impl LinkTable {
    /// The name under which the file is in the archive, if it is.
    pub(super) fn earlier_name(&mut self, draft: &mut Draft) -> Option<Vec<u8>> {
        let captured = &draft.captured;
        let generation = captured.generation?;
        let reference = self.names.length_bytes();
        match self.links.note(captured.identity, generation, captured.links, reference) {
            Ok(Link::First) => self.keep_name(draft),
            Ok(Link::Again(reference)) => match self.name_at(reference) {
                Ok(name) => return Some(name),
                Err(error) => {
                    draft.warnings.push(format!("archived as a separate file: {error}"));
                }
            },
            Ok(Link::Reused(earlier)) => {
                let earlier = self.name_at(earlier).unwrap_or_default();
                draft.warnings.push(format!(
                    "has the inode number of {}, but is another file: archived as a separate file",
                    String::from_utf8_lossy(&earlier)
                ));
                self.keep_name(draft);
            }
            Err(full) => draft.warnings.push(full.to_string()),
        }
        None
    }

    /// Keeps the first name of a file for the others.
    fn keep_name(&mut self, draft: &mut Draft) {
        let path = &draft.captured.member.path;
        let buffer = self.names.buffer();
        buffer.extend_from_slice(&(path.len() as u32).to_le_bytes());
        buffer.extend_from_slice(path);
        if let Err(error) = self.names.settle() {
            draft.warnings.push(format!("cannot keep the names of its links: {error}"));
        }
    }

    fn name_at(&self, reference: u64) -> std::io::Result<Vec<u8>> {
        let length = self.names.read_at(reference, 4)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
        self.names.read_at(reference + 4, length as usize)
    }
}
