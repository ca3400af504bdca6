//! `takeup rules`: the rules behind all findings. Each crate lists its own rules; this module joins
//! the lists.

use std::process::ExitCode;

use clap::Args;
use service::failure::Failure;
use service::outcome::Outcome;
use service::rules::rules;

use crate::outcome::{Form, end, to_standard_output};

const EXAMPLES: &str = "\
Examples:
  takeup rules
  takeup rules --json | jq '.rooms[].rules[].id'";

/// Print the rules behind the findings of all commands
///
/// Each finding in the output of --json names its rule.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{}", report::rules::text(&rules()))
)]
pub struct RulesArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &RulesArgs) -> ExitCode {
    let form = Form::of(arguments.json);
    end(answer(form), "rules", form)
}

fn answer(form: Form) -> Result<Outcome, Failure> {
    let answer = rules();
    let text = match form {
        Form::Json => format!("{:#}\n", service::document(&answer)),
        Form::Text => report::rules::text(&answer) + "\n",
    };
    to_standard_output(text.as_bytes())?;
    Ok(Outcome::Done)
}
