//! Measures which queue settings are best for a load.
//!
//! Each setting is a separate experiment of `bench disk`, with the other settings unchanged: all
//! combinations would take too long, so their combined effect is not claimed. Crate `loads` decides
//! where a setting has an effect (the disks at the bottom, or a multipath device).

use std::path::{Path, PathBuf};

use experiment::judgement::advice;
use experiment::plan::{Plan, Stop};
use experiment::power::Noise;
use experiment::record::{Experiment, Factor, Level, Role, RunRecord};
use experiment::run::unix_seconds;
use loads::disk::queue::factor;
use loads::disk::safety::Permission;
use loads::disk::{DiskError, DiskExecutor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::SettingKind;

use super::MeasuringHost;
use super::apply::why_not_kept;
use super::levels::{LevelSearch, NOT_ROOT, NotTried};
use super::measuring::{
    LOOKS, MeasureEnding, MeasureRequest, Measuring, MeasuringExtent, judged, no_number,
};
use super::queue_advice::{LittlesLaw, MeasuredLoad, QueueAdvice, TunedSetting};
use super::subject::TuneSubject;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::state;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneQueueRequest {
    /// A file or a block device to read; for a folder, the largest file in it.
    pub path: PathBuf,
    /// The settings to try.
    #[serde(default = "usual_settings")]
    pub settings: Vec<TriedSetting>,
    /// The load to measure.
    #[serde(default)]
    pub load: QueueLoad,
    /// Bytes of one request.
    #[serde(default = "usual_block_bytes")]
    pub block_bytes: u64,
    /// Requests in flight, from 1 to 4096.
    #[serde(default = "usual_depth")]
    pub depth: u64,
    /// Length of one run.
    #[serde(default = "usual_run_seconds")]
    pub run_seconds: f64,
    /// Keeps the runs in this folder, one file for each setting.
    #[serde(default)]
    pub output: Option<PathBuf>,
    /// How it is measured.
    #[serde(default)]
    pub measure: MeasureRequest,
}

fn usual_settings() -> Vec<TriedSetting> {
    use TriedSetting::{MaxSectorsKb, Nomerges, NrRequests, Scheduler};
    vec![Scheduler, NrRequests, MaxSectorsKb, Nomerges]
}

fn usual_block_bytes() -> u64 {
    4096
}

fn usual_depth() -> u64 {
    32
}

fn usual_run_seconds() -> f64 {
    2.0
}

/// Settings that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriedSetting {
    /// The I/O scheduler, which orders the requests.
    Scheduler,
    /// Requests that may wait.
    NrRequests,
    /// The largest request.
    MaxSectorsKb,
    /// Whether requests are merged.
    Nomerges,
}

impl TriedSetting {
    fn kind(self) -> SettingKind {
        match self {
            TriedSetting::Scheduler => SettingKind::Scheduler,
            TriedSetting::NrRequests => SettingKind::Requests,
            TriedSetting::MaxSectorsKb => SettingKind::MaxSectors,
            TriedSetting::Nomerges => SettingKind::NoMerges,
        }
    }
}

/// Loads that write nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueLoad {
    /// Random reads.
    #[default]
    Randread,
    /// Sequential reads.
    Read,
}

impl QueueLoad {
    /// Its name in fio.
    pub fn name(self) -> &'static str {
        match self {
            QueueLoad::Randread => "randread",
            QueueLoad::Read => "read",
        }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct TunedQueue {
    /// The recommended values, or why there are none.
    pub advice: QueueAdvice,
    /// What became of them.
    pub ending: MeasureEnding,
}

impl TunedQueue {
    /// With a warning where nothing could be set, or something does not hold.
    pub fn outcome(&self) -> Outcome {
        self.ending.outcome()
    }
}

/// Part of the file or device that is read.
const LENGTH_BYTES_MAX: u64 = 1 << 30;

/// Measures which queue settings are best for a load, and sets them if requested. `failure` makes
/// the failure of a load that cannot be run.
///
/// # Errors
/// When nothing can be tried, the load cannot be measured, or was stopped.
pub fn tune_queue(
    request: &TuneQueueRequest,
    host: &dyn MeasuringHost,
    failure: fn(DiskError) -> Failure,
) -> Result<TunedQueue, Failure> {
    request.check()?;
    request.measure.begin(host)?;
    let subject = TuneSubject::find(&request.path)?;
    let kept = KeptRuns { folder: request.output.as_deref() };
    let measuring = Measuring::new(&request.measure, host);
    let tuning = Tuning { request, subject, measuring, kept, failure };
    let Chosen { tried, left_out } = tuning.factors()?;
    kept.check(tried.iter().map(|tried| tried.kind.file_name()))?;
    host.measuring_begins();
    let advice = tuning.measured(&tried, left_out)?;
    let storage = &tuning.subject.storage;
    let ending = request.measure.end(&advice, storage, &request.path, host)?;
    Ok(TunedQueue { advice, ending })
}

/// Requests in flight that fio can keep.
const DEPTHS: std::ops::RangeInclusive<u64> = 1..=4096;

impl TuneQueueRequest {
    /// Refuses a setting that is named twice, which is a typing error, and a load that is none.
    fn check(&self) -> Result<(), Failure> {
        let settings = &self.settings;
        let twice =
            settings.iter().enumerate().find(|(at, setting)| settings[..*at].contains(setting));
        if let Some((_, setting)) = twice {
            let name = setting.kind().file_name();
            return Err(Failure::of(format!("--settings: {name} is given twice"), None));
        }
        if !DEPTHS.contains(&self.depth) {
            let message = format!("--depth: use {} to {}", DEPTHS.start(), DEPTHS.end());
            return Err(Failure::of(message, None));
        }
        if self.block_bytes == 0 {
            return Err(Failure::of("--block-size: must be more than zero", None));
        }
        Ok(())
    }
}

/// Where the runs are kept.
#[derive(Clone, Copy)]
struct KeptRuns<'a> {
    folder: Option<&'a Path>,
}

