//! `takeup tune show` and `takeup tune revert`: what was changed, and all of it back.

use std::process::ExitCode;

use clap::Args;
use host::settings::changes::{Change, Left, Now, Reverted, ThisMachine, look, remembered};
use report::escape::escape;
use report::format::{counted, duration};
use serde_json::{Value, json};

use super::apply::{held, setting_name, step};
use crate::commands::bench::{Form, finish};
use crate::failure::Failure;
use crate::outcome::{Outcome, to_standard_output};

/// Show what was changed, and whether it still holds
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Put back all that was changed
///
/// Also after a crash, and under another name of the device. After a restart the kernel has its own
/// values: then only what still is as it was set, since something else keeps it so, is put back. A
/// device that is gone is named, and its turn comes when it is back.
#[derive(Args, Debug)]
pub struct RevertArgs {
    /// Forget what was changed of devices that are gone
    #[arg(long)]
    forget: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Shows.
pub fn run(arguments: &ShowArgs) -> ExitCode {
    let form = if arguments.json { Form::Json } else { Form::Text };
    finish(show(arguments), "tune show", form)
}

/// Puts back.
pub fn run_revert(arguments: &RevertArgs) -> ExitCode {
    let form = if arguments.json { Form::Json } else { Form::Text };
    finish(revert(arguments), "tune revert", form)
}

fn show(arguments: &ShowArgs) -> Result<Outcome, Failure> {
    let changes = remembered(&super::list()?).map_err(|error| super::failure(&error))?;
    let looked: Vec<(Change, Vec<Now>)> = changes
        .into_iter()
        .map(|change| {
            let now = look(&ThisMachine, &change);
            (change, now)
        })
        .collect();
    let text = if arguments.json {
        let changes: Vec<Value> = looked.iter().map(document).collect();
        format!("{:#}\n", json!({ "command": "tune show", "changes": changes }))
    } else if looked.is_empty() {
        "nothing is changed\n".to_owned()
    } else {
        let seconds = bench::run::unix_seconds();
        looked.iter().map(|(change, now)| words(change, now, seconds)).collect()
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn document((change, now): &(Change, Vec<Now>)) -> Value {
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
        "settings": now.iter().map(one).collect::<Vec<Value>>(),
    })
}

fn words(change: &Change, now: &[Now], seconds: u64) -> String {
    let ago = duration(seconds.saturating_sub(change.made_unix_seconds) as f64);
    let mut text = format!("{ago} ago for {}\n", escape(change.for_path.as_bytes()));
    for one in now {
        let Some(set) = &one.changed.set else { continue };
        let state = match (&one.name, one.holds()) {
            (None, _) => "the device is gone".to_owned(),
            (_, true) => "holds".to_owned(),
            (_, false) => format!("is {} now: the kernel or somebody else has set it", held(one)),
        };
        text.push_str(&format!("  {}: {}, {state}\n", setting_name(one), step(one, set)));
    }
    text
}

fn revert(arguments: &RevertArgs) -> Result<Outcome, Failure> {
    let mut changes = super::changes(&ThisMachine)?;
    let reverted = changes.revert().map_err(|error| super::failure(&error))?;
    let forgotten = if arguments.forget {
        changes.forget_gone().map_err(|error| super::failure(&error))?
    } else {
        0
    };
    let text = if arguments.json {
        let document = json!({
            "command": "tune revert",
            "put_back": lefts(&reverted.put_back),
            "left_alone": lefts(&reverted.forgotten),
            "gone": lefts(&reverted.gone),
            "given_up": forgotten,
        });
        format!("{document:#}\n")
    } else {
        reverted_words(&reverted, forgotten)
    };
    to_standard_output(text.as_bytes())?;
    let is_whole = reverted.gone.is_empty() || arguments.forget;
    Ok(if is_whole { Outcome::Done } else { Outcome::Warned })
}

fn lefts(lefts: &[Left]) -> Vec<Value> {
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

fn reverted_words(reverted: &Reverted, forgotten: usize) -> String {
    let name = |left: &Left| {
        let device = escape(left.changed.device.name.as_bytes());
        format!("{device} {}", left.changed.kind.name())
    };
    let shown = |left: &Left, value: &Option<String>| match value {
        Some(value) => left.changed.kind.with_unit(value),
        None => "unknown".to_owned(),
    };
    let mut text = String::new();
    for left in &reverted.put_back {
        let before = Some(left.changed.before.clone());
        if left.found != before {
            let (from, to) = (shown(left, &left.found), shown(left, &before));
            text.push_str(&format!("{}: {from} -> {to}\n", name(left)));
        } else if left.changed.set.is_some() {
            let value = shown(left, &before);
            text.push_str(&format!("{}: {value}, as it was already\n", name(left)));
        }
    }
    for left in &reverted.forgotten {
        let found = shown(left, &left.found);
        text.push_str(&format!(
            "{}: {found} since the device or the machine started anew, left alone\n",
            name(left)
        ));
    }
    for left in reverted.gone.iter().filter(|left| left.changed.set.is_some()) {
        let before = shown(left, &Some(left.changed.before.clone()));
        let rest = if forgotten > 0 {
            "given up".to_owned()
        } else {
            format!("{before} when it is back; --forget gives it up")
        };
        text.push_str(&format!("{}: the device is gone; {rest}\n", name(left)));
    }
    if text.is_empty() {
        return "nothing to put back\n".to_owned();
    }
    let settings = reverted.put_back.len() as u64;
    text + &format!("{} as before\n", counted(settings, "setting", "settings"))
}
