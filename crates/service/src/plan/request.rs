//! What is to be planned.

use std::num::NonZero;
use std::path::PathBuf;

use base::format::size;
use model::disk::{DiskParameters, Positioning};
use model::plan::Refill;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::model_names::{DiskName, DriveName, GenerationName};
use crate::parameter_setting::ParameterSetting;
use crate::run::EngineChoice;

/// A backup to tape that is to be planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanRequest {
    /// What to back up: it is walked for its size, and read for a few seconds.
    pub paths: Vec<PathBuf>,
    /// The drive, and drives that it is compared with. There must be one, or `from`.
    pub drives: Vec<DriveName>,
    /// Generation of the media, if it is not the drive's.
    pub medium: Option<GenerationName>,
    /// An experiment on the drive, which its model is taken from.
    pub from: Option<PathBuf>,
    /// Drives that write at the same time.
    pub count: NonZero<u32>,
    /// Whether the drive has half height.
    pub half_height: bool,
    pub source: PlanSourceRequest,
    /// How the data compress.
    pub data: PlanDataRequest,
    /// Memory for blocks that wait for the drive.
    pub ring_bytes: u64,
    /// How full the ring must be before a waiting writer continues, 0 to 100.
    pub start_fill_percent: u8,
    /// When a writer that found the ring empty waits for it to fill.
    pub refill: RefillChoice,
    /// Bytes of one write.
    pub block_bytes: u64,
    /// Time that a person or a library takes to change the volume, besides the drive's own time.
    pub change_seconds: u32,
    /// The available time.
    pub window_seconds: Option<f64>,
    /// Parameters of the model of the drive.
    pub settings: Vec<ParameterSetting>,
    /// How files are read.
    pub engine: EngineChoice,
}

/// The source and its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanSourceRequest {
    /// Rate at which it can be read.
    pub bytes_per_second: Option<u64>,
    /// Its disk, to compute the rate from.
    pub disk: Option<DiskName>,
    /// An experiment on its disk, to compute the rate from.
    pub from: Option<PathBuf>,
    /// Bytes of one read from that disk; 1 MiB if not given.
    pub read_block_bytes: Option<u64>,
    /// The kernel's read-ahead of that disk; 128 KiB if not given.
    pub read_ahead_bytes: Option<u64>,
    /// Content that may be read ahead in the order of a disk with heads; an eighth of the memory
    /// that is free if not given, at most 4 GiB.
    pub read_window_bytes: Option<u64>,
    /// Capacity of a disk with heads, over which their whole way is spread; that of the preset if
    /// not given.
    pub capacity_bytes: Option<u64>,
    /// The part of a disk with heads on which the files lie; the bytes to back up if not given.
    pub spread_bytes: Option<u64>,
    /// Bytes to back up.
    pub size_bytes: Option<u64>,
    pub files: Option<u64>,
    /// Time of each file besides its bytes; 50, or the time of the disk's seeks, if not given.
    pub file_microseconds: Option<u32>,
    /// Cores of the machine that makes the backup; those of this machine if not given.
    pub cores: Option<NonZero<usize>>,
    /// How long to read the paths to measure their rate.
    pub measure_seconds: u16,
    /// Rate of the disk that the data can be staged on.
    pub staging_bytes_per_second: u64,
}

/// How the data compress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanDataRequest {
    /// Compression ratio of the drive, 0.5 to 100; sampled from the paths, or 2, if not given.
    pub ratio: Option<f64>,
    /// What compresses the data.
    pub compression: WhoCompresses,
    /// Compression ratio of software, 0.5 to 100; measured on the paths if not given.
    pub software_ratio: Option<f64>,
    /// How fast software compresses, in bytes of input. Goes with `software_ratio`.
    pub software_bytes_per_second: Option<u64>,
}

/// What compresses the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhoCompresses {
    /// Nothing.
    None,
    #[default]
    Drive,
    /// The host.
    Software,
}

/// When a writer that found the ring empty waits for it to fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefillChoice {
    /// Never: it writes each block as it comes.
    Never,
    /// When the source is slower than the lowest speed of the drive.
    #[default]
    WhenSlow,
    /// Always, also when the source is faster.
    Always,
}

impl From<RefillChoice> for Refill {
    fn from(choice: RefillChoice) -> Refill {
        match choice {
            RefillChoice::Never => Refill::Never,
            RefillChoice::WhenSlow => Refill::WhenSlow,
            RefillChoice::Always => Refill::Always,
        }
    }
}

impl Default for PlanRequest {
    fn default() -> PlanRequest {
        PlanRequest {
            paths: Vec::new(),
            drives: Vec::new(),
            medium: None,
            from: None,
            count: NonZero::<u32>::MIN,
            half_height: false,
            source: PlanSourceRequest::default(),
            data: PlanDataRequest::default(),
            ring_bytes: 1 << 30,
            start_fill_percent: 95,
            refill: RefillChoice::default(),
            block_bytes: 1 << 20,
            change_seconds: 60,
            window_seconds: None,
            settings: Vec::new(),
            engine: EngineChoice::Auto,
        }
    }
}

