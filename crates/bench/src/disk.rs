//! `takeup bench disk`: random and mixed loads by the real fio, with the device watched meanwhile.
//!
//! Generating such loads is fio's job, and nothing here writes another generator. A cell becomes a
//! command line of fio; what it prints (JSON+) and what the kernel counted of the device in the
//! same time stand side by side in the record of the run.

mod error;
pub mod fio;
mod job;
mod load;
mod operations;
mod process;
pub mod queue;
mod ramp;
pub mod safety;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flow::cancel::Cancel;
use host::layers::Storage;

use crate::environment;
use crate::memory;
use crate::observed::About;
use crate::plan::{Plan, Stop};
use crate::read::Pages;
use crate::record::{Cell, CellError, RunRecord};
use crate::run::{Executor, Unfinished};
use fio::FioRun;
use job::Job;
use load::Load;
use queue::Queues;
use ramp::{Ramp, Watch};
use safety::{Access, Found, Permission, Permit, SafetyError};

pub use error::DiskError;
pub use job::{JobError, LineFault};
pub use operations::{Operation, Operations};

/// Runs fio as the cells say.
#[derive(Debug)]
pub struct DiskExecutor {
    path: PathBuf,
    device: Storage,
    /// Held until the end.
    _permit: Permit,
    found: Found,
    access: Access,
    length_bytes: u64,
    run_seconds: f64,
    job: Option<Job>,
    version: String,
    queues: Queues,
    /// What is known of the last run, where it did not end.
    unfinished: Option<Unfinished>,
}

/// fio takes a part of a second to start and to end, in which nothing moves. What is known of a run
/// that was stopped leaves that out, so that its bound is never too low.
const FIO_START_SECONDS: f64 = 0.5;

impl DiskExecutor {
    /// Looks whether all that a plan asks for may be done. `job` is the user's own job file, which
    /// then is the only load; `journal` keeps the settings that are to be put back, as it does for
    /// reading.
    pub fn new(
        plan: &Plan,
        job: Option<&Path>,
        permission: Permission,
        journal: Option<&Path>,
    ) -> Result<DiskExecutor, DiskError> {
        let path = PathBuf::from(plan.paths.first().map_or("", String::as_str));
        if plan.paths.len() != 1 {
            return Err(DiskError::OnePath);
        }
        // fio takes "-" for a pipe.
        let path = std::path::absolute(&path).unwrap_or(path);
        fio_name(&path)?;
        let job = job.map(|job| read_job(job, &path)).transpose()?;
        let access = match &job {
            Some(job) if job.writes => Access::Writes,
            Some(_) => Access::Reads,
            None => {
                let cells = plan.cells();
                let loads: Result<Vec<Load>, CellError> =
                    cells.iter().map(Load::from_cell).collect();
                let loads = loads?;
                if loads.iter().any(|load| load.writes()) { Access::Writes } else { Access::Reads }
            }
        };
        let permit = safety::check(&path, access, permission)?;
        let found = permit.found;
        if let (Some(job), Access::Reads) = (&job, access) {
            check_reach(job, &path)?;
        }
        let version = process::version()?;
        let device = device_behind(&path)?;
        let queues = Queues::new(plan, &device, journal)?;
        Ok(DiskExecutor {
            device,
            queues,
            path,
            _permit: permit,
            found,
            access,
            length_bytes: plan.length_bytes,
            run_seconds: plan.run_seconds,
            job,
            version,
            unfinished: None,
        })
    }

    /// What a run depends on besides its cell, with the settings that are in force.
    fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = environment::of(&self.path, &self.device);
        environment.insert("fio".to_owned(), self.version.clone());
        let own = |path: &str| {
            self.device.queue.as_ref().is_some_and(|queue| Path::new(path).starts_with(queue))
        };
        // Of disks below a stack, whose queues are others than that of the stack itself.
        environment.extend(self.queues.in_force().into_iter().filter(|(path, _)| !own(path)));
        environment
    }

    fn may_fill_the_cache(&self, cell: &Cell) -> bool {
        self.job.is_some() || Load::from_cell(cell).is_ok_and(|load| !load.direct)
    }

    /// Of fio's memory; a job of one's own gets what it gets.
    fn pages(&self, cell: &Cell) -> Result<Pages, CellError> {
        if self.job.is_some() { Ok(Pages::Small) } else { Pages::from_cell(cell) }
    }

    /// What is known of a run that was stopped after so many seconds: what it was to move, and of
    /// direct requests no more than the device has moved. A file that fio makes first takes a time
    /// that nobody knows, and what a job of one's own was to move, it says itself and too late.
    fn unfinished_of(
        &self,
        cell: &Cell,
        seconds: f64,
        device_bytes: Option<u64>,
    ) -> Option<Unfinished> {
        let load = Load::from_cell(cell).ok().filter(|_| self.job.is_none())?;
        if self.found == Found::Nothing && load.reads() {
            return None;
        }
        let seconds = seconds - FIO_START_SECONDS;
        let whole = (self.run_seconds <= 0.0).then(|| load.bytes_of(self.length_bytes));
        let device = device_bytes.filter(|_| load.direct);
        let bytes = whole.into_iter().chain(device).min()?;
        (seconds > 0.0 && bytes > 0).then_some(Unfinished { bytes, seconds })
    }

    fn arguments(&self, cell: &Cell) -> Result<Vec<OsString>, DiskError> {
        let name = fio_name(&self.path)?;
        let mut file = OsString::from("--filename=");
        file.push(name);
        let mut arguments: Vec<OsString> = Vec::new();
        if self.access == Access::Reads {
            arguments.push("--readonly".into());
        }
        if self.job.is_some() {
            // The job comes from standard input.
            arguments.extend(["--output-format=json+".into(), file, "-".into()]);
            return Ok(arguments);
        }
        let load = Load::from_cell(cell)?;
        let length = match self.found {
            Found::Something => self.length_bytes.min(length_of(&self.path)?),
            Found::Nothing => self.length_bytes,
        };
        arguments.extend(load.arguments(length, self.run_seconds));
        if process::knows_slat_percentiles(&self.version) {
            arguments.extend(["--slat_percentiles=1", "--clat_percentiles=1"].map(OsString::from));
        }
        arguments.push(file);
        Ok(arguments)
    }
}

