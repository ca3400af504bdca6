//! `takeup plan`: time, tapes and stops of a backup, before anything is written.

mod measure;
mod presentation;
mod setting;
mod window;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use base::format::size;
use clap::{Args, ValueEnum};
use model::disk::DiskParameters;
use model::engine::{Origin, Work};
use model::plan::alternatives::{Choices, alternatives};
use model::plan::window::needs;
use model::plan::{Compression, Drain, PlanSource, Refill, Setup};
use model::program::Ratio;
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use model::tape::generation::Generation;
use model::tape::maker::Maker;
use model::tape::media::{MediumAccess, access};
use model::tape::parameters::TapeParameters;
use report::figure;

use super::sim::GenerationName;
use crate::calibration::FromRuns;
use crate::calibration::disk::DiskFromRuns;
use crate::options::CommonArgs;
use crate::outcome::{SummaryPlace, finish, to_standard_output};
use arguments::quantity::{Rate, Size, Span, one_or_more};
use measure::{Measured, measure};
use presentation::{Details, Presentation};
use service::failure::Failure;
use service::outcome::Outcome;
use service::output_file::OutputFile;
pub use setting::Setting;
use window::Window;

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
    #[arg(long = "drive", required_unless_present = "from", value_name = "NAME")]
    drives: Vec<DriveName>,
    /// Generation of the media if it is not the first drive's: one earlier, or lto7m for LTO-7 Type
    /// M
    #[arg(long = "medium-generation", visible_alias = "medium", value_name = "GENERATION")]
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
    #[arg(long)]
    half_height: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Memory for blocks that wait for the drive
    #[arg(long, default_value = "1G", value_name = "SIZE")]
    ring: Size,
    /// How full the ring must be before a waiting writer continues
    #[arg(long, default_value_t = 95, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    start_fill: u8,
    /// When a writer that found the ring empty waits for it to fill
    #[arg(long, value_enum, default_value_t = RefillName::WhenSlow, value_name = "WHEN")]
    refill: RefillName,
    /// Bytes of one write
    #[arg(short, long, default_value = "1M", value_name = "SIZE")]
    block_size: Size,
    /// Seconds that a person or a library takes to change the volume, besides the drive's own time
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    change: u32,
    /// The time available: Takeup reports whether the plan fits and by how much, which other ways
    /// fit, and what source or how many drives would. Exit code 2 if the plan does not fit
    #[arg(long, value_name = "TIME")]
    window: Option<Span>,
    /// A parameter of the model of the first drive, in the unit of its name or with a suffix:
    /// back_hitch_ns=3.5s, buffer_bytes=1G, speeds_bytes_per_second=100MB,200MB
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<Setting>,
    /// Show the parameters of the drive model, and how certain they are
    #[arg(long)]
    parameters: bool,
    /// Draw rate and stops against the rate of the source, as SVG; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The source and its rate.
