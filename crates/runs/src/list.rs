//! The `list` run: what is in an archive.
//!
//! There are three ways, and the quickest that is enough is used: names and sizes from the index of
//! the set; from header to header if the archive is plain and has random access; otherwise reading
//! the whole archive. The index has neither link targets nor names of owners, so a listing with all
//! details reads the headers.

mod against_index;

use std::num::NonZero;
use std::time::Instant;

use archive::index::{FileLayout, FileRecord, IndexError, RecordKind};
use archive::member::{Member, MemberKind};
use archive::stream::ArchiveOffset;
use flow::account::{Account, Stage};
use flow::backend::Engine;
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, Failure, StageFailure, cores};
use flow::monitor::{Counter, Harm, Monitor};
use flow::run::{Command, Endpoint, RunReport, StageKind};

use crate::origin::Origin;
use crate::past_cache::Way;
use crate::read::cross_check::cross_check;
use crate::read::members::{Item, MemberStream};
use crate::read::{
    Contents, Damage, IndexNeed, Input, ReadFailure, ReadSettings, plain_decoder, read_archive,
};
use crate::selection::{NotFound, Selection};
use crate::warnings::Warnings;
use catalogue::IndexFile;
use tapeset::Need;

use against_index::AgainstIndex;

/// The options of a listing.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Where the archive is. For a set on tape the index is listed, whatever the detail: reading
    /// the headers would take as long as a full restore.
    pub from: Origin,
    /// Which members.
    pub selection: Selection,
    /// How much detail of each.
    pub detail: Detail,
    /// How many headers the index is compared with.
    pub check: HeaderCheck,
    /// Whether an archive that does not announce an index must have one anyway.
    pub index: IndexNeed,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
    /// Decompressing threads; as many as there are cores when `None`.
    pub threads: Option<NonZero<usize>>,
}

impl Default for ListOptions {
    fn default() -> ListOptions {
        ListOptions {
            from: "-".into(),
            selection: Selection::default(),
            detail: Detail::Everything,
            check: HeaderCheck::default(),
            index: IndexNeed::default(),
            engine: Engine::Auto,
            ring_bytes: 64 << 20,
            threads: None,
        }
    }
}

/// The detail of each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What the index has: path, kind, mode, numeric owner, size, time of modification. Link
    /// targets, names of owners, attributes and ACLs may be missing.
    Index,
    /// Everything in the archive.
    Everything,
}

/// How many headers an index is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderCheck {
    /// Some of them, where the index is listed.
    #[default]
    Sample,
    /// All of them, which are what is listed.
    All,
}

/// A listed member.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// The member as archived.
    pub member: &'a Member,
    /// Place of its first header in the archive, before compression.
    pub header_offset_bytes: ArchiveOffset,
    /// Place of its content.
    pub content_offset_bytes: ArchiveOffset,
    /// Bytes of content in the archive.
    pub stored_bytes: u64,
}

/// The result of a listing.
#[derive(Clone, Debug)]
pub struct ListReport {
    pub run: RunReport,
    /// Number of warnings; the monitor received them.
    pub warnings: u64,
    /// Requested paths that match nothing.
    pub not_found: Vec<NotFound>,
    /// Where the list came from.
    pub way: ListWay,
}

/// The source of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListWay {
    /// The index of the set, compared with some headers.
    Index {
        /// Headers that were read and agree with the index.
        headers_checked: u64,
    },
    /// The headers in the archive.
    Headers,
}

