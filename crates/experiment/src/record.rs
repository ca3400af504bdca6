//! The file of an experiment: one line of JSON for its plan and one for each run, written when the
//! run ends and never changed.
//!
//! After a crash the file may end in the middle of a line. A program that continues the file cuts
//! that part off and reports it. All conclusions come from the file alone, so other methods can be
//! applied to it later.

mod operations;
mod programs;
mod run_file;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use base::rounding::Rounding;
use flow::run::StageReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantities::{self, Unit};
use statistics::bytes_over_time::Series;
use statistics::histogram::Histogram;

pub use operations::{OperationKind, Operations};
pub use programs::{PipeUse, ProgramUse};
pub use run_file::RunFile;

/// Version of the lines. New fields do not need a new version.
pub const FORMAT: u32 = 1;

/// Longest line that is read, in bytes: a run with a series and a histogram takes some 40 kB.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Level {
    /// A number, in the unit that the factor's name ends in.
    Number(u64),
    Text(String),
}

impl Level {
    /// The level as people read it; sizes in powers of 1024 where they are whole.
    pub fn shown(&self, factor: &str) -> String {
        match self {
            Level::Number(bytes) if Unit::of(factor) == Unit::Bytes => binary_size(*bytes),
            Level::Number(number) => number.to_string(),
            Level::Text(text) => text.clone(),
        }
    }
}

/// Bytes as `512 B`, `64 KiB`, `1 MiB`.
pub fn binary_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// One combination of levels: factor to level.
pub type Cell = BTreeMap<String, Level>;

/// A cell of these levels. A level that parses as a number is one.
pub fn cell(levels: &[(&str, &str)]) -> Cell {
    let level =
        |text: &str| text.parse().map_or_else(|_| Level::Text(text.to_owned()), Level::Number);
    levels.iter().map(|(name, text)| ((*name).to_owned(), level(text))).collect()
}

/// A cell as people read it, without the factors that never change.
pub fn shown_cell(cell: &Cell, factors: &[Factor]) -> String {
    let varied = factors.iter().filter(|factor| factor.levels.len() > 1);
    let parts: Vec<String> = varied
        .filter_map(|factor| {
            Some(format!("{} {}", factor.title(), cell.get(&factor.name)?.shown(&factor.name)))
        })
        .collect();
    if parts.is_empty() { "the only combination".to_owned() } else { parts.join(", ") }
}

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Name, its unit as the last word.
    pub name: String,
    /// The levels, the simplest or smallest first.
    pub levels: Vec<Level>,
    /// What kind of factor.
    #[serde(default)]
    pub role: Role,
    /// The level in force today, which gains are relative to; without it, the first level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<Level>,
}

impl Factor {
    /// With its usual role, and no level in force.
    pub fn new(name: &str, levels: Vec<Level>) -> Factor {
        let role = quantities::factor(name).role;
        Factor { name: name.to_owned(), levels, role, present: None }
    }

    /// The name without its unit, in words.
    pub fn title(&self) -> String {
        quantities::title(&self.name)
    }

    /// Whether its levels are numbers, so that a curve can be drawn over them.
    pub fn is_numeric(&self) -> bool {
        self.levels.iter().all(|level| matches!(level, Level::Number(_)))
    }
}

/// Whether the user chooses the level of a factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user chooses it, so it can be recommended.
    #[default]
    Setting,
    /// The given work: the data, the size of files.
    Load,
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Which command: `read`, `disk`, `tape`.
    pub kind: String,
    pub title: String,
    /// Whether rates or times are compared.
    #[serde(default, skip_serializing_if = "Value::is_rate")]
    pub value: Value,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// The plan, for the record and for continuing the experiment.
    pub plan: serde_json::Value,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// When the experiment began, seconds of Unix time.
    pub started_unix_seconds: u64,
}

/// The value of runs that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Bytes divided by seconds.
    #[default]
    Rate,
    /// The time of a run, if its number of bytes is unknown.
    Time,
}

impl Value {
    /// Whether it is the default, which is not written to the file.
    pub fn is_rate(&self) -> bool {
        *self == Value::Rate
    }

    /// A speed as people read it: a rate, or the time of one run.
    pub fn shown(self, speed: f64) -> String {
        match self {
            Value::Rate => base::format::rate(speed),
            Value::Time => base::format::duration(1.0 / speed),
        }
    }

