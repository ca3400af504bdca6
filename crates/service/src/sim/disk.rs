//! A virtual disk.

use std::path::{Path, PathBuf};

use base::format::binary_size;
use model::disk::{DiskChanges, DiskParameters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::mount::MountError;
use sim::mount::disk::{
    Access, Backing, CACHED_NAME, Clock, DISK_NAME, DiskMount, DiskProperties, DiskSettings,
    DiskUnmounter, LoopChoice,
};
use sim::speed_up::SpeedUp;

use super::tape::real_time;
use super::{TimeChoice, absolute, check_mountpoint, mount_hint};
use crate::Answer;
use crate::calibration::disk::{CalibratedDisk, DiskFromRuns};
use crate::failure::Failure;
use crate::model_names::DiskName;

/// A disk to simulate. Times, rates and sizes that are given override those of the preset and of
/// the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimDiskRequest {
    /// An existing folder.
    pub mountpoint: PathBuf,
    /// Kind of disk; the one nearest to the disk of `from`, or sas15k, if not given.
    #[serde(default)]
    pub preset: Option<DiskName>,
    /// An experiment on the disk, which its parameters are taken from.
    #[serde(default)]
    pub from: Option<PathBuf>,
    /// Storage of the disk: a file, created if missing, or a block device.
    pub backing: PathBuf,
    /// Size of a new backing file.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Time of each request, whatever its place and size; 60 at most.
    #[serde(default)]
    pub service_seconds: Option<f64>,
    /// Extra time for a request that does not start where the last one ended, wherever it is, in
    /// place of heads; 60 at most.
    #[serde(default)]
    pub seek_seconds: Option<f64>,
    /// Rate of the disk as a whole.
    #[serde(default)]
    pub bytes_per_second: Option<u64>,
    /// Requests that are served at once, 1 to 1024.
    #[serde(default)]
    pub parallel: Option<u16>,
    /// Largest request; larger ones are split.
    #[serde(default)]
    pub request_bytes_max: Option<u64>,
    /// Bytes over which the whole way of the heads is spread, the size of the disk or more; that of
    /// the preset, or of a larger disk, if not given.
    #[serde(default)]
    pub capacity_bytes: Option<u64>,
    /// How many times faster than real time it runs.
    #[serde(default = "real_time")]
    pub speed_up: SpeedUp,
    /// Whether requests take time.
    #[serde(default)]
    pub time: TimeChoice,
    /// Whether to attach a loop device, as root.
    #[serde(default)]
    pub loop_device: bool,
    /// Whether to refuse writes.
    #[serde(default)]
    pub read_only: bool,
}

/// The longest time of a request that can be set.
pub const SECONDS_MAX: f64 = 60.0;
/// Most requests that can be set to be served at once.
pub const PARALLEL_MAX: u16 = 1024;

/// A virtual disk that is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimDiskAnswer {
    /// The file on which each call is one request to the disk.
    pub disk: String,
    /// The same bytes through the page cache.
    pub cached: String,
    /// The file of its state.
    pub status: String,
    /// The loop device over it.
    #[serde(rename = "loop")]
    pub loop_device: Option<String>,
    /// The preset that its parameters come from.
    pub preset: String,
    /// The experiment that its parameters come from.
    pub from: Option<CalibratedDisk>,
    pub bytes: u64,
    pub parameters: DiskProperties,
}

impl Answer for SimDiskAnswer {
    const COMMAND: &'static str = "sim disk";
}

/// The default preset.
const PRESET: &str = "sas15k";

/// The disk to simulate, and the experiment that its parameters come from.
struct Played {
    /// Name of the preset.
    name: String,
    parameters: DiskParameters,
    from: Option<DiskFromRuns>,
}

impl Played {
    /// Options override measured parameters, which override those of the preset.
    fn of(request: &SimDiskRequest) -> Result<Played, Failure> {
        let named = request.preset.as_ref();
        let load =
            |path: &PathBuf| DiskFromRuns::load(path, named.map(|preset| preset.name.as_str()));
        let from = request.from.as_ref().map(load).transpose()?;
        let (name, parameters) = match (&from, named) {
            (Some(from), _) => (from.preset.clone(), from.parameters.clone()),
            (None, Some(preset)) => (preset.name.clone(), preset.parameters.clone()),
            (None, None) => (PRESET.to_owned(), DiskParameters::sas15k()),
        };
        Ok(Played { name, parameters: parameters.with(&changes(request)), from })
    }
}

/// A mounted disk.
pub struct MountedDisk {
    mount: DiskMount,
    /// The file on which each call is one request to the disk.
    pub disk: PathBuf,
    pub bytes: u64,
    /// The preset that its parameters come from.
    pub preset: String,
    pub parameters: DiskParameters,
    /// The experiment that its parameters come from.
    pub from: Option<DiskFromRuns>,
}

