//! What is said of a catalogue, as documents.

use base::escape::{escape, escape_path};
use catalogue::{CataloguedKind, FoundVersion, KnownSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CatalogFound, CatalogLoaded, ExistingCatalogue};
use crate::Answer;
use crate::list::MemberType;

/// How archives came into a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLoadAnswer {
    /// `catalog add` or `catalog rebuild`.
    pub command: String,
    pub catalog: String,
    pub catalog_bytes: u64,
    /// Sets that are new.
    pub added: u64,
    /// Sets that it had before.
    pub known: u64,
    /// Objects in the new sets.
    pub members: u64,
    /// Files among them.
    pub files: u64,
    /// Objects that sets have which are not in the catalogue, and which the new ones count on.
    pub elsewhere: u64,
    /// Files in the named folders that have no index.
    pub without_index: u64,
    /// Archives that did not come in.
    pub left_out: Vec<LeftOutArchive>,
    pub seconds: f64,
}

/// An archive that did not come into a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutArchive {
    pub path: String,
    pub why: String,
}

/// The sets of a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogSetsAnswer {
    /// The oldest first.
    pub sets: Vec<CatalogSetAnswer>,
}

/// A set of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogSetAnswer {
    /// Its number in the catalogue.
    pub number: i64,
    /// The same for all sets of the same sources in the same folder.
    pub series: i64,
    /// When it was written, since 1970.
    pub time_seconds: i64,
    /// Its archive.
    pub place: String,
    pub compression: String,
    /// Objects of all kinds.
    pub members: u64,
    pub files: u64,
    /// Bytes of content.
    pub source_bytes: u64,
    /// Before compression.
    pub archive_bytes: u64,
    /// What was backed up, escaped.
    pub sources: Vec<String>,
}

/// The files that a glob found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogFindAnswer {
    /// In the order of their paths.
    pub files: Vec<FoundFileAnswer>,
    /// How many there are, also where not all are listed.
    pub total: u64,
    /// The sets that the versions name.
    pub sets: Vec<CatalogSetAnswer>,
}

/// A path and its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFileAnswer {
    /// As the archives have it, escaped.
    pub path: String,
    pub series: i64,
    /// The oldest first.
    pub versions: Vec<CatalogVersionAnswer>,
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogVersionAnswer {
    pub kind: MemberType,
    pub size_bytes: u64,
    pub modified_seconds: i64,
    pub modified_nanoseconds: u32,
    /// Permissions, in octal.
    pub mode: String,
    pub uid: u64,
    pub gid: u64,
    /// The first half of the hash of its content, in hexadecimal digits.
    pub hash: Option<String>,
    /// Numbers of the sets that have it, the oldest first.
    pub sets: Vec<i64>,
    /// Whether the newest set of the series has it.
    pub is_newest: bool,
}

impl Answer for CatalogLoadAnswer {
    const COMMAND: &'static str = "catalog add";

    fn command(&self) -> &str {
        &self.command
    }
}

impl Answer for CatalogSetsAnswer {
    const COMMAND: &'static str = "catalog sets";
}

impl Answer for CatalogFindAnswer {
    const COMMAND: &'static str = "catalog find";
}

impl ExistingCatalogue {
    /// The command that leaves this of it.
    pub fn command(self) -> &'static str {
        match self {
            ExistingCatalogue::Kept => "catalog add",
            ExistingCatalogue::Replaced => "catalog rebuild",
        }
    }
}

impl CatalogLoaded {
    /// As a document.
    pub fn answer(&self) -> CatalogLoadAnswer {
        CatalogLoadAnswer {
            command: self.existing.command().to_owned(),
            catalog: escape_path(&self.path),
            catalog_bytes: self.bytes,
            added: self.added,
            known: self.known,
            members: self.members,
            files: self.files,
            elsewhere: self.elsewhere,
            without_index: self.without_index,
            left_out: self.left_out.clone(),
            seconds: self.seconds,
        }
    }
}

impl CatalogSetsAnswer {
    /// Of these sets.
    pub fn of(sets: &[KnownSet]) -> CatalogSetsAnswer {
        CatalogSetsAnswer { sets: sets.iter().map(CatalogSetAnswer::from).collect() }
    }
}

impl From<&KnownSet> for CatalogSetAnswer {
    fn from(set: &KnownSet) -> CatalogSetAnswer {
        CatalogSetAnswer {
            number: set.number,
            series: set.series,
            time_seconds: set.time_seconds,
            place: escape_path(&set.place),
            compression: set.compression.clone(),
            members: set.members,
            files: set.files,
            source_bytes: set.source_bytes,
            archive_bytes: set.archive_bytes,
            sources: set.sources.iter().map(|source| escape(source)).collect(),
        }
    }
}

impl CatalogFound {
    /// As a document.
    pub fn answer(&self) -> CatalogFindAnswer {
        let files = self.found.files.iter().map(|file| FoundFileAnswer {
            path: escape(&file.path),
            series: file.series,
            versions: file.versions.iter().map(CatalogVersionAnswer::from).collect(),
        });
        let files: Vec<FoundFileAnswer> = files.collect();
        let is_named = |set: &&KnownSet| {
            let mut versions = files.iter().flat_map(|file| &file.versions);
            versions.any(|version| version.sets.contains(&set.number))
        };
        let sets = self.sets.iter().filter(is_named).map(CatalogSetAnswer::from).collect();
        CatalogFindAnswer { files, total: self.found.total, sets }
    }
}

impl From<&FoundVersion> for CatalogVersionAnswer {
    fn from(version: &FoundVersion) -> CatalogVersionAnswer {
        let hash = version.hash.map(|hash| archive::label::hex(&hash));
        CatalogVersionAnswer {
            kind: match version.kind {
                CataloguedKind::File => MemberType::File,
                CataloguedKind::Directory => MemberType::Directory,
                CataloguedKind::SymbolicLink => MemberType::SymbolicLink,
                CataloguedKind::HardLink => MemberType::HardLink,
                CataloguedKind::Fifo => MemberType::Fifo,
                CataloguedKind::CharacterDevice => MemberType::CharacterDevice,
                CataloguedKind::BlockDevice => MemberType::BlockDevice,
            },
            size_bytes: version.size_bytes,
            modified_seconds: version.modified_seconds,
            modified_nanoseconds: version.modified_nanoseconds,
            mode: format!("{:04o}", version.mode),
            uid: version.uid,
            gid: version.gid,
            hash,
            sets: version.sets.clone(),
            is_newest: version.is_newest,
        }
    }
}
