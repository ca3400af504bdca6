//! The parameters of a set.

use archive::chunk::Compression;
use device::target::Existing;

/// The parameters of a set.
#[derive(Clone, Copy, Debug)]
pub struct SetPlan {
    /// Bytes of every block.
    pub block_bytes: usize,
    /// Compression of the data.
    pub compression: Compression,
    /// Whether the data on the first medium may be overwritten.
    pub existing: Existing,
}
