//! The arguments of `takeup report`.

use std::path::PathBuf;

use clap::Args;
use service::failure::Failure;
use service::report::{ReportRequest, is_output};

use crate::bench::options::NamedRate;

/// Show the results of an experiment, watch, capture or run: tables, figures, a page
///
/// RUNS is the file that `takeup bench`, `takeup watch --record`, `takeup capture --record` or
/// `takeup backup --record` wrote. Without options Takeup prints the table and the conclusions. It
/// replaces files that exist.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup report takeup-bench-read.ndjson
  takeup report takeup-bench-read.ndjson --html report.html
  takeup report takeup-bench-read.ndjson --csv runs.csv --svg figures/
  takeup report takeup-bench-tape.ndjson --ndjson - | jq -c 'select(.cell).cell'
  takeup report takeup-bench-read.ndjson --limit 'array=1200MB' --json
  takeup report night.ndjson --html night.html
  takeup report capture.ndjson --html capture.html
  takeup report capture.ndjson backup.json --html both.html")]
pub struct ReportArgs {
    /// The file of runs, or the record of a watch, a capture or a run
    #[arg(value_name = "RUNS")]
    runs: PathBuf,
    /// Records of `takeup backup --record` and the like, to draw above a capture of the same time
    #[arg(value_name = "RUN")]
    beside: Vec<PathBuf>,
    /// Write one page of HTML that needs no other file
    #[arg(short = 'o', long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write all runs as a table; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write runs, combinations, effects and conclusions, one JSON object each; - is standard
    /// output
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// Write every figure as a file of its own
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// A known limit of the hardware, for example 'host interface=1200MB'; may be given again
    #[arg(long = "limit", value_name = "NAME=RATE")]
    limits: Vec<NamedRate>,
    /// Print the judgement as a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl ReportArgs {
    /// What is asked for.
    ///
    /// # Errors
    /// When more than one thing is to go to standard output.
    pub fn request(&self) -> Result<ReportRequest, Failure> {
        let to_print = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| is_output(path));
        let claims = [to_print(&self.csv), to_print(&self.ndjson), self.json];
        if claims.iter().filter(|claim| **claim).count() > 1 {
            return Err(Failure::of(
                "only one of --csv, --ndjson and --json can go to standard output",
                None,
            ));
        }
        Ok(ReportRequest {
            runs: self.runs.clone(),
            beside: self.beside.clone(),
            html: self.html.clone(),
            csv: self.csv.clone(),
            ndjson: self.ndjson.clone(),
            svg: self.svg.clone(),
            limits: self.limits.iter().map(|limit| limit.0.clone()).collect(),
        })
    }
}
