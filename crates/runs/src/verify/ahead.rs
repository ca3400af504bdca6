//! Live files of a disk with heads are fetched ahead, in the order in which they lie there.
//!
//! The index at hand says which files will be compared, long before the archive gets there. They go
//! through the [`Sweep`] as those of a backup do, and each member waits until its live file was
//! fetched. Without an index nothing is known of what comes, and live files are read as they are
//! needed. What the index says wrongly costs time and nothing else: the members themselves decide
//! what is compared.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::index::RecordKind;
use archive::stream::ArchiveOffset;
use catalogue::IndexFile;
use flow::account::{Account, ThreadState};
use flow::cancel::{Cancel, Stopped};
use flow::monitor::Monitor;
use flow::queue::Queue;
use tree::{Entry, LiveEntries};

use super::options::VerifyOptions;
use crate::selection::without_root;
use crate::sweep::{
    self, Batch, Fetchable, Held, Limits, ReadOrder, SWEEP_THREADS, Sweep, WINDOW_FOLDERS,
};

/// Entries of a batch.
const BATCH_ENTRIES: usize = 64;
/// Most batches between the index and the sweep.
const BATCHES_WAITING: usize = 32;
/// Larger files are compared as their content passes.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Descriptors that are open independently of the tree, and those of a worker.
const OTHERS: usize = 32;
const OF_A_WORKER: usize = 6;

/// A member that will be compared.
#[derive(Debug)]
pub(crate) struct Wanted {
    header_offset_bytes: ArchiveOffset,
    /// Its live file, if that may be worth fetching.
    entry: Option<Entry>,
}

impl Fetchable for Wanted {
    fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    fn file(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }
}

/// Batches whose files were fetched, in the order of the archive.
pub(crate) struct Fetched {
    queue: Queue<Batch<Wanted>>,
    /// `None`: nothing is fetched.
    limits: Option<Limits>,
}

/// The files that are fetched ahead.
pub(crate) struct Ahead<'a> {
    index: &'a IndexFile,
    against: &'a Path,
    pub(super) sweep: Sweep<'a, Wanted>,
    fetched: &'a Queue<Batch<Wanted>>,
    file_bytes_max: u64,
    /// The archive has passed.
    is_over: AtomicBool,
}

impl Fetched {
    /// As many as may wait, so that the number of open files stays below the limit of the process.
    pub(super) fn for_run(options: &VerifyOptions, workers: usize, cancel: &Cancel) -> Fetched {
        let used = machine::open_files::open_now() + OTHERS + workers * OF_A_WORKER;
        let left = machine::open_files::limit().saturating_sub(used);
        let is_by_name = options.read_order == ReadOrder::Name || options.against.is_none();
        let mut window_folders = if is_by_name { 0 } else { WINDOW_FOLDERS };
        while sweep::descriptors(window_folders, BATCH_ENTRIES) > left {
            window_folders = sweep::halved(window_folders);
        }
        let limits = Limits::new(options.read_window_bytes, window_folders, FILE_BYTES_MAX);
        let waiting = BATCHES_WAITING + limits.as_ref().map_or(0, Limits::batches);
        Fetched { queue: Queue::new(waiting, cancel.clone()), limits }
    }
}

