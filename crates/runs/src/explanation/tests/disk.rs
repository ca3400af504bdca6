//! Sentences of backups that waited for the disk of the tree.

use flow::run::{DiskOrder, RunReport, StageKind, StageReport};

use super::{SMALL, backup, stage, words};

#[test]
fn what_the_order_of_the_disk_changed_is_told_where_the_disk_was_busy() {
    let read = StageReport { threads: 8, ..stage(StageKind::Read, [9.7, 0.3, 0.0], 1.0) };
    let write = stage(StageKind::Write, [0.5, 9.5, 0.0], 0.5);
    let order = DiskOrder { files: 4000, pieces: 4007, jumps: 61, jumps_by_name: 3801 };
    let said = |busy_seconds: f64, order: DiskOrder| {
        let run = RunReport {
            source_disk_seconds: Some(busy_seconds),
            source_disk_in_flight: Some(3.6),
            disk_order: Some(order),
            ..backup("none", SMALL)
        };
        words(&[read.clone(), write.clone()], &run)
    };
    let text = said(9.9, order);
    let jumps = "and 4 000 files came in its order, with 61 jumps instead of 3 801: a faster disk";
    assert!(text.contains(jumps), "{text}");
    // Whether its heads moved or it is flash that somebody asked to be read so is not known.
    assert!(!text.contains("heads") && !text.contains("seek"), "{text}");
    let text = said(2.0, order);
    assert!(text.contains("for only 20 % of the run") && !text.contains("jump"), "{text}");
    // Files that lie together cost no jumps in any order.
    let text = said(9.9, DiskOrder { jumps_by_name: 0, jumps: 0, ..order });
    assert!(text.contains("had requests for 99 % of the run") && !text.contains("jump"), "{text}");
}

/// Only a run that was told to read by name has something to try: others have looked.
#[test]
fn reading_by_name_is_named_where_the_disk_takes_as_long_as_heads() {
    let read = StageReport { threads: 8, ..stage(StageKind::Read, [9.7, 0.3, 0.0], 1.0) };
    let write = stage(StageKind::Write, [0.5, 9.5, 0.0], 0.5);
    let said = |files: u64, is_by_name: bool| {
        let run = RunReport {
            source_disk_seconds: Some(9.9),
            source_disk_in_flight: Some(3.6),
            is_by_name,
            files,
            ..backup("none", SMALL)
        };
        words(&[read.clone(), write.clone()], &run)
    };
    let text = said(4000, true);
    assert!(text.contains("2.5 ms for each file: without --read-order"), "{text}");
    for (files, is_by_name) in [(4000, false), (100_000, true), (0, true)] {
        let text = said(files, is_by_name);
        assert!(text.contains("at once: a faster disk would help"), "{files}: {text}");
    }
}

/// A cold tree of small files: the run does not show what more files in flight would bring.
#[test]
fn no_setting_is_proposed_that_the_run_did_not_try() {
    let read = StageReport { threads: 8, ..stage(StageKind::Read, [9.7, 0.3, 0.0], 1.0) };
    let write = stage(StageKind::Write, [0.5, 9.5, 0.0], 0.5);
    for bytes in [SMALL, 40_000_000] {
        for (busy, said) in [
            (Some(9.9), "had requests for 99 % of the run, 3.6 at once: a faster disk would help"),
            (Some(2.0), "had requests for only 20 % of the run; this run does not show what else"),
            (None, "the readers waited for the file system of the tree"),
        ] {
            let run = RunReport {
                source_disk_seconds: busy,
                source_disk_in_flight: busy.map(|_| 3.6),
                ..backup("none", bytes)
            };
            let text = words(&[read.clone(), write.clone()], &run);
            assert!(text.contains(said), "{text}");
            assert!(!text.contains("in flight") && !text.contains("read-ahead"), "{text}");
        }
    }
}
