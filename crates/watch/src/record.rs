//! A record: a file with one line of JSON for the watch, and one for each reading.
//!
//! A reading has the rows that changed since the previous one, in the kernel's form. So no
//! information is lost, and an idle device needs no space. Findings are computed again from the
//! file, with the rules of the program that reads it.
//!
//! After a crash a file may end in the middle of a line: that reading is missing. An impossible
//! reading, with a time that goes back or absurd numbers, is skipped and reported, see `damage.rs`;
//! its possible rows are still used for later readings.

pub(crate) mod damage;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Reading;
use crate::intervals::DEVICES_MAX;
use crate::lines::{Encoder, FileLines, LINE_BYTES_MAX, LineFailure, ReadingLine, Readings};
pub use damage::{LEFT_OUT_MAX, LeftOut};

/// Version of the lines. Fields are added without a new one.
pub const FORMAT: u32 = 1;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WatchRecordError {
    /// It cannot be opened, made, read or written.
    #[error("{what} {}", path.display())]
    File {
        /// `make`, `open`, `read` or `write`.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// It was not made by a watch.
    #[error("{} is not a record of `takeup watch`", path.display())]
    NoRecord { path: PathBuf },
    /// It was made by another version.
    #[error(
        "{} has format {format}; this version of takeup reads only format {FORMAT}",
        path.display()
    )]
    Format { path: PathBuf, format: u32 },
    /// A line is not a reading.
    #[error("{}, line {line}: not a reading of `takeup watch`", path.display())]
    Line {
        path: PathBuf,
        /// From 1.
        line: u64,
        source: LineError,
    },
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is not JSON, or lacks the fields of a reading.
    #[error("it cannot be parsed")]
    Json(#[from] serde_json::Error),
    /// It is longer than any line that Takeup writes.
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    Long,
    /// It has more devices than are supported.
    #[error("it has more than {DEVICES_MAX} devices")]
    Devices,
    /// It has impossible content.
    #[error("{0}")]
    Damage(String),
}

#[derive(Serialize, Deserialize)]
struct Header {
    takeup_watch: u32,
}

/// A record that is being written.
#[derive(Debug)]
pub struct RecordWriter {
    file: File,
    path: PathBuf,
    readings: Encoder,
}

impl RecordWriter {
    /// Creates a new file.
    ///
    /// # Errors
    /// When it exists, or cannot be created.
    pub fn create(path: &Path) -> Result<RecordWriter, WatchRecordError> {
        let failed = |what, source| WatchRecordError::File { what, path: path.to_owned(), source };
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = made.map_err(|source| failed("make", source))?;
        let written = write_line(&mut file, &Header { takeup_watch: FORMAT });
        written.map_err(|source| failed("write", source))?;
        Ok(RecordWriter { file, path: path.to_owned(), readings: Encoder::default() })
    }

    /// Appends a reading, in one write.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, reading: &Reading) -> Result<(), WatchRecordError> {
        let line = self.readings.line(reading);
        write_line(&mut self.file, &line).map_err(|source| WatchRecordError::File {
            what: "write",
            path: self.path.clone(),
            source,
        })
    }
}

fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

/// Reads a record, one reading at a time.
#[derive(Debug)]
pub struct RecordReader<R = BufReader<File>> {
    lines: FileLines<R>,
    path: PathBuf,
    readings: Readings,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
}

impl RecordReader {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read, or was not made by a watch.
    pub fn open(path: &Path) -> Result<RecordReader, WatchRecordError> {
        let opened = File::open(path).map_err(|source| WatchRecordError::File {
            what: "open",
            path: path.to_owned(),
            source,
        });
        RecordReader::of(BufReader::new(opened?), path)
    }
}

impl<R: BufRead> RecordReader<R> {
    /// From lines; `path` is the name in errors.
    ///
    /// # Errors
    /// When they were not made by a watch.
    pub fn of(lines: R, path: &Path) -> Result<RecordReader<R>, WatchRecordError> {
        let mut reader = RecordReader {
            lines: FileLines::of(lines),
            path: path.to_owned(),
            readings: Readings::default(),
            left_out: Vec::new(),
            left_out_count: 0,
        };
        let no_record = || WatchRecordError::NoRecord { path: path.to_owned() };
        let first = reader.next_line()?.ok_or_else(no_record)?;
        let header: Header = serde_json::from_slice(&first).map_err(|_| no_record())?;
        match header.takeup_watch {
            FORMAT => Ok(reader),
            format => Err(WatchRecordError::Format { path: path.to_owned(), format }),
        }
    }

    /// Whether the last line was incomplete, and skipped.
    pub fn is_cut(&self) -> bool {
        self.lines.is_cut()
    }

    /// The first [`LEFT_OUT_MAX`] readings that were skipped so far because they are impossible.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The number of all skipped readings.
    pub fn left_out_count(&self) -> u64 {
        self.left_out_count
    }

    /// The next possible reading; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not a reading.
    pub fn next_reading(&mut self) -> Result<Option<Reading>, WatchRecordError> {
        while let Some(bytes) = self.next_line()? {
            let line = serde_json::from_slice(&bytes).map_err(LineError::from);
            match line.and_then(|line: ReadingLine| self.readings.reading(line)) {
                Ok(reading) => return Ok(Some(reading)),
                Err(LineError::Damage(why)) => {
                    self.left_out_count += 1;
                    if self.left_out.len() < LEFT_OUT_MAX {
                        self.left_out.push(LeftOut { line: self.lines.number(), why });
                    }
                }
                Err(source) => return Err(self.wrong(source)),
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, WatchRecordError> {
        self.lines.next_line().map_err(|failure| match failure {
            LineFailure::Read(source) => {
                WatchRecordError::File { what: "read", path: self.path.clone(), source }
            }
            LineFailure::Long => self.wrong(LineError::Long),
        })
    }

    fn wrong(&self, source: LineError) -> WatchRecordError {
        WatchRecordError::Line { path: self.path.clone(), line: self.lines.number(), source }
    }
}
