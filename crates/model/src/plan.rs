//! Predicts a backup to tape before it is run: its time, its volumes, its stops.
//!
//! A plan runs the model of the drive in virtual time over enough data to show the steady state,
//! and scales the result to the whole. Fixed times (loading, rewinding, changing volumes, the last
//! filemark) are added once for each volume. So a plan is as good as the model: see the origin of
//! each parameter.
//!
//! Not here: measuring a source, sampling data, and the words of a report.

pub mod alternatives;
pub mod window;

use crate::ModelError;
use crate::program::{Ratio, Stream, coalesced, stream};
use crate::tape::TapeModel;
use crate::tape::parameters::{COMMAND_OVERHEAD_NS_MAX, TapeParameters};
use crate::{BILLION, whole};

/// Where the data are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compression {
    /// Nobody.
    None,
    /// By the drive, with this ratio.
    Drive(Ratio),
    /// By the host, before the data reach the ring.
    Software {
        /// The ratio of the data.
        ratio: Ratio,
        /// Rate of its input.
        bytes_per_second: u64,
    },
}

/// The data to back up, and how fast the source delivers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSource {
    /// Content.
    pub size_bytes: u64,
    pub files: u64,
    /// Rate of content while a file is read.
    pub bytes_per_second: u64,
    /// Additional time for each file.
    pub file_ns: u64,
}

/// A backup to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Each of the drives.
    pub drive: TapeParameters,
    /// Drives that write at the same time, an equal share each.
    pub drives: u64,
    pub source: PlanSource,
    /// Where the data are compressed.
    pub compression: Compression,
    /// Memory between source and drive, for each drive.
    pub ring_bytes: u64,
    /// How full the ring has to be before a waiting writer continues.
    pub start_fill_percent: u8,
    /// When the writer waits for the fill.
    pub refill: Refill,
    /// How fast the writer empties the ring.
    pub drain: Drain,
    /// Size of one write.
    pub block_bytes: u64,
    /// Time from the end of a volume to the start of the next, besides rewind, unload and load: the
    /// work of a person or a library.
    pub change_ns: u64,
}

/// When a writer that found the ring empty waits until it has filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// It writes each block as it comes.
    Never,
    /// If the source is slower than the drive's lowest step, so that the tape has to stop anyway.
    WhenSlow,
    /// Even with a faster source. The drive empties its own buffer while the ring fills, so it
    /// stops where it could have continued at a lower step.
    Always,
}

/// How fast the writer empties the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// As fast as the drive accepts it.
    Unlimited,
    /// At the drive's lowest step, which makes the runs between stops longest.
    LowestStep,
}

/// The part that limits the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It delivers no more.
    Source,
    /// The staging disk is at its limit.
    StagingDisk,
    /// The host's compression is at its limit.
    SoftwareCompression,
    /// Commands of this size are at their limit.
    Commands,
    /// The interface of the drive is at its limit.
    Interface,
    /// The medium is at its limit.
    Medium,
}

impl Limit {
    /// Its name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Source => "source",
            Limit::StagingDisk => "staging disk",
            Limit::SoftwareCompression => "software compression",
            Limit::Commands => "commands",
            Limit::Interface => "interface",
            Limit::Medium => "medium",
        }
    }
}

/// The predicted result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// From the first byte to the last filemark, changes of volumes included.
    pub seconds: f64,
    /// The part of it that is changing volumes.
    pub change_seconds: f64,
    /// Volumes over all drives.
    pub volumes: u64,
    /// Stops for lack of data, over all drives.
    pub back_hitches: u64,
    /// Hours that tapes are in motion, over all drives: the measure of wear.
    pub motion_hours: f64,
    /// Content per second of the whole time.
    pub bytes_per_second: f64,
    /// Rate on the medium of each drive while writing.
    pub native_bytes_per_second: f64,
    /// Share of the writing time in which tape passes the head.
    pub streaming_share: f64,
    /// Size of the archive as it leaves the host.
    pub archive_bytes: u64,
    /// Its size on media.
    pub medium_bytes: u64,
    /// The part that limits the rate.
    pub limit: Limit,
    /// Rate of the limit, in content.
    pub limit_bytes_per_second: f64,
    /// Rate of content below which a drive has to stop.
    pub lowest_bytes_per_second: f64,
}

/// Bytes of a header and of the mean padding of a file to whole units of 512 bytes.
pub const FILE_OVERHEAD_BYTES: u64 = 512 + 256;
/// Rounds of filling and emptying that show the steady state.
const ROUNDS: u64 = 40;
/// Least data of a run, so that speeds settle and wraps turn.
const LEAST_BYTES: u64 = 400_000_000_000;
/// A step of the simulation is at most this part of the smaller of ring and buffer.
const GRAIN: u64 = 8;
/// Most steps of a simulation; with more, the step is coarser than the ring.
const STEPS_MAX: u64 = 500_000;
const VOLUMES_MAX: u64 = 1_000_000;

impl Setup {
    /// The archive before compression.
    pub fn archive_bytes(&self) -> u64 {
        self.source.size_bytes.saturating_add(self.source.files.saturating_mul(FILE_OVERHEAD_BYTES))
    }

