//! A large file in the page cache: each of several threads copies blocks and hashes them.
//!
//! If one thread copies a block and another one hashes it, the block goes through memory twice
//! more, since it has left the first core's cache by then; and reads asked for ahead fill blocks
//! that are not needed yet. Here one thread copies a block, hashes it while it is in its core's
//! cache, and releases it. Few blocks are in use, and they stay in the cache
//! (`docs/design/speed.md` has the numbers).
//!
//! It is tried without asking first: a read that would have to wait for the disk fails
//! (`RWF_NOWAIT`). From there on the file is streamed with reads in flight, like a file that was
//! never cached. The last part always is: it is committed when the record of the file is complete.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use archive::stream::ArchiveOffset;
use base::failures::lock;
use flow::account::{Account, ThreadState};
use flow::cancel::{POLL, Stopped};
use flow::crew::cores;
use flow::monitor::Counter;
use flow::ring::Piece;
use rustix::io::{Errno, ReadWriteFlags};

use super::error::BackupError;
use super::groups::{Content, in_archive};
use super::parts::{Part, Parts};
use super::placed::PlacedJob;
use super::reader::Shared;

/// A file that is being copied. One thread has the turn, and others may help.
pub(super) struct Cached {
    file: Arc<OwnedFd>,
    content: Arc<Content>,
    /// Held by the thread that waits for room in the ring; the others wait for it. Not taken by a
    /// thread that is copying a block.
    first: Mutex<()>,
    progress: Mutex<Progress>,
    /// Signals that no thread is copying a block.
    idle: Condvar,
}

#[derive(Default)]
struct Progress {
    parts: Parts,
    /// Whether no more parts may be taken.
    is_over: bool,
    /// Threads that are copying a block.
    copying: usize,
    not_copied: Vec<NotCopied>,
}

/// A place in the archive that has yet to be filled.
pub(super) struct NotCopied {
    pub(super) piece: Piece,
    pub(super) part: Part,
}

/// A part that a thread has taken, with its place.
struct Taken {
    piece: Piece,
    place: ArchiveOffset,
    part: Part,
}

/// What must be read in another way.
pub(super) struct Left {
    pub(super) parts: Parts,
    /// Parts before the rest, in any order.
    pub(super) not_copied: Vec<NotCopied>,
}

/// The thread that has the turn. When it leaves, even with an error or a panic, no thread takes
/// more places in the archive, which belong to the next turn.
struct Over<'a>(&'a Cached);

/// A thread that copies a block; the count stays right when it panics.
struct Copying<'a>(&'a Cached);

impl Cached {
    pub(super) fn new(file: Arc<OwnedFd>, content: Arc<Content>, parts: Parts) -> Arc<Cached> {
        let progress = Mutex::new(Progress { parts, ..Progress::default() });
        Arc::new(Cached { file, content, first: Mutex::default(), progress, idle: Condvar::new() })
    }

    /// Copies what it can, with the help of other threads, and returns the rest. For the thread
    /// that has the turn.
    pub(super) fn copy_with_others(
        self: Arc<Cached>,
        shared: &Shared<'_>,
        account: &mut Account,
    ) -> Result<Left, BackupError> {
        let over = Over(&self);
        // No helper is called for a file that is not in the page cache.
        if self.copy_one(shared, account)? {
            for _ in 1..cores() {
                if shared.placed.try_push(PlacedJob::Blocks(Arc::clone(&self))).is_err() {
                    break;
                }
            }
            self.copy(shared, account)?;
        }
        drop(over);
        let mut progress = lock(&self.progress);
        if progress.copying > 0 {
            account.switch(ThreadState::Blocked);
            while progress.copying > 0 {
                let waited = self.idle.wait_timeout(progress, POLL);
                progress = waited.unwrap_or_else(PoisonError::into_inner).0;
                shared.cancel.check().inspect_err(|_| account.switch(ThreadState::Working))?;
            }
            account.switch(ThreadState::Working);
        }
        Ok(Left {
            parts: std::mem::take(&mut progress.parts),
            not_copied: std::mem::take(&mut progress.not_copied),
        })
    }

    /// Copies blocks until none is left.
    pub(super) fn copy(
        &self,
        shared: &Shared<'_>,
        account: &mut Account,
    ) -> Result<(), BackupError> {
        while self.copy_one(shared, account)? {}
        Ok(())
    }

