//! `takeup bench run`: commands and whole pipelines, through the shell, as levels of a factor.
//!
//! Only the command is timed, not what comes before it or the check after it. Where the bytes that
//! a command moves are known, its rate is compared, else its time. A command that fails, or whose
//! check fails, is a failed run. Meanwhile Takeup samples its programs, the pipes between them, and
//! the devices to watch.
//!
//! Programs always run through a shell: its quotes need no second parser here.

mod error;
pub mod group;
pub mod shell;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use device::tape::st::TapeFolder;
use flow::cancel::Cancel;
use machine::counters::disk::DiskCounters;
use storage::layers::Storage;

use crate::tape::counters::{Counters as DriveCounters, StatusFile};
use experiment::environment;
use experiment::observed::{Measures, put_direction};
use experiment::plan::commands::{Commands, Failing};
use experiment::plan::{Plan, Stop};
use experiment::record::{Cell, RunRecord, Value};
use experiment::run::gate::{CommonStart, StartsTogether};
use experiment::run::{Executor, Unfinished};
use group::{CommandEnd, GroupedCommand, run};
use shell::Shell;
use watch::CommandWatch;

pub use error::ProgramsError;
pub use group::CommandOutput;

/// Runs that are not this many times as long as the start of the shell get a note.
const SHELL_TIMES: f64 = 20.0;

/// Runs commands as the cells say.
pub struct ProgramsExecutor {
    commands: Commands,
    shell: Shell,
    /// 0 where that is not known.
    bytes: u64,
    watched: Vec<Watched>,
    output: CommandOutput,
    unfinished: Option<Unfinished>,
    start: CommonStart,
}

impl ProgramsExecutor {
    /// Checks whether all commands of a plan can run, without running them.
    pub fn new(plan: &Plan, output: CommandOutput) -> Result<ProgramsExecutor, ProgramsError> {
        let commands = plan.commands.clone().ok_or(ProgramsError::NoCommands)?;
        let cells = plan.cells();
        commands.check(&plan.factors, &cells)?;
        let shell = Shell::new(&commands.shell, commands.failing)?;
        let mut checked: Vec<String> = Vec::new();
        for cell in &cells {
            let lines = commands.lines(cell)?;
            for (what, line) in lines.named() {
                if !checked.contains(line) {
                    shell.check(&what, line)?;
                    checked.push(line.clone());
                }
            }
        }
        let watched: Result<Vec<Watched>, ProgramsError> =
            plan.paths.iter().map(|path| Watched::at(Path::new(path))).collect();
        Ok(ProgramsExecutor {
            commands,
            shell,
            bytes: plan.length_bytes,
            watched: watched?,
            output,
            unfinished: None,
            start: CommonStart::default(),
        })
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let mut found = match self.watched.iter().find_map(Watched::storage) {
            Some((path, storage)) => environment::of(path, storage),
            None => environment::of_this_machine(),
        };
        found.insert("shell".to_owned(), self.shell.name().to_owned());
        let start = base::format::duration(self.shell.start_seconds);
        found.insert("start of the shell".to_owned(), start);
        found
    }

    /// Runs the untimed lines of a run.
    fn around(&self, part: &str, lines: &[String], cancel: &Cancel) -> Result<(), ProgramsError> {
        for line in lines {
            let arguments = self.shell.arguments(line);
            let job = GroupedCommand { arguments: &arguments, output: self.output };
            succeeded(&run(job, cancel, &mut |_| {})?, &format!("{part} {line:?}"))?;
        }
        Ok(())
    }

    fn record(&self, ended: &CommandEnd, watch: CommandWatch, mut measures: Measures) -> RunRecord {
        let (programs, pipes) = watch.finish();
        let value = if self.bytes > 0 { Value::Rate } else { Value::Time };
        if let Some(ns) = ended.processor_ns() {
            match self.bytes {
                0 => measures.insert("processor_seconds".to_owned(), ns as f64 / 1e9),
                bytes => {
                    let per_byte = ns as f64 / bytes as f64;
                    measures.insert("processor_ns_per_byte".to_owned(), per_byte)
                }
            };
        }
        if let Some(bytes) = ended.bytes {
            measures.insert("called_read_bytes".to_owned(), bytes.read_bytes as f64);
            measures.insert("called_write_bytes".to_owned(), bytes.written_bytes as f64);
        }
        RunRecord {
            bytes: self.bytes,
            seconds: ended.seconds,
            value,
            measures,
            programs,
            pipes,
            environment: self.environment(),
            notes: self.notes(ended),
            ..RunRecord::default()
        }
    }

    fn notes(&self, ended: &CommandEnd) -> Vec<String> {
        let mut notes = Vec::new();
        if ended.seconds < SHELL_TIMES * self.shell.start_seconds {
            notes.push(format!(
                "the start of the shell is {:.0} % of a run or more",
                100.0 / SHELL_TIMES
            ));
        }
        if ended.behind_seconds > 0.05 {
            notes.push("programs went on after the end of the shell, and are counted".to_owned());
        }
        let called = ended.bytes.map(|bytes| bytes.read_bytes.max(bytes.written_bytes));
        if let Some(called) = called.filter(|called| *called < self.bytes / 2) {
            // GNU tar leaves out the contents of files where its archive is /dev/null.
            notes.push(format!(
                "calls of its programs moved {} where {} were to be moved: mapped and spliced \
                 bytes are not seen, but tar into /dev/null reads nothing",
                base::format::size(called),
                base::format::size(self.bytes)
            ));
        }
        notes
    }
}

