//! `takeup bench disk`: random and mixed loads by the real fio, on a file, a device or many files,
//! with the devices watched meanwhile.
//!
//! fio generates the loads; this module has no generator of its own. A cell becomes a
//! command line of fio; what it prints (JSON+) and what the kernel counted of the device in the
//! same time stand side by side in the record of the run.

mod error;
pub mod fio;
mod job;
pub(crate) mod load;
mod operations;
mod own_file;
mod places;
pub mod process;
pub mod queue;
mod ramp;
pub mod safety;
mod targets;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flow::cancel::Cancel;
use storage::layers::{Layer, Storage};

use crate::memory;
use crate::read::Pages;
use base::format::{counted, duration};
use experiment::environment;
use experiment::observed::{About, Measures};
use experiment::plan::{Plan, Stop};
use experiment::record::{Cell, RunRecord};
use experiment::run::gate::{CommonStart, StartsTogether};
use experiment::run::neighbours::{MachineCounters, Neighbours};
use experiment::run::{Executor, Unfinished};
use fio::FioRun;
use load::Load;
use queue::Queues;
use ramp::{Ramp, RampWatch};
use safety::Permission;
use targets::Targets;
use work::Work;

pub use error::DiskError;
pub use job::{JobError, LineFault, RefusedLine, Room};
pub use places::{JobRequest, UserJob};
pub use targets::{OwnFolder, check_room, fio_name};

/// Runs fio as the cells say.
#[derive(Debug)]
pub struct DiskExecutor {
    work: Work,
    device: Storage,
    /// Held until the end.
    targets: Targets,
    length_bytes: u64,
    run_seconds: f64,
    version: String,
    queues: Queues,
    /// What would keep its settings over a restart.
    restart: BTreeMap<String, String>,
    /// What is known of the last run, where it did not end.
    unfinished: Option<Unfinished>,
    start: CommonStart,
}

/// fio takes a part of a second to start and to end, in which nothing moves. What is known of a run
/// that was stopped leaves that out, so that its bound is never too low.
const FIO_START_SECONDS: f64 = 0.5;

impl DiskExecutor {
    /// Checks whether all that a plan asks for may be done. `job` is the user's own, which then is
    /// the only load; `journal` keeps the settings that are to be put back, as it does for reading.
    pub fn new(
        plan: &Plan,
        job: Option<UserJob>,
        permission: Permission,
        journal: Option<&Path>,
    ) -> Result<DiskExecutor, DiskError> {
        let (mut work, targets) = Work::of(plan, job, permission)?;
        let version = process::version()?;
        let device = device_behind(&work.paths())?;
        work.begin()?;
        let queues = Queues::new(plan, &device, journal)?;
        Ok(DiskExecutor {
            work,
            targets,
            length_bytes: plan.length_bytes,
            run_seconds: plan.run_seconds,
            version,
            queues,
            restart: queue::restart(plan, &device),
            device,
            unfinished: None,
            start: CommonStart::default(),
        })
    }

    /// What a run depends on besides its cell, with the settings that are in force.
    fn environment(&self) -> BTreeMap<String, String> {
        let paths = self.work.paths();
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut environment = environment::of(Path::new(&names.join(", ")), &self.device);
        environment.insert("fio".to_owned(), self.version.clone());
        environment.extend(self.restart.clone());
        // Those that are typed for a recommended setting.
        environment.insert("queues".to_owned(), queue::names(&self.device).join(" "));
        let own = |path: &str| {
            self.device.queue.as_ref().is_some_and(|queue| Path::new(path).starts_with(queue))
        };
        // Of disks below a stack, whose queues are others than that of the stack itself.
        environment.extend(self.queues.in_force().into_iter().filter(|(path, _)| !own(path)));
        environment
    }

    /// What is known of a run that was stopped after so many seconds: what it was to move, and of
    /// direct requests no more than the device has moved. How long fio takes to make a file first
    /// is not known, and the bytes of the user's own job are known only after its end.
    fn unfinished_of(
        &self,
        load: Option<&Load>,
        seconds: f64,
        device_bytes: Option<u64>,
    ) -> Option<Unfinished> {
        let load = load?;
        if self.targets.makes_one() && load.reads() {
            return None;
        }
        let seconds = seconds - FIO_START_SECONDS;
        let is_whole = self.run_seconds <= 0.0 || load.ends_by_itself();
        let whole = is_whole.then(|| load.bytes_of(self.length_bytes));
        let device = device_bytes.filter(|_| load.direct);
        let bytes = whole.into_iter().chain(device).min()?;
        (seconds > 0.0 && bytes > 0).then_some(Unfinished { bytes, seconds })
    }
}

/// What a run of a load is about; not known for a job.
fn about(load: Option<&Load>) -> About {
    match load {
        Some(load) if load.trims() => About::Discarding,
        Some(load) if !load.writes() => About::Reading,
        Some(load) if !load.reads() => About::Writing,
        _ => About::Mixed,
    }
}

/// Files in a second, where a run went through many.
fn of_files(load: Option<&Load>, run: &FioRun) -> Measures {
    let mut measures = Measures::new();
    if let Some(files) = load.and_then(|load| load.files)
        && run.seconds > 0.0
    {
        let bytes = files.bytes as f64;
        let rate = run.bytes() as f64 / bytes / run.seconds;
        measures.insert("files_per_second".to_owned(), rate);
        measures.insert("written_file_bytes".to_owned(), bytes);
    }
    measures
}

