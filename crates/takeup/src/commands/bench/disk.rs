//! `takeup bench disk`: random and mixed loads by fio.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use base::escape::escape_path;
use base::format::counted;
use clap::{Args, ValueEnum};
use experiment::plan::Plan;
use experiment::record::{Factor, Level, Role};
use loads::disk::queue::{self, QueueError};
use loads::disk::safety::{Permission, SafetyError};
use loads::disk::{
    DiskError, DiskExecutor, JobError, JobRequest, RefusedLine, UserJob, device_behind,
};
use storage::settings::{GuardError, SettingKind};

use super::options::{ExperimentArgs, factor, numbers};
use super::read::Pages;
use crate::outcome::end;
use arguments::quantity::{Size, Span};
use service::failure::Failure;
use service::outcome::Outcome;

/// Measure random and mixed loads with fio, and what the device makes of them
///
/// Takeup runs fio itself, and meanwhile reads the counters of the device behind PATH. One table
/// shows both sides: the latency that a program sees and the time at the device, requests as
/// submitted and as they arrive. Takeup never writes to a device or file that holds data without
/// --destructive, and never to a device that is mounted or part of an array. For loads that write
/// it makes a PATH that does not exist, and deletes it at the end. Loads of many files use a folder
/// of their own below PATH, which Takeup deletes at the end.
#[derive(Args, Debug)]
#[command(override_usage = "\
takeup bench disk [OPTIONS] <PATH>
       takeup bench disk [OPTIONS] --job <FILE> [PATH]
       takeup bench disk [OPTIONS] --plan <FILE>")]
#[command(after_help = "\
Examples:
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
pub struct DiskArgs {
    /// A file or a block device; a folder for loads of many files
    #[arg(value_name = "PATH", required_unless_present_any = ["plan", "job"])]
    path: Option<PathBuf>,
    /// Loads to run
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "randread")]
    load: Vec<DiskLoad>,
    /// Share of reads in rw and randrw
    #[arg(long, value_delimiter = ',', value_name = "LIST",
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
    /// An fsync after every N writes; 0 for none
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    fsync: Vec<u64>,
    /// Pages of fio's memory; fio by itself uses small ones
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "huge")]
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
    #[arg(long, value_name = "NAME=VALUE", requires = "job")]
    job_set: Vec<String>,
    /// Part of PATH that is used, from its start; with --job the size of its sections [default: 1G]
    #[arg(long, value_name = "SIZE")]
    length: Option<Size>,
    /// Length of one run, or 'once' for --length bytes once, however long that takes; a --job has
    /// its own length, and loads of many files go through all files once
    #[arg(long, value_name = "TIME", default_value = "5s")]
    runtime: Runtime,
    /// Allow Takeup to destroy what PATH holds
    #[arg(long)]
    destructive: bool,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Default length of one run, in bytes.
const LENGTH_BYTES: u64 = 1 << 30;

impl DiskArgs {
    /// Options that replace those of the job.
    fn sets(&self) -> Vec<String> {
        let length = self.length.filter(|_| self.job.is_some());
        let length = length.map(|length| format!("size={}", length.0));
        self.job_set.iter().cloned().chain(length).collect()
    }

    /// Whether there is a load of many files.
    fn has_files(&self) -> bool {
        self.load.iter().any(|load| load.is_of_files())
    }
}

const QUEUE_HEADING: &str = "Settings of the queue";

/// Settings of the queues of the disks behind PATH.
#[derive(Args, Debug)]
struct QueueArgs {
    /// Schedulers of the disk
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    scheduler: Vec<String>,
    /// Merge requests: always (0), only where that costs nothing (1), never (2)
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    nomerges: Vec<String>,
    /// Largest request at the disk in KiB
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    max_sectors_kb: Vec<String>,
    /// Read-ahead in KiB of the device that PATH lies on, for --cache buffered
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    read_ahead_kb: Vec<String>,
    /// Requests that may wait in the queue of the disk
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    nr_requests: Vec<String>,
    /// Whether the kernel flushes the disk's cache: 'write back' or 'write through'; without
    /// flushes a power loss may destroy data that were reported as safe
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = QUEUE_HEADING)]
    write_cache: Vec<String>,
}

impl QueueArgs {
    /// The settings as typed, in the order of the columns.
    fn typed(&self) -> [(SettingKind, &[String]); 6] {
        [
            (SettingKind::WriteCache, &self.write_cache),
            (SettingKind::Scheduler, &self.scheduler),
            (SettingKind::NoMerges, &self.nomerges),
            (SettingKind::MaxSectors, &self.max_sectors_kb),
            (SettingKind::Requests, &self.nr_requests),
            (SettingKind::ReadAhead, &self.read_ahead_kb),
        ]
    }

