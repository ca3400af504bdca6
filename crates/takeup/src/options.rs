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

/// What every command knows.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// Print one JSON document at the end instead of text
    ///
    /// It goes to standard output, and nothing else does; where standard output carries the data
    /// themselves (--to -), it goes to standard error.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print warnings, errors and what must not go unseen, and nothing else
    #[arg(short, long, help_heading = "Output", conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the stages of the run, what was chosen and why
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// No live line, also on a terminal
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
    /// Replace a target that exists, once the new one is complete
    #[arg(long)]
    pub overwrite: bool,
    /// Permissions of a target that is a file, in octal; by default those of the file that it
    /// replaces, for a new one by root 600, else as the umask has it
    #[arg(long, value_name = "MODE", value_parser = permissions)]
    pub mode: Option<u32>,
    /// Bytes that one write hands to the target; a multiple of 512
    #[arg(short, long, default_value = "1M", value_name = "SIZE")]
    pub block_size: Size,
    /// Memory for blocks that wait for the target; by default 64M, or more where a high level of
    /// compression needs it, and for a tape 1G or a quarter of the memory
    #[arg(long, value_name = "SIZE")]
    pub ring: Option<Size>,
    /// How full the ring has to be before the writer starts, and starts again after it ran empty;
    /// by default 0; for a tape 50, and then as the drive needs it
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub start_fill: Option<u8>,
    /// Most bytes per second that go to the target
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<Rate>,
}

/// Nine bits in octal digits: `640`, `0640`.
fn permissions(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err("not permissions in octal, from 0 to 777".to_owned()),
    }
}

/// Memory of the ring where the user does not say.
const RING_BYTES: usize = 64 << 20;

impl TargetArgs {
    /// Memory of the ring: what the user says, else the default, or `least_bytes` if that is more.
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

/// What `to` names: a tape, which is told how sets are laid out on it and who brings volumes, or
/// whatever else a path leads to.
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
    /// Memory for what is read and decompressed ahead; by default 64M, for a tape up to 1G or a
    /// quarter of the memory
    #[arg(long, value_name = "SIZE")]
    pub ring: Option<Size>,
    /// Threads that decompress; by default one for each core
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    pub threads: Option<NonZero<usize>>,
    /// Fail where the archive has no index, whoever wrote it: without one nobody can tell whether
    /// its end is missing. Archives of this program say themselves that one must follow
    #[arg(long)]
    pub require_index: bool,
}

impl ArchiveArgs {
    /// Memory of the rings where the user does not say, and for all but tapes.
    pub const RING_BYTES: usize = 64 << 20;

    /// Whether there must be an index.
    pub fn index(&self) -> IndexNeed {
        if self.require_index { IndexNeed::Required } else { IndexNeed::AsTheArchiveSays }
    }
}
