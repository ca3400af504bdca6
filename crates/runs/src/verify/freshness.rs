//! Whether a verification reads the disk or the page cache.
//!
//! Recently written data are in the page cache, and reading them from there only tests memory. So
//! cached data are dropped before reading, and the report says whether that worked.

use device::file::StillCached;

use crate::past_cache::Way;
use crate::read::Input;

/// What a verification reads through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCache {
    /// Cached data of the archive are dropped first.
    #[default]
    Dropped,
    /// Cached data are used.
    Used,
}

impl From<PageCache> for Way {
    fn from(cache: PageCache) -> Way {
        match cache {
            PageCache::Dropped => Way::Fastest,
            PageCache::Used => Way::Cache,
        }
    }
}

/// Where the bytes of an archive came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// A pipe or a tape, which have no page cache.
    #[default]
    Stream,
    /// All of it from the device, past the page cache.
    Disk,
    /// Some of it from the page cache, which could not be dropped: the file is in memory, as on
    /// tmpfs, or another program holds it there.
    Partly {
        /// Bytes that stayed cached.
        cached_bytes: u64,
    },
    /// The page cache was asked to drop it, and the kernel does not report the result.
    Unknown,
    /// Through the page cache, as requested.
    Cache,
}

/// Drops cached data of the input, unless they may be used.
pub(super) fn prepare(input: &Input, cache: PageCache) -> ReadFrom {
    let Some((file, length_bytes)) = input.cacheable() else { return ReadFrom::Stream };
    if cache == PageCache::Used {
        return ReadFrom::Cache;
    }
    match device::file::drop_all_cached(file, length_bytes) {
        StillCached::Nothing => ReadFrom::Disk,
        StillCached::Bytes(cached_bytes) => ReadFrom::Partly { cached_bytes },
        StillCached::Unknown => ReadFrom::Unknown,
    }
}
