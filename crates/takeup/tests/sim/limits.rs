//! Known limits, with and without other programs on the machine: the limit that a run reports must
//! not change. A matrix of limits and of other load on cores, disk and memory.
//!
//! No test asserts times. A run that waits for a disk must not blame cores that others use; a run
//! that waited for such cores must name them; and no run may predict more than its disk can give.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::disk::Disk;
use crate::drive::takeup;

/// The limit of the run, by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The disk that the tree is on.
    SourceDisk,
    /// The disk that the archive goes to.
    TargetDisk,
    /// Compression that takes the cores ten times as long as the disk.
    Processor,
    /// The reader of the pipe.
    PipeReader,
    /// The writer of the pipe.
    PipeWriter,
    /// The user's own limit.
    Rate,
}

/// The other load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Nothing,
    /// A busy loop for each core.
    Cores,
    /// Reads of another file on the disk that is the limit.
    Disk,
    /// Copies in memory, on each core.
    Memory,
}

const SHORT_LIMITS: [Limit; 4] =
    [Limit::SourceDisk, Limit::TargetDisk, Limit::Processor, Limit::PipeReader];
const LONG_LIMITS: [Limit; 6] = [
    Limit::SourceDisk,
    Limit::TargetDisk,
    Limit::Processor,
    Limit::PipeReader,
    Limit::PipeWriter,
    Limit::Rate,
];

/// Rate of the virtual disk, and of the programs at pipes.
const RATE: u64 = 60_000_000;
const MIB: u64 = 1 << 20;
/// A run that takes this many times as long as its limit implies has another limit, too.
const STARVED: f64 = 1.5;

/// A slow disk with a file system and one large file, and the same file on a fast disk.
struct Bench {
    disk: Disk,
    folder: tempfile::TempDir,
    bytes: u64,
}

impl Bench {
    fn new(bytes: u64) -> Bench {
        let place = tempfile::tempdir().unwrap();
        let backing = place.path().join("backing");
        let size = (5 * bytes + 64 * MIB).to_string();
        let rate = RATE.to_string();
        let options = ["--size", &size, "--service-time", "1ms", "--bandwidth", &rate, "--loop"];
        let disk = Disk::on(place, &backing, &options);
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench { disk, folder, bytes };
        fs::create_dir(bench.slow()).unwrap();
        let device = bench.disk.told("loop");
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&device).status().unwrap();
        assert!(made.success());
        let mounted = Command::new("mount").arg(&device).arg(bench.slow()).status().unwrap();
        assert!(mounted.success());
        let content = testkit::samples::noise(7, bytes as usize);
        for path in [bench.slow().join("file"), bench.slow().join("other"), bench.fast()] {
            let mut file = File::create(path).unwrap();
            file.write_all(&content).unwrap();
            file.sync_all().unwrap();
        }
        bench
    }

    fn slow(&self) -> PathBuf {
        self.folder.path().join("slow")
    }

    /// The file on the disk of this machine, in its page cache.
    fn fast(&self) -> PathBuf {
        self.folder.path().join("fast")
    }

    /// One run under this load; its document.
    fn run(&self, limit: Limit, load: Load) -> Value {
        let _load = Loaded::with(load, &self.slow().join("other"));
        let archive = self.slow().join("archive");
        let archive = archive.to_str().unwrap();
        let slow = self.slow().join("file");
        drop_cached(&slow, self.bytes);
        let mut command = takeup();
        match limit {
            Limit::SourceDisk => command.arg("backup").arg(&slow).args(["--to", "/dev/null"]),
            Limit::TargetDisk => {
                command.arg("backup").arg(self.fast()).args(["--overwrite", "--to", archive])
            }
            Limit::Processor => {
                command.arg("backup").arg(self.fast()).args(["--compress", "zstd:15"]);
                command.args(["--to", "/dev/null"])
            }
            Limit::PipeReader => command.arg("backup").arg(self.fast()).args(["--to", "-"]),
            Limit::PipeWriter => command.args(["pipe", "--to", "/dev/null"]),
            Limit::Rate => {
                let rate = RATE.to_string();
                command.args(["pipe", "--to", "/dev/null", "--rate-limit", &rate, "--from"]);
                command.arg(self.fast())
            }
        };
        command.args(["--json", "--no-progress"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        if limit == Limit::PipeWriter {
            command.stdin(Stdio::piped());
        }
        self.document(command, limit)
    }

    fn document(&self, mut command: Command, limit: Limit) -> Value {
        let mut child = command.spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            let bytes = self.bytes;
            thread::spawn(move || slowly(bytes, |piece| stdin.write_all(piece).is_ok()));
        }
        let mut stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let mut output = Vec::new();
        if limit == Limit::PipeReader {
            slowly(u64::MAX, |piece| stdout.read(piece).is_ok_and(|bytes| bytes > 0));
        } else {
            stdout.read_to_end(&mut output).unwrap();
        }
        let errors = errors.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success(), "{errors}");
        let text = if limit == Limit::PipeReader { errors.as_bytes() } else { &output[..] };
        serde_json::from_slice(text).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.slow()).status();
    }
}

/// Pieces of a pipe's size at [`RATE`].
fn slowly(bytes: u64, mut pass: impl FnMut(&mut [u8]) -> bool) {
    let mut piece = vec![0; 256 << 10];
    let pause = Duration::from_secs_f64(piece.len() as f64 / RATE as f64);
    let mut passed = 0;
    while passed < bytes && pass(&mut piece) {
        passed += piece.len() as u64;
        thread::sleep(pause);
    }
}

fn drop_cached(path: &Path, bytes: u64) {
    let file = File::open(path).unwrap();
    device::file::drop_cached(&file, 0, bytes);
}

