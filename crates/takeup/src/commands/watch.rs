//! `takeup watch`: what block devices do, and what the numbers mean.
//!
//! Each interval is printed as soon as it is over, by [`screen::lines`] or as a line of JSON.

mod whole;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use arguments::watch::{WatchArgs, When};
use base::escape::Printable;
use report::table::Colour;
use screen::lines::ScreenLines;
use service::failure::{Failure, with_causes};
use service::watch::{LiveWatch, Replay, WatchLine, WatchRequest};
use watch::intervals::Interval;

use crate::exit_code::FailureExitCode as _;
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use crate::terminal::colour;

/// Runs the command.
pub fn run(arguments: &WatchArgs) -> ExitCode {
    let failure = match watch(arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    if arguments.json {
        // If this fails, the message on standard error has the same content.
        let line = failure.to_json_line("watch");
        let _ = to_standard_output(line.as_bytes());
    }
    to_standard_error(&failure.to_text());
    failure.exit_code()
}

fn watch(arguments: &WatchArgs) -> Result<(), Failure> {
    let request = arguments.request();
    if wants_screen(arguments) {
        return whole::show(&request, chosen_colour(arguments));
    }
    let mut form = Form::of(arguments);
    match &request.from {
        Some(path) => replay(path, &request, &mut form),
        None => look(&request, &mut form),
    }
}

/// Whether to use the whole terminal: if there is a user at it, and no fixed end.
fn wants_screen(arguments: &WatchArgs) -> bool {
    let has_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_dumb = || std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let wants_lines = arguments.plain || arguments.json || arguments.count.is_some();
    arguments.screen || (!wants_lines && has_terminal() && !is_dumb())
}

fn chosen_colour(arguments: &WatchArgs) -> Colour {
    match arguments.color {
        When::Auto => colour(&io::stdout()),
        When::Always => Colour::Ansi,
        When::Never => Colour::Plain,
    }
}

/// Watches this machine, for the requested number of intervals or without end.
fn look(request: &WatchRequest, form: &mut Form) -> Result<(), Failure> {
    let watching = LiveWatch::begin(request)?;
    if io::stdout().is_terminal() && matches!(form, Form::Lines(_)) {
        let seconds = watching.interval().as_secs_f64();
        to_standard_error(&format!(
            "takeup: one reading every {seconds} s; idle devices are hidden; Ctrl-C ends; \
             `takeup diagnose --host` says what stands out\n"
        ));
    }
    for interval in watching {
        if print(&form.text(&interval?))? == Next::Ends {
            break;
        }
    }
    Ok(())
}

/// Replays a record from beginning to end.
fn replay(path: &Path, request: &WatchRequest, form: &mut Form) -> Result<(), Failure> {
    let mut replay = Replay::open(path, request)?;
    while let Some(interval) = replay.next() {
        if print(&form.text(&interval?))? == Next::Ends && !replay.is_over() {
            return Ok(());
        }
    }
    to_standard_error(&report::watch::damage(&replay.damage()));
    replay.check_devices()
}

/// Whether there is more to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Follows,
    Ends,
}

/// How intervals are printed.
enum Form {
    Lines(ScreenLines),
    Json,
}

impl Form {
    fn of(arguments: &WatchArgs) -> Form {
        let lines = ScreenLines::new(chosen_colour(arguments));
        match (arguments.json, arguments.count) {
            (true, _) => Form::Json,
            (false, None) => Form::Lines(lines),
            (false, Some(_)) => Form::Lines(lines.saying_idle()),
        }
    }

    fn text(&mut self, interval: &Interval) -> String {
        match self {
            Form::Json => WatchLine::of(interval).printed(),
            // Queried each time, because the window may have been resized.
            Form::Lines(lines) => lines.of(interval, terminal_width()),
        }
    }
}

/// The width of the terminal at standard output; `None` if it is not a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
    size.ok().map(|size| usize::from(size.ws_col))
}

/// A closed pipe ends the watch, which is not a failure.
fn print(text: &str) -> Result<Next, Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(Printable::of(text.as_bytes()).as_bytes()).and_then(|()| output.flush())
    {
        Ok(()) => Ok(Next::Follows),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Next::Ends),
        Err(error) => {
            let why = with_causes(&error);
            Err(Failure::of(format!("cannot write standard output: {why}"), None))
        }
    }
}
