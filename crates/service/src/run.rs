//! What the runs (backup, restore, list, verify, pipe) have in common: what their requests say of
//! targets and archives, and the monitor that counts warnings and what other programs did.

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::escape::escape;
use base::failures::lock;
use device::target::{Existing, FileMode};
use flow::account::Stage;
use flow::backend::Engine;
use flow::monitor::{Counter, Expected, Harm, Level, Monitor, Notice, Pause, Silent};
use flow::run::RunReport;
use machine::counters::processor::ProcessorClock;
use runs::destination::Destination;
use runs::read::IndexNeed;
use runs::run_record::RunWords;
use runs::summary::{RunSummary, Warning};
use runs::sweep::ReadOrder;
use runs::verdict::{Tally, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::DiskWatch;
use tapeset::{Media, Memory, TapeDestination, TapeOptions};

use crate::change::SharedChanger;
use crate::failure::{Failure, without_error_numbers};
use crate::recording::Recording;

/// Warnings that a summary keeps; the others are only counted.
pub const WARNINGS_MAX: usize = 1000;
/// Most bytes of warnings that are kept: a path in an archive can be a megabyte long.
const WARNING_BYTES_MAX: usize = 4 << 20;

/// How files and block devices are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineChoice {
    /// io_uring if the kernel allows it, else pread.
    #[default]
    Auto,
    /// io_uring, or the run fails.
    IoUring,
    /// Threads that call pread and pwrite.
    Pread,
}

impl From<EngineChoice> for Engine {
    fn from(choice: EngineChoice) -> Engine {
        match choice {
            EngineChoice::Auto => Engine::Auto,
            EngineChoice::IoUring => Engine::IoUring,
            EngineChoice::Pread => Engine::Threads,
        }
    }
}

/// In which order files are read. What is made of them has the order of their
/// names in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadOrderChoice {
    /// That of the disk, if a short look shows that it has heads; else that of names.
    #[default]
    Auto,
    /// That in which they are needed.
    Name,
    /// On many file systems near the order of addresses, and known without asking for these.
    Inode,
    /// That of the addresses of their extents.
    Physical,
}

impl From<ReadOrderChoice> for ReadOrder {
    fn from(choice: ReadOrderChoice) -> ReadOrder {
        match choice {
            ReadOrderChoice::Auto => ReadOrder::Auto,
            ReadOrderChoice::Name => ReadOrder::Name,
            ReadOrderChoice::Inode => ReadOrder::Inode,
            ReadOrderChoice::Physical => ReadOrder::Physical,
        }
    }
}

/// How data are written to a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetSettings {
    /// Whether an existing target is replaced once the new one is complete.
    pub overwrite: bool,
    /// Permissions of a target file, nine bits; `None`: those of the replaced file, for a new file
    /// 600 as root, else what the umask leaves.
    pub mode: Option<u32>,
    /// Bytes of each write to the target, a multiple of 512.
    pub block_bytes: u64,
    /// Memory for blocks that wait for the target.
    pub ring_bytes: Option<u64>,
    /// How full the ring must be before the writer starts, and starts again after it ran empty, in
    /// percent.
    pub start_fill_percent: Option<u8>,
    /// Most bytes per second that go to the target.
    pub rate_limit_bytes_per_second: Option<u64>,
}

impl Default for TargetSettings {
    fn default() -> TargetSettings {
        TargetSettings {
            overwrite: false,
            mode: None,
            block_bytes: 1 << 20,
            ring_bytes: None,
            start_fill_percent: None,
            rate_limit_bytes_per_second: None,
        }
    }
}

/// Default memory of the ring.
const RING_BYTES: usize = 64 << 20;

