//! Random and mixed loads by fio.

use std::path::{Path, PathBuf};

use base::escape::escape_path;
use base::format::counted;
use experiment::plan::{Plan, Stop};
use experiment::record::{Factor, Role};
use loads::disk::queue;
use loads::disk::safety::Permission;
use loads::disk::{
    DiskError, DiskExecutor, JobError, JobRequest, RefusedLine, UserJob, device_behind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::StorageError;
use storage::settings::SettingKind;

use super::read::{CacheUse, MemoryPages};
use super::{
    BegunExperiment, ExperimentDone, ExperimentRequest, ExperimentSurroundings, factor, numbers,
    words,
};
use crate::failure::Failure;
use crate::notify::Notify;
use crate::state;

/// Which loads to measure. Every combination that makes sense is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BenchDiskRequest {
    /// A file or a block device, or a folder: takeup makes its files in it, and deletes them.
    pub path: Option<PathBuf>,
    pub loads: Vec<FioLoad>,
    /// Share of reads in rw and randrw.
    pub read_percent: Vec<u64>,
    pub engines: Vec<FioEngine>,
    /// Through the page cache, or past it.
    pub cache: Vec<CacheUse>,
    /// Bytes of one request.
    pub block_bytes: Vec<u64>,
    /// Requests in flight of one job, for libaio and `io_uring`.
    pub depth: Vec<u64>,
    /// Jobs at once.
    pub jobs: Vec<u64>,
    /// An fsync after every so many writes; 0 for none.
    pub fsync: Vec<u64>,
    /// Pages of fio's memory.
    pub pages: Vec<MemoryPages>,
    /// Files of each job, for loads of many files.
    pub files: Vec<u64>,
    /// Size of each of these files.
    pub file_bytes: Vec<u64>,
    /// Settings of the queues of the disks behind the path.
    pub queue: QueueLevels,
    /// A job file of the user, to run instead.
    pub job: Option<PathBuf>,
    /// Options of the job, `NAME=VALUE`, set in all of its sections.
    pub job_options: Vec<String>,
    /// Part of the path that is used, from its start; of a job, the size of its sections.
    pub length_bytes: Option<u64>,
    /// When a run ends.
    pub run_length: RunLength,
    /// Whether the path may lose what it holds.
    pub destructive: bool,
    /// Repeats, time limits, files.
    pub experiment: ExperimentRequest,
}

impl Default for BenchDiskRequest {
    fn default() -> BenchDiskRequest {
        BenchDiskRequest {
            path: None,
            loads: vec![FioLoad::Randread],
            read_percent: Vec::new(),
            engines: vec![FioEngine::IoUring],
            cache: vec![CacheUse::Direct],
            block_bytes: vec![4 << 10],
            depth: vec![1, 8, 32],
            jobs: vec![1],
            fsync: Vec::new(),
            pages: vec![MemoryPages::Huge],
            files: Vec::new(),
            file_bytes: Vec::new(),
            queue: QueueLevels::default(),
            job: None,
            job_options: Vec::new(),
            length_bytes: None,
            run_length: RunLength::Seconds(5.0),
            destructive: false,
            experiment: ExperimentRequest::default(),
        }
    }
}

/// Settings of a queue, with the values of `/sys/block/*/queue`; `current` is the value in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueueLevels {
    pub scheduler: Vec<String>,
    /// When requests are merged.
    pub nomerges: Vec<String>,
    /// Largest request in KiB.
    pub max_sectors_kb: Vec<String>,
    /// Read-ahead in KiB.
    pub read_ahead_kb: Vec<String>,
    /// Requests that may wait.
    pub nr_requests: Vec<String>,
    /// Whether the kernel flushes the cache of the disk.
    pub write_cache: Vec<String>,
}

impl QueueLevels {
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
        self.typed().into_iter().filter_map(one).collect()
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunLength {
    /// When its bytes were moved once, however long that takes.
    Once,
    /// After this time.
    Seconds(f64),
}

/// Loads of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FioLoad {
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

impl FioLoad {
    fn is_of_files(self) -> bool {
        matches!(self, FioLoad::Readfiles | FioLoad::Writefiles)
    }
}

/// Engines of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FioEngine {
    /// read(2) and write(2)
    Sync,
    /// pread(2) and pwrite(2)
    Psync,
    /// Asynchronous I/O of the kernel (`io_submit`)
    Libaio,
    /// `io_uring`
    IoUring,
}

