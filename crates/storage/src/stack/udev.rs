//! udev rules that set an attribute of a device. Rules are read line by line; only conditions that
//! files of the device can answer are evaluated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::glob;
use crate::layers::file_name;
use machine::Machine;

/// Folders of rules; a file in an earlier folder replaces files of the same name in later ones
/// (udev(7)).
const FOLDERS: &[&str] = &[
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
];
/// Maximum number of rules to read, more than any system has.
const LINES_MAX: usize = 100_000;

/// A rule that sets attributes.
#[derive(Debug)]
pub(super) struct Rule {
    pub file: PathBuf,
    /// From 1; the first line of a rule that continues over several.
    pub line: usize,
    parts: Vec<Part>,
}

/// One of `KEY=="value"`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    key: String,
    operator: String,
    value: String,
}

/// Whether a rule applies to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies {
    No,
    /// It has conditions that were not evaluated.
    Perhaps,
    Yes,
}

/// All rules that set an attribute.
pub(super) fn rules(machine: &Machine) -> Vec<Rule> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in FOLDERS {
        for file in machine.entries(&machine.at(folder)) {
            if file.extension().is_some_and(|it| it == "rules") {
                files.entry(file_name(&file)).or_insert(file);
            }
        }
    }
    let mut rules = Vec::new();
    let mut left = LINES_MAX;
    for file in files.values() {
        let text = machine.text(file).unwrap_or_default();
        let shown = machine.shown(file);
        let lines: Vec<(usize, String)> = whole_lines(&text).into_iter().take(left).collect();
        left -= lines.len();
        for (line, text) in lines {
            let parts = parts(&text);
            if parts.iter().any(|part| part.key.starts_with("ATTR{") && part.sets()) {
                rules.push(Rule { file: shown.clone(), line, parts });
            }
        }
    }
    rules
}

impl Part {
    fn sets(&self) -> bool {
        matches!(self.operator.as_str(), "=" | "+=" | ":=")
    }
}

impl Rule {
    /// Whether it sets one of these attributes.
    pub fn sets(&self, attributes: &[&str]) -> bool {
        self.text(attributes).is_some()
    }

    /// The value that it sets one of these attributes to. `None` if udev substitutes a part of the
    /// value (udev(7): `%c` is the output of a program, `$attr{...}` another attribute).
    pub fn value(&self, attributes: &[&str]) -> Option<&str> {
        self.text(attributes).filter(|value| !value.contains(['%', '$']))
    }

    fn text(&self, attributes: &[&str]) -> Option<&str> {
        let is_it = |part: &&Part| {
            let name = part.key.strip_prefix("ATTR{").and_then(|it| it.strip_suffix('}'));
            part.sets() && name.is_some_and(|name| attributes.contains(&name))
        };
        self.parts.iter().rev().find(is_it).map(|part| part.value.as_str())
    }

    /// Whether it applies to the device in that folder, of that subsystem.
    pub fn applies(&self, machine: &Machine, folder: &Path, subsystem: &str) -> Applies {
        // A program that fails ends the rule, however it is written (udev(7), PROGRAM).
        let asks_program = self.parts.iter().any(|part| part.key == "PROGRAM");
        let mut found = if asks_program { Applies::Perhaps } else { Applies::Yes };
        for part in self.parts.iter().filter(|it| ["==", "!="].contains(&it.operator.as_str())) {
            let attribute = part.key.strip_prefix("ATTR{").and_then(|it| it.strip_suffix('}'));
            let value = match part.key.as_str() {
                "KERNEL" => Some(file_name(folder)),
                "SUBSYSTEM" => Some(subsystem.to_owned()),
                "ENV{DEVTYPE}" => {
                    let is_part = folder.join("partition").exists();
                    Some(if is_part { "partition" } else { "disk" }.to_owned())
                }
                "ENV{DM_NAME}" => Some(machine.text(&folder.join("dm/name")).unwrap_or_default()),
                "ENV{DM_UUID}" => Some(machine.text(&folder.join("dm/uuid")).unwrap_or_default()),
                // An existing device was added or changed.
                "ACTION" if ["add", "change"].iter().any(|it| glob::matches(&part.value, it)) => {
                    continue;
                }
                "ACTION" if part.operator == "==" => return Applies::No,
                _ => attribute.map(|name| machine.text(&folder.join(name)).unwrap_or_default()),
            };
            match value {
                None => found = Applies::Perhaps,
                Some(value) => {
                    if glob::matches(&part.value, &value) != (part.operator == "==") {
                        return Applies::No;
                    }
                }
            }
        }
        found
    }
}

/// Lines without comments; a backslash at the end joins the next line.
fn whole_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, whole)) => whole.push_str(part),
            None if part.starts_with('#') || part.is_empty() => continue,
            None => lines.push((index + 1, part.to_owned())),
        }
        goes_on = more;
    }
    lines
}

/// The parts of a rule, up to the first syntax error.
fn parts(line: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = line.trim_start_matches([',', ' ', '\t']);
    while let Some(at) = rest.find(['=', '!', '+', '-', ':']) {
        // The name of an attribute, in braces, may contain `-`.
        let at = match rest.find('{').filter(|open| *open < at) {
            Some(open) => match rest[open..].find('}') {
                Some(close) => open + close + 1,
                None => break,
            },
            None => at,
        };
        let (key, behind) = rest.split_at(at);
        let Some(quote) = behind.find('"') else { break };
        let operator = behind[..quote].trim().trim_end_matches(['e', 'i']).to_owned();
        let value = &behind[quote + 1..];
        let Some(end) = value.find('"') else { break };
        let key = key.trim().to_owned();
        parts.push(Part { key, operator, value: value[..end].to_owned() });
        rest = value[end + 1..].trim_start_matches([',', ' ', '\t']);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rule_in_its_parts() {
        let text = "# ATTR{a}=\"1\"\nACTION==\"add|change\", \\\n  KERNEL!=\"sr*\", \
                    ATTR{queue/read_ahead_kb}=\"1024\"\n\nLABEL=\"end\"";
        let lines = whole_lines(text);
        assert_eq!(lines.iter().map(|it| it.0).collect::<Vec<_>>(), [2, 5]);
        let part = |key: &str, operator: &str, value: &str| {
            let [key, operator, value] = [key, operator, value].map(str::to_owned);
            Part { key, operator, value }
        };
        let expected = [
            part("ACTION", "==", "add|change"),
            part("KERNEL", "!=", "sr*"),
            part("ATTR{queue/read_ahead_kb}", "=", "1024"),
        ];
        assert_eq!(parts(&lines[0].1), expected);
        assert_eq!(parts("KERNEL==sda"), []);
        assert_eq!(parts("ATTR{a"), []);
    }

    proptest! {
        #[test]
        fn no_rule_panics(text in "[A-Z{}/=!+:\", \\\\\n#-]{0,80}") {
            for (_, line) in whole_lines(&text) {
                parts(&line);
            }
        }
    }
}