/// Why an archive cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The archive cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The index became unreadable after part of it was listed.
    #[error("the list ends early: the index cannot be read to its end")]
    Index(#[source] IndexError),
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Failure for ListError {
    fn is_echo(&self) -> bool {
        match self {
            ListError::Read(failure) => failure.is_echo(),
            error => matches!(error, ListError::Stopped(_)),
        }
    }
}

/// Lists an archive: `each` is called for every selected member in archive order.
///
/// # Errors
/// See [`ListError`]. Damage is a warning to the monitor, not an error.
pub fn list(
    options: ListOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
    mut each: impl FnMut(&Listed<'_>),
) -> Result<ListReport, ListError> {
    let start = Instant::now();
    let warnings = Warnings::new(monitor);
    let mut selection = options.selection.clone();
    let input = Input::open(&options.from, Need::Index, monitor, cancel)?;
    if options.index == IndexNeed::Required {
        input.require_index()?;
    }
    let is_tape = matches!(input, Input::Tape(_));
    let index = match (is_tape || options.detail == Detail::Index, options.check) {
        (_, HeaderCheck::All) => Some(input.require_known_index(&options.from)?),
        (true, HeaderCheck::Sample) => input.index(),
        (false, HeaderCheck::Sample) => None,
    };
    if let Some(index) = index.as_ref().filter(|_| options.check == HeaderCheck::Sample)
        && let Some((members, headers_checked)) =
            list_index(index, &mut selection, &warnings, cancel, &mut each)?
    {
        for text in input.damage() {
            warnings.warn(Harm::Damage, b"", text);
        }
        let source = if is_tape { Endpoint::Tape } else { Endpoint::File };
        let seconds = start.elapsed().as_secs_f64();
        let run = RunReport { members, seconds, ..run_of_index(index, source) };
        return Ok(report(run, &selection, &warnings, ListWay::Index { headers_checked }));
    }
    let mut against = match (&index, options.check) {
        (Some(index), HeaderCheck::All) => Some(AgainstIndex::new(index)?),
        _ => None,
    };
    let settings = ReadSettings {
        engine: options.engine,
        way: Way::Fastest,
        ring_bytes: options.ring_bytes,
        threads: options.threads,
        make_decoder: plain_decoder,
        contents: Contents::NotWanted,
        check: None,
        keep: None,
        index: options.index,
        excerpt: None,
        chunks: None,
    };
    let stage = Stage::new(StageKind::Parse);
    let (mut run, summary) = read_archive(
        input,
        &settings,
        &stage,
        monitor,
        &Crew::new(cancel),
        |stream: &mut MemberStream<'_>, account| {
            list_stream(stream, account, &mut selection, &warnings, &mut against, &mut each)
        },
    )?;
    summary.enter(&mut run, Command::List, Endpoint::List, &warnings);
    run.stages.push(stage.report());
    run.seconds = start.elapsed().as_secs_f64();
    Ok(report(run, &selection, &warnings, ListWay::Headers))
}

/// The report of a run that read nothing but the index.
fn run_of_index(index: &IndexFile, source: Endpoint) -> RunReport {
    RunReport {
        command: Command::List,
        source,
        target: Endpoint::List,
        engine: "pread".into(),
        cores: cores(),
        compression: index.trailer.compression.to_string(),
        archive_bytes: index.trailer.archive_bytes,
        ..RunReport::default()
    }
}

fn report(
    run: RunReport,
    selection: &Selection,
    warnings: &Warnings<'_>,
    way: ListWay,
) -> ListReport {
    ListReport { run, warnings: warnings.count(), not_found: selection.not_found(), way }
}

fn list_stream(
    stream: &mut MemberStream<'_>,
    account: &mut Account,
    selection: &mut Selection,
    warnings: &Warnings<'_>,
    against: &mut Option<AgainstIndex<'_>>,
    each: &mut impl FnMut(&Listed<'_>),
) -> Result<RunReport, ListError> {
    let mut run = RunReport::default();
    let mut counted_bytes = 0;
    while let Some(item) = stream.next(account)? {
        match item {
            Item::Member(found) => {
                warnings.monitor().count(Counter::Members, 1);
                let offset_bytes = found.header_offset_bytes.bytes();
                let more_bytes = offset_bytes.saturating_sub(counted_bytes);
                warnings.monitor().count(Counter::ArchiveBytes, more_bytes);
                counted_bytes += more_bytes;
                if let Some(against) = against {
                    against.member(&found, warnings);
                }
                if !selection.selects(&found.member.path) {
                    continue;
                }
                run.members += 1;
                run.files += u64::from(found.member.kind == MemberKind::File);
                run.source_bytes += found.member.content_bytes();
                for note in &found.notes {
                    warnings.note(&found.member.path, note.to_string());
                }
                each(&Listed {
                    member: &found.member,
                    header_offset_bytes: found.header_offset_bytes,
                    content_offset_bytes: found.content_offset_bytes,
                    stored_bytes: found.stored_bytes,
                });
            }
            Item::IndexSection { .. } | Item::EndOfSegment => {}
            Item::Damage(damage) => warnings.damage(&damage),
            Item::NextArchive { offset_bytes } => {
                warnings.next_archive(offset_bytes);
            }
            Item::Passed { what } => warnings.note(b"", what),
        }
    }
    if let Some(against) = against {
        against.conclude(warnings);
    }
    Ok(run)
}

/// Lists from the index. If the index is damaged or belongs to another archive, the headers are
/// listed instead. Returns the members, and how many headers were compared.
fn list_index(
    index: &IndexFile,
    selection: &mut Selection,
    warnings: &Warnings<'_>,
    cancel: &Cancel,
    each: &mut impl FnMut(&Listed<'_>),
) -> Result<Option<(u64, u64)>, ListError> {
    // Read it once silently, so that a damaged index leads to the headers and not to half a list.
    let Some(check) = cross_check(index) else {
        let why = "it cannot be read to its end, so the headers are listed".to_owned();
        warnings.damage(&Damage::of_index(why));
        return Ok(None);
    };
    for what in &check.disagreements {
        let why = format!("{what}; the headers are listed");
        warnings.damage(&Damage::of_index(why));
    }
    if !check.disagreements.is_empty() {
        return Ok(None);
    }
    let Ok(files) = index.files() else { return Ok(None) };
    let mut members = 0;
    for record in files {
        cancel.check()?;
        // It was readable a moment ago; the entries listed so far cannot be taken back.
        let record = record.map_err(ListError::Index)?;
        if !selection.selects(&record.path) {
            continue;
        }
        members += 1;
        let (header_offset_bytes, content_offset_bytes) =
            (record.header_offset_bytes, record.content_offset_bytes);
        let member = member_of(record);
        let stored_bytes = member.content_bytes();
        let member = &member;
        each(&Listed { member, header_offset_bytes, content_offset_bytes, stored_bytes });
    }
    Ok(Some((members, check.headers)))
}

/// A member with what the index knows of it.
fn member_of(record: FileRecord) -> Member {
    let mut size = 0;
    let mut sparse = None;
    let kind = match record.kind {
        RecordKind::File { size_bytes, stored_bytes, layout, .. } => {
            size = size_bytes;
            if layout == FileLayout::Sparse {
                let run = archive::member::Extent { offset_bytes: 0, length_bytes: stored_bytes };
                sparse = Some(vec![run]);
            }
            MemberKind::File
        }
        RecordKind::Directory => MemberKind::Directory,
        RecordKind::SymbolicLink => MemberKind::SymbolicLink { target: Vec::new() },
        RecordKind::HardLink { target } => MemberKind::HardLink { target },
        RecordKind::Fifo => MemberKind::Fifo,
        RecordKind::CharacterDevice => MemberKind::CharacterDevice { major: 0, minor: 0 },
        RecordKind::BlockDevice => MemberKind::BlockDevice { major: 0, minor: 0 },
    };
    Member {
        path: record.path,
        kind,
        mode: record.mode,
        uid: record.uid,
        gid: record.gid,
        user: Vec::new(),
        group: Vec::new(),
        modified: record.modified,
        size_bytes: size,
        sparse,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    }
}
