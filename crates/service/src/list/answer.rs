//! Lists as documents, and as lines of JSON.

use archive::label::hex;
use archive::member::MemberKind;
use base::escape::escape;
use runs::list::{ListWay, Listed};
use runs::summary::RunSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{SetContents, SetOnVolume};

use super::{ListDone, SetsDone};
use crate::Answer;

/// A member of an archive: a line of a list. The fields are in the order in which they are printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberLine {
    /// Number of its group.
    pub gid: u64,
    /// Name of its group; empty where the archive has none.
    pub group: String,
    /// Place of its first header in the archive, before compression.
    pub header_offset_bytes: u64,
    pub kind: MemberType,
    /// Permissions, in octal.
    pub mode: String,
    /// Part of the time of modification below a second.
    pub modified_nanoseconds: u32,
    /// Time of modification since 1970.
    pub modified_seconds: i64,
    /// Its path, escaped.
    pub path: String,
    /// Size of the file.
    pub size_bytes: u64,
    /// Bytes of it in the archive, without holes.
    pub stored_bytes: u64,
    /// What a link leads to, escaped.
    pub target: Option<String>,
    /// Number of its owner.
    pub uid: u64,
    /// Name of its owner; empty where the archive has none.
    pub user: String,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberType {
    /// A regular file.
    File,
    Directory,
    #[serde(rename = "symbolic link")]
    SymbolicLink,
    /// Another name of an earlier member.
    #[serde(rename = "hard link")]
    HardLink,
    /// A named pipe.
    Fifo,
    #[serde(rename = "character device")]
    CharacterDevice,
    #[serde(rename = "block device")]
    BlockDevice,
}

impl From<&Listed<'_>> for MemberLine {
    fn from(listed: &Listed<'_>) -> MemberLine {
        let member = listed.member;
        let (kind, target) = match &member.kind {
            MemberKind::File => (MemberType::File, None),
            MemberKind::Directory => (MemberType::Directory, None),
            MemberKind::SymbolicLink { target } => (MemberType::SymbolicLink, Some(target)),
            MemberKind::HardLink { target } => (MemberType::HardLink, Some(target)),
            MemberKind::Fifo => (MemberType::Fifo, None),
            MemberKind::CharacterDevice { .. } => (MemberType::CharacterDevice, None),
            MemberKind::BlockDevice { .. } => (MemberType::BlockDevice, None),
        };
        MemberLine {
            path: escape(&member.path),
            kind,
            target: target.map(|target| escape(target)),
            mode: format!("{:04o}", member.mode),
            uid: member.uid,
            gid: member.gid,
            user: escape(&member.user),
            group: escape(&member.group),
            size_bytes: member.size_bytes,
            stored_bytes: listed.stored_bytes,
            modified_seconds: member.modified.seconds,
            modified_nanoseconds: member.modified.nanoseconds,
            header_offset_bytes: listed.header_offset_bytes.bytes(),
        }
    }
}

impl MemberLine {
    /// As a line of JSON.
    ///
    /// # Panics
    /// Never: it is made of numbers and texts.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written as JSON") + "\n"
    }
}

/// The end of a list: its last line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListSummary {
    /// Where the list came from.
    pub source: ListSource,
    pub summary: RunSummary,
}

/// Where a list came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListSource {
    pub listed_from: ListedFrom,
    /// Headers that were compared with the index; null where they were listed themselves.
    pub headers_checked: Option<u64>,
}

/// What was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListedFrom {
    /// The index of the archive.
    Index,
    /// The headers of the archive.
    Headers,
}

impl ListSummary {
    /// As a line of JSON.
    ///
    /// # Panics
    /// Never: it is made of numbers, texts and lists of them.
    pub fn to_line(&self) -> String {
        let document = serde_json::to_value(self);
        format!("{}\n", document.expect("numbers and texts can be written as JSON"))
    }
}

