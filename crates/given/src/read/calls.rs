//! Lines of strace, with and without times in front, also cut at both ends.

use super::{Before, Met};
use crate::piece::{Call, What};

/// Calls that move data, and those that wait for them. All others are passed over.
const DATA: [&str; 8] =
    ["read", "write", "pread64", "pwrite64", "preadv", "pwritev", "io_submit", "io_uring_enter"];

const SYNCS: [&str; 2] = ["fsync", "fdatasync"];

pub(super) fn call(text: &str, _: &mut Before) -> Met {
    let line = behind_marks(text.trim());
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
        let is_open = DATA.contains(&name) && begins_with_file(rest) && !rest.contains("<unfin");
        let why = format!("a call of {name} without its result");
        return if is_open { Met::Begun(why) } else { Met::Nothing };
    };
    if !DATA.contains(&name) && !SYNCS.contains(&name) {
        return Met::Whole(What::Passed);
    }
    let words = arguments_of(arguments);
    let number = |at: usize| words.get(at).and_then(|word| word.trim().parse().ok());
    let call = Call {
        name: name.to_owned(),
        file: words.first().and_then(|word| word.trim().parse().ok()),
        asked: number(2),
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

/// The line without the process and the time in front.
fn behind_marks(line: &str) -> &str {
    let mut rest = line;
    if let Some(marked) = rest.strip_prefix("[pid ") {
        rest = marked.split_once("] ").map_or(rest, |(_, it)| it);
    }
    // A process, a time of day, seconds: words of digits.
    while let Some((word, behind)) = rest.split_once(' ') {
        let is_mark =
            !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit() || b".:".contains(&it));
        if !is_mark {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

/// The arguments and the number that a call returned.
fn ended(rest: &str) -> Option<(&str, i64)> {
    let at = rest.rfind(") ")?;
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
