//! Arguments that several subcommands share.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use service::run::{ArchiveSettings, EngineChoice, ReadOrderChoice, TargetSettings};
use service::tape_source::{SetWanted, TapeSourceSettings};

use crate::quantity::{Rate, Size, one_or_more};

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// Print one JSON document at the end instead of text
    ///
    /// The document is all that goes to standard output. With --to -, where standard output carries
    /// the data, it goes to standard error.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print only warnings, errors and bad results
    #[arg(short, long, help_heading = "Output", conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the stages of the run, what was chosen and why
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Show no progress line on a terminal
    #[arg(hide_short_help = true, long, help_heading = "Output")]
    pub no_progress: bool,
    /// How files and block devices are read and written
    // Without a heading it would get the one of the options in front of it.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = EngineName::Auto,
          value_name = "ENGINE",
          help_heading = None::<&str>)]
    pub engine: EngineName,
}

/// Names of the back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// io_uring if the kernel allows it, else pread
    Auto,
    /// io_uring, or fail
    #[value(name = "io_uring")]
    IoUring,
    /// Threads that call pread and pwrite
    Pread,
}

impl From<EngineName> for EngineChoice {
    fn from(name: EngineName) -> EngineChoice {
        match name {
            EngineName::Auto => EngineChoice::Auto,
            EngineName::IoUring => EngineChoice::IoUring,
            EngineName::Pread => EngineChoice::Pread,
        }
    }
}

/// In which order the files of a tree are read.
#[derive(Args, Clone, Copy, Debug)]
pub struct ReadOrderArgs {
    /// In which order files are read; the result is the same
    ///
    /// auto measures the access time of the disk, and reads in the order of a slow disk, as one
    /// with heads.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = ReadOrderName::Auto,
          value_name = "ORDER")]
    pub read_order: ReadOrderName,
    /// How much is read ahead in the order of the disk; by default an eighth of the memory that is
    /// free
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    read_window: Option<Size>,
}

impl ReadOrderArgs {
    /// How much may be read ahead, if it was given.
    pub fn read_window_bytes(&self) -> Option<u64> {
        self.read_window.map(|size| size.0)
    }
}

/// Names of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadOrderName {
    /// That of the disk, if it has heads
    Auto,
    /// That of their names, in which they are needed
    Name,
    /// That of their inode numbers
    Inode,
    /// That of their places on the disk
    Physical,
}

impl From<ReadOrderName> for ReadOrderChoice {
    fn from(name: ReadOrderName) -> ReadOrderChoice {
        match name {
            ReadOrderName::Auto => ReadOrderChoice::Auto,
            ReadOrderName::Name => ReadOrderChoice::Name,
            ReadOrderName::Inode => ReadOrderChoice::Inode,
            ReadOrderName::Physical => ReadOrderChoice::Physical,
        }
    }
}

/// How data are buffered on their way to a target.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// Replace an existing target once the new one is complete; a tape is written from its
    /// beginning, and the sets on it are gone
    #[arg(long)]
    overwrite: bool,
    /// Permissions of a target file, in octal; default: those of the replaced file, for a new file
    /// 600 as root, else what the umask leaves
    #[arg(hide_short_help = true, long, value_name = "MODE", value_parser = permissions)]
    mode: Option<u32>,
    /// Size of each write to the target, a multiple of 512 bytes
    #[arg(short, long, default_value = "1M", value_name = "SIZE")]
    block_size: Size,
    /// Memory for blocks that wait for the target; default: 64M, more for high compression levels,
    /// for a tape 1G or a quarter of the memory
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    ring: Option<Size>,
    /// How full the ring must be before the writer starts, and starts again after it ran empty;
    /// default: 0, for a tape 50 and then what the drive needs
    #[arg(hide_short_help = true, long, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    start_fill: Option<u8>,
    /// Limit the bytes per second that go to the target
    #[arg(long, value_name = "RATE")]
    rate_limit: Option<Rate>,
}

/// Nine bits in octal digits: `640`, `0640`.
fn permissions(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && !text.starts_with('+') => Ok(mode),
        _ => Err("permissions are octal, from 0 to 777".to_owned()),
    }
}

impl TargetArgs {
    /// As a part of a request.
    pub fn settings(&self) -> TargetSettings {
        TargetSettings {
            overwrite: self.overwrite,
            mode: self.mode,
            block_bytes: self.block_size.0,
            ring_bytes: self.ring.map(|size| size.0),
            start_fill_percent: self.start_fill,
            rate_limit_bytes_per_second: self.rate_limit.map(|rate| rate.0),
        }
    }
}

