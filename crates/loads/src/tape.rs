//! `takeup bench tape`: writes to a drive, and reads back.
//!
//! A run writes the data, framing, block size and length of its cell, as one file or as several, of
//! which each ends with a filemark that waits for the medium; it reports the rate with the
//! filemarks (the run's own) and without (a measure). Or it reads such files back and compares them
//! with what was written.
//! Everything goes through a ring of `flow`. While the drive streams it gets no command but WRITE
//! or READ; counters are the kernel's, or the status file's of a virtual drive.
//!
//! Measures of a run, beside those of [`experiment::observed`]:
//! `without_filemark_bytes_per_second`, `filemarks`, `filemark_seconds` (of one of them),
//! `written_file_bytes` (bytes for each), `generator_bytes_per_second` (bytes by the time in which
//! the generator worked), `memory_bytes`; where blocks are worked on in the writing thread
//! `sealing_seconds`; of a tree `tree_files` and `tree_bytes` (what was read of it); of a real
//! drive `drive_write_percent` (share of the time that it was the limit), `drive_busy_percent`,
//! `drive_writes`, `drive_other_commands`, and where its log counts them `drive_native_bytes` and
//! `drive_compression_ratio`; of a virtual one these two and `drive_back_hitches`,
//! `drive_back_hitch_seconds`, `drive_streaming_seconds`, `drive_still_seconds`,
//! `drive_native_bytes`, `drive_compression_ratio`.
//!
//! Where the clock of a virtual drive is faster than ours (`drive_clock_ratio`), all times of a run
//! are in its time: the rates are then those of the drive, on a machine that is as many times
//! slower than ours.
//!
//! Not here: what the blocks hold ([`crate::payload`], [`crate::framing`]); sets of a backup, whose
//! labels and rules are `archive`'s and `tapeset`'s.

mod checksum;
pub(crate) mod counters;
mod drive;
mod error;
mod foretold;
mod found;
mod job;
mod label;
mod options;
mod plain;
pub mod preset;
mod transfer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use device::tape::TapeDrive;
use flow::cancel::Cancel;
use flow::run::{StageKind, StageReport};
use rustix::fs::FileType;

use crate::payload::tree::{Content, survey};
use crate::payload::{Data, Payload};
use counters::{Counters, StatusFile};
use drive::MeasuredDrive;
use experiment::environment;
use experiment::judgement::BUFFERS_MIN;
use experiment::observed::{About, Before, Measures};
use experiment::plan::{Plan, Stop};
use experiment::record::{Cell, CellError, RunRecord};
use experiment::run::neighbours::{MachineCounters, Neighbours};
use experiment::run::{Executor, Unfinished};
use job::Standing;
use plain::Plain;
use statistics::random::Random;
use transfer::{Load, Measured, Medium, Summing, TransferEnd};

pub use error::TapeBenchError;
pub use job::{TapeJob, TapeWork};
pub use options::{Begin, MediumChanger, Occupied, TapeOptions};

/// The generator was the limit when it had no rest.
const GENERATOR_BUSY_SHARE: f64 = 0.9;
/// What is then said of it, or of the tree that was read.
pub(crate) const SOURCE_HELD: &str = " was the limit, not the target";

enum Place {
    Drive(Box<MeasuredDrive>),
    Plain(Plain),
}

/// What is in the trees that a plan names.
type Trees = BTreeMap<PathBuf, Content>;

/// Writes and reads as the cells say.
pub struct TapeExecutor {
    place: Place,
    length_bytes: u64,
    standing: Standing,
    trees: Trees,
    seeds: Random,
    /// The measured part of the last run, where it did not end.
    unfinished: Option<Unfinished>,
}

impl TapeExecutor {
    /// Opens the target of a plan: the drive or file that its path leads to. On a medium or file
    /// where nothing was allowed to be lost, nothing is.
    pub fn new(plan: &Plan, options: TapeOptions) -> Result<TapeExecutor, TapeBenchError> {
        let path = match &plan.paths[..] {
            [path] => Path::new(path),
            _ => return Err(TapeBenchError::OneTarget),
        };
        if let Some(drive) = device::tape::find(path) {
            let status =
                drive.folder().is_none().then(|| StatusFile::beside(drive.path())).flatten();
            return TapeExecutor::on(Box::new(drive), status, plan, options);
        }
        let jobs = jobs_of(plan)?;
        let trees = check_data(&jobs, path)?;
        if jobs.iter().any(|job| job.compression.is_some()) {
            return Err(TapeBenchError::NoCompression);
        }
        let plain = Plain::open(path, options.occupied)?;
        let reads = jobs.iter().any(|job| job.operation == TapeWork::Read);
        if reads && !plain.gives_back() {
            let path = path.to_owned();
            return Err(TapeBenchError::NotPossible { path, what: "nothing that gives back" });
        }
        Ok(TapeExecutor::with(Place::Plain(plain), plan, trees))
    }