    /// As [`Value::shown`], with the digits that an interval of the speed supports.
    pub fn told(self, speed: f64, interval: Option<(f64, f64)>) -> String {
        match (self, interval) {
            (_, None) => self.shown(speed),
            (Value::Rate, Some((low, high))) => Rounding::within(low, high).rate(speed),
            // The longest time belongs to the lowest speed.
            (Value::Time, Some((low, high))) => {
                Rounding::within(1.0 / high, 1.0 / low).seconds(1.0 / speed)
            }
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// The combination that was set.
    pub cell: Cell,
    /// Number of the block in which it ran, from 1; this is its repeat.
    pub repeat: u64,
    /// Place in the order of all runs, from 1.
    pub order: u64,
    /// When it began, seconds of Unix time.
    pub started_unix_seconds: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time that it took.
    pub seconds: f64,
    /// Whether its rate or its time is compared.
    #[serde(skip_serializing_if = "Value::is_rate")]
    pub value: Value,
    /// A rate that another program printed for it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed_bytes_per_second: Option<f64>,
    /// Bytes over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// Latencies of its requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
    /// The operations of fio, by kind and section.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operations>,
    /// Other measures; the last word of each name is the unit.
    pub measures: BTreeMap<String, f64>,
    /// The stages, as in the document of a backup.
    pub stages: Vec<StageReport>,
    /// The programs of a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    /// The pipes between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeUse>,
    /// The hosts of a run on many, by rank.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
    /// Kernel, device, firmware, settings, versions.
    pub environment: BTreeMap<String, String>,
    /// Notes for the judgement.
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds after which it was stopped because it took too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after_seconds: Option<f64>,
    /// Upper bound on the rate of a stopped run, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower_than_bytes_per_second: Option<f64>,
    /// Lower bound on the time of a stopped run, if its bytes are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_than_seconds: Option<f64>,
}

impl RunRecord {
    /// Bytes divided by seconds; `None` for a failed run.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let good = self.error.is_none() && self.seconds > 0.0 && self.bytes > 0;
        good.then(|| self.bytes as f64 / self.seconds)
    }

    /// The compared value, where more is better: bytes per second, or runs per second if times are
    /// compared; `None` for a failed run.
    pub fn speed(&self) -> Option<f64> {
        match self.value {
            Value::Rate => self.bytes_per_second(),
            Value::Time => (self.error.is_none() && self.seconds > 0.0).then(|| 1.0 / self.seconds),
        }
    }
}

/// What one host did of a run on many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostPart {
    /// Its name.
    pub host: String,
    /// Number of the rank, from 0.
    pub rank: u64,
    /// Seconds from the first start of all to its own.
    pub started_after_seconds: f64,
    /// Seconds of its measured part.
    pub seconds: f64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Its rate while all were active; `None` where times are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes_per_second: Option<f64>,
    /// Times of its engine, of a load that has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageReport>,
}

/// Why a cell cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A word where a number belongs.
    #[error("{name} {text:?}: a number was expected")]
    NoNumber {
        /// The factor.
        name: String,
        /// Its level.
        text: String,
    },
    /// A number where a word belongs.
    #[error("{name} {number}: a word was expected")]
    NoWord {
        /// The factor.
        name: String,
        /// Its level.
        number: u64,
    },
    /// A number outside of the possible range.
    #[error("{name} {level}: must be {least} to {most}")]
    OutOfRange {
        /// The factor.
        name: String,
        level: String,
        /// The lowest number.
        least: u64,
        /// The highest.
        most: u64,
    },
    /// An unknown word.
    #[error("{what}; known are {known}")]
    Unknown {
        /// The factor and its level.
        what: String,
        known: &'static str,
    },
    /// A combination that cannot work, although each level is valid.
    #[error("{0}")]
    Impossible(String),
}

/// The number that a cell gives to a factor; `usual` if it has none.
///
/// # Errors If the level is a word.
pub fn number_in(cell: &Cell, name: &str, usual: u64) -> Result<u64, CellError> {
    match cell.get(name) {
        Some(Level::Number(number)) => Ok(*number),
        Some(Level::Text(text)) => {
            Err(CellError::NoNumber { name: name.to_owned(), text: text.clone() })
        }
        None => Ok(usual),
    }
}

/// The word that a cell gives to a factor, if it has one.
///
/// # Errors If the level is a number.
pub fn word_in<'a>(cell: &'a Cell, name: &str) -> Result<Option<&'a str>, CellError> {
    match cell.get(name) {
        Some(Level::Text(text)) => Ok(Some(text)),
        Some(Level::Number(number)) => {
            Err(CellError::NoWord { name: name.to_owned(), number: *number })
        }
        None => Ok(None),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Experiment(Header),
    Run(Box<RunRecord>),
}

/// An experiment as read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its plan.
    pub header: Header,
    /// Its runs, in the order in which they ended.
    pub runs: Vec<RunRecord>,
    /// Bytes of an incomplete line at the end, left by a crash.
    pub torn_bytes: u64,
}

impl Experiment {
    /// Whether any of its runs has a result: a number, or a bound.
    pub fn tells_something(&self) -> bool {
        let tells = |run: &RunRecord| {
            let bounds = [run.slower_than_bytes_per_second, run.longer_than_seconds];
            run.speed().is_some() || bounds.iter().any(Option::is_some)
        };
        self.runs.iter().any(tells)
    }
}

