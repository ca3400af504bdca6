//! What to give to `takeup restore`, so that it brings back what a set of the catalogue has.

use std::path::{Path, PathBuf};

use archive::label::hex;
use catalogue::{KnownSet, is_index_copy};

/// The drive that is meant where sets are on tape: which one, only the user knows.
const DRIVE: &str = "/dev/nst0";
/// Digits of an identity that are typed.
const ID_DIGITS: usize = 8;

/// Where a set is restored from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreFrom {
    /// An archive, a folder of sets, or a drive.
    pub from: PathBuf,
    /// What names the set there, if it is one of a chain: its archive has what has changed, others
    /// have the rest.
    pub set: Option<String>,
}

impl RestoreFrom {
    /// Of a set; `None` if only its index is here.
    pub fn of(set: &KnownSet) -> Option<RestoreFrom> {
        let id = set.identity.map(|identity| hex(&identity)[..ID_DIGITS].to_owned());
        let is_index = is_index_copy(&set.place);
        let folder = set.place.parent();
        // Copies of indexes of sets on tape, which the program keeps itself.
        let is_kept = |folder: &Path| folder.ends_with("takeup/tape-sets");
        match (id, folder) {
            (id, Some(folder)) if is_index && is_kept(folder) => {
                let from = DRIVE.into();
                id.map(|id| RestoreFrom { from, set: Some(id) })
            }
            _ if is_index => None,
            // With a slash, as folders of sets are written.
            (Some(id), Some(folder)) => Some(RestoreFrom { from: folder.join(""), set: Some(id) }),
            _ => Some(RestoreFrom { from: set.place.clone(), set: None }),
        }
    }

    /// Whether tapes have it.
    pub fn is_on_tape(&self) -> bool {
        self.from == Path::new(DRIVE)
    }
}
