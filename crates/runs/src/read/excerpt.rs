//! Parts of an archive in a file: what is read of it when the index says where the selected members
//! are.
//!
//! Around the ranges of the plan whole blocks are read, so that the checksum of every block that a
//! member touches is held against the index, and of a compressed archive the whole chunks that hold
//! these blocks. What comes through the ring is one part after the other; [`ExcerptSupply`] knows
//! where each lies in the archive, hands the blocks to their check, and passes on the members only.
//! To whoever parses them the archive looks whole but for jumps from the end of one member to the
//! header of another.
//!
//! The end-of-archive mark is read as well: without it nobody could tell a selection of nothing
//! from an archive that was cut off.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use archive::chunk::Coding;
use archive::header::UNIT_BYTES;
use archive::index::ChunkRecord;
use archive::stream::{ArchiveOffset, StoredOffset, stored_plain};
use flow::account::Account;
use flow::cancel::Stopped;
use flow::ring::Block;

use super::block_check::BlockCheck;
use super::cursor::{Lease, RingSupply, Supply};
use super::decompress::CHUNK_BYTES_MAX;
use super::ranges::Plan;
use catalogue::IndexFile;

/// Most chunks that are read apart: 24 bytes each. Beyond, everything is read.
const CHUNKS_MAX: usize = 1 << 20;
/// An excerpt of more than this part of the archive is not worth the trouble.
const PERCENT_MAX: u64 = 75;
/// Two units of zeros end an archive.
const END_MARK_BYTES: u64 = 2 * UNIT_BYTES as u64;

/// What is read, and what of it is members.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// What is parsed.
    members: Vec<Range<ArchiveOffset>>,
    /// What comes through the ring.
    parts: Vec<Range<ArchiveOffset>>,
    /// What is read of the source.
    pub source: Vec<Range<StoredOffset>>,
    /// Of a compressed archive: what holds the parts.
    pub chunks: Option<Chunks>,
    end_mark: EndMark,
}

/// Chunks of an archive, one behind the other in the source, with its coding.
pub(crate) type Chunks = (Coding, Vec<ChunkRecord>);

/// Where the end-of-archive mark comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndMark {
    /// It is read.
    Read,
    /// It is made up: the index was found behind it, and on tape it may be volumes away.
    MadeUp,
}

impl Excerpt {
    /// What has to be read for a plan; `None` where reading everything is as good, or the index
    /// does not say enough.
    pub fn new(index: &IndexFile, plan: &Plan) -> Option<Excerpt> {
        let trailer = &index.trailer;
        let archive_end = trailer.archive_end_bytes();
        let mut members = plan.ranges.clone();
        let end_mark_bytes = trailer.archive_bytes.checked_sub(END_MARK_BYTES)?;
        let end_mark = ArchiveOffset::new(end_mark_bytes)..archive_end;
        if members.last().is_some_and(|last| last.end > end_mark.start) {
            return None;
        }
        let end_mark_from = if index.holds_archive() {
            push_merged(&mut members, end_mark);
            EndMark::Read
        } else {
            EndMark::MadeUp
        };
        let block_bytes = u64::from(trailer.block_bytes);
        let mut parts = Vec::new();
        for member in &members {
            let start = member.start.round_down(block_bytes);
            let end = member.end.round_up(block_bytes).min(archive_end);
            push_merged(&mut parts, start..end);
        }
        let (parts, source, chunks) = match index.archive_coding() {
            None => {
                let stored =
                    |part: &Range<ArchiveOffset>| stored_plain(part.start)..stored_plain(part.end);
                let source = parts.iter().map(stored).collect();
                (parts, source, None)
            }
            Some(coding) => {
                let chunks = chunks_of(index, &parts)?;
                let (mut parts, mut source) = (Vec::new(), Vec::new());
                for chunk in &chunks {
                    let (at, bytes) = (chunk.content_offset_bytes, chunk.content_bytes);
                    push_merged(&mut parts, at..at + u64::from(bytes));
                    let (at, bytes) = (chunk.compressed_offset_bytes, chunk.compressed_bytes);
                    push_merged(&mut source, at..at + u64::from(bytes));
                }
                (parts, source, Some((coding, chunks)))
            }
        };
        let read_bytes: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let worth_it = read_bytes <= trailer.archive_bytes / 100 * PERCENT_MAX;
        worth_it.then_some(Excerpt { members, parts, source, chunks, end_mark: end_mark_from })
    }
}

/// All chunks of a compressed archive; `None` when the index does not lead from one to the next.
pub(crate) fn all_chunks(index: &IndexFile) -> Option<Chunks> {
    let coding = index.archive_coding()?;
    let mut chunks = Vec::new();
    let (mut stored, mut archive) = (StoredOffset::START, ArchiveOffset::START);
    for chunk in index.chunks().ok()? {
        let chunk = chunk.ok()?;
        let adjoins =
            (chunk.compressed_offset_bytes, chunk.content_offset_bytes) == (stored, archive);
        let fits = chunk.compressed_bytes.max(chunk.content_bytes) as usize <= CHUNK_BYTES_MAX;
        if !adjoins || !fits || chunks.len() == CHUNKS_MAX {
            return None;
        }
        stored += u64::from(chunk.compressed_bytes);
        archive += u64::from(chunk.content_bytes);
        chunks.push(chunk);
    }
    let whole = archive == index.trailer.archive_end_bytes();
    whole.then_some((coding, chunks))
}

