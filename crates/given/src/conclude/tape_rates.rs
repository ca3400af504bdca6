//! How fast commands wrote to a tape drive, against the speeds of the medium in it.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::tapes::{Drives, range, source};
use super::targets::{asks_for_tapes, target_of};
use super::{COMPARED_MAX, Conclusions, runs, span};
use crate::piece::{Command, Moved, Mover, Piece, Switch, What};
use crate::rules;

/// A shorter run may be all in the buffer of the drive.
const LONG_SECONDS: f64 = 30.0;
/// The buffers of drives have 1 to 2 GB at most: less than this on the tape may have come out of
/// the buffer in one go.
const BUFFER_BYTES: f64 = 2.0 * 1024.0 * 1024.0 * 1024.0;
/// Bytes for each second: no drive is slower.
const RATE_MIN: f64 = 1.0;
/// A rate is the highest speed from this share of it on.
pub(super) const NEAR: f64 = 0.9;
/// A rate that was printed with two digits, `1.0`, may be larger by this.
const TWO_DIGITS: f64 = 1.05;

/// How fast a command wrote to its target.
struct Written<'a> {
    command: &'a Command,
    target: String,
    bytes: f64,
    seconds: f64,
    /// By which its rate may be larger than bytes for each second.
    rounded: f64,
    lines: (u32, u32),
}

impl Written<'_> {
    fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }

    fn drive(&self) -> (&str, &str) {
        (&self.target, &self.command.machine)
    }
}

pub(super) fn conclude(pieces: &[Piece], drives: &Drives<'_>, found: &mut Conclusions) {
    let is_long = |it: &Written<'_>| it.seconds >= LONG_SECONDS && it.bytes > BUFFER_BYTES;
    for it in written(pieces).iter().filter(|it| is_long(it)) {
        below_lowest(it, drives, found);
        at_highest(it, drives, found);
    }
}

/// Runs whose bytes, time and target are known: ends of `dd`, totals of tar, last lines of pv.
fn written(pieces: &[Piece]) -> Vec<Written<'_>> {
    let mut all: Vec<Written<'_>> = Vec::new();
    for run in runs(pieces) {
        let (Some(bytes), Some(target)) = (run.bytes, target_of(run.command, "dd")) else {
            continue;
        };
        let (command, seconds, lines) = (run.command, run.seconds, run.lines);
        all.push(Written { command, target, bytes: bytes as f64, seconds, rounded: 1.0, lines });
    }
    let of_runs: Vec<u32> = all.iter().map(|it| it.lines.0).collect();
    let mut open: Option<(&Command, &Piece)> = None;
    for piece in pieces {
        match &piece.what {
            What::Command(command) => open = Some((command, piece)),
            What::Moved(moved) => {
                let of_it = open.filter(|(_, it)| it.quoted == piece.quoted);
                let Some((command, from)) = of_it.filter(|_| all.len() < COMPARED_MAX) else {
                    continue;
                };
                let lines = span([from.lines, piece.lines]);
                // dd has counted the same bytes, and more exactly.
                if of_runs.binary_search(&lines.0).is_ok() {
                    continue;
                }
                let Some(it) = of_moved(moved, command, lines) else { continue };
                match all.last_mut().filter(|last| last.lines.0 == lines.0) {
                    // pv prints how far it is, and its end last.
                    Some(last) if moved.mover == Mover::Pv => *last = it,
                    // A second one is of a command that was not sent.
                    Some(_) => open = None,
                    None => all.push(it),
                }
            }
            _ => {}
        }
    }
    all
}

fn of_moved<'a>(moved: &Moved, command: &'a Command, lines: (u32, u32)) -> Option<Written<'a>> {
    let program = match moved.mover {
        Mover::Tar => "tar",
        Mover::Pv => "pv",
        Mover::Restic | Mover::Rsync => return None,
    };
    let target = target_of(command, program)?;
    let by_rate = || Some(moved.bytes / moved.bytes_per_second.filter(|it| *it >= RATE_MIN)?);
    let seconds = moved.seconds.or_else(by_rate).filter(|it| *it > 0.0)?;
    Some(Written { command, target, bytes: moved.bytes, seconds, rounded: TWO_DIGITS, lines })
}

/// What was written to a drive whose medium is known, below the lowest speed of its generation.
/// Compression by the drive makes the rate on the tape still lower.
fn below_lowest(it: &Written<'_>, drives: &Drives<'_>, found: &mut Conclusions) {
    let Some((status, generation)) = drives.medium_before(it.drive(), it.lines) else { return };
    let lowest = range(generation).0 as f64;
    let rate = it.rate();
    let ratio = drives.ratio(it.drive(), it.lines).filter(|ratio| *ratio > 1.0);
    let by_itself = rate * it.rounded < lowest;
    // What the drive has made of the data counts where they came fast enough without it.
    let ratio = ratio.filter(|_| !by_itself).unwrap_or(1.0);
    let on_tape = rate / ratio;
    let is_buffered = it.bytes / ratio <= BUFFER_BYTES;
    if on_tape * it.rounded >= lowest || is_buffered || asks_for_tapes(it.command) {
        return;
    }
    let shown = if ratio > 1.0 {
        format!("{} are {} on the tape, which", format::rate(rate), format::rate(on_tape))
    } else {
        format::rate(rate)
    };
    let what = format!(
        "{shown} is less than the lowest speed of {}: the tape in {} stops and starts",
        generation.name, it.target
    );
    let mut why = format!(
        "{} in {}; a drive of that generation cannot write slower than {} without stops",
        format::size(it.bytes as u64),
        format::duration(it.seconds),
        format::rate(lowest)
    );
    let mut caveats = vec![source(generation)];
    if ratio > 1.0 {
        why += &format!("; it compressed {ratio:.2} : 1");
        caveats.push("the ratio is that of all data of the medium, not of these alone".to_owned());
    }
    if it.rounded > 1.0 {
        let most = format::rate(rate * it.rounded);
        caveats.push(format!("the rate was rounded: it is {most} at most"));
    }
    caveats.push("a drive that is newer than its medium may go lower".to_owned());
    let mut finding = Finding::new(&rules::BELOW_LOWEST, Certainty::Inferred, what)
        .because(why)
        .with_number("rate", rate, Unit::BytesPerSecond)
        .with_number("lowest speed", lowest, Unit::BytesPerSecond);
    if ratio > 1.0 {
        finding = finding.with_number("rate on the tape", on_tape, Unit::BytesPerSecond);
    }
    finding.caveat = Some(caveats.join("; "));
    found.add(span([status.lines, it.lines]), finding);
}

/// Data at the highest speed of the medium, with the drive's compression off: nothing in front of
/// the tape is the limit.
fn at_highest(it: &Written<'_>, drives: &Drives<'_>, found: &mut Conclusions) {
    if drives.compression(it.drive(), it.lines) != Some(Switch::Off) {
        return;
    }
    let Some((status, generation)) = drives.medium_before(it.drive(), it.lines) else { return };
    let highest = range(generation).1 as f64;
    let share = it.rate() / highest;
    // A rate above it is that of a newer drive, or of another medium.
    if !(NEAR..=1.0 / NEAR).contains(&share) {
        return;
    }
    let what = format!("the tape in {} is the limit", it.target);
    let why = format!(
        "{} of {}, the highest speed of {}, and the drive's compression is off",
        format::rate(it.rate()),
        format::rate(highest),
        generation.name
    );
    let finding = Finding::new(&rules::AT_HIGHEST, Certainty::Inferred, what)
        .because(why)
        .with_number("share of the highest speed", share, Unit::Share);
    found.add(span([status.lines, it.lines]), finding);
}
