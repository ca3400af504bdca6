//! The monitor of the command line: warnings as they come, and a live line on a terminal.
//!
//! Everything goes to standard error. Nobody reads thousands of warnings: after [`SHOWN_WARNINGS`]
//! of them only their number is printed. Where a command requests it, this is so after
//! [`SHOWN_REPEATS`] that differ only in their object. Output that cannot be written is dropped:
//! there is no other place to report it.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arguments::run::CommonArgs;
use base::escape::escape;
use base::failures::lock;
use base::format::{count, counted, duration, percent, rate, size};
use flow::monitor::{Counter, Level, Monitor, Notice, Pause};
use report::table::Colour;
use runs::run_record::RunWords;
use runs::summary::RunSummary;
use service::failure::without_error_numbers;
use service::run::RunObserver;

use crate::question::QUESTION;
use crate::standard_error::{CLEAR, to_standard_error};

/// Warnings that are printed; the rest is only counted.
pub const SHOWN_WARNINGS: usize = 1000;
/// Warnings with the same text that are printed where repeats are folded.
pub const SHOWN_REPEATS: u64 = 20;
/// Texts that are compared to find repeats; later texts never count as repeats.
const REMEMBERED_TEXTS: usize = 64;
/// Longer texts never count as repeats.
const REMEMBERED_TEXT_BYTES: usize = 1 << 10;

/// How much is printed during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Warnings.
    Quiet,
    /// Warnings and notes.
    Normal,
    /// Also what was chosen and why.
    Verbose,
}

/// Warnings so far.
#[derive(Default)]
struct Warnings {
    printed: u64,
    /// Texts and how often each of them came; `None` if repeats are not folded.
    repeats: Option<Vec<(String, u64)>>,
}

impl Warnings {
    /// Counts a warning with this text; returns whether to print it.
    fn is_to_be_printed(&mut self, text: &str) -> bool {
        let repeats = self.repeats.as_mut().map(|texts| {
            if let Some((_, number)) = texts.iter_mut().find(|(known, _)| known == text) {
                *number += 1;
                return *number;
            }
            if texts.len() < REMEMBERED_TEXTS && text.len() < REMEMBERED_TEXT_BYTES {
                texts.push((text.to_owned(), 1));
            }
            1
        });
        let printed = repeats.is_none_or(|number| number <= SHOWN_REPEATS)
            && self.printed < SHOWN_WARNINGS as u64;
        self.printed += u64::from(printed);
        printed
    }

    /// A line for each text with warnings that were not printed, and one for the rest.
    fn not_printed(&self, total: u64) -> String {
        let mut text = String::new();
        let mut rest = total - self.printed.min(total);
        for (repeated, number) in self.repeats.iter().flatten() {
            let more = number.saturating_sub(SHOWN_REPEATS).min(rest);
            if more > 0 {
                text.push_str(&format!("takeup: warning: {repeated}: {} more\n", count(more)));
                rest -= more;
            }
        }
        if rest > 0 {
            let rest = counted(rest, "more warning", "more warnings");
            text.push_str(&format!("takeup: and {rest}, {} in all\n", count(total)));
        }
        text
    }
}

/// The monitor: prints warnings, and draws the live line.
pub struct Terminal {
    detail: Detail,
    shared: Arc<Shared>,
    live: Option<JoinHandle<()>>,
}

struct Shared {
    counters: [AtomicU64; 4],
    ready_blocks: AtomicU64,
    capacity_blocks: AtomicU64,
    /// What the run does while no bytes pass, and since when.
    pause: Mutex<Option<(Pause, Instant)>>,
    warnings: Mutex<Warnings>,
    warnings_total: AtomicU64,
    /// What the warnings mean for the data.
    notes_total: AtomicU64,
    /// Whether a live line is on the terminal.
    line: Mutex<bool>,
    done: AtomicBool,
    wake: Condvar,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            counters: Default::default(),
            ready_blocks: AtomicU64::new(0),
            capacity_blocks: AtomicU64::new(0),
            pause: Mutex::new(None),
            warnings: Mutex::default(),
            warnings_total: AtomicU64::new(0),
            notes_total: AtomicU64::new(0),
            line: Mutex::new(false),
            done: AtomicBool::new(false),
            wake: Condvar::new(),
        }
    }
}

