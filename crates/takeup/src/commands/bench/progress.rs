//! The progress of an experiment, on standard error.

use std::cell::Cell as Shared;
use std::io::IsTerminal;

use arguments::bench::options::ExperimentArgs;
use base::format::{duration, rate};
use experiment::record::{Factor, RunRecord, Value, shown_cell};
use experiment::run::Observer;

use crate::standard_error::to_standard_error;

/// A live line on a terminal; a line for each run with --verbose.
pub struct Progress<'a> {
    factors: &'a [Factor],
    live: bool,
    lines: bool,
    quiet: bool,
    drawn: Shared<bool>,
}

/// Back to the start of the line, and clear to its end.
const CLEAR: &str = "\r\x1b[K";

impl<'a> Progress<'a> {
    /// From the options of the command.
    pub fn new(arguments: &ExperimentArgs, factors: &'a [Factor]) -> Progress<'a> {
        let live = !arguments.quiet && !arguments.no_progress && std::io::stderr().is_terminal();
        let (lines, quiet) = (arguments.verbose, arguments.quiet);
        Progress { factors, live, lines, quiet, drawn: Shared::new(false) }
    }

    /// A live line if there is a terminal.
    pub fn live(factors: &'a [Factor]) -> Progress<'a> {
        let live = std::io::stderr().is_terminal();
        Progress { factors, live, lines: false, quiet: false, drawn: Shared::new(false) }
    }

    /// Shows nothing.
    pub fn silent(factors: &'a [Factor]) -> Progress<'a> {
        Progress { factors, live: false, lines: false, quiet: true, drawn: Shared::new(false) }
    }

    /// Erases the live line.
    pub fn close(&self) {
        if self.drawn.replace(false) {
            to_standard_error(CLEAR);
        }
    }

    fn text(&self, progress: &experiment::run::Progress<'_>) -> String {
        let (done, sure) = progress.runs;
        let mut parts = vec![format!("run {done} of {sure}, round {}", progress.block)];
        parts.push(shown_cell(progress.cell, self.factors));
        if let Some(seconds) = progress.seconds_left {
            parts.push(format!("{} left", duration(seconds)));
        }
        if let Some(widest) = progress.widest_interval {
            parts.push(format!("widest interval +-{:.1} %", widest * 100.0));
        }
        parts.join("  ")
    }
}

impl Observer for Progress<'_> {
    fn foretold(&self, what: &str) {
        if !self.quiet {
            self.close();
            to_standard_error(&format!("takeup: {what}\n"));
        }
    }

    fn begins(&self, progress: &experiment::run::Progress<'_>) {
        if self.live {
            let columns = rustix::termios::tcgetwinsize(rustix::stdio::stderr())
                .map_or(80, |size| usize::from(size.ws_col).max(20));
            let text: String = self.text(progress).chars().take(columns - 1).collect();
            to_standard_error(&format!("{CLEAR}{text}"));
            self.drawn.set(true);
        }
    }

    fn ended(&self, progress: &experiment::run::Progress<'_>, run: &RunRecord) {
        if !self.lines {
            return;
        }
        self.close();
        let what = match (run.speed(), &run.error) {
            (Some(_), _) if run.value == Value::Time => duration(run.seconds),
            (Some(speed), _) => format!("{} in {}", rate(speed), duration(run.seconds)),
            (None, Some(error)) => base::escape::escape(error.as_bytes()),
            (None, None) => "nothing".to_owned(),
        };
        to_standard_error(&format!("takeup: {}: {what}\n", self.text(progress)));
    }
}
