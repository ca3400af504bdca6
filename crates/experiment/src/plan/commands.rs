//! Commands with placeholders for the levels of factors, and the checks of them before any of them
//! runs.
//!
//! `{block}` in a command is the level of the factor `block` or `block_bytes`; `{block/512}` is a
//! part of it, as GNU tar counts its blocks. Braces of the shell rarely hold a single word; if they
//! do, as in awk's `{print}`, a second brace escapes them: `{{print}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlanError;
use crate::record::{Cell, Factor, Level};

/// The factor whose levels are the names of commands.
pub const COMMAND: &str = "command";

/// Commands by name, and the lines before and after each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// The shell that runs them.
    pub shell: String,
    /// Which programs of a pipeline must succeed.
    #[serde(default)]
    pub failing: Failing,
    /// Lines before every run, in this order.
    #[serde(default)]
    pub before: Vec<String>,
    /// Lines after every run, in this order: the check of its result.
    #[serde(default)]
    pub after: Vec<String>,
    /// The commands to compare.
    #[serde(rename = "command")]
    pub commands: Vec<Command>,
}

/// Which program of a pipeline makes a run fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failing {
    /// Any of them, if the shell supports it (`set -o pipefail`).
    #[default]
    AnyProgram,
    /// The last one, the default of a shell.
    LastProgram,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its name, which is a level of [`COMMAND`].
    pub name: String,
    /// The line for the shell.
    pub line: String,
    /// Lines before each of its runs, after the lines before every run.
    #[serde(default)]
    pub before: Vec<String>,
}

impl Commands {
    /// The factor of the commands, in their order.
    pub fn factor(&self) -> Factor {
        let name = |command: &Command| Level::Text(command.name.clone());
        Factor::new(COMMAND, self.commands.iter().map(name).collect())
    }

    /// Checks that every line is complete, and that every cell fills its placeholders.
    pub fn check(&self, factors: &[Factor], cells: &[Cell]) -> Result<(), PlanError> {
        if self.commands.is_empty() {
            return Err(PlanError::NoCommand);
        }
        for (index, command) in self.commands.iter().enumerate() {
            let name = command.name.clone();
            let is_plain = |letter: char| letter.is_alphanumeric() || "_.+-".contains(letter);
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(PlanError::CommandName { name });
            }
            if self.commands[..index].iter().any(|known| known.name == name) {
                return Err(PlanError::CommandTwice { name });
            }
            let varied = factors.iter().filter(|factor| factor.name != COMMAND);
            let mut found = Vec::new();
            // A line after a run changes nothing in the run.
            let lines = [&command.line].into_iter().chain(&command.before).chain(&self.before);
            for line in lines {
                parts(line, |place| found.push(place.name.to_owned()));
            }
            for factor in varied.filter(|factor| factor.levels.len() > 1) {
                if !found.iter().any(|name| is_called(&factor.name, name)) {
                    let factor = factor.name.trim_end_matches("_bytes").to_owned();
                    return Err(PlanError::NotVaried { command: name, factor });
                }
            }
        }
        cells.iter().try_for_each(|cell| self.lines(cell).map(drop))
    }

    /// The lines for a cell.
    pub fn lines(&self, cell: &Cell) -> Result<ShellLines, PlanError> {
        let name = match cell.get(COMMAND) {
            Some(level) => level.shown(COMMAND),
            None => self.commands.first().map(|one| one.name.clone()).unwrap_or_default(),
        };
        let command = self.commands.iter().find(|command| command.name == name);
        let command = command.ok_or(PlanError::NoSuchCommand { name: name.clone() })?;
        let fill = |what: &str, lines: &[String]| -> Result<Vec<String>, PlanError> {
            lines.iter().map(|line| filled(what, line, cell)).collect()
        };
        let own = format!("{BEFORE} {}", command.name);
        let mut before = fill(BEFORE_ALL, &self.before)?;
        before.extend(fill(&own, &command.before)?);
        Ok(ShellLines {
            line: filled(&format!("command {}", command.name), &command.line, cell)?,
            command: name,
            before_all: self.before.len(),
            before,
            after: fill(BEHIND, &self.after)?,
        })
    }
}

/// Names of lines in messages.
const BEFORE: &str = "the line before";
const BEFORE_ALL: &str = "the line before a run";
const BEHIND: &str = "the line after a run";

