//! Records of `takeup watch --record`, as input of `report` and `compare`.

use std::path::Path;

use base::calendar::time_text;
use serde::Serialize;
use watch::compare::Comparison;
use watch::history::{History, RecordExtent};
use watch::record::{LeftOut, RecordError, RecordReader};

use crate::standard_error::to_standard_error;
use service::failure::Failure;
use service::watch::{DeviceHistoryAnswer, RecordDamage, record_failure};

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
    to_standard_error(&report::watch::damage(&damage));
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
    devices: Vec<DeviceHistoryAnswer>,
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

impl ReportDocument<'_> {
    /// The document of a record.
    pub fn of(history: &History) -> ReportDocument<'_> {
        ReportDocument {
            command: "report",
            record: record_document(history),
            devices: DeviceHistoryAnswer::all(history),
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
