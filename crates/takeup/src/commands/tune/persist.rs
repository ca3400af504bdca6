//! `takeup tune persist`: keeps changed settings over a restart.

use std::path::Path;
use std::process::ExitCode;

use base::escape::escape;
use clap::Args;
use machine::Machine;
use serde_json::json;
use storage::settings::changes::{FileState, Kept, ThisMachine, kept, remembered};
use storage::settings::keep::{Keep, Keeper, RULES, keeps, rules};

use super::apply::CONFIRM;
use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use service::failure::Failure;
use service::outcome::Outcome;

/// Show how to keep changed settings over a restart, and write the udev rules
///
/// A udev rule keeps settings of a device with a WWN, a serial number or a UUID. Where tuned,
/// multipathd, lvm or nfs-utils set a value after udev, Takeup shows the line for their
/// configuration, and does not write it. Settings of a loop device, or of a device without a
/// persistent name, cannot be kept.
#[derive(Args, Debug)]
pub struct PersistArgs {
    /// Write the rules to /etc/udev/rules.d/99-takeup.rules
    #[arg(long)]
    write: bool,
    /// Remove that file, unless it was edited
    #[arg(long, conflicts_with = "write")]
    remove: bool,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &PersistArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(persist(arguments), "tune persist", form)
}

fn persist(arguments: &PersistArgs) -> Result<Outcome, Failure> {
    if arguments.remove {
        return remove(arguments);
    }
    super::recovered()?;
    super::put_back_overdue()?;
    let changes = remembered(&super::list()?).map_err(|error| super::failure(&error))?;
    if changes.iter().any(|change| change.trial.is_some()) {
        let hint = format!("run `{CONFIRM}` first");
        return Err(Failure::of("a change on trial cannot be kept over a restart", Some(&hint)));
    }
    let keeps = keeps(&Machine::this(), &changes);
    let rules = rules(&keeps);
    let file = match &rules {
        Some(rules) => file(rules, arguments.write)?,
        None => File { kept: Kept::Nothing, is_new: false },
    };
    let text = if arguments.json {
        let document = json!({
            "command": "tune persist",
            "file": RULES,
            "rules": rules,
            "settings": keeps,
            "written": file.kept == Kept::These,
            "written_now": file.is_new,
        });
        format!("{document:#}\n")
    } else {
        words(&keeps, rules.as_deref(), file)
    };
    to_standard_output(text.as_bytes())?;
    let is_whole = keeps.iter().all(|keep| matches!(keep.keeper, Keeper::Udev { .. }));
    Ok(if is_whole || !arguments.write { Outcome::Done } else { Outcome::Warned })
}

const WRITE: &str = "to write: takeup tune persist --write";
const TAKE_AWAY: &str = "to remove: takeup tune persist --remove";

/// The state of the file at the end of the command.
#[derive(Clone, Copy)]
struct File {
    kept: Kept,
    /// Whether this command has written it.
    is_new: bool,
}

/// Compares the file with these rules, or writes them.
fn file(rules: &str, write: bool) -> Result<File, Failure> {
    let path = Path::new(RULES);
    let failed = |error| super::failure(&error);
    if !write {
        let kept = kept(&super::list()?, path, rules).map_err(failed)?;
        return Ok(File { kept, is_new: false });
    }
    let state = super::changes(&ThisMachine)?.persist(path, rules).map_err(failed)?;
    Ok(File { kept: Kept::These, is_new: state == FileState::Done })
}

fn remove(arguments: &PersistArgs) -> Result<Outcome, Failure> {
    let state = match remembered(&super::list()?) {
        // Without a list, none is created.
        Ok(_) => super::changes(&ThisMachine)?.unpersist(),
        Err(error) => Err(error),
    };
    let state = state.map_err(|error| super::failure(&error))?;
    let text = match (arguments.json, state) {
        (true, state) => {
            let removed = state == FileState::Done;
            format!("{:#}\n", json!({ "command": "tune persist", "removed": removed }))
        }
        (false, FileState::Done) => format!("{RULES}: removed\n"),
        (false, FileState::AsItWas) => "nothing is kept over a restart\n".to_owned(),
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}

fn words(keeps: &[Keep], rules: Option<&str>, file: File) -> String {
    if keeps.is_empty() {
        return super::nothing_in_list("nothing is changed");
    }
    let mut text = String::new();
    if let Some(rules) = rules {
        text.push_str(&format!("{RULES}\n"));
        for line in rules.lines().filter(|line| !line.starts_with('#')) {
            text.push_str(&format!("  {}\n", escape(line.as_bytes())));
        }
    }
    for keep in keeps {
        let name = format!("{} {}", escape(keep.device.as_bytes()), keep.kind.name());
        match &keep.keeper {
            Keeper::Udev { .. } => {
                for owner in &keep.also {
                    let place = owner.place.as_deref().unwrap_or(&owner.by);
                    text.push_str(&format!("{name}: {place} sets it too\n"));
                }
            }
            Keeper::Named { who, place, line } => text.push_str(&format!(
                "{name}: {who} sets it after udev; set it in {}:\n  {}\n",
                escape(place.as_bytes()),
                escape(line.as_bytes())
            )),
            Keeper::Nothing { why } => text.push_str(&format!("{name}: not kept: {why}\n")),
        }
    }
    if rules.is_none() {
        text.push_str("no udev rule can keep any of these settings\n");
        return text;
    }
    text.push_str(&match (file.kept, file.is_new) {
        (Kept::These, true) => format!("written; {TAKE_AWAY}\n"),
        (Kept::These, false) => {
            format!("already written; {TAKE_AWAY}\n")
        }
        (Kept::Others, _) => format!("the file has other rules; {WRITE}\n"),
        (Kept::Foreign, _) => {
            format!("{RULES} was not written by takeup, or was edited: not changed\n")
        }
        (Kept::Nothing, _) => format!("{WRITE}\n"),
    });
    text
}
