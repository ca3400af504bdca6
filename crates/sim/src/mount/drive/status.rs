//! The state of the drive, as its status file has it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::tape::Glance;
use crate::tape::real_time::Reading;
use model::BILLION;
use model::tape::Motion;
use model::tape::parameters::ParameterRow;

/// The document in the status file of a virtual drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveStatus {
    /// Its generation.
    pub drive: String,
    /// The file of the cartridge, if one was chosen.
    pub medium: Option<String>,
    /// Whether a cartridge is threaded.
    pub loaded: bool,
    pub write_protected: bool,
    /// Whether the drive compresses.
    pub compression: bool,
    /// Number of the next object on the medium: a block or a filemark.
    pub position: u64,
    /// The driver's file number, if it is known.
    pub file_number: Option<u32>,
    /// The driver's block number in that file, if it is known.
    pub block_number: Option<u32>,
    /// Block size in fixed mode; 0 means variable.
    pub block_bytes: u32,
    /// The last storage error of the cartridge, or why it could not be changed.
    pub trouble: Option<String>,
    /// The process that is the drive; older drives do not say.
    #[serde(default)]
    pub process: Option<u32>,
    /// Missing of a drive that takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DriveTime>,
}

/// What a virtual drive did so far. Times and rates are those of the model: with a speed-up, they
/// pass faster than on the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveTime {
    /// Since the drive was made.
    pub elapsed_seconds: f64,
    /// How many times as fast as the clock its time runs.
    pub speed_up: Number,
    pub motion: DriveMotion,
    /// The step of its speed, from 1, while the tape moves.
    pub step: Option<u64>,
    /// How many speeds it has.
    pub steps: u64,
    /// Native speed of that step.
    pub speed_bytes_per_second: Option<u64>,
    /// What the host gave or took, over the last ten seconds.
    pub host_bytes_per_second: u64,
    /// What passed the head, over the last ten seconds.
    pub native_bytes_per_second: u64,
    /// Native.
    pub lowest_bytes_per_second: u64,
    /// Native.
    pub highest_bytes_per_second: u64,
    /// Of all data so far.
    pub compression_ratio: f64,
    /// The ratio that the user set.
    pub given_compression_ratio: Option<f64>,
    /// Native bytes in the buffer.
    pub buffered_bytes: u64,
    pub buffer_bytes: u64,
    /// Bytes that passed the interface.
    pub host_bytes: u64,
    /// Bytes that passed the head.
    pub native_bytes: u64,
    pub streaming_seconds: f64,
    /// Stops for lack of data, or of room when reading.
    pub back_hitches: u64,
    pub back_hitch_seconds: f64,
    /// Time in which the tape stood and waited for data.
    pub still_seconds: f64,
    /// Time in which the host waited and no tape passed the head.
    pub lost_seconds: f64,
    /// Ends of wraps.
    pub turns: u64,
    /// Ways to another place.
    pub winds: u64,
    pub wind_seconds: f64,
    /// Filemarks and other commands that had to stop the tape.
    pub synchronisations: u64,
    pub synchronise_seconds: f64,
    /// Time in which the host waited for the buffer.
    pub host_blocked_seconds: f64,
    /// All parameters of the model.
    pub parameters: Vec<DriveParameter>,
}

/// What the tape of a virtual drive does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveMotion {
    Still,
    BackHitch,
    RunUp,
    Turn,
    Streaming,
}

impl DriveMotion {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            DriveMotion::Still => "still",
            DriveMotion::BackHitch => "in a back-hitch",
            DriveMotion::RunUp => "running up",
            DriveMotion::Turn => "turning at the end of a wrap",
            DriveMotion::Streaming => "streaming",
        }
    }
}

impl From<Motion> for DriveMotion {
    fn from(motion: Motion) -> DriveMotion {
        match motion {
            Motion::Still => DriveMotion::Still,
            Motion::BackHitch { .. } => DriveMotion::BackHitch,
            Motion::RunUp { .. } => DriveMotion::RunUp,
            Motion::Turn { .. } => DriveMotion::Turn,
            Motion::Streaming { .. } => DriveMotion::Streaming,
        }
    }
}