/// The other load, until it is dropped: threads of this process.
struct Loaded {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loaded {
    fn with(load: Load, other: &Path) -> Loaded {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = match load {
            Load::Nothing => 0,
            Load::Cores | Load::Memory => cores,
            // Enough readers to compete with a backup, which reads ahead.
            Load::Disk => 8,
        };
        let threads = (0..count).map(|_| {
            let (stop, other) = (Arc::clone(&stop), other.to_owned());
            thread::spawn(move || burden(load, &other, &stop))
        });
        let threads = threads.collect();
        Loaded { stop, threads }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn burden(load: Load, other: &Path, stop: &AtomicBool) {
    let mut from = vec![1u8; 32 << 20];
    let mut to = vec![0u8; 32 << 20];
    while !stop.load(Ordering::Relaxed) {
        match load {
            Load::Nothing => return,
            Load::Cores => {
                std::hint::black_box((0..100_000u64).fold(1, u64::wrapping_add));
            }
            Load::Memory => {
                to.copy_from_slice(&from);
                std::mem::swap(&mut from, &mut to);
            }
            Load::Disk => {
                let mut options = fs::OpenOptions::new();
                let opened = options.read(true).custom_flags(libc::O_DIRECT).open(other);
                let mut file = opened.unwrap();
                // A large vector is aligned to pages except for its header.
                let start = from.as_ptr().align_offset(4096);
                let piece = &mut from[start..][..1 << 20];
                while !stop.load(Ordering::Relaxed) && file.read(piece).unwrap() > 0 {}
            }
        }
    }
}

/// The stages that may be named, and the kinds of limit.
fn expected(limit: Limit) -> (&'static [&'static str], &'static [&'static str]) {
    match limit {
        Limit::SourceDisk => (&["read"], &["stage", "few threads"]),
        Limit::TargetDisk | Limit::PipeReader => (&["write"], &["stage"]),
        Limit::Processor => (&["compress"], &["stage", "few threads", "processor"]),
        Limit::PipeWriter => (&["read"], &["source"]),
        Limit::Rate => (&["write"], &["rate limit"]),
    }
}

/// Share of the run in which a thread of the stage waited for a core.
fn core_wait_share(document: &Value, stage: &str) -> f64 {
    let stages = document["stages"].as_array().unwrap();
    let stage = stages.iter().find(|it| it["name"] == stage).unwrap();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    number(stage, "core_wait_seconds") / number(stage, "threads") / number(document, "seconds")
}

fn check(bench: &Bench, limit: Limit, load: Load) {
    let document = bench.run(limit, load);
    let place = format!("{limit:?} under {load:?}: {document:#}");
    let (stages, kinds) = expected(limit);
    let named = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    let without = document["seconds_without_bottleneck"].as_f64().unwrap();
    let seconds = document["seconds"].as_f64().unwrap();
    assert!(without <= seconds, "{place}");
    let explanation = named("explanation");
    let theirs = document["others_processor_share"].as_f64().unwrap();
    let by_construction = bench.bytes as f64 / RATE as f64;
    let is_longer = limit != Limit::Processor && seconds > STARVED * by_construction;
    if is_longer && theirs > 0.3 && named("limit") == "processor" {
        // The other load takes so much of the cores that they become the limit. The sentence must
        // say that other programs use them, and the prediction must still include the disk.
        assert!(explanation.contains("other programs"), "{place}");
        let is_bound = limit != Limit::SourceDisk || without >= 0.75 * by_construction;
        assert!(is_bound, "{place}");
        return;
    }
    assert!(stages.contains(&&*named("bottleneck")), "{place}");
    assert!(kinds.contains(&&*named("limit")), "{place}");
    if matches!(load, Load::Cores | Load::Memory) && theirs > 0.5 && limit != Limit::Processor {
        // Cores that others use are named exactly where the stage waited for them.
        let waited = core_wait_share(&document, &named("bottleneck"));
        let is_named = explanation.contains("of the cores, and ");
        assert!(is_named || waited < 0.08, "{waited}: {place}");
        assert!(!is_named || waited > 0.03, "{waited}: {place}");
    }
    if limit == Limit::SourceDisk && load == Load::Disk {
        let bytes = |name: &str| document[name].as_u64().unwrap() as f64;
        let (theirs, own) = (bytes("others_on_source_bytes"), bytes("source_bytes"));
        // Where cores are short, the other load may get little done and need not be named.
        let worth_a_word = theirs / (theirs + own) >= 0.1;
        assert_eq!(explanation.contains("on that disk"), worth_a_word, "{place}");
    }
    // Except for compression, a device with a known rate bounds every prediction for other stages.
    // Tests of `flow` make the same record with the named stage free.
    if limit != Limit::Processor && theirs < 0.3 {
        assert!(!explanation.contains("the processor was the limit"), "{place}");
    }
}

#[test]
fn a_known_limit_is_named_whoever_else_is_there() {
    testkit::require!(Fuse, LoopDevices, Mounts, Ext4);
    let bench = Bench::new(24 * MIB);
    for limit in SHORT_LIMITS {
        for load in [Load::Nothing, Load::Cores] {
            check(&bench, limit, load);
        }
    }
    check(&bench, Limit::SourceDisk, Load::Disk);
}

/// The long form: `TAKEUP_LONG=1`.
#[test]
fn known_limits_under_every_load() {
    testkit::require!(Fuse, LoopDevices, Mounts, Ext4);
    testkit::long_run!();
    let bench = Bench::new(100 * MIB);
    for limit in LONG_LIMITS {
        for load in [Load::Nothing, Load::Cores, Load::Disk, Load::Memory] {
            check(&bench, limit, load);
        }
    }
}
