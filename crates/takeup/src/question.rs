//! A question on the terminal, which nothing is drawn over.

use base::failures::lock;
use std::sync::Mutex;

/// Whether a question stands on the terminal: nothing is drawn over it then.
pub(super) static QUESTION: Mutex<bool> = Mutex::new(false);

/// Held while a question stands on the terminal and waits for its answer.
pub struct Question(());

impl Question {
    /// Waits until the live line is drawn, and keeps it from being drawn again.
    pub fn begin() -> Question {
        *lock(&QUESTION) = true;
        Question(())
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        *lock(&QUESTION) = false;
    }
}
