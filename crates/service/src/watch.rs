//! What block devices do: intervals of this machine, or of a record.
//!
//! In both cases [`IntervalMaker`] computes the intervals, and an iterator hands out each as soon
//! as it is over.

mod answer;
mod devices;
mod history;

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::Reading;
use watch::intervals::{Interval, IntervalMaker};
use watch::live::WatchedMachine;
use watch::record::{LeftOut, RecordReader, RecordWriter, WatchRecordError};

use crate::failure::Failure;

pub use answer::{DeviceLine, WatchLine};
use devices::plain_name;
pub use devices::{drive_of, watched};
pub use history::{ColumnAnswer, DeviceHistoryAnswer, SpellAnswer};

/// What to watch, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRequest {
    /// Names, nodes or paths on a file system, with the devices below them; all disks where there
    /// are none.
    #[serde(default)]
    pub devices: Vec<PathBuf>,
    /// Time between two readings, from 0.1 to a day; without it one second.
    #[serde(default)]
    pub interval_seconds: Option<f64>,
    /// End after this many intervals.
    #[serde(default)]
    pub count: Option<u64>,
    /// Record the readings in this new file.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Replay this record instead.
    #[serde(default)]
    pub from: Option<PathBuf>,
}

/// The times between two readings that a request may ask for, in seconds.
pub const INTERVAL_SECONDS: RangeInclusive<f64> = 0.1..=86_400.0;

/// Maximum number of devices that a hint names.
const NAMES_IN_HINT: usize = 12;

/// The intervals of this machine, recorded if requested; ends after the requested number or the
/// first failure.
#[derive(Debug)]
pub struct LiveWatch {
    machine: WatchedMachine,
    record: Option<RecordWriter>,
    interval: Duration,
    maker: IntervalMaker,
    left: Option<u64>,
}

impl LiveWatch {
    /// Finds the devices, and makes the file of the record.
    ///
    /// # Errors
    /// When there is no such device, the file exists, or the request is not for this machine.
    pub fn begin(request: &WatchRequest) -> Result<LiveWatch, Failure> {
        if request.from.is_some() {
            return Err(Failure::of("a record cannot be watched live", None));
        }
        let seconds = request.interval_seconds.unwrap_or(1.0);
        if !INTERVAL_SECONDS.contains(&seconds) {
            let hint = "use a time from 100ms to 24h";
            return Err(Failure::of(format!("the interval is {seconds} s"), Some(hint)));
        }
        let machine = WatchedMachine::new(watched(&request.devices)?);
        let record = request.record.as_deref().map(RecordWriter::create).transpose();
        let record = record.map_err(|error| record_failure(&error))?;
        let interval = Duration::from_secs_f64(seconds);
        let maker = IntervalMaker::default();
        Ok(LiveWatch { machine, record, interval, maker, left: request.count })
    }

    /// The time between two readings.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The next reading: the first one at once, all others at the end of an interval.
    fn reading(&mut self) -> Result<Reading, Failure> {
        let reading = self.machine.reading(self.interval);
        let reading = reading.map_err(|error| Failure::new(&error, None))?;
        if let Some(record) = &mut self.record {
            record.write(&reading).map_err(|error| record_failure(&error))?;
        }
        Ok(reading)
    }
}

impl Iterator for LiveWatch {
    type Item = Result<Interval, Failure>;

    fn next(&mut self) -> Option<Result<Interval, Failure>> {
        while self.left != Some(0) {
            match self.reading() {
                Ok(reading) => {
                    let Some(interval) = self.maker.next(reading) else { continue };
                    self.left = self.left.map(|left| left - 1);
                    return Some(Ok(interval));
                }
                Err(failure) => {
                    self.left = Some(0);
                    return Some(Err(failure));
                }
            }
        }
        None
    }
}

/// The intervals of a record, from its beginning to its end or to the requested number.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    reader: RecordReader,
    devices: RecordDevices,
    maker: IntervalMaker,
    left: Option<u64>,
}

