//! What a device did over time, with at most as many points as fit a figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceHistory, History, Sample};

/// Maximum number of points of a series.
pub const POINTS_MAX: usize = 240;

/// A part of the time of a record, with means over it (over its requests where they are of
/// requests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Its middle, in seconds since the beginning of the record.
    pub at_seconds: f64,
    pub read: PointDirection,
    pub write: PointDirection,
    pub discard: PointDirection,
    pub flushes_per_second: f64,
    /// Requests in flight on average.
    pub queue_length: f64,
    /// The largest sampled number of requests in flight.
    pub in_flight_most: u32,
    /// The share of the time with a request in flight, in per cent.
    pub busy_percent: f64,
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointDirection {
    pub bytes_per_second: f64,
    pub requests_per_second: f64,
    /// Mean latency in milliseconds; `None` without requests.
    pub await_ms: Option<f64>,
}

/// The series of a device, from its first to its last appearance.
pub fn series(history: &History, device: &DeviceHistory) -> Vec<Point> {
    let count = usize::try_from(history.intervals).unwrap_or(POINTS_MAX).clamp(1, POINTS_MAX);
    let width = (history.seconds / count as f64).max(1e-6);
    let mut sums = vec![Point::default(); count];
    // The first point that overlaps the sample; samples are in order.
    let mut first = 0;
    for sample in &device.samples {
        let begin = sample.end_seconds - sample.seconds;
        while first + 1 < count && (first + 1) as f64 * width <= begin + 1e-9 * width {
            first += 1;
        }
        add(&mut sums, first, sample, width);
    }
    for (number, point) in sums.iter_mut().enumerate() {
        point.at_seconds = (number as f64 + 0.5) * width;
        for direction in [&mut point.read, &mut point.write, &mut point.discard] {
            let requests = direction.requests_per_second;
            direction.await_ms =
                direction.await_ms.filter(|_| requests > 0.0).map(|sum| sum / requests);
            direction.requests_per_second /= width;
            direction.bytes_per_second /= width;
        }
        point.flushes_per_second /= width;
        point.queue_length /= width;
        point.busy_percent /= width;
    }
    let is_there = |point: &Point| {
        point.at_seconds + width / 2.0 > device.since_seconds
            && point.at_seconds - width / 2.0 < device.until_seconds
    };
    sums.retain(is_there);
    sums
}

/// Adds the overlapping part of a sample to each point.
fn add(sums: &mut [Point], first: usize, sample: &Sample, width: f64) {
    let begin = sample.end_seconds - sample.seconds;
    for (number, point) in sums.iter_mut().enumerate().skip(first) {
        let (from, until) = (number as f64 * width, (number + 1) as f64 * width);
        let seconds = until.min(sample.end_seconds) - from.max(begin);
        if seconds <= 1e-9 * width {
            break;
        }
        let columns = &sample.columns;
        let directions = [
            (&mut point.read, &columns.read),
            (&mut point.write, &columns.write),
            (&mut point.discard, &columns.discard),
        ];
        for (sum, it) in directions {
            let requests = it.requests_per_second * seconds;
            sum.requests_per_second += requests;
            sum.bytes_per_second += it.kib_per_second * 1024.0 * seconds;
            *sum.await_ms.get_or_insert(0.0) += it.await_ms * requests;
        }
        point.flushes_per_second += columns.flushes_per_second * seconds;
        point.queue_length += columns.queue_length * seconds;
        point.in_flight_most = point.in_flight_most.max(sample.in_flight);
        point.busy_percent += columns.busy_percent * seconds;
    }
}
