//! `takeup compare`: two experiments side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::compare::{apart, compare};
use bench::judgement::Options;
use bench::presentation::{comparison_page, comparison_text, document};
use bench::record::{Experiment, load};
use clap::Args;
use serde_json::json;

use crate::commands::bench::{Form, finish};
use crate::failure::Failure;
use crate::outcome::{Outcome, to_standard_output};
use crate::output_file::{OutputFile, is_same};
use crate::terminal::colour;

/// Compare two experiments, and say which differences are noise
///
/// A and B are files that `takeup bench` wrote. Combinations that both have are compared; the
/// ratios have intervals, and the chance that any of them is called a difference without being one
/// is at most one in twenty, however many there are.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench read big.img --output before.ndjson
  takeup bench read big.img --output after.ndjson
  takeup compare before.ndjson after.ndjson
  takeup compare before.ndjson after.ndjson --html compare.html

Where the same runs were made at different times, what changed in between is part of the
difference. Two settings of one machine are better compared as levels of one experiment.")]
pub struct CompareArgs {
    /// The first experiment
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second one
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Write one page of HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &CompareArgs) -> ExitCode {
    let form = if arguments.json { Form::Json } else { Form::Text };
    finish(show(arguments), "compare", form)
}

fn show(arguments: &CompareArgs) -> Result<Outcome, Failure> {
    let page = arguments.html.as_deref();
    if let Some(path) = page
        && [&arguments.a, &arguments.b].iter().any(|runs| is_same(path, runs))
    {
        return Err(Failure::of(format!("{} holds runs", path.display()), None));
    }
    let page = page.map(OutputFile::open).transpose()?;
    let read = |path| load(path).map_err(|error| Failure::new(&error, None));
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    if a.header.value != b.header.value {
        return Err(Failure::of(
            "rates are compared in one of the two experiments and times in the other",
            Some("with --bytes or --bytes-of, bench run compares rates"),
        ));
    }
    let options = Options { value: a.header.value, ..Options::default() };
    let comparison = compare(&a, &b, &options);
    if comparison.pairs.is_empty() {
        return Err(nothing_in_common(&a, &b));
    }
    if let Some(mut page) = page {
        page.write(&comparison_page(&a, &b, &comparison).to_html())?;
        page.complete()?;
    }
    let text = if arguments.json {
        format!(
            "{:#}\n",
            json!({ "command": "compare", "comparison": document(&comparison, a.header.value) })
        )
    } else {
        comparison_text(&comparison, colour(&std::io::stdout()))
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn nothing_in_common(a: &Experiment, b: &Experiment) -> Failure {
    let apart = apart(a, b);
    let why = if apart.is_empty() {
        "each factor has levels in common, and no combination of them ran in both".to_owned()
    } else {
        apart.join("; ")
    };
    let what = format!("the two experiments have no combination in common: {why}");
    Failure::of(what, Some("`takeup report` shows the combinations of each"))
}