/// Asked for and not had; where it is the default, it is known for whom it matters.
const NO_HUGE_PAGES: &str = "fio's memory has no huge pages, which need a glibc from 2.35 and \
                             a kernel that gives them: large direct requests are slower without";

/// How long runs of a fixed length take at the least; of others nothing is known before the first.
fn foretold(cells: usize, run_seconds: f64, stop: &Stop) -> Option<String> {
    let one = run_seconds + FIO_START_SECONDS;
    let (round, repeats) = (cells as f64 * one, stop.repeats_min);
    (run_seconds > 0.0 && cells > 0).then(|| {
        let budget = stop.budget_seconds;
        let enough = if repeats as f64 * round > budget {
            format!("; the budget of {} is over before (--budget)", duration(budget))
        } else {
            String::new()
        };
        format!(
            "{} of {} take {} or more, {} each{enough}",
            counted(repeats, "repeat", "repeats"),
            counted(cells as u64, "combination", "combinations"),
            duration(repeats as f64 * round),
            duration(one),
        )
    })
}

impl Executor for DiskExecutor {
    type Error = DiskError;

    fn applies(&self, cell: &Cell) -> bool {
        self.queues.applies(cell) && Load::from_cell(cell).is_ok_and(|load| load.is_sensible())
    }

    fn neighbours(&self) -> Box<dyn Neighbours> {
        Box::new(MachineCounters::watch(None))
    }

    fn foretell(&mut self, cells: &[Cell], stop: &Stop) -> Vec<String> {
        let mut said = self.queues.left_out();
        said.extend(self.work.note());
        said.extend(foretold(cells.len(), self.run_seconds, stop));
        said
    }

    fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, DiskError> {
        self.unfinished = None;
        let load = self.work.load(cell)?;
        let load = load.as_ref();
        self.targets.drop_cached(self.length_bytes);
        if load.is_none_or(|load| !load.direct) {
            memory::take_back(self.length_bytes);
        }
        self.work.prepare(cell, cancel)?;
        let mut arguments = self.work.arguments(cell, self.length_bytes, self.run_seconds)?;
        if load.is_some() && process::knows_slat_percentiles(&self.version) {
            arguments.extend(["--slat_percentiles=1", "--clat_percentiles=1"].map(OsString::from));
        }
        self.queues.apply(cell)?;
        let environment = self.environment();
        // The user's own job runs as it is.
        let pages = load.map_or(Pages::Small, |load| load.pages);
        let ramp = self.work.job().map_or(Ramp::None, UserJob::ramp);
        self.start.wait(cancel)?;
        let mut watch = RampWatch::new(&self.device, ramp);
        let begun = Instant::now();
        let text = self.work.text();
        let output = process::run(&arguments, text, pages, &mut || watch.look(), cancel);
        let ended = begun.elapsed();
        if output.is_err() {
            let moved = watch.device_bytes();
            self.unfinished = self.unfinished_of(load, begun.elapsed().as_secs_f64(), moved);
        }
        let output = output?;
        self.queues.check(cell)?;
        let run = FioRun::parse(&output.document)?;
        self.start.late(ended.as_secs_f64() - run.seconds);
        let (mut measures, told) = watch.measures(about(load), run.bytes());
        // Of this process, which only waits.
        measures.remove("processor_ns_per_byte");
        measures.extend(operations::measures(&run));
        measures.extend(of_files(load, &run));
        let mut notes: Vec<String> = told.map(str::to_owned).into_iter().collect();
        if let (Pages::Huge, Some(bytes)) = (pages, output.huge_page_bytes) {
            measures.insert("huge_page_bytes".to_owned(), bytes as f64);
            if bytes == 0 {
                notes.push(NO_HUGE_PAGES.to_owned());
            }
        }
        let mut latency = run.read.latency.clone();
        latency.merge(&run.write.latency);
        latency.merge(&run.trim.latency);
        Ok(RunRecord {
            bytes: run.bytes(),
            seconds: run.seconds,
            latency: Some(latency),
            operations: operations::of(&run),
            measures,
            environment,
            notes,
            ..RunRecord::default()
        })
    }

    fn finish(&mut self) -> Result<(), DiskError> {
        let put_back = self.queues.put_back();
        self.work.remove_made()?;
        self.targets.remove_made()?;
        put_back
    }
}

impl StartsTogether for DiskExecutor {
    fn start_together(&mut self, start: CommonStart) {
        self.start = start;
    }
}

/// The storage below these paths, together: the disks of all of them. Below the folder of a path
/// where there is nothing yet.
///
/// # Errors
/// When one cannot be looked at.
pub fn device_behind(paths: &[PathBuf]) -> Result<Storage, DiskError> {
    let mut found: Vec<Storage> = Vec::new();
    for path in paths {
        let storage = if path.exists() {
            Storage::of(path)?
        } else {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Storage::of(folder.unwrap_or(Path::new(".")))?
        };
        if !found.contains(&storage) {
            found.push(storage);
        }
    }
    Ok(match found.len() {
        1 => found.remove(0),
        _ => together(&found),
    })
}

/// Several as one, whose counters are the sum of theirs. It has neither a read-ahead nor a queue of
/// its own.
fn together(all: &[Storage]) -> Storage {
    let mut layers: Vec<Layer> = Vec::new();
    for layer in all.iter().flat_map(|storage| &storage.layers) {
        if !layers.contains(layer) {
            layers.push(layer.clone());
        }
    }
    let names: Vec<&str> = all.iter().map(|storage| storage.name.as_str()).collect();
    Storage { name: names.join(", "), read_ahead: None, queue: None, layers }
}

#[cfg(test)]
mod tests;
