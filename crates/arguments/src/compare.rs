//! The arguments of `takeup compare`.

use std::path::PathBuf;

use clap::Args;
use service::compare::CompareRequest;

/// Compare two experiments or two watches, and report which differences are noise
///
/// A and B are files that `takeup bench` wrote. Takeup compares the combinations that are in both,
/// and gives each ratio an interval. The chance of any false difference is at most one in twenty,
/// however many combinations there are. If both are records of `takeup watch`, Takeup compares what
/// each device did in its busy time, and the findings on it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench read big.img --output before.ndjson
  takeup bench read big.img --output after.ndjson
  takeup compare before.ndjson after.ndjson
  takeup compare before.ndjson after.ndjson --html compare.html
  takeup compare last-week.ndjson this-week.ndjson -o compare.html

If the runs were made at different times, whatever changed in between is part of the difference.
Compare two settings of one machine as levels of one experiment instead.")]
pub struct CompareArgs {
    /// The first experiment, or record of a watch
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second experiment or record
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Write one page of HTML that needs no other file
    #[arg(short = 'o', long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl CompareArgs {
    /// What is asked for.
    pub fn request(&self) -> CompareRequest {
        CompareRequest { a: self.a.clone(), b: self.b.clone(), html: self.html.clone() }
    }
}
