//! The loop: takes keys, and draws a picture after each.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use service::catalog::Browser;
use service::failure::Failure;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level;

use super::{BrowseRestore, BrowseView, BrowseWish, draw};
use crate::draw::Look;
use crate::run::{RunError, Signals};
use crate::terminal::Screen;

/// Longest time between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowseEnd {
    /// The user ended it.
    Quit,
    /// The user wants something back.
    Restore(BrowseRestore),
    /// A signal came; its default action is still due.
    Signal(i32),
}

/// Shows a catalogue until the user ends it.
///
/// # Errors
/// When the terminal fails, or the catalogue cannot be read; the terminal is restored.
pub fn browse(browser: &Browser, look: &Look) -> Result<BrowseEnd, RunError<Failure>> {
    let mut view = BrowseView::new(browser).map_err(RunError::Source)?;
    let signals = Signals::listen().map_err(RunError::Terminal)?;
    let mut screen = Screen::take().map_err(RunError::Terminal)?;
    let mut has_changed = true;
    loop {
        if let Some(signal) = signals.caught() {
            return Ok(BrowseEnd::Signal(signal));
        }
        if has_changed {
            let drawn = screen.draw(|frame| draw::draw(frame, &mut view, look));
            drawn.map_err(RunError::Terminal)?;
            has_changed = false;
        }
        match typed(&mut view, &mut has_changed)? {
            BrowseWish::None => {}
            BrowseWish::Quit => return Ok(BrowseEnd::Quit),
            BrowseWish::Restore(wanted) => return Ok(BrowseEnd::Restore(wanted)),
            BrowseWish::Redraw => screen.forget().map_err(RunError::Terminal)?,
            BrowseWish::Stop => {
                drop(screen);
                low_level::emulate_default_handler(SIGTSTP).map_err(RunError::Terminal)?;
                screen = Screen::take().map_err(RunError::Terminal)?;
                has_changed = true;
            }
        }
    }
}

/// Waits briefly for keys, and does what they are for.
fn typed(
    view: &mut BrowseView<'_>,
    has_changed: &mut bool,
) -> Result<BrowseWish, RunError<Failure>> {
    let terminal = |error: io::Error| RunError::Terminal(error);
    let mut wait = LOOK_EVERY;
    while event::poll(wait).map_err(terminal)? {
        wait = Duration::ZERO;
        *has_changed = true;
        if let Event::Key(key) = event::read().map_err(terminal)? {
            let wish = view.press(key).map_err(RunError::Source)?;
            if wish != BrowseWish::None {
                return Ok(wish);
            }
        }
    }
    Ok(BrowseWish::None)
}
