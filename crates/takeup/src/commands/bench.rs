//! `takeup bench`: experiments. What is measured and refused is decided in `service::bench`.

pub mod progress;

use std::process::ExitCode;

use arguments::bench::options::ExperimentArgs;
use arguments::bench::{BenchArgs, BenchCommand};
use experiment::plan::Plan;
use flow::cancel::Cancel;
use service::bench::{self, BegunExperiment, ExperimentDone, ExperimentSurroundings};
use service::failure::Failure;
use service::outcome::Outcome;

use crate::change::{ChangeArgs, Changer};
use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::StandardError;
use crate::terminal::style;
use progress::Progress;

pub use service::bench::disk;

/// Runs the command.
pub fn run(arguments: &BenchArgs) -> ExitCode {
    let json = |json: bool| Form::of(json);
    let (result, name, form) = match arguments.command() {
        BenchCommand::Read(it) => (read(it), "bench read", json(it.experiment().json)),
        BenchCommand::Disk(it) => (disk(it), "bench disk", json(it.experiment().json)),
        BenchCommand::Tape(it) => (tape(it), "bench tape", json(it.experiment().json)),
        BenchCommand::Run(it) => (commands(it), "bench run", json(it.experiment().json)),
        BenchCommand::Import(it) => (import(it), "bench import", json(it.json)),
        BenchCommand::Power(it) => (power(it), "bench power", json(it.json)),
        BenchCommand::PutBack(_) => (put_back(), "bench put-back", Form::Text),
    };
    end(result, name, form)
}

fn read(arguments: &arguments::bench::read::BenchReadArgs) -> Result<Outcome, Failure> {
    let plan = bench::read::plan(&arguments.request()?, &StandardError)?;
    experiment(plan, arguments.experiment(), bench::read::run)
}

fn disk(arguments: &arguments::bench::disk::BenchDiskArgs) -> Result<Outcome, Failure> {
    let planned = bench::disk::plan(&arguments.request(), &StandardError)?;
    let plan = planned.plan.clone();
    experiment(plan, arguments.experiment(), |begun, around| planned.run(begun, around))
}

fn tape(arguments: &arguments::bench::tape::BenchTapeArgs) -> Result<Outcome, Failure> {
    let request = arguments.request()?;
    let plan = bench::tape::plan(&request)?;
    let change = ChangeArgs { change_command: arguments.change_command().map(str::to_owned) };
    experiment(plan, arguments.experiment(), |begun, around| {
        let changer = Box::new(Changer::new(&change, around.cancel));
        bench::tape::run(begun, &request, changer, around)
    })
}

fn commands(arguments: &arguments::bench::run::BenchRunArgs) -> Result<Outcome, Failure> {
    let request = arguments.request();
    let plan = bench::run::plan(&request)?;
    experiment(plan, arguments.experiment(), |begun, around| {
        bench::run::run(begun, &request, around)
    })
}

/// Runs a plan to its end and prints the results, or prints the plan.
fn experiment<R>(plan: Plan, arguments: &ExperimentArgs, run: R) -> Result<Outcome, Failure>
where
    R: FnOnce(BegunExperiment, &ExperimentSurroundings<'_>) -> Result<ExperimentDone, Failure>,
{
    if arguments.print_plan {
        to_standard_output(plan.to_toml().as_bytes())?;
        return Ok(Outcome::Done);
    }
    let begun = BegunExperiment::open(plan, &arguments.request(), &StandardError)?;
    let cancel = Cancel::new();
    // Before anything is changed that has to be restored.
    crate::interrupt::watch(&cancel);
    let factors = begun.factors().to_vec();
    let progress = Progress::new(arguments, &factors);
    let done = run(begun, &ExperimentSurroundings { observer: &progress, cancel: &cancel });
    progress.close();
    let done = done?;
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => format!("{:#}\n", service::document(&done.answer())),
        (false, true) => String::new(),
        (false, false) => report::bench::ended(&done, style(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    done.outcome()
}

fn import(arguments: &arguments::bench::import::BenchImportArgs) -> Result<Outcome, Failure> {
    let answer = bench::import::imported(&arguments.request())?;
    let text = match Form::of(arguments.json) {
        Form::Json => format!("{:#}\n", service::document(&answer)),
        Form::Text => report::bench::imported(&answer),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn power(arguments: &arguments::bench::power::BenchPowerArgs) -> Result<Outcome, Failure> {
    let request = arguments.request();
    let answer = bench::power::powered(&request)?;
    let text = match Form::of(arguments.json) {
        Form::Json => format!("{:#}\n", service::document(&answer)),
        Form::Text => report::bench::power(&answer, request.difference_percent),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn put_back() -> Result<Outcome, Failure> {
    let answer = bench::put_back()?;
    to_standard_output(report::bench::put_back(answer).as_bytes())?;
    Ok(Outcome::Done)
}
