//! Each rule of the list is made to report a finding, and every finding is of a rule on the list.

use std::collections::BTreeSet;

use super::*;
use crate::record::PipeUse;
use statistics::bytes_over_time::Series;

/// Rates of one number over four levels, and what a run has besides.
struct Design {
    rates: [f64; 4],
    repeats: u64,
    tweak: fn(&mut RunRecord),
}

const RISING: Design = Design { rates: [50e6, 80e6, 110e6, 130e6], repeats: 5, tweak: |_| () };

impl Design {
    fn runs(&self) -> Vec<RunRecord> {
        let mut runs = Vec::new();
        for repeat in 1..=self.repeats {
            for (level, rate) in BLOCKS.into_iter().zip(self.rates) {
                // A scatter of a thousandth; without scatter there is no interval.
                let seconds = 2.0 * (1.0 + 0.001 * (repeat % 3) as f64);
                let mut run = RunRecord {
                    cell: [("block_bytes".to_owned(), Level::Number(level))].into(),
                    repeat,
                    bytes: (2.0 * rate) as u64,
                    seconds,
                    ..RunRecord::default()
                };
                (self.tweak)(&mut run);
                runs.push(run);
            }
        }
        runs
    }

    fn judged(&self) -> Judgement {
        let levels = BLOCKS[..4].iter().map(|&level| Level::Number(level)).collect();
        let name = "block_bytes".to_owned();
        let factor = Factor { name, levels, role: Role::Setting, present: None };
        judge(&[factor], &self.runs(), &JudgementOptions::default())
    }
}

fn is_first(run: &RunRecord) -> bool {
    run.repeat == 1 && run.cell["block_bytes"] == Level::Number(BLOCKS[0])
}

fn measured(run: &mut RunRecord, measures: &[(&str, f64)]) {
    run.measures.extend(measures.iter().map(|(name, value)| ((*name).to_owned(), *value)));
}

fn series(run: &mut RunRecord, bytes: fn(usize) -> u64) {
    let bytes = (0..101).map(bytes).collect();
    run.series = Some(Series { step_seconds: run.seconds / 100.0, bytes });
}

/// Requests at the device of the size given, and the share of them that was merged.
fn requests(run: &mut RunRecord, bytes: f64, merged_percent: f64) {
    let all = [("device_request_bytes", bytes), ("device_merged_percent", merged_percent)];
    measured(run, &all);
}

const TWEAKS: &[fn(&mut RunRecord)] = &[
    |run| {
        if is_first(run) {
            measured(run, &[("others_cores_percent", 90.0), ("others_wait_percent", 20.0)]);
        }
    },
    |run| {
        let Level::Number(bytes) = run.cell["block_bytes"] else { return };
        measured(run, &[("memory_bytes", bytes as f64)]);
    },
    |run| {
        run.environment.insert("queue max_sectors_kb".to_owned(), "64".to_owned());
        requests(run, 65536.0, 0.0);
    },
    |run| requests(run, 1e6, 80.0),
    |run| {
        requests(run, BLOCKS[3] as f64, 0.0);
        measured(run, &[("fio_clat_mean_ns", 3e6), ("device_await_ns", 1e6)]);
    },
    |run| measured(run, &[("fio_clat_mean_ns", 1e5), ("fio_slat_mean_ns", 1e6)]),
    |run| run.printed_bytes_per_second = is_first(run).then_some(1e6),
    |run| run.error = is_first(run).then(|| "no medium".to_owned()),
    |run| {
        if run.cell["block_bytes"] == Level::Number(BLOCKS[0]) {
            run.error = Some("slower than 5.00 MB/s".to_owned());
            run.cut_after_seconds = Some(30.0);
            run.slower_than_bytes_per_second = Some(5e6);
        }
    },
    |run| run.seconds *= if is_first(run) { 1.5 } else { 1.0 },
    |run| run.seconds *= 1.0 + 0.05 * run.repeat as f64,
    |run| run.notes.push("somebody else was busy".to_owned()),
    |run| {
        run.pipes = vec![PipeUse {
            from: "tar".to_owned(),
            to: "dd".to_owned(),
            looks: 50,
            full_percent: Some(90.0),
            empty_percent: Some(5.0),
            ..PipeUse::default()
        }];
    },
    |run| series(run, |step| 1000 + step as u64 % 3 + if step > 50 { 1000 } else { 0 }),
    |run| series(run, |step| 1000 + step as u64 % 3 - if step < 30 { 900 } else { 0 }),
    |run| series(run, |step| 1000 + step as u64 % 3 - if step / 20 == 2 { 900 } else { 0 }),
    // Every repeat differs, and every cell in another way.
    |run| {
        let Level::Number(bytes) = run.cell["block_bytes"] else { return };
        let place = (bytes / BLOCKS[0]).ilog2();
        let shift = [1.0, 3.0, 5.0, 2.0, 4.0][(run.repeat as usize * 2 + place as usize) % 5];
        run.bytes = (100e6 * shift) as u64;
    },
    |run| {
        run.seconds /= 10.0;
        series(run, |_| 1000);
    },
];

/// Two realistic loads; and files of three lengths, each with a fixed time.
fn two_loads() -> Judgement {
    let mut all = Vec::new();
    for (index, data) in ["random", "text:2"].iter().enumerate() {
        for mut run in RISING.runs() {
            run.cell.insert("data".to_owned(), Level::Text((*data).to_owned()));
            run.seconds /= 1.0 + index as f64;
            all.push(run);
        }
    }
    let levels = ["random", "text:2"].map(|data| Level::Text(data.into())).to_vec();
    let blocks = BLOCKS[..4].iter().map(|&level| Level::Number(level)).collect();
    let factors = [Factor::new("data", levels), Factor::new("block_bytes", blocks)];
    judge(&factors, &all, &JudgementOptions::default())
}

