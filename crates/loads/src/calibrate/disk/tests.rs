//! Records made by the model of a disk whose parameters are known, with noise: what is told of them
//! has to be these.

use std::collections::BTreeMap;

use model::disk::{DiskChanges, DiskModel};

use super::*;
use experiment::record::{Factor, cell};
use statistics::random::Random;

const LOADS: [&str; 2] = ["randread", "read"];
const BLOCKS: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const DEPTHS: [u64; 5] = [1, 4, 16, 64, 256];

/// A run without noise: what fio would have seen of such a disk, with so many requests in flight.
fn ideal(disk: &DiskParameters, load: &str, block: u64, depth: u64) -> RunRecord {
    // A whole number for all servers: the last ones to work are not alone.
    const REQUESTS: u64 = 2048;
    let mut machine = DiskModel::new(disk.clone());
    let mut random = Random::new(1);
    let mut done: Vec<u64> = vec![0; depth as usize];
    for number in 0..REQUESTS {
        let (next, now) = done.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
        let place = if load == "read" { number } else { random.below(1 << 20) as u64 };
        done[next] = machine.submit(now, place * block, block);
    }
    let (block_text, depth) = (block.to_string(), depth.to_string());
    let levels = [("load", load), ("block_bytes", &block_text), ("depth", &depth)];
    let environment = [("device", "sdq"), ("device model", "ACME 9"), ("queue rotational", "1")];
    let measures = [("device_request_bytes", block as f64), ("device_bytes_per_byte", 1.0)];
    RunRecord {
        cell: cell(&levels),
        bytes: REQUESTS * block,
        seconds: done.into_iter().max().unwrap() as f64 / NS,
        measures: BTreeMap::from(measures.map(|(name, value)| (name.to_owned(), value))),
        environment: BTreeMap::from(
            environment.map(|(name, text)| (name.to_owned(), text.to_owned())),
        ),
        ..RunRecord::default()
    }
}

fn all(disk: &DiskParameters, loads: &[&str], blocks: &[u64], depths: &[u64]) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for load in loads {
        for block in blocks {
            runs.extend(depths.iter().map(|depth| ideal(disk, load, *block, *depth)));
        }
    }
    runs
}

fn repeated(ideal: &[RunRecord], repeats: u64, seed: u64) -> Experiment {
    let mut experiment = crate::calibrate::tests::repeated("disk", ideal, repeats, seed);
    experiment.header.factors = vec![Factor::new("load", Vec::new())];
    experiment
}

fn of<'a>(found: &'a DiskCalibration, parameter: &str) -> Option<&'a Told> {
    found.told.iter().find(|told| told.parameter == parameter)
}

fn bound(found: &DiskCalibration, parameter: &str) -> Option<f64> {
    let bound = found.bounds.iter().find(|bound| bound.parameter == parameter);
    bound.map(|bound| bound.at_least)
}

fn flash() -> DiskParameters {
    DiskParameters {
        servers: 8,
        command_ns: 500_000,
        server_bytes_per_second: 400_000_000,
        link_bytes_per_second: 900_000_000,
        ..DiskParameters::ssd_sata()
    }
}

fn fixed() -> DiskParameters {
    let changes = DiskChanges {
        service_ns: Some(5_500_000),
        servers: Some(64),
        bytes_per_second: Some(600_000_000),
        ..DiskChanges::default()
    };
    DiskParameters::sas15k().with(&changes)
}

/// A disk whose seeks all take as long: calibration knows no distance.
fn spindle() -> DiskParameters {
    let changes = DiskChanges { seek_ns: Some(5_400_000), ..DiskChanges::default() };
    DiskParameters::sas15k().with(&changes)
}

/// Every told parameter within its interval, in all but a few of many experiments.
fn check(disk: &DiskParameters, truths: &[(&str, f64)]) {
    const SEEDS: u64 = 20;
    let ideal = all(disk, &LOADS, &BLOCKS, &DEPTHS);
    for (name, truth) in truths {
        let (mut told, mut held) = (0, 0);
        for seed in 0..SEEDS {
            let found = calibrate(&repeated(&ideal, 4, seed)).unwrap();
            let Some(one) = of(&found, name) else { continue };
            told += 1;
            held += u64::from(one.interval.contains(*truth));
            assert!((one.value - truth).abs() <= 0.05 * truth + 60e3, "{one:?}, truth {truth}");
        }
        assert!(told == SEEDS && held >= SEEDS - 2, "{name}: {held} of {told} hold {truth}");
    }
}