fn succeeded(ended: &CommandEnd, part: &str) -> Result<(), ProgramsError> {
    if ended.status.success() {
        return Ok(());
    }
    let (part, status, said) = (part.to_owned(), ended.how(), ended.said.clone());
    Err(ProgramsError::Failed { part, status, said })
}

impl Executor for ProgramsExecutor {
    type Error = ProgramsError;

    fn applies(&self, cell: &Cell) -> bool {
        self.commands.lines(cell).is_ok()
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, ProgramsError> {
        self.unfinished = None;
        let lines = self.commands.lines(cell)?;
        self.around("before the run,", &lines.before, cancel)?;
        self.start.wait(cancel)?;
        let before: Vec<Counted> = self.watched.iter().map(Watched::count).collect();
        let arguments = self.shell.arguments(&lines.line);
        let job = GroupedCommand { arguments: &arguments, output: self.output };
        let mut watch = CommandWatch::default();
        let start = Instant::now();
        let ended = run(job, cancel, &mut |shell| watch.look(shell));
        if let Err(ProgramsError::Stopped(_)) = ended {
            let seconds = start.elapsed().as_secs_f64();
            self.unfinished = Some(Unfinished { bytes: self.bytes, seconds });
        }
        let ended = ended?;
        let mut measures = Measures::new();
        for (watched, before) in self.watched.iter().zip(&before) {
            measures.extend(watched.count().since(before, ended.seconds));
        }
        succeeded(&ended, "the command")?;
        let record = self.record(&ended, watch, measures);
        self.around("the check after the run,", &lines.after, cancel)?;
        Ok(record)
    }

    fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    fn foretell(&mut self, _cells: &[Cell], _stop: &Stop) -> Vec<String> {
        let mut told = Vec::new();
        if !self.shell.tells_all && self.commands.failing == Failing::AnyProgram {
            told.push(format!(
                "{} does not tell when a program in the middle of a pipeline fails; --shell bash \
                 does",
                self.shell.name()
            ));
        }
        if self.bytes == 0 {
            told.push(
                "times are compared: with --bytes or --bytes-of they would be rates".to_owned(),
            );
        }
        told
    }
}

impl StartsTogether for ProgramsExecutor {
    fn start_together(&mut self, start: CommonStart) {
        self.start = start;
    }
}

/// A device whose counters are read.
enum Watched {
    Disk { path: PathBuf, storage: Storage },
    Tape(TapeFolder),
    Virtual(StatusFile),
}

/// What it counted so far.
enum Counted {
    Disk(Option<DiskCounters>),
    Tape(Box<DriveCounters>),
}

impl Watched {
    fn at(path: &Path) -> Result<Watched, ProgramsError> {
        let status = fs::metadata(path)
            .map_err(|source| ProgramsError::Look { path: path.to_owned(), source })?;
        if status.file_type().is_char_device() {
            let number = status.rdev();
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            if let Some(folder) = TapeFolder::of_device(major, minor) {
                return Ok(Watched::Tape(folder));
            }
        }
        if let Some(file) = StatusFile::beside(path) {
            return Ok(Watched::Virtual(file));
        }
        Ok(Watched::Disk { path: path.to_owned(), storage: Storage::of(path)? })
    }

    fn storage(&self) -> Option<(&Path, &Storage)> {
        match self {
            Watched::Disk { path, storage } => Some((path, storage)),
            Watched::Tape(_) | Watched::Virtual(_) => None,
        }
    }

    fn count(&self) -> Counted {
        match self {
            Watched::Disk { storage, .. } => Counted::Disk(storage.counters()),
            Watched::Tape(folder) => {
                let kernel = folder.statistics();
                Counted::Tape(Box::new(DriveCounters { kernel, ..DriveCounters::default() }))
            }
            Watched::Virtual(file) => {
                let time = file.read().and_then(|status| status.time);
                Counted::Tape(Box::new(DriveCounters { time, ..DriveCounters::default() }))
            }
        }
    }
}

impl Counted {
    fn since(&self, before: &Counted, seconds: f64) -> Measures {
        let mut measures = Measures::new();
        match (self, before) {
            (Counted::Tape(now), Counted::Tape(before)) => return now.since(before, seconds),
            (Counted::Disk(Some(now)), Counted::Disk(Some(before))) => {
                let counted = now.since(*before);
                let sides = [("device_read_", counted.read), ("device_write_", counted.write)];
                for (prefix, side) in sides {
                    measures.insert(format!("{prefix}bytes"), side.bytes() as f64);
                    put_direction(&mut measures, prefix, side);
                }
                let milliseconds = seconds.max(1e-3) * 1e3;
                let busy = 100.0 * f64::from(counted.busy_ms) / milliseconds;
                measures.insert("device_busy_percent".to_owned(), busy.min(100.0));
                let depth = f64::from(counted.weighted_ms) / milliseconds;
                measures.insert("device_depth".to_owned(), depth);
            }
            _ => {}
        }
        measures
    }
}

#[cfg(test)]
mod tests;
