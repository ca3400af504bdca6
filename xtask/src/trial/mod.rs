//! `cargo xtask trial NAME --seed N`: runs the program on cases with known truth, and compares its
//! answers with that truth.
//!
//! A trial makes its cases from a seed: new seeds give new cases, and a failure can be repeated.
//! The outcome of a case is written as a JSON line as soon as it is known: a stopped trial
//! continues, and a case can be found by its number. The verdict counts properties ("limit")
//! against the required share of each, and false sentences by sentence.
//!
//! Not here: the cases and their truth, which are in a module for each trial.

mod capture;
mod diagnose;
mod explain;
mod hosts;
mod mounted;
mod outcome;
mod own;
mod tape;
mod verdict;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;

pub use outcome::Outcome;

/// Arguments of `cargo xtask trial`.
#[derive(clap::Args)]
pub struct TrialArguments {
    /// What is tried
    #[arg(value_enum)]
    name: Name,

    /// Which cases: the same seed makes the same ones
    #[arg(long)]
    seed: u64,

    /// How many cases [default: as many as the verdict asks for]
    #[arg(long, value_name = "N")]
    cases: Option<u64>,

    /// Only this case, again, and what it said in full
    #[arg(long, value_name = "NUMBER")]
    case: Option<u64>,

    /// Begin no case after this many seconds; the same command goes on later
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,

    /// Where outcomes are kept [default: target/trials/NAME-SEED.jsonl]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Try this binary [default: build target/release/takeup and try it]
    #[arg(long, value_name = "FILE")]
    takeup: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    /// Pipelines of other programs: `takeup explain`
    Explain,
    /// Our own runs: what backup, restore and pipe say limits them
    Own,
    /// Jobs of fio, captured and made into jobs again: `takeup capture --fio`
    Capture,
    /// Backup lines on virtual disks and drives: `takeup diagnose`
    Diagnose,
    /// Ranks on virtual disks of which one is slow, or that all share one: `takeup-mpi bench read`
    Hosts,
    /// Virtual drives: the block size that `takeup bench tape` finds
    Tape,
}

/// A kind of trial.
pub trait Trial {
    /// The name of the trial, as typed.
    fn name(&self) -> &'static str;

    /// Number of cases that the verdict requires.
    fn cases(&self) -> u64;

    /// The required share of each property.
    fn asked(&self) -> &'static [Asked];

    /// Makes the case with this number, measures its truth, runs the program and compares.
    ///
    /// # Errors
    ///
    /// When the case itself could not be made or measured: then nothing is known of the program.
    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome>;
}

/// A property of outcomes and its required share.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The name of the property, as in [`Check::property`].
    pub property: &'static str,
    /// Least share of right checks of this property, 0 to 1.
    pub share: f64,
}

/// The environment of a case.
pub struct Ground {
    /// The binary under test.
    pub takeup: PathBuf,
    /// An empty folder, removed after the case.
    pub folder: PathBuf,
    /// The seed of the trial.
    pub seed: u64,
    /// Whether to print the program's output in full.
    pub loud: bool,
}

/// `takeup sim`, which unmounts when this program ends, however it ends.
pub fn sim(takeup: &Path) -> std::process::Command {
    let mut command = std::process::Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(takeup).arg("sim");
    command
}

impl Ground {
    /// Random numbers of the case: the same for a seed and a number.
    #[must_use]
    pub fn random(&self, number: u64) -> testkit::samples::Random {
        testkit::samples::Random::numbered(self.seed.wrapping_mul(1_000_003).wrapping_add(number))
    }
}

fn trial(name: Name) -> Box<dyn Trial> {
    match name {
        Name::Explain => Box::new(explain::Explain),
        Name::Own => Box::new(own::Own),
        Name::Capture => Box::new(capture::Capture),
        Name::Diagnose => Box::new(diagnose::Diagnose),
        Name::Hosts => Box::new(hosts::Hosts),
        Name::Tape => Box::new(tape::Tape),
    }
}

/// Runs the cases without an outcome yet and prints the verdict on all.
///
/// # Errors
///
/// When a file cannot be written or the program cannot be built. A case that could not be made is
/// an outcome, and counts against the trial if too few are left.
pub fn run(arguments: &TrialArguments) -> anyhow::Result<ExitCode> {
    let trial = trial(arguments.name);
    let target = crate::folders::target()?;
    let takeup = match &arguments.takeup {
        Some(path) => path.canonicalize().with_context(|| format!("find {}", path.display()))?,
        None => crate::folders::build_takeup(&target)?,
    };
    let kept = match &arguments.out {
        Some(path) => path.clone(),
        None => target.join("trials").join(format!("{}-{}.jsonl", trial.name(), arguments.seed)),
    };
    if let Some(number) = arguments.case {
        let outcome = one(&*trial, &takeup, arguments.seed, number, true);
        println!("{}", serde_json::to_string_pretty(&outcome).context("write an outcome")?);
        return Ok(ExitCode::SUCCESS);
    }
    let cases = arguments.cases.unwrap_or_else(|| trial.cases());
    let outcomes = all(&*trial, &takeup, arguments, &kept, cases)?;
    let verdict = verdict::Verdict::of(trial.asked(), &outcomes, cases);
    print!("{verdict}");
    println!("outcomes: {}", kept.display());
    Ok(if verdict.is_reached() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The outcomes of all cases: the kept ones, and those that were missing.
fn all(
    trial: &dyn Trial,
    takeup: &Path,
    arguments: &TrialArguments,
    kept: &Path,
    cases: u64,
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = outcome::read(kept)?;
    outcomes.retain(|one| one.number < cases);
    if let Some(folder) = kept.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(kept)
        .with_context(|| format!("open {}", kept.display()))?;
    let start = Instant::now();
    let limit = arguments.limit.map(Duration::from_secs);
    for number in 0..cases {
        if outcomes.iter().any(|one| one.number == number) {
            continue;
        }
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            println!("the time is over; the same command goes on with case {number}");
            break;
        }
        let outcome = one(trial, takeup, arguments.seed, number, false);
        println!("{outcome}");
        let line = serde_json::to_string(&outcome).context("write an outcome")?;
        writeln!(file, "{line}").with_context(|| format!("write {}", kept.display()))?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn one(trial: &dyn Trial, takeup: &Path, seed: u64, number: u64, loud: bool) -> Outcome {
    let made = tempfile::Builder::new().prefix("trial-").tempdir();
    let result = made.context("create a folder").and_then(|folder| {
        let folder = folder.path().to_path_buf();
        trial.run(&Ground { takeup: takeup.to_path_buf(), folder, seed, loud }, number)
    });
    result.unwrap_or_else(|error| Outcome::not_made(number, &error))
}
