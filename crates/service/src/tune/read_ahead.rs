//! Measures which read-ahead is best for a path.
//!
//! It is an experiment of `bench read` with one factor. A first look at two settings shows how much
//! runs scatter, and so how many repeats are needed to show a difference, before the experiment
//! begins. Without permission to set read-ahead, the model still computes the read-ahead that the
//! measured rate and latency need.

use std::path::{Path, PathBuf};

use experiment::judgement::{Judgement, advice};
use experiment::plan::{Plan, Stop};
use experiment::power::Noise;
use experiment::record::{Experiment, Factor, Level, binary_size};
use experiment::run::unix_seconds;
use loads::read::{ReadBenchError, ReadExecutor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::{Setting, SettingKind};
use storage::stack::VxfsReadAhead;

use super::MeasuringHost;
use super::apply::why_not_kept;
use super::explanation::{MeasuredDevice, measured_knee};
use super::measuring::{
    LOOKS, MeasureEnding, MeasureRequest, Measuring, MeasuringExtent, judged, no_number,
};
use super::read_ahead_advice::{ReadAheadAdvice, ReadAheadMeasured};
use super::subject::TuneSubject;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::state;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneReadAheadRequest {
    /// A file or a block device to read; for a folder, the largest file in it.
    pub path: PathBuf,
    /// Read-ahead values to try besides the present one, in bytes.
    #[serde(default = "usual_levels")]
    pub levels: Vec<u64>,
    /// Bytes that the program reads at once.
    #[serde(default = "usual_block_bytes")]
    pub block_bytes: u64,
    /// Bytes of one run; null for what takes about a second.
    #[serde(default)]
    pub length_bytes: Option<u64>,
    /// Keeps the runs in this file.
    #[serde(default)]
    pub output: Option<PathBuf>,
    /// How it is measured.
    #[serde(default)]
    pub measure: MeasureRequest,
}

fn usual_levels() -> Vec<u64> {
    (16..=24).map(|power| 1 << power).collect()
}

fn usual_block_bytes() -> u64 {
    128 << 10
}

/// What was measured.
#[derive(Debug)]
pub struct TunedReadAhead {
    /// The recommended read-ahead, or why there is none.
    pub advice: ReadAheadAdvice,
    /// What became of it.
    pub ending: MeasureEnding,
}

impl TunedReadAhead {
    /// With a warning where nothing could be set, or something does not hold.
    pub fn outcome(&self) -> Outcome {
        self.ending.outcome()
    }
}

/// Bytes of a run of the first look.
const LOOK_BYTES: u64 = 32 << 20;
/// Minimum number of windows that a run reads.
const WINDOWS_MIN: u64 = 4;
const PAGE_BYTES: u64 = 4096;
const RANDOM_READS: u64 = 32;

/// Measures which read-ahead is best for a path, and sets it if requested.
///
/// # Errors
/// When the read-ahead has no effect there, cannot be measured, or was stopped.
pub fn tune_read_ahead(
    request: &TuneReadAheadRequest,
    host: &dyn MeasuringHost,
) -> Result<TunedReadAhead, Failure> {
    request.measure.begin(host)?;
    let subject = TuneSubject::find(&request.path)?;
    if let Some((mount_point, own)) = VxfsReadAhead::below(&subject.file) {
        return tune_vxfs(request, subject, (mount_point, own), host);
    }
    if let Some(hint) = own_reader(&file_system(&subject.file)) {
        let path = request.path.display();
        let message = format!("{path}: the kernel's read-ahead has no effect there");
        return Err(Failure::of(message, Some(hint)));
    }
    let present = subject.storage.read_ahead_bytes().map_err(|it| Failure::new(&it, None))?;
    let (Some(present), Some(file)) = (present, subject.storage.read_ahead.clone()) else {
        let message = format!("{}: its device has no read-ahead", request.path.display());
        return Err(Failure::of(message, None));
    };
    let settable = Setting::read_ahead(&file).check_settable();
    if let (Err(error), true) = (&settable, request.measure.apply) {
        return Err(Failure::new(error, None));
    }
    host.measuring_begins();
    let measuring = Measuring::new(&request.measure, host);
    let tuning = Tuning { request, subject, present, measuring, vxfs: None };
    let advice = match settable {
        Ok(()) => tuning.measured()?,
        Err(_) => tuning.as_it_is()?,
    };
    tuning.end(advice, host)
}

/// A hint for file systems that do their own read-ahead.
fn own_reader(file_system: &str) -> Option<&'static str> {
    (file_system == "zfs").then_some(
        "set ZFS's own read-ahead: zfs_prefetch_disable and zfetch_max_distance in \
         /sys/module/zfs/parameters; compare with `takeup bench read FILE` before and after",
    )
}

