//! `takeup tune queue`: which settings of the queue a load needs, measured with it.
//!
//! Each setting is an experiment of `bench disk` of its own, with the others as they are in force:
//! all combinations would take longer than anybody waits, and what they come to together is not
//! claimed. Where they act (the disks at the bottom, or a multipath device) is `bench`'s business.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::disk::DiskExecutor;
use bench::disk::queue::{factor, settings_of};
use bench::disk::safety::Permission;
use bench::judgement::advice;
use bench::plan::{Plan, Stop};
use bench::power::Noise;
use bench::record::{Experiment, Factor, Level, Role, RunRecord};
use bench::run::unix_seconds;
use clap::{Args, ValueEnum};
use flow::cancel::Cancel;
use host::settings::{Guard, GuardError, Kind, Setting};

use super::apply::{ApplyArgs, acting, apply};
use super::measuring::{Extent, LOOKS, Measuring, judged, no_number};
use super::queue_advice::{Little, Load, Queue, Tuned};
use super::subject::Subject;
use crate::commands::bench::{Form, disk, finish};
use crate::failure::Failure;
use crate::outcome::{Outcome, to_standard_output};
use crate::quantity::{Size, Span};

/// Find the settings of the queue that a load needs, by measuring with it
///
/// Scheduler, length of the queue, largest request and merging are tried in turn on the disks where
/// they act, each with the others as they are, as often as it takes to see the --difference; how
/// long that will be is said before it begins. PATH is only read, and every setting is put back
/// behind the runs, also after a crash. The smallest change that is as good as the best is
/// recommended, for this load, and nothing that is not settled; --apply sets it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo takeup tune queue /srv/db.img
  sudo takeup tune queue /dev/sdb --load read --block-size 1M --depth 8 --settings max_sectors_kb
  takeup tune revert

Without the right to set them the load is measured as it is. takeup bench disk measures all loads,
and combinations of settings.")]
pub struct QueueArgs {
    /// File or block device to read; of a folder the largest file below it
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
    /// What is done
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
    /// The difference that is worth having, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    difference: f64,
    /// Begin no run that would not end within this time
    #[arg(long, default_value = "10m", value_name = "TIME")]
    budget: Span,
    /// Set what is recommended
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    how: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print nothing but the recommendation, warnings and errors
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// Settings that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum QueueSetting {
    /// Who decides in which order a disk gets its requests
    Scheduler,
    /// Requests that may wait
    NrRequests,
    /// Largest request
    MaxSectorsKb,
    /// Whether requests are joined
    Nomerges,
}

