//! Records of `takeup watch --record`, as input of reports and comparisons.

use std::path::Path;

use base::calendar::time_text;
use base::format::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::history::{History, RecordExtent};
use watch::record::{LeftOut, RecordReader, WatchRecordError};

use crate::failure::Failure;
use crate::watch::record_failure;

/// Whether a file is a record of a watch, of this or another version. Always false for a pipe:
/// records of a watch are read twice.
pub fn is_record(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file())
        && matches!(RecordReader::open(path), Ok(_) | Err(WatchRecordError::Format { .. }))
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

/// A record as a whole. Times are in UTC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedWatch {
    /// When it began.
    pub began: String,
    /// The same, in seconds since 1970.
    pub began_unix_seconds: i64,
    pub seconds: f64,
    pub intervals: u64,
    /// Intervals of the file that are taken as one.
    pub joined: u64,
    /// Whether its last line was incomplete.
    pub is_cut: bool,
    /// The first lines with impossible readings.
    pub left_out: Vec<LeftOut>,
    pub left_out_count: u64,
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
