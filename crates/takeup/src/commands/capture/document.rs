//! The JSON document of a capture, and reading its record.

use std::path::Path;

use base::calendar::time_text;
use capture::record::{CaptureRecordError, Captured};
use report::captures as presentation;
use runs::run_record::RecordedStage;
use screen::captured::Together;
use screen::stages::Ran;
use serde_json::{Value, json};

use crate::commands::recorded::device_document;
use service::failure::Failure;

/// The record of a capture.
pub fn read(path: &Path) -> Result<Captured, Failure> {
    Captured::read(path).map_err(|error| {
        let hint = match &error {
            CaptureRecordError::NoRecord { .. } => {
                Some("make one with `takeup capture --record FILE`")
            }
            CaptureRecordError::Empty { .. } => {
                Some("capture again: this file has nothing to show")
            }
            _ => None,
        };
        Failure::new(&error, hint.map(str::to_owned))
    })
}

/// The document: the profile, its findings, and the watched devices.
pub fn of(together: &Together<'_>, command: &str) -> Value {
    let captured = together.captured;
    let heading = &captured.heading;
    let mut document = json!(presentation::document(&captured.profile));
    document["command"] = json!(command);
    document["subject"] = json!(heading.subject);
    let began = heading.began_unix_seconds;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number, or the nearest there is")]
    let whole = began.floor() as i64;
    document["began"] = json!(time_text(whole));
    document["began_unix_seconds"] = json!(began);
    document["events"] = json!(heading.events);
    document["failed"] = json!(heading.failed);
    document["is_stopped"] = json!(heading.is_stopped);
    document["is_cut"] = json!(captured.is_cut);
    // Only `sampling` has a value here: the reason why calls were not recorded.
    document["fallback"] = Value::Null;
    document["devices"] = Value::Null;
    document["devices_at_seconds"] = Value::Null;
    if let Some(history) = &together.devices {
        let devices = history.devices.iter().map(|it| device_document(history, it));
        document["devices"] = json!(devices.collect::<Vec<_>>());
        // Times of devices start with their first reading, times of calls with the capture.
        let behind = together.devices_frame.offset_seconds - together.calls_frame.offset_seconds;
        document["devices_at_seconds"] = json!(behind);
    }
    let behind = |ran: &Ran<'_>| ran.frame.offset_seconds - together.calls_frame.offset_seconds;
    let with_place = |ran: &Ran<'_>| {
        let mut run = run(ran);
        run["at_seconds"] = json!(behind(ran));
        run
    };
    document["runs"] = json!(together.runs.iter().map(with_place).collect::<Vec<_>>());
    document
}

/// A run of Takeup itself: its `--json` document, and its stages over time.
pub fn run(ran: &Ran<'_>) -> Value {
    let record = ran.record;
    let stage = |it: &RecordedStage| json!({ "name": it.report.kind, "over_time": it.over_time });
    json!({
        "began_unix_seconds": record.began_unix_seconds,
        "seconds": record.seconds,
        "run": record.summary,
        "stages": record.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

/// Changes the document for an import: lines instead of events, and no time of day.
pub fn imported(document: &mut Value, lines: u64) {
    document["lines"] = json!(lines);
    if let Some(fields) = document.as_object_mut() {
        for name in ["events", "subject", "began", "began_unix_seconds", "is_cut"] {
            fields.remove(name);
        }
        for name in ["devices", "devices_at_seconds", "runs"] {
            fields.remove(name);
        }
    }
}