#[test]
fn a_flash_disk_comes_out_within_the_intervals() {
    check(
        &flash(),
        &[(COMMAND, 500e3), (SEEK, 0.0), (SERVER, 400e6), (LINK, 900e6), (PARALLEL, 8.0)],
    );
}

#[test]
fn a_spindle_comes_out_within_the_intervals() {
    let disk = spindle();
    check(&disk, &[(COMMAND, 100e3), (SEEK, 5.4e6), (SERVER, 200e6), (PARALLEL, 1.0)]);
    // A single one never shows what the link would carry.
    let found = calibrate(&repeated(&all(&disk, &LOADS, &BLOCKS, &DEPTHS), 3, 1)).unwrap();
    assert!(of(&found, LINK).is_none());
    assert!((190e6..205e6).contains(&bound(&found, LINK).unwrap()), "{found:#?}");
    assert_eq!(found.nearest_preset, "sata7200");
    assert_eq!(found.disk, "sdq (ACME 9)");
}

#[test]
fn a_disk_of_one_time_for_every_request_comes_out_within_the_intervals() {
    check(&fixed(), &[(COMMAND, 5.5e6), (SEEK, 0.0), (LINK, 600e6), (PARALLEL, 64.0)]);
    let found = calibrate(&repeated(&all(&fixed(), &LOADS, &BLOCKS, &DEPTHS), 3, 1)).unwrap();
    assert!(of(&found, SERVER).is_none(), "{found:#?}");
    assert!(bound(&found, SERVER).unwrap() > 2e9, "{found:#?}");
}

/// A model with what was told answers as the disk did, with sizes and depths that no run had.
#[test]
fn what_was_told_foretells_runs_that_were_not_made() {
    for disk in [flash(), spindle(), fixed()] {
        let found = calibrate(&repeated(&all(&disk, &LOADS, &BLOCKS, &DEPTHS), 3, 7)).unwrap();
        let mut again = DiskParameters::named(found.nearest_preset).unwrap();
        found.apply(&mut again);
        for (load, block, depth) in
            [("randread", 32 << 10, 2), ("read", 128 << 10, 1), ("randread", 512 << 10, 32)]
        {
            let [truth, foretold] = [&disk, &again].map(|it| ideal(it, load, block, depth).seconds);
            let off = foretold / truth - 1.0;
            assert!(off.abs() < 0.1, "{load} {block} {depth}: {off} by {again:?} of {disk:?}");
        }
    }
}

#[test]
fn one_size_of_block_does_not_tell_servers_from_the_rate_of_the_whole() {
    let found = calibrate(&repeated(&all(&flash(), &["randread"], &[4096], &DEPTHS), 3, 1));
    let found = found.unwrap();
    assert!(of(&found, PARALLEL).is_none() && of(&found, LINK).is_none(), "{found:#?}");
    assert_eq!(bound(&found, PARALLEL), Some(7.0), "{found:#?}");
    // Nothing tells a seek from a command either.
    assert!(of(&found, RANDOM).unwrap().interval.contains(510e3), "{found:#?}");
    assert!(of(&found, COMMAND).is_none() && of(&found, SEEK).is_none());
}

#[test]
fn depths_that_still_bring_more_tell_the_least() {
    let found =
        calibrate(&repeated(&all(&fixed(), &["randread"], &BLOCKS[..3], &[1, 4, 16]), 3, 1));
    let found = found.unwrap();
    assert!(of(&found, PARALLEL).is_none(), "{found:#?}");
    assert!((14.0..=16.0).contains(&bound(&found, PARALLEL).unwrap()), "{found:#?}");
    let mut disk = DiskParameters::sas15k();
    found.apply(&mut disk);
    assert!(disk.servers >= 14, "{disk:?}");
}

