//! The watch on a whole terminal: who looks at this machine is a thread of its own, so that a
//! terminal that takes its time holds no reading up, and none that is to be kept.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use screen::draw::Look;
use screen::run::{Live, Player, RunError, ScreenEnd, ScreenSource, run};
use watch::Reading;
use watch::intervals::{Interval, IntervalMaker};

use super::{
    Readings, WatchArgs, keep, not_in_record, plain_name, record_failure, say_cut, say_left_out,
};
use service::failure::{Failure, with_causes};

/// What there is without one.
const OTHER_FORMS: &str = "--plain prints lines, and --json objects; neither needs a terminal";

/// Intervals that a terminal may be behind; those that come then are not on the screen.
const BEHIND_MAX: usize = 64;

/// Shows it until somebody has seen enough.
pub fn show(arguments: &WatchArgs) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::of("standard output is no terminal", Some(OTHER_FORMS)));
    }
    match &arguments.from {
        Some(path) => play(arguments, path),
        None => look(arguments),
    }
}

fn play(arguments: &WatchArgs, path: &Path) -> Result<(), Failure> {
    let wanted: BTreeSet<String> = arguments.devices.iter().map(|it| plain_name(it)).collect();
    let seen = RefCell::new(BTreeSet::new());
    let keep = |reading: &mut Reading| keep(reading, &wanted, &mut seen.borrow_mut());
    let player = Player::open(path.to_owned(), keep);
    let mut player = player.map_err(|error| record_failure(&error))?;
    if let Some(name) = wanted.difference(&seen.borrow()).next() {
        return Err(not_in_record(path, name, "", &seen.borrow()));
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    on_screen(&mut player, arguments, &name, |error| record_failure(&error))?;
    let (left_out, count) = player.left_out();
    say_left_out(path, left_out, count);
    if player.is_cut() {
        say_cut(path);
    }
    Ok(())
}

fn look(arguments: &WatchArgs) -> Result<(), Failure> {
    // What is wrong with the arguments is told before the terminal is taken.
    let readings = Readings::begin(arguments)?;
    let (sender, receiver) = sync_channel(BEHIND_MAX);
    let count = arguments.count;
    let looking = thread::Builder::new()
        .name("takeup-look".to_owned())
        .spawn(move || send(readings, count, &sender))
        .map_err(|error| Failure::of(format!("start a thread: {}", with_causes(&error)), None))?;
    let shown = on_screen(&mut Live(receiver), arguments, "takeup watch", |failure| failure);
    // One that is looking ends with the program; one that has panicked said so itself.
    if looking.is_finished()
        && let Err(panic) = looking.join()
    {
        std::panic::resume_unwind(panic);
    }
    shown
}

/// Looks, until there are as many intervals as were asked for or nobody wants more.
fn send(
    mut readings: Readings,
    count: Option<u64>,
    sender: &SyncSender<Result<Interval, Failure>>,
) {
    let mut watch = IntervalMaker::default();
    let mut left = count;
    while left != Some(0) {
        let interval = readings.next().map(|reading| watch.next(reading)).transpose();
        let Some(interval) = interval else { continue };
        left = left.map(|left| left - 1);
        let has_failed = interval.is_err();
        match sender.try_send(interval) {
            Ok(()) if has_failed => return,
            // The terminal takes nothing: what is to be kept is kept all the same.
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

fn on_screen<S: ScreenSource>(
    source: &mut S,
    arguments: &WatchArgs,
    title: &str,
    failure: impl FnOnce(S::Error) -> Failure,
) -> Result<(), Failure> {
    let look = Look { title: title.to_owned(), colour: arguments.colour() };
    match run(source, &look) {
        Ok(ScreenEnd::Quit | ScreenEnd::Over) => Ok(()),
        Ok(ScreenEnd::Signal(signal)) => {
            // As it would have ended had nobody caught it.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Ok(())
        }
        Err(RunError::Source(error)) => Err(failure(error)),
        Err(RunError::Terminal(error)) => {
            let message = format!("use the terminal: {}", with_causes(&error));
            Err(Failure::of(message, Some(OTHER_FORMS)))
        }
    }
}
