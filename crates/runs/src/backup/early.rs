//! A set on tape that ends early: its medium is full, and there is no other. The index says what is
//! left of it then, and what the next set of the chain has to store.
//!
//! The walk goes on to its end all the same, without reading: so the set knows everything that is
//! there, and what it could not take is noted as what could not be read is. The next run stores it,
//! and until then an earlier version of it counts.

use std::collections::HashSet;
use std::io::Read;

use archive::index::{
    AgainReason, AgainRecord, BlockChecksum, EntryState, FileRecord, IndexReader, IndexWriter,
    Record, RecordKind, SectionSummary, SetIdHasher, TreeReader, WarningRecord,
};
use archive::stream::{ArchiveOffset, StoredOffset};
use base::failures::with_causes;
use base::format::counted;
use flow::monitor::{Harm, Level, Notice};
use tapeset::{Chunks, TapeSetError};

use super::entries::{Entries as _, TreeSection};
use super::error::BackupError;
use super::hasher::{AGAIN_MAX, Gathered};
use super::index::SetSections;
use super::run::Run;
use crate::destination::Output;
use crate::spool::Spool;

/// Bytes of an index beside its sections, and of what is added to them.
const INDEX_SPARE_BYTES: u64 = 1 << 20;
/// Bytes of the record of a chunk, at most.
const CHUNK_RECORD_BYTES: u64 = 16;

impl Run<'_> {
    /// Cuts a set whose medium is full and has no successor. `why` says why; it is the error of the
    /// run where the set cannot be cut.
    pub(super) fn end_early(
        &self,
        why: TapeSetError,
        gathered: &mut Gathered,
        set: Option<&mut SetSections>,
        chunks: &mut Chunks,
        output: &mut Output<'_>,
    ) -> Result<(), BackupError> {
        let index_bytes = index_bytes(gathered, set.as_deref(), chunks);
        let block_bytes = self.options.block_bytes as u64;
        let cut = output.cut_for(index_bytes).and_then(|cut| {
            let archive = archive_place(chunks, cut.stored_bytes)?;
            // A block that was cut would have another checksum.
            archive.bytes().is_multiple_of(block_bytes).then_some((cut, archive))
        });
        let Some((cut, archive)) = cut else { return Err(why.into()) };
        let dropped = gathered.cut(archive, block_bytes)?;
        cut_chunks(chunks, cut.stored_bytes);
        let left = dropped.len() as u64 + self.room.left();
        let next = match set {
            None => Next::OfNoChain,
            Some(_) if gathered.again.len() >= AGAIN_MAX => Next::Full,
            Some(_) => Next::Incremental,
        };
        let text = text(&why, left, next);
        gathered.warn(&text)?;
        if let Some(set) = set {
            set.again.clone_from(&gathered.again);
            set.about.left = left;
            set.recount(&gathered.again)?;
        }
        let object = self.options.target.name().as_encoded_bytes().to_vec();
        // The last step that may fail: from here on the medium is written to.
        if let Err(error) = output.cut(&cut) {
            let text = format!("the set cannot be ended early: {}", with_causes(&error));
            self.monitor.notice(Notice { level: Level::Notable, object, text });
            return Err(why.into());
        }
        self.monitor.notice(Notice { level: Level::Warning(Harm::NoRoom), object, text });
        Ok(())
    }
}

/// What the next run does with what was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    OfNoChain,
    Incremental,
    /// More objects than an index can name.
    Full,
}

fn text(why: &TapeSetError, left: u64, next: Next) -> String {
    let objects = counted(left, "object is", "objects are");
    let next = match next {
        Next::Incremental => "the next incremental run begins with them",
        Next::Full => "these are so many that the next set of the job is a full one",
        Next::OfNoChain => "with --incremental the next run would begin with them",
    };
    let why = with_causes(why);
    format!("the set ended early: {objects} left out, and the rest is whole; {next} ({why})")
}

/// At least as many bytes as the index takes.
fn index_bytes(gathered: &Gathered, set: Option<&SetSections>, chunks: &Chunks) -> u64 {
    let sections = [&gathered.files.0, &gathered.blocks.0, &gathered.warnings.0];
    let plain: u64 = sections.into_iter().map(Spool::length_bytes).sum();
    let again = gathered.files.1.records.saturating_add(gathered.again.len() as u64);
    let of_set = set.map_or(0, |set| {
        set.tree.0.length_bytes() + again.min(AGAIN_MAX as u64) * 17 + set.journal.len() as u64
    });
    plain + of_set + chunks.len() as u64 * CHUNK_RECORD_BYTES + INDEX_SPARE_BYTES
}

/// The place in the archive of a place in the stored stream, where a chunk begins.
fn archive_place(chunks: &Chunks, stored: StoredOffset) -> Option<ArchiveOffset> {
    if chunks.is_empty() {
        return Some(ArchiveOffset::new(stored.bytes()));
    }
    let (mut stored_bytes, mut archive_bytes) = (0, 0);
    for (compressed_bytes, content_bytes) in chunks {
        if stored_bytes >= stored.bytes() {
            break;
        }
        stored_bytes += u64::from(*compressed_bytes);
        archive_bytes += u64::from(*content_bytes);
    }
    (stored_bytes == stored.bytes()).then_some(ArchiveOffset::new(archive_bytes))
}

