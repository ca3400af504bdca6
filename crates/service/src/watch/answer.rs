//! An interval as a line of JSON.

use base::calendar::time_text;
use base::finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::queue::Queue;
use watch::columns::IostatObject;
use watch::intervals::{CounterState, DeviceInterval, InFlight, Interval};
use watch::tapes::TapeInterval;

/// An interval. Fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchLine {
    /// Always `watch`.
    pub command: String,
    /// The end of the interval, in UTC.
    pub time: String,
    /// The same in seconds since 1970.
    pub unix_seconds: i64,
    /// The length of the interval.
    pub seconds: f64,
    /// The devices, in the kernel's order.
    pub devices: Vec<DeviceLine>,
    /// The tape drives, by name.
    pub tapes: Vec<TapeInterval>,
    /// Names of devices that have disappeared.
    pub vanished: Vec<String>,
}

/// A device over an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLine {
    pub device: String,
    /// Its number, major:minor; 0:0 for hidden paths.
    pub number: String,
    pub state: CounterState,
    /// The columns of `iostat -x`.
    pub iostat: IostatObject,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// Its queue, when it was last read.
    pub queue: Option<Queue>,
    /// What the numbers mean.
    pub findings: Vec<Finding>,
}

impl WatchLine {
    /// The line of an interval.
    pub fn of(interval: &Interval) -> WatchLine {
        WatchLine {
            command: "watch".to_owned(),
            time: time_text(interval.unix_seconds),
            unix_seconds: interval.unix_seconds,
            seconds: interval.seconds,
            devices: interval.devices.iter().map(device).collect(),
            tapes: interval.tapes.clone(),
            vanished: interval.vanished.clone(),
        }
    }

    /// As it is printed, with its end.
    ///
    /// # Panics
    /// Never: it has only keys that are texts, and no number that JSON cannot represent.
    pub fn printed(&self) -> String {
        serde_json::to_string(self).expect("plain numbers and texts") + "\n"
    }
}

fn device(interval: &DeviceInterval) -> DeviceLine {
    let (major, minor) = interval.number;
    DeviceLine {
        device: interval.name.clone(),
        number: format!("{major}:{minor}"),
        state: interval.state,
        iostat: IostatObject::of(&interval.name, &interval.columns),
        in_flight: interval.in_flight,
        queue: interval.queue.clone(),
        findings: interval.findings.clone(),
    }
}
