//! Estimates from a record of `takeup bench tape` the parameters of its drive: parameters of the
//! model of that drive, with intervals, and the names of those that it does not show.
//!
//! Each parameter comes from what shows it alone: the highest speed from the second half of long
//! runs of data that do not compress, in which the drive makes the host wait; commands and the way
//! to the drive from the rates over block sizes of runs in which it does not; the filemark from
//! runs that leave next to nothing in the drive's buffer; that buffer from how much longer the
//! filemark of a long run takes. No record shows what a drive hides from its host (how it stops,
//! which other speeds it has); these parameters keep their values.
//!
//! The unit is the repeat: a single run is never a finding, and shows no parameter. An interval
//! from several steps combines their ends, so that it is rather too wide.
//!
//! The binary reads the files and prints the results.

mod commands;
mod curve;
pub mod disk;
mod estimate;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;

use estimate::{Estimate, by_repeat};
use experiment::record::{Cell, Experiment, RunRecord, word_in};
use statistics::interval::Interval;
use written::{CellRuns, Written, groups};

/// A parameter that the record shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Its name, as [`TapeParameters::rows`] has it; of the speeds it is the highest.
    pub parameter: &'static str,
    /// In the unit that the name ends with.
    pub value: f64,
    /// Where it lies, in 95 of 100 experiments at least.
    pub interval: Interval,
    /// Runs behind it.
    pub runs: usize,
    /// Which runs these are, in words.
    pub from: String,
}

/// Parameters that were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTold {
    /// Their names.
    pub parameters: Vec<&'static str>,
    /// Why, and what would tell them.
    pub why: String,
    /// What is known all the same: the most or the least that it is.
    pub bound: Option<Reach>,
}

/// How far a parameter may reach that no run tells, in the unit of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is this or less.
    AtMost(u64),
    /// It is this or more.
    AtLeast(u64),
}

impl Reach {
    /// What is assumed, or where that is out of reach the bound itself.
    pub fn nearest(self, assumed: u64) -> u64 {
        match self {
            Reach::AtMost(most) => assumed.min(most),
            Reach::AtLeast(least) => assumed.max(least),
        }
    }
}

impl NotTold {
    /// With what is known of it all the same.
    fn within(self, reach: Reach) -> NotTold {
        NotTold { bound: Some(reach), ..self }
    }
}

/// A parameter whose assumed value is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    pub parameter: &'static str,
    /// What it was taken to be.
    pub assumed: u64,
    pub nearest: u64,
}

/// A number that is no parameter of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// The data, as the experiment names them.
    pub data: String,
    /// What was found of them.
    pub value: f64,
    /// Where it lies.
    pub interval: Interval,
    /// Runs behind it.
    pub runs: usize,
}

/// All parameters that a record shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// What the drive calls itself: `IBM ULT3580-TD4`.
    pub drive: String,
    /// The generation of its media, where that is known.
    pub generation: Option<&'static Generation>,
    /// Runs that succeeded.
    pub runs: usize,
    /// Parameters; at least one.
    pub told: Vec<Told>,
    /// The others.
    pub not_told: Vec<NotTold>,
    /// What the drive's compression makes of each kind of data.
    pub ratios: Vec<Beside>,
    /// Rates at which they were read back, bytes per second.
    pub reads: Vec<Beside>,
}

/// Why a record shows no parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// It is of something else.
    #[error("an experiment of the kind {kind:?}; only {wanted}")]
    OtherKind {
        kind: String,
        /// Which experiments measure what.
        wanted: &'static str,
    },
    /// There is no number in it.
    #[error("none of its {runs} runs succeeded")]
    NoNumber { runs: usize },
    /// What was written to is no drive.
    #[error("its runs went to {path}, which is not a tape drive")]
    NoDrive { path: String },
    /// Drives differ, and a mean of two is the model of neither.
    #[error("its runs are of several drives: {names}")]
    SeveralDrives { names: String },
    /// Disks differ, and a mean of two is the model of neither.
    #[error("its runs are of several disks: {names}")]
    SeveralDisks { names: String },
    /// The requests of a job file of the user are not known.
    #[error("its load is your own job file, whose requests are not known")]
    OwnJob,
    /// A drive moves older media at other speeds.
    #[error("its runs are on media of several generations: {names}")]
    SeveralGenerations { names: String },
    /// One run is no finding.
    #[error("each combination in it ran once; a parameter needs repeats")]
    Once,
    /// There are repeats, but none of what would tell anything.
    #[error("it shows no parameter of the {device}: {why}")]
    Nothing {
        /// A drive or a disk.
        device: &'static str,
        /// Why not, parameter by parameter.
        why: String,
    },
}

