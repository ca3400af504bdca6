//! The drive's choice of speed: over many wraps, a source between its lowest and its highest step
//! never makes it stop, for any maker and any buffer.

use model::program::{Ratio, Stream, stream};
use model::tape::TapeModel;
use model::tape::generation::Generation;
use model::tape::parameters::{Known, TapeParameters};

const WRAPS: u64 = 6;

/// Stops in a run of several wraps; each turn lets data pile up before the drive.
fn stops(parameters: &TapeParameters, rate: u64, ring_bytes: u64, block_bytes: u64) -> u64 {
    let mut tape = TapeModel::new(parameters.clone());
    let wrap_bytes = parameters.capacity_bytes.value / parameters.wraps.value;
    let program = Stream {
        source_bytes_per_second: rate,
        ring_bytes,
        start_fill_percent: 0,
        drain_bytes_per_second: None,
        block_bytes,
        ratio: Ratio::NONE,
    };
    stream(&mut tape, program, WRAPS * wrap_bytes + wrap_bytes / 2);
    assert_eq!(tape.counters().turns, WRAPS, "at {rate}");
    tape.counters().back_hitches
}

/// A turn fills the buffer of an older drive and the ring behind it, so a burst follows. The drive
/// must not rely on that burst until it has run empty.
#[test]
fn a_turn_does_not_start_a_row_of_stops() {
    let mut stopped = Vec::new();
    for generation in Generation::all() {
        let parameters = TapeParameters::of(generation);
        let lowest = parameters.lowest_bytes_per_second();
        let highest = parameters.highest_bytes_per_second();
        // As coarse as in a plan: an eighth of the buffer.
        let coarse = parameters.buffer_bytes.value / 8;
        for percent in [1, 5, 12, 30, 45, 60, 80, 95] {
            let rate = lowest + (highest - lowest) * percent / 100;
            for (ring, block) in [(64 << 20, 4 << 20), (1 << 30, 4 << 20), (1 << 30, coarse)] {
                let stops = stops(&parameters, rate, ring, block.min(coarse));
                if stops > 0 {
                    stopped.push((generation.name, rate, ring, block, stops));
                }
            }
        }
    }
    assert!(stopped.is_empty(), "{} cases: {stopped:#?}", stopped.len());
}

/// With a smaller buffer or a longer turn than in any table, that changes only if the buffer cannot
/// hold what the highest step consumes between two checks of the speed.
#[test]
fn a_small_buffer_is_no_excuse() {
    let lto3 = Generation::all().iter().find(|one| one.number == 3).unwrap();
    for buffer_mb in [20, 30, 51] {
        let mut parameters = TapeParameters::of(lto3);
        parameters.buffer_bytes = Known::given(buffer_mb * 1_000_000);
        parameters.wrap_turn_ns = Known::given(5_000_000_000);
        for rate_mb in [41, 45, 52, 65, 71] {
            let stops = stops(&parameters, rate_mb * 1_000_000, 1 << 30, 1 << 20);
            assert_eq!(stops, 0, "{buffer_mb} MB at {rate_mb} MB/s");
        }
    }
}