fn cut_chunks(chunks: &mut Chunks, stored: StoredOffset) {
    let mut stored_bytes = 0;
    let is_before = |chunk: &&(u32, u32)| {
        let before = stored_bytes < stored.bytes();
        stored_bytes += u64::from(chunk.0);
        before
    };
    let kept = chunks.iter().take_while(is_before).count();
    chunks.truncate(kept);
}

impl Gathered {
    /// Drops what lies behind a place of the archive. Returns the hashes of the paths.
    fn cut(
        &mut self,
        archive: ArchiveOffset,
        block_bytes: u64,
    ) -> Result<HashSet<u64>, BackupError> {
        let mut dropped = HashSet::new();
        let (files, blocks) = (take(&mut self.files.0), take(&mut self.blocks.0));
        self.files = filtered(files, |record: &FileRecord| {
            let is_kept = record.header_offset_bytes < archive;
            if !is_kept {
                dropped.insert(AgainRecord::path_hash(&record.path));
                if let RecordKind::File { stored_bytes, .. } = record.kind {
                    self.regular_files -= 1;
                    self.source_bytes -= stored_bytes;
                }
            }
            is_kept
        })?;
        let mut left_blocks = archive.bytes() / block_bytes;
        self.blocks = filtered(blocks, |_: &BlockChecksum| {
            let is_kept = left_blocks > 0;
            left_blocks = left_blocks.saturating_sub(1);
            is_kept
        })?;
        self.archive_bytes = archive.bytes();
        self.again.retain(|again| !dropped.contains(&again.path));
        let room = AGAIN_MAX.saturating_sub(self.again.len());
        let unread =
            |path: &u64| AgainRecord { path: *path, inode: 0, reason: AgainReason::Unread };
        self.again.extend(dropped.iter().map(unread).take(room));
        let mut set_id = SetIdHasher::new();
        for spool in [&self.files.0, &self.blocks.0] {
            spool.read_through(|bytes| set_id.update(bytes)).map_err(BackupError::Spool)?;
        }
        self.set_id = set_id.finish();
        Ok(dropped)
    }

    /// Adds a warning about the whole run.
    fn warn(&mut self, text: &str) -> Result<(), BackupError> {
        let warnings = take(&mut self.warnings.0);
        let warning = WarningRecord { path: Vec::new(), text: text.to_owned() };
        self.warnings = extended(warnings, |_: &WarningRecord| true, Some(warning))?;
        Ok(())
    }
}

impl SetSections {
    /// Counts anew what is stored, without what was left out.
    fn recount(&mut self, again: &[AgainRecord]) -> Result<(), BackupError> {
        let unread = again.iter().filter(|again| again.reason == AgainReason::Unread);
        let unread: HashSet<u64> = unread.map(|again| again.path).collect();
        let reader = take(&mut self.tree.0).into_reader().map_err(BackupError::Spool)?;
        let (mut section, mut stored) = (TreeSection::default(), Vec::new());
        for entry in TreeReader::new(reader) {
            let entry = entry.map_err(BackupError::Index)?;
            let is_stored = entry.state == EntryState::Stored;
            if is_stored && !unread.contains(&AgainRecord::path_hash(&entry.path)) {
                match stored.iter_mut().find(|(reason, _)| *reason == entry.reason) {
                    Some((_, count)) => *count += 1,
                    None => stored.push((entry.reason, 1)),
                }
            }
            section.add(&entry)?;
        }
        stored.sort_unstable();
        self.about.stored = stored;
        self.tree = section.finish();
        Ok(())
    }
}

fn take(spool: &mut Spool) -> Spool {
    std::mem::take(spool)
}

/// The records of a section that are kept.
fn filtered<T: Record>(
    spool: Spool,
    is_kept: impl FnMut(&T) -> bool,
) -> Result<(Spool, SectionSummary), BackupError> {
    extended(spool, is_kept, None)
}

/// The same, and another one behind them.
fn extended<T: Record>(
    spool: Spool,
    mut is_kept: impl FnMut(&T) -> bool,
    last: Option<T>,
) -> Result<(Spool, SectionSummary), BackupError> {
    let (mut kept, mut writer) = (Spool::default(), IndexWriter::<T>::new());
    let source: Box<dyn Read> = Box::new(spool.into_reader().map_err(BackupError::Spool)?);
    let records = IndexReader::<T, _>::new(source);
    for record in records.chain(last.map(Ok)) {
        let record = record.map_err(BackupError::Index)?;
        if is_kept(&record) {
            writer.push(&record, kept.buffer()).map_err(BackupError::Index)?;
            kept.settle().map_err(BackupError::Spool)?;
        }
    }
    let summary = writer.finish(kept.buffer());
    Ok((kept, summary))
}
