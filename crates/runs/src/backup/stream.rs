//! One large file, streamed into the archive with several reads in flight.
//!
//! The worker holds its turn all the while, since the file is larger than a reservation. Each read
//! goes to its place in a block. A file that is not in the page cache is read past it
//! ([`crate::past_cache`]); the blocks of a cached file are copied by several threads until one is
//! missing ([`super::cached`]).

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use archive::header::UNIT_BYTES;
use archive::member::{Extent, MemberKind};
use archive::stream::ArchiveOffset;
use base::failures::lock;
use flow::backend::{Memory, TransferRequest};
use flow::cancel::Stopped;
use flow::in_flight::{Failure, InFlight, Transfer};
use flow::monitor::Counter;
use flow::ring::{Piece, Reuse};

use super::cached::{Cached, NotCopied};
use super::draft::{Draft, padded};
use super::error::BackupError;
use super::groups::{Content, Findings, HashGroup, in_archive};
use super::parts::Parts;
use super::reader::Reader;
use crate::past_cache::PastCache;

/// Reads in flight at first. Eight of 1 MiB reach what a fast disk gives to one stream.
const DEPTH: usize = 8;
/// Smallest step in which the readable parts of a damaged region are searched.
const SALVAGE_BYTES: usize = 4096;
/// Failed steps after which the rest of a region is given up: a dying disk takes seconds for each.
const SALVAGE_FAILURES_MAX: usize = 16;

/// A file that is being streamed.
struct Stream<'a, 'b> {
    reader: &'b mut Reader<'a>,
    file: Arc<OwnedFd>,
    content: Arc<Content>,
    /// The parts that are still to be read.
    parts: Parts,
    past_cache: PastCache,
    /// Size of the file when it was opened.
    end_bytes: u64,
    lost_bytes: u64,
    first_error: Option<(u64, io::Error)>,
    shrank_at: Option<u64>,
    /// The piece that was filled last. It waits for the next one, or for the end: the record must
    /// be complete before the last byte is committed.
    held: Option<Piece>,
}

impl Reader<'_> {
    /// Archives one object that is larger than a reservation, mostly a large file. Called with the
    /// turn held.
    pub(super) fn stream(&mut self, draft: &mut Draft) -> Result<(), BackupError> {
        let content_bytes = draft.content_bytes;
        let Some(file) = draft.captured.file.take().filter(|_| content_bytes > 0) else {
            return self.stream_header_alone(draft);
        };
        self.shared.monitor.object(&draft.captured.member.path, content_bytes);
        let start_bytes = self.put_header(draft, 0..self.header(draft).len())?;
        let header_bytes = self.header(draft).len() as u64;
        let findings = Findings::default();
        let content = Arc::new(Content::new(start_bytes, content_bytes, draft.content_tree()));
        let group =
            HashGroup { content: Some(Arc::clone(&content)), findings: Arc::clone(&findings) };
        self.shared.groups.put(start_bytes + padded(content_bytes), group);
        let whole = Extent { offset_bytes: 0, length_bytes: content_bytes };
        let runs = draft.captured.member.sparse.clone().unwrap_or_else(|| vec![whole]);
        let file = Arc::new(file);
        let past_cache = PastCache::choose(&file, &runs, content_bytes, UNIT_BYTES as u32);
        if past_cache.is_on() {
            self.shared.producer.set_reuse(Reuse::Coldest);
        }
        let mut stream = Stream {
            reader: self,
            file: Arc::clone(&file),
            content,
            parts: Parts::new(runs, content_bytes),
            past_cache,
            end_bytes: draft.captured.version.size_bytes,
            lost_bytes: 0,
            first_error: None,
            shrank_at: None,
            held: None,
        };
        stream.run()?;
        stream.reader.shared.producer.set_reuse(Reuse::Warmest);
        let held = stream.held.take();
        stream.explain(draft);
        draft.check_again(&file);
        draft.find(start_bytes - header_bytes, start_bytes, None, &mut lock(&findings));
        if let Some(piece) = held {
            piece.commit();
        }
        self.report_group(std::slice::from_ref(draft), 0, 0);
        Ok(())
    }

    /// An object without content whose header alone is larger than a reservation. The last unit of
    /// the header is a group of its own, which carries the index entry.
    fn stream_header_alone(&mut self, draft: &mut Draft) -> Result<(), BackupError> {
        let header_bytes = self.header(draft).len();
        let last_unit = header_bytes - 512..header_bytes;
        let before_last = self.put_header(draft, 0..last_unit.start)?;
        let start_bytes = before_last + last_unit.len() as u64;
        let mut found = Vec::new();
        let hash = (draft.captured.member.kind == MemberKind::File)
            .then(|| draft.content_hasher().finish());
        draft.find(start_bytes - header_bytes as u64, start_bytes, hash, &mut found);
        let mut reservation = self.shared.producer.reserve(last_unit.len(), self.account)?;
        self.shared.groups.put(start_bytes, HashGroup::of(Arc::new(Mutex::new(found))));
        reservation.filler().put(&self.header(draft)[last_unit]);
        reservation.commit();
        self.report_group(std::slice::from_ref(draft), 0, 512);
        Ok(())
    }

    /// Puts a part of the header into the archive, and returns the place behind it. A sparse map
    /// may be longer than a reservation.
    fn put_header(&mut self, draft: &Draft, part: Range<usize>) -> Result<ArchiveOffset, Stopped> {
        let shared = self.shared;
        let mut at = part.start;
        while at < part.end {
            let now = (part.end - at).min(shared.group_bytes_max);
            let mut reservation = shared.producer.reserve(now, self.account)?;
            let end_bytes = in_archive(reservation.start_bytes()) + now as u64;
            shared.groups.put(end_bytes, HashGroup::of(Findings::default()));
            reservation.filler().put(&self.header(draft)[at..at + now]);
            reservation.commit();
            at += now;
        }
        shared.monitor.count(Counter::ArchiveBytes, part.len() as u64);
        Ok(in_archive(shared.producer.position_bytes()))
    }
}

