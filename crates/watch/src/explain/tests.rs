//! Each rule on replayed counters: a case where it must report, and one where it must not.

use std::collections::{BTreeMap, BTreeSet};

use machine::counters::disk::{Direction, DiskCounters, DiskRow};
use storage::queue::Queue;

use crate::Reading;
use crate::intervals::{Interval, IntervalMaker};
use crate::rules;

const SECONDS: f64 = 10.0;

/// Load of a direction: requests and merges per second, KiB and milliseconds per request.
type Does = (f64, f64, f64, f64);

/// Load of a device for ten seconds.
#[derive(Clone, Copy, Default)]
struct Load {
    read: Does,
    write: Does,
    discard: Does,
    flush: Does,
    queue_length: f64,
    busy_percent: f64,
    in_flight: u32,
}

fn direction((requests, merges, kib, milliseconds): Does) -> Direction {
    let count = |it: f64| (it * SECONDS).round() as u64;
    let requests = count(requests);
    Direction {
        requests,
        merges: count(merges),
        sectors: (requests as f64 * kib * 2.0).round() as u64,
        time_ms: (requests as f64 * milliseconds).round() as u32,
    }
}

impl Load {
    fn counters(&self) -> DiskCounters {
        DiskCounters {
            read: direction(self.read),
            write: direction(self.write),
            discard: direction(self.discard),
            flush: Direction { merges: 0, sectors: 0, ..direction(self.flush) },
            busy_ms: (self.busy_percent * 10.0 * SECONDS).round() as u32,
            weighted_ms: (self.queue_length * 1000.0 * SECONDS).round() as u32,
        }
    }
}

/// A solid state disk behind SATA.
fn disk() -> Queue {
    Queue {
        scheduler: Some("mq-deadline".to_owned()),
        max_sectors_kb: Some(1280),
        max_segments: Some(256),
        read_ahead_kb: Some(128),
        nr_requests: Some(64),
        hardware_queues: Some(1),
        device_depth: Some(32),
        nomerges: Some(0),
        rotational: Some(0),
        iostats: Some(1),
        write_cache: Some("write back".to_owned()),
        wbt_lat_usec: Some(2000),
        made_of: Vec::new(),
    }
}

fn row(number: (u32, u32), name: &str, counters: DiskCounters, in_flight: u32) -> DiskRow {
    DiskRow { number, name: name.to_owned(), counters, in_flight }
}

fn reading(at_seconds: f64, rows: Vec<DiskRow>, queue: Option<Queue>) -> Reading {
    let names = rows.iter().map(|row| row.name.clone());
    let queues: BTreeMap<_, _> = match queue {
        Some(queue) => names.map(|name| (name, queue.clone())).collect(),
        None => BTreeMap::new(),
    };
    Reading { at_seconds, rows, queues, ..Reading::default() }
}

/// The last interval of these readings.
fn last_of(readings: Vec<Reading>) -> Interval {
    let mut watch = IntervalMaker::default();
    readings.into_iter().filter_map(|reading| watch.next(reading)).last().unwrap()
}

/// Rules that report on a device with this load and queue.
fn ids_of(load: Load, queue: Queue) -> Vec<&'static str> {
    ids_of_named("sda", load, queue)
}

fn ids_of_named(name: &str, load: Load, queue: Queue) -> Vec<&'static str> {
    let start = row((8, 0), name, DiskCounters::default(), 0);
    let end = row((8, 0), name, load.counters(), load.in_flight);
    let readings = vec![reading(0.0, vec![start], Some(queue)), reading(SECONDS, vec![end], None)];
    ids(&last_of(readings), name)
}

fn ids(interval: &Interval, name: &str) -> Vec<&'static str> {
    let device = interval.devices.iter().find(|device| device.name == name).unwrap();
    device.findings.iter().map(|finding| finding.rule.within(&rules::DEVICE).unwrap().id).collect()
}

/// Nothing at all.
const IDLE: Load =
    Load { read: (0.0, 0.0, 0.0, 0.0), queue_length: 0.0, busy_percent: 0.0, ..RANDOM };

/// Requests whose times are not counted.
const UNTIMED: Load =
    Load { read: (20_000.0, 0.0, 8.0, 0.0), queue_length: 0.0, busy_percent: 0.0, ..RANDOM };

/// Small reads at depth 8.
const RANDOM: Load = Load {
    read: (20_000.0, 0.0, 8.0, 0.4),
    write: (0.0, 0.0, 0.0, 0.0),
    discard: (0.0, 0.0, 0.0, 0.0),
    flush: (0.0, 0.0, 0.0, 0.0),
    queue_length: 8.0,
    busy_percent: 60.0,
    in_flight: 8,
};

