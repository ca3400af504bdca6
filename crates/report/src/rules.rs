//! The rules by which anything is found, for people.

use service::rules::{RoomAnswer, RuleAnswer, RulesAnswer};

/// Room by room.
pub fn text(answer: &RulesAnswer) -> String {
    let rule = |rule: &RuleAnswer| {
        let RuleAnswer { id, looks_at, speaks_when, source } = rule;
        let lines = [
            format!("  {id}"),
            format!("    checks {looks_at}"),
            format!("    reports when {speaks_when}"),
            format!("    source: {source}"),
        ];
        lines.join("\n")
    };
    let room = |room: &RoomAnswer| {
        let rules: Vec<String> = room.rules.iter().map(rule).collect();
        format!("{} ({}):\n{}", room.title, room.told_by, rules.join("\n"))
    };
    answer.rooms.iter().map(room).collect::<Vec<_>>().join("\n\n")
}