#[derive(Args, Debug)]
struct SourceArgs {
    /// Rate at which the source can be read
    #[arg(long, value_name = "RATE", conflicts_with_all = ["source_disk", "source_from"])]
    source_rate: Option<Rate>,
    /// Compute the rate from a disk: sas15k, sata7200, ssd-sata, nvme, array or array:N
    #[arg(long, value_name = "DISK")]
    source_disk: Option<DiskName>,
    /// Compute the rate from an experiment on the disk (takeup bench disk or bench read, -o RUNS);
    /// what that did not measure comes from --source-disk, or from the most similar disk
    #[arg(long, value_name = "RUNS")]
    source_from: Option<PathBuf>,
    /// Bytes of one read from --source-disk or --source-from [default: 1M]
    #[arg(long, value_name = "SIZE")]
    read_block_size: Option<Size>,
    /// The kernel's read-ahead of that disk [default: 128k]
    #[arg(long, value_name = "SIZE")]
    read_ahead: Option<Size>,
    /// Bytes to back up
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Number of files
    #[arg(long, value_name = "N")]
    files: Option<u64>,
    /// Microseconds that each file takes besides its bytes; by default 50, or the time of the
    /// disk's seeks
    #[arg(long, value_name = "MICROSECONDS")]
    per_file: Option<u32>,
    /// Cores of the machine that makes the backup: hashing on them limits the rate; by default
    /// those of this machine
    #[arg(long, value_name = "N", value_parser = one_or_more::<NonZero<usize>>)]
    cores: Option<NonZero<usize>>,
    /// How long to read PATH to measure its rate
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    measure: u16,
    /// Rate of the disk in `staged to disk first`
    #[arg(long, default_value = "400MB", value_name = "RATE")]
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
    #[arg(long, value_name = "RATIO", value_parser = ratio, requires = "software_rate")]
    software_ratio: Option<f64>,
    /// How fast software compresses, in bytes of input
    #[arg(long, value_name = "RATE", requires = "software_ratio")]
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

impl From<RefillName> for Refill {
    fn from(name: RefillName) -> Refill {
        match name {
            RefillName::Never => Refill::Never,
            RefillName::WhenSlow => Refill::WhenSlow,
            RefillName::Always => Refill::Always,
        }
    }
}

/// A generation as typed.
#[derive(Clone, Copy, Debug)]
struct DriveName(&'static Generation);

impl FromStr for DriveName {
    type Err = String;

    fn from_str(text: &str) -> Result<DriveName, String> {
        let plain = |name: &str| {
            let kept = name.chars().filter(char::is_ascii_alphanumeric);
            kept.collect::<String>().to_ascii_lowercase()
        };
        let typed = plain(text);
        let (maker, name) = match (typed.strip_prefix("hp"), typed.strip_prefix("ibm")) {
            (Some(name), _) => (Some(Maker::Hp), name),
            (_, Some(name)) => (Some(Maker::Ibm), name),
            _ => (None, &typed[..]),
        };
        let found = Generation::all().iter().find(|one| plain(one.name) == name);
        let found = found.map(|one| maker.map_or(one, |maker| one.made_by(maker)));
        let known = || {
            "use lto1 to lto10 or \"lto7 type m\", with the maker hp-lto3 or ibm-lto3".to_owned()
        };
        found.map(DriveName).ok_or_else(known)
    }
}

/// A disk as typed.
#[derive(Clone, Debug)]
struct DiskName {
    name: String,
    parameters: DiskParameters,
}

impl FromStr for DiskName {
    type Err = String;

    fn from_str(text: &str) -> Result<DiskName, String> {
        let known = || "use sas15k, sata7200, ssd-sata, nvme, array or array:N".to_owned();
        let parameters = DiskParameters::named(text).ok_or_else(known)?;
        Ok(DiskName { name: text.to_owned(), parameters })
    }
}

/// Larger ratios are typing errors: SLDC itself reaches at most 94.
const RATIO_MAX: f64 = 100.0;

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.5..=RATIO_MAX).contains(&ratio) => Ok(ratio),
        _ => Err("expected a number from 0.5 to 100, 2 for half the bytes".to_owned()),
    }
}

/// Defaults if nothing is measured or given.
const RATIO_ASSUMED: f64 = 2.0;
const PER_FILE_US: u32 = 50;
/// Linux' default of `read_ahead_kb`.
const READ_AHEAD: Size = Size(128 << 10);
const READ_BLOCK: Size = Size(1 << 20);
/// Largest read-ahead and read size: the model is still fast with it.
const READ_BYTES_MAX: u64 = 64 << 20;
/// Files that a backup reads at once from a disk.
const FILES_AT_ONCE: u64 = 8;

/// Runs the command.
pub fn run(arguments: &PlanArgs) -> ExitCode {
    finish(outcome(arguments), "plan", &arguments.common, SummaryPlace::Output)
}