/// The parameter that is a list.
pub const SPEEDS: &str = "speeds_bytes_per_second";
/// See [`TapeParameters`].
const HOST: &str = "host_bytes_per_second";
const COMMAND: &str = "command_overhead_ns";
const SYNCHRONISE: &str = "synchronise_ns";
const BUFFER: &str = "buffer_bytes";
const BACK_HITCH: &str = "back_hitch_ns";

const NS: f64 = 1e9;
/// An interval with ends further apart than this tells a bound at best.
const TELLING: f64 = 2.0;
/// Cells that come as near to the fastest one are held back by the same thing.
const SAME_SPEED: f64 = 0.95;
/// A rate that lies this near below the lowest speed may be rounding.
const SPEED_TOLERANCE: f64 = 0.98;

/// The parameters that a record shows of its drive.
///
/// # Errors
/// When it is of no drive, or of several, or shows no parameter.
pub fn calibrate(experiment: &Experiment) -> Result<Calibration, CalibrationError> {
    let kind = &experiment.header.kind;
    if kind != "tape" {
        return Err(CalibrationError::OtherKind {
            kind: kind.clone(),
            wanted: "one with tape measures a drive",
        });
    }
    let good: Vec<&RunRecord> =
        experiment.runs.iter().filter(|run| run.bytes_per_second().is_some()).collect();
    if good.is_empty() {
        return Err(CalibrationError::NoNumber { runs: experiment.runs.len() });
    }
    let drive = one_drive(&good)?;
    let generation = one_generation(&good)?;
    let written = groups(&good);
    if written.iter().all(|group| group.repeats() < 2) {
        return Err(CalibrationError::Once);
    }
    let repeated: Vec<CellRuns<'_>> =
        written.into_iter().filter(|group| group.repeats() > 1).collect();
    let mut found = Found::default();
    let limited = held_by_tape(&repeated);
    let speed = found.take(highest_speed(&repeated, &limited));
    let (host, command) = commands::commands(&repeated);
    found.take(host);
    found.take(command);
    let number = |name: &str| good[0].environment.get(name)?.parse::<f64>().ok();
    let speed = speed.map(|told| (told.value, told.interval)).or_else(|| {
        let known: f64 = number("drive native bytes per second")?;
        Some((known, Interval { low: known, high: known }))
    });
    let filemark = found.take(synchronise(&repeated, speed));
    found.take(buffer(&limited, speed, filemark.as_ref()));
    found.take(back_hitch(&repeated, number("drive lowest bytes per second")));
    found.not_told.extend(never_told());
    if found.told.is_empty() {
        let why: Vec<String> = found.not_told.iter().map(|one| one.why.clone()).collect();
        return Err(CalibrationError::Nothing { device: "drive", why: why.join("; ") });
    }
    Ok(Calibration {
        drive,
        generation,
        runs: good.len(),
        told: found.told,
        not_told: found.not_told,
        ratios: ratios(&repeated, speed.map(|(value, _)| value)),
        reads: reads(&good),
    })
}

impl Calibration {
    /// Replaces known values by those that the record shows.
    pub fn apply(&self, drive: &mut TapeParameters) {
        for told in &self.told {
            let value = told.value.round() as u64;
            if told.parameter == SPEEDS {
                drive.fit_highest_speed(value);
            } else {
                drive.fit(told.parameter, value);
            }
        }
        for beyond in self.out_of_reach(drive) {
            drive.assume(beyond.parameter, beyond.nearest);
        }
    }

