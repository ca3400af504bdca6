//! Jobs of fio: what they offer, and whether a device had all of it.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{COMPARED_MAX, Conclusions, span};
use crate::piece::{Job, Piece, What};
use crate::rules;

/// A device has all that a job offers from this share of it on.
const ALL_OFFERED: f64 = 0.95;

/// A job, made whole by the lines that follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    pub(super) job: Job,
    pub(super) lines: (u32, u32),
    /// What fio measured with it: requests for each second, and their mean latency.
    measured: Vec<(f64, Option<f64>)>,
}

impl Load {
    /// Engines that have one request in flight, whatever the depth says.
    fn has_one_each(&self) -> bool {
        let one = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
        self.job.engine.as_deref().is_some_and(|engine| one.contains(&engine))
    }

    /// Most requests that it has in flight.
    pub(super) fn offers(&self) -> Option<u64> {
        let depth = if self.has_one_each() { 1 } else { self.job.depth? };
        depth.checked_mul(self.job.jobs?)
    }
}

/// Of a job whose device was seen, too, more is known than by itself.
pub(super) fn conclude(pieces: &[Piece], with_device: &[(u32, u32)], found: &mut Conclusions) {
    for load in loads(pieces) {
        if let Some(offers) = load.offers().filter(|_| !with_device.contains(&load.lines)) {
            found.add(load.lines, offered(&load, offers));
        }
    }
}

fn offered(load: &Load, offers: u64) -> Finding {
    let block = load.job.block_bytes.map(format::binary_size);
    let of = block.map(|block| format!(" of {block}")).unwrap_or_default();
    let latencies: Option<Vec<f64>> =
        load.measured.iter().map(|(rate, latency)| latency.map(|it| rate * it)).collect();
    // Rate times latency is the mean number in flight.
    let in_flight: f64 = latencies.unwrap_or_default().iter().sum();
    let rate: f64 = load.measured.iter().map(|(rate, _)| rate).sum();
    let finding = if rate > 0.0 && in_flight >= offers as f64 * ALL_OFFERED {
        let what = format!("the job has all of its {offers} requests{of} in flight");
        let why = format!(
            "{} each second, each for {} in the mean: more of them may bring more, or only wait \
             longer",
            format::count(rate as u64),
            latency(in_flight / rate)
        );
        let more = load.job.depth.unwrap_or(1).saturating_mul(2);
        Finding::new(&rules::OFFERED, Certainty::Inferred, what)
            .because(why)
            .with_number("in flight", in_flight, Unit::Count)
            .with_action(format!("to know which, the same job with iodepth={more}"))
    } else {
        let what = format!("the job has {offers} requests{of} in flight at most");
        let depth = load.job.depth.unwrap_or(1);
        let processes = format::counted(load.job.jobs.unwrap_or(1), "process", "processes");
        let why = if load.has_one_each() && depth > 1 {
            let engine = load.job.engine.as_deref().unwrap_or_default();
            format!("{processes}, and {engine} has one each, whatever iodepth says")
        } else {
            format!("{processes} with iodepth {depth}")
        };
        Finding::new(&rules::OFFERED, Certainty::Told, what).because(why)
    };
    finding.with_number("offered", offers as f64, Unit::Count)
}

fn latency(seconds: f64) -> String {
    let is_short = seconds < 0.01;
    if is_short { format!("{:.2} ms", seconds * 1e3) } else { format::duration(seconds) }
}

/// Values of a file of jobs come one by one; the output of fio begins a new job.
pub(super) fn loads(pieces: &[Piece]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    let mut is_open = false;
    for piece in pieces {
        match &piece.what {
            What::Job(job) if job.depth.is_some() && job.block_bytes.is_some() => {
                loads.push(Load { job: job.clone(), lines: piece.lines, ..Load::default() });
                is_open = true;
            }
            What::Job(job) => {
                if !is_open {
                    loads.push(Load::default());
                    is_open = true;
                }
                let Some(load) = loads.last_mut() else { continue };
                let old = std::mem::take(&mut load.job);
                load.job = Job {
                    pattern: job.pattern.clone().or(old.pattern),
                    block_bytes: job.block_bytes.or(old.block_bytes),
                    engine: job.engine.clone().or(old.engine),
                    depth: job.depth.or(old.depth),
                    jobs: job.jobs.or(old.jobs),
                };
                let lines = (load.lines.0 > 0).then_some(load.lines);
                load.lines = span(lines.into_iter().chain([piece.lines]));
            }
            What::Processes(count) => {
                if let Some(load) = loads.last_mut().filter(|load| load.job.jobs.is_none()) {
                    load.job.jobs = Some(*count);
                }
            }
            What::Direction(rate) => {
                if let Some(load) = loads.last_mut() {
                    load.measured.push((rate.per_second, None));
                    load.lines.1 = piece.lines.1;
                }
            }
            What::MeanLatency(seconds) => {
                let rate = loads.last_mut().and_then(|load| load.measured.last_mut());
                if let Some((_, latency)) = rate {
                    *latency = Some(*seconds);
                }
            }
            _ => is_open = false,
        }
    }
    loads.truncate(COMPARED_MAX);
    loads
}
