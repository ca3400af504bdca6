//! Programs that keep a processor busy, where each program of a pipeline was timed, or a command of
//! one program.

use std::collections::BTreeSet;

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{Conclusions, Run, runs};
use crate::piece::{Piece, What};
use crate::rules;

/// Share of the time from which on a program is bound by the processor.
const BUSY: f64 = 0.9;
/// Up to this share it had one processor.
const ONE: f64 = 1.1;
/// A shorter time says little.
const LONG_SECONDS: f64 = 5.0;
/// Most programs that are named.
const SAID_MAX: usize = 20;
/// Compressors with one thread, and what does the same with more.
const WITH_THREADS: [(&str, &str); 4] =
    [("gzip", "pigz"), ("bzip2", "lbzip2"), ("xz", "xz -T0"), ("zstd", "zstd -T0")];

/// Seconds that a program took, and its processor time in them.
#[derive(Clone, Copy)]
struct Times {
    elapsed: f64,
    processor: f64,
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let mut all: Vec<((u32, u32), Finding)> = Vec::new();
    let mut of_zsh: BTreeSet<u32> = BTreeSet::new();
    for piece in pieces {
        let What::ProgramTimed(program) = &piece.what else { continue };
        of_zsh.insert(piece.lines.1);
        let timed = program.timed;
        let processor = timed.user.zip(timed.system).map(|(user, system)| user + system);
        let times = processor.map(|processor| Times { elapsed: timed.elapsed, processor });
        let finding = times.and_then(|times| busy(&program.line, times));
        all.extend(finding.map(|it| (piece.lines, it)));
    }
    let runs = runs(pieces);
    for run in runs.iter().filter(|run| !of_zsh.contains(&run.lines.1)) {
        all.extend(of_run(run).map(|it| (run.lines, it)));
    }
    for (lines, finding) in all.into_iter().take(SAID_MAX) {
        found.add(lines, finding);
    }
}

/// A command of one program: in a pipeline the times are those of all.
fn of_run(run: &Run<'_>) -> Option<Finding> {
    let [stage] = &run.command.stages[..] else { return None };
    let times = Times { elapsed: run.seconds, processor: run.processor_seconds? };
    let mut finding = busy(stage, times)?;
    let caveat = finding.caveat.unwrap_or_default();
    finding.caveat = Some(format!("with the programs that it starts; {caveat}"));
    Some(finding)
}

fn busy(line: &str, times: Times) -> Option<Finding> {
    let Times { elapsed, processor } = times;
    let share = processor / elapsed;
    if elapsed < LONG_SECONDS || share < BUSY {
        return None;
    }
    let is_front = |word: &&str| matches!(*word, "sudo" | "nice" | "ionice" | "nohup");
    let mut words = line.split(' ').skip_while(is_front);
    let name = words.next().filter(|word| !word.starts_with('-'))?.rsplit('/').next()?;
    let what = if share <= ONE {
        format!("{name} keeps a processor busy")
    } else {
        format!("{name} keeps {share:.1} processors busy")
    };
    let why = format!(
        "{} of processor time in {}",
        format::duration(processor),
        format::duration(elapsed)
    );
    let mut finding = Finding::new(&rules::PROGRAM_BUSY, Certainty::Measured, what)
        .because(why)
        .with_number("processors in use", share, Unit::Ratio);
    finding.caveat = Some("how many processors there are is not in the text".to_owned());
    let is_it = |(it, _): &&(&str, &str)| *it == name && share <= ONE && gains_by_threads(line);
    let other = WITH_THREADS.iter().find(is_it);
    if let Some((_, other)) = other {
        finding = finding.with_action(format!("use {other} in its place"));
    }
    Some(finding)
}

/// Whether a compressor makes data smaller, and is not told how many threads it has: with more of
/// them nothing is unpacked faster.
fn gains_by_threads(line: &str) -> bool {
    let has_threads = |word: &str| word.starts_with("-T") || word.starts_with("--th");
    let unpacks = |word: &str| {
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let long = ["--decompress", "--uncompress", "--test"].contains(&word);
        long || letters.is_some_and(|it| it.contains(['d', 't', 'l']))
    };
    !line.split(' ').any(|word| has_threads(word) || unpacks(word))
}
