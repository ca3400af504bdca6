//! What is written is read back, and what is no record is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use host::counters::disk::{Direction, DiskCounters, DiskRow};
use host::queue::Queue;
use observe::Reading;
use observe::record::{RecordReader, RecordWriter};
use observe::tapes::TapeCounters;
use proptest::prelude::*;

fn rows() -> impl Strategy<Value = Vec<DiskRow>> {
    let direction = (any::<u64>(), any::<u32>(), any::<u64>(), any::<u32>()).prop_map(
        |(requests, merges, sectors, time_ms)| Direction {
            requests,
            merges: merges.into(),
            sectors,
            time_ms,
        },
    );
    let counters = (direction.clone(), direction.clone(), direction, any::<(u64, u32, u32, u32)>())
        .prop_map(|(read, write, discard, (requests, time_ms, busy_ms, weighted_ms))| {
            let flush = Direction { requests, time_ms, ..Direction::default() };
            DiskCounters { read, write, discard, flush, busy_ms, weighted_ms }
        });
    let row = (0u32..4, counters, any::<u32>());
    prop::collection::vec(row, 0..6).prop_map(|rows| {
        let by_name: BTreeMap<u32, _> =
            rows.into_iter().map(|(name, counters, flying)| (name, (counters, flying))).collect();
        let row = |(name, (counters, in_flight))| DiskRow {
            number: (8, name),
            name: format!("sd{name}"),
            counters,
            in_flight,
        };
        by_name.into_iter().map(row).collect()
    })
}

fn tapes(count: u64) -> BTreeMap<String, TapeCounters> {
    let tape = |number| TapeCounters { write_cnt: u64::MAX - number, ..TapeCounters::default() };
    (0..count).map(|number| (format!("st{number}"), tape(number))).collect()
}

fn readings() -> impl Strategy<Value = Vec<Reading>> {
    let reading = (rows(), 0.0f64..1e3, any::<u32>(), any::<bool>()).prop_map(
        |(rows, step, unix_seconds, has_more)| {
            let queue = Queue { nr_requests: Some(unix_seconds.into()), ..Queue::default() };
            let names = rows.iter().filter(|_| has_more).map(|row| row.name.clone());
            Reading {
                at_seconds: step,
                unix_seconds: unix_seconds.into(),
                queues: names.clone().map(|name| (name, queue.clone())).collect(),
                tapes: tapes(rows.len() as u64),
                in_flight: names.map(|name| (name, vec![1, unix_seconds])).collect(),
                rows,
            }
        },
    );
    prop::collection::vec(reading, 1..6).prop_map(|mut readings| {
        let mut at = 0.0;
        for reading in &mut readings {
            at += reading.at_seconds;
            reading.at_seconds = at;
        }
        readings
    })
}

fn read_all(path: &Path) -> Vec<Reading> {
    let mut reader = RecordReader::open(path).unwrap();
    let mut all = Vec::new();
    while let Some(mut reading) = reader.next_reading().unwrap() {
        reading.rows.sort_by(|a, b| a.name.cmp(&b.name));
        all.push(reading);
    }
    all
}

/// Queues are written where they have changed; what is known in the end is the same.
fn with_queues_known(readings: &[Reading]) -> Vec<Reading> {
    let mut known: BTreeMap<String, Queue> = BTreeMap::new();
    let mut all = readings.to_vec();
    for reading in &mut all {
        known.retain(|name, _| reading.rows.iter().any(|row| row.name == *name));
        known.extend(std::mem::take(&mut reading.queues));
        reading.queues = known.clone();
    }
    all
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(readings in readings()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        let mut writer = RecordWriter::create(&path).unwrap();
        for reading in &readings {
            writer.write(reading).unwrap();
        }
        prop_assert_eq!(with_queues_known(&read_all(&path)), with_queues_known(&readings));
    }
}

#[test]
fn a_line_that_a_crash_cut_off_is_left_out_and_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record");
    let head = "{\"takeup_watch\":1}\n";
    let first =
        "{\"at_seconds\":1.0,\"unix_seconds\":5,\"rows\":[\"8 0 sda 1 0 8 1 0 0 0 0 0 1 1\"]}\n";
    fs::write(&path, format!("{head}{first}{{\"at_sec")).unwrap();
    let mut reader = RecordReader::open(&path).unwrap();
    assert_eq!(reader.next_reading().unwrap().unwrap().rows[0].counters.read.requests, 1);
    assert!(reader.next_reading().unwrap().is_none() && reader.is_cut());
    let error = |text: String| {
        fs::write(&path, text).unwrap();
        let error = RecordReader::open(&path).and_then(|mut reader| {
            while reader.next_reading()?.is_some() {}
            Ok(())
        });
        let error = error.unwrap_err().to_string();
        error.replace(path.to_str().unwrap(), "FILE")
    };
    assert_eq!(error(String::new()), "FILE holds no record of `takeup watch`");
    assert_eq!(error("{}\n".into()), "FILE holds no record of `takeup watch`");
    let newer = error("{\"takeup_watch\":2}\n".into());
    assert_eq!(newer, "FILE has format 2, and only 1 is known");
    let line = "line 3 of FILE is no reading";
    assert_eq!(error(format!("{head}{first}[]\n")), line);
    assert_eq!(error(format!("{head}{first}{}", first.replace("1.0", "0.5"))), line);
    assert_eq!(error(format!("{head}{first}{}", first.replace("8 0", "x 0"))), line);
    let exists = RecordWriter::create(&path).unwrap_err();
    assert_eq!(exists.to_string().replace(path.to_str().unwrap(), "FILE"), "make FILE");
}
