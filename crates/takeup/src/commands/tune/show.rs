//! `takeup tune show` and `takeup tune revert`: show and revert changed settings.

use std::process::ExitCode;
use std::time::Duration;

use base::escape::escape;
use base::format::{counted, duration};
use clap::Args;
use experiment::judgement::UNDO;
use serde_json::{Value, json};
use storage::settings::Pending;
use storage::settings::changes::{
    Left, Now, Reverted, SettingsChange, ThisMachine, Trial, look, remembered,
};

use super::apply::{CONFIRM, held, setting_name, step};
use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use service::failure::Failure;
use service::outcome::Outcome;

/// Show changed settings, and whether they still hold
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Restore all changed settings
///
/// This works after a crash, and if a device has another name now. After a restart the kernel has
/// its own values: then only settings that still hold the changed value are restored. Takeup names
/// a device that is gone; run the command again when it is back.
#[derive(Args, Debug)]
pub struct RevertArgs {
    /// Remove devices that are gone from the list of changes
    #[arg(long)]
    forget: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Shows.
pub fn run(arguments: &ShowArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(show(arguments), "tune show", form)
}

/// Puts back.
pub fn run_revert(arguments: &RevertArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(revert(arguments), "tune revert", form)
}

fn show(arguments: &ShowArgs) -> Result<Outcome, Failure> {
    let changes = remembered(&super::list()?).map_err(|error| super::failure(&error))?;
    let looked: Vec<(SettingsChange, Vec<Now>)> = changes
        .into_iter()
        .map(|change| {
            let now = look(&ThisMachine, &change);
            (change, now)
        })
        .collect();
    let pending = super::pending()?;
    let text = if arguments.json {
        let changes: Vec<Value> = looked.iter().map(document).collect();
        let experiment =
            pending.map(|it| json!({ "pid": it.pid, "runs": it.runs, "settings": it.what }));
        let document =
            json!({ "command": "tune show", "changes": changes, "experiment": experiment });
        format!("{document:#}\n")
    } else {
        let seconds = experiment::run::unix_seconds();
        let one = |at: usize| words(&looked[at], &looked[at + 1..], seconds);
        let text: String = (0..looked.len()).map(one).collect();
        let text = text + &pending.as_ref().map_or(String::new(), pending_words);
        if text.is_empty() { super::nothing_in_list("nothing is changed") } else { text }
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Settings that an experiment has changed at the moment.
fn pending_words(pending: &Pending) -> String {
    let Pending { pid, runs, what } = pending;
    if *runs {
        format!("process {pid}, an experiment: has changed {what} until it ends\n")
    } else {
        format!("{what}: left changed by a killed experiment (process {pid}); to restore: {UNDO}\n")
    }
}

fn document((change, now): &(SettingsChange, Vec<Now>)) -> Value {
    let one = |now: &Now| {
        json!({
            "device": now.name,
            "device_then": now.changed.device.name,
            "known_by": now.changed.device.known_by,
            "name": now.changed.kind.file_name(),
            "before": now.changed.before,
            "set": now.changed.set,
            "now": now.value,
            "holds": now.holds(),
        })
    };
    json!({
        "path": change.for_path,
        "made_unix_seconds": change.made_unix_seconds,
        "trial": change.left(&ThisMachine).zip(change.trial.as_ref()).map(|(left, trial)| json!({
            "until_unix_seconds": trial.until_unix_seconds,
            "seconds_left": left.as_secs_f64(),
            "overdue": left.is_zero(),
            "guard": trial.guard.pid,
            "guarded": trial.guard.runs(),
        })),
        "settings": now.iter().map(one).collect::<Vec<Value>>(),
    })
}

/// A change with the present values; `later` are the changes after it.
fn words(
    (change, now): &(SettingsChange, Vec<Now>),
    later: &[(SettingsChange, Vec<Now>)],
    seconds: u64,
) -> String {
    let is_anew = |one: &Now| {
        let same = |other: &&Now| {
            other.changed.kind == one.changed.kind
                && other.changed.device.name == one.changed.device.name
        };
        later.iter().flat_map(|(_, now)| now).find(same).is_some_and(|it| it.changed.set.is_some())
    };
    let ago = duration(seconds.saturating_sub(change.made_unix_seconds) as f64);
    let mut text = format!("{ago} ago for {}\n", escape(change.for_path.as_bytes()));
    if let (Some(left), Some(trial)) = (change.left(&ThisMachine), &change.trial) {
        text.push_str(&format!("  {}\n", trial_words(left, trial)));
    }
    for one in now {
        let Some(set) = &one.changed.set else { continue };
        let state = match (&one.name, one.holds()) {
            (None, _) => "the device is gone".to_owned(),
            (_, true) => "holds".to_owned(),
            (_, false) if is_anew(one) => format!("is {} now: changed again below", held(one)),
            (_, false) => format!("is {} now: set by the kernel or another program", held(one)),
        };
        text.push_str(&format!("  {}: {}, {state}\n", setting_name(one), step(one, set)));
    }
    text
}

/// When a change on trial is restored, and by which process.
fn trial_words(left: Duration, trial: &Trial) -> String {
    let time = duration(left.as_secs_f64());
    let pid = trial.guard.pid;
    match (left.is_zero(), trial.guard.runs()) {
        (false, true) => format!("on trial: restored in {time} unless `{CONFIRM}`"),
        (false, false) => format!(
            "on trial for {time}: the guard (process {pid}) has died; the next `takeup tune` after \
             that time restores it, unless `{CONFIRM}`; at once: {UNDO}"
        ),
        (true, true) => format!("on trial, and overdue: process {pid} is about to restore it"),
        (true, false) => format!(
            "on trial, and overdue: the guard (process {pid}) has died; the next `takeup tune` \
             restores it; at once: {UNDO}"
        ),
    }
}

fn revert(arguments: &RevertArgs) -> Result<Outcome, Failure> {
    let recovered = super::recovered()?;
    let mut changes = super::changes(&ThisMachine)?;
    // First remove the rules, which would set the values again when a device appears.
    let file = changes.persisted().map(|path| path.display().to_string());
    let unpersisted = changes.unpersist();
    let reverted = changes.revert().map_err(|error| super::failure(&error))?;
    let forgotten = if arguments.forget {
        changes.forget_gone().map_err(|error| super::failure(&error))?
    } else {
        0
    };
    let text = if arguments.json {
        let document = json!({
            "command": "tune revert",
            "recovered": recovered,
            "put_back": lefts(&reverted.put_back),
            "left_alone": lefts(&reverted.forgotten),
            "set_by_others": lefts(&reverted.theirs),
            "gone": lefts(&reverted.gone),
            "given_up": forgotten,
            "removed": file.as_ref().filter(|_| unpersisted.is_ok()),
        });
        format!("{document:#}\n")
    } else {
        let removed = match &file {
            Some(file) if unpersisted.is_ok() => format!("{file}: removed\n"),
            _ => String::new(),
        };
        match reverted_words(&reverted, forgotten) {
            // The restore after the experiment is reported already.
            text if text.starts_with(NOTHING) && recovered > 0 => removed,
            text => removed + &text,
        }
    };
    to_standard_output(text.as_bytes())?;
    unpersisted.map_err(|error| super::failure(&error))?;
    let is_whole = reverted.gone.is_empty() || arguments.forget;
    Ok(if is_whole { Outcome::Done } else { Outcome::Warned })
}

/// Settings that were restored or left, for documents.
pub fn lefts(lefts: &[Left]) -> Vec<Value> {
    let one = |left: &Left| {
        json!({
            "device": left.changed.device.name,
            "name": left.changed.kind.file_name(),
            "before": left.changed.before,
            "found": left.found,
        })
    };
    lefts.iter().map(one).collect()
}

const NOTHING: &str = "nothing to revert";

/// The result of a revert, in lines.
pub fn reverted_words(reverted: &Reverted, forgotten: usize) -> String {
    let name = |left: &Left| {
        let device = escape(left.changed.device.name.as_bytes());
        format!("{device} {}", left.changed.kind.name())
    };
    let shown = |left: &Left, value: &Option<String>| match value {
        Some(value) => left.changed.kind.with_unit(value),
        None => "unknown".to_owned(),
    };
    let mut text = String::new();
    // Settings that the kernel could have reset, but did not, are not shown.
    let mut told = 0;
    for left in &reverted.put_back {
        told += u64::from(
            left.found.as_ref() != Some(&left.changed.before) || left.changed.set.is_some(),
        );
        let before = Some(left.changed.before.clone());
        if left.found != before {
            let (from, to) = (shown(left, &left.found), shown(left, &before));
            text.push_str(&format!("{}: {from} -> {to}\n", name(left)));
        } else if left.changed.set.is_some() {
            let value = shown(left, &before);
            text.push_str(&format!("{}: already {value}\n", name(left)));
        }
    }
    for left in &reverted.forgotten {
        let found = shown(left, &left.found);
        text.push_str(&format!(
            "{}: {found} since the device or the machine restarted, not changed\n",
            name(left)
        ));
    }
    for left in &reverted.theirs {
        let found = shown(left, &left.found);
        text.push_str(&format!(
            "{}: {found}, set by another program during the trial, not changed\n",
            name(left)
        ));
    }
    for left in reverted.gone.iter().filter(|left| left.changed.set.is_some()) {
        let before = shown(left, &Some(left.changed.before.clone()));
        let rest = if forgotten > 0 {
            "removed from the list".to_owned()
        } else {
            format!("restore {before} when it is back, or use --forget")
        };
        text.push_str(&format!("{}: the device is gone; {rest}\n", name(left)));
    }
    if text.is_empty() {
        return super::nothing_in_list(NOTHING);
    }
    if told == 0 {
        return text;
    }
    text + &format!("{} restored\n", counted(told, "setting", "settings"))
}
