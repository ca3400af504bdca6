//! What a verification is asked to do.

use crate::origin::Origin;
use crate::read::IndexNeed;
use crate::verify::PageCache;
use flow::backend::Engine;
use std::num::NonZero;
use std::path::PathBuf;
use tree::{Attributes, CompareOwners};

/// What to verify and how.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Where the archive is.
    pub from: Origin,
    /// Directory that the paths of the archive start in, when it is to be compared with.
    pub against: Option<PathBuf>,
    /// Whether what the page cache holds of the archive is as good as the disk.
    pub cache: PageCache,
    /// Whether attributes and ACLs are compared.
    pub attributes: Attributes,
    /// Whether owners are compared.
    pub owners: CompareOwners,
    /// Whether an archive that does not speak of an index must have one all the same.
    pub index: IndexNeed,
    /// Threads that check; as many as there are cores when `None`, four for each against a
    /// directory, whose files are waited for.
    pub threads: Option<NonZero<usize>>,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
}

impl Default for VerifyOptions {
    fn default() -> VerifyOptions {
        VerifyOptions {
            from: "-".into(),
            against: None,
            cache: PageCache::Dropped,
            attributes: Attributes::Read,
            owners: CompareOwners::Compare,
            index: IndexNeed::default(),
            threads: None,
            engine: Engine::Auto,
            ring_bytes: 64 << 20,
        }
    }
}
