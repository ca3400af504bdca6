//! Records made by the model of a drive whose parameters are known, with noise: what is told of
//! them has to be these.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::tape::parameters::{Origin, TapeParameters};
use model::tape::{Filemark, TapeModel};

use super::*;
use crate::tape::SOURCE_HELD;
use experiment::record::{FORMAT, Header, Level, Value, cell};
use statistics::bytes_over_time::SeriesRecorder;
use statistics::random::Random;

const MIB: u64 = 1 << 20;
const HIGHEST: u64 = 110_000_000;

/// An LTO-4 that is none of the table.
fn truth() -> TapeParameters {
    let generation = Generation::all().iter().find(|known| known.name == "LTO-4").unwrap();
    let mut drive = TapeParameters::of(generation);
    drive.set_speeds(&[40_000_000, 80_000_000, HIGHEST]);
    for (name, value) in [
        (HOST, 230_000_000),
        (COMMAND, 120_000),
        (SYNCHRONISE, 2_400_000_000),
        (BUFFER, 90_000_000),
    ] {
        assert!(drive.set(name, value));
    }
    drive
}

/// A run without noise: what the host of such a drive would have seen.
fn ideal(drive: &TapeParameters, levels: &[(&str, &str)]) -> RunRecord {
    let cell = cell(&[&[("ring_bytes", "67108864")][..], levels].concat());
    let number = |name: &str| experiment::record::number_in(&cell, name, 0).unwrap();
    let (block, bytes) = (number("block_bytes"), number("file_bytes"));
    let ratio = match word_in(&cell, "data").unwrap() {
        Some("zeros") => 90,
        _ => 1,
    };
    let mut machine = TapeModel::new(drive.clone());
    let start = Instant::now();
    let mut series = SeriesRecorder::new(start);
    let mut now_ns = 0;
    for _ in 0..bytes / block {
        now_ns = machine.write(now_ns, block, block / ratio).at_ns;
        series.add(start + Duration::from_nanos(now_ns), block);
    }
    let written = now_ns as f64 / NS;
    let seconds = machine.filemark(now_ns, Filemark::Synchronising) as f64 / NS;
    let measures = [
        ("filemark_seconds", seconds - written),
        ("without_filemark_bytes_per_second", bytes as f64 / written),
    ];
    let environment = [
        ("drive", "IBM ULT3580-TD4"),
        ("path", "/dev/nst0"),
        ("drive compression", "on"),
        ("drive buffer bytes", "90000000"),
        ("drive lowest bytes per second", "40000000"),
    ];
    let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    RunRecord {
        cell,
        bytes,
        seconds,
        series: Some(series.finish(seconds)),
        measures: BTreeMap::from(measures.map(|(name, value)| (name.to_owned(), value))),
        environment: BTreeMap::from(environment.map(owned)),
        ..RunRecord::default()
    }
}

/// The same in a repeat, with all its times so many times as long.
fn slower(run: &RunRecord, repeat: u64, times: f64) -> RunRecord {
    let mut run = RunRecord { repeat, seconds: run.seconds * times, ..run.clone() };
    run.series.iter_mut().for_each(|series| series.step_seconds *= times);
    for (name, value) in &mut run.measures {
        *value *= if name.ends_with("_per_second") { 1.0 / times } else { times };
    }
    run
}

/// Every run so often, each with its own noise and that of its repeat.
pub fn repeated(kind: &str, ideal: &[RunRecord], repeats: u64, seed: u64) -> Experiment {
    let mut random = Random::new(seed);
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        let common = 0.002 * random.normal();
        for run in ideal {
            runs.push(slower(run, repeat, (common + 0.004 * random.normal()).exp()));
        }
    }
    let header = Header {
        format: FORMAT,
        kind: kind.to_owned(),
        title: "t".to_owned(),
        value: Value::Rate,
        factors: Vec::new(),
        plan: serde_json::Value::Null,
        seed,
        started_unix_seconds: 0,
    };
    Experiment { header, runs, torn_bytes: 0 }
}

/// Zeros and random data over block sizes, in files of that size.
fn sweep(drive: &TapeParameters, file_bytes: u64) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for data in ["zeros", "random"] {
        for block in [16_384, 65_536, 262_144, MIB] {
            let (block, bytes) = (block.to_string(), file_bytes.to_string());
            let levels = [("data", data), ("block_bytes", &block), ("file_bytes", &bytes)];
            runs.push(ideal(drive, &levels));
        }
    }
    runs
}

fn of<'a>(found: &'a Calibration, parameter: &str) -> Option<&'a Told> {
    found.told.iter().find(|told| told.parameter == parameter)
}

fn why(found: &Calibration, parameter: &'static str) -> String {
    let mut not_told = found.not_told.iter();
    not_told
        .find(|one| one.parameters.contains(&parameter))
        .map_or(String::new(), |one| one.why.clone())
}

