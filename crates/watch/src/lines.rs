//! Lines of records, and readings as lines, for the records of watches and captures.
//!
//! A line has the rows that changed since the previous line, so that an idle device needs no space.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};

use machine::counters::CounterError;
use machine::counters::disk::{self, DiskRow};
use serde::{Deserialize, Serialize};
use storage::queue::Queue;

use crate::Reading;
use crate::intervals::DEVICES_MAX;
use crate::record::LineError;
use crate::record::damage::{self, Moment};
use crate::tapes::{TAPES_MAX, TapeCounters};

/// Longest line that is read; one of 4096 devices has less than a megabyte.
pub const LINE_BYTES_MAX: u64 = 16 << 20;

/// Why there is no line.
#[derive(Debug)]
pub enum LineFailure {
    /// The file cannot be read.
    Read(io::Error),
    /// It is longer than any line that Takeup writes.
    Long,
}

/// A file as lines. After a crash, text after the last newline is not a line.
#[derive(Debug)]
pub struct FileLines<R> {
    from: R,
    number: u64,
    is_cut: bool,
}

impl<R: BufRead> FileLines<R> {
    /// From a file.
    pub fn of(from: R) -> FileLines<R> {
        FileLines { from, number: 0, is_cut: false }
    }

    /// The next line, with its newline; `None` after the last one.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineFailure> {
        let mut bytes = Vec::new();
        self.number += 1;
        let read = self.from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        read.map_err(LineFailure::Read)?;
        if bytes.ends_with(b"\n") {
            return Ok(Some(bytes));
        }
        if bytes.len() as u64 == LINE_BYTES_MAX {
            return Err(LineFailure::Long);
        }
        self.is_cut = !bytes.is_empty();
        Ok(None)
    }

    /// The number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last line was incomplete, and skipped.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// A reading in its serialized form, without empty parts.
#[derive(Debug, Serialize, Deserialize, Default)]
pub struct ReadingLine {
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
    /// All drives, idle ones included, because there are few.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tapes: BTreeMap<String, TapeCounters>,
}

/// Makes lines of readings.
#[derive(Debug, Default)]
pub struct Encoder {
    rows: Vec<DiskRow>,
    queues: BTreeMap<String, Queue>,
}

impl Encoder {
    /// The differences between a reading and the previous one.
    pub fn line(&mut self, reading: &Reading) -> ReadingLine {
        let before: BTreeMap<&str, &DiskRow> =
            self.rows.iter().map(|row| (row.name.as_str(), row)).collect();
        let is_other = |row: &&DiskRow| before.get(row.name.as_str()) != Some(row);
        let names: BTreeSet<&str> = reading.rows.iter().map(|row| row.name.as_str()).collect();
        let is_there = |name: &str| names.contains(name);
        let is_other_queue =
            |(name, queue): &(&String, &Queue)| self.queues.get(name.as_str()) != Some(queue);
        let queues = reading.queues.iter().filter(is_other_queue);
        let line = ReadingLine {
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
        line
    }
}

/// Makes readings of lines.
#[derive(Debug, Default)]
pub struct Readings {
    /// The time of the last valid reading.
    moment: Option<Moment>,
    rows: Vec<DiskRow>,
    tapes: BTreeMap<String, TapeCounters>,
}

impl Readings {
    /// The reading of a line. If it is damaged, its valid rows are still used, because later lines
    /// have only changes.
    pub fn reading(&mut self, line: ReadingLine) -> Result<Reading, LineError> {
        let moment = Moment { at_seconds: line.at_seconds, unix_seconds: line.unix_seconds };
        let of_time = moment.damage(self.moment);
        let before = self.moment.map_or(line.at_seconds, |moment| moment.at_seconds);
        let seconds = if of_time.is_some() { 0.0 } else { line.at_seconds - before };
        let of_rows = self.take_rows(&line, seconds);
        if self.rows.len() > DEVICES_MAX || line.tapes.len() > TAPES_MAX {
            return Err(LineError::Devices);
        }
        let of_tapes = || damage::of_tapes(&line.tapes, &self.tapes, seconds);
        let damage = of_time.or(of_rows).or_else(|| damage::of_in_flight(&line.in_flight));
        if let Some(why) = damage.or_else(of_tapes) {
            return Err(LineError::Damage(why));
        }
        self.moment = Some(moment);
        self.tapes.clone_from(&line.tapes);
        Ok(Reading {
            at_seconds: line.at_seconds,
            unix_seconds: line.unix_seconds,
            rows: self.rows.clone(),
            in_flight: line.in_flight,
            queues: line.queues,
            tapes: line.tapes,
        })
    }

    /// Uses the valid rows, and returns the damage of the first invalid one.
    fn take_rows(&mut self, line: &ReadingLine, seconds: f64) -> Option<String> {
        self.rows.retain(|row| !line.gone.contains(&row.name));
        let mut damage = None;
        for text in &line.rows {
            let parsed = match disk::rows(text.as_bytes()) {
                Ok(rows) => rows,
                Err(error) => {
                    let what = match error {
                        CounterError::Malformed { what, .. } => format!(": it has no {what}"),
                        _ => String::new(),
                    };
                    let why = format!("a row is malformed{what}");
                    damage = damage.or(Some(why));
                    continue;
                }
            };
            for row in parsed {
                let known = self.rows.iter().position(|known| known.name == row.name);
                let before = known.map(|at| &self.rows[at]);
                match (damage::of_row(&row, before, seconds), known) {
                    (Some(why), _) => damage = damage.or(Some(why)),
                    (None, Some(at)) => self.rows[at] = row,
                    (None, None) => self.rows.push(row),
                }
            }
        }
        while let Some((name, why)) = damage::of_numbers(&self.rows) {
            self.rows.retain(|row| row.name != name);
            damage = damage.or(Some(why));
        }
        damage
    }
}
