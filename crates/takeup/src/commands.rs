//! The subcommands: one file each, with its arguments, its help and one function.

mod backup;
mod bench;
mod browse;
mod capture;
mod catalog;
mod compare;
mod completions;
mod diagnose;
mod doctor;
mod explain;
mod jobs;
mod list;
mod man;
mod pipe;
mod plan;
mod probe;
mod recorded;
mod report;
mod restore;
mod rules;
mod sim;
mod tune;
mod verify;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Finds out why a backup is slow; backs up, restores and measures at the speed of the machine
///
/// Archives are plain tar: tar, bsdtar, zstd and gzip can read them. Every run reports its
/// bottleneck, the stage that limited it.
#[derive(Debug, Parser)]
#[command(
    name = "takeup",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  takeup diagnose 'tar czf /mnt/nas/srv.tgz /srv'
  takeup backup /srv --to srv.tar.zst
  takeup verify srv.tar.zst --against /
  takeup restore srv.tar.zst --into /srv/restored
  takeup COMMAND --help

Exit codes of all commands:
  0  done
  1  failed, or damage was found
  2  done, but something was left out or differs; the output names it
  3  the data were written by a later version of takeup

Sizes: k M G T P are powers of 1024, kB MB GB TB PB powers of 1000."
)]
pub struct TakeupArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Diagnose(arguments::diagnose::DiagnoseArgs),
    Backup(arguments::backup::BackupArgs),
    Restore(arguments::restore::RestoreArgs),
    List(arguments::list::ListArgs),
    Verify(arguments::verify::VerifyArgs),
    Catalog(arguments::catalog::CatalogArgs),
    Browse(arguments::browse::BrowseArgs),
    Run(arguments::jobs::RunArgs),
    Status(arguments::jobs::StatusArgs),
    CheckConfig(arguments::jobs::CheckConfigArgs),
    Units(arguments::jobs::UnitsArgs),
    Pipe(arguments::pipe::PipeArgs),
    Plan(arguments::plan::PlanArgs),
    Probe(arguments::probe::ProbeArgs),
    Watch(arguments::watch::WatchArgs),
    Explain(arguments::explain::ExplainArgs),
    Capture(arguments::capture::CaptureArgs),
    Sim(arguments::sim::SimArgs),
    Tune(arguments::tune::TuneArgs),
    Bench(arguments::bench::BenchArgs),
    Compare(arguments::compare::CompareArgs),
    Report(arguments::report::ReportArgs),
    Doctor(arguments::doctor::DoctorArgs),
    Rules(rules::RulesArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
}

/// The exit codes in one line, for the end of the help and the manual page of each command.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed or damage found, 2 done but incomplete, \
                              3 written by a later version.";

/// The same as a table, for manual pages.
pub const EXIT_STATUS: [(u8, &str); 4] = [
    (0, "Done."),
    (1, "Failed, or damage was found."),
    (2, "Done, but something was left out or differs; the output names it."),
    (3, "The data were written by a later version of takeup."),
];

/// The whole command line.
pub fn command() -> clap::Command {
    TakeupArgs::command().mut_subcommands(with_exit_codes)
}

/// Lines of examples that the short help shows.
const EXAMPLES_IN_SHORT: usize = 4;

fn with_exit_codes(command: clap::Command) -> clap::Command {
    let short = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let long = command.get_after_long_help().map(ToString::to_string).unwrap_or(short.clone());
    let long = match long.as_str() {
        "" => EXIT_CODES.to_owned(),
        text => format!("{text}\n\n{EXIT_CODES}"),
    };
    command
        .mut_subcommands(with_exit_codes)
        .after_help(first_examples(&short))
        .after_long_help(long)
}

/// The first examples, so that the short help fits on a screen. A line that ends with a backslash
/// goes on in the next one.
fn first_examples(after: &str) -> String {
    let Some(examples) = after.strip_prefix("Examples:\n") else { return String::new() };
    let examples = examples.split("\n\n").next().unwrap_or(examples);
    let mut lines: Vec<&str> = Vec::new();
    for line in examples.lines() {
        if lines.len() >= EXAMPLES_IN_SHORT && !lines.last().is_some_and(|it| it.ends_with('\\')) {
            break;
        }
        lines.push(line);
    }
    format!("Examples:\n{}", lines.join("\n"))
}

impl Command {
    /// Whether the command opens many files at once, and so needs a raised limit of descriptors.
    /// The others start programs that should not inherit the raised limit.
    fn moves_trees(&self) -> bool {
        use Command::{Backup, Browse, List, Pipe, Restore, Run, Verify};
        matches!(self, Backup(_) | Browse(_) | Restore(_) | List(_) | Verify(_) | Pipe(_) | Run(_))
    }
}

/// Runs what the arguments ask for.
pub fn run(arguments: TakeupArgs) -> ExitCode {
    if arguments.command.moves_trees() {
        machine::open_files::raise();
    }
    match arguments.command {
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Catalog(arguments) => catalog::run(&arguments),
        Command::Browse(arguments) => browse::run(&arguments),
        Command::Run(arguments) => jobs::run(&arguments),
        Command::Status(arguments) => jobs::run_status(&arguments),
        Command::CheckConfig(arguments) => jobs::run_check(&arguments),
        Command::Units(arguments) => jobs::run_units(&arguments),
        Command::Pipe(arguments) => pipe::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Diagnose(arguments) => diagnose::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
