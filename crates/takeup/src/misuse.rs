//! Errors of the command line, from clap, in the form of all other messages.

mod habits;

use std::io;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use base::escape::escape_controls;
use base::names::meant;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use service::failure::{Failure, with_causes};

use crate::exit_code::FAILED;

/// Prints what clap returns: help to standard output, misuse in the form of other messages.
pub fn usage(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return match printed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let why = format!("cannot write standard output: {}", with_causes(&error));
                crate::standard_error::to_standard_error(&Failure::of(why, None).to_text());
                ExitCode::from(FAILED)
            }
            // The reader of a pipe may end early, as `head` does.
            _ => ExitCode::SUCCESS,
        };
    }
    if let Some(failure) = below_zero(&error, words()) {
        crate::standard_error::to_standard_error(&failure.to_text());
        return ExitCode::from(FAILED);
    }
    take_back_far_fetched(&mut error);
    let typed: Vec<String> = words().collect();
    let habit = habits::habit_hint(&error, &crate::commands::command(), &typed);
    if habit.is_some() {
        take_back_tips(&mut error);
    }
    let meant = habit
        .or_else(|| target_among_sources(&error, &typed))
        .or_else(|| path_behind_show(&error, &typed))
        .or_else(|| archive_on_standard_input(&error))
        .or_else(|| path_as_command(&error, &typed));
    let named = escaped_context(&error);
    named.into_iter().for_each(|(kind, value)| drop(error.insert(kind, value)));
    let text = error.render().to_string();
    let text = match text.strip_prefix("error: ") {
        Some(misuse) => format!("takeup: {misuse}"),
        // Without any arguments clap returns the help.
        None => text,
    };
    crate::standard_error::to_standard_error(&text);
    if let Some(line) = meant {
        crate::standard_error::to_standard_error(&format!("hint: {}\n", escape_controls(&line)));
    }
    ExitCode::from(FAILED)
}

/// What was typed. A name in another encoding must not end the program here.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The command that was meant by `backup /home home.tar`, where the target stands among the
/// sources.
fn target_among_sources(error: &clap::Error, typed: &[String]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::MissingRequiredArgument
        || !missing.iter().any(|name| name.starts_with("--to "))
    {
        return None;
    }
    let (command, rest) = typed.split_first()?;
    // Beside options it is not known which words are their values.
    if command != "backup" || rest.iter().any(|word| word.starts_with('-')) {
        return Some("name the target with --to, for example --to home.tar.zst".to_owned());
    }
    let (target, sources) = rest.split_last().filter(|(_, sources)| !sources.is_empty())?;
    Some(format!("did you mean `takeup backup {} --to {target}`?", sources.join(" ")))
}

/// What was meant by `list < home.tar`.
fn archive_on_standard_input(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_archive = error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|name| name == "<FROM>");
    is_archive.then(|| "name the archive, or - to read standard input".to_owned())
}

/// What was meant by `tune show /srv`: the settings in force there.
fn path_behind_show(error: &clap::Error, typed: &[String]) -> Option<String> {
    match typed.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tune", "show", path, ..]
            if error.kind() == ErrorKind::UnknownArgument && !path.starts_with('-') =>
        {
            Some(format!("run `takeup probe {path}` to see the settings in force there"))
        }
        _ => None,
    }
}

/// What was meant by a path in the place of a command.
fn path_as_command(error: &clap::Error, typed: &[String]) -> Option<String> {
    let Some(ContextValue::String(path)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let found = Path::new(path).metadata().ok()?;
    match typed.first().map(String::as_str) {
        Some("bench") => Some(format!(
            "run `takeup bench read {path}` for one stream, `takeup bench disk {path}` for random \
             loads"
        )),
        Some(first) if first == path && found.is_dir() => Some(format!(
            "run `takeup backup {path} --to ARCHIVE` to back it up, `takeup probe {path}` to see \
             its storage"
        )),
        Some(first) if first == path && found.is_file() => Some(format!(
            "run `takeup list {path}` if it is an archive, `takeup report {path}` if it is a record"
        )),
        _ => None,
    }
}

/// Removes what clap proposes, which is a guess by the letters alone.
fn take_back_tips(error: &mut clap::Error) {
    let tips = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::Suggested,
        ContextKind::Usage,
    ];
    for tip in tips {
        error.remove(tip);
    }
}

/// Removes clap's proposal of an option, and the usage made of it, where the option has little in
/// common with what was typed.
fn take_back_far_fetched(error: &mut clap::Error) {
    let option = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.trim_start_matches('-').to_owned()),
        _ => None,
    };
    let both = option(ContextKind::InvalidArg).zip(option(ContextKind::SuggestedArg));
    if both.is_some_and(|(typed, proposed)| meant(&typed, [&*proposed]).is_none()) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
}

/// What was typed, with line ends escaped: a name must not add a line to the message.
fn escaped_context(error: &clap::Error) -> Vec<(ContextKind, ContextValue)> {
    let escaped = |name: &String| escape_controls(name);
    let of = |value: &ContextValue| match value {
        ContextValue::String(name) => Some(ContextValue::String(escaped(name))),
        ContextValue::Strings(names) => {
            Some(ContextValue::Strings(names.iter().map(escaped).collect()))
        }
        _ => None,
    };
    error.context().filter_map(|(kind, value)| Some((kind, of(value)?))).collect()
}

/// A negative number. Clap takes it for an option and proposes `--` before it, which would not
/// help: no option takes negative numbers.
fn below_zero(error: &clap::Error, typed: impl Iterator<Item = String>) -> Option<Failure> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let number =
        unknown.strip_prefix('-').filter(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    if error.kind() != ErrorKind::UnknownArgument || number.is_none() {
        return None;
    }
    let mut before = None;
    for word in typed {
        if word.starts_with(unknown.as_str()) {
            let place = before.map_or(String::new(), |before| format!(" after {before}"));
            return Some(Failure::of(format!("{word}{place}: numbers cannot be negative"), None));
        }
        before = Some(word);
    }
    None
}

/// Refuses to run without a standard output: what is written there would be lost silently.
pub fn standard_output_closed() -> ExitCode {
    let hint = "redirect it to /dev/null to discard it";
    let failure = Failure::of("standard output is closed", Some(hint));
    crate::standard_error::to_standard_error(&failure.to_text());
    ExitCode::from(FAILED)
}