/// File name of the load with the present settings.
const AS_IT_IS: &str = "as_it_is";

impl KeptRuns<'_> {
    /// The file of a setting.
    fn file(&self, name: &str) -> Option<PathBuf> {
        self.folder.map(|folder| folder.join(format!("{name}.ndjson")))
    }

    /// Creates the folder, and checks for existing files before minutes of measuring.
    fn check<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), Failure> {
        let Some(folder) = self.folder else { return Ok(()) };
        let names: Vec<&str> = names.collect();
        let names = if names.is_empty() { vec![AS_IT_IS] } else { names };
        for path in names.iter().filter_map(|name| self.file(name)) {
            if path.symlink_metadata().is_ok() {
                let hint = Some("name another folder: takeup does not overwrite kept runs");
                return Err(Failure::of(format!("{} exists", path.display()), hint));
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| {
            let why = crate::failure::with_causes(&error);
            Failure::of(format!("create the folder {}: {why}", folder.display()), None)
        })
    }
}

/// Settings to try, and those left out with the reason.
struct Chosen {
    tried: Vec<Tried>,
    left_out: Vec<NotTried>,
}

/// A setting to try.
struct Tried {
    kind: SettingKind,
    factor: Factor,
}

struct Tuning<'a> {
    request: &'a TuneQueueRequest,
    subject: TuneSubject,
    measuring: Measuring<'a>,
    kept: KeptRuns<'a>,
    failure: fn(DiskError) -> Failure,
}

