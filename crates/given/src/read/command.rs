//! Lines behind a prompt: what was typed.

use pipeline::line::stages;

use super::{Before, Met, queue};
use crate::piece::{Command, What};

pub(super) fn typed(text: &str, before: &mut Before) -> Met {
    let Some((prompt, line)) = behind_prompt(text) else { return Met::Nothing };
    if is_open(line) {
        // It may close in the next line. A comment has apostrophes, too.
        return Met::Begun(String::new());
    }
    before.in_job_file = false;
    before.columns = before.columns.take().filter(|_| !line.contains("iostat"));
    let line = untimed(line);
    before.asked = queue::asked(line);
    if let Some(setting) = queue::set(line) {
        return Met::Whole(What::Setting(setting));
    }
    // Of several pipelines nobody knows which one a result is of.
    let stages = stages(line).unwrap_or_default();
    let (line, prompt) = (line.to_owned(), prompt.to_owned());
    Met::Whole(What::Command(Command { line, stages, prompt }))
}

/// Whether a quote or a bracket is open.
fn is_open(line: &str) -> bool {
    let (mut quote, mut depth, mut is_escaped) = (None, 0_i32, false);
    for letter in line.chars() {
        match (quote, letter) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    quote.is_some() || depth > 0 || is_escaped
}

/// The prompt and what stands behind it: `$ `, `# `, `% `, `user@host:~# `, `host:~ # `.
fn behind_prompt(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (first, rest) = text.split_once(' ')?;
    let ends = |it: &str| it.ends_with(['$', '#', '%']);
    let is_sign = |it: &str| matches!(it, "$" | "#" | "%");
    let is_place = |it: &str| it.contains(':') || (it.contains('@') && it.contains(']'));
    let (prompt, line) = if is_sign(first) || (ends(first) && is_place(first)) {
        (first, rest)
    } else {
        // `[root@host ~]#`, `host:~ #`.
        let (second, line) = rest.split_once(' ')?;
        let is_bracket = first.starts_with('[') && first.contains('@') && ends(second);
        let is_path = first.contains(":~") || first.contains(":/");
        (is_bracket || (is_path && is_sign(second))).then_some((first, line))?
    };
    let line = line.trim();
    let begins = |it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '.');
    // `# gtod_reduce=1` is a value that is switched off in a file of jobs.
    let is_value = line.split(' ').next().is_some_and(|word| word.contains('='));
    (line.starts_with(begins) && !is_value).then_some((prompt, line))
}

/// The line without `sudo`, `time`, and the shell that was given it.
fn untimed(line: &str) -> &str {
    let mut inner = line.trim();
    while let Some(rest) =
        ["sudo ", "time ", "/usr/bin/time "].iter().find_map(|it| inner.strip_prefix(it))
    {
        inner = rest.trim();
    }
    let shell = ["sh -c ", "bash -c "].iter().find_map(|it| inner.strip_prefix(it));
    let quoted = shell.and_then(|it| {
        let quote = it.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
        it.strip_prefix(quote)?.strip_suffix(quote).filter(|it| !it.contains(quote))
    });
    quoted.unwrap_or(inner)
}
