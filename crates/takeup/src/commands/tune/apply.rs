//! `takeup tune set`, and every other way in which something is set.

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

/// Set read-ahead or the queue of the device that a path lies on
///
/// A value that would not stay as it is, that would fail the paths of a multipath device, or that
/// does nothing where it is to be set, is refused before anything is written. Limits are written
/// before read-ahead, which the kernel sets anew with them; all is read back, also after udev had
/// its turn.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup tune set /srv/images read_ahead_kb=1024
  takeup tune set /dev/sdb scheduler=mq-deadline nr_requests=256 max_sectors_kb=512
  takeup tune set /dev/sdb scheduler=bfq --for 10m && takeup tune confirm
  takeup tune revert

Names are those in /sys/block/*/queue: scheduler, write_cache, rotational, max_sectors_kb, nomerges,
wbt_lat_usec, nr_requests, read_ahead_kb. Read-ahead is that of the device that the file system of
PATH lies on, all others are those of the disks at its bottom.")]
pub struct SetArgs {
    /// File, folder or block device
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// What to set
    #[arg(value_name = "NAME=VALUE", required = true)]
    settings: Vec<String>,
    #[command(flatten)]
    apply: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// How something is set.
#[derive(Args, Clone, Copy, Debug)]
pub struct ApplyArgs {
    /// Time after which all is read back once more
    #[arg(long, default_value = "5s", value_name = "TIME")]
    settle: Span,
    /// Put it back after this time, unless `takeup tune confirm` says that it stays
    #[arg(long = "for", value_name = "TIME")]
    trial: Option<Span>,
}

/// How often a wait looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Longer than anybody tries something.
const TRIAL_SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

impl ApplyArgs {
    /// What cannot be meant is refused.
    ///
    /// # Errors
    /// When what is set would be back before it is read back, or when nobody remembers it.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(trial) = self.trial else { return Ok(()) };
        if trial.0 <= self.settle.0 {
            let message = format!(
                "--for {} is over before all is read back, after {}",
                duration(trial.0),
                duration(self.settle.0)
            );
            return Err(Failure::of(message, Some("--settle says when that is")));
        }
        if trial.0 > TRIAL_SECONDS_MAX {
            let hint = "without --for it stays until `takeup tune revert`";
            return Err(Failure::of("--for is 30 days at most", Some(hint)));
        }
        Ok(())
    }

    /// The same of a command that was not told to set anything.
    ///
    /// # Errors
    /// When there is nothing that could be put back.
    pub fn check_unused(&self) -> Result<(), Failure> {
        match self.trial {
            None => Ok(()),
            Some(_) => {
                let hint = Some("--apply --for TIME");
                Err(Failure::of("--for is for what --apply sets", hint))
            }
        }
    }
}

/// Runs the command.
pub fn run(arguments: &SetArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(set(arguments), "tune set", form)
}

/// Of two values of one setting it is not known which one is meant.
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

/// Why nothing keeps settings of these kinds over a restart, of the first that nothing keeps.
pub fn why_not_kept(kinds: &[SettingKind], storage: &Storage) -> Option<String> {
    kinds.iter().find_map(|kind| {
        let settings = settings_of(*kind, storage).ok()?;
        let (_, words) = experiment::environment::of_restart(*kind, &settings)?;
        keep::why_not_kept(&words).map(str::to_owned)
    })
}

/// What is typed so that settings are kept over a restart, or that nothing keeps them.
pub fn keep_line(why_not: Option<&str>) -> String {
    why_not.map_or_else(|| KEEP.to_owned(), |why| format!("not over a restart: {why}"))
}

/// The path as it is typed: a device by a name that stays, where it has one.
pub fn typed_path(path: &Path) -> String {
    let lasting = keep::lasting_name(Path::new("/dev/disk/by-id"), path);
    lasting.as_deref().unwrap_or(path).display().to_string()
}

/// What makes it stay.
pub const CONFIRM: &str = "takeup tune confirm";

/// The storage below a path.
pub fn storage(path: &Path) -> Result<Storage, Failure> {
    Storage::of(path).map_err(|error| Failure::new(&error, None))
}

/// `NAME=VALUE` as the settings that act, once it is known that they do and take that value.
fn parsed(text: &str, storage: &Storage, path: &Path) -> Result<Vec<(Setting, String)>, Failure> {
    let unknown = |why: &str| {
        let names: Vec<&str> = SettingKind::ALL.iter().map(|kind| kind.file_name()).collect();
        Failure::of(format!("{text}: {why}"), Some(&format!("known are {}", names.join(", "))))
    };
    let (name, value) = text.split_once('=').ok_or_else(|| unknown("a setting is NAME=VALUE"))?;
    let kind = SettingKind::of_file(name).ok_or_else(|| unknown("no setting of that name"))?;
    acting(kind, value, storage, path)
}

/// The settings of a kind that act on a path, with that value.
///
/// # Errors
/// When there is none, it does nothing for what lies above, it must not be changed, or the kernel
/// would make another value of it.
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
                "max_sectors_kb below {device}, which is in use, is not changed: requests that \
                     are under way would fail its paths"
            ),
            Some("max_sectors_kb in /etc/multipath.conf sets it when the device is made"),
        ));
    }
    let settings = settings_of(kind, storage).map_err(|error| Failure::new(&error, None))?;
    for setting in &settings {
        let unfit = unfit(setting, value).map_err(|error| Failure::new(&error, None))?;
        if let Some(unfit) = unfit {
            let hint = match &unfit {
                Unfit::Clipped { becomes, .. } => Some(format!("{name}={becomes} is taken")),
                Unfit::NotOffered { .. } => None,
            };
            return Err(Failure::of(format!("{}: {unfit}", path.display()), hint.as_deref()));
        }
    }
    Ok(settings.into_iter().map(|setting| (setting, value.to_owned())).collect())
}

/// Read-ahead of a device that is part of another one does nothing for what is read through that.
fn refuse_without_effect(kind: SettingKind, storage: &Storage, path: &Path) -> Result<(), Failure> {
    let above = holders(&storage.name);
    if kind != SettingKind::ReadAhead || above.is_empty() {
        return Ok(());
    }
    let above = above.join(", ");
    Err(Failure::of(
        format!(
            "{}: read-ahead of {} does nothing for what is read through {above}",
            path.display(),
            storage.name
        ),
        Some(&format!("name {above}, or a path on it: read-ahead is that of the uppermost device")),
    ))
}

/// Devices that are made of this one.
fn holders(name: &str) -> Vec<String> {
    let folder = Path::new("/sys/class/block").join(name.replace('/', "!")).join("holders");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The multipath device in a stack, or above a disk that is named itself.
fn multipath(storage: &Storage) -> Option<String> {
    let is_multipath = |name: &String| {
        let uuid = Path::new("/sys/class/block").join(name).join("dm/uuid");
        fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("mpath-"))
    };
    let own = storage.multipath().map(str::to_owned);
    own.or_else(|| holders(&storage.name).into_iter().find(is_multipath))
}

/// What was set, and what became of it.
pub struct Applied {
    /// As it was right behind the last write.
    now: Vec<Now>,
    /// As it was after udev had its turn, and some time.
    later: Vec<Now>,
    /// When that was.
    when: String,
    /// Until when it stays by itself.
    trial: Option<Trial>,
}

/// Sets, reads back, and reads back again when udev is done and after some time.
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
    // It begins when this is dropped, or this process has died.
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
    // Others need not wait while nothing is done.
    drop(changes);
    drop(guard);
    let (later, when) = if now.is_empty() { Default::default() } else { again(&change, arguments) };
    let trial = change.trial.filter(|_| !now.is_empty());
    Ok(Applied { now, later, when, trial })
}

/// Looks once more when udev has applied its rules, which it does when a disk that was open for
/// writing is closed, and after some time: others (tuned, multipathd) have no such sign.
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
    let stopped = if is_stopped { ", when it was stopped" } else { "" };
    let when = format!("{udev}after {}{stopped}", duration(seconds));
    (look(&ThisMachine, change), when)
}

/// Waits so long, or until a signal asks to stop: what is set by then is told all the same.
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
    /// Whether all holds that was asked for.
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
            return "all of it is set already: nothing was changed\n".to_owned();
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
                text.push_str(&format!("; the kernel made {} of it", held(now)));
            }
            if later.value != now.value {
                text.push_str(&format!(", and {} it is {}", self.when, held(later)));
            }
            text.push('\n');
        }
        if self.holds() {
            text.push_str(&format!("read back at once and {}: all as set\n", self.when));
        } else {
            text.push_str("somebody else sets it, too: a rule of udev, tuned, lvm or multipathd\n");
        }
        text + &match &self.trial {
            None => format!("back: {UNDO}\n"),
            Some(trial) => {
                let seconds = trial.until_uptime_ms.saturating_sub(ThisMachine.uptime_ms());
                let left = duration(seconds as f64 / 1e3);
                format!("back: by itself in {left} unless `{CONFIRM}`; at once: {UNDO}\n")
            }
        }
    }

    /// When it goes back by itself, in seconds of Unix time.
    pub fn until_unix_seconds(&self) -> Option<u64> {
        self.trial.as_ref().map(|trial| trial.until_unix_seconds)
    }

    /// What is typed to keep it.
    pub fn confirm(&self) -> Option<&'static str> {
        self.trial.as_ref().map(|_| CONFIRM)
    }
}

/// What nobody asked for, and came with another setting.
fn brought_along(now: &Now) -> String {
    let from = now.changed.kind.with_unit(&now.changed.before);
    let with = if SettingKind::Scheduler.resets().contains(&now.changed.kind) {
        "the kernel sets it anew with the scheduler"
    } else {
        "the kernel sets it anew with the limits"
    };
    format!("{}: {from} -> {}; {with}\n", setting_name(now), held(now))
}

/// `sdb read-ahead`.
pub fn setting_name(now: &Now) -> String {
    let name = now.name.as_ref().unwrap_or(&now.changed.device.name);
    format!("{} {}", escape(name.as_bytes()), now.changed.kind.name())
}

/// From what to what it was set.
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

/// What a setting holds, in words.
pub fn held(now: &Now) -> String {
    match &now.value {
        Some(value) => now.changed.kind.with_unit(value),
        None => "not to be read".to_owned(),
    }
}