    /// Copies the next block; false if none is left, or reading would wait.
    fn copy_one(&self, shared: &Shared<'_>, account: &mut Account) -> Result<bool, BackupError> {
        let Some(taken) = self.take(shared, account)? else { return Ok(false) };
        let Taken { mut piece, place, part } = taken;
        let copying = Copying(self);
        if !fill(&self.file, part.offset_bytes, piece.bytes_mut()) {
            self.give_up(NotCopied { piece, part });
            return Ok(false);
        }
        let bytes = piece.len();
        shared.monitor.count(Counter::ArchiveBytes, bytes as u64);
        shared.monitor.count(Counter::SourceBytes, bytes as u64);
        account.stage().add_bytes(bytes as u64);
        if bytes < shared.producer.block_bytes() {
            // Another thread may fill the rest of the block.
            piece.commit();
        } else {
            shared.hasher.hash_early(place, piece.bytes_mut(), &self.content);
            piece.commit_unheard();
            shared.hasher.pass_ready(account)?;
        }
        drop(copying);
        Ok(true)
    }

    /// Leaves a part, and all later ones, to be read in another way.
    fn give_up(&self, not_copied: NotCopied) {
        let mut progress = lock(&self.progress);
        progress.is_over = true;
        progress.not_copied.push(not_copied);
    }

    /// Takes the next part and its place, which is in one block. The last part is not taken here.
    fn take(&self, shared: &Shared<'_>, account: &mut Account) -> Result<Option<Taken>, Stopped> {
        let _first = account.during(ThreadState::Blocked, || lock(&self.first));
        loop {
            let mut progress = lock(&self.progress);
            if progress.is_over {
                return Ok(None);
            }
            let producer = shared.producer;
            let block_bytes = producer.block_bytes() as u64;
            let in_block = block_bytes - producer.position_bytes() % block_bytes;
            let Some(part) = progress.parts.next(in_block).filter(|part| !part.is_last) else {
                progress.is_over = true;
                return Ok(None);
            };
            if let Some(reservation) = producer.try_reserve(part.total_bytes()) {
                progress.parts.take(part);
                progress.copying += 1;
                let place = in_archive(reservation.start_bytes());
                let piece = reservation.into_pieces().next().expect("a part lies in one block");
                return Ok(Some(Taken { piece, place, part }));
            }
            drop(progress);
            // The ring may be full because a block could not be copied, which `progress` shows. It
            // stays full until that block is read in another way.
            producer.wait_a_while_for_room(part.total_bytes(), account)?;
        }
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        lock(&self.0.progress).is_over = true;
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        let mut progress = lock(&self.0.progress);
        progress.copying -= 1;
        if progress.copying == 0 && progress.is_over {
            self.0.idle.notify_all();
        }
    }
}

/// Fills a slice from the page cache; false if the cache lacks some of it.
fn fill(file: &OwnedFd, offset_bytes: u64, slice: &mut [u8]) -> bool {
    let mut filled = 0;
    while filled < slice.len() {
        let rest = &mut slice[filled..];
        let offset = offset_bytes + filled as u64;
        let end = offset + rest.len() as u64;
        let mut slices = [IoSliceMut::new(rest)];
        match rustix::io::preadv2(file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            Ok(0) => return false,
            Ok(bytes) => filled += bytes,
            Err(Errno::INTR) => {}
            // At the page that triggers read-ahead the kernel reports the same.
            Err(Errno::AGAIN) if is_cached(file, offset..end) => {
                match base::interruptible::read_at(file, rest, offset) {
                    Ok(bytes) if bytes > 0 => filled += bytes,
                    _ => return false,
                }
            }
            Err(_) => return false,
        }
    }
    true
}

/// Whether the page cache holds all of a range that is not empty.
fn is_cached(file: &OwnedFd, range: Range<u64>) -> bool {
    let page_bytes = rustix::param::page_size() as u64;
    let pages = range.start / page_bytes..range.end.div_ceil(page_bytes);
    let wanted_bytes = (pages.end - pages.start) * page_bytes;
    device::file::cached_bytes(file.as_fd(), range).is_some_and(|bytes| bytes >= wanted_bytes)
}

#[cfg(test)]
mod tests {
    use std::thread::{scope, yield_now};
    use std::time::Duration;

    use archive::index::ContentTree;
    use archive::member::Extent;
    use base::offset::Offset;
    use flow::account::Stage;
    use flow::backend::{Choice, Engine};
    use flow::cancel::Cancel;
    use flow::monitor::Silent;
    use flow::queue::Queue;
    use flow::ring::{Consumer, Producer, RingOptions, ring};
    use flow::run::StageKind;
    use flow::turnstile::Turnstile;

    use super::super::groups::Groups;
    use super::super::hasher::Hasher;
    use super::super::pace::Pace;
    use super::*;

    const BLOCK_BYTES: usize = 4096;
    const BLOCKS: usize = 4;
    const CONTENT_BYTES: usize = 40 * BLOCK_BYTES;

