//! The arguments of `takeup sim`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use model::disk::PRESETS;
use service::model_names::{DiskName, GenerationName};
use service::parameter_setting::ParameterSetting;
use service::sim::disk::{PARALLEL_MAX, SECONDS_MAX, SimDiskRequest};
use service::sim::tape::{CompressionChoice, RATIOS, SimTapeRequest};
use service::sim::{SimEjectRequest, SimLoadRequest, SimStatusRequest, TimeChoice};
use sim::speed_up::SpeedUp;

use crate::parameter::setting;
use crate::proposing::{DISKS, GENERATIONS, SWITCHES, proposing};
use crate::quantity::{Rate, Size, seconds};

/// Simulate a tape drive or a disk, with its timing, in a folder
///
/// tape: a folder with the files nst0 and st0, which tar, dd, mbuffer, mt, takeup and any other
/// program can use as tape drives. Blocks, filemarks, short reads and the end of the medium behave
/// as with the kernel's tape driver. Commands take as long as on a drive of that generation, stops
/// of the tape included.
///
/// disk: a folder with a file whose reads and writes take as long as on a disk, and a loop device
/// on it, whose read-ahead, scheduler and queue settings act as on a real disk.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup sim tape /mnt/drive --drive lto7 --medium /var/tmp/cartridge &
  tar -b 2048 -cf /mnt/drive/nst0 /srv; mt -f /mnt/drive/nst0 rewind
  takeup sim tape /mnt/drive --from drive.ndjson &
  takeup sim status /mnt/drive
  takeup sim tape /mnt/drive --drive lto7 --medium /var/tmp/old --medium-generation lto6 &
  takeup sim load /mnt/drive /var/tmp/second --new
  takeup sim disk /mnt/slow --preset sas15k --backing /var/tmp/disk --size 10G --loop
  takeup sim disk /mnt/theirs --from disk.ndjson --backing /dev/shm/disk --size 10G --loop")]
pub struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

impl SimArgs {
    /// What to do with which device.
    pub fn command(&self) -> &SimCommand {
        &self.command
    }
}

#[derive(Debug, Subcommand)]
// clap would take documentation here for the help.
pub enum SimCommand {
    Tape(TapeArgs),
    Disk(DiskArgs),
    Status(StatusArgs),
    Load(LoadArgs),
    Eject(EjectArgs),
}

/// Mount a virtual tape drive; ends when it is unmounted or interrupted
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mkdir /mnt/drive; takeup sim tape /mnt/drive --drive lto7 &
  takeup backup /srv --to /mnt/drive/nst0
  takeup sim tape /mnt/drive --drive lto6 --medium /var/tmp/cartridge --speed-up 10 &
  umount /mnt/drive")]
pub struct TapeArgs {
    /// An existing folder
    mountpoint: PathBuf,
    /// Generation of the drive, lto1 to lto10; by default that of --from, or lto7
    #[arg(long, value_name = "GENERATION", hide_possible_values = true,
          value_parser = proposing(GenerationName::from_str, GENERATIONS))]
    drive: Option<GenerationName>,
    /// Simulate the drive of an experiment (takeup bench tape -o RUNS)
    ///
    /// Parameters that the experiment does not show keep the value of the generation; takeup lists
    /// them.
    #[arg(long, value_name = "RUNS")]
    from: Option<PathBuf>,
    /// File of the cartridge, created if missing; by default the cartridge is in memory
    #[arg(long, value_name = "FILE")]
    medium: Option<PathBuf>,
    /// Generation of the cartridge if it is not the drive's: an older one, lto7m for LTO-7 Type M,
    /// or lto10premium; by default that of the file, or of the drive
    #[arg(hide_short_help = true, long, value_name = "GENERATION", hide_possible_values = true,
          value_parser = proposing(GenerationName::from_str, GENERATIONS))]
    medium_generation: Option<GenerationName>,
    /// Native capacity of a new cartridge; by default that of its generation, or 1 GiB in memory
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    capacity: Option<Size>,
    /// Run this many times faster than real time, for example 2.5 or 0.5
    #[arg(long, default_value_t = SpeedUp::ONE, value_name = "N")]
    speed_up: SpeedUp,
    /// Whether commands take time
    #[arg(long, default_value = "true", value_name = "WHICH")]
    time: TapeTime,
    /// Compression by the drive: on measures the ratio of the data, a number sets it
    #[arg(long, default_value = "on", value_name = "on|off|RATIO", hide_possible_values = true,
          value_parser = proposing(compression, SWITCHES))]
    compression: CompressionChoice,
    /// TapeAlert flags that the drive reports once, 1 to 64; with 20 or 21 it requests cleaning
    #[arg(hide_short_help = true, long, value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=64))]
    alert: Vec<u8>,
    /// Change a parameter of the drive; takeup plan --parameters shows their names
    #[arg(hide_short_help = true, long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<ParameterSetting>,
}

