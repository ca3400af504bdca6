//! A text, line by line, as what was recognised.
//!
//! Each reader looks at one line. If that begins like its own and is not whole, it gets the next
//! lines, too: mail programs wrap. What stays incomplete is refused with its line.

mod calls;
mod clock;
mod command;
mod fio;
mod iostat;
mod number;
mod queue;
mod sizes;
mod summary;

use crate::piece::{Piece, What};

/// Longest text that is read.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Most lines that one piece was wrapped into.
const WRAPPED_MAX: usize = 6;
/// Most lines that are refused by name.
pub const REFUSED_MAX: usize = 1000;

/// What was read of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// In the order of the text.
    pub pieces: Vec<Piece>,
    pub refused: Vec<Refused>,
    /// Lines that are neither, blank ones not counted.
    pub passed_lines: u64,
}

/// A line that begins like something known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// From 1.
    pub line: u32,
    pub why: String,
}

/// What a reader says of a line.
#[derive(Clone, Debug, PartialEq)]
enum Met {
    /// Nothing of its own.
    Nothing,
    /// It begins like its own; the reason if it stays so.
    Begun(String),
    Whole(What),
}

impl Met {
    fn begun(why: &str) -> Met {
        Met::Begun(why.to_owned())
    }

    fn of(what: Option<What>) -> Met {
        what.map_or(Met::Nothing, Met::Whole)
    }
}

/// What earlier lines say of later ones.
#[derive(Clone, Debug, Default)]
struct Before {
    columns: Option<iostat::Columns>,
    /// A queue setting that was asked for and comes in the next line.
    asked: Option<(String, String)>,
    /// The text is in a file of jobs.
    in_job_file: bool,
    /// `real` of bash's `time`, whose other lines follow.
    real: Option<f64>,
}

/// Reads a text. Longer ones than [`TEXT_BYTES_MAX`] are cut there.
pub fn read(text: &str) -> Read {
    let lines: Vec<String> = text.lines().map(cleaned).collect();
    let mut read = Read::default();
    let mut before = Before::default();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim().is_empty() {
            at += 1;
            continue;
        }
        at += read.one(&lines[at..], at, &mut before);
    }
    if !text.ends_with('\n') {
        read.doubt_the_end(&lines);
    }
    read
}

impl Read {
    /// A number at the end of a text may have lost digits, and a word letters.
    fn doubt_the_end(&mut self, lines: &[String]) {
        let last = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let ends_in_digit = lines.last().is_some_and(|it| it.ends_with(|it: char| it.is_numeric()));
        let is_doubtful = |piece: &mut Piece| {
            piece.lines.1 == last && (ends_in_digit || matches!(piece.what, What::Job(_)))
        };
        if self.pieces.pop_if(is_doubtful).is_some() {
            let why = "the text ends in this value, which may be cut: end it with a new line";
            self.refused.push(Refused { line: last, why: why.to_owned() });
        }
    }

    /// Reads what begins at the first of these lines; how many it takes.
    fn one(&mut self, lines: &[String], at: usize, before: &mut Before) -> usize {
        let line_of = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        let mut text = lines[0].clone();
        let mut why = None;
        for taken in 1..=WRAPPED_MAX.min(lines.len()) {
            if taken > 1 {
                if lines[taken - 1].trim().is_empty() {
                    break;
                }
                text = format!("{text} {}", lines[taken - 1].trim_start());
            }
            match recognised(&text, before) {
                Met::Whole(What::Passed) => return taken,
                Met::Whole(what) => {
                    self.pieces.push(Piece { lines: (line_of(at), line_of(at + taken - 1)), what });
                    return taken;
                }
                Met::Begun(reason) => {
                    why.get_or_insert(reason);
                }
                Met::Nothing => break,
            }
        }
        match why {
            Some(why) if self.refused.len() < REFUSED_MAX => {
                self.refused.push(Refused { line: line_of(at), why });
            }
            _ => self.passed_lines += 1,
        }
        1
    }
}

/// What a line is. The first reader to whom it says something decides.
fn recognised(text: &str, before: &mut Before) -> Met {
    let readers: [fn(&str, &mut Before) -> Met; 8] = [
        fio::job_file,
        command::typed,
        iostat::row,
        calls::call,
        sizes::copied,
        clock::timed,
        fio::printed,
        queue::value,
    ];
    for reader in readers {
        match reader(text, before) {
            Met::Nothing => {}
            met => return met,
        }
    }
    Met::of(summary::line(text).map(What::Summary))
}

/// A line without what a terminal or a mail adds: colours, marks of quoting.
fn cleaned(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                while letters.next_if(|it| !it.is_ascii_alphabetic()).is_some() {}
                letters.next();
            }
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            '\t' => plain.push('\t'),
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    let mut rest = plain.as_str();
    // A mark of quoting stands in front; a sign that belongs to a command has no blank behind it.
    while let Some(quoted) = rest.trim_start().strip_prefix("> ") {
        rest = quoted;
    }
    rest.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
