//! Where the requests of a device wait: in the host, in the device's queue, or for the device.

use base::finding::{Certainty, Finding, Unit};

use super::{REQUESTS_MIN, milliseconds, requests};
use crate::intervals::DeviceInterval;
use crate::rules;

/// Above this multiple of the queue depth, requests wait in the host.
const ABOVE: f64 = 1.1;
/// A queue counts as full with this share of its depth.
const FULL: f64 = 0.9;
/// With this few requests in flight there is no queue.
const FEW: f64 = 2.0;
/// A device that is busy for less of the time is not the limit.
const HALF_PERCENT: f64 = 50.0;
/// Devices with a smaller depth are full with one request.
const DEPTH_MIN: f64 = 4.0;
/// Busy all the time, with a margin for the clock.
const ALWAYS_PERCENT: f64 = 95.0;
/// Milliseconds that a request may take, and milliseconds per MiB: without rotation the 500 MB/s of
/// a SATA disk; on a rotating disk two turns, a seek and 100 MB/s.
const SLOW: (f64, f64) = (5.0, 2.0);
const SLOW_ROTATIONAL: (f64, f64) = (30.0, 10.0);

/// At most one finding.
pub(super) fn findings(device: &DeviceInterval) -> Option<Finding> {
    if requests(device) < REQUESTS_MIN {
        return None;
    }
    let queue = device.queue.as_ref();
    let depth = queue.and_then(storage::queue::Queue::depth).map(|depth| depth as f64);
    let scheduled = queue.and_then(storage::queue::Queue::scheduled_depth).map(|it| it as f64);
    let length = device.columns.queue_length;
    let found = match (depth, scheduled) {
        (Some(depth), _) if length > ABOVE * depth => in_host(length, depth),
        (_, Some(scheduled)) if length >= FULL * scheduled => all_taken(length, scheduled),
        (Some(depth), _) if depth >= DEPTH_MIN && length >= FULL * depth => full(length, depth),
        _ => slow(device).or_else(|| room_left(device, depth))?,
    };
    let found = found.with_number("in flight", length, Unit::Count);
    Some(match depth {
        Some(depth) => found.with_number("device takes", depth, Unit::Count),
        None => found,
    })
}

fn in_host(length: f64, depth: f64) -> Finding {
    let waiting = length - depth;
    let what = format!("the queue is in the host: {length:.1} requests in flight");
    let why = format!("the device accepts {depth} at once, so {waiting:.1} wait");
    let finding = Finding::new(&rules::QUEUE_IN_HOST, Certainty::Measured, what).because(why);
    finding.with_action("submit fewer requests at once: they wait less, and the rate stays")
}

fn all_taken(length: f64, scheduled: f64) -> Finding {
    let what = format!("the queue is in the host, and full: {length:.1} requests in flight");
    let why =
        format!("the scheduler's queue (nr_requests) holds {scheduled}, further requests wait");
    Finding::new(&rules::QUEUE_IN_HOST, Certainty::Measured, what).because(why)
}

fn full(length: f64, depth: f64) -> Finding {
    let what = format!("the device's queue is full: {length:.1} requests in flight of {depth}");
    let why = "more at once would wait in the host";
    Finding::new(&rules::QUEUE_FULL, Certainty::Measured, what).because(why)
}

fn slow(device: &DeviceInterval) -> Option<Finding> {
    let columns = &device.columns;
    if columns.queue_length > FEW || columns.busy_percent < HALF_PERCENT {
        return None;
    }
    let rotational = device.queue.as_ref().and_then(|queue| queue.rotational);
    let (base, for_mib) = if rotational == Some(0) { SLOW } else { SLOW_ROTATIONAL };
    let directions = [("read", &columns.read), ("write", &columns.write)];
    let is_slow = |(_, it): &(&str, &crate::columns::DirectionColumns)| {
        it.await_ms > base + for_mib * it.request_kib / 1024.0
    };
    let (name, slowest) = directions
        .into_iter()
        .filter(is_slow)
        .max_by(|(_, a), (_, b)| a.await_ms.total_cmp(&b.await_ms))?;
    let time = milliseconds(slowest.await_ms);
    let what = format!("the device itself is slow: a {name} takes {time}");
    let why = format!("with {:.1} in flight there is no queue to wait in", columns.queue_length);
    let finding = Finding::new(&rules::SLOW, Certainty::Inferred, what).because(why);
    Some(finding.with_number("time", slowest.await_ms / 1e3, Unit::Seconds))
}

fn room_left(device: &DeviceInterval, depth: Option<f64>) -> Option<Finding> {
    let columns = &device.columns;
    let depth = depth.filter(|depth| *depth >= DEPTH_MIN)?;
    let rotational = device.queue.as_ref().and_then(|queue| queue.rotational);
    if columns.busy_percent < ALWAYS_PERCENT
        || columns.queue_length > depth / 2.0
        || rotational != Some(0)
    {
        return None;
    }
    let (busy, length) = (columns.busy_percent, columns.queue_length);
    let what =
        format!("%util of {busy:.0} is not full load: {length:.1} of {depth} requests in flight");
    let why = "it only means that there was always one; the device can serve more at once";
    Some(Finding::new(&rules::ROOM_LEFT, Certainty::Inferred, what).because(why))
}