impl Terminal {
    /// A monitor with the user's options; starts the live line on a terminal.
    pub fn new(common: &CommonArgs) -> Terminal {
        let detail = match (common.quiet, common.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Normal,
        };
        let shared = Arc::new(Shared::default());
        let wanted = detail > Detail::Quiet && !common.no_progress;
        let live = (wanted && std::io::stderr().is_terminal())
            .then(|| {
                let shared = Arc::clone(&shared);
                let name = "takeup-live-line".to_owned();
                std::thread::Builder::new().name(name).spawn(move || shared.live_line()).ok()
            })
            .flatten();
        Terminal { detail, shared, live }
    }

    /// Prints only a few of many warnings that differ only in their object, then their number. For
    /// runs after which the user can still look at the objects.
    pub fn folding_repeats(self) -> Terminal {
        lock(&self.shared.warnings).repeats = Some(Vec::new());
        self
    }

    /// Removes the live line, and prints how many warnings were not shown.
    pub fn close(&mut self) {
        {
            let _line = lock(&self.shared.line);
            self.shared.done.store(true, Ordering::Release);
            self.shared.wake.notify_all();
        }
        if let Some(live) = self.live.take() {
            let _ = live.join();
        }
        let not_printed = lock(&self.shared.warnings).not_printed(self.warnings_total());
        if !not_printed.is_empty() {
            self.shared.print(&not_printed);
        }
    }

    /// Number of all warnings.
    fn warnings_total(&self) -> u64 {
        self.shared.warnings_total.load(Ordering::Acquire)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.live.is_some() {
            self.close();
        }
    }
}

impl Monitor for Terminal {
    fn count(&self, counter: Counter, amount: u64) {
        self.shared.counters[index(counter)].fetch_add(amount, Ordering::Relaxed);
    }

    fn notice(&self, notice: Notice) {
        let object = escape(&notice.object);
        let text = escape(without_error_numbers(&notice.text).as_bytes());
        let line = if object.is_empty() { text.clone() } else { format!("{object}: {text}") };
        match notice.level {
            Level::Warning(_) => {
                self.shared.warnings_total.fetch_add(1, Ordering::AcqRel);
                if lock(&self.shared.warnings).is_to_be_printed(&text) {
                    self.shared.print(&format!("takeup: warning: {line}\n"));
                }
            }
            level @ (Level::Note | Level::Notable)
                if level == Level::Notable || self.detail >= Detail::Normal =>
            {
                let before = self.shared.notes_total.fetch_add(1, Ordering::Relaxed);
                if before < SHOWN_WARNINGS as u64 {
                    self.shared.print(&format!("takeup: note: {line}\n"));
                }
            }
            Level::Detail if self.detail >= Detail::Verbose => {
                self.shared.print(&format!("takeup: {line}\n"));
            }
            Level::Note | Level::Notable | Level::Detail => {}
        }
    }

    fn fill(&self, ready_blocks: usize, capacity_blocks: usize) {
        self.shared.ready_blocks.store(ready_blocks as u64, Ordering::Relaxed);
        self.shared.capacity_blocks.store(capacity_blocks as u64, Ordering::Relaxed);
    }

    fn pause(&self, pause: Option<Pause>) {
        *lock(&self.shared.pause) = pause.map(|pause| (pause, Instant::now()));
    }
}

impl RunObserver for Terminal {
    fn words(&self, summary: &RunSummary) -> RunWords {
        report::run::words(summary)
    }
}

impl Shared {
    fn value(&self, counter: Counter) -> u64 {
        self.counters[index(counter)].load(Ordering::Relaxed)
    }

    /// Prints `text` in place of the live line, which is drawn again later.
    fn print(&self, text: &str) {
        let mut line = lock(&self.line);
        let clear = match (*lock(&QUESTION), *line) {
            // Keeps the question and what the user has typed after it.
            (true, _) => "\n",
            (false, true) => CLEAR,
            (false, false) => "",
        };
        to_standard_error(&format!("{clear}{text}"));
        *line = false;
    }

    /// Draws the line five times a second until the run is done.
    fn live_line(&self) {
        const STEP: Duration = Duration::from_millis(200);
        let start = Instant::now();
        let mut speed = Speed::new(start);
        let mut line = lock(&self.line);
        while !self.done.load(Ordering::Acquire) {
            let waited = self.wake.wait_timeout(line, STEP);
            line = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            let text = self.live_text(&mut speed, start);
            let question = lock(&QUESTION);
            if *question {
                *line = false;
                continue;
            }
            let text: String = text.chars().take(columns().saturating_sub(1)).collect();
            to_standard_error(&format!("{CLEAR}{text}"));
            *line = true;
        }
        if *line {
            to_standard_error(CLEAR);
        }
        *line = false;
    }

