//! `takeup report`: an experiment, or the record of a watch or a capture, as text, page, figures
//! and tables.

use std::iter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use experiment::judgement::{Judgement, JudgementOptions, judge};
use experiment::record::{Experiment, load};
use report::experiments as presentation;

use capture::record::Captured;
use report::page::{Page, PageSection};
use report::stages;
use runs::run_record::{self, RunRecord, RunRecordError};
use serde_json::json;
use service::capture::{CapturedAnswer, Ran, RanAnswer, Together, read_record};

use crate::commands::bench::NamedRate;
use crate::commands::recorded::{self, ReportDocument};
use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use crate::standard_error::to_standard_error;
use crate::terminal::colour;
use service::failure::{Failure, with_causes};
use service::outcome::Outcome;
use service::output_file::{OutputFile, is_same};

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
    /// Records of runs, by --record of `takeup backup` and the like, to draw above a capture of the
    /// same time
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
    json: bool,
    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// Runs the command.
pub fn run(arguments: &ReportArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments), "report", form)
}

fn show(arguments: &ReportArgs) -> Result<Outcome, Failure> {
    check_outputs(arguments)?;
    if capture::record::is_record(&arguments.runs) {
        return show_capture(arguments);
    }
    if let Some(beside) = arguments.beside.first() {
        return Err(not_beside(&arguments.runs, beside));
    }
    if recorded::is_record(&arguments.runs) {
        return show_record(arguments);
    }
    if run_record::is_record(&arguments.runs) {
        return show_run(arguments);
    }
    let experiment = load(&arguments.runs).map_err(|error| {
        let is_empty = arguments.runs.metadata().is_ok_and(|it| it.is_file() && it.len() == 0);
        let hint = "it is empty: the program that writes it ended before the first run, or has not \
                    begun";
        Failure::new(&error, is_empty.then(|| hint.to_owned()))
    })?;
    let limits = arguments.limits.iter().map(|limit| limit.0.clone()).collect();
    let options = JudgementOptions { limits, ..JudgementOptions::default() }.of(&experiment.header);
    let judgement = judge(&experiment.header.factors, &experiment.runs, &options);
    let printed = write_files(arguments, &experiment, &judgement)?;
    let text = match (arguments.json, arguments.quiet) {
        _ if printed.is_some() => printed.unwrap_or_default(),
        (true, _) => {
            let document = json!({
                "command": "report",
                "experiment": experiment.header,
                "runs": experiment.runs.len(),
                "judgement": presentation::document(&judgement, experiment.header.value),
            });
            format!("{document:#}\n")
        }
        (false, true) => String::new(),
        (false, false) => presentation::text(&experiment, &judgement, colour(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The record of a watch.
fn show_record(arguments: &ReportArgs) -> Result<Outcome, Failure> {
    let hint = "print each interval with `takeup watch --from FILE --json`";
    check_options(arguments, "takeup watch", hint)?;
    let page = arguments.html.as_deref().map(OutputFile::open).transpose()?;
    let extent = recorded::extent(&arguments.runs)?;
    let history = recorded::history(&arguments.runs, extent.joined_least())?;
    write_page(arguments, page, |name| report::history::page(&history, name))?;
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => recorded::printed(&ReportDocument::of(&history)),
        (false, true) => String::new(),
        (false, false) => report::history::text(&history, colour(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The record of a capture.
fn show_capture(arguments: &ReportArgs) -> Result<Outcome, Failure> {
    let hint = "print all of it with `takeup capture --from FILE --json`";
    check_options(arguments, "takeup capture", hint)?;
    let page = arguments.html.as_deref().map(OutputFile::open).transpose()?;
    let captured = read_record(&arguments.runs)?;
    if captured.is_cut {
        to_standard_error(&report::watch::cut(&arguments.runs));
    }
    let runs = arguments.beside.iter().map(|path| read_run(path));
    let runs = runs.collect::<Result<Vec<RunRecord>, Failure>>()?;
    for (run, path) in runs.iter().zip(&arguments.beside) {
        check_time(&captured, run, path, &arguments.runs)?;
    }
    let together = Together::with(&captured, &runs);
    write_page(arguments, page, |name| report::captured::page(&together, name))?;
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => {
            let mut document = json!(CapturedAnswer::of(&together));
            document["command"] = json!("report");
            document["schema_version"] = json!(service::VERSION);
            format!("{document:#}\n")
        }
        (false, true) => String::new(),
        (false, false) => report::captured::text(&together, colour(&std::io::stdout())),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The record of a run of Takeup.
fn show_run(arguments: &ReportArgs) -> Result<Outcome, Failure> {
    check_options(arguments, "a run", "print all of it with `takeup report FILE --json`")?;
    let page = arguments.html.as_deref().map(OutputFile::open).transpose()?;
    let record = read_run(&arguments.runs)?;
    let ran = Ran::alone(&record);
    write_page(arguments, page, |name| stages::page(&ran, name))?;
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => {
            let mut document = json!(RanAnswer::of(&ran));
            document["command"] = json!("report");
            format!("{document:#}\n")
        }
        (false, true) => String::new(),
        (false, false) => stages::text(&ran),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn read_run(path: &Path) -> Result<RunRecord, Failure> {
    RunRecord::read(path).map_err(|error| {
        let hint = matches!(error, RunRecordError::NoRecord { .. })
            .then(|| "make one with `takeup backup --record FILE`".to_owned());
        Failure::new(&error, hint)
    })
}

/// The error for a run beside anything but a capture.
fn not_beside(runs: &Path, beside: &Path) -> Failure {
    let (runs, beside) = (runs.display(), beside.display());
    let message =
        format!("{runs} is not a record of a capture, so {beside} cannot be drawn above it");
    let hint = "record both at once, and name the capture first: \
                `takeup capture --watch --record CAPTURE -- takeup backup … --record RUN`";
    Failure::of(message, Some(hint))
}

/// Checks that a run and a capture overlap in time: the page shows them on one time axis.
fn check_time(
    captured: &Captured,
    run: &RunRecord,
    path: &Path,
    of_capture: &Path,
) -> Result<(), Failure> {
    let began = captured.heading.began_unix_seconds;
    let ended = began + captured.profile.seconds;
    if run.began_unix_seconds <= ended && run.began_unix_seconds + run.seconds >= began {
        return Ok(());
    }
    let alone = Ran::alone(run);
    let together = Together::of(captured);
    let message = format!(
        "{} covers {}, and {} covers {}: they have no time in common",
        path.display(),
        alone.time(),
        of_capture.display(),
        together.summary()
    );
    Err(Failure::of(message, Some("show the run alone with `takeup report RUN`")))
}

/// Refuses options that are for experiments only.
fn check_options(arguments: &ReportArgs, made_by: &str, hint: &str) -> Result<(), Failure> {
    let options = [
        ("--csv", arguments.csv.is_some()),
        ("--ndjson", arguments.ndjson.is_some()),
        ("--limit", !arguments.limits.is_empty()),
    ];
    let Some((option, _)) = options.iter().find(|(_, is_asked)| *is_asked) else { return Ok(()) };
    let shown = arguments.runs.display();
    let message = format!("{shown} is a record of `{made_by}`: {option} is for experiments");
    Err(Failure::of(message, Some(hint)))
}

/// Writes the page of a record and its drawings, if requested.
fn write_page(
    arguments: &ReportArgs,
    file: Option<OutputFile>,
    page: impl FnOnce(&str) -> Page,
) -> Result<(), Failure> {
    if file.is_none() && arguments.svg.is_none() {
        return Ok(());
    }
    let made = page(&arguments.runs.file_name().unwrap_or_default().to_string_lossy());
    if let Some(mut file) = file {
        file.write(&made.to_html())?;
        file.complete()?;
    }
    if let Some(directory) = &arguments.svg {
        write_texts(drawings(directory, &made)?)?;
    }
    Ok(())
}

/// Checks that no output file is named twice, and that none is an input file.
fn check_outputs(arguments: &ReportArgs) -> Result<(), Failure> {
    let to_print = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| is_output(path));
    let claims = [to_print(&arguments.csv), to_print(&arguments.ndjson), arguments.json];
    if claims.iter().filter(|claim| **claim).count() > 1 {
        return Err(Failure::of(
            "only one of --csv, --ndjson and --json can go to standard output",
            None,
        ));
    }
    let named = [&arguments.html, &arguments.csv, &arguments.ndjson, &arguments.svg];
    let named: Vec<&PathBuf> =
        named.into_iter().flatten().filter(|path| !is_output(path)).collect();
    for (number, path) in named.iter().enumerate() {
        let shown = path.display();
        let mut read = iter::once(&arguments.runs).chain(&arguments.beside);
        if read.any(|it| is_same(path, it)) {
            return Err(Failure::of(format!("cannot write to {shown}: it holds the runs"), None));
        }
        if named[..number].iter().any(|other| is_same(path, other)) {
            return Err(Failure::of(format!("{shown} is named twice"), None));
        }
    }
    Ok(())
}

/// Writes the files, and returns what goes to standard output instead of the text.
fn write_files(
    arguments: &ReportArgs,
    experiment: &Experiment,
    judgement: &Judgement,
) -> Result<Option<String>, Failure> {
    let mut printed = None;
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    if let Some(path) = &arguments.html {
        texts.push((path.clone(), presentation::page(experiment, judgement).to_html()));
    }
    if let Some(path) = &arguments.csv {
        let text = presentation::runs_as_csv(experiment);
        if is_output(path) { printed = Some(text) } else { texts.push((path.clone(), text)) }
    }
    if let Some(path) = &arguments.ndjson {
        let text = presentation::ndjson(experiment, judgement);
        if is_output(path) { printed = Some(text) } else { texts.push((path.clone(), text)) }
    }
    if let Some(directory) = &arguments.svg {
        texts.extend(drawings(directory, &presentation::page(experiment, judgement))?);
    }
    write_texts(texts)?;
    Ok(printed)
}

/// All drawings of a page, as files in a directory, which is created.
fn drawings(directory: &Path, page: &Page) -> Result<Vec<(PathBuf, String)>, Failure> {
    std::fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let drawn = (1..).zip(page.sections.iter().flat_map(PageSection::files));
    Ok(drawn.map(|(number, text)| (directory.join(format!("{number:02}.svg")), text)).collect())
}

/// Writes all files before any of them gets its name.
fn write_texts(texts: Vec<(PathBuf, String)>) -> Result<(), Failure> {
    let mut files = Vec::new();
    for (path, text) in texts {
        let mut file = OutputFile::open(&path)?;
        file.write(&text)?;
        files.push(file);
    }
    files.into_iter().try_for_each(OutputFile::complete)
}

fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of(format!("write {}: {}", path.display(), with_causes(error)), None)
}
