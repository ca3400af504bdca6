//! Sets read-ahead or queue settings of the device below a path.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use experiment::judgement::UNDO;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::layers::Storage;
use storage::settings::{Setting, SettingKind};

use super::TuneHost;
use super::apply::{Applied, AppliedSettingAnswer, ApplyRequest, acting, apply, storage};
use crate::Answer;
use base::quantity::Size;

use crate::failure::Failure;

/// What to set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneSetRequest {
    /// A file, a folder or a block device.
    pub path: PathBuf,
    /// The settings to change.
    pub settings: Vec<SettingValue>,
    /// How they are set.
    #[serde(default)]
    pub apply: ApplyRequest,
}

/// A setting and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingValue {
    /// A file of `/sys/block/*/queue`.
    pub name: String,
    /// In the kernel's words.
    pub value: String,
}

impl FromStr for SettingValue {
    type Err = Failure;

    fn from_str(text: &str) -> Result<SettingValue, Failure> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| unknown(text, "expected NAME=VALUE"))?;
        Ok(SettingValue { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The failure for a setting that there is not.
fn unknown(text: &str, why: &str) -> Failure {
    let names: Vec<&str> = SettingKind::ALL.iter().map(|kind| kind.file_name()).collect();
    Failure::of(format!("{text}: {why}"), Some(&format!("use one of {}", names.join(", "))))
}

/// What was set.
#[derive(Debug)]
pub struct TuneSet {
    /// The settings, with the values read back.
    pub applied: Applied,
}

/// Sets the values, and reads them back.
///
/// # Errors
/// When a value is refused before any write, nothing could be set, or the list of changes cannot be
/// written.
pub fn set(request: &TuneSetRequest, host: &dyn TuneHost) -> Result<TuneSet, Failure> {
    request.apply.check()?;
    given_once(&request.settings)?;
    let storage = storage(&request.path)?;
    let mut settings = Vec::new();
    for setting in &request.settings {
        settings.extend(checked(setting, &storage, &request.path)?);
    }
    let applied = apply(&request.path, settings, &request.apply, host)?;
    Ok(TuneSet { applied })
}

/// Refuses two values for one setting.
fn given_once(settings: &[SettingValue]) -> Result<(), Failure> {
    let is_before = |at: usize, name: &String| settings[..at].iter().any(|it| it.name == *name);
    let twice = settings.iter().enumerate().find(|(at, setting)| is_before(*at, &setting.name));
    match twice {
        Some((_, setting)) => Err(Failure::of(format!("{} is given twice", setting.name), None)),
        None => Ok(()),
    }
}

/// Names that other tools have for the read-ahead. Their value is a size, as in `readahead=4M`.
const READ_AHEAD_NAMES: [&str; 2] = ["readahead", "ra"];

/// A setting by the kernel's name and in the kernel's unit.
fn in_kernel_words(setting: &SettingValue) -> Result<SettingValue, Failure> {
    let SettingValue { name, value } = setting;
    if !READ_AHEAD_NAMES.contains(&name.as_str()) {
        return Ok(setting.clone());
    }
    let is_bare = value != "0" && value.bytes().all(|it| it.is_ascii_digit());
    if is_bare {
        let hint = format!(
            "say {name}={value}K, or read_ahead_kb={value}; blockdev --setra counts sectors of 512 \
             bytes"
        );
        return Err(Failure::of(format!("{name}={value}: no unit"), Some(&hint)));
    }
    let kib = match value.parse::<Size>() {
        Ok(Size(bytes)) if bytes.is_multiple_of(1024) => bytes / 1024,
        _ if value == "0" => 0,
        _ => {
            let hint = "give a size in whole KiB, for example readahead=4M, or read_ahead_kb=4096";
            return Err(Failure::of(format!("{name}={value}: not a read-ahead"), Some(hint)));
        }
    };
    let name = SettingKind::ReadAhead.file_name().to_owned();
    Ok(SettingValue { name, value: kib.to_string() })
}

/// The settings that have an effect, after a check that they accept the value.
fn checked(
    setting: &SettingValue,
    storage: &Storage,
    path: &Path,
) -> Result<Vec<(Setting, String)>, Failure> {
    let SettingValue { name, value } = &in_kernel_words(setting)?;
    let kind = SettingKind::of_file(name)
        .ok_or_else(|| unknown(&format!("{name}={value}"), "unknown setting"))?;
    acting(kind, value, storage, path)
}

/// What was set, as an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneSetAnswer {
    /// The settings; empty if all values were in force already.
    pub settings: Vec<AppliedSettingAnswer>,
    /// The end of the trial, in seconds of Unix time.
    pub until_unix_seconds: Option<u64>,
    /// What to type afterwards.
    pub commands: TuneSetCommandsAnswer,
}

/// What to type after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TuneSetCommandsAnswer {
    /// Reverts it.
    pub undo: String,
    /// Keeps a change on trial.
    pub confirm: Option<String>,
}

impl Answer for TuneSetAnswer {
    const COMMAND: &'static str = "tune set";
}

impl TuneSet {
    /// As an answer.
    pub fn answer(&self) -> TuneSetAnswer {
        TuneSetAnswer {
            settings: self.applied.answer(),
            until_unix_seconds: self.applied.until_unix_seconds(),
            commands: TuneSetCommandsAnswer {
                undo: UNDO.to_owned(),
                confirm: self.applied.confirm().map(str::to_owned),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_ahead_by_the_name_of_other_tools_is_a_size() {
        let words = |text: &str| {
            let made = in_kernel_words(&text.parse().unwrap());
            made.map(|it| format!("{}={}", it.name, it.value)).map_err(|it| it.to_text())
        };
        assert_eq!(words("readahead=4M").unwrap(), "read_ahead_kb=4096");
        assert_eq!(words("ra=0").unwrap(), "read_ahead_kb=0");
        assert_eq!(words("read_ahead_kb=128").unwrap(), "read_ahead_kb=128");
        let refused = words("readahead=1.5k").unwrap_err();
        assert!(refused.contains("hint: give a size in whole KiB"), "{refused}");
        // What was meant is sectors for one reader, and KiB for another.
        let refused = words("readahead=2048").unwrap_err();
        assert!(refused.contains("readahead=2048K, or read_ahead_kb=2048"), "{refused}");
    }
}
