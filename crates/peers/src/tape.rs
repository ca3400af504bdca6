//! Tape works: the same data to a fresh virtual drive for each run, `takeup sim tape`.
//!
//! The drive is a program of its own, mounted in front of a run and unmounted behind it, so that no
//! run inherits the state of another. What it counted and what its processor time was goes into the
//! record with the run; what the model foretells for the same bytes stands beside it, so that a
//! reader sees both. Command lines are in `contenders.rs`, as all others.

mod drive;
mod foretold;
mod rate;
pub mod table;
pub mod works;

pub use drive::CampaignDrives;
pub use foretold::foretell;
pub use rate::{DriveRateArguments, DriveRateReport, run_drive_rate};

use serde::{Deserialize, Serialize};

/// A drive to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSetup {
    /// As `--drive` takes it.
    pub generation: &'static str,
    /// Parameters that are not those of the generation, as `--set` takes them.
    pub settings: &'static [(&'static str, u64)],
    /// Bytes that a run may write.
    pub capacity_bytes: u64,
    /// What writes to it, as the model is to see it.
    pub writer: Writer,
}

/// What a run does, in the words of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// As fast as the drive takes it: the least time that the drive needs.
    Unlimited,
    /// One thread that reads a block and then writes it, as tar does.
    Copy {
        /// Of a write.
        block_bytes: u64,
        /// Rate at which it gets bytes while it reads.
        source_bytes_per_second: u64,
    },
    /// A source of this rate and a ring between it and the writer.
    Ring {
        /// Rate of the source while it does not wait.
        source_bytes_per_second: u64,
        /// Memory between the two.
        ring_bytes: u64,
        /// How full it has to be before the writer starts, also after it ran empty; 0 for a writer
        /// that never waits.
        start_fill_percent: u8,
        /// Limit on the rate at which the ring is emptied.
        drain_bytes_per_second: Option<u64>,
    },
}

/// What the drive of a run counted, and what the model says to the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapeRun {
    /// Generation: `LTO-7`.
    pub drive: String,
    /// Highest native rate.
    pub highest_bytes_per_second: u64,
    /// Lowest native rate at which it does not stop.
    pub lowest_bytes_per_second: u64,
    /// Bytes that came from the host.
    pub host_bytes: u64,
    /// Bytes that passed the head.
    pub native_bytes: u64,
    /// Time in which bytes passed the head.
    pub streaming_seconds: f64,
    /// Time from the load to the look in which the tape stood and waited for data.
    pub still_seconds: f64,
    /// Stops for want of data.
    pub back_hitches: u64,
    /// Time in them.
    pub back_hitch_seconds: f64,
    /// What of it the host had to wait for.
    pub lost_seconds: f64,
    /// Time in which the host waited for the buffer.
    pub host_blocked_seconds: f64,
    /// Flushes that stopped the tape.
    pub synchronisations: u64,
    /// What they took once the buffer was empty.
    pub synchronise_seconds: f64,
    /// Processor time of the program that is the drive.
    pub drive_cpu_seconds: f64,
    /// Time of the model for as many bytes, in virtual time.
    pub model_seconds: f64,
    /// Stops of the model.
    pub model_back_hitches: u64,
    /// Measured inside of a run at full speed, where that is the work.
    pub rate: Option<DriveRateReport>,
}

impl TapeRun {
    /// Share of a run of so many seconds in which the tape was in motion at speed.
    pub fn streaming_share(&self, seconds: f64) -> f64 {
        self.streaming_seconds / seconds
    }

    /// Native bytes per second while the tape was in motion at speed.
    pub fn streaming_bytes_per_second(&self) -> f64 {
        self.native_bytes as f64 / self.streaming_seconds.max(1e-9)
    }
}