    /// The rate at which the archive comes from the source, including its times for files.
    pub fn archive_rate(&self) -> u64 {
        let source = &self.source;
        let reading = source.size_bytes as f64 / source.bytes_per_second.max(1) as f64;
        let files = source.files as f64 * source.file_ns as f64 / BILLION as f64;
        whole(self.archive_bytes() as f64 / (reading + files).max(1e-9)).max(1)
    }

    /// Whether the drives have to stop for lack of data.
    pub fn is_slow(&self) -> bool {
        let native = software_limited(self) as f64 / self.drive_ratio().as_f64();
        native < (self.drive.lowest_bytes_per_second() * self.drives) as f64
    }

    /// The rate of the archive, in bytes per second, at which a drive runs at its lowest step. As a
    /// limit on the writer's rate it makes the runs between stops longest.
    pub fn lowest_archive_rate(&self) -> u64 {
        self.drive_ratio().host_rate(self.drive.lowest_bytes_per_second())
    }

    fn drive_ratio(&self) -> Ratio {
        match self.compression {
            Compression::Drive(ratio) => ratio,
            Compression::None | Compression::Software { .. } => Ratio::NONE,
        }
    }

    fn software_ratio(&self) -> Ratio {
        match self.compression {
            Compression::Software { ratio, .. } => ratio,
            Compression::None | Compression::Drive(_) => Ratio::NONE,
        }
    }

    /// Archive bytes per second that each part can handle, the smallest first.
    fn limits(&self) -> [(Limit, f64); 5] {
        let drives = self.drives as f64;
        // Before the host's compression a byte becomes less on the medium.
        let worth = self.software_ratio().as_f64() * drives;
        let drive = &self.drive;
        let transfer_ns =
            self.block_bytes as f64 * 1e9 / drive.host_bytes_per_second.value.max(1) as f64;
        let block_ns = drive.command_overhead_ns.value as f64 + transfer_ns;
        let commands = self.block_bytes as f64 * 1e9 / block_ns.max(1.0);
        // If the interface alone is nearly as slow, it is the limit.
        let interface = if drive.command_overhead_ns.value as f64 > transfer_ns / 4.0 {
            (Limit::Commands, commands * worth)
        } else {
            (Limit::Interface, commands * worth)
        };
        let medium = drive.highest_bytes_per_second() as f64 * self.drive_ratio().as_f64();
        let software = match self.compression {
            Compression::Software { bytes_per_second, .. } => bytes_per_second as f64,
            Compression::None | Compression::Drive(_) => f64::INFINITY,
        };
        let mut limits = [
            (Limit::Source, self.archive_rate() as f64),
            (Limit::SoftwareCompression, software),
            interface,
            (Limit::Interface, drive.host_bytes_per_second.value as f64 * worth),
            (Limit::Medium, medium * worth),
        ];
        limits.sort_by(|left, right| left.1.total_cmp(&right.1));
        limits
    }

    fn check(&self) -> Result<(), ModelError> {
        let zero = |what| ModelError::Zero { what };
        match () {
            () if self.source.size_bytes == 0 => Err(zero("the size")),
            () if self.source.bytes_per_second == 0 => Err(zero("the rate of the source")),
            () if self.drives == 0 => Err(zero("the number of drives")),
            () if self.block_bytes == 0 => Err(zero("the block size")),
            () => Ok(()),
        }
    }
}

/// The steady state of one drive over some data.
struct Steady {
    seconds: f64,
    back_hitches: f64,
    motion_seconds: f64,
    streaming_seconds: f64,
    host_bytes: f64,
}

/// Plans.
///
/// # Errors
/// A part of the setup is zero, or it would take more than a million volumes.
pub fn plan(setup: &Setup) -> Result<Plan, ModelError> {
    setup.check()?;
    let archive_bytes = setup.archive_bytes();
    let sent_bytes = setup.software_ratio().compressed(archive_bytes);
    let medium_bytes = setup.drive_ratio().compressed(sent_bytes);
    // Each drive gets its share, and fills its own volumes.
    let medium_share = medium_bytes.div_ceil(setup.drives);
    let usable_bytes = usable_volume_bytes(&setup.drive);
    let volumes_each = medium_share.div_ceil(usable_bytes).max(1);
    if volumes_each > VOLUMES_MAX {
        return Err(ModelError::TooManyVolumes { most: VOLUMES_MAX });
    }
    let share_bytes = sent_bytes.div_ceil(setup.drives).max(1);
    let steady = steady(setup, share_bytes);
    let scale = share_bytes as f64 / steady.host_bytes.max(1.0);
    let synchronise_s = setup.drive.synchronise_ns.value as f64 / 1e9;
    let write_s = steady.seconds * scale;
    let change_s = (volumes_each - 1) as f64 * (change_seconds(setup) + synchronise_s);
    let seconds = write_s + synchronise_s + change_s;
    let limit = setup.limits()[0];
    let worth = setup.source.size_bytes as f64 / archive_bytes as f64;
    let drives = setup.drives as f64;
    let rewinds_s = volumes_each as f64 * rewind_seconds(&setup.drive, medium_share);
    let factor = setup.software_ratio().as_f64() * setup.drive_ratio().as_f64() * drives * worth;
    Ok(Plan {
        seconds,
        change_seconds: change_s,
        volumes: volumes_each * setup.drives,
        back_hitches: whole((steady.back_hitches * scale * drives).round()),
        motion_hours: (steady.motion_seconds * scale + rewinds_s) * drives / 3600.0,
        bytes_per_second: setup.source.size_bytes as f64 / seconds,
        native_bytes_per_second: medium_share as f64 / write_s.max(1e-9),
        streaming_share: steady.streaming_seconds / steady.seconds.max(1e-9),
        archive_bytes: sent_bytes,
        medium_bytes,
        limit: limit.0,
        limit_bytes_per_second: limit.1 * worth,
        lowest_bytes_per_second: setup.drive.lowest_bytes_per_second() as f64 * factor,
    })
}

