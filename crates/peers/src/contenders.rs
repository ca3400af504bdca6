//! The comparison: the works, and for each the command lines that do it.
//!
//! Only this file has command lines. Every program is started without a shell, inside the folder of
//! the data; `fill` replaces words in braces. A stream ends in `cat` with its standard output at
//! /dev/null, so that every contender writes to a pipe: GNU tar does not read files at all when its
//! archive is /dev/null.

use std::collections::BTreeMap;

use crate::data::Recipe;
use crate::tape::{DriveSetup, works as tape_works};

/// Name of the product's second binary.
pub const BEFORE: &str = "takeup-before";

/// A ring of a fixed size, which the memory row subtracts.
pub const RING_BYTES: u64 = 64 << 20;

/// Archive to standard output.
pub const BACKUP: &[&str] = &["{takeup}", "backup", "{data}", "--to", "-", "-q"];
const BACKUP_RING: &[&str] = &["{takeup}", "backup", "{data}", "--to", "-", "--ring", "64M", "-q"];
const BACKUP_ZSTD: &[&str] =
    &["{takeup}", "backup", "{data}", "--to", "-", "--compress", "zstd:3", "-q"];
const BACKUP_GZIP: &[&str] =
    &["{takeup}", "backup", "{data}", "--to", "-", "--compress", "gzip", "-q"];
/// Prepares the archive of the contender "takeup-own".
pub const BACKUP_TO_FILE: &[&str] =
    &["{takeup}", "backup", "{data}", "--to", "{own_archive}", "-q"];
const VERIFY: &[&str] = &["{takeup}", "verify", "{own_archive}", "-q"];
// The other tools do not synchronise restored files.
const RESTORE: &[&str] =
    &["{takeup}", "restore", "{archive}", "--into", "{into}", "--no-sync", "-q"];
const RESTORE_OWN: &[&str] =
    &["{takeup}", "restore", "{own_archive}", "--into", "{into}", "--no-sync", "-q"];
const PIPE: &[&str] = &["{takeup}", "pipe", "--block-size", "1M", "--ring", "64M", "-q"];

/// Archive to a pipe.
pub const TAR: &[&str] = &["tar", "-cf", "-", "{data}"];
/// Prepares the archive of the restore work: pax, so that all tools can restore nanosecond times.
pub const TAR_TO_FILE: &[&str] = &["tar", "--format=posix", "-cf", "{archive}", "{data}"];
const TAR_EXTRACT: &[&str] = &["tar", "-C", "{into}", "-xf", "{archive}"];
const BSDTAR: &[&str] = &["bsdtar", "-cf", "-", "{data}"];
const BSDTAR_EXTRACT: &[&str] = &["bsdtar", "-C", "{into}", "-xf", "{archive}"];
const MBUFFER: &[&str] = &["mbuffer", "-q", "-s", "1M", "-m", "64M"];
/// As published: the output in blocks of 512 KiB, the input in units.
pub const DD_512K: &[&str] = &["dd", "obs=512k", "status=none"];
const DD: &[&str] = &["dd", "obs=1M", "status=none"];
const DD_FULL: &[&str] = &["dd", "bs=1M", "iflag=fullblock", "status=none"];
const PV: &[&str] = &["pv", "-q"];
const ZSTD: &[&str] = &["zstd", "-q", "-T0", "-3", "-c"];
const PIGZ: &[&str] = &["pigz", "-c"];
const PRODUCE: &[&str] = &["{xtask}", "produce", "{bytes}"];
const CAT_DATA: &[&str] = &["cat", "{data}"];
/// The end of a pipe.
pub const CAT: &[&str] = &["cat"];
/// Replaces `cat` when the size of the output is needed.
pub const COUNT: &[&str] = &["{xtask}", "count"];

/// A task, the same for all contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name in the records and on the command line.
    pub name: &'static str,
    /// Folder name of its data; none for the pipe.
    pub data: Option<(&'static str, Recipe)>,
    /// The content of the page cache at the start.
    pub cache: Cache,
    /// The task of the command lines.
    pub job: WorkKind,
    /// Full-scale runs are large; these works only run on request.
    pub group: WorkGroup,
}