impl TargetSettings {
    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        bytes(self.block_bytes)
    }

    /// Memory of the ring: as requested, else the larger of the default and `least_bytes`.
    pub(crate) fn ring_bytes(&self, least_bytes: usize) -> usize {
        self.ring_bytes.map_or(RING_BYTES.max(least_bytes), bytes)
    }

    /// Permissions of the target.
    pub(crate) fn mode(&self) -> Result<FileMode, Failure> {
        match self.mode {
            None => Ok(FileMode::Usual),
            Some(mode @ 0..=0o777) => Ok(FileMode::Exactly(mode)),
            Some(mode) => {
                Err(Failure::of(format!("permissions go from 0 to 777, not to {mode:o}"), None))
            }
        }
    }

    /// What happens when the target exists.
    pub(crate) fn existing(&self) -> Existing {
        if self.overwrite { Existing::Replace } else { Existing::Keep }
    }
}

/// A number of bytes in memory; `usize` has the same range on 64-bit Linux.
pub(crate) fn bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How an archive is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArchiveSettings {
    /// Memory for data that are read and decompressed ahead; `None`: 64 MiB, for a tape up to 1 GiB
    /// or a quarter of the memory.
    pub ring_bytes: Option<u64>,
    /// Threads that decompress; `None`: one for each core.
    pub threads: Option<NonZero<usize>>,
    /// Whether an archive of any program must have an index.
    pub require_index: bool,
}

impl ArchiveSettings {
    /// Whether there must be an index.
    pub(crate) fn index(&self) -> IndexNeed {
        if self.require_index { IndexNeed::Required } else { IndexNeed::AsTheArchiveSays }
    }
}

/// What `to` names: a tape drive, with the options for it and what changes its volumes, or anything
/// else that a path leads to.
pub(crate) fn destination(
    to: &Path,
    options: TapeOptions,
    media: Media,
    memory: Memory,
    changer: SharedChanger,
) -> Destination {
    match device::tape::find(to) {
        Some(drive) => {
            let drive = Arc::new(drive);
            Destination::Tape(TapeDestination { drive, options, changer, media, memory })
        }
        None => to.into(),
    }
}

/// Receives what happens in a run, and puts its end into words for the record of the run.
pub trait RunObserver: Monitor {
    /// The end of the run in words; `takeup report` prints them of a record.
    fn words(&self, summary: &RunSummary) -> RunWords {
        let _ = summary;
        RunWords::default()
    }
}

impl RunObserver for Silent {}

/// The monitor of a run: counts warnings and what they mean, watches what other programs do
/// meanwhile, and passes everything on to the observer of the caller.
pub struct RunMonitor<'a> {
    observer: &'a dyn RunObserver,
    tally: Mutex<Tally>,
    kept: Mutex<KeptWarnings>,
    warnings_total: AtomicU64,
    processor: Option<ProcessorClock>,
    /// The disks of the two ends, source first.
    disks: [Option<DiskWatch>; 2],
    recording: Option<Recording>,
}

/// The first [`WARNINGS_MAX`] warnings, or fewer of [`WARNING_BYTES_MAX`].
#[derive(Default)]
struct KeptWarnings {
    warnings: Vec<Warning>,
    bytes: usize,
}

impl KeptWarnings {
    fn keep(&mut self, object: String, text: String) {
        self.bytes = self.bytes.saturating_add(object.len() + text.len());
        if self.warnings.len() < WARNINGS_MAX && self.bytes <= WARNING_BYTES_MAX {
            self.warnings.push(Warning { object, text });
        }
    }
}

impl<'a> RunMonitor<'a> {
    /// The monitor of a run that starts now.
    pub fn new(observer: &'a dyn RunObserver) -> RunMonitor<'a> {
        RunMonitor {
            observer,
            tally: Mutex::default(),
            kept: Mutex::default(),
            warnings_total: AtomicU64::new(0),
            processor: ProcessorClock::start(),
            disks: [None, None],
            recording: None,
        }
    }

    /// Watches what other programs move on the disks of source and target, if they are on disks.
    pub fn watching(mut self, source: Option<&Path>, target: Option<&Path>) -> RunMonitor<'a> {
        self.disks = [source, target].map(|path| path.and_then(DiskWatch::start));
        self
    }