    /// On a drive of the caller's.
    pub fn on_drive(
        drive: Box<dyn TapeDrive>,
        plan: &Plan,
        options: TapeOptions,
    ) -> Result<TapeExecutor, TapeBenchError> {
        TapeExecutor::on(drive, None, plan, options)
    }

    fn on(
        drive: Box<dyn TapeDrive>,
        status: Option<StatusFile>,
        plan: &Plan,
        options: TapeOptions,
    ) -> Result<TapeExecutor, TapeBenchError> {
        let jobs = jobs_of(plan)?;
        let trees = check_data(&jobs, Path::new(drive.name()))?;
        let TapeOptions { begin, occupied, changer } = options;
        let several = media(&jobs).len() > 1;
        if several && begin == Begin::BehindData {
            return Err(TapeBenchError::SeveralMedia);
        }
        if several && changer.is_none() {
            return Err(TapeBenchError::NobodyChanges);
        }
        // With one medium its name says what is in the drive; the user is not asked.
        let changer = changer.filter(|_| several);
        let mut drive = MeasuredDrive::open(drive, status, begin, occupied, changer)?;
        for job in &jobs {
            drive.check_block(job.block_bytes)?;
        }
        if !several {
            let known = |job: TapeJob| job.with_tree(&trees);
            drive.check_length(&jobs.iter().cloned().map(known).collect::<Vec<_>>())?;
        }
        match media(&jobs)[..] {
            [] => drive.begin()?,
            [medium] => drive.want_medium(medium)?,
            _ => {}
        }
        Ok(TapeExecutor::with(Place::Drive(Box::new(drive)), plan, trees))
    }

    fn with(place: Place, plan: &Plan, trees: Trees) -> TapeExecutor {
        // No data of an earlier part of an experiment come again.
        let seed = plan.seed ^ experiment::run::unix_seconds().rotate_left(32);
        TapeExecutor {
            place,
            length_bytes: plan.length_bytes,
            standing: Standing::of(&plan.factors),
            trees,
            seeds: Random::new(seed),
            unfinished: None,
        }
    }

    /// What a cell asks for, with what is known of its tree.
    fn job(&self, cell: &Cell) -> Result<TapeJob, CellError> {
        Ok(TapeJob::from_cell(cell, self.length_bytes)?.with_tree(&self.trees))
    }

    /// The files of one run, from the settings to the counters.
    fn run(&mut self, job: &TapeJob, cancel: &Cancel) -> Result<RunRecord, TransferEnd> {
        let seed = self.seeds.bits();
        self.unfinished = None;
        let mut notes = self.prepare(job, cancel)?;
        let mark = match &mut self.place {
            Place::Drive(drive) => Some(drive.mark()?),
            Place::Plain(_) => None,
        };
        let environment = self.environment();
        let (measured, measures) = match job.operation {
            TapeWork::Write => {
                let before = self.look()?;
                let begun = Instant::now();
                let measured = self.write(job, seed, Summing::LeftOut, cancel);
                let measured = measured.inspect_err(|_| self.has_not_ended(job, begun))?;
                let measured = measured.in_time_of(self.clock_ratio());
                let measures = self.measures(&before, About::Writing, &measured)?;
                (measured, measures)
            }
            TapeWork::Read => {
                let written = self.write(job, seed, Summing::Done, cancel)?;
                match (&mut self.place, mark) {
                    (Place::Drive(drive), Some(mark)) => drive.go_to(mark)?,
                    (Place::Drive(_), None) => {}
                    (Place::Plain(plain), _) => plain.rewind()?,
                }
                let before = self.look()?;
                let begun = Instant::now();
                let measured = transfer::read(job, written.bytes, self.medium()?, cancel);
                let measured = measured.inspect_err(|_| self.has_not_ended(job, begun))?;
                let measured = measured.in_time_of(self.clock_ratio());
                if measured.checksum != written.checksum {
                    return Err(TapeBenchError::NotWhatWasWritten.into());
                }
                let measures = self.measures(&before, About::Reading, &measured)?;
                notes.extend(written.cautions);
                (measured, measures)
            }
        };
        notes.extend(self.cautions(job, &measured, &measures));
        notes.extend(measured.cautions.iter().cloned());
        Ok(record(job.operation, measured, measures, environment, notes))
    }

