//! The watch on the whole terminal. A separate thread takes the readings, so that a slow terminal
//! delays neither readings nor the record.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use report::table::Colour;
use screen::draw::Look;
use screen::run::{Live, Player, RunError, ScreenEnd, ScreenSource, run};
use service::failure::{Failure, with_causes};
use service::watch::{LiveWatch, RecordDamage, RecordDevices, WatchRequest, record_failure};
use watch::Reading;
use watch::intervals::Interval;

use crate::standard_error::to_standard_error;

/// The hint if there is no terminal.
const OTHER_FORMS: &str = "use --plain or --json, which need no terminal";

/// Intervals that the terminal may be behind; further ones are not shown.
const BEHIND_MAX: usize = 64;

/// Shows the watch until the user ends it.
pub fn show(request: &WatchRequest, colour: Colour) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::of("standard output is not a terminal", Some(OTHER_FORMS)));
    }
    match &request.from {
        Some(path) => play(request, path, colour),
        None => look(request, colour),
    }
}

fn play(request: &WatchRequest, path: &Path, colour: Colour) -> Result<(), Failure> {
    let devices = RefCell::new(RecordDevices::of(&request.devices));
    let keep = |reading: &mut Reading| devices.borrow_mut().keep(reading);
    let player = Player::open(path.to_owned(), keep);
    let mut player = player.map_err(|error| record_failure(&error))?;
    devices.borrow().check(path, "")?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    on_screen(&mut player, &name, colour, |error| record_failure(&error))?;
    let ((left_out, left_out_count), is_cut) = (player.left_out(), player.is_cut());
    let damage = RecordDamage { path, left_out, left_out_count, is_cut };
    to_standard_error(&report::watch::damage(&damage));
    Ok(())
}

fn look(request: &WatchRequest, colour: Colour) -> Result<(), Failure> {
    // Report errors in the arguments before the terminal is taken.
    let watching = LiveWatch::begin(request)?;
    let (sender, receiver) = sync_channel(BEHIND_MAX);
    let looking = thread::Builder::new()
        .name("takeup-look".to_owned())
        .spawn(move || send(watching, &sender))
        .map_err(|error| Failure::of(format!("start a thread: {}", with_causes(&error)), None))?;
    let shown = on_screen(&mut Live(receiver), "takeup watch", colour, |failure| failure);
    // A thread that still runs ends with the program; pass on the panic of one that has ended.
    if looking.is_finished()
        && let Err(panic) = looking.join()
    {
        std::panic::resume_unwind(panic);
    }
    shown
}

/// Sends intervals, up to the requested number or until the receiver is gone.
fn send(watching: LiveWatch, sender: &SyncSender<Result<Interval, Failure>>) {
    for interval in watching {
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
    title: &str,
    colour: Colour,
    failure: impl FnOnce(S::Error) -> Failure,
) -> Result<(), Failure> {
    let look = Look { title: title.to_owned(), colour };
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
