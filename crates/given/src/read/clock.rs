//! What `time` printed: bash's three lines, the one of csh, and that of GNU time.

use super::number::{clock, decimal};
use super::{Before, Met};
use crate::piece::{Timed, What};

pub(super) fn timed(text: &str, before: &mut Before) -> Met {
    let words: Vec<&str> = text.split_whitespace().collect();
    match &words[..] {
        ["real", time] => match clock(time) {
            Some(elapsed) => Met::Whole(What::Timed(Timed { elapsed, ..Timed::default() })),
            None => Met::begun("a time of bash that is none"),
        },
        // Of the command whose `real` was read.
        ["user" | "sys", time] if clock(time).is_some() => Met::Whole(What::Passed),
        [user, system, rest @ ..] if user.ends_with("user") && system.ends_with("system") => {
            one_line(user, system, rest)
        }
        _ => {
            before.real = None;
            Met::Nothing
        }
    }
}

/// `375.40user 39.38system 7:02.18elapsed 98%CPU`
fn one_line(user: &str, system: &str, rest: &[&str]) -> Met {
    let of = |word: &str, name: &str| word.strip_suffix(name).and_then(decimal);
    let (Some(user), Some(system)) = (of(user, "user"), of(system, "system")) else {
        return Met::Nothing;
    };
    let elapsed = rest.first().and_then(|it| it.strip_suffix("elapsed")).and_then(clock);
    match elapsed {
        Some(elapsed) => {
            Met::Whole(What::Timed(Timed { elapsed, user: Some(user), system: Some(system) }))
        }
        None => Met::begun("times of a command without the elapsed one"),
    }
}
