//! `takeup sim disk`: a virtual disk for any program.

use std::path::PathBuf;
use std::str::FromStr;

use base::escape::escape_path;
use clap::{Args, ValueEnum};
use model::disk::{DiskChanges, DiskParameters, PRESETS};
use report::table::Colour;
use serde_json::json;
use sim::mount::MountError;
use sim::mount::disk::{
    Access, Backing, BackingError, CACHED_NAME, Clock, DISK_NAME, DiskError, DiskMount,
    DiskSettings, LoopChoice, LoopError, parameters,
};
use sim::speed_up::SpeedUp;

use super::{absolute, check_mountpoint, mount_hint, unmount_on_signal};
use crate::calibration::disk::DiskFromRuns;
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use arguments::quantity::{Rate, Size, seconds};
use service::failure::Failure;

/// Mount a virtual disk; ends when it is unmounted or interrupted
///
/// The folder has three files: `disk`, on which each call is one request to the disk; `cached`, the
/// same bytes through the page cache; and `status`. Requests take as long as on such a disk, which
/// serves as many of them at once.
#[derive(Args, Debug)]
pub(super) struct DiskArgs {
    /// An existing folder
    mountpoint: PathBuf,
    /// Kind of disk: sas15k, sata7200, ssd-sata, nvme, or array:N for N disks of 15,000 rpm; by
    /// default the one nearest to the disk of --from, or sas15k
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
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
    #[arg(long, value_name = "TIME")]
    service_time: Option<Time>,
    /// Extra time for a request that does not start where the last one ended
    #[arg(long, value_name = "TIME")]
    seek: Option<Time>,
    /// Rate of the disk as a whole
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<Rate>,
    /// Requests that are served at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    parallel: Option<u16>,
    /// Largest request; larger ones are split
    #[arg(long, value_name = "SIZE")]
    max_request: Option<Size>,
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
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DiskTime {
    /// As long as on such a disk
    True,
    /// As short as on the backing file
    None,
}

/// A preset and its name.
#[derive(Clone, Debug)]
struct Preset {
    name: String,
    parameters: DiskParameters,
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
    fn of(arguments: &DiskArgs) -> Result<Played, Failure> {
        let named = arguments.preset.as_ref();
        let load =
            |path: &PathBuf| DiskFromRuns::load(path, named.map(|preset| preset.name.as_str()));
        let from = arguments.from.as_ref().map(load).transpose()?;
        let (name, parameters) = match (&from, named) {
            (Some(from), _) => (from.preset.clone(), from.parameters.clone()),
            (None, Some(preset)) => (preset.name.clone(), preset.parameters.clone()),
            (None, None) => (PRESET.to_owned(), DiskParameters::sas15k()),
        };
        Ok(Played { name, parameters: parameters.with(&changes(arguments)), from })
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Preset, String> {
        let parameters = DiskParameters::named(text)
            .ok_or_else(|| format!("known are {}, and array:N", PRESETS.join(" ")))?;
        Ok(Preset { name: text.to_owned(), parameters })
    }
}

/// A time with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Time {
    ns: u64,
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        const LIMIT_SECONDS: f64 = 60.0;
        match seconds(text)? {
            most if most <= LIMIT_SECONDS => Ok(Time { ns: (most * 1e9).round() as u64 }),
            _ => Err("must be at most 60 s".to_owned()),
        }
    }
}

/// Mounts the disk and waits until it is unmounted.
pub(super) fn run(arguments: &DiskArgs) -> Result<(), Failure> {
    let played = Played::of(arguments)?;
    let access = if arguments.read_only { Access::ReadOnly } else { Access::ReadWrite };
    // Before the backing file is made.
    check_mountpoint("disk", &arguments.mountpoint)?;
    let path = absolute(&arguments.backing)?;
    let backing = Backing::open(&path, arguments.size.map(|size| size.0), access)
        .map_err(|error| Failure::new(&error, backing_hint(&error)))?;
    let bytes = backing.bytes();
    let settings = DiskSettings {
        name: played.name.clone(),
        parameters: played.parameters.clone(),
        backing,
        clock: match arguments.time {
            DiskTime::True => Clock::Times(arguments.speed_up),
            DiskTime::None => Clock::None,
        },
        loop_device: if arguments.loop_device { LoopChoice::Attach } else { LoopChoice::None },
    };
    let mount = DiskMount::new(settings, &arguments.mountpoint)
        .map_err(|error| Failure::new(&error, disk_hint(&error, arguments)))?;
    let unmounter = mount.unmounter();
    unmount_on_signal("disk", move || unmounter.unmount());
    tell(arguments, &mount, bytes, &played)?;
    mount.wait().map_err(|error| Failure::new(&error, None))
}

fn changes(arguments: &DiskArgs) -> DiskChanges {
    DiskChanges {
        service_ns: arguments.service_time.map(|time| time.ns),
        seek_ns: arguments.seek.map(|time| time.ns),
        bytes_per_second: arguments.bandwidth.map(|rate| rate.0),
        servers: arguments.parallel.map(usize::from),
        request_bytes_max: arguments.max_request.map(|size| size.0),
    }
}

/// Reports that the disk is ready. What a script needs goes to standard output.
fn tell(
    arguments: &DiskArgs,
    mount: &DiskMount,
    bytes: u64,
    played: &Played,
) -> Result<(), Failure> {
    let disk = absolute(&arguments.mountpoint)?.join(DISK_NAME);
    if arguments.json {
        let document = json!({
            "command": "sim disk",
            "disk": disk.display().to_string(),
            "cached": disk.with_file_name(CACHED_NAME).display().to_string(),
            "status": disk.with_file_name("status").display().to_string(),
            "loop": mount.loop_path().map(|path| path.display().to_string()),
            "preset": played.name,
            "from": played.from.as_ref().map(DiskFromRuns::document),
            "bytes": bytes,
            "parameters": parameters(&played.parameters),
        });
        return to_standard_output(format!("{document}\n").as_bytes());
    }
    let name = &played.name;
    let over = match mount.loop_path() {
        Some(path) => format!(" and {}", escape_path(path)),
        None => String::new(),
    };
    let disk = escape_path(&disk);
    to_standard_error(&format!("takeup: {name} disk at {disk}{over} until it is unmounted\n"));
    if let Some(from) = &played.from {
        to_standard_error(&from.text(Colour::Plain));
    }
    match mount.loop_path() {
        Some(path) => to_standard_output(format!("{}\n", path.display()).as_bytes()),
        None => Ok(()),
    }
}

fn backing_hint(error: &BackingError) -> Option<String> {
    match error {
        BackingError::NoSize { .. } => Some("add its size, for example --size 10G".to_owned()),
        BackingError::OtherSize { .. } => {
            Some("leave out --size, or name a file that does not exist yet".to_owned())
        }
        BackingError::Open { source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Some("add --read-only to open it without write access".to_owned())
        }
        BackingError::Mounted { .. } => Some("unmount it, or add --read-only".to_owned()),
        _ => None,
    }
}

fn disk_hint(error: &DiskError, arguments: &DiskArgs) -> Option<String> {
    match error {
        DiskError::Mount(MountError::Mount { .. }) => {
            Some(mount_hint("disk", &arguments.mountpoint))
        }
        DiskError::Through { .. } | DiskError::Loop(LoopError::Control { .. }) => {
            Some("--loop needs root and the loop driver (modprobe loop)".to_owned())
        }
        _ => None,
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
