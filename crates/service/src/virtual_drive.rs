//! What a virtual drive is taken to be: other numbers than those of its generation, where its user
//! has set them (`sim tape --set`). They stand in the status file beside its tape.

use std::path::Path;

use base::format::{rate, size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// The words for how sure the numbers are.
const AS_SET: &str = "as the virtual drive is set";

/// Numbers of a virtual drive, in the time of this machine: where its own runs faster
/// (`sim tape --speed-up`), so does its tape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtualDrive {
    /// Of native bytes, as the highest.
    pub lowest_bytes_per_second: u64,
    /// See there.
    pub highest_bytes_per_second: u64,
    /// Its buffer.
    pub buffer_bytes: u64,
    /// How many times as fast as ours its time runs.
    pub speed_up: f64,
    /// Whether it compresses what it is given.
    pub compresses: bool,
    /// What a command takes beside its bytes, in seconds, where the drive says so.
    pub command_seconds: Option<f64>,
    /// What its interface takes at most.
    pub interface_bytes_per_second: Option<f64>,
    /// What a filemark takes once everything is on the medium, in seconds.
    pub synchronise_seconds: Option<f64>,
    /// What going back behind a stop and starting again takes, in seconds.
    pub stop_seconds: Option<f64>,
    /// What its buffer holds when it starts.
    pub start_bytes: Option<f64>,
}

impl VirtualDrive {
    /// The one whose tape file this is; `None` of a real drive, and of one that takes no time.
    pub fn of_tape(device: &str) -> Option<VirtualDrive> {
        let status =
            machine::small_file::regular(&Path::new(device).parent()?.join("status")).ok()?;
        let status: Value = serde_json::from_slice(&status).ok()?;
        status.get("drive")?;
        let number = |name: &str| status.get("time")?.get(name)?.as_u64();
        let speed_up = status.get("time")?.get("speed_up")?.as_f64()?;
        let speed = |name: &str| Some((number(name)? as f64 * speed_up) as u64);
        let parameter = |name: &str| {
            let rows = status.get("time")?.get("parameters")?.as_array()?;
            rows.iter().find(|row| row["name"] == name)?["value"].as_f64()
        };
        let seconds = |name: &str| Some(parameter(name)? / 1e9 / speed_up);
        let buffer_bytes = number("buffer_bytes")?;
        let restart_percent = parameter("restart_fill_percent");
        Some(VirtualDrive {
            lowest_bytes_per_second: speed("lowest_bytes_per_second")?,
            highest_bytes_per_second: speed("highest_bytes_per_second")?,
            buffer_bytes,
            speed_up,
            // Unless it says that it does not.
            compresses: status.get("compression").and_then(Value::as_bool).unwrap_or(true),
            command_seconds: seconds("command_overhead_ns"),
            interface_bytes_per_second: parameter("host_bytes_per_second")
                .map(|rate| rate * speed_up),
            synchronise_seconds: seconds("synchronise_ns"),
            stop_seconds: seconds("back_hitch_ns"),
            start_bytes: restart_percent.map(|percent| buffer_bytes as f64 * percent / 100.0),
        })
    }

    /// How sure its speeds are, in words.
    pub fn certainty(&self) -> String {
        match self.speed_up {
            1.0 => AS_SET.to_owned(),
            times => format!("{AS_SET}, its time {times} times as fast"),
        }
    }

    /// Its speeds in words.
    pub fn speeds(&self) -> String {
        let [low, high] = [self.lowest_bytes_per_second, self.highest_bytes_per_second];
        let sure = self.certainty();
        format!("{} at least, up to {}, {sure}", rate(low as f64), rate(high as f64))
    }

    /// Its buffer in words.
    pub fn buffer(&self) -> String {
        format!("{}, {AS_SET}", size(self.buffer_bytes))
    }
}

/// What a virtual drive was set to, as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualDriveAnswer {
    /// Of native data.
    pub lowest_bytes_per_second: u64,
    /// Of native data.
    pub highest_bytes_per_second: u64,
    /// Its buffer.
    pub buffer_bytes: u64,
    /// How many times as fast as the clock its time runs.
    pub speed_up: Number,
}

impl VirtualDriveAnswer {
    /// What a drive was set to.
    pub fn of(drive: &VirtualDrive) -> VirtualDriveAnswer {
        let whole = (drive.speed_up.fract() == 0.0).then(|| Number::from(drive.speed_up as u64));
        VirtualDriveAnswer {
            lowest_bytes_per_second: drive.lowest_bytes_per_second,
            highest_bytes_per_second: drive.highest_bytes_per_second,
            buffer_bytes: drive.buffer_bytes,
            speed_up: whole.or_else(|| Number::from_f64(drive.speed_up)).unwrap_or(Number::from(1)),
        }
    }
}
