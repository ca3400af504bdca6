//! The drive: no byte is lost, time goes forward, physical limits hold, and the published formulas
//! are met.

use model::ModelError;
use model::program::{Copy, Ratio, Stream, copy, stream};
use model::tape::generation::Generation;
use model::tape::parameters::{Known, TapeParameters};
use model::tape::{Filemark, Motion, TapeModel, Zone};
use proptest::prelude::*;

const MB: u64 = 1_000_000;
const GB: u64 = 1_000 * MB;
const SECOND_NS: u64 = 1_000_000_000;

fn generation(number: u8) -> &'static Generation {
    let name = format!("LTO-{number}");
    Generation::all().iter().find(|generation| generation.name == name).unwrap()
}

/// An LTO-7 whose host is never the limit.
fn lto7() -> TapeParameters {
    let mut parameters = TapeParameters::of(generation(7));
    parameters.command_overhead_ns = Known::given(0);
    parameters.host_bytes_per_second = Known::given(100 * GB);
    parameters
}

/// A drive so small that its events come often.
fn small(speeds_mb: Vec<u64>, buffer_mb: u64, back_hitch_ms: u64, restart: u64) -> TapeParameters {
    let mut parameters = lto7();
    parameters.speeds_bytes_per_second = speeds_mb.iter().map(|speed| speed * MB).collect();
    parameters.buffer_bytes = Known::given(buffer_mb * MB);
    parameters.back_hitch_ns = Known::given(back_hitch_ms * 1_000_000);
    parameters.restart_fill_percent = Known::given(restart);
    parameters.capacity_bytes = Known::given(20 * GB);
    parameters.wraps = Known::given(37);
    parameters.host_bytes_per_second = Known::given(2 * GB);
    parameters
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Write { pause_ms: u64, host_kb: u64, percent: u64 },
    Read { pause_ms: u64, host_kb: u64 },
    Mark { pause_ms: u64, kind: Filemark },
    Locate { percent: u64 },
    Rewind,
    Pass { pause_ms: u64 },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let pause = prop_oneof![4 => Just(0), 2 => 0u64..20, 1 => 0u64..9000];
    let kind = prop_oneof![Just(Filemark::Immediate), Just(Filemark::Synchronising)];
    let call = prop_oneof![
        12 => (pause.clone(), 1u64..200_000, 5u64..110)
            .prop_map(|(pause_ms, host_kb, percent)| Call::Write { pause_ms, host_kb, percent }),
        3 => (pause.clone(), 1u64..50_000)
            .prop_map(|(pause_ms, host_kb)| Call::Read { pause_ms, host_kb }),
        1 => (pause.clone(), kind).prop_map(|(pause_ms, kind)| Call::Mark { pause_ms, kind }),
        1 => (0u64..100).prop_map(|percent| Call::Locate { percent }),
        1 => Just(Call::Rewind),
        1 => pause.prop_map(|pause_ms| Call::Pass { pause_ms }),
    ];
    proptest::collection::vec(call, 1..120)
}

fn drives() -> impl Strategy<Value = TapeParameters> {
    let speeds = (5u64..50, 1u64..60, 1usize..8).prop_map(|(lowest, step, number)| {
        (0..number as u64).map(|index| lowest + index * step).collect::<Vec<u64>>()
    });
    (speeds, 1u64..300, 0u64..4000, 1u64..100)
        .prop_map(|(speeds, buffer, hitch, restart)| small(speeds, buffer, hitch, restart))
}

/// Makes the call and returns when it completed.
fn make(tape: &mut TapeModel, call: Call, now_ns: u64) -> u64 {
    let later = |pause_ms: u64| now_ns + pause_ms * 1_000_000;
    match call {
        Call::Write { pause_ms, host_kb, percent } => {
            tape.write(later(pause_ms), host_kb * 1000, host_kb * 10 * percent).at_ns
        }
        Call::Read { pause_ms, host_kb } => {
            let before = tape.position_bytes();
            match tape.read(later(pause_ms), host_kb * 1000, host_kb * 1000) {
                Ok(completion) => completion.at_ns,
                Err(ModelError::EndOfData { position_bytes }) => {
                    assert_eq!(position_bytes, before);
                    tape.now_ns()
                }
                Err(other) => panic!("{other}"),
            }
        }
        Call::Mark { pause_ms, kind } => tape.filemark(later(pause_ms), kind),
        Call::Locate { percent } => {
            let place = tape.recorded_bytes() / 100 * percent;
            tape.locate(now_ns, place)
        }
        Call::Rewind => tape.rewind(now_ns),
        Call::Pass { pause_ms } => {
            tape.pass(later(pause_ms));
            tape.now_ns()
        }
    }
}

