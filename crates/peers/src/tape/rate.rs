//! Whether a virtual drive keeps its time: a program that writes to it as fast as it can and
//! measures the time.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::drive::{processor_seconds, read_status, time_of};

/// Arguments of `xtask drive-rate`.
#[derive(clap::Args)]
pub struct DriveRateArguments {
    /// The folder on which the drive is mounted
    folder: PathBuf,
    /// Id of the process that is the drive
    #[arg(long)]
    process: u32,
    /// Length of the measurement
    #[arg(long)]
    seconds: u64,
}

/// The measurement while the drive's buffer was full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveRateReport {
    /// Duration on the machine's clock.
    pub seconds: f64,
    /// Bytes written meanwhile.
    pub bytes: u64,
    /// Bytes that passed the head meanwhile, as the drive counts.
    pub native_bytes: u64,
    /// Processor time of the drive meanwhile.
    pub drive_cpu_seconds: f64,
}

impl DriveRateReport {
    /// Rate that the writer saw.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

const BLOCK_BYTES: usize = 1 << 20;

/// Fills the drive's buffer, then measures; prints a [`DriveRateReport`].
///
/// # Errors
/// When the drive does not accept the data.
pub fn run_drive_rate(arguments: &DriveRateArguments) -> anyhow::Result<ExitCode> {
    let status = read_status(&arguments.folder)?;
    let buffer_bytes = time_of(&status)?.buffer_bytes;
    let path = arguments.folder.join("nst0");
    let tape = File::options().write(true).open(path).context("open the tape")?;
    let block = vec![0u8; BLOCK_BYTES];
    let write = || -> anyhow::Result<()> {
        rustix::io::write(&tape, &block).context("write to the tape")?;
        Ok(())
    };
    // One buffer until the tape starts, half of another so that the buffer is surely full.
    for _ in 0..(buffer_bytes * 3 / 2).div_ceil(BLOCK_BYTES as u64) {
        write()?;
    }
    let look = || -> anyhow::Result<(u64, f64)> {
        let status = read_status(&arguments.folder)?;
        Ok((time_of(&status)?.native_bytes, processor_seconds(arguments.process)?))
    };
    let (native_before, cpu_before) = look()?;
    let start = Instant::now();
    let length = Duration::from_secs(arguments.seconds);
    let mut bytes = 0;
    while start.elapsed() < length {
        write()?;
        bytes += BLOCK_BYTES as u64;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (native_after, cpu_after) = look()?;
    let report = DriveRateReport {
        seconds,
        bytes,
        native_bytes: native_after - native_before,
        drive_cpu_seconds: cpu_after - cpu_before,
    };
    drop(tape);
    println!("{}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}