    fn live_text(&self, speed: &mut Speed, start: Instant) -> String {
        let (read, written) = (self.value(Counter::SourceBytes), self.value(Counter::TargetBytes));
        let (rate_in, rate_out) = speed.update(read, written, Instant::now());
        let mut parts = match *lock(&self.pause) {
            // A rate of 0 would look like an error.
            Some((pause, since)) => {
                vec![format!("{} for {}", pause.name(), duration(since.elapsed().as_secs_f64()))]
            }
            None => vec![format!("in {}", rate(rate_in)), format!("out {}", rate(rate_out))],
        };
        let capacity = self.capacity_blocks.load(Ordering::Relaxed);
        if capacity > 0 {
            let ready = self.ready_blocks.load(Ordering::Relaxed);
            parts.push(format!("ring {}", percent(ready as f64 / capacity as f64)));
        }
        let members = self.value(Counter::Members);
        if members > 0 {
            parts.push(counted(members, "member", "members"));
        }
        parts.push(size(read.max(written)));
        parts.push(duration(start.elapsed().as_secs_f64()));
        parts.join("  ")
    }
}

/// Rates over the last two seconds or so.
struct Speed {
    samples: std::collections::VecDeque<(Instant, u64, u64)>,
}

impl Speed {
    const SAMPLES: usize = 10;

    fn new(start: Instant) -> Speed {
        Speed { samples: [(start, 0, 0)].into() }
    }

    fn update(&mut self, read: u64, written: u64, now: Instant) -> (f64, f64) {
        let (since, read_then, written_then) = self.samples[0];
        self.samples.push_back((now, read, written));
        if self.samples.len() > Speed::SAMPLES {
            self.samples.pop_front();
        }
        let seconds = now.duration_since(since).as_secs_f64().max(1e-3);
        let rate = |then: u64, now: u64| now.saturating_sub(then) as f64 / seconds;
        (rate(read_then, read), rate(written_then, written))
    }
}

/// Colour only on a terminal, and not against NO_COLOR (no-color.org).
pub fn colour(stream: &impl IsTerminal) -> Colour {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    if stream.is_terminal() && !refused && !dumb { Colour::Ansi } else { Colour::Plain }
}

fn columns() -> usize {
    rustix::termios::tcgetwinsize(rustix::stdio::stderr())
        .map_or(80, |size| usize::from(size.ws_col))
        .max(20)
}

fn index(counter: Counter) -> usize {
    match counter {
        Counter::Members => 0,
        Counter::SourceBytes => 1,
        Counter::ArchiveBytes => 2,
        Counter::TargetBytes => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(warnings: &mut Warnings, texts: impl Iterator<Item = String>, expected: (u64, &str)) {
        let mut total = 0;
        for text in texts {
            warnings.is_to_be_printed(&text);
            total += 1;
        }
        assert_eq!((warnings.printed, &*warnings.not_printed(total)), expected);
    }

    #[test]
    fn warnings_have_a_limit_and_repeats_a_lower_one() {
        let same = |number| (0..number).map(|_| "already exists".to_owned());
        let all = || Warnings::default();
        let folding = || Warnings { repeats: Some(Vec::new()), ..Warnings::default() };
        check(&mut all(), same(1000), (1000, ""));
        check(&mut all(), same(3000), (1000, "takeup: and 2 000 more warnings, 3 000 in all\n"));
        check(&mut folding(), same(20), (20, ""));
        let more = "takeup: warning: already exists: 2 980 more\n";
        check(&mut folding(), same(3000), (20, more));
        let mixed = same(3000).chain((0..1500).map(|number| format!("lost {number} bytes")));
        let more = format!("{more}takeup: and 520 more warnings, 4 500 in all\n");
        check(&mut folding(), mixed, (1000, &more));
    }

    #[test]
    fn the_live_line_says_what_goes_on_while_nothing_passes() {
        let shared = Shared::default();
        let begun = Instant::now();
        let text = || shared.live_text(&mut Speed::new(begun), begun);
        assert!(text().starts_with("in 0.000 MB/s  out 0.000 MB/s"), "{}", text());
        for (pause, expected) in [
            (Pause::Winding, "winding for "),
            (Pause::ReadingLabel, "reading the label for "),
            (Pause::Changing, "changing the volume for "),
            (Pause::Flushing, "flushing the drive for "),
        ] {
            *lock(&shared.pause) = Some((pause, begun));
            let text = text();
            assert!(text.starts_with(expected) && !text.contains("MB/s"), "{text}");
        }
        *lock(&shared.pause) = None;
        assert!(text().contains("MB/s"));
    }
}
