//! Imports recordings of `strace`, `blkparse` and fio as operations.
//!
//! Each importer reads line by line and keeps only what is open or in flight. Lines are untrusted:
//! one that cannot be parsed is an error with its number. A last line without a line end is left
//! out: the recorder was stopped there.

pub mod blkparse;
pub mod iolog;
pub mod strace;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read};

use super::operation::Recording;

/// The longest line in bytes: `strace -s` can print long strings.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The most files, descriptors and requests of an import.
const KEPT_MAX: usize = 1 << 20;

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Lines that were read.
    pub lines: u64,
    /// Operations found in them.
    pub operations: u64,
    /// What this kind of recording cannot show, in sentences.
    pub unseen: Vec<String>,
}

/// Why a recording could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It could not be read.
    #[error("cannot read after line {line}: {source}")]
    Read {
        /// The last line that was read.
        line: u64,
        source: io::Error,
    },
    /// A line cannot be parsed.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// No line has an operation.
    #[error("no operation in {lines} lines: {hint}")]
    Nothing {
        /// Lines in the file.
        lines: u64,
        /// How to make such a file.
        hint: &'static str,
    },
}

/// Who wrote a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingFormat {
    /// `strace -f -ttt -T -yy -o FILE`.
    Strace,
    /// `blkparse`.
    Blkparse,
    /// `fio --write_iolog=FILE`.
    Iolog,
}

impl RecordingFormat {
    /// By its first line; what looks like neither of the others is taken for strace's.
    pub fn of(first_line: &str) -> RecordingFormat {
        let word = first_line.split_ascii_whitespace().next().unwrap_or("");
        match word {
            "fio" => RecordingFormat::Iolog,
            _ if blkparse::is_device(word) => RecordingFormat::Blkparse,
            _ => RecordingFormat::Strace,
        }
    }
}

/// Hands all operations of `input` to `recording`, in whichever format it is.
pub fn import(
    mut input: impl BufRead,
    recording: &mut dyn Recording,
) -> Result<Imported, RecordingError> {
    let beginning = input.fill_buf().map_err(|source| RecordingError::Read { line: 0, source })?;
    let line = beginning.split(|it| *it == b'\n').next().unwrap_or_default();
    match RecordingFormat::of(&String::from_utf8_lossy(line)) {
        RecordingFormat::Strace => strace::import(input, recording),
        RecordingFormat::Blkparse => blkparse::import(input, recording),
        RecordingFormat::Iolog => iolog::import(input, recording),
    }
}

/// Lines of a limited length, with their numbers.
struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn of(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    /// The next line without its line end; `None` after the last one that has it. Bytes that are
    /// not UTF-8 are replaced.
    fn next(&mut self) -> Result<Option<String>, RecordingError> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64);
        limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| RecordingError::Read { line: self.number, source })?;
        if self.buffer.pop() != Some(b'\n') {
            if self.buffer.len() + 1 >= LINE_BYTES_MAX {
                self.number += 1;
                return Err(self.error("it is longer than 1 MiB"));
            }
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(String::from_utf8_lossy(&self.buffer).into_owned()))
    }

    fn error(&self, what: impl Into<String>) -> RecordingError {
        RecordingError::Line { line: self.number, what: what.into() }
    }
}

/// Seconds with a fraction of at most nine digits, as ns; exact, without a float.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let part: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}
