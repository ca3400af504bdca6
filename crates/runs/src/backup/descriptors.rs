//! Bounds what is in progress, so that the number of open files stays below the process's limit.
//!
//! An entry that waits for its reader keeps its folder open, and an entry that is being read its
//! file, too. The scan keeps folders open that it listed ahead. The sum of the worst cases is
//! bounded here, because a file that cannot be opened for lack of descriptors would be missing from
//! the backup.

use std::mem::MaybeUninit;

use base::interruptible::openat;
use flow::monitor::{Level, Monitor, Notice};
use rustix::fs::{CWD, Mode, OFlags, RawDir};
use tree::{BATCH_ITEMS_MAX, LookAheadLimits};

use super::options::ReadOrder;
use super::placed::{PLACED_THREADS, PLACED_WAITING};
use super::sweep::{CHUNK_ENTRIES, SWEEP_THREADS};

/// What may be in progress at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InHand {
    pub(super) read_threads: usize,
    pub(super) batches_waiting: usize,
    /// Most entries of a batch.
    pub(super) batch_items: usize,
    /// Most medium-sized files that wait to be read, or are being read.
    pub(super) placed_waiting: usize,
    pub(super) placed_threads: usize,
    pub(super) look_ahead: LookAheadLimits,
    /// Most entries whose content is fetched in the order of the disk; 0: none is.
    pub(super) window_entries: usize,
}

/// Default number of reading threads, which keeps a solid-state disk busy with small files. On a
/// cold tree of 100,000 files 64 were no faster (`docs/design/speed.md`).
const READ_THREADS: usize = 32;
/// Most batches that wait for a reader.
const BATCHES_WAITING: usize = 64;
/// Most entries in the window of what is fetched: at 30 KB for each, a gigabyte.
pub(super) const WINDOW_ENTRIES: usize = 32 << 10;
/// A smaller one is none: it brings less than what else would be given up for it.
const WINDOW_ENTRIES_LEAST: usize = 1024;
/// Descriptors that are open independently of the tree: target, io_uring, spools.
const OTHERS: usize = 24;
/// Descriptors of each reader: its statistics and its io_uring.
const OF_A_READER: usize = 2;

impl InHand {
    /// Chooses as much as fits below the limit of open files.
    pub(super) fn for_run(
        read_threads: Option<usize>,
        order: ReadOrder,
        monitor: &dyn Monitor,
    ) -> InHand {
        let wanted = InHand {
            read_threads: read_threads.unwrap_or(READ_THREADS).max(1),
            batches_waiting: BATCHES_WAITING,
            batch_items: BATCH_ITEMS_MAX,
            placed_waiting: PLACED_WAITING,
            placed_threads: PLACED_THREADS,
            look_ahead: LookAheadLimits::default(),
            window_entries: if order == ReadOrder::Name { 0 } else { WINDOW_ENTRIES },
        };
        let limit = machine::open_files::limit();
        let open = open_descriptors();
        let fitting = wanted.fit(limit.saturating_sub(open));
        if fitting != wanted {
            let text = format!(
                "{} readers, batches of {} entries and up to {} entries ahead in the order of the \
                 disk, since {limit} files may be open at once",
                fitting.read_threads, fitting.batch_items, fitting.window_entries
            );
            monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
        }
        fitting
    }