/// Writing ends at the early warning.
fn usable_volume_bytes(drive: &TapeParameters) -> u64 {
    drive.capacity_bytes.value.saturating_sub(drive.early_warning_bytes.value).max(1)
}

/// Runs the model over enough data; without the closing filemark.
fn steady(setup: &Setup, share_bytes: u64) -> Steady {
    let ratio = setup.drive_ratio();
    let buffer_bytes = ratio.host_rate(setup.drive.buffer_bytes.value);
    let memory_bytes = setup.ring_bytes.saturating_add(buffer_bytes);
    let volume_bytes = ratio.host_rate(usable_volume_bytes(&setup.drive));
    let run_bytes = memory_bytes
        .saturating_mul(ROUNDS)
        .max(LEAST_BYTES)
        .min(share_bytes)
        .min(volume_bytes)
        .max(1);
    let grain_bytes = setup.ring_bytes.min(buffer_bytes) / GRAIN;
    let least_blocks = run_bytes.div_ceil(setup.block_bytes.saturating_mul(STEPS_MAX));
    let overhead_ns = setup.drive.command_overhead_ns.value.max(1);
    // The model limits the command time of a group of blocks.
    let most_blocks = (COMMAND_OVERHEAD_NS_MAX / overhead_ns).max(1);
    let blocks = (grain_bytes / setup.block_bytes).max(least_blocks).min(most_blocks);
    let (drive, step_bytes) = coalesced(&setup.drive, setup.block_bytes, blocks);
    let run_bytes = run_bytes.min(step_bytes.saturating_mul(STEPS_MAX));
    let mut tape = TapeModel::new(drive);
    let rate = software_limited(setup) / setup.drives.max(1);
    let drain = match setup.drain {
        Drain::Unlimited => None,
        Drain::LowestStep => Some(setup.lowest_archive_rate()),
    };
    let waits = match setup.refill {
        Refill::Never => false,
        Refill::WhenSlow => setup.is_slow(),
        Refill::Always => true,
    };
    let program = Stream {
        source_bytes_per_second: rate.max(1),
        ring_bytes: setup.ring_bytes,
        start_fill_percent: if waits { setup.start_fill_percent } else { 0 },
        drain_bytes_per_second: drain,
        block_bytes: step_bytes,
        ratio,
    };
    let run = stream(&mut tape, program, run_bytes);
    let counters = tape.counters();
    let synchronise_ns = setup.drive.synchronise_ns.value;
    Steady {
        seconds: run.elapsed_ns.saturating_sub(synchronise_ns) as f64 / 1e9,
        back_hitches: counters.back_hitches as f64,
        motion_seconds: counters.motion_ns() as f64 / 1e9,
        streaming_seconds: counters.streaming_ns() as f64 / 1e9,
        host_bytes: run.host_bytes as f64,
    }
}

/// Most bytes per second that leave the host, for all drives.
fn software_limited(setup: &Setup) -> u64 {
    let archive = setup.archive_rate();
    match setup.compression {
        Compression::Software { ratio, bytes_per_second } => {
            ratio.compressed(archive.min(bytes_per_second))
        }
        Compression::None | Compression::Drive(_) => archive,
    }
}

/// From one volume to the next.
fn change_seconds(setup: &Setup) -> f64 {
    let drive = &setup.drive;
    let mechanics_ns = drive.unload_ns.value + drive.load_ns.value + setup.change_ns;
    mechanics_ns as f64 / 1e9 + rewind_seconds(drive, drive.capacity_bytes.value)
}

/// A full volume ends at its beginning or at the other end, depending on the number of its wraps. A
/// partly filled one ends on average in the middle.
fn rewind_seconds(drive: &TapeParameters, native_bytes: u64) -> f64 {
    let is_full = native_bytes >= usable_volume_bytes(drive);
    let share = match (is_full, drive.wraps.value.is_multiple_of(2)) {
        (true, true) => 0.0,
        (true, false) => 1.0,
        (false, _) => 0.5,
    };
    (drive.wind_ns.value as f64 * share + drive.settle_ns.value as f64) / 1e9
}
