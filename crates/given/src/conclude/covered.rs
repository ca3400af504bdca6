//! What programs that store only what is new went through, beside what was new.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{Conclusions, span};
use crate::piece::{CoveredLine, Moved, Mover, Piece, What};
use crate::rules;

/// Most jobs that are told.
const SAID_MAX: usize = 20;
/// A shorter job says little.
const SECONDS_MIN: f64 = 10.0;
/// From this share on nearly all was new.
const NEARLY_ALL: f64 = 0.9;

/// The lines of one job so far.
#[derive(Default)]
struct Job {
    quoted: u32,
    files: Option<u64>,
    bytes: Option<f64>,
    changed_bytes: Option<f64>,
    seconds: Option<f64>,
    lines: Option<(u32, u32)>,
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    let mut job = Job::default();
    let mut said = 0;
    for piece in pieces {
        if piece.quoted != job.quoted {
            job = Job { quoted: piece.quoted, ..Job::default() };
        }
        let told = match &piece.what {
            What::Covered(line) => job.take(*line, piece.lines),
            What::Moved(moved) if moved.mover == Mover::Rsync => {
                std::mem::take(&mut job).sent(moved, piece.lines)
            }
            // Another command is another job.
            What::Command(_) => {
                job = Job { quoted: piece.quoted, ..Job::default() };
                None
            }
            _ => None,
        };
        let Some((lines, finding)) = told else { continue };
        said += 1;
        if said <= SAID_MAX {
            found.add(lines, finding);
        }
    }
}

type Told = ((u32, u32), Finding);

impl Job {
    /// Takes a line; what the job comes to where that is its last one.
    fn take(&mut self, line: CoveredLine, lines: (u32, u32)) -> Option<Told> {
        let own = span(self.lines.into_iter().chain([lines]));
        match line {
            CoveredLine::Files(files) => {
                // The first line of rsync; borg has its time in front.
                if self.seconds.is_none() || self.files.is_some() {
                    *self = Job { quoted: self.quoted, ..Job::default() };
                }
                self.files = Some(files);
                self.lines = Some(span(self.lines.into_iter().chain([lines])));
                return None;
            }
            CoveredLine::Bytes(bytes) => self.bytes = Some(bytes),
            CoveredLine::ChangedBytes(bytes) => self.changed_bytes = Some(bytes),
            CoveredLine::Seconds(seconds) => {
                *self = Job { quoted: self.quoted, seconds: Some(seconds), ..Job::default() };
                self.lines = Some(lines);
                return None;
            }
            CoveredLine::Archive { bytes, compressed_bytes, new_bytes } => {
                let job = std::mem::replace(self, Job { quoted: self.quoted, ..Job::default() });
                // Both are compressed.
                let share = new_bytes / compressed_bytes.max(1.0);
                let new = format!("of what it stores of that {} was new", format::percent(share));
                return job.told(&format!("borg went through {}", size(bytes)), share, &new, own);
            }
        }
        self.lines = Some(own);
        None
    }

    /// The last lines of rsync, whose rate is of what went over the wire.
    fn sent(self, moved: &Moved, lines: (u32, u32)) -> Option<Told> {
        let rate = moved.bytes_per_second.filter(|rate| *rate > 0.0)?;
        let (bytes, own) = (self.bytes?, span(self.lines.into_iter().chain([lines])));
        let changed = self.changed_bytes?;
        let seconds = Some(moved.bytes / rate);
        let new = format!("of that {} are in files that were new or had changed", size(changed));
        let what = format!("rsync went through {}", size(bytes));
        Job { seconds, ..self }.told(&what, changed / bytes.max(1.0), &new, own)
    }

    fn told(self, what: &str, share: f64, new: &str, lines: (u32, u32)) -> Option<Told> {
        let seconds = self.seconds.filter(|seconds| *seconds >= SECONDS_MIN)?;
        if share >= NEARLY_ALL {
            return None;
        }
        let files = match self.files {
            Some(files) => format!(" in {}", format::counted(files, "file", "files")),
            None => String::new(),
        };
        let what = format!("{what}{files} in {}; {new}", format::duration(seconds));
        let finding = Finding::new(&rules::COVERED, Certainty::Told, what)
            .because(
                "files that have not changed are usually not read (rsync -c reads them): no rate \
                 of the disk follows from this",
            )
            .with_number("seconds", seconds, Unit::Seconds)
            .with_number("new share", share, Unit::Share);
        Some((lines, finding))
    }
}

fn size(bytes: f64) -> String {
    format::size(bytes as u64)
}
