//! Time, tapes and stops of a backup, before anything is written.

mod answer;
mod curves;
mod disk;
mod measure;
mod request;
mod window;
mod words;

use std::num::NonZero;
use std::path::PathBuf;

use flow::cancel::Cancel;
use model::engine::{Origin, Work};
use model::plan::alternatives::{Alternative, Choices, Effort, alternatives, best};
use model::plan::window::needs;
use model::plan::{Compression, Drain, Plan, PlanSource, Setup};
use model::program::Ratio;
use model::tape::generation::Generation;
use model::tape::media::{MediumAccess, access};
use model::tape::parameters::{self, TapeParameters};

use crate::calibration::FromRuns;
use crate::calibration::disk::DiskFromRuns;
use crate::failure::Failure;
use crate::outcome::Outcome;
use disk::FilesToRead;
use measure::{Measurement, measure};

pub use answer::PlanAnswer;
pub use curves::{CurvePoint, PlanCurve};
pub use disk::{DiskReads, HeadsReads};
pub use measure::{MeasuredAccess, MeasuredSource};
pub use request::{
    PlanDataRequest, PlanRequest, PlanSourceRequest, RefillChoice, WhoCompresses, check_ratio,
};
pub use window::TimeWindow;
pub use words::{BetterWay, back_hitches, rounded};

/// A plan with everything that its presentation needs.
#[derive(Debug)]
pub struct Planned {
    /// The generation, with the maker if given.
    pub drive: &'static Generation,
    /// The generation of its media, if it differs.
    pub medium: Option<&'static Generation>,
    /// Other drives to compare it with.
    pub others: Vec<&'static Generation>,
    /// The setup as requested.
    pub setup: Setup,
    /// The requested plan and the alternatives; at least one.
    pub list: Vec<Alternative>,
    /// The experiment that the drive model comes from.
    pub from: Option<FromRuns>,
    /// The experiment that the disk of the source comes from.
    pub source_from: Option<DiskFromRuns>,
    /// How the disk of the source is assumed to be read, if the rate comes from a disk.
    pub reads: Option<DiskReads>,
    /// The paths of the backup, if given.
    pub paths: Vec<PathBuf>,
    /// The measurement of the paths.
    pub measured: Option<MeasuredSource>,
    /// Ratio of the data on a drive that compresses.
    pub drive_ratio: Ratio,
    /// The number of cores, if they limit the rate of the source.
    pub bounded_by_cores: Option<usize>,
    /// Whether the ratio of compression is a guess.
    pub is_ratio_assumed: bool,
    /// The available time, if given.
    pub window: Option<TimeWindow>,
}

/// Defaults if nothing is measured or given.
const RATIO_ASSUMED: f64 = 2.0;
const FILE_MICROSECONDS: u32 = 50;
/// Plans a backup. Paths are measured first, until `cancel` ends it.
///
/// # Errors
/// When a record or a path cannot be read, when something that a plan needs is not known, or when
/// it was cancelled.
pub fn plan(request: &PlanRequest, cancel: &Cancel) -> Result<Planned, Failure> {
    request.check()?;
    let named = request.drives.first().map(|drive| drive.0);
    let from = request.from.as_deref().map(|path| FromRuns::load(path, named)).transpose()?;
    let drive = from.as_ref().map(|from| from.generation).or(named);
    let drive =
        drive.ok_or_else(|| Failure::of("no drive is named", Some("add --drive or --from")))?;
    let source_from = source_from(&request.source)?;
    let measured = match &request.paths[..] {
        [] => None,
        paths => Some(measure(&Measurement::of(request, paths), cancel)?),
    };
    let known = Known {
        drive,
        from: from.as_ref(),
        source_from: source_from.as_ref(),
        measured: measured.as_ref(),
        reads: disk_reads(request, source_from.as_ref(), measured.as_ref()),
    };
    let reads = known.reads;
    let setup = setup(request, &known)?;
    let generations = compared(request, drive);
    let drive_ratio = drive_ratio(request, &known);
    let choices = Choices {
        drive_ratio,
        software: software(request, measured.as_ref()),
        staging_bytes_per_second: request.source.staging_bytes_per_second,
        host_bytes_per_second: processor_bound(&request.source, setup.source.size_bytes, None),
        generations: &generations,
    };
    let list = alternatives(&setup, "as asked", &choices)?;
    let window = window(request, &setup)?;
    let medium = request.medium.map(|medium| medium.0);
    Ok(Planned {
        drive,
        medium: medium.filter(|medium| medium.name != drive.name),
        others: request.drives.iter().skip(1).map(|drive| drive.0).collect(),
        list,
        reads,
        drive_ratio,
        bounded_by_cores: bounded_by_host(request, &setup),
        is_ratio_assumed: known_ratio(request, &known).is_none(),
        window,
        setup,
        from,
        source_from,
        paths: request.paths.clone(),
        measured,
    })
}