/// Whether the file system of a path reads ahead by itself, so that the kernel's read-ahead does
/// not act on its files.
pub(crate) fn has_own_reader(path: &Path) -> bool {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    matches!(file_system(&path).as_str(), "zfs" | "vxfs")
}

/// Type of the file system below a path without links.
fn file_system(path: &Path) -> String {
    let mounts = machine::mounts::now().unwrap_or_default();
    machine::mounts::above(&mounts, path).map_or(String::new(), |mount| mount.kind.clone())
}

/// On VxFS, which does its own read-ahead: measures the present one, and the model computes what is
/// needed. Takeup sets nothing there.
fn tune_vxfs(
    request: &TuneReadAheadRequest,
    subject: TuneSubject,
    (mount_point, own): (PathBuf, Option<VxfsReadAhead>),
    host: &dyn MeasuringHost,
) -> Result<TunedReadAhead, Failure> {
    let place = mount_point.display();
    let Some(own) = own else {
        let message =
            format!("{place}: VxFS does its own read-ahead, and vxtunefs does not answer");
        return Err(Failure::of(message, Some("set read_pref_io and read_nstream with vxtunefs")));
    };
    if request.measure.apply {
        let message = format!("{place}: takeup does not set the read-ahead of VxFS");
        let hint = own.command(own.window_bytes(), &mount_point.to_string_lossy());
        return Err(Failure::of(
            message,
            Some(&format!("use vxtunefs; the present value: `{hint}`")),
        ));
    }
    host.measuring_begins();
    let measuring = Measuring::new(&request.measure, host);
    let present = own.window_bytes();
    let vxfs = Some((mount_point, own));
    let tuning = Tuning { request, subject, present, measuring, vxfs };
    let advice = tuning.as_it_is()?;
    tuning.end(advice, host)
}

struct Tuning<'a> {
    request: &'a TuneReadAheadRequest,
    subject: TuneSubject,
    /// The VxFS of the file, and its read-ahead.
    vxfs: Option<(PathBuf, VxfsReadAhead)>,
    /// The present read-ahead, in bytes.
    present: u64,
    measuring: Measuring<'a>,
}

/// The result of the first look.
struct Look {
    /// Bytes of a run that takes about a second.
    length_bytes: u64,
    /// Mean time of a run.
    run_seconds: f64,
    noise: Option<Noise>,
}

