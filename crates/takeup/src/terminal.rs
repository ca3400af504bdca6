//! The monitor of the command line: warnings as they come, and the progress line on a terminal.
//!
//! Everything goes to standard error. Nobody reads thousands of warnings: after [`SHOWN_WARNINGS`]
//! of them only their number is printed. Where a command requests it, this is so after
//! [`SHOWN_REPEATS`] that differ only in their object or in numbers. Output that cannot be written
//! is dropped: there is no other place to report it.
//!
//! The threads of a run only count. The thread that draws reads the counters, and asks for the
//! object in hand by a flag: the next thread that passes one takes the flag down and leaves a copy.
//! So an object costs a run the look at a flag.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arguments::run::CommonArgs;
use base::escape::escape;
use base::failures::lock;
use base::format::{count, counted};
use flow::account::Stage;
use flow::monitor::{Counter, Expected, Level, Measure, Monitor, Notice, Pause};
use flow::run::StageKind;
use report::table::{Colour, Style};
use runs::run_record::RunWords;
use runs::summary::RunSummary;
use service::failure::without_error_numbers;
use service::run::RunObserver;

use crate::progress::{Forecast, Moment, SteadyRate};
use crate::standard_error::{
    columns, columns_of, draw_progress, erase_progress, to_standard_error,
};

/// Warnings that are printed; the rest is only counted.
pub const SHOWN_WARNINGS: usize = 1000;
/// Warnings with the same text but for its numbers that are printed where repeats are folded.
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
    /// Texts without their numbers, and how often each came; `None` if repeats are not folded.
    repeats: Option<Vec<(String, u64)>>,
}

