//! Reading from a tape into a ring, beside what takes the data out of the ring again.
//!
//! Two buffers lie between the medium and what takes the data: the drive's own, which it fills
//! ahead at the speed of a step, and the ring of the host. The host reads until the ring is full,
//! and goes on when half of it is free. The drive stops where its own buffer is full meanwhile, so
//! a full ring need not stop it: with slow data and a small ring it often does not.

use super::TapeModel;
use super::counters::TapeCounters;
use super::parameters::TapeParameters;
use crate::{ModelError, bytes_in, transfer_ns};

/// Reads that are simulated one by one; of longer ones several blocks are taken at once.
const STEPS_MAX: u64 = 200_000;

/// How many times drive and ring are filled to see whether the drive stops in the end.
const BUFFERS_READ: u64 = 16;

/// What takes the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taker {
    /// Memory between reading and taking.
    pub ring_bytes: u64,
    /// Rate at which the data are taken, in the drive's own time; not 0.
    pub bytes_per_second: u64,
}

/// What has passed, or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub time_ns: u64,
    /// Ways to another place.
    pub winds: u64,
    /// Time of these ways.
    pub wind_ns: u64,
    /// Stops of the drive because nothing took its data.
    pub stops: u64,
    /// How often the ring was full.
    pub ring_was_full: u64,
}

/// A drive with a full medium that is read.
#[derive(Clone, Debug)]
pub struct TapeReader {
    model: TapeModel,
    taker: Option<Taker>,
    now_ns: u64,
    /// Bytes in the ring at that moment.
    ring_fill_bytes: u64,
    ring_was_full: u64,
    /// What was passed on to the caller.
    told: Passed,
    capacity_bytes: u64,
}

impl TapeReader {
    /// A drive with a medium at its beginning. Without a taker nothing waits for the data.
    pub fn new(parameters: TapeParameters, taker: Option<Taker>) -> TapeReader {
        let capacity_bytes = parameters.capacity_bytes.value;
        let mut model = TapeModel::new(parameters);
        let now_ns = model.load(0, capacity_bytes);
        let (ring_fill_bytes, ring_was_full, told) = (0, 0, Passed::default());
        let mut reader = TapeReader {
            model,
            taker,
            now_ns,
            ring_fill_bytes,
            ring_was_full,
            told,
            capacity_bytes,
        };
        reader.passed();
        reader
    }

    /// The tape stands at a place already, in bytes from the beginning of the medium.
    pub fn stand_at(&mut self, place_bytes: u64) {
        self.now_ns = self.model.locate(self.now_ns, place_bytes);
        self.passed();
    }

    /// Another medium comes into the drive. That takes no time of the reading's own, and meanwhile
    /// the ring empties. Returns the time of the way back to the beginning of the medium before.
    pub fn change(&mut self) -> u64 {
        let rewound_ns = self.model.rewind(self.now_ns);
        let way_back_ns = rewound_ns - self.now_ns;
        let unloaded_ns = self.model.unload(rewound_ns);
        self.now_ns = self.model.load(unloaded_ns, self.capacity_bytes);
        self.ring_fill_bytes = 0;
        let Passed { time_ns, winds, wind_ns, .. } = self.total();
        self.told = Passed { time_ns, winds, wind_ns, ..self.told };
        way_back_ns
    }

    /// Bytes from the beginning of the medium to the tape's position.
    pub fn position_bytes(&self) -> u64 {
        self.model.position_bytes()
    }

    /// The drive's parameters.
    pub fn parameters(&self) -> &TapeParameters {
        self.model.parameters()
    }

    /// Winds to a place, in bytes from the beginning of the medium.
    pub fn go_to(&mut self, place_bytes: u64) {
        let begun_ns = self.now_ns;
        self.now_ns = self.model.locate(self.now_ns, place_bytes);
        self.drain(self.now_ns - begun_ns);
    }

    /// Reads blocks into the ring.
    ///
    /// # Errors
    /// When the medium has no more.
    pub fn read(&mut self, blocks: u64, block_bytes: u64) -> Result<(), ModelError> {
        let at_once = blocks.div_ceil(STEPS_MAX).max(1);
        let mut left = blocks;
        while left > 0 {
            let now = left.min(at_once);
            self.read_one(now * block_bytes)?;
            left -= now;
        }
        Ok(())
    }