fn three_lengths() -> Judgement {
    let mut all = RISING.runs();
    all.retain(|run| run.cell["block_bytes"] != Level::Number(BLOCKS[3]));
    for run in &mut all {
        let Some(Level::Number(bytes)) = run.cell.remove("block_bytes") else { continue };
        run.cell.insert("file_bytes".to_owned(), Level::Number(bytes));
        run.seconds *= 1e-3 + bytes as f64 / 1e9;
        run.bytes = bytes;
    }
    let levels = BLOCKS[..3].iter().map(|&level| Level::Number(level)).collect();
    judge(&[Factor::new("file_bytes", levels)], &all, &JudgementOptions::default())
}

/// Windows: the smallest does not hold a request, and the largest costs other programs.
fn three_windows() -> Judgement {
    let mut all = RISING.runs();
    all.retain(|run| run.cell["block_bytes"] != Level::Number(BLOCKS[3]));
    for run in &mut all {
        let Level::Number(window) = run.cell["block_bytes"] else { continue };
        run.cell.insert("read_ahead_bytes".to_owned(), Level::Number(window));
        run.cell.insert("block_bytes".to_owned(), Level::Number(BLOCKS[1]));
        run.bytes = if window < BLOCKS[1] { 50_000_000 } else { 100_000_000 };
        let paid = if window > BLOCKS[1] { 9e6 } else { 5e6 };
        measured(run, &[("random_read_p50_ns", paid)]);
    }
    let levels = BLOCKS[..3].iter().map(|&level| Level::Number(level)).collect();
    let request = vec![Level::Number(BLOCKS[1])];
    let factors = [Factor::new("read_ahead_bytes", levels), Factor::new("block_bytes", request)];
    judge(&factors, &all, &JudgementOptions::default())
}

/// Reads whose size changes nothing, and writes whose size does.
fn two_block_sizes() -> Judgement {
    let mut all = Vec::new();
    for (at, reads) in [65536, 1 << 20].into_iter().enumerate() {
        for mut run in RISING.runs() {
            run.cell.insert("read_block_bytes".to_owned(), Level::Number(reads));
            run.seconds *= 1.0 + 0.0005 * ((run.repeat + at as u64) % 2) as f64;
            all.push(run);
        }
    }
    let reads = [65536, 1 << 20].map(Level::Number).to_vec();
    let blocks = BLOCKS[..4].iter().map(|&level| Level::Number(level)).collect();
    let factors = [Factor::new("read_block_bytes", reads), Factor::new("block_bytes", blocks)];
    judge(&factors, &all, &JudgementOptions::default())
}

/// Repeats that rise and fall slowly, in all cells, and repeats with two speeds.
fn wavy(run: &mut RunRecord) {
    run.seconds *= 1.0 + 0.1 * (std::f64::consts::TAU * (run.repeat as f64 - 0.5) / 12.0).cos();
}

fn two_speeds(run: &mut RunRecord) {
    run.seconds *= if [2, 3, 5, 8, 11].contains(&run.repeat) { 1.3 } else { 1.0 };
}

#[test]
fn every_rule_speaks_and_no_other() {
    let flat = Design { rates: [100e6; 4], repeats: 1, ..RISING };
    let dented = Design { rates: [50e6, 80e6, 30e6, 130e6], ..RISING };
    let slow = Truth { native: 25e6, ..PLAIN };
    let all = factors();
    let mut torn = runs(&all, &PLAIN, 3);
    torn[7].error = Some("no medium".to_owned());
    let torn = judge(&all, &torn, &JudgementOptions::default());
    let same = Design { rates: [100e6; 4], ..RISING };
    let near = Design { rates: [50e6, 100e6, 100.5e6, 100.2e6], ..RISING };
    let mut judgements = vec![judged(&PLAIN), judged(&slow), flat.judged(), dented.judged()];
    judgements.extend([
        torn,
        same.judged(),
        near.judged(),
        two_loads(),
        three_lengths(),
        three_windows(),
    ]);
    judgements.push(two_block_sizes());
    let long = |tweak: fn(&mut RunRecord)| Design { repeats: 12, tweak, ..RISING }.judged();
    judgements.extend([long(wavy), long(two_speeds)]);
    judgements.extend(TWEAKS.iter().map(|&tweak| Design { tweak, ..RISING }.judged()));
    let sentences = judgements.iter().flat_map(|judgement| &judgement.sentences);
    let spoke: BTreeSet<&str> = sentences.map(|sentence| &*sentence.finding.rule).collect();
    let listed: BTreeSet<&str> = rules::EXPERIMENT.rules.iter().map(|rule| rule.id).collect();
    let silent: Vec<_> = listed.difference(&spoke).collect();
    assert_eq!(spoke, listed, "silent: {silent:?}");
}

#[test]
fn a_sentence_is_its_finding() {
    let judgement = RISING.judged();
    for sentence in &judgement.sentences {
        let document = serde_json::to_value(sentence).unwrap();
        assert_eq!(document["text"], document["sentence"]);
        assert_eq!(document["rule"], *sentence.finding.rule);
        assert!(document["subject"].is_string() && document["numbers"].is_array());
    }
    assert!(judgement.sentences.iter().any(|sentence| sentence.finding.numbers.len() == 3));
}