/// Asked for and not had; where it is the default, it is known for whom it matters.
const NO_HUGE_PAGES: &str = "fio's memory has no huge pages, which need a glibc from 2.35 and \
                             a kernel that gives them: large direct requests are slower without";

impl Executor for DiskExecutor {
    type Error = DiskError;

    fn applies(&self, cell: &Cell) -> bool {
        self.queues.applies(cell) && Load::from_cell(cell).is_ok_and(|load| load.is_sensible())
    }

    fn foretell(&mut self, _cells: &[Cell], _stop: &Stop) -> Vec<String> {
        self.queues.left_out()
    }

    fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, DiskError> {
        self.unfinished = None;
        let arguments = self.arguments(cell)?;
        let about = match Load::from_cell(cell) {
            Ok(load) if self.job.is_none() && load.trims() => About::Discarding,
            Ok(load) if self.job.is_none() && !load.writes() => About::Reading,
            Ok(load) if self.job.is_none() && !load.reads() => About::Writing,
            _ => About::Mixed,
        };
        if let Ok(file) = File::open(&self.path) {
            let _ = interruptible::fdatasync(&file);
            device::file::drop_cached(&file, 0, self.length_bytes);
        }
        if self.may_fill_the_cache(cell) {
            memory::take_back(self.length_bytes);
        }
        self.queues.apply(cell)?;
        let environment = self.environment();
        let pages = self.pages(cell)?;
        let mut watch = Watch::new(&self.device, self.job.as_ref().map_or(Ramp::None, Job::ramp));
        let text = self.job.as_ref().map(|job| &*job.text);
        let begun = Instant::now();
        let output = process::run(&arguments, text, pages, &mut || watch.look(), cancel);
        if output.is_err() {
            let moved = watch.device_bytes();
            self.unfinished = self.unfinished_of(cell, begun.elapsed().as_secs_f64(), moved);
        }
        let output = output?;
        self.queues.check(cell)?;
        let run = FioRun::parse(&output.document)?;
        let (mut measures, told) = watch.measures(about, run.bytes());
        // Of this process, which only waits.
        measures.remove("processor_ns_per_byte");
        measures.extend(operations::measures(&run));
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
            operations: Operations::of(&run),
            measures,
            environment,
            notes,
            ..RunRecord::default()
        })
    }

    fn finish(&mut self) -> Result<(), DiskError> {
        let put_back = self.queues.put_back();
        if self.found == Found::Nothing && self.path.is_file() {
            std::fs::remove_file(&self.path)
                .map_err(|source| DiskError::Remove { path: self.path.clone(), source })?;
            self.found = Found::Something;
        }
        Ok(put_back?)
    }
}

/// The storage below a path, or below its folder where there is none yet.
///
/// # Errors
/// When neither can be looked at.
pub fn device_behind(path: &Path) -> Result<Storage, DiskError> {
    if path.exists() {
        return Ok(Storage::of(path)?);
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(Storage::of(folder.unwrap_or(Path::new(".")))?)
}

/// Longest job file that is read.
const JOB_BYTES_MAX: u64 = 1 << 20;

fn read_job(file: &Path, path: &Path) -> Result<Job, DiskError> {
    let wrong = |source: JobError| DiskError::Job { path: file.to_owned(), source };
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| wrong(error.into()))?;
    let read = opened.take(JOB_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| wrong(error.into()))?;
    let job = Job::read(&text).map_err(wrong)?;
    match job.files.iter().find(|file| Path::new(file) != path) {
        Some(other) => Err(wrong(JobError::OtherFile { other: other.clone() })),
        None => Ok(job),
    }
}

/// fio makes a file as long as its job wants it, also for reading, and then holds other bytes.
fn check_reach(job: &Job, path: &Path) -> Result<(), DiskError> {
    let file_bytes = length_of(path)?;
    let reach_bytes = job.reach_bytes(file_bytes);
    if reach_bytes > file_bytes {
        return Err(SafetyError::Beyond { path: path.to_owned(), file_bytes, reach_bytes }.into());
    }
    Ok(())
}

/// The path as fio takes it. A colon is the end of a name to fio, unless a backslash stands before.
fn fio_name(path: &Path) -> Result<OsString, DiskError> {
    let bytes = path.as_os_str().as_bytes();
    // A blank at the end fio cuts off, and has another file.
    let is_odd = |byte: &u8| *byte == b'\\' || byte.is_ascii_control();
    if bytes.iter().any(is_odd) || bytes.last().is_some_and(u8::is_ascii_whitespace) {
        return Err(SafetyError::Name { path: path.to_owned() }.into());
    }
    let mut name = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if *byte == b':' {
            name.push(b'\\');
        }
        name.push(*byte);
    }
    Ok(OsString::from_vec(name))
}

fn length_of(path: &Path) -> Result<u64, DiskError> {
    let length = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|source| DiskError::Length { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
