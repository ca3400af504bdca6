//! The parameters of a drive model, each with its origin.
//!
//! No maker publishes all of them: capacity and speeds are in manuals, the time of a back-hitch is
//! not. A plan based on a guess has to show that, so every value has its origin.

use super::generation::{Certainty, Generation, Steps};
use crate::BILLION;

use super::mechanics;

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the table of generations.
    Table(Certainty),
    /// Given by the user.
    Given,
    /// Fitted to measurements.
    Fitted,
}

impl Origin {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Table(Certainty::Maker) => "maker",
            Origin::Table(Certainty::Reported) => "reported",
            Origin::Table(Certainty::Assumed) => "assumed",
            Origin::Given => "given",
            Origin::Fitted => "fitted",
        }
    }
}

/// A value and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The value, in the unit at the end of its field's name.
    pub value: u64,
    pub origin: Origin,
}

impl Known {
    /// A value that the user gave.
    pub fn given(value: u64) -> Known {
        Known { value, origin: Origin::Given }
    }

    /// A value that was fitted to measurements.
    pub fn fitted(value: u64) -> Known {
        Known { value, origin: Origin::Fitted }
    }

    fn assumed(value: u64) -> Known {
        Known { value, origin: Origin::Table(Certainty::Assumed) }
    }

    fn table(value: u64, certainty: Certainty) -> Known {
        Known { value, origin: Origin::Table(certainty) }
    }
}

/// A drive with a medium in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeParameters {
    /// Native rates that the drive can write at, ascending.
    pub speeds_bytes_per_second: Vec<u64>,
    /// Where the rates come from.
    pub speeds_origin: Origin,
    /// Part of the drive's buffer that data can fill.
    pub buffer_bytes: Known,
    /// Native capacity of the medium.
    pub capacity_bytes: Known,
    /// Distance of the early warning from the end of the medium.
    pub early_warning_bytes: Known,
    /// Most that the interface and the compression engine accept from the host.
    pub host_bytes_per_second: Known,
    /// Time of one write or read command besides the transfer: host, adapter, drive.
    pub command_overhead_ns: Known,
    /// From running empty to standing before the place where writing continues.
    pub back_hitch_ns: Known,
    /// From the decision to continue to the first byte on the medium.
    pub run_up_ns: Known,
    /// How full the buffer is, in percent, when a stopped drive starts to write; how empty when it
    /// reads.
    pub restart_fill_percent: Known,
    /// Time of a synchronising filemark once the buffer is empty.
    pub synchronise_ns: Known,
    /// Passes over the whole length.
    pub wraps: Known,
    /// Change of direction at the end of a wrap.
    pub wrap_turn_ns: Known,
    /// Winding over the whole length.
    pub wind_ns: Known,
    /// Finding the place at the end of a wind.
    pub settle_ns: Known,
    /// Loading a cartridge.
    pub load_ns: Known,
    /// Unloading a cartridge, without the rewind.
    pub unload_ns: Known,
}

/// A parameter as a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterRow {
    /// Name, with the unit as its last word.
    pub name: &'static str,
    /// Its values; only the speeds have several.
    pub values: Vec<u64>,
    pub origin: Origin,
}

/// Share of the drive's memory that fills and empties: tape.md of the facts counts 0.8 GB of the 1
/// GB of an LTO-8.
const USABLE_BUFFER_PERCENT: u64 = 80;
/// Number of steps if the table has only the ends of the range: as many as LTO-7 to 9 have.
const STEPS_ASSUMED: u64 = 12;
/// Two percent of the medium: enough room for the contents of the buffers.
const EARLY_WARNING_SHARE: u64 = 50;
/// Stop, reposition, restart; 2.0 to 3.5 s are assumed by practitioners, no maker publishes it.
const BACK_HITCH_NS: u64 = 2_500_000_000;
/// Longer than any command, and the most that [`crate::program::coalesced`] may combine.
pub const COMMAND_OVERHEAD_NS_MAX: u64 = 1_000_000_000;
/// Time of host and adapter for one write(2).
const COMMAND_OVERHEAD_NS: u64 = 50_000;
/// Time of a synchronising filemark once the buffer is empty.
const SYNCHRONISE_NS: u64 = 3_000_000_000;
/// Time of a change of direction, as in the emulator of the LTFS reference implementation.
const WRAP_TURN_NS: u64 = 2_000_000_000;
/// Longer than any motion of a drive.
const MOTION_NS_MAX: u64 = 1_000_000_000_000;
const MEGABYTE: u64 = 1_000_000;
const BUFFER_BYTES_MIN: u64 = 64 << 10;
const EXABYTE: u64 = 1_000_000_000_000_000_000;
const WRAPS_MAX: u64 = 10_000;
const SETTLE_NS: u64 = 2_000_000_000;
const REWIND_AVERAGE_NS: u64 = 50_000_000_000;
const LOAD_NS: u64 = 15_000_000_000;
const UNLOAD_NS: u64 = 20_000_000_000;

