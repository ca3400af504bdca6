//! How the libraries report what they do: through one small trait, never by printing.
//!
//! The terminal, the JSON stream and the tests are three implementations of it.

use std::sync::Arc;
use std::time::Duration;

use crate::account::Stage;
use crate::run::StageKind;

/// The counters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Objects handled: files, directories, links, devices.
    Members,
    /// Bytes of content read from or written to the tree.
    SourceBytes,
    /// Bytes of the archive before compression.
    ArchiveBytes,
    /// Bytes handed to the target.
    TargetBytes,
}

/// A report that is no error of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// The object that it is about, as the user knows it; empty if it is about the run.
    pub object: Vec<u8>,
    /// What happened: a lowercase fragment.
    pub text: String,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only shown with `-v`: which back end was chosen and why.
    Detail,
    /// Shown, but no reason for exit code 2: a socket that was skipped.
    Note,
    /// Like a note, but shown with `--quiet`, too: more was read than was named.
    Notable,
    /// Something was not done, or not as requested; its effect on the data decides on the exit
    /// code.
    Warning(Harm),
}

/// What a warning means for the user's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harm {
    /// Data of the archive are lost, or differ from what was archived.
    Damage,
    /// Blocks of the archive differ from what was written; their files are named separately.
    Blocks,
    /// The end of the archive is lost, with its data.
    CutOff,
    /// An object could not be read: it is not in the archive.
    Unread,
    /// Objects are not in the archive, because a medium is full and there is no other.
    NoRoom,
    /// A folder could not be listed: its content is not in the archive.
    Unlisted,
    /// An object is archived, but not as it was: it changed meanwhile, or part of it is missing.
    Flawed,
    /// An object was not restored, because its path exists.
    Existing,
    /// An object was not restored for another reason.
    NotRestored,
    /// An object was restored without part of its metadata.
    Metadata,
    /// A requested path is not in the archive.
    NotFound,
    /// Part of the archive was not read, because its volume was not there.
    Unseen,
    /// A live object differs from the archive.
    Different,
    /// Part of the archive has a later format version, and cannot be checked.
    Later,
    /// Data may be lost, but nothing proves it.
    Doubt,
    /// The data are intact; something else was not done.
    Beside,
}

/// What a run does while no bytes move, so that there is no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A tape is winding to where it will be written.
    Winding,
    /// The label of the medium is read.
    ReadingLabel,
    /// Another volume is requested and prepared.
    Changing,
    /// The drive writes its buffer to the medium; everything was passed to it.
    Flushing,
}

impl Pause {
    /// In tables and on the live line.
    pub fn name(self) -> &'static str {
        match self {
            Pause::Winding => "winding",
            Pause::ReadingLabel => "reading the label",
            Pause::Changing => "changing the volume",
            Pause::Flushing => "flushing the drive",
        }
    }
}

/// How much a run will move, for a forecast of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The whole amount, in the unit of `measure`.
    pub amount: u64,
    /// What counts towards it.
    pub measure: Measure,
    /// What the amount rests on.
    pub basis: Basis,
}

/// What counts towards the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A counter of the monitor.
    Counter(Counter),
    /// The bytes of a stage, which a monitor reads where the stage counts them.
    Stage(StageKind),
}

/// What an expected amount rests on, from the least to the most certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The number of objects, once the scan of the tree has ended.
    ScanAhead,
    /// The space in use on the file systems that are backed up.
    SpaceInUse,
    /// The archive that this run will replace.
    ReplacedArchive,
    /// The size of the files that are read.
    FileSize,
    /// The size of the archive that is read.
    ArchiveSize,
}

impl Basis {
    /// On the progress line.
    pub fn name(self) -> &'static str {
        match self {
            Basis::ScanAhead => "from the scan ahead",
            Basis::SpaceInUse => "from the space in use",
            Basis::ReplacedArchive => "from the last archive",
            Basis::FileSize => "from the size of the file",
            Basis::ArchiveSize => "from the size of the archive",
        }
    }

    /// Whether a run may move more or less than that, even if nothing changes meanwhile.
    pub fn is_estimate(self) -> bool {
        matches!(self, Basis::SpaceInUse | Basis::ReplacedArchive)
    }
}

/// What a backup fetches ahead of its turn, in the order of the disk, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchedAhead {
    /// Files that have or had room in the window, the pieces in which they lie on the disk, and
    /// their bytes.
    pub files: u64,
    pub pieces: u64,
    pub bytes: u64,
    /// Pieces that were fetched, and their bytes.
    pub fetched_pieces: u64,
    pub fetched_bytes: u64,
    /// Access time of the device, if it was found to be so slow that files are fetched: the median
    /// time to read a file that lies far from the one before.
    pub access_time: Option<Duration>,
}

/// Receives counts and notices of a run. Called from many threads at once.
pub trait Monitor: Send + Sync {
    /// Adds to a counter.
    fn count(&self, counter: Counter, amount: u64);
    /// Receives a notice.
    fn notice(&self, notice: Notice);
    /// Reports how many blocks of the ring before the writer are ready, of how many.
    fn fill(&self, ready_blocks: usize, capacity_blocks: usize) {
        let _ = (ready_blocks, capacity_blocks);
    }
    /// Reports the stages of the run that begins, in the order of the data. A monitor that shows
    /// them over time asks them now to keep a series.
    fn stages(&self, stages: &[&Arc<Stage>]) {
        let _ = stages;
    }
    /// Whether the monitor shows how much is left. Runs look up what to expect only then.
    fn wants_forecast(&self) -> bool {
        false
    }
    /// Reports how much the run will move. Several reports may come; the highest basis holds.
    fn expect(&self, expected: Expected) {
        let _ = expected;
    }
    /// Reports the object in hand and the bytes of its content. Called for every object or batch of
    /// small ones, so an implementation keeps a sample, and does nothing otherwise.
    fn object(&self, path: &[u8], bytes: u64) {
        let _ = (path, bytes);
    }
    /// Reports why no bytes move; `None` when they move again.
    fn pause(&self, pause: Option<Pause>) {
        let _ = pause;
    }
    /// Reports what a backup has fetched ahead of its turn. A later report may come before an
    /// earlier one.
    fn fetched_ahead(&self, ahead: FetchedAhead) {
        let _ = ahead;
    }
}

/// A monitor that ignores everything.
#[derive(Debug, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn count(&self, _: Counter, _: u64) {}
    fn notice(&self, _: Notice) {}
}
