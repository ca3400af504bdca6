//! The state of the disk, as its status file has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::backing::{Access, Backing};
use super::queue::{Clock, Reading};
use crate::speed_up::SpeedUp;
use model::BILLION;
use model::disk::{DiskParameters, Heads, Placement, Positioning};

/// The document in the status file of a virtual disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskStatus {
    /// Its preset.
    pub disk: String,
    /// The file that holds its bytes.
    pub backing: String,
    pub bytes: u64,
    pub read_only: bool,
    /// The last error of the backing file.
    pub trouble: Option<String>,
    pub parameters: DiskProperties,
    /// Reads, writes, flushes and discards.
    pub requests: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    /// Of reads and writes; null before the first one.
    pub mean_request_bytes: Option<f64>,
    /// Requests that wait for their answer now.
    pub in_flight: u64,
    /// Most requests that waited at once.
    pub depth_max: u64,
    /// Missing of a disk that takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<DiskTime>,
}

/// The time of a virtual disk. Times are those of the model: with a speed-up, they pass faster than
/// on the clock. Means and shares are null before the first request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskTime {
    /// How many times as fast as the clock its time runs.
    pub speed_up: Number,
    /// From the first request to the end of the last one.
    pub span_seconds: f64,
    /// Time with a request in flight.
    pub busy_seconds: f64,
    pub busy_share: Option<f64>,
    /// Mean over the servers.
    pub server_busy_share: Option<f64>,
    /// Of a piece at its server.
    pub mean_service_seconds: Option<f64>,
    /// From call to completion.
    pub mean_response_seconds: Option<f64>,
    /// Mean number of requests in flight.
    pub mean_depth: Option<f64>,
    /// Pieces beyond the first of each request.
    pub split_pieces: u64,
    pub seeks: u64,
    /// Assumed time through the kernel and back.
    pub round_trip_seconds: f64,
    /// Answers that came too late by more than a millisecond.
    pub late_requests: u64,
    /// The sum of their delays.
    pub late_seconds: f64,
}

/// The state of a disk now.
pub(super) fn status(preset: &str, backing: &Backing, reading: &Reading) -> DiskStatus {
    let (tally, counters) = (&reading.tally, &reading.counters);
    let requests = counters.requests + counters.flushes + counters.discards;
    DiskStatus {
        disk: preset.to_owned(),
        backing: backing.path().display().to_string(),
        bytes: backing.bytes(),
        read_only: backing.access() == Access::ReadOnly,
        trouble: backing.trouble(),
        parameters: DiskProperties::from(&reading.parameters),
        requests,
        reads: tally.reads,
        read_bytes: tally.read_bytes,
        writes: tally.writes,
        written_bytes: tally.written_bytes,
        flushes: counters.flushes,
        discards: counters.discards,
        mean_request_bytes: per(counters.bytes as f64, counters.requests as f64),
        in_flight: reading.in_flight as u64,
        depth_max: reading.depth_max as u64,
        time: match reading.clock {
            Clock::Times(speed_up) => Some(time(speed_up, reading, requests)),
            Clock::None => None,
        },
    }
}

fn time(speed_up: SpeedUp, reading: &Reading, requests: u64) -> DiskTime {
    let (tally, counters) = (&reading.tally, &reading.counters);
    let span = tally.span_ns() as f64;
    let servers = reading.parameters.servers as f64;
    DiskTime {
        speed_up: speed_up.document(),
        span_seconds: seconds(tally.span_ns()),
        busy_seconds: seconds(tally.busy_ns()),
        busy_share: per(tally.busy_ns() as f64, span),
        server_busy_share: per(counters.busy_ns as f64, span * servers),
        mean_service_seconds: per(seconds(counters.busy_ns), counters.pieces as f64),
        mean_response_seconds: per(seconds(tally.response_ns), requests as f64),
        mean_depth: per(tally.response_ns as f64, span),
        split_pieces: counters.pieces - counters.requests,
        seeks: counters.seeks,
        round_trip_seconds: reading.round_trip.as_secs_f64(),
        late_requests: tally.late,
        late_seconds: seconds(tally.late_ns),
    }
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
    /// Extra time of a request that does not start where the last one ended; with heads, its mean.
    pub seek_seconds: f64,
    /// Missing of a disk whose seeks all take the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadProperties>,
    /// Rate at which the bytes of one request pass, with heads on the outermost track; null if
    /// nothing limits it.
    pub server_bytes_per_second: Option<u64>,
    /// Rate of the disk as a whole.
    pub link_bytes_per_second: u64,
    /// The largest request; larger ones are split.
    pub request_bytes_max: u64,
}

/// The heads of a disk, or of each disk of an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadProperties {
    /// Bytes over which the whole way of the arm is spread.
    pub capacity_bytes: u64,
    pub turns_per_minute: u64,
    /// To the next cylinder.
    pub single_seek_seconds: f64,
    /// Mean over all pairs of cylinders, without the wait for a turn.
    pub average_seek_seconds: f64,
    /// From the first cylinder to the last.
    pub full_seek_seconds: f64,
    /// Requests among which the drive chooses the next one.
    pub queue: u64,
    /// Rate of the innermost track in percent of that of the outermost.
    pub inner_rate_percent: u64,
    /// Bytes that the drive reads on behind a read.
    pub read_on_bytes: u64,
}

impl From<&Heads> for HeadProperties {
    fn from(heads: &Heads) -> HeadProperties {
        HeadProperties {
            capacity_bytes: heads.capacity_bytes,
            turns_per_minute: heads.turns_per_minute,
            single_seek_seconds: seconds(heads.seek.single_ns),
            average_seek_seconds: seconds(heads.seek.average_ns),
            full_seek_seconds: seconds(heads.seek.full_ns),
            queue: heads.queue as u64,
            inner_rate_percent: heads.inner_rate_percent,
            read_on_bytes: heads.read_on_bytes,
        }
    }
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
            seek_seconds: seconds(parameters.positioning.mean_ns()),
            heads: match &parameters.positioning {
                Positioning::Constant { .. } => None,
                Positioning::Heads(heads) => Some(HeadProperties::from(heads)),
            },
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