    fn has_not_ended(&mut self, job: &TapeJob, begun: Instant) {
        let seconds = begun.elapsed().as_secs_f64() * self.clock_ratio();
        self.unfinished = Some(Unfinished { bytes: job.bytes(), seconds });
    }

    fn prepare(&mut self, job: &TapeJob, cancel: &Cancel) -> Result<Vec<String>, TapeBenchError> {
        match &mut self.place {
            Place::Drive(drive) => {
                if let Some(medium) = &job.medium {
                    drive.want_medium(medium)?;
                }
                drive.prepare(job.compression, job.bytes())
            }
            Place::Plain(plain) => plain.prepare(cancel).map(|()| Vec::new()),
        }
    }

    fn write(
        &mut self,
        job: &TapeJob,
        seed: u64,
        summing: Summing,
        cancel: &Cancel,
    ) -> Result<Measured, TransferEnd> {
        let output = match &self.place {
            Place::Plain(plain) => plain.identity(),
            Place::Drive(_) => None,
        };
        let load = Load { job, seed, output, summing };
        let mut files = 0;
        let result = transfer::write(&load, self.medium()?, cancel, &mut files);
        if let Place::Drive(drive) = &mut self.place {
            match &result {
                Ok(measured) => drive.passed(measured.bytes, files),
                // The drive goes back to the start of the area.
                Err(TransferEnd::EndOfMedium(_)) => {}
                Err(_) => drive.passed(0, files),
            }
        }
        result
    }

    fn medium(&mut self) -> Result<&mut dyn Medium, TapeBenchError> {
        match &mut self.place {
            Place::Drive(drive) => drive.medium(),
            Place::Plain(plain) => Ok(plain),
        }
    }

    fn clock_ratio(&self) -> f64 {
        match &self.place {
            Place::Drive(drive) => drive.clock_ratio(),
            Place::Plain(_) => 1.0,
        }
    }

    fn look(&mut self) -> Result<(Before, Counters), TapeBenchError> {
        Ok(match &mut self.place {
            Place::Drive(drive) => {
                let counters = drive.look()?;
                (Before::look_at_this_machine(), counters)
            }
            Place::Plain(plain) => (plain.look(), Counters::default()),
        })
    }

    fn measures(
        &mut self,
        before: &(Before, Counters),
        about: About,
        measured: &Measured,
    ) -> Result<Measures, TapeBenchError> {
        Ok(match &mut self.place {
            Place::Drive(drive) => {
                let mut measures = before.0.measures_of_this_machine(measured.bytes);
                measures.extend(drive.look()?.since(&before.1, measured.seconds));
                if drive.clock_ratio() != 1.0 {
                    measures.insert("drive_clock_ratio".to_owned(), drive.clock_ratio());
                }
                measures
            }
            Place::Plain(plain) => plain.measures(&before.0, about, measured.bytes),
        })
    }

    fn environment(&mut self) -> BTreeMap<String, String> {
        let mut found = environment::of_this_machine();
        found.extend(match &mut self.place {
            Place::Drive(drive) => drive.environment(),
            Place::Plain(plain) => plain.environment(),
        });
        found
    }

    /// What should be known of a run when it is judged; the same text for all runs that have it.
    fn cautions(&mut self, job: &TapeJob, measured: &Measured, measures: &Measures) -> Vec<String> {
        let mut cautions = Vec::new();
        match &mut self.place {
            Place::Plain(plain) => cautions.push(plain.caution().to_owned()),
            Place::Drive(drive) => {
                if let Some(buffer) = drive.rates().buffer_bytes.filter(|&bytes| bytes > 0) {
                    cautions.extend(buffer_caution(job, measured, buffer, measures));
                }
            }
        }
        if let Some(ratio) = measures.get("drive_clock_ratio") {
            cautions.push(format!(
                "times are those of the virtual drive, whose clock runs {ratio} times as fast as \
                 this machine's: in them this machine is as many times slower"
            ));
        }
        let is_null = matches!(&self.place, Place::Plain(plain) if !plain.gives_back());
        if job.ring_bytes > 0 && !is_null && had_no_rest(&measured.stages, measured.seconds) {
            cautions.push(match job.data.tree(job.read_block_bytes) {
                Some(path) => format!("reading {}{SOURCE_HELD}", path.display()),
                None => format!("the generator of the data{SOURCE_HELD}"),
            });
        }
        cautions
    }

