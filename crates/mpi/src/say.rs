//! What is said on standard error: by rank 0, and by a rank that ends alone.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use base::escape::Printable;
use base::format::{duration, rate, size};
use many::set::{Progress, Step, Tell};
use service::failure::{Failure, with_causes};
use service::notify::Notify;

/// Writes whole lines to standard error, without control characters that a terminal would obey.
pub fn to_standard_error(text: &str) {
    // There is no other place to report that this failed.
    let _ = std::io::stderr().lock().write_all(Printable::of(text.as_bytes()).as_bytes());
}

/// Writes text to standard output.
///
/// # Errors
/// When that fails: a truncated document must not look like success.
pub fn to_standard_output(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(Printable::of(text.as_bytes()).as_bytes());
    written.and_then(|()| output.flush()).map_err(|error| {
        Failure::of(format!("cannot write standard output: {}", with_causes(&error)), None)
    })
}

/// Whether a line can be drawn again and again.
pub fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Draws the progress line in place of the last one.
pub fn draw(line: &str) {
    let line = Printable::of(line.as_bytes());
    let mut output = std::io::stderr().lock();
    let _ = output.write_all(b"\r\x1b[K").and_then(|()| output.write_all(line.as_bytes()));
}

/// Erases the progress line.
pub fn erase() {
    let _ = std::io::stderr().lock().write_all(b"\r\x1b[K");
}

/// Whether progress and results are shown, or errors alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loudness {
    Usual,
    Quiet,
}

/// Notices on standard error; on ranks that are not the first, none.
#[derive(Clone, Copy, Debug)]
pub struct Notices {
    /// Whether this rank speaks.
    pub speaks: bool,
}

impl Notify for Notices {
    fn notify(&self, text: &str) {
        if self.speaks {
            to_standard_error(&format!("takeup-mpi: {text}\n"));
        }
    }
}

/// Seconds between two lines where there is no terminal.
const LINE_SECONDS: f64 = 30.0;

/// The progress of all ranks in one line.
pub struct SetProgress {
    quiet: bool,
    live: bool,
    drawn: Cell<bool>,
    said: Cell<Instant>,
}

impl SetProgress {
    /// A live line on a terminal; else a line now and then.
    pub fn new(loudness: Loudness) -> SetProgress {
        let quiet = loudness == Loudness::Quiet;
        let live = !quiet && is_terminal();
        SetProgress { quiet, live, drawn: Cell::new(false), said: Cell::new(Instant::now()) }
    }

    /// Erases the live line.
    pub fn close(&self) {
        if self.drawn.replace(false) {
            erase();
        }
    }
}

/// How far all ranks are.
fn line(progress: Progress) -> String {
    let (bytes, all) = progress.bytes;
    let step = match progress.step {
        Step::List => return format!("listing: {} so far", size(bytes)),
        Step::Write => "writing",
        Step::Verify => "verifying",
        Step::Restore => "restoring",
    };
    let (shards, of) = progress.shards;
    let speed = bytes as f64 / progress.seconds.max(1e-9);
    let left = match all.saturating_sub(bytes) {
        0 => String::new(),
        left if speed > 0.0 => format!(", about {} left", duration(left as f64 / speed)),
        _ => String::new(),
    };
    let share = if all == 0 { 0.0 } else { 100.0 * bytes.min(all) as f64 / all as f64 };
    format!("{step}: {share:.0} %, {shards} of {of} shards, {}{left}", rate(speed))
}

impl Tell for SetProgress {
    fn say(&self, text: &str) {
        if !self.quiet {
            self.close();
            to_standard_error(&format!("takeup-mpi: {text}\n"));
        }
    }

    fn progress(&self, progress: Progress) {
        if self.live {
            self.drawn.set(true);
            draw(&line(progress));
        } else if !self.quiet && self.said.get().elapsed().as_secs_f64() >= LINE_SECONDS {
            self.said.set(Instant::now());
            to_standard_error(&format!("takeup-mpi: {}\n", line(progress)));
        }
    }
}
