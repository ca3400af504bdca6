//! `takeup tune queue`: measures which queue settings are best for a load.
//!
//! Each setting is a separate experiment of `bench disk`, with the other settings unchanged: all
//! combinations would take too long, so their combined effect is not claimed. Crate `loads` decides
//! where a setting has an effect (the disks at the bottom, or a multipath device).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use experiment::judgement::advice;
use experiment::plan::{Plan, Stop};
use experiment::power::Noise;
use experiment::record::{Experiment, Factor, Level, Role, RunRecord};
use experiment::run::unix_seconds;
use flow::cancel::Cancel;
use loads::disk::DiskExecutor;
use loads::disk::queue::factor;
use loads::disk::safety::Permission;
use storage::settings::SettingKind;

use super::apply::why_not_kept;
use super::levels::{Asked, LeftOut, NOT_ROOT};
use super::measuring::{LOOKS, MeasureArgs, Measuring, MeasuringExtent, judged, no_number};
use super::queue_advice::{Little, Load, Queue, Tuned};
use super::subject::Subject;
use crate::commands::bench::disk;
use crate::outcome::{Form, end};
use arguments::quantity::{Size, Span};
use service::failure::Failure;
use service::outcome::Outcome;

/// Measure which queue settings are best for a load
///
/// Takeup tries scheduler, queue length, largest request and merging in turn, each with the other
/// settings unchanged, until the runs can show the --difference. It says first how long that takes.
/// It only reads PATH, and restores every setting afterwards, even after a crash. It recommends the
/// smallest change that is as good as the best for this load, and only if the result is settled.
/// --apply sets it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo takeup tune queue /srv/db.img
  sudo takeup tune queue /dev/sdb --load read --block-size 1M --depth 8 --settings max_sectors_kb
  takeup tune revert

Without root, only the load with the present settings is measured. takeup bench disk measures other
loads, and combinations of settings.")]
pub struct QueueArgs {
    /// File or block device to read; for a folder, the largest file in it
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Settings to try
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "scheduler,nr_requests,max_sectors_kb,nomerges"
    )]
    settings: Vec<QueueSetting>,
    /// Load to measure
    #[arg(long, value_name = "LOAD", default_value = "randread")]
    load: QueueLoad,
    /// Bytes of one request
    #[arg(short, long, value_name = "SIZE", default_value = "4k")]
    block_size: Size,
    /// Requests in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 32,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    depth: u64,
    /// Length of one run
    #[arg(long, value_name = "TIME", default_value = "2s")]
    runtime: Span,
    /// Keep the runs in this folder, one file for each setting, for `takeup report`
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Settings that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum QueueSetting {
    /// I/O scheduler, which orders the requests
    Scheduler,
    /// Requests that may wait
    NrRequests,
    /// Largest request
    MaxSectorsKb,
    /// Whether requests are merged
    Nomerges,
}

impl QueueSetting {
    fn kind(self) -> SettingKind {
        match self {
            QueueSetting::Scheduler => SettingKind::Scheduler,
            QueueSetting::NrRequests => SettingKind::Requests,
            QueueSetting::MaxSectorsKb => SettingKind::MaxSectors,
            QueueSetting::Nomerges => SettingKind::NoMerges,
        }
    }
}

/// Loads that write nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueueLoad {
    /// Random reads
    Randread,
    /// Sequential reads
    Read,
}

/// Part of the file or device that is read.
const LENGTH_BYTES_MAX: u64 = 1 << 30;
/// Runs the command.
pub fn run(arguments: &QueueArgs) -> ExitCode {
    let form = Form::of(arguments.measure.json);
    end(tune(arguments), "tune queue", form)
}

fn tune(arguments: &QueueArgs) -> Result<Outcome, Failure> {
    given_once(&arguments.settings)?;
    arguments.measure.begin()?;
    let cancel = Cancel::new();
    let subject = Subject::find(&arguments.path)?;
    let kept = Kept { folder: arguments.output.as_deref() };
    let measuring = Measuring::new(&arguments.measure, &cancel);
    let tuning = Tuning { arguments, subject, measuring, kept };
    let Chosen { tried, left_out } = tuning.factors()?;
    kept.check(tried.iter().map(|tried| tried.kind.file_name()))?;
    crate::interrupt::watch(&cancel);
    let queue = tuning.measured(&tried, left_out)?;
    arguments.measure.end(&queue, &tuning.subject.storage, &arguments.path)
}

/// Refuses a setting that is named twice, which is a typing error.
fn given_once(settings: &[QueueSetting]) -> Result<(), Failure> {
    let twice = settings.iter().enumerate().find(|(at, setting)| settings[..*at].contains(setting));
    match twice {
        Some((_, setting)) => {
            let name = setting.kind().file_name();
            Err(Failure::of(format!("--settings: {name} is given twice"), None))
        }
        None => Ok(()),
    }
}

/// Where the runs are kept.
#[derive(Clone, Copy)]
struct Kept<'a> {
    folder: Option<&'a Path>,
}

/// File name of the load with the present settings.
const AS_IT_IS: &str = "as_it_is";

