//! `takeup bench disk`: random and mixed loads by the real fio, with the device watched meanwhile.
//!
//! Generating such loads is fio's job, and nothing here writes another generator. A cell becomes a
//! command line of fio; what it prints (JSON+) and what the kernel counted of the device in the
//! same time stand side by side in the record of the run.

pub mod fio;
pub mod safety;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use device::backing::{BackingDevice, BackingError};
use flow::cancel::Cancel;

use crate::environment;
use crate::observed::{About, Before};
use crate::plan::Plan;
use crate::record::{Cell, Level, RunRecord};
use crate::run::Executor;
use fio::{Direction, FioRun};
use safety::{Access, Found, JobFile, Permission, SafetyError};

/// Why an experiment with fio cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The path is left alone.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// The device behind the path is not known.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// There is no fio.
    #[error("fio is not installed")]
    NoFio,
    /// fio cannot be started.
    #[error("start fio")]
    Start {
        /// Why.
        source: std::io::Error,
    },
    /// The user's job cannot be run safely.
    #[error("job {}: {why}", path.display())]
    Job {
        /// The job file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The plan asks for something that cannot be.
    #[error("{0}")]
    Plan(String),
}

/// Longest output of fio that is read; its bins take some 100 kB for each job.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// Runs fio as the cells say.
#[derive(Debug)]
pub struct DiskExecutor {
    path: PathBuf,
    device: BackingDevice,
    found: Found,
    length_bytes: u64,
    run_seconds: f64,
    job: Option<PathBuf>,
    version: String,
}

impl DiskExecutor {
    /// Looks whether all that a plan asks for may be done. `job` is the user's own job file, which
    /// then is the only cell.
    pub fn new(
        plan: &Plan,
        job: Option<&Path>,
        permission: Permission,
    ) -> Result<DiskExecutor, DiskError> {
        let path = PathBuf::from(plan.paths.first().map_or("", String::as_str));
        if plan.paths.len() != 1 {
            return Err(DiskError::Plan("fio is run on one path at a time".to_owned()));
        }
        let access = match job {
            Some(job) => job_access(job, &path)?,
            None => {
                let cells = plan.cells();
                let loads: Result<Vec<Load>, String> = cells.iter().map(Load::from_cell).collect();
                let loads = loads.map_err(DiskError::Plan)?;
                match loads.iter().any(|load| load.writes()) {
                    true => Access::Writes,
                    false => Access::Reads,
                }
            }
        };
        let found = safety::check(&path, access, permission)?;
        let behind = match found {
            Found::Something => path.clone(),
            Found::Nothing => path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .map_or_else(|| PathBuf::from("."), Path::to_path_buf),
        };
        Ok(DiskExecutor {
            device: BackingDevice::of(&behind)?,
            path,
            found,
            length_bytes: plan.length_bytes,
            run_seconds: plan.run_seconds,
            job: job.map(Path::to_path_buf),
            version: fio_version()?,
        })
    }

    fn arguments(&self, cell: &Cell) -> Result<Vec<OsString>, String> {
        if let Some(job) = &self.job {
            let mut file = OsString::from("--filename=");
            file.push(&self.path);
            return Ok(vec!["--output-format=json+".into(), file, job.clone().into_os_string()]);
        }
        let load = Load::from_cell(cell)?;
        let length = match self.found {
            Found::Something => self.length_bytes.min(length_of(&self.path)?),
            Found::Nothing => self.length_bytes,
        };
        let mut arguments = load.arguments(length, self.run_seconds);
        let mut file = OsString::from("--filename=");
        // A colon would be the end of a name to fio.
        file.push(self.path.to_string_lossy().replace(':', "\\:"));
        arguments.push(file);
        Ok(arguments)
    }
}

