//! `cargo xtask trial NAME --seed N`: cases whose truth is known, put to the program, and its
//! answers held against that truth.
//!
//! A trial makes its cases from a seed, so that new seeds are new cases and a failure can be had
//! again. What a case showed is written as one JSON line as soon as it is known: a trial that was
//! stopped goes on where it stopped, and a case is looked up by its number. The verdict counts
//! properties ("limit") against the share that is asked of each, and false sentences by sentence.
//!
//! Not here: the cases and their truth, which are in a module for each trial.

mod capture;
mod explain;
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
    /// Virtual drives: the block size that `takeup bench tape` finds
    Tape,
}

/// One kind of trial.
pub trait Trial {
    /// The name of the trial, as typed.
    fn name(&self) -> &'static str;

    /// How many cases the verdict asks for.
    fn cases(&self) -> u64;

    /// The shares that are asked of each property.
    fn asked(&self) -> &'static [Asked];

    /// Makes the case of that number, measures its truth, asks the program and compares.
    ///
    /// # Errors
    ///
    /// When the case itself could not be made or measured: nothing is known of the program then.
    fn run(&self, ground: &Ground, number: u64) -> anyhow::Result<Outcome>;
}

/// A property of outcomes and the share of them that must have it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The name of the property, as in [`Check::property`].
    pub property: &'static str,
    /// At least this share of the checks of that property is right, 0 to 1.
    pub share: f64,
}

/// What a case works with.
pub struct Ground {
    /// The binary that is tried.
    pub takeup: PathBuf,
    /// An empty folder, removed behind the case.
    pub folder: PathBuf,
    /// The seed of the trial.
    pub seed: u64,
    /// Whether what was said is printed in full.
    pub loud: bool,
}

/// `takeup sim`, which unmounts what it serves when this program ends, however it does.
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
        Name::Tape => Box::new(tape::Tape),
    }
}

/// Runs the cases that are not yet known and prints the verdict of all.
///
/// # Errors
///
/// When a file cannot be written or the program cannot be built. A case that could not be made is
/// an outcome, and counts against the trial where it leaves too few.
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

/// The outcomes of all cases: those that are kept, and those that are missing among them.
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
