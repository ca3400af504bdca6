//! The parameters of a virtual drive, which can differ from its generation's (`sim tape --set`).
//! They come from the status file beside its tape.

use std::path::Path;

use base::format::{rate, size};
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use sim::mount::DeviceStatus;
use sim::mount::drive::ParameterValue;

/// Where the numbers come from.
const AS_SET: &str = "as the virtual drive is set";

/// Parameters of a virtual drive, in real time: with `sim tape --speed-up`, its speeds are higher
/// and its times shorter by that factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtualDrive {
    /// Lowest speed of the tape, in native bytes: after compression by the drive.
    pub lowest_bytes_per_second: u64,
    /// Highest speed of the tape, in native bytes.
    pub highest_bytes_per_second: u64,
    /// Size of the drive's buffer.
    pub buffer_bytes: u64,
    /// How many times faster than real time the drive runs.
    pub speed_up: f64,
    /// Whether the drive compresses.
    pub compresses: bool,
    /// Time of a command beside its bytes.
    pub command_seconds: Option<f64>,
    /// Highest rate of the host interface.
    pub interface_bytes_per_second: Option<f64>,
    /// Time of a filemark once everything is on the medium.
    pub synchronise_seconds: Option<f64>,
    /// Time of a back-hitch.
    pub stop_seconds: Option<f64>,
    /// Content of the buffer at which the tape starts.
    pub start_bytes: Option<f64>,
}

impl VirtualDrive {
    /// The virtual drive with this tape file; `None` for a real drive, and with `--time none`.
    pub fn of_tape(device: &str) -> Option<VirtualDrive> {
        let status = DeviceStatus::of_tape(Path::new(device))?;
        let time = status.time?;
        let speed_up = time.speed_up.as_f64()?;
        let speed = |there: u64| (there as f64 * speed_up) as u64;
        let parameter = |name: &str| Some(time.parameter(name)? as f64);
        let seconds = |name: &str| Some(parameter(name)? / 1e9 / speed_up);
        let restart_percent = parameter("restart_fill_percent");
        Some(VirtualDrive {
            lowest_bytes_per_second: speed(time.lowest_bytes_per_second),
            highest_bytes_per_second: speed(time.highest_bytes_per_second),
            buffer_bytes: time.buffer_bytes,
            speed_up,
            compresses: status.compression,
            command_seconds: seconds("command_overhead_ns"),
            interface_bytes_per_second: parameter("host_bytes_per_second")
                .map(|rate| rate * speed_up),
            synchronise_seconds: seconds("synchronise_ns"),
            stop_seconds: seconds("back_hitch_ns"),
            start_bytes: restart_percent.map(|percent| time.buffer_bytes as f64 * percent / 100.0),
        })
    }

    /// The parameters of the model of the virtual drive with this tape file, and how many times
    /// faster than real time it runs; `None` for a real drive, and with `--time none`.
    pub(crate) fn parameters_of_tape(device: &str) -> Option<(TapeParameters, f64)> {
        let status = DeviceStatus::of_tape(Path::new(device))?;
        let time = status.time?;
        let speed_up = time.speed_up.as_f64()?;
        let generation = Generation::all().iter().find(|it| it.name == status.drive)?;
        let mut parameters = TapeParameters::of(generation);
        for row in &time.parameters {
            match &row.value {
                ParameterValue::One(value) => {
                    parameters.set(&row.name, *value);
                }
                ParameterValue::Several(speeds) => parameters.set_speeds(speeds),
            }
        }
        Some((parameters, speed_up))
    }

    /// Where the speeds come from, in words.
    pub fn certainty(&self) -> String {
        match self.speed_up {
            1.0 => AS_SET.to_owned(),
            times => format!("{AS_SET}, its time {times} times as fast"),
        }
    }

    /// The speeds in words.
    pub fn speeds(&self) -> String {
        let [low, high] = [self.lowest_bytes_per_second, self.highest_bytes_per_second];
        let sure = self.certainty();
        format!("{} at least, up to {}, {sure}", rate(low as f64), rate(high as f64))
    }

    /// The buffer in words.
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