impl TapeParameters {
    /// The drive of a generation, with a medium of the same generation.
    pub fn of(generation: &Generation) -> TapeParameters {
        let (speeds, speeds_origin) = speeds(generation);
        let mechanics = mechanics::of(generation);
        let sure = generation.speed_certainty;
        let or_assumed = |known: Option<u64>, otherwise: u64| match known {
            Some(value) => Known::table(value, sure),
            None => Known::assumed(otherwise),
        };
        // The average rewind is over half of the length.
        let rewind_average_ns = mechanics.rewind_average_ns.unwrap_or(REWIND_AVERAGE_NS);
        let wind_ns = 2 * rewind_average_ns.saturating_sub(SETTLE_NS);
        // If nothing is known: the highest speed times the claimed ratio of compression.
        let host_assumed = generation.highest_speed() / 100 * mechanics.claimed_ratio_percent;
        let usable_bytes = generation.buffer_bytes / 100 * USABLE_BUFFER_PERCENT;
        TapeParameters {
            speeds_bytes_per_second: speeds,
            speeds_origin,
            buffer_bytes: Known::assumed(usable_bytes),
            capacity_bytes: Known::table(generation.capacity_bytes, Certainty::Maker),
            early_warning_bytes: Known::assumed(generation.capacity_bytes / EARLY_WARNING_SHARE),
            host_bytes_per_second: or_assumed(mechanics.host_bytes_per_second, host_assumed),
            command_overhead_ns: Known::assumed(COMMAND_OVERHEAD_NS),
            back_hitch_ns: Known::assumed(BACK_HITCH_NS),
            run_up_ns: Known::assumed(0),
            restart_fill_percent: Known::assumed(100),
            synchronise_ns: Known::assumed(SYNCHRONISE_NS),
            wraps: Known::table(mechanics.wraps, mechanics.wraps_certainty),
            wrap_turn_ns: Known::table(WRAP_TURN_NS, Certainty::Reported),
            wind_ns: or_assumed(mechanics.rewind_average_ns.map(|_| wind_ns), wind_ns),
            settle_ns: Known::assumed(SETTLE_NS),
            load_ns: or_assumed(mechanics.load_ns, LOAD_NS),
            unload_ns: or_assumed(mechanics.unload_ns, UNLOAD_NS),
        }
    }

    /// The same with impossible values reduced to possible ones, so that the model terminates and
    /// its times do not overflow.
    pub fn limited(mut self) -> TapeParameters {
        let times = [
            &mut self.back_hitch_ns,
            &mut self.run_up_ns,
            &mut self.synchronise_ns,
            &mut self.wrap_turn_ns,
            &mut self.wind_ns,
            &mut self.settle_ns,
            &mut self.load_ns,
            &mut self.unload_ns,
        ];
        times.into_iter().for_each(|time| time.value = time.value.min(MOTION_NS_MAX));
        let limit = |known: &mut Known, least, most| known.value = known.value.clamp(least, most);
        limit(&mut self.command_overhead_ns, 0, COMMAND_OVERHEAD_NS_MAX);
        limit(&mut self.buffer_bytes, BUFFER_BYTES_MIN, EXABYTE);
        limit(&mut self.capacity_bytes, MEGABYTE, EXABYTE);
        limit(&mut self.host_bytes_per_second, MEGABYTE, EXABYTE);
        limit(&mut self.restart_fill_percent, 1, 100);
        limit(&mut self.wraps, 1, WRAPS_MAX);
        if self.speeds_bytes_per_second.is_empty() {
            self.speeds_bytes_per_second.push(1);
        }
        self.speeds_bytes_per_second.iter_mut().for_each(|speed| *speed = (*speed).max(1));
        self.speeds_bytes_per_second.sort_unstable();
        self
    }

