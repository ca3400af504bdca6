//! `takeup rules`: the rules behind all findings. Each crate lists its own rules; this module joins
//! the lists.

use std::process::ExitCode;

use base::finding::{Room, Rule};
use clap::Args;
use serde_json::json;

use crate::outcome::to_standard_output;
use crate::standard_error::to_standard_error;

/// The lists of all rules.
const ROOMS: &[&Room] = &[
    &report::rules::LIMIT,
    &report::rules::STREAMING,
    &super::probe::rules::DRIVE,
    &storage::findings::rules::STACK,
    &watch::rules::DEVICE,
    &pipeline::rules::PIPELINE,
    &capture::rules::CAPTURE,
    &watch::rules::TAPE,
    &experiment::judgement::rules::EXPERIMENT,
];

/// Print the rules behind the findings of all commands
///
/// Each finding in the output of --json names its rule.
#[derive(Args, Debug)]
#[command(after_long_help = text())]
pub struct RulesArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &RulesArgs) -> ExitCode {
    let text = if arguments.json {
        format!("{:#}\n", json!({ "command": "rules", "rooms": ROOMS }))
    } else {
        text() + "\n"
    };
    match to_standard_output(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            to_standard_error(&failure.to_text());
            failure.exit_code()
        }
    }
}

fn text() -> String {
    let rule = |rule: &&Rule| {
        let Rule { id, looks_at, speaks_when, source } = rule;
        let lines = [
            format!("  {id}"),
            format!("    checks {looks_at}"),
            format!("    reports when {speaks_when}"),
            format!("    source: {source}"),
        ];
        lines.join("\n")
    };
    let room = |room: &&Room| {
        let rules: Vec<String> = room.rules.iter().map(rule).collect();
        format!("{} ({}):\n{}", room.title, room.told_by, rules.join("\n"))
    };
    ROOMS.iter().map(room).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_those_of_one_rule_each_and_begin_with_their_room() {
        let mut seen = BTreeSet::new();
        for room in ROOMS {
            let prefix = room.rules[0].id.split('.').next().unwrap();
            for rule in room.rules {
                assert!(seen.insert(rule.id), "{} twice", rule.id);
                let (before, name) = rule.id.split_once('.').unwrap();
                assert!(before == prefix && !name.is_empty(), "{}", rule.id);
                let is_plain = |letter: char| letter.is_ascii_lowercase() || "-.".contains(letter);
                assert!(rule.id.chars().all(is_plain), "{}", rule.id);
                for words in [rule.looks_at, rule.speaks_when, rule.source] {
                    assert!(!words.is_empty() && !words.ends_with('.'), "{}: {words}", rule.id);
                }
            }
        }
    }
}