/// The lines for the shell for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellLines {
    /// Name of the command.
    command: String,
    /// Number of the lines in `before` that come before every run.
    before_all: usize,
    /// Lines before the run.
    pub before: Vec<String>,
    /// The command.
    pub line: String,
    /// Lines after the run.
    pub after: Vec<String>,
}

impl ShellLines {
    /// All lines, each with its name for messages.
    pub fn named(&self) -> Vec<(String, &String)> {
        let command = &self.command;
        let of_one = |(at, line)| {
            let is_own = at >= self.before_all;
            let what = if is_own { format!("{BEFORE} {command}") } else { BEFORE_ALL.to_owned() };
            (what, line)
        };
        let mut all: Vec<(String, &String)> = self.before.iter().enumerate().map(of_one).collect();
        all.push((format!("command {command}"), &self.line));
        all.extend(self.after.iter().map(|line| (BEHIND.to_owned(), line)));
        all
    }
}

/// A word in braces.
struct Placeholder<'a> {
    name: &'a str,
    divisor: u64,
}

impl<'a> Placeholder<'a> {
    /// Parses a placeholder at the beginning of a text after an opening brace; also returns the
    /// text after the closing brace.
    fn at(text: &'a str) -> Option<(Placeholder<'a>, &'a str)> {
        let (inside, rest) = text.split_once('}')?;
        let (name, divisor) = match inside.split_once('/') {
            Some((name, divisor)) => (name, divisor.parse().ok().filter(|&by| by > 0)?),
            None => (inside, 1),
        };
        let is_plain = |letter: char| letter.is_ascii_lowercase() || "_0123456789".contains(letter);
        let is_word = name.starts_with(|first: char| first.is_ascii_lowercase());
        (is_word && name.chars().all(is_plain)).then_some((Placeholder { name, divisor }, rest))
    }
}

