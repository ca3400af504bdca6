//! What was seen, kept in a file: one line of JSON for the watch, and one for each reading.
//!
//! A reading has the rows of the kernel that are others than those before, as the kernel writes
//! them, so that nothing that follows from them is lost, and a device that does nothing costs
//! nothing. What is concluded is concluded again from the file, by whatever is known then.
//!
//! A file that ends in the middle of a line is what a crash leaves: that reading is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use host::counters::CounterError;
use host::counters::disk::{self, DiskRow};
use host::queue::Queue;
use serde::{Deserialize, Serialize};

use crate::Reading;
use crate::tapes::{TAPES_MAX, TapeCounters};
use crate::watch::DEVICES_MAX;

/// Version of the lines. Fields are added without a new one.
pub const FORMAT: u32 = 1;
/// Longest line that is read; one of 4096 devices has less than a megabyte.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be opened, made, read or written.
    #[error("{what} {}", path.display())]
    File {
        /// `make`, `open`, `read` or `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was not made by a watch.
    #[error("{} holds no record of `takeup watch`", path.display())]
    NoRecord {
        /// The file.
        path: PathBuf,
    },
    /// It was made by another version.
    #[error("{} has format {format}, and only {FORMAT} is known", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A line is no reading.
    #[error("line {line} of {} is no reading", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// Why.
        source: LineError,
    },
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no JSON, or not what a reading has.
    #[error("it cannot be understood")]
    Json(#[from] serde_json::Error),
    /// A row is none of the kernel's.
    #[error("a row is none of the kernel's")]
    Row(#[from] CounterError),
    /// It is longer than any that is written.
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    Long,
    /// It has more devices than are told apart.
    #[error("it has more than {DEVICES_MAX} devices")]
    Devices,
    /// It was seen before the reading in front of it.
    #[error("it was seen before the one in front of it")]
    Time,
}

#[derive(Serialize, Deserialize)]
struct Header {
    takeup_watch: u32,
}

/// A reading on its way. What is empty is left out.
#[derive(Serialize, Deserialize, Default)]
struct Line {
    at_seconds: f64,
    unix_seconds: i64,
    /// Rows that differ from those of the line before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rows: Vec<String>,
    /// Names of devices that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    in_flight: BTreeMap<String, Vec<u32>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    queues: BTreeMap<String, Queue>,
    /// All drives, whether they have done anything or not: there are few.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tapes: BTreeMap<String, TapeCounters>,
}

/// A file under way.
#[derive(Debug)]
pub struct RecordWriter {
    file: File,
    path: PathBuf,
    rows: Vec<DiskRow>,
    queues: BTreeMap<String, Queue>,
}

impl RecordWriter {
    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// When there is one, or none can be made.
    pub fn create(path: &Path) -> Result<RecordWriter, RecordError> {
        let failed = |what, source| RecordError::File { what, path: path.to_owned(), source };
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = made.map_err(|source| failed("make", source))?;
        let written = write_line(&mut file, &Header { takeup_watch: FORMAT });
        written.map_err(|source| failed("write", source))?;
        let path = path.to_owned();
        Ok(RecordWriter { file, path, rows: Vec::new(), queues: BTreeMap::new() })
    }

    /// Appends a reading, in one write.
    ///
    /// # Errors
    /// When there is no room.
    pub fn write(&mut self, reading: &Reading) -> Result<(), RecordError> {
        let before: BTreeMap<&str, &DiskRow> =
            self.rows.iter().map(|row| (row.name.as_str(), row)).collect();
        let is_other = |row: &&DiskRow| before.get(row.name.as_str()) != Some(row);
        let names: BTreeSet<&str> = reading.rows.iter().map(|row| row.name.as_str()).collect();
        let is_there = |name: &str| names.contains(name);
        let is_other_queue =
            |(name, queue): &(&String, &Queue)| self.queues.get(name.as_str()) != Some(queue);
        let queues = reading.queues.iter().filter(is_other_queue);
        let line = Line {
            at_seconds: reading.at_seconds,
            unix_seconds: reading.unix_seconds,
            rows: reading.rows.iter().filter(is_other).map(DiskRow::to_string).collect(),
            gone: before.keys().filter(|name| !is_there(name)).map(|it| (*it).to_owned()).collect(),
            in_flight: reading.in_flight.clone(),
            queues: queues.map(|(name, queue)| (name.clone(), queue.clone())).collect(),
            tapes: reading.tapes.clone(),
        };
        self.rows.clone_from(&reading.rows);
        self.queues.retain(|name, _| is_there(name));
        self.queues.extend(line.queues.clone());
        write_line(&mut self.file, &line).map_err(|source| RecordError::File {
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

/// A file that is read, reading after reading, with memory for one of them.
#[derive(Debug)]
pub struct RecordReader<R = BufReader<File>> {
    lines: R,
    path: PathBuf,
    line: u64,
    at_seconds: f64,
    rows: Vec<DiskRow>,
    is_cut: bool,
}

impl RecordReader {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read, or was not made by a watch.
    pub fn open(path: &Path) -> Result<RecordReader, RecordError> {
        let opened = File::open(path).map_err(|source| RecordError::File {
            what: "open",
            path: path.to_owned(),
            source,
        });
        RecordReader::of(BufReader::new(opened?), path)
    }
}

impl<R: BufRead> RecordReader<R> {
    /// Of lines that are there already; `path` is what errors name.
    ///
    /// # Errors
    /// When they were not made by a watch.
    pub fn of(lines: R, path: &Path) -> Result<RecordReader<R>, RecordError> {
        let mut reader = RecordReader {
            lines,
            path: path.to_owned(),
            line: 0,
            at_seconds: f64::NEG_INFINITY,
            rows: Vec::new(),
            is_cut: false,
        };
        let no_record = || RecordError::NoRecord { path: path.to_owned() };
        let first = reader.next_line()?.ok_or_else(no_record)?;
        let header: Header = serde_json::from_slice(&first).map_err(|_| no_record())?;
        match header.takeup_watch {
            FORMAT => Ok(reader),
            format => Err(RecordError::Format { path: path.to_owned(), format }),
        }
    }

    /// Whether the last line had no end, and was left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next reading; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it is no reading.
    pub fn next_reading(&mut self) -> Result<Option<Reading>, RecordError> {
        let Some(bytes) = self.next_line()? else { return Ok(None) };
        self.reading(&bytes).map(Some).map_err(|source| self.wrong(source))
    }

    fn reading(&mut self, bytes: &[u8]) -> Result<Reading, LineError> {
        let line: Line = serde_json::from_slice(bytes)?;
        if line.at_seconds < self.at_seconds {
            return Err(LineError::Time);
        }
        self.at_seconds = line.at_seconds;
        self.rows.retain(|row| !line.gone.contains(&row.name));
        for row in disk::rows(line.rows.join("\n").as_bytes())? {
            match self.rows.iter_mut().find(|known| known.name == row.name) {
                Some(known) => *known = row,
                None => self.rows.push(row),
            }
        }
        if self.rows.len() > DEVICES_MAX || line.tapes.len() > TAPES_MAX {
            return Err(LineError::Devices);
        }
        Ok(Reading {
            at_seconds: line.at_seconds,
            unix_seconds: line.unix_seconds,
            rows: self.rows.clone(),
            in_flight: line.in_flight,
            queues: line.queues,
            tapes: line.tapes,
        })
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, RecordError> {
        let mut bytes = Vec::new();
        self.line += 1;
        let read = self.lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        read.map_err(|source| RecordError::File { what: "read", path: self.path.clone(), source })?;
        if bytes.ends_with(b"\n") {
            return Ok(Some(bytes));
        }
        if bytes.len() as u64 == LINE_BYTES_MAX {
            return Err(self.wrong(LineError::Long));
        }
        self.is_cut = !bytes.is_empty();
        Ok(None)
    }

    fn wrong(&self, source: LineError) -> RecordError {
        RecordError::Line { path: self.path.clone(), line: self.line, source }
    }
}
