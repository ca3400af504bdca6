//! The `decompress` stage: blocks of the source in, blocks of the archive out, in order.
//!
//! One thread cuts the compressed stream into chunks, wherever their ends can be known in advance.
//! Workers decompress them in parallel and put the contents into the ring in the order of the
//! chunks (a turnstile). If an end is not known (one long frame, a foreign gzip member), the
//! cutting thread decodes the stream itself, in its turn.
//!
//! A chunk that does not decompress loses only its own bytes. Zeros replace them if their number is
//! known; otherwise the stream continues without them (a seam, see `gaps`). If even the end of the
//! chunk is unknown, the next magic number is searched.
//!
//! Capacity: one chunk for each worker waits in the queue. A chunk has at most [`CHUNK_BYTES_MAX`]
//! in either form; larger ones are streamed. A chunk is decompressed where it is in the ring, or
//! copied once (`at_hand`), so each worker holds up to two blocks of the source.

use std::sync::atomic::{AtomicU64, Ordering};

use archive::chunk::{
    Boundary, BoundaryFinder, ChunkDecompressor, ChunkError, Coding, Input, StreamDecoder,
    StreamState,
};
use archive::index::ChunkRecord;
use archive::stream::{Archive, ArchiveOffset, StoredOffset};
use base::failures::lock;
use flow::account::{Account, Stage, ThreadState};
use flow::cancel::{Cancel, Stopped};
use flow::queue::Queue;
use flow::ring::{Block, Consumer, Producer};
use flow::turnstile::Turnstile;
use std::sync::{Arc, Mutex, MutexGuard};

use super::at_hand::{AtHand, Cut, Spare};
use super::frame_watch::{FrameWatch, Outside};
use super::table_watch::TableWatch;
use flow::gaps::{Gap, Gaps};

/// Largest chunk that is decompressed in one piece.
pub(crate) const CHUNK_BYTES_MAX: usize = 32 << 20;
/// Largest window of a zstd frame that is streamed: the default limit of `zstd -d` and other
/// readers. A frame of 8 bytes may ask for 2 GiB.
const WINDOW_BYTES_MAX: u64 = StreamDecoder::WINDOW_BYTES_DEFAULT;
/// Most ring blocks of one reservation.
const RESERVED_BLOCKS_MAX: usize = 4;

/// One chunk on its way to a worker.
struct Task {
    ticket: u64,
    compressed: Cut,
    offset_bytes: StoredOffset,
    content: Content,
}

/// What is known of a chunk's content in advance.
enum Content {
    /// Its largest size.
    AtMost(usize),
    /// Its size, and its start in the archive.
    Known { bytes: usize, start_bytes: ArchiveOffset },
}

impl Content {
    fn bytes_max(&self) -> usize {
        match *self {
            Content::AtMost(bytes) | Content::Known { bytes, .. } => bytes,
        }
    }
}

/// What the threads of the stage share.
pub(crate) struct Decompress {
    pub coding: Coding,
    pub producer: Producer,
    pub gaps: Gaps<Archive>,
    pub stage: Arc<Stage>,
    tasks: Queue<Task>,
    spare: Spare,
    turnstile: Turnstile,
    trailing: AtomicU64,
    table: Mutex<TableWatch>,
    frames: Mutex<FrameWatch>,
    /// A window that was refused, in bytes.
    window_bytes: AtomicU64,
    /// What was lost first.
    first_loss: Mutex<Option<FirstLoss>>,
}

/// The first frame or member that could not be decompressed.
#[derive(Clone, Debug)]
pub(crate) struct FirstLoss {
    /// Bytes of the archive in front of it.
    pub archive_bytes: u64,
    pub error: ChunkError,
}

impl Decompress {
    pub fn new(
        coding: Coding,
        producer: Producer,
        gaps: Gaps<Archive>,
        stage: Arc<Stage>,
        workers: usize,
        cancel: &Cancel,
    ) -> Decompress {
        Decompress {
            coding,
            producer,
            gaps,
            stage,
            tasks: Queue::new(workers, cancel.clone()),
            spare: Spare::default(),
            turnstile: Turnstile::new(cancel.clone()),
            trailing: AtomicU64::new(0),
            table: Mutex::default(),
            frames: Mutex::default(),
            window_bytes: AtomicU64::new(0),
            first_loss: Mutex::default(),
        }
    }

    /// What was lost first, if anything was.
    pub fn first_loss(&self) -> Option<FirstLoss> {
        lock(&self.first_loss).clone()
    }