    /// The lowest native rate at which the drive does not stop.
    pub fn lowest_bytes_per_second(&self) -> u64 {
        self.speeds_bytes_per_second.first().copied().unwrap_or(1)
    }

    /// The highest native rate.
    pub fn highest_bytes_per_second(&self) -> u64 {
        self.speeds_bytes_per_second.last().copied().unwrap_or(1)
    }

    /// Bytes of a wrap, in billionths of a byte.
    pub(super) fn wrap_nanobytes(&self) -> u128 {
        let capacity = u128::from(self.capacity_bytes.value) * u128::from(BILLION);
        capacity.div_ceil(u128::from(self.wraps.value.max(1))).max(1)
    }

    /// Time to wind from the beginning of the tape to a place, in billionths of a byte: wraps run
    /// to and fro.
    pub(super) fn longitudinal_ns(&self, place: u128) -> u64 {
        let wrap = self.wrap_nanobytes();
        let along = place % wrap;
        let from_start = if (place / wrap).is_multiple_of(2) { along } else { wrap - along };
        let ns = u128::from(self.wind_ns.value) * from_start / wrap;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Time to wind from the beginning of the tape to a place, in native bytes from the beginning
    /// of the medium. Places of different wraps with the same time lie side by side.
    pub fn along_ns(&self, bytes: u64) -> u64 {
        self.longitudinal_ns(u128::from(bytes) * u128::from(BILLION))
    }

    /// Nanoseconds from one place to another by the quicker way: winding, or, to a place further
    /// on, reading what lies between at the highest speed. Both in native bytes.
    pub fn reaching_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        let wound = self.winding_ns(from_bytes, to_bytes);
        match to_bytes.checked_sub(from_bytes) {
            Some(between) => wound.min(self.reading_ns(between)),
            None => wound,
        }
    }

    /// Nanoseconds to read so many native bytes at the highest speed, changes of direction not
    /// counted.
    pub fn reading_ns(&self, bytes: u64) -> u64 {
        super::super::transfer_ns(bytes, self.highest_bytes_per_second())
    }

