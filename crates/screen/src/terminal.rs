//! Takes the whole terminal and restores it, however the program ends, except by kill -9.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};

/// Whether the terminal is taken. A panic in any thread restores it, so drawing must check this.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken until this is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes it.
    ///
    /// # Errors
    /// When standard output is not a terminal, or there is no keyboard.
    pub fn take() -> io::Result<Screen> {
        give_back_on_panic();
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let taken = execute!(io::stdout(), EnterAlternateScreen, Hide).and_then(|()| {
            // Write a whole picture at once, even on a slow line.
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout())))
        });
        taken.map(|terminal| Screen { terminal }).inspect_err(|_| give_back())
    }

    /// Draws the changes since the last picture.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if IS_TAKEN.load(Ordering::SeqCst) {
            self.terminal.draw(picture)?;
            self.terminal.backend_mut().flush()?;
        }
        Ok(())
    }

    /// Draws everything the next time.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal; a second call does nothing.
pub(crate) fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // The terminal may be gone.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal on a panic, so that its message stays readable.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}
