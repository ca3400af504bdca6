//! Figures show what was recorded, and figures below each other show the same time.

use capture::operation::{
    Asked, Engine, FileKind, FileOperation, OpenedFile, Recording as _, SyncCall,
};
use capture::profile::{ProfileLimits, Profiler};
use capture::record::{Captured, Heading};
use proptest::prelude::*;
use watch::Reading;

use super::*;
use crate::captured::page;

/// Writes of 8 KiB to a log at these times in ms, each with a sync that the disk answers at once,
/// in a capture of `length_ms`. The first reading of the disk is `before_ms` earlier, then each 250
/// ms.
fn captured(began: f64, writes_ms: &[u64], length_ms: u64, before_ms: u64) -> Captured {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(0);
    let known = OpenedFile {
        path: Ok("/srv/pg_wal/000000010000000000000001".to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(false),
        synchronous: Ok(false),
        append: Ok(false),
        size_bytes: Ok(1 << 20),
    };
    profiler.file(0, &known);
    for (number, ms) in (0_u64..).zip(writes_ms) {
        let write = FileOperation {
            start_ns: ms * 1_000_000,
            duration_ns: Ok(1_000),
            process: 1,
            thread: 1,
            file: 0,
            engine: Engine::Psync,
            asked: Asked::Write,
            offset_bytes: Ok(number * 8192),
            asked_bytes: Ok(8192),
            done_bytes: Ok(8192),
            synchronous: false,
            in_flight: Ok(1),
            error: 0,
        };
        profiler.operation(&write);
        profiler.operation(&FileOperation { asked: Asked::Sync(SyncCall::Fsync), ..write });
    }
    profiler.end(length_ms * 1_000_000);
    let looks = (length_ms + before_ms).div_ceil(250) + 1;
    let reading = |look: u64| {
        let at_seconds = look as f64 * 0.25 - before_ms as f64 / 1e3;
        let done = writes_ms.iter().filter(|it| **it as f64 / 1e3 <= at_seconds).count();
        let row = format!("8 0 sda 0 0 0 0 {done} 0 {} 1 0 1 1", done * 16);
        Reading {
            at_seconds,
            unix_seconds: 0,
            rows: machine::counters::disk::rows(row.as_bytes()).unwrap(),
            ..Reading::default()
        }
    };
    Captured {
        heading: Heading { began_unix_seconds: began, ..Heading::default() },
        profile: profiler.profile(),
        beside: Some((0..looks).map(reading).collect()),
        is_cut: false,
    }
}

/// The line of a figure, without the ends that only stretch its axis.
fn line_of<'a>(figures: &'a [Figure], title: &str) -> &'a [Value] {
    let figure = figures.iter().find(|it| it.title.starts_with(title));
    let values = &figure.unwrap_or_else(|| panic!("no {title}")).groups[0].values;
    &values[1..values.len() - 1]
}

/// From the first to the last position with data.
fn extent(values: &[Value]) -> (f64, f64) {
    let some = || values.iter().filter(|it| it.y > 0.0).map(|it| it.x);
    (some().fold(f64::INFINITY, f64::min), some().fold(f64::NEG_INFINITY, f64::max))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn calls_and_devices_stand_at_their_times(
        began in 1e9..2e9_f64,
        writes in prop::collection::btree_set(0_u64..9_000, 1..80),
        before_ms in 0_u64..700,
    ) {
        let writes: Vec<u64> = writes.into_iter().collect();
        let captured = captured(began, &writes, 9_000, before_ms);
        let together = Together::of(&captured);
        let page = page(&together, "job");
        let figures = &page.sections[0].figures;
        let seconds = together.calls_frame.seconds;
        for figure in figures {
            // One axis: the same beginning, and the same length.
            prop_assert_eq!(&figure.axis, &figures[0].axis);
            let ends = figure.groups[0].values.iter().map(|it| it.x).fold(0.0, f64::max);
            prop_assert!((ends - seconds).abs() < 1e-9, "{ends} {seconds}");
        }
        let Axis::Time(axis) = figures[0].axis else { unreachable!() };
        // A write is at its time of day, within the width of a point.
        let offset = began - axis as f64;
        let place = |ms: u64| offset + ms as f64 / 1e3;
        let (first, last) = (place(writes[0]), place(*writes.last().unwrap()));
        let calls = line_of(figures, "calls: reads and writes");
        let (from, until) = extent(calls);
        prop_assert!((from - first).abs() < 0.07 && (until - last).abs() < 0.07, "{from} {first}");
        // The disk answers at once, with four readings per second.
        let device = line_of(figures, "sda: requests");
        let (from, until) = extent(device);
        prop_assert!(from > first - 0.26 && from < first + 0.26, "{from} {first}");
        prop_assert!(until > last - 0.26 && until < last + 0.26, "{until} {last}");
        // No write is lost on the way to the page, and no byte.
        let (last, others) = calls.split_last().unwrap();
        let width = calls[1].x - calls[0].x;
        // The last point ends with the capture, and is shorter than the others.
        let rest = 2.0 * (offset + 9.0 - last.x);
        let drawn = others.iter().map(|it| it.y * width).sum::<f64>() + last.y * rest;
        prop_assert!((drawn - writes.len() as f64).abs() < 0.01, "{drawn}");
        let of_device = device[1].x - device[0].x;
        let drawn: f64 = device.iter().map(|it| it.y * of_device).sum();
        prop_assert!((drawn - writes.len() as f64).abs() < 0.01, "{drawn}");
    }
}

#[test]
fn a_page_without_calls_or_devices_is_a_page() {
    let none = Captured::default();
    let together = Together::of(&none);
    assert!(page(&together, "job").to_html().contains("<h2>Calls</h2>"));
    let quiet = captured(1e9, &[], 100, 0);
    let html = page(&Together::of(&quiet), "job").to_html();
    assert!(html.contains("<h2>Calls and devices, side by side</h2>"), "{html}");
    let nowhere = Captured { beside: Some(Vec::new()), ..quiet };
    let html = page(&Together::of(&nowhere), "job").to_html();
    assert!(html.contains("No block device lies below the captured files."), "{html}");
}

#[test]
fn what_is_drawn_of_files_is_what_their_profile_says() {
    let writes: Vec<u64> = (0..40).map(|it| it * 10).collect();
    let captured = captured(1e9, &writes, 500, 3);
    let together = Together::of(&captured);
    let page = page(&together, "job");
    let files = page.sections.iter().find(|it| it.title == "Files").unwrap();
    let label = |title: &str| {
        let figure = files.figures.iter().find(|it| it.title == title).unwrap();
        figure.groups[0].values[0].label.clone()
    };
    let name = "pg_wal/000000010000000000000001";
    assert_eq!(label("sizes of reads and writes"), format!("{name}: 100.0 % in 8 KiB"));
    assert_eq!(label("order"), format!("{name}: in order 97.5"));
    let between = "writes between two syncs";
    assert_eq!(label(between), format!("{name}: {between} 1.0"));
    let row = &files.tables[0].0.rows[0];
    assert_eq!(row[1..7], ["log", "psync", "0", "40", "0 B", "328 kB"]);
    let said: Vec<&str> = page.sentences.iter().map(|it| it.subject.as_str()).collect();
    assert!(said.contains(&"calls"), "{said:?}");
}
