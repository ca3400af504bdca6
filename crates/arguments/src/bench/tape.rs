//! The arguments of `takeup bench tape`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use service::bench::tape::{
    BenchTapeRequest, Data, DriveSwitch, Framing, RunPlace, TapeOperation, TapePreset,
};
use service::failure::Failure;

use super::options::{ExperimentArgs, bytes, each};
use crate::proposing::{DATA, FRAMINGS, proposing};
use crate::quantity::{Size, bytes_or_zero};

/// Measure what a tape drive takes: block sizes, data, framings, its compression
///
/// Every run writes a file to the medium in TARGET and ends it with a filemark that waits for the
/// medium; Takeup reports the rate with and without the filemark. TARGET is a tape drive, a virtual
/// one of `takeup sim tape`, or, to try a plan, a file, a pipe or /dev/null. Takeup refuses a
/// medium with data without --overwrite; it may overwrite what an earlier experiment left. It
/// restores the drive's settings at the end. Separate the items of a list by commas; Takeup runs
/// every combination that makes sense.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench tape /dev/nst0
  takeup bench tape /dev/nst0 --block-size 64k,128k,256k,512k,1M --data zeros,random,text:2
  takeup bench tape /dev/nst0 --data /srv/db.dump --drive-compression on,off
  takeup bench tape /dev/nst0 --data /srv,random --framing tar,bacula --length 20G
  takeup bench tape /dev/nst0 --data /srv --read-block-size 64k,1M --block-size 64k,1M
  takeup bench tape /dev/nst0 --length 8G --files 1,2,4,8
  takeup bench tape /dev/nst0 --block-size 10k,1M --ring 0,256M --operation write,read
  takeup bench tape /dev/nst0 --preset btape --block-size 64k,256k,1M,2M
  takeup bench tape /mnt/drive/nst0 --preset btape --scale 0.1 -o virtual.ndjson
  takeup report takeup-bench-tape.ndjson --html report.html

A file should be longer than three times the drive's own buffer, which holds up to 1 GB. Media
wear: use one for experiments alone.")]
pub struct BenchTapeArgs {
    /// A tape drive, such as /dev/nst0
    #[arg(value_name = "TARGET", required_unless_present = "plan")]
    target: Option<PathBuf>,
    /// Bytes of a block
    #[arg(short, long, value_delimiter = ',', value_name = "LIST", default_value = "64k,256k,1M")]
    block_size: Vec<Size>,
    /// Data to write: zeros, random, text:RATIO (as a drive would compress it), a FILE, or a
    /// FOLDER, whose files are read from their disk meanwhile
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "random",
          hide_possible_values = true, value_parser = proposing(Data::from_str, DATA))]
    data: Vec<Data>,
    /// Bytes of one read from the disk of a FOLDER or, with this option, of a FILE
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST")]
    read_block_size: Vec<Size>,
    /// Format around the data: raw, tar, bacula
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "raw",
          hide_possible_values = true, value_parser = proposing(Framing::from_str, FRAMINGS))]
    framing: Vec<Framing>,
    /// Bytes of a run, at most those of a FOLDER [default: 4G]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    length: Vec<Size>,
    /// Files that a run is divided into, with a filemark after each; by default one, and with
    /// Bacula's blocks one for each gigabyte, as Bacula does it
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST")]
    files: Vec<u64>,
    /// The drive's compression: on, off; by default it stays as it is
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    drive_compression: Vec<Switch>,
    /// Memory between the generator and the writer; 0 for one thread that does both in turns
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "64M")]
    ring: Vec<String>,
    /// What is measured: write, read (a file that was written just before)
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "write")]
    operation: Vec<OperationName>,
    /// Name of the medium, for the record; with several, Takeup asks for each when it needs it
    #[arg(hide_short_help = true, long, value_delimiter = ',', value_name = "LIST")]
    medium_label: Vec<String>,
    /// A known design: btape, that of Bacula's `btape speed` (36 values for each block size)
    #[arg(hide_short_help = true, long, value_name = "NAME", conflicts_with_all = ["data",
          "framing", "plan"])]
    preset: Option<Preset>,
    /// Length of the preset's files, as a share of their usual length
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SHARE",
        default_value = "1",
        requires = "preset",
        conflicts_with = "length"
    )]
    scale: Share,
    /// Allow Takeup to overwrite what the medium holds
    #[arg(long, conflicts_with = "append")]
    overwrite: bool,
    /// Write after what the medium holds
    #[arg(hide_short_help = true, long)]
    append: bool,
    /// Shell command that puts the requested medium into the drive, instead of a question on the
    /// terminal
    ///
    /// Its environment has the medium's name in TAKEUP_MEDIUM, the drive in TAKEUP_DEVICE, and
    /// TAKEUP_ACTION=bench. An exit code other than 0 means that there is no such medium.
    #[arg(hide_short_help = true, long, value_name = "COMMAND")]
    change_command: Option<String>,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// A setting of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// It is on
    On,
    /// It is off
    Off,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OperationName {
    /// Write a file
    Write,
    /// Read it back
    Read,
}

/// Known designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// `btape speed`
    Btape,
}

/// A number above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share(f64);

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        match text.parse::<f64>() {
            Ok(share) if (1e-6..=1e3).contains(&share) => Ok(Share(share)),
            _ => Err("expected a number from 0.000001 to 1000".to_owned()),
        }
    }
}

impl From<Switch> for DriveSwitch {
    fn from(switch: Switch) -> DriveSwitch {
        match switch {
            Switch::On => DriveSwitch::On,
            Switch::Off => DriveSwitch::Off,
        }
    }
}

impl From<OperationName> for TapeOperation {
    fn from(operation: OperationName) -> TapeOperation {
        match operation {
            OperationName::Write => TapeOperation::Write,
            OperationName::Read => TapeOperation::Read,
        }
    }
}

impl From<Preset> for TapePreset {
    fn from(preset: Preset) -> TapePreset {
        match preset {
            Preset::Btape => TapePreset::Btape,
        }
    }
}

impl BenchTapeArgs {
    /// Repeats, time limits, files and output.
    pub fn experiment(&self) -> &ExperimentArgs {
        &self.experiment
    }

    /// The command that changes media, if one is to do it.
    pub fn change_command(&self) -> Option<&str> {
        self.change_command.as_deref()
    }

    /// What is asked for.
    ///
    /// # Errors
    /// When a ring is no size; with a plan it is not looked at.
    pub fn request(&self) -> Result<BenchTapeRequest, Failure> {
        let is_planned = self.experiment.plan.is_some();
        let ring = |text: &String| {
            bytes_or_zero(text)
                .map_err(|error| Failure::of(format!("--ring {text}: {error}"), None))
        };
        let rings = self.ring.iter().filter(|_| !is_planned).map(ring);
        Ok(BenchTapeRequest {
            target: self.target.clone(),
            block_bytes: bytes(&self.block_size),
            data: self.data.iter().map(Data::to_string).collect(),
            read_block_bytes: bytes(&self.read_block_size),
            framing: self.framing.clone(),
            file_bytes: bytes(&self.length),
            files: self.files.clone(),
            drive_compression: each(&self.drive_compression),
            ring_bytes: rings.collect::<Result<Vec<u64>, Failure>>()?,
            operation: each(&self.operation),
            media: self.medium_label.clone(),
            preset: self.preset.map(Into::into),
            scale: self.scale.0,
            place: match (self.append, self.overwrite) {
                (true, _) => RunPlace::Append,
                (false, true) => RunPlace::Overwrite,
                (false, false) => RunPlace::Beginning,
            },
            experiment: self.experiment.request(),
        })
    }
}
