//! Findings and their rules: one type for every command that inspects something and reports what it
//! means.
//!
//! A [`Rule`] is fixed: what it looks at, when it speaks, where its knowledge comes from. Each
//! subject lists its rules with [`rules!`](crate::rules!), which makes the rules and the list at
//! once, so that no rule is missing from the list. A [`Finding`] is what a rule reports of this
//! machine or this run.
//!
//! Not here: the layout on the terminal, which is `report`'s, and the inspecting itself.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that a finding comes from. Ids are part of the command line's promise: rules are added,
/// never renamed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Subject and name, for example `drive.not-buffered`.
    pub id: &'static str,
    pub looks_at: &'static str,
    /// When it speaks, with its limits.
    pub speaks_when: &'static str,
    /// The source of that knowledge.
    pub source: &'static str,
}

/// The id of a [`Rule`], as a finding has it. Another version of this program may know the rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RuleId(Cow<'static, str>);

impl RuleId {
    /// The rule of this id, where a room has it.
    pub fn within(&self, room: &'static Room) -> Option<&'static Rule> {
        room.rules.iter().copied().find(|rule| *self == *rule)
    }
}

impl std::fmt::Display for RuleId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::ops::Deref for RuleId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&Rule> for RuleId {
    fn eq(&self, rule: &&Rule) -> bool {
        self.0 == rule.id
    }
}

impl PartialEq<&str> for RuleId {
    fn eq(&self, id: &&str) -> bool {
        self.0 == *id
    }
}

/// The rules of one subject.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Their subject.
    pub title: &'static str,
    /// The commands that report the findings.
    pub told_by: &'static str,
    pub rules: &'static [&'static Rule],
}

/// Makes the rules of one subject and the list of them.
///
/// ```
/// base::rules! {
///     /// What a kettle shows.
///     pub KETTLE = "A kettle", told by "takeup tea";
///     BOILS {
///         id: "kettle.boils",
///         looks_at: "the temperature of the water",
///         speaks_when: "100 degrees are reached",
///         source: "the thermometer",
///     }
/// }
/// use base::finding::{Certainty, Finding};
/// let found = Finding::new(&BOILS, Certainty::Measured, "the water boils");
/// assert_eq!(found.rule, KETTLE.rules[0].id);
/// ```
#[macro_export]
macro_rules! rules {
    (
        $(#[$about:meta])*
        $visibility:vis $room:ident = $title:literal, told by $told_by:literal;
        $($name:ident {
            id: $id:literal,
            looks_at: $looks_at:literal,
            speaks_when: $speaks_when:literal,
            source: $source:literal $(,)?
        })*
    ) => {
        $(
            #[doc = concat!("Speaks when ", $speaks_when, ".")]
            $visibility static $name: $crate::finding::Rule = $crate::finding::Rule {
                id: $id,
                looks_at: $looks_at,
                speaks_when: $speaks_when,
                source: $source,
            };
        )*
        $(#[$about])*
        $visibility static $room: $crate::finding::Room =
            $crate::finding::Room { title: $title, told_by: $told_by, rules: &[$(&$name),*] };
    };
}

/// The severity of a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Information,
    /// Act soon.
    Warning,
    /// Data are at risk, or nothing works.
    Critical,
}

impl Severity {
    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Information => "information",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// How sure a finding is: what its sentence rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// A device, the kernel or a maker states it.
    Told,
    /// It was counted or timed.
    Measured,
    /// It follows from what was measured, by a method or model that is documented.
    Inferred,
    /// It rests on a number that was not measured here.
    Assumed,
    /// It is not known, and the finding says so.
    Unknown,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Bytes,
    /// Bytes for each second.
    BytesPerSecond,
    Seconds,
    /// A part of one: 0.25 is a quarter.
    Share,
    /// One value divided by another: 1.25 is a quarter more.
    Ratio,
    /// Things.
    Count,
}

/// A number that made a rule speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Number {
    /// What the number measures, without the unit.
    pub name: Cow<'static, str>,
    pub value: f64,
    pub unit: Unit,
}

/// What was found. All texts are lowercase fragments without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: RuleId,
    pub severity: Severity,
    /// The numbers behind it.
    pub numbers: Vec<Number>,
    /// The cause.
    pub what: String,
    /// The consequence.
    pub why: Option<String>,
    /// What was left out or cannot be excluded.
    pub caveat: Option<String>,
    /// What the action would bring.
    pub gain: Option<String>,
    pub action: Option<String>,
    /// The command that does it, as it is typed, where one command does.
    pub command: Option<String>,
    /// What it rests on.
    pub certainty: Certainty,
}

impl Finding {
    /// A finding of the lowest severity, without explanation or action.
    pub fn new(rule: &'static Rule, certainty: Certainty, what: impl Into<String>) -> Finding {
        Finding {
            rule: RuleId(Cow::Borrowed(rule.id)),
            severity: Severity::Information,
            numbers: Vec::new(),
            what: what.into(),
            why: None,
            caveat: None,
            gain: None,
            action: None,
            command: None,
            certainty,
        }
    }