/// Default length of one run, in bytes.
const LENGTH_BYTES: u64 = 1 << 30;
/// Defaults for loads of many files.
const FILES: u64 = 1000;
const FILE_BYTES: u64 = 16 << 10;

/// The plan of an experiment with fio, and the job of the user that it runs.
#[derive(Debug)]
pub struct DiskPlan {
    pub plan: Plan,
    job: Option<UserJob>,
    permission: Permission,
}

/// The plan: from its file, or of the request. Differences between the job of the user and what is
/// run are reported.
///
/// # Errors
/// When the job or the plan cannot be read or run, or a setting is not known.
pub fn plan(request: &BenchDiskRequest, notify: &dyn Notify) -> Result<DiskPlan, Failure> {
    let sets = request.sets();
    let wanted = JobRequest { path: request.path.as_deref(), sets: &sets };
    let read = |job: &PathBuf| UserJob::read(job, wanted);
    let job = request.job.as_ref().map(read).transpose().map_err(failure)?;
    if let (Some(file), Some(job)) = (&request.job, &job) {
        say_changes(file, job, request.path.as_deref(), notify);
    }
    let plan = request.experiment.plan_or("disk", || request.made(job.as_ref()))?;
    let permission =
        if request.destructive { Permission::Destructive } else { Permission::KeepData };
    Ok(DiskPlan { plan, job, permission })
}

impl DiskPlan {
    /// Runs the experiment to its end.
    ///
    /// # Errors
    /// When it cannot begin or be recorded, no run succeeded, or a setting could not be restored.
    pub fn run(
        self,
        begun: BegunExperiment,
        surroundings: &ExperimentSurroundings<'_>,
    ) -> Result<ExperimentDone, Failure> {
        begun.run(surroundings, |plan, _| self.executor(plan))
    }

    /// What runs the cells of a plan, which is this one but for what all hosts have in common.
    ///
    /// # Errors
    /// When fio is not there, or what is asked for may not be done.
    pub fn executor(self, plan: &Plan) -> Result<DiskExecutor, Failure> {
        let DiskPlan { job, permission, .. } = self;
        DiskExecutor::new(plan, job, permission, state::journal().as_deref()).map_err(failure)
    }
}

impl BenchDiskRequest {
    /// Options that replace those of the job.
    fn sets(&self) -> Vec<String> {
        let length = self.length_bytes.filter(|_| self.job.is_some());
        let length = length.map(|bytes| format!("size={bytes}"));
        self.job_options.iter().cloned().chain(length).collect()
    }

    /// Whether there is a load of many files.
    fn has_files(&self) -> bool {
        self.loads.iter().any(|load| load.is_of_files())
    }

    fn made(&self, job: Option<&UserJob>) -> Result<Plan, Failure> {
        let path = self.path.clone().unwrap_or_default();
        let path = std::path::absolute(&path).unwrap_or(path);
        let mut paths = job.map_or_else(|| vec![path], UserJob::paths);
        if paths.is_empty() {
            // For a job whose engines open no file.
            paths.push(PathBuf::from("no file"));
        }
        let names_files = !self.files.is_empty() || !self.file_bytes.is_empty();
        if names_files && (job.is_some() || !self.has_files()) {
            return Err(Failure::of(
                "--files and --file-size are for loads of many files",
                Some("add --load readfiles,writefiles"),
            ));
        }
        // Restore first: settings that a killed experiment left are not the ones in force.
        state::recovered().map_err(|error| failure(error.into()))?;
        let mut factors: Vec<Factor> = match job {
            Some(_) => Vec::new(),
            None => self.factors(),
        };
        factors.extend(self.queue.factors(&paths).map_err(failure)?);
        let usual = self.experiment.empty_plan("disk", Stop::default());
        let title = match &self.job {
            Some(job) if usual.title.is_empty() => {
                let sets: String = self.sets().iter().map(|set| format!(" {set}")).collect();
                format!("fio {}{sets}", job.display())
            }
            _ => usual.title.clone(),
        };
        Ok(Plan {
            title,
            paths: paths.iter().map(|path| path.display().to_string()).collect(),
            length_bytes: self.length_bytes.unwrap_or(LENGTH_BYTES),
            run_seconds: match self.run_length {
                RunLength::Once => 0.0,
                RunLength::Seconds(seconds) => seconds,
            },
            factors,
            ..usual
        })
    }

