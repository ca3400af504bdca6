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
    /// Whether a name in a folder of the source can belong to it, whatever it stands for: known
    /// without looking at the object.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        match self {
            SourcePart::Whole | SourcePart::Folders => true,
            SourcePart::Contents { from, before } => {
                from.as_ref().is_none_or(|from| name >= &from[..])
                    && before.as_ref().is_none_or(|before| name < &before[..])
            }
            SourcePart::Named(names) => names.binary_search_by(|known| known[..].cmp(name)).is_ok(),
        }
    }

    /// Whether objects of this kind belong to it.
    pub(crate) fn has_kind(&self, kind: EntryKind) -> bool {
        match self {
            SourcePart::Whole => true,
            SourcePart::Folders => kind == EntryKind::Directory,
            SourcePart::Contents { .. } | SourcePart::Named(_) => kind != EntryKind::Directory,
        }
    }

    /// Whether the entry of the source itself belongs to it.
    pub(crate) fn has_itself(&self) -> bool {
        matches!(self, SourcePart::Whole | SourcePart::Folders)
    }
}
