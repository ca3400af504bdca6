//! Parts of an archive in a file: what is read if the index knows where the selected members are.
//!
//! Whole blocks are read around the planned ranges, so that every block that a member touches is
//! checked with the index; of a compressed archive, the whole chunks of these blocks. The parts
//! come through the ring one after the other. [`ExcerptSupply`] knows where each is in the archive,
//! passes the blocks to their check, and passes on only the members. To the parser the archive
//! looks complete, with jumps from the end of one member to the header of another.
//!
//! The end-of-archive mark is read as well: without it, an empty selection would look like an
//! archive that was cut off.

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

/// Most chunks that are read separately: 24 bytes each. Beyond that everything is read.
const CHUNKS_MAX: usize = 1 << 20;
/// Largest share of the archive for which an excerpt is worth its cost.
const PERCENT_MAX: u64 = 75;
/// Two units of zeros end an archive.
const END_MARK_BYTES: u64 = 2 * UNIT_BYTES as u64;

/// The parts to read, and which of their bytes are members.
#[derive(Debug)]
pub(crate) struct Excerpt {
    /// What is parsed.
    members: Vec<Range<ArchiveOffset>>,
    /// What comes through the ring.
    parts: Vec<Range<ArchiveOffset>>,
    /// What is read of the source.
    pub source: Vec<Range<StoredOffset>>,
    /// The chunks of a compressed archive that hold the parts.
    pub chunks: Option<Chunks>,
    end_mark: EndMark,
}

/// Chunks that are adjacent in the source, with their coding.
pub(crate) type Chunks = (Coding, Vec<ChunkRecord>);

/// Source of the end-of-archive mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndMark {
    Read,
    /// It is made up: the index was found behind it, and on tape it may be on another volume.
    MadeUp,
}

impl Excerpt {
    /// What to read for a plan; `None` if reading everything is as good, or the index has too
    /// little information.
    pub fn new(index: &IndexFile, plan: &Plan) -> Option<Excerpt> {
        let excerpt = Excerpt::of(index, plan.ranges.clone(), None)?;
        let read_bytes: u64 = excerpt.parts.iter().map(|part| part.end - part.start).sum();
        (read_bytes <= index.trailer.archive_bytes / 100 * PERCENT_MAX).then_some(excerpt)
    }

    /// The blocks that hold `part`, for their checksums alone: no member is parsed. `None` if the
    /// index has too little information.
    pub fn of_blocks(index: &IndexFile, part: &Range<u64>) -> Option<Excerpt> {
        let archive_bytes = index.trailer.archive_bytes;
        let to = ArchiveOffset::new(part.end.min(archive_bytes));
        let part = ArchiveOffset::new(part.start.min(archive_bytes))..to;
        Excerpt::of(index, Vec::new(), Some(part))
    }

