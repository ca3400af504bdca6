//! Makes the first change for a moment, and measures what it brings, in turn with what is in force.

use std::io::Write as _;
use std::path::Path;

use diagnosis::change::Change;
use diagnosis::rank::{Ranking, Step};
use diagnosis::source::{Found, plain_rate};
use flow::cancel::Cancel;
use serde_json::json;
use storage::layers::Storage;
use storage::settings::{Guard, Setting, read_ahead_value};

use super::answer::{RangeAnswer, TriedStep};
use crate::failure::Failure;
use crate::state;

/// Trials of each, in turn.
const ROUNDS: usize = 3;

/// Tries the first change.
pub(super) fn first(
    ranking: &Ranking,
    found: &Found,
    path: &Path,
    cancel: &Cancel,
) -> Result<TriedStep, Failure> {
    let Some(step) = ranking.steps.first() else {
        return Ok(TriedStep::not("nothing was found to change"));
    };
    match step.changed.change {
        Change::ReadAhead { bytes } => read_ahead(step, bytes, found, path, cancel),
        _ => Ok(TriedStep::not(
            "only settings are tried: the line writes its target; run it both ways with \
             `takeup explain --try`",
        )),
    }
}

fn read_ahead(
    step: &Step,
    bytes: u64,
    found: &Found,
    path: &Path,
    cancel: &Cancel,
) -> Result<TriedStep, Failure> {
    let storage = Storage::of(path).map_err(|error| Failure::new(&error, None))?;
    let Some(file) = storage.read_ahead.as_deref() else {
        return Ok(TriedStep::not("this file system has no read-ahead of its own"));
    };
    let failed = |error: storage::StorageError| {
        let hint = state::guard_hint(&error);
        Failure::new(&error, hint)
    };
    let setting = Setting::read_ahead(file);
    let present = setting.value().map_err(failed)?;
    let journal = state::journal();
    let mut guard =
        Guard::new(journal.as_deref(), std::slice::from_ref(&setting)).map_err(failed)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut is_refused = false;
    for round in 0..ROUNDS {
        for (value, rates) in
            [(present.clone(), &mut before), (read_ahead_value(bytes), &mut after)]
        {
            if cancel.check().is_err() {
                break;
            }
            if guard.set(&setting, &value).is_err() {
                is_refused = true;
                break;
            }
            rates.extend(plain_rate(&found.tree, round, bytes, cancel));
        }
    }
    guard.put_back().map_err(failed)?;
    if is_refused {
        return Ok(TriedStep::not("it cannot be set: run as root"));
    }
    let of = |rates: &[f64]| diagnosis::amount::Amount::of_trials(rates);
    let (Some(before), Some(after)) = (of(&before), of(&after)) else {
        return Ok(TriedStep::not("the files are too small to measure it"));
    };
    let predicted = step.changed.chain.source.stream.as_ref().map_or(after, |it| it.now);
    let tried = TriedStep {
        not_tried: None,
        predicted: Some(RangeAnswer::of(&predicted)),
        before: Some(RangeAnswer::of(&before)),
        after: Some(RangeAnswer::of(&after)),
        is_as_predicted: Some(after.high >= predicted.low && after.low <= predicted.high),
    };
    remember(step, &tried);
    Ok(tried)
}

/// Appends what was predicted and what was measured to a file of this user. That it cannot be
/// written does not matter to the answer.
fn remember(step: &Step, tried: &TriedStep) {
    let Some(path) = state::tried_changes() else { return };
    let Some(folder) = path.parent() else { return };
    if std::fs::create_dir_all(folder).is_err() {
        return;
    }
    let line = json!({
        "unix_seconds": experiment::run::unix_seconds(),
        "command": step.changed.command,
        "tried": tried,
    });
    let options = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    if let Ok(mut file) = options {
        let _ = writeln!(file, "{line}");
    }
}