/// At 64 in flight an answer takes 27 ms where 7 are the device's: the others wait in its queue,
/// also where sixteen alone do not keep all of it busy.
#[test]
fn answers_that_wait_tell_how_many_are_served() {
    let changes = DiskChanges {
        service_ns: Some(7_000_000),
        servers: Some(16),
        bytes_per_second: Some(600_000_000),
        ..DiskChanges::default()
    };
    let disk = DiskParameters::sas15k().with(&changes);
    let mut runs = all(&disk, &["randread"], &[4096, 1 << 20], &[1, 4, 16, 64]);
    for run in &mut runs {
        if run.cell.get("depth") == cell(&[("depth", "16")]).get("depth") {
            run.seconds *= 1.12;
        }
    }
    let found = calibrate(&repeated(&runs, 3, 1)).unwrap();
    let told = of(&found, PARALLEL).unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(told.value, 16.0, "{found:#?}");
}

/// The disks of an array are never all busy: what a sweep comes to is below their number.
#[test]
fn disks_of_an_array_are_within_what_is_told() {
    let disk = DiskParameters::array(8);
    for depths in [&[1, 8, 16, 32][..], &[1, 8, 32, 64], &[1, 16, 32, 64]] {
        let runs = all(&disk, &["randread"], &[4096, 1 << 20], depths);
        let found = calibrate(&repeated(&runs, 3, 1)).unwrap();
        match (of(&found, PARALLEL), bound(&found, PARALLEL)) {
            (Some(told), _) => assert!(told.interval.contains(8.0), "{depths:?} {told:#?}"),
            (None, Some(least)) => assert!(least <= 8.0, "{depths:?} {found:#?}"),
            (None, None) => panic!("{depths:?} {found:#?}"),
        }
    }
}

/// `takeup bench read` with `--cache direct` asks in a row, and tells the same but for seeks.
#[test]
fn reads_of_a_stream_tell_what_they_can() {
    let mut runs = all(&flash(), &["read"], &BLOCKS, &DEPTHS);
    for run in &mut runs {
        run.cell.remove("load");
        run.cell.extend(cell(&[("cache", "direct"), ("engine", "io_uring")]));
    }
    let mut experiment = repeated(&runs, 3, 1);
    experiment.header.kind = "read".to_owned();
    experiment.header.factors.clear();
    let found = calibrate(&experiment).unwrap();
    assert!(of(&found, COMMAND).unwrap().interval.contains(500e3), "{found:#?}");
    assert!((of(&found, LINK).unwrap().value / 900e6 - 1.0).abs() < 0.02, "{found:#?}");
    assert_eq!(of(&found, PARALLEL).unwrap().value, 8.0);
    assert!(of(&found, SEEK).is_none() && bound(&found, SEEK).is_none());
}

#[test]
fn requests_that_the_kernel_cut_or_the_cache_had_tell_nothing() {
    let mut runs = all(&flash(), &LOADS, &BLOCKS, &[1]);
    for run in &mut runs {
        run.measures.insert("device_request_bytes".to_owned(), 4096.0 * 1.5);
    }
    let error = calibrate(&repeated(&runs, 3, 1)).unwrap_err().to_string();
    assert!(error.contains("there are no repeated direct reads"), "{error}");
    let mut runs = all(&flash(), &LOADS, &BLOCKS, &[1]);
    for run in &mut runs {
        run.measures.insert("device_bytes_per_byte".to_owned(), 0.2);
    }
    assert!(matches!(calibrate(&repeated(&runs, 3, 1)), Err(CalibrationError::Nothing { .. })));
}

#[test]
fn what_tells_nothing_is_refused_with_a_reason() {
    let good = || repeated(&all(&flash(), &LOADS, &BLOCKS[..2], &[1]), 2, 1);
    let check = |change: &dyn Fn(&mut Experiment), expected: &str| {
        let mut experiment = good();
        change(&mut experiment);
        let error = calibrate(&experiment).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    assert!(calibrate(&good()).is_ok());
    check(&|it| it.header.kind = "tape".to_owned(), "of the kind \"tape\"");
    check(&|it| it.header.factors.clear(), "its load is your own job file");
    check(&|it| it.runs.clear(), "none of its 0 runs succeeded");
    check(&|it| it.runs.retain(|run| run.repeat == 1), "ran once");
    check(
        &|it| {
            it.runs[0].environment.insert("device".to_owned(), "sdr".to_owned());
        },
        "of several disks: sdq (ACME 9), sdr (ACME 9)",
    );
    check(
        &|it| {
            for run in &mut it.runs {
                run.cell.extend(cell(&[("cache", "buffered")]));
            }
        },
        "there are no repeated direct reads",
    );
}
