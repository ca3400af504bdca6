//! Records of `takeup watch --record`, as input of `report` and `compare`.

use std::path::Path;

use base::calendar::time_text;
use screen::history::{Point, series};
use serde::Serialize;
use watch::compare::Comparison;
use watch::history::{DeviceHistory, DeviceKind, History, NumberRange, RecordExtent, Spell};
use watch::record::{LeftOut, RecordError, RecordReader};

use crate::standard_error::to_standard_error;
use service::failure::Failure;
use service::watch::{RecordDamage, record_failure};

/// Whether a file is a record of a watch, of this or another version. Always false for a pipe:
/// records of a watch are read twice.
pub fn is_record(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file())
        && matches!(RecordReader::open(path), Ok(_) | Err(RecordError::Format { .. }))
}

/// The extent of a record, which must have an interval.
pub fn extent(path: &Path) -> Result<RecordExtent, Failure> {
    let extent = RecordExtent::of(path).map_err(|error| record_failure(&error))?;
    if extent.readings < 2 || extent.seconds <= 0.0 {
        let readings = base::format::counted(extent.readings, "reading", "readings");
        let message = format!("{} has {readings}: an interval needs two", path.display());
        let hint = "record longer: `takeup watch --record` writes one reading per interval";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(extent)
}

/// The whole record, with `joined` intervals taken as one.
pub fn history(path: &Path, joined: u64) -> Result<History, Failure> {
    let history = History::read(path, joined).map_err(|error| record_failure(&error))?;
    let (left_out, left_out_count) = (&*history.left_out.0, history.left_out.1);
    let damage = RecordDamage { path, left_out, left_out_count, is_cut: history.is_cut };
    to_standard_error(&::report::watch::damage(&damage));
    Ok(history)
}

/// Two records, with intervals joined so that their lengths are as equal as possible.
pub fn histories(a: &Path, b: &Path) -> Result<[History; 2], Failure> {
    let extents = [extent(a)?, extent(b)?];
    let length = |extent: &RecordExtent| extent.interval_seconds() * extent.joined_least() as f64;
    let longest = extents.iter().map(length).fold(0.0, f64::max);
    let joined = |extent: &RecordExtent| {
        let wanted = (longest / extent.interval_seconds()).round() as u64;
        wanted.max(extent.joined_least())
    };
    Ok([history(a, joined(&extents[0]))?, history(b, joined(&extents[1]))?])
}

/// What `report --json` prints of a record.
#[derive(Serialize)]
pub struct ReportDocument<'a> {
    command: &'static str,
    record: RecordDocument<'a>,
    devices: Vec<DeviceDocument<'a>>,
}

/// A record as a whole. Times are in UTC.
#[derive(Serialize)]
struct RecordDocument<'a> {
    began: String,
    began_unix_seconds: i64,
    seconds: f64,
    intervals: u64,
    /// Intervals of the file that are taken as one.
    joined: u64,
    is_cut: bool,
    /// The first lines with impossible readings.
    left_out: &'a [LeftOut],
    left_out_count: u64,
}

/// A device. Times are in seconds after the first reading of any device.
#[derive(Serialize)]
pub struct DeviceDocument<'a> {
    device: &'a str,
    kind: DeviceKind,
    made_of: &'a [String],
    since_seconds: f64,
    until_seconds: f64,
    seconds: f64,
    busy_seconds: f64,
    gone_seconds: &'a [f64],
    columns: Vec<ColumnDocument>,
    findings: Vec<SpellDocument<'a>>,
    series: Vec<Point>,
}

/// A column over the busy intervals, named and counted as in `iostat -x -o JSON`.
#[derive(Serialize)]
struct ColumnDocument {
    column: &'static str,
    #[serde(flatten)]
    spread: watch::compare::Spread,
}

#[derive(Serialize)]
struct SpellDocument<'a> {
    began: String,
    ended: String,
    began_seconds: f64,
    ended_seconds: f64,
    /// Intervals with the finding, of `intervals` in all.
    spoken: u64,
    intervals: u64,
    /// The lowest and the highest value of each number.
    ranges: &'a [NumberRange],
    /// The finding of the interval in which the device moved the most.
    #[serde(flatten)]
    finding: &'a base::finding::Finding,
}

impl ReportDocument<'_> {
    /// The document of a record.
    pub fn of(history: &History) -> ReportDocument<'_> {
        let device = |device| device_document(history, device);
        ReportDocument {
            command: "report",
            record: record_document(history),
            devices: history.devices.iter().map(device).collect(),
        }
    }
}

fn record_document(history: &History) -> RecordDocument<'_> {
    RecordDocument {
        began: time_text(history.began_unix_seconds),
        began_unix_seconds: history.began_unix_seconds,
        seconds: history.seconds,
        intervals: history.intervals,
        joined: history.joined,
        is_cut: history.is_cut,
        left_out: &history.left_out.0,
        left_out_count: history.left_out.1,
    }
}

/// The document of a device.
pub fn device_document<'a>(history: &History, device: &'a DeviceHistory) -> DeviceDocument<'a> {
    let column = |column: &'static watch::columns::Column| {
        Some(ColumnDocument { column: column.key, spread: device.spread(column)? })
    };
    let time = |seconds: f64| time_text(history.unix_seconds(seconds));
    let spell = |spell: &'a Spell| SpellDocument {
        began: time(spell.began_seconds),
        ended: time(spell.ended_seconds),
        began_seconds: spell.began_seconds,
        ended_seconds: spell.ended_seconds,
        spoken: spell.spoken,
        intervals: spell.intervals,
        ranges: &spell.numbers,
        finding: &spell.finding,
    };
    DeviceDocument {
        device: &device.name,
        kind: device.kind,
        made_of: &device.made_of,
        since_seconds: device.since_seconds,
        until_seconds: device.until_seconds,
        seconds: device.seconds,
        busy_seconds: device.busy_seconds(),
        gone_seconds: &device.gone_seconds,
        columns: watch::columns::COLUMNS.iter().filter_map(column).collect(),
        findings: device.spells.iter().map(spell).collect(),
        series: series(history, device),
    }
}

/// What `compare --json` prints of two records.
#[derive(Serialize)]
pub struct CompareDocument<'a> {
    command: &'static str,
    a: RecordDocument<'a>,
    b: RecordDocument<'a>,
    comparison: &'a Comparison,
}

impl CompareDocument<'_> {
    /// The document of two records and their comparison.
    pub fn of<'a>(
        a: &'a History,
        b: &'a History,
        comparison: &'a Comparison,
    ) -> CompareDocument<'a> {
        let (a, b) = (record_document(a), record_document(b));
        CompareDocument { command: "compare", a, b, comparison }
    }
}

/// A document as it is printed.
pub fn printed(document: &impl Serialize) -> String {
    // Only maps with keys that are not text can fail; numbers without a JSON form become null.
    let text = serde_json::to_string_pretty(document).expect("plain numbers and texts");
    text + "\n"
}
