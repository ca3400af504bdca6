//! The options of a verification.

use crate::origin::Origin;
use crate::read::IndexNeed;
use crate::sweep::ReadOrder;
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
    /// Directory to compare with, in which the paths of the archive start.
    pub against: Option<PathBuf>,
    /// What becomes of live files that the archive does not have.
    pub extra: ExtraFiles,
    /// Whether data in the page cache may be used.
    pub cache: PageCache,
    /// Whether attributes and ACLs are compared.
    pub attributes: Attributes,
    /// Whether owners are compared.
    pub owners: CompareOwners,
    /// Whether an archive that does not announce an index must have one anyway.
    pub index: IndexNeed,
    /// In which order live files are read.
    pub read_order: ReadOrder,
    /// Live files that may be fetched ahead of their turn, in bytes; `None`: an eighth of the
    /// memory that is available, at most 4 GiB.
    pub read_window_bytes: Option<usize>,
    /// Threads that check; as many as cores if `None`. Against a directory four per core, since
    /// they wait for files.
    pub threads: Option<NonZero<usize>>,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
}

/// What becomes of live files that the archive does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtraFiles {
    #[default]
    Named,
    /// They are not looked for: an earlier archive of a chain has them, or they were left out.
    Ignored,
}

impl Default for VerifyOptions {
    fn default() -> VerifyOptions {
        VerifyOptions {
            from: "-".into(),
            against: None,
            extra: ExtraFiles::default(),
            cache: PageCache::Dropped,
            attributes: Attributes::Read,
            owners: CompareOwners::Compare,
            index: IndexNeed::default(),
            read_order: ReadOrder::Auto,
            read_window_bytes: None,
            threads: None,
            engine: Engine::Auto,
            ring_bytes: 64 << 20,
        }
    }
}
