//! A virtual tape drive.

use std::path::{Path, PathBuf};

use base::format::size;
use model::ModelError;
use model::tape::generation::Generation;
use model::tape::media::{MediumAccess, access};
use model::tape::parameters::{Known, TapeParameters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::mount::drive::{DriveMount, DriveMountSettings, DriveUnmounter};
use sim::speed_up::SpeedUp;
use sim::tape::pace::Compression;
use sim::tape::real_time::{Gauge, Ratio, RealTime};
use sim::tape::{
    AccessOrders, Cartridge, CartridgeSettings, DriveSettings, MediumFileError, VirtualDrive,
    room_for_medium,
};

use super::{TimeChoice, absolute, check_mountpoint, mount_hint};
use crate::calibration::FromRuns;
use crate::failure::Failure;
use crate::model_names::GenerationName;
use crate::parameter_setting::ParameterSetting;

/// A tape drive to simulate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimTapeRequest {
    /// An existing folder.
    pub mountpoint: PathBuf,
    /// Generation of the drive; that of `from`, or LTO-7, if not given.
    #[serde(default)]
    pub drive: Option<GenerationName>,
    /// An experiment on the drive, which its parameters are taken from.
    #[serde(default)]
    pub from: Option<PathBuf>,
    /// File of the cartridge, created if missing; the cartridge is in memory if not given.
    #[serde(default)]
    pub medium: Option<PathBuf>,
    /// Generation of the cartridge; that of the file, or of the drive, if not given.
    #[serde(default)]
    pub medium_generation: Option<GenerationName>,
    /// Native capacity of a new cartridge; that of its generation, or 1 GiB in memory, if not
    /// given.
    #[serde(default)]
    pub capacity_bytes: Option<u64>,
    /// How many times faster than real time it runs.
    #[serde(default = "real_time")]
    pub speed_up: SpeedUp,
    /// Whether commands take time.
    #[serde(default)]
    pub time: TimeChoice,
    /// Compression by the drive.
    #[serde(default)]
    pub compression: CompressionChoice,
    /// TapeAlert flags that the drive reports once, 1 to 64.
    #[serde(default)]
    pub alerts: Vec<u8>,
    /// Parameters of the drive.
    #[serde(default)]
    pub settings: Vec<ParameterSetting>,
}

/// Compression by a virtual drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionChoice {
    /// The drive does not compress.
    Off,
    /// The ratio is measured on the data.
    #[default]
    On,
    /// The ratio is this number, 0.5 to 1000.
    Ratio(f64),
}

/// The compression ratios that a virtual drive can be set to.
pub const RATIOS: std::ops::RangeInclusive<f64> = 0.5..=1000.0;

pub(super) fn real_time() -> SpeedUp {
    SpeedUp::ONE
}

/// Default capacity of cartridges in memory.
const MEMORY_CAPACITY_BYTES: u64 = 1 << 30;
/// The largest block of LTO drives.
pub const BLOCK_BYTES_MAX: u64 = 8 << 20;

/// The default generation.
const GENERATION: &str = "LTO-7";

/// The drive to simulate, and the experiment that its parameters come from.
struct Played {
    generation: &'static Generation,
    from: Option<FromRuns>,
}