/// Mounts a disk, and serves it until it is unmounted.
///
/// # Errors
/// When it cannot be mounted, or its storage cannot be used.
pub fn mount(request: &SimDiskRequest) -> Result<MountedDisk, Failure> {
    check(request)?;
    let Played { name, parameters, from } = Played::of(request)?;
    let access = if request.read_only { Access::ReadOnly } else { Access::ReadWrite };
    // Before the backing file is made.
    check_mountpoint("disk", &request.mountpoint)?;
    check_capacity(request, &parameters, request.size_bytes.unwrap_or(0))?;
    let path = absolute(&request.backing)?;
    let backing = Backing::open(&path, request.size_bytes, access)
        .map_err(|error| Failure::new(&error, backing_hint(&error)))?;
    let bytes = backing.bytes();
    check_capacity(request, &parameters, bytes)?;
    let parameters = parameters.holding(bytes);
    let settings = DiskSettings {
        name: name.clone(),
        parameters: parameters.clone(),
        backing,
        clock: match request.time {
            TimeChoice::True => Clock::Times(request.speed_up),
            TimeChoice::None => Clock::None,
        },
        loop_device: if request.loop_device { LoopChoice::Attach } else { LoopChoice::None },
    };
    let disk = absolute(&request.mountpoint)?.join(DISK_NAME);
    let mount = DiskMount::new(settings, &request.mountpoint)
        .map_err(|error| Failure::new(&error, disk_hint(&error, request)))?;
    Ok(MountedDisk { mount, disk, bytes, preset: name, parameters, from })
}

impl MountedDisk {
    /// Returns what ends it.
    pub fn unmounter(&self) -> DiskUnmounter {
        self.mount.unmounter()
    }

    /// The loop device over it.
    pub fn loop_path(&self) -> Option<&Path> {
        self.mount.loop_path()
    }

    /// Waits until it is unmounted.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn wait(self) -> Result<(), Failure> {
        self.mount.wait().map_err(|error| Failure::new(&error, None))
    }

    /// As an answer.
    pub fn answer(&self) -> SimDiskAnswer {
        SimDiskAnswer {
            disk: self.disk.display().to_string(),
            cached: self.disk.with_file_name(CACHED_NAME).display().to_string(),
            status: self.disk.with_file_name("status").display().to_string(),
            loop_device: self.loop_path().map(|path| path.display().to_string()),
            preset: self.preset.clone(),
            from: self.from.as_ref().map(DiskFromRuns::answer),
            bytes: self.bytes,
            parameters: DiskProperties::from(&self.parameters),
        }
    }
}

/// Refuses values that no disk has.
fn check(request: &SimDiskRequest) -> Result<(), Failure> {
    let is_time = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    let times = [request.service_seconds, request.seek_seconds];
    if !times.into_iter().flatten().all(is_time) {
        return Err(Failure::of("the time of a request must be at most 60 s", None));
    }
    if request.parallel.is_some_and(|parallel| !(1..=PARALLEL_MAX).contains(&parallel)) {
        return Err(Failure::of("a disk serves 1 to 1024 requests at once", None));
    }
    Ok(())
}

/// Refuses a capacity of a disk without heads, or one that the disk does not fit into.
fn check_capacity(
    request: &SimDiskRequest,
    parameters: &DiskParameters,
    bytes: u64,
) -> Result<(), Failure> {
    let Some(capacity_bytes) = request.capacity_bytes else { return Ok(()) };
    if parameters.capacity_bytes().is_none() {
        let what = "--capacity is for disks with heads, and this one has none";
        let hint = "use --preset sas15k, sata7200 or array, without --seek and --service-time";
        return Err(Failure::of(what, Some(hint)));
    }
    if capacity_bytes < bytes {
        let (given, needed) = (binary_size(capacity_bytes), binary_size(bytes));
        let what = format!("--capacity {given} is less than the size of the disk, {needed}");
        return Err(Failure::of(what, Some("give the size of the disk, or more")));
    }
    Ok(())
}

fn changes(request: &SimDiskRequest) -> DiskChanges {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    DiskChanges {
        service_ns: request.service_seconds.map(ns),
        seek_ns: request.seek_seconds.map(ns),
        bytes_per_second: request.bytes_per_second,
        servers: request.parallel.map(usize::from),
        request_bytes_max: request.request_bytes_max,
        capacity_bytes: request.capacity_bytes,
    }
}

fn backing_hint(error: &MountError) -> Option<String> {
    match error {
        MountError::NoSize { .. } => Some("add its size, for example --size 10G".to_owned()),
        MountError::OtherSize { .. } => {
            Some("leave out --size, or name a file that does not exist yet".to_owned())
        }
        MountError::Open { source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Some("add --read-only to open it without write access".to_owned())
        }
        MountError::Mounted { .. } => Some("unmount it, or add --read-only".to_owned()),
        _ => None,
    }
}

fn disk_hint(error: &MountError, request: &SimDiskRequest) -> Option<String> {
    match error {
        MountError::Mount { .. } => Some(mount_hint("disk", &request.mountpoint)),
        MountError::Through { .. } | MountError::LoopControl { .. } => {
            Some("--loop needs root and the loop driver (modprobe loop)".to_owned())
        }
        _ => None,
    }
}
