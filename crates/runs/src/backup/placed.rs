//! Files of medium size: their place in the archive is fixed in archive order, and any free thread
//! reads their content.
//!
//! A reader that read sixty files of a megabyte one after the other, as it does with small ones,
//! would hold up all others during its turn. So it reserves their places, passes the files on, and
//! passes the turn. The threads here read them, many at once.

use std::os::fd::AsFd;
use std::sync::Arc;

use archive::header::UNIT_BYTES;
use archive::member::Extent;
use archive::stream::ArchiveOffset;
use base::failures::lock;
use device::file::Direct;
use flow::account::{Account, Stage};
use flow::monitor::Counter;
use flow::ring::Reservation;

use super::cached::Cached;
use super::draft::{Content, Draft, fill_content, fill_direct};
use super::error::BackupError;
use super::groups::{Findings, in_archive};
use super::reader::{Shared, tell_warnings};
use crate::past_cache::choose_direct;
use crate::sweep::Held;

/// Smallest content for which a file is passed on.
pub(super) const PLACED_BYTES_MIN: u64 = 128 << 10;
/// Smallest content for which it is worth checking the page cache.
const DIRECT_BYTES_MIN: u64 = 1 << 20;
/// Files that wait to be read.
pub(super) const PLACED_WAITING: usize = 64;
/// Threads that read them.
pub(super) const PLACED_THREADS: usize = 16;

/// Work for the threads here.
pub(super) enum PlacedJob {
    /// A file to be read into its place.
    File(Box<Placed>),
    /// A large file in the page cache, whose blocks another thread has begun to copy.
    Blocks(Arc<Cached>),
}

/// A file whose place is fixed.
pub(super) struct Placed {
    pub(super) draft: Draft,
    pub(super) header_offset_bytes: ArchiveOffset,
    /// Content and padding.
    pub(super) reservation: Reservation,
    pub(super) findings: Findings,
    /// Its share of the window of what is fetched ahead.
    pub(super) _held: Option<Arc<Held>>,
}

/// One of the threads. It joins the stage with its first file: without files of this size its
/// waiting is not shown. `start_next` starts another thread, which takes the next file.
pub(super) fn run(
    shared: &Shared<'_>,
    idle: &mut Account,
    stage: &Arc<Stage>,
    start_next: &dyn Fn() -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let Some(first) = shared.placed.pop(idle)? else { return Ok(()) };
    start_next()?;
    let mut account = stage.open();
    let mut next = Some(first);
    while let Some(job) = next {
        match job {
            PlacedJob::File(placed) => read(*placed, shared, &account),
            PlacedJob::Blocks(cached) => cached.copy(shared, &mut account)?,
        }
        next = shared.placed.pop(&mut account)?;
    }
    Ok(())
}

/// Reads one file into its place.
pub(super) fn read(placed: Placed, shared: &Shared<'_>, account: &Account) {
    let Placed { mut draft, header_offset_bytes, mut reservation, findings, _held } = placed;
    let content_offset_bytes = in_archive(reservation.start_bytes());
    let bytes = reservation.remaining_bytes() as u64;
    shared.monitor.object(&draft.captured.member.path, draft.content_bytes);
    let mut filler = reservation.filler();
    let hash = if is_direct(&draft) {
        draft.captured.file.take().map(|file| {
            let hash = fill_direct(&file, &mut draft, &mut filler);
            draft.check_again(&file);
            hash
        })
    } else {
        match fill_content(&mut draft, &mut filler) {
            Content::None => None,
            Content::Hashed(hash) => Some(hash),
            Content::Small(content) => Some(archive::index::ContentHasher::hash_whole(content)),
        }
    };
    let mut found = Vec::new();
    draft.find(header_offset_bytes, content_offset_bytes, hash, &mut found);
    shared.monitor.count(Counter::Members, 1);
    shared.monitor.count(Counter::SourceBytes, draft.content_bytes);
    shared.monitor.count(Counter::ArchiveBytes, bytes);
    account.stage().add_bytes(draft.content_bytes);
    tell_warnings(shared.monitor, &draft);
    *lock(&findings) = found;
    reservation.commit();
}

fn is_direct(draft: &Draft) -> bool {
    let Some(file) = &draft.captured.file else { return false };
    if draft.captured.member.sparse.is_some() || draft.content_bytes < DIRECT_BYTES_MIN {
        return false;
    }
    let whole = [Extent { offset_bytes: 0, length_bytes: draft.content_bytes }];
    choose_direct(file.as_fd(), &whole, draft.content_bytes, UNIT_BYTES as u32) == Direct::On
}
