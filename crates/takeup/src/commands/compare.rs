//! `takeup compare`: two experiments, or two records of a watch, side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use experiment::compare::{apart, compare};
use experiment::judgement::JudgementOptions;
use experiment::record::{Experiment, load};
use report::experiments::{comparison_page, comparison_text, document};
use serde_json::json;

use crate::commands::recorded::{self, CompareDocument};
use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use crate::terminal::colour;
use service::failure::Failure;
use service::outcome::Outcome;
use service::output_file::{OutputFile, is_same};

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
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &CompareArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments), "compare", form)
}

fn show(arguments: &CompareArgs) -> Result<Outcome, Failure> {
    if is_same(&arguments.a, &arguments.b) {
        let (a, b) = (arguments.a.display(), arguments.b.display());
        let what = format!("{a} and {b} are the same file");
        return Err(Failure::of(what, Some("name two different experiments")));
    }
    let page = arguments.html.as_deref();
    if let Some(path) = page
        && [&arguments.a, &arguments.b].iter().any(|runs| is_same(path, runs))
    {
        return Err(Failure::of(
            format!("{} is one of the files to compare", path.display()),
            None,
        ));
    }
    match (recorded::is_record(&arguments.a), recorded::is_record(&arguments.b)) {
        (true, true) => return show_records(arguments),
        (false, false) => {}
        (is_record, _) => return Err(of_two_kinds(arguments, is_record)),
    }
    let page = page.map(OutputFile::open).transpose()?;
    let read = |path| load(path).map_err(|error| Failure::new(&error, None));
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    if a.header.value != b.header.value {
        return Err(Failure::of(
            "one of the two experiments has rates and the other has times",
            Some("use `takeup bench run` with --bytes or --bytes-of to get rates"),
        ));
    }
    let options = JudgementOptions { value: a.header.value, ..JudgementOptions::default() };
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

/// The records of two watches.
fn show_records(arguments: &CompareArgs) -> Result<Outcome, Failure> {
    let page = arguments.html.as_deref().map(OutputFile::open).transpose()?;
    let [a, b] = recorded::histories(&arguments.a, &arguments.b)?;
    let comparison = watch::compare::compare(&a, &b);
    if let Some(mut page) = page {
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let names = [name(&arguments.a), name(&arguments.b)];
        let made = report::comparison::page(&a, &b, &comparison, [&names[0], &names[1]]);
        page.write(&made.to_html())?;
        page.complete()?;
    }
    let text = if arguments.json {
        recorded::printed(&CompareDocument::of(&a, &b, &comparison))
    } else {
        report::comparison::text(&a, &b, &comparison, colour(&std::io::stdout()))
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// One file is a record of a watch and the other is not. An error in the other file is reported
/// first.
fn of_two_kinds(arguments: &CompareArgs, a_is_record: bool) -> Failure {
    let (record, other) =
        if a_is_record { (&arguments.a, &arguments.b) } else { (&arguments.b, &arguments.a) };
    if let Err(error) = load(other) {
        return Failure::new(&error, None);
    }
    let (record, other) = (record.display(), other.display());
    let what = format!("{record} is a record of `takeup watch`, and {other} an experiment");
    Failure::of(what, Some("name two files of the same kind"))
}

fn nothing_in_common(a: &Experiment, b: &Experiment) -> Failure {
    let apart = apart(a, b);
    let why = if apart.is_empty() {
        "each factor has levels in common, but no combination of them ran in both".to_owned()
    } else {
        apart.join("; ")
    };
    let what = format!("the two experiments have no combination in common: {why}");
    Failure::of(what, Some("see the combinations of each with `takeup report`"))
}