#[test]
fn parameters_that_were_put_in_come_out_within_their_intervals() {
    const SEEDS: u64 = 60;
    let ideal = sweep(&truth(), 400_000_000);
    let truths = [
        (SPEEDS, HIGHEST as f64),
        (HOST, 230e6),
        (COMMAND, 120e3),
        (SYNCHRONISE, 2.4e9),
        (BUFFER, 90e6),
    ];
    let mut held = BTreeMap::new();
    let mut told = BTreeMap::new();
    for seed in 0..SEEDS {
        let found = calibrate(&repeated("tape", &ideal, 4, seed)).unwrap();
        for (name, value) in truths {
            let Some(one) = of(&found, name) else { continue };
            *told.entry(name).or_insert(0) += 1;
            *held.entry(name).or_insert(0) += u64::from(one.interval.contains(value));
            assert!((one.value / value).ln().abs() < 0.35, "{name}: {one:?}");
        }
        // The way to zeros is through the counter, random data are what they are.
        assert!(why(&found, BACK_HITCH).contains("no run was slower than"), "{found:?}");
        assert!(why(&found, "wind_ns").contains("no run fills"), "{found:?}");
    }
    for (name, _) in truths {
        let (held, told) = (held[name], told[name]);
        assert!(told >= SEEDS / 2, "{name}: told {told} times of {SEEDS}");
        assert!(held * 10 >= told * 9, "{name}: {held} of {told} intervals hold the truth");
    }
}

#[test]
fn what_was_told_makes_a_drive_that_takes_the_same_time() {
    let ideal_runs = sweep(&truth(), 400_000_000);
    let found = calibrate(&repeated("tape", &ideal_runs, 6, 1)).unwrap();
    let lto4 = found.generation.unwrap();
    assert_eq!((lto4.name, &found.drive[..]), ("LTO-4", "IBM ULT3580-TD4"));
    let mut fitted = TapeParameters::of(lto4);
    let table = fitted.clone();
    found.apply(&mut fitted);
    assert_eq!(fitted.speeds_origin, Origin::Fitted);
    assert_eq!(fitted.synchronise_ns.origin, Origin::Fitted);
    assert_eq!(fitted.wind_ns, table.wind_ns);
    // Files that were not among those of the experiment.
    for data in ["zeros", "random"] {
        let levels = [("data", data), ("block_bytes", "32768"), ("file_bytes", "1310720000")];
        let off = |drive: &TapeParameters| {
            ideal(drive, &levels).seconds / ideal(&truth(), &levels).seconds - 1.0
        };
        assert!(off(&fitted).abs() < 0.01, "{data}: {}", off(&fitted));
        assert!(off(&table).abs() > 0.02, "{data}: the table would do: {}", off(&table));
    }
}

#[test]
fn one_run_tells_nothing() {
    let ideal = sweep(&truth(), 400_000_000);
    assert_eq!(calibrate(&repeated("tape", &ideal, 1, 1)), Err(CalibrationError::Once));
    // What ran once is left out where others have repeats.
    let mut mixed = repeated("tape", &ideal[4..], 3, 1);
    mixed.runs.extend(ideal[..4].iter().cloned());
    let found = calibrate(&mixed).unwrap();
    assert!(of(&found, SPEEDS).is_some() && of(&found, HOST).is_none(), "{found:?}");
    assert!(why(&found, HOST).contains("fewer than 3 repeated sizes"), "{found:?}");
}

#[test]
fn what_cannot_be_told_is_named_with_what_would_tell_it() {
    let drive = truth();
    let levels = [("data", "random"), ("block_bytes", "1048576"), ("file_bytes", "419430400")];
    // Long runs alone: what the filemark waits for is not known, nor how much is in the buffer.
    let found = calibrate(&repeated("tape", &[ideal(&drive, &levels)], 3, 1)).unwrap();
    assert!(of(&found, SPEEDS).is_some(), "{found:?}");
    assert!(why(&found, SYNCHRONISE).contains("at most 3."), "{found:?}");
    // What is not told is as before only where the runs leave room for it.
    for (assumed, is_in_reach) in [(2_000_000_000, true), (5_000_000_000, false)] {
        let mut table = drive.clone();
        table.set(SYNCHRONISE, assumed);
        let beyond = found.out_of_reach(&table);
        found.apply(&mut table);
        let taken = table.synchronise_ns;
        assert_eq!((taken.value == assumed, beyond.is_empty()), (is_in_reach, is_in_reach));
        assert!(is_in_reach || (3_000_000_000..4_000_000_000).contains(&taken.value), "{taken:?}");
        assert!(is_in_reach || taken.origin.name() == "assumed", "{taken:?}");
    }
    assert!(why(&found, BUFFER).contains("both of runs that fill the buffer"), "{found:?}");
    // Zeros alone: no tape is seen.
    let zeros = sweep(&drive, 400_000_000).into_iter().take(4).collect::<Vec<_>>();
    let found = calibrate(&repeated("tape", &zeros, 3, 1)).unwrap();
    assert!(why(&found, SPEEDS).contains("--data random"), "{found:?}");
    assert!(of(&found, HOST).is_some() && of(&found, COMMAND).is_some(), "{found:?}");
    // Blocks so small that commands are the limit: no speed of the tape.
    let small = [("data", "random"), ("block_bytes", "8192"), ("file_bytes", "400003072")];
    let mut runs = zeros.clone();
    runs.push(ideal(&drive, &small));
    let found = calibrate(&repeated("tape", &runs, 3, 1)).unwrap();
    assert!(why(&found, SPEEDS).contains("made the host wait"), "{found:?}");
    assert!(why(&found, BACK_HITCH).contains("no run was slower"), "{found:?}");
}