/// State of the page cache when a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// None of the data are in memory.
    Cold,
    /// All data are in memory.
    Warm,
}

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Archive to a pipe.
    Archive,
    /// Archive to /dev/null: the cost of reading, hashing and encoding, without a pipe.
    ArchiveToNull,
    /// Archive to a pipe with a fixed ring; only the product and GNU tar.
    ArchiveScale,
    /// Archive to a pipe through zstd level 3.
    ArchiveZstd,
    /// Archive to a pipe through gzip.
    ArchiveGzip,
    /// Restore an archive into an empty folder on the disk.
    Restore,
    /// Restore an archive into an empty folder in memory.
    RestoreToMemory,
    /// Verify an archive of the product's own, on the disk.
    Verify,
    /// Read a file like `takeup bench read`.
    Read,
    /// Buffer a stream of this many bytes between two processes.
    Pipe(u64),
    /// Archive to a virtual drive of this generation.
    Tape(&'static str),
    /// This many bytes of a slow source to a virtual drive.
    SlowTape(u64),
    /// Write to virtual drives for this many seconds.
    DriveRate(u64),
}

impl WorkKind {
    /// Whether an archive is restored.
    pub fn is_restore(self) -> bool {
        matches!(self, WorkKind::Restore | WorkKind::RestoreToMemory)
    }

    /// Whether it is compared with the floor, or with fio if there is one file.
    pub fn reads(self) -> bool {
        matches!(
            self,
            WorkKind::Archive | WorkKind::ArchiveToNull | WorkKind::Verify | WorkKind::Read
        )
    }

    /// Whether it uses drives.
    pub fn is_tape(self) -> bool {
        matches!(self, WorkKind::Tape(_) | WorkKind::SlowTape(_) | WorkKind::DriveRate(_))
    }
}

/// When a work is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkGroup {
    /// Always.
    Ordinary,
    /// With `--scale`; works of one number alternate.
    Scale(u8),
    /// With `--tape`.
    Tape,
}

/// Scale of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As the benchmark defines it.
    Full,
    /// A hundredth, to check that everything works.
    Quick,
}

/// The clock for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// From the start of the first program to the end of the last.
    Wall,
    /// fio's own report: its start and end take longer than a tool's.
    Fio,
    /// The report of `takeup bench`, which prepares each run.
    Bench,
    /// The floor's own report: the list of files is read before it starts.
    Floor,
}

/// A contender: the programs of its pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its name in the records and tables.
    pub name: String,
    /// Command lines; words in braces are still to be replaced.
    pub stages: Vec<Vec<String>>,
    /// The clock for its runs.
    pub clock: Clock,
    /// The virtual drive that it writes to.
    pub drive: Option<DriveSetup>,
}

impl Contender {
    /// A contender measured by the wall clock.
    pub fn new(name: &str, stages: &[&[&str]]) -> Self {
        let stages = stages.iter().map(|argv| owned(argv)).collect();
        Self { name: name.to_string(), stages, clock: Clock::Wall, drive: None }
    }

    /// The same with a drive.
    pub fn writing_to(self, drive: DriveSetup) -> Self {
        Self { drive: Some(drive), ..self }
    }
}

