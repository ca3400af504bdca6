//! Keeps changed settings over a restart.

use std::path::Path;

use machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::settings::SettingKind;
use storage::settings::changes::{FileState, Kept, ThisMachine, kept, remembered};
use storage::settings::keep::{Keep, Keeper, RULES, keeps, rules};
use storage::stack::Owner;

use super::changes::{ListOwner, changes, failure, list, put_back_overdue, recovered};
use super::{CONFIRM, TuneHost};
use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// What to do with the file of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PersistAction {
    /// Show how to keep the changes; write nothing.
    #[default]
    Show,
    /// Write the rules.
    Write,
    /// Remove the file, unless it was edited.
    Remove,
}

/// What to keep: all changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunePersistRequest {
    /// What to do with the file of rules.
    #[serde(default)]
    pub action: PersistAction,
}

/// What was done.
#[derive(Debug)]
pub enum TunePersisted {
    /// The rules were shown or written.
    Rules(PersistedRules),
    /// The file was removed, or there was none.
    Removed(FileState),
}

/// The rules that keep the changes.
#[derive(Debug)]
pub struct PersistedRules {
    /// As asked for.
    pub action: PersistAction,
    /// What keeps each setting.
    pub keeps: Vec<Keep>,
    /// The text of the rules; `None` if no rule keeps anything.
    pub rules: Option<String>,
    /// The file now.
    pub kept: Kept,
    /// Whether this command has written it.
    pub is_new: bool,
    /// Whose list it is.
    pub owner: ListOwner,
}

/// Shows how to keep changed settings over a restart, and writes or removes the rules.
///
/// # Errors
/// When a change is on trial, the list cannot be used, or the file of rules was edited or cannot be
/// written.
pub fn persist(request: TunePersistRequest, host: &dyn TuneHost) -> Result<TunePersisted, Failure> {
    let action = request.action;
    if action == PersistAction::Remove {
        return remove(host).map(TunePersisted::Removed);
    }
    recovered(host)?;
    put_back_overdue(host)?;
    let changes = super::changes::remembered()?;
    if changes.iter().any(|change| change.trial.is_some()) {
        let hint = format!("run `{CONFIRM}` first");
        return Err(Failure::of("a change on trial cannot be kept over a restart", Some(&hint)));
    }
    let keeps = keeps(&Machine::this(), &changes);
    let rules = rules(&keeps);
    let (kept, is_new) = match &rules {
        Some(rules) => file(rules, action, host)?,
        None => (Kept::Nothing, false),
    };
    let owner = ListOwner::now();
    Ok(TunePersisted::Rules(PersistedRules { action, keeps, rules, kept, is_new, owner }))
}

/// Compares the file with these rules, or writes them. Returns the state of the file, and whether
/// this command has written it.
fn file(rules: &str, action: PersistAction, host: &dyn TuneHost) -> Result<(Kept, bool), Failure> {
    let path = Path::new(RULES);
    let failed = |error| failure(&error);
    if action != PersistAction::Write {
        return Ok((kept(&list()?, path, rules).map_err(failed)?, false));
    }
    let state = changes(&ThisMachine, host)?.persist(path, rules).map_err(failed)?;
    Ok((Kept::These, state == FileState::Done))
}

fn remove(host: &dyn TuneHost) -> Result<FileState, Failure> {
    let state = match remembered(&list()?) {
        // Without a list, none is created.
        Ok(_) => changes(&ThisMachine, host)?.unpersist(),
        Err(error) => Err(error),
    };
    state.map_err(|error| failure(&error))
}

/// What was done, as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TunePersistAnswer {
    /// The rules were shown or written.
    Rules(PersistRulesAnswer),
    /// The file was removed, or there was none.
    Removed(RulesRemovedAnswer),
}

impl Answer for TunePersistAnswer {
    const COMMAND: &'static str = "tune persist";
}

/// The rules that keep the changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistRulesAnswer {
    /// The file of rules.
    pub file: String,
    /// Its text; null if no rule keeps anything.
    pub rules: Option<String>,
    /// What keeps each setting.
    pub settings: Vec<KeptSettingAnswer>,
    /// Whether the file has these rules.
    pub written: bool,
    /// Whether this command has written it.
    pub written_now: bool,
}

/// Whether the file of rules was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulesRemovedAnswer {
    /// False if there was no file.
    pub removed: bool,
}

/// What keeps a setting over a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptSettingAnswer {
    /// What keeps it.
    pub by: KeptByAnswer,
    /// The device by its name; of a udev rule, the condition that matches only this device.
    pub device: String,
    pub kind: SettingKind,
    pub value: String,
    /// Other rules that set it when the device appears, before ours.
    pub also: Vec<Owner>,
    /// The program that sets it after udev.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The file of that program, or its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The line that the place needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Why nothing keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What keeps a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeptByAnswer {
    /// A udev rule.
    Udev,
    /// A program that sets it after udev.
    Named,
    Nothing,
}

impl From<&Keep> for KeptSettingAnswer {
    fn from(keep: &Keep) -> KeptSettingAnswer {
        let plain = KeptSettingAnswer {
            by: KeptByAnswer::Udev,
            device: keep.device.clone(),
            kind: keep.kind,
            value: keep.value.clone(),
            also: keep.also.clone(),
            who: None,
            place: None,
            line: None,
            why: None,
        };
        match &keep.keeper {
            Keeper::Udev { device } => KeptSettingAnswer { device: device.clone(), ..plain },
            Keeper::Named { who, place, line } => KeptSettingAnswer {
                by: KeptByAnswer::Named,
                who: Some((*who).to_owned()),
                place: Some(place.clone()),
                line: Some(line.clone()),
                ..plain
            },
            Keeper::Nothing { why } => KeptSettingAnswer {
                by: KeptByAnswer::Nothing,
                why: Some((*why).to_owned()),
                ..plain
            },
        }
    }
}

impl TunePersisted {
    /// With a warning where rules were written that do not keep all settings.
    pub fn outcome(&self) -> Outcome {
        let TunePersisted::Rules(rules) = self else { return Outcome::Done };
        let is_whole = rules.keeps.iter().all(|keep| matches!(keep.keeper, Keeper::Udev { .. }));
        if is_whole || rules.action != PersistAction::Write {
            Outcome::Done
        } else {
            Outcome::Warned
        }
    }

    /// As an answer.
    pub fn answer(&self) -> TunePersistAnswer {
        match self {
            TunePersisted::Rules(rules) => TunePersistAnswer::Rules(PersistRulesAnswer {
                file: RULES.to_owned(),
                rules: rules.rules.clone(),
                settings: rules.keeps.iter().map(KeptSettingAnswer::from).collect(),
                written: rules.kept == Kept::These,
                written_now: rules.is_new,
            }),
            TunePersisted::Removed(state) => {
                let removed = *state == FileState::Done;
                TunePersistAnswer::Removed(RulesRemovedAnswer { removed })
            }
        }
    }
}