impl Kept<'_> {
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
            let why = service::failure::with_causes(&error);
            Failure::of(format!("create the folder {}: {why}", folder.display()), None)
        })
    }
}

/// Settings to try, and those left out with the reason.
struct Chosen {
    tried: Vec<Tried>,
    left_out: Vec<LeftOut>,
}

/// A setting to try.
struct Tried {
    kind: SettingKind,
    factor: Factor,
}

struct Tuning<'a> {
    arguments: &'a QueueArgs,
    subject: Subject,
    measuring: Measuring<'a>,
    kept: Kept<'a>,
}

impl Tuning<'_> {
    /// The requested settings that can be tried.
    fn factors(&self) -> Result<Chosen, Failure> {
        let (mut tried, mut left_out) = (Vec::new(), Vec::new());
        let asked = Asked {
            path: &self.arguments.path,
            storage: &self.subject.storage,
            block_bytes: self.arguments.block_size.0,
            is_sequential: self.arguments.load == QueueLoad::Read,
        };
        for kind in self.arguments.settings.iter().map(|setting| setting.kind()) {
            let levels = asked.levels(kind);
            left_out.extend(levels.left_out);
            let factor = factor(kind, &levels.values, &self.subject.storage);
            let factor = factor.map_err(|error| Failure::new(&error, None))?;
            tried.extend(factor.map(|factor| Tried { kind, factor }));
        }
        let is_for_root = left_out.iter().any(|one: &LeftOut| one.why == NOT_ROOT);
        if is_for_root && self.arguments.measure.apply {
            let path = self.arguments.path.display();
            let message = format!("{path}: no permission to set the queue: {NOT_ROOT}");
            let hint = "leave out --apply to measure the load with the present settings";
            return Err(Failure::of(message, Some(hint)));
        }
        if tried.is_empty() && !left_out.is_empty() && !is_for_root {
            let one = |one: &LeftOut| format!("{}: {}", one.kind.name(), one.words());
            let told: Vec<String> = left_out.iter().map(one).collect();
            let message = format!("{}: {}", self.arguments.path.display(), told.join("; "));
            return Err(Failure::of(message, Some("run `takeup probe` to see the settings")));
        }
        Ok(Chosen { tried, left_out })
    }

    fn measured(&self, tried: &[Tried], left_out: Vec<LeftOut>) -> Result<Queue, Failure> {
        let look = self.look(tried)?;
        let runs = look.runs.len().max(1) as f64;
        let run_seconds = self.measuring.passed_seconds() / runs;
        let kinds: Vec<SettingKind> = tried.iter().map(|one| one.kind).collect();
        let mut queue = Queue {
            path: self.arguments.path.clone(),
            file: self.subject.file.clone(),
            device: loads::disk::queue::names(&self.subject.storage).join(" "),
            load: Load {
                name: load_name(self.arguments.load),
                block_bytes: self.arguments.block_size.0,
                depth: self.arguments.depth,
            },
            worth: self.arguments.measure.worth(),
            not_kept: why_not_kept(&kinds, &self.subject.storage),
            tuned: Vec::new(),
            as_it_is: None,
            left_out,
        };
        if tried.is_empty() {
            queue.as_it_is = Some((judged(&look)?.0, Little::of(look.runs.iter())));
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
                difference_percent: Some(self.arguments.measure.worth() * 100.0),
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
            let little = Little::of(experiment.runs.iter().filter(is_present));
            queue.tuned.push(Tuned { kind: one.kind, judgement, advice, little });
        }
        Ok(queue)
    }

    /// A few runs of two values, or of the present ones if nothing may be set.
    fn look(&self, tried: &[Tried]) -> Result<Experiment, Failure> {
        let stop = Stop {
            repeats_min: LOOKS,
            repeats_max: LOOKS,
            budget_seconds: self.arguments.measure.budget.0,
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
            let journal = service::state::journal();
            let executor = DiskExecutor::new(plan, None, Permission::KeepData, journal.as_deref());
            executor.map_err(disk::failure)
        })
    }

    fn plan(&self, factor: &Factor, stop: Stop) -> Plan {
        let word = |name: &str, word: &str| Factor::new(name, vec![Level::Text(word.to_owned())]);
        let number = |name: &str, number| Factor::new(name, vec![Level::Number(number)]);
        let block = number("block_bytes", self.arguments.block_size.0);
        Plan {
            kind: "disk".to_owned(),
            title: format!("queue below {}", self.subject.file.display()),
            paths: vec![self.subject.file.display().to_string()],
            length_bytes: self.subject.length_bytes.min(LENGTH_BYTES_MAX),
            seed: unix_seconds(),
            stop,
            random_reads: 0,
            run_seconds: self.arguments.runtime.0,
            commands: None,
            factors: vec![
                word("load", load_name(self.arguments.load)),
                Factor { role: Role::Load, ..block },
                word("engine", "libaio"),
                word("cache", "direct"),
                number("depth", self.arguments.depth),
                factor.clone(),
            ],
        }
    }
}

fn load_name(load: QueueLoad) -> &'static str {
    match load {
        QueueLoad::Randread => "randread",
        QueueLoad::Read => "read",
    }
}
