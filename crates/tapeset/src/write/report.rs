//! The result of writing a set.

use crate::media::NamedMedium;
use model::tape::generation::Generation;

/// The result of a backup to tape.
#[derive(Clone, Debug, Default)]
pub struct TapeReport {
    pub device: String,
    /// Id of the set, 32 hexadecimal digits.
    pub set: String,
    /// Generation of the first medium, if its density code is an LTO code.
    pub generation: Option<&'static Generation>,
    /// Bytes of every block.
    pub block_bytes: u64,
    /// Length at which segments were closed, in bytes of the archive.
    pub segment_bytes: u64,
    /// File on the first medium at which the set begins.
    pub file_number: u32,
    /// Volumes of the set.
    pub volumes: u32,
    /// Their media, in the order of the volumes.
    pub media: Vec<NamedMedium>,
    /// Segments, the index segment included.
    pub segments: u32,
    /// Blocks written, labels included.
    pub blocks: u64,
    /// Filemarks written.
    pub filemarks: u64,
    /// Time until somebody had put a first medium into an empty drive.
    pub asked_seconds: f64,
    /// Time from then until the medium could be written: winding, and reading its label.
    pub ready_seconds: f64,
    /// Part of it for reading the beginning of the medium; the rest is winding.
    pub label_seconds: f64,
    /// Time that the drive took for writes, if the kernel counts it.
    pub drive_write_ns: Option<u64>,
    /// Time of the last filemark, which waits until everything is on the medium.
    pub synchronise_seconds: f64,
    /// Time from the first label until everything was on the medium.
    pub seconds: f64,
    /// Part of it for changes of volume.
    pub change_seconds: f64,
}