impl Default for PlanSourceRequest {
    fn default() -> PlanSourceRequest {
        PlanSourceRequest {
            bytes_per_second: None,
            disk: None,
            from: None,
            read_block_bytes: None,
            read_ahead_bytes: None,
            read_window_bytes: None,
            capacity_bytes: None,
            spread_bytes: None,
            size_bytes: None,
            files: None,
            file_microseconds: None,
            cores: None,
            measure_seconds: 10,
            staging_bytes_per_second: 400_000_000,
        }
    }
}

/// Larger ratios are typing errors: SLDC itself reaches at most 94.
const RATIO_MAX: f64 = 100.0;
/// Less is a size whose unit was forgotten.
const SIZE_BYTES_MIN: u64 = 1_000_000;
/// Largest read-ahead and read size: the model is still fast with it.
const READ_BYTES_MAX: u64 = 64 << 20;

/// Whether a compression ratio can be planned with.
///
/// # Errors
/// A text for the user who typed it, if it cannot.
pub fn check_ratio(ratio: f64) -> Result<f64, &'static str> {
    if (0.5..=RATIO_MAX).contains(&ratio) {
        Ok(ratio)
    } else {
        Err("expected a number from 0.5 to 100, 2 for half the bytes")
    }
}

impl PlanRequest {
    /// Refuses values that cannot be planned with, whether clap has seen them or not.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for ratio in [self.data.ratio, self.data.software_ratio].into_iter().flatten() {
            check_ratio(ratio).map_err(|why| Failure::of(format!("{ratio}: {why}"), None))?;
        }
        if self.start_fill_percent > 100 {
            return Err(Failure::of("the fill to start at must be at most 100 percent", None));
        }
        if let Some(bytes) = self.source.size_bytes.filter(|bytes| *bytes < SIZE_BYTES_MIN) {
            return Err(Failure::of(
                format!("the size is {bytes} bytes, which no tape is planned for"),
                Some("a size without a unit is in bytes: 20TB, 800GB"),
            ));
        }
        if self.window_seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return Err(Failure::of("the available time must be above 0", None));
        }
        Ok(())
    }
}

impl PlanSourceRequest {
    /// Whether the rate comes from a disk.
    pub(super) fn has_disk(&self) -> bool {
        self.disk.is_some() || self.from.is_some()
    }

    /// Refuses ways to read a disk where there is none, or that the model is slow with.
    pub(super) fn check_reads(&self) -> Result<(), Failure> {
        let typed = [self.read_block_bytes, self.read_ahead_bytes];
        if !self.has_disk() && typed.iter().any(Option::is_some) {
            let hint = "add --source-disk or --source-from (--source-rate already includes it)";
            let what = "--read-block-size and --read-ahead need a source disk";
            return Err(Failure::of(what, Some(hint)));
        }
        if !self.has_disk() && [self.capacity_bytes, self.spread_bytes].iter().any(Option::is_some)
        {
            let what = "--source-capacity and --source-spread need a source disk";
            return Err(Failure::of(what, Some("add --source-disk or --source-from")));
        }
        if typed.iter().flatten().any(|bytes| *bytes > READ_BYTES_MAX) {
            let most = size(READ_BYTES_MAX);
            let what = format!("--read-block-size and --read-ahead must be at most {most}");
            return Err(Failure::of(what, None));
        }
        Ok(())
    }

    /// Refuses what describes files on a disk with heads where it would be passed over.
    pub(super) fn check_heads(&self, disk: &DiskParameters, files: u64) -> Result<(), Failure> {
        let is_given = self.capacity_bytes.or(self.spread_bytes).is_some();
        let has_heads = matches!(disk.positioning, Positioning::Heads(_));
        if is_given && !(has_heads && files > 0) {
            let what = "--source-capacity and --source-spread need a disk with heads, and --files";
            let hint = "sata7200, sas15k and array:N have heads";
            return Err(Failure::of(what, Some(hint)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--size 20` was planned as 20 bytes.
    #[test]
    fn a_size_whose_unit_was_forgotten_is_refused() {
        let of = |bytes: u64| {
            let source =
                PlanSourceRequest { size_bytes: Some(bytes), ..PlanSourceRequest::default() };
            PlanRequest { source, ..PlanRequest::default() }.check()
        };
        let refused = of(20).unwrap_err().to_text();
        assert!(refused.contains("the size is 20 bytes") && refused.contains("20TB"), "{refused}");
        assert!(of(20_000_000_000_000).is_ok());
    }
}
