//! `takeup bench`: experiments. Each kind has its own file; the common parts are here and in
//! `options`.

pub mod disk;
mod import;
mod options;
mod power;
pub mod progress;
mod read;
mod run;
mod tape;

use std::path::Path;
use std::process::ExitCode;

use base::escape::escape_path;
use base::format::counted;
use clap::{Args, Subcommand};
use experiment::judgement::{Judgement, judge};
use experiment::plan::Plan;
use experiment::record::{Cell, Experiment, Factor, RecordError, RunFile, shown_cell};
use experiment::run::{Executor, ExperimentEnd, Parts, header, is_same, not_run};
use flow::cancel::Cancel;
use serde_json::json;

use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use options::ExperimentArgs;
use service::failure::Failure;
use service::outcome::Outcome;
use service::state;

pub use options::NamedRate;
use progress::Progress;

/// Run an experiment and report what to set
///
/// Takeup runs every combination several times, in random order within each round, until the
/// intervals are as narrow as requested or the time is used up. It appends every run to a file as
/// soon as the run ends; run the same command again to continue a stopped experiment. `takeup
/// report` draws the file, `takeup compare` compares two of them.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Read(read::ReadArgs),
    Disk(disk::DiskArgs),
    Tape(tape::TapeArgs),
    Import(import::ImportArgs),
    Run(run::RunArgs),
    Power(power::PowerArgs),
    PutBack(PutBackArgs),
}

/// Restore kernel settings that a killed experiment left changed
///
/// Every experiment does this when it begins; use this command if you run no further experiment.
#[derive(Args, Debug)]
pub struct PutBackArgs {}

/// Runs the command.
pub fn run(arguments: &BenchArgs) -> ExitCode {
    match &arguments.command {
        BenchCommand::Read(arguments) => read::run(arguments),
        BenchCommand::Disk(arguments) => disk::run(arguments),
        BenchCommand::Tape(arguments) => tape::run(arguments),
        BenchCommand::Import(arguments) => import::run(arguments),
        BenchCommand::Run(arguments) => run::run(arguments),
        BenchCommand::Power(arguments) => power::run(arguments),
        BenchCommand::PutBack(_) => {
            let result = put_back();
            end(result, "bench put-back", Form::Text)
        }
    }
}

