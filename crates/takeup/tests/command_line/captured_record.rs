//! Records of a capture with known truth: a log with fdatasync after each write of 8 KiB, a table
//! that is read at random, and the disk below both.

use capture::operation::{
    Asked, Engine, FileKind, FileOperation, OpenedFile, Recording as _, SyncCall,
};
use capture::profile::{ProfileLimits, Profiler};
use capture::record::{Captured, Heading};
use watch::Reading;

/// The start, 2026-11-20 08:33:01.5.
pub const BEGAN: f64 = 1_795_163_581.5;

/// Ten seconds: the log is written a hundred times a second; the table is read as often from the
/// fifth second on.
pub fn captured() -> Captured {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(0);
    for (number, path) in [(0, "/srv/pg_wal/000000010000000000000001"), (1, "/srv/base/5/16384")] {
        let file = OpenedFile {
            path: Ok(path.to_owned()),
            kind: FileKind::Regular,
            deleted: false,
            direct: Ok(false),
            synchronous: Ok(false),
            append: Ok(false),
            size_bytes: Ok(1 << 30),
        };
        profiler.file(number, &file);
    }
    for number in 0_u64..1000 {
        let write = FileOperation {
            start_ns: number * 10_000_000,
            duration_ns: Ok(50_000),
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
        let sync = Asked::Sync(SyncCall::Fdatasync);
        profiler.operation(&FileOperation { asked: sync, ..write });
        if number >= 500 {
            let place = number.wrapping_mul(2_654_435_761) % 65_536 * 16_384;
            let (offset_bytes, bytes) = (Ok(place), Ok(16_384));
            let read =
                FileOperation { offset_bytes, asked_bytes: bytes, done_bytes: bytes, ..write };
            profiler.operation(&FileOperation { asked: Asked::Read, file: 1, thread: 2, ..read });
        }
    }
    profiler.end(10_000_000_000);
    Captured {
        heading: Heading {
            began_unix_seconds: BEGAN,
            subject: "shop --fast".to_owned(),
            events: 5000,
            ..Heading::default()
        },
        profile: profiler.profile(),
        beside: Some((0..=42).map(reading).collect()),
        is_cut: false,
    }
}

/// The disk's counters a quarter of a second before the capture, and every quarter after.
fn reading(look: u32) -> Reading {
    let seconds = f64::from(look) * 0.25 - 0.25;
    let done = (seconds.clamp(0.0, 10.0) * 100.0) as u64;
    let reads = done.saturating_sub(500);
    let (read, written) = (reads * 32, done * 16);
    let row = format!("8 0 sda {reads} 0 {read} {reads} {done} 0 {written} {done} 0 {done} {done}");
    Reading {
        at_seconds: seconds,
        unix_seconds: (BEGAN + seconds) as i64,
        rows: machine::counters::disk::rows(row.as_bytes()).unwrap(),
        ..Reading::default()
    }
}
