//! What `time` printed: bash's three lines, the one of GNU time, and that of csh.

use super::number::{clock, decimal};
use super::{Before, Met};
use crate::piece::{Timed, What};

pub(super) fn timed(text: &str, _: &mut Before) -> Met {
    let words: Vec<&str> = text.split_whitespace().collect();
    match &words[..] {
        // `time -p` prints plain seconds.
        ["real", time] => match clock(time).or_else(|| decimal(time)) {
            Some(elapsed) => Met::Whole(What::Timed(Timed { elapsed, ..Timed::default() })),
            None if time.starts_with(|it: char| it.is_ascii_digit()) => {
                Met::begun("a time of bash that is none")
            }
            None => Met::Nothing,
        },
        // Of the command whose `real` was read.
        ["user" | "sys", time] if clock(time).is_some() || decimal(time).is_some() => {
            Met::Whole(What::Passed)
        }
        [user, system, rest @ ..] if user.ends_with("user") && system.ends_with("system") => {
            one_line(user, system, rest)
        }
        [user, system, elapsed, share, ..] if share.ends_with('%') => of_csh(user, system, elapsed),
        _ => Met::Nothing,
    }
}

/// `375.4u 39.3s 7:02.18 98.3%`
fn of_csh(user: &str, system: &str, elapsed: &str) -> Met {
    let of = |word: &str, name: char| word.strip_suffix(name).and_then(decimal);
    let (Some(user), Some(system), Some(elapsed)) =
        (of(user, 'u'), of(system, 's'), clock(elapsed))
    else {
        return Met::Nothing;
    };
    Met::Whole(What::Timed(Timed { elapsed, user: Some(user), system: Some(system) }))
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
