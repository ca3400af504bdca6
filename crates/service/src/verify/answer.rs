//! The end of a verification as an answer.

use base::escape::escape;
use runs::summary::RunSummary;
use runs::verify::{Bounded, Differing, Problem, ReadFrom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tree::Difference;

use super::VerifyDone;
use crate::Answer;
use crate::tape_source::TapeSourceAnswer;

/// The end of a verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyAnswer {
    #[serde(flatten)]
    pub run: RunSummary,
    /// What was read of a tape; null for other archives.
    pub tape: Option<TapeSourceAnswer>,
    /// Whether the archive itself has no damage.
    pub sound: bool,
    /// What the archive was checked with.
    pub checked: CheckedAnswer,
    /// Where the bytes of the archive came from.
    pub read_from: ReadFromAnswer,
    /// Damage of the archive, by check: several checks may find one flaw.
    pub damaged: BoundedAnswer<ProblemAnswer>,
    /// Files that are damaged or lost.
    pub damaged_files: u64,
    /// Folders, links and the like that are damaged or lost.
    pub damaged_others: u64,
    /// Live objects that changed since the backup.
    pub changed: BoundedAnswer<DifferingAnswer>,
    /// Live objects that differ although size and times say that they were not touched.
    pub differs: BoundedAnswer<DifferingAnswer>,
    /// Paths of members without a live object, escaped.
    pub missing: BoundedAnswer<String>,
    /// Paths of live objects that are not in the archive, escaped.
    pub extra: BoundedAnswer<String>,
    /// Members that could not be compared.
    pub not_compared: BoundedAnswer<ProblemAnswer>,
    /// Set if the folder compared with has almost nothing of the archive.
    pub elsewhere: Option<ElsewhereAnswer>,
}

/// What an archive was checked with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedAnswer {
    /// Whether the archive has an index, and it was read completely.
    pub index: bool,
    /// Files in the index.
    pub files: u64,
    /// Files whose content was compared with a hash of the index.
    pub content_hashes: u64,
    /// Blocks compared with a checksum of the index; null if that was not possible.
    pub blocks: Option<u64>,
    /// Members compared with live objects.
    pub compared: u64,
}

/// Where the bytes of an archive came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadFromAnswer {
    /// `stream`, `disk`, `page cache and disk`, `page cache` or `unknown`.
    pub what: String,
    /// Bytes that may have come from the page cache; null if that is not known.
    pub cached_bytes: Option<u64>,
}

/// Some entries and the number of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundedAnswer<T> {
    /// The first.
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: u64,
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemAnswer {
    /// Its path, escaped; empty for the whole archive.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

/// A live object that differs from the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferingAnswer {
    /// Its path in the archive, escaped.
    pub path: String,
    /// The metadata that differ.
    pub differences: Vec<DifferenceAnswer>,
    /// First byte of the content that differs, when both have the same length.
    pub content_differs_at_bytes: Option<u64>,
}

/// The folder compared with has almost nothing of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElsewhereAnswer {
    /// The folder that was probably meant.
    pub probably: Option<String>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum DifferenceAnswer {
    /// There is no live object.
    Missing,
    Kind {
        /// The live kind.
        live: String,
    },
    /// Permissions, in octal.
    Mode {
        /// The archived ones.
        archived: String,
        /// The live ones.
        live: String,
    },
    /// The owner.
    User {
        archived: u64,
        live: u64,
    },
    Group {
        archived: u64,
        live: u64,
    },
    /// Time of modification since 1970.
    Modified {
        archived_seconds: i64,
        /// Its part below a second.
        archived_nanoseconds: u32,
        /// The live one.
        live_seconds: i64,
        /// Its part below a second.
        live_nanoseconds: u32,
    },
    /// Size of a file.
    Size {
        archived_bytes: u64,
        /// The live one.
        live_bytes: u64,
    },
    /// What a symbolic link leads to.
    #[serde(rename = "link target")]
    LinkTarget {
        /// The live target, escaped.
        live: String,
    },
    /// It and the archived target of its link are different files.
    #[serde(rename = "not linked")]
    NotLinked,
    Device {
        /// The live one: `MAJOR,MINOR`.
        live: String,
    },
    /// An extended attribute.
    Attribute {
        /// Its name, escaped.
        name: String,
    },
    #[serde(rename = "access acl")]
    AccessAcl,
    #[serde(rename = "default acl")]
    DefaultAcl,
}

