//! Lines behind a prompt: what was typed.

use pipeline::line::stages;

use super::{Before, Met, queue};
use crate::piece::{Command, What};

pub(super) fn typed(text: &str, before: &mut Before) -> Met {
    let Some(line) = behind_prompt(text) else { return Met::Nothing };
    before.in_job_file = false;
    before.columns = before.columns.take().filter(|_| !line.contains("iostat"));
    let (line, _) = untimed(line);
    before.asked = queue::asked(line);
    if let Some(setting) = queue::set(line) {
        return Met::Whole(What::Setting(setting));
    }
    match stages(line) {
        Some(stages) => Met::Whole(What::Command(Command { line: line.to_owned(), stages })),
        // An open quote may close in the next line.
        None => Met::begun("a command whose quotes or brackets are open"),
    }
}

/// What stands behind `$ `, `# `, `% ` or `user@host:~# `.
fn behind_prompt(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (prompt, line) = text.split_once(' ')?;
    let ends = |it: &str| it.ends_with(['$', '#', '%']);
    let is_short = matches!(prompt, "$" | "#" | "%");
    // `[root@host ~]#`
    if prompt.starts_with('[') && !ends(prompt) {
        let (rest, line) = line.split_once(' ')?;
        return (prompt.contains('@') && rest.ends_with(['#', '$'])).then(|| line.trim());
    }
    let is_long = ends(prompt) && prompt.contains('@') && prompt.contains([':', ']']);
    let line = line.trim();
    let begins = |it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '.');
    // `# gtod_reduce=1` is a value that is switched off in a file of jobs.
    let is_value = line.split(' ').next().is_some_and(|word| word.contains('='));
    let is_command = line.starts_with(begins) && !is_value;
    ((is_short || is_long) && is_command).then_some(line)
}

/// The line without `time`, and without the shell that was given it; and whether it was timed.
fn untimed(line: &str) -> (&str, bool) {
    let timed = ["time ", "/usr/bin/time "].iter().find_map(|it| line.strip_prefix(it));
    let inner = timed.unwrap_or(line).trim();
    let shell = ["sh -c ", "bash -c "].iter().find_map(|it| inner.strip_prefix(it));
    let quoted = shell.and_then(|it| {
        let quote = it.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
        it.strip_prefix(quote)?.strip_suffix(quote).filter(|it| !it.contains(quote))
    });
    (quoted.unwrap_or(inner), timed.is_some())
}