    fn factors(&self, paths: &[PathBuf]) -> Result<Vec<Factor>, DiskError> {
        if self.typed().iter().all(|(_, typed)| typed.is_empty()) {
            return Ok(Vec::new());
        }
        let device = device_behind(paths)?;
        let one = |(kind, typed)| queue::factor(kind, typed, &device).transpose();
        let factors: Result<Vec<Factor>, QueueError> =
            self.typed().into_iter().filter_map(one).collect();
        Ok(factors?)
    }
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

impl DiskLoad {
    fn is_of_files(self) -> bool {
        matches!(self, DiskLoad::Readfiles | DiskLoad::Writefiles)
    }
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

/// Runs the command.
pub fn run(arguments: &DiskArgs) -> ExitCode {
    end(measure(arguments), "bench disk", arguments.experiment.form())
}

fn measure(arguments: &DiskArgs) -> Result<Outcome, Failure> {
    let sets = arguments.sets();
    let wanted = JobRequest { path: arguments.path.as_deref(), sets: &sets };
    let read = |job: &PathBuf| UserJob::read(job, wanted);
    let job = arguments.job.as_ref().map(read).transpose().map_err(failure)?;
    if let (Some(file), Some(job)) = (&arguments.job, &job) {
        say_changes(file, job, arguments.path.as_deref());
    }
    let plan = match arguments.experiment.plan_from_file("disk")? {
        Some(plan) => plan,
        None => plan(arguments, job.as_ref())?,
    };
    let permission =
        if arguments.destructive { Permission::Destructive } else { Permission::KeepData };
    super::experiment(plan, &arguments.experiment, |plan, _| {
        DiskExecutor::new(plan, job, permission, service::state::journal().as_deref())
            .map_err(failure)
    })
}

/// Reports the differences between the job file and what is run.
fn say_changes(file: &Path, job: &UserJob, path: Option<&Path>) {
    let shown = |path: &Path| escape_path(path);
    let say = |text: String| {
        crate::standard_error::to_standard_error(&format!("takeup: job {}: {text}\n", shown(file)));
    };
    if let (Some(other), Some(path)) = (job.replaced(), path) {
        say(format!("works on {}, not on {}", shown(path), shown(other)));
    }
    let mut reasons: Vec<&str> = Vec::new();
    for (_, why) in job.left_out() {
        if !reasons.contains(why) {
            reasons.push(why);
        }
    }
    for why in reasons {
        let of_it = job.left_out().iter().filter(|(_, own)| *own == why);
        let names: Vec<&str> = of_it.map(|(name, _)| name.as_str()).collect();
        say(format!("ignores {}: {why}", names.join(", ")));
    }
}

/// The error for a job with refused lines: each of them, with what to do.
fn refused(path: &Path, lines: &[RefusedLine]) -> Failure {
    let one = |line: &RefusedLine| match line.number {
        Some(number) => format!("line {number}: {line}"),
        None => format!("--job-set {line}"),
    };
    let count = counted(lines.len() as u64, "line is", "lines are");
    let message = format!("job {}: {count} refused", path.display());
    Failure::of(message, None).with_details(lines.iter().map(one).collect())
}

/// The error with its hint.
pub fn failure(error: DiskError) -> Failure {
    if let DiskError::Job { path, source: JobError::Lines { lines } } = &error {
        return refused(path, lines);
    }
    let hint = match &error {
        DiskError::NoFio => "install the package fio of your distribution",
        DiskError::Safety(error) => match safety_hint(error) {
            Some(hint) => hint,
            None => return Failure::new(error, None),
        },
        DiskError::TwoKinds => "measure readfiles and writefiles in experiments of their own",
        DiskError::Job { source, .. } => job_hint(source),
        DiskError::Queue(error) => return Failure::new(error, Some(queue_hint(error))),
        _ => return Failure::new(&error, None),
    };
    Failure::new(&error, Some(hint.to_owned()))
}

fn safety_hint(error: &SafetyError) -> Option<&'static str> {
    Some(match error {
        SafetyError::HoldsData { .. } => {
            "add --destructive to destroy what it holds, or name a PATH that does not exist"
        }
        SafetyError::InUse { .. } => {
            "use another device: Takeup never writes to one that is in use"
        }
        SafetyError::Beyond { .. } => "set size= and offset= so that they end within the file",
        SafetyError::Empty { .. } => "fill it first, or measure writes",
        SafetyError::NoFolder { .. } => {
            "name a folder: readfiles, writefiles and jobs that name no file make their files in it"
        }
        SafetyError::Kind { path } if path.is_dir() => {
            "use --load readfiles or writefiles for a folder"
        }
        SafetyError::Room { .. } | SafetyError::Files { .. } => {
            "use fewer or smaller files, or another folder"
        }
        SafetyError::Names { .. } => "use several sections with fewer files each",
        _ => return None,
    })
}

fn job_hint(error: &JobError) -> &'static str {
    match error {
        JobError::Read(_) => "name a job file of fio",
        JobError::Lines { .. } | JobError::NoSection => {
            "see docs/bench.md for the options that a job may use"
        }
        JobError::NoPlace { .. } => {
            "add PATH: a file or device to work on, or a folder for the files (fio would use its \
             working folder)"
        }
        JobError::NotUsed { .. } => {
            "leave PATH out, or set --job-set filename=FILE for all sections"
        }
        JobError::NoSize { .. } => "set size= or filesize= in bytes",
    }
}

