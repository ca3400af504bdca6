//! A question on the terminal. The live line is not drawn while it waits for its answer.

use base::failures::lock;
use std::sync::Mutex;

/// Whether a question is on the terminal; the live line must not be drawn over it.
pub(super) static QUESTION: Mutex<bool> = Mutex::new(false);

/// Held while a question on the terminal waits for its answer.
pub struct Question(());

impl Question {
    /// Waits until the live line is drawn, and prevents the next drawing.
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
