//! The rules by which anything is found. Each crate lists its own; here they meet.

use base::finding::Room;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;

/// All rooms of rules, in the order in which they are printed.
pub const ROOMS: &[&Room] = &[
    &runs::rules::LIMIT,
    &runs::rules::STREAMING,
    &crate::probe::rules::DRIVE,
    &storage::findings::rules::STACK,
    &watch::rules::DEVICE,
    &pipeline::rules::PIPELINE,
    &diagnosis::rules::DIAGNOSIS,
    &given::rules::GIVEN,
    &capture::rules::CAPTURE,
    &watch::rules::TAPE,
    &experiment::judgement::rules::EXPERIMENT,
    &crate::doctor::rules::DOCTOR,
];

/// The rules, room by room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulesAnswer {
    /// In the order in which they are printed.
    pub rooms: Vec<RoomAnswer>,
}

/// The rules of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoomAnswer {
    /// The subject.
    pub title: String,
    /// The commands that print its findings.
    pub told_by: String,
    pub rules: Vec<RuleAnswer>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleAnswer {
    /// Room and name; it stays.
    pub id: String,
    /// What the rule looks at.
    pub looks_at: String,
    /// When it speaks, with its limits.
    pub speaks_when: String,
    /// The source of that knowledge.
    pub source: String,
}

impl Answer for RulesAnswer {
    const COMMAND: &'static str = "rules";
}

/// All rules.
pub fn rules() -> RulesAnswer {
    let rule = |rule: &&base::finding::Rule| RuleAnswer {
        id: rule.id.to_owned(),
        looks_at: rule.looks_at.to_owned(),
        speaks_when: rule.speaks_when.to_owned(),
        source: rule.source.to_owned(),
    };
    let room = |room: &&Room| RoomAnswer {
        title: room.title.to_owned(),
        told_by: room.told_by.to_owned(),
        rules: room.rules.iter().map(rule).collect(),
    };
    RulesAnswer { rooms: ROOMS.iter().map(room).collect() }
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