    /// What holds `members`, which are parsed, and `beside`, which is not.
    fn of(
        index: &IndexFile,
        mut members: Vec<Range<ArchiveOffset>>,
        beside: Option<Range<ArchiveOffset>>,
    ) -> Option<Excerpt> {
        let trailer = &index.trailer;
        let archive_end = trailer.archive_end_bytes();
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
        let blocks_of = |range: &Range<ArchiveOffset>| {
            range.start.round_down(block_bytes)..range.end.round_up(block_bytes).min(archive_end)
        };
        let mut blocks: Vec<_> = members.iter().chain(&beside).map(blocks_of).collect();
        blocks.sort_by_key(|range| range.start);
        let mut parts = Vec::new();
        for range in blocks {
            push_merged(&mut parts, range);
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
        Some(Excerpt { members, parts, source, chunks, end_mark: end_mark_from })
    }
}

/// All chunks of a compressed archive; `None` if they are not contiguous in the index.
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

/// The chunks of `parts`; `None` if the index does not have all of them.
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

/// Appends a range, merged with the last one if they touch.
fn push_merged<At: Copy + Ord>(ranges: &mut Vec<Range<At>>, range: Range<At>) {
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Passes on the members of the parts that come through a ring.
pub(crate) struct ExcerptSupply {
    supply: RingSupply,
    check: Option<Arc<BlockCheck>>,
    parts: VecDeque<Range<ArchiveOffset>>,
    members: VecDeque<Range<ArchiveOffset>>,
    /// The rest of the current block, and of the current part in it.
    block: Option<(Block, usize)>,
    piece: Option<Piece>,
    /// End of the last lease in the archive, and the distance to the next one.
    position_bytes: ArchiveOffset,
    jumped_bytes: u64,
    end_mark: EndMark,
}

/// Bytes of one block that belong to one part.
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

    /// Cuts off the next piece, and checks its checksums. `None` at the end.
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

    /// The first bytes of a piece that belong to a member; the rest of the piece is kept.
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

    /// True if what is at hand may hold no member, since `next` then waits for more.
    fn would_wait(&self) -> bool {
        let Some(piece) = &self.piece else { return true };
        let end_bytes = piece.start_bytes + piece.in_block.len() as u64;
        let next = self.members.iter().find(|member| member.end > piece.start_bytes);
        next.is_none_or(|member| member.start >= end_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::{BackupOptions, backup};
    use crate::read::ranges::plan;
    use crate::selection::Selection;
    use device::source::Source;
    use flow::cancel::Cancel;
    use flow::monitor::Silent;
    use testkit::samples::noise;

    const FILES: usize = 20;

    /// An archive of files of 3 MB, and of a link to the seventh that comes behind all of them.
    fn archive(folder: &std::path::Path, compression: &str) -> IndexFile {
        let tree = folder.join("tree");
        std::fs::create_dir(&tree).unwrap();
        for file in 0..FILES {
            std::fs::write(tree.join(format!("f{file:02}")), noise(file as u64, 3 << 20)).unwrap();
        }
        std::fs::hard_link(tree.join("f06"), tree.join("link")).unwrap();
        let target = folder.join("archive");
        let options = BackupOptions {
            sources: vec![tree],
            target: target.clone().into(),
            compression: compression.parse().unwrap(),
            ..Default::default()
        };
        backup(&options, &Silent, &Cancel::new()).unwrap();
        IndexFile::find(&Source::open(target.as_os_str()).unwrap()).unwrap()
    }

    /// What is read of the source for files of these names below the tree.
    fn source(index: &IndexFile, tree: &std::path::Path, names: &[&str]) -> Vec<Range<u64>> {
        let path = |name: &&str| tree.join(name).into_os_string().into_encoded_bytes();
        let selection = Selection::new(names.iter().map(path));
        let plan = plan(|| index.files(), &selection, 0).unwrap();
        let excerpt = Excerpt::new(index, &plan).unwrap();
        excerpt.source.iter().map(|range| range.start.bytes()..range.end.bytes()).collect()
    }

    /// A disk with heads passes over the archive once, whatever the order of the paths, and also
    /// for a link whose content comes long before it.
    #[test]
    fn a_few_files_are_read_in_the_order_of_the_source() {
        for compression in ["none", "zstd:1"] {
            let folder = tempfile::tempdir().unwrap();
            let index = archive(folder.path(), compression);
            let tree = folder.path().join("tree");
            let orders = [["f12", "link", "f00"], ["link", "f00", "f12"], ["f00", "f12", "link"]];
            let read = orders.map(|names| source(&index, &tree, &names));
            assert!(read[0].len() >= 3, "{compression}: {:?}", read[0]);
            let ascends = |pair: &[Range<u64>]| pair[0].end < pair[1].start;
            assert!(read[0].windows(2).all(ascends), "{compression}: {:?}", read[0]);
            assert!(read.iter().all(|other| *other == read[0]), "{compression}: {read:?}");
        }
    }
}
