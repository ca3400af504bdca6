//! The benchmark's own programs for its pipelines.
//!
//! `stage` runs one program and reports the resources that it alone used. `produce` and `count` are
//! the two ends of a pipeline; `floor` does the minimum that a backup must do. All print their
//! result as one line of JSON or text on standard output, except `stage`, whose standard output
//! belongs to the program that it runs.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

const BUFFER_BYTES: usize = 1 << 20;

/// Arguments of `xtask stage`.
#[derive(clap::Args)]
pub struct StageArguments {
    /// File that receives the report
    #[arg(long)]
    report: PathBuf,
    /// Kill the program after so many seconds
    #[arg(long)]
    limit_seconds: u64,
    /// Program and arguments
    #[arg(last = true, required = true)]
    argv: Vec<String>,
}

/// Arguments of `xtask produce`.
#[derive(clap::Args)]
pub struct ProduceArguments {
    /// Bytes to write
    bytes: u64,
    /// Most bytes per second; time lost while the reader waited is not made up
    #[arg(long)]
    rate: Option<u64>,
}

/// Arguments of `xtask floor`.
#[derive(clap::Args)]
pub struct FloorArguments {
    /// Number of threads
    #[arg(long)]
    threads: usize,
    /// File with one path a line, in the order to read them
    #[arg(long)]
    list: PathBuf,
}

/// Resources used by one program of a pipeline. Times are of CLOCK_MONOTONIC, the same for all
/// programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Time of the start.
    pub start_ns: u64,
    /// Time of the end.
    pub end_ns: u64,
    /// Processor time in user mode, of the program and the children it waited for.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub system_seconds: f64,
    /// Largest resident set. It is at least the wrapper's own, some 3 MiB: the kernel keeps the
    /// mark over exec (setmax_mm_hiwater_rss in fs/exec.c).
    pub max_rss_bytes: u64,
    /// Exit code, or 128 + signal as shells count.
    pub exit_code: i32,
}

/// The output of `xtask floor`.
#[derive(Debug, Serialize, Deserialize)]
pub struct FloorReport {
    /// Wall time of reading the files, without reading the list.
    pub seconds: f64,
    /// Bytes read.
    pub bytes: u64,
}

/// Runs one program with this process's standard streams and writes a [`StageReport`].
///
/// Each program has its own wrapper process, because `getrusage` adds up all children of a process.
pub fn run_stage(arguments: &StageArguments) -> anyhow::Result<ExitCode> {
    let (program, rest) = arguments.argv.split_first().context("no program")?;
    let start_ns = monotonic_ns();
    let mut child =
        Command::new(program).args(rest).spawn().with_context(|| format!("start {program}"))?;
    release_streams().context("release standard streams")?;
    let pid = Pid::from_child(&child);
    let limit = Duration::from_secs(arguments.limit_seconds);
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        // The wrapper waits for its only child, so the number is still the child's here.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    });
    let status = child.wait().context("wait")?;
    let end_ns = monotonic_ns();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let seconds = |time: nix::sys::time::TimeVal| {
        time.tv_sec() as f64 + f64::from(time.tv_usec() as i32) / 1e6
    };
    let report = StageReport {
        start_ns,
        end_ns,
        user_seconds: seconds(usage.user_time()),
        system_seconds: seconds(usage.system_time()),
        max_rss_bytes: usage.max_rss() as u64 * 1024,
        exit_code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
    };
    fs::write(&arguments.report, serde_json::to_vec(&report)?).context("write the report")?;
    Ok(ExitCode::SUCCESS)
}

/// How much a source with a rate may catch up after a late wake-up.
const LATE: Duration = Duration::from_millis(50);

/// A source with a rate delivers steadily, not a whole buffer now and then.
fn piece_bytes(rate: Option<u64>) -> u64 {
    rate.map_or(u64::MAX, |rate| (rate / 500).clamp(512, BUFFER_BYTES as u64))
}

/// Writes bytes to standard output, 1 MiB per write, as fast as they are read, or at a rate.
pub fn produce(arguments: &ProduceArguments) -> anyhow::Result<ExitCode> {
    let mut buffer = Vec::new();
    crate::random::Generator::new(1, 1).noise(&mut buffer, BUFFER_BYTES);
    let mut left_bytes = arguments.bytes;
    let mut due = Instant::now();
    while left_bytes > 0 {
        let length = left_bytes.min(BUFFER_BYTES as u64).min(piece_bytes(arguments.rate)) as usize;
        if let Some(rate) = arguments.rate {
            let now = Instant::now();
            due = due.max(now.checked_sub(LATE).unwrap_or(now));
            due += Duration::from_secs_f64(length as f64 / rate.max(1) as f64);
            std::thread::sleep(due.saturating_duration_since(now));
        }
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let written = rustix::io::write(rustix::stdio::stdout(), rest).context("write")?;
            rest = &rest[written..];
        }
        left_bytes -= length as u64;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads standard input to its end and prints the number of bytes.
pub fn count() -> anyhow::Result<ExitCode> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total_bytes = 0u64;
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer).context("read")? {
            0 => break,
            bytes => total_bytes += bytes as u64,
        }
    }
    println!("{total_bytes}");
    Ok(ExitCode::SUCCESS)
}

/// Opens, reads and closes every file of the list, and does nothing else.
///
/// Each thread takes the next file of the list: no sizes, no metadata, one read for a file that is
/// shorter than the buffer (a short read of a regular file is its end).
pub fn run_floor(arguments: &FloorArguments) -> anyhow::Result<ExitCode> {
    if !(1..=1024).contains(&arguments.threads) {
        bail!("--threads: between 1 and 1024");
    }
    let list = fs::read_to_string(&arguments.list).context("read the list")?;
    let paths: Vec<&str> = list.lines().collect();
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let bytes = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..arguments.threads).map(|_| scope.spawn(|| read_some(&paths, &next))).collect();
        threads.into_iter().try_fold(0, |sum, thread| {
            let bytes = thread.join().map_err(|_| io::Error::other("a reader panicked"))??;
            Ok::<u64, io::Error>(sum + bytes)
        })
    })
    .context("read the files")?;
    let report = FloorReport { seconds: start.elapsed().as_secs_f64(), bytes };
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}

fn read_some(paths: &[&str], next: &AtomicUsize) -> io::Result<u64> {
    let mut buffer = vec![0; 256 << 10];
    let mut total_bytes = 0;
    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
        let file =
            base::interruptible::open(*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        loop {
            let bytes = rustix::io::read(&file, &mut buffer)?;
            total_bytes += bytes as u64;
            if bytes < buffer.len() {
                break;
            }
        }
    }
    Ok(total_bytes)
}

/// Redirects standard input and output, so that this process keeps no pipe open on which its
/// neighbours wait.
fn release_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
