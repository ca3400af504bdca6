//! The arguments of `takeup plan`.

use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use service::model_names::{DiskName, DriveName, GenerationName};
use service::parameter_setting::ParameterSetting;
use service::plan::{
    PlanDataRequest, PlanRequest, PlanSourceRequest, RefillChoice, WhoCompresses, check_ratio,
};

use crate::parameter::setting;
use crate::proposing::{DISKS, DRIVES, GENERATIONS, proposing};
use crate::quantity::{Rate, Size, Span, one_or_more};
use crate::run::CommonArgs;

/// Predict time, tapes and stops of a backup to tape
///
/// Takeup runs a model of the drive with this source rate and this compression ratio. With PATH it
/// measures both: it reads the tree as a backup would, for a few seconds, and writes nothing. It
/// also plans other ways to do the backup, and names the best of them. --parameters shows what the
/// model assumes, --set changes it, and --from takes it from an experiment on the drive itself.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup plan --drive lto8 --source-rate 60MB --size 20TB --ratio 1.5
  takeup plan --drive lto9 /srv
  takeup plan --drive hp-lto3 --source-rate 35MB --size 1TB
  takeup plan --drive lto8 --medium lto7m --source-rate 250MB --size 40TB
  takeup plan --drive lto7 --drive lto9 --source-disk array:12 --size 40TB --files 3000000
  takeup plan --drive lto6 --source-rate 35MB --size 2TB --chart plan.svg
  takeup plan --drive lto8 --source-rate 80MB --size 1TB --set back_hitch_ns=3.5s
  takeup bench tape /dev/nst0 --data zeros,random --block-size 16k,64k,256k,1M -o drive.ndjson
  takeup plan --drive lto8 --source-rate 60MB --size 2TB --window 8h
  takeup plan --from drive.ndjson --source-rate 80MB --size 1TB
  takeup plan --from drive.ndjson --source-from disk.ndjson --size 1TB --files 400000")]
pub struct PlanArgs {
    /// What to back up; Takeup walks it for its size, and reads it for a few seconds
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Generation of the drive, lto1 to lto10, with its maker where that makes a difference
    /// (hp-lto3, ibm-lto3); further ones are compared with the first
    #[arg(long = "drive", required_unless_present = "from", value_name = "NAME",
          hide_possible_values = true, value_parser = proposing(DriveName::from_str, DRIVES))]
    drives: Vec<DriveName>,
    /// Generation of the media if it is not the first drive's: one earlier, lto7m for LTO-7 Type
    /// M, or lto10premium
    #[arg(long = "medium-generation", visible_alias = "medium", value_name = "GENERATION",
          hide_possible_values = true,
          value_parser = proposing(GenerationName::from_str, GENERATIONS))]
    medium: Option<GenerationName>,
    /// Take the model of the first drive from an experiment on it (takeup bench tape -o RUNS);
    /// Takeup names what that did not measure, and takes it from the generation
    #[arg(long, value_name = "RUNS", conflicts_with = "medium")]
    from: Option<PathBuf>,
    /// Drives that write at the same time
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = one_or_more::<NonZero<u32>>)]
    count: NonZero<u32>,
    /// The drive has half height, which makes it slower in some generations
    #[arg(hide_short_help = true, long)]
    half_height: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Memory for blocks that wait for the drive
    #[arg(hide_short_help = true, long, default_value = "1G", value_name = "SIZE")]
    ring: Size,
    /// How full the ring must be before a waiting writer continues
    #[arg(hide_short_help = true, long, default_value_t = 95, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    start_fill: u8,
    /// When the writer, after it found the ring empty, waits until the ring is full again
    #[arg(hide_short_help = true, long, value_enum, default_value_t = RefillName::WhenSlow,
          value_name = "WHEN")]
    refill: RefillName,
    /// Bytes of one write
    #[arg(hide_short_help = true, short, long, default_value = "1M", value_name = "SIZE")]
    block_size: Size,
    /// Seconds that a person or a library takes to change the volume, besides the drive's own time
    #[arg(hide_short_help = true, long, default_value_t = 60, value_name = "SECONDS")]
    change: u32,
    /// The time available: Takeup reports whether the plan fits and by how much, which other ways
    /// fit, and what source or how many drives would. Exit code 2 if the plan does not fit
    #[arg(long, value_name = "TIME")]
    window: Option<Span>,
    /// A parameter of the model of the first drive, in the unit of its name or with a suffix:
    /// back_hitch_ns=3.5s, buffer_bytes=1G, speeds_bytes_per_second=100MB,200MB
    #[arg(hide_short_help = true, long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<ParameterSetting>,
    /// Show the parameters of the drive model, and how certain they are
    #[arg(long)]
    pub parameters: bool,
    /// Draw rate and stops against the rate of the source, as SVG; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
    /// The options of every command
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The source and its rate.
#[derive(Args, Debug)]
struct SourceArgs {
    /// Rate at which the source can be read
    #[arg(long, value_name = "RATE", conflicts_with_all = ["source_disk", "source_from"])]
    source_rate: Option<Rate>,
    /// Compute the rate from a disk: sas15k, sata7200, ssd-sata, nvme, array or array:N
    #[arg(long, value_name = "DISK", hide_possible_values = true,
          value_parser = proposing(DiskName::from_str, DISKS))]
    source_disk: Option<DiskName>,
    /// Compute the rate from an experiment on the disk (takeup bench disk or bench read, -o RUNS);
    /// what that did not measure comes from --source-disk, or from the most similar disk
    #[arg(long, value_name = "RUNS")]
    source_from: Option<PathBuf>,
    /// Bytes of one read from --source-disk or --source-from [default: 1M]
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    read_block_size: Option<Size>,
    /// The kernel's read-ahead of that disk [default: 128k]
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    read_ahead: Option<Size>,
    /// How much a backup reads ahead in the order of a disk with heads; by default an eighth of the
    /// memory that is free, at most 4 GiB
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    read_window: Option<Size>,
    /// Capacity of --source-disk, if it has heads; by default that of the preset
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    source_capacity: Option<Size>,
    /// The part of that disk on which the files lie; by default --size: nothing is between them
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    source_spread: Option<Size>,
    /// Bytes to back up
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Number of files
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Microseconds that each file takes besides its bytes; by default 50, or the time of the
    /// disk's seeks
    #[arg(hide_short_help = true, long, value_name = "MICROSECONDS")]
    per_file: Option<u32>,
    /// Cores of the machine that makes the backup: hashing on them limits the rate; by default
    /// those of this machine
    #[arg(hide_short_help = true, long, value_name = "N",
          value_parser = one_or_more::<NonZero<usize>>)]
    cores: Option<NonZero<usize>>,
    /// How long to read PATH to measure its rate
    #[arg(hide_short_help = true, long, default_value_t = 10, value_name = "SECONDS")]
    measure: u16,
    /// Rate of the staging disk, for the plan `staged to disk first`
    #[arg(hide_short_help = true, long, default_value = "400MB", value_name = "RATE")]
    staging_rate: Rate,
}

