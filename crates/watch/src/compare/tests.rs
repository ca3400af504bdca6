//! Records with a known truth: how often real and false differences are found.

use statistics::random::Random;

use super::*;
use crate::columns::DirectionColumns;
use crate::history::DeviceKind;

/// A record of reads whose rate varies around a level, each second similar to the previous one.
fn wandering(level: f64, like: f64, seconds: usize, random: &mut Random) -> History {
    let mut away = random.normal();
    let sample = |second: usize| {
        away = like * away + (1.0 - like * like).sqrt() * random.normal();
        let rate = level * (0.1 * away).exp();
        let read = DirectionColumns {
            requests_per_second: rate,
            kib_per_second: 8.0 * rate,
            await_ms: 1000.0 / rate,
            request_kib: 8.0,
            ..DirectionColumns::default()
        };
        let columns = Columns { read, queue_length: 1.0, busy_percent: 90.0, ..Columns::default() };
        let end_seconds = (second + 1) as f64;
        Sample { end_seconds, seconds: 1.0, columns, in_flight: 1, is_busy: true }
    };
    let device = DeviceHistory {
        name: "sda".to_owned(),
        kind: DeviceKind::Disk,
        made_of: Vec::new(),
        since_seconds: 0.0,
        until_seconds: seconds as f64,
        seconds: seconds as f64,
        intervals: seconds as u64,
        samples: (0..seconds).map(sample).collect(),
        spells: Vec::new(),
        gone_seconds: Vec::new(),
    };
    History {
        began_unix_seconds: 0,
        seconds: seconds as f64,
        intervals: seconds as u64,
        lengths_seconds: (1.0, 1.0),
        joined: 1,
        is_cut: false,
        left_out: (Vec::new(), 0),
        devices: vec![device],
    }
}

/// The number of comparisons that find different rates.
fn differing(level: f64, like: f64, comparisons: u32) -> u32 {
    let mut random = Random::new(7);
    let mut found = 0;
    for _ in 0..comparisons {
        let a = wandering(1000.0, like, 600, &mut random);
        let b = wandering(1000.0 * level, like, 600, &mut random);
        let comparison = compare(&a, &b);
        let rates = comparison.pairs.iter().find(|pair| pair.column == "r/s").unwrap();
        found += u32::from(rates.verdict == RateVerdict::Differs);
        let direction = rates.direction.map(|it| it == LargerSide::Higher);
        assert_eq!(direction.is_some(), rates.verdict == RateVerdict::Differs);
        assert!(level < 1.1 || direction != Some(false), "{rates:?}");
    }
    found
}

#[test]
fn seconds_that_resemble_each_other_do_not_make_a_difference() {
    for like in [0.0, 0.9, 0.97] {
        let found = differing(1.0, like, 200);
        assert!(found <= 16, "{found} of 200 with a correlation of {like}");
    }
    // Without blocks, every second comparison would find a false difference.
    let mut random = Random::new(7);
    let alone = (0..200).filter(|_| {
        let rates = |random: &mut Random| {
            let history = wandering(1000.0, 0.9, 600, random);
            let samples = history.devices[0].samples.iter();
            samples.map(|it| it.columns.read.requests_per_second).collect::<Vec<f64>>()
        };
        let (a, b) = (rates(&mut random), rates(&mut random));
        independent(&b, &a, 0.95).unwrap().p_value < 0.05
    });
    assert!(alone.count() > 80);
}

#[test]
fn a_difference_that_is_there_is_seen() {
    assert_eq!(differing(1.3, 0.5, 100), 100);
    let mut random = Random::new(1);
    let (a, b) =
        (wandering(1000.0, 0.5, 600, &mut random), wandering(1300.0, 0.5, 600, &mut random));
    let comparison = compare(&a, &b);
    let of = |column| comparison.pairs.iter().find(|pair| pair.column == column).unwrap();
    let rate = of("r/s");
    assert!(rate.interval.unwrap().contains(1.3), "{rate:?}");
    assert!((rate.a.median / 1000.0 - 1.0).abs() < 0.05 && rate.a.blocks == 16, "{rate:?}");
    assert!(rate.a.low < rate.a.median && rate.a.median < rate.a.high);
    assert_eq!(of("r_await").direction, Some(LargerSide::Lower));
    // Constant columns are the same.
    assert_eq!(
        (of("util").verdict, of("rareq-sz").verdict),
        (RateVerdict::Same, RateVerdict::Same)
    );
    // There were no writes to compare.
    assert!(comparison.pairs.iter().all(|pair| !pair.column.starts_with('w')));
}

#[test]
fn what_is_too_short_settles_nothing_and_says_so() {
    let mut random = Random::new(1);
    let (a, b) =
        (wandering(1000.0, 0.0, BUSY_MIN - 1, &mut random), wandering(9e3, 0.0, 600, &mut random));
    let comparison = compare(&a, &b);
    assert!(comparison.pairs.iter().all(|pair| pair.verdict == RateVerdict::NotSettled));
    assert!(comparison.pairs.iter().all(|pair| pair.interval.is_none()));
    assert!(comparison.sentences[0].contains("fewer than 40 busy intervals"));
    let long = compare(&wandering(1000.0, 0.0, BUSY_MIN, &mut random), &b);
    assert!(long.pairs.iter().any(|pair| pair.verdict == RateVerdict::Differs));
}

/// A direction in only one record has no numbers to compare; its presence is the difference.
#[test]
fn writes_that_are_new_are_told() {
    let mut random = Random::new(9);
    let a = wandering(1000.0, 0.0, 60, &mut random);
    let mut b = wandering(1000.0, 0.0, 60, &mut random);
    assert_eq!(compare(&a, &b).one_sided, []);
    for sample in &mut b.devices[0].samples {
        sample.columns.write.requests_per_second = 250.0;
        sample.columns.write.kib_per_second = 2000.0;
    }
    let found = compare(&a, &b);
    assert_eq!(found.one_sided.len(), 1, "{found:?}");
    let one = &found.one_sided[0];
    assert_eq!((&*one.device, &*one.direction, &*one.record), ("sda", "writes", "B"));
    let sentence = "sda: only B has writes: 250 a second, 2.05 MB/s, in 60 intervals";
    assert!(found.sentences.iter().any(|it| it == sentence), "{:?}", found.sentences);
    let other_way = compare(&b, &a);
    assert_eq!(other_way.one_sided[0].record, "A");
}
