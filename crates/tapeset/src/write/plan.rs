//! What a set is written by.

use archive::chunk::Compression;
use device::target::Existing;

/// What a set is to be like.
#[derive(Clone, Copy, Debug)]
pub struct SetPlan {
    /// Bytes of every block.
    pub block_bytes: usize,
    /// Compression of the data.
    pub compression: Compression,
    /// Whether what the first medium holds may be written over.
    pub existing: Existing,
}
