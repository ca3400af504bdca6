//! What the pieces of a text mean together.
//!
//! Each module looks at one kind of evidence, in the order of the text. A job and a table belong
//! together only where their numbers agree: texts of several days are often in one mail.

mod blocks;
mod buffers;
mod calls;
mod changes;
mod covered;
mod devices;
mod job_reports;
mod jobs;
mod layers;
mod programs;
mod reports;
mod summaries;
mod tape_rates;
mod tape_tests;
mod tapes;
mod targets;

use std::borrow::Cow;

use base::finding::Finding;

use crate::piece::{Command, Piece, ProcessorTime, ProgramTimed, Timed, What};

/// Something that the text shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    pub finding: Finding,
    /// First and last line that it rests on.
    pub lines: (u32, u32),
}

/// Something that would decide more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// What it would decide.
    pub what: String,
    /// The command whose output to send.
    pub command: String,
}

/// What a text shows, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusions {
    pub conclusions: Vec<Conclusion>,
    pub missing: Vec<Missing>,
}

/// Draws all conclusions.
pub fn conclude(pieces: &[Piece]) -> Conclusions {
    let pieces = unfolded(pieces);
    let pieces = &with_processor_times(&pieces)[..];
    let mut found = Conclusions::default();
    blocks::conclude(pieces, &mut found);
    buffers::conclude(pieces, &mut found);
    let with_device = devices::conclude(pieces, &mut found);
    jobs::conclude(pieces, &with_device, &mut found);
    calls::conclude(pieces, &mut found);
    summaries::conclude(pieces, &mut found);
    let drives = tapes::Drives::of(pieces);
    tape_rates::conclude(pieces, &drives, &mut found);
    tape_tests::conclude(pieces, &drives, &mut found);
    tapes::conclude(&drives, &mut found);
    programs::conclude(pieces, &mut found);
    reports::conclude(pieces, &mut found);
    job_reports::conclude(pieces, &mut found);
    covered::conclude(pieces, &mut found);
    layers::conclude(pieces, &mut found);
    found.missing.sort();
    found.missing.dedup();
    found
}

/// The pieces of documents, each as if it were text. A document is a table of its own.
fn unfolded(pieces: &[Piece]) -> Cow<'_, [Piece]> {
    let is_document = |piece: &Piece| matches!(piece.what, What::Document { .. });
    if !pieces.iter().any(is_document) {
        return Cow::Borrowed(pieces);
    }
    let mut all = Vec::new();
    for piece in pieces {
        let What::Document { pieces: inner, .. } = &piece.what else {
            all.push(piece.clone());
            continue;
        };
        all.extend(inner.iter().enumerate().map(|(at, what)| Piece {
            after_text: at == 0,
            what: what.clone(),
            ..*piece
        }));
    }
    Cow::Owned(all)
}

/// The pieces with processor times in those of elapsed times: bash prints them below, `time -v`
/// above.
fn with_processor_times(pieces: &[Piece]) -> Cow<'_, [Piece]> {
    let of = |piece: &Piece| match piece.what {
        What::ProcessorTime(time) => Some(time),
        _ => None,
    };
    if !pieces.iter().any(|piece| of(piece).is_some()) {
        return Cow::Borrowed(pieces);
    }
    let mut all: Vec<Piece> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let mut piece = piece.clone();
        if let What::Timed(timed) = &mut piece.what {
            let is_near = |it: &&Piece| it.quoted == piece.quoted && of(it).is_some();
            let is_bare = |it: &&Piece| is_near(it) && !it.after_text;
            let below = pieces[at + 1..].iter().take(2).take_while(is_bare);
            let above = pieces[..at].iter().rev().take(2).take_while(is_near);
            let mut near: Vec<&Piece> = below.collect();
            if near.is_empty() && !piece.after_text {
                near = above.collect();
                piece.after_text |= near.iter().any(|it| it.after_text);
            }
            let times: Vec<ProcessorTime> = near.iter().filter_map(|it| of(it)).collect();
            take_times(timed, &times);
            piece.lines = span(near.iter().map(|it| it.lines).chain([piece.lines]));
        }
        if of(&piece).is_none() {
            all.push(piece);
        }
    }
    Cow::Owned(all)
}

