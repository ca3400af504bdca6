//! Sets values, for all commands that set something: the checks before a write, and what was read
//! back after it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;

use base::format::duration;
use loads::disk::queue::settings_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::layers::Storage;
use storage::settings::changes::{
    Now, Phase, SettingFiles, SettingsChange, ThisMachine, Trial, WantedChange, look,
};
use storage::settings::keep;
use storage::settings::limits::{Unfit, unfit};
use storage::settings::{Setting, SettingKind};

use super::changes::{changes, failure, list, put_back_overdue};
use super::guard::TrialGuard;
use super::{CONFIRM, SettleWait, TuneHost};
use crate::failure::Failure;
use crate::outcome::Outcome;

/// How values are set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApplyRequest {
    /// Time after which all values are read back once more.
    pub settle_seconds: f64,
    /// Restores the old values after this time, unless the change is confirmed.
    pub trial_seconds: Option<f64>,
}

/// Time after which values are read back once more, unless it is asked for another.
pub const SETTLE_SECONDS: f64 = 5.0;

/// Maximum of `trial_seconds`.
const TRIAL_SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

impl Default for ApplyRequest {
    fn default() -> ApplyRequest {
        ApplyRequest { settle_seconds: SETTLE_SECONDS, trial_seconds: None }
    }
}

impl ApplyRequest {
    /// Checks the options.
    ///
    /// # Errors
    /// When the trial would end before the values are read back, or is too long.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(trial_seconds) = self.trial_seconds else { return Ok(()) };
        if trial_seconds <= self.settle_seconds {
            let message = format!(
                "--for {} ends before the values are read back, after {}",
                duration(trial_seconds),
                duration(self.settle_seconds)
            );
            return Err(Failure::of(message, Some("choose a longer --for or a shorter --settle")));
        }
        if trial_seconds > TRIAL_SECONDS_MAX {
            let hint = "leave out --for: the change stays until `takeup tune revert`";
            return Err(Failure::of("--for: at most 30 days", Some(hint)));
        }
        Ok(())
    }

    /// Checks the options of a command that sets nothing.
    ///
    /// # Errors
    /// When there is a trial, but nothing to restore.
    pub fn check_unused(&self) -> Result<(), Failure> {
        match self.trial_seconds {
            None => Ok(()),
            Some(_) => {
                let hint = Some("add --apply, or leave out --for");
                Err(Failure::of("--for needs --apply", hint))
            }
        }
    }
}

/// The reason why nothing keeps these settings over a restart, for the first such setting.
pub fn why_not_kept(kinds: &[SettingKind], storage: &Storage) -> Option<String> {
    kinds.iter().find_map(|kind| {
        let settings = settings_of(*kind, storage).ok()?;
        let (_, words) = experiment::environment::of_restart(*kind, &settings)?;
        keep::why_not_kept(&words).map(str::to_owned)
    })
}

/// The path for a command: the persistent name of a device, if it has one.
pub fn typed_path(path: &Path) -> String {
    let lasting = keep::lasting_name(Path::new("/dev/disk/by-id"), path);
    lasting.as_deref().unwrap_or(path).display().to_string()
}

/// The storage below a path.
pub fn storage(path: &Path) -> Result<Storage, Failure> {
    Storage::of(path).map_err(|error| Failure::new(&error, None))
}

/// The settings of a kind that have an effect on a path, with that value.
///
/// # Errors
/// When there is none, it has no effect on reads through a device above, it must not be changed, or
/// the kernel would set another value.
pub fn acting(
    kind: SettingKind,
    value: &str,
    storage: &Storage,
    path: &Path,
) -> Result<Vec<(Setting, String)>, Failure> {
    let name = kind.file_name();
    refuse_without_effect(kind, storage, path)?;
    if kind == SettingKind::MaxSectors
        && let Some(device) = multipath(storage)
    {
        return Err(Failure::of(
            format!(
                "cannot change max_sectors_kb below {device} while it is in use: requests in \
                 flight would fail its paths"
            ),
            Some(
                "set max_sectors_kb in /etc/multipath.conf; it applies when the device is created",
            ),
        ));
    }
    let settings = settings_of(kind, storage).map_err(|error| Failure::new(&error, None))?;
    for setting in &settings {
        let unfit = unfit(setting, value).map_err(|error| Failure::new(&error, None))?;
        if let Some(unfit) = unfit {
            let hint = match &unfit {
                Unfit::Clipped { becomes, .. } => Some(format!("use {name}={becomes}")),
                Unfit::NotOffered { .. } => None,
            };
            return Err(Failure::of(format!("{}: {unfit}", path.display()), hint.as_deref()));
        }
    }
    Ok(settings.into_iter().map(|setting| (setting, value.to_owned())).collect())
}

/// Refuses read-ahead of a device below another one: it has no effect on reads through the upper
/// one.
fn refuse_without_effect(kind: SettingKind, storage: &Storage, path: &Path) -> Result<(), Failure> {
    let above = holders(&storage.name);
    if kind != SettingKind::ReadAhead || above.is_empty() {
        return Ok(());
    }
    let above = above.join(", ");
    Err(Failure::of(
        format!(
            "{}: read-ahead of {} has no effect on reads through {above}",
            path.display(),
            storage.name
        ),
        Some(&format!("name {above} or a path on it: only the top device's read-ahead counts")),
    ))
}