fn outcome(arguments: &PlanArgs) -> Result<Outcome, Failure> {
    let named = arguments.drives.first().map(|drive| drive.0);
    let load = |path: &Path| FromRuns::load(path, named);
    let from = arguments.from.as_deref().map(load).transpose()?;
    // clap requires one of the two.
    let drive = from.as_ref().map(|from| from.generation).or(named);
    let first =
        drive.ok_or_else(|| Failure::of("no drive is named", Some("add --drive or --from")))?;
    let source_from = source_from(&arguments.source)?;
    let chart = arguments.chart.as_deref().map(OutputFile::open).transpose()?;
    let measured = if arguments.paths.is_empty() {
        None
    } else {
        Some(measure(&arguments.paths, arguments.source.measure, &arguments.common)?)
    };
    let known = Known {
        drive: first,
        from: from.as_ref(),
        source_from: source_from.as_ref(),
        measured: measured.as_ref(),
    };
    let setup = setup(arguments, &known)?;
    let generations = compared(arguments, first);
    let choices = Choices {
        drive_ratio: drive_ratio(arguments, &known),
        software: software(arguments, measured.as_ref()),
        staging_bytes_per_second: arguments.source.staging_rate.0,
        host_bytes_per_second: processor_bound(&arguments.source, setup.source.size_bytes, None),
        generations: &generations,
    };
    let list = alternatives(&setup, "as asked", &choices)?;
    let window = window(arguments, &setup)?;
    let others: Vec<_> = arguments.drives.iter().skip(1).map(|drive| drive.0).collect();
    let presentation = Presentation {
        drive: first,
        medium: arguments.medium.map(|medium| medium.0).filter(|medium| medium.name != first.name),
        others: &others,
        setup: &setup,
        list: &list,
        from: from.as_ref(),
        source_from: source_from.as_ref(),
        measured: measured.as_ref(),
        reads: DiskReads::of_disk(&arguments.source),
        choices: &choices,
        bounded_by_cores: bounded_by_host(arguments, &setup),
        is_ratio_assumed: known_ratio(arguments, &known).is_none(),
        window,
    };
    if let Some(mut file) = chart {
        file.write(&figure::document(&presentation.charts()?))?;
        file.complete()?;
    }
    if arguments.common.json {
        to_standard_output(format!("{:#}\n", presentation.document()).as_bytes())?;
    } else if !arguments.common.quiet {
        let colour = crate::terminal::colour(&std::io::stdout());
        let details = if arguments.parameters { Details::Parameters } else { Details::None };
        to_standard_output(presentation.text(details, colour).as_bytes())?;
    }
    let fits = window.is_none_or(|window| window.fits(&list[0].plan));
    Ok(if fits { Outcome::Done } else { Outcome::Warned })
}

/// The requirements for ending in time.
fn window(arguments: &PlanArgs, setup: &Setup) -> Result<Option<Window>, Failure> {
    let Some(Span(seconds)) = arguments.window else { return Ok(None) };
    let most = processor_bound(&arguments.source, setup.source.size_bytes, None);
    let needs = needs(setup, seconds, most)?;
    Ok(Some(Window { seconds, needs }))
}

/// Sources besides the arguments.
struct Known<'a> {
    /// The first drive.
    drive: &'static Generation,
    /// An experiment on it.
    from: Option<&'a FromRuns>,
    /// An experiment on the disk of the source.
    source_from: Option<&'a DiskFromRuns>,
    /// The measurement of PATH.
    measured: Option<&'a Measured>,
}

fn setup(arguments: &PlanArgs, known: &Known<'_>) -> Result<Setup, Failure> {
    let measured = known.measured;
    let own = known.drive;
    let medium = arguments.medium.map_or(Ok(own), |medium| writable(own, medium.0))?;
    let mut drive = TapeParameters::with_medium(own, medium);
    if let (true, Some(most)) = (arguments.half_height, known.drive.half_height_speed_max) {
        drive.speeds_bytes_per_second.retain(|speed| *speed <= most);
    }
    if let Some(from) = known.from {
        from.calibration.apply(&mut drive);
    }
    for setting in &arguments.settings {
        setting.apply(&mut drive)?;
    }
    let compression = match arguments.data.compression {
        Who::None => Compression::None,
        Who::Drive => Compression::Drive(drive_ratio(arguments, known)),
        Who::Software => {
            let (ratio, bytes_per_second) = software(arguments, measured).ok_or_else(|| {
                let hint = "add --software-ratio and --software-rate, or a PATH to measure";
                Failure::of(
                    "the ratio and the rate of compression in software are not known",
                    Some(hint),
                )
            })?;
            Compression::Software { ratio, bytes_per_second }
        }
    };
    Ok(Setup {
        drive,
        drives: u64::from(arguments.count.get()),
        source: source(arguments, known)?,
        compression,
        ring_bytes: arguments.ring.0,
        start_fill_percent: arguments.start_fill,
        refill: arguments.refill.into(),
        drain: Drain::Unlimited,
        block_bytes: arguments.block_size.0,
        change_ns: u64::from(arguments.change) * 1_000_000_000,
    })
}

