//! `takeup diagnose`: why a backup is slow, what makes it fast, and what others' texts show.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::diagnose::DiagnoseArgs;
use flow::cancel::Cancel;
use rustix::fs::FileType;
use service::diagnose::given::diagnose_given;
use service::diagnose::host::diagnose_host;
use service::diagnose::{DiagnoseRequest, diagnose};
use service::failure::Failure;
use service::outcome::Outcome;
use service::output_file::OutputFile;

use crate::outcome::{Form, end, to_standard_output};
use crate::standard_error::to_standard_error;
use crate::terminal::style;

/// Runs the command.
pub fn run(arguments: &DiagnoseArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(arguments, form), "diagnose", form)
}

fn answer(arguments: &DiagnoseArgs, form: Form) -> Result<Outcome, Failure> {
    let look = style(&std::io::stdout());
    if let Some(request) = arguments.given() {
        let answer = diagnose_given(&request)?;
        printed(
            form,
            || format!("{:#}\n", service::document(&answer)),
            || report::diagnose::given(&answer, look),
        )?;
        return Ok(answer.outcome());
    }
    if arguments.host {
        let answer = diagnose_host()?;
        printed(
            form,
            || format!("{:#}\n", service::document(&answer)),
            || report::diagnose::host(&answer, look),
        )?;
        return Ok(Outcome::Done);
    }
    let request = arguments.request()?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(OutputFile::open).transpose();
    let (chart, page) = (open(&arguments.chart)?, open(&arguments.html)?);
    say_how_long(&request, form);
    warn_of_a_cut_line(arguments, &request);
    let cancel = Cancel::new();
    crate::interrupt::watch(&cancel);
    let found = diagnose(&request, &cancel)?;
    let answer = found.answer();
    let mut lines = String::new();
    let drawn = || report::diagnose::chart(&answer);
    lines += &written(chart, arguments.chart.as_deref(), drawn)?;
    let whole = || report::diagnose::page(&answer).to_html();
    lines += &written(page, arguments.html.as_deref(), whole)?;
    let all =
        if arguments.all { report::diagnose::Shown::All } else { report::diagnose::Shown::Short };
    printed(
        form,
        || format!("{:#}\n", service::document(&answer)),
        || report::diagnose::text(&answer, all, look) + &lines,
    )?;
    Ok(found.outcome())
}

/// Writes a file beside the text, if it was asked for, and says so.
fn written(
    file: Option<OutputFile>,
    path: Option<&Path>,
    content: impl FnOnce() -> String,
) -> Result<String, Failure> {
    let (Some(mut file), Some(path)) = (file, path) else { return Ok(String::new()) };
    let content = content();
    file.write(&content)?;
    file.complete()?;
    Ok(report::page::wrote(path, content.len() as u64))
}

fn printed(
    form: Form,
    document: impl FnOnce() -> String,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let text = match form {
        Form::Json => document(),
        Form::Text => text(),
    };
    to_standard_output(text.as_bytes())
}

/// Where words without quotes are a program that writes to its standard output, and ours is a pipe
/// or a file, the shell has kept the rest of the line: what stands behind it gets the answer.
fn warn_of_a_cut_line(arguments: &DiagnoseArgs, request: &DiagnoseRequest) {
    let is_elsewhere = rustix::fs::fstat(rustix::stdio::stdout()).is_ok_and(|it| {
        matches!(FileType::from_raw_mode(it.st_mode), FileType::Fifo | FileType::RegularFile)
    });
    if is_elsewhere && arguments.is_unquoted_line() && request.writes_to_standard_output() {
        to_standard_error(
            "takeup: warning: the shell cuts a line at its first | or >, and the answer goes to \
             what stands there: put the whole line in quotes\n",
        );
    }
}

/// Nobody should wonder how long it takes.
fn say_how_long(request: &DiagnoseRequest, form: Form) {
    if form == Form::Text && std::io::stderr().is_terminal() {
        let seconds = base::format::duration(request.budget_seconds);
        to_standard_error(&format!("takeup: reads and tries for about {seconds}\n"));
    }
}