    /// Nanoseconds to wind from one place to another and to settle there, both in native bytes from
    /// the beginning of the medium.
    pub fn winding_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        if from_bytes == to_bytes {
            return 0;
        }
        self.along_ns(from_bytes).abs_diff(self.along_ns(to_bytes)) + self.settle_ns.value
    }

    /// Sets a parameter by the name that [`rows`](Self::rows) shows; false if there is none.
    ///
    /// The speeds have several values: [`set_speeds`](Self::set_speeds).
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        self.named(name).map(|parameter| *parameter = Known::given(value)).is_some()
    }

    /// Like [`set`](Self::set), for a value that was fitted to measurements.
    pub fn fit(&mut self, name: &str, value: u64) -> bool {
        self.named(name).map(|parameter| *parameter = Known::fitted(value)).is_some()
    }

    /// Like [`set`](Self::set), for an assumed value, when measurements rule out that of the table.
    pub fn assume(&mut self, name: &str, value: u64) -> bool {
        self.named(name).map(|parameter| *parameter = Known::assumed(value)).is_some()
    }

    /// A parameter with a single value.
    fn named(&mut self, name: &str) -> Option<&mut Known> {
        Some(match name {
            "buffer_bytes" => &mut self.buffer_bytes,
            "capacity_bytes" => &mut self.capacity_bytes,
            "early_warning_bytes" => &mut self.early_warning_bytes,
            "host_bytes_per_second" => &mut self.host_bytes_per_second,
            "command_overhead_ns" => &mut self.command_overhead_ns,
            "back_hitch_ns" => &mut self.back_hitch_ns,
            "run_up_ns" => &mut self.run_up_ns,
            "restart_fill_percent" => &mut self.restart_fill_percent,
            "synchronise_ns" => &mut self.synchronise_ns,
            "wraps" => &mut self.wraps,
            "wrap_turn_ns" => &mut self.wrap_turn_ns,
            "wind_ns" => &mut self.wind_ns,
            "settle_ns" => &mut self.settle_ns,
            "load_ns" => &mut self.load_ns,
            "unload_ns" => &mut self.unload_ns,
            _ => return None,
        })
    }

    /// Sets the native speeds, in any order.
    pub fn set_speeds(&mut self, bytes_per_second: &[u64]) {
        self.speeds_bytes_per_second = bytes_per_second.to_vec();
        self.speeds_bytes_per_second.sort_unstable();
        self.speeds_origin = Origin::Given;
    }

    /// Replaces the highest speed by one that was fitted to measurements, and removes all speeds
    /// above it. The lower ones stay.
    pub fn fit_highest_speed(&mut self, bytes_per_second: u64) {
        self.speeds_bytes_per_second.pop();
        self.speeds_bytes_per_second.retain(|speed| *speed < bytes_per_second);
        self.speeds_bytes_per_second.push(bytes_per_second);
        self.speeds_origin = Origin::Fitted;
    }

    /// All parameters, for a table.
    pub fn rows(&self) -> Vec<ParameterRow> {
        let one = |name, known: Known| ParameterRow {
            name,
            values: vec![known.value],
            origin: known.origin,
        };
        let speeds = self.speeds_bytes_per_second.clone();
        vec![
            ParameterRow {
                name: "speeds_bytes_per_second",
                values: speeds,
                origin: self.speeds_origin,
            },
            one("buffer_bytes", self.buffer_bytes),
            one("capacity_bytes", self.capacity_bytes),
            one("early_warning_bytes", self.early_warning_bytes),
            one("host_bytes_per_second", self.host_bytes_per_second),
            one("command_overhead_ns", self.command_overhead_ns),
            one("back_hitch_ns", self.back_hitch_ns),
            one("run_up_ns", self.run_up_ns),
            one("restart_fill_percent", self.restart_fill_percent),
            one("synchronise_ns", self.synchronise_ns),
            one("wraps", self.wraps),
            one("wrap_turn_ns", self.wrap_turn_ns),
            one("wind_ns", self.wind_ns),
            one("settle_ns", self.settle_ns),
            one("load_ns", self.load_ns),
            one("unload_ns", self.unload_ns),
        ]
    }
}

/// The steps of the table, or steps of equal size if only the ends are known.
fn speeds(generation: &Generation) -> (Vec<u64>, Origin) {
    if generation.steps == Steps::All {
        return (generation.speeds.to_vec(), Origin::Table(generation.speed_certainty));
    }
    let (lowest, highest) = (generation.lowest_speed(), generation.highest_speed());
    let step = |index: u64| lowest + (highest - lowest) * index / (STEPS_ASSUMED - 1);
    ((0..STEPS_ASSUMED).map(step).collect(), Origin::Table(Certainty::Assumed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_but_the_speeds_can_be_set() {
        let mut parameters = TapeParameters::of(&Generation::all()[0]);
        for row in parameters.rows() {
            let is_set = parameters.set(row.name, 12_345);
            assert_eq!(is_set, row.name != "speeds_bytes_per_second", "{}", row.name);
        }
        let rows = parameters.rows();
        assert!(rows[1..].iter().all(|row| row.values == [12_345] && row.origin == Origin::Given));
        assert!(!parameters.set("colour", 1));
        parameters.set_speeds(&[200, 100]);
        assert_eq!(parameters.rows()[0].values, [100, 200]);
        assert_eq!(parameters.rows()[0].origin, Origin::Given);
    }

    #[test]
    fn what_is_fitted_says_so_and_leaves_the_lower_speeds() {
        let mut parameters = TapeParameters::of(&Generation::all()[0]);
        assert!(parameters.fit("synchronise_ns", 7) && !parameters.fit("colour", 7));
        assert_eq!(parameters.synchronise_ns, Known::fitted(7));
        for (fitted, expected) in [(310, [100, 200, 310]), (290, [100, 200, 290])] {
            parameters.set_speeds(&[300, 200, 100]);
            parameters.fit_highest_speed(fitted);
            assert_eq!(parameters.speeds_bytes_per_second, expected);
        }
        parameters.fit_highest_speed(150);
        assert_eq!(parameters.speeds_bytes_per_second, [100, 150]);
        parameters.fit_highest_speed(90);
        assert_eq!(parameters.speeds_bytes_per_second, [90]);
        assert_eq!(parameters.speeds_origin, Origin::Fitted);
    }
}