    /// Records the run in a new file, if requested. `to` is the target of its data.
    ///
    /// # Errors
    /// When the file exists, is the target, or cannot be created.
    pub fn recording(
        mut self,
        record: Option<&Path>,
        to: Option<&Path>,
    ) -> Result<RunMonitor<'a>, Failure> {
        if let Some(path) = record {
            self.recording = Some(Recording::begin(path, to)?);
        }
        Ok(self)
    }

    /// What the warnings so far mean for the data of a run.
    pub fn verdict(&self, run: &RunReport) -> Verdict {
        lock(&self.tally).verdict(run)
    }

    /// Number of objects that this has happened to.
    pub fn harmed(&self, harm: Harm) -> u64 {
        lock(&self.tally).objects(harm)
    }

    /// Number of all warnings.
    pub fn warnings_total(&self) -> u64 {
        self.warnings_total.load(Ordering::Acquire)
    }

    /// The summary of the run, and its record if requested; `complete` adds what only one command
    /// knows, to the record too. A record that cannot be written is only a warning, since the run
    /// itself succeeded.
    pub fn summarise(&mut self, run: RunReport, complete: impl Fn(&mut RunSummary)) -> RunSummary {
        let run = self.with_others(run);
        let whole = |run: RunReport, monitor: &RunMonitor<'_>| {
            let verdict = monitor.verdict(&run);
            let warnings = lock(&monitor.kept).warnings.clone();
            let summary = RunSummary::new(run, warnings, monitor.warnings_total());
            let mut summary = RunSummary { verdict, ..summary };
            complete(&mut summary);
            summary
        };
        let summary = whole(run, self);
        let Some(recording) = self.recording.take() else { return summary };
        let Err(failure) = recording.keep(&summary, self.observer.words(&summary)) else {
            return summary;
        };
        let text = format!("cannot keep the record: {}", failure.message());
        self.notice(Notice { level: Level::Warning(Harm::Beside), object: Vec::new(), text });
        whole(summary.run, self)
    }

    /// Adds what other programs did meanwhile.
    fn with_others(&self, run: RunReport) -> RunReport {
        let others = |end: usize| self.disks[end].as_ref().and_then(DiskWatch::others_bytes);
        let time = self.disks[0].as_ref().and_then(DiskWatch::time);
        RunReport {
            others_seconds: self.processor.and_then(|clock| clock.others_seconds()),
            others_on_source_bytes: others(0),
            others_on_target_bytes: others(1),
            source_disk_seconds: time.map(|time| time.busy_seconds),
            source_disk_own_seconds: time.map(|time| time.own_seconds),
            source_disk_in_flight: time.map(|time| time.in_flight),
            ..run
        }
    }
}

impl Monitor for RunMonitor<'_> {
    fn count(&self, counter: Counter, amount: u64) {
        self.observer.count(counter, amount);
    }

    fn notice(&self, notice: Notice) {
        if let Level::Warning(harm) = notice.level {
            let object = escape(&notice.object);
            let text = escape(without_error_numbers(&notice.text).as_bytes());
            self.warnings_total.fetch_add(1, Ordering::AcqRel);
            lock(&self.tally).count(harm, &object, &text);
            lock(&self.kept).keep(object, text);
        }
        self.observer.notice(notice);
    }

    fn fill(&self, ready_blocks: usize, capacity_blocks: usize) {
        self.observer.fill(ready_blocks, capacity_blocks);
    }

    fn stages(&self, stages: &[&Arc<Stage>]) {
        if let Some(recording) = &self.recording {
            recording.follow(stages);
        }
        self.observer.stages(stages);
    }

    fn wants_forecast(&self) -> bool {
        self.observer.wants_forecast()
    }

    fn expect(&self, expected: Expected) {
        self.observer.expect(expected);
    }

    fn object(&self, path: &[u8], bytes: u64) {
        self.observer.object(path, bytes);
    }

    fn pause(&self, pause: Option<Pause>) {
        self.observer.pause(pause);
    }
}

#[cfg(test)]
mod tests;
