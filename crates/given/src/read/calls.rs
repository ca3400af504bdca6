//! Lines of strace, with and without times in front, also cut at both ends.

use super::{Before, Met};
use crate::piece::{Call, What};

/// Calls that move data, and those that wait for them. All others are passed over.
const DATA: [&str; 8] =
    ["read", "write", "pread64", "pwrite64", "preadv", "pwritev", "io_submit", "io_uring_enter"];

const WAITS: [&str; 4] = ["fsync", "fdatasync", "io_getevents", "io_pgetevents"];

pub(super) fn call(text: &str, _: &mut Before) -> Met {
    let (process, line) = behind_marks(text.trim());
    let Some((name, rest)) = line.split_once('(') else { return Met::Nothing };
    let is_name = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
    };
    if !is_name(name) {
        return Met::Nothing;
    }
    let Some((arguments, result)) = ended(rest) else {
        // Its end is in the next line, or in another one, or was cut.
        let is_known = DATA.contains(&name) || WAITS.contains(&name);
        if is_known && rest.contains("<unfinished ...>") {
            return Met::Whole(What::Overlapped);
        }
        let is_open = is_known && begins_with_file(rest) && !rest.contains("<unfin");
        let why = format!("a call of {name} without its result");
        return if is_open { Met::Begun(why) } else { Met::Nothing };
    };
    if !DATA.contains(&name) && !WAITS.contains(&name) {
        return Met::Whole(What::Passed);
    }
    let words = arguments_of(arguments);
    let first = words.first().map_or("", |word| word.trim());
    // With -y the file stands behind its number.
    let (file, path) = first.split_once('<').unwrap_or((first, ""));
    if path.contains(":[") {
        return Met::Whole(What::Passed);
    }
    let call = Call {
        process,
        name: name.to_owned(),
        file: file.parse().ok(),
        asked: words.get(2).and_then(|word| word.trim().parse().ok()),
        result,
    };
    Met::Whole(What::Call(call))
}

/// `read(2), write(2)` of a sentence is no call.
fn begins_with_file(arguments: &str) -> bool {
    arguments.split_once(',').is_some_and(|(first, _)| {
        let digits = first.strip_prefix("0x").unwrap_or(first);
        !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit())
    })
}

/// The process, and the line without it and the time in front.
fn behind_marks(line: &str) -> (Option<u32>, &str) {
    let (mut rest, mut process) = (line, None);
    if let Some((number, behind)) =
        rest.strip_prefix("[pid ").and_then(|marked| marked.split_once("] "))
    {
        (process, rest) = (number.trim().parse().ok(), behind.trim_start());
    }
    // A process, a time of day, seconds: words of digits.
    while let Some((word, behind)) = rest.split_once(' ') {
        let is_mark =
            !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit() || b".:".contains(&it));
        if !is_mark {
            break;
        }
        process = process.or_else(|| word.parse().ok());
        rest = behind.trim_start();
    }
    (process, rest)
}

/// The arguments and the number that a call returned.
fn ended(rest: &str) -> Option<(&str, i64)> {
    // Behind the number there may be an error in brackets, and the time.
    let result_at = |at: &usize| rest[at + 1..].trim_start().starts_with("= ");
    let at = rest.rmatch_indices(')').map(|(at, _)| at).find(result_at)?;
    let result = rest[at + 1..].trim_start().strip_prefix("= ")?;
    let word = result.split([' ', '<']).next()?;
    Some((&rest[..at], word.parse().ok()?))
}

/// The arguments; commas in strings and brackets belong to theirs.
fn arguments_of(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    found
}
