//! The state of the disk, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::backing::{Access, Backing};
use super::queue::{Clock, Reading};
use model::BILLION;
use model::disk::{DiskParameters, Placement};

/// The text of the status file.
pub(super) fn to_json(preset: &str, backing: &Backing, reading: &Reading) -> String {
    let (tally, counters) = (&reading.tally, &reading.counters);
    let requests = counters.requests + counters.flushes + counters.discards;
    let mut document = json!({
        "disk": preset,
        "backing": backing.path().display().to_string(),
        "bytes": backing.bytes(),
        "read_only": backing.access() == Access::ReadOnly,
        "trouble": backing.trouble(),
        "parameters": DiskProperties::from(&reading.parameters),
        "requests": requests,
        "reads": tally.reads,
        "read_bytes": tally.read_bytes,
        "writes": tally.writes,
        "written_bytes": tally.written_bytes,
        "flushes": counters.flushes,
        "discards": counters.discards,
        "mean_request_bytes": per(counters.bytes as f64, counters.requests as f64),
        "in_flight": reading.in_flight,
        "depth_max": tally.depth_max,
    });
    if let Clock::Times(speed_up) = reading.clock {
        let span = reading.span_ns as f64;
        let servers = reading.parameters.servers as f64;
        document["time"] = json!({
            "speed_up": speed_up.document(),
            "span_seconds": seconds(reading.span_ns),
            "busy_seconds": seconds(tally.busy_ns),
            "busy_share": per(tally.busy_ns as f64, span),
            "server_busy_share": per(counters.busy_ns as f64, span * servers),
            "mean_service_seconds": per(seconds(counters.busy_ns), counters.pieces as f64),
            "mean_response_seconds": per(seconds(tally.response_ns), requests as f64),
            "mean_depth": per(tally.response_ns as f64, span),
            "split_pieces": counters.pieces - counters.requests,
            "seeks": counters.seeks,
            "round_trip_seconds": reading.round_trip.as_secs_f64(),
            "late_requests": tally.late,
            "late_seconds": seconds(tally.late_ns),
        });
    }
    format!("{document:#}\n")
}

/// The properties of a disk, as a part of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskProperties {
    /// Requests that are served at once.
    pub parallel: u64,
    /// Bytes in a row on one server, where the place of a request chooses its server.
    pub stripe_bytes: Option<u64>,
    /// Time of a request besides its bytes.
    pub command_seconds: f64,
    /// Extra time of a request that does not start where the last one ended.
    pub seek_seconds: f64,
    /// Rate at which the bytes of one request pass; null if nothing limits it.
    pub server_bytes_per_second: Option<u64>,
    /// Rate of the disk as a whole.
    pub link_bytes_per_second: u64,
    /// The largest request; larger ones are split.
    pub request_bytes_max: u64,
}

impl From<&DiskParameters> for DiskProperties {
    fn from(parameters: &DiskParameters) -> DiskProperties {
        let server_rate = parameters.server_bytes_per_second;
        DiskProperties {
            parallel: parameters.servers as u64,
            stripe_bytes: match parameters.placement {
                Placement::AnyServer => None,
                Placement::Striped { stripe_bytes } => Some(stripe_bytes),
            },
            command_seconds: seconds(parameters.command_ns),
            seek_seconds: seconds(parameters.seek_ns),
            server_bytes_per_second: (server_rate != u64::MAX).then_some(server_rate),
            link_bytes_per_second: parameters.link_bytes_per_second,
            request_bytes_max: parameters.request_bytes_max,
        }
    }
}

fn per(amount: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| amount / of)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / BILLION as f64
}
