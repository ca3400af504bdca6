//! Text for standard error, and the one line on a terminal that is drawn again and again.
//!
//! Messages, questions and the progress line share the terminal, so one lock knows what the cursor
//! stands behind. A message takes the place of the progress line. Nothing is drawn over a question,
//! and nothing is drawn after an interrupt.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Mutex;

use base::escape::Printable;
use base::failures::lock;
use service::notify::Notify;

/// Back to the start of the line, and clear to its end.
const CLEAR: &str = "\r\x1b[K";
/// Columns of a terminal that does not report its size.
const COLUMNS: usize = 80;
/// No line is cut to fewer columns than these.
const COLUMNS_MIN: usize = 20;

/// What the cursor stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// Whole lines.
    Lines,
    /// The progress line.
    Progress,
    /// A question, and what the user has typed so far.
    Question,
}

struct Cursor {
    behind: Behind,
    /// Whether the run was interrupted, so that no more progress is drawn.
    is_interrupted: bool,
}

static CURSOR: Mutex<Cursor> = Mutex::new(Cursor { behind: Behind::Lines, is_interrupted: false });

/// Writes whole lines to standard error, without control characters that a terminal would obey.
/// Write errors are ignored: there is no other place to report them.
pub fn to_standard_error(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut cursor = lock(&CURSOR);
    let before = match cursor.behind {
        Behind::Lines => "",
        Behind::Progress => CLEAR,
        // Keeps the question and what the user has typed after it.
        Behind::Question => "\n",
    };
    write(before, text);
    if cursor.behind == Behind::Progress {
        cursor.behind = Behind::Lines;
    }
}

/// Draws the progress line in place of the last one.
pub fn draw_progress(line: &str) {
    let mut cursor = lock(&CURSOR);
    if cursor.behind != Behind::Question && !cursor.is_interrupted {
        write(CLEAR, line);
        cursor.behind = Behind::Progress;
    }
}

/// Removes the progress line.
pub fn erase_progress() {
    erase(&mut lock(&CURSOR));
}

/// Removes the progress line for good.
pub fn end_progress() {
    let mut cursor = lock(&CURSOR);
    cursor.is_interrupted = true;
    erase(&mut cursor);
}

fn erase(cursor: &mut Cursor) {
    if cursor.behind == Behind::Progress {
        write(CLEAR, "");
        cursor.behind = Behind::Lines;
    }
}

fn write(before: &str, text: &str) {
    let text = Printable::of(text.as_bytes());
    let _ = std::io::stderr().lock().write_all(&[before.as_bytes(), text.as_bytes()].concat());
}

/// Columns of the terminal that a line on standard error may fill. The last column stays free:
/// some terminals begin a new line there.
pub fn columns() -> usize {
    columns_of(&rustix::stdio::stderr()).max(COLUMNS_MIN) - 1
}

/// Columns of the terminal of a stream.
pub fn columns_of(stream: &impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream);
    match size.map_or(0, |size| usize::from(size.ws_col)) {
        0 => COLUMNS,
        columns => columns,
    }
}

/// Held while a question on the terminal waits for its answer.
pub struct Question(());

impl Question {
    /// Removes the progress line, and prevents the next drawing.
    pub fn begin() -> Question {
        let mut cursor = lock(&CURSOR);
        erase(&mut cursor);
        cursor.behind = Behind::Question;
        Question(())
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        lock(&CURSOR).behind = Behind::Lines;
    }
}

/// Standard error as a place for lines that the user must see.
pub struct StandardError;

impl Notify for StandardError {
    fn notify(&self, line: &str) {
        to_standard_error(&format!("takeup: {line}\n"));
    }
}