impl Warnings {
    /// Counts a warning with this text; returns whether to print it.
    fn is_to_be_printed(&mut self, text: &str) -> bool {
        let repeats = self.repeats.as_mut().map(|texts| {
            if text.len() >= REMEMBERED_TEXT_BYTES {
                return 1;
            }
            let text = without_numbers(text);
            if let Some((_, number)) = texts.iter_mut().find(|(known, _)| *known == text) {
                *number += 1;
                return *number;
            }
            if texts.len() < REMEMBERED_TEXTS {
                texts.push((text, 1));
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
        let lists = if total <= SHOWN_WARNINGS as u64 {
            "-v lists them".to_owned()
        } else {
            format!("-v lists the first {}", count(SHOWN_WARNINGS as u64))
        };
        let mut rest = total - self.printed.min(total);
        for (repeated, number) in self.repeats.iter().flatten() {
            let more = number.saturating_sub(SHOWN_REPEATS).min(rest);
            if more > 0 {
                let more_text = count(more);
                text.push_str(&format!("takeup: warning: {more_text} more, {lists}: {repeated}\n"));
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

/// The text with an N for each number: what differs from place to place in damage of one kind.
fn without_numbers(text: &str) -> String {
    let mut kind = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '0'..='9' if kind.ends_with('N') => {}
            '0'..='9' => kind.push('N'),
            _ => kind.push(letter),
        }
    }
    kind
}

/// Objects with at least this content are kept without being asked for: reading one may take longer
/// than the time between two drawings, and a copy of its name costs nothing beside that.
const LARGE_BYTES: u64 = 64 << 10;

/// The monitor: prints warnings, and draws the progress line.
pub struct Terminal {
    detail: Detail,
    shared: Arc<Shared>,
    live: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    counters: [AtomicU64; 4],
    ready_blocks: AtomicU64,
    capacity_blocks: AtomicU64,
    /// The stages of the run, which count their bytes themselves.
    stages: Mutex<Vec<Arc<Stage>>>,
    /// How much the run will move, by the best basis so far.
    expected: Mutex<Option<Expected>>,
    /// Whether the next object is to be kept for the line.
    wants_object: AtomicBool,
    object: Mutex<Vec<u8>>,
    /// What the run does while no bytes pass, and since when.
    pause: Mutex<Option<(Pause, Instant)>>,
    warnings: Mutex<Warnings>,
    warnings_total: AtomicU64,
    /// What the warnings mean for the data.
    notes_total: AtomicU64,
    is_done: Mutex<bool>,
    wake: Condvar,
}

impl Terminal {
    /// A monitor with the user's options; starts the progress line on a terminal.
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
                let name = "takeup-progress".to_owned();
                std::thread::Builder::new().name(name).spawn(move || shared.draw()).ok()
            })
            .flatten();
        Terminal { detail, shared, live }
    }

    /// Prints only a few of many warnings that differ only in their object or in numbers, then how
    /// many there are, except with `-v`. For runs that can be repeated with it.
    pub fn folding_repeats(self) -> Terminal {
        if self.detail < Detail::Verbose {
            lock(&self.shared.warnings).repeats = Some(Vec::new());
        }
        self
    }

    /// Removes the progress line, and prints how many warnings were not shown.
    pub fn close(&mut self) {
        *lock(&self.shared.is_done) = true;
        self.shared.wake.notify_all();
        if let Some(live) = self.live.take() {
            let _ = live.join();
        }
        to_standard_error(&lock(&self.shared.warnings).not_printed(self.warnings_total()));
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
                    to_standard_error(&format!("takeup: warning: {line}\n"));
                }
            }
            level @ (Level::Note | Level::Notable)
                if level == Level::Notable || self.detail >= Detail::Normal =>
            {
                let before = self.shared.notes_total.fetch_add(1, Ordering::Relaxed);
                if before < SHOWN_WARNINGS as u64 {
                    to_standard_error(&format!("takeup: note: {line}\n"));
                }
            }
            Level::Detail if self.detail >= Detail::Verbose => {
                to_standard_error(&format!("takeup: {line}\n"));
            }
            Level::Note | Level::Notable | Level::Detail => {}
        }
    }

    fn fill(&self, ready_blocks: usize, capacity_blocks: usize) {
        self.shared.ready_blocks.store(ready_blocks as u64, Ordering::Relaxed);
        self.shared.capacity_blocks.store(capacity_blocks as u64, Ordering::Relaxed);
    }

    fn stages(&self, stages: &[&Arc<Stage>]) {
        lock(&self.shared.stages).extend(stages.iter().map(|stage| Arc::clone(stage)));
    }

    fn wants_forecast(&self) -> bool {
        self.live.is_some()
    }

    fn expect(&self, expected: Expected) {
        let mut known = lock(&self.shared.expected);
        if known.is_none_or(|known| known.basis <= expected.basis) {
            *known = Some(expected);
        }
    }

    fn object(&self, path: &[u8], bytes: u64) {
        if bytes >= LARGE_BYTES || self.shared.wants_object.load(Ordering::Relaxed) {
            self.shared.wants_object.store(false, Ordering::Relaxed);
            path.clone_into(&mut lock(&self.shared.object));
        }
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

    /// Bytes that have passed through the stages of one kind; `None` without such a stage.
    fn stage_bytes(&self, is_meant: impl Fn(StageKind) -> bool) -> Option<u64> {
        let stages = lock(&self.stages);
        let bytes = stages.iter().filter(|stage| is_meant(stage.kind())).map(|it| it.bytes());
        bytes.reduce(|sum, bytes| sum + bytes)
    }

    /// Draws the line five times a second until the run is done.
    fn draw(&self) {
        const STEP: Duration = Duration::from_millis(200);
        let start = Instant::now();
        let mut pace = Pace { speed: Speed::new(start), steady: SteadyRate::default(), at: start };
        let mut is_done = lock(&self.is_done);
        while !*is_done {
            let waited = self.wake.wait_timeout(is_done, STEP);
            is_done = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            draw_progress(&self.moment(&mut pace, start).line(columns()));
            self.wants_object.store(true, Ordering::Relaxed);
        }
        erase_progress();
    }

    fn moment(&self, pace: &mut Pace, start: Instant) -> Moment {
        let now = Instant::now();
        let step = now.duration_since(std::mem::replace(&mut pace.at, now));
        let read = self.stage_bytes(|kind| kind == StageKind::Read);
        let read = read.unwrap_or_else(|| self.value(Counter::SourceBytes));
        let written = self.stage_bytes(|kind| matches!(kind, StageKind::Write | StageKind::Create));
        let (read_rate, write_rate) = pace.speed.update(read, written.unwrap_or(0), now);
        let expected = *lock(&self.expected);
        let forecast = expected.and_then(|Expected { amount, measure, basis }| {
            let done = match measure {
                Measure::Counter(counter) => self.value(counter),
                Measure::Stage(kind) => self.stage_bytes(|it| it == kind).unwrap_or(0),
            };
            Forecast::new(done, amount, pace.steady.update(done, step), basis)
        });
        let since = |(pause, since): (Pause, Instant)| (pause, since.elapsed().as_secs_f64());
        let capacity = self.capacity_blocks.load(Ordering::Relaxed);
        let ready = self.ready_blocks.load(Ordering::Relaxed) as f64;
        Moment {
            pause: lock(&self.pause).map(since),
            forecast,
            read_rate,
            write_rate: written.map(|_| write_rate),
            fill: (capacity > 0).then(|| ready / capacity as f64),
            members: self.value(Counter::Members),
            bytes: read.max(written.unwrap_or(0)),
            seconds: start.elapsed().as_secs_f64(),
            object: lock(&self.object).clone(),
        }
    }
}