    /// Sets the severity.
    #[must_use]
    pub fn severe(self, severity: Severity) -> Finding {
        Finding { severity, ..self }
    }

    /// Sets the consequence.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Finding {
        Finding { why: Some(why.into()), ..self }
    }

    /// With what to do.
    #[must_use]
    pub fn with_action(self, action: impl Into<String>) -> Finding {
        Finding { action: Some(action.into()), ..self }
    }

    /// Sets the command. The command is also shown as the action, unless the action has words of
    /// its own.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Finding {
        let command = command.into();
        let action = self.action.or_else(|| Some(command.clone()));
        Finding { action, command: Some(command), ..self }
    }

    /// With one more number.
    #[must_use]
    pub fn with_number(mut self, name: &'static str, value: f64, unit: Unit) -> Finding {
        self.numbers.push(Number { name: Cow::Borrowed(name), value, unit });
        self
    }

    /// What was found, and its consequence.
    pub fn sentence(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.what),
            None => self.what.clone(),
        }
    }

    /// What there is to read of it: the sentence, what bounds it, what it would bring, what to do.
    pub fn parts(&self) -> Vec<String> {
        let rest = [&self.caveat, &self.gain, &self.action];
        let mut parts = vec![self.sentence()];
        parts.extend(rest.into_iter().flatten().cloned());
        parts
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        self.parts().join("; ")
    }
}

/// The shape that every `--json` has findings in. Fields are added, never renamed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
#[serde(rename = "Finding")]
struct FindingShape<'a> {
    /// The id of the rule.
    rule: Cow<'a, str>,
    severity: Severity,
    /// The numbers behind it.
    numbers: Cow<'a, [Number]>,
    /// What is so, and what follows.
    sentence: Cow<'a, str>,
    /// What is so.
    what: Cow<'a, str>,
    /// What follows from it.
    why: Option<Cow<'a, str>>,
    /// What was left out or cannot be ruled out.
    caveat: Option<Cow<'a, str>>,
    /// What it would bring to change it.
    gain: Option<Cow<'a, str>>,
    action: Option<Cow<'a, str>>,
    /// The same as it is typed, where one command does it.
    command: Option<Cow<'a, str>>,
    certainty: Certainty,
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = FindingShape {
            rule: Cow::Borrowed(&*self.rule),
            severity: self.severity,
            numbers: Cow::Borrowed(&self.numbers),
            sentence: Cow::Owned(self.sentence()),
            what: Cow::Borrowed(&self.what),
            why: self.why.as_deref().map(Cow::Borrowed),
            caveat: self.caveat.as_deref().map(Cow::Borrowed),
            gain: self.gain.as_deref().map(Cow::Borrowed),
            action: self.action.as_deref().map(Cow::Borrowed),
            command: self.command.as_deref().map(Cow::Borrowed),
            certainty: self.certainty,
        };
        shape.serialize(serializer)
    }
}

/// The sentence is made of the rest, and is not read.
impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Finding, D::Error> {
        let shape = FindingShape::deserialize(deserializer)?;
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Ok(Finding {
            rule: RuleId(Cow::Owned(shape.rule.into_owned())),
            severity: shape.severity,
            numbers: shape.numbers.into_owned(),
            what: shape.what.into_owned(),
            why: owned(shape.why),
            caveat: owned(shape.caveat),
            gain: owned(shape.gain),
            action: owned(shape.action),
            command: owned(shape.command),
            certainty: shape.certainty,
        })
    }
}

impl JsonSchema for Finding {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Finding")
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        FindingShape::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    rules! {
        ROOM = "A kettle", told by "takeup tea";
        COLD {
            id: "kettle.cold",
            looks_at: "the water",
            speaks_when: "it has less than 100 degrees",
            source: "the thermometer",
        }
    }

    #[test]
    fn one_shape() {
        let found = Finding::new(&COLD, Certainty::Measured, "the water is cold")
            .because("tea needs more")
            .severe(Severity::Warning)
            .with_number("steam", 0.25, Unit::Share)
            .with_command("takeup boil");
        let document = serde_json::json!({
            "rule": "kettle.cold",
            "severity": "warning",
            "numbers": [{ "name": "steam", "value": 0.25, "unit": "share" }],
            "sentence": "the water is cold: tea needs more",
            "what": "the water is cold",
            "why": "tea needs more",
            "caveat": null,
            "gain": null,
            "action": "takeup boil",
            "command": "takeup boil",
            "certainty": "measured",
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), document);
        assert_eq!(serde_json::from_value::<Finding>(document).unwrap(), found);
        assert_eq!(ROOM.rules, [&COLD]);
    }

    #[test]
    fn words_for_a_command_are_kept() {
        let found = Finding::new(&COLD, Certainty::Told, "x").with_action("boil it");
        let found = found.with_command("takeup boil");
        assert_eq!(found.action.as_deref(), Some("boil it"));
        assert_eq!(found.command.as_deref(), Some("takeup boil"));
    }
}
