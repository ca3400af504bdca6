//! `takeup bench read`: what a single stream gets from a file or a block device.
//!
//! A run reads the first bytes of a path, in order, in the way of its cell: engine, page cache or
//! direct, block size, read-ahead, requests in flight, readers that share the stream. The blocks
//! come from a ring of `flow` and go back to it at once, so that a run has the same accounting as a
//! backup and costs no copy more than it.
//!
//! Before each run Takeup drops the path's pages from the page cache, and checks that they are
//! gone. After a run through the cache a few reads at random places show what the read-ahead of
//! this cell costs other programs.

mod engine;
mod error;
mod mapped;
mod pages;
mod random_reads;
mod reading;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use device::file::{DirectAlignment, cached_bytes, drop_cached};
use flow::cancel::Cancel;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use storage::layers::Storage;
use storage::settings::{Guard, Setting, SettingKind, read_ahead_value};

use crate::memory;
use experiment::environment;
use experiment::observed::{About, Before};
use experiment::plan::Plan;
use experiment::record::{Cell, Factor, Level, RunRecord};
use experiment::run::gate::{CommonStart, StartsTogether};
use experiment::run::neighbours::{MachineCounters, Neighbours};
use experiment::run::{Executor, Unfinished};
use pages::PagesInForce;

pub use engine::{Measured, Watching, read, read_range};
pub use error::ReadBenchError;
pub use reading::{Cache, Engine, Pages, Reading};

/// A share of a path in the page cache above which a run says so: it was not read from the device.
const CACHED_SHARE_NOTED: f64 = 0.01;

/// One path that is read.
#[derive(Debug)]
struct Subject {
    path: PathBuf,
    length_bytes: u64,
    alignment: Option<DirectAlignment>,
    device: Storage,
    /// What would keep its read-ahead over a restart.
    restart: Option<(String, String)>,
}

impl Subject {
    fn open(path: &Path) -> Result<Subject, ReadBenchError> {
        let device = Storage::of(path)?;
        let opened = File::open(path);
        let file =
            opened.map_err(|source| ReadBenchError::Open { path: path.to_owned(), source })?;
        let not_readable = |what| ReadBenchError::NotReadable { path: path.to_owned(), what };
        let source = device::source::Source::open(path.as_os_str())
            .map_err(|_| not_readable("neither a file nor a block device"))?;
        let length_bytes =
            source.length_bytes.ok_or(not_readable("neither a file nor a block device"))?;
        if length_bytes == 0 {
            return Err(not_readable("empty"));
        }
        let alignment = device::file::direct_alignment(&file);
        let read_ahead = device.read_ahead.as_deref().map(Setting::read_ahead);
        let restart = environment::of_restart(SettingKind::ReadAhead, read_ahead.as_slice());
        Ok(Subject { path: path.to_owned(), length_bytes, alignment, device, restart })
    }

    fn read_ahead(&self) -> Result<Setting, ReadBenchError> {
        let setting = self.device.read_ahead.as_deref().map(Setting::read_ahead);
        setting.ok_or_else(|| ReadBenchError::NoReadAhead { path: self.path.clone() })
    }
}

/// Reads paths as the cells say.
#[derive(Debug)]
pub struct ReadExecutor {
    subjects: Vec<Subject>,
    guard: Guard,
    /// The level that stands for all others where read-ahead means nothing.
    standing_read_ahead: Option<u64>,
    length_bytes: u64,
    random_reads: u64,
    /// The measured part of the last run, where it did not end.
    unfinished: Option<Unfinished>,
    start: CommonStart,
}

impl ReadExecutor {
    /// Opens everything that a plan names and remembers every read-ahead it is going to change.
    ///
    /// The file `journal` keeps the values to be put back, and has to be where others cannot write;
    /// see [`storage::settings`]. Without one no read-ahead is changed.
    pub fn new(plan: &Plan, journal: Option<&Path>) -> Result<ReadExecutor, ReadBenchError> {
        let subjects: Result<Vec<Subject>, ReadBenchError> =
            plan.paths.iter().map(|path| Subject::open(Path::new(path))).collect();
        let subjects = subjects?;
        for cell in plan.cells() {
            Reading::from_cell(&cell)?;
        }
        let settings: Vec<Setting> = subjects
            .iter()
            .filter(|_| plan.factors.iter().any(|factor| factor.name == "read_ahead_bytes"))
            .map(Subject::read_ahead)
            .collect::<Result<_, _>>()?;
        Ok(ReadExecutor {
            guard: Guard::new(journal, &settings)?,
            standing_read_ahead: standing_read_ahead(plan),
            subjects,
            length_bytes: plan.length_bytes,
            random_reads: plan.random_reads,
            unfinished: None,
            start: CommonStart::default(),
        })
    }

    fn subject(&self, cell: &Cell) -> &Subject {
        let named = |subject: &&Subject| match cell.get("path") {
            Some(Level::Text(path)) => subject.path == Path::new(path),
            _ => true,
        };
        self.subjects.iter().find(named).unwrap_or(&self.subjects[0])
    }
}

