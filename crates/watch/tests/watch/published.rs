//! The five loads of a published account as counters: the rows of `iostat` to the last digit, and
//! the explanations of the account.

use std::collections::BTreeMap;

use machine::counters::disk::{Direction, DiskCounters, DiskRow};
use storage::queue::Queue;
use toml::Table;
use watch::Reading;
use watch::columns::{Columns, printed};
use watch::intervals::{DeviceInterval, IntervalMaker};

const PUBLISHED: &str = include_str!("../../../experiment/tests/published/block-device.toml");

/// The lines were made of 30 s, those of the two copies of 5 s: counts are whole numbers.
const SECONDS: [f64; 5] = [30.0, 30.0, 30.0, 5.0, 5.0];

struct Published {
    seconds: f64,
    row: Table,
    queue: Queue,
}

fn published() -> Vec<Published> {
    let table: Table = PUBLISHED.parse().unwrap();
    let number = |name: &str| Some(table[name].as_integer().unwrap() as u64);
    let loads = table["load"].as_array().unwrap().iter().zip(SECONDS);
    loads
        .map(|(load, seconds)| {
            let what = load.get("what").and_then(|it| it.as_str()).unwrap_or_default();
            let never = what.contains("nomerges = 2");
            let queue = Queue {
                max_sectors_kb: number("max_sectors_kb"),
                device_depth: number("queue_depth"),
                nomerges: Some(if never { 2 } else { 0 }),
                rotational: Some(0),
                ..Queue::default()
            };
            Published { seconds, row: load["iostat"].as_table().unwrap().clone(), queue }
        })
        .collect()
}

impl Published {
    fn value(&self, key: &str) -> f64 {
        self.row.get(key).map_or(0.0, |it| it.as_float().unwrap())
    }

    /// Counters from which such a line is made. Of bytes the rate has more digits than the size.
    fn counters(&self) -> DiskCounters {
        let count = |rate: f64| (rate * self.seconds).round() as u64;
        let direction = |it: char| {
            let requests = count(self.value(&format!("{it}_s")));
            Direction {
                requests,
                merges: count(self.value(&format!("{it}rqm_s"))),
                sectors: self.sectors(it, requests),
                time_ms: (requests as f64 * self.value(&format!("{it}_await_ms"))).round() as u32,
            }
        };
        DiskCounters {
            read: direction('r'),
            write: direction('w'),
            busy_ms: count(self.value("util_percent") * 10.0) as u32,
            weighted_ms: count(self.value("aqu_sz") * 1000.0) as u32,
            ..DiskCounters::default()
        }
    }

    /// A number that both the rate and the size of a request are rounded from.
    fn sectors(&self, it: char, requests: u64) -> u64 {
        let (rate, size) = (self.value(&format!("{it}MB_s")), self.value(&format!("{it}areq_kb")));
        let rates = (rate - 0.005) * 2048.0 * self.seconds..=(rate + 0.005) * 2048.0 * self.seconds;
        let sizes = (size - 0.005) * 2.0 * requests as f64..=(size + 0.005) * 2.0 * requests as f64;
        let low = rates.start().max(*sizes.start());
        let high = rates.end().min(*sizes.end());
        assert!(low <= high, "{it}: no counters make {rate} MB/s in requests of {size} KiB");
        ((low + high) / 2.0).round() as u64
    }

    fn device(&self) -> DeviceInterval {
        let row = |counters| DiskRow { number: (8, 0), name: "sda".into(), counters, in_flight: 0 };
        // Both times begin again in between.
        let start = DiskCounters { weighted_ms: u32::MAX - 5, ..DiskCounters::default() };
        let end = self.counters();
        let end = DiskCounters { weighted_ms: end.weighted_ms.wrapping_sub(6), ..end };
        let reading = |at_seconds, counters| Reading {
            at_seconds,
            rows: vec![row(counters)],
            queues: BTreeMap::from([("sda".to_owned(), self.queue.clone())]),
            ..Reading::default()
        };
        let mut watch = IntervalMaker::default();
        assert!(watch.next(reading(0.0, start)).is_none());
        watch.next(reading(self.seconds, end)).unwrap().devices.remove(0)
    }
}

/// A column of the account, from ours.
fn column(columns: &Columns, key: &str) -> f64 {
    let (read, write) = (&columns.read, &columns.write);
    match key {
        "r_s" => read.requests_per_second,
        "rMB_s" => read.kib_per_second / 1024.0,
        "rrqm_s" => read.merges_per_second,
        "r_rqm_percent" => read.merged_percent,
        "r_await_ms" => read.await_ms,
        "rareq_kb" => read.request_kib,
        "w_s" => write.requests_per_second,
        "wMB_s" => write.kib_per_second / 1024.0,
        "wrqm_s" => write.merges_per_second,
        "w_rqm_percent" => write.merged_percent,
        "w_await_ms" => write.await_ms,
        "wareq_kb" => write.request_kib,
        "aqu_sz" => columns.queue_length,
        "util_percent" => columns.busy_percent,
        unknown => panic!("no column is called {unknown}"),
    }
}

#[test]
fn the_published_rows_are_printed_to_the_last_digit() {
    let loads = published();
    assert_eq!(loads.len(), 5);
    for (number, load) in loads.iter().enumerate() {
        let columns = load.device().columns;
        for (key, value) in &load.row {
            let expected = printed(value.as_float().unwrap());
            assert_eq!(printed(column(&columns, key)), expected, "load {number}, {key}");
        }
    }
}

/// The meaning of each load according to the account, in Takeup's words.
#[test]
fn the_published_loads_are_explained_as_the_account_does() {
    let sentences: Vec<String> = published()
        .iter()
        .map(|load| {
            let findings = load.device().findings;
            findings.iter().map(|it| it.sentence()).collect::<Vec<_>>().join("; ")
        })
        .collect();
    let expected = [
        "random, or one at a time: nothing to merge: reads of 8.0 KiB and writes of 8.0 KiB go to \
         the device unchanged; the device's queue is full: 31.7 requests in flight of 32: more at \
         once would wait in the host",
        "sequential: 86 % of reads and 91 % of writes are merged before the device: reads of 8.0 \
         KiB become 58.3 KiB, writes of 8.0 KiB become 86.4 KiB: fewer and larger requests for \
         the same bytes; the queue is in the host: 46.8 requests in flight: the device accepts 32 \
         at once, so 14.8 wait",
        "reads of 1030 KiB and writes of 1046 KiB, near the limit of 1280 KiB (max_sectors_kb): \
         larger requests are split there; the queue is in the host: 60.4 requests in flight: the \
         device accepts 32 at once, so 28.4 wait",
        "write-back of the page cache: 99.4 % of its writes are merged: pages of 4.0 KiB become \
         requests of 668 KiB",
        "merging is switched off (nomerges is 2): writes of 4.0 KiB: the device gets many small \
         requests instead of a few large ones; %util of 100 is not full load: 8.5 of 32 requests \
         in flight: it only means that there was always one; the device can serve more at once",
    ];
    assert_eq!(sentences, expected);
}