impl Tuning<'_> {
    /// Applies the recommendation if requested.
    fn end(
        &self,
        advice: ReadAheadAdvice,
        host: &dyn MeasuringHost,
    ) -> Result<TunedReadAhead, Failure> {
        let (measure, storage) = (&self.request.measure, &self.subject.storage);
        let ending = measure.end(&advice, storage, &self.request.path, host)?;
        Ok(TunedReadAhead { advice, ending })
    }

    /// Measures every value in turn.
    fn measured(&self) -> Result<ReadAheadAdvice, Failure> {
        let look = self.look()?;
        let windows = self.windows(look.length_bytes);
        let extent = MeasuringExtent {
            settings: windows.len(),
            compared: windows.len(),
            round_seconds: windows.len() as f64 * look.run_seconds,
        };
        let repeats = self.measuring.repeats(look.noise.as_ref(), extent);
        let stop = Stop {
            repeats_min: repeats,
            repeats_max: repeats,
            // The first look has used a part of the budget.
            budget_seconds: self.measuring.left_seconds().max(look.run_seconds),
            difference_percent: Some(self.request.measure.worth() * 100.0),
            ..Stop::default()
        };
        let plan = self.plan(&windows, look.length_bytes, stop, RANDOM_READS);
        let experiment = self.experiment(&plan, self.request.output.as_deref())?;
        let (judgement, options) = judged(&experiment)?;
        let factors = &experiment.header.factors;
        let swept = factors.iter().find(|factor| factor.name == "read_ahead_bytes");
        let advice = swept.and_then(|swept| advice(&judgement, swept, &experiment.runs, &options));
        let advice = advice.ok_or_else(|| {
            let hint = "increase --budget";
            Failure::of("no run with the present read-ahead has finished", Some(hint))
        })?;
        let known = MeasuredDevice::of(&judgement, &self.subject.storage, self.request.block_bytes);
        let explained = known.map(|known| known.explain(&windows, measured_knee(&judgement)));
        let left_out = self.left_out(look.length_bytes);
        let of = ReadAheadMeasured {
            cut: cut(&windows, &judgement, &experiment),
            left_out,
            ..self.of_what()
        };
        Ok(ReadAheadAdvice { of, judgement, advice: Some(advice), explanation: explained })
    }

    /// Without permission to set anything: measures the present state, and applies the model.
    fn as_it_is(&self) -> Result<ReadAheadAdvice, Failure> {
        let words = |words: &[&str]| -> Vec<Level> {
            words.iter().map(|word| Level::Text((*word).to_owned())).collect()
        };
        let numbers = |numbers: &[u64]| numbers.iter().copied().map(Level::Number).collect();
        let length_bytes = self.request.length_bytes.unwrap_or(LOOK_BYTES);
        let stop = Stop { repeats_min: LOOKS, repeats_max: LOOKS, ..Stop::default() };
        let mut plan = self.plan(&[], length_bytes, stop, RANDOM_READS);
        plan.factors = vec![
            Factor::new("engine", words(&["psync"])),
            Factor::new("cache", words(&["buffered", "direct"])),
            Factor::new("depth", numbers(&[1, 16])),
            Factor::new("block_bytes", numbers(&[1 << 20])),
        ];
        let experiment = self.experiment(&plan, self.request.output.as_deref())?;
        let (judgement, _) = judged(&experiment)?;
        let windows = self.windows(self.subject.length_bytes);
        let known = MeasuredDevice::of(&judgement, &self.subject.storage, self.request.block_bytes);
        let vxfs = self.vxfs.as_ref().map(|(_, own)| *own);
        let explained = known.map(|known| MeasuredDevice { vxfs, ..known }.explain(&windows, None));
        let of = self.of_what();
        Ok(ReadAheadAdvice { of, judgement, advice: None, explanation: explained })
    }

    fn of_what(&self) -> ReadAheadMeasured {
        ReadAheadMeasured {
            path: self.request.path.clone(),
            file: self.subject.file.clone(),
            device: self.subject.storage.name.clone(),
            present: self.present,
            worth: self.request.measure.worth(),
            not_kept: why_not_kept(&[SettingKind::ReadAhead], &self.subject.storage),
            cut: Vec::new(),
            left_out: Vec::new(),
            vxfs: self.vxfs.clone(),
        }
    }

    /// Levels that are not tried as requested, and why.
    fn left_out(&self, length_bytes: u64) -> Vec<(u64, String)> {
        let tried = self.windows(length_bytes);
        let why = |bytes: u64| {
            let rounded = whole_pages(bytes);
            if bytes != rounded && tried.contains(&rounded) {
                let tried = binary_size(rounded);
                return Some(format!("not a multiple of the page size: {tried} was tried"));
            }
            let length = binary_size(length_bytes);
            (!tried.contains(&rounded))
                .then(|| format!("a run of {length} holds fewer than {WINDOWS_MIN} windows"))
        };
        let asked = self.request.levels.iter().copied();
        asked.filter_map(|bytes| Some((bytes, why(bytes)?))).collect()
    }

    /// A few short runs of two settings far from each other.
    fn look(&self) -> Result<Look, Failure> {
        let all = self.windows(u64::MAX);
        let far = *if all.last() == Some(&self.present) { all.first() } else { all.last() }
            .unwrap_or(&self.present);
        let stop = Stop {
            repeats_min: LOOKS,
            repeats_max: LOOKS,
            budget_seconds: self.request.measure.budget_seconds,
            ..Stop::default()
        };
        let most_bytes = self.request.length_bytes.unwrap_or(LOOK_BYTES);
        let look_bytes = LOOK_BYTES.min(most_bytes).min(self.subject.length_bytes);
        let mut two = vec![self.present, far];
        two.sort_unstable();
        two.dedup();
        let begun = std::time::Instant::now();
        let plan = self.plan(&two, look_bytes, stop, RANDOM_READS);
        let experiment = self.experiment(&plan, None)?;
        let passed = begun.elapsed().as_secs_f64();
        let rates: Vec<f64> =
            experiment.runs.iter().filter_map(|run| run.bytes_per_second()).collect();
        if rates.is_empty() {
            return Err(no_number(&experiment));
        }
        let count = rates.len() as f64;
        let typical = (rates.iter().map(|rate| rate.ln()).sum::<f64>() / count).exp();
        let in_a_second = (typical as u64).next_multiple_of(1 << 20).max(LOOK_BYTES / 2);
        let wanted = self.request.length_bytes.unwrap_or(in_a_second);
        let length_bytes = wanted.min(self.subject.length_bytes);
        let measured: f64 = experiment.runs.iter().map(|run| run.seconds).sum();
        // Untimed parts of a run: dropping pages, reads at random places.
        let besides = (passed - measured).max(0.0);
        let reading: f64 = rates.iter().map(|rate| length_bytes as f64 / rate).sum();
        let run_seconds = (reading + besides) / count;
        Ok(Look { length_bytes, run_seconds, noise: Noise::of(&experiment.runs) })
    }

    /// The windows to try: the present one, and those of which a run holds several.
    fn windows(&self, length_bytes: u64) -> Vec<u64> {
        let is_held = |bytes: &u64| bytes.saturating_mul(WINDOWS_MIN) <= length_bytes;
        let levels = self.request.levels.iter().copied().map(whole_pages);
        let mut windows: Vec<u64> = levels.filter(is_held).chain([self.present]).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }

    fn plan(&self, windows: &[u64], length_bytes: u64, stop: Stop, random_reads: u64) -> Plan {
        let levels = windows.iter().copied().map(Level::Number).collect();
        let present = Some(Level::Number(self.present));
        let words = vec![Level::Text("buffered".to_owned())];
        let request = vec![Level::Number(self.request.block_bytes)];
        Plan {
            kind: "read".to_owned(),
            title: format!("read-ahead of {}", self.subject.file.display()),
            paths: vec![self.subject.file.display().to_string()],
            length_bytes,
            seed: unix_seconds(),
            stop,
            random_reads,
            run_seconds: 0.0,
            commands: None,
            factors: vec![
                Factor::new("cache", words),
                Factor { present, ..Factor::new("read_ahead_bytes", levels) },
                Factor::new("block_bytes", request),
            ],
        }
    }

    fn experiment(&self, plan: &Plan, kept: Option<&Path>) -> Result<Experiment, Failure> {
        self.measuring.experiment(plan, kept, |plan| {
            let journal = state::journal();
            ReadExecutor::new(plan, journal.as_deref()).map_err(read_failure)
        })
    }
}

