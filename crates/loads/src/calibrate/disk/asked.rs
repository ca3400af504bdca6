//! Direct reads, by what was asked of the disk: where, how much at once, how many at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::super::NS;
use super::super::estimate::{Estimate, by_repeat};
use crate::disk::load::Load;
use crate::read::{Cache, Engine, Reading};
use experiment::record::{Cell, RunRecord, binary_size};
use statistics::interval::Interval;

/// Where requests lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestPlace {
    /// Anywhere.
    Random,
    /// Each behind the one before.
    Sequential,
}

/// All runs of one combination.
#[derive(Clone, Debug)]
pub(super) struct Asked<'a> {
    pub(super) place: RequestPlace,
    pub(super) block_bytes: u64,
    /// Requests under way at once.
    pub(super) in_flight: u64,
    /// All other levels.
    others: Cell,
    runs: Vec<&'a RunRecord>,
}

/// What a cell is told by here, and is no part of the others.
const OWN: [&str; 5] = ["load", "block_bytes", "depth", "jobs", "readers"];
/// A request as the device saw it that is this near to what was asked for is the same one.
const SAME_REQUEST: f64 = 0.1;
/// What came from the device, of what was read: less was in the page cache.
const FROM_DEVICE: f64 = 0.95;

/// The repeated direct reads of an experiment of a kind.
pub(super) fn asked<'a>(kind: &str, runs: &[&'a RunRecord]) -> Vec<Asked<'a>> {
    let mut by_cell: BTreeMap<&Cell, Vec<&RunRecord>> = BTreeMap::new();
    for &run in runs.iter().filter(|run| is_from_device(run)) {
        by_cell.entry(&run.cell).or_default().push(run);
    }
    let one = |(cell, runs): (&Cell, Vec<&'a RunRecord>)| {
        let (place, block_bytes, in_flight) = match kind {
            "disk" => of_load(&Load::from_cell(cell).ok()?)?,
            _ => of_reading(&Reading::from_cell(cell).ok()?)?,
        };
        let mut others = cell.clone();
        others.retain(|name, _| !OWN.contains(&name.as_str()));
        let asked = Asked { place, block_bytes, in_flight, others, runs };
        asked.rate().is_some().then_some(asked)
    };
    by_cell.into_iter().filter_map(one).collect()
}

fn of_load(load: &Load) -> Option<(RequestPlace, u64, u64)> {
    let place = match load.pattern.as_str() {
        "randread" => RequestPlace::Random,
        // Several jobs read the same places, each from the start.
        "read" if load.jobs == 1 => RequestPlace::Sequential,
        _ => return None,
    };
    load.direct.then_some((place, load.block_bytes, load.depth * load.jobs))
}

fn of_reading(reading: &Reading) -> Option<(RequestPlace, u64, u64)> {
    let is_direct = reading.cache == Cache::Direct && reading.engine != Engine::Mmap;
    let in_flight = (reading.depth * reading.readers) as u64;
    is_direct.then_some((RequestPlace::Sequential, reading.block_bytes as u64, in_flight))
}

/// The rates of all that was read and came from the device, however it was.
pub(super) fn rates_of_device(runs: &[&RunRecord]) -> Vec<f64> {
    let mut by_cell: BTreeMap<&Cell, Vec<(u64, f64)>> = BTreeMap::new();
    for run in runs.iter().filter(|run| is_from_device(run)) {
        let rate = run.bytes_per_second().map(|rate| (run.repeat, rate));
        by_cell.entry(&run.cell).or_default().extend(rate);
    }
    by_cell.values().filter_map(|values| Some(by_repeat(values)?.value)).collect()
}

fn is_from_device(run: &RunRecord) -> bool {
    run.measures.get("device_bytes_per_byte").is_none_or(|share| *share >= FROM_DEVICE)
}

