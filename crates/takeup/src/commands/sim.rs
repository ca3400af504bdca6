//! `takeup sim`: a virtual drive or disk for any program.

mod disk;

use crate::exit_code::FailureExitCode as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use model::tape::generation::Generation;
use model::tape::media::{MediumAccess, MediumRefused, access};
use model::tape::parameters::{Known, TapeParameters};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use sim::mount::drive::{DriveMount, DriveMountSettings};
use sim::speed_up::SpeedUp;
use sim::tape::pace::Compression;
use sim::tape::real_time::{Gauge, Ratio, RealTime};
use sim::tape::{
    Cartridge, CartridgeSettings, DriveSettings, MediumFileError, VirtualDrive, media_in,
    room_for_medium,
};

use super::plan::Setting;
use crate::calibration::FromRuns;
use crate::exit_code::FAILED;
use crate::interrupt::listen;
use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;
use arguments::quantity::Size;
use base::escape::escape;
use base::format::size;
use report::table::Colour;
use service::failure::{Failure, with_causes};

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

#[derive(Debug, Subcommand)]
enum SimCommand {
    Tape(TapeArgs),
    Disk(disk::DiskArgs),
    Status(StatusArgs),
    Load(LoadArgs),
    Eject(EjectArgs),
}

/// Mount a virtual tape drive; ends when it is unmounted or interrupted
#[derive(Args, Debug)]
struct TapeArgs {
    /// An existing folder
    mountpoint: PathBuf,
    /// Generation of the drive, lto1 to lto10; by default that of --from, or lto7
    #[arg(long, value_name = "GENERATION")]
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
    /// Generation of the cartridge if it is older than the drive; lto7m is LTO-7 Type M; by default
    /// that of the file, or of the drive
    #[arg(long, value_name = "GENERATION")]
    medium_generation: Option<GenerationName>,
    /// Native capacity of a new cartridge; by default that of its generation, or 1 GiB in memory
    #[arg(long, value_name = "SIZE")]
    capacity: Option<Size>,
    /// Run this many times faster than real time, for example 2.5 or 0.5
    #[arg(long, default_value_t = SpeedUp::ONE, value_name = "N")]
    speed_up: SpeedUp,
    /// Whether commands take time
    #[arg(long, default_value = "true", value_name = "WHICH")]
    time: TimeChoice,
    /// Compression by the drive: on measures the ratio of the data, a number sets it
    #[arg(long, default_value = "on", value_name = "on|off|RATIO")]
    compression: CompressionChoice,
    /// Change a parameter of the drive; takeup plan --parameters shows their names
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<Setting>,
}

/// Print the state of a virtual drive or disk as JSON
#[derive(Args, Debug)]
struct StatusArgs {
    /// The folder on which it is mounted
    mountpoint: PathBuf,
}

