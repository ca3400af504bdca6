//! Settings of the block queue as factors: set for a run, seen to be in force, put back.
//!
//! The scheduler, merging, the queue and its limits are those of the disks at the bottom of a
//! stack: what device mapper and md have of them does nothing for requests. A multipath device is
//! the exception: requests are made, joined and ordered in its own queue, and go from there past
//! the schedulers of its paths (`blk_insert_cloned_request`, block/blk-mq.c). Read-ahead is that of
//! the device that the file system lies on, see [`storage::layers`].
//!
//! Nothing runs before every combination has been in force once: what the device does not offer, or
//! takes another value for, is known then. A combination is left out where each of its levels is
//! taken in another one (a queue of 256 with a scheduler, of which there are 64 without), and an
//! error where one is taken in none. After each run all are read again: who sets them meanwhile
//! (udev, tuned) has made it a run of something else.
//!
//! What is written first, what the kernel sets anew by itself and how everything comes back also
//! after a crash is [`storage::settings`]'s business.

use super::DiskError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use storage::StorageError;
use storage::layers::Storage;
use storage::settings::{Guard, Setting, SettingKind};

use experiment::plan::Plan;
use experiment::quantities::title;
use experiment::record::{Cell, CellError, Factor, Level, number_in, word_in};

/// The factors, each with the setting that it is.
const FACTORS: &[(&str, SettingKind)] = &[
    ("scheduler", SettingKind::Scheduler),
    ("write_cache", SettingKind::WriteCache),
    ("max_sectors_bytes", SettingKind::MaxSectors),
    ("nomerges", SettingKind::NoMerges),
    ("nr_requests", SettingKind::Requests),
    ("read_ahead_bytes", SettingKind::ReadAhead),
];