impl Replay {
    /// Opens a record; of the request the devices and the number of intervals count.
    ///
    /// # Errors
    /// When it is not a record.
    pub fn open(path: &Path, request: &WatchRequest) -> Result<Replay, Failure> {
        if request.record.is_some() {
            return Err(Failure::of("a replay cannot be recorded", None));
        }
        let reader = RecordReader::open(path).map_err(|error| record_failure(&error))?;
        let devices = RecordDevices::of(&request.devices);
        let maker = IntervalMaker::default();
        Ok(Replay { path: path.to_owned(), reader, devices, maker, left: request.count })
    }

    /// Whether the requested number of intervals is reached.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// What the record lacks, as far as it was read.
    pub fn damage(&self) -> RecordDamage<'_> {
        RecordDamage {
            path: &self.path,
            left_out: self.reader.left_out(),
            left_out_count: self.reader.left_out_count(),
            is_cut: self.reader.is_cut(),
        }
    }

    /// Checks at the end that all requested devices were met.
    ///
    /// # Errors
    /// When one of them is not in what was read.
    pub fn check_devices(&self) -> Result<(), Failure> {
        let part = if self.is_over() { " in the requested intervals" } else { "" };
        self.devices.check(&self.path, part)
    }

    fn reading(&mut self) -> Option<Result<Reading, Failure>> {
        let reading = self.reader.next_reading().transpose()?;
        Some(reading.map_err(|error| record_failure(&error)))
    }
}

impl Iterator for Replay {
    type Item = Result<Interval, Failure>;

    fn next(&mut self) -> Option<Result<Interval, Failure>> {
        while self.left != Some(0) {
            let mut reading = match self.reading()? {
                Ok(reading) => reading,
                Err(failure) => return Some(Err(failure)),
            };
            self.devices.keep(&mut reading);
            let Some(interval) = self.maker.next(reading) else { continue };
            self.left = self.left.map(|left| left - 1);
            return Some(Ok(interval));
        }
        None
    }
}

/// What a record lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordDamage<'a> {
    pub path: &'a Path,
    /// The first lines with impossible readings.
    pub left_out: &'a [LeftOut],
    /// How many lines had them.
    pub left_out_count: u64,
    /// Whether its last line is incomplete.
    pub is_cut: bool,
}

/// The devices of a record that are requested, and those that it has.
#[derive(Debug)]
pub struct RecordDevices {
    wanted: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl RecordDevices {
    /// The named devices; all where none is named.
    pub fn of(devices: &[PathBuf]) -> RecordDevices {
        let wanted = devices.iter().map(|it| plain_name(it.as_os_str())).collect();
        RecordDevices { wanted, seen: BTreeSet::new() }
    }

    /// Keeps only the requested devices in a reading, and remembers the names of all.
    pub fn keep(&mut self, reading: &mut Reading) {
        self.seen.extend(reading.rows.iter().map(|row| row.name.clone()));
        self.seen.extend(reading.tapes.keys().cloned());
        if !self.wanted.is_empty() {
            reading.rows.retain(|row| self.wanted.contains(&row.name));
            reading.tapes.retain(|name, _| self.wanted.contains(name));
        }
    }

    /// Checks that all requested devices were in a reading of this record; `part` says of which
    /// part of it that holds.
    ///
    /// # Errors
    /// When one was not.
    pub fn check(&self, path: &Path, part: &str) -> Result<(), Failure> {
        let Some(name) = self.wanted.difference(&self.seen).next() else { return Ok(()) };
        let shown = path.display();
        let some: Vec<&str> = self.seen.iter().take(NAMES_IN_HINT).map(String::as_str).collect();
        let more = if self.seen.len() > some.len() { " and others" } else { "" };
        let some = some.join(", ");
        let hint = format!("name one of {some}{more}, or leave out DEVICE to show all");
        Err(Failure::of(format!("{shown} has no device {name}{part}"), Some(&hint)))
    }
}

/// Why a record cannot be written or read.
pub fn record_failure(error: &WatchRecordError) -> Failure {
    match error {
        WatchRecordError::File { what: "make", source, path }
            if source.kind() == io::ErrorKind::AlreadyExists =>
        {
            let hint = "choose another name; `takeup watch --from` shows what it holds";
            Failure::of(format!("{} exists already", path.display()), Some(hint))
        }
        WatchRecordError::NoRecord { .. } => {
            let hint = "run `takeup watch --record FILE` to make one";
            Failure::new(error, Some(hint.to_owned()))
        }
        _ => Failure::new(error, None),
    }
}