/// The present read-ahead where it is a level of the plan, else the first level.
fn standing_read_ahead(plan: &Plan) -> Option<u64> {
    let factor = plan.factors.iter().find(|factor| factor.name == "read_ahead_bytes")?;
    let present = factor.present.as_ref().filter(|level| factor.levels.contains(level));
    match present.or(factor.levels.first())? {
        Level::Number(bytes) => Some(*bytes),
        Level::Text(_) => None,
    }
}

/// The factor for several paths: what is read is a load, not a setting.
pub fn path_factor(paths: &[String]) -> Option<Factor> {
    let levels = paths.iter().cloned().map(Level::Text).collect();
    (paths.len() > 1).then(|| Factor::new("path", levels))
}

impl Executor for ReadExecutor {
    type Error = ReadBenchError;

    fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    fn finish(&mut self) -> Result<(), ReadBenchError> {
        Ok(self.guard.put_back()?)
    }

    fn neighbours(&self) -> Box<dyn Neighbours> {
        let disk = match &self.subjects[..] {
            [one] => Some(one.path.as_path()),
            // Of several disks it is not known which one others slow.
            _ => None,
        };
        Box::new(MachineCounters::watch(disk))
    }

    fn applies(&self, cell: &Cell) -> bool {
        Reading::from_cell(cell).is_ok_and(|reading| reading.is_sensible(self.standing_read_ahead))
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, ReadBenchError> {
        let reading = Reading::from_cell(cell)?;
        self.unfinished = None;
        let pages = PagesInForce::set(reading.pages)?;
        if let Some(bytes) = reading.read_ahead_bytes {
            let setting = self.subject(cell).read_ahead()?;
            self.guard.set(&setting, &read_ahead_value(bytes))?;
        }
        let subject = self.subject(cell);
        let length_bytes = self.length_bytes.min(subject.length_bytes);
        let files = open(subject, &reading)?;
        let mut notes = pages.notes();
        notes.extend(shorter(subject, self.length_bytes));
        notes.extend(make_cold(&files[0], length_bytes));
        if reading.cache == Cache::Buffered {
            memory::take_back(length_bytes);
        }
        let mut environment = environment::of(&subject.path, &subject.device);
        environment.extend(subject.restart.clone());
        self.start.wait(cancel)?;
        let before = Before::look(&subject.device);
        let begun = Instant::now();
        let measured = engine::read(&reading, &files, length_bytes, Watching::InFull, cancel);
        if measured.is_err() {
            let seconds = begun.elapsed().as_secs_f64();
            self.unfinished = Some(Unfinished { bytes: length_bytes, seconds });
        }
        let measured = measured?;
        let subject = self.subject(cell);
        let mut measures = before.measures(&subject.device, About::Reading, measured.bytes);
        measures.insert("memory_bytes".to_owned(), measured.memory_bytes as f64);
        if reading.cache == Cache::Buffered && self.random_reads > 0 {
            drop(files);
            measures.extend(random_reads::measure(subject, self.random_reads, length_bytes)?);
        }
        Ok(RunRecord {
            bytes: measured.bytes,
            seconds: measured.seconds,
            series: Some(measured.series),
            latency: Some(measured.latency),
            stages: measured.stages,
            measures,
            environment,
            notes,
            ..RunRecord::default()
        })
    }
}

impl StartsTogether for ReadExecutor {
    fn start_together(&mut self, start: CommonStart) {
        self.start = start;
    }
}

/// One descriptor for each reader, each with a read-ahead state of its own.
fn open(subject: &Subject, reading: &Reading) -> Result<Vec<OwnedFd>, ReadBenchError> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
    if reading.cache == Cache::Direct {
        flags |= OFlags::DIRECT;
        if let Some(alignment) = subject.alignment {
            let needed_bytes = u64::from(alignment.offset_bytes);
            if !(reading.block_bytes as u64).is_multiple_of(needed_bytes) {
                let (path, block_bytes) = (subject.path.clone(), reading.block_bytes);
                return Err(ReadBenchError::Alignment { path, block_bytes, needed_bytes });
            }
        }
    }
    let one = |_| {
        let opened = base::interruptible::open(&subject.path, flags, Mode::empty());
        let path = || subject.path.clone();
        opened.map_err(|error| ReadBenchError::Open { path: path(), source: error.into() })
    };
    (0..reading.readers).map(one).collect()
}

/// What should be known of a path that holds less than a run was to read.
fn shorter(subject: &Subject, length_bytes: u64) -> Option<String> {
    (subject.length_bytes < length_bytes).then(|| {
        format!(
            "{} holds {}, less than the length of a run: a run ends with it",
            subject.path.display(),
            base::format::size(subject.length_bytes),
        )
    })
}

/// Drops the pages of a file from the cache. Returns what should be known when that did not help.
fn make_cold(file: &OwnedFd, length_bytes: u64) -> Option<String> {
    // Dirty pages cannot be dropped, and would be read from memory.
    let _ = base::interruptible::fdatasync(file);
    // All of it: what the window of an earlier run read beyond the end would not be read again, and
    // so not be counted.
    drop_cached(file, 0, 0);
    let cached = cached_bytes(file.as_fd(), 0..length_bytes)?;
    let share = cached as f64 / length_bytes.max(1) as f64;
    (share > CACHED_SHARE_NOTED).then(|| {
        format!(
            "{:.0} % of what was read could not be dropped from the page cache: another program \
             has it mapped, or it lies in memory anyhow",
            share * 100.0
        )
    })
}
