//! `takeup tune set`, and setting values for the other commands of `tune`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use base::escape::escape;
use base::format::duration;
use clap::Args;
use experiment::judgement::{KEEP, UNDO};
use loads::disk::queue::settings_of;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use storage::layers::Storage;
use storage::settings::changes::{
    Now, Phase, SettingFiles, SettingsChange, ThisMachine, Trial, WantedChange, look,
};
use storage::settings::keep;
use storage::settings::limits::{Unfit, unfit};
use storage::settings::{Setting, SettingKind};

use super::guard::Guard;
use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use arguments::quantity::Span;
use service::failure::Failure;
use service::outcome::Outcome;

/// Set read-ahead or queue settings of the device below a path
///
/// Before any write, Takeup refuses a value that the kernel would change, that would fail the paths
/// of a multipath device, or that would have no effect. It writes limits before read-ahead, which
/// the kernel resets with them. It reads all values back, and once more after udev has run.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune set /srv/images read_ahead_kb=1024
  takeup tune set /dev/sdb scheduler=mq-deadline nr_requests=256 max_sectors_kb=512
  takeup tune set /dev/sdb scheduler=bfq --for 10m && takeup tune confirm
  takeup tune revert

NAME is a file of /sys/block/*/queue: scheduler, write_cache, rotational, max_sectors_kb, nomerges,
wbt_lat_usec, nr_requests, read_ahead_kb. Read-ahead is set on the device of the file system of
PATH, all others on the disks at the bottom.")]
pub struct SetArgs {
    /// File, folder or block device
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Settings to change
    #[arg(value_name = "NAME=VALUE", required = true)]
    settings: Vec<String>,
    #[command(flatten)]
    apply: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Options of every command that sets something.
#[derive(Args, Clone, Copy, Debug)]
pub struct ApplyArgs {
    /// Time after which all values are read back once more
    #[arg(long, default_value = "5s", value_name = "TIME")]
    settle: Span,
    /// Restore the old values after this time, unless you run `takeup tune confirm`
    #[arg(long = "for", value_name = "TIME")]
    trial: Option<Span>,
}

/// How often a wait checks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Maximum of `--for`.
const TRIAL_SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

impl ApplyArgs {
    /// Checks the options.
    ///
    /// # Errors
    /// When the trial would end before the values are read back, or is too long.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(trial) = self.trial else { return Ok(()) };
        if trial.0 <= self.settle.0 {
            let message = format!(
                "--for {} ends before the values are read back, after {}",
                duration(trial.0),
                duration(self.settle.0)
            );
            return Err(Failure::of(message, Some("choose a longer --for or a shorter --settle")));
        }
        if trial.0 > TRIAL_SECONDS_MAX {
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
        match self.trial {
            None => Ok(()),
            Some(_) => {
                let hint = Some("add --apply, or leave out --for");
                Err(Failure::of("--for needs --apply", hint))
            }
        }
    }
}

/// Runs the command.
pub fn run(arguments: &SetArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(set(arguments), "tune set", form)
}

/// Refuses two values for one setting.
fn given_once(settings: &[String]) -> Result<(), Failure> {
    let name = |text: &String| text.split('=').next().unwrap_or_default().to_owned();
    let names: Vec<String> = settings.iter().map(name).collect();
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => Err(Failure::of(format!("{name} is given twice"), None)),
        None => Ok(()),
    }
}

fn set(arguments: &SetArgs) -> Result<Outcome, Failure> {
    arguments.apply.check()?;
    given_once(&arguments.settings)?;
    let storage = storage(&arguments.path)?;
    let mut settings = Vec::new();
    for text in &arguments.settings {
        settings.extend(parsed(text, &storage, &arguments.path)?);
    }
    let applied = apply(&arguments.path, settings, &arguments.apply)?;
    let text = if arguments.json {
        let document = json!({
            "command": "tune set",
            "settings": applied.document(),
            "until_unix_seconds": applied.until_unix_seconds(),
            "commands": { "undo": UNDO, "confirm": applied.confirm() },
        });
        format!("{document:#}\n")
    } else {
        applied.text()
    };
    to_standard_output(text.as_bytes())?;
    Ok(applied.outcome())
}

/// The reason why nothing keeps these settings over a restart, for the first such setting.
pub fn why_not_kept(kinds: &[SettingKind], storage: &Storage) -> Option<String> {
    kinds.iter().find_map(|kind| {
        let settings = settings_of(*kind, storage).ok()?;
        let (_, words) = experiment::environment::of_restart(*kind, &settings)?;
        keep::why_not_kept(&words).map(str::to_owned)
    })
}

/// The command that keeps settings over a restart, or the reason why nothing keeps them.
pub fn keep_line(why_not: Option<&str>) -> String {
    why_not.map_or_else(|| KEEP.to_owned(), |why| format!("not over a restart: {why}"))
}

/// The path for a command: the persistent name of a device, if it has one.
pub fn typed_path(path: &Path) -> String {
    let lasting = keep::lasting_name(Path::new("/dev/disk/by-id"), path);
    lasting.as_deref().unwrap_or(path).display().to_string()
}

/// The command that ends a trial and keeps the change.
pub const CONFIRM: &str = "takeup tune confirm";

/// The storage below a path.
pub fn storage(path: &Path) -> Result<Storage, Failure> {
    Storage::of(path).map_err(|error| Failure::new(&error, None))
}

/// Parses `NAME=VALUE` into settings, and checks that they have an effect and accept the value.
fn parsed(text: &str, storage: &Storage, path: &Path) -> Result<Vec<(Setting, String)>, Failure> {
    let unknown = |why: &str| {
        let names: Vec<&str> = SettingKind::ALL.iter().map(|kind| kind.file_name()).collect();
        Failure::of(format!("{text}: {why}"), Some(&format!("use one of {}", names.join(", "))))
    };
    let (name, value) = text.split_once('=').ok_or_else(|| unknown("expected NAME=VALUE"))?;
    let kind = SettingKind::of_file(name).ok_or_else(|| unknown("unknown setting"))?;
    acting(kind, value, storage, path)
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
pub struct Applied {
    /// Values directly after the last write.
    now: Vec<Now>,
    /// Values after udev has run and some time has passed.
    later: Vec<Now>,
    /// The time of `later`, in words.
    when: String,
    /// The trial, if there is one.
    trial: Option<Trial>,
}

/// Sets the values, reads them back, and reads them back again after udev has run and some time.
///
/// # Errors
/// When nothing could be set, or the list of changes cannot be written.
pub fn apply(
    path: &Path,
    settings: Vec<(Setting, String)>,
    arguments: &ApplyArgs,
) -> Result<Applied, Failure> {
    let machine = ThisMachine;
    super::put_back_overdue()?;
    let mut changes = super::changes(&machine)?;
    let now_unix_seconds = experiment::run::unix_seconds();
    // The guard begins when this is dropped, or when this process dies.
    let guard = match arguments.trial {
        Some(_) => Some(Guard::start(&super::list()?)?),
        None => None,
    };
    let trial = guard.as_ref().zip(arguments.trial).map(|(guard, Span(seconds))| Trial {
        until_uptime_ms: machine.uptime_ms() + (seconds * 1e3) as u64,
        until_unix_seconds: now_unix_seconds + seconds as u64,
        guard: guard.process,
        phase: Phase::default(),
    });
    let for_path = path.display().to_string();
    let wanted = WantedChange { for_path, now_unix_seconds, trial, settings };
    let change = changes.remember(&wanted).map_err(|error| super::failure(&error))?;
    let now = if change.settings.is_empty() {
        Vec::new()
    } else {
        changes.apply().map_err(|error| super::failure(&error))?
    };
    // Release the lock before the wait.
    drop(changes);
    drop(guard);
    let (later, when) = if now.is_empty() { Default::default() } else { again(&change, arguments) };
    let trial = change.trial.filter(|_| !now.is_empty());
    Ok(Applied { now, later, when, trial })
}

/// Reads the values once more after udev has applied its rules, which it does when a disk that was
/// open for writing is closed; and after some time, for tuned and multipathd, which give no signal.
fn again(change: &SettingsChange, arguments: &ApplyArgs) -> (Vec<Now>, String) {
    let settled = machine::programs::command("udevadm").and_then(|mut udevadm| {
        udevadm.args(["settle", "--timeout=10"]).stdin(Stdio::null());
        udevadm.stdout(Stdio::null()).stderr(Stdio::null()).status()
    });
    let udev = match settled {
        Err(error) if error.kind() == io::ErrorKind::NotFound => "",
        _ => "after `udevadm settle` and ",
    };
    let (seconds, is_stopped) = settle(arguments.settle.0);
    let stopped = if is_stopped { ", when you stopped it" } else { "" };
    let when = format!("{udev}after {}{stopped}", duration(seconds));
    (look(&ThisMachine, change), when)
}

/// Waits that long, or until a signal asks to stop; the result is printed in both cases.
fn settle(seconds: f64) -> (f64, bool) {
    let start = Instant::now();
    let mut signals = crate::interrupt::listen(&[SIGINT, SIGTERM, SIGHUP]).ok();
    while start.elapsed().as_secs_f64() < seconds {
        let left = Duration::from_secs_f64(seconds).saturating_sub(start.elapsed());
        std::thread::sleep(left.min(LOOK_EVERY));
        if signals.as_mut().is_some_and(|signals| signals.pending().next().is_some()) {
            return (start.elapsed().as_secs_f64(), true);
        }
    }
    (seconds, false)
}

impl Applied {
    /// Whether all settings hold the requested values.
    fn holds(&self) -> bool {
        self.now.iter().chain(&self.later).all(Now::holds)
    }

    /// With a warning where something does not hold.
    pub fn outcome(&self) -> Outcome {
        if self.holds() { Outcome::Done } else { Outcome::Warned }
    }

    /// For documents.
    pub fn document(&self) -> Value {
        let one = |(now, later): (&Now, &Now)| {
            json!({
                "device": now.name,
                "name": now.changed.kind.file_name(),
                "before": now.changed.before,
                "set": now.changed.set,
                "now": now.value,
                "later": later.value,
                "holds": now.holds() && later.holds(),
            })
        };
        Value::Array(self.now.iter().zip(&self.later).map(one).collect())
    }

    /// For people.
    pub fn text(&self) -> String {
        if self.now.is_empty() {
            return "all values are in force already: nothing was changed\n".to_owned();
        }
        let mut text = String::new();
        for (now, later) in self.now.iter().zip(&self.later) {
            let Some(set) = &now.changed.set else {
                if later.value.as_ref().is_some_and(|value| *value != now.changed.before) {
                    text.push_str(&brought_along(later));
                }
                continue;
            };
            text.push_str(&format!("{}: {}", setting_name(now), step(now, set)));
            if !now.holds() {
                text.push_str(&format!("; the kernel set {}", held(now)));
            }
            if later.value != now.value {
                text.push_str(&format!(", and {} it is {}", self.when, held(later)));
            }
            text.push('\n');
        }
        if self.holds() {
            text.push_str(&format!("read back at once and {}: all as set\n", self.when));
        } else {
            text.push_str("another program sets it too: check udev, tuned, lvm and multipathd\n");
        }
        text + &match &self.trial {
            None => format!("undo: {UNDO}\n"),
            Some(trial) => {
                let seconds = trial.until_uptime_ms.saturating_sub(ThisMachine.uptime_ms());
                let left = duration(seconds as f64 / 1e3);
                format!("undo: automatic in {left} unless `{CONFIRM}`; at once: {UNDO}\n")
            }
        }
    }

    /// The end of the trial, in seconds of Unix time.
    pub fn until_unix_seconds(&self) -> Option<u64> {
        self.trial.as_ref().map(|trial| trial.until_unix_seconds)
    }

    /// The command that keeps the change.
    pub fn confirm(&self) -> Option<&'static str> {
        self.trial.as_ref().map(|_| CONFIRM)
    }
}

/// A setting that the kernel changed along with a requested one.
fn brought_along(now: &Now) -> String {
    let from = now.changed.kind.with_unit(&now.changed.before);
    let with = if SettingKind::Scheduler.resets().contains(&now.changed.kind) {
        "the kernel resets it with the scheduler"
    } else {
        "the kernel resets it with the limits"
    };
    format!("{}: {from} -> {}; {with}\n", setting_name(now), held(now))
}

/// `sdb read-ahead`.
pub fn setting_name(now: &Now) -> String {
    let name = now.name.as_ref().unwrap_or(&now.changed.device.name);
    format!("{} {}", escape(name.as_bytes()), now.changed.kind.name())
}

/// The old and the new value.
pub fn step(now: &Now, set: &str) -> String {
    let (kind, before) = (now.changed.kind, &now.changed.before);
    if now.asks_for_default() {
        return format!("{} -> {}, the kernel's default", kind.with_unit(before), held(now));
    }
    match kind.with_unit(set) {
        same if before == set => format!("{same}, kept"),
        other => format!("{} -> {other}", kind.with_unit(before)),
    }
}

/// The value in force, in words.
pub fn held(now: &Now) -> String {
    match &now.value {
        Some(value) => now.changed.kind.with_unit(value),
        None => "unreadable".to_owned(),
    }
}