/// Devices directly above this one.
fn holders(name: &str) -> Vec<String> {
    let folder = Path::new("/sys/class/block").join(name.replace('/', "!")).join("holders");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The multipath device in a stack, or directly above a named disk.
fn multipath(storage: &Storage) -> Option<String> {
    let is_multipath = |name: &String| {
        let uuid = Path::new("/sys/class/block").join(name).join("dm/uuid");
        fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("mpath-"))
    };
    let own = storage.multipath().map(str::to_owned);
    own.or_else(|| holders(&storage.name).into_iter().find(is_multipath))
}

/// Settings that were set, with the values read back.
#[derive(Debug)]
pub struct Applied {
    /// Values directly after the last write.
    pub now: Vec<Now>,
    /// Values after udev has run and some time has passed.
    pub later: Vec<Now>,
    /// When they were read the second time.
    pub second: SecondLook,
    /// The trial, if there is one.
    pub trial: Option<Trial>,
}

/// When values were read the second time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SecondLook {
    /// Whether udev had applied its rules.
    pub is_after_udev: bool,
    /// The wait for programs that give no signal.
    pub wait: SettleWait,
}

/// Sets the values, reads them back, and reads them back again after udev has run and some time.
///
/// # Errors
/// When nothing could be set, or the list of changes cannot be written.
pub fn apply(
    path: &Path,
    settings: Vec<(Setting, String)>,
    request: &ApplyRequest,
    host: &dyn TuneHost,
) -> Result<Applied, Failure> {
    let machine = ThisMachine;
    put_back_overdue(host)?;
    let mut changes = changes(&machine, host)?;
    let now_unix_seconds = experiment::run::unix_seconds();
    // The guard begins when this is dropped, or when this process dies.
    let guard = match request.trial_seconds {
        Some(_) => Some(TrialGuard::start(host.guard(&list()?))?),
        None => None,
    };
    let trial = guard.as_ref().zip(request.trial_seconds).map(|(guard, seconds)| Trial {
        until_uptime_ms: machine.uptime_ms() + (seconds * 1e3) as u64,
        until_unix_seconds: now_unix_seconds + seconds as u64,
        guard: guard.process,
        phase: Phase::default(),
    });
    let for_path = path.display().to_string();
    let wanted = WantedChange { for_path, now_unix_seconds, trial, settings };
    let change = changes.remember(&wanted).map_err(|error| failure(&error))?;
    let now = if change.settings.is_empty() {
        Vec::new()
    } else {
        changes.apply().map_err(|error| failure(&error))?
    };
    // Release the lock before the wait.
    drop(changes);
    drop(guard);
    let (later, second) =
        if now.is_empty() { Default::default() } else { again(&change, request, host) };
    let trial = change.trial.filter(|_| !now.is_empty());
    Ok(Applied { now, later, second, trial })
}

/// Reads the values once more after udev has applied its rules, which it does when a disk that was
/// open for writing is closed; and after some time, for tuned and multipathd, which give no signal.
fn again(
    change: &SettingsChange,
    request: &ApplyRequest,
    host: &dyn TuneHost,
) -> (Vec<Now>, SecondLook) {
    let settled = machine::programs::command("udevadm").and_then(|mut udevadm| {
        udevadm.args(["settle", "--timeout=10"]).stdin(Stdio::null());
        udevadm.stdout(Stdio::null()).stderr(Stdio::null()).status()
    });
    let is_missing = settled.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let wait = host.settle(request.settle_seconds);
    (look(&ThisMachine, change), SecondLook { is_after_udev: !is_missing, wait })
}

/// A setting that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSettingAnswer {
    /// The present name of the device.
    pub device: Option<String>,
    /// The setting, by the name of its file.
    pub name: String,
    /// The value before the change.
    pub before: String,
    /// The value that was set; null if the kernel may have reset it with another setting.
    pub set: Option<String>,
    /// The value directly after the last write.
    pub now: Option<String>,
    /// The value after udev has run and some time has passed.
    pub later: Option<String>,
    /// Whether it held both times.
    pub holds: bool,
}

impl Applied {
    /// Whether all settings hold the requested values.
    pub fn holds(&self) -> bool {
        self.now.iter().chain(&self.later).all(Now::holds)
    }

    /// With a warning where something does not hold.
    pub fn outcome(&self) -> Outcome {
        if self.holds() { Outcome::Done } else { Outcome::Warned }
    }

    /// The end of the trial, in seconds of Unix time.
    pub fn until_unix_seconds(&self) -> Option<u64> {
        self.trial.as_ref().map(|trial| trial.until_unix_seconds)
    }

    /// The time to the end of the trial.
    pub fn left_seconds(&self) -> Option<f64> {
        let left_ms = |trial: &Trial| trial.until_uptime_ms.saturating_sub(ThisMachine.uptime_ms());
        self.trial.as_ref().map(|trial| left_ms(trial) as f64 / 1e3)
    }

    /// The command that keeps the change.
    pub fn confirm(&self) -> Option<&'static str> {
        self.trial.as_ref().map(|_| CONFIRM)
    }

    /// The settings, as a part of an answer.
    pub fn answer(&self) -> Vec<AppliedSettingAnswer> {
        let one = |(now, later): (&Now, &Now)| AppliedSettingAnswer {
            device: now.name.clone(),
            name: now.changed.kind.file_name().to_owned(),
            before: now.changed.before.clone(),
            set: now.changed.set.clone(),
            now: now.value.clone(),
            later: later.value.clone(),
            holds: now.holds() && later.holds(),
        };
        self.now.iter().zip(&self.later).map(one).collect()
    }
}
