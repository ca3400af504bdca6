//! The arguments of `takeup bench disk`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use service::bench::disk::{BenchDiskRequest, FioEngine, FioLoad, QueueLevels, RunLength};
use service::bench::read::CacheUse;

use super::options::{ExperimentArgs, bytes, each};
use super::read::Pages;
use crate::proposing::{CURRENT, MERGES, RUNTIMES, SCHEDULERS, proposing};
use crate::quantity::{Size, Span};

/// Measure random and mixed loads with fio, and what the device makes of them
///
/// Takeup runs fio itself, and meanwhile reads the counters of the device behind PATH. One table
/// shows both sides: the latency that a program sees and the time at the device, requests as
/// submitted and as they arrive. Takeup never writes to a device or file that holds data without
/// --destructive, and never to a device that is mounted or part of an array. If PATH is a folder,
/// Takeup makes a file of --length in it, or many files for readfiles and writefiles. For loads
/// that write it makes a PATH that does not exist. It deletes what it made at the end.
#[derive(Args, Debug)]
#[command(override_usage = "\
takeup bench disk [OPTIONS] <PATH>
       takeup bench disk [OPTIONS] --job <FILE> [PATH]
       takeup bench disk [OPTIONS] --plan <FILE>")]
#[command(after_help = "\
Examples:
  takeup bench disk /srv
  takeup bench disk /srv/db.img --engines io_uring --depth 1,4,16,64
  takeup bench disk /srv/scratch.img --load randrw --read-percent 70 --block-size 8k --fsync 1
  takeup bench disk /dev/sdx --load randwrite,write --destructive
  takeup bench disk /srv/db.img --scheduler current,none,mq-deadline --load randrw --destructive
  takeup bench disk /srv --load writefiles,readfiles --file-size 4k,64k,1M --depth 1
  takeup bench disk --job mine.fio
  takeup bench disk /srv/scratch.img --job mine.fio --length 40M --job-set runtime=10