/// The chunks that hold `parts`; `None` when the index does not lead to all of them.
fn chunks_of(index: &IndexFile, parts: &[Range<ArchiveOffset>]) -> Option<Vec<ChunkRecord>> {
    let mut chunks = Vec::new();
    let mut parts = parts.iter().peekable();
    let mut reached = ArchiveOffset::START;
    for chunk in index.chunks().ok()? {
        let chunk = chunk.ok()?;
        let start = chunk.content_offset_bytes;
        let end = start.checked_add(chunk.content_bytes.into())?;
        let adjoins = start == reached;
        let fits = chunk.compressed_bytes.max(chunk.content_bytes) as usize <= CHUNK_BYTES_MAX;
        reached = end;
        while parts.next_if(|part| part.end <= start).is_some() {}
        if parts.peek().is_some_and(|part| part.start < end) {
            if !adjoins || !fits || chunks.len() == CHUNKS_MAX {
                return None;
            }
            chunks.push(chunk);
        }
    }
    parts.all(|part| part.end <= reached).then_some(chunks)
}

/// Appends a range behind those that are there, as one with the last if they touch.
fn push_merged<At: Copy + Ord>(ranges: &mut Vec<Range<At>>, range: Range<At>) {
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Members out of the parts that come through a ring.
pub(crate) struct ExcerptSupply {
    supply: RingSupply,
    check: Option<Arc<BlockCheck>>,
    parts: VecDeque<Range<ArchiveOffset>>,
    members: VecDeque<Range<ArchiveOffset>>,
    /// What is left of the block at hand, and of the part in it that is looked at.
    block: Option<(Block, usize)>,
    piece: Option<Piece>,
    /// Where in the archive the last lease ended, and how far the next one was from there.
    position_bytes: ArchiveOffset,
    jumped_bytes: u64,
    end_mark: EndMark,
}

/// Bytes of one block that lie in one part.
struct Piece {
    block: Block,
    in_block: Range<usize>,
    start_bytes: ArchiveOffset,
}

impl ExcerptSupply {
    pub fn new(
        excerpt: &Excerpt,
        supply: RingSupply,
        check: Option<Arc<BlockCheck>>,
    ) -> ExcerptSupply {
        ExcerptSupply {
            supply,
            check,
            parts: excerpt.parts.iter().cloned().collect(),
            members: excerpt.members.iter().cloned().collect(),
            block: None,
            piece: None,
            position_bytes: ArchiveOffset::START,
            jumped_bytes: 0,
            end_mark: excerpt.end_mark,
        }
    }

    /// What follows the last part.
    fn take_end_mark(&mut self) -> Option<Lease> {
        let made_up = std::mem::replace(&mut self.end_mark, EndMark::Read) == EndMark::MadeUp;
        self.jumped_bytes = 0;
        if let Some(check) = self.check.as_ref().filter(|_| made_up) {
            check.leave_out_the_rest();
        }
        made_up.then(|| Lease::Memory(Arc::new(vec![0; END_MARK_BYTES as usize])))
    }

    /// Cuts the next piece off, and holds it against the checksums. `None` at the end.
    fn next_piece(&mut self, account: &mut Account) -> Result<Option<Piece>, Stopped> {
        if self.block.is_none() {
            self.block = self.supply.next_block(account)?.map(|block| (block, 0));
        }
        let (Some((block, used)), Some(part)) = (self.block.take(), self.parts.front_mut()) else {
            return Ok(None);
        };
        let part_bytes = part.end - part.start;
        let bytes = ((block.len() - used) as u64).min(part_bytes) as usize;
        let (in_block, start_bytes) = (used..used + bytes, part.start);
        part.start += bytes as u64;
        if part.start == part.end {
            self.parts.pop_front();
        }
        if in_block.end < block.len() {
            self.block = Some((block.clone(), in_block.end));
        }
        if let Some(check) = &self.check {
            check.update(start_bytes, &block[in_block.clone()]);
        }
        Ok(Some(Piece { block, in_block, start_bytes }))
    }

    /// The first bytes of a piece that belong to a member; what is left of the piece is kept.
    fn trim(&mut self, mut piece: Piece) -> Option<Lease> {
        let end_bytes = piece.start_bytes + piece.in_block.len() as u64;
        while self.members.front().is_some_and(|member| member.end <= piece.start_bytes) {
            self.members.pop_front();
        }
        let member = self.members.front().filter(|member| member.start < end_bytes)?;
        let start = member.start.max(piece.start_bytes);
        let end = member.end.min(end_bytes);
        let from = piece.in_block.start + (start - piece.start_bytes) as usize;
        let to = from + (end - start) as usize;
        let lease = Lease::Part(piece.block.clone(), from..to);
        self.jumped_bytes = start - self.position_bytes;
        self.position_bytes = end;
        if end < end_bytes {
            (piece.in_block.start, piece.start_bytes) = (to, end);
            self.piece = Some(piece);
        }
        Some(lease)
    }
}

impl Supply for ExcerptSupply {
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped> {
        loop {
            let piece = match self.piece.take() {
                Some(piece) => piece,
                None => match self.next_piece(account)? {
                    Some(piece) => piece,
                    None => return Ok(self.take_end_mark()),
                },
            };
            if let Some(lease) = self.trim(piece) {
                return Ok(Some(lease));
            }
        }
    }

    fn jumped_bytes(&self) -> u64 {
        self.jumped_bytes
    }

    fn pass_over(&mut self, _: u64) -> u64 {
        0
    }

    /// Says yes where what is at hand may hold no member, since `next` then waits for more.
    fn would_wait(&self) -> bool {
        let Some(piece) = &self.piece else { return true };
        let end_bytes = piece.start_bytes + piece.in_block.len() as u64;
        let next = self.members.iter().find(|member| member.end > piece.start_bytes);
        next.is_none_or(|member| member.start >= end_bytes)
    }
}