impl Planned {
    /// The requested plan.
    pub fn asked(&self) -> &Plan {
        &self.list[0].plan
    }

    /// How the command ends: a plan that does not fit into the available time is a warning.
    pub fn outcome(&self) -> Outcome {
        let fits = self.window.is_none_or(|window| window.fits(self.asked()));
        if fits { Outcome::Done } else { Outcome::Warned }
    }

    /// The name of the best alternative with at most this effort.
    pub fn best_name(&self, most: Effort) -> Option<&str> {
        best(&self.list, most).map(|one| &*one.name)
    }

    /// The same backup with the drive of each maker, if the maker is not given and their speeds
    /// differ.
    pub fn makers(&self) -> Vec<(&'static Generation, Plan)> {
        let setup = &self.setup;
        let is_of_table = matches!(setup.drive.speeds_origin, parameters::Origin::Table(_));
        if self.drive.maker.is_some() || self.medium.is_some() || !is_of_table {
            return Vec::new();
        }
        let planned = |row: &'static Generation| {
            let own = TapeParameters::of(row);
            let drive = TapeParameters {
                speeds_bytes_per_second: own.speeds_bytes_per_second,
                speeds_origin: own.speeds_origin,
                ..setup.drive.clone()
            };
            Some((row, model::plan::plan(&Setup { drive, ..setup.clone() }).ok()?))
        };
        self.drive.by_maker().filter_map(planned).collect()
    }
}

/// The requirements for ending in time.
fn window(request: &PlanRequest, setup: &Setup) -> Result<Option<TimeWindow>, Failure> {
    let Some(seconds) = request.window_seconds else { return Ok(None) };
    let most = processor_bound(&request.source, setup.source.size_bytes, None);
    let needs = needs(setup, seconds, most)?;
    Ok(Some(TimeWindow { seconds, needs }))
}

/// Sources besides the request.
struct Known<'a> {
    /// The first drive.
    drive: &'static Generation,
    /// An experiment on it.
    from: Option<&'a FromRuns>,
    /// An experiment on the disk of the source.
    source_from: Option<&'a DiskFromRuns>,
    /// The measurement of PATH.
    measured: Option<&'a MeasuredSource>,
    /// How the disk of the source is read, if the rate comes from a disk.
    reads: Option<DiskReads>,
}