/// How an archive is read.
#[derive(Args, Clone, Debug)]
pub struct ArchiveArgs {
    /// Memory for data that are read and decompressed ahead; default: 64M, for a tape up to 1G or a
    /// quarter of the memory
    #[arg(hide_short_help = true, long, value_name = "SIZE")]
    ring: Option<Size>,
    /// Threads that decompress; by default one for each core
    #[arg(hide_short_help = true, long, value_name = "N",
          value_parser = one_or_more::<NonZero<usize>>)]
    threads: Option<NonZero<usize>>,
    /// Fail if the archive has no index, whatever program wrote it: without an index, a missing end
    /// goes unnoticed. Archives of takeup announce their index, and always need it
    #[arg(hide_short_help = true, long)]
    require_index: bool,
}

impl ArchiveArgs {
    /// As a part of a request.
    pub fn settings(&self) -> ArchiveSettings {
        ArchiveSettings {
            ring_bytes: self.ring.map(|size| size.0),
            threads: self.threads,
            require_index: self.require_index,
        }
    }
}

/// Where a run is recorded.
#[derive(Args, Clone, Debug, Default)]
pub struct RecordArgs {
    /// Record what each stage does over time in a new file, for `takeup report`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub record: Option<PathBuf>,
}

/// How volumes of a tape are changed.
#[derive(Args, Clone, Debug, Default)]
pub struct ChangeArgs {
    /// Shell command that loads another volume into the drive, instead of a question on the
    /// terminal
    ///
    /// The command gets the request in its environment: TAKEUP_ACTION (write or read),
    /// TAKEUP_DEVICE, TAKEUP_SET, TAKEUP_VOLUME, TAKEUP_MEDIUM and TAKEUP_MEDIUM_NAME (empty when
    /// unknown), TAKEUP_ATTEMPT (from 1), and TAKEUP_REASON: why the last medium was refused. An
    /// exit code other than 0 means that there is no other volume.
    #[arg(hide_short_help = true, long, value_name = "COMMAND", help_heading = "Tape")]
    pub change_command: Option<String>,
}

/// Options for tapes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tape")]
pub struct TapeSourceArgs {
    /// Set on the volume: its number, 1 for the oldest, or the start of its id; by default the last
    /// one
    #[arg(long, value_name = "SET", value_parser = parse_set)]
    set: Option<SetWanted>,
    /// Read this file of the tape, whatever program wrote it; 0 is the first. By default, a tape of
    /// another program is read at its current file
    #[arg(hide_short_help = true, long, value_name = "N", conflicts_with = "set")]
    file: Option<u32>,
    /// Skip this volume of the set: takeup does not ask for it, and warns about what is missing.
    /// Separate several numbers by commas, or repeat the option
    #[arg(hide_short_help = true, long, value_name = "N", value_delimiter = ',',
          conflicts_with = "file",
        value_parser = clap::value_parser!(u32).range(1..))]
    without_volume: Vec<u32>,
    #[command(flatten)]
    change: ChangeArgs,
    /// Eject the medium at the end
    #[arg(hide_short_help = true, long)]
    eject: bool,
}

impl TapeSourceArgs {
    /// As a part of a request.
    pub fn settings(&self) -> TapeSourceSettings {
        TapeSourceSettings {
            set: self.set.clone(),
            file: self.file,
            without_volumes: self.without_volume.clone(),
            change_command: self.change.change_command.clone(),
            eject: self.eject,
        }
    }
}

/// A number, or hexadecimal digits.
pub(crate) fn parse_set(text: &str) -> Result<SetWanted, String> {
    /// Longer numbers are ids without a letter.
    const NUMBER_DIGITS_MAX: usize = 5;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && text.len() <= NUMBER_DIGITS_MAX {
        return match text.parse() {
            Ok(number @ 1..) => Ok(SetWanted::Number(number)),
            _ => Err("sets count from 1".to_owned()),
        };
    }
    let is_id = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id {
        Ok(SetWanted::Id(text.to_owned()))
    } else {
        Err("not a number and not the start of an id".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_by_number_or_id() {
        assert_eq!(parse_set("1"), Ok(SetWanted::Number(1)));
        assert_eq!(parse_set("00017"), Ok(SetWanted::Number(17)));
        assert_eq!(parse_set("ab12"), Ok(SetWanted::Id("ab12".into())));
        assert_eq!(parse_set("123456"), Ok(SetWanted::Id("123456".into())));
        for wrong in ["", "0", "-1", "last", "g", &"a".repeat(33)] {
            assert!(parse_set(wrong).is_err(), "{wrong}");
        }
    }
}