/// Reads one at a time, in sweeps that differ in the size of blocks alone, the smallest first.
pub(super) fn over_sizes<'a>(
    groups: &'a [Asked<'a>],
    place: RequestPlace,
) -> Vec<Vec<&'a Asked<'a>>> {
    let mut sweeps: BTreeMap<&Cell, Vec<&Asked<'_>>> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.place == place && group.in_flight == 1) {
        if group.is_whole() {
            sweeps.entry(&group.others).or_default().push(group);
        }
    }
    let mut sweeps: Vec<Vec<&Asked<'_>>> = sweeps.into_values().collect();
    sweeps.iter_mut().for_each(|sweep| sweep.sort_by_key(|group| group.block_bytes));
    sweeps
}

/// Reads of one size, in sweeps that differ in the requests under way alone, the fewest first.
pub(super) fn over_requests_in_flight<'a>(groups: &'a [Asked<'a>]) -> Vec<Vec<&'a Asked<'a>>> {
    let mut sweeps: BTreeMap<(&Cell, RequestPlace, u64), Vec<&Asked<'_>>> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.is_whole()) {
        let key = (&group.others, group.place, group.block_bytes);
        sweeps.entry(key).or_default().push(group);
    }
    let mut sweeps: Vec<Vec<&Asked<'_>>> = sweeps.into_values().collect();
    sweeps.iter_mut().for_each(|sweep| sweep.sort_by_key(|group| group.in_flight));
    sweeps
}

/// `random reads of 4 KiB to 1 MiB, one at a time`.
pub(super) fn shown(sweep: &[&Asked<'_>]) -> String {
    let place = match sweep.first().map(|group| group.place) {
        Some(RequestPlace::Random) => "random reads",
        _ => "reads in a row",
    };
    let range = |numbers: BTreeSet<u64>, shown: fn(u64) -> String| match (
        numbers.first(),
        numbers.last(),
    ) {
        (Some(least), Some(most)) if least != most => {
            format!("{} to {}", shown(*least), shown(*most))
        }
        (Some(only), _) => shown(*only),
        _ => String::new(),
    };
    let sizes = range(sweep.iter().map(|group| group.block_bytes).collect(), binary_size);
    let at_once: BTreeSet<u64> = sweep.iter().map(|group| group.in_flight).collect();
    let at_once = match at_once.last() {
        None | Some(1) => "one at a time".to_owned(),
        Some(_) => format!("{} in flight", range(at_once, |number| number.to_string())),
    };
    format!("{place} of {sizes}, {at_once}")
}

impl Asked<'_> {
    /// Of each run, with its repeat, in bytes per second.
    pub(super) fn rates(&self) -> Vec<(u64, f64)> {
        let rate = |run: &&RunRecord| Some((run.repeat, run.bytes_per_second()?));
        self.runs.iter().filter_map(rate).collect()
    }

    /// What they come to.
    pub(super) fn rate(&self) -> Option<Estimate> {
        by_repeat(&self.rates())
    }

    /// Of one request where there is one at a time.
    pub(super) fn time_ns(&self) -> Option<Estimate> {
        let Estimate { value, interval, runs } = self.rate()?;
        let time = |rate: f64| self.block_bytes as f64 / rate * NS;
        let interval = Interval { low: time(interval.high), high: time(interval.low) };
        Some(Estimate { value: time(value), interval, runs })
    }

    /// Whether each request reached the device as it was made, as far as the device tells.
    pub(super) fn is_whole(&self) -> bool {
        let seen = |run: &&RunRecord| run.measures.get("device_request_bytes").copied();
        let is_same = |bytes: f64| (bytes / self.block_bytes as f64 - 1.0).abs() <= SAME_REQUEST;
        self.runs.iter().filter_map(seen).all(is_same)
    }

    /// Bytes that are asked for at once.
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.block_bytes * self.in_flight
    }

    /// What it would come to if nothing but the time of requests held it back, of which so many are
    /// served at once; where the same was also asked for one at a time.
    pub(super) fn free(&self, groups: &[Asked<'_>], servers: f64) -> Option<f64> {
        let is_alone = |other: &&Asked<'_>| {
            other.in_flight == 1
                && (other.place, other.block_bytes) == (self.place, self.block_bytes)
                && other.others == self.others
        };
        let single = groups.iter().find(is_alone)?.rate()?;
        Some(single.value * servers.min(self.in_flight as f64))
    }
}