proptest! {
    /// For any calls in any order, time goes forward, and every moment is in one state.
    #[test]
    fn time_goes_forward_and_is_all_accounted_for(parameters in drives(), calls in calls()) {
        let mut tape = TapeModel::new(parameters);
        let mut now_ns = 0;
        for call in calls {
            let done_ns = make(&mut tape, call, now_ns);
            prop_assert!(done_ns >= now_ns, "{:?}: {} after {}", call, done_ns, now_ns);
            prop_assert_eq!(done_ns, tape.now_ns());
            now_ns = done_ns;
            let counters = tape.counters();
            let sum = counters.motion_ns() + counters.still_ns + counters.synchronise_ns;
            prop_assert_eq!(sum, now_ns);
            prop_assert!(counters.lost_ns <= counters.host_blocked_ns);
        }
    }

    /// Everything written is on the medium or in the buffer, to the byte.
    #[test]
    fn bytes_in_are_bytes_on_the_medium_and_in_the_buffer(
        parameters in drives(),
        writes in proptest::collection::vec((0u64..500, 1u64..100_000, 1u64..100_000), 1..200),
    ) {
        let buffer = parameters.buffer_bytes.value;
        let mut tape = TapeModel::new(parameters);
        let (mut now_ns, mut written) = (0, 0);
        for (pause_ms, host_kb, compressed_kb) in writes {
            let arrives_ns = now_ns + pause_ms * 1_000_000;
            let done = tape.write(arrives_ns, host_kb * 1000, compressed_kb * 1000);
            now_ns = done.at_ns;
            written += if done.zone == Zone::End { 0 } else { compressed_kb * 1000 };
            let on_medium = tape.counters().medium_nanobytes;
            let buffered = u128::from(written) * u128::from(SECOND_NS) - on_medium;
            prop_assert!(buffered <= u128::from(buffer) * u128::from(SECOND_NS));
            prop_assert_eq!(u128::from(tape.buffered_bytes()), buffered / u128::from(SECOND_NS));
            prop_assert_eq!(tape.position_bytes(), written);
        }
        tape.filemark(now_ns, Filemark::Synchronising);
        prop_assert_eq!((tape.recorded_bytes(), tape.buffered_bytes()), (written, 0));
    }

    /// No run is faster than the highest step, nor than the interface.
    #[test]
    fn nothing_is_faster_than_the_medium_or_the_interface(
        parameters in drives(),
        block_kb in 1u64..4000,
        permille in 500u64..6000,
        source_mb in 1u64..5000,
    ) {
        let (highest, host) =
            (parameters.highest_bytes_per_second(), parameters.host_bytes_per_second.value);
        let mut tape = TapeModel::new(parameters);
        let ratio = Ratio { permille };
        let program = Copy {
            block_bytes: block_kb * 1000,
            source_bytes_per_second: source_mb * MB,
            ratio,
        };
        let run = copy(&mut tape, program, 2 * GB);
        let seconds = run.elapsed_ns as f64 / 1e9;
        let rate = run.host_bytes as f64 / seconds;
        prop_assert!(rate <= highest as f64 * ratio.as_f64() * 1.000_001);
        prop_assert!(rate <= host as f64 * 1.000_001);
        prop_assert!(rate <= source_mb as f64 * 1e6 * 1.000_001);
    }

    /// Reading returns what was written, no faster than it passes the head.
    #[test]
    fn a_read_ends_where_the_recording_ends(
        parameters in drives(),
        total_mb in 1u64..2000,
        block_kb in 1u64..4000,
        pause_us in 0u64..20_000,
    ) {
        let highest = parameters.highest_bytes_per_second();
        let mut tape = TapeModel::new(parameters);
        let block = block_kb * 1000;
        let mut now_ns = 0;
        for _ in 0..total_mb * MB / block {
            now_ns = tape.write(now_ns, block, block).at_ns;
        }
        now_ns = tape.filemark(now_ns, Filemark::Synchronising);
        let began_ns = tape.rewind(now_ns);
        now_ns = began_ns;
        for _ in 0..total_mb * MB / block {
            now_ns = tape.read(now_ns + pause_us * 1000, block, block).unwrap().at_ns;
        }
        prop_assert!(tape.read(now_ns, block, block).is_err());
        let least_ns = tape.recorded_bytes() as f64 / highest as f64 * 1e9;
        prop_assert!((now_ns - began_ns) as f64 >= least_ns * 0.999_999);
    }

    /// Data per stop is `B v / (v - r)` in the steady state, on every generation.
    #[test]
    fn data_per_stop_follow_the_formula(number in 1u8..11, percent in 20u64..90) {
        let mut parameters = TapeParameters::of(generation(number));
        let lowest = parameters.lowest_bytes_per_second();
        let buffer = parameters.buffer_bytes.value;
        parameters.wraps = Known::given(1);
        parameters.capacity_bytes = Known::given(1000 * buffer);
        let rate = lowest * percent / 100;
        let mut tape = TapeModel::new(parameters);
        let program = Stream { block_bytes: 1 << 16, ..slow_source(rate, 1 << 20, 0, None) };
        stream(&mut tape, program, 60 * buffer);
        let stops = tape.counters().back_hitches;
        let per_stop = tape.counters().medium_nanobytes as f64 / 1e9 / stops as f64;
        let expected = buffer as f64 * lowest as f64 / (lowest - rate) as f64;
        // A run has a whole number of stops, and the last may be just missed.
        let tolerance = 0.03 + 1.0 / stops as f64;
        prop_assert!((per_stop / expected - 1.0).abs() < tolerance, "{} {}", per_stop, expected);
    }
}