/// All works at the given scale, in the order in which they are run.
pub fn works(size: Size) -> Vec<Work> {
    use Cache::{Cold, Warm};
    use WorkGroup::{Ordinary, Scale, Tape};
    let (files, unit_bytes, mixed_bytes, pipe_bytes) = match size {
        Size::Full => (1000, 1 << 30, 2 << 30, 8 << 30),
        Size::Quick => (10, 16 << 20, 24 << 20, 256 << 20),
    };
    let (packed_bytes, slow_bytes, seconds) = match size {
        Size::Full => (4_000_000_000, 1_500_000_000, 10),
        Size::Quick => (40_000_000, 90_000_000, 1),
    };
    let packed = Some(("packed", Recipe::PackedTree(packed_bytes)));
    let small = Some(("small", Recipe::SmallFiles(100 * files)));
    let large = Some(("large", Recipe::OneFile(4 * unit_bytes)));
    let mixed = Some(("mixed", Recipe::MixedTree(mixed_bytes)));
    let work = |name, data, cache, job, group| Work { name, data, cache, job, group };
    let some_files = |name, count| Some((name, Recipe::SmallFiles(count * files)));
    let some_bytes = |name, count| Some((name, Recipe::OneFile(count * unit_bytes)));
    let scale = WorkKind::ArchiveScale;
    vec![
        work("small-cold", small, Cold, WorkKind::Archive, Ordinary),
        work("small-warm", small, Warm, WorkKind::Archive, Ordinary),
        work("large-cold", large, Cold, WorkKind::Archive, Ordinary),
        work("large-warm", large, Warm, WorkKind::Archive, Ordinary),
        work("mixed-zstd", mixed, Warm, WorkKind::ArchiveZstd, Ordinary),
        work("mixed-gzip", mixed, Warm, WorkKind::ArchiveGzip, Ordinary),
        work("small-cold-null", small, Cold, WorkKind::ArchiveToNull, Ordinary),
        work("small-warm-null", small, Warm, WorkKind::ArchiveToNull, Ordinary),
        work("large-cold-null", large, Cold, WorkKind::ArchiveToNull, Ordinary),
        work("large-warm-null", large, Warm, WorkKind::ArchiveToNull, Ordinary),
        work("verify-large", large, Cold, WorkKind::Verify, Ordinary),
        work("read-large", large, Cold, WorkKind::Read, Ordinary),
        work("restore-small", small, Warm, WorkKind::Restore, Ordinary),
        work("restore-memory", small, Warm, WorkKind::RestoreToMemory, Ordinary),
        work("pipe", None, Warm, WorkKind::Pipe(pipe_bytes), Ordinary),
        work("tape-lto5", packed, Warm, WorkKind::Tape("lto5"), Tape),
        work("tape-lto7", packed, Warm, WorkKind::Tape("lto7"), Tape),
        work("tape-slow-source", None, Warm, WorkKind::SlowTape(slow_bytes), Tape),
        work("drive-rate", None, Warm, WorkKind::DriveRate(seconds), Tape),
        work("scale-files-10k", some_files("files-10k", 10), Cold, scale, Scale(1)),
        work("scale-files-100k", some_files("files-100k", 100), Cold, scale, Scale(1)),
        work("scale-files-1m", some_files("files-1m", 1000), Cold, scale, Scale(1)),
        work("scale-bytes-1g", some_bytes("bytes-1g", 1), Cold, scale, Scale(2)),
        work("scale-bytes-4g", some_bytes("bytes-4g", 4), Cold, scale, Scale(2)),
        work("scale-bytes-16g", some_bytes("bytes-16g", 16), Cold, scale, Scale(2)),
    ]
}

/// The product's second binary, with the product's command lines.
pub fn before(contenders: &[Contender]) -> Option<Contender> {
    let product = contenders.iter().find(|contender| contender.name == "takeup")?;
    let word = |word: &String| word.replace("{takeup}", "{before}");
    let stages = product.stages.iter().map(|argv| argv.iter().map(word).collect()).collect();
    Some(Contender { name: BEFORE.to_string(), stages, ..product.clone() })
}

