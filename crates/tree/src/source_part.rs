//! A part of a source, where several walks share one tree.

use crate::entry_kind::EntryKind;

/// What of a source is walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourcePart {
    /// The source and everything below it.
    #[default]
    Whole,
    /// What lies in the folder itself and is no folder; the folder's own entry is left out. Names
    /// by their bytes, `from` included and `before` not.
    Contents { from: Option<Vec<u8>>, before: Option<Vec<u8>> },
    /// The folders alone, the source and all below it.
    Folders,
    /// The objects in the folder that have these names, in the order of their bytes.
    Named(Vec<Vec<u8>>),
}

impl SourcePart {
    /// Whether a name in a folder of the source belongs to it.
    pub(crate) fn has(&self, name: &[u8], kind: EntryKind) -> bool {
        let is_folder = kind == EntryKind::Directory;
        match self {
            SourcePart::Whole => true,
            SourcePart::Folders => is_folder,
            SourcePart::Contents { from, before } => {
                !is_folder
                    && from.as_ref().is_none_or(|from| name >= &from[..])
                    && before.as_ref().is_none_or(|before| name < &before[..])
            }
            SourcePart::Named(names) => {
                !is_folder && names.binary_search_by(|known| known[..].cmp(name)).is_ok()
            }
        }
    }

    /// Whether the entry of the source itself belongs to it.
    pub(crate) fn has_itself(&self) -> bool {
        matches!(self, SourcePart::Whole | SourcePart::Folders)
    }
}
