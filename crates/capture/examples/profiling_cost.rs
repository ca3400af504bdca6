//! What one operation costs the profiler, by kind of load, on one core.
//!
//! `cargo run --release -p capture --example profiling_cost`
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::time::Instant;

use capture::operation::{Asked, Engine, FileKind, FileOperation, OpenedFile, Recording, SyncCall};
use capture::profile::{ProfileLimits, Profiler};

const OPERATIONS: u64 = 4_000_000;
/// Operations for each second of the recording.
const RATE: u64 = 400_000;
const FILES: u32 = 100;

/// The operation of a number.
type Load = fn(u64) -> FileOperation;

fn operation(number: u64, asked: Asked, offset: u64, bytes: u64) -> FileOperation {
    FileOperation {
        start_ns: number * (1_000_000_000 / RATE),
        duration_ns: Ok(20_000),
        process: 1,
        thread: 1,
        file: 0,
        engine: Engine::Psync,
        asked,
        offset_bytes: Ok(offset),
        asked_bytes: Ok(bytes),
        done_bytes: Ok(bytes),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    }
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn log(number: u64) -> FileOperation {
    let sync = Asked::Sync(SyncCall::Fdatasync);
    let asked = if number.is_multiple_of(2) { Asked::Write } else { sync };
    operation(number, asked, number / 16 * 8192, 8192)
}

fn sequential(number: u64) -> FileOperation {
    operation(number, Asked::Read, number * 131_072, 131_072)
}

/// Of 100 files of 1 TB each, by 16 threads with 32 in flight.
fn random(number: u64) -> FileOperation {
    let chance = mixed(number);
    let asked = if chance % 10 < 7 { Asked::Read } else { Asked::Write };
    let file = u32::try_from(chance >> 8 & 0xffff).unwrap_or(0) % FILES;
    let thread = u32::try_from(number % 16).unwrap_or(0);
    let at = (chance >> 24) % (1 << 26) * 16_384;
    FileOperation { file, thread, in_flight: Ok(32), ..operation(number, asked, at, 16_384) }
}

fn main() {
    let loads: [(&str, Load); 3] = [
        ("a log with a sync for each write", log),
        ("sequential reads of 128 KiB", sequential),
        ("random, 100 files, 16 threads, 32 in flight", random),
    ];
    for (name, load) in loads {
        let operations: Vec<FileOperation> = (0..OPERATIONS).map(load).collect();
        let mut profiler = Profiler::new(ProfileLimits::default());
        for number in 0..FILES {
            profiler.file(
                number,
                &OpenedFile {
                    path: Ok(format!("/srv/{number}")),
                    kind: FileKind::Regular,
                    deleted: false,
                    direct: Ok(true),
                    synchronous: Ok(false),
                    append: Ok(false),
                    size_bytes: Ok(1 << 40),
                },
            );
        }
        let begin = Instant::now();
        for operation in &operations {
            profiler.operation(operation);
        }
        let taken = begin.elapsed();
        let each = taken.as_nanos() as f64 / OPERATIONS as f64;
        let begin = Instant::now();
        let files = profiler.profile().files.len();
        println!(
            "{name}: {each:.0} ns an operation, {:.1} million a second; \
             profile of {files} files {:.1} ms",
            1e3 / each,
            begin.elapsed().as_secs_f64() * 1e3
        );
    }
}