/// Print the state of a virtual drive or disk as JSON
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup sim status /mnt/drive
  takeup sim status /mnt/drive --json | jq .time.back_hitches")]
pub struct StatusArgs {
    /// The folder on which it is mounted
    mountpoint: PathBuf,

    /// Print the state as one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Put another cartridge into a virtual drive
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup sim load /mnt/drive /var/tmp/second --new
  takeup sim load /mnt/drive /var/tmp/cartridge")]
pub struct LoadArgs {
    /// The folder on which it is mounted
    mountpoint: PathBuf,
    /// The cartridge, a file
    medium: PathBuf,
    /// Create the cartridge, with the settings of the first one
    #[arg(long)]
    new: bool,
}

/// Take the cartridge out of a virtual drive
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup sim eject /mnt/drive
  takeup sim load /mnt/drive /var/tmp/second")]
pub struct EjectArgs {
    /// The folder on which it is mounted
    mountpoint: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TapeTime {
    /// As long as on a drive of that generation
    True,
    /// As short as on this machine
    None,
}

/// Mount a virtual disk; ends when it is unmounted or interrupted
///
/// The folder has three files: `disk`, on which each call is one request to the disk; `cached`, the
/// same bytes through the page cache; and `status`. Requests take as long as on such a disk, which
/// serves as many of them at once.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  mkdir /mnt/slow; takeup sim disk /mnt/slow --preset sas15k --backing /var/tmp/disk --size 10G &
  takeup bench read /mnt/slow/disk --cache direct
  sudo takeup sim disk /mnt/slow --preset nvme --backing /var/tmp/disk --size 10G --loop
  takeup sim disk /mnt/slow --preset array:12 --backing /var/tmp/disk --size 10G --parallel 4 &")]
pub struct DiskArgs {
    /// An existing folder
    mountpoint: PathBuf,
    /// Kind of disk: sas15k, sata7200, ssd-sata, nvme, or array:N for N disks of 15,000 rpm; by
    /// default the one nearest to the disk of --from, or sas15k
    #[arg(long, value_name = "NAME", hide_possible_values = true,
          value_parser = proposing(preset, DISKS))]
    preset: Option<DiskName>,
    /// Simulate the disk of an experiment (takeup bench disk or bench read, -o RUNS)
    ///
    /// Parameters that the experiment does not show keep the value of the preset; takeup lists
    /// them.
    #[arg(long, value_name = "RUNS")]
    from: Option<PathBuf>,
    /// Storage of the disk: a file, created if missing, or a block device
    #[arg(long, value_name = "FILE")]
    backing: PathBuf,
    /// Size of a new backing file; it is sparse, so it uses only the space that is written
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Time of each request, whatever its place and size, for example 5.5ms
    #[arg(hide_short_help = true, long, value_name = "TIME")]
    service_time: Option<Time>,
    /// Extra time for a request that does not start where the last one ended, in place of heads
    #[arg(hide_short_help = true, long, value_name = "TIME")]
    seek: Option<Time>,
    /// Rate of the disk as a whole
    #[arg(hide_short_help = true, long, value_name = "RATE")]
    bandwidth: Option<Rate>,
    /// Requests that are served at once
    #[arg(hide_short_help = true, long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(PARALLEL_MAX)))]
    parallel: Option<u16>,
    /// Largest request; larger ones are split
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    max_request: Option<Size>,
    /// Spread the whole way of the heads over this many bytes: with that of --size, a small disk
    /// seeks like a large one [default: the capacity of the preset]
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    capacity: Option<Size>,
    /// Run this many times faster than real time, for example 2.5 or 0.5
    #[arg(long, default_value_t = SpeedUp::ONE, value_name = "N")]
    speed_up: SpeedUp,
    /// Whether requests take time
    #[arg(long, default_value = "true", value_name = "WHICH")]
    time: DiskTime,
    /// As root, attach a loop device: read-ahead, scheduler and queue settings act as on a disk
    #[arg(long = "loop")]
    loop_device: bool,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// Print one line of JSON when the disk is ready
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskTime {
    /// As long as on such a disk
    True,
    /// As short as on the backing file
    None,
}

fn compression(text: &str) -> Result<CompressionChoice, &'static str> {
    match (text, text.parse::<f64>()) {
        ("off", _) => Ok(CompressionChoice::Off),
        ("on", _) => Ok(CompressionChoice::On),
        (_, Ok(ratio)) if RATIOS.contains(&ratio) => Ok(CompressionChoice::Ratio(ratio)),
        _ => Err("must be on, off, or a ratio from 0.5 to 1000"),
    }
}