/// A factor from what was typed for it, in the kernel's own units (`kb` are KiB); `current` is what
/// is in force. `None` of nothing.
///
/// # Errors
/// When a value is none, or the device has no such setting.
pub fn factor(
    kind: SettingKind,
    typed: &[String],
    device: &Storage,
) -> Result<Option<Factor>, DiskError> {
    if typed.is_empty() {
        return Ok(None);
    }
    let (name, _) = FACTORS.iter().find(|(_, own)| *own == kind).expect("it is a factor");
    let first = settings_of(kind, device)?.remove(0);
    let current = level_of(kind, &first.value()?).map_err(DiskError::Level)?;
    let mut levels: Vec<Level> = Vec::new();
    for text in typed {
        let level = if text == "current" {
            current.clone()
        } else {
            level_of(kind, text).map_err(DiskError::Level)?
        };
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    if levels.iter().all(|level| matches!(level, Level::Number(_))) {
        levels.sort();
    }
    let present = levels.contains(&current).then_some(current);
    Ok(Some(Factor { present, ..Factor::new(name, levels) }))
}

/// A value of the kernel as a level: sizes in bytes, as everywhere.
fn level_of(kind: SettingKind, text: &str) -> Result<Level, CellError> {
    let number = || {
        let wrong = |_| CellError::NoNumber { name: kind.name().to_owned(), text: text.to_owned() };
        text.parse::<u64>().map_err(wrong)
    };
    Ok(match kind {
        SettingKind::Scheduler | SettingKind::WriteCache => Level::Text(text.to_owned()),
        SettingKind::Rotational
        | SettingKind::NoMerges
        | SettingKind::WriteBackLatency
        | SettingKind::Requests => Level::Number(number()?),
        SettingKind::MaxSectors | SettingKind::ReadAhead => {
            Level::Number(number()?.saturating_mul(1024))
        }
    })
}

/// What is written for the level that a cell gives to a factor, if it gives one.
fn value_in(cell: &Cell, name: &str, kind: SettingKind) -> Result<Option<String>, CellError> {
    let Some(level) = cell.get(name) else { return Ok(None) };
    let number = || number_in(cell, name, 0);
    let wrong = |what: &str| {
        CellError::Impossible(format!("{} {}: {what}", kind.name(), level.shown(name)))
    };
    Ok(Some(match kind {
        SettingKind::Scheduler => word_in(cell, name)?.unwrap_or_default().to_owned(),
        SettingKind::WriteCache => match word_in(cell, name)?.unwrap_or_default() {
            known @ ("write back" | "write through") => known.to_owned(),
            _ => return Err(wrong("known are 'write back' and 'write through'")),
        },
        SettingKind::NoMerges => match number()? {
            known @ 0..=2 => known.to_string(),
            _ => return Err(wrong("known are 0, 1 and 2")),
        },
        SettingKind::Rotational | SettingKind::WriteBackLatency | SettingKind::Requests => {
            number()?.to_string()
        }
        SettingKind::MaxSectors | SettingKind::ReadAhead => {
            let page_bytes = rustix::param::page_size() as u64;
            match number()? {
                bytes if bytes.is_multiple_of(page_bytes) => (bytes / 1024).to_string(),
                _ => return Err(wrong(&format!("the kernel takes multiples of {page_bytes} B"))),
            }
        }
    }))
}

/// What would keep the settings that a plan varies over a restart.
pub fn restart(plan: &Plan, device: &Storage) -> BTreeMap<String, String> {
    let is_varied = |name: &str| plan.factors.iter().any(|factor| factor.name == name);
    let kinds = FACTORS.iter().filter(|(name, _)| is_varied(name));
    let one = |(_, kind): &(&str, SettingKind)| {
        experiment::environment::of_restart(*kind, &settings_of(*kind, device).ok()?)
    };
    kinds.filter_map(one).collect()
}

/// The settings of a kind that act on a device, at least one: of which layer is said above.
///
/// # Errors
/// When there is none.
pub fn settings_of(kind: SettingKind, device: &Storage) -> Result<Vec<Setting>, DiskError> {
    let settings: Vec<Setting> = match kind {
        SettingKind::ReadAhead => {
            device.read_ahead.as_deref().map(Setting::read_ahead).into_iter().collect()
        }
        _ => {
            let queues = acting_queues(device);
            let of_queue = |queue: &PathBuf| Setting::of_queue(kind, queue);
            queues.iter().map(of_queue).filter(|setting| setting.path.exists()).collect()
        }
    };
    if settings.is_empty() {
        return Err(DiskError::NoSetting { device: device.name.clone(), what: kind.name() });
    }
    Ok(settings)
}

/// The folders of the queues in which requests of a device wait: those of its multipath devices,
/// and of the disks that lie below none.
fn acting_queues(device: &Storage) -> Vec<PathBuf> {
    let queue = |name: &str| Path::new("/sys/class/block").join(name).join("queue");
    let is_multipath = |name: &str| {
        std::fs::read_to_string(queue(name).with_file_name("dm/uuid"))
            .is_ok_and(|uuid| uuid.starts_with("mpath-"))
    };
    let mut queues: Vec<PathBuf> = Vec::new();
    let mut paths: Vec<&str> = Vec::new();
    // Each layer stands before all that it lies on.
    for layer in &device.layers {
        let is_path = paths.contains(&layer.name.as_str());
        let has_paths = is_multipath(&layer.name);
        if is_path || has_paths {
            paths.extend(layer.below.iter().map(String::as_str));
        }
        if has_paths && let Ok(queue) = queue(&layer.name).canonicalize() {
            queues.push(queue);
        }
    }
    let mut others = device.clone();
    others.layers.retain(|layer| !paths.contains(&layer.name.as_str()));
    // A layer whose paths are left out is no disk.
    queues.extend(others.disk_queues());
    queues
}

/// The names of the disks and multipath devices whose queues these are, as in `/sys/block`.
pub fn names(device: &Storage) -> Vec<String> {
    let name = |queue: &PathBuf| Some(queue.parent()?.file_name()?.to_string_lossy().into_owned());
    acting_queues(device).iter().filter_map(name).collect()
}

/// Queues whose settings are factors of an experiment.
#[derive(Debug)]
pub struct Queues {
    /// The settings of each factor that is varied.
    varied: BTreeMap<SettingKind, Vec<Setting>>,
    guard: Guard,
    /// Combinations of levels that the device does not take, and why.
    left_out: Vec<(Cell, String)>,
    /// As long as these are locked udev leaves the disks alone.
    _locks: Vec<OwnedFd>,
}

impl Queues {
    /// Remembers what a plan is going to change, and tries every combination of it once.
    ///
    /// # Errors
    /// When one of the levels cannot be set, nothing may be set, or somebody else changes settings.
    pub fn new(plan: &Plan, device: &Storage, journal: Option<&Path>) -> Result<Queues, DiskError> {
        let mut varied: BTreeMap<SettingKind, Vec<Setting>> = BTreeMap::new();
        for (name, kind) in FACTORS {
            let Some(factor) = plan.factors.iter().find(|factor| factor.name == *name) else {
                continue;
            };
            let settings = settings_of(*kind, device)?;
            for level in &factor.levels {
                let cell = Cell::from([((*name).to_owned(), level.clone())]);
                let value =
                    value_in(&cell, name, *kind).map_err(DiskError::Level)?.unwrap_or_default();
                settings.iter().try_for_each(|setting| check_offered(setting, &value))?;
            }
            varied.insert(*kind, settings);
        }
        if let (Some(_), Some(device)) = (varied.get(&SettingKind::MaxSectors), device.multipath())
        {
            return Err(DiskError::Multipath { device: device.to_owned() });
        }
        let all: Vec<Setting> = varied.values().flatten().cloned().collect();
        let locks = if all.is_empty() { Vec::new() } else { locks(device) };
        let guard = Guard::new(journal, &all)?;
        let mut queues = Queues { varied, guard, left_out: Vec::new(), _locks: locks };
        queues.try_all(plan)?;
        Ok(queues)
    }

    /// Whether no setting is varied, so that there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.varied.is_empty()
    }

    /// Whether the device takes the settings of a cell.
    pub fn applies(&self, cell: &Cell) -> bool {
        let own = own(cell);
        self.left_out.iter().all(|(refused, _)| *refused != own)
    }

    /// What is left out, in words.
    pub fn left_out(&self) -> Vec<String> {
        let told = |(cell, why): &(Cell, String)| format!("{} is left out: {why}", shown(cell));
        self.left_out.iter().map(told).collect()
    }

    /// Every combination of the levels is in force once, and then what was before.
    fn try_all(&mut self, plan: &Plan) -> Result<(), DiskError> {
        let mut combinations: Vec<Cell> = plan.cells().iter().map(own).collect();
        combinations.sort();
        combinations.dedup();
        let mut taken: Vec<Cell> = Vec::new();
        let mut refused: Vec<(Cell, StorageError)> = Vec::new();
        for cell in combinations.into_iter().filter(|cell| !cell.is_empty()) {
            match self.apply(&cell) {
                Ok(()) => taken.push(cell),
                Err(DiskError::Storage(error)) => refused.push((cell, error)),
                Err(other) => return Err(other),
            }
        }
        self.guard.as_before()?;
        for (cell, error) in refused {
            let is_taken = |(name, level): (&String, &Level)| {
                taken.iter().any(|other| other.get(name) == Some(level))
            };
            let mut alone = cell.clone();
            alone.retain(|name, level| !is_taken((name, level)));
            if !alone.is_empty() {
                return Err(DiskError::NotTaken { what: shown(&alone), source: error });
            }
            self.left_out.push((cell, base::failures::with_causes(&error)));
        }
        Ok(())
    }

    /// Puts the settings of a cell in force, and what is none of its factors as it was before.
    ///
    /// # Errors
    /// When the kernel refuses one or takes another value.
    pub fn apply(&self, cell: &Cell) -> Result<(), DiskError> {
        for (setting, before) in self.guard.remembered() {
            let wanted = self.wanted(cell, setting, before)?;
            self.guard.set(setting, &wanted)?;
        }
        Ok(())
    }

    /// Looks whether the settings of a cell are still in force.
    ///
    /// # Errors
    /// When one is not.
    pub fn check(&self, cell: &Cell) -> Result<(), DiskError> {
        for (setting, before) in self.guard.remembered() {
            let (wanted, found) = (self.wanted(cell, setting, before)?, setting.value()?);
            if wanted != found {
                return Err(DiskError::NotKept { path: setting.path.clone(), wanted, found });
            }
        }
        Ok(())
    }

    /// What a setting is to be in a run of a cell, once those before it are in force: its level, or
    /// what it was before. The queue of another scheduler is as long as that one makes it.
    fn wanted(&self, cell: &Cell, setting: &Setting, before: &str) -> Result<String, DiskError> {
        let is_varied = self.varied.get(&setting.kind).is_some_and(|own| own.contains(setting));
        let factor = FACTORS.iter().find(|(_, kind)| is_varied && *kind == setting.kind);
        if let Some((name, kind)) = factor
            && let Some(value) = value_in(cell, name, *kind).map_err(DiskError::Level)?
        {
            return Ok(value);
        }
        let is_of_scheduler = SettingKind::Scheduler.resets().contains(&setting.kind);
        if is_of_scheduler && self.has_another_scheduler(setting)? {
            return Ok(setting.value()?);
        }
        Ok(before.to_owned())
    }

    /// Whether the queue of a setting has another scheduler than before the experiment.
    fn has_another_scheduler(&self, setting: &Setting) -> Result<bool, DiskError> {
        let folder = setting.path.parent();
        let is_its = |one: &(&Setting, &str)| {
            one.0.kind == SettingKind::Scheduler && one.0.path.parent() == folder
        };
        match self.guard.remembered().find(is_its) {
            Some((scheduler, before)) => Ok(scheduler.value()? != before),
            None => Ok(false),
        }
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// When something could not be put back; the journal stays then.
    pub fn put_back(&mut self) -> Result<(), DiskError> {
        Ok(self.guard.put_back()?)
    }

    /// What is in force, by its path in sysfs, for the record of a run.
    pub fn in_force(&self) -> Vec<(String, String)> {
        let value = |(setting, _): (&Setting, &str)| {
            Some((setting.path.display().to_string(), setting.value().ok()?))
        };
        self.guard.remembered().filter_map(value).collect()
    }
}

/// The levels of a cell that are settings of the queue.
fn own(cell: &Cell) -> Cell {
    let mut own = cell.clone();
    own.retain(|name, _| FACTORS.iter().any(|(known, _)| known == name));
    own
}

/// A combination of settings as people read it.
fn shown(cell: &Cell) -> String {
    let one = |(name, level): (&String, &Level)| format!("{} {}", title(name), level.shown(name));
    cell.iter().map(one).collect::<Vec<String>>().join(", ")
}

/// What the device says of itself before anything is written. The rest is found by trying.
fn check_offered(setting: &Setting, value: &str) -> Result<(), DiskError> {
    let offered = match setting.kind {
        SettingKind::Scheduler => {
            let choices = setting.choices()?;
            if choices.iter().any(|choice| choice == value) {
                return Ok(());
            }
            choices.join(", ")
        }
        SettingKind::MaxSectors => {
            let limit = setting.path.with_file_name("max_hw_sectors_kb");
            let limit = std::fs::read_to_string(limit).unwrap_or_default();
            let (Ok(limit), Ok(wanted)) = (limit.trim().parse::<u64>(), value.parse::<u64>())
            else {
                return Ok(());
            };
            let page_kib = rustix::param::page_size() as u64 / 1024;
            if (page_kib..=limit).contains(&wanted) {
                return Ok(());
            }
            format!("{page_kib} to {limit}")
        }
        _ => return Ok(()),
    };
    let what = format!("{} {value}", setting.kind.name());
    Err(DiskError::NotOffered { what, device: disk_name(&setting.path), offered })
}

/// The disk of a setting in its queue.
fn disk_name(setting: &Path) -> String {
    let disk = setting.parent().and_then(Path::parent).and_then(Path::file_name);
    disk.unwrap_or_default().to_string_lossy().into_owned()
}

/// Locks the disks whose settings act, so that udev does not apply its rules to them when fio
/// closes them (systemd, "Locking Block Device Access"). Where that is not possible, a setting that
/// is lost is noticed behind the run.
fn locks(device: &Storage) -> Vec<OwnedFd> {
    let lock = |queue: &PathBuf| {
        let name = queue.parent()?.file_name()?.to_string_lossy().replace('!', "/");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = Path::new("/dev").join(name);
        let disk = base::interruptible::open(&path, flags, Mode::empty()).ok()?;
        base::interruptible::lock_unless_in_use(&disk, FlockOperation::NonBlockingLockExclusive)
            .ok()?;
        Some(disk)
    };
    acting_queues(device).iter().filter_map(lock).collect()
}
