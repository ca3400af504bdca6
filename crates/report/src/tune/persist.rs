//! How changed settings are kept over a restart, as text.

use base::escape::escape;
use service::tune::persist::{PersistedRules, TunePersisted};
use storage::settings::changes::{FileState, Kept};
use storage::settings::keep::{Keeper, RULES};

use super::nothing_in_list;

const WRITE: &str = "to write: takeup tune persist --write";
const TAKE_AWAY: &str = "to remove: takeup tune persist --remove";

/// The whole text.
pub fn text(persisted: &TunePersisted) -> String {
    match persisted {
        TunePersisted::Rules(rules) => words(rules),
        TunePersisted::Removed(FileState::Done) => format!("{RULES}: removed\n"),
        TunePersisted::Removed(FileState::AsItWas) => "nothing is kept over a restart\n".to_owned(),
    }
}

fn words(persisted: &PersistedRules) -> String {
    let PersistedRules { keeps, rules, .. } = persisted;
    if keeps.is_empty() {
        return nothing_in_list("Takeup has changed no setting", persisted.owner);
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
    text.push_str(&match (persisted.kept, persisted.is_new) {
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