impl ListDone {
    /// As the last line of the list.
    pub fn answer(&self) -> ListSummary {
        let (listed_from, headers_checked) = match self.report.way {
            ListWay::Index { headers_checked } => (ListedFrom::Index, Some(headers_checked)),
            ListWay::Headers => (ListedFrom::Headers, None),
        };
        let source = ListSource { listed_from, headers_checked };
        ListSummary { source, summary: self.summary.clone() }
    }
}

/// The sets of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetsAnswer {
    /// In the order of their numbers.
    pub sets: Vec<SetAnswer>,
}

/// A set of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAnswer {
    /// Its number on the volume, from 1.
    pub number: u32,
    /// Its id.
    pub set: String,
    /// When its run began, in seconds since 1970.
    pub time_seconds: u64,
    /// The machine that wrote it.
    pub host: Option<String>,
    /// Which set of a chain it is; null outside of chains.
    pub chain: Option<SetChainAnswer>,
    /// Number of the volume in the set.
    pub volume: u32,
    /// Id of the medium.
    pub medium: String,
    /// What the medium is called: its bar code, or as `--volume-name` said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium_name: Option<String>,
    /// Number of the first segment with a part on this volume.
    pub first_segment: u32,
    /// Number of the last segment with a part on this volume, index included.
    pub last_segment: u32,
    /// Whether its index is here.
    pub has_index: bool,
    /// Whether another set follows it on this volume: without an index it is incomplete then.
    pub followed: bool,
    /// Compression in the form of the option.
    pub compression: String,
    pub block_bytes: u32,
    /// Number of its first file on the volume.
    pub first_file: u32,
    /// Its contents; null if its index is not on this volume, or cannot be read.
    pub contents: Option<SetContentsAnswer>,
}

/// The place of a set in a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetChainAnswer {
    pub job: String,
    /// Its number among the sets of the job, from 1.
    pub number: u64,
    /// 0 for a full set.
    pub level: u8,
    /// The id of the set that changes count from; null for a full set.
    pub parent: Option<String>,
}

/// The contents of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetContentsAnswer {
    /// The first sources as given, escaped.
    pub sources: Vec<String>,
    pub sources_total: u64,
    /// Objects of all kinds.
    pub members: u64,
    /// Files among them.
    pub files: u64,
    /// Bytes of their contents, without holes.
    pub source_bytes: u64,
    /// Bytes of the archive before compression.
    pub archive_bytes: u64,
    /// Why it ended early; null if it did not.
    pub ended_early: Option<String>,
}

/// The only document of `list`: the members of an archive are lines.
impl Answer for SetsAnswer {
    const COMMAND: &'static str = "list";
}

impl SetsDone {
    /// As an answer.
    pub fn answer(&self) -> SetsAnswer {
        SetsAnswer { sets: self.sets.iter().map(set_answer).collect() }
    }
}

fn set_answer(set: &SetOnVolume) -> SetAnswer {
    let contents = |contents: &SetContents| SetContentsAnswer {
        sources: contents.roots.iter().map(|root| escape(root)).collect(),
        sources_total: contents.roots_total,
        members: contents.members,
        files: contents.files,
        source_bytes: contents.source_bytes,
        archive_bytes: contents.archive_bytes,
        ended_early: contents.ended_early.clone(),
    };
    SetAnswer {
        number: set.number,
        set: set.id.clone(),
        time_seconds: set.time_seconds,
        host: set.host.clone(),
        chain: set.chain.as_ref().map(|chain| SetChainAnswer {
            job: chain.job.as_str().to_owned(),
            number: chain.number,
            level: chain.level,
            parent: chain.parent.as_ref().map(hex),
        }),
        volume: set.volume,
        medium: hex(&set.medium),
        medium_name: set.medium_name.map(|name| name.to_string()),
        first_segment: set.segments.0,
        last_segment: set.segments.1,
        has_index: set.has_index,
        followed: set.followed,
        compression: set.compression.clone(),
        block_bytes: set.block_bytes,
        first_file: set.first_file,
        contents: set.contents.as_ref().map(contents),
    }
}
