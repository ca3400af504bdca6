//! The differences that an experiment will be able to find, before it runs.

use std::path::PathBuf;

use experiment::plan::Plan;
use experiment::power::{Noise, POWER, power, repeats_for, repeats_for_the_same, seen_with};
use experiment::record::load;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan_from_file;
use crate::Answer;
use crate::failure::Failure;

/// Which difference is to be found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BenchPowerRequest {
    /// Files of earlier experiments on this machine; the default are those of this folder.
    pub records: Vec<PathBuf>,
    /// The difference to find, in percent.
    pub difference_percent: f64,
    /// Combinations that are compared; the default are those of the plan, or of the first record.
    pub combinations: Option<usize>,
    /// A file with a plan.
    pub plan: Option<PathBuf>,
}

impl Default for BenchPowerRequest {
    fn default() -> BenchPowerRequest {
        BenchPowerRequest {
            records: Vec::new(),
            difference_percent: 5.0,
            combinations: None,
            plan: None,
        }
    }
}

/// How many repeats a difference needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchPowerAnswer {
    /// The files that the scatter is known from; bytes that are no UTF-8 are replaced.
    pub records: Vec<String>,
    /// The scatter in them.
    pub noise: Noise,
    /// Number of combinations that are compared.
    pub combinations: usize,
    /// The difference to find, as a share.
    pub difference: f64,
    /// Share of experiments that find it.
    pub found_in: f64,
    /// Repeats that it needs; null if they are more than practical.
    pub repeats: Option<u64>,
    /// Time that they take.
    pub seconds: Option<f64>,
    /// Repeats that show that two rates are the same within 2 %.
    pub repeats_for_the_same: Option<u64>,
    /// What some numbers of repeats find.
    pub with: Vec<RepeatsAnswer>,
    /// What the repeats find for which the plan has time.
    pub plan: Option<RepeatsAnswer>,
}

impl Answer for BenchPowerAnswer {
    const COMMAND: &'static str = "bench power";
}

/// What a number of repeats finds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsAnswer {
    pub repeats: u64,
    /// Time that they take.
    pub seconds: f64,
    /// The smallest difference that they find, as a share; null if they find none.
    pub seen: Option<f64>,
    /// Share of experiments that find the difference that is asked for.
    pub power: Option<f64>,
}

/// Two rates within this share count as the same.
const BAND: f64 = 0.02;

/// Numbers of repeats in the answer.
const TOLD: [u64; 4] = [3, 5, 10, 20];

/// Computes how many repeats a difference needs.
///
/// # Errors
/// When the scatter of this machine is not known, or there is nothing to compare.
pub fn powered(request: &BenchPowerRequest) -> Result<BenchPowerAnswer, Failure> {
    let percent = request.difference_percent;
    if !(percent > 0.0 && percent <= 1000.0) {
        return Err(Failure::of(
            "--difference must be a percentage above 0 and at most 1000",
            None,
        ));
    }
    let plan = request.plan.as_deref().map(plan_from_file).transpose()?;
    let known = known(&request.records)?;
    let combinations = match (&plan, request.combinations) {
        (Some(plan), _) => plan.cells().len(),
        (None, Some(combinations)) => combinations,
        (None, None) => known.combinations,
    };
    if combinations < 2 {
        return Err(Failure::of("nothing to compare: there is only one combination", None));
    }
    let question = Question { noise: known.noise, combinations, difference: percent / 100.0 };
    let scatter = known.noise.scatter;
    let repeats = repeats_for(question.difference, scatter, combinations);
    let planned = plan.map(|plan| question.planned(&plan));
    Ok(BenchPowerAnswer {
        records: known.files.iter().map(|file| file.display().to_string()).collect(),
        noise: known.noise,
        combinations,
        difference: question.difference,
        found_in: POWER,
        repeats,
        seconds: repeats.map(|repeats| question.seconds(repeats)),
        repeats_for_the_same: repeats_for_the_same(BAND, scatter, combinations),
        with: TOLD.iter().map(|repeats| question.with(*repeats)).collect(),
        plan: planned.map(|repeats| question.with(repeats)),
    })
}

/// The difference to find, and what it is to be found in.
struct Question {
    noise: Noise,
    combinations: usize,
    difference: f64,
}

impl Question {
    fn seconds(&self, repeats: u64) -> f64 {
        repeats as f64 * self.combinations as f64 * self.noise.run_seconds
    }

    /// Repeats for which a plan has time.
    fn planned(&self, plan: &Plan) -> u64 {
        let in_budget = (plan.stop.budget_seconds / self.seconds(1)).floor() as u64;
        plan.stop.repeats_max.min(in_budget)
    }

    fn with(&self, repeats: u64) -> RepeatsAnswer {
        let Question { noise: Noise { scatter, .. }, combinations, difference } = *self;
        RepeatsAnswer {
            repeats,
            seconds: self.seconds(repeats),
            seen: seen_with(scatter, combinations, repeats),
            power: power(difference, scatter, combinations, repeats),
        }
    }
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
