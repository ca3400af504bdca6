//! Whether a verification says something of the disk.
//!
//! What was written a moment ago is in the page cache, and reading it from there proves that memory
//! is sound. So what is cached is dropped before anything is read, and the report says whether that
//! could be done.

use device::file::StillCached;

use crate::past_cache::Way;
use crate::read::Input;

/// What a verification reads through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCache {
    /// What it holds of the archive is dropped first.
    #[default]
    Dropped,
    /// It gives what it holds.
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
    /// A pipe or a tape, which no page cache stands in front of.
    #[default]
    Stream,
    /// From below the page cache, all of it.
    Disk,
    /// Some of it from the page cache, which could not let it go: the file lives in memory, as on
    /// tmpfs, or another program holds it there.
    Partly {
        /// Bytes that were cached still.
        cached_bytes: u64,
    },
    /// The page cache was asked to let go of it, and the kernel does not tell what became of that.
    Unknown,
    /// Through the page cache, as was asked for.
    Cache,
}

/// Drops what is cached of the input, unless it shall be used.
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