fn preset(text: &str) -> Result<DiskName, String> {
    text.parse().map_err(|_| format!("known are {}, and array:N", PRESETS.join(" ")))
}

/// A time with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Time {
    ns: u64,
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        match seconds(text)? {
            most if most <= SECONDS_MAX => Ok(Time { ns: (most * 1e9).round() as u64 }),
            _ => Err("must be at most 60 s".to_owned()),
        }
    }
}

impl Time {
    fn seconds(self) -> f64 {
        self.ns as f64 / 1e9
    }
}

impl TapeArgs {
    /// What is asked for.
    pub fn request(&self) -> SimTapeRequest {
        SimTapeRequest {
            mountpoint: self.mountpoint.clone(),
            drive: self.drive,
            from: self.from.clone(),
            medium: self.medium.clone(),
            medium_generation: self.medium_generation,
            capacity_bytes: self.capacity.map(|size| size.0),
            speed_up: self.speed_up,
            time: match self.time {
                TapeTime::True => TimeChoice::True,
                TapeTime::None => TimeChoice::None,
            },
            compression: self.compression,
            alerts: self.alert.clone(),
            settings: self.settings.clone(),
        }
    }
}

impl DiskArgs {
    /// What is asked for.
    pub fn request(&self) -> SimDiskRequest {
        SimDiskRequest {
            mountpoint: self.mountpoint.clone(),
            preset: self.preset.clone(),
            from: self.from.clone(),
            backing: self.backing.clone(),
            size_bytes: self.size.map(|size| size.0),
            service_seconds: self.service_time.map(Time::seconds),
            seek_seconds: self.seek.map(Time::seconds),
            bytes_per_second: self.bandwidth.map(|rate| rate.0),
            parallel: self.parallel,
            request_bytes_max: self.max_request.map(|size| size.0),
            capacity_bytes: self.capacity.map(|size| size.0),
            speed_up: self.speed_up,
            time: match self.time {
                DiskTime::True => TimeChoice::True,
                DiskTime::None => TimeChoice::None,
            },
            loop_device: self.loop_device,
            read_only: self.read_only,
        }
    }
}

impl StatusArgs {
    /// What is asked for.
    pub fn request(&self) -> SimStatusRequest {
        SimStatusRequest { mountpoint: self.mountpoint.clone() }
    }
}

impl LoadArgs {
    /// What is asked for.
    pub fn request(&self) -> SimLoadRequest {
        SimLoadRequest {
            mountpoint: self.mountpoint.clone(),
            medium: self.medium.clone(),
            new: self.new,
        }
    }
}

impl EjectArgs {
    /// What is asked for.
    pub fn request(&self) -> SimEjectRequest {
        SimEjectRequest { mountpoint: self.mountpoint.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected_ns: Option<u64>) {
        assert_eq!(text.parse::<Time>().ok().map(|time| time.ns), expected_ns, "{text}");
    }

    #[test]
    fn times() {
        check("5.5ms", Some(5_500_000));
        check("80us", Some(80_000));
        check("1s", Some(1_000_000_000));
        check("0", Some(0));
        check("7", None);
        check("ms", None);
        check("1.2.3ms", None);
        check("-1ms", None);
        check("61s", None);
        check("nan", None);
    }
}
