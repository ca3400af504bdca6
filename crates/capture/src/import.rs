//! Recordings that others made: what `strace`, `blkparse` and fio wrote, as operations.
//!
//! Each is read line by line and keeps what is open or in flight, no more; whatever a line says is
//! a claim, and one that makes no sense is an error with its number. A last line without an end is
//! where somebody stopped the recorder, and is left out.

pub mod blkparse;
pub mod iolog;
pub mod strace;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read};

use super::operation::Recording;

/// Bytes of one line: `strace` prints strings as long as it is told to.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Files, descriptors and requests that an import keeps apart.
const KEPT_MAX: usize = 1 << 20;

/// What became of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Lines that were read.
    pub lines: u64,
    /// Operations that came of them.
    pub operations: u64,
    /// What of this recording cannot be seen, in sentences.
    pub unseen: Vec<String>,
}

/// Why a recording could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error("cannot read on behind line {line}: {source}")]
    Read {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line makes no sense.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// There is nothing in it that could be imported.
    #[error("no operation in {lines} lines: {hint}")]
    Nothing {
        /// Lines that there are.
        lines: u64,
        /// How such a file is made.
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
) -> Result<Imported, ImportError> {
    let beginning = input.fill_buf().map_err(|source| ImportError::Read { line: 0, source })?;
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

    /// The next line without its end; `None` behind the last that has one. Bytes that are no UTF-8
    /// are replaced.
    fn next(&mut self) -> Result<Option<String>, ImportError> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64);
        limited
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| ImportError::Read { line: self.number, source })?;
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

    fn error(&self, what: impl Into<String>) -> ImportError {
        ImportError::Line { line: self.number, what: what.into() }
    }
}

/// Seconds with a fraction, as ns: at most nine digits behind the point, and none of them lost to a
/// float.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let part: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}
