//! `cargo xtask mutants --seed N`: do the tests detect a defect?
//!
//! cargo-mutants lists small defects that can be put into a subject: a function that returns at
//! once, a `<` that becomes `<=`. A seed picks some of them. Each is written into a copy of the
//! tree, built, and run with the tests of the subject. The verdict is the share that a test
//! detected.
//!
//! The copy has its own target directory and is rebuilt after each change, so that only the subject
//! and its tests are compiled. cargo-mutants itself would test the whole workspace for each mutant,
//! which takes minutes. The outcome of a mutant is written as a JSON line as soon as it is known,
//! and the same command continues after the last line.
//!
//! Not here: which tests belong to which subject (`subject.rs`).

mod copy;
mod mutant;
mod outcome;
mod subject;
mod survivors;
mod trial;
mod verdict;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use self::copy::Copy;
use self::mutant::Mutant;
use self::outcome::{Fate, Outcome};
use self::subject::Subject;
use self::survivors::Survivors;
use self::verdict::Verdict;

/// Default number of mutants of each subject.
const SAMPLE: usize = 60;
/// The survivors that change nothing observable, each with its reason.
const SURVIVORS: &str = "xtask/mutants-survive.toml";

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args)]
pub struct MutantsArguments {
    /// Which mutants: the same seed picks the same ones
    #[arg(long)]
    seed: u64,

    /// Only these subjects
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SUBJECT,...")]
    only: Vec<Subject>,

    /// How many mutants of each subject
    #[arg(long, value_name = "N", default_value_t = SAMPLE)]
    sample: usize,

    /// Begin no mutant after this many seconds; the same command goes on later
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,

    /// Try the mutants that no test saw again, after tests were added
    #[arg(long)]
    again: bool,

    /// Only mutants with this in their name, whatever the seed
    #[arg(long, value_name = "TEXT")]
    named: Option<String>,
}

/// Tests the mutants without an outcome yet, and prints the verdict on all.
///
/// # Errors
/// When cargo-mutants is missing, a file cannot be written, or the tests fail without a mutant.
pub fn run(arguments: &MutantsArguments) -> anyhow::Result<ExitCode> {
    let root = crate::folders::repository();
    let folder = crate::folders::target()?.join("mutants");
    let listed = Survivors::read(&root.join(SURVIVORS))?;
    let campaign = Campaign { arguments, folder: &folder, start: Instant::now() };
    let subjects: Vec<Subject> =
        if arguments.only.is_empty() { Subject::all() } else { arguments.only.clone() };
    let copy = Copy::make(&root, &folder)?;
    let mut reached = true;
    for subject in subjects {
        let all = list(subject, &copy.tree)?;
        for one in listed.gone(subject, &all) {
            println!("{SURVIVORS}: not a mutant of {subject} now: {one}");
            reached = false;
        }
        let picked = match &arguments.named {
            Some(text) => all.into_iter().filter(|one| one.to_string().contains(text)).collect(),
            None => mutant::sample(all, arguments.seed, arguments.sample),
        };
        let outcomes = campaign.run(subject, &copy, &picked)?;
        let verdict = Verdict::of(subject, &picked, &outcomes, &listed);
        print!("{verdict}");
        reached &= verdict.is_reached();
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All mutants of a subject, in the order of its source.
fn list(subject: Subject, tree: &Path) -> anyhow::Result<Vec<Mutant>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["mutants", "--list", "--json", "--no-config"]);
    for package in subject.packages() {
        command.args(["--package", package]);
    }
    for pattern in subject.files() {
        command.args(["--file", pattern]);
    }
    let output = command.current_dir(tree).output().context("start cargo mutants")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("cargo mutants --list: {}\ncargo install --locked cargo-mutants", said.trim());
    }
    mutant::parse(&output.stdout, tree)
}

struct Campaign<'a> {
    arguments: &'a MutantsArguments,
    folder: &'a Path,
    start: Instant,
}

impl Campaign<'_> {
    /// The outcomes of the picked mutants: the kept ones, and those that were missing.
    fn run(
        &self,
        subject: Subject,
        copy: &Copy,
        picked: &[Mutant],
    ) -> anyhow::Result<Vec<Outcome>> {
        let kept = self.kept(subject);
        let mut outcomes = outcome::read(&kept)?;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&kept)
            .with_context(|| format!("open {}", kept.display()))?;
        let missing: Vec<&Mutant> =
            picked.iter().filter(|one| self.is_wanted(one, &outcomes)).collect();
        if missing.is_empty() || self.is_over() {
            return Ok(outcomes);
        }
        let mut trial = trial::Trial::begin(subject, copy, self.folder)?;
        for (done, mutant) in missing.iter().enumerate() {
            if self.is_over() {
                let left = missing.len() - done;
                println!("the time is over; the same command goes on with {left} of {subject}");
                break;
            }
            let outcome = trial.put(mutant)?;
            println!("{outcome}");
            let line = serde_json::to_string(&outcome).context("write an outcome")?;
            writeln!(file, "{line}").with_context(|| format!("write {}", kept.display()))?;
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn kept(&self, subject: Subject) -> PathBuf {
        self.folder.join(format!("{subject}-{}.jsonl", self.arguments.seed))
    }

    fn is_wanted(&self, mutant: &Mutant, outcomes: &[Outcome]) -> bool {
        match outcome::latest(outcomes, &mutant.name) {
            None => true,
            Some(outcome) => self.arguments.again && outcome.fate == Fate::Missed,
        }
    }

    fn is_over(&self) -> bool {
        let limit = self.arguments.limit.map(Duration::from_secs);
        limit.is_some_and(|limit| self.start.elapsed() > limit)
    }
}