impl Played {
    fn of(request: &SimTapeRequest) -> Result<Played, Failure> {
        let named = request.drive.map(|drive| drive.0);
        let from = request.from.as_deref().map(|path| FromRuns::load(path, named)).transpose()?;
        let usual = || Generation::all().iter().find(|known| known.name == GENERATION);
        let generation = from.as_ref().map(|from| from.generation).or(named).or_else(usual);
        let generation = generation.expect("the table has the usual generation");
        let played = Played { generation, from };
        // Wrong settings fail here, before a medium is made.
        let mut parameters = played.with_medium(generation);
        for setting in &request.settings {
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

/// A mounted drive.
pub struct MountedTape {
    mount: DriveMount,
    gauge: Option<Gauge>,
    pub mountpoint: PathBuf,
    /// The generation of the drive.
    pub generation: &'static Generation,
    /// The generation of the medium, if known.
    pub medium: Option<&'static Generation>,
    /// What the drive does with such a medium.
    pub access: MediumAccess,
    /// The experiment that the parameters come from.
    pub from: Option<FromRuns>,
    /// Bytes by which the medium can grow.
    pub growth_bytes: u64,
    /// Bytes that the disk of its file has room for.
    pub room_bytes: Option<u64>,
}

/// Mounts a drive. It answers when [`MountedTape::run`] is called.
///
/// # Errors
/// When it cannot be mounted, or its cartridge cannot be used.
pub fn mount(request: &SimTapeRequest) -> Result<MountedTape, Failure> {
    if let CompressionChoice::Ratio(ratio) = request.compression
        && !RATIOS.contains(&ratio)
    {
        return Err(Failure::of(format!("{ratio}: a ratio is from 0.5 to 1000"), None));
    }
    let played = Played::of(request)?;
    let generation = played.generation;
    let medium = request.medium.as_deref().map(absolute).transpose()?;
    check_mountpoint("drive", &request.mountpoint)?;
    let Loaded { cartridge, new_medium, mut parameters, access } =
        loaded(request, &played, medium.as_deref())?;
    fit_length(&mut parameters, &cartridge);
    for setting in &request.settings {
        setting.apply(&mut parameters)?;
    }
    let alerts = request.alerts.iter().copied().collect();
    let settings = DriveSettings { alerts, ..settings(generation) };
    let drive = VirtualDrive::new("virtual drive", settings);
    let recorded_bytes = cartridge.used_bytes();
    let capacity_bytes = cartridge.capacity_bytes();
    let medium_density = cartridge.density();
    drive.insert(cartridge);
    drive.set_compression(match request.compression {
        CompressionChoice::Off => Compression::Off,
        CompressionChoice::On | CompressionChoice::Ratio(_) => Compression::On,
    });
    let gauge = (request.time == TimeChoice::True)
        .then(|| take_time(request, parameters, recorded_bytes, &drive));
    let medium_path = medium.clone();
    let settings = DriveMountSettings {
        drive,
        gauge: gauge.clone(),
        generation: generation.name.to_owned(),
        medium,
        new_medium,
        is_read_only: access == MediumAccess::ReadOnly,
    };
    let mount = DriveMount::new(settings, &request.mountpoint, BLOCK_BYTES_MAX)
        .map_err(|error| Failure::new(&error, Some(mount_hint("drive", &request.mountpoint))))?;
    let of_medium = Generation::of_density(medium_density);
    let is_own = of_medium.is_none_or(|medium| medium.name == generation.name);
    Ok(MountedTape {
        mount,
        gauge,
        mountpoint: request.mountpoint.clone(),
        generation,
        medium: of_medium,
        access,
        from: played.from.filter(|_| is_own),
        growth_bytes: capacity_bytes.saturating_sub(recorded_bytes),
        room_bytes: medium_path.as_deref().and_then(room_for_medium),
    })
}

impl MountedTape {
    /// Returns what ends [`MountedTape::run`].
    pub fn unmounter(&mut self) -> DriveUnmounter {
        self.mount.unmounter(self.gauge.clone())
    }

    /// The largest block that is not split.
    pub fn block_bytes_max(&self) -> u64 {
        self.mount.block_bytes_max()
    }

    /// Answers requests until the folder is unmounted.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn run(self) -> Result<(), Failure> {
        self.mount.run().map_err(|error| Failure::new(&error, None))
    }
}

/// A cartridge, and the parameters of drive and cartridge together.
struct Loaded {
    cartridge: Cartridge,
    new_medium: CartridgeSettings,
    parameters: TapeParameters,
    access: MediumAccess,
}

/// Opens or makes the requested cartridge. Makes none that the drive does not support.
fn loaded(
    request: &SimTapeRequest,
    played: &Played,
    path: Option<&Path>,
) -> Result<Loaded, Failure> {
    let drive = played.generation;
    let asked = request.medium_generation.map(|name| name.0);
    let refused = |error: &ModelError| Failure::new(error, None);
    let wanted = asked.unwrap_or(drive);
    let may_write = access(drive, wanted).map_err(|error| refused(&error))?;
    let is_new = path.is_none_or(|path| std::fs::metadata(path).map_or(true, |it| it.len() == 0));
    if is_new && may_write == MediumAccess::ReadOnly {
        let (drive, medium) = (drive.name, wanted.name);
        let only = format!("an {drive} drive only reads {medium} media");
        let what = format!("{only}, and a new medium is empty");
        return Err(Failure::of(what, Some("choose a --drive that writes such media")));
    }
    let capacity_bytes = match (request.capacity_bytes, path) {
        (Some(bytes), _) => bytes,
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
    let holds = cartridge.capacity_bytes();
    if let Some(asked) = request.capacity_bytes.filter(|asked| *asked != holds) {
        let (path, found, more) = (path.display(), size(holds), size(asked));
        let what =
            format!("{path} is a medium of {found} ({holds} bytes), not of {more} ({asked} bytes)");
        let hint = "leave out --capacity, or name a file that does not exist yet for a new one";
        return Err(Failure::of(what, Some(hint)));
    }
    let access = access(drive, found).map_err(|error| refused(&error))?;
    if access == MediumAccess::ReadOnly {
        cartridge.protect();
    }
    let new_medium = CartridgeSettings { density: cartridge.density(), ..new_medium };
    let parameters = played.with_medium(found);
    Ok(Loaded { cartridge, new_medium, parameters, access })
}

fn take_time(
    request: &SimTapeRequest,
    parameters: TapeParameters,
    recorded_bytes: u64,
    drive: &VirtualDrive,
) -> Gauge {
    let ratio = match request.compression {
        CompressionChoice::Off | CompressionChoice::On => Ratio::Measured,
        CompressionChoice::Ratio(ratio) => Ratio::Given(ratio),
    };
    let pace = RealTime::new(parameters, recorded_bytes, request.speed_up, ratio);
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
        access_orders: access_orders(generation),
        ..DriveSettings::default()
    }
}

/// Full-height drives recommend an order from LTO-9 on.
fn access_orders(generation: &Generation) -> AccessOrders {
    if generation.number >= 9 { AccessOrders::Offered } else { AccessOrders::Unknown }
}

fn medium_hint(error: &MediumFileError) -> Option<String> {
    match error {
        MediumFileError::Foreign { .. } | MediumFileError::NoFile { .. } => {
            Some("name a file that does not exist yet, or that takeup sim made".to_owned())
        }
        _ => None,
    }
}
