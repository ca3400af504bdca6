//! A written record is read back, and a file that is not a record is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use machine::counters::disk::{Direction, DiskCounters, DiskRow};
use proptest::prelude::*;
use storage::queue::Queue;
use watch::Reading;
use watch::record::{RecordReader, RecordWriter};
use watch::tapes::TapeCounters;

fn rows() -> impl Strategy<Value = Vec<DiskRow>> {
    // Below the limits of damage, whatever the previous row was.
    let count = 0u64..1_000_000;
    let direction = (count.clone(), any::<u32>(), count.clone(), any::<u32>()).prop_map(
        |(requests, merges, sectors, time_ms)| Direction {
            requests,
            merges: (merges % 1_000_000).into(),
            sectors,
            time_ms,
        },
    );
    let counters = (
        direction.clone(),
        direction.clone(),
        direction,
        (count, any::<u32>(), 0u32..9, any::<u32>()),
    )
        .prop_map(|(read, write, discard, (requests, time_ms, busy_ms, weighted_ms))| {
            let flush = Direction { requests, time_ms, ..Direction::default() };
            DiskCounters { read, write, discard, flush, busy_ms, weighted_ms }
        });
    let row = (0u32..4, counters, 0u32..1000);
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
                in_flight: names.map(|name| (name, vec![1, unix_seconds % 1000])).collect(),
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

/// Queues are written only if they have changed; the final state is the same.
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
    assert_eq!(error(String::new()), "FILE is not a record of `takeup watch`");
    assert_eq!(error("{}\n".into()), "FILE is not a record of `takeup watch`");
    let newer = error("{\"takeup_watch\":2}\n".into());
    assert_eq!(newer, "FILE has format 2; this version of takeup reads only format 1");
    let line = "FILE, line 3: not a reading of `takeup watch`";
    assert_eq!(error(format!("{head}{first}[]\n")), line);
    let exists = RecordWriter::create(&path).unwrap_err();
    assert_eq!(exists.to_string().replace(path.to_str().unwrap(), "FILE"), "make FILE");
}

/// Three readings of a disk, a second apart; the one in the middle is changed.
fn left_out(change: impl Fn(String) -> String) -> (Vec<f64>, Vec<String>) {
    let line = |at: u64| {
        let row = format!("8 0 sda {at} 0 {} 1 0 0 0 0 0 {at} 1", at * 8);
        format!("{{\"at_seconds\":{at}.0,\"unix_seconds\":{},\"rows\":[\"{row}\"]}}\n", 500 + at)
    };
    let text = format!("{{\"takeup_watch\":1}}\n{}{}{}", line(1), change(line(2)), line(3));
    let mut reader = RecordReader::of(text.as_bytes(), Path::new("FILE")).unwrap();
    let mut seen = Vec::new();
    while let Some(reading) = reader.next_reading().unwrap() {
        seen.push(reading.at_seconds);
    }
    let told = reader.left_out().iter().map(|one| format!("line {}: {}", one.line, one.why));
    (seen, told.collect())
}

#[test]
fn what_cannot_have_been_is_left_out_with_its_line_and_the_reason() {
    for (from, to, why) in [
        ("sda 2 0 16", "sda 2 0 99999999999999", "sda: 5.1e16 bytes read in 1 s"),
        ("sda 2 0", "sda 99999999999 0", "sda: 99999999998 requests in 1 s"),
        ("0 0 2 1\"", "0 4294967295 2 1\"", "sda: 4294967295 requests in flight"),
        ("0 2 1\"", "0 4000000000 1\"", "sda: busy for 4000000 s of 1, or its time went back"),
        ("8 0 sda", "8 99999999 sda", "sda: no device has the number 8:99999999"),
        ("8 0 sda", "8 0 sdb", "sdb: its number 8:0 is that of sda"),
        ("sda", "a-name-that-is-longer-than-any-of-a-disk", "a-name-that-is-longer-than-any-o: "),
        ("sda 2", "sda x", "a row is malformed: it has no number"),
        ("\"at_seconds\":2.0", "\"at_seconds\":0.5", "its time is 0.500 s before the previous"),
        ("\"at_seconds\":2.0", "\"at_seconds\":9e9", "it is 8999999999 s after the previous"),
        ("\"unix_seconds\":502", "\"unix_seconds\":-5", "invalid time of day: -5"),
        ("\"rows\"", "\"in_flight\":{\"sda\":[4000000000]},\"rows\"", "sda: 4000000000 requests"),
    ] {
        let (seen, told) = left_out(|line| {
            assert!(line.contains(from), "{from}: {line}");
            line.replace(from, to)
        });
        assert_eq!(seen, [1.0, 3.0], "{to}: {told:?}");
        assert!(told.len() == 1 && told[0].starts_with(&format!("line 3: {why}")), "{told:?}");
    }
}

/// Not damage: counters that restart, a fast device, a clock that is set, a time that wraps, and a
/// watch that was suspended.
#[test]
fn what_is_rare_is_left_in() {
    for (from, to) in [
        ("sda 2 0 16", "sda 0 0 0"),
        ("sda 2 0 16", "sda 2 0 999999999"),
        ("\"unix_seconds\":502", "\"unix_seconds\":1900000000"),
        ("\"unix_seconds\":502", "\"unix_seconds\":0"),
        ("0 2 1\"", "0 0 1\""),
        ("8 0 sda", "0 0 nvme0c0n1"),
    ] {
        let (seen, told) = left_out(|line| line.replace(from, to));
        assert_eq!((seen, told), (vec![1.0, 2.0, 3.0], vec![]), "{to}");
    }
}
