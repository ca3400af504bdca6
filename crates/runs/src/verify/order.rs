//! The parsing thread's side of a verification: passes jobs to the workers, and compares the index
//! with their results.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use archive::chunk::Compression;
use archive::index::{FileRecord, IndexReader, IndexSection, RecordKind, SetIdHasher, Trailer};
use archive::member::MemberKind;
use archive::stream::ArchiveOffset;
use flow::account::Account;
use flow::budget::Loan;
use flow::cancel::Stopped;
use flow::monitor::Harm;

use super::ahead::{Arrivals, InWindow};
use super::error::VerifyError;
pub(crate) use super::findings::IndexFromEnd;
use super::findings::VerifyReport;
use super::findings::report_blocks;
use super::seen::{Seen, SeenReader};
use super::workers::{Candidate, Large, Object, VerifyJob, Workers, remember};
use crate::read::DamageKind;
use crate::read::block_check::KeptChecksums;
use crate::read::late_check::{IndexFault, LateCheck, is_trailer, read_trailer, section_of};
use crate::read::members::{ContentPiece, Found, Item, MemberStream};
use crate::read::section::SectionReader;
use crate::selection::without_root;
use crate::warnings::Warnings;

/// Files of up to this many stored bytes travel in batches.
const SMALL_BYTES_MAX: u64 = 256 << 10;
/// Members that are used to find where the archive starts.
const AHEAD_MAX: usize = 64;
const BATCH_OBJECTS_MAX: usize = 64;
const BATCH_BYTES_MAX: u64 = 512 << 10;

/// Goes through the archive and collects the report.
pub(crate) struct Verifier<'a> {
    workers: &'a Workers<'a>,
    warnings: &'a Warnings<'a>,
    report: VerifyReport,
    ticket: u64,
    next_worker: usize,
    batch: Vec<Object>,
    batch_bytes: u64,
    /// Start of the current archive: offsets in its index count from there.
    base_bytes: ArchiveOffset,
    /// Number of archives so far.
    archives: u64,
    /// Bytes there that are no header: leading garbage, or a damaged first header.
    leading_bytes: u64,
    keep: Option<&'a KeptChecksums>,
    late_check: Option<LateCheck<'a>>,
    /// Compression stated by the last trailer.
    written: Option<Compression>,
    /// Hash of the sections of the current index.
    set_id: SetIdHasher,
    /// The current index has a later version.
    is_later: bool,
    /// Live files that are fetched ahead.
    arrivals: Option<Arrivals<'a>>,
}

