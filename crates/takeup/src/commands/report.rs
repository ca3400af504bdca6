//! `takeup report`: an experiment, or the record of a watch or a capture, as text, page, figures
//! and tables.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::report::ReportArgs;
use experiment::judgement::Judgement;
use experiment::record::Experiment;
use report::experiments as presentation;
use report::page::{Page, PageSection, wrote, wrote_figures};
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
use crate::terminal::style;

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
    let Written { printed, lines } = shown.write(&request, page)?;
    let is_printed = printed.is_some();
    let mut text = match (printed, form, arguments.quiet) {
        (Some(printed), ..) => printed,
        (None, Form::Json, _) => shown.document(),
        (None, Form::Text, true) => String::new(),
        (None, Form::Text, false) => shown.text(),
    };
    match (form, arguments.quiet) {
        (Form::Json, _) | (_, true) => {}
        // Standard output carries a table or JSON.
        _ if is_printed => to_standard_error(&lines),
        _ => text.push_str(&lines),
    }
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// What came of the files that were asked for.
#[derive(Default)]
struct Written {
    /// What goes to standard output instead of the text.
    printed: Option<String>,
    /// A line for each file.
    lines: String,
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

    /// Writes the files.
    fn write(&self, request: &ReportRequest, file: Option<OutputFile>) -> Result<Written, Failure> {
        if let Shown::Experiment(experiment, judgement) = self {
            return write_files(request, experiment, judgement);
        }
        if file.is_none() && request.svg.is_none() {
            return Ok(Written::default());
        }
        let page = self.page(&request.runs.file_name().unwrap_or_default().to_string_lossy());
        let mut written = Written::default();
        if let (Some(mut file), Some(path)) = (file, &request.html) {
            let text = page.to_html();
            file.write(&text)?;
            file.complete()?;
            written.lines.push_str(&wrote(path, text.len() as u64));
        }
        if let Some(directory) = &request.svg {
            let drawn = drawings(directory, &page)?;
            written.lines.push_str(&wrote_figures(directory, drawn.len()));
            write_all(drawn)?;
        }
        Ok(written)
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
        let style = style(&std::io::stdout());
        match self {
            Shown::Experiment(experiment, judgement) => {
                presentation::text(experiment, judgement, style)
            }
            Shown::Watch(history) => report::history::text(history, style),
            Shown::Capture(together) => report::captured::text(together, style),
            Shown::Run(ran) => stages::text(ran),
        }
    }
}

/// Writes the files of an experiment.
fn write_files(
    request: &ReportRequest,
    experiment: &Experiment,
    judgement: &Judgement,
) -> Result<Written, Failure> {
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
    let mut lines = wrote_all(&texts);
    if let Some(directory) = &request.svg {
        let drawn = drawings(directory, &presentation::page(experiment, judgement))?;
        lines.push_str(&wrote_figures(directory, drawn.len()));
        texts.extend(drawn);
    }
    write_all(texts)?;
    Ok(Written { printed, lines })
}

fn wrote_all(texts: &[(PathBuf, String)]) -> String {
    texts.iter().map(|(path, text)| wrote(path, text.len() as u64)).collect()
}

/// All drawings of a page, as files in a directory, which is created.
fn drawings(directory: &Path, page: &Page) -> Result<Vec<(PathBuf, String)>, Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Failure::of(format!("write {}: {}", directory.display(), with_causes(&error)), None)
    })?;
    let drawn = (1..).zip(page.sections.iter().flat_map(PageSection::files));
    Ok(drawn.map(|(number, text)| (directory.join(format!("{number:02}.svg")), text)).collect())
}