/// Compression of the data.
#[derive(Args, Debug)]
struct DataArgs {
    /// Compression ratio of the drive, 2 for half the bytes; by default sampled from PATH, or 2
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    ratio: Option<f64>,
    /// What compresses the data
    #[arg(long, value_enum, default_value_t = Who::Drive, value_name = "WHO")]
    compression: Who,
    /// Compression ratio of software; by default measured with zstd on PATH
    #[arg(hide_short_help = true, long, value_name = "RATIO", value_parser = ratio,
          requires = "software_rate")]
    software_ratio: Option<f64>,
    /// How fast software compresses, in bytes of input
    #[arg(hide_short_help = true, long, value_name = "RATE", requires = "software_ratio")]
    software_rate: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Who {
    /// Nothing
    None,
    /// The drive
    Drive,
    /// The host
    Software,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RefillName {
    /// Never: it writes each block as it comes
    Never,
    /// When the source is slower than the lowest speed of the drive
    WhenSlow,
    /// Always, also when the source is faster
    Always,
}

fn ratio(text: &str) -> Result<f64, &'static str> {
    check_ratio(text.parse().unwrap_or(f64::NAN))
}

impl PlanArgs {
    /// What is asked for.
    pub fn request(&self) -> PlanRequest {
        PlanRequest {
            paths: self.paths.clone(),
            drives: self.drives.clone(),
            medium: self.medium,
            from: self.from.clone(),
            count: self.count,
            half_height: self.half_height,
            source: self.source.request(),
            data: self.data.request(),
            ring_bytes: self.ring.0,
            start_fill_percent: self.start_fill,
            refill: match self.refill {
                RefillName::Never => RefillChoice::Never,
                RefillName::WhenSlow => RefillChoice::WhenSlow,
                RefillName::Always => RefillChoice::Always,
            },
            block_bytes: self.block_size.0,
            change_seconds: self.change,
            window_seconds: self.window.map(|window| window.0),
            settings: self.settings.clone(),
            engine: self.common.engine.into(),
        }
    }
}

impl SourceArgs {
    fn request(&self) -> PlanSourceRequest {
        PlanSourceRequest {
            bytes_per_second: self.source_rate.map(|rate| rate.0),
            disk: self.source_disk.clone(),
            from: self.source_from.clone(),
            read_block_bytes: self.read_block_size.map(|size| size.0),
            read_ahead_bytes: self.read_ahead.map(|size| size.0),
            read_window_bytes: self.read_window.map(|size| size.0),
            capacity_bytes: self.source_capacity.map(|size| size.0),
            spread_bytes: self.source_spread.map(|size| size.0),
            size_bytes: self.size.map(|size| size.0),
            files: self.files,
            file_microseconds: self.per_file,
            cores: self.cores,
            measure_seconds: self.measure,
            staging_bytes_per_second: self.staging_rate.0,
        }
    }
}

impl DataArgs {
    fn request(&self) -> PlanDataRequest {
        PlanDataRequest {
            ratio: self.ratio,
            compression: match self.compression {
                Who::None => WhoCompresses::None,
                Who::Drive => WhoCompresses::Drive,
                Who::Software => WhoCompresses::Software,
            },
            software_ratio: self.software_ratio,
            software_bytes_per_second: self.software_rate.map(|rate| rate.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        plan: PlanArgs,
    }

    #[test]
    fn what_is_not_typed_has_the_default_of_the_request() {
        let line = Line::parse_from(["plan", "--drive", "hp-lto3"]);
        let drives = vec!["hp-lto3".parse().unwrap()];
        let expected = PlanRequest { drives, ..PlanRequest::default() };
        assert_eq!(line.plan.request(), expected);
    }
}