/// Read-ahead rounded to whole pages, as the kernel does.
fn whole_pages(bytes: u64) -> u64 {
    bytes / PAGE_BYTES * PAGE_BYTES
}

/// Windows without a result, each with the upper bound on its rate.
fn cut(windows: &[u64], judgement: &Judgement, experiment: &Experiment) -> Vec<(u64, Option<f64>)> {
    let level = |bytes: u64| Some(Level::Number(bytes));
    let has_rate = |bytes: u64| {
        let mut cells = judgement.cells.iter();
        cells.any(|cell| cell.cell.get("read_ahead_bytes").cloned() == level(bytes))
    };
    let below = |bytes: u64| {
        let runs = experiment.runs.iter();
        let own = runs.filter(|run| run.cell.get("read_ahead_bytes").cloned() == level(bytes));
        own.filter_map(|run| run.slower_than_bytes_per_second).min_by(f64::total_cmp)
    };
    windows.iter().filter(|&&bytes| !has_rate(bytes)).map(|&bytes| (bytes, below(bytes))).collect()
}

fn read_failure(error: ReadBenchError) -> Failure {
    let hint = match &error {
        ReadBenchError::Storage(error) => state::guard_hint(error),
        _ => None,
    };
    Failure::new(&error, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_ahead_by_itself_is_told() {
        assert!(own_reader("zfs").unwrap().contains("zfs_prefetch_disable"));
        for kernels in ["ext4", "xfs", "btrfs", "nfs4", ""] {
            assert_eq!(own_reader(kernels), None);
        }
        assert!(!file_system(Path::new("/proc/self")).is_empty());
        assert_eq!(file_system(Path::new("/proc")), "proc");
    }
}
