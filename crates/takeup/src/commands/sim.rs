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

/// Play a tape drive or a disk in a folder, true in time
///
/// tape: a folder with the files nst0 and st0, which any program can use as the tape drive of that
/// name: tar, dd, mbuffer, mt, and Takeup itself. Blocks, filemarks, short reads and the end of the
/// medium are those of the kernel's tape driver; commands take the time that a drive of that
/// generation would take, stops of the tape included.
///
/// disk: a folder with a file whose reads and writes take the time of a disk, and a loop device
/// over it, on which read-ahead, scheduler and queue settings act as on a real one.
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
    /// The folder; it must exist
    mountpoint: PathBuf,
    /// Generation of the drive, lto1 to lto10; by default that of --from, or lto7
    #[arg(long, value_name = "GENERATION")]
    drive: Option<GenerationName>,
    /// Be the drive of an experiment (takeup bench tape -o RUNS), as far as that tells
    ///
    /// What it does not tell is named, and stays what it is of the generation.
    #[arg(long, value_name = "RUNS")]
    from: Option<PathBuf>,
    /// The cartridge, a file that is made if it is not there; without it, one in memory
    #[arg(long, value_name = "FILE")]
    medium: Option<PathBuf>,
    /// Generation of the cartridge where that is not the drive's: one before, lto7m for LTO-7 Type
    /// M; by default what the file says, or that of the drive
    #[arg(long, value_name = "GENERATION")]
    medium_generation: Option<GenerationName>,
    /// Native capacity of a new cartridge; the generation's, or 1 GiB in memory
    #[arg(long, value_name = "SIZE")]
    capacity: Option<Size>,
    /// Let time run this many times as fast, 2.5 or 0.5 for example
    #[arg(long, default_value_t = SpeedUp::ONE, value_name = "N")]
    speed_up: SpeedUp,
    /// Whether commands take time
    #[arg(long, default_value = "true", value_name = "WHICH")]
    time: TimeChoice,
    /// Compression by the drive: on measures what passes, a number takes that ratio
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
    /// It is a new one, made as the first one was
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
    /// They take what a drive of that generation would take
    True,
    /// They take what this machine takes
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
            _ => Err("it is on, off, or a ratio from 0.5 to 1000".to_owned()),
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

/// Cartridges in memory are this large unless told otherwise.
const MEMORY_CAPACITY_BYTES: u64 = 1 << 30;
/// The largest block of LTO drives.
const BLOCK_BYTES_MAX: u64 = 8 << 20;

/// Of a drive of which nothing is said.
const GENERATION: &str = "LTO-7";

/// The drive, and how an experiment found it.
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
        // Before a medium is made.
        let mut parameters = played.with_medium(generation);
        for setting in &arguments.settings {
            setting.apply(&mut parameters)?;
        }
        Ok(played)
    }

    /// The model with a medium. What an experiment has found is of media of the drive's own
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

/// A cartridge, and what drive and cartridge come to together.
struct Loaded {
    cartridge: Cartridge,
    new_medium: CartridgeSettings,
    parameters: TapeParameters,
    access: MediumAccess,
}

/// The cartridge that was asked for. Nothing is made that the drive would not take.
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
        let what = format!("{only}, and a new one holds nothing");
        return Err(Failure::of(what, Some("--drive takes the generation that writes it")));
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
    // One of a generation that nobody knows is taken for the drive's own.
    let found = Generation::of_density(cartridge.density()).unwrap_or(wanted);
    if asked.is_some_and(|asked| asked.name != found.name) {
        let (path, found, asked) = (path.display(), found.name, wanted.name);
        let what = format!("{path} is an {found} medium, and not an {asked} one");
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

/// Whether `what` can be mounted there: a file takes a mount, too, and nobody finds a drive in it.
fn check_mountpoint(what: &str, mountpoint: &Path) -> Result<(), Failure> {
    let path = mountpoint.display();
    let failed = |why: &str, hint: &str| {
        let message = format!("cannot mount a virtual {what} on {path}: {why}");
        Failure::of(message, Some(hint))
    };
    match std::fs::metadata(mountpoint) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(failed("not a folder", "an empty folder is wanted")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(failed("no such folder", &format!("mkdir {path} makes one")))
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

/// A cartridge that is smaller than those of its generation has as many wraps less, and its end is
/// told of later.
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
        text.push_str(&format!("takeup: the medium is an {medium} one, and the drive {what}\n"));
    }
    if block_bytes_max < BLOCK_BYTES_MAX {
        text.push_str(&format!(
            "takeup: blocks of more than {block_bytes_max} bytes would come in pieces\n\
             hint: sysctl fs.fuse.max_pages_limit=2049 lets larger ones pass; as root it is done \
             here\n"
        ));
    }
    text
}

/// A medium holds what is written to it: a drive's capacity is more than most disks have.
fn room_warning(wanted_bytes: u64, room_bytes: Option<u64>) -> String {
    match room_bytes {
        Some(room) if room < wanted_bytes => format!(
            "takeup: the medium is a file that may grow by {}, and its disk has room for {}: what \
             is more fails with an I/O error\nhint: --capacity makes a smaller one\n",
            size(wanted_bytes),
            size(room)
        ),
        _ => String::new(),
    }
}

/// How long programs that hold the drive have after a signal, before it goes away from under them.
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
        // The connection ends with the last open file. Everything is intact up to the last request
        // that was taken, so whoever holds one is not waited for much longer.
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
            let what = format!("{} is there already", medium.display());
            return Err(Failure::of(what, Some("without --new it is loaded as it is")));
        }
        _ => {}
    }
    change_medium(&arguments.mountpoint, medium.as_os_str().as_bytes())
}

/// Cartridges that are named where one was not found.
const SHELF_NAMED_MAX: usize = 10;

/// A name that is no file: with what there is beside it.
fn not_on_the_shelf(medium: &Path) -> Failure {
    let folder = medium.parent().unwrap_or(Path::new("/"));
    let shelf = match media_in(folder) {
        Ok(media) => names(&media),
        Err(error) => return Failure::of(format!("{}: {error}", folder.display()), None),
    };
    let (medium, folder) = (medium.display(), folder.display());
    let what = format!("there is no cartridge {medium}; in {folder} {shelf}");
    Failure::of(what, Some("--new makes one of that name"))
}

fn names(media: &[PathBuf]) -> String {
    let name = |path: &PathBuf| escape(path.file_name().unwrap_or_default().as_encoded_bytes());
    let named: Vec<String> = media.iter().take(SHELF_NAMED_MAX).map(name).collect();
    match (media.len(), media.len().saturating_sub(SHELF_NAMED_MAX)) {
        (0, _) => "is none".to_owned(),
        (1, _) => format!("is {}", named[0]),
        (_, 0) => format!("are {}", named.join(", ")),
        (_, more) => format!("are {} and {more} more", named.join(", ")),
    }
}

fn change_medium(mountpoint: &Path, request: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    let path = mountpoint.join("medium");
    let opened = std::fs::OpenOptions::new().write(true).open(&path);
    let mut file = opened.map_err(|error| no_drive(&path, &error))?;
    file.write_all(request).map_err(|error| {
        let hint = "takeup sim status tells the trouble";
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
        Some("takeup sim tape MOUNTPOINT or takeup sim disk MOUNTPOINT starts one"),
    )
}

fn mount_hint(what: &str, mountpoint: &Path) -> String {
    let gone = std::fs::metadata(mountpoint)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotConnected);
    if gone {
        format!("a {what} was killed there: umount {}", mountpoint.display())
    } else {
        "it needs /dev/fuse, an empty folder, and root or fusermount3".to_owned()
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