/// Why a file of runs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Reading or writing it failed.
    #[error("{what} {}", path.display())]
    File {
        /// The operation that failed.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A line is not part of an experiment.
    #[error("{}, line {line}: not a line of an experiment: {why}", path.display())]
    Line {
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// What is wrong with the line.
        why: String,
    },
    /// Judging it would take too much time and memory.
    #[error("{}: too large to judge: {what}", path.display())]
    TooLarge {
        path: PathBuf,
        /// What is too large, and the limit.
        what: String,
    },
    /// Another version wrote it.
    #[error("{}: format {format}, this version reads format {FORMAT}", path.display())]
    Format { path: PathBuf, format: u32 },
    /// A file to continue that another user may have made.
    #[error("cannot continue {}: {why}", path.display())]
    Untrusted {
        path: PathBuf,
        /// What another user could have done.
        why: String,
    },
}

/// Largest number of runs that is judged: a year with one run every two minutes.
pub const RUNS_MAX: usize = 250_000;

/// Only one of the numbers of combinations and of repeats may exceed this. A hundred thousand runs
/// are 316 repeats of 316 combinations, 2 of 50,000 or 50,000 of 2; if both are larger, hardly any
/// two combinations have a repeat in common.
pub const SIDE_MAX: usize = 1_000;

/// Largest file that is read, in bytes: its runs with all their series are kept in memory.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Reads an experiment.
pub fn load(path: &Path) -> Result<Experiment, RecordError> {
    let file_error = |source| RecordError::File { what: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(file_error)?;
    read(BufReader::new(file), path)
}

/// Reads an experiment from its bytes; `path` is for the messages.
pub fn read(mut reader: impl BufRead, path: &Path) -> Result<Experiment, RecordError> {
    let file_error = |source| RecordError::File { what: "read", path: path.to_owned(), source };
    let mut header: Option<Header> = None;
    let mut runs = Vec::new();
    let mut torn_bytes = 0;
    let mut length = 0;
    let large = |what: String| RecordError::TooLarge { path: path.to_owned(), what };
    for line in 1.. {
        let bytes = read_line(&mut reader).map_err(file_error)?;
        length += bytes.len() as u64;
        if length > FILE_BYTES_MAX {
            return Err(large(format!("more than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        if bytes.is_empty() {
            break;
        }
        if bytes.last() != Some(&b'\n') {
            torn_bytes = bytes.len() as u64;
            break;
        }
        let wrong = |why: String| RecordError::Line { path: path.to_owned(), line, why };
        match serde_json::from_slice(&bytes).map_err(|error| wrong(in_column(&error)))? {
            Line::Experiment(found) if found.format != FORMAT => {
                return Err(RecordError::Format { path: path.to_owned(), format: found.format });
            }
            Line::Experiment(found) if header.is_none() => header = Some(found),
            Line::Run(_) if runs.len() == RUNS_MAX => {
                return Err(large(format!("more than {RUNS_MAX} runs")));
            }
            Line::Run(run) if header.is_some() => runs.push(*run),
            Line::Experiment(_) => return Err(wrong("a second experiment".to_owned())),
            Line::Run(_) => return Err(wrong("a run before its experiment".to_owned())),
        }
    }
    let header = header.ok_or_else(|| RecordError::Line {
        path: path.to_owned(),
        line: 1,
        why: "the file is empty".to_owned(),
    })?;
    let sides = sides(&runs);
    if sides.0.min(sides.1) > SIDE_MAX {
        let (cells, repeats) = sides;
        return Err(large(format!(
            "{cells} combinations and {repeats} repeats; only one of the two may exceed {SIDE_MAX}"
        )));
    }
    Ok(Experiment { header, runs, torn_bytes })
}

/// The number of combinations and of blocks. Each level that a person has to change makes a block
/// of its own in each repeat.
fn sides(runs: &[RunRecord]) -> (usize, usize) {
    let cells: BTreeSet<&Cell> = runs.iter().map(|run| &run.cell).collect();
    let block = |run| {
        let run: &RunRecord = run;
        let hard: Vec<Option<&Level>> =
            crate::quantities::hard_to_change().map(|name| run.cell.get(name)).collect();
        (run.repeat, hard)
    };
    let blocks: BTreeSet<_> = runs.iter().map(block).collect();
    (cells.len(), blocks.len())
}

/// The parser's message. It parses each line alone, so its line number is always 1.
fn in_column(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " in column ")
}

/// The first line of a file, with its end.
pub fn header_line(header: &Header) -> Vec<u8> {
    bytes_of(&Line::Experiment(header.clone()))
}

/// The line of a run, with its end.
pub fn run_line(run: &RunRecord) -> Vec<u8> {
    bytes_of(&Line::Run(Box::new(run.clone())))
}

fn bytes_of(line: &Line) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).expect("numbers and strings can be written");
    bytes.push(b'\n');
    bytes
}

/// A line with its end; the last line of the file may lack it.
fn read_line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = io::Read::take(reader, LINE_BYTES_MAX);
    limited.read_until(b'\n', &mut bytes)?;
    if bytes.len() as u64 == LINE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
