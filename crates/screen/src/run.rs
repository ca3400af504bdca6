//! The main loop: takes intervals and keys, and draws pictures.
//!
//! It draws at most ten pictures per second, and none if nothing has changed. Readings are taken on
//! another thread, so that a slow terminal does not delay them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::{flag, low_level};
use watch::intervals::{Interval, IntervalMaker};
use watch::record::{LeftOut, RecordReader, WatchRecordError};
use watch::{Reading, record};

use crate::draw::{Look, draw};
use crate::terminal::{Screen, give_back};
use crate::timeline::Timeline;
use crate::view::{View, Wish};
use report::glyphs::Glyphs;

/// The shortest time between two pictures.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Maximum time between two checks for new intervals.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maximum playback time of an interval of a record.
const PLAYED_SECONDS_MAX: f64 = 1.0;

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenEnd {
    /// The user ended it.
    Quit,
    /// There are no more intervals.
    Over,
    /// A signal came; its default action is still due.
    Signal(i32),
}

/// Why the loop failed.
#[derive(Debug)]
pub enum RunError<E> {
    Terminal(io::Error),
    /// The source of intervals failed.
    Source(E),
}

/// A source of intervals.
pub trait ScreenSource {
    /// Why the source failed.
    type Error;

    /// The number of intervals, if known.
    fn total(&self) -> Option<u64>;

    /// Adds new intervals to the timeline, and the interval with this number if possible. Returns
    /// whether there may be more.
    ///
    /// # Errors
    /// When the source fails and gives no more intervals.
    fn fill(&mut self, timeline: &mut Timeline, wanted: u64) -> Result<Follows, Self::Error>;
}

/// Whether there may be more intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// There may be more.
    More,
    /// There are no more.
    Nothing,
}

/// Intervals from another thread.
pub struct Live<E>(pub Receiver<Result<Interval, E>>);

impl<E> ScreenSource for Live<E> {
    type Error = E;

    fn total(&self) -> Option<u64> {
        None
    }

    fn fill(&mut self, timeline: &mut Timeline, _: u64) -> Result<Follows, E> {
        loop {
            match self.0.try_recv() {
                Ok(interval) => timeline.push(interval?),
                Err(TryRecvError::Empty) => return Ok(Follows::More),
                Err(TryRecvError::Disconnected) => return Ok(Follows::Nothing),
            }
        }
    }
}

/// Intervals of a record, read forward; for dropped intervals, it is read again from the beginning.
pub struct Player<K> {
    path: PathBuf,
    keep: K,
    reader: RecordReader,
    watch: IntervalMaker,
    total: u64,
    is_cut: bool,
    left_out: (Vec<LeftOut>, u64),
}

impl<K: FnMut(&mut Reading)> Player<K> {
    /// From a file, which is read once to the end to check it. `keep` sees each reading, in this
    /// check too, and removes unwanted devices.
    ///
    /// # Errors
    /// When it is not a record.
    pub fn open(path: PathBuf, mut keep: K) -> Result<Player<K>, WatchRecordError> {
        let mut reader = RecordReader::open(&path)?;
        let mut readings = 0u64;
        while let Some(mut reading) = reader.next_reading()? {
            keep(&mut reading);
            readings += 1;
        }
        let is_cut = reader.is_cut();
        let left_out = (reader.left_out().to_vec(), reader.left_out_count());
        let reader = RecordReader::open(&path)?;
        let total = readings.saturating_sub(1);
        Ok(Player { path, keep, reader, watch: IntervalMaker::default(), total, is_cut, left_out })
    }

    /// Whether its last line is incomplete, and skipped.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Readings that were skipped because they are impossible: the first ones, and their number.
    pub fn left_out(&self) -> (&[LeftOut], u64) {
        (&self.left_out.0, self.left_out.1)
    }
}

impl<K: FnMut(&mut Reading)> ScreenSource for Player<K> {
    type Error = record::WatchRecordError;

    fn total(&self) -> Option<u64> {
        Some(self.total)
    }

    fn fill(&mut self, timeline: &mut Timeline, wanted: u64) -> Result<Follows, WatchRecordError> {
        if wanted < timeline.first() {
            self.reader = RecordReader::open(&self.path)?;
            self.watch = IntervalMaker::default();
            *timeline = Timeline::default();
        }
        while timeline.next() <= wanted {
            let Some(mut reading) = self.reader.next_reading()? else { break };
            (self.keep)(&mut reading);
            if let Some(interval) = self.watch.next(reading) {
                timeline.push(interval);
            }
        }
        Ok(Follows::More)
    }
}