/// Put another cartridge into a virtual drive
#[derive(Args, Debug)]
struct LoadArgs {
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
struct EjectArgs {
    /// The folder on which it is mounted
    mountpoint: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeChoice {
    /// As long as on a drive of that generation
    True,
    /// As short as on this machine
    None,
}

/// A generation of drives or media, as typed.
#[derive(Clone, Copy, Debug)]
pub struct GenerationName(pub &'static Generation);

impl FromStr for GenerationName {
    type Err = String;

    /// `lto8`, `LTO-8`; `lto7m` and `m8` for LTO-7 Type M.
    fn from_str(text: &str) -> Result<GenerationName, String> {
        let plain = |name: &str| {
            let kept = name.chars().filter(char::is_ascii_alphanumeric);
            kept.collect::<String>().to_ascii_lowercase().replace("type", "")
        };
        let typed = match plain(text).as_str() {
            "m8" => "lto7m".to_owned(),
            typed => typed.to_owned(),
        };
        let known = Generation::all().iter().find(|known| plain(known.name) == typed);
        known.map(GenerationName).ok_or_else(|| {
            let names: Vec<String> = Generation::all().iter().map(|one| plain(one.name)).collect();
            format!("known are {}", names.join(" "))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CompressionChoice {
    Off,
    Measured,
    Ratio(f64),
}

impl FromStr for CompressionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<CompressionChoice, String> {
        match (text, text.parse::<f64>()) {
            ("off", _) => Ok(CompressionChoice::Off),
            ("on", _) => Ok(CompressionChoice::Measured),
            (_, Ok(ratio)) if (0.5..=1000.0).contains(&ratio) => {
                Ok(CompressionChoice::Ratio(ratio))
            }
            _ => Err("must be on, off, or a ratio from 0.5 to 1000".to_owned()),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &SimArgs) -> ExitCode {
    let result = match &arguments.command {
        SimCommand::Tape(arguments) => tape(arguments),
        SimCommand::Disk(arguments) => disk::run(arguments),
        SimCommand::Status(arguments) => status(&arguments.mountpoint),
        SimCommand::Load(arguments) => load(arguments),
        SimCommand::Eject(arguments) => change_medium(&arguments.mountpoint, b"\n"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

/// Default capacity of cartridges in memory.
const MEMORY_CAPACITY_BYTES: u64 = 1 << 30;
/// The largest block of LTO drives.
const BLOCK_BYTES_MAX: u64 = 8 << 20;

/// The default generation.
const GENERATION: &str = "LTO-7";

/// The drive to simulate, and the experiment that its parameters come from.
struct Played {
    generation: &'static Generation,
    from: Option<FromRuns>,
}

impl Played {
    fn of(arguments: &TapeArgs) -> Result<Played, Failure> {
        let named = arguments.drive.map(|drive| drive.0);
        let from = arguments.from.as_deref().map(|path| FromRuns::load(path, named)).transpose()?;
        let usual = || Generation::all().iter().find(|known| known.name == GENERATION);
        let generation = from.as_ref().map(|from| from.generation).or(named).or_else(usual);
        let generation = generation.expect("the table has the usual generation");
        let played = Played { generation, from };
        // Wrong settings fail here, before a medium is made.
        let mut parameters = played.with_medium(generation);
        for setting in &arguments.settings {
            setting.apply(&mut parameters)?;
        }
        Ok(played)
    }

    /// The model with a medium. The results of an experiment only hold for media of the drive's own
    /// generation.
    fn with_medium(&self, medium: &'static Generation) -> TapeParameters {
        let mut parameters = TapeParameters::with_medium(self.generation, medium);
        if let Some(from) = self.from.as_ref().filter(|_| medium.name == self.generation.name) {
            from.calibration.apply(&mut parameters);
        }
        parameters
    }
}

fn tape(arguments: &TapeArgs) -> Result<(), Failure> {
    let played = Played::of(arguments)?;
    let generation = played.generation;
    let medium = arguments.medium.as_deref().map(absolute).transpose()?;
    check_mountpoint("drive", &arguments.mountpoint)?;
    let Loaded { cartridge, new_medium, mut parameters, access } =
        loaded(arguments, &played, medium.as_deref())?;
    fit_length(&mut parameters, &cartridge);
    for setting in &arguments.settings {
        setting.apply(&mut parameters)?;
    }
    let drive = VirtualDrive::new("virtual drive", settings(generation));
    let recorded_bytes = cartridge.used_bytes();
    let capacity_bytes = new_medium.capacity_bytes;
    let medium_density = cartridge.density();
    drive.insert(cartridge);
    drive.set_compression(match arguments.compression {
        CompressionChoice::Off => Compression::Off,
        CompressionChoice::Measured | CompressionChoice::Ratio(_) => Compression::On,
    });
    let gauge = (arguments.time == TimeChoice::True)
        .then(|| take_time(arguments, parameters, recorded_bytes, &drive));
    let name = generation.name;
    let generation = name.to_owned();
    let medium_path = medium.clone();
    let is_read_only = access == MediumAccess::ReadOnly;
    let settings = DriveMountSettings {
        drive,
        gauge: gauge.clone(),
        generation,
        medium,
        new_medium,
        is_read_only,
    };
    let mut mount = DriveMount::new(settings, &arguments.mountpoint, BLOCK_BYTES_MAX)
        .map_err(|error| Failure::new(&error, Some(mount_hint("drive", &arguments.mountpoint))))?;
    let mut unmounter = mount.unmounter(gauge);
    unmount_on_signal("drive", move || unmounter.unmount());
    let room = medium_path.as_deref().and_then(room_for_medium);
    let older = Generation::of_density(medium_density);
    to_standard_error(&greeting(name, arguments, older, access, mount.block_bytes_max()));
    if let Some(from) = played.from.filter(|_| older.is_none_or(|older| older.name == name)) {
        to_standard_error(&from.text(Colour::Plain));
    }
    to_standard_error(&room_warning(capacity_bytes.saturating_sub(recorded_bytes), room));
    mount.run().map_err(|error| Failure::new(&error, None))
}

/// A cartridge, and the parameters of drive and cartridge together.
struct Loaded {
    cartridge: Cartridge,
    new_medium: CartridgeSettings,
    parameters: TapeParameters,
    access: MediumAccess,
}

/// Opens or makes the requested cartridge. Makes none that the drive does not support.
fn loaded(arguments: &TapeArgs, played: &Played, path: Option<&Path>) -> Result<Loaded, Failure> {
    let drive = played.generation;
    let asked = arguments.medium_generation.map(|name| name.0);
    let refused = |error: &MediumRefused| Failure::new(error, None);
    let wanted = asked.unwrap_or(drive);
    let may_write = access(drive, wanted).map_err(|error| refused(&error))?;
    let is_new = path.is_none_or(|path| std::fs::metadata(path).map_or(true, |it| it.len() == 0));
    if is_new && may_write == MediumAccess::ReadOnly {
        let (drive, medium) = (drive.name, wanted.name);
        let only = format!("an {drive} drive only reads {medium} media");
        let what = format!("{only}, and a new medium is empty");
        return Err(Failure::of(what, Some("choose a --drive that writes such media")));
    }
    let capacity_bytes = match (arguments.capacity, path) {
        (Some(size), _) => size.0,
        (None, Some(_)) => wanted.capacity_bytes,
        (None, None) => MEMORY_CAPACITY_BYTES,
    };
    let new_medium = new_cartridge(wanted, capacity_bytes, &played.with_medium(wanted));
    let Some(path) = path else {
        let cartridge = Cartridge::blank(new_medium.clone());
        let parameters = played.with_medium(wanted);
        return Ok(Loaded { cartridge, new_medium, parameters, access: may_write });
    };
    let cartridge = Cartridge::in_file(path, new_medium.clone())
        .map_err(|error| Failure::new(&error, medium_hint(&error)))?;
    // An unknown density counts as the requested generation, or the drive's.
    let found = Generation::of_density(cartridge.density()).unwrap_or(wanted);
    if asked.is_some_and(|asked| asked.name != found.name) {
        let (path, found, asked) = (path.display(), found.name, wanted.name);
        let what = format!("{path} is an {found} medium, not {asked}");
        return Err(Failure::of(what, Some("name a file that does not exist yet for a new one")));
    }
    let access = access(drive, found).map_err(|error| refused(&error))?;
    if access == MediumAccess::ReadOnly {
        cartridge.protect();
    }
    let new_medium = CartridgeSettings { density: cartridge.density(), ..new_medium };
    let parameters = played.with_medium(found);
    Ok(Loaded { cartridge, new_medium, parameters, access })
}

/// Whether `what` can be mounted there. A file can be mounted on, too, but then hides the drive.
fn check_mountpoint(what: &str, mountpoint: &Path) -> Result<(), Failure> {
    let path = mountpoint.display();
    let failed = |why: &str, hint: &str| {
        let message = format!("cannot mount a virtual {what} on {path}: {why}");
        Failure::of(message, Some(hint))
    };
    match std::fs::metadata(mountpoint) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(failed("not a folder", "name an empty folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(failed("no such folder", &format!("create it: mkdir {path}")))
        }
        Err(error) => Err(failed(&with_causes(&error), &mount_hint(what, mountpoint))),
    }
}

fn take_time(
    arguments: &TapeArgs,
    parameters: TapeParameters,
    recorded_bytes: u64,
    drive: &VirtualDrive,
) -> Gauge {
    let ratio = match arguments.compression {
        CompressionChoice::Off | CompressionChoice::Measured => Ratio::Measured,
        CompressionChoice::Ratio(ratio) => Ratio::Given(ratio),
    };
    let pace = RealTime::new(parameters, recorded_bytes, arguments.speed_up, ratio);
    let gauge = pace.gauge();
    drive.set_pace(Box::new(pace));
    gauge
}

fn new_cartridge(
    generation: &Generation,
    capacity_bytes: u64,
    parameters: &TapeParameters,
) -> CartridgeSettings {
    let share = parameters.capacity_bytes.value / parameters.early_warning_bytes.value.max(1);
    CartridgeSettings {
        capacity_bytes,
        early_warning_bytes: capacity_bytes / share.max(1),
        density: generation.density_code,
        ..CartridgeSettings::default()
    }
}

/// A cartridge that is smaller than usual for its generation has proportionally fewer wraps, and
/// its early warning comes later.
fn fit_length(parameters: &mut TapeParameters, cartridge: &Cartridge) {
    let capacity_bytes = cartridge.capacity_bytes();
    let full = u128::from(parameters.capacity_bytes.value.max(1));
    let wraps = u128::from(parameters.wraps.value) * u128::from(capacity_bytes) / full;
    parameters.wraps = Known::given(u64::try_from(wraps).unwrap_or(u64::MAX).max(1));
    parameters.capacity_bytes = Known::given(capacity_bytes);
    parameters.early_warning_bytes = Known::given(cartridge.early_warning_bytes());
}

fn settings(generation: &Generation) -> DriveSettings {
    DriveSettings {
        product: format!("VIRTUAL {}", generation.name),
        block_bytes_max: BLOCK_BYTES_MAX as u32,
        ..DriveSettings::default()
    }
}

fn greeting(
    name: &str,
    arguments: &TapeArgs,
    medium: Option<&Generation>,
    access: MediumAccess,
    block_bytes_max: u64,
) -> String {
    let folder = arguments.mountpoint.display();
    let other = medium.filter(|medium| medium.name != name).map(|medium| medium.name);
    let mut text = format!("takeup: {name} drive at {folder}/nst0 until it is unmounted\n");
    if let Some(medium) = other {
        let what = match access {
            MediumAccess::ReadAndWrite => "reads and writes it at the speeds of its generation",
            MediumAccess::ReadOnly => "only reads it",
        };
        text.push_str(&format!("takeup: the medium is {medium}; the drive {what}\n"));
    }
    if block_bytes_max < BLOCK_BYTES_MAX {
        text.push_str(&format!(
            "takeup: blocks above {block_bytes_max} bytes would be split\n\
             hint: run sysctl fs.fuse.max_pages_limit=2049, or run takeup as root, which does so\n"
        ));
    }
    text
}

/// Warns if the medium could outgrow the disk of its file: real capacities exceed most disks.
fn room_warning(wanted_bytes: u64, room_bytes: Option<u64>) -> String {
    match room_bytes {
        Some(room) if room < wanted_bytes => format!(
            "takeup: the medium can grow by {}, but its disk has room for {}: further writes would \
             fail with an I/O error\nhint: make the medium smaller with --capacity\n",
            size(wanted_bytes),
            size(room)
        ),
        _ => String::new(),
    }
}

/// Time for programs to close the drive after a signal, before takeup ends.
const HOLDERS_WAIT: Duration = Duration::from_secs(3);

fn unmount_on_signal(
    what: &'static str,
    mut unmount: impl FnMut() -> std::io::Result<()> + Send + 'static,
) {
    let Ok(mut signals) = listen(&[SIGINT, SIGTERM, SIGHUP]) else { return };
    let watch = move || {
        if signals.forever().next().is_none() {
            return;
        }
        if let Err(error) = unmount() {
            to_standard_error(&format!("takeup: cannot unmount: {error}\n"));
        }
        // The connection ends with the last open file. Everything is intact up to the last request,
        // so programs that keep a file open need not be waited for.
        thread::sleep(HOLDERS_WAIT);
        to_standard_error(&format!("takeup: the {what} was still in use\n"));
        std::process::exit(FAILED.into());
    };
    let _ = thread::Builder::new().name("takeup-signals".to_owned()).spawn(watch);
}

fn status(mountpoint: &Path) -> Result<(), Failure> {
    let path = mountpoint.join("status");
    let text = machine::small_file::regular(&path).map_err(|error| no_drive(&path, &error))?;
    to_standard_output(&text)
}

fn load(arguments: &LoadArgs) -> Result<(), Failure> {
    use std::os::unix::ffi::OsStrExt;
    let place = arguments.mountpoint.join("medium");
    std::fs::metadata(&place).map_err(|error| no_drive(&place, &error))?;
    let medium = absolute(&arguments.medium)?;
    match (arguments.new, medium.exists()) {
        (false, false) => return Err(not_on_the_shelf(&medium)),
        (true, true) => {
            let what = format!("{} exists already", medium.display());
            return Err(Failure::of(what, Some("omit --new to load it as it is")));
        }
        _ => {}
    }
    change_medium(&arguments.mountpoint, medium.as_os_str().as_bytes())
}

/// Most cartridges that are listed when one was not found.
const SHELF_NAMED_MAX: usize = 10;

/// The failure for a cartridge that does not exist, with those in its folder.
fn not_on_the_shelf(medium: &Path) -> Failure {
    let folder = medium.parent().unwrap_or(Path::new("/"));
    let shelf = match media_in(folder) {
        Ok(media) => names(&media),
        Err(error) => return Failure::of(format!("{}: {error}", folder.display()), None),
    };
    let (medium, folder) = (medium.display(), folder.display());
    let what = format!("no cartridge {medium}; {folder} has {shelf}");
    Failure::of(what, Some("add --new to create it"))
}

fn names(media: &[PathBuf]) -> String {
    let name = |path: &PathBuf| escape(path.file_name().unwrap_or_default().as_encoded_bytes());
    let named: Vec<String> = media.iter().take(SHELF_NAMED_MAX).map(name).collect();
    match (media.len(), media.len().saturating_sub(SHELF_NAMED_MAX)) {
        (0, _) => "none".to_owned(),
        (1, _) => named[0].clone(),
        (_, 0) => named.join(", "),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    }
}

fn change_medium(mountpoint: &Path, request: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    let path = mountpoint.join("medium");
    let opened = std::fs::OpenOptions::new().write(true).open(&path);
    let mut file = opened.map_err(|error| no_drive(&path, &error))?;
    file.write_all(request).map_err(|error| {
        let hint = "run `takeup sim status MOUNTPOINT` to see the cause";
        Failure::of(format!("cannot change the medium: {}: {error}", path.display()), Some(hint))
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::of(format!("cannot use {}: {error}", path.display()), None))
}

fn no_drive(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("no virtual drive or disk here: {}: {error}", path.display());
    Failure::of(
        message,
        Some("start one with `takeup sim tape MOUNTPOINT` or `takeup sim disk MOUNTPOINT`"),
    )
}

fn mount_hint(what: &str, mountpoint: &Path) -> String {
    let gone = std::fs::metadata(mountpoint)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotConnected);
    if gone {
        format!("run umount {}: a {what} was killed there", mountpoint.display())
    } else {
        "provide /dev/fuse, an empty folder, and root or fusermount3".to_owned()
    }
}

fn medium_hint(error: &MediumFileError) -> Option<String> {
    match error {
        MediumFileError::Foreign { .. } | MediumFileError::NoFile { .. } => {
            Some("name a file that does not exist yet, or that takeup sim made".to_owned())
        }
        _ => None,
    }
}
