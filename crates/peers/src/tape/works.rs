//! The contenders of the tape works, and their drives.
//!
//! - `tape-lto5`, `tape-lto7`: many files to a drive with its default settings.
//! - `tape-slow-source`: a source of 60 MB/s into an LTO-7, which streams from 101 MB/s on. Buffer,
//!   stop and rings are a twentieth of what they are in a machine room, so that a run of half a
//!   minute has as many stops as 30 GB would: only ratios of bytes to rates count in the model, see
//!   docs/design/streaming.md.
//! - `drive-rate`: a single writer, to one generation after the other.

use super::{DriveSetup, Writer};
use crate::contenders::{BACKUP, CAT, Contender, DD_512K, TAR};

/// Room for the data, the headers, and the part after the early warning.
const CAPACITY_BYTES: u64 = 8_000_000_000;
const LTO_7: DriveSetup = DriveSetup {
    generation: "lto7",
    settings: &[],
    capacity_bytes: CAPACITY_BYTES,
    writer: Writer::Unlimited,
};
/// What tar gets out of the page cache, and what a dd gets that reads its input in units of 512
/// bytes: assumed, as they were seen on the machine of the records.
const TAR_BYTES_PER_SECOND: u64 = 1_400_000_000;
const DD_BYTES_PER_SECOND: u64 = 800_000_000;
/// A twentieth of 800 MB, 2.5 s and 3 s.
const SLOW_SETTINGS: &[(&str, u64)] = &[
    ("buffer_bytes", 40_000_000),
    ("back_hitch_ns", 125_000_000),
    ("synchronise_ns", 150_000_000),
];
/// Rate of the slow source, in its command line too.
const SLOW_BYTES_PER_SECOND: u64 = 60_000_000;
/// Two percent over the lowest step of an LTO-7, as a backup drains its ring.
const DRAIN_BYTES_PER_SECOND: u64 = 103_489_200;
/// A twentieth of 1 GiB and of 4 GiB, in whole MiB.
const RING_BYTES: u64 = 51 << 20;
const LARGE_RING_BYTES: u64 = 205 << 20;
/// A writer without a ring has the block that it writes, and the data that arrive meanwhile: the
/// source catches up for the millisecond that a block takes to the drive.
const BLOCKS_BYTES: u64 = 2 << 20;

const TO_TAPE: &[&str] = &["{takeup}", "backup", "{data}", "--to", "{tape}", "-q"];
const TAR_TO_TAPE: &[&str] = &["tar", "-cf", "{tape}", "{data}"];
const TAR_64K_TO_TAPE: &[&str] = &["tar", "-b", "128", "-cf", "{tape}", "{data}"];
const TAR_64K: &[&str] = &["tar", "-b", "128", "-cf", "-", "{data}"];
/// A gibibyte, blocks as large as Takeup's, and 80 % full before it starts and starts again, as its
/// manual advises for tape.
const MBUFFER_TO_TAPE: &[&str] =
    &["mbuffer", "-q", "-s", "1M", "-m", "1G", "-P", "80", "-f", "-o", "{tape}"];
const DD_512K_TO_TAPE: &[&str] = &["dd", "obs=512k", "status=none", "of={tape}"];

const SLOW_SOURCE: &[&str] = &["{xtask}", "produce", "{bytes}", "--rate", "60000000"];
const DD_1M_TO_TAPE: &[&str] = &["dd", "bs=1M", "iflag=fullblock", "status=none", "of={tape}"];
const PIPE_TO_TAPE: &[&str] = &["{takeup}", "pipe", "--to", "{tape}", "--ring", "51M", "-q"];
const PACED_TO_TAPE: &[&str] = &[
    "{takeup}",
    "pipe",
    "--to",
    "{tape}",
    "--ring",
    "51M",
    "--start-fill",
    "95",
    "--rate-limit",
    "103489200",
    "-q",
];
const LARGE_PACED_TO_TAPE: &[&str] = &[
    "{takeup}",
    "pipe",
    "--to",
    "{tape}",
    "--ring",
    "205M",
    "--start-fill",
    "95",
    "--rate-limit",
    "103489200",
    "-q",
];
const MBUFFER_FULL_TO_TAPE: &[&str] =
    &["mbuffer", "-q", "-s", "1M", "-m", "51M", "-P", "100", "-f", "-o", "{tape}"];