impl Stream<'_, '_> {
    fn run(&mut self) -> Result<(), BackupError> {
        let not_copied = if self.past_cache.is_on() { Vec::new() } else { self.copy_cached()? };
        let engine = self.reader.shared.engine;
        let name = engine.name_for(&self.file);
        let mut in_flight = match self.reader.in_flight.take() {
            Some(in_flight) if in_flight.backend_name() == name => in_flight,
            _ => engine.open_reads(DEPTH, &self.file).map_err(BackupError::Engine)?,
        };
        let broken = |failure: Failure| BackupError::Engine(failure.source);
        for NotCopied { piece, part } in not_copied {
            in_flight.begin(self.operation(piece, part.offset_bytes)).map_err(broken)?;
        }
        // After an early end, dropping it waits for the reads in flight.
        self.transfer(&mut in_flight)?;
        self.reader.in_flight = Some(in_flight);
        Ok(())
    }

    /// Copies from the page cache. Parts that could not be copied have their place already.
    fn copy_cached(&mut self) -> Result<Vec<NotCopied>, BackupError> {
        let (file, content) = (Arc::clone(&self.file), Arc::clone(&self.content));
        let cached = Cached::new(file, content, std::mem::take(&mut self.parts));
        let left = cached.copy_with_others(self.reader.shared, self.reader.account)?;
        self.parts = left.parts;
        Ok(left.not_copied)
    }

    fn transfer(&mut self, in_flight: &mut InFlight) -> Result<(), BackupError> {
        let broken = |failure: Failure| BackupError::Engine(failure.source);
        loop {
            while !in_flight.is_full() {
                let Some(operation) = self.next_operation(in_flight)? else { break };
                in_flight.begin(operation).map_err(broken)?;
            }
            let Some(done) = in_flight.wait().map_err(broken)? else { return Ok(()) };
            if let Some(operation) = self.completed(done) {
                in_flight.begin(operation).map_err(broken)?;
            }
        }
    }

    /// Reserves the place of the next read; `None` if there is nothing to read, or no room while
    /// other reads are in flight.
    fn next_operation(
        &mut self,
        in_flight: &mut InFlight,
    ) -> Result<Option<TransferRequest>, Stopped> {
        let producer = self.reader.shared.producer;
        let block_bytes = producer.block_bytes() as u64;
        let in_block = block_bytes - producer.position_bytes() % block_bytes;
        let Some(part) = self.parts.next(in_block) else { return Ok(None) };
        // More content follows, so the held piece is not the end. It must be committed, or a small
        // ring and this thread would wait for each other.
        if let Some(held) = self.held.take_if(|_| in_flight.is_empty()) {
            held.commit();
        }
        let reservation = in_flight.reserve(producer, part.total_bytes(), self.reader.account)?;
        let Some(reservation) = reservation else { return Ok(None) };
        self.parts.take(part);
        let piece = reservation.into_pieces().next().expect("a part lies in one block");
        Ok(Some(self.operation(piece, part.offset_bytes)))
    }