impl From<&Difference> for DifferenceAnswer {
    fn from(difference: &Difference) -> DifferenceAnswer {
        match difference {
            Difference::Missing => DifferenceAnswer::Missing,
            Difference::Kind { live } => {
                DifferenceAnswer::Kind { live: format!("{live:?}").to_lowercase() }
            }
            Difference::Mode { archived, live } => DifferenceAnswer::Mode {
                archived: format!("{archived:04o}"),
                live: format!("{live:04o}"),
            },
            Difference::User { archived, live } => {
                DifferenceAnswer::User { archived: *archived, live: *live }
            }
            Difference::Group { archived, live } => {
                DifferenceAnswer::Group { archived: *archived, live: *live }
            }
            Difference::Modified { archived, live } => DifferenceAnswer::Modified {
                archived_seconds: archived.seconds,
                archived_nanoseconds: archived.nanoseconds,
                live_seconds: live.seconds,
                live_nanoseconds: live.nanoseconds,
            },
            Difference::Size { archived_bytes, live_bytes } => {
                DifferenceAnswer::Size { archived_bytes: *archived_bytes, live_bytes: *live_bytes }
            }
            Difference::LinkTarget { live } => DifferenceAnswer::LinkTarget { live: escape(live) },
            Difference::NotLinked => DifferenceAnswer::NotLinked,
            Difference::Device { live_major, live_minor } => {
                DifferenceAnswer::Device { live: format!("{live_major},{live_minor}") }
            }
            Difference::Attribute { name, .. } => {
                DifferenceAnswer::Attribute { name: escape(name) }
            }
            Difference::AccessAcl => DifferenceAnswer::AccessAcl,
            Difference::DefaultAcl => DifferenceAnswer::DefaultAcl,
        }
    }
}

impl From<ReadFrom> for ReadFromAnswer {
    fn from(read_from: ReadFrom) -> ReadFromAnswer {
        let (what, cached_bytes) = match read_from {
            ReadFrom::Stream => ("stream", None),
            ReadFrom::Disk => ("disk", Some(0)),
            ReadFrom::Partly { cached_bytes } => ("page cache and disk", Some(cached_bytes)),
            ReadFrom::Unknown => ("unknown", None),
            ReadFrom::Cache => ("page cache", None),
        };
        ReadFromAnswer { what: what.to_owned(), cached_bytes }
    }
}

impl<T> BoundedAnswer<T> {
    fn of<D>(list: &Bounded<D>, one: impl Fn(&D) -> T) -> BoundedAnswer<T> {
        BoundedAnswer { items: list.items.iter().map(one).collect(), total: list.total }
    }
}

impl Answer for VerifyAnswer {
    const COMMAND: &'static str = "verify";
}

impl VerifyDone {
    /// As an answer.
    pub fn answer(&self) -> VerifyAnswer {
        let report = &self.report;
        let problems = |list: &Bounded<Problem>| {
            BoundedAnswer::of(list, |it| ProblemAnswer {
                path: escape(&it.path),
                what: it.what.clone(),
            })
        };
        let paths = |list: &Bounded<Vec<u8>>| BoundedAnswer::of(list, |path| escape(path));
        let differing = |list: &Bounded<Differing>| {
            BoundedAnswer::of(list, |it| DifferingAnswer {
                path: escape(&it.path),
                differences: it.differences.iter().map(DifferenceAnswer::from).collect(),
                content_differs_at_bytes: it.content_differs_at_bytes,
            })
        };
        VerifyAnswer {
            run: self.summary.clone(),
            tape: report.tape.as_ref().map(TapeSourceAnswer::from),
            sound: report.is_sound(),
            checked: CheckedAnswer {
                index: report.checked.index,
                files: report.checked.files,
                content_hashes: report.checked.content_hashes,
                blocks: report.checked.blocks,
                compared: report.checked.compared,
            },
            read_from: report.read_from.into(),
            damaged: problems(&report.damaged),
            damaged_files: report.hit.files,
            damaged_others: report.hit.others,
            changed: differing(&report.changed),
            differs: differing(&report.differs),
            missing: paths(&report.missing),
            extra: paths(&report.extra),
            not_compared: problems(&report.not_compared),
            elsewhere: report.elsewhere.as_ref().map(|found| ElsewhereAnswer {
                probably: found.probably.as_ref().map(|folder| folder.display().to_string()),
            }),
        }
    }
}