#[test]
fn runs_that_the_generator_held_back_tell_nothing_of_the_drive() {
    let mut experiment = repeated("tape", &sweep(&truth(), 400_000_000), 3, 1);
    let notes = |run: &mut RunRecord| run.notes.push(format!("reading /srv{SOURCE_HELD}"));
    experiment.runs.iter_mut().for_each(notes);
    let error = calibrate(&experiment).unwrap_err();
    assert!(matches!(error, CalibrationError::Nothing { .. }), "{error}");
}

#[test]
fn stops_are_told_where_the_drive_counts_them() {
    let levels = [("data", "random"), ("block_bytes", "4096"), ("file_bytes", "122880000")];
    let slow = ideal(&truth(), &levels);
    let rate = slow.measures["without_filemark_bytes_per_second"];
    assert!(rate < 39e6, "{rate}");
    let mut runs = sweep(&truth(), 400_000_000);
    runs.push(slow);
    let found = calibrate(&repeated("tape", &runs, 3, 1)).unwrap();
    assert!(why(&found, BACK_HITCH).contains("3 runs were slower"), "{found:?}");
    let last = runs.last_mut().unwrap();
    last.measures.insert("drive_back_hitches".to_owned(), 4.0);
    last.measures.insert("drive_back_hitch_seconds".to_owned(), 11.2);
    let mut experiment = repeated("tape", &runs, 3, 1);
    for run in &mut experiment.runs {
        run.measures.entry("drive_back_hitches".to_owned()).and_modify(|count| *count = 4.0);
    }
    let found = calibrate(&experiment).unwrap();
    assert!(of(&found, BACK_HITCH).unwrap().interval.contains(2.8e9), "{found:?}");
    for run in experiment.runs.iter_mut().filter(|run| run.repeat > 1) {
        run.measures.retain(|name, _| !name.contains("back_hitch"));
    }
    let found = calibrate(&experiment).unwrap();
    assert!(why(&found, BACK_HITCH).contains("in one repeat alone"), "{found:?}");
}

#[test]
fn ratios_and_read_rates_stand_beside() {
    let mut runs = sweep(&truth(), 400_000_000);
    let read = RunRecord { bytes: 100_000_000, seconds: 1.0, ..runs[7].clone() };
    let mut own = runs[7].clone();
    own.cell.insert("data".to_owned(), Level::Text("/srv/db.dump".to_owned()));
    own.measures.insert("drive_compression_ratio".to_owned(), 1.8);
    runs.push(own);
    runs.push(read);
    let last = runs.last_mut().unwrap();
    last.cell.insert("operation".to_owned(), Level::Text("read".to_owned()));
    let found = calibrate(&repeated("tape", &runs, 3, 1)).unwrap();
    assert!(found.own_ratio().unwrap().interval.contains(1.8), "{found:?}");
    assert!(found.reads[0].interval.contains(1e8), "{found:?}");
}

#[test]
fn records_of_something_else_are_refused() {
    let good = repeated("tape", &sweep(&truth(), 40_000_000)[..1], 2, 1);
    let refused = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = good.clone();
        change(&mut experiment);
        calibrate(&experiment).unwrap_err().to_string()
    };
    let all = |experiment: &mut Experiment, name: &str, text: &str| {
        for run in &mut experiment.runs {
            run.environment.insert(name.to_owned(), text.to_owned());
        }
    };
    let kind = refused(&|experiment| experiment.header.kind = "disk".to_owned());
    assert!(kind.contains("kind \"disk\""), "{kind}");
    let failed = refused(&|experiment| {
        experiment.runs.iter_mut().for_each(|run| run.error = Some("no".to_owned()));
    });
    assert_eq!(failed, "none of its 2 runs succeeded");
    let file = refused(&|experiment| {
        all(experiment, "path", "/tmp/x");
        experiment.runs.iter_mut().for_each(|run| drop(run.environment.remove("drive")));
    });
    assert_eq!(file, "its runs went to /tmp/x, which is not a tape drive");
    let several = refused(&|experiment| {
        experiment.runs[0].environment.insert("drive".to_owned(), "HP Ultrium 4".to_owned());
    });
    assert!(several.contains("HP Ultrium 4 at /dev/nst0, IBM ULT3580-TD4"), "{several}");
    let media = refused(&|experiment| {
        all(experiment, "medium generation", "LTO-4");
        let first = &mut experiment.runs[0].environment;
        first.insert("medium generation".to_owned(), "LTO-3".to_owned());
    });
    assert!(media.contains("several generations: LTO-3, LTO-4"), "{media}");
}
