//! `takeup report`: an experiment, or the record of a watch or a capture, as text, page, figures
//! and tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::report::ReportArgs;
use experiment::judgement::Judgement;
use experiment::record::Experiment;
use report::experiments as presentation;
use report::page::{Page, PageSection};
use report::stages;
use service::bench::lines;
use service::capture::{Ran, Together};
use service::failure::{Failure, with_causes};
use service::outcome::Outcome;
use service::output_file::{OutputFile, write_all};
use service::report::{ReportAnswer, ReportRequest, Reported, ReportedFile, is_output, reported};
use watch::history::History;

use crate::commands::recorded::say_damage;
use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::colour;

/// Runs the command.
pub fn run(arguments: &ReportArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments, form), "report", form)
}

fn show(arguments: &ReportArgs, form: Form) -> Result<Outcome, Failure> {
    let request = arguments.request()?;
    let Reported { what, page } = reported(&request)?;
    let shown = Shown::of(&what);
    shown.say_damage(&request.runs);
    let text = match (shown.write(&request, page)?, form, arguments.quiet) {
        (Some(printed), ..) => printed,
        (None, Form::Json, _) => shown.document(),
        (None, Form::Text, true) => String::new(),
        (None, Form::Text, false) => shown.text(),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// What a file holds, ready to be shown.
enum Shown<'a> {
    Experiment(&'a Experiment, &'a Judgement),
    Watch(&'a History),
    Capture(Together<'a>),
    Run(Ran<'a>),
}

impl<'a> Shown<'a> {
    fn of(what: &'a ReportedFile) -> Shown<'a> {
        match what {
            ReportedFile::Experiment { experiment, judgement } => {
                Shown::Experiment(experiment, judgement)
            }
            ReportedFile::Watch(history) => Shown::Watch(history),
            ReportedFile::Capture { captured, beside } => {
                Shown::Capture(Together::with(captured, beside))
            }
            ReportedFile::Run(record) => Shown::Run(Ran::alone(record)),
        }
    }

    /// Reports what was skipped in the file.
    fn say_damage(&self, path: &Path) {
        match self {
            Shown::Watch(history) => say_damage(path, history),
            Shown::Capture(together) if together.captured.is_cut => {
                to_standard_error(&report::watch::cut(path));
            }
            _ => {}
        }
    }

    /// Writes the files, and returns what goes to standard output instead of the text.
    fn write(
        &self,
        request: &ReportRequest,
        file: Option<OutputFile>,
    ) -> Result<Option<String>, Failure> {
        if let Shown::Experiment(experiment, judgement) = self {
            return write_files(request, experiment, judgement);
        }
        if file.is_none() && request.svg.is_none() {
            return Ok(None);
        }
        let page = self.page(&request.runs.file_name().unwrap_or_default().to_string_lossy());
        if let Some(mut file) = file {
            file.write(&page.to_html())?;
            file.complete()?;
        }
        if let Some(directory) = &request.svg {
            write_all(drawings(directory, &page)?)?;
        }
        Ok(None)
    }

    /// The page; `name` is that of the file.
    fn page(&self, name: &str) -> Page {
        match self {
            Shown::Experiment(experiment, judgement) => presentation::page(experiment, judgement),
            Shown::Watch(history) => report::history::page(history, name),
            Shown::Capture(together) => report::captured::page(together, name),
            Shown::Run(ran) => stages::page(ran, name),
        }
    }

    fn document(&self) -> String {
        let answer = match self {
            Shown::Experiment(experiment, judgement) => {
                ReportAnswer::of_experiment(experiment, judgement)
            }
            Shown::Watch(history) => ReportAnswer::of_watch(history),
            Shown::Run(ran) => ReportAnswer::of_run(ran.record),
            Shown::Capture(together) => ReportAnswer::of_capture(together),
        };
        format!("{:#}\n", service::document(&answer))
    }

    fn text(&self) -> String {
        let colour = colour(&std::io::stdout());
        match self {
            Shown::Experiment(experiment, judgement) => {
                presentation::text(experiment, judgement, colour)
            }
            Shown::Watch(history) => report::history::text(history, colour),
            Shown::Capture(together) => report::captured::text(together, colour),
            Shown::Run(ran) => stages::text(ran),
        }
    }
}

/// Writes the files of an experiment, and returns what goes to standard output instead of the text.
fn write_files(
    request: &ReportRequest,
    experiment: &Experiment,
    judgement: &Judgement,
) -> Result<Option<String>, Failure> {
    let mut printed = None;
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    if let Some(path) = &request.html {
        texts.push((path.clone(), presentation::page(experiment, judgement).to_html()));
    }
    if let Some(path) = &request.csv {
        let text = presentation::runs_as_csv(experiment);
        if is_output(path) { printed = Some(text) } else { texts.push((path.clone(), text)) }
    }
    if let Some(path) = &request.ndjson {
        let text = lines(experiment, judgement).map(|line| line.to_json() + "\n").collect();
        if is_output(path) { printed = Some(text) } else { texts.push((path.clone(), text)) }
    }
    if let Some(directory) = &request.svg {
        texts.extend(drawings(directory, &presentation::page(experiment, judgement))?);
    }
    write_all(texts)?;
    Ok(printed)
}

/// All drawings of a page, as files in a directory, which is created.
fn drawings(directory: &Path, page: &Page) -> Result<Vec<(PathBuf, String)>, Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::of(format!("write {}: {}", directory.display(), with_causes(&error)), None)
    })?;
    let drawn = (1..).zip(page.sections.iter().flat_map(PageSection::files));
    Ok(drawn.map(|(number, text)| (directory.join(format!("{number:02}.svg")), text)).collect())
}
