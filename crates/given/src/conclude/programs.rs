//! Programs that keep a processor busy, where each program of a pipeline was timed.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::Conclusions;
use crate::piece::{Piece, ProgramTimed, What};
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
const WITH_THREADS: [(&str, &str); 6] = [
    ("gzip", "pigz"),
    ("bzip2", "lbzip2"),
    ("xz", "xz -T0"),
    ("zstd", "zstd -T0"),
    ("lzop", "zstd -T0"),
    ("openssl", "a cipher that the processor has instructions for (aes)"),
];

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let mut said = 0;
    for piece in pieces {
        let What::ProgramTimed(program) = &piece.what else { continue };
        if let Some(finding) = busy(program).filter(|_| said < SAID_MAX) {
            said += 1;
            found.add(piece.lines, finding);
        }
    }
}

fn busy(program: &ProgramTimed) -> Option<Finding> {
    let timed = program.timed;
    let processor = timed.user? + timed.system?;
    let share = processor / timed.elapsed;
    if timed.elapsed < LONG_SECONDS || share < BUSY {
        return None;
    }
    let name = program.line.split(' ').next()?.rsplit('/').next()?;
    let what = if share <= ONE {
        format!("{name} keeps a processor busy")
    } else {
        format!("{name} keeps {share:.1} processors busy")
    };
    let why = format!(
        "{} of processor time in {}",
        format::duration(processor),
        format::duration(timed.elapsed)
    );
    let mut finding = Finding::new(&rules::PROGRAM_BUSY, Certainty::Measured, what)
        .because(why)
        .with_number("processors in use", share, Unit::Ratio);
    finding.caveat = Some("how many processors there are is not in the text".to_owned());
    let other = WITH_THREADS.iter().find(|(it, _)| *it == name && share <= ONE);
    if let Some((_, other)) = other {
        finding = finding.with_action(format!("use {other} in its place"));
    }
    Some(finding)
}