    /// The read that fills a piece from a position in the file. A read across the end of the file
    /// stops there, and the padding is filled later.
    fn operation(&self, piece: Piece, offset_bytes: u64) -> TransferRequest {
        let before_end = self.end_bytes.saturating_sub(offset_bytes) as usize;
        let wanted_bytes = piece.len().min(before_end);
        let operation = TransferRequest::new(&self.file, offset_bytes, Memory::Fill(piece));
        TransferRequest { wanted_bytes, ..operation }
    }

    /// Handles a finished read. Returns the operation if it must continue: if direct I/O refuses it
    /// (a short read may end between sectors), it is read through the cache, and so is the rest of
    /// the file.
    fn completed(&mut self, done: Transfer) -> Option<TransferRequest> {
        let Transfer { operation, result } = done;
        if self.past_cache.is_refused(&result) {
            return Some(operation);
        }
        let TransferRequest { offset_bytes, done_bytes, wanted_bytes, memory, .. } = operation;
        let mut piece = memory.into_piece();
        let filled_bytes = match result {
            Ok(()) => wanted_bytes,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let at = self.shrank_at.get_or_insert(offset_bytes);
                *at = offset_bytes.min(*at);
                done_bytes
            }
            Err(error) => {
                let rest = &mut piece.bytes_mut()[done_bytes..wanted_bytes];
                self.salvage(rest, offset_bytes, error);
                wanted_bytes
            }
        };
        self.finish_piece(piece, filled_bytes);
        None
    }

    fn finish_piece(&mut self, mut piece: Piece, filled: usize) {
        piece.bytes_mut()[filled..].fill(0);
        let bytes = piece.len() as u64;
        self.reader.shared.monitor.count(Counter::ArchiveBytes, bytes);
        self.reader.shared.monitor.count(Counter::SourceBytes, filled as u64);
        self.reader.account.stage().add_bytes(bytes);
        // The piece committed last waits for the record, which is complete only then.
        if let Some(held) = self.held.replace(piece) {
            held.commit();
        }
    }

    /// Reads a failed region in small steps, aligned in the file like pages and sectors, and leaves
    /// zeros where that fails, too.
    fn salvage(&mut self, region: &mut [u8], offset_bytes: u64, error: io::Error) {
        self.past_cache.leave();
        let (mut at, mut failures) = (0, 0);
        let mut first_lost_bytes = None;
        while at < region.len() {
            let offset = offset_bytes + at as u64;
            let step = SALVAGE_BYTES - (offset % SALVAGE_BYTES as u64) as usize;
            let end = region.len().min(at + step);
            let slice = &mut region[at..end];
            let read = if failures < SALVAGE_FAILURES_MAX {
                read_as_far_as_possible(&self.file, slice, offset)
            } else {
                0
            };
            if read < slice.len() {
                failures += 1;
                self.lost_bytes += (slice.len() - read) as u64;
                first_lost_bytes.get_or_insert(offset + read as u64);
                slice[read..].fill(0);
            }
            at = end;
        }
        // Reads end in any order; the message names the first position.
        let place = first_lost_bytes.unwrap_or(offset_bytes);
        if self.first_error.as_ref().is_none_or(|(first, _)| place < *first) {
            self.first_error = Some((place, error));
        }
    }

    fn explain(&self, draft: &mut Draft) {
        if let Some((offset, error)) = &self.first_error {
            let lost = self.lost_bytes;
            let text = format!("read error at byte {offset}, {lost} bytes are zeros: {error}");
            draft.warnings.push(text);
        }
        if let Some(at) = self.shrank_at {
            draft.warnings.push(format!("ended at byte {at}, the rest is zeros"));
        }
    }
}

/// Bytes read before the first error, or the end of the file.
fn read_as_far_as_possible(file: &OwnedFd, slice: &mut [u8], offset_bytes: u64) -> usize {
    base::interruptible::read_at(file, slice, offset_bytes).unwrap_or(0)
}