impl<'a> Verifier<'a> {
    pub fn new(
        workers: &'a Workers<'a>,
        keep: Option<&'a KeptChecksums>,
        arrivals: Option<Arrivals<'a>>,
        warnings: &'a Warnings<'a>,
    ) -> Verifier<'a> {
        Verifier {
            workers,
            warnings,
            report: VerifyReport::default(),
            ticket: 0,
            next_worker: 0,
            batch: Vec::new(),
            batch_bytes: 0,
            base_bytes: ArchiveOffset::START,
            archives: 1,
            leading_bytes: 0,
            keep,
            written: None,
            late_check: keep.map(LateCheck::new),
            set_id: SetIdHasher::new(),
            is_later: false,
            arrivals,
        }
    }

    /// Goes through the archive.
    pub fn dispatch(
        &mut self,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), VerifyError> {
        loop {
            if stream.would_wait() {
                self.flush(account)?;
            }
            match stream.next(account)? {
                Some(Item::Member(found)) => self.member(found, stream, account)?,
                Some(Item::IndexSection { path }) => {
                    self.settle(account)?;
                    self.index_section(&path, stream, account)?;
                }
                Some(Item::Damage(damage)) => {
                    self.is_later |= matches!(damage.kind, DamageKind::Later { .. });
                    if damage.kind == DamageKind::LeadingGarbage {
                        self.leading_bytes = damage.length_bytes;
                    }
                    self.report.damage(&damage, self.warnings);
                }
                Some(Item::NextArchive { offset_bytes }) => {
                    self.warnings.next_archive(offset_bytes);
                    self.settle(account)?;
                    self.workers.results().seen.clear();
                    self.base_bytes = offset_bytes;
                    self.leading_bytes = 0;
                    self.archives += 1;
                    self.late_check = self.keep.map(LateCheck::new);
                    self.set_id = SetIdHasher::new();
                    self.is_later = false;
                }
                Some(Item::Passed { what }) => self.warnings.note(b"", what),
                Some(Item::EndOfSegment) => self.flush(account)?,
                None => {
                    self.settle(account)?;
                    let arrivals = self.arrivals.as_mut();
                    return Ok(arrivals.map_or(Ok(()), |it| it.finish(account))?);
                }
            }
        }
    }

    /// The report, once all workers are done.
    pub fn conclude(
        mut self,
    ) -> Result<(VerifyReport, IndexFromEnd, Option<Compression>), VerifyError> {
        let mut results = self.workers.results();
        let candidates = std::mem::take(&mut results.candidates);
        for candidate in candidates {
            let untouched = candidate.looks_untouched;
            sort(&mut self.report, candidate, untouched, self.warnings);
        }
        let report = &mut self.report;
        report.changed.total += results.changed_more;
        report.differs.total += results.differs_more;
        report.missing = std::mem::take(&mut results.missing);
        report.not_compared = std::mem::take(&mut results.not_compared);
        report.checked.compared = results.compared;
        report.run.members = results.members;
        report.run.files = results.files;
        report.run.source_bytes = results.source_bytes;
        let from_end = if self.archives == 1 && self.leading_bytes == 0 && report.checked.index {
            IndexFromEnd::Expected
        } else {
            IndexFromEnd::NotExpected
        };
        Ok((self.report, from_end, self.written))
    }

    fn member(
        &mut self,
        found: Found,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let Found { mut member, notes, header_offset_bytes, stored_bytes, .. } = found;
        // Compared with the path that a restore would use.
        without_root(&mut member.path);
        if let MemberKind::HardLink { target } = &mut member.kind {
            without_root(target);
        }
        for note in &notes {
            self.warnings.note(&member.path, note.to_string());
        }
        if let Some(mut paths) = self.workers.paths() {
            remember(&mut paths, &member);
        }
        let stored_bytes = if member.kind == MemberKind::File { stored_bytes } else { 0 };
        let loan = self.borrow(member.memory_bytes(), account)?;
        let window = self.fetched(header_offset_bytes, account)?;
        let (content, missing_bytes) = (Vec::new(), 0);
        let mut object = Object {
            member,
            header_offset_bytes,
            stored_bytes,
            content,
            missing_bytes,
            loan,
            window,
        };
        if stored_bytes > SMALL_BYTES_MAX {
            return self.large(object, stream, account);
        }
        // A piece ends at the end of the content, or at a gap in it.
        let mut at_end = stored_bytes == 0;
        while !at_end {
            let (content, missing_bytes) =
                stream.collect(account, |account| self.flush(account))?;
            object.content.extend(content);
            object.missing_bytes += missing_bytes;
            at_end = missing_bytes == 0;
        }
        self.batch.push(object);
        self.batch_bytes += stored_bytes;
        if self.batch.len() >= BATCH_OBJECTS_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
            self.flush(account)?;
        }
        Ok(())
    }

    /// Waits until the live file of a member was fetched.
    fn fetched(
        &mut self,
        header_offset_bytes: ArchiveOffset,
        account: &mut Account,
    ) -> Result<Option<InWindow>, Stopped> {
        let would_wait = |it: &Arrivals<'_>| it.would_wait(header_offset_bytes);
        if self.arrivals.as_ref().is_some_and(would_wait) {
            self.flush(account)?;
        }
        let Some(arrivals) = &mut self.arrivals else { return Ok(None) };
        arrivals.wait_for(header_offset_bytes, account)
    }

    /// Waits until there is room for one more member in progress.
    fn borrow(&mut self, bytes: usize, account: &mut Account) -> Result<Loan, Stopped> {
        let workers = self.workers;
        if let Some(loan) = workers.budget().try_take(bytes) {
            return Ok(loan);
        }
        self.flush(account)?;
        workers.budget().take(bytes, account)
    }

    fn large(
        &mut self,
        object: Object,
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        self.flush(account)?;
        let comparer = self.take_worker();
        let ticket = self.take_ticket();
        let (size_bytes, sparse) = (object.member.size_bytes, object.member.sparse.as_deref());
        let file = Arc::new(Large::new(size_bytes, sparse, object.stored_bytes));
        self.workers.push(comparer, VerifyJob::Begin(ticket, object), account)?;
        let (mut number, mut at_bytes, mut missing_bytes) = (0, 0, 0);
        while let Some(piece) = stream.next_piece(account)? {
            let slice = match piece {
                ContentPiece::Data(slice) => slice,
                ContentPiece::Missing { bytes } => {
                    file.miss();
                    missing_bytes += bytes;
                    at_bytes += bytes;
                    continue;
                }
            };
            // A live file need not be compared further if the archived one is incomplete.
            if self.workers.compares() && missing_bytes == 0 {
                self.workers.push(comparer, VerifyJob::Compare(slice.clone()), account)?;
            }
            let bytes = slice.len() as u64;
            let (worker, file) = (self.take_worker(), Arc::clone(&file));
            self.workers.push(
                worker,
                VerifyJob::Hash { file, number, at_bytes, slice },
                account,
            )?;
            number += 1;
            at_bytes += bytes;
        }
        let end = VerifyJob::End { file, stretches: number, missing_bytes };
        self.workers.push(comparer, end, account)
    }

    fn flush(&mut self, account: &mut Account) -> Result<(), Stopped> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_OBJECTS_MAX));
        self.batch_bytes = 0;
        let worker = self.take_worker();
        let ticket = self.take_ticket();
        self.workers.push(worker, VerifyJob::Batch(ticket, batch), account)
    }

    /// Waits until the workers have entered all results.
    fn settle(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.flush(account)?;
        let ticket = self.take_ticket();
        self.workers.wait_for_turn(ticket, account)
    }

    fn take_ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket - 1
    }

    fn take_worker(&mut self) -> usize {
        self.next_worker = (self.next_worker + 1) % self.workers.len();
        self.next_worker
    }

    fn index_section(
        &mut self,
        path: &[u8],
        stream: &mut MemberStream<'_>,
        account: &mut Account,
    ) -> Result<(), VerifyError> {
        let section = section_of(path);
        let mut set_id = std::mem::take(&mut self.set_id);
        let in_set_id = matches!(section, Some(IndexSection::Files | IndexSection::Blocks));
        let (place, hash) = (stream.index_start_bytes(), stream.index_hash());
        let begins_bytes = stream.begins_bytes();
        let (promised, set_so_far) = (stream.is_marked(), set_id.finish());
        let mut reader =
            SectionReader::new(stream, account).with_set_id(in_set_id.then_some(&mut set_id));
        let buffered = io::BufReader::with_capacity(64 << 10, &mut reader);
        let result = match section {
            _ if self.is_later => Ok(()),
            Some(IndexSection::Files) => self.files(IndexReader::new(buffered), begins_bytes)?,
            Some(IndexSection::Blocks) => match &mut self.late_check {
                Some(check) => check.hold_against(IndexReader::new(buffered)),
                None => read_through::<archive::index::BlockChecksum>(buffered),
            },
            Some(IndexSection::Chunks) => read_through::<archive::index::ChunkRecord>(buffered),
            Some(IndexSection::Warnings) => read_through::<archive::index::WarningRecord>(buffered),
            Some(IndexSection::Extents) => read_through::<archive::index::ExtentRecord>(buffered),
            None if is_trailer(path) => read_trailer(buffered).and_then(|trailer| {
                self.written = Some(trailer.compression);
                self.late_blocks(&trailer, promised)?;
                self.fits(&trailer, place + begins_bytes.bytes(), hash, set_so_far)
            }),
            // Reported when its header was read.
            None => Ok(()),
        };
        reader.stopped()?;
        self.set_id = set_id;
        if let Err(fault) = result {
            let damage = fault.damage("");
            self.report.damage(&damage, self.warnings);
            self.report.checked.index = false;
        }
        Ok(())
    }

    /// The trailer has the block size of the checksums.
    fn late_blocks(&mut self, trailer: &Trailer, promised: bool) -> Result<(), IndexFault> {
        let check = self.late_check.take().filter(|_| self.leading_bytes == 0);
        let Some(check) = check else { return Ok(()) };
        match check.conclude(trailer) {
            Some(outcome) => {
                let before = self.report.checked.blocks.unwrap_or(0);
                self.report.checked.blocks = Some(before + outcome.blocks);
                let (report, warnings) = (&mut self.report, self.warnings);
                let (differing, count) = (&outcome.differing, outcome.differing_count);
                report_blocks(outcome.block_bytes, differing, count, report, warnings);
                Ok(())
            }
            None if promised => Err(IndexFault::OtherBlocks),
            None => Ok(()),
        }
    }

    /// Whether a trailer belongs to the index and the archive before it. `place` is where the index
    /// began in the stream, including missing bytes before it; `hash` is its computed hash.
    fn fits(
        &self,
        trailer: &Trailer,
        place: ArchiveOffset,
        hash: Option<[u8; 32]>,
        set_id: [u8; 32],
    ) -> Result<(), IndexFault> {
        // If bytes are missing before it, no place is where it should be.
        let is_whole = self.report.damaged.total == 0;
        if is_whole && trailer.archive_bytes != place - self.base_bytes {
            return Err(IndexFault::OtherLength);
        }
        if is_whole && trailer.set_id != set_id {
            return Err(IndexFault::OtherSet);
        }
        if is_whole && trailer.index_hash.is_some_and(|expected| hash != Some(expected)) {
            return Err(IndexFault::OtherIndex);
        }
        Ok(())
    }

    /// Compares the results with the index. The inner error is damage of the index.
    fn files<R: Read>(
        &mut self,
        mut records: IndexReader<FileRecord, R>,
        begins_bytes: ArchiveOffset,
    ) -> Result<Result<(), IndexFault>, VerifyError> {
        let mut results = self.workers.results();
        let seen = std::mem::take(&mut results.seen);
        let candidates = std::mem::take(&mut results.candidates);
        drop(results);
        let mut found = Lockstep {
            seen: seen.into_reader().map_err(VerifyError::Spool)?,
            ahead: VecDeque::new(),
            candidates: candidates.into_iter().peekable(),
        };
        self.report.checked.index = true;
        let mut head = VecDeque::new();
        while head.len() < AHEAD_MAX {
            match records.next_record() {
                Ok(Some(record)) => head.push_back(record),
                Ok(None) => break,
                Err(error) => return Ok(Err(error.into())),
            }
        }
        let base_bytes =
            self.choose_base(&head, begins_bytes, &mut found).map_err(VerifyError::Spool)?;
        loop {
            let record =
                match head.pop_front().map_or_else(|| records.next_record(), |r| Ok(Some(r))) {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error.into())),
                };
            let is_file = matches!(record.kind, RecordKind::File { .. });
            self.report.checked.files += u64::from(is_file);
            let place = in_stream(base_bytes, begins_bytes, record.header_offset_bytes);
            let (unknown, seen) = match place {
                Some(place) => found.take_at(place).map_err(VerifyError::Spool)?,
                None => (0, None),
            };
            if unknown > 0 {
                let what = match unknown {
                    1 => "a member of the archive is not in its index".to_owned(),
                    _ => format!("{unknown} members of the archive are not in its index"),
                };
                self.report.problem(&record.path, what, self.warnings);
            }
            match seen {
                None => {
                    let what = "is in the index but not in the archive: it is lost".to_owned();
                    self.report.problem_of(&record, what, self.warnings);
                }
                Some(seen) => self.hold_against(&record, &seen),
            }
            if let Some(candidate) = place.and_then(|place| found.candidate_at(place)) {
                let untouched =
                    candidate.looks_untouched && candidate.live_changed == Some(record.changed);
                sort(&mut self.report, candidate, untouched, self.warnings);
            }
        }
        let unknown = found.count_rest().map_err(VerifyError::Spool)?;
        if unknown > 0 {
            let what = format!("members after the last one in the index: {unknown}");
            self.report.problem(b"", what, self.warnings);
        }
        // Candidates that are not in the index are sorted by the archive's metadata.
        self.workers.results().candidates = found.candidates.collect();
        Ok(Ok(()))
    }

    /// Where the archive of the index starts: after the leading bytes that are no header, or before
    /// them, whichever fits the first members better.
    fn choose_base(
        &self,
        head: &VecDeque<FileRecord>,
        begins_bytes: ArchiveOffset,
        found: &mut Lockstep,
    ) -> io::Result<ArchiveOffset> {
        while found.ahead.len() < AHEAD_MAX
            && let Some(seen) = found.seen.next()?
        {
            found.ahead.push_back(seen);
        }
        let fits = |base: ArchiveOffset| {
            let is_there = |record: &&FileRecord| {
                let place = in_stream(base, begins_bytes, record.header_offset_bytes);
                found.ahead.iter().any(|seen| Some(seen.header_offset_bytes) == place)
            };
            head.iter().filter(is_there).count()
        };
        let behind = self.base_bytes + self.leading_bytes;
        Ok(if fits(behind) > fits(self.base_bytes) { behind } else { self.base_bytes })
    }

    fn hold_against(&mut self, record: &FileRecord, seen: &Seen) {
        let RecordKind::File { content_hash: Some(expected), .. } = &record.kind else { return };
        match seen.content_hash {
            Some(hash) if hash == *expected => self.report.checked.content_hashes += 1,
            Some(_) => {
                self.report.checked.content_hashes += 1;
                let what = "its content is not what was backed up (the hash differs)".to_owned();
                self.report.problem_of(record, what, self.warnings);
            }
            None => {
                let what = "its content is incomplete".to_owned();
                self.report.problem_of(record, what, self.warnings);
            }
        }
    }
}

