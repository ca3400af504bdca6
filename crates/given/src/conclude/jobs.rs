//! Jobs of fio: what they offer, and whether a device had all of it.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{COMPARED_MAX, Conclusions, span};
use crate::piece::{Command, Job, Piece, Switch, What};
use crate::rules;

/// A device has all that a job offers from this share of it on.
pub(super) const ALL_OFFERED: f64 = 0.95;

/// A job: of a file, or of the output of fio.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    pub(super) job: Job,
    pub(super) lines: (u32, u32),
    /// What fio measured with it: requests for each second, and their mean latency.
    measured: Vec<(f64, Option<f64>)>,
    /// The machine of the prompt before it.
    pub(super) machine: String,
    /// Others run or may run beside it, so that no number is known to be of it alone.
    is_one_of_several: bool,
}

impl Load {
    /// Engines that have one request in flight, whatever the depth says.
    pub(super) fn has_one_each(&self) -> bool {
        let one = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
        // fio's own on Linux is psync.
        let is_one = self.job.engine.as_deref().is_none_or(|engine| one.contains(&engine));
        is_one || self.is_buffered()
    }

    /// libaio through the page cache: the kernel returns from the call that submits a request when
    /// the request is done.
    fn is_buffered(&self) -> bool {
        self.is_libaio() && self.job.direct == Some(Switch::Off)
    }

    fn is_libaio(&self) -> bool {
        self.job.engine.as_deref() == Some("libaio")
    }

    /// Most requests that it has in flight.
    pub(super) fn offers(&self) -> Option<u64> {
        let depth = if self.has_one_each() { 1 } else { self.job.depth.unwrap_or(1) };
        let is_sure = !self.is_one_of_several && !self.job.is_unsure;
        depth.checked_mul(self.job.jobs?).filter(|_| is_sure)
    }