/// The rates of a run, and when they were last looked at.
struct Pace {
    speed: Speed,
    steady: SteadyRate,
    at: Instant,
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

/// How text for this stream is printed: as wide as its terminal.
pub fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let is_terminal = stream.is_terminal();
    Style { colour: colour(stream), columns: is_terminal.then(|| columns_of(stream)) }
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
    use flow::monitor::Basis;

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
        let more = "takeup: warning: 280 more, -v lists them: already exists\n";
        check(&mut folding(), same(300), (20, more));
        let more = "takeup: warning: 2 980 more, -v lists the first 1 000: already exists\n";
        check(&mut folding(), same(3000), (20, more));
        let numbered = (0..1500).map(|number| format!("lost {number} bytes"));
        let lost = "takeup: warning: 1 480 more, -v lists the first 1 000: lost N bytes\n";
        check(&mut folding(), numbered.clone(), (20, lost));
        check(&mut folding(), same(3000).chain(numbered), (40, &format!("{more}{lost}")));
        let others = (0..1500).map(|number| format!("lost {}", "x".repeat(number)));
        let more = format!("{more}takeup: and 520 more warnings, 4 500 in all\n");
        check(&mut folding(), same(3000).chain(others), (1000, &more));
    }

    fn expected(amount: u64, basis: Basis) -> Expected {
        Expected { amount, measure: Measure::Stage(StageKind::Read), basis }
    }

    fn terminal() -> Terminal {
        Terminal { detail: Detail::Normal, shared: Arc::default(), live: None }
    }

    #[test]
    fn the_best_basis_holds() {
        let terminal = terminal();
        terminal.expect(expected(10, Basis::SpaceInUse));
        terminal.expect(expected(20, Basis::ScanAhead));
        assert_eq!(*lock(&terminal.shared.expected), Some(expected(10, Basis::SpaceInUse)));
        terminal.expect(expected(30, Basis::ReplacedArchive));
        assert_eq!(*lock(&terminal.shared.expected), Some(expected(30, Basis::ReplacedArchive)));
    }

    #[test]
    fn the_moment_is_read_from_the_stages() {
        let terminal = terminal();
        let (read, create) = (Stage::new(StageKind::Read), Stage::new(StageKind::Create));
        terminal.stages(&[&read, &create]);
        terminal.expect(expected(1000, Basis::ArchiveSize));
        read.add_bytes(430);
        create.add_bytes(2000);
        let start = Instant::now();
        let mut pace = Pace { speed: Speed::new(start), steady: SteadyRate::default(), at: start };
        let moment = terminal.shared.moment(&mut pace, start);
        assert_eq!(
            moment.forecast.map(|it| (it.share, it.basis)),
            Some((0.43, Basis::ArchiveSize))
        );
        assert!(moment.write_rate > Some(moment.read_rate), "{moment:?}");
        assert_eq!(moment.bytes, 2000);
    }

    #[test]
    fn an_object_is_kept_when_it_is_asked_for_and_when_it_is_large() {
        let terminal = terminal();
        let object = || lock(&terminal.shared.object).clone();
        terminal.object(b"not asked", 10);
        assert_eq!(object(), b"");
        terminal.shared.wants_object.store(true, Ordering::Relaxed);
        terminal.object(b"small", 10);
        terminal.object(b"next", 10);
        assert_eq!(object(), b"small");
        terminal.object(b"large", LARGE_BYTES);
        terminal.object(b"next", 10);
        assert_eq!(object(), b"large");
    }
}
