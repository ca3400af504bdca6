//! What is said of a catalogue, as documents.

use base::escape::{escape, escape_path};
use catalogue::{CataloguedKind, CataloguedObject, FoundVersion, KnownSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CatalogFound, CatalogLoaded, CatalogSets, CaughtUp, ExistingCatalogue};
use crate::Answer;
use crate::journal::CarriedJournal;
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
    /// Archives without an index that were read as a whole.
    pub read_through: u64,
    /// Archives that did not come in.
    pub left_out: Vec<LeftOutArchive>,
    /// What the journal of jobs had lost, and the sets had.
    pub journals: Vec<CarriedJournal>,
    pub seconds: f64,
}

/// An archive that did not come into a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutArchive {
    pub path: String,
    pub why: String,
}

/// What the catalogue has taken in of its folders before it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaughtUpAnswer {
    /// Sets that are new in it.
    pub added: u64,
    /// Files in these.
    pub files: u64,
    /// Sets that left it, since their archives are gone.
    pub left: u64,
    /// Folders that are not there now; their sets stay as they were.
    pub absent: Vec<AbsentFolderAnswer>,
    /// Archives and folders that cannot be read.
    pub left_out: Vec<LeftOutArchive>,
    /// Why the catalogue does not have all of what its folders have.
    pub not_done: Option<String>,
    /// What to type about that.
    pub hint: Option<String>,
    pub seconds: f64,
}

/// A folder of sets that is not there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbsentFolderAnswer {
    pub folder: String,
    /// Sets that the catalogue has of it.
    pub sets: u64,
    /// The time of the newest of them, since 1970.
    pub newest_seconds: i64,
}

/// The sets of a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogSetsAnswer {
    pub caught_up: CaughtUpAnswer,
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
    /// Its identity, if it is one of a chain.
    pub set: Option<String>,
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
    pub caught_up: CaughtUpAnswer,
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
    #[serde(flatten)]
    pub object: CatalogObjectAnswer,
    /// Numbers of the sets that have it, the oldest first.
    pub sets: Vec<i64>,
    /// Whether the newest set of the series has it.
    pub is_newest: bool,
}

/// An object as a set has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogObjectAnswer {
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
            read_through: self.read_through,
            left_out: self.left_out.clone(),
            journals: self.journals.clone(),
            seconds: self.seconds,
        }
    }
}

impl CatalogSets {
    /// As a document.
    pub fn answer(&self) -> CatalogSetsAnswer {
        let sets = self.sets.iter().map(CatalogSetAnswer::from).collect();
        CatalogSetsAnswer { caught_up: CaughtUpAnswer::from(&self.caught_up), sets }
    }
}

impl From<&CaughtUp> for CaughtUpAnswer {
    fn from(of: &CaughtUp) -> CaughtUpAnswer {
        let absent = of.absent.iter().map(|it| AbsentFolderAnswer {
            folder: escape_path(&it.folder),
            sets: it.sets,
            newest_seconds: it.newest_seconds,
        });
        CaughtUpAnswer {
            added: of.added,
            files: of.files,
            left: of.left,
            absent: absent.collect(),
            left_out: of.left_out.clone(),
            not_done: of.not_done.as_ref().map(|it| it.why.clone()),
            hint: of.not_done.as_ref().and_then(|it| it.hint.clone()),
            seconds: of.seconds,
        }
    }
}

impl From<&KnownSet> for CatalogSetAnswer {
    fn from(set: &KnownSet) -> CatalogSetAnswer {
        CatalogSetAnswer {
            number: set.number,
            series: set.series,
            set: set.identity.map(|identity| archive::label::hex(&identity)),
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
        let caught_up = CaughtUpAnswer::from(&self.caught_up);
        CatalogFindAnswer { caught_up, files, total: self.found.total, sets }
    }
}

impl From<&FoundVersion> for CatalogVersionAnswer {
    fn from(version: &FoundVersion) -> CatalogVersionAnswer {
        CatalogVersionAnswer {
            object: CatalogObjectAnswer::from(&version.object),
            sets: version.sets.clone(),
            is_newest: version.is_newest,
        }
    }
}

impl From<&CataloguedObject> for CatalogObjectAnswer {
    fn from(object: &CataloguedObject) -> CatalogObjectAnswer {
        let hash = object.hash.map(|hash| archive::label::hex(&hash));
        CatalogObjectAnswer {
            kind: match object.kind {
                CataloguedKind::File => MemberType::File,
                CataloguedKind::Directory => MemberType::Directory,
                CataloguedKind::SymbolicLink => MemberType::SymbolicLink,
                CataloguedKind::HardLink => MemberType::HardLink,
                CataloguedKind::Fifo => MemberType::Fifo,
                CataloguedKind::CharacterDevice => MemberType::CharacterDevice,
                CataloguedKind::BlockDevice => MemberType::BlockDevice,
            },
            size_bytes: object.size_bytes,
            modified_seconds: object.modified_seconds,
            modified_nanoseconds: object.modified_nanoseconds,
            mode: format!("{:04o}", object.mode),
            uid: object.uid,
            gid: object.gid,
            hash,
        }
    }
}