    /// Reduces step by step, until it fits or is the least that works.
    fn fit(self, limit: usize) -> InHand {
        let mut now = self;
        while now.descriptors() > limit {
            let before = now;
            if now.window_entries > 0 {
                let half = now.window_entries / 2;
                now.window_entries = if half < WINDOW_ENTRIES_LEAST { 0 } else { half };
            } else if now.batches_waiting > 8 {
                now.batches_waiting /= 2;
            } else if now.placed_waiting > 8 {
                now.placed_waiting /= 2;
            } else if now.batch_items > 16 {
                now.batch_items /= 2;
            } else if now.look_ahead.directories > 16 {
                now.look_ahead.directories /= 2;
            } else if now.read_threads > 8 {
                now.read_threads /= 2;
                now.placed_threads = (now.placed_threads / 2).max(4);
            } else {
                now.placed_waiting = (now.placed_waiting / 2).max(1);
                now.placed_threads = (now.placed_threads / 2).max(1);
                now.batch_items = (now.batch_items / 2).max(2);
                now.batches_waiting = (now.batches_waiting / 2).max(1);
                now.read_threads = (now.read_threads / 2).max(1);
                now.look_ahead.directories = (now.look_ahead.directories / 2).max(1);
                now.look_ahead.open_levels = (now.look_ahead.open_levels / 2).max(2);
                now.look_ahead.batch_items = (now.look_ahead.batch_items / 2).max(2);
            }
            if now == before {
                break;
            }
        }
        now
    }

    /// Most descriptors open at once: every entry in a folder of its own.
    fn descriptors(&self) -> usize {
        // The scan's last batch is cut into ours while it is handed on.
        let LookAheadLimits { directories, open_levels, batch_items, .. } = self.look_ahead;
        let scan = directories + open_levels + 2 + batch_items;
        let waiting = self.batches_waiting * self.batch_items;
        let reading = self.read_threads * (2 * self.batch_items + OF_A_READER);
        // The reader that passed them on has taken its next batch.
        let placed = self.placed_waiting + self.placed_threads;
        // What is looked at together ends with a whole batch.
        let window = match self.window_entries {
            0 => 0,
            entries => entries + CHUNK_ENTRIES + self.batch_items + SWEEP_THREADS,
        };
        OTHERS + scan + waiting + reading + placed + window
    }
}

/// Number of open descriptors of the process; 0 if the kernel does not report it. The standard
/// library's directories are not used: they panic when closing one fails.
fn open_descriptors() -> usize {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = openat(CWD, c"/proc/self/fd", flags, Mode::empty()) else { return 0 };
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut room);
    let mut count = 0;
    while let Some(Ok(_)) = entries.next() {
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: InHand = InHand {
        read_threads: 32,
        batches_waiting: 64,
        batch_items: BATCH_ITEMS_MAX,
        placed_waiting: PLACED_WAITING,
        placed_threads: PLACED_THREADS,
        look_ahead: LookAheadLimits {
            threads: 8,
            directories: 64,
            names_bytes: 8 << 20,
            open_levels: 32,
            batch_items: BATCH_ITEMS_MAX,
        },
        window_entries: WINDOW_ENTRIES,
    };

    #[test]
    fn what_is_in_hand_fits_every_limit_that_is_at_all_possible() {
        for limit in 48..10_000 {
            let fitting = WANTED.fit(limit);
            assert!(fitting.descriptors() <= limit, "{limit}: {fitting:?}");
            assert!(fitting.read_threads >= 1 && fitting.batch_items >= 2);
        }
        assert_eq!(WANTED.fit(50_000), WANTED);
    }

    #[test]
    fn what_costs_most_speed_is_given_up_last() {
        let parts = |it: InHand| {
            let directories = it.look_ahead.directories;
            [
                it.window_entries + 1,
                it.batches_waiting,
                it.placed_waiting,
                it.batch_items,
                directories,
                it.read_threads,
            ]
        };
        let enough = [1, 8, 8, 16, 16, 8];
        let all = parts(WANTED);
        for limit in 48..10_000 {
            let left = parts(WANTED.fit(limit));
            assert!(left.iter().all(|&part| part > 0), "{limit}: {left:?}");
            let last = (0..6).rfind(|&part| left[part] < all[part]).unwrap_or(0);
            for part in 0..last {
                assert!(left[part] <= enough[part], "{limit}: {left:?}");
            }
        }
    }

    #[test]
    fn files_that_wait_at_their_places_count() {
        let fewer = InHand { placed_waiting: 1, placed_threads: 1, ..WANTED };
        let more = PLACED_WAITING + PLACED_THREADS - 2;
        assert_eq!(WANTED.descriptors(), fewer.descriptors() + more);
    }
}
