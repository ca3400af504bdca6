//! `takeup man`: manual pages, made from the same definitions as the help. Hidden, since only
//! people who package Takeup need it.
//!
//! `clap_mangen` writes the sections that all programs have. It would put the text behind the
//! options, with its examples, into one filled paragraph, so that part is written here: EXAMPLES
//! line by line as typed, NOTES, and EXIT STATUS.

use crate::exit_code::FailureExitCode as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::commands::EXIT_STATUS;
use crate::standard_error::to_standard_error;
use service::failure::Failure;

/// Write the manual pages into a folder
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder
    directory: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &ManArgs) -> ExitCode {
    match write_pages(&arguments.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let directory = arguments.directory.display();
            let why = service::failure::with_causes(&error);
            let failure =
                Failure::of(format!("cannot write manual pages: {directory}: {why}"), None);
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

fn write_pages(directory: &Path) -> io::Result<()> {
    let mut command = crate::commands::command().disable_help_subcommand(true);
    command.build();
    write_page_and_below(&command, None, directory)
}

fn write_page_and_below(
    command: &Command,
    above: Option<&str>,
    directory: &Path,
) -> io::Result<()> {
    let man = Man::new(command.clone());
    std::fs::write(directory.join(man.get_filename()), page(command, &man, above)?)?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_page_and_below(below, Some(name), directory)?;
    }
    Ok(())
}

fn page(command: &Command, man: &Man, above: Option<&str>) -> io::Result<String> {
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    sections_behind_options(command, above).to_writer(&mut out)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut out)?;
    }
    let text = String::from_utf8(out).map_err(io::Error::other)?;
    Ok(as_typed(&text))
}

/// EXAMPLES, NOTES, EXIT STATUS and SEE ALSO.
fn sections_behind_options(command: &Command, above: Option<&str>) -> Roff {
    let mut roff = Roff::new();
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let paragraphs: Vec<&str> =
        after.split("\n\n").filter(|text| !text.starts_with("Exit codes")).collect();
    let (examples, notes): (Vec<&str>, Vec<&str>) =
        paragraphs.into_iter().partition(|text| text.starts_with("Examples:\n"));
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        for text in examples {
            put_as_typed(&mut roff, text.lines().skip(1));
        }
    }
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
        for text in notes {
            put_note(&mut roff, text);
        }
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_STATUS {
        roff.control("TP", ["4"]);
        roff.text([bold(code.to_string())]);
        roff.text([roman(meaning)]);
    }
    if let Some(above) = above {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(above), roman("(1)")]);
    }
    roff
}

/// Lines that are neither joined nor wrapped, without the blanks that the help has in front.
fn put_as_typed<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("EX", []);
    for line in lines {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("EE", []);
}

/// A paragraph; its indented lines stay as they are.
fn put_note(roff: &mut Roff, text: &str) {
    roff.control("PP", []);
    let lines: Vec<&str> = text.lines().collect();
    for part in lines.chunk_by(|a, b| a.starts_with("  ") == b.starts_with("  ")) {
        if part[0].starts_with("  ") {
            put_as_typed(roff, part.iter().copied());
        } else {
            for line in part {
                roff.text([roman(*line)]);
            }
        }
    }
}

/// Characters that groff would replace by typographic ones, which no shell takes (`groff_char(7)`).
fn as_typed(text: &str) -> String {
    text.replace('`', "\\(ga").replace('^', "\\(ha").replace('~', "\\(ti").replace("\\\\", "\\e")
}
