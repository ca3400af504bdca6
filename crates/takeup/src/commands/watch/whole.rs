//! The watch on the whole terminal. A separate thread takes the readings, so that a slow terminal
//! delays neither readings nor the record.

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

/// The hint if there is no terminal.
const OTHER_FORMS: &str = "use --plain or --json, which need no terminal";

/// Intervals that the terminal may be behind; further ones are not shown.
const BEHIND_MAX: usize = 64;

/// Shows the watch until the user ends it.
pub fn show(arguments: &WatchArgs) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::of("standard output is not a terminal", Some(OTHER_FORMS)));
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
    // Report errors in the arguments before the terminal is taken.
    let readings = Readings::begin(arguments)?;
    let (sender, receiver) = sync_channel(BEHIND_MAX);
    let count = arguments.count;
    let looking = thread::Builder::new()
        .name("takeup-look".to_owned())
        .spawn(move || send(readings, count, &sender))
        .map_err(|error| Failure::of(format!("start a thread: {}", with_causes(&error)), None))?;
    let shown = on_screen(&mut Live(receiver), arguments, "takeup watch", |failure| failure);
    // A thread that still runs ends with the program; pass on the panic of one that has ended.
    if looking.is_finished()
        && let Err(panic) = looking.join()
    {
        std::panic::resume_unwind(panic);
    }
    shown
}

/// Sends intervals, up to the requested number or until the receiver is gone.
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
            // The terminal is too slow; the record continues.
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
            // End as if the signal had not been caught.
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