    /// Remembers a loss at the end of the archive so far. Call only in turn.
    fn remember_loss(&self, error: &ChunkError) {
        let archive_bytes = self.position().bytes();
        let loss = || FirstLoss { archive_bytes, error: error.clone() };
        lock(&self.first_loss).get_or_insert_with(loss);
    }

    /// The refused window, and the largest allowed.
    pub fn refused_window(&self) -> Option<(u64, u64)> {
        let window_bytes = self.window_bytes.load(Ordering::Relaxed);
        (window_bytes > 0).then_some((window_bytes, WINDOW_BYTES_MAX))
    }

    /// What the headers of the frames or members showed.
    pub fn outside(&self) -> Outside {
        let table = self.table().state();
        Outside { table, headers: lock(&self.frames).headers(table) }
    }

    fn watch_frame(&self, bytes: &[u8], offset_bytes: StoredOffset) {
        lock(&self.frames).frame(self.coding, bytes, offset_bytes);
    }

    fn table(&self) -> MutexGuard<'_, TableWatch> {
        lock(&self.table)
    }

    /// Compressed bytes after the last frame or member.
    pub fn trailing_bytes(&self) -> u64 {
        self.trailing.load(Ordering::Relaxed)
    }

    /// Ends the stream, once all threads have returned.
    pub fn finish(self) {
        self.producer.finish();
    }

    /// Lets the workers end after the queued chunks.
    pub fn no_more_tasks(&self) {
        self.tasks.close();
    }

    /// A worker: decompresses chunks until none is left.
    pub fn work(&self, account: &mut Account) -> Result<(), Stopped> {
        let mut decompressor = ChunkDecompressor::new();
        let mut content = Vec::new();
        while let Some(task) = self.tasks.pop(account)? {
            let result = decompressor.decompress(
                self.coding,
                &task.compressed,
                task.offset_bytes,
                task.content.bytes_max(),
                &mut content,
            );
            // The frame has no length, so the size of the loss is unknown.
            let exact = self.coding == Coding::Gzip || names_content_bytes(&task.compressed);
            self.spare.give_back(task.compressed);
            let turn = self.turnstile.enter(task.ticket, account, ThreadState::Blocked)?;
            let here = self.position();
            if let Err(error) = &result {
                self.remember_loss(error);
            }
            match (result, task.content) {
                (Ok(()), Content::AtMost(_)) => self.put(&content, account)?,
                (Ok(()), Content::Known { bytes, .. }) if bytes == content.len() => {
                    self.put(&content, account)?;
                }
                (Ok(()), Content::Known { bytes, start_bytes }) => {
                    let why = "a chunk is not as long as the index says".to_owned();
                    self.put_gap(start_bytes, bytes, why, account)?;
                }
                (Err(error), Content::Known { bytes, start_bytes }) => {
                    self.put_gap(start_bytes, bytes, error.to_string(), account)?;
                }
                (Err(error), Content::AtMost(bytes)) => {
                    let bytes = if exact { bytes } else { 0 };
                    self.put_gap(here, bytes, error.to_string(), account)?;
                }
            }
            turn.pass();
        }
        Ok(())
    }

    /// Start of the next content in the archive, if everything so far was put into the ring. Call
    /// only in turn.
    fn position(&self) -> ArchiveOffset {
        self.producer.position_bytes().same_in()
    }

    /// Appends content to the archive. Call only in turn.
    fn put(&self, mut content: &[u8], account: &mut Account) -> Result<(), Stopped> {
        let most_bytes = self.reservation_bytes();
        while !content.is_empty() {
            let (now, later) = content.split_at(content.len().min(most_bytes));
            let mut reservation = self.producer.reserve(now.len(), account)?;
            reservation.filler().put(now);
            reservation.commit();
            self.stage.add_bytes(now.len() as u64);
            content = later;
        }
        Ok(())
    }

    /// Leaves room for a lost chunk; a seam if `content_bytes` is 0.
    fn put_gap(
        &self,
        start_bytes: ArchiveOffset,
        content_bytes: usize,
        why: String,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let length_bytes = content_bytes as u64;
        self.gaps.enter(Gap { start_bytes, length_bytes, why });
        let zeros = vec![0; content_bytes.min(1 << 20)];
        let mut left = content_bytes;
        while left > 0 {
            let now = left.min(zeros.len());
            self.put(&zeros[..now], account)?;
            left -= now;
        }
        Ok(())
    }

    fn reservation_bytes(&self) -> usize {
        let block_bytes = self.producer.block_bytes();
        // One block may be filled in part, and a thread that waits for the next holds one.
        let blocks = (self.producer.capacity_bytes() as usize / block_bytes).saturating_sub(2);
        blocks.clamp(1, RESERVED_BLOCKS_MAX) * block_bytes
    }

    /// The cutting thread with an index: these chunks, one after the other.
    pub fn hand_out(
        &self,
        chunks: &[ChunkRecord],
        consumer: &Consumer,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let mut at_hand = AtHand::new(consumer, &self.spare, None);
        let mut ticket = 0;
        for chunk in chunks {
            let wanted = chunk.compressed_bytes as usize;
            while at_hand.bytes().len() < wanted {
                if !at_hand.grow(wanted, account)? {
                    // The run was stopped, or the source became shorter.
                    return Ok(());
                }
            }
            let compressed = at_hand.take(wanted);
            if chunk.content_bytes == 0 {
                // Padding, without content.
                self.spare.give_back(compressed);
                continue;
            }
            self.watch_frame(&compressed, chunk.compressed_offset_bytes);
            let content = Content::Known {
                bytes: chunk.content_bytes as usize,
                start_bytes: chunk.content_offset_bytes,
            };
            let offset_bytes = chunk.compressed_offset_bytes;
            self.tasks.push(Task { ticket, compressed, offset_bytes, content }, account)?;
            ticket += 1;
        }
        // The rest is empty, but the thread that fills the ring waits for it to be taken.
        while consumer.next(account)?.is_some() {}
        Ok(())
    }

    /// The cutting thread: takes the source's blocks; `first` was taken before.
    pub fn cut(
        &self,
        first: Block,
        consumer: &Consumer,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let mut cutter = Cutter {
            shared: self,
            at_hand: AtHand::new(consumer, &self.spare, Some(first)),
            finder: BoundaryFinder::new(self.coding, CHUNK_BYTES_MAX),
            input: Input::MoreMayFollow,
            ticket: 0,
        };
        cutter.cut(account)
    }
}