/// A parameter of the model of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveParameter {
    /// Its unit is the end of the name.
    pub name: String,
    pub value: ParameterValue,
    /// Where the value comes from: maker, reported, assumed, given or fitted.
    pub origin: String,
}

/// The value of a parameter; the speeds are several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParameterValue {
    One(u64),
    Several(Vec<u64>),
}

impl DriveTime {
    /// The value of a parameter that has one.
    pub fn parameter(&self, name: &str) -> Option<u64> {
        let row = self.parameters.iter().find(|row| row.name == name)?;
        match row.value {
            ParameterValue::One(value) => Some(value),
            ParameterValue::Several(_) => None,
        }
    }
}

/// Where the content of the status file comes from.
pub(super) struct StatusSources<'a> {
    pub(super) generation: &'a str,
    pub(super) medium: Option<&'a Path>,
    pub(super) glance: &'a Glance,
    /// `None` if the drive takes no time.
    pub(super) reading: Option<&'a Reading>,
    pub(super) trouble: Option<&'a str>,
}

impl StatusSources<'_> {
    pub(super) fn status(&self) -> DriveStatus {
        let glance = self.glance;
        DriveStatus {
            drive: self.generation.to_owned(),
            medium: self.medium.map(|path| path.display().to_string()),
            loaded: glance.loaded,
            write_protected: glance.write_protected,
            compression: glance.compression,
            position: glance.position,
            file_number: glance.file_number,
            block_number: glance.block_number,
            block_bytes: glance.block_bytes,
            trouble: self.trouble.map(str::to_owned),
            process: Some(std::process::id()),
            time: self.reading.map(time),
        }
    }
}

fn time(reading: &Reading) -> DriveTime {
    let counters = &reading.counters;
    let parameters = &reading.parameters;
    let step = match reading.motion {
        Motion::Streaming { step, .. } | Motion::Turn { step, .. } => Some(step),
        Motion::Still | Motion::BackHitch { .. } | Motion::RunUp { .. } => None,
    };
    let speed = step.and_then(|step| parameters.speeds_bytes_per_second.get(step));
    let ratio = match counters.compressed_bytes {
        0 => 1.0,
        compressed => counters.host_bytes as f64 / compressed as f64,
    };
    DriveTime {
        elapsed_seconds: seconds(reading.elapsed_ns),
        speed_up: reading.speed_up.document(),
        motion: reading.motion.into(),
        step: step.map(|step| step as u64 + 1),
        steps: parameters.speeds_bytes_per_second.len() as u64,
        speed_bytes_per_second: speed.copied(),
        host_bytes_per_second: reading.host_bytes_per_second,
        native_bytes_per_second: reading.native_bytes_per_second,
        lowest_bytes_per_second: parameters.lowest_bytes_per_second(),
        highest_bytes_per_second: parameters.highest_bytes_per_second(),
        compression_ratio: ratio,
        given_compression_ratio: reading.given_ratio,
        buffered_bytes: reading.buffered_bytes,
        buffer_bytes: parameters.buffer_bytes.value,
        host_bytes: counters.host_bytes as u64,
        native_bytes: (counters.medium_nanobytes / u128::from(BILLION)) as u64,
        streaming_seconds: seconds(counters.streaming_ns()),
        back_hitches: counters.back_hitches,
        back_hitch_seconds: seconds(counters.back_hitch_ns),
        still_seconds: seconds(counters.still_ns),
        lost_seconds: seconds(counters.lost_ns),
        turns: counters.turns,
        winds: counters.winds,
        wind_seconds: seconds(counters.wind_ns),
        synchronisations: counters.synchronisations,
        synchronise_seconds: seconds(counters.synchronise_ns),
        host_blocked_seconds: seconds(counters.host_blocked_ns),
        parameters: parameters.rows().iter().map(DriveParameter::from).collect(),
    }
}

impl From<&ParameterRow> for DriveParameter {
    fn from(row: &ParameterRow) -> DriveParameter {
        let value = match &row.values[..] {
            [one] => ParameterValue::One(*one),
            all => ParameterValue::Several(all.to_vec()),
        };
        DriveParameter { name: row.name.to_owned(), value, origin: row.origin.name().to_owned() }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / BILLION as f64
}
