//! `takeup tune confirm`: keeps changes on trial.

use std::process::ExitCode;

use base::escape::escape;
use clap::Args;
use experiment::judgement::UNDO;
use serde_json::{Value, json};
use storage::settings::changes::{SettingsChange, ThisMachine};

use crate::outcome::to_standard_output;
use crate::outcome::{Form, end};
use service::failure::Failure;
use service::outcome::Outcome;

/// Keep what was set with --for
///
/// If the time is already over, restores the old values instead, with exit code 2.
#[derive(Args, Debug)]
pub struct ConfirmArgs {
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &ConfirmArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(confirm(arguments), "tune confirm", form)
}

fn confirm(arguments: &ConfirmArgs) -> Result<Outcome, Failure> {
    let overdue = super::put_back_overdue()?;
    let confirmed = super::changes(&ThisMachine)?.confirm().map_err(|it| super::failure(&it))?;
    let text = if arguments.json {
        let paths: Vec<Value> = confirmed.iter().map(|it| json!(it.for_path)).collect();
        let document = json!({
            "command": "tune confirm",
            "confirmed": paths,
            "put_back": super::show::lefts(&overdue.put_back),
        });
        format!("{document:#}\n")
    } else {
        words(&confirmed)
    };
    to_standard_output(text.as_bytes())?;
    let is_late = overdue != storage::settings::changes::Reverted::default();
    Ok(if is_late { Outcome::Warned } else { Outcome::Done })
}

fn words(confirmed: &[SettingsChange]) -> String {
    if confirmed.is_empty() {
        return super::nothing_in_list("nothing is on trial");
    }
    let line = |change: &SettingsChange| format!("{}: stays\n", escape(change.for_path.as_bytes()));
    confirmed.iter().map(line).collect::<String>() + &format!("undo: {UNDO}\n")
}
