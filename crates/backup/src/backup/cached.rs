//! A large file that the page cache holds: each of several threads copies a block and hashes it.
//!
//! A block that one thread copies and another one hashes goes through memory twice more, since it
//! has left the first one's cache by then; and reads that are asked for ahead fill blocks that
//! nobody needs yet. Here whoever takes a block copies it, hashes it while its own cache has it,
//! and gives it up: few blocks are under way, and they go round in the cache
//! (`docs/design/speed.md` has the numbers).
//!
//! It is tried without asking first: a read that would have to wait for the disk says so
//! (`RWF_NOWAIT`), and from there on the file is streamed with reads in flight, as one is that the
//! page cache never held. The last part stays for that, too: it is committed when the record of the
//! file is complete.

use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use archive::stream::ArchiveOffset;
use failures::lock;
use flow::account::{Account, State};
use flow::cancel::{POLL, Stopped};
use flow::crew::cores;
use flow::monitor::Counter;
use flow::ring::Piece;
use rustix::io::{Errno, ReadWriteFlags};

use super::BackupError;
use super::groups::{Content, in_archive};
use super::parts::{Part, Parts};
use super::placed::Job;
use super::reader::Shared;

/// A file that is being copied. One thread has the turn, and others may help.
pub(super) struct Cached {
    file: Arc<OwnedFd>,
    content: Arc<Content>,
    progress: Mutex<Progress>,
    /// Nobody is at a block any more.
    idle: Condvar,
}

#[derive(Default)]
struct Progress {
    parts: Parts,
    /// Whether no part is to be taken any more.
    is_over: bool,
    /// Threads that are at a block.
    copying: usize,
    not_copied: Vec<NotCopied>,
}

/// A place in the archive that has yet to be filled.
pub(super) struct NotCopied {
    pub(super) piece: Piece,
    pub(super) part: Part,
}

/// What is left to be read in another way.
pub(super) struct Left {
    pub(super) parts: Parts,
    /// In front of these, in any order.
    pub(super) not_copied: Vec<NotCopied>,
}

/// A thread at a block: it is missed also when it panics.
struct Copying<'a>(&'a Cached);

impl Cached {
    pub(super) fn new(file: Arc<OwnedFd>, content: Arc<Content>, parts: Parts) -> Arc<Cached> {
        let progress = Mutex::new(Progress { parts, ..Progress::default() });
        Arc::new(Cached { file, content, progress, idle: Condvar::new() })
    }

    /// Copies what can be copied, with the help of others, and says what is left. For the thread
    /// that has the turn.
    pub(super) fn copy_with_others(
        self: Arc<Cached>,
        shared: &Shared<'_>,
        account: &mut Account,
    ) -> Result<Left, BackupError> {
        // Nobody is called for a file that the page cache does not hold.
        if self.copy_one(shared, account)? {
            for _ in 1..cores() {
                if shared.placed.try_push(Job::Blocks(Arc::clone(&self))).is_err() {
                    break;
                }
            }
            self.copy(shared, account)?;
        }
        let mut progress = lock(&self.progress);
        if progress.copying > 0 {
            account.switch(State::Blocked);
            while progress.copying > 0 {
                let waited = self.idle.wait_timeout(progress, POLL);
                progress = waited.unwrap_or_else(PoisonError::into_inner).0;
                shared.cancel.check().inspect_err(|_| account.switch(State::Working))?;
            }
            account.switch(State::Working);
        }
        Ok(Left {
            parts: std::mem::take(&mut progress.parts),
            not_copied: std::mem::take(&mut progress.not_copied),
        })
    }

    /// Copies blocks until that is over.
    pub(super) fn copy(
        &self,
        shared: &Shared<'_>,
        account: &mut Account,
    ) -> Result<(), BackupError> {
        while self.copy_one(shared, account)? {}
        Ok(())
    }

    /// Copies the next block; false if there is none, or this could not be had without waiting.
    fn copy_one(&self, shared: &Shared<'_>, account: &mut Account) -> Result<bool, BackupError> {
        let Some((mut piece, place, part)) = self.take(shared, account)? else { return Ok(false) };
        let copying = Copying(self);
        if !fill(&self.file, part.offset_bytes, piece.bytes_mut()) {
            let mut progress = lock(&self.progress);
            progress.is_over = true;
            progress.not_copied.push(NotCopied { piece, part });
            return Ok(false);
        }
        let bytes = piece.len();
        shared.monitor.count(Counter::ArchiveBytes, bytes as u64);
        shared.monitor.count(Counter::SourceBytes, bytes as u64);
        account.stage().add_bytes(bytes as u64);
        if bytes < shared.producer.block_bytes() {
            // Who fills the rest of the block may be another one.
            piece.commit();
        } else {
            shared.hasher.hash_early(place, piece.bytes_mut(), &self.content);
            piece.commit_unheard();
            shared.hasher.pass_ready(account)?;
        }
        drop(copying);
        Ok(true)
    }

    /// Takes the next part and its place, which lies in one block. The last part is nobody's.
    fn take(
        &self,
        shared: &Shared<'_>,
        account: &mut Account,
    ) -> Result<Option<(Piece, ArchiveOffset, Part)>, Stopped> {
        // Whoever holds it may be waiting for room.
        let mut progress = account.during(State::Blocked, || lock(&self.progress));
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
        let reservation = producer.reserve(part.total_bytes(), account)?;
        progress.parts.take(part);
        progress.copying += 1;
        let place = in_archive(reservation.start_bytes());
        let piece = reservation.into_pieces().next().expect("a part lies in one block");
        Ok(Some((piece, place, part)))
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

/// Fills a slice from the page cache; false if something of it is not there.
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
            // At the page where read-ahead is to go on the kernel says so as well.
            Err(Errno::AGAIN) if is_cached(file, offset..end) => {
                match interruptible::read_at(file, rest, offset) {
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
