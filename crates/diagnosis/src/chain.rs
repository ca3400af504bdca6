//! The stations of a backup, and what each can give.

use model::tape::parameters::TapeParameters;

use crate::amount::Amount;

/// A backup from its source to its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    pub source: Source,
    /// In the order of the data; the first one reads the source, the last one writes the target.
    pub links: Vec<Link>,
    pub target: Target,
    /// Processors that others leave.
    pub processors: f64,
}

/// What is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// As it was typed.
    pub shown: String,
    /// Bytes in files that are large enough to be read ahead.
    pub large_bytes: u64,
    /// Bytes in the other files.
    pub small_bytes: u64,
    /// The number of these other files.
    pub small_files: u64,
    /// How fast the large files can be read; `None` where there are none or it is not known.
    pub stream: Option<Stream>,
    /// What small files cost beside their bytes.
    pub small: Option<SmallFiles>,
    pub reading: Reading,
    /// Whether these are all its files; else there are more.
    pub is_whole: bool,
}

impl Source {
    /// Bytes in all files; at least one.
    pub fn bytes(&self) -> u64 {
        (self.large_bytes + self.small_bytes).max(1)
    }
}

/// How a program reads its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One after the other through the page cache: the kernel's read-ahead decides how much is
    /// under way.
    OneByOne,
    /// Several at once, large ones in several places, as `takeup backup` does.
    ManyAtOnce,
}

/// How fast large files can be read, in bytes for each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The read-ahead in force; `None` where the kernel has none for this file system.
    pub window_bytes: Option<u64>,
    /// One after the other, with the read-ahead in force.
    pub now: Amount,
    /// With other sizes of read-ahead, ascending.
    pub windows: Vec<Window>,
    /// A larger read than the read-ahead is handed to the disk as a whole up to this size
    /// (`max_sectors_kb`), and so is the next one (`page_cache_sync_ra` in the kernel). `None`
    /// where it is not known.
    pub request_bytes_max: Option<u64>,
    /// With many requests at once: the most that was seen.
    pub most: Amount,
}

impl Stream {
    /// The rate of a program that reads pieces of `bytes`: with a read-ahead as large as they are,
    /// where that is more than the present one.
    pub fn in_pieces_of(&self, bytes: u64) -> Amount {
        let (Some(window), Some(most)) = (self.window_bytes, self.request_bytes_max) else {
            return self.now;
        };
        let bytes = bytes.min(most);
        let tried = self.windows.iter().rev().find(|it| it.bytes <= bytes);
        match tried {
            Some(tried) if bytes > window && tried.rate.typical > self.now.typical => tried.rate,
            _ => self.now,
        }
    }
}

/// A size of the read-ahead, and the rate with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub bytes: u64,
    pub rate: Amount,
}

/// Seconds for each small file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmallFiles {
    /// One after the other: found, opened, read.
    pub one_by_one: Amount,
    /// With [`FILES_AT_ONCE`] under way, for each of them.
    pub at_once: Amount,
}

/// Small files that `takeup backup` and the trials have under way.
pub const FILES_AT_ONCE: usize = 16;

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What it is called.
    pub shown: String,
    /// The stage of the typed line that it belongs to.
    pub stage: usize,
    pub work: Work,
    /// Bytes of one read.
    pub read_bytes: u64,
    /// Bytes of one write.
    pub write_bytes: u64,
    /// What its input holds: a pipe, or a buffer of its own.
    pub input_bytes: u64,
}

/// What a program does with its data.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Nothing: the bytes go on as they come.
    Passes,
    /// Fewer bytes come out.
    Compresses {
        /// Input of one thread, in bytes for each second of a processor.
        rate: Amount,
        /// Input bytes for each byte of output.
        ratio: f64,
        /// The most threads at once.
        threads: f64,
    },
    /// It holds a rate, in bytes for each second.
    Holds { bytes_per_second: f64 },
    /// What it costs is not known, and why.
    Unknown(String),
}

/// Where the data go.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Nowhere, or to something that takes all at once.
    Nowhere,
    /// To something whose rate is not known.
    Unknown {
        shown: String,
        why: WhyUnknown,
    },
    /// To something that writes at a rate, behind the page cache.
    Disk {
        shown: String,
        rate: Amount,
        /// Whether the source is read from the same disk: its time is shared.
        is_of_source: bool,
    },
    Tape(Box<TapeTarget>),
}

/// Why the rate of a target is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUnknown {
    NotWritten,
    /// The same, and the source is read from the disk that it is on.
    SameDisk,
    /// Another machine takes the data.
    Elsewhere,
    /// A device on which nothing may be written.
    Device,
    /// It has the name of a tape drive that is not there.
    NoDrive,
}

impl std::fmt::Display for WhyUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            WhyUnknown::NotWritten => "nothing was written to it",
            WhyUnknown::SameDisk => {
                "nothing was written to it; it is on the disk of the source, which reads and \
                 writes in turn"
            }
            WhyUnknown::Elsewhere => "it is somewhere else, and was not asked",
            WhyUnknown::Device => "nothing is written to a device",
            WhyUnknown::NoDrive => "there is no tape drive of that name on this machine",
        })
    }
}

/// A tape drive.
#[derive(Clone, Debug, PartialEq)]
pub struct TapeTarget {
    pub shown: String,
    pub parameters: TapeParameters,
    /// How many times faster than real time it runs: 1 but for virtual drives.
    pub speed_up: f64,
    /// Host bytes for each byte on the medium, of the data as the source has them: 1 where the
    /// drive does not compress.
    pub ratio: f64,
    /// The largest block that it takes.
    pub block_bytes_max: u64,
    pub is_virtual: bool,
}

impl Target {
    /// As it was typed.
    pub fn shown(&self) -> &str {
        match self {
            Target::Nowhere => "nowhere",
            Target::Unknown { shown, .. } | Target::Disk { shown, .. } => shown,
            Target::Tape(tape) => &tape.shown,
        }
    }
}

/// A core of which others leave less is not counted.
const LITTLE: f64 = 0.1;

impl Chain {
    /// Cores of which others leave something; at least one. How much they leave of the last one
    /// counts where the work of a compressor is divided.
    pub fn cores(&self) -> u64 {
        (self.processors - LITTLE).ceil().max(1.0) as u64
    }

    /// Whether a program of the line compresses.
    pub fn compresses(&self) -> bool {
        self.links.iter().any(|link| matches!(link.work, Work::Compresses { .. }))
    }
}
