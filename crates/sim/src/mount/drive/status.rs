//! The state of the drive, as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::tape::Glance;
use crate::tape::real_time::Reading;
use model::BILLION;
use model::tape::Motion;
use model::tape::parameters::ParameterRow;

/// The content of the status file.
pub(super) struct Status<'a> {
    pub(super) generation: &'a str,
    pub(super) medium: Option<&'a Path>,
    pub(super) glance: &'a Glance,
    /// `None` if the drive takes no time.
    pub(super) reading: Option<&'a Reading>,
    pub(super) trouble: Option<&'a str>,
}

impl Status<'_> {
    pub(super) fn to_json(&self) -> String {
        let glance = self.glance;
        let mut document = json!({
            "drive": self.generation,
            "medium": self.medium.map(|path| path.display().to_string()),
            "loaded": glance.loaded,
            "write_protected": glance.write_protected,
            "compression": glance.compression,
            "position": glance.position,
            "file_number": glance.file_number,
            "block_number": glance.block_number,
            "block_bytes": glance.block_bytes,
            "trouble": self.trouble,
        });
        if let Some(reading) = self.reading {
            document["time"] = time(reading);
        }
        format!("{document:#}\n")
    }
}

fn time(reading: &Reading) -> Value {
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
    json!({
        "elapsed_seconds": seconds(reading.elapsed_ns),
        "speed_up": reading.speed_up.document(),
        "motion": motion_name(reading.motion),
        "step": step.map(|step| step + 1),
        "steps": parameters.speeds_bytes_per_second.len(),
        "speed_bytes_per_second": speed,
        "host_bytes_per_second": reading.host_bytes_per_second,
        "native_bytes_per_second": reading.native_bytes_per_second,
        "lowest_bytes_per_second": parameters.lowest_bytes_per_second(),
        "highest_bytes_per_second": parameters.highest_bytes_per_second(),
        "compression_ratio": ratio,
        "given_compression_ratio": reading.given_ratio,
        "buffered_bytes": reading.buffered_bytes,
        "buffer_bytes": parameters.buffer_bytes.value,
        "host_bytes": counters.host_bytes as u64,
        "native_bytes": (counters.medium_nanobytes / u128::from(BILLION)) as u64,
        "streaming_seconds": seconds(counters.streaming_ns()),
        "back_hitches": counters.back_hitches,
        "back_hitch_seconds": seconds(counters.back_hitch_ns),
        "still_seconds": seconds(counters.still_ns),
        "lost_seconds": seconds(counters.lost_ns),
        "turns": counters.turns,
        "winds": counters.winds,
        "wind_seconds": seconds(counters.wind_ns),
        "synchronisations": counters.synchronisations,
        "synchronise_seconds": seconds(counters.synchronise_ns),
        "host_blocked_seconds": seconds(counters.host_blocked_ns),
        "parameters": parameters.rows().iter().map(parameter).collect::<Vec<_>>(),
    })
}

/// A model parameter of the drive, and where its value comes from.
fn parameter(row: &ParameterRow) -> Value {
    let value = match &row.values[..] {
        [one] => json!(one),
        all => json!(all),
    };
    json!({ "name": row.name, "value": value, "origin": row.origin.name() })
}

fn motion_name(motion: Motion) -> &'static str {
    match motion {
        Motion::Still => "still",
        Motion::BackHitch { .. } => "back-hitch",
        Motion::RunUp { .. } => "run-up",
        Motion::Turn { .. } => "turn",
        Motion::Streaming { .. } => "streaming",
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / BILLION as f64
}
