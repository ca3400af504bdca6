//! `takeup bench power`: the differences that an experiment will be able to find, before it runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::format::{counted, duration};
use base::rounding::Rounding;
use clap::Args;
use experiment::plan::Plan;
use experiment::power::{Noise, POWER, power, repeats_for, repeats_for_the_same, seen_with};
use experiment::record::load;
use serde_json::json;

use super::options::bytes_or_zero;
use crate::outcome::Form;
use crate::outcome::end;
use crate::outcome::to_standard_output;
use service::failure::{Failure, with_causes};
use service::outcome::Outcome;

/// Compute how many repeats a difference needs, from the scatter of earlier runs
///
/// The scatter comes from RECORDs that `takeup bench` wrote earlier; name records that resemble the
/// planned experiment. Without any, Takeup uses takeup-bench-*.ndjson in this folder. A difference
/// counts as found when four of five experiments show it, as one of all combinations that are
/// compared.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench power
  takeup bench power yesterday.ndjson --difference 3
  takeup bench read big.img --print-plan >plan.toml
  takeup bench power --plan plan.toml --difference 2

Nothing is run, and nothing is written.")]
pub struct PowerArgs {
    /// Files of earlier experiments on this machine
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The difference to find, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    difference: f64,
    /// Combinations that are compared; by default those of the plan, or of the first record
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    combinations: Option<usize>,
    /// A plan, as --print-plan writes it; Takeup also reports which difference it can find
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &PowerArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments), "bench power", form)
}

fn show(arguments: &PowerArgs) -> Result<Outcome, Failure> {
    if !(arguments.difference > 0.0 && arguments.difference <= 1000.0) {
        return Err(Failure::of(
            "--difference must be a percentage above 0 and at most 1000",
            None,
        ));
    }
    let plan = arguments.plan.as_deref().map(plan).transpose()?;
    let known = known(&arguments.records)?;
    let combinations = match (&plan, arguments.combinations) {
        (Some(plan), _) => plan.cells().len(),
        (None, Some(combinations)) => combinations,
        (None, None) => known.combinations,
    };
    if combinations < 2 {
        return Err(Failure::of("nothing to compare: there is only one combination", None));
    }
    let answer = Answer { arguments, plan, known, combinations };
    let text = if arguments.json { answer.document() } else { answer.text() };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn plan(path: &Path) -> Result<Plan, Failure> {
    let name = path.display();
    let text = machine::small_file::text(path)
        .map_err(|error| Failure::of(format!("read {name}: {error}"), None))?;
    Plan::from_toml(&text, bytes_or_zero).map_err(|error| {
        let hint = "use --print-plan to see how a plan is written";
        Failure::of(format!("{name}: {}", with_causes(&error)), Some(hint))
    })
}

/// The scatter in earlier records.
struct Known {
    noise: Noise,
    files: Vec<PathBuf>,
    /// Number of combinations of the first record.
    combinations: usize,
}

fn known(named: &[PathBuf]) -> Result<Known, Failure> {
    let files = if named.is_empty() { found() } else { named.to_vec() };
    let mut noises = Vec::new();
    let mut used = Vec::new();
    let mut combinations = 0;
    for path in files {
        let experiment = load(&path).map_err(|error| Failure::new(&error, None))?;
        let Some(noise) = Noise::of(&experiment.runs) else { continue };
        if used.is_empty() {
            let levels = experiment.header.factors.iter().map(|factor| factor.levels.len());
            combinations = levels.product();
        }
        noises.push(noise);
        used.push(path);
    }
    let noise = Noise::of_several(&noises).ok_or_else(|| {
        Failure::of(
            "no record with repeats: the scatter of this machine is unknown",
            Some("measure a few repeats: `takeup bench read FILE --repeats 3 --repeats-max 3`"),
        )
    })?;
    Ok(Known { noise, files: used, combinations })
}

/// The records of this folder with the default names.
fn found() -> Vec<PathBuf> {
    let is_record = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("takeup-bench-") && name.ends_with(".ndjson")
    };
    let entries = std::fs::read_dir(".").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| PathBuf::from(entry.file_name())).filter(is_record).collect();
    files.sort();
    files
}

struct Answer<'a> {
    arguments: &'a PowerArgs,
    plan: Option<Plan>,
    known: Known,
    combinations: usize,
}

/// Two rates within this share count as the same.
const BAND: f64 = 0.02;