/// Passes each placeholder of a line to `found`, and returns the pieces of text around them.
fn parts(line: &str, mut found: impl FnMut(&Placeholder<'_>)) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut rest = line;
    while let Some(at) = rest.find('{') {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        let kept = behind.strip_prefix('{').filter(|behind| Placeholder::at(behind).is_some());
        let last = texts.last_mut().expect("there is one from the beginning");
        last.push_str(before);
        match (kept, Placeholder::at(behind)) {
            (Some(behind), _) => {
                last.push('{');
                rest = behind;
                // The escaped word is plain text, too.
                let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                last.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            // ${name} belongs to the shell.
            (None, Some((place, behind))) if !before.ends_with('$') => {
                found(&place);
                texts.push(String::new());
                rest = behind;
            }
            _ => {
                last.push('{');
                rest = behind;
            }
        }
    }
    texts.last_mut().expect("there is one from the beginning").push_str(rest);
    texts
}

/// Whether a placeholder names a factor, with or without its unit.
fn is_called(factor: &str, name: &str) -> bool {
    factor == name || factor.strip_suffix("_bytes") == Some(name)
}

/// Replaces the placeholders of a line by the levels of a cell.
fn filled(what: &str, line: &str, cell: &Cell) -> Result<String, PlanError> {
    if line.trim().is_empty() {
        return Err(PlanError::CommandEmpty { what: what.to_owned() });
    }
    let mut values = Vec::new();
    let texts = parts(line, |place| values.push(value(what, place, cell)));
    let mut whole = String::new();
    let mut values = values.into_iter();
    for text in texts {
        whole.push_str(&text);
        if let Some(value) = values.next() {
            whole.push_str(&value?);
        }
    }
    Ok(whole)
}

fn value(what: &str, place: &Placeholder<'_>, cell: &Cell) -> Result<String, PlanError> {
    let level = cell.iter().find(|(factor, _)| is_called(factor, place.name));
    let Some((_, level)) = level else {
        let name = place.name.to_owned();
        return Err(PlanError::UnknownPlaceholder { what: what.to_owned(), name });
    };
    match (level, place.divisor) {
        (Level::Text(text), 1) => Ok(text.clone()),
        (Level::Number(number), by) if number.is_multiple_of(by) => Ok((number / by).to_string()),
        (level, divisor) => {
            let level = level.shown("");
            Err(PlanError::NotDivided { what: what.to_owned(), level, divisor })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::cell;

    fn commands(lines: &[(&str, &str)]) -> Commands {
        let command = |(name, line): &(&str, &str)| Command {
            name: (*name).to_owned(),
            line: (*line).to_owned(),
            before: Vec::new(),
        };
        Commands {
            shell: "sh".into(),
            failing: Failing::AnyProgram,
            before: Vec::new(),
            after: Vec::new(),
            commands: lines.iter().map(command).collect(),
        }
    }

    #[test]
    fn levels_stand_in_the_place_of_words_in_braces() {
        let check = |line: &str, expected: &str| {
            let cell = cell(&[("block_bytes", "65536"), ("way", "fast"), ("command", "a")]);
            assert_eq!(filled("it", line, &cell).unwrap(), expected, "{line}");
        };
        check("dd bs={block} of={way}", "dd bs=65536 of=fast");
        check("tar -b {block/512} {block_bytes}", "tar -b 128 65536");
        check("cmp out-{command}", "cmp out-a");
        // Syntax of the shell or of a program stays as it is.
        check("find -exec {} + ; { a; }", "find -exec {} + ; { a; }");
        check("echo ${way} {a,b} {1..3} {", "echo ${way} {a,b} {1..3} {");
        check("awk '{{print}' {way}", "awk '{print}' fast");
        check("awk '{print $1}'", "awk '{print $1}'");
    }

    #[test]
    fn what_is_wrong_is_said_before_anything_runs() {
        let levels = vec![Level::Number(10_240), Level::Number(700)];
        let factors = [Factor::new("block_bytes", levels)];
        let check = |lines: &[(&str, &str)], expected: &str| {
            let cells = [cell(&[("command", lines[0].0), ("block_bytes", "700")])];
            let error = commands(lines).check(&factors, &cells).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&[("a", " \t")], "command a: neither it nor the lines before it use {block}");
        check(&[("a", "dd bs={block} of={off}")], "command a: unknown placeholder {off}");
        check(&[("a", "tar -b {block/512}")], "command a: 700 is not a multiple of 512");
        check(&[("a b", "dd bs={block}")], "command name \"a b\":");
        check(&[("a", "{block}"), ("a", "{block}")], "command a is given twice");
        let empty = commands(&[("a", "")]);
        let error = empty.check(&[], &[cell(&[("command", "a")])]).unwrap_err();
        assert_eq!(error.to_string(), "command a is empty");
        assert!(matches!(commands(&[]).check(&[], &[]), Err(PlanError::NoCommand)));
    }

    #[test]
    fn what_comes_before_a_run_may_be_all_that_varies() {
        let factors = [Factor::new("size", vec![Level::Number(1), Level::Number(2)])];
        let cells = [cell(&[("command", "a"), ("size", "1")])];
        let check = |change: fn(&mut Commands), expected: Result<(), &str>| {
            let mut all = commands(&[("a", "cat x")]);
            change(&mut all);
            let found = all.check(&factors, &cells).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check(|all| all.before = vec!["make {size}".into()], Ok(()));
        check(|all| all.commands[0].before = vec!["make {size}".into()], Ok(()));
        let refused = Err("command a: neither it nor the lines before it use {size}");
        check(|all| all.after = vec!["check {size}".into()], refused);
        check(|_| {}, refused);
    }

    #[test]
    fn what_comes_before_one_command_comes_behind_what_comes_before_all() {
        let mut all = commands(&[("a", "x"), ("b", "y")]);
        all.before = vec!["first {command}".into()];
        all.commands[1].before = vec!["second".into()];
        all.after = vec!["check".into()];
        let lines = all.lines(&cell(&[("command", "b")])).unwrap();
        assert_eq!(lines.before, ["first b", "second"]);
        assert_eq!((lines.line.as_str(), &lines.after[..]), ("y", &["check".to_owned()][..]));
        assert_eq!(all.lines(&cell(&[("command", "a")])).unwrap().before, ["first a"]);
        let named: Vec<String> = lines.named().into_iter().map(|(what, _)| what).collect();
        let own = ["the line before a run", "the line before b", "command b"];
        assert_eq!(named[..3], own);
        assert_eq!(named[3..], ["the line after a run"]);
    }
}