    /// A cached file of noise that is to go through a ring of a few blocks.
    struct Case {
        producer: Producer,
        consumers: Vec<Consumer>,
        groups: Groups,
        engine: Choice,
        cancel: Cancel,
        cached: Arc<Cached>,
        bytes: Vec<u8>,
    }

    impl Case {
        fn new() -> Case {
            let folder = tempfile::tempdir().unwrap();
            let (path, bytes) =
                (folder.path().join("file"), testkit::samples::noise(1, CONTENT_BYTES));
            std::fs::write(&path, &bytes).unwrap();
            let file = Arc::new(OwnedFd::from(std::fs::File::open(&path).unwrap()));
            let cancel = Cancel::new();
            let options = RingOptions { block_bytes: BLOCK_BYTES, blocks: BLOCKS, consumers: 2 };
            let (producer, consumers) = ring(options, cancel.clone()).unwrap();
            let length_bytes = CONTENT_BYTES as u64;
            let tree = ContentTree::whole(length_bytes);
            let content = Arc::new(Content::new(Offset::new(0), length_bytes, tree));
            let runs = vec![Extent { offset_bytes: 0, length_bytes }];
            let cached = Cached::new(file, content, Parts::new(runs, length_bytes));
            let engine = Choice::new(Engine::Threads).unwrap();
            Case { producer, consumers, groups: Groups::default(), engine, cancel, cached, bytes }
        }

        fn with<T>(&self, act: impl FnOnce(&Shared<'_>) -> T) -> T {
            let hasher = Hasher::new(&self.consumers[0], &self.groups, BLOCK_BYTES, &self.cancel);
            act(&Shared {
                batches: &Queue::new(1, self.cancel.clone()),
                sweep: None,
                placed: Queue::new(1, self.cancel.clone()),
                turnstile: Turnstile::new(self.cancel.clone()),
                producer: &self.producer,
                groups: &self.groups,
                hasher: &hasher,
                links: Mutex::default(),
                unread: Mutex::default(),
                monitor: &Silent,
                room: &Default::default(),
                pace: Pace::new(1, 1, self.cancel.clone()),
                engine: &self.engine,
                replaced: None,
                group_bytes_max: BLOCK_BYTES,
                segments: None,
                cancel: &self.cancel,
            })
        }
    }

    fn account() -> Account {
        Stage::new(StageKind::Read).open()
    }

    #[test]
    fn the_last_one_at_a_block_wakes_who_waits_for_it() {
        let case = Case::new();
        let mut progress = lock(&case.cached.progress);
        (progress.is_over, progress.copying) = (true, 1);
        scope(|scope| {
            // It can be missed only once this one waits, and gives up the lock.
            scope.spawn(|| drop(Copying(&case.cached)));
            let long = Duration::from_secs(30);
            while progress.copying > 0 {
                let waited = case.cached.idle.wait_timeout(progress, long).unwrap();
                assert!(!waited.1.timed_out(), "nobody woke it");
                progress = waited.0;
            }
        });
    }

    #[test]
    fn a_block_that_cannot_be_copied_is_given_up_while_others_wait_for_room() {
        let case = Case::new();
        case.with(|shared| {
            let lacking = case.cached.take(shared, &mut account()).unwrap().unwrap();
            let copied = scope(|scope| {
                let copying = scope.spawn(|| case.cached.copy(shared, &mut account()));
                // No block is passed on before the first one is there: the ring gets full.
                while case.producer.position_bytes().bytes() < (BLOCKS * BLOCK_BYTES) as u64
                    || lock(&case.cached.progress).copying > 1
                    || case.cached.first.try_lock().is_ok()
                {
                    yield_now();
                }
                let Taken { piece, part, .. } = lacking;
                case.cached.give_up(NotCopied { piece, part });
                copying.join().unwrap()
            });
            copied.unwrap();
            let mut progress = lock(&case.cached.progress);
            let [lacking] = &mut progress.not_copied[..] else { panic!("one is left") };
            assert_eq!(lacking.part.offset_bytes, 0);
            let rest = progress.parts.next(u64::MAX).unwrap();
            assert_eq!(rest.offset_bytes, (BLOCKS * BLOCK_BYTES) as u64);
            let NotCopied { mut piece, .. } = progress.not_copied.pop().unwrap();
            piece.bytes_mut().copy_from_slice(&case.bytes[..BLOCK_BYTES]);
            piece.commit();
        });
        for number in 0..BLOCKS {
            let block = case.consumers[0].try_next().unwrap().unwrap();
            assert!(block[..] == case.bytes[number * BLOCK_BYTES..][..BLOCK_BYTES], "{number}");
        }
    }
}
