//! The members of an archive without an index: the archive is read, and what its index would say is
//! kept in an unnamed file.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Mutex;

use archive::index::{
    ContentHasher, FileLayout, FileRecord, IndexError, IndexReader, IndexWriter, RecordKind,
};
use archive::member::MemberKind;
use base::failures::lock;
use flow::cancel::Cancel;
use flow::monitor::{Counter, Level, Monitor, Notice};
use runs::list::{Detail, ListOptions, Listed};

use crate::failure::with_causes;

/// Bytes of records that are written together.
const BUFFER_BYTES: usize = 1 << 20;

/// What an archive has.
pub(super) struct Members {
    records: File,
    /// Hash of the records.
    pub(super) content: [u8; 32],
    pub(super) members: u64,
    pub(super) archive_bytes: u64,
    /// The first thing that could not be read.
    pub(super) warning: Option<String>,
}

/// Why there are none.
pub(super) enum NoMembers {
    Cancelled,
    /// It is no archive, or cannot be read.
    Unreadable(String),
}

impl Members {
    /// Reads an archive from its begin to its end.
    pub(super) fn read(path: &Path, cancel: &Cancel) -> Result<Members, NoMembers> {
        let unreadable =
            |error: &(dyn std::error::Error + 'static)| NoMembers::Unreadable(with_causes(error));
        let options =
            ListOptions { from: path.into(), detail: Detail::Everything, ..ListOptions::default() };
        let monitor = FirstWarning::default();
        let mut spool = Spool::new().map_err(|error| unreadable(&error))?;
        let mut spooled = Ok(());
        // A list that fails cancels what it was given, and there may be further archives.
        let own = Cancel::new();
        let listed = runs::list::list(options, &monitor, &own, |listed| {
            if cancel.check().is_err() {
                own.cancel();
            }
            if spooled.is_ok() {
                spooled = spool.take(listed);
            }
        });
        if cancel.check().is_err() {
            return Err(NoMembers::Cancelled);
        }
        listed.map_err(|error| unreadable(&error))?;
        spooled.map_err(NoMembers::Unreadable)?;
        let mut members = spool.finish().map_err(|error| unreadable(&error))?;
        members.warning = lock(&monitor.0).take();
        Ok(members)
    }

    /// The records, in the order of the archive.
    pub(super) fn records(
        &self,
    ) -> Result<impl Iterator<Item = Result<FileRecord, IndexError>> + use<>, std::io::Error> {
        let mut records = self.records.try_clone()?;
        records.seek(SeekFrom::Start(0))?;
        Ok(IndexReader::new(std::io::BufReader::new(records)))
    }
}

struct Spool {
    file: File,
    writer: IndexWriter<FileRecord>,
    buffer: Vec<u8>,
    hasher: ContentHasher,
    members: u64,
    archive_bytes: u64,
}

impl Spool {
    fn new() -> std::io::Result<Spool> {
        Ok(Spool {
            file: machine::unnamed_file()?,
            writer: IndexWriter::new(),
            buffer: Vec::new(),
            hasher: ContentHasher::whole(),
            members: 0,
            archive_bytes: 0,
        })
    }

    fn take(&mut self, listed: &Listed<'_>) -> Result<(), String> {
        let end = listed.content_offset_bytes + listed.stored_bytes;
        self.archive_bytes = end.bytes();
        let Some(record) = record(listed) else { return Ok(()) };
        self.members += 1;
        let pushed = self.writer.push(&record, &mut self.buffer);
        pushed.map_err(|error| with_causes(&error))?;
        if self.buffer.len() >= BUFFER_BYTES {
            self.write().map_err(|error| with_causes(&error))?;
        }
        Ok(())
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.hasher.update(&self.buffer);
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> std::io::Result<Members> {
        std::mem::take(&mut self.writer).finish(&mut self.buffer);
        self.write()?;
        Ok(Members {
            records: self.file,
            content: self.hasher.finish(),
            members: self.members,
            archive_bytes: self.archive_bytes,
            warning: None,
        })
    }
}

/// What the index would say of a member; `None` of the folder that everything is in.
fn record(listed: &Listed<'_>) -> Option<FileRecord> {
    let member = listed.member;
    let mut path = &member.path[..];
    while let Some(rest) = path.strip_prefix(b"./").or_else(|| path.strip_prefix(b"/")) {
        path = rest;
    }
    if path.is_empty() || path == b"." {
        return None;
    }
    let layout = if member.sparse.is_some() { FileLayout::Sparse } else { FileLayout::Whole };
    let kind = match &member.kind {
        MemberKind::File => RecordKind::File {
            size_bytes: member.size_bytes,
            stored_bytes: listed.stored_bytes,
            layout,
            content_hash: None,
        },
        MemberKind::Directory => RecordKind::Directory,
        MemberKind::SymbolicLink { .. } => RecordKind::SymbolicLink,
        MemberKind::HardLink { target } => RecordKind::HardLink { target: target.clone() },
        MemberKind::Fifo => RecordKind::Fifo,
        MemberKind::CharacterDevice { .. } => RecordKind::CharacterDevice,
        MemberKind::BlockDevice { .. } => RecordKind::BlockDevice,
    };
    Some(FileRecord {
        kind,
        path: path.to_vec(),
        header_offset_bytes: listed.header_offset_bytes,
        content_offset_bytes: listed.content_offset_bytes,
        mode: member.mode,
        uid: member.uid,
        gid: member.gid,
        modified: member.modified,
        changed: member.modified,
    })
}

/// Keeps the first warning.
#[derive(Default)]
struct FirstWarning(Mutex<Option<String>>);

impl Monitor for FirstWarning {
    fn count(&self, _: Counter, _: u64) {}

    fn notice(&self, notice: Notice) {
        if matches!(notice.level, Level::Warning(_)) {
            let object = base::escape::escape(&notice.object);
            let text =
                if object.is_empty() { notice.text } else { format!("{object}: {}", notice.text) };
            lock(&self.0).get_or_insert(text);
        }
    }
}