    /// A run again from the start of the test area, if the end of the medium came into its way.
    fn repeat_from_start(
        &mut self,
        job: &TapeJob,
        bytes: u64,
        cancel: &Cancel,
    ) -> Result<RunRecord, TransferEnd> {
        let full = TapeBenchError::Full { bytes };
        let Place::Drive(drive) = &mut self.place else { return Err(full.into()) };
        if !drive.met_end(bytes)? {
            return Err(full.into());
        }
        let mut run = self.run(job, cancel)?;
        run.notes.push(
            "the end of the medium came: repeated from the beginning of the test area".to_owned(),
        );
        Ok(run)
    }
}

impl Executor for TapeExecutor {
    type Error = TapeBenchError;

    fn neighbours(&self) -> Box<dyn Neighbours> {
        let drive = match &self.place {
            Place::Drive(drive) => drive.process(),
            Place::Plain(_) => None,
        };
        Box::new(MachineCounters::watch(None).without(drive))
    }

    fn applies(&self, cell: &Cell) -> bool {
        self.job(cell).is_ok_and(|job| job.is_sensible(&self.standing))
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, TapeBenchError> {
        let job = self.job(cell)?;
        let result = match self.run(&job, cancel) {
            Err(TransferEnd::EndOfMedium(bytes)) => self.repeat_from_start(&job, bytes, cancel),
            result => result,
        };
        let Place::Drive(drive) = &mut self.place else {
            return Ok(result?);
        };
        match &result {
            Ok(_) => {}
            Err(TransferEnd::Stopped | TransferEnd::NoData(_)) => drive.leave(),
            Err(TransferEnd::EndOfMedium(bytes)) => {
                // Twice in a row: the next run begins at the start.
                let _ = drive.met_end(*bytes);
            }
            Err(TransferEnd::Failed(_)) => drive.lose(),
        }
        Ok(result?)
    }

    fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    fn foretell(&mut self, cells: &[Cell], stop: &Stop) -> Vec<String> {
        let jobs: Vec<TapeJob> = cells.iter().filter_map(|cell| self.job(cell).ok()).collect();
        let mut said = foretold::trees(&jobs);
        if let Place::Drive(drive) = &mut self.place {
            said.extend(foretold::sentences(&jobs, &drive.rates(), drive.clock_ratio(), stop));
            said.extend(drive.near_the_end(&jobs));
        }
        said
    }

    fn finish(&mut self) -> Result<(), TapeBenchError> {
        match &mut self.place {
            Place::Drive(drive) => drive.put_back(),
            Place::Plain(plain) => plain.put_back(),
        }
    }
}

/// Whether the generator worked all the time in which it could: no data are wanted while a filemark
/// is written.
fn had_no_rest(stages: &[StageReport], seconds: f64) -> bool {
    let filemarks = stages.iter().map(|stage| stage.apart_seconds).fold(0.0, f64::max);
    let generator = stages.iter().find(|stage| stage.kind == StageKind::Generate);
    generator.is_some_and(|it| it.working_seconds > GENERATOR_BUSY_SHARE * (seconds - filemarks))
}

fn jobs_of(plan: &Plan) -> Result<Vec<TapeJob>, TapeBenchError> {
    let one = |cell: &Cell| {
        let job = TapeJob::from_cell(cell, plan.length_bytes)?;
        job.framing.check(job.block_bytes)?;
        Ok(job)
    };
    plan.cells().iter().map(one).collect()
}

/// Opens all data of a plan and looks at them, before the target is as much as opened: a run that
/// finds none has cost what the medium held. Returns what is in the trees among them.
fn check_data(jobs: &[TapeJob], target: &Path) -> Result<Trees, TapeBenchError> {
    let mut trees = Trees::new();
    let mut checked: Vec<&Data> = Vec::new();
    let output = ::tree::identity_of_path(target).ok();
    for job in jobs {
        if let Some(path) = job.data.tree(job.read_block_bytes) {
            if !trees.contains_key(path) {
                refuse_same(path, target)?;
                trees.insert(path.to_owned(), survey(path, output)?);
            }
            continue;
        }
        if checked.contains(&&job.data) {
            continue;
        }
        if let Data::Path(path) = &job.data {
            refuse_same(path, target)?;
        }
        Payload::open(&job.data, 0)?;
        checked.push(&job.data);
    }
    Ok(trees)
}

fn refuse_same(data: &Path, target: &Path) -> Result<(), TapeBenchError> {
    if is_same(data, target) {
        return Err(TapeBenchError::DataAreTarget { path: data.to_owned() });
    }
    Ok(())
}

/// Whether two paths lead to one file, or to one device.
fn is_same(a: &Path, b: &Path) -> bool {
    let (Ok(a), Ok(b)) = (rustix::fs::stat(a), rustix::fs::stat(b)) else { return false };
    let file = (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let is_device = |mode| {
        let kind = FileType::from_raw_mode(mode);
        matches!(kind, FileType::CharacterDevice | FileType::BlockDevice)
    };
    file || (is_device(a.st_mode) && a.st_mode == b.st_mode && a.st_rdev == b.st_rdev)
}

/// The media of a plan, each once.
fn media(jobs: &[TapeJob]) -> Vec<&str> {
    let mut media: Vec<&str> = jobs.iter().filter_map(|job| job.medium.as_deref()).collect();
    media.sort_unstable();
    media.dedup();
    media
}

fn buffer_caution(
    job: &TapeJob,
    measured: &Measured,
    buffer_bytes: u64,
    measures: &Measures,
) -> Option<String> {
    let buffer = base::format::size(buffer_bytes);
    if job.operation == TapeWork::Read {
        return None;
    }
    if measured.bytes / measured.files.max(1) < BUFFERS_MIN * buffer_bytes {
        return Some(format!(
            "shorter than {BUFFERS_MIN} of the drive's buffers ({buffer} each): how the buffer \
             is filled and emptied weighs in the rate"
        ));
    }
    let native = measures.get("drive_native_bytes")?;
    (*native < buffer_bytes as f64).then(|| {
        format!(
            "compressed, all of it fits into the drive's buffer ({buffer}): this measures the way \
             to the drive, not the tape"
        )
    })
}

fn record(
    operation: TapeWork,
    measured: Measured,
    mut measures: Measures,
    environment: BTreeMap<String, String>,
    notes: Vec<String>,
) -> RunRecord {
    measures.insert("memory_bytes".to_owned(), measured.memory_bytes as f64);
    if operation == TapeWork::Write {
        let seconds = measured.seconds - measured.filemark_seconds;
        let files = measured.files.max(1) as f64;
        measures.insert("filemarks".to_owned(), files);
        measures.insert("filemark_seconds".to_owned(), measured.filemark_seconds / files);
        measures.insert("written_file_bytes".to_owned(), measured.bytes as f64 / files);
        if measured.sealing_seconds > 0.0 {
            measures.insert("sealing_seconds".to_owned(), measured.sealing_seconds);
        }
        if let Some(content) = measured.tree {
            measures.insert("tree_files".to_owned(), content.files as f64);
            measures.insert("tree_bytes".to_owned(), content.bytes as f64);
        }
        if seconds > 0.0 {
            let rate = measured.bytes as f64 / seconds;
            measures.insert("without_filemark_bytes_per_second".to_owned(), rate);
        }
        let generator = measured.stages.iter().find(|stage| stage.kind == StageKind::Generate);
        if let Some(working) = generator.map(|one| one.working_seconds).filter(|&time| time > 0.0) {
            let rate = measured.bytes as f64 / working;
            measures.insert("generator_bytes_per_second".to_owned(), rate);
        }
    }
    RunRecord {
        bytes: measured.bytes,
        seconds: measured.seconds,
        series: Some(measured.series),
        latency: Some(measured.latency),
        stages: measured.stages,
        measures,
        environment,
        notes,
        ..RunRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight seconds of reading, of twelve in which a filemark took four.
    #[test]
    fn a_filemark_does_not_hide_that_reading_was_the_limit() {
        let stages = |reading: f64, filemark: f64| {
            let rest = 8.0 - reading;
            let write = StageReport::of_one_thread(StageKind::Write, [0.5, 7.5, 0.0]);
            [
                StageReport::of_one_thread(StageKind::Generate, [reading, 0.0, rest]),
                StageReport { apart_seconds: filemark, ..write },
            ]
        };
        assert!(had_no_rest(&stages(8.0, 4.0), 12.0));
        assert!(had_no_rest(&stages(8.0, 0.0), 8.0));
        assert!(!had_no_rest(&stages(5.0, 4.0), 12.0), "it waited for the drive");
        assert!(!had_no_rest(&stages(8.0, 0.0), 12.0), "there was no such filemark");
        assert!(!had_no_rest(&stages(8.0, 4.0)[1..], 12.0), "nobody read");
    }
}