fn setup(request: &PlanRequest, known: &Known<'_>) -> Result<Setup, Failure> {
    let measured = known.measured;
    let own = known.drive;
    let medium = request.medium.map_or(Ok(own), |medium| writable(own, medium.0))?;
    let mut drive = TapeParameters::with_medium(own, medium);
    if let (true, Some(most)) = (request.half_height, known.drive.half_height_speed_max) {
        drive.speeds_bytes_per_second.retain(|speed| *speed <= most);
    }
    if let Some(from) = known.from {
        from.calibration.apply(&mut drive);
    }
    for setting in &request.settings {
        setting.apply(&mut drive)?;
    }
    let compression = match request.data.compression {
        WhoCompresses::None => Compression::None,
        WhoCompresses::Drive => Compression::Drive(drive_ratio(request, known)),
        WhoCompresses::Software => {
            let (ratio, bytes_per_second) = software(request, measured).ok_or_else(|| {
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
        drives: u64::from(request.count.get()),
        source: source(request, known)?,
        compression,
        ring_bytes: request.ring_bytes,
        start_fill_percent: request.start_fill_percent,
        refill: request.refill.into(),
        drain: Drain::Unlimited,
        block_bytes: request.block_bytes,
        change_ns: u64::from(request.change_seconds) * 1_000_000_000,
    })
}

/// The disk of the source, if there is an experiment on it.
fn source_from(given: &PlanSourceRequest) -> Result<Option<DiskFromRuns>, Failure> {
    given.check_reads()?;
    let named = given.disk.as_ref().map(|disk| disk.name.as_str());
    given.from.as_deref().map(|path| DiskFromRuns::load(path, named)).transpose()
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
fn source(request: &PlanRequest, known: &Known<'_>) -> Result<PlanSource, Failure> {
    let (given, measured) = (&request.source, known.measured);
    let missing = |what: &str, hint| Failure::of(format!("{what} is not known"), Some(hint));
    let size_bytes = given
        .size_bytes
        .or(measured.map(|measured| measured.size_bytes))
        .ok_or_else(|| missing("the size of the source", "add --size, or a PATH to measure"))?;
    let files = given.files.or(measured.map(|measured| measured.files)).unwrap_or(0);
    let named = given.disk.as_ref().map(|disk| &disk.parameters);
    let disk = known.source_from.map(|from| &from.parameters).or(named);
    let (bytes_per_second, disk_file_ns) = match (given.bytes_per_second, disk, measured) {
        (Some(rate), _, _) if rate < SLOWEST_BYTES_PER_SECOND => {
            let what = format!("--source-rate {rate}: only {rate} bytes a second");
            let hint = format!("write {rate}MB for megabytes a second");
            return Err(Failure::of(what, Some(&hint)));
        }
        (Some(rate), _, _) => (rate, None),
        (None, Some(disk), _) => {
            given.check_heads(disk, files)?;
            let tree = FilesToRead { size_bytes, files, ring_bytes: request.ring_bytes };
            let reads = known.reads.unwrap_or_else(|| DiskReads::new(given, disk, tree));
            (reads.bytes_per_second(disk, tree), Some(reads.file_ns(disk, tree)))
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
    let per_file_ns = given.file_microseconds.map(|us| u64::from(us) * 1000).or(disk_file_ns);
    let file_ns = per_file_ns.unwrap_or(u64::from(FILE_MICROSECONDS) * 1000);
    Ok(PlanSource { size_bytes, files, bytes_per_second, file_ns })
}

/// How the disk of the source is read, unless a rate is given.
fn disk_reads(
    request: &PlanRequest,
    source_from: Option<&DiskFromRuns>,
    measured: Option<&MeasuredSource>,
) -> Option<DiskReads> {
    let given = &request.source;
    let named = given.disk.as_ref().map(|disk| &disk.parameters);
    let disk = source_from.map(|from| &from.parameters).or(named)?;
    let size_bytes = given.size_bytes.or(measured.map(|it| it.size_bytes)).unwrap_or(0);
    let files = given.files.or(measured.map(|it| it.files)).unwrap_or(0);
    let tree = FilesToRead { size_bytes, files, ring_bytes: request.ring_bytes };
    Some(DiskReads::new(given, disk, tree))
}

/// The highest rate that the cores of the host can process, in bytes a second; `None` if the source
/// was measured on this host. Compression in software has a rate of its own.
fn processor_bound(
    given: &PlanSourceRequest,
    size_bytes: u64,
    measured: Option<&MeasuredSource>,
) -> Option<u64> {
    let is_given = given.bytes_per_second.is_some() || given.has_disk();
    let is_measured = measured.is_some() && !is_given;
    let cores = given.cores.map_or_else(flow::crew::cores, NonZero::get);
    let work = Work { bytes: size_bytes as f64, files: 0.0, origin: Origin::Disk };
    let foretold = work.foretell(cores, f64::INFINITY);
    let bound = (size_bytes as f64 / foretold.seconds) as u64;
    (!is_measured && size_bytes > 0).then_some(bound)
}

/// The number of cores, if the host limits the source.
fn bounded_by_host(request: &PlanRequest, setup: &Setup) -> Option<usize> {
    let bound = processor_bound(&request.source, setup.source.size_bytes, None)?;
    let is_bounded = setup.source.bytes_per_second == bound;
    is_bounded.then(|| request.source.cores.map_or_else(flow::crew::cores, NonZero::get))
}

fn drive_ratio(request: &PlanRequest, known: &Known<'_>) -> Ratio {
    Ratio::of(known_ratio(request, known).unwrap_or(RATIO_ASSUMED))
}

/// A given ratio goes before the sample of PATH, and that before the data of the experiment on the
/// drive.
fn known_ratio(request: &PlanRequest, known: &Known<'_>) -> Option<f64> {
    let sampled = known.measured.and_then(|measured| measured.drive_ratio);
    let written = known.from.and_then(|from| from.calibration.own_ratio());
    request.data.ratio.or(sampled).or(written.map(|own| own.value))
}

fn software(request: &PlanRequest, measured: Option<&MeasuredSource>) -> Option<(Ratio, u64)> {
    let given = request.data.software_ratio.zip(request.data.software_bytes_per_second);
    let sampled = measured.and_then(|measured| measured.software);
    let found = given.or(sampled);
    found.map(|(ratio, rate)| (Ratio::of(ratio), rate.max(1)))
}

/// The other drives that were named, or the generations before and after.
fn compared(request: &PlanRequest, first: &Generation) -> Vec<&'static Generation> {
    if request.drives.len() > 1 {
        return request.drives[1..].iter().map(|drive| drive.0).collect();
    }
    let near = |one: &&Generation| one.number.abs_diff(first.number) == 1 && one.has_drives();
    Generation::all().iter().filter(near).collect()
}
