//! The progress of an experiment, on standard error.

use std::cell::Cell as Shared;
use std::io::IsTerminal;

use arguments::bench::options::ExperimentArgs;
use base::format::{duration, percent, rate};
use experiment::record::{Factor, RunRecord, Value, shown_cell};
use experiment::run::Observer;

use crate::standard_error::{columns, draw_progress, erase_progress, to_standard_error};

/// A live line on a terminal; a line for each run with --verbose.
pub struct Progress<'a> {
    factors: &'a [Factor],
    live: bool,
    lines: bool,
    quiet: bool,
    /// The speed of the last run.
    last: Shared<Option<f64>>,
}

impl<'a> Progress<'a> {
    /// From the options of the command.
    pub fn new(arguments: &ExperimentArgs, factors: &'a [Factor]) -> Progress<'a> {
        let live = !arguments.quiet && !arguments.no_progress && std::io::stderr().is_terminal();
        let (lines, quiet) = (arguments.verbose, arguments.quiet);
        Progress { factors, live, lines, quiet, last: Shared::new(None) }
    }

    /// A live line if there is a terminal.
    pub fn live(factors: &'a [Factor]) -> Progress<'a> {
        let live = std::io::stderr().is_terminal();
        Progress { factors, live, lines: false, quiet: false, last: Shared::new(None) }
    }

    /// Shows nothing.
    pub fn silent(factors: &'a [Factor]) -> Progress<'a> {
        Progress { factors, live: false, lines: false, quiet: true, last: Shared::new(None) }
    }

    /// Erases the live line.
    pub fn close(&self) {
        erase_progress();
    }

    /// The run for a line of its own.
    fn text(&self, progress: &experiment::run::Progress<'_>) -> String {
        let (done, sure) = progress.runs;
        let run = format!("run {done} of {sure}, round {}", progress.block);
        [run, shown_cell(progress.cell, self.factors)].join("  ")
    }

    /// The progress line, in the order of what is cut last.
    fn line(&self, progress: &experiment::run::Progress<'_>, columns: usize) -> String {
        let (done, sure) = progress.runs;
        let mut parts = vec![percent(done as f64 / sure.max(1) as f64)];
        parts.extend(self.last.get().map(|speed| format!("last {}", rate(speed))));
        if let Some(seconds) = progress.seconds_left {
            parts.push(format!("{} left (from the runs so far)", duration(seconds)));
        }
        parts.push(self.text(progress));
        if let Some(widest) = progress.widest_interval {
            parts.push(format!("widest interval +-{:.1} %", widest * 100.0));
        }
        parts.join("  ").chars().take(columns).collect()
    }
}

impl Observer for Progress<'_> {
    fn foretold(&self, what: &str) {
        if !self.quiet {
            to_standard_error(&format!("takeup: {what}\n"));
        }
    }

    fn begins(&self, progress: &experiment::run::Progress<'_>) {
        if self.live {
            draw_progress(&self.line(progress, columns()));
        }
    }

    fn ended(&self, progress: &experiment::run::Progress<'_>, run: &RunRecord) {
        self.last.set(run.speed().filter(|_| run.value != Value::Time));
        if !self.lines {
            return;
        }
        let what = match (run.speed(), &run.error) {
            (Some(_), _) if run.value == Value::Time => duration(run.seconds),
            (Some(speed), _) => format!("{} in {}", rate(speed), duration(run.seconds)),
            (None, Some(error)) => base::escape::escape(error.as_bytes()),
            (None, None) => "nothing".to_owned(),
        };
        to_standard_error(&format!("takeup: {}: {what}\n", self.text(progress)));
    }
}