Settings of the queue have the names and values of /sys/block/*/queue; 'current' is the value in
force. Takeup changes them for the runs and restores them at the end, also after a crash (`takeup
bench put-back`).

A job of your own may have the options that shape a load. Takeup refuses options that delete files,
run programs or name other files, and lists all of them at once (docs/bench.md has the list). It
checks every file and device that the job names like a PATH. Sections that name no file work on
PATH. If all sections name the same file, PATH replaces it, and --length replaces its size.")]
pub struct BenchDiskArgs {
    /// A file, a block device, or a folder in which Takeup makes its own file
    #[arg(value_name = "PATH", required_unless_present_any = ["plan", "job"])]
    path: Option<PathBuf>,
    /// Loads to run
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "randread")]
    load: Vec<DiskLoad>,
    /// Share of reads in rw and randrw
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          value_parser = clap::value_parser!(u64).range(0..=100))]
    read_percent: Vec<u64>,
    /// fio's engines
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "io_uring")]
    engines: Vec<DiskEngine>,
    /// Through the page cache, or past it
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "direct")]
    cache: Vec<DiskCache>,
    /// Bytes of one request
    #[arg(short, long, value_delimiter = ',', value_name = "LIST", default_value = "4k")]
    block_size: Vec<Size>,
    /// Requests in flight of one job, for libaio and io_uring
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,8,32")]
    depth: Vec<u64>,
    /// Jobs at once
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1")]
    jobs: Vec<u64>,
    /// Writes after which fio calls fsync: 1 is after each write, 0 never [default: 0]
    ///
    /// fsync waits until the data are on the disk, as a database does when it commits.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    fsync: Vec<u64>,
    /// Memory pages of fio's buffers; fio by itself uses small ones
    #[arg(
        hide_short_help = true,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "huge"
    )]
    pages: Vec<Pages>,
    /// Files of each job, for readfiles and writefiles [default: 1000]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    files: Vec<u64>,
    /// Size of each of these files [default: 16k]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    file_size: Vec<Size>,
    #[command(flatten)]
    queue: Box<QueueArgs>,
    /// Run a job file of your own instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "plan"])]
    job: Option<PathBuf>,
    /// Set an option of the job in all of its sections; may be given several times
    #[arg(hide_short_help = true, long, value_name = "NAME=VALUE", requires = "job")]
    job_set: Vec<String>,
    /// Part of PATH that is used, from its start; with --job the size of its sections [default: 1G]
    #[arg(long, value_name = "SIZE")]
    length: Option<Size>,
    /// Length of one run; 'once' moves --length bytes once instead
    ///
    /// A --job has its own length, and readfiles and writefiles go through all files once.
    #[arg(long, value_name = "TIME", default_value = "5s", hide_possible_values = true,
          value_parser = proposing(Runtime::from_str, RUNTIMES))]
    runtime: Runtime,
    /// Allow Takeup to destroy what PATH holds
    #[arg(long)]
    destructive: bool,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

const QUEUE_HEADING: &str = "Settings of the queue";

/// Settings of the queues of the disks behind PATH.
#[derive(Args, Debug)]
struct QueueArgs {
    /// Schedulers of the disk
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, SCHEDULERS))]
    scheduler: Vec<String>,
    /// Merge requests: always (0), only where that costs nothing (1), never (2)
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, MERGES))]
    nomerges: Vec<String>,
    /// Largest request at the disk in KiB
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, CURRENT))]
    max_sectors_kb: Vec<String>,
    /// Read-ahead in KiB of the device that PATH lies on, for --cache buffered
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, CURRENT))]
    read_ahead_kb: Vec<String>,
    /// Requests that may wait in the queue of the disk
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, CURRENT))]
    nr_requests: Vec<String>,
    /// Whether the kernel flushes the disk's cache: 'write back' or 'write through'; without
    /// flushes a power loss may destroy data that were reported as safe
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST",
          help_heading = QUEUE_HEADING,
          hide_possible_values = true, value_parser = proposing(String::from_str, CURRENT))]
    write_cache: Vec<String>,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Runtime {
    Once,
    For(Span),
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Runtime, String> {
        match text {
            "once" => Ok(Runtime::Once),
            _ => text.parse().map(Runtime::For).map_err(|why| format!("{why}, or 'once'")),
        }
    }
}

/// Loads of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskLoad {
    /// Sequential reads
    Read,
    /// Sequential writes
    Write,
    /// Random reads
    Randread,
    /// Random writes
    Randwrite,
    /// Sequential reads and writes
    Rw,
    /// Random reads and writes
    Randrw,
    /// Sequential discards, of devices
    Trim,
    /// Random discards, of devices
    Randtrim,
    /// Many files, each read from its start to its end
    Readfiles,
    /// Many files, made and written one after the other
    Writefiles,
}

/// Engines of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskEngine {
    /// read(2) and write(2)
    Sync,
    /// pread(2) and pwrite(2)
    Psync,
    /// Asynchronous I/O of the kernel (io_submit)
    Libaio,
    /// io_uring
    #[value(name = "io_uring")]
    IoUring,
}

/// Ways to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskCache {
    /// Past the page cache (O_DIRECT)
    Direct,
    /// Through the page cache
    Buffered,
}

impl From<DiskLoad> for FioLoad {
    fn from(load: DiskLoad) -> FioLoad {
        match load {
            DiskLoad::Read => FioLoad::Read,
            DiskLoad::Write => FioLoad::Write,
            DiskLoad::Randread => FioLoad::Randread,
            DiskLoad::Randwrite => FioLoad::Randwrite,
            DiskLoad::Rw => FioLoad::Rw,
            DiskLoad::Randrw => FioLoad::Randrw,
            DiskLoad::Trim => FioLoad::Trim,
            DiskLoad::Randtrim => FioLoad::Randtrim,
            DiskLoad::Readfiles => FioLoad::Readfiles,
            DiskLoad::Writefiles => FioLoad::Writefiles,
        }
    }
}

impl From<DiskEngine> for FioEngine {
    fn from(engine: DiskEngine) -> FioEngine {
        match engine {
            DiskEngine::Sync => FioEngine::Sync,
            DiskEngine::Psync => FioEngine::Psync,
            DiskEngine::Libaio => FioEngine::Libaio,
            DiskEngine::IoUring => FioEngine::IoUring,
        }
    }
}

impl From<DiskCache> for CacheUse {
    fn from(cache: DiskCache) -> CacheUse {
        match cache {
            DiskCache::Direct => CacheUse::Direct,
            DiskCache::Buffered => CacheUse::Buffered,
        }
    }
}

impl BenchDiskArgs {
    /// Repeats, time limits, files and output.
    pub fn experiment(&self) -> &ExperimentArgs {
        &self.experiment
    }

    /// What is asked for.
    pub fn request(&self) -> BenchDiskRequest {
        BenchDiskRequest {
            path: self.path.clone(),
            loads: each(&self.load),
            read_percent: self.read_percent.clone(),
            engines: each(&self.engines),
            cache: each(&self.cache),
            block_bytes: bytes(&self.block_size),
            depth: self.depth.clone(),
            jobs: self.jobs.clone(),
            fsync: self.fsync.clone(),
            pages: each(&self.pages),
            files: self.files.clone(),
            file_bytes: bytes(&self.file_size),
            queue: self.queue.levels(),
            job: self.job.clone(),
            job_options: self.job_set.clone(),
            length_bytes: self.length.map(|length| length.0),
            run_length: match self.runtime {
                Runtime::Once => RunLength::Once,
                Runtime::For(span) => RunLength::Seconds(span.0),
            },
            destructive: self.destructive,
            experiment: self.experiment.request(),
        }
    }
}

impl QueueArgs {
    fn levels(&self) -> QueueLevels {
        QueueLevels {
            scheduler: self.scheduler.clone(),
            nomerges: self.nomerges.clone(),
            max_sectors_kb: self.max_sectors_kb.clone(),
            read_ahead_kb: self.read_ahead_kb.clone(),
            nr_requests: self.nr_requests.clone(),
            write_cache: self.write_cache.clone(),
        }
    }
}