    /// Passes over blocks by reading them; they do not get into the ring.
    ///
    /// # Errors
    /// When the medium has no more.
    pub fn read_over(&mut self, blocks: u64, block_bytes: u64) -> Result<(), ModelError> {
        let taker = self.taker.take();
        let begun_ns = self.now_ns;
        let result = self.read(blocks, block_bytes);
        self.taker = taker;
        self.drain(self.now_ns - begun_ns);
        result
    }

    /// Waits until everything was taken.
    pub fn finish(&mut self) {
        if let Some(taker) = self.taker {
            self.now_ns += transfer_ns(self.ring_fill_bytes, taker.bytes_per_second.max(1));
            self.ring_fill_bytes = 0;
        }
    }

    /// What has passed since this was last asked.
    pub fn passed(&mut self) -> Passed {
        let total = self.total();
        let told = std::mem::replace(&mut self.told, total);
        Passed {
            time_ns: total.time_ns - told.time_ns,
            winds: total.winds - told.winds,
            wind_ns: total.wind_ns - told.wind_ns,
            stops: total.stops - told.stops,
            ring_was_full: total.ring_was_full - told.ring_was_full,
        }
    }

    fn total(&self) -> Passed {
        let &TapeCounters { winds, wind_ns, back_hitches, .. } = self.model.counters();
        let (time_ns, ring_was_full) = (self.now_ns, self.ring_was_full);
        Passed { time_ns, winds, wind_ns, stops: back_hitches, ring_was_full }
    }

    fn read_one(&mut self, bytes: u64) -> Result<(), ModelError> {
        if let Some(Taker { ring_bytes, bytes_per_second }) = self.taker
            && self.ring_fill_bytes + bytes > ring_bytes.max(bytes)
        {
            self.ring_was_full += 1;
            let goal_bytes = (ring_bytes / 2).min(ring_bytes.saturating_sub(bytes));
            let surplus_bytes = self.ring_fill_bytes.saturating_sub(goal_bytes);
            self.now_ns += transfer_ns(surplus_bytes, bytes_per_second.max(1));
            self.ring_fill_bytes -= surplus_bytes;
        }
        let begun_ns = self.now_ns;
        // The drive goes on by itself meanwhile.
        self.now_ns = self.model.read(self.now_ns, bytes, bytes)?.at_ns;
        self.drain(self.now_ns - begun_ns);
        if self.taker.is_some() {
            self.ring_fill_bytes += bytes;
        }
        Ok(())
    }

    fn drain(&mut self, time_ns: u64) {
        let Some(taker) = self.taker else { return };
        let taken_bytes = bytes_in(time_ns, taker.bytes_per_second);
        self.ring_fill_bytes = self.ring_fill_bytes.saturating_sub(taken_bytes);
    }
}

/// What one long read does behind a taker that is slower than the drive.
pub fn long_read(parameters: TapeParameters, taker: Taker, bytes: u64, block_bytes: u64) -> Passed {
    let mut reader = TapeReader::new(parameters, Some(taker));
    // The model's medium may be shorter than what was read of several.
    let bytes = bytes.min(reader.capacity_bytes);
    let _ = reader.read(bytes / block_bytes.max(1), block_bytes.max(1));
    reader.passed()
}

/// The smallest ring of a power of two, at most `most_bytes`, behind which one long read never
/// stops the drive; `None` if there is none.
pub fn ring_without_stops(
    parameters: &TapeParameters,
    taker: Taker,
    bytes: u64,
    block_bytes: u64,
    most_bytes: u64,
) -> Option<u64> {
    let rings = std::iter::successors(Some(taker.ring_bytes.next_power_of_two()), |ring| {
        ring.checked_mul(2)
    });
    rings.take_while(|ring| *ring <= most_bytes).find(|ring| {
        let taker = Taker { ring_bytes: *ring, ..taker };
        long_read(parameters.clone(), taker, bytes, block_bytes).stops == 0
    })
}

