//! How an archive is read.

use crate::past_cache::Way;
use crate::read::IndexNeed;
use crate::read::block_check::{BlockCheck, KeptChecksums};
use crate::read::excerpt::{Chunks, Excerpt};
use archive::decode::Decoder;
use flow::backend::Engine;
use std::num::NonZero;
use std::sync::Arc;

/// How an archive is read.
pub(crate) struct ReadSettings<'a> {
    pub engine: Engine,
    pub way: Way,
    /// Bytes of both rings together.
    pub ring_bytes: usize,
    /// Decompressing threads; as many as cores if `None`.
    pub threads: Option<NonZero<usize>>,
    /// Makes the decoder; a restore's decoder resolves names of users.
    pub make_decoder: fn() -> Decoder,
    pub contents: Contents,
    /// Checksums to check the archive with.
    pub check: Option<Arc<BlockCheck>>,
    /// Where checksums are kept for an index that comes later.
    pub keep: Option<Arc<KeptChecksums>>,
    /// Whether an archive that does not announce an index must have one anyway.
    pub index: IndexNeed,
    /// What to read, if not everything.
    pub excerpt: Option<&'a Excerpt>,
    /// Locations of the chunks of a compressed archive, if known.
    pub chunks: Option<&'a Chunks>,
}

/// Whether contents are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Wanted,
    /// Headers only: contents may be skipped.
    NotWanted,
}
