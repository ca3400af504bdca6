//! Which sets are read, and from where.

use super::index_segment::TapeIndex;
use crate::change::VolumeChanger;
use crate::known::Memory;
use device::tape::drive::TapeDrive;
use model::tape::parameters::TapeParameters;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The tape that an archive is read from.
#[derive(Clone)]
pub struct TapeOrigin {
    pub drive: Arc<dyn TapeDrive>,
    /// Which set, on a tape with Takeup sets.
    pub set: SetChoice,
    /// Number of a tape file, from 0, that is read as it is, whoever wrote it.
    pub file_number: Option<u32>,
    /// Numbers of volumes that are not available: they are not asked for, and their data are
    /// missing.
    pub without_volumes: Vec<u32>,
    /// The index of the set, where it is known without the tape: then only media with what is
    /// wanted are asked for.
    pub known: Option<KnownIndex>,
    /// Asks for other volumes.
    pub changer: Arc<Mutex<dyn VolumeChanger>>,
    /// What is known of media, and where what is read of them is noted.
    pub memory: Memory,
    /// How the drive moves, if that is not to be taken from its generation.
    pub motion: Option<Arc<TapeParameters>>,
}

impl fmt::Debug for TapeOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TapeOrigin")
            .field("drive", &self.drive.name())
            .field("set", &self.set)
            .field("file_number", &self.file_number)
            .finish_non_exhaustive()
    }
}

/// The index of a set that is known without the tape.
#[derive(Clone, Debug)]
pub enum KnownIndex {
    /// It was read from the tape before.
    Read(Box<TapeIndex>),
    /// A copy was kept in a file. If it cannot be used, the tape has it.
    Copy(PathBuf),
}

impl KnownIndex {
    /// The index; `None` if the copy cannot be used.
    pub fn open(&self) -> Option<TapeIndex> {
        match self {
            KnownIndex::Read(index) => Some(TapeIndex::clone(index)),
            KnownIndex::Copy(path) => TapeIndex::of_copy(File::open(path).ok()?).ok()?,
        }
    }
}

/// Which set of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SetChoice {
    /// The newest.
    #[default]
    Last,
    /// By its number on the volume, from 1 for the oldest.
    Number(u32),
    /// By the start of its id.
    Id(String),
    /// By its id, also where it is on another volume than that in the drive, which is asked for
    /// then.
    Anywhere([u8; 16]),
}

/// The result of reading a tape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapeReading {
    /// Name of the drive.
    pub device: String,
    /// Id of the set, on a tape with Takeup sets.
    pub set: Option<String>,
    /// Number of the file, for other tapes or if requested.
    pub file_number: Option<u32>,
    /// Bytes of a full block; 0 when unknown.
    pub block_bytes: u64,
    /// Blocks that were read, labels and indexes included.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// Blocks that cannot be read.
    pub lost_blocks: u64,
    /// Reads that failed at first.
    pub retries: u64,
    /// How often the ring was full.
    pub ring_was_full: u64,
    /// Volumes of the set that were read from, in order.
    pub volumes: Vec<u32>,
    /// Changes of volume.
    pub changes: u32,
    /// Time in reads, as the kernel counts it for this drive.
    pub read_seconds: Option<f64>,
    /// Time until the first byte: the tape is wound, and labels and the index are read.
    pub ready_seconds: f64,
    /// Part of that for reading; the rest is winding.
    pub label_seconds: f64,
    /// Ways to another place in all.
    pub winds: u64,
    /// Winding time after that.
    pub winding_seconds: f64,
    /// Time for changes of volume.
    pub change_seconds: f64,
}

impl TapeReading {
    /// Adds the reading of the next set of a chain.
    pub fn append(&mut self, next: TapeReading) {
        self.set = next.set;
        self.block_bytes = next.block_bytes;
        self.blocks += next.blocks;
        self.bytes += next.bytes;
        self.lost_blocks += next.lost_blocks;
        self.retries += next.retries;
        self.ring_was_full += next.ring_was_full;
        self.volumes.extend(next.volumes);
        self.changes += next.changes;
        self.read_seconds = match (self.read_seconds, next.read_seconds) {
            (Some(seconds), Some(more)) => Some(seconds + more),
            _ => None,
        };
        self.ready_seconds += next.ready_seconds;
        self.label_seconds += next.label_seconds;
        self.winds += next.winds;
        self.winding_seconds += next.winding_seconds;
        self.change_seconds += next.change_seconds;
    }
}