fn put_back() -> Result<Outcome, Failure> {
    let count =
        state::recovered().map_err(|error| Failure::new(&error, state::guard_hint(&error)))?;
    let text = match count {
        0 => "nothing to put back\n".to_owned(),
        count => format!("{} put back\n", counted(count as u64, "setting", "settings")),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Runs a plan to its end and prints the results.
pub fn experiment<E: Executor>(
    mut plan: Plan,
    arguments: &ExperimentArgs,
    make: impl FnOnce(&Plan, &Cancel) -> Result<E, Failure>,
) -> Result<Outcome, Failure> {
    plan.check().map_err(|error| Failure::new(&error, None))?;
    if arguments.print_plan {
        to_standard_output(plan.to_toml().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let path = arguments.output_path(&plan.kind);
    let begun = begun(&mut plan, &path)?;
    let cancel = Cancel::new();
    // Create the file before the executor writes anywhere: it may fail.
    let is_new = begun.is_none();
    let (mut experiment, mut file) = open(&plan, &path, begun)?;
    // Before anything is changed that has to be restored.
    crate::interrupt::watch(&cancel);
    let mut executor = match make(&plan, &cancel) {
        Ok(executor) => executor,
        Err(failure) => {
            // An experiment that cannot begin must leave no file.
            if is_new {
                file.remove().map_err(|error| Failure::new(&error, None))?;
            }
            return Err(failure);
        }
    };
    let progress = Progress::new(arguments, &plan.factors);
    let start = std::time::Instant::now();
    let ended = experiment::run::run(
        &plan,
        &mut experiment,
        Parts {
            executor: &mut executor,
            file: &mut file,
            observer: &progress,
            clock: &|| start.elapsed().as_secs_f64(),
            cancel: &cancel,
        },
    );
    progress.close();
    let hint = ["read", "disk"].contains(&plan.kind.as_str()).then(|| state::PUT_BACK.to_owned());
    executor.finish().map_err(|error| Failure::new(&error, hint))?;
    let ended = ended.map_err(|error| Failure::new(&error, None))?;
    if is_new && !experiment.tells_something() {
        // The error is reported now; a file without results would only block the next experiment.
        file.remove().map_err(|error| Failure::new(&error, None))?;
    }
    let not_run = not_run(&plan, &executor, &experiment.runs);
    conclude(&experiment, End { ended, not_run }, arguments, &path)
}

/// What an earlier run of the same command left. A file with another experiment is not touched.
fn begun(plan: &mut Plan, path: &Path) -> Result<Option<(RunFile, Experiment)>, Failure> {
    let found = RunFile::begun(path).map_err(|error| {
        let hint = matches!(error, RecordError::Untrusted { .. });
        Failure::new(&error, hint.then(|| "use --output NAME for a new file".to_owned()))
    })?;
    let Some((file, experiment)) = found else { return Ok(None) };
    // Continue with the seed of the file: the plan's may come from the clock.
    let seed = plan.seed;
    plan.seed = experiment.header.seed;
    if !is_same(plan, &experiment.header) {
        if !experiment.tells_something() {
            file.remove().map_err(|error| Failure::new(&error, None))?;
            plan.seed = seed;
            return Ok(None);
        }
        return Err(Failure::of(
            format!("{} holds another experiment", path.display()),
            Some("use --output NAME for a new file"),
        ));
    }
    let runs = experiment.runs.len();
    to_standard_error(&format!("takeup: {} holds {runs} runs: continuing\n", escape_path(path)));
    Ok(Some((file, experiment)))
}

fn open(
    plan: &Plan,
    path: &Path,
    begun: Option<(RunFile, Experiment)>,
) -> Result<(Experiment, RunFile), Failure> {
    let failed = |error: RecordError| Failure::new(&error, None);
    match begun {
        Some((file, experiment)) => {
            let file = file.go_on(&experiment).map_err(failed)?;
            Ok((experiment, file))
        }
        None => {
            let header = header(plan);
            let file = RunFile::create(path, &header).map_err(failed)?;
            Ok((Experiment { header, runs: Vec::new(), torn_bytes: 0 }, file))
        }
    }
}

/// How an experiment ended.
struct End {
    ended: ExperimentEnd,
    /// Combinations that did not run.
    not_run: Vec<Cell>,
}

impl End {
    /// A line for each of the first combinations that did not run, and one for the rest.
    fn not_run_text(&self, factors: &[Factor]) -> String {
        const NAMED: usize = 10;
        let line = |cell: &Cell| format!("not run  {}\n", shown_cell(cell, factors));
        let mut text: String = self.not_run.iter().take(NAMED).map(line).collect();
        if let Some(more) = self.not_run.len().checked_sub(NAMED).filter(|&more| more > 0) {
            text.push_str(&format!("not run  and {more} more\n"));
        }
        text
    }
}

fn conclude(
    experiment: &Experiment,
    end: End,
    arguments: &ExperimentArgs,
    path: &Path,
) -> Result<Outcome, Failure> {
    let options = arguments.judging().of(&experiment.header);
    let judgement = judge(&experiment.header.factors, &experiment.runs, &options);
    let failed = experiment.runs.iter().find_map(|run| run.error.clone());
    let ended = end.ended;
    let factors = &experiment.header.factors;
    if judgement.cells.is_empty() {
        let why = failed.unwrap_or_else(|| ended.words().to_owned());
        return Err(Failure::of(format!("no run succeeded: {why}"), None));
    }
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => document(experiment, &judgement, &end, path),
        (false, true) => String::new(),
        (false, false) => {
            let colour = colour(&std::io::stdout());
            let judged = report::experiments::text(experiment, &judgement, colour);
            let runs = experiment.runs.len();
            let file = path.display();
            let missing = end.not_run_text(factors);
            format!("{judged}{missing}{}; {runs} runs in {file}\n", ended.words())
        }
    };
    to_standard_output(text.as_bytes())?;
    match (ended, failed) {
        (ExperimentEnd::Cancelled, _) => Err(Failure::of("stopped", None)),
        (_, Some(_)) => Ok(Outcome::Warned),
        _ if !end.not_run.is_empty() => Ok(Outcome::Warned),
        _ => Ok(Outcome::Done),
    }
}

fn document(experiment: &Experiment, judgement: &Judgement, end: &End, path: &Path) -> String {
    let document = json!({
        "command": format!("bench {}", experiment.header.kind),
        "runs": experiment.runs.len(),
        "file": path.display().to_string(),
        "ended": end.ended.words(),
        "not_run": end.not_run,
        "judgement": report::experiments::document(judgement, experiment.header.value),
    });
    format!("{document:#}\n")
}
