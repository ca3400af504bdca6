//! What `time` printed: bash's three lines, the one of GNU time and its `-v`, those of csh and zsh.

use super::number::{clock, decimal};
use super::{Before, Met};
use crate::piece::{ProcessorTime, ProgramTimed, Timed, What};

pub(super) fn timed(text: &str, _: &mut Before) -> Met {
    if let Some(value) = text.trim().strip_prefix(VERBOSE_ELAPSED) {
        return match clock(value.trim()) {
            Some(elapsed) => Met::Whole(What::Timed(Timed { elapsed, ..Timed::default() })),
            None => Met::begun("time -v without the elapsed time"),
        };
    }
    if let Some(met) = verbose(text.trim()) {
        return met;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(at) = words.windows(4).position(is_of_zsh) {
        return of_zsh(&words[..at], &words[at..]);
    }
    match &words[..] {
        // `time -p` prints plain seconds.
        ["real", time] => match clock(time).or_else(|| decimal(time)) {
            Some(elapsed) => Met::Whole(What::Timed(Timed { elapsed, ..Timed::default() })),
            None if time.starts_with(|it: char| it.is_ascii_digit()) => {
                Met::begun("a time of bash that is none")
            }
            None => Met::Nothing,
        },
        ["user", time] => processor_time(time, ProcessorTime::User),
        ["sys", time] => processor_time(time, ProcessorTime::System),
        [user, system, rest @ ..] if user.ends_with("user") && system.ends_with("system") => {
            one_line(user, system, rest)
        }
        [user, system, elapsed, share, ..] if share.ends_with('%') => of_csh(user, system, elapsed),
        _ => Met::Nothing,
    }
}

/// `user 0m1.5s`
fn processor_time(time: &str, of: fn(f64) -> ProcessorTime) -> Met {
    let seconds = clock(time).or_else(|| decimal(time));
    Met::of(seconds.map(|seconds| What::ProcessorTime(of(seconds))))
}

/// A line of `time -v` other than the elapsed time. They stand above it.
fn verbose(line: &str) -> Option<Met> {
    let is_passed = line.starts_with("Command being timed: \"")
        || (line.starts_with("Percent of CPU this job got: ") && line.ends_with('%'));
    if is_passed {
        return Some(Met::Whole(What::Passed));
    }
    let of = |name: &str| line.strip_prefix(name).map(str::trim);
    let user = of("User time (seconds):").map(|it| (it, ProcessorTime::User as fn(f64) -> _));
    let system = of("System time (seconds):").map(|it| (it, ProcessorTime::System as fn(f64) -> _));
    let (time, of) = user.or(system)?;
    // Two decimals: one that was cut is none.
    let is_whole = time.split_once(['.', ',']).is_some_and(|(_, cents)| cents.len() == 2);
    let seconds = decimal(time).filter(|_| is_whole);
    Some(Met::of(seconds.map(|seconds| What::ProcessorTime(of(seconds)))))
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

/// The line of `time -v` with the elapsed time.
const VERBOSE_ELAPSED: &str = "Elapsed (wall clock) time (h:mm:ss or m:ss):";

/// `1.23s user 4.56s system`
fn is_of_zsh(words: &[&str]) -> bool {
    let is_time = |it: &str| it.strip_suffix('s').is_some_and(|it| decimal(it).is_some());
    matches!(words, [user, "user", system, "system"] if is_time(user) && is_time(system))
}

/// `1.23s user 4.56s system 17% cpu 33.214 total`, behind the program.
fn of_zsh(line: &[&str], words: &[&str]) -> Met {
    let of = |word: &str| word.strip_suffix('s').and_then(decimal);
    let [user, _, system, _, share, "cpu", elapsed, "total"] = words else {
        return Met::begun("times of zsh without the elapsed one");
    };
    let elapsed = decimal(elapsed).or_else(|| clock(elapsed));
    match elapsed.filter(|_| share.ends_with('%')) {
        Some(elapsed) => {
            let timed = Timed { elapsed, user: of(user), system: of(system) };
            Met::Whole(What::ProgramTimed(ProgramTimed { line: line.join(" "), timed }))
        }
        None => Met::begun("times of zsh without the elapsed one"),
    }
}
