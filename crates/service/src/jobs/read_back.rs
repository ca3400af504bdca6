//! What was found where archives were read back.

use base::format::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An archive that was read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedArchive {
    /// The identity of its set.
    pub set: String,
    pub archive: String,
    /// Whether it is as it was written.
    pub sound: bool,
    /// Whether it could not be checked, for a reason that says nothing of it: its medium is not
    /// there, memory was missing, or a later version wrote it.
    #[serde(default)]
    pub unread: bool,
    /// What was found, in words.
    pub text: String,
    pub bytes: u64,
    pub seconds: f64,
    /// The part that was read; null: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<ReadPart>,
    /// What the comparison with the source found; null: it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ComparedSource>,
}

/// A part of an archive, in bytes before compression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadPart {
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// Bytes of the whole archive.
    pub of_bytes: u64,
}

/// What the comparison of an archive with its source found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSource {
    /// Members of the archive that were looked for at the source.
    pub compared: u64,
    /// Of these, objects that changed since the backup.
    pub changed: u64,
    /// Objects that are gone since the backup.
    pub gone: u64,
    /// Objects that differ although size and times say that they were not touched.
    pub differs: u64,
    /// Objects that could not be compared.
    pub not_compared: u64,
    /// Whether the source has almost nothing of the archive: it is likely not mounted any more.
    pub elsewhere: bool,
    /// Paths of the first: what differs, could not be compared, changed, is gone. Escaped.
    pub first: Vec<String>,
}

impl ComparedSource {
    /// What of the comparison is to be looked at, besides a difference.
    pub(super) fn not_whole(&self) -> Option<String> {
        if self.elsewhere {
            return Some(
                "the source has almost nothing of the new set: what `hooks.after-backup` unmounts \
                 cannot be compared, unmount it in `hooks.after`"
                    .to_owned(),
            );
        }
        let objects = counted(self.not_compared, "object", "objects");
        (self.not_compared > 0).then(|| format!("{objects} could not be compared with the source"))
    }
}