/// All contenders of `work`; the floor and fio join when their best setting is known.
pub fn contenders(work: &Work) -> Vec<Contender> {
    let list: &[(&str, &[&[&str]])] = match work.job {
        WorkKind::Archive => &[
            ("takeup", &[BACKUP, CAT]),
            ("tar", &[TAR, CAT]),
            ("bsdtar", &[BSDTAR, CAT]),
            ("tar|mbuffer", &[TAR, MBUFFER, CAT]),
            ("tar|dd|dd", &[TAR, DD, DD, CAT]),
            ("tar|pv", &[TAR, PV, CAT]),
        ],
        WorkKind::ArchiveScale => &[("takeup", &[BACKUP_RING, CAT]), ("tar", &[TAR, CAT])],
        WorkKind::ArchiveZstd => &[
            ("takeup", &[BACKUP_ZSTD, CAT]),
            ("tar|zstd", &[TAR, ZSTD, CAT]),
            ("bsdtar|zstd", &[BSDTAR, ZSTD, CAT]),
        ],
        WorkKind::ArchiveGzip => &[
            ("takeup", &[BACKUP_GZIP, CAT]),
            ("tar|pigz", &[TAR, PIGZ, CAT]),
            ("bsdtar|pigz", &[BSDTAR, PIGZ, CAT]),
        ],
        WorkKind::ArchiveToNull => match work.data {
            // GNU tar reads nothing where its archive is /dev/null.
            Some((_, Recipe::OneFile(_))) => &[("takeup", &[BACKUP]), ("cat", &[CAT_DATA])],
            _ => &[("takeup", &[BACKUP])],
        },
        WorkKind::Verify => &[("takeup", &[VERIFY])],
        // Its best setting is searched, as fio's.
        WorkKind::Read => &[],
        WorkKind::Restore | WorkKind::RestoreToMemory => &[
            ("takeup", &[RESTORE]),
            ("takeup-own", &[RESTORE_OWN]),
            ("tar", &[TAR_EXTRACT]),
            ("bsdtar", &[BSDTAR_EXTRACT]),
        ],
        WorkKind::Pipe(_) => &[
            ("takeup", &[PRODUCE, PIPE, CAT]),
            ("mbuffer", &[PRODUCE, MBUFFER, CAT]),
            ("dd|dd", &[PRODUCE, DD, DD, CAT]),
            ("dd|dd-fullblock", &[PRODUCE, DD_FULL, DD_FULL, CAT]),
            ("pv", &[PRODUCE, PV, CAT]),
            ("nothing", &[PRODUCE, CAT]),
        ],
        WorkKind::Tape(generation) => return tape_works::streaming(generation),
        WorkKind::SlowTape(_) => return tape_works::slow_source(),
        WorkKind::DriveRate(_) => return tape_works::drive_rate(),
    };
    list.iter().map(|(name, stages)| Contender::new(name, stages)).collect()
}

/// The candidates in the search for the best parallel reading of all files.
pub fn floor_candidates(size: Size) -> Vec<Contender> {
    let all_threads: &[&str] = match size {
        Size::Full => &["1", "2", "4", "8", "16", "32", "64"],
        Size::Quick => &["1", "16"],
    };
    let mut candidates = Vec::new();
    for &threads in all_threads {
        for (order, list) in [("path", "{path_order}"), ("directory", "{directory_order}")] {
            let argv = ["{xtask}", "floor", "--threads", threads, "--list", list];
            let stages = vec![owned(&argv)];
            let name = format!("floor {threads} threads, {order} order");
            candidates.push(Contender { name, stages, clock: Clock::Floor, drive: None });
        }
    }
    candidates
}

/// The candidates in the search for fio's best direct sequential reading.
pub fn fio_candidates(size: Size) -> Vec<Contender> {
    let (blocks, depths): (&[&str], &[&str]) = match size {
        Size::Full => (&["256k", "1M", "4M"], &["1", "4", "8", "16"]),
        Size::Quick => (&["1M"], &["1"]),
    };
    let mut candidates = Vec::new();
    for engine in ["io_uring", "libaio", "psync"] {
        for &block in blocks {
            for &depth in depths {
                // A synchronous engine has one request in flight, whatever its depth.
                if engine == "psync" && depth != "1" {
                    continue;
                }
                let stages = vec![fio_argv(engine, block, depth)];
                let name = format!("fio {engine} {block} depth {depth}");
                candidates.push(Contender { name, stages, clock: Clock::Fio, drive: None });
            }
        }
    }
    candidates
}

