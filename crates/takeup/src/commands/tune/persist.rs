//! `takeup tune persist`: what keeps over a restart what was changed.

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

/// Show what keeps over a restart what was changed, and write it
///
/// A rule of udev for a device that has a WWN, a serial number or a UUID. For what tuned,
/// multipathd, lvm or nfs-utils set behind udev the line for their own file is shown, which is not
/// written. A loop device, and what has no name that stays, is not kept.
#[derive(Args, Debug)]
pub struct PersistArgs {
    /// Write the rules to /etc/udev/rules.d/99-takeup.rules
    #[arg(long)]
    write: bool,
    /// Remove that file, if it is as it was written
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
        let hint = format!("`{CONFIRM}` first");
        return Err(Failure::of("what is on trial is not kept over a restart", Some(&hint)));
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

const WRITE: &str = "write it: takeup tune persist --write";
const TAKE_AWAY: &str = "take it away: takeup tune persist --remove";

/// What is there, once all is done.
#[derive(Clone, Copy)]
struct File {
    kept: Kept,
    /// Whether this command has written it.
    is_new: bool,
}

/// Looks what the file has of these rules, or writes them.
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
        // Where nothing is remembered no list is made.
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
                    text.push_str(&format!("{name}: {place} sets it, too\n"));
                }
            }
            Keeper::Named { who, place, line } => text.push_str(&format!(
                "{name}: {who} sets it behind udev; by hand, in {}:\n  {}\n",
                escape(place.as_bytes()),
                escape(line.as_bytes())
            )),
            Keeper::Nothing { why } => text.push_str(&format!("{name}: not kept: {why}\n")),
        }
    }
    if rules.is_none() {
        text.push_str("no rule of udev keeps any of it\n");
        return text;
    }
    text.push_str(&match (file.kept, file.is_new) {
        (Kept::These, true) => format!("written; {TAKE_AWAY}\n"),
        (Kept::These, false) => {
            format!("it was written already, and nothing is to be done; {TAKE_AWAY}\n")
        }
        (Kept::Others, _) => format!("the file has other rules; {WRITE}\n"),
        (Kept::Foreign, _) => {
            format!("{RULES} is somebody else's, or was changed: it is left as it is\n")
        }
        (Kept::Nothing, _) => format!("{WRITE}\n"),
    });
    text
}
