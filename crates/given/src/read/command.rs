//! Lines behind a prompt: what was typed.

use pipeline::line::stages;

use super::{Before, Met, queue};
use crate::piece::{Command, What};

/// Logins from one machine to the next that are followed.
const LOGINS_MAX: usize = 16;

pub(super) fn typed(text: &str, before: &mut Before) -> Met {
    let Some((prompt, line)) = behind_prompt(text) else { return Met::Nothing };
    if is_open(line) {
        // It may close in the next line. A comment has apostrophes, too.
        return Met::Begun(String::new());
    }
    before.in_job_file = false;
    before.columns = before.columns.take().filter(|_| !line.contains("iostat"));
    (before.sar, before.layers, before.in_alerts) = (None, None, false);
    let line = untimed(line);
    before.asked = queue::asked(line);
    before.machine = match machine_of(prompt) {
        // A prompt without a name is that of the last login.
        "" => before.logins.last().cloned().unwrap_or_default(),
        name => name.to_owned(),
    };
    match line {
        "exit" | "logout" => _ = before.logins.pop(),
        line if before.logins.len() < LOGINS_MAX => before.logins.extend(login(line)),
        _ => {}
    }
    if let Some(setting) = queue::set(line, &before.machine) {
        return Met::Whole(What::Setting(setting));
    }
    // Of several pipelines nobody knows which one a result is of.
    let stages = stages(line).unwrap_or_default();
    let (line, machine) = (line.to_owned(), before.machine.clone());
    Met::Whole(What::Command(Command { line, stages, machine }))
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

/// The prompt and what stands behind it: `$ `, `# `, `% `, `user@host:~# `, `host:~ # `,
/// `bash-5.1$ `.
fn behind_prompt(text: &str) -> Option<(&str, &str)> {
    let mut text = text.trim_start();
    // `(venv) user@host:~$`
    if let Some((_, rest)) = text.strip_prefix('(').and_then(|it| it.split_once(") ")) {
        text = rest;
    }
    let (first, rest) = text.split_once(' ')?;
    let ends = |it: &str| it.ends_with(['$', '#', '%']);
    let is_sign = |it: &str| matches!(it, "$" | "#" | "%");
    let is_shell = |it: &str| it.starts_with("bash-") || it.starts_with("sh-");
    let is_place =
        |it: &str| it.contains(':') || (it.contains('@') && it.contains(']')) || is_shell(it);
    let (prompt, line) = if is_sign(first) || (ends(first) && is_place(first)) {
        (first, rest)
    } else {
        // `[root@host ~]#`, `host:~ #`, `mac:~ joe$`, `/ #`.
        let (second, line) = rest.split_once(' ')?;
        let is_bracket = first.starts_with('[') && first.contains('@') && ends(second);
        let is_path = first.contains(":~") || first.contains(":/");
        let is_root = first == "/" && is_sign(second);
        (is_bracket || is_root || (is_path && ends(second))).then_some((first, line))?
    };
    let line = line.trim();
    let begins = |it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '.');
    // `# gtod_reduce=1` is a value that is switched off in a file of jobs.
    let is_value = line.contains('=') && !line.contains(' ');
    (line.starts_with(begins) && !is_value).then_some((prompt, line))
}

/// `host` of `user@host:~#`.
fn machine_of(prompt: &str) -> &str {
    let behind = prompt.split_once('@').map(|(_, it)| it);
    let host = behind.or_else(|| prompt.contains(":~").then_some(prompt)).unwrap_or_default();
    host.split([':', ' ', ']']).next().unwrap_or_default()
}

/// The machine that `ssh HOST` logs in to. With a command behind it, it only runs that.
fn login(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    matches!(words.next()?, "ssh" | "slogin" | "rsh" | "mosh").then_some(())?;
    let (mut host, mut has_terminal) = (None, false);
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-') else {
            host = Some(word);
            break;
        };
        has_terminal |= option.starts_with('t');
        if option.len() == 1 && "BbcDEeFIiJLlmOopQRSWw".contains(option) {
            words.next();
        }
    }
    let host = host.filter(|_| has_terminal || words.next().is_none())?;
    let host = host.rsplit('@').next()?.split('.').next()?;
    Some(host.to_owned())
}

/// The line without `sudo`, `time`, and the shell that was given it.
fn untimed(line: &str) -> &str {
    let mut inner = line.trim();
    while let Some(rest) =
        ["sudo ", "time ", "/usr/bin/time "].iter().find_map(|it| inner.strip_prefix(it))
    {
        inner = behind_options(rest.trim());
    }
    // `LC_ALL=C dd ...`
    while let Some((word, rest)) = inner.split_once(' ') {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        if name.is_empty() || !name.bytes().all(|it| it.is_ascii_uppercase() || it == b'_') {
            break;
        }
        inner = rest.trim();
    }
    let shell = ["sh -c ", "bash -c "].iter().find_map(|it| inner.strip_prefix(it));
    let quoted = shell.and_then(|it| {
        let quote = it.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
        it.strip_prefix(quote)?.strip_suffix(quote).filter(|it| !it.contains(quote))
    });
    quoted.unwrap_or(inner)
}

/// What stands behind the options of `time`: `-v`, `-p`, `-f FORMAT`, `-o FILE`. Those of `sudo`
/// are others.
fn behind_options(line: &str) -> &str {
    let mut rest = line;
    while let Some((word, behind)) = rest.split_once(' ') {
        rest = match word {
            "-v" | "-p" | "-a" | "--verbose" | "--portability" => behind.trim(),
            "-o" => behind.trim().split_once(' ').map_or(behind, |(_, it)| it.trim()),
            _ => return rest,
        };
    }
    rest
}
