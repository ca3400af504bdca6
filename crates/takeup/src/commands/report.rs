//! `takeup report`: an experiment as text, page, figures and tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::judgement::{Judgement, Options, judge};
use bench::presentation;
use bench::record::{Experiment, load};
use clap::Args;
use serde_json::json;

use crate::commands::bench::{Form, NamedRate, finish};
use crate::failure::{Failure, with_causes};
use crate::outcome::{Outcome, to_standard_output};
use crate::terminal::colour;

/// Show what an experiment came to: tables, figures, a page
///
/// RUNS is the file that `takeup bench` wrote. Without options the table and the conclusions are
/// printed. Files that exist are replaced.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup report takeup-bench-read.ndjson
  takeup report takeup-bench-read.ndjson --html report.html
  takeup report takeup-bench-read.ndjson --csv runs.csv --svg figures/
  takeup report takeup-bench-read.ndjson --limit 'array=1200MB' --json")]
pub struct ReportArgs {
    /// The file of runs
    #[arg(value_name = "RUNS")]
    runs: PathBuf,
    /// Write one page of HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write all runs as a table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write every figure as a file of its own
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Something that cannot be exceeded, for example 'host interface=1200MB'; may be given again
    #[arg(long = "limit", value_name = "NAME=RATE")]
    limits: Vec<NamedRate>,
    /// Print the judgement as a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// Runs the command.
pub fn run(arguments: &ReportArgs) -> ExitCode {
    let form = if arguments.json { Form::Json } else { Form::Text };
    finish(show(arguments), "report", form)
}

fn show(arguments: &ReportArgs) -> Result<Outcome, Failure> {
    let experiment = load(&arguments.runs).map_err(|error| Failure::new(&error, None))?;
    let limits = arguments.limits.iter().map(|limit| limit.0.clone()).collect();
    let options = Options { limits, ..Options::default() };
    let judgement = judge(&experiment.header.factors, &experiment.runs, &options);
    write_files(arguments, &experiment, &judgement)?;
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => {
            let document = json!({
                "command": "report",
                "experiment": experiment.header,
                "runs": experiment.runs.len(),
                "judgement": judgement,
            });
            format!("{document:#}\n")
        }
        (false, true) => String::new(),
        (false, false) => presentation::text(&experiment, &judgement, colour(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn write_files(
    arguments: &ReportArgs,
    experiment: &Experiment,
    judgement: &Judgement,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.html {
        write(path, &presentation::page(experiment, judgement).to_html())?;
    }
    if let Some(path) = &arguments.csv {
        write(path, &presentation::run_table(experiment).to_csv())?;
    }
    if let Some(directory) = &arguments.svg {
        std::fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
        let sections = presentation::figures(experiment, judgement);
        let figures = sections.iter().flat_map(|section| &section.figures);
        for (number, figure) in (1..).zip(figures) {
            write(&directory.join(format!("{number:02}.svg")), &figure.to_file())?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of(format!("write {}: {}", path.display(), with_causes(error)), None)
}