    /// What a drive is taken to be that these runs leave no room for.
    pub fn out_of_reach(&self, drive: &TapeParameters) -> Vec<Beyond> {
        let rows = drive.rows();
        let one = |not_told: &NotTold| {
            let row = rows.iter().find(|row| row.name == not_told.parameters[0])?;
            let (parameter, assumed) = (row.name, *row.values.first()?);
            let nearest = not_told.bound?.nearest(assumed);
            (nearest != assumed).then_some(Beyond { parameter, assumed, nearest })
        };
        self.not_told.iter().filter_map(one).collect()
    }

    /// What the drive's compression makes of the user's own data, where the experiment had one kind
    /// of these.
    pub fn own_ratio(&self) -> Option<&Beside> {
        let is_made =
            |data: &str| matches!(data, "zeros" | "random") || data.strip_prefix("text:").is_some();
        let mut own = self.ratios.iter().filter(|ratio| !is_made(&ratio.data));
        own.next().filter(|_| own.next().is_none())
    }
}

/// Known and unknown parameters, as they are found.
#[derive(Default)]
struct Found {
    told: Vec<Told>,
    not_told: Vec<NotTold>,
}

/// One parameter, or why there is none.
type Finding = Result<Told, NotTold>;

impl Found {
    fn take(&mut self, finding: Finding) -> Option<Told> {
        match finding {
            Ok(told) => {
                self.told.push(told.clone());
                Some(told)
            }
            Err(not_told) => {
                self.not_told.push(not_told);
                None
            }
        }
    }
}

fn not_told(parameter: &'static str, why: impl Into<String>) -> NotTold {
    NotTold { parameters: vec![parameter], why: why.into(), bound: None }
}

fn one_drive(runs: &[&RunRecord]) -> Result<String, CalibrationError> {
    let mut drives = BTreeSet::new();
    for run in runs {
        let named = |name: &str| run.environment.get(name).cloned();
        let path = named("path").unwrap_or_else(|| "nothing that has a name".to_owned());
        let Some(drive) = named("drive") else { return Err(CalibrationError::NoDrive { path }) };
        drives.insert((drive, path));
    }
    let named: Vec<String> =
        drives.iter().map(|(drive, path)| format!("{drive} at {path}")).collect();
    match drives.into_iter().next() {
        Some((drive, _)) if named.len() == 1 => Ok(drive),
        _ => Err(CalibrationError::SeveralDrives { names: named.join(", ") }),
    }
}

/// The generation of the media; where they do not say, that of the drive.
fn one_generation(runs: &[&RunRecord]) -> Result<Option<&'static Generation>, CalibrationError> {
    let names: BTreeSet<&String> =
        runs.iter().filter_map(|run| run.environment.get("medium generation")).collect();
    if names.len() > 1 {
        let names: Vec<String> = names.into_iter().cloned().collect();
        return Err(CalibrationError::SeveralGenerations { names: names.join(", ") });
    }
    let product = runs[0].environment.get("drive").map_or("", String::as_str);
    let of_medium = names.first().and_then(|name| {
        let found = Generation::all().iter().find(|known| known.name == name.as_str())?;
        Some(found.in_drive(product))
    });
    Ok(of_medium.or_else(|| Generation::of_product(product)))
}

/// Groups of data that do not compress, long enough, and in which the drive made the host wait.
fn held_by_tape<'a>(groups: &'a [CellRuns<'a>]) -> Vec<&'a CellRuns<'a>> {
    let plain: Vec<&CellRuns<'_>> = groups.iter().filter(|group| group.is_of_tape()).collect();
    let rate =
        |group: &CellRuns<'_>| group.estimate(Written::steady).map_or(0.0, |found| found.value);
    let highest = plain.iter().map(|group| rate(group)).fold(0.0, f64::max);
    plain.into_iter().filter(|group| rate(group) >= SAME_SPEED * highest).collect()
}