impl<'a> Ahead<'a> {
    /// Fetches what an index has of the files in a folder; `None` if nothing is to be fetched.
    pub(super) fn new(
        options: &'a VerifyOptions,
        index: &'a IndexFile,
        fetched: &'a Fetched,
        monitor: &'a dyn Monitor,
        cancel: &'a Cancel,
    ) -> Option<Ahead<'a>> {
        let (queue, limits) = (&fetched.queue, fetched.limits?);
        let against = options.against.as_deref()?;
        let order = options.read_order;
        Some(Ahead {
            index,
            against,
            sweep: Sweep::new(order, limits, BATCHES_WAITING, queue, monitor, cancel),
            fetched: queue,
            file_bytes_max: limits.file_bytes_max,
            is_over: AtomicBool::new(false),
        })
    }

    /// Threads that fetch.
    pub(super) const THREADS: usize = SWEEP_THREADS;

    /// Gives the sweep all files of the index, in the order of the archive.
    pub(super) fn feed(&self, account: &mut Account) -> Result<(), Stopped> {
        let fed = self.feed_all(account);
        self.sweep.incoming.close();
        fed
    }

    fn feed_all(&self, account: &mut Account) -> Result<(), Stopped> {
        // A folder that cannot be opened was refused before, and the members tell of the index.
        let Ok(mut entries) = LiveEntries::open(self.against) else { return Ok(()) };
        let Ok(records) = self.index.files() else { return Ok(()) };
        let mut records = records.map_while(Result::ok);
        for ticket in 0.. {
            let wanted = records.by_ref().take(BATCH_ENTRIES).map(|mut record| {
                let is_fetched = match record.kind {
                    RecordKind::File { stored_bytes, .. } => {
                        stored_bytes > 0 && stored_bytes <= self.file_bytes_max
                    }
                    _ => false,
                };
                without_root(&mut record.path);
                let entry = is_fetched.then(|| entries.find(&record.path)).flatten();
                Wanted { header_offset_bytes: record.header_offset_bytes, entry }
            });
            let works: Vec<Wanted> = wanted.collect();
            if works.is_empty() || self.is_over.load(Ordering::Relaxed) {
                break;
            }
            self.sweep.incoming.push(Batch { ticket, works, held: None }, account)?;
        }
        Ok(())
    }
}

/// What a live file takes of the window, until it was compared.
#[derive(Debug)]
pub(crate) struct InWindow {
    _held: Arc<Held>,
    /// The page cache holds it for this run alone.
    pub(super) is_fetched: bool,
}

/// The thread that goes through the archive waits here for the live files.
pub(crate) struct Arrivals<'a> {
    ahead: &'a Ahead<'a>,
    batch: Option<Batch<Wanted>>,
}

impl<'a> Arrivals<'a> {
    pub(crate) fn new(ahead: &'a Ahead<'a>) -> Arrivals<'a> {
        Arrivals { ahead, batch: None }
    }

    /// Whether the file of the member at this offset was not fetched yet.
    pub(super) fn would_wait(&self, header_offset_bytes: ArchiveOffset) -> bool {
        !self.batch.as_ref().is_some_and(|batch| reaches(batch, header_offset_bytes))
    }

    /// Waits until the file of the member at this offset was fetched. Nothing that came before may
    /// be held back meanwhile: the window needs its room.
    pub(super) fn wait_for(
        &mut self,
        header_offset_bytes: ArchiveOffset,
        account: &mut Account,
    ) -> Result<Option<InWindow>, Stopped> {
        while self.would_wait(header_offset_bytes) {
            self.batch = None;
            self.batch = self.ahead.fetched.pop_as(ThreadState::Blocked, account)?;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
        let found = self.batch.as_ref().and_then(|batch| {
            let works = &batch.works;
            let place = |it: &Wanted| it.header_offset_bytes;
            let number = works.binary_search_by_key(&header_offset_bytes, place).ok()?;
            let is_fetched = batch.is_fetched(number);
            Some(InWindow { _held: Arc::clone(batch.held.as_ref()?), is_fetched })
        });
        Ok(found)
    }

    /// Ends the fetching: what the index promises behind the end of the archive is not needed.
    pub(super) fn finish(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.ahead.is_over.store(true, Ordering::Relaxed);
        self.batch = None;
        while self.ahead.fetched.pop_as(ThreadState::Blocked, account)?.is_some() {}
        Ok(())
    }
}

/// Whether a batch ends at or behind an offset.
fn reaches(batch: &Batch<Wanted>, header_offset_bytes: ArchiveOffset) -> bool {
    batch.works.last().is_some_and(|last| last.header_offset_bytes >= header_offset_bytes)
}