fn queue_hint(error: &QueueError) -> String {
    let hint = match error {
        QueueError::Settings(error) => {
            return service::state::guard_hint(error).unwrap_or_else(|| match error {
                GuardError::Busy { .. } => "wait until it ends, then try again".to_owned(),
                _ => "run it as root: only root can change settings of a queue".to_owned(),
            });
        }
        QueueError::NotOffered { what, .. } if what.starts_with("scheduler") => {
            "load the module of the scheduler first, for example: modprobe bfq"
        }
        QueueError::NotKept { .. } => "look at udev rules and tuned: they set such values, too",
        QueueError::Multipath { .. } => {
            "set max_sectors_kb in multipath.conf: lowering it here makes the paths fail"
        }
        QueueError::NotTaken { .. } => "choose a value that the kernel accepts",
        QueueError::NotOffered { .. } | QueueError::Level(_) | QueueError::NoSetting { .. } => {
            "see /sys/block/*/queue for the settings and their values"
        }
    };
    hint.to_owned()
}

fn plan(arguments: &DiskArgs, job: Option<&UserJob>) -> Result<Plan, Failure> {
    let path = arguments.path.clone().unwrap_or_default();
    let path = std::path::absolute(&path).unwrap_or(path);
    let mut paths = job.map_or_else(|| vec![path], UserJob::paths);
    if paths.is_empty() {
        // For a job whose engines open no file.
        paths.push(PathBuf::from("no file"));
    }
    let names_files = !arguments.files.is_empty() || !arguments.file_size.is_empty();
    if names_files && (job.is_some() || !arguments.has_files()) {
        return Err(Failure::of(
            "--files and --file-size are for loads of many files",
            Some("add --load readfiles,writefiles"),
        ));
    }
    // Restore first: settings that a killed experiment left are not the ones in force.
    service::state::recovered().map_err(|error| failure(QueueError::from(error).into()))?;
    let mut factors: Vec<Factor> = match job {
        Some(_) => Vec::new(),
        None => factors(arguments),
    };
    factors.extend(arguments.queue.factors(&paths).map_err(failure)?);
    let title = match &arguments.job {
        Some(job) if arguments.experiment.title.is_empty() => {
            let sets: String = arguments.sets().iter().map(|set| format!(" {set}")).collect();
            format!("fio {}{sets}", job.display())
        }
        _ => arguments.experiment.title.clone(),
    };
    Ok(Plan {
        kind: "disk".to_owned(),
        title,
        paths: paths.iter().map(|path| path.display().to_string()).collect(),
        length_bytes: arguments.length.map_or(LENGTH_BYTES, |length| length.0),
        seed: arguments.experiment.seed(),
        stop: arguments.experiment.stop(),
        random_reads: 0,
        run_seconds: match arguments.runtime {
            Runtime::Once => 0.0,
            Runtime::For(span) => span.0,
        },
        commands: None,
        factors,
    })
}

/// Defaults for loads of many files.
const FILES: u64 = 1000;
const FILE_BYTES: u64 = 16 << 10;

fn factors(arguments: &DiskArgs) -> Vec<Factor> {
    // The applications choose the block size, so here it is a load and not a setting.
    let blocks =
        factor("block_bytes", numbers(arguments.block_size.iter().map(|size| size.0)), None);
    let of_files = |name, given: Vec<u64>, usual| {
        let given = if given.is_empty() { vec![usual] } else { given };
        factor(name, numbers(given), None).filter(|_| arguments.has_files())
    };
    let sizes: Vec<u64> = arguments.file_size.iter().map(|size| size.0).collect();
    [
        factor("load", names(&arguments.load), None),
        of_files("files", arguments.files.clone(), FILES),
        of_files("file_bytes", sizes, FILE_BYTES),
        factor("read_percent", numbers(arguments.read_percent.iter().copied()), None),
        blocks.map(|factor| Factor { role: Role::Load, ..factor }),
        factor("fsync_every", numbers(arguments.fsync.iter().copied()), None),
        factor("engine", names(&arguments.engines), None),
        factor("cache", names(&arguments.cache), None),
        factor("pages", names(&arguments.pages), None),
        factor("jobs", numbers(arguments.jobs.iter().copied()), None),
        factor("depth", numbers(arguments.depth.iter().copied()), None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn names(values: &[impl ValueEnum]) -> Vec<Level> {
    let name = |value: &_| {
        let value = ValueEnum::to_possible_value(value);
        Level::Text(value.map_or(String::new(), |value| value.get_name().to_owned()))
    };
    values.iter().map(name).collect()
}
