//! An interval as a line of JSON.

use base::calendar::time_text;
use base::finding::Finding;
use serde::Serialize;
use storage::queue::Queue;
use watch::columns::IostatObject;
use watch::intervals::{CounterState, DeviceInterval, InFlight, Interval};
use watch::tapes::TapeInterval;

/// Fields are added, never renamed.
#[derive(Serialize)]
struct Document<'a> {
    command: &'static str,
    /// In UTC.
    time: String,
    unix_seconds: i64,
    seconds: f64,
    devices: Vec<Device<'a>>,
    tapes: &'a [TapeInterval],
    vanished: &'a [String],
}

#[derive(Serialize)]
struct Device<'a> {
    device: &'a str,
    number: String,
    state: CounterState,
    iostat: IostatObject<'a>,
    in_flight: InFlight,
    queue: Option<&'a Queue>,
    findings: &'a [Finding],
}

/// The line, with its end.
pub fn line(interval: &Interval) -> String {
    let document = Document {
        command: "watch",
        time: time_text(interval.unix_seconds),
        unix_seconds: interval.unix_seconds,
        seconds: interval.seconds,
        devices: interval.devices.iter().map(device).collect(),
        tapes: &interval.tapes,
        vanished: &interval.vanished,
    };
    // It has only string keys, and no number that JSON cannot represent.
    let line = serde_json::to_string(&document).expect("plain numbers and texts");
    line + "\n"
}

fn device(interval: &DeviceInterval) -> Device<'_> {
    let (major, minor) = interval.number;
    Device {
        device: &interval.name,
        number: format!("{major}:{minor}"),
        state: interval.state,
        iostat: IostatObject { device: &interval.name, columns: &interval.columns },
        in_flight: interval.in_flight,
        queue: interval.queue.as_ref(),
        findings: &interval.findings,
    }
}