impl Executor for DiskExecutor {
    fn applies(&self, cell: &Cell) -> bool {
        Load::from_cell(cell).is_ok_and(|load| load.is_sensible())
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, String> {
        let arguments = self.arguments(cell)?;
        let about = match Load::from_cell(cell) {
            Ok(load) if self.job.is_none() && !load.writes() => About::Reading,
            Ok(load) if self.job.is_none() && !load.reads() => About::Writing,
            _ => About::Mixed,
        };
        if let Ok(file) = File::open(&self.path) {
            let _ = rustix::fs::fdatasync(&file);
            device::file::drop_cached(&file, 0, self.length_bytes);
        }
        let mut environment = environment::of(&self.path, &self.device);
        environment.insert("fio".to_owned(), self.version.clone());
        let before = Before::look(&self.device);
        let output = run_fio(&arguments, cancel)?;
        let run = FioRun::parse(&output).map_err(|error| error.to_string())?;
        let mut measures = before.measures(&self.device, about, run.bytes());
        // Of this process, which only waits.
        measures.remove("processor_ns_per_byte");
        let seconds = run.seconds();
        put_fio(&mut measures, &run, seconds);
        let mut latency = run.read.latency.clone();
        latency.merge(&run.write.latency);
        Ok(RunRecord {
            bytes: run.bytes(),
            seconds,
            latency: Some(latency),
            measures,
            environment,
            ..RunRecord::default()
        })
    }

    fn finish(&mut self) -> Result<(), String> {
        if self.found == Found::Nothing && self.path.is_file() {
            let removed = std::fs::remove_file(&self.path);
            removed.map_err(|error| format!("remove {}: {error}", self.path.display()))?;
            self.found = Found::Something;
        }
        Ok(())
    }
}

fn put_fio(measures: &mut BTreeMap<String, f64>, run: &FioRun, seconds: f64) {
    let seconds = seconds.max(1e-9);
    let mut put = |name: String, value: f64| {
        measures.insert(name, value);
    };
    let both = Direction {
        bytes: run.bytes(),
        requests: run.read.requests + run.write.requests,
        seconds,
        latency: {
            let mut both = run.read.latency.clone();
            both.merge(&run.write.latency);
            both
        },
        latency_sum_ns: run.read.latency_sum_ns + run.write.latency_sum_ns,
    };
    for (prefix, direction) in [("", &both), ("read_", &run.read), ("write_", &run.write)] {
        if direction.requests == 0 {
            continue;
        }
        put(format!("fio_{prefix}iops"), direction.requests as f64 / seconds);
        let mean = direction.latency_sum_ns / direction.requests as f64;
        put(format!("fio_{prefix}clat_mean_ns"), mean);
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(ns) = direction.latency.quantile_ns(share) {
                put(format!("fio_{prefix}clat_{name}_ns"), ns as f64);
            }
        }
    }
    put("fio_processor_percent".to_owned(), run.processor_percent);
}

/// One load.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Load {
    engine: String,
    pattern: String,
    read_percent: u64,
    direct: bool,
    block_bytes: u64,
    depth: u64,
    jobs: u64,
    fsync_every: u64,
}

const ENGINES: &[&str] = &["sync", "psync", "libaio", "io_uring"];
const PATTERNS: &[&str] =
    &["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim"];

impl Load {
    fn from_cell(cell: &Cell) -> Result<Load, String> {
        let word = |name: &str, usual: &str, known: &[&str]| match cell.get(name) {
            Some(Level::Text(text)) if known.contains(&text.as_str()) => Ok(text.clone()),
            Some(level) => {
                Err(format!("{name} {}: known are {}", level.shown(name), known.join(", ")))
            }
            None => Ok(usual.to_owned()),
        };
        let number =
            |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| match cell.get(name) {
                Some(Level::Number(number)) if range.contains(number) => Ok(*number),
                Some(level) => Err(format!(
                    "{name} {}: {} to {} is possible",
                    level.shown(name),
                    range.start(),
                    range.end()
                )),
                None => Ok(usual),
            };
        Ok(Load {
            engine: word("engine", "psync", ENGINES)?,
            pattern: word("load", "randread", PATTERNS)?,
            read_percent: number("read_percent", 50, 0..=100)?,
            direct: word("cache", "direct", &["direct", "buffered"])? == "direct",
            block_bytes: number("block_bytes", 4096, 512..=(64 << 20))?,
            depth: number("depth", 1, 1..=4096)?,
            jobs: number("jobs", 1, 1..=256)?,
            fsync_every: number("fsync_every", 0, 0..=1_000_000)?,
        })
    }