struct Case {
    rule: &'static str,
    speaks: bool,
    load: Load,
    queue: Queue,
}

fn case(rule: &'static str, load: Load, queue: Queue) -> Case {
    Case { rule, speaks: true, load, queue }
}

fn silent(rule: &'static str, load: Load, queue: Queue) -> Case {
    Case { rule, speaks: false, load, queue }
}

fn shape_cases() -> Vec<Case> {
    let reads = |read: Does| Load { read, ..RANDOM };
    let writes = |write: Does| Load { read: Does::default(), write, ..RANDOM };
    let never = Queue { nomerges: Some(2), ..disk() };
    let few_segments = Queue { max_segments: Some(128), ..disk() };
    let far_ahead = Queue { read_ahead_kb: Some(4096), ..disk() };
    vec![
        case("device.merged", reads((1000.0, 260.0, 64.0, 1.0)), disk()),
        silent("device.merged", reads((1000.0, 240.0, 64.0, 1.0)), disk()),
        case("device.write-back", writes((300.0, 59_000.0, 791.0, 9.0)), disk()),
        // Merged as much, but not from pages.
        silent("device.write-back", writes((300.0, 59_000.0, 1280.0, 9.0)), disk()),
        silent("device.write-back", reads((300.0, 59_000.0, 791.0, 9.0)), disk()),
        case("device.merging-off", writes((44_000.0, 0.0, 4.0, 0.2)), never.clone()),
        silent("device.merging-off", writes((44_000.0, 0.0, 4.0, 0.2)), disk()),
        silent("device.merging-off", writes((400.0, 0.0, 512.0, 2.0)), never),
        case("device.read-ahead-window", reads((4000.0, 0.0, 127.5, 0.3)), disk()),
        silent("device.read-ahead-window", reads((4000.0, 0.0, 140.0, 0.3)), disk()),
        case("device.read-ahead-window", reads((2000.0, 0.0, 252.0, 0.6)), disk()),
        silent("device.read-ahead-window", reads((2000.0, 0.0, 220.0, 0.6)), disk()),
        silent("device.read-ahead-window", writes((4000.0, 0.0, 127.5, 0.3)), disk()),
        // A window that is always split.
        silent("device.read-ahead-window", reads((400.0, 0.0, 1280.0, 3.0)), far_ahead.clone()),
        case("device.split", reads((400.0, 0.0, 1170.0, 3.0)), far_ahead),
        silent("device.split", reads((400.0, 0.0, 760.0, 3.0)), disk()),
        // 128 pages are less than max_sectors_kb.
        case("device.split", reads((400.0, 0.0, 536.0, 3.0)), few_segments.clone()),
        silent("device.as-made", reads((400.0, 0.0, 536.0, 3.0)), few_segments),
        case("device.not-merged", RANDOM, disk()),
        silent("device.not-merged", reads((1000.0, 0.0, 64.0, 1.0)), disk()),
        case("device.as-made", reads((1000.0, 0.0, 64.0, 1.0)), disk()),
        silent("device.as-made", RANDOM, disk()),
        case("device.discards", Load { discard: (3000.0, 0.0, 512.0, 1.0), ..RANDOM }, disk()),
        silent("device.discards", Load { discard: (2000.0, 0.0, 512.0, 1.0), ..RANDOM }, disk()),
        case(
            "device.flushes",
            Load { flush: (100.0, 0.0, 0.0, 0.8), ..writes((400.0, 0.0, 8.0, 0.1)) },
            disk(),
        ),
        silent(
            "device.flushes",
            Load { flush: (99.0, 0.0, 0.0, 0.8), ..writes((400.0, 0.0, 8.0, 0.1)) },
            disk(),
        ),
    ]
}