/// The disk of the source, if there is an experiment on it.
fn source_from(given: &SourceArgs) -> Result<Option<DiskFromRuns>, Failure> {
    let typed = [given.read_block_size, given.read_ahead];
    if DiskReads::of_disk(given).is_none() && typed.iter().any(Option::is_some) {
        let hint = "add --source-disk or --source-from (--source-rate already includes it)";
        let what = "--read-block-size and --read-ahead need a source disk";
        return Err(Failure::of(what, Some(hint)));
    }
    if typed.iter().flatten().any(|size| size.0 > READ_BYTES_MAX) {
        let most = size(READ_BYTES_MAX);
        let what = format!("--read-block-size and --read-ahead must be at most {most}");
        return Err(Failure::of(what, None));
    }
    let named = given.source_disk.as_ref().map(|disk| disk.name.as_str());
    given.source_from.as_deref().map(|path| DiskFromRuns::load(path, named)).transpose()
}

/// A medium, if the drive writes to it.
fn writable(
    drive: &'static Generation,
    medium: &'static Generation,
) -> Result<&'static Generation, Failure> {
    match access(drive, medium).map_err(|error| Failure::new(&error, None))? {
        MediumAccess::ReadAndWrite => Ok(medium),
        MediumAccess::ReadOnly => {
            let (drive, medium) = (drive.name, medium.name);
            let what = format!("an {drive} drive only reads {medium} media");
            Err(Failure::of(what, Some("use media that the drive can write")))
        }
    }
}

/// A smaller rate probably lacks its unit.
const SLOWEST_BYTES_PER_SECOND: u64 = 1000;

/// Given values go before measured ones.
fn source(arguments: &PlanArgs, known: &Known<'_>) -> Result<PlanSource, Failure> {
    let (given, measured) = (&arguments.source, known.measured);
    let missing = |what: &str, hint| Failure::of(format!("{what} is not known"), Some(hint));
    let size_bytes = given
        .size
        .map(|size| size.0)
        .or(measured.map(|measured| measured.size_bytes))
        .ok_or_else(|| missing("the size of the source", "add --size, or a PATH to measure"))?;
    let files = given.files.or(measured.map(|measured| measured.files)).unwrap_or(0);
    let named = given.source_disk.as_ref().map(|disk| &disk.parameters);
    let disk = known.source_from.map(|from| &from.parameters).or(named);
    let (bytes_per_second, disk_file_ns) = match (given.source_rate, disk, measured) {
        (Some(rate), _, _) if rate.0 < SLOWEST_BYTES_PER_SECOND => {
            let what = format!("--source-rate {}: only {} bytes a second", rate.0, rate.0);
            let hint = format!("write {}MB for megabytes a second", rate.0);
            return Err(Failure::of(what, Some(&hint)));
        }
        (Some(rate), _, _) => (rate.0, None),
        (None, Some(disk), _) => {
            (DiskReads::of(given).bytes_per_second(disk), Some(disk_file_ns(disk)))
        }
        // The measured rate includes the times of files.
        (None, None, Some(measured)) => (measured.bytes_per_second, Some(0)),
        (None, None, None) => {
            let hint = "add --source-rate, --source-disk, --source-from, or a PATH to measure";
            return Err(missing("the rate of the source", hint));
        }
    };
    let bound = processor_bound(given, size_bytes, measured);
    let bytes_per_second = bound.map_or(bytes_per_second, |bound| bytes_per_second.min(bound));
    let per_file_ns = given.per_file.map(|us| u64::from(us) * 1000).or(disk_file_ns);
    let file_ns = per_file_ns.unwrap_or(u64::from(PER_FILE_US) * 1000);
    Ok(PlanSource { size_bytes, files, bytes_per_second, file_ns })
}