fn take_times(timed: &mut Timed, times: &[ProcessorTime]) {
    for time in times {
        match *time {
            ProcessorTime::User(seconds) => timed.user = timed.user.or(Some(seconds)),
            ProcessorTime::System(seconds) => timed.system = timed.system.or(Some(seconds)),
        }
    }
}

impl Conclusions {
    fn add(&mut self, lines: (u32, u32), finding: Finding) {
        self.conclusions.push(Conclusion { finding, lines });
    }

    fn lacks(&mut self, what: &str, command: String) {
        self.missing.push(Missing { what: what.to_owned(), command });
    }
}

/// Whether both can be of one machine: a prompt without a name may be of any.
fn is_one_machine(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || one == other
}

/// The lines of all of these.
fn span(lines: impl IntoIterator<Item = (u32, u32)>) -> (u32, u32) {
    let all = lines.into_iter().reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    all.unwrap_or_default()
}

/// A command that was timed, or whose `dd` said how long it took.
#[derive(Clone, Copy)]
struct Run<'a> {
    command: &'a Command,
    seconds: f64,
    bytes: Option<u64>,
    /// Processor time, if it is known.
    processor_seconds: Option<f64>,
    /// Of which drive it is, as it was set: limits were printed, or a medium or a setting was
    /// changed so many times before.
    drive: usize,
    lines: (u32, u32),
    /// There are two results, and one command.
    is_doubtful: bool,
}

/// Most runs of commands, and most tables, that are compared with each other.
const COMPARED_MAX: usize = 2000;

/// The runs of a text. A result is that of the command before it, if both were quoted equally
/// often; a second result of the same size is that of a command that was not sent.
fn runs(pieces: &[Piece]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut open: Option<(&Command, &Piece)> = None;
    let (mut drive, mut has_run) = (0, false);
    for piece in pieces {
        drive += usize::from(changes::is_change(&piece.what));
        match &piece.what {
            What::Command(command) => open = Some((command, piece)),
            What::BlockLimits { .. } => {
                // Two programs may tell of the same drive.
                drive += usize::from(std::mem::take(&mut has_run));
            }
            What::Copied(_) | What::Timed(_) | What::ProgramTimed(_) => {
                let of_command = open.filter(|(_, it)| it.quoted == piece.quoted);
                let Some((command, from)) = of_command else { continue };
                let result = result_of(command, drive, span([from.lines, piece.lines]), piece);
                has_run = true;
                match runs.last_mut().filter(|last| last.lines.0 == result.lines.0) {
                    None => runs.push(result),
                    Some(last) => last.take(result, piece.after_text),
                }
            }
            _ => {}
        }
    }
    runs.retain(|run| run.seconds > 0.0 && !run.is_doubtful);
    runs.truncate(COMPARED_MAX);
    runs
}

fn result_of<'a>(command: &'a Command, drive: usize, lines: (u32, u32), piece: &Piece) -> Run<'a> {
    let (seconds, bytes, processor_seconds) = match &piece.what {
        What::Copied(copied) => (copied.seconds, Some(copied.bytes), None),
        What::Timed(timed) | What::ProgramTimed(ProgramTimed { timed, .. }) => {
            (timed.elapsed, None, timed.user.zip(timed.system).map(|(a, b)| a + b))
        }
        _ => (0.0, None, None),
    };
    Run { command, seconds, bytes, processor_seconds, drive, lines, is_doubtful: false }
}

impl<'a> Run<'a> {
    /// Another result behind the same command, with other text in between or not.
    fn take(&mut self, other: Run<'a>, is_apart: bool) {
        match (self.bytes, other.bytes) {
            // `time dd`: the times of dd are those of the transfer.
            (None, Some(_)) => *self = Run { processor_seconds: self.processor_seconds, ..other },
            (Some(_), None) => {}
            // dd prints how far it is, and its end last.
            (Some(before), Some(after)) if after > before && !is_apart => *self = other,
            _ => self.is_doubtful = true,
        }
    }
}

#[cfg(test)]
mod tests;