fn queue_cases() -> Vec<Case> {
    let length = |queue_length| Load { queue_length, ..RANDOM };
    let always = |queue_length| Load { queue_length, busy_percent: 100.0, ..RANDOM };
    let tags = Queue {
        scheduler: Some("none".to_owned()),
        device_depth: None,
        nr_requests: Some(100),
        ..disk()
    };
    let unknown = Queue { device_depth: None, ..disk() };
    let heads = Queue { rotational: Some(1), ..disk() };
    let hands_on = Queue {
        scheduler: Some("none".to_owned()),
        made_of: vec!["sdb".to_owned()],
        hardware_queues: None,
        ..unknown.clone()
    };
    let paths = Queue { made_of: vec!["sdb".to_owned()], ..tags.clone() };
    let slow = |milliseconds, kib| Load {
        read: (100.0, 0.0, kib, milliseconds),
        queue_length: 1.0,
        ..RANDOM
    };
    vec![
        case("device.queue-in-host", length(36.0), disk()),
        silent("device.queue-in-host", length(35.0), disk()),
        case("device.queue-in-host", length(58.0), unknown.clone()),
        silent("device.queue-in-host", length(57.0), unknown.clone()),
        case("device.queue-full", length(29.0), disk()),
        silent("device.queue-full", length(28.0), disk()),
        case("device.queue-full", length(91.0), tags.clone()),
        silent("device.queue-full", length(91.0), unknown.clone()),
        case("device.slow", slow(8.0, 8.0), disk()),
        silent("device.slow", slow(4.0, 8.0), disk()),
        // A SATA disk takes 2 ms per MiB.
        silent("device.slow", slow(5.9, 512.0), disk()),
        case("device.slow", slow(5.65, 256.0), disk()),
        silent("device.slow", slow(34.0, 512.0), heads.clone()),
        silent("device.slow", slow(8.0, 8.0), heads.clone()),
        case("device.slow", slow(40.0, 8.0), heads.clone()),
        silent("device.slow", Load { queue_length: 3.0, ..slow(8.0, 8.0) }, disk()),
        case("device.room-left", always(16.0), disk()),
        silent("device.room-left", always(17.0), disk()),
        silent("device.room-left", length(16.0), disk()),
        silent("device.room-left", always(4.0), heads),
        silent("device.room-left", always(4.0), unknown),
        case("device.room-left", always(50.0), tags),
        case("device.stacked", RANDOM, hands_on.clone()),
        case("device.stacked", RANDOM, paths.clone()),
        silent("device.stacked", RANDOM, disk()),
        // A device over others has findings of its own if it turns bios into requests; only the
        // devices below know the queue depth.
        silent("device.not-merged", RANDOM, hands_on.clone()),
        case("device.not-merged", RANDOM, paths.clone()),
        silent("device.queue-full", length(91.0), paths),
        case("device.not-counted", RANDOM, Queue { iostats: Some(0), ..disk() }),
        case("device.not-counted", IDLE, Queue { iostats: Some(0), ..disk() }),
        silent("device.not-counted", IDLE, disk()),
        // Volumes show this in Linux 6.1, but count anyway.
        silent("device.not-counted", RANDOM, Queue { iostats: Some(0), ..hands_on.clone() }),
        case("device.stacked", RANDOM, Queue { iostats: Some(0), ..hands_on }),
        silent("device.not-counted", RANDOM, Queue { iostats: None, ..disk() }),
    ]
}

/// As Linux 4.18 and 5.10 have them: `iostats` is 0, requests are counted, times are not.
#[test]
fn an_old_array_has_no_times() {
    let array = Queue {
        scheduler: Some("none".to_owned()),
        hardware_queues: None,
        iostats: Some(0),
        made_of: vec!["sda".to_owned(), "sdb".to_owned()],
        ..disk()
    };
    assert_eq!(ids_of_named("md0", UNTIMED, array.clone()), ["device.no-times"]);
    // A volume may be too fast for the ticks that its times have.
    assert_eq!(ids_of_named("dm-0", UNTIMED, array.clone()), ["device.stacked"]);
    let counted = Queue { iostats: Some(1), ..array };
    assert_eq!(ids_of_named("md0", UNTIMED, counted.clone()), ["device.stacked"]);
    assert_eq!(ids_of_named("md0", RANDOM, counted), ["device.stacked"]);
}

/// A queue of requests counts its flushes even where nothing else is counted.
#[test]
fn flushes_do_not_make_a_device_one_that_counts() {
    let flushes = Load { flush: (100.0, 0.0, 0.0, 1.0), ..IDLE };
    let off = Queue { iostats: Some(0), ..disk() };
    assert_eq!(ids_of(flushes, off), ["device.not-counted"]);
}

#[test]
fn each_rule_speaks_where_it_must_and_nowhere_else() {
    for case in shape_cases().into_iter().chain(queue_cases()) {
        let found = ids_of(case.load, case.queue);
        assert_eq!(found.contains(&case.rule), case.speaks, "{} in {found:?}", case.rule);
    }
}

/// Rules that need more than one interval, or another name, have their own tests.
#[test]
fn no_rule_is_without_a_case() {
    let cases: Vec<Case> = shape_cases().into_iter().chain(queue_cases()).collect();
    let of = |speaks: bool| -> BTreeSet<&str> {
        cases.iter().filter(|case| case.speaks == speaks).map(|case| case.rule).collect()
    };
    let own_tests = [
        "device.hidden-path",
        "device.hung",
        "device.appeared",
        "device.counted-anew",
        "device.no-times",
    ];
    for rule in rules::DEVICE.rules {
        let has_both = of(true).contains(rule.id) && of(false).contains(rule.id);
        assert!(has_both || own_tests.contains(&rule.id), "{}", rule.id);
    }
}