    fn factors(&self) -> Vec<Factor> {
        // The applications choose the block size, so here it is a load and not a setting.
        let blocks = factor("block_bytes", numbers(&self.block_bytes), None);
        let of_files = |name, given: &[u64], usual| {
            let given = if given.is_empty() { &[usual] } else { given };
            factor(name, numbers(given), None).filter(|_| self.has_files())
        };
        [
            factor("load", words(&self.loads), None),
            of_files("files", &self.files, FILES),
            of_files("file_bytes", &self.file_bytes, FILE_BYTES),
            factor("read_percent", numbers(&self.read_percent), None),
            blocks.map(|factor| Factor { role: Role::Load, ..factor }),
            factor("fsync_every", numbers(&self.fsync), None),
            factor("engine", words(&self.engines), None),
            factor("cache", words(&self.cache), None),
            factor("pages", words(&self.pages), None),
            factor("jobs", numbers(&self.jobs), None),
            factor("depth", numbers(&self.depth), None),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Reports the differences between the job file and what is run.
fn say_changes(file: &Path, job: &UserJob, path: Option<&Path>, notify: &dyn Notify) {
    let shown = |path: &Path| escape_path(path);
    let say = |text: String| notify.notify(&format!("job {}: {text}", shown(file)));
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
        DiskError::TwoKinds => "measure readfiles and writefiles in experiments of their own",
        DiskError::Job { source, .. } => job_hint(source),
        error => match safety_hint(error) {
            Some(hint) => hint,
            None => return Failure::new(error, queue_hint(error)),
        },
    };
    Failure::new(&error, Some(hint.to_owned()))
}

fn safety_hint(error: &DiskError) -> Option<&'static str> {
    Some(match error {
        DiskError::HoldsData { .. } => {
            "add --destructive to destroy what it holds, or name a PATH that does not exist"
        }
        DiskError::InUse { .. } => "use another device: Takeup never writes to one that is in use",
        DiskError::Beyond { .. } => "set size= and offset= so that they end within the file",
        DiskError::Empty { .. } => {
            "name a folder: takeup makes a file in it to read, and deletes it; or add --load write"
        }
        DiskError::NoFolder { .. } => {
            "name a folder: readfiles, writefiles and jobs that name no file make their files in it"
        }
        DiskError::Room { .. } | DiskError::Files { .. } => {
            "use a smaller --length, fewer or smaller files, or another folder"
        }
        DiskError::Names { .. } => "use several sections with fewer files each",
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

fn queue_hint(error: &DiskError) -> Option<String> {
    let hint = match error {
        DiskError::Storage(StorageError::Inspect { .. }) => return None,
        DiskError::Storage(error) => {
            return state::guard_hint(error).or_else(|| match error {
                StorageError::Busy { .. } => Some("wait until it ends, then try again".to_owned()),
                _ => Some("run it as root: only root can change settings of a queue".to_owned()),
            });
        }
        DiskError::NotOffered { what, .. } if what.starts_with("scheduler") => {
            "load the module of the scheduler first, for example: modprobe bfq"
        }
        DiskError::NotKept { .. } => "look at udev rules and tuned: they set such values, too",
        DiskError::Multipath { .. } => {
            "set max_sectors_kb in multipath.conf: lowering it here makes the paths fail"
        }
        DiskError::NotTaken { .. } => "choose a value that the kernel accepts",
        DiskError::NotOffered { .. } | DiskError::Level(_) | DiskError::NoSetting { .. } => {
            "see /sys/block/*/queue for the settings and their values"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