/// The candidates in the search for the product's own best reading.
pub fn bench_candidates(size: Size) -> Vec<Contender> {
    let (blocks, depths): (&[&str], &[&str]) = match size {
        Size::Full => (&["256k", "1M", "4M"], &["1", "4", "8", "16"]),
        Size::Quick => (&["1M"], &["1"]),
    };
    let mut candidates = Vec::new();
    for &block in blocks {
        for &depth in depths {
            let mut argv = owned(&["{takeup}", "bench", "read", "{read}", "-q"]);
            argv.extend(owned(&["--engines", "io_uring", "--cache", "direct"]));
            argv.extend(owned(&["--block-size", block, "--depth", depth, "--length", "{length}"]));
            argv.extend(owned(&["--repeats", "1", "--repeats-max", "1", "--random-reads", "0"]));
            argv.extend(owned(&["--output", "{bench_output}"]));
            let name = format!("takeup io_uring {block} depth {depth}");
            let stages = vec![argv];
            candidates.push(Contender { name, stages, clock: Clock::Bench, drive: None });
        }
    }
    candidates
}

/// Replaces the words in braces by their values.
pub fn fill(argv: &[String], values: &BTreeMap<&'static str, String>) -> Vec<String> {
    argv.iter()
        .map(|word| {
            values.iter().fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), value)
            })
        })
        .collect()
}

fn fio_argv(engine: &str, block: &str, depth: &str) -> Vec<String> {
    let mut argv = owned(&[
        "fio",
        "--name=read",
        "--filename={read}",
        "--rw=read",
        "--readonly",
        "--direct=1",
        "--thread",
        "--output-format=json",
    ]);
    argv.push(format!("--ioengine={engine}"));
    argv.push(format!("--bs={block}"));
    argv.push(format!("--iodepth={depth}"));
    argv
}

/// An argv of the tables above as owned words.
pub fn owned(argv: &[&str]) -> Vec<String> {
    argv.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_has_the_product_and_someone_to_compare() {
        for size in [Size::Full, Size::Quick] {
            for work in works(size) {
                let all = contenders(&work);
                let names: Vec<_> = all.iter().map(|contender| &*contender.name).collect();
                let product = names.contains(&"takeup");
                // One searches settings, the other compares drives.
                let others_only = matches!(work.job, WorkKind::Read | WorkKind::DriveRate(_));
                assert_eq!(product, !others_only, "{}", work.name);
                // The floor and fio join for works that read.
                assert!(names.len() >= 2 || work.job.reads(), "{}", work.name);
                let before = before(&all);
                assert_eq!(before.is_some(), product, "{}", work.name);
                if let Some(before) = before {
                    let words: Vec<&String> = before.stages.iter().flatten().collect();
                    assert!(words.iter().any(|word| *word == "{before}"), "{words:?}");
                    assert!(!words.iter().any(|word| word.contains("{takeup}")), "{words:?}");
                }
            }
        }
        assert_eq!(fio_candidates(Size::Full).len(), 27);
        assert_eq!(bench_candidates(Size::Full).len(), 12);
        assert_eq!(floor_candidates(Size::Full).len(), 14);
    }

    #[test]
    fn braces_are_filled_everywhere() {
        let names = [
            "takeup",
            "before",
            "data",
            "archive",
            "own_archive",
            "into",
            "bytes",
            "xtask",
            "path_order",
            "directory_order",
            "tape",
            "drive",
            "process",
            "seconds",
            "read",
            "length",
            "bench_output",
        ];
        let values: BTreeMap<_, _> = names.map(|name| (name, format!("<{name}>"))).into();
        let mut all: Vec<_> = works(Size::Full).iter().flat_map(contenders).collect();
        all.extend(before(&all));
        all.extend(floor_candidates(Size::Full));
        all.extend(fio_candidates(Size::Full));
        all.extend(bench_candidates(Size::Full));
        all.push(Contender::new("prepare", &[BACKUP_TO_FILE, TAR_TO_FILE, COUNT]));
        for argv in all.iter().flat_map(|contender| &contender.stages) {
            let filled = fill(argv, &values).join(" ");
            assert!(!filled.contains('{'), "{filled}");
        }
    }
}