const LARGE_MBUFFER_FULL_TO_TAPE: &[&str] =
    &["mbuffer", "-q", "-s", "1M", "-m", "205M", "-P", "100", "-f", "-o", "{tape}"];
const DRIVE_RATE: &[&str] =
    &["{xtask}", "drive-rate", "{drive}", "--process", "{process}", "--seconds", "{seconds}"];

/// Many files to a drive of this generation; the sources alone take part too, without a drive.
pub fn streaming(generation: &'static str) -> Vec<Contender> {
    let copy = |block_bytes, source_bytes_per_second| Writer::Copy {
        block_bytes,
        source_bytes_per_second,
    };
    let filled = Writer::Ring {
        source_bytes_per_second: TAR_BYTES_PER_SECOND,
        ring_bytes: 1 << 30,
        start_fill_percent: 80,
        drain_bytes_per_second: None,
    };
    let list: [(&str, &[&[&str]], Writer); 5] = [
        ("takeup", &[TO_TAPE], Writer::Unlimited),
        ("tar", &[TAR_TO_TAPE], copy(10_240, TAR_BYTES_PER_SECOND)),
        ("tar-b128", &[TAR_64K_TO_TAPE], copy(65_536, TAR_BYTES_PER_SECOND)),
        ("tar|mbuffer", &[TAR_64K, MBUFFER_TO_TAPE], filled),
        ("tar|dd|dd", &[TAR, DD_512K, DD_512K_TO_TAPE], copy(524_288, DD_BYTES_PER_SECOND)),
    ];
    let to_drive = list.into_iter().map(|(name, stages, writer)| {
        let drive = DriveSetup { generation, writer, ..LTO_7 };
        Contender::new(name, stages).writing_to(drive)
    });
    // The other sources write to /dev/null; tar would then read nothing.
    let sources =
        [Contender::new("takeup-source", &[BACKUP]), Contender::new("tar-source", &[TAR_64K, CAT])];
    to_drive.chain(sources).collect()
}

/// A source below the lowest step, with rings and without.
pub fn slow_source() -> Vec<Contender> {
    let writer = |ring_bytes, start_fill_percent, drain_bytes_per_second| Writer::Ring {
        source_bytes_per_second: SLOW_BYTES_PER_SECOND,
        ring_bytes,
        start_fill_percent,
        drain_bytes_per_second,
    };
    let drain = Some(DRAIN_BYTES_PER_SECOND);
    let list = [
        ("takeup", PACED_TO_TAPE, writer(RING_BYTES, 95, drain)),
        ("takeup-4g", LARGE_PACED_TO_TAPE, writer(LARGE_RING_BYTES, 95, drain)),
        ("takeup-unpaced", PIPE_TO_TAPE, writer(RING_BYTES, 0, None)),
        ("dd", DD_1M_TO_TAPE, writer(BLOCKS_BYTES, 0, None)),
        ("mbuffer", MBUFFER_FULL_TO_TAPE, writer(RING_BYTES, 100, None)),
        ("mbuffer-4g", LARGE_MBUFFER_FULL_TO_TAPE, writer(LARGE_RING_BYTES, 100, None)),
    ];
    list.into_iter()
        .map(|(name, program, writer)| {
            let drive = DriveSetup { settings: SLOW_SETTINGS, writer, ..LTO_7 };
            Contender::new(name, &[SLOW_SOURCE, program]).writing_to(drive)
        })
        .collect()
}

/// One drive for each generation, up to 400 MB/s.
pub fn drive_rate() -> Vec<Contender> {
    let generations = ["lto3", "lto4", "lto5", "lto6", "lto7", "lto8", "lto9"];
    let drive = |generation| DriveSetup { generation, ..LTO_7 };
    let one = |generation| Contender::new(generation, &[DRIVE_RATE]).writing_to(drive(generation));
    generations.into_iter().map(one).collect()
}