#[test]
fn nobody_speaks_of_a_device_that_does_next_to_nothing() {
    assert_eq!(ids_of(Load::default(), disk()), [""; 0]);
    // A page now and then, as a log is written.
    let few = Load {
        write: (3.0, 0.3, 12.0, 0.4),
        flush: (2.0, 0.0, 0.0, 0.5),
        queue_length: 0.01,
        busy_percent: 0.4,
        ..Load::default()
    };
    assert_eq!(ids_of(few, disk()), [""; 0]);
    // Few requests, but a slow disk is busy with them.
    let busy = Load { busy_percent: 6.0, ..few };
    assert_eq!(ids_of(busy, disk()), ["device.not-merged", "device.flushes"]);
}

/// A log with a flush after each write of 8 KiB; the kernel also counts the flush as an empty
/// write.
#[test]
fn flushes_that_are_counted_as_writes_do_not_halve_the_writes() {
    let load = Load {
        write: (446.0, 0.0, 4.0, 2.0),
        flush: (223.0, 0.0, 0.0, 4.0),
        queue_length: 1.8,
        busy_percent: 94.0,
        ..Load::default()
    };
    let start = row((8, 0), "sda", DiskCounters::default(), 0);
    let end = row((8, 0), "sda", load.counters(), 0);
    let interval =
        last_of(vec![reading(0.0, vec![start], Some(disk())), reading(SECONDS, vec![end], None)]);
    let findings = &interval.devices[0].findings;
    let sentences: Vec<String> = findings.iter().map(|it| it.sentence()).collect();
    let expected = [
        "random, or one at a time: nothing to merge: writes of 4.0 KiB to 8.0 KiB go to the device \
         unchanged",
        "a flush of the device's cache for each 1.0 to 2.0 writes, in 4.0 ms: programs wait until \
         their data are safe (fsync)",
    ];
    assert_eq!(sentences, expected);
}

/// Data of 64 KiB in parts of 4 KiB, and half of the writes empty: the reported size of the data
/// must not be too small.
#[test]
fn flushes_that_are_counted_as_writes_do_not_halve_what_is_joined() {
    let sentence = |merges: f64| {
        let load = Load {
            write: (400.0, merges, 32.0, 2.0),
            flush: (200.0, 0.0, 0.0, 4.0),
            queue_length: 1.8,
            busy_percent: 94.0,
            ..Load::default()
        };
        let start = row((8, 0), "sda", DiskCounters::default(), 0);
        let end = row((8, 0), "sda", load.counters(), 0);
        let looks =
            vec![reading(0.0, vec![start], Some(disk())), reading(SECONDS, vec![end], None)];
        last_of(looks).devices[0].findings[0].sentence()
    };
    let joined = sentence(1000.0);
    assert!(joined.contains("71 to 83 % of writes are merged"), "{joined}");
    assert!(joined.contains("become 32.0 KiB to 64.0 KiB"), "{joined}");
    let written_back = sentence(40_000.0);
    assert!(written_back.contains("become requests of 32.0 KiB to 64.0 KiB"), "{written_back}");
}

/// Counters that do not change, with three requests in flight.
#[test]
fn a_device_that_finishes_nothing_hangs_and_an_idle_one_does_not() {
    let hangs = |in_flight: [u32; 4], requests: [f64; 4], step: f64| {
        let look = |index: usize| {
            let load = Load { read: (requests[index], 0.0, 8.0, 1.0), ..Load::default() };
            let rows = vec![row((8, 0), "sda", load.counters(), in_flight[index])];
            reading(index as f64 * step, rows, Some(disk()))
        };
        let interval = last_of((0..4).map(look).collect());
        ids(&interval, "sda").contains(&"device.hung")
    };
    let still = [50.0; 4];
    assert!(hangs([3, 3, 3, 3], still, 1.0));
    assert!(!hangs([0, 0, 0, 0], still, 1.0));
    // One interval is not enough, nor is less than two seconds.
    assert!(!hangs([0, 0, 3, 3], still, 1.0));
    assert!(!hangs([3, 3, 3, 3], still, 0.1));
    assert!(!hangs([3, 3, 3, 3], [50.0, 50.0, 50.0, 51.0], 1.0));
    // Newer kernels count the time of a device that hangs.
    let busy = |index: u32| {
        let counters = DiskCounters { busy_ms: 1000 * index, ..DiskCounters::default() };
        reading(f64::from(index), vec![row((8, 0), "sda", counters, 3)], Some(disk()))
    };
    let interval = last_of((0..4).map(busy).collect());
    assert_eq!(ids(&interval, "sda"), ["device.hung"]);
    assert_eq!(interval.devices[0].columns.busy_percent, 100.0);
    let sentence = interval.devices[0].findings[0].sentence();
    assert!(sentence.starts_with("the device hangs: 3 requests in flight, none finished for 3."));
}

