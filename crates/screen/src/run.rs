//! The loop: what has been seen, what was typed, and a picture of it.
//!
//! At most ten pictures a second are drawn, and none where nothing has changed. Readings are made
//! elsewhere, so that a terminal that takes its time holds none of them up.

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
use watch::record::{LeftOut, RecordError, RecordReader};
use watch::{Reading, record};

use crate::draw::Look;
use crate::glyphs::Glyphs;
use crate::terminal::{Screen, give_back};
use crate::timeline::Timeline;
use crate::view::{View, Wish};

/// The shortest time between two pictures.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// How long nobody looks at what has been seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Intervals of a record that are longer are played as if they took this.
const PLAYED_SECONDS_MAX: f64 = 1.0;

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenEnd {
    /// Somebody wanted it to.
    Quit,
    /// There is no more to come.
    Over,
    /// A signal came, which has done nothing yet.
    Signal(i32),
}

/// What went wrong.
#[derive(Debug)]
pub enum RunError<E> {
    /// With the terminal.
    Terminal(io::Error),
    /// With where intervals come from.
    Source(E),
}

/// Where intervals come from.
pub trait ScreenSource {
    /// Why there may be no more.
    type Error;

    /// How many there are, where that is known.
    fn total(&self) -> Option<u64>;

    /// Sees that what has come is in the timeline, and the interval with this number, as far as it
    /// can. Whether there may be more.
    ///
    /// # Errors
    /// When there is nothing more to come because of it.
    fn fill(&mut self, timeline: &mut Timeline, wanted: u64) -> Result<Follows, Self::Error>;
}

/// Whether there may be more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// There may.
    More,
    /// There is not.
    Nothing,
}

/// Intervals that somebody else makes.
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

/// Intervals of a record. It is read forward; what has been forgotten is read again from its
/// beginning.
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
    /// Of a file, read once to its end to know that it can be. `keep` has each reading, then too,
    /// and takes out of it what is not wanted.
    ///
    /// # Errors
    /// When it is no record.
    pub fn open(path: PathBuf, mut keep: K) -> Result<Player<K>, RecordError> {
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

    /// Whether its last line is cut off, and left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Readings that were left out since they cannot have been: the first, and how many.
    pub fn left_out(&self) -> (&[LeftOut], u64) {
        (&self.left_out.0, self.left_out.1)
    }
}

impl<K: FnMut(&mut Reading)> ScreenSource for Player<K> {
    type Error = record::RecordError;

    fn total(&self) -> Option<u64> {
        Some(self.total)
    }

    fn fill(&mut self, timeline: &mut Timeline, wanted: u64) -> Result<Follows, RecordError> {
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

/// Shows intervals until somebody has seen enough.
///
/// # Errors
/// When the terminal or the source fails; the terminal is as it was before.
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
            screen.draw(&mut view, &timeline, look).map_err(RunError::Terminal)?;
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

/// Whether time may go on by one: always to what is newest, and in a record when the interval has
/// been seen for as long as it took.
fn is_due(view: &View, timeline: &Timeline, played: Instant) -> bool {
    if view.total.is_none() {
        return true;
    }
    let seconds = timeline.get(view.place.number).map_or(0.0, |interval| interval.seconds);
    let seconds = seconds.min(PLAYED_SECONDS_MAX) / f64::from(view.place.speed);
    played.elapsed().as_secs_f64() >= seconds
}

/// Waits a moment for keys, and does what they are for.
fn typed(view: &mut View, timeline: &Timeline, has_changed: &mut bool) -> io::Result<Wish> {
    let mut wait = LOOK_EVERY;
    while event::poll(wait)? {
        // Those that have come meanwhile are all for one picture.
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

/// Signals that end the program, once the terminal is given back. The second one ends it at once,
/// since the first may wait for a terminal that takes nothing.
struct Signals([(i32, Arc<AtomicBool>); 2]);

impl Signals {
    fn listen() -> io::Result<Signals> {
        end_on_hangup()?;
        let signals = [SIGTERM, SIGINT].map(|signal| (signal, Arc::default()));
        for (signal, is_caught) in &signals {
            flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(is_caught))?;
            flag::register(*signal, Arc::clone(is_caught))?;
        }
        Ok(Signals(signals))
    }

    fn caught(&self) -> Option<i32> {
        let caught = self.0.iter().find(|(_, is_caught)| is_caught.load(Ordering::Relaxed));
        caught.map(|(signal, _)| *signal)
    }
}

/// When the terminal is gone, who waits for keys reads its end again and again and never looks at a
/// flag: a thread of its own ends the program. It waits for the signal and for the terminal itself,
/// since the signal goes to the first program there, which may take no notice (`nohup`).
fn end_on_hangup() -> io::Result<()> {
    let (ours, signals) = UnixStream::pair()?;
    low_level::pipe::register(SIGHUP, signals)?;
    let end = move || {
        let output = io::stdout();
        loop {
            // That it is gone is told whatever is asked for.
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