/// The highest rate that the cores of the host can process, in bytes a second; `None` if the source
/// was measured on this host. Compression in software has a rate of its own.
fn processor_bound(
    given: &SourceArgs,
    size_bytes: u64,
    measured: Option<&Measured>,
) -> Option<u64> {
    let is_given =
        given.source_rate.is_some() || given.source_disk.is_some() || given.source_from.is_some();
    let is_measured = measured.is_some() && !is_given;
    let cores = given.cores.map_or_else(flow::crew::cores, NonZero::get);
    let work = Work { bytes: size_bytes as f64, files: 0.0, origin: Origin::Disk };
    let foretold = work.foretell(cores, f64::INFINITY);
    let bound = (size_bytes as f64 / foretold.seconds) as u64;
    (!is_measured && size_bytes > 0).then_some(bound)
}

/// The number of cores, if the host limits the source.
fn bounded_by_host(arguments: &PlanArgs, setup: &Setup) -> Option<usize> {
    let bound = processor_bound(&arguments.source, setup.source.size_bytes, None)?;
    let is_bounded = setup.source.bytes_per_second == bound;
    is_bounded.then(|| arguments.source.cores.map_or_else(flow::crew::cores, NonZero::get))
}

/// How the plan assumes a disk to be read: one stream through the page cache.
#[derive(Clone, Copy, Debug)]
struct DiskReads {
    read_bytes: u64,
    read_ahead_bytes: u64,
}

impl DiskReads {
    /// `None` unless the rate of the source comes from a disk.
    fn of_disk(given: &SourceArgs) -> Option<DiskReads> {
        let has_disk = given.source_disk.is_some() || given.source_from.is_some();
        has_disk.then(|| DiskReads::of(given))
    }

    fn of(given: &SourceArgs) -> DiskReads {
        DiskReads {
            read_bytes: given.read_block_size.unwrap_or(READ_BLOCK).0,
            read_ahead_bytes: given.read_ahead.unwrap_or(READ_AHEAD).0,
        }
    }

    fn bytes_per_second(self, disk: &DiskParameters) -> u64 {
        let policy = Policy::Linux { window_bytes: self.read_ahead_bytes };
        let reader = Reader { read_bytes: self.read_bytes, copy_bytes_per_second: 5_000_000_000 };
        sequential_bytes_per_second(disk, policy, reader)
    }
}

/// Two seeks for each file, one for its inode and one for its content, several files at once.
fn disk_file_ns(disk: &DiskParameters) -> u64 {
    2 * (disk.seek_ns + disk.command_ns) / FILES_AT_ONCE.min(disk.servers as u64).max(1)
}

fn drive_ratio(arguments: &PlanArgs, known: &Known<'_>) -> Ratio {
    Ratio::of(known_ratio(arguments, known).unwrap_or(RATIO_ASSUMED))
}

/// A given ratio goes before the sample of PATH, and that before the data of the experiment on the
/// drive.
fn known_ratio(arguments: &PlanArgs, known: &Known<'_>) -> Option<f64> {
    let sampled = known.measured.and_then(|measured| measured.drive_ratio);
    let written = known.from.and_then(|from| from.calibration.own_ratio());
    arguments.data.ratio.or(sampled).or(written.map(|own| own.value))
}

fn software(arguments: &PlanArgs, measured: Option<&Measured>) -> Option<(Ratio, u64)> {
    let given = arguments.data.software_ratio.zip(arguments.data.software_rate);
    let sampled = measured.and_then(|measured| measured.software);
    let found = given.map(|(ratio, rate)| (ratio, rate.0)).or(sampled);
    found.map(|(ratio, rate)| (Ratio::of(ratio), rate.max(1)))
}

/// The other drives that were named, or the generations before and after.
fn compared(arguments: &PlanArgs, first: &Generation) -> Vec<&'static Generation> {
    if arguments.drives.len() > 1 {
        return arguments.drives[1..].iter().map(|drive| drive.0).collect();
    }
    let near = |one: &&Generation| one.number.abs_diff(first.number) == 1 && is_plain(one);
    Generation::all().iter().filter(near).collect()
}

/// Media of a format between two generations, such as Type M, have no drive of their own.
fn is_plain(generation: &Generation) -> bool {
    !generation.name.contains("Type")
}
