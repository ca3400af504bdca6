//! Records of `takeup watch --record`, as input of reports and comparisons.

use std::path::Path;

use base::calendar::time_text;
use base::finding::Finding;
use base::format::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::columns::{COLUMNS, Column};
use watch::compare::Spread;
use watch::history::{
    DeviceHistory, DeviceKind, History, NumberRange, Point, RecordExtent, Spell, series,
};
use watch::record::{LeftOut, RecordError, RecordReader};

use crate::failure::Failure;

/// Whether a file is a record of a watch, of this or another version. Always false for a pipe:
/// records of a watch are read twice.
pub fn is_record(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file())
        && matches!(RecordReader::open(path), Ok(_) | Err(RecordError::Format { .. }))
}

/// The extent of a record, which must have an interval.
fn extent(path: &Path) -> Result<RecordExtent, Failure> {
    let extent = RecordExtent::of(path).map_err(|error| record_failure(&error))?;
    if extent.readings < 2 || extent.seconds <= 0.0 {
        let readings = counted(extent.readings, "reading", "readings");
        let message = format!("{} has {readings}: an interval needs two", path.display());
        let hint = "record longer: `takeup watch --record` writes one reading per interval";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(extent)
}

/// The whole record; as few intervals as possible are taken as one.
///
/// # Errors
/// When it cannot be read, or has no interval.
pub fn history(path: &Path) -> Result<History, Failure> {
    joined(path, extent(path)?.joined_least())
}

/// The whole record, with so many intervals taken as one.
fn joined(path: &Path, joined: u64) -> Result<History, Failure> {
    History::read(path, joined).map_err(|error| record_failure(&error))
}

/// Two records, with intervals joined so that their lengths are as equal as possible.
///
/// # Errors
/// When one cannot be read, or has no interval.
pub fn histories(a: &Path, b: &Path) -> Result<[History; 2], Failure> {
    let extents = [extent(a)?, extent(b)?];
    let length = |extent: &RecordExtent| extent.interval_seconds() * extent.joined_least() as f64;
    let longest = extents.iter().map(length).fold(0.0, f64::max);
    let wanted = |extent: &RecordExtent| {
        let wanted = (longest / extent.interval_seconds()).round() as u64;
        wanted.max(extent.joined_least())
    };
    Ok([joined(a, wanted(&extents[0]))?, joined(b, wanted(&extents[1]))?])
}

/// Why a record cannot be read.
fn record_failure(error: &RecordError) -> Failure {
    match error {
        RecordError::NoRecord { .. } => {
            let hint = "run `takeup watch --record FILE` to make one";
            Failure::new(error, Some(hint.to_owned()))
        }
        _ => Failure::new(error, None),
    }
}

/// A record as a whole. Times are in UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedWatch {
    /// When it began.
    pub began: String,
    /// The same, in seconds since 1970.
    pub began_unix_seconds: i64,
    /// Its length.
    pub seconds: f64,
    /// Its intervals.
    pub intervals: u64,
    /// Intervals of the file that are taken as one.
    pub joined: u64,
    /// Whether its last line was incomplete.
    pub is_cut: bool,
    /// The first lines with impossible readings.
    pub left_out: Vec<LeftOut>,
    /// The number of all of them.
    pub left_out_count: u64,
}

/// A device. Times are in seconds after the first reading of any device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedDevice {
    /// Its name.
    pub device: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The devices below it.
    pub made_of: Vec<String>,
    /// When it was present first.
    pub since_seconds: f64,
    /// When it was present last.
    pub until_seconds: f64,
    /// Time in which it was present and counted.
    pub seconds: f64,
    /// Time in which it was busy enough for findings.
    pub busy_seconds: f64,
    /// When it disappeared; the first hundred times.
    pub gone_seconds: Vec<f64>,
    /// Its columns over the busy intervals.
    pub columns: Vec<RecordedColumn>,
    /// When each finding about it held.
    pub findings: Vec<RecordedSpell>,
    /// What it did over time.
    pub series: Vec<Point>,
}

/// A column over the busy intervals, named and counted as in `iostat -x -o JSON`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedColumn {
    /// Its key.
    pub column: String,
    /// How its values are spread.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A time in which a finding held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedSpell {
    /// When it began, in UTC.
    pub began: String,
    /// When it ended, in UTC.
    pub ended: String,
    /// When it began.
    pub began_seconds: f64,
    /// When it ended.
    pub ended_seconds: f64,
    /// Intervals with the finding, of `intervals` in all.
    pub spoken: u64,
    /// Intervals from the first to the last one.
    pub intervals: u64,
    /// The lowest and the highest value of each number.
    pub ranges: Vec<NumberRange>,
    /// The finding of the interval in which the device moved the most.
    #[serde(flatten)]
    pub finding: Finding,
}

impl RecordedWatch {
    /// Of a record.
    pub fn of(history: &History) -> RecordedWatch {
        RecordedWatch {
            began: time_text(history.began_unix_seconds),
            began_unix_seconds: history.began_unix_seconds,
            seconds: history.seconds,
            intervals: history.intervals,
            joined: history.joined,
            is_cut: history.is_cut,
            left_out: history.left_out.0.clone(),
            left_out_count: history.left_out.1,
        }
    }
}

impl RecordedDevice {
    /// Of a device of this record.
    pub fn of(history: &History, device: &DeviceHistory) -> RecordedDevice {
        let column = |column: &Column| {
            Some(RecordedColumn { column: column.key.to_owned(), spread: device.spread(column)? })
        };
        let spell = |spell: &Spell| RecordedSpell::of(history, spell);
        RecordedDevice {
            device: device.name.clone(),
            kind: device.kind,
            made_of: device.made_of.clone(),
            since_seconds: device.since_seconds,
            until_seconds: device.until_seconds,
            seconds: device.seconds,
            busy_seconds: device.busy_seconds(),
            gone_seconds: device.gone_seconds.clone(),
            columns: COLUMNS.iter().filter_map(column).collect(),
            findings: device.spells.iter().map(spell).collect(),
            series: series(history, device),
        }
    }
}

impl RecordedSpell {
    fn of(history: &History, spell: &Spell) -> RecordedSpell {
        let time = |seconds: f64| time_text(history.unix_seconds(seconds));
        RecordedSpell {
            began: time(spell.began_seconds),
            ended: time(spell.ended_seconds),
            began_seconds: spell.began_seconds,
            ended_seconds: spell.ended_seconds,
            spoken: spell.spoken,
            intervals: spell.intervals,
            ranges: spell.numbers.clone(),
            finding: spell.finding.clone(),
        }
    }
}