impl QueueSetting {
    fn kind(self) -> Kind {
        match self {
            QueueSetting::Scheduler => Kind::Scheduler,
            QueueSetting::NrRequests => Kind::Requests,
            QueueSetting::MaxSectorsKb => Kind::MaxSectors,
            QueueSetting::Nomerges => Kind::NoMerges,
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
/// Lengths of the queue and largest requests that are tried besides those in force.
const REQUESTS: [u64; 6] = [16, 32, 64, 128, 256, 512];
const REQUEST_KIB: [u64; 5] = [64, 128, 256, 512, 1024];

/// Runs the command.
pub fn run(arguments: &QueueArgs) -> ExitCode {
    let form = if arguments.json { Form::Json } else { Form::Text };
    finish(tune(arguments), "tune queue", form)
}

fn tune(arguments: &QueueArgs) -> Result<Outcome, Failure> {
    super::measuring::check_difference(arguments.difference)?;
    if arguments.apply { arguments.how.check() } else { arguments.how.check_unused() }?;
    super::recovered()?;
    super::put_back_overdue()?;
    let cancel = Cancel::new();
    let subject = Subject::find(&arguments.path)?;
    let tuning = Tuning { arguments, subject, cancel: &cancel };
    let Chosen { tried, left_out } = tuning.factors()?;
    crate::interrupt::watch(&cancel);
    let queue = tuning.measured(&tried, left_out)?;
    let applied = match queue.to_apply() {
        settings if arguments.apply && !settings.is_empty() => {
            let mut all = Vec::new();
            for (kind, value) in settings {
                all.extend(acting(kind, &value, &tuning.subject.storage, &arguments.path)?);
            }
            Some(apply(&arguments.path, all, &arguments.how)?)
        }
        _ => None,
    };
    let mut text = if arguments.json {
        format!("{:#}\n", queue.document(applied.as_ref()))
    } else {
        queue.text(applied.as_ref())
    };
    let is_unsettled = arguments.apply && applied.is_none() && !queue.is_settled();
    if is_unsettled && !arguments.json {
        text.push_str("nothing was applied: more --budget settles more\n");
    }
    to_standard_output(text.as_bytes())?;
    if is_unsettled {
        return Ok(Outcome::Warned);
    }
    Ok(applied.map_or(Outcome::Done, |applied| applied.outcome()))
}

/// Settings that are tried, and those that are not, with the reason.
struct Chosen {
    tried: Vec<Tried>,
    left_out: Vec<(Kind, String)>,
}

/// A setting that is tried.
struct Tried {
    kind: Kind,
    factor: Factor,
}

struct Tuning<'a> {
    arguments: &'a QueueArgs,
    subject: Subject,
    cancel: &'a Cancel,
}

impl Tuning<'_> {
    /// What of the settings that are asked for can be tried.
    fn factors(&self) -> Result<Chosen, Failure> {
        let (mut tried, mut left_out) = (Vec::new(), Vec::new());
        for kind in self.arguments.settings.iter().map(|setting| setting.kind()) {
            match self.levels(kind) {
                Ok(typed) => {
                    let factor = factor(kind, &typed, &self.subject.storage);
                    let factor = factor.map_err(|error| Failure::new(&error, None))?;
                    tried.extend(factor.map(|factor| Tried { kind, factor }));
                }
                Err(why) => left_out.push((kind, why)),
            }
        }
        if tried.is_empty() && !left_out.is_empty() && left_out.iter().all(|it| it.1 != NOT_ROOT) {
            let told: Vec<String> =
                left_out.iter().map(|(kind, why)| format!("{}: {why}", kind.name())).collect();
            let message = format!("{}: {}", self.arguments.path.display(), told.join("; "));
            return Err(Failure::of(message, Some("takeup probe shows what there is to set")));
        }
        Ok(Chosen { tried, left_out })
    }

    /// Values to try, in the kernel's words; or why there are none.
    fn levels(&self, kind: Kind) -> Result<Vec<String>, String> {
        let storage = &self.subject.storage;
        let settings = settings_of(kind, storage).map_err(|error| error.to_string())?;
        let first = &settings[0];
        let value = first.value().map_err(|error| error.to_string())?;
        for setting in &settings {
            if setting.check_settable().is_err() {
                return Err(NOT_ROOT.to_owned());
            }
            // One level is in force for all of them, or nothing is.
            if setting.value().is_ok_and(|other| other != value) {
                return Err("the disks have different values".to_owned());
            }
        }
        let present: u64 = value.parse().unwrap_or(0);
        let numbers = |levels: &[u64]| {
            let mut levels: Vec<u64> = levels.iter().copied().chain([present]).collect();
            levels.sort_unstable();
            levels.dedup();
            levels
        };
        let levels = match kind {
            Kind::Scheduler => {
                let choices = first.choices().map_err(|error| error.to_string())?;
                if choices.len() < 2 {
                    return Err(format!("there is none but {value}"));
                }
                return Ok(choices);
            }
            Kind::MaxSectors => {
                if let Err(refused) = acting(kind, &value, storage, &self.arguments.path) {
                    return Err(refused.message().to_owned());
                }
                let fits = |kib: &u64| {
                    let text = kib.to_string();
                    *kib == present || acting(kind, &text, storage, &self.arguments.path).is_ok()
                };
                let own: Vec<u64> = numbers(&REQUEST_KIB).into_iter().filter(fits).collect();
                let request = self.arguments.block_size.0.div_ceil(1024);
                // What is read in sequence may be joined to requests of any size.
                if self.arguments.load == QueueLoad::Randread && own.iter().all(|it| *it >= request)
                {
                    return Err(format!("none cuts requests of {request} KiB"));
                }
                own
            }
            Kind::Requests => {
                let largest = self.largest_queue(&settings, present)?;
                let mut own = numbers(&REQUESTS);
                own.retain(|&requests| requests <= largest);
                own
            }
            _ => vec![0, 1, 2],
        };
        if levels.len() < 2 {
            return Err(format!("the device takes no other than {value}"));
        }
        Ok(levels.into_iter().map(|level: u64| level.to_string()).collect())
    }

    /// The longest queue that the kernel takes, which is tried for a moment and put back.
    fn largest_queue(&self, settings: &[Setting], present: u64) -> Result<u64, String> {
        let told = |error: GuardError| error.to_string();
        let journal = crate::commands::bench::journal();
        let mut guard = Guard::new(journal.as_deref(), settings).map_err(told)?;
        let twice = (present * 2).max(REQUESTS[REQUESTS.len() - 1]);
        let mut longer: Vec<u64> = REQUESTS.into_iter().chain([twice]).collect();
        longer.retain(|&requests| requests > present);
        longer.sort_unstable();
        let is_taken = |requests: &&u64| {
            let text = requests.to_string();
            settings.iter().all(|setting| guard.set(setting, &text).is_ok())
        };
        let largest = longer.iter().take_while(is_taken).last().copied().unwrap_or(present);
        guard.put_back().map_err(told)?;
        Ok(largest)
    }

    fn measuring(&self) -> Measuring<'_> {
        Measuring {
            difference: self.arguments.difference / 100.0,
            budget_seconds: self.arguments.budget.0,
            is_quiet: self.arguments.quiet,
            cancel: self.cancel,
        }
    }

