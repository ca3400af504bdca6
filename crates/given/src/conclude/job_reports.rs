//! Job reports of Bacula and Bareos: what a job moved, how it ended, and how fast a spool went to
//! the tape.

use base::finding::{Certainty, Finding, Severity, Unit};
use base::format;

use super::{Conclusions, span};
use crate::piece::{Director, JobReport, Outcome, Piece, What};
use crate::rules;

/// Most reports: a mail may have those of a month.
const SAID_MAX: usize = 20;
/// A shorter job, or a smaller one, has no rate that means anything.
const SECONDS_MIN: f64 = 10.0;
const BYTES_MIN: u64 = 100_000_000;
/// The first version of Bareos whose file daemon compresses in several threads.
const BAREOS_WITH_WORKERS: u32 = 23;

/// One job.
#[derive(Clone, Copy, Default)]
struct Report {
    director: Option<(Director, u32)>,
    has_number: bool,
    elapsed: Option<f64>,
    client_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    /// The share that the client's compression saves.
    saved: Option<f64>,
    outcome: Option<Outcome>,
    lines: (u32, u32),
}

impl Report {
    /// Whether a line begins another report: it comes once in each, and the last one ends it.
    fn ends_before(&self, line: JobReport) -> bool {
        let has_value = self.elapsed.is_some() || self.client_bytes.is_some();
        let begins = match line {
            JobReport::Director { .. } => true,
            JobReport::Job => self.has_number || has_value,
            JobReport::Elapsed(_) => self.elapsed.is_some(),
            _ => false,
        };
        begins || self.outcome.is_some()
    }

    fn take(&mut self, line: JobReport) {
        match line {
            JobReport::Director { director, version } => self.director = Some((director, version)),
            JobReport::Job => self.has_number = true,
            JobReport::Elapsed(seconds) => self.elapsed = Some(seconds),
            // Another report has lost its beginning.
            JobReport::ClientBytes(_) if self.client_bytes.is_some() => self.elapsed = None,
            JobReport::ClientBytes(bytes) => self.client_bytes = Some(bytes),
            JobReport::StoredBytes(bytes) => self.stored_bytes = Some(bytes),
            JobReport::Compressed(share) => self.saved = Some(share),
            JobReport::Ended(outcome) => self.outcome = Some(outcome),
            JobReport::Rate(_) | JobReport::Uncompressed | JobReport::Despooled { .. } => {}
        }
    }
}

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    despooled(pieces, found);
    let mut reports: Vec<Report> = Vec::new();
    for piece in pieces {
        let What::JobReport(line) = piece.what else { continue };
        if matches!(line, JobReport::Despooled { .. }) {
            continue;
        }
        if reports.last().is_none_or(|last| last.ends_before(line)) {
            if reports.len() == SAID_MAX {
                break;
            }
            reports.push(Report { lines: piece.lines, ..Report::default() });
        }
        let Some(report) = reports.last_mut() else { continue };
        report.take(line);
        report.lines = span([report.lines, piece.lines]);
    }
    for report in reports {
        match report.outcome {
            Some(Outcome::Failed) => ended(&report, "the job failed", found),
            Some(Outcome::Canceled) => ended(&report, "the job was canceled", found),
            Some(Outcome::BackedUp | Outcome::Other) | None => job(&report, found),
        }
    }
}

fn ended(report: &Report, what: &str, found: &mut Conclusions) {
    let finding = Finding::new(&rules::JOB_FAILED, Certainty::Told, what)
        .because("its line Termination says so; its rate says nothing")
        .severe(Severity::Warning);
    found.add(report.lines, finding);
}

fn job(report: &Report, found: &mut Conclusions) {
    moved(report, found);
    let Some(share) = report.saved.filter(|_| report.elapsed.is_some()) else { return };
    let what = format!("the client compresses: {:.0} % smaller", share * 100.0);
    let mut finding = Finding::new(&rules::CLIENT_COMPRESSES, Certainty::Told, what).with_number(
        "share saved",
        share,
        Unit::Share,
    );
    finding.why = match report.director {
        Some((Director::Bareos, BAREOS_WITH_WORKERS..)) => {
            Some("Maximum Workers Per Job of the file daemon says in how many threads".to_owned())
        }
        Some(_) => Some("each job does so in one thread of the file daemon".to_owned()),
        None => None,
    };
    found.add(report.lines, finding);
    let command = "on the client, during the job: top -b -H -n 3".to_owned();
    found.lacks("whether compression by the client is the limit", command);
}

fn moved(report: &Report, found: &mut Conclusions) {
    let Some(seconds) = report.elapsed.filter(|it| *it >= SECONDS_MIN) else { return };
    let Some(bytes) = report.client_bytes.filter(|bytes| *bytes >= BYTES_MIN) else { return };
    let rate = bytes as f64 / seconds;
    let mut what = format!("the job moved {}", format::rate(rate));
    // The file daemon counts what it sends.
    let saved = report.saved.filter(|share| *share > 0.0 && *share < 1.0);
    let read = saved.map(|share| rate / (1.0 - share));
    if let Some(read) = read {
        what += &format!(" after compression, and read about {}", format::rate(read));
    }
    let mut why = format!("{} in {}", format::size(bytes), format::duration(seconds));
    if let Some(stored) = report.stored_bytes {
        why += &format!(", of which the storage daemon wrote {}", format::size(stored));
    }
    let mut finding = Finding::new(&rules::MOVED, Certainty::Told, what).because(why).with_number(
        "rate",
        rate,
        Unit::BytesPerSecond,
    );
    if let Some(read) = read {
        finding = finding.with_number("rate read", read, Unit::BytesPerSecond);
    }
    finding.caveat = Some(
        "waiting for a volume and writing a spool to tape count as time of the job".to_owned(),
    );
    found.add(report.lines, finding);
}

/// Jobs whose spools are told apart at a time.
const JOBS_AT_ONCE: usize = 64;

/// The spools of a job: a job may write many, one after the other.
struct Spools {
    job: Option<u64>,
    count: u64,
    bytes: f64,
    seconds: f64,
    lines: (u32, u32),
}

fn despooled(pieces: &[Piece], found: &mut Conclusions) {
    let mut all: Vec<Spools> = Vec::new();
    for piece in pieces {
        let What::JobReport(JobReport::Despooled { job, seconds, bytes_per_second }) = piece.what
        else {
            continue;
        };
        let bytes = seconds * bytes_per_second;
        // Spools of a job come one after the other.
        match all.iter_mut().rev().take(JOBS_AT_ONCE).find(|it| it.job == job) {
            Some(spools) => {
                spools.count += 1;
                spools.bytes += bytes;
                spools.seconds += seconds;
                spools.lines = span([spools.lines, piece.lines]);
            }
            None => all.push(Spools { job, count: 1, bytes, seconds, lines: piece.lines }),
        }
    }
    let is_long = |it: &&Spools| it.seconds >= SECONDS_MIN && it.bytes >= BYTES_MIN as f64;
    for it in all.iter().filter(is_long).take(SAID_MAX) {
        let rate = it.bytes / it.seconds;
        let what = format!("the spool went to the tape at {}", format::rate(rate));
        let spools = format::counted(it.count, "spool", "spools");
        let why = format!(
            "{spools}, {} in {}: the tape's own rate, without the wait for the client",
            format::size(it.bytes as u64),
            format::duration(it.seconds)
        );
        let finding = Finding::new(&rules::DESPOOLED, Certainty::Told, what)
            .because(why)
            .with_number("rate", rate, Unit::BytesPerSecond);
        found.add(it.lines, finding);
    }
}
