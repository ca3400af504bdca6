//! The parameters of a set.

use archive::chunk::Compression;
use archive::label::LabelledSet;
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
    /// Which set it is; `None`: one outside of chains, whose identity is made here.
    pub identity: Option<SetIdentity>,
}

/// Which set it is, where that was decided before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetIdentity {
    pub set: [u8; 16],
    /// When its run began, in seconds since 1970.
    pub begun_seconds: u64,
    /// Its place in a chain.
    pub chain: Option<LabelledSet>,
}