fn highest_speed(groups: &[CellRuns<'_>], limited: &[&CellRuns<'_>]) -> Finding {
    let is_plain = |group: &&CellRuns<'_>| group.is_plain();
    let why = || match groups.iter().filter(is_plain).count() {
        0 => "no repeated run wrote data that the drive cannot compress: --data random",
        _ => {
            "in no repeated run of data that do not compress the drive made the host wait for long \
             enough: larger blocks, or files of more than three of its buffers"
        }
    };
    let runs: Vec<(u64, f64)> =
        limited.iter().flat_map(|one| one.values(Written::steady)).collect();
    let found = by_repeat(&runs).ok_or_else(|| not_told(SPEEDS, why()))?;
    let sizes = written::block_range(limited);
    Ok(found.told(SPEEDS, format!("data that do not compress, {sizes}, second half of each run")))
}

/// From the group that leaves the least for the filemark to write. The tape may or may not have
/// begun to move before it, which is between the ends.
fn synchronise(groups: &[CellRuns<'_>], speed: Option<(f64, Interval)>) -> Finding {
    let why = |text: &str| not_told(SYNCHRONISE, text);
    let speed = speed.ok_or_else(|| why("the speed of the tape is not known"))?;
    let left = |group: &&CellRuns<'_>| Some(group.estimate(Written::native_bytes)?.value / speed.0);
    let candidates = groups.iter().filter_map(|group| Some((left(&group)?, group)));
    let nearest = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
    let (left_seconds, group) = nearest.ok_or_else(|| {
        why("of no repeated run it is known how much of it reached the tape: --data random, zeros")
    })?;
    let found = group.estimate(Written::filemark_seconds);
    let found = found.ok_or_else(|| why("the filemarks took no time that could be seen"))?;
    let at_most = found.interval.high;
    let interval = Interval { low: found.interval.low - left_seconds, high: at_most };
    if interval.low <= 0.0 || interval.high > TELLING * interval.low {
        let longest = base::format::duration(at_most);
        let why = why(&format!(
            "at most {longest}: every filemark had to wait for much of its run to be written, and \
             short files, or zeros with the drive's compression on, tell more"
        ));
        return Err(why.within(Reach::AtMost((at_most * NS) as u64)));
    }
    let estimate = Estimate {
        value: (found.value - left_seconds).max(interval.low),
        interval,
        runs: found.runs,
    };
    let leaving = base::format::duration(left_seconds);
    let from =
        format!("filemarks behind {}, which leave {leaving} of tape to write", group.shown());
    Ok(estimate.scaled(NS).told(SYNCHRONISE, from))
}

/// How much longer the filemark of a run takes that leaves the buffer full.
fn buffer(
    limited: &[&CellRuns<'_>],
    speed: Option<(f64, Interval)>,
    filemark: Option<&Told>,
) -> Finding {
    let why = |text: &str| not_told(BUFFER, text);
    let filemark = filemark.ok_or_else(|| {
        why("it takes filemarks both of runs that fill the buffer and of such that do not")
    })?;
    let runs: Vec<(u64, f64)> =
        limited.iter().flat_map(|one| one.values(Written::filemark_seconds)).collect();
    let full = by_repeat(&runs).zip(speed);
    let (full, speed) = full.ok_or_else(|| why("no repeated run left the drive's buffer full"))?;
    let empty = filemark.interval.map(|ns| ns / NS);
    let interval = Interval {
        low: (full.interval.low - empty.high) * speed.1.low,
        high: (full.interval.high - empty.low) * speed.1.high,
    };
    let value = (full.value - filemark.value / NS) * speed.0;
    if interval.low <= 0.0 || interval.high > TELLING * interval.low {
        let at_most = interval.high.max(0.0) as u64;
        let most = base::format::size(at_most);
        let why =
            why(&format!("at most {most}: the filemarks scatter too much for a closer value"));
        return Err(why.within(Reach::AtMost(at_most)));
    }
    let from = "how much longer the filemark takes where the buffer is full".to_owned();
    Ok(Estimate { value, interval, runs: full.runs }.told(BUFFER, from))
}

/// From the drive's own count of its stops, which only a virtual one has.
fn back_hitch(groups: &[CellRuns<'_>], lowest: Option<f64>) -> Finding {
    let runs: Vec<(u64, f64)> =
        groups.iter().flat_map(|group| group.values(Written::back_hitch_seconds)).collect();
    if let Some(found) = by_repeat(&runs) {
        let from = "the drive's own count of its stops and of the time they took".to_owned();
        return Ok(found.scaled(NS).told(BACK_HITCH, from));
    }
    let is_slow = |one: &Written<'_>| {
        let lowest = lowest.zip(one.ratio).map(|(lowest, ratio)| lowest * ratio.max(1.0));
        let rate = one.bare().filter(|_| !one.is_in_buffer());
        rate.zip(lowest).is_some_and(|(rate, lowest)| rate < lowest * SPEED_TOLERANCE)
    };
    let slow = groups.iter().flat_map(|group| &group.runs).filter(|one| is_slow(one)).count();
    let counts = groups.iter().flat_map(|group| &group.runs).any(Written::counts_stops);
    let why = match (slow, lowest) {
        _ if !runs.is_empty() => "the drive counted stops in one repeat alone".to_owned(),
        (0, Some(lowest)) => {
            let lowest = base::format::rate(lowest);
            format!("no run was slower than the tape can move, {lowest} of what reaches it")
        }
        (0, None) => "what the tape can move at is not known".to_owned(),
        (slow, _) => format!(
            "{} slower than the tape can move, but {}",
            base::format::counted(slow as u64, "run was", "runs were"),
            if counts {
                "the drive counted no stop in them"
            } else {
                "the drive's buffer hides the stops, and the drive does not count them"
            }
        ),
    };
    Err(not_told(BACK_HITCH, why))
}

/// What no experiment of this kind shows.
fn never_told() -> [NotTold; 3] {
    [
        not_told(SPEEDS, "no run shows the lower ones"),
        NotTold {
            parameters: vec!["run_up_ns", "restart_fill_percent"],
            why: "the drive's buffer hides how the tape starts".to_owned(),
            bound: None,
        },
        NotTold {
            parameters: vec![
                "capacity_bytes",
                "early_warning_bytes",
                "wraps",
                "wrap_turn_ns",
                "wind_ns",
                "settle_ns",
                "load_ns",
                "unload_ns",
            ],
            why: "no run fills a medium, winds it or changes it".to_owned(),
            bound: None,
        },
    ]
}

/// As the drive counted; or, where the tape held a run back, by its speed.
fn ratios(groups: &[CellRuns<'_>], speed: Option<f64>) -> Vec<Beside> {
    let kinds: BTreeSet<&str> =
        groups.iter().filter(|group| group.is_compressed()).map(CellRuns::data).collect();
    let one = |data: &str| {
        let own = groups.iter().filter(|group| group.is_compressed() && group.data() == data);
        let runs: Vec<(u64, f64)> = own
            .flat_map(|group| {
                let by_speed = speed.filter(|_| group.is_held_by_tape());
                group.values(move |one| {
                    one.counted_ratio.or_else(|| Some(one.steady()? / by_speed?))
                })
            })
            .collect();
        Some(by_repeat(&runs)?.beside(data))
    };
    kinds.into_iter().filter_map(one).collect()
}

/// The fastest repeated way to read each kind of data.
fn reads(runs: &[&RunRecord]) -> Vec<Beside> {
    let mut cells: Vec<(&Cell, Vec<(u64, f64)>)> = Vec::new();
    for run in runs.iter().filter(|run| written::is_read(&run.cell)) {
        let Some(rate) = run.bytes_per_second() else { continue };
        match cells.iter_mut().find(|(cell, _)| **cell == run.cell) {
            Some((_, values)) => values.push((run.repeat, rate)),
            None => cells.push((&run.cell, vec![(run.repeat, rate)])),
        }
    }
    let mut found: Vec<Beside> = Vec::new();
    for (cell, values) in cells {
        let data = word_in(cell, "data").ok().flatten().unwrap_or("random");
        let Some(read) = by_repeat(&values).map(|estimate| estimate.beside(data)) else { continue };
        match found.iter_mut().find(|other| other.data == data) {
            Some(other) if other.value < read.value => *other = read,
            Some(_) => {}
            None => found.push(read),
        }
    }
    found
}