/// An hour in which nobody wrote was taken for a host that delivers nothing, and the first seconds
/// of a job went to the tape at the lowest speed.
#[test]
fn a_drive_that_stood_loaded_begins_as_fast_as_any() {
    let took_ns = |idle_ns: u64| {
        let mut tape = TapeModel::new(lto7());
        let begun_ns = tape.load(0, 0) + idle_ns;
        let mut now_ns = begun_ns;
        for _ in 0..800 {
            now_ns = tape.write(now_ns, 1 << 20, 1 << 20).at_ns;
        }
        tape.synchronise(now_ns) - begun_ns
    };
    assert_eq!(took_ns(0), took_ns(3600 * SECOND_NS));
    // Its highest speed from the start, and the run-up.
    assert!(took_ns(0) < 6 * SECOND_NS, "{}", took_ns(0));
}

fn slow_source(rate: u64, ring_bytes: u64, start_fill_percent: u8, drain: Option<u64>) -> Stream {
    Stream {
        source_bytes_per_second: rate,
        ring_bytes,
        start_fill_percent,
        drain_bytes_per_second: drain,
        block_bytes: 1 << 20,
        ratio: Ratio::NONE,
    }
}

fn stops(program: Stream, total_bytes: u64) -> u64 {
    let mut tape = TapeModel::new(lto7());
    let run = stream(&mut tape, program, total_bytes);
    assert_eq!(run.host_bytes, total_bytes);
    tape.counters().back_hitches
}

/// One stop for each `B v / (v - r)` without pacing, for each `M d / (d - r)` with it.
#[test]
fn pacing_makes_few_long_stops_out_of_many_short_ones() {
    let (rate, lowest, total) = (60 * MB, 101_460_000, 1000 * GB);
    let formula = |memory: u64| {
        let per_stop = memory as f64 * lowest as f64 / (lowest - rate) as f64;
        total as f64 / per_stop
    };
    let unpaced = stops(slow_source(rate, 16 << 30, 0, None), total) as f64;
    assert!((unpaced / formula(800 * MB) - 1.0).abs() < 0.02, "{unpaced}");
    let mut table =
        String::from("\n| ring | writer | stops, model | stops, formula |\n|---|---|---:|---:|\n");
    let mut row = |ring: &str, writer: &str, stops: f64, formula: Option<f64>| {
        let formula = formula.map_or(String::new(), |stops| format!("{stops:.0}"));
        table.push_str(&format!("| {ring} | {writer} | {stops:.0} | {formula} |\n"));
    };
    row("any", "never waits", unpaced, Some(formula(800 * MB)));
    for gib in [1u64, 4, 16, 64] {
        let ring = gib << 30;
        let paced = stops(slow_source(rate, ring, 100, Some(lowest)), total) as f64;
        // Draining at the drive's own speed keeps its buffer unchanged: only the ring counts.
        let expected = formula(ring);
        // The stops of a run are a whole number.
        assert!((paced - expected).abs() < 0.05 * expected + 1.0, "{gib}: {paced}, {expected}");
        assert!(paced < unpaced * 0.8);
        // When drained as fast as possible, it runs at its highest step and stops more often.
        let hasty = stops(slow_source(rate, ring, 100, None), total) as f64;
        assert!(hasty > paced * 1.2, "{gib}: {hasty} {paced}");
        row(&format!("{gib} GiB"), "waits for a full ring, drains at the lowest step", paced, {
            Some(expected)
        });
        row(&format!("{gib} GiB"), "waits for a full ring, drains at once", hasty, None);
    }
    println!("{table}");
}

