//! Options that several subcommands share.

use std::ffi::OsStr;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use device::target::{Existing, FileMode};
use flow::backend::Engine;
use runs::destination::Destination;
use runs::read::IndexNeed;
use tapeset::{TapeDestination, TapeOptions};

use crate::change::Changer;
use arguments::quantity::{Rate, Size, one_or_more};

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// Print one JSON document at the end instead of text
    ///
    /// The document is all that goes to standard output. With --to -, where standard output carries
    /// the data, it goes to standard error.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print only warnings, errors and bad results
    #[arg(short, long, help_heading = "Output", conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the stages of the run, what was chosen and why
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Show no progress line on a terminal
    #[arg(long, help_heading = "Output")]
    pub no_progress: bool,
    /// How files and block devices are read and written
    #[arg(long, value_enum, default_value_t = EngineName::Auto, value_name = "ENGINE")]
    pub engine: EngineName,
}

/// Names of the back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// io_uring if the kernel allows it, else pread
    Auto,
    /// io_uring, or fail
    #[value(name = "io_uring")]
    IoUring,
    /// Threads that call pread and pwrite
    Pread,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Engine {
        match name {
            EngineName::Auto => Engine::Auto,
            EngineName::IoUring => Engine::IoUring,
            EngineName::Pread => Engine::Threads,
        }
    }
}

/// How data are buffered on their way to a target.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Replace an existing target once the new one is complete
    #[arg(long)]
    pub overwrite: bool,
    /// Permissions of a target file, in octal; default: those of the replaced file, for a new file
    /// 600 as root, else what the umask leaves
    #[arg(long, value_name = "MODE", value_parser = permissions)]
    pub mode: Option<u32>,
    /// Size of each write to the target, a multiple of 512 bytes
    #[arg(short, long, default_value = "1M", value_name = "SIZE")]
    pub block_size: Size,
    /// Memory for blocks that wait for the target; default: 64M, more for high compression levels,
    /// for a tape 1G or a quarter of the memory
    #[arg(long, value_name = "SIZE")]
    pub ring: Option<Size>,
    /// How full the ring must be before the writer starts, and starts again after it ran empty;
    /// default: 0, for a tape 50 and then what the drive needs
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub start_fill: Option<u8>,
    /// Limit the bytes per second that go to the target
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<Rate>,
}

/// Nine bits in octal digits: `640`, `0640`.
fn permissions(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err("permissions are octal, from 0 to 777".to_owned()),
    }
}

/// Default memory of the ring.
const RING_BYTES: usize = 64 << 20;

impl TargetArgs {
    /// Memory of the ring: the option, else the larger of the default and `least_bytes`.
    pub fn ring_bytes(&self, least_bytes: usize) -> usize {
        self.ring.map_or(RING_BYTES.max(least_bytes), Size::bytes)
    }

    /// Permissions of the target.
    pub fn mode(&self) -> FileMode {
        self.mode.map_or(FileMode::Usual, FileMode::Exactly)
    }

    /// What happens when the target exists.
    pub fn existing(&self) -> Existing {
        if self.overwrite { Existing::Replace } else { Existing::Keep }
    }
}

/// What `to` names: a tape drive, with the options for it and what changes its volumes, or anything
/// else that a path leads to.
pub fn destination(to: &OsStr, options: TapeOptions, changer: Changer) -> Destination {
    match device::tape::find(Path::new(to)) {
        Some(drive) => Destination::Tape(TapeDestination {
            drive: Arc::new(drive),
            options,
            changer: Arc::new(Mutex::new(changer)),
        }),
        None => to.into(),
    }
}

/// How an archive is read.
#[derive(Args, Clone, Debug)]
pub struct ArchiveArgs {
    /// Memory for data that are read and decompressed ahead; default: 64M, for a tape up to 1G or a
    /// quarter of the memory
    #[arg(long, value_name = "SIZE")]
    pub ring: Option<Size>,
    /// Threads that decompress; by default one for each core
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    pub threads: Option<NonZero<usize>>,
    /// Fail if the archive has no index, whatever program wrote it: without an index, a missing end
    /// goes unnoticed. Archives of takeup announce their index, and always need it
    #[arg(long)]
    pub require_index: bool,
}

impl ArchiveArgs {
    /// Default memory of the rings, except for tapes.
    pub const RING_BYTES: usize = 64 << 20;

    /// Whether there must be an index.
    pub fn index(&self) -> IndexNeed {
        if self.require_index { IndexNeed::Required } else { IndexNeed::AsTheArchiveSays }
    }
}