    fn measured(&self, tried: &[Tried], left_out: Vec<(Kind, String)>) -> Result<Queue, Failure> {
        let begun = std::time::Instant::now();
        let look = self.look(tried)?;
        let runs = look.runs.len().max(1) as f64;
        let run_seconds = begun.elapsed().as_secs_f64() / runs;
        let mut queue = Queue {
            path: self.arguments.path.clone(),
            file: self.subject.file.clone(),
            device: bench::disk::queue::names(&self.subject.storage).join(" "),
            load: Load {
                name: load_name(self.arguments.load),
                block_bytes: self.arguments.block_size.0,
                depth: self.arguments.depth,
            },
            worth: self.arguments.difference / 100.0,
            tuned: Vec::new(),
            as_it_is: None,
            left_out,
        };
        if tried.is_empty() {
            queue.as_it_is = Some((judged(&look)?.0, Little::of(look.runs.iter())));
            return Ok(queue);
        }
        let levels = |tried: &Tried| tried.factor.levels.len();
        let extent = Extent {
            settings: tried.iter().map(levels).sum(),
            compared: tried.iter().map(levels).max().unwrap_or(2),
            round_seconds: run_seconds * tried.iter().map(levels).sum::<usize>() as f64,
        };
        let repeats = self.measuring().repeats(Noise::of(&look.runs).as_ref(), extent);
        let mut settings_left = extent.settings;
        for one in tried {
            let left = self.arguments.budget.0 - begun.elapsed().as_secs_f64();
            let share = levels(one) as f64 / settings_left as f64;
            settings_left -= levels(one);
            let stop = Stop {
                repeats_min: repeats,
                repeats_max: repeats,
                // What one leaves is there for those behind it.
                budget_seconds: (left * share).max(run_seconds),
                ..Stop::default()
            };
            let experiment = self.experiment(&one.factor, stop)?;
            let (judgement, options) = judged(&experiment)?;
            let advice = advice(&judgement, &one.factor, &experiment.runs, &options);
            let advice = advice.ok_or_else(|| {
                let hint = "--budget gives more time";
                let message = format!("no run of the {} in force has ended", one.kind.name());
                Failure::of(message, Some(hint))
            })?;
            let is_present =
                |run: &&RunRecord| run.cell.get(&one.factor.name) == one.factor.present.as_ref();
            let little = Little::of(experiment.runs.iter().filter(is_present));
            queue.tuned.push(Tuned { kind: one.kind, judgement, advice, little });
        }
        Ok(queue)
    }

    /// A few runs of two values, or of what is in force where nothing may be set.
    fn look(&self, tried: &[Tried]) -> Result<Experiment, Failure> {
        let stop = Stop {
            repeats_min: LOOKS,
            repeats_max: LOOKS,
            budget_seconds: self.arguments.budget.0,
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
        let experiment = self.experiment(&two.unwrap_or(nothing), stop)?;
        if experiment.runs.iter().all(|run| run.speed().is_none()) {
            return Err(no_number(&experiment));
        }
        Ok(experiment)
    }

    fn experiment(&self, factor: &Factor, stop: Stop) -> Result<Experiment, Failure> {
        let plan = self.plan(factor, stop);
        self.measuring().experiment(&plan, None, |plan| {
            let journal = crate::commands::bench::journal();
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

/// Why nothing is tried by an ordinary user.
pub const NOT_ROOT: &str = "set by root only";

fn load_name(load: QueueLoad) -> &'static str {
    match load {
        QueueLoad::Randread => "randread",
        QueueLoad::Read => "read",
    }
}