/// Numbers of repeats in the answer.
const TOLD: [u64; 4] = [3, 5, 10, 20];

impl Answer<'_> {
    fn difference(&self) -> f64 {
        self.arguments.difference / 100.0
    }

    fn repeats(&self) -> Option<u64> {
        repeats_for(self.difference(), self.known.noise.scatter, self.combinations)
    }

    fn seconds(&self, repeats: u64) -> f64 {
        repeats as f64 * self.combinations as f64 * self.known.noise.run_seconds
    }

    fn seen(&self, repeats: u64) -> Option<f64> {
        seen_with(self.known.noise.scatter, self.combinations, repeats)
    }

    /// Repeats for which a plan has time.
    fn planned(&self) -> Option<u64> {
        let stop = self.plan.as_ref()?.stop;
        let in_budget = (stop.budget_seconds / self.seconds(1)).floor() as u64;
        Some(stop.repeats_max.min(in_budget))
    }

    fn text(&self) -> String {
        let Noise { scatter, degrees, run_seconds } = self.known.noise;
        let percent = self.arguments.difference;
        let names: Vec<String> =
            self.known.files.iter().map(|file| file.display().to_string()).collect();
        let digits = Rounding::digits(2);
        // The relative error of a scatter with few degrees of freedom: a quarter with 8 of them.
        let known = Rounding::digits(1).percent((1.0 / (2.0 * degrees.max(0.5))).sqrt());
        let mut text = format!(
            "from {}: runs of one combination scatter by {} within a repeat (known to about \
             {known} of that), and a run takes {}, preparation included\n",
            names.join(", "),
            digits.percent(scatter),
            duration(run_seconds),
        );
        let among = self.combinations;
        text.push_str(&match self.repeats() {
            Some(repeats) => format!(
                "to find a difference of {percent} % among {among} combinations: {repeats} \
                 repeats, {}\n",
                duration(self.seconds(repeats))
            ),
            None => format!(
                "to find a difference of {percent} % among {among} combinations: more repeats than \
                 are practical; longer runs scatter less\n"
            ),
        });
        for repeats in TOLD {
            if let Some(seen) = self.seen(repeats) {
                text.push_str(&format!(
                    "{repeats:>4} repeats, {}: differences of {} and more\n",
                    duration(self.seconds(repeats)),
                    digits.percent(seen),
                ));
            }
        }
        let same = repeats_for_the_same(BAND, scatter, self.combinations);
        text.push_str(&match same {
            Some(repeats) => format!(
                "to show that two are the same within 2 %: {repeats} repeats, {}\n",
                duration(self.seconds(repeats))
            ),
            None => "to show that two are the same within 2 %: more repeats than are practical\n"
                .to_owned(),
        });
        if let Some(repeats) = self.planned() {
            text.push_str(&self.of_the_plan(repeats));
        }
        text + "a difference of that size is found in four of five experiments\n"
    }

    fn of_the_plan(&self, repeats: u64) -> String {
        match self.seen(repeats) {
            Some(seen) => format!(
                "the plan has time for {}: differences of {} and more\n",
                counted(repeats, "repeat", "repeats"),
                Rounding::digits(2).percent(seen)
            ),
            None => format!(
                "the plan has time for {}, too few to find any difference; use fewer combinations, \
                 shorter runs or a longer --budget\n",
                counted(repeats, "repeat", "repeats"),
            ),
        }
    }

    fn document(&self) -> String {
        let told = |&repeats: &u64| {
            json!({
                "repeats": repeats,
                "seconds": self.seconds(repeats),
                "seen": self.seen(repeats),
                "power": power(
                    self.difference(),
                    self.known.noise.scatter,
                    self.combinations,
                    repeats,
                ),
            })
        };
        let plan = self.planned().map(|repeats| told(&repeats));
        let document = json!({
            "command": "bench power",
            "records": self.known.files,
            "noise": self.known.noise,
            "combinations": self.combinations,
            "difference": self.difference(),
            "found_in": POWER,
            "repeats": self.repeats(),
            "seconds": self.repeats().map(|repeats| self.seconds(repeats)),
            "repeats_for_the_same": repeats_for_the_same(
                BAND,
                self.known.noise.scatter,
                self.combinations,
            ),
            "with": TOLD.iter().map(told).collect::<Vec<_>>(),
            "plan": plan,
        });
        format!("{document:#}\n")
    }
}