#[test]
fn devices_come_and_go_and_come_back_as_others() {
    let counters = |requests: f64| {
        let load = Load { read: (requests, 0.0, 8.0, 1.0), ..Load::default() };
        load.counters()
    };
    let disks = |at: f64, rows: &[(u32, &str, f64)]| {
        let rows = rows
            .iter()
            .map(|(minor, name, requests)| row((8, *minor), name, counters(*requests), 0));
        reading(at, rows.collect(), None)
    };
    let mut watch = IntervalMaker::default();
    assert!(watch.next(disks(0.0, &[(0, "sda", 50.0)])).is_none());
    // It appears: all that it has counted is from this interval.
    let interval = watch.next(disks(10.0, &[(0, "sda", 50.0), (16, "sdb", 30.0)])).unwrap();
    assert_eq!(ids(&interval, "sdb")[..1], ["device.appeared"]);
    assert_eq!(interval.devices[1].columns.read.requests_per_second, 30.0);
    assert_eq!(ids(&interval, "sda"), [""; 0]);
    // It goes.
    let interval = watch.next(disks(20.0, &[(0, "sda", 60.0)])).unwrap();
    assert_eq!(interval.vanished, ["sdb"]);
    assert_eq!(interval.devices[0].columns.read.requests_per_second, 10.0);
    // One with the same name has another number, or has counted less.
    let interval = watch.next(disks(30.0, &[(32, "sda", 70.0)])).unwrap();
    assert_eq!(ids(&interval, "sda"), ["device.counted-anew"]);
    assert_eq!(interval.devices[0].columns.read.requests_per_second, 0.0);
    let interval = watch.next(disks(40.0, &[(32, "sda", 5.0)])).unwrap();
    assert_eq!(ids(&interval, "sda"), ["device.counted-anew"]);
    let interval = watch.next(disks(50.0, &[(32, "sda", 6.0)])).unwrap();
    assert_eq!(interval.devices[0].columns.read.requests_per_second, 1.0);
}

/// Hidden paths of a multipath NVMe device: several rows 0:0.
#[test]
fn paths_that_share_a_number_have_columns_of_their_own() {
    let rows = |of: [f64; 3]| {
        let load = |requests| Load { read: (requests, 0.0, 8.0, 0.1), ..RANDOM }.counters();
        vec![
            row((259, 1), "nvme0n1", load(of[0]), 0),
            row((0, 0), "nvme0c0n1", load(of[1]), 0),
            row((0, 0), "nvme0c1n1", load(of[2]), 0),
        ]
    };
    let interval = last_of(vec![
        reading(0.0, rows([0.0, 0.0, 0.0]), None),
        reading(SECONDS, rows([5000.0, 3000.0, 2000.0]), None),
    ]);
    let rates: Vec<f64> =
        interval.devices.iter().map(|it| it.columns.read.requests_per_second).collect();
    assert_eq!(rates, [5000.0, 3000.0, 2000.0]);
    assert!(!ids(&interval, "nvme0n1").contains(&"device.hidden-path"));
    for path in ["nvme0c0n1", "nvme0c1n1"] {
        assert!(ids(&interval, path).contains(&"device.hidden-path"));
    }
}

/// A difference of 100 ms over the wrap of 32 bits, where other tools have 0 or a large number.
#[test]
fn times_that_wrap_are_differences() {
    let counters = |requests, time_ms, weighted_ms| DiskCounters {
        read: Direction { requests, merges: 0, sectors: requests * 16, time_ms },
        weighted_ms,
        ..DiskCounters::default()
    };
    let rows = |counters| vec![row((8, 0), "sda", counters, 0)];
    let interval = last_of(vec![
        reading(0.0, rows(counters(100, u32::MAX - 49, u32::MAX - 9)), None),
        reading(1.0, rows(counters(110, 50, 990)), None),
    ]);
    let columns = interval.devices[0].columns;
    assert_eq!((columns.read.await_ms, columns.queue_length), (10.0, 1.0));
}