/// The state of the cutting thread.
struct Cutter<'a> {
    shared: &'a Decompress,
    at_hand: AtHand<'a>,
    finder: BoundaryFinder,
    input: Input,
    ticket: u64,
}

impl Cutter<'_> {
    fn cut(&mut self, account: &mut Account) -> Result<(), Stopped> {
        loop {
            match self.finder.examine(self.at_hand.bytes(), self.input) {
                Ok(Boundary::Chunk { compressed_bytes, content_bytes_max }) => {
                    self.watch_frame();
                    let (frame, content) = (compressed_bytes as u64, content_bytes_max as u64);
                    self.shared.table().frame(frame, content);
                    let task = Task {
                        ticket: self.take_ticket(),
                        compressed: self.at_hand.take(compressed_bytes),
                        offset_bytes: self.finder.offset_bytes(),
                        content: Content::AtMost(content_bytes_max),
                    };
                    self.shared.tasks.push(task, account)?;
                    self.finder.advance(frame);
                }
                Ok(Boundary::Skippable { compressed_bytes }) => {
                    self.shared.table().begin_skippable(compressed_bytes);
                    self.pass_over(compressed_bytes, account)?;
                }
                Ok(Boundary::NeedMore { prefix_bytes }) => {
                    while self.at_hand.bytes().len() < prefix_bytes
                        && self.take_more(prefix_bytes, account)?
                    {}
                }
                Ok(Boundary::Stream) => {
                    self.watch_frame();
                    self.stream(account)?;
                    if self.shared.refused_window().is_some() {
                        return Ok(());
                    }
                }
                Ok(Boundary::Trailing) => {
                    if !self.search_next(None, account)? {
                        return Ok(());
                    }
                }
                Ok(Boundary::End) => return Ok(()),
                // The start of the last chunk is kept.
                Err(ChunkError::Truncated { .. }) => self.stream(account)?,
                Err(error) => {
                    if !self.search_next(Some(&error), account)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn watch_frame(&self) {
        self.shared.watch_frame(self.at_hand.bytes(), self.finder.offset_bytes());
    }

    fn take_ticket(&mut self) -> u64 {
        let ticket = self.ticket;
        self.ticket += 1;
        ticket
    }

    /// Takes more of the source, up to `wanted_bytes` in all; false at its end.
    fn take_more(&mut self, wanted_bytes: usize, account: &mut Account) -> Result<bool, Stopped> {
        let more = self.at_hand.grow(wanted_bytes, account)?;
        if !more {
            self.input = Input::Ended;
        }
        Ok(more)
    }

    /// Continues after `bytes` of what is held: a whole frame, or its replacement.
    fn pass(&mut self, bytes: usize) {
        self.at_hand.pass(bytes);
        self.finder.advance(bytes as u64);
    }

    fn pass_over(&mut self, bytes: u64, account: &mut Account) -> Result<(), Stopped> {
        let mut left = bytes;
        loop {
            let bytes = self.at_hand.bytes();
            let here = (bytes.len() as u64).min(left);
            self.shared.table().skippable(&bytes[..here as usize]);
            self.pass(here as usize);
            left -= here;
            if left == 0 || !self.take_more(usize::MAX, account)? {
                return Ok(());
            }
        }
    }

    /// Decodes a frame or member of unknown length, in turn.
    fn stream(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.shared.table().unknown_frame();
        let ticket = self.take_ticket();
        let turn = self.shared.turnstile.enter(ticket, account, ThreadState::Blocked)?;
        let offset_bytes = self.finder.offset_bytes();
        let mut decoder = StreamDecoder::new(self.shared.coding, offset_bytes, WINDOW_BYTES_MAX);
        let mut out = vec![0; 256 << 10];
        let failed = loop {
            let step = match decoder.push(self.at_hand.bytes(), &mut out) {
                Ok(step) => step,
                Err(error) => break Some(error),
            };
            self.pass(step.consumed_bytes);
            self.shared.put(&out[..step.produced_bytes], account)?;
            if step.state == StreamState::FrameEnded {
                break None;
            }
            let starved = self.at_hand.bytes().is_empty() && step.produced_bytes < out.len();
            if starved && !self.take_more(usize::MAX, account)? {
                break decoder.finish().err();
            }
        };
        turn.pass();
        if let Some(ChunkError::WindowTooLarge { window_bytes, .. }) = failed {
            self.shared.window_bytes.store(window_bytes, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(error) = failed {
            self.search_next(Some(&error), account)?;
        }
        Ok(())
    }

    /// Looks for the next frame after an invalid place, which `error` explains. Without an error
    /// the rest may just be bytes after the last frame. False at the end of the source.
    fn search_next(
        &mut self,
        error: Option<&ChunkError>,
        account: &mut Account,
    ) -> Result<bool, Stopped> {
        lock(&self.shared.frames).settle();
        let start_bytes = self.finder.offset_bytes();
        let mut meaning = error.is_some();
        let found = loop {
            let rest = self.at_hand.bytes();
            let ended = self.input == Input::Ended;
            // The error is at the very first byte.
            let skip = usize::from(self.finder.offset_bytes() == start_bytes).min(rest.len());
            if let Some(offset) = find_magic(self.shared.coding, &rest[skip..]) {
                self.pass(skip + offset);
                break true;
            }
            let keep = if ended { 0 } else { (MAGIC_BYTES - 1).min(rest.len() - skip) };
            let passed = rest.len() - keep;
            meaning |= rest[..passed].iter().any(|byte| *byte != 0);
            self.pass(passed);
            if ended {
                break false;
            }
            self.take_more(usize::MAX, account)?;
        };
        let end_bytes = self.finder.offset_bytes();
        let why = match error {
            Some(error) => error.to_string(),
            None if found => format!("no frame starts at byte {start_bytes} of the source"),
            None => {
                // Zeros are the padding of a device's last block.
                let trailing = if meaning { end_bytes - start_bytes } else { 0 };
                self.shared.trailing.store(trailing, Ordering::Relaxed);
                return Ok(false);
            }
        };
        let ticket = self.take_ticket();
        let turn = self.shared.turnstile.enter(ticket, account, ThreadState::Blocked)?;
        if let Some(error) = error {
            self.shared.remember_loss(error);
        }
        let start_bytes = self.shared.position();
        self.shared.gaps.enter(Gap { start_bytes, length_bytes: 0, why });
        turn.pass();
        Ok(found)
    }
}

/// Whether a zstd frame states the length of its content: RFC 8878, 3.1.1.1.1, the upper two bits
/// of the descriptor or the single-segment bit.
fn names_content_bytes(frame: &[u8]) -> bool {
    frame.get(4).is_some_and(|descriptor| descriptor & 0xe0 != 0)
}

/// Bytes that identify a frame or member.
const MAGIC_BYTES: usize = 4;

fn find_magic(coding: Coding, bytes: &[u8]) -> Option<usize> {
    let reserved_gzip_flags = 0xe0;
    bytes.windows(MAGIC_BYTES).position(|window| match coding {
        Coding::Gzip => window[..3] == [0x1f, 0x8b, 8] && window[3] & reserved_gzip_flags == 0,
        Coding::Zstd => window == [0x28, 0xb5, 0x2f, 0xfd],
    })
}