/// A rate of a taker from which on a long read never stops the drive, with this ring or a larger
/// one: its lowest speed, or its highest where the buffer is so small that it stops also for takers
/// between, since it begins at its highest.
pub fn rate_without_stops(parameters: &TapeParameters, ring_bytes: u64, block_bytes: u64) -> u64 {
    let speeds = &parameters.speeds_bytes_per_second;
    let between = speeds.windows(2).map(|pair| pair[0].midpoint(pair[1]));
    let mut rates: Vec<u64> = speeds.iter().copied().chain(between).collect();
    rates.sort_unstable();
    let bytes = (parameters.buffer_bytes.value + ring_bytes).saturating_mul(BUFFERS_READ);
    let stops = |bytes_per_second: u64| {
        let taker = Taker { ring_bytes, bytes_per_second };
        long_read(parameters.clone(), taker, bytes, block_bytes).stops > 0
    };
    // Between the rates that were tried it may stop, too, once it stops at one of them.
    let chosen = if rates.iter().any(|rate| stops(*rate)) { rates.last() } else { rates.first() };
    chosen.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::generation::Generation;

    const MIB: u64 = 1 << 20;

    fn lto6() -> TapeParameters {
        TapeParameters::of(Generation::of_density(0x5a).unwrap())
    }

    fn behind(ring_bytes: u64, bytes_per_second: u64, bytes: u64) -> Passed {
        long_read(lto6(), Taker { ring_bytes, bytes_per_second }, bytes, MIB)
    }

    #[test]
    fn a_drive_stops_below_its_lowest_speed_and_not_above() {
        let lowest = lto6().speeds_bytes_per_second[0];
        let slow = behind(64 * MIB, lowest / 2, 20_000 * MIB);
        assert!(slow.stops > 0 && slow.ring_was_full > slow.stops, "{slow:?}");
        let fast = behind(64 * MIB, lowest * 11 / 10, 20_000 * MIB);
        assert_eq!(fast.stops, 0, "{fast:?}");
        // What takes the data sets the time.
        let expected_ns = transfer_ns(20_000 * MIB - 64 * MIB, lowest / 2);
        assert!(slow.time_ns.abs_diff(expected_ns) < expected_ns / 50, "{slow:?} {expected_ns}");
    }

    #[test]
    fn between_two_stops_the_drive_reads_what_its_buffer_and_the_taker_hold() {
        // B v / (v - r) bytes between two stops, with the restart when the buffer is empty enough.
        let parameters = lto6();
        let (lowest, buffer) =
            (parameters.speeds_bytes_per_second[0], parameters.buffer_bytes.value);
        let rate = lowest / 2;
        let total = 40_000 * MIB;
        let cycle = buffer as f64 * parameters.restart_fill_percent.value as f64 / 100.0
            * lowest as f64
            / (lowest - rate) as f64;
        let stops = behind(2 * MIB, rate, total).stops as f64;
        assert!((stops / (total as f64 / cycle) - 1.0).abs() < 0.25, "{stops} {cycle}");
    }

    #[test]
    fn a_ring_that_holds_the_rest_spares_the_stops() {
        let (lowest, bytes) = (lto6().speeds_bytes_per_second[0], 3000 * MIB);
        let taker = Taker { ring_bytes: 64 * MIB, bytes_per_second: lowest / 2 };
        assert!(long_read(lto6(), taker, bytes, MIB).stops > 0);
        let ring = ring_without_stops(&lto6(), taker, bytes, MIB, 4 << 30).unwrap();
        assert_eq!(behind(ring, lowest / 2, bytes).stops, 0);
        assert!(behind(ring / 2, lowest / 2, bytes).stops > 0);
        // More than any ring: none helps.
        assert_eq!(ring_without_stops(&lto6(), taker, 100 * bytes, MIB, 4 << 30), None);
    }

    #[test]
    fn from_the_rate_that_is_told_on_no_drive_stops() {
        for generation in Generation::all() {
            let parameters = TapeParameters::of(generation);
            let lowest = parameters.speeds_bytes_per_second[0];
            assert_eq!(rate_without_stops(&parameters, 8 * MIB, MIB), lowest, "{generation:?}");
        }
        let mut small = lto6();
        small.set("buffer_bytes", 2 << 20);
        let from = rate_without_stops(&small, 8 * MIB, MIB / 4);
        assert!(from > small.speeds_bytes_per_second[0]);
        for rate in [from, from * 11 / 10, 2 * from] {
            let taker = Taker { ring_bytes: 8 * MIB, bytes_per_second: rate };
            assert_eq!(long_read(small.clone(), taker, 500 * MIB, MIB / 4).stops, 0, "{rate}");
        }
    }

    #[test]
    fn a_change_takes_no_time_and_a_wind_counts() {
        let mut reader = TapeReader::new(lto6(), None);
        reader.stand_at(500_000 * MIB);
        assert!(reader.change() > 0);
        assert_eq!(reader.passed(), Passed::default());
        reader.go_to(1000 * MIB);
        let passed = reader.passed();
        assert_eq!((passed.winds, passed.time_ns), (1, passed.wind_ns));
        reader.read(10, MIB).unwrap();
        assert_eq!(reader.position_bytes(), 1010 * MIB);
        assert_eq!(reader.passed().winds, 0);
    }
}
