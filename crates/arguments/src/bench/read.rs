//! The arguments of `takeup bench read`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use service::bench::read::{BenchReadRequest, CacheUse, MemoryPages, ReadAheadLevel, StreamEngine};
use service::failure::Failure;

use super::options::{ExperimentArgs, bytes, each};
use crate::proposing::{READ_AHEADS, proposing};
use crate::quantity::{Size, bytes_or_zero};

/// Measure what a backup's single stream gets from files or block devices
///
/// Takeup writes nothing to PATH. It drops the pages of PATH from the page cache before every run.
/// With --read-ahead it changes the setting of the device behind PATH for the runs and restores it
/// at the end, also after a crash (`takeup bench put-back`). Separate the items of a list by
/// commas; Takeup runs every combination that makes sense.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench read /srv/images/big.img
  takeup bench read /srv
  takeup bench read /dev/sdx --read-ahead current,128k,512k,2M,8M --cache buffered
  takeup bench read big.img --engines psync,io_uring --cache direct --depth 1,2,4,8,16
  takeup bench read big.img --read-ahead 128k,4M --print-plan >plan.toml
  takeup report takeup-bench-read.ndjson --html report.html

PATH should be larger than --length, and --length so large that a run takes a second.")]
pub struct BenchReadArgs {
    /// Files or block devices; for a folder, the largest file in it
    #[arg(value_name = "PATH", required_unless_present = "plan")]
    paths: Vec<PathBuf>,
    /// Calls to read with
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "psync")]
    engines: Vec<ReadEngine>,
    /// Through the page cache, or past it
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "buffered,direct")]
    cache: Vec<ReadCache>,
    /// Bytes of one request
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "64k,256k,1M,4M"
    )]
    block_size: Vec<Size>,
    /// Read-ahead to set; 'current' is what is in force, 0 is none
    #[arg(long, value_delimiter = ',', value_name = "LIST", hide_possible_values = true,
          value_parser = proposing(String::from_str, READ_AHEADS))]
    read_ahead: Vec<String>,
    /// Requests in flight at once, for psync and io_uring
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1")]
    depth: Vec<u64>,
    /// Readers of the one stream; each takes the next block in turn
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1")]
    readers: Vec<u64>,
    /// Memory pages of the buffers
    #[arg(
        hide_short_help = true,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "huge"
    )]
    pages: Vec<Pages>,
    /// Bytes of one run, from the start of PATH
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    length: Size,
    /// Reads at random places after each buffered run, to measure what the read-ahead costs other
    /// reads
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 32)]
    random_reads: u64,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Calls that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReadEngine {
    /// read(2)
    Sync,
    /// pread(2), by as many threads as requests are in flight
    Psync,
    /// A mapped file
    Mmap,
    /// io_uring
    #[value(name = "io_uring")]
    IoUring,
}

/// Ways to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReadCache {
    /// Through the page cache, with read-ahead
    Buffered,
    /// Past the page cache (O_DIRECT)
    Direct,
}

/// Pages of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Pages {
    /// Huge ones where the kernel gives them, 2 MiB each
    Huge,
    /// Small ones only, 4 KiB each
    Small,
}

impl From<ReadEngine> for StreamEngine {
    fn from(engine: ReadEngine) -> StreamEngine {
        match engine {
            ReadEngine::Sync => StreamEngine::Sync,
            ReadEngine::Psync => StreamEngine::Psync,
            ReadEngine::Mmap => StreamEngine::Mmap,
            ReadEngine::IoUring => StreamEngine::IoUring,
        }
    }
}

impl From<ReadCache> for CacheUse {
    fn from(cache: ReadCache) -> CacheUse {
        match cache {
            ReadCache::Buffered => CacheUse::Buffered,
            ReadCache::Direct => CacheUse::Direct,
        }
    }
}

impl From<Pages> for MemoryPages {
    fn from(pages: Pages) -> MemoryPages {
        match pages {
            Pages::Huge => MemoryPages::Huge,
            Pages::Small => MemoryPages::Small,
        }
    }
}

impl BenchReadArgs {
    /// Repeats, time limits, files and output.
    pub fn experiment(&self) -> &ExperimentArgs {
        &self.experiment
    }

    /// What is asked for.
    ///
    /// # Errors
    /// When a read-ahead is no size; with a plan it is not looked at.
    pub fn request(&self) -> Result<BenchReadRequest, Failure> {
        let is_planned = self.experiment.plan.is_some();
        let read_ahead =
            self.read_ahead.iter().filter(|_| !is_planned).map(|text| read_ahead(text));
        Ok(BenchReadRequest {
            paths: self.paths.clone(),
            engines: each(&self.engines),
            cache: each(&self.cache),
            block_bytes: bytes(&self.block_size),
            read_ahead: read_ahead.collect::<Result<Vec<ReadAheadLevel>, Failure>>()?,
            depth: self.depth.clone(),
            readers: self.readers.clone(),
            pages: each(&self.pages),
            length_bytes: self.length.0,
            random_reads: self.random_reads,
            experiment: self.experiment.request(),
        })
    }
}

fn read_ahead(text: &str) -> Result<ReadAheadLevel, Failure> {
    match text {
        "current" => Ok(ReadAheadLevel::Current),
        _ => bytes_or_zero(text)
            .map(ReadAheadLevel::Bytes)
            .map_err(|error| Failure::of(format!("--read-ahead {text}: {error}"), None)),
    }
}