/// Shows intervals until the user ends it.
///
/// # Errors
/// When the terminal or the source fails; the terminal is restored.
pub fn run<S: ScreenSource>(source: &mut S, look: &Look) -> Result<ScreenEnd, RunError<S::Error>> {
    let signals = Signals::listen().map_err(RunError::Terminal)?;
    let mut screen = Screen::take().map_err(RunError::Terminal)?;
    let mut timeline = Timeline::default();
    let mut view = View::new(source.total(), Glyphs::of_environment());
    let mut played = Instant::now();
    let mut drawn: Option<Instant> = None;
    let mut has_changed = true;
    loop {
        if let Some(signal) = signals.caught() {
            return Ok(ScreenEnd::Signal(signal));
        }
        let newest = timeline.next();
        let follows = source.fill(&mut timeline, view.place.number).map_err(RunError::Source)?;
        has_changed |= timeline.next() != newest;
        if is_due(&view, &timeline, played) && view.go_on(&timeline) {
            played = Instant::now();
            has_changed = true;
            source.fill(&mut timeline, view.place.number).map_err(RunError::Source)?;
        }
        if has_changed && drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            let picture = screen.draw(|frame| draw(frame, &mut view, &timeline, look));
            picture.map_err(RunError::Terminal)?;
            has_changed = false;
            drawn = Some(Instant::now());
        }
        if follows == Follows::Nothing {
            return Ok(ScreenEnd::Over);
        }
        match typed(&mut view, &timeline, &mut has_changed).map_err(RunError::Terminal)? {
            Wish::None => {}
            Wish::Quit => return Ok(ScreenEnd::Quit),
            Wish::Redraw => screen.forget().map_err(RunError::Terminal)?,
            Wish::Stop => {
                drop(screen);
                low_level::emulate_default_handler(SIGTSTP).map_err(RunError::Terminal)?;
                screen = Screen::take().map_err(RunError::Terminal)?;
                has_changed = true;
            }
        }
    }
}

/// Whether to advance by one interval: always for a watch, and for a record when the interval was
/// shown for its duration.
fn is_due(view: &View, timeline: &Timeline, played: Instant) -> bool {
    if view.total.is_none() {
        return true;
    }
    let seconds = timeline.get(view.place.number).map_or(0.0, |interval| interval.seconds);
    let seconds = seconds.min(PLAYED_SECONDS_MAX) / f64::from(view.place.speed);
    played.elapsed().as_secs_f64() >= seconds
}

/// Waits briefly for keys, and handles them.
fn typed(view: &mut View, timeline: &Timeline, has_changed: &mut bool) -> io::Result<Wish> {
    let mut wait = LOOK_EVERY;
    while event::poll(wait)? {
        // Handle all pending keys before the next picture.
        wait = Duration::ZERO;
        *has_changed = true;
        if let Event::Key(key) = event::read()? {
            let wish = view.press(key, timeline);
            if wish != Wish::None {
                return Ok(wish);
            }
        }
    }
    Ok(Wish::None)
}

/// Signals that end the program, after the terminal is restored. The second signal ends it at once,
/// because the first may wait for a blocked terminal.
pub(crate) struct Signals([(i32, Arc<AtomicBool>); 2]);

impl Signals {
    pub(crate) fn listen() -> io::Result<Signals> {
        end_on_hangup()?;
        let signals = [SIGTERM, SIGINT].map(|signal| (signal, Arc::default()));
        for (signal, is_caught) in &signals {
            flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(is_caught))?;
            flag::register(*signal, Arc::clone(is_caught))?;
        }
        Ok(Signals(signals))
    }

    pub(crate) fn caught(&self) -> Option<i32> {
        let caught = self.0.iter().find(|(_, is_caught)| is_caught.load(Ordering::Relaxed));
        caught.map(|(signal, _)| *signal)
    }
}

/// Ends the program from a separate thread when the terminal is gone: the loop for keys would then
/// read end-of-file for ever and never check a flag. The thread waits for the signal and for the
/// terminal itself, because the signal goes to the first program there, which may ignore it
/// (`nohup`).
fn end_on_hangup() -> io::Result<()> {
    let (ours, signals) = UnixStream::pair()?;
    low_level::pipe::register(SIGHUP, signals)?;
    let end = move || {
        let output = io::stdout();
        loop {
            // `poll` reports a hangup regardless of the requested events.
            let mut awaited =
                [PollFd::new(&output, PollFlags::empty()), PollFd::new(&ours, PollFlags::IN)];
            match poll(&mut awaited, None) {
                Err(Errno::INTR) => {}
                Err(_) => return,
                Ok(_) => break,
            }
        }
        give_back();
        let _ = low_level::emulate_default_handler(SIGHUP);
    };
    std::thread::Builder::new().name("takeup-hangup".to_owned()).spawn(end).map(drop)
}
