//! Reads a file past the page cache for as long as that works.
//!
//! That is faster for uncached files: one copy less, and Takeup chooses the depth instead of
//! read-ahead. It also leaves the cache to the other programs of the machine. What direct I/O
//! refuses, such as the end of a file between two sectors, is read through the cache, and so is
//! everything after it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use archive::member::Extent;
use archive::stream::StoredOffset;
use device::file::Direct;
use device::source::Source;
use flow::backend::READS_MAX;

/// Every ring begins at a page.
const PAGE_BYTES: u32 = 4096;

/// How an archive may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Whichever is faster.
    Fastest,
    /// The page cache, whatever it holds.
    Cache,
}

/// A file of which some runs are read. No other code uses the descriptor meanwhile.
#[derive(Debug)]
pub(crate) struct PastCache {
    file: Arc<OwnedFd>,
    direct: Direct,
    /// How many reads may be repeated through the cache: as many as can be in flight past it when
    /// direct I/O is first refused.
    retries_left: usize,
}

impl PastCache {
    /// Reads past the cache, if these runs of the file allow it and the cache does not hold most of
    /// its `length_bytes`. The first run begins in memory at a multiple of `place_bytes`.
    pub fn choose(
        file: &Arc<OwnedFd>,
        runs: &[Extent],
        length_bytes: u64,
        place_bytes: u32,
    ) -> PastCache {
        let direct = choose_direct(file.as_fd(), runs, length_bytes, place_bytes);
        let retries_left = if direct == Direct::On { READS_MAX } else { 0 };
        PastCache { file: Arc::clone(file), direct, retries_left }
    }

    /// The same for an archive, through a descriptor of its own: others read the index through the
    /// existing one, in pieces of any length.
    pub fn of_source(
        source: &Source,
        ranges: &[Range<StoredOffset>],
        length_bytes: u64,
        way: Way,
    ) -> PastCache {
        let can = way == Way::Fastest && device::file::direct_alignment(&source.file).is_some();
        if can && let Ok(own) = source.reopen() {
            let run = |range: &Range<StoredOffset>| Extent {
                offset_bytes: range.start.bytes(),
                length_bytes: range.end - range.start,
            };
            let runs: Vec<Extent> = ranges.iter().map(run).collect();
            return PastCache::choose(&Arc::new(own), &runs, length_bytes, PAGE_BYTES);
        }
        PastCache { file: Arc::clone(&source.file), direct: Direct::Off, retries_left: 0 }
    }

    /// The file to read through.
    pub fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// Whether everything was read past the cache so far.
    pub fn is_on(&self) -> bool {
        self.direct == Direct::On
    }

    /// Whether to repeat a read: direct I/O refused it, and is now off.
    pub fn is_refused<T>(&mut self, result: &io::Result<T>) -> bool {
        let refused = result.as_ref().is_err_and(is_invalid) && self.retries_left > 0;
        if refused {
            self.retries_left -= 1;
            self.leave();
        }
        refused
    }

    /// Reads through the cache from here on.
    pub fn leave(&mut self) {
        if self.direct == Direct::On {
            self.direct = Direct::Off;
            // If this fails, the reads fail too, and are reported.
            let _ = device::file::set_direct(&self.file, Direct::Off);
        }
    }
}

/// Switches direct I/O on, if the file system supports it and the cache does not hold most of the
/// file. The first run begins in memory at a multiple of `place_bytes`.
pub(crate) fn choose_direct(
    file: BorrowedFd<'_>,
    runs: &[Extent],
    length_bytes: u64,
    place_bytes: u32,
) -> Direct {
    let aligned = |alignment: u64| {
        let (last, others) = match runs.split_last() {
            Some((last, others)) => (last.offset_bytes, others),
            None => (0, runs),
        };
        last.is_multiple_of(alignment)
            && others.iter().all(|run| {
                run.offset_bytes.is_multiple_of(alignment)
                    && run.length_bytes.is_multiple_of(alignment)
            })
    };
    let possible = device::file::direct_alignment(file).is_some_and(|alignment| {
        let larger_bytes = alignment.offset_bytes.max(alignment.memory_bytes);
        larger_bytes <= place_bytes && aligned(larger_bytes.into())
    });
    if !possible {
        return Direct::Off;
    }
    let cached = device::file::cached_bytes(file, 0..length_bytes).unwrap_or(0);
    if cached * 2 > length_bytes || device::file::set_direct(file, Direct::On).is_err() {
        return Direct::Off;
    }
    Direct::On
}

fn is_invalid(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}