/// Position in the stream of a place in the archive, whose byte `begins` is at `base` there; `None`
/// for a place before that, which is missing.
fn in_stream(
    base: ArchiveOffset,
    begins: ArchiveOffset,
    place: ArchiveOffset,
) -> Option<ArchiveOffset> {
    place.checked_since(begins).map(|bytes| base + bytes)
}

/// Sorts a live object that differs.
fn sort(report: &mut VerifyReport, candidate: Candidate, untouched: bool, warnings: &Warnings<'_>) {
    let differing = candidate.differing;
    if untouched {
        warnings.warn(
            Harm::Different,
            &differing.path,
            "differs from the archive although it did not change",
        );
        report.differs.push(differing);
    } else {
        warnings.warn(Harm::Different, &differing.path, "changed since the backup");
        report.changed.push(differing);
    }
}

fn read_through<T: archive::index::Record>(reader: impl Read) -> Result<(), IndexFault> {
    let mut records = IndexReader::<T, _>::new(reader);
    while records.next_record()?.is_some() {}
    Ok(())
}

/// The results, read along with the index.
struct Lockstep {
    seen: SeenReader,
    ahead: VecDeque<Seen>,
    candidates: std::iter::Peekable<std::vec::IntoIter<Candidate>>,
}

impl Lockstep {
    /// The result at an offset, and the number of earlier ones that the index does not have.
    fn take_at(&mut self, offset_bytes: ArchiveOffset) -> io::Result<(u64, Option<Seen>)> {
        let mut unknown = 0;
        loop {
            if self.ahead.is_empty() {
                self.ahead.extend(self.seen.next()?);
            }
            match self.ahead.front().copied() {
                Some(seen) if seen.header_offset_bytes < offset_bytes => {
                    unknown += 1;
                    self.ahead.pop_front();
                }
                Some(seen) if seen.header_offset_bytes == offset_bytes => {
                    self.ahead.pop_front();
                    return Ok((unknown, Some(seen)));
                }
                _ => return Ok((unknown, None)),
            }
        }
    }

    /// Number of remaining results.
    fn count_rest(&mut self) -> io::Result<u64> {
        let mut rest = std::mem::take(&mut self.ahead).len() as u64;
        while self.seen.next()?.is_some() {
            rest += 1;
        }
        Ok(rest)
    }

    fn candidate_at(&mut self, offset_bytes: ArchiveOffset) -> Option<Candidate> {
        self.candidates.next_if(|candidate| candidate.header_offset_bytes == offset_bytes)
    }
}