    fn writes(&self) -> bool {
        !matches!(self.pattern.as_str(), "read" | "randread")
    }

    fn reads(&self) -> bool {
        matches!(self.pattern.as_str(), "read" | "randread" | "rw" | "randrw")
    }

    /// Calls that wait have one request in flight, whatever is asked for.
    fn is_sensible(&self) -> bool {
        self.depth == 1 || matches!(self.engine.as_str(), "libaio" | "io_uring")
    }

    fn arguments(&self, length_bytes: u64, seconds: f64) -> Vec<OsString> {
        let mut all = vec![
            "--name=takeup".to_owned(),
            "--output-format=json+".to_owned(),
            "--group_reporting".to_owned(),
            "--random_generator=tausworthe64".to_owned(),
            "--randrepeat=0".to_owned(),
            "--refill_buffers".to_owned(),
            format!("--ioengine={}", self.engine),
            format!("--rw={}", self.pattern),
            format!("--bs={}", self.block_bytes),
            format!("--iodepth={}", self.depth),
            format!("--numjobs={}", self.jobs),
            format!("--direct={}", u8::from(self.direct)),
            format!("--size={}", length_bytes / self.block_bytes * self.block_bytes),
        ];
        if matches!(self.pattern.as_str(), "rw" | "randrw") {
            all.push(format!("--rwmixread={}", self.read_percent));
        }
        if self.fsync_every > 0 {
            all.push(format!("--fsync={}", self.fsync_every));
        }
        if seconds > 0.0 {
            let milliseconds = (seconds * 1e3).round().max(1.0) as u64;
            all.extend(["--time_based".to_owned(), format!("--runtime={milliseconds}ms")]);
        }
        all.into_iter().map(OsString::from).collect()
    }
}

fn job_access(job: &Path, path: &Path) -> Result<Access, DiskError> {
    let wrong = |why: String| DiskError::Job { path: job.to_owned(), why };
    let text = std::fs::read_to_string(job).map_err(|error| wrong(error.to_string()))?;
    let JobFile { files, writes, opaque } = safety::read_job(&text);
    if let Some(line) = opaque.first() {
        return Err(wrong(format!("{line:?} reaches further than PATH")));
    }
    if let Some(other) = files.iter().find(|file| Path::new(file) != path) {
        return Err(wrong(format!("it names {other}: name that as PATH, or take the line out")));
    }
    Ok(if writes { Access::Writes } else { Access::Reads })
}

fn fio_version() -> Result<String, DiskError> {
    match Command::new("fio").arg("--version").stderr(Stdio::null()).output() {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DiskError::NoFio),
        Err(source) => Err(DiskError::Start { source }),
    }
}

fn length_of(path: &Path) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let length = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(failed)
}

/// Runs fio and returns what it printed; it is ended when the experiment is.
fn run_fio(arguments: &[OsString], cancel: &Cancel) -> Result<Vec<u8>, String> {
    let mut child = Command::new("fio")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("start fio: {error}"))?;
    let output = reader(child.stdout.take());
    let errors = reader(child.stderr.take());
    let status = wait(&mut child, cancel)?;
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    let (output, errors) = (join(output), join(errors));
    match status.success() {
        true => Ok(output),
        false => {
            let said = String::from_utf8_lossy(&errors);
            let line = said.lines().find(|line| line.contains("fio:")).unwrap_or("it failed");
            Err(format!("fio: {}", line.trim_start_matches("fio: ")))
        }
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What is cut off here fails in the parser.
            let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child, cancel: &Cancel) -> Result<std::process::ExitStatus, String> {
    const STEP: Duration = Duration::from_millis(20);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(format!("wait for fio: {error}")),
        }
        if let Err(stopped) = cancel.check() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(stopped.to_string());
        }
        std::thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests;