impl Tuning<'_> {
    /// The requested settings that can be tried.
    fn factors(&self) -> Result<Chosen, Failure> {
        let (mut tried, mut left_out) = (Vec::new(), Vec::new());
        let asked = LevelSearch {
            path: &self.request.path,
            storage: &self.subject.storage,
            block_bytes: self.request.block_bytes,
            is_sequential: self.request.load == QueueLoad::Read,
        };
        for kind in self.request.settings.iter().map(|setting| setting.kind()) {
            let levels = asked.levels(kind);
            left_out.extend(levels.left_out);
            let factor = factor(kind, &levels.values, &self.subject.storage);
            let factor = factor.map_err(|error| Failure::new(&error, None))?;
            tried.extend(factor.map(|factor| Tried { kind, factor }));
        }
        let is_for_root = left_out.iter().any(|one: &NotTried| one.why == NOT_ROOT);
        if is_for_root && self.request.measure.apply {
            let path = self.request.path.display();
            let message = format!("{path}: no permission to set the queue: {NOT_ROOT}");
            let hint = "leave out --apply to measure the load with the present settings";
            return Err(Failure::of(message, Some(hint)));
        }
        if tried.is_empty() && !left_out.is_empty() && !is_for_root {
            let one = |one: &NotTried| format!("{}: {}", one.kind.name(), one.words());
            let told: Vec<String> = left_out.iter().map(one).collect();
            let message = format!("{}: {}", self.request.path.display(), told.join("; "));
            return Err(Failure::of(message, Some("run `takeup probe` to see the settings")));
        }
        Ok(Chosen { tried, left_out })
    }

    fn measured(&self, tried: &[Tried], left_out: Vec<NotTried>) -> Result<QueueAdvice, Failure> {
        let look = self.look(tried)?;
        let runs = look.runs.len().max(1) as f64;
        let run_seconds = self.measuring.passed_seconds() / runs;
        let kinds: Vec<SettingKind> = tried.iter().map(|one| one.kind).collect();
        let mut queue = QueueAdvice {
            path: self.request.path.clone(),
            file: self.subject.file.clone(),
            device: loads::disk::queue::names(&self.subject.storage).join(" "),
            load: MeasuredLoad {
                name: self.request.load.name(),
                block_bytes: self.request.block_bytes,
                depth: self.request.depth,
            },
            worth: self.request.measure.worth(),
            not_kept: why_not_kept(&kinds, &self.subject.storage),
            tuned: Vec::new(),
            as_it_is: None,
            left_out,
        };
        if tried.is_empty() {
            queue.as_it_is = Some((judged(&look)?.0, LittlesLaw::of(look.runs.iter())));
            return Ok(queue);
        }
        let levels = |tried: &Tried| tried.factor.levels.len();
        let extent = MeasuringExtent {
            settings: tried.iter().map(levels).sum(),
            compared: tried.iter().map(levels).max().unwrap_or(2),
            round_seconds: run_seconds * tried.iter().map(levels).sum::<usize>() as f64,
        };
        let repeats = self.measuring.repeats(Noise::of(&look.runs).as_ref(), extent);
        let mut settings_left = extent.settings;
        for one in tried {
            let left = self.measuring.left_seconds();
            let share = levels(one) as f64 / settings_left as f64;
            settings_left -= levels(one);
            let stop = Stop {
                repeats_min: repeats,
                repeats_max: repeats,
                // Later settings get the time that this one leaves.
                budget_seconds: (left * share).max(run_seconds),
                difference_percent: Some(self.request.measure.worth() * 100.0),
                ..Stop::default()
            };
            let kept = self.kept.file(one.kind.file_name());
            let experiment = self.experiment(&one.factor, stop, kept.as_deref())?;
            let (judgement, options) = judged(&experiment)?;
            let advice = advice(&judgement, &one.factor, &experiment.runs, &options);
            let advice = advice.ok_or_else(|| {
                let hint = "increase --budget";
                let message = format!("no run with the present {} has finished", one.kind.name());
                Failure::of(message, Some(hint))
            })?;
            let is_present =
                |run: &&RunRecord| run.cell.get(&one.factor.name) == one.factor.present.as_ref();
            let little = LittlesLaw::of(experiment.runs.iter().filter(is_present));
            queue.tuned.push(TunedSetting { kind: one.kind, judgement, advice, little });
        }
        Ok(queue)
    }

    /// A few runs of two values, or of the present ones if nothing may be set.
    fn look(&self, tried: &[Tried]) -> Result<Experiment, Failure> {
        let stop = Stop {
            repeats_min: LOOKS,
            repeats_max: LOOKS,
            budget_seconds: self.request.measure.budget_seconds,
            ..Stop::default()
        };
        let two = tried.first().map(|one| {
            let present = one.factor.present.clone();
            let other =
                one.factor.levels.iter().rev().find(|level| Some(*level) != present.as_ref());
            let levels = present.iter().chain(other).cloned().collect();
            Factor { levels, ..one.factor.clone() }
        });
        let nothing = Factor::new("jobs", vec![Level::Number(1)]);
        // The first look is kept if no other runs follow.
        let kept = if two.is_none() { self.kept.file(AS_IT_IS) } else { None };
        let experiment = self.experiment(&two.unwrap_or(nothing), stop, kept.as_deref())?;
        if experiment.runs.iter().all(|run| run.speed().is_none()) {
            return Err(no_number(&experiment));
        }
        Ok(experiment)
    }

    fn experiment(
        &self,
        factor: &Factor,
        stop: Stop,
        kept: Option<&Path>,
    ) -> Result<Experiment, Failure> {
        let plan = self.plan(factor, stop);
        self.measuring.experiment(&plan, kept, |plan| {
            let journal = state::journal();
            let executor = DiskExecutor::new(plan, None, Permission::KeepData, journal.as_deref());
            executor.map_err(self.failure)
        })
    }

    fn plan(&self, factor: &Factor, stop: Stop) -> Plan {
        let word = |name: &str, word: &str| Factor::new(name, vec![Level::Text(word.to_owned())]);
        let number = |name: &str, number| Factor::new(name, vec![Level::Number(number)]);
        let block = number("block_bytes", self.request.block_bytes);
        Plan {
            kind: "disk".to_owned(),
            title: format!("queue below {}", self.subject.file.display()),
            paths: vec![self.subject.file.display().to_string()],
            length_bytes: self.subject.length_bytes.min(LENGTH_BYTES_MAX),
            seed: unix_seconds(),
            stop,
            random_reads: 0,
            run_seconds: self.request.run_seconds,
            commands: None,
            factors: vec![
                word("load", self.request.load.name()),
                Factor { role: Role::Load, ..block },
                word("engine", "libaio"),
                word("cache", "direct"),
                number("depth", self.request.depth),
                factor.clone(),
            ],
        }
    }
}
