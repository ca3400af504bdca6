//! `takeup bench tape`: the rates of a tape drive.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use experiment::plan::{Plan, Stop};
use experiment::record::{Factor, Level};
use loads::framing::Framing;
use loads::payload::Data;
use loads::tape::{Begin, Occupied, TapeExecutor, TapeOptions, preset};

use super::options::{ExperimentArgs, bytes_or_zero, factor, numbers};
use crate::change::{ChangeArgs, Changer};
use crate::outcome::end;
use arguments::quantity::Size;
use service::failure::Failure;
use service::outcome::Outcome;

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
pub struct TapeArgs {
    /// A tape drive, such as /dev/nst0
    #[arg(value_name = "TARGET", required_unless_present = "plan")]
    target: Option<PathBuf>,
    /// Bytes of a block
    #[arg(short, long, value_delimiter = ',', value_name = "LIST", default_value = "64k,256k,1M")]
    block_size: Vec<Size>,
    /// Data to write: zeros, random, text:RATIO (as a drive would compress it), a FILE, or a
    /// FOLDER, whose files are read from their disk meanwhile
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "random")]
    data: Vec<Data>,
    /// Bytes of one read from the disk of a FOLDER or, with this option, of a FILE
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    read_block_size: Vec<Size>,
    /// Format around the data: raw, tar, bacula
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "raw")]
    framing: Vec<Framing>,
    /// Bytes of a run, at most those of a FOLDER [default: 4G]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    length: Vec<Size>,
    /// Files that a run is divided into, with a filemark after each; by default one, and with
    /// Bacula's blocks one for each gigabyte, as Bacula does it
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
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
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    medium_label: Vec<String>,
    /// A known design: btape, that of Bacula's `btape speed` (36 values for each block size)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["data", "framing", "plan"])]
    preset: Option<Preset>,
    /// Length of the preset's files, as a share of their usual length
    #[arg(
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
    #[arg(long)]
    append: bool,
    /// Shell command that puts the requested medium into the drive, instead of a question on the
    /// terminal
    ///
    /// Its environment has the medium's name in TAKEUP_MEDIUM, the drive in TAKEUP_DEVICE, and
    /// TAKEUP_ACTION=bench. An exit code other than 0 means that there is no such medium.
    #[arg(long, value_name = "COMMAND")]
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

/// Default length of a file in bytes: more than three times the buffer of any drive.
const USUAL_LENGTH_BYTES: u64 = 4 << 30;

/// Runs the command.
pub fn run(arguments: &TapeArgs) -> ExitCode {
    end(measure(arguments), "bench tape", arguments.experiment.form())
}

fn measure(arguments: &TapeArgs) -> Result<Outcome, Failure> {
    let plan = match arguments.experiment.plan_from_file("tape")? {
        Some(plan) => plan,
        None => plan(arguments)?,
    };
    super::experiment(plan, &arguments.experiment, |plan, cancel| {
        let change = ChangeArgs { change_command: arguments.change_command.clone() };
        let options = TapeOptions {
            begin: if arguments.append { Begin::BehindData } else { Begin::AtBeginning },
            occupied: if arguments.overwrite { Occupied::Overwrite } else { Occupied::Keep },
            changer: Some(Box::new(Changer::new(&change, cancel))),
        };
        Ok(TapeExecutor::new(plan, options)?)
    })
}

fn plan(arguments: &TapeArgs) -> Result<Plan, Failure> {
    let target = arguments.target.clone().unwrap_or_default();
    let (factors, usual) = factors(arguments)?;
    Ok(Plan {
        kind: "tape".to_owned(),
        title: arguments.experiment.title.clone(),
        paths: vec![absolute(&target)],
        length_bytes: longest(&factors),
        seed: arguments.experiment.seed(),
        stop: arguments.experiment.stop_or(usual),
        random_reads: 0,
        run_seconds: 0.0,
        commands: None,
        factors,
    })
}

/// The largest number of bytes of a run.
fn longest(factors: &[Factor]) -> u64 {
    let lengths = factors.iter().filter(|factor| factor.name == "file_bytes");
    let bytes = lengths.flat_map(|factor| &factor.levels).filter_map(|level| match level {
        Level::Number(bytes) => Some(*bytes),
        Level::Text(_) => None,
    });
    bytes.max().unwrap_or(USUAL_LENGTH_BYTES)
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// The factors, and when the experiment ends. Loads come first, the block size last, because curves
/// are drawn over it.
fn factors(arguments: &TapeArgs) -> Result<(Vec<Factor>, Stop), Failure> {
    let blocks = numbers(arguments.block_size.iter().map(|size| size.0));
    let read_blocks = numbers(arguments.read_block_size.iter().map(|size| size.0));
    let lengths: Vec<u64> = match &arguments.length[..] {
        [] => vec![USUAL_LENGTH_BYTES],
        lengths => lengths.iter().map(|size| size.0).collect(),
    };
    let lengths = factor("file_bytes", numbers(lengths), None);
    let (loads, usual) = match arguments.preset {
        Some(Preset::Btape) => {
            let sizes: Vec<u64> = arguments.block_size.iter().map(|size| size.0).collect();
            let mut factors = preset::btape(&sizes, arguments.scale.0);
            factors.retain(|factor| factor.name != "block_bytes");
            if !arguments.length.is_empty() {
                factors.retain(|factor| factor.name != "file_bytes");
                factors.extend(lengths);
            }
            (factors, preset::btape_stop())
        }
        None => {
            let data = arguments.data.iter().map(data_level).collect();
            let framings = arguments.framing.iter().map(|framing| word(framing.name())).collect();
            let factors = [factor("data", data, None), factor("framing", framings, None)];
            (factors.into_iter().flatten().chain(lengths).collect(), Stop::default())
        }
    };
    let media = arguments.medium_label.iter().map(|label| word(label)).collect();
    let settings = [
        factor("files", numbers(arguments.files.iter().copied()), None),
        factor("operation", names(&arguments.operation), None),
        factor("medium", media, None),
        factor("drive_compression", names(&arguments.drive_compression), None),
        ring(arguments)?,
        factor("read_block_bytes", read_blocks, None),
        factor("block_bytes", blocks, None),
    ];
    Ok((loads.into_iter().chain(settings.into_iter().flatten()).collect(), usual))
}

fn ring(arguments: &TapeArgs) -> Result<Option<Factor>, Failure> {
    let one = |text: &String| {
        bytes_or_zero(text).map_err(|error| Failure::of(format!("--ring {text}: {error}"), None))
    };
    let sizes: Result<Vec<u64>, Failure> = arguments.ring.iter().map(one).collect();
    Ok(factor("ring_bytes", numbers(sizes?), None))
}

/// A file or folder is recorded by its absolute path, so that the experiment can continue from
/// another folder.
fn data_level(data: &Data) -> Level {
    match data {
        Data::Path(path) => Level::Text(absolute(path)),
        other => Level::Text(other.to_string()),
    }
}

fn word(text: &str) -> Level {
    Level::Text(text.to_owned())
}

fn names(values: &[impl ValueEnum]) -> Vec<Level> {
    let name = |value: &_| {
        let value = ValueEnum::to_possible_value(value);
        Level::Text(value.map_or(String::new(), |value| value.get_name().to_owned()))
    };
    values.iter().map(name).collect()
}