#[test]
fn between_the_lowest_and_the_highest_step_the_drive_does_not_stop() {
    for number in 1..=10 {
        let parameters = TapeParameters::of(generation(number));
        let (lowest, highest) =
            (parameters.lowest_bytes_per_second(), parameters.highest_bytes_per_second());
        for percent in [2, 30, 70, 99] {
            let rate = lowest + (highest - lowest) * percent / 100;
            let mut tape = TapeModel::new(parameters.clone());
            stream(&mut tape, slow_source(rate, 64 << 20, 0, None), 200 * lowest);
            assert_eq!(tape.counters().back_hitches, 0, "LTO-{number} at {rate}");
            assert_eq!(tape.recorded_bytes(), 200 * lowest);
        }
    }
}

/// A medium that holds `bytes`, at its beginning, and the time at that moment.
fn recorded(parameters: TapeParameters, bytes: u64) -> (TapeModel, u64) {
    let mut tape = TapeModel::new(parameters);
    let loaded_ns = tape.load(0, bytes);
    (tape, loaded_ns)
}

/// Reads blocks of 1 MiB at a rate; returns back-hitches and the time.
fn read_at(rate: u64, total_bytes: u64) -> (u64, u64) {
    let (mut tape, began_ns) = recorded(lto7(), total_bytes);
    let mut now_ns = began_ns;
    let block_ns = (1u64 << 20) * SECOND_NS / rate;
    for _ in 0..total_bytes >> 20 {
        now_ns = tape.read(now_ns, 1 << 20, 1 << 20).unwrap().at_ns + block_ns;
    }
    (tape.counters().back_hitches, now_ns - began_ns)
}

/// Reading mirrors writing: the drive reads ahead and stops when its buffer is full, as often as it
/// stops for an empty buffer on a write.
#[test]
fn a_slow_reader_stops_the_tape_as_a_slow_writer_does() {
    let (rate, lowest, total) = (40 * MB, 101_460_000, 200u64 << 30);
    let (stops, took_ns) = read_at(rate, total);
    let per_stop = 800e6 * lowest as f64 / (lowest - rate) as f64;
    let expected = total as f64 / per_stop;
    assert!((stops as f64 / expected - 1.0).abs() < 0.05, "{stops}, formula {expected}");
    // The buffer hides the stops from the reader.
    let least_ns = total / rate * SECOND_NS;
    assert!(took_ns < least_ns / 100 * 103, "{took_ns}");
    let (stops, took_ns) = read_at(200 * MB, total);
    assert_eq!(stops, 0);
    assert!(took_ns < total / (200 * MB) * SECOND_NS / 100 * 103, "{took_ns}");
    // Unlimited it runs at the highest step, except for turns and the acceleration.
    let (_, took_ns) = read_at(100 * GB, total);
    let rate = total as f64 / (took_ns as f64 / 1e9);
    assert!((0.96..1.0).contains(&(rate / 306e6)), "{rate}");
}

#[test]
fn an_immediate_filemark_streams_on_and_a_synchronising_one_stops() {
    let elapsed = |kind| {
        let mut tape = TapeModel::new(lto7());
        let mut now_ns = 0;
        for _ in 0..1000 {
            now_ns = tape.write(now_ns, 9 * MB, 9 * MB).at_ns;
            now_ns = tape.filemark(now_ns, kind);
        }
        (tape.synchronise(now_ns), tape.counters().synchronisations)
    };
    let (immediate_ns, one) = elapsed(Filemark::Immediate);
    let (synchronising_ns, thousand) = elapsed(Filemark::Synchronising);
    assert_eq!((one, thousand), (1, 1000));
    assert!(immediate_ns < 35 * SECOND_NS && synchronising_ns > 3000 * SECOND_NS);
}

#[test]
fn wraps_turn_the_end_comes_and_is_told_before() {
    let mut parameters = lto7();
    parameters.capacity_bytes = Known::given(100 * GB);
    parameters.early_warning_bytes = Known::given(2 * GB);
    parameters.wraps = Known::given(10);
    let mut tape = TapeModel::new(parameters);
    let (mut now_ns, mut early) = (0, 0);
    loop {
        let done = tape.write(now_ns, 100 * MB, 100 * MB);
        now_ns = done.at_ns;
        match done.zone {
            Zone::Normal => assert_eq!(early, 0),
            Zone::EarlyWarning => early += 1,
            Zone::End => break,
        }
    }
    tape.filemark(now_ns, Filemark::Synchronising);
    assert_eq!((early, tape.recorded_bytes()), (20, 100 * GB));
    // The tenth wrap ends with the medium.
    assert_eq!(tape.counters().turns, 9);
    assert_eq!(tape.counters().back_hitches, 0, "a turn is no stop for want of data");
    assert!(matches!(tape.motion(), Motion::Still));
    // The tenth wrap ends at the beginning of the tape, so a rewind is the settling alone.
    let before_ns = tape.now_ns();
    assert_eq!(tape.rewind(before_ns) - before_ns, tape.parameters().settle_ns.value);
}
