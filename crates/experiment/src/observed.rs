//! Observations from outside during a run: the device's counters, pages evicted from the cache,
//! processor time.
//!
//! Counters of a device count all programs; on a machine that does other things meanwhile they
//! exceed what the run did.

use std::collections::BTreeMap;
use std::time::Instant;

use machine::counters::disk::{Direction, DiskCounters};
use machine::counters::memory::reclaimed_pages;
use machine::counters::processor::process_ns;
use storage::layers::Storage;

/// The state before a run.
#[derive(Debug)]
pub struct Before {
    counters: Option<DiskCounters>,
    reclaimed_pages: Option<u64>,
    processor_ns: u64,
    start: Instant,
}

/// The direction of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Reads.
    Reading,
    /// Writes.
    Writing,
    /// Both.
    Mixed,
    /// Discards.
    Discarding,
}

impl Before {
    /// Reads the counters before a run.
    pub fn look(device: &Storage) -> Before {
        Before { counters: device.counters(), ..Before::look_at_this_machine() }
    }

    /// Reads the counters before a run without a device of its own.
    pub fn look_at_this_machine() -> Before {
        Before {
            counters: None,
            reclaimed_pages: reclaimed_pages().ok(),
            processor_ns: process_ns(),
            start: Instant::now(),
        }
    }

    /// Whether the device has served a request since then.
    pub fn is_busy_since(&self, device: &Storage) -> bool {
        let requests = |counters: DiskCounters| {
            let [read, write, discard] = [counters.read, counters.write, counters.discard];
            [read, write, discard, counters.flush].map(|direction| direction.requests)
        };
        match (self.counters, device.counters()) {
            (Some(before), Some(now)) => requests(now) != requests(before),
            _ => false,
        }
    }

    /// Bytes that the device has moved since then, in all directions.
    pub fn device_bytes(&self, device: &Storage) -> Option<u64> {
        let counted = device.counters()?.since(self.counters?);
        Some(counted.read.plus(counted.write).plus(counted.discard).bytes())
    }

    /// Reads the counters again and returns the differences of this machine, for a run that moved
    /// `bytes`.
    pub fn measures_of_this_machine(&self, bytes: u64) -> Measures {
        let bytes = bytes.max(1) as f64;
        let mut measures = Measures::new();
        let used_ns = process_ns().saturating_sub(self.processor_ns) as f64;
        measures.insert("processor_ns_per_byte".to_owned(), used_ns / bytes);
        if let (Some(before), Some(now)) = (self.reclaimed_pages, reclaimed_pages().ok()) {
            let page = rustix::param::page_size() as f64;
            let reclaimed = now.wrapping_sub(before) as f64 * page / bytes;
            measures.insert("reclaimed_bytes_per_byte".to_owned(), reclaimed);
        }
        measures
    }

    /// Reads the counters again and returns the differences, for a run that moved `bytes`.
    pub fn measures(&self, device: &Storage, about: About, bytes: u64) -> Measures {
        let seconds = self.start.elapsed().as_secs_f64();
        let mut measures = self.measures_of_this_machine(bytes);
        let bytes = bytes.max(1) as f64;
        if let (Some(before), Some(now)) = (self.counters, device.counters()) {
            let counted = now.since(before);
            let direction = match about {
                About::Reading => counted.read,
                About::Writing => counted.write,
                About::Discarding => counted.discard,
                About::Mixed => counted.read.plus(counted.write),
            };
            put_directions(&mut measures, counted, seconds);
            measures.insert("device_bytes_per_byte".to_owned(), direction.bytes() as f64 / bytes);
            put_direction(&mut measures, "device_", direction);
            let milliseconds = seconds.max(1e-3) * 1e3;
            let depth = f64::from(counted.weighted_ms) / milliseconds;
            measures.insert("device_depth".to_owned(), depth);
            let busy = 100.0 * f64::from(counted.busy_ms) / milliseconds;
            measures.insert("device_busy_percent".to_owned(), busy.min(100.0));
        }
        measures
    }
}

/// Numbers by name, the unit as the last word of each.
pub type Measures = BTreeMap<String, f64>;

/// Adds each direction by itself, whatever the direction of the run: a file system may write while
/// the run reads. Flushes have no size, so only their rate and their mean time are added.
fn put_directions(measures: &mut Measures, counted: DiskCounters, seconds: f64) {
    put_direction(measures, "device_read_", counted.read);
    put_direction(measures, "device_write_", counted.write);
    put_direction(measures, "device_discard_", counted.discard);
    let flushes = counted.flush.requests as f64;
    if flushes > 0.0 {
        let await_ns = f64::from(counted.flush.time_ms) * 1e6 / flushes;
        measures.insert("device_flush_await_ns".to_owned(), await_ns);
        measures.insert("device_flushes_per_second".to_owned(), flushes / seconds.max(1e-3));
    }
}

/// Adds size of a request, share of merges and mean time of one direction, if it had requests, as
/// `iostat -x` computes them.
pub fn put_direction(measures: &mut Measures, prefix: &str, counted: Direction) {
    if counted.requests == 0 {
        return;
    }
    let requests = counted.requests as f64;
    let mut put = |name: &str, value: f64| measures.insert(format!("{prefix}{name}"), value);
    put("request_bytes", counted.bytes() as f64 / requests);
    // Divide first: the quotient never exceeds 1, whatever the rounding.
    let merged = counted.merges as f64 / (counted.merges as f64 + requests) * 100.0;
    put("merged_percent", merged);
    put("await_ns", f64::from(counted.time_ms) * 1e6 / requests);
}
