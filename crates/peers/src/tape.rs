//! Tape works: the same data to a new virtual drive for each run, `takeup sim tape`.
//!
//! The drive is a separate program, mounted before a run and unmounted after it, so that no run
//! inherits state from another. Its counters and its processor time go into the record of the run.
//! The model's prediction for the same bytes is beside them, for comparison. Command lines are in
//! `contenders.rs`, as all others.

mod drive;
mod foretold;
mod rate;
pub mod table;
pub mod works;

pub use drive::CampaignDrives;
pub use foretold::foretell;
pub use rate::{DriveRateArguments, DriveRateReport, run_drive_rate};

use serde::{Deserialize, Serialize};

/// The settings of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSetup {
    /// Generation, as for `--drive`.
    pub generation: &'static str,
    /// Parameters that differ from the generation's, as for `--set`.
    pub settings: &'static [(&'static str, u64)],
    /// Most bytes that a run may write.
    pub capacity_bytes: u64,
    /// The writer, in terms of the model.
    pub writer: Writer,
}

/// The load of a run, in terms of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// As fast as the drive accepts data: the least time that the drive needs.
    Unlimited,
    /// One thread that reads a block and then writes it, as tar does.
    Copy {
        /// Size of a write.
        block_bytes: u64,
        /// Rate of its input while it reads.
        source_bytes_per_second: u64,
    },
    /// A source with this rate and a ring between it and the writer.
    Ring {
        /// Rate of the source while it does not wait.
        source_bytes_per_second: u64,
        /// Memory between the two.
        ring_bytes: u64,
        /// How full the ring must be before the writer starts, also after it ran empty; 0 for a
        /// writer that never waits.
        start_fill_percent: u8,
        /// Limit of the rate at which the ring is emptied.
        drain_bytes_per_second: Option<u64>,
    },
}

/// The counters of a run's drive, and the model's prediction for the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapeRun {
    /// Generation: `LTO-7`.
    pub drive: String,
    /// Highest native rate.
    pub highest_bytes_per_second: u64,
    /// Lowest native rate at which the drive does not stop.
    pub lowest_bytes_per_second: u64,
    /// Bytes that came from the host.
    pub host_bytes: u64,
    /// Bytes that passed the head.
    pub native_bytes: u64,
    /// Time in which bytes passed the head.
    pub streaming_seconds: f64,
    /// Time from loading to the reading of the counters in which the tape stood and waited for
    /// data.
    pub still_seconds: f64,
    /// Stops for lack of data.
    pub back_hitches: u64,
    /// Time of these stops.
    pub back_hitch_seconds: f64,
    /// The part of it in which the host waited.
    pub lost_seconds: f64,
    /// Time in which the host waited for the buffer.
    pub host_blocked_seconds: f64,
    /// Flushes that stopped the tape.
    pub synchronisations: u64,
    /// Their time once the buffer was empty.
    pub synchronise_seconds: f64,
    /// Processor time of the drive's program.
    pub drive_cpu_seconds: f64,
    /// Time of the model for the same bytes, in virtual time.
    pub model_seconds: f64,
    /// Stops of the model.
    pub model_back_hitches: u64,
    /// Measured during a run at full speed, if that is the work.
    pub rate: Option<DriveRateReport>,
}

impl TapeRun {
    /// Share of a run of `seconds` in which the tape moved at speed.
    pub fn streaming_share(&self, seconds: f64) -> f64 {
        self.streaming_seconds / seconds
    }

    /// Native bytes per second while the tape moved at speed.
    pub fn streaming_bytes_per_second(&self) -> f64 {
        self.native_bytes as f64 / self.streaming_seconds.max(1e-9)
    }
}