    /// What gives it twice as many.
    pub(super) fn twice(&self) -> String {
        if self.is_buffered() {
            "direct=1".to_owned()
        } else if self.has_one_each() {
            format!("numjobs={}", self.job.jobs.unwrap_or(1).saturating_mul(2))
        } else {
            format!("iodepth={}", self.job.depth.unwrap_or(1).saturating_mul(2))
        }
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

/// A job whose depth has no effect.
fn buffered(load: &Load, offers: u64, depth: u64) -> Finding {
    let requests = format::counted(offers, "request", "requests");
    let what = format!(
        "the job has about {requests} in flight, not {}: libaio without direct=1",
        offers.saturating_mul(depth)
    );
    let why = "through the page cache, libaio waits for each request before it submits the next";
    Finding::new(&rules::OFFERED, Certainty::Inferred, what)
        .because(why)
        .with_action(format!("{} has {depth} of each process in flight", load.twice()))
        .with_number("offered", offers as f64, Unit::Count)
}

fn offered(load: &Load, offers: u64) -> Finding {
    let depth = load.job.depth.unwrap_or(1);
    if load.is_buffered() && depth > 1 {
        return buffered(load, offers, depth);
    }
    let block = load.job.block_bytes.map(format::binary_size);
    let of = block.map(|block| format!(" of {block}")).unwrap_or_default();
    let latencies: Option<Vec<f64>> =
        load.measured.iter().map(|(rate, latency)| latency.map(|it| rate * it)).collect();
    // Rate times latency is the mean number in flight.
    let in_flight: f64 = latencies.unwrap_or_default().iter().sum();
    let rate: f64 = load.measured.iter().map(|(rate, _)| rate).sum();
    let mut finding = if rate > 0.0 && in_flight >= offers as f64 * ALL_OFFERED {
        let what = format!("the job has all of its {offers} requests{of} in flight");
        let why = format!(
            "{} each second, each for {} in the mean: more of them may bring more, or only wait \
             longer",
            format::count(rate as u64),
            latency(in_flight / rate)
        );
        Finding::new(&rules::OFFERED, Certainty::Inferred, what)
            .because(why)
            .with_number("in flight", in_flight, Unit::Count)
            .with_action(format!("to know which, the same job with {}", load.twice()))
    } else {
        let count = format::counted(offers, "request", "requests");
        let what = format!("the job has {count}{of} in flight at most");
        let processes = format::counted(load.job.jobs.unwrap_or(1), "process", "processes");
        let why = if load.has_one_each() && depth > 1 {
            let engine = load.job.engine.as_deref().unwrap_or("fio's own engine, psync,");
            format!("{processes}, and {engine} has one each, whatever iodepth says")
        } else {
            format!("{processes} with iodepth {depth}")
        };
        Finding::new(&rules::OFFERED, Certainty::Told, what).because(why)
    };
    if load.is_libaio() && load.job.direct.is_none() && depth > 1 {
        let text = "so with direct=1: without it, libaio has about one request in flight";
        finding.caveat = Some(text.to_owned());
    }
    finding.with_number("offered", offers as f64, Unit::Count)
}

fn latency(seconds: f64) -> String {
    let is_short = seconds < 0.01;
    if is_short { format!("{:.2} ms", seconds * 1e3) } else { format::duration(seconds) }
}

/// All jobs of a text.
pub(super) fn loads(pieces: &[Piece]) -> Vec<Load> {
    let mut loads = of_files(pieces);
    let mut of_outputs = of_outputs(pieces);
    for load in of_outputs.iter_mut().filter(|load| load.job.direct.is_none()) {
        // The file of its job may be in the text.
        load.job.direct = direct_of(&load.job, &loads);
    }
    loads.append(&mut of_outputs);
    loads.sort_by_key(|load| load.lines);
    let mut machines = pieces.iter().filter_map(|piece| match &piece.what {
        What::Command(command) => Some((piece.lines.0, &command.machine)),
        _ => None,
    });
    let (mut machine, mut next) = (String::new(), machines.next());
    for load in &mut loads {
        while let Some((_, name)) = next.filter(|(line, _)| *line < load.lines.0) {
            machine.clone_from(name);
            next = machines.next();
        }
        load.machine.clone_from(&machine);
    }
    loads.truncate(COMPARED_MAX);
    loads
}

/// As all jobs of files have it that are like this one.
fn direct_of(job: &Job, files: &[Load]) -> Option<Switch> {
    let key = |it: &Job| (it.block_bytes, it.engine.clone(), it.depth);
    let mut like = files.iter().filter(|it| key(&it.job) == key(job)).map(|it| it.job.direct);
    let first = like.next()??;
    like.all(|it| it == Some(first)).then_some(first)
}

/// What a command line of fio says. Where it names a file of jobs, that may say more.
fn direct_of_command(command: &Command) -> Option<Switch> {
    let [stage] = &command.stages[..] else { return None };
    let mut words = stage.split_whitespace();
    (words.next()?.rsplit('/').next()? == "fio").then_some(())?;
    let mut all_shown = true;
    for word in words {
        match word {
            "--direct=1" | "--buffered=0" => return Some(Switch::On),
            "--direct=0" | "--buffered=1" => return Some(Switch::Off),
            word => all_shown &= word.starts_with("--"),
        }
    }
    all_shown.then_some(Switch::Off)
}

/// Those of files: each section has the values of `[global]`, and its own. Sections run one beside
/// the other, or not.
fn of_files(pieces: &[Piece]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    let (mut global, mut of_file, mut is_in_global) = (Load::default(), 0, false);
    let mut is_open = false;
    for piece in pieces {
        match &piece.what {
            What::Section { is_global } => {
                if !is_open || *is_global {
                    (global, of_file) = (Load::default(), loads.len());
                }
                is_open = true;
                is_in_global = *is_global;
                if !is_global {
                    let jobs = global.job.jobs.or(Some(1));
                    let job = Job { jobs, ..global.job.clone() };
                    let of_global = (global.lines.0 > 0).then_some(global.lines);
                    let lines = span(of_global.into_iter().chain([piece.lines]));
                    let is_one_of_several = loads.len() > of_file;
                    loads.push(Load { job, lines, is_one_of_several, ..Load::default() });
                    if is_one_of_several {
                        loads[of_file].is_one_of_several = true;
                    }
                }
            }
            What::JobValue(value) if is_open => {
                let load = if is_in_global { Some(&mut global) } else { loads.last_mut() };
                let Some(load) = load else { continue };
                load.job = with_value(std::mem::take(&mut load.job), value);
                let lines = (load.lines.0 > 0).then_some(load.lines);
                load.lines = span(lines.into_iter().chain([piece.lines]));
            }
            _ => is_open = false,
        }
    }
    loads.retain(|load| load.job.block_bytes.is_some() || load.job.depth.is_some());
    for load in &mut loads {
        // All of its values are there, and fio's own is 0.
        load.job.direct = load.job.direct.or(Some(Switch::Off));
    }
    loads
}

fn with_value(job: Job, value: &Job) -> Job {
    Job {
        pattern: value.pattern.clone().or(job.pattern),
        block_bytes: value.block_bytes.or(job.block_bytes),
        engine: value.engine.clone().or(job.engine),
        depth: value.depth.or(job.depth),
        jobs: value.jobs.or(job.jobs),
        direct: value.direct.or(job.direct),
        is_unsure: job.is_unsure || value.is_unsure,
    }
}

/// Those of outputs of fio: first all jobs, then how many processes they have together, then what
/// was measured.
fn of_outputs(pieces: &[Piece]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    // Jobs of the output that is being read, and whether their results have begun.
    let (mut first, mut has_results, mut is_open) = (0, true, false);
    let mut direct = None;
    for piece in pieces {
        match &piece.what {
            What::Job(job) => {
                is_open = true;
                if has_results {
                    (first, has_results) = (loads.len(), false);
                }
                let job = Job { direct: job.direct.or(direct), ..job.clone() };
                loads.push(Load { job, lines: piece.lines, ..Load::default() });
                if loads.len() > first + 1 {
                    loads[first..].iter_mut().for_each(|load| load.is_one_of_several = true);
                }
            }
            What::Processes(count) => {
                if let Some(load) = loads.last_mut() {
                    load.job.jobs = Some(*count);
                }
            }
            What::Direction(rate) => {
                has_results = true;
                if let Some(load) = loads.last_mut().filter(|_| is_open) {
                    load.measured.push((rate.per_second, None));
                    load.lines.1 = piece.lines.1;
                }
            }
            What::MeanLatency(seconds) => {
                let rate =
                    loads.last_mut().filter(|_| is_open).and_then(|load| load.measured.last_mut());
                if let Some((_, latency)) = rate {
                    *latency = Some(*seconds);
                }
            }
            // Its results are not those of a job before it.
            What::Command(command) => {
                (has_results, is_open, direct) = (true, false, direct_of_command(command));
            }
            _ => {}
        }
    }
    loads
}
