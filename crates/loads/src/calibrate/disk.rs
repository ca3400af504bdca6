//! Estimates from a record of `takeup bench disk` or `takeup bench read` the parameters of the
//! model of its disk, with intervals; bounds of those that no run reached; and the names of those
//! that it does not show.
//!
//! Only direct reads count, because each of them is one request: through the page cache the kernel
//! chooses the requests. The time of a request comes from reads one at a time, where it
//! can be from several sizes of block, which separate the time of its bytes; a seek is what it
//! takes longer in random places than in a row; how many the disk serves at once is how many times
//! the rate of one at a time it comes to with more in flight, where that stays below what the disk
//! moves at its best; and its rate as a whole is what it stays at although it was asked for more,
//! and could have given more.
//!
//! A request's way through the kernel and back is in its time: no run can separate it.
//!
//! As with drives the unit is the repeat, and where an interval is of several steps its ends are
//! put together.

mod asked;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use base::format::{duration, rate};
use model::disk::{DiskParameters, Positioning};

use super::CalibrationError;
use super::curve::{Curve, Step};
use super::estimate::{Estimate, by_repeat};
use super::{NS, NotTold, Reach, TELLING, Told};
use asked::{Asked, RequestPlace, asked, rates_of_device};
use experiment::record::{Experiment, RunRecord, binary_size};
use statistics::interval::Interval;

/// A parameter that is this or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub parameter: &'static str,
    pub at_least: f64,
    /// Why no more is known.
    pub why: String,
}

/// All parameters that a record shows.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskCalibration {
    /// What the kernel calls it, with its model where it has one; else the path that was read.
    pub disk: String,
    /// The preset that is nearest to it, by what the kernel says of it.
    pub nearest_preset: &'static str,
    /// Runs that succeeded.
    pub runs: usize,
    /// Parameters; at least one.
    pub told: Vec<Told>,
    /// Those of which the least is known.
    pub bounds: Vec<Bound>,
    /// The others.
    pub not_told: Vec<NotTold>,
}

/// Time of a request that goes on where the last one ended, without its bytes.
pub const COMMAND: &str = "command_ns";
/// What it takes longer anywhere else.
pub const SEEK: &str = "seek_ns";
/// Both, where they cannot be told apart.
pub const RANDOM: &str = "command_and_seek_ns";
/// Rate at which the bytes of one request pass.
pub const SERVER: &str = "server_bytes_per_second";
/// Rate of the disk as a whole.
pub const LINK: &str = "link_bytes_per_second";
/// Requests served at once.
pub const PARALLEL: &str = "parallel";
/// The largest request that is not cut.
pub const REQUEST: &str = "request_bytes_max";

/// Two sizes of block leave nothing by which the law could be seen to be wrong.
const SIZES_MIN: usize = 3;
/// A request's way through the kernel and back takes some tens of microseconds, which belong to the
/// disk or to the host: so much less a time may be, at most half of it.
const WAY_NS: f64 = 50_000.0;
/// Levels that come as near to the highest rate are held back by the same thing.
const SAME_RATE: f64 = 0.95;
/// Levels tell a plateau when so many times as much is asked for at one of them.
const FURTHER: f64 = 1.5;
/// Answers wait for each other when as many times as many are asked for as are served at once.
const WAITING: f64 = 2.0;
/// Levels below bring at least this share where what the last adds only waits.
const NEARLY_ALL: f64 = 0.85;
/// What stays below this share of the highest rate is not held back by the rate of the whole.
const BELOW_LINK: f64 = 0.8;
/// The rate of the whole holds back what would otherwise come to so many times as much.
const COULD_BE_MORE: f64 = 1.25;
/// A seek below this share of a request is none.
const NO_SEEK: f64 = 0.1;
/// A rate above this is none of a disk: its bytes take no time.
const NO_TIME: f64 = 1e12;

/// The parameters that a record shows of its disk.
///
/// # Errors
/// When it is of no disk, or of several, or shows no parameter.
pub fn calibrate(experiment: &Experiment) -> Result<DiskCalibration, CalibrationError> {
    let kind = &experiment.header.kind;
    if !matches!(kind.as_str(), "disk" | "read") {
        return Err(CalibrationError::OtherKind {
            kind: kind.clone(),
            wanted: "disks and reads measure a disk",
        });
    }
    if kind == "disk" && !experiment.header.factors.iter().any(|factor| factor.name == "load") {
        return Err(CalibrationError::OwnJob);
    }
    let good: Vec<&RunRecord> =
        experiment.runs.iter().filter(|run| run.bytes_per_second().is_some()).collect();
    if good.is_empty() {
        return Err(CalibrationError::NoNumber { runs: experiment.runs.len() });
    }
    let disk = one_disk(&good)?;
    let repeats: BTreeSet<u64> = good.iter().map(|run| run.repeat).collect();
    if repeats.len() < 2 {
        return Err(CalibrationError::Once);
    }
    let groups = asked(kind, &good);
    let mut found = Found::default();
    let highest = rates_of_device(&good).into_iter().fold(0.0, f64::max);
    found.times(&groups);
    found.parallel(&groups, highest);
    found.link(&groups, highest);
    found.largest_request(&groups);
    if found.told.is_empty() {
        let why: Vec<String> = found.not_told.iter().map(|one| one.why.clone()).collect();
        return Err(CalibrationError::Nothing { device: "disk", why: why.join("; ") });
    }
    found.not_told.push(NotTold {
        parameters: vec!["stripe_bytes"],
        why: "no run shows which request goes to which part of the disk".to_owned(),
        bound: None,
    });
    let Found { told, bounds, not_told } = found;
    let nearest_preset = nearest_preset(good[0]);
    Ok(DiskCalibration { disk, nearest_preset, runs: good.len(), told, bounds, not_told })
}

impl DiskCalibration {
    /// Replaces assumed values by those that the record shows.
    pub fn apply(&self, disk: &mut DiskParameters) {
        let told = |name: &str| {
            let one = self.told.iter().find(|told| told.parameter == name);
            one.map(|told| told.value.round() as u64)
        };
        let known = |name: &str, assumed: u64| {
            let bound = self.bounds.iter().find(|bound| bound.parameter == name);
            let least = bound.map_or(0, |bound| bound.at_least as u64);
            told(name).unwrap_or(assumed.max(least))
        };
        disk.server_bytes_per_second = known(SERVER, disk.server_bytes_per_second);
        disk.link_bytes_per_second = known(LINK, disk.link_bytes_per_second);
        disk.request_bytes_max = known(REQUEST, disk.request_bytes_max);
        let servers_assumed = disk.servers;
        disk.servers = usize::try_from(known(PARALLEL, disk.servers as u64)).unwrap_or(1).max(1);
        disk.command_ns = known(COMMAND, disk.command_ns);
        let unseen = self.not_told.iter().find(|one| one.parameters == [SEEK]);
        let reach = unseen.and_then(|one| one.bound);
        let assumed_ns = disk.positioning.mean_ns();
        let near_ns = reach.map_or(assumed_ns, |reach| reach.nearest(assumed_ns));
        let mut seek_ns = known(SEEK, near_ns);
        if let Some(both) = told(RANDOM) {
            // Flash has no seek.
            let command = if seek_ns == 0 { both } else { disk.command_ns.min(both) };
            (disk.command_ns, seek_ns) = (command, both - command);
        }
        // No run shows how a seek depends on its distance, or what a drive's own order brings.
        if seek_ns != assumed_ns || disk.servers != servers_assumed {
            disk.positioning = Positioning::Constant { ns: seek_ns };
        }
    }
}

/// Known and unknown parameters, as they are found.
#[derive(Default)]
struct Found {
    told: Vec<Told>,
    bounds: Vec<Bound>,
    not_told: Vec<NotTold>,
}

/// Reads one at a time in one kind of place.
struct Alone {
    /// Of a request, in nanoseconds.
    request: Result<Estimate, String>,
    bytes: Option<(f64, Interval)>,
    /// Which runs these are, in words.
    from: String,
    runs: usize,
}

impl Found {
    fn not_told(&mut self, parameter: &'static str, why: impl Into<String>) {
        self.not_told.push(super::not_told(parameter, why));
    }

    /// Command, seek and bytes.
    fn times(&mut self, groups: &[Asked<'_>]) {
        let random = alone(groups, RequestPlace::Random);
        let sequential = alone(groups, RequestPlace::Sequential);
        let request =
            |alone: &Option<Alone>| alone.as_ref().and_then(|alone| alone.request.clone().ok());
        let why_not =
            |alone: &Option<Alone>| alone.as_ref().and_then(|alone| alone.request.clone().err());
        match (request(&random), request(&sequential)) {
            (Some(random_ns), Some(command_ns)) => {
                let [from_random, from_sequential] =
                    [&random, &sequential].map(|one| one.as_ref().map_or("", |one| &one.from));
                self.told.push(command_ns.told(COMMAND, from_sequential.to_owned()));
                let from = format!("{from_random}, less the same in a row");
                self.seek(random_ns, command_ns, from);
            }
            (Some(both_ns), None) => {
                let from = random.as_ref().map_or("", |one| &one.from);
                self.told.push(both_ns.told(RANDOM, from.to_owned()));
                let none = "no repeated direct reads in a row, one at a time (bench disk --load \
                            read), tell how much of it is a seek";
                let why = why_not(&sequential).unwrap_or_else(|| none.to_owned());
                self.not_told.push(NotTold { parameters: vec![COMMAND, SEEK], why, bound: None });
            }
            (None, Some(command_ns)) => {
                let from = sequential.as_ref().map_or("", |one| &one.from);
                self.told.push(command_ns.told(COMMAND, from.to_owned()));
                let none = "there are no repeated direct reads in random places, one at a time: \
                            bench disk --load randread";
                self.not_told(SEEK, why_not(&random).unwrap_or_else(|| none.to_owned()));
            }
            (None, None) => {
                let none = "there are no repeated direct reads with one request at a time: bench \
                            disk --load read,randread --depth 1";
                let why = why_not(&random).or(why_not(&sequential));
                let why = why.unwrap_or_else(|| none.to_owned());
                self.not_told.push(NotTold { parameters: vec![COMMAND, SEEK], why, bound: None });
            }
        }
        self.bytes(random.into_iter().chain(sequential).collect());
    }

    fn seek(&mut self, random_ns: Estimate, command_ns: Estimate, from: String) {
        let (random, command) = (random_ns.interval, command_ns.interval);
        let value = (random_ns.value - command_ns.value).max(0.0);
        // The way through the kernel is in both.
        let low = (random.low - command.high).max(0.0).min(value);
        let high = (random.high - command.low - WAY_NS.min(command_ns.value / 2.0)).max(value);
        let is_none = high <= NO_SEEK * random_ns.value;
        if !is_none && (low <= 0.0 || high > TELLING * low) {
            let most = duration(high / NS);
            let why = format!("at most {most}: the runs scatter too much");
            let reach = Reach::AtMost(high as u64);
            return self.not_told.push(super::not_told(SEEK, why).within(reach));
        }
        let value = if is_none { 0.0 } else { value };
        let interval = Interval { low: if is_none { 0.0 } else { low }, high };
        let runs = random_ns.runs + command_ns.runs;
        self.told.push(Told { parameter: SEEK, value, interval, runs, from });
    }

    /// The rate at which the bytes of a request pass, from the sweep that tells it best.
    fn bytes(&mut self, alone: Vec<Alone>) {
        let width = |one: &Alone| one.bytes.map_or(f64::INFINITY, |(_, it)| it.high / it.low);
        let best = alone.iter().min_by(|a, b| width(a).total_cmp(&width(b)));
        let Some((best, (value, interval))) = best.and_then(|one| Some((one, one.bytes?))) else {
            let why = format!(
                "it takes repeated direct reads one at a time of {SIZES_MIN} sizes of block, and \
                 times that follow their sizes"
            );
            return self.not_told(SERVER, why);
        };
        if value.is_finite() && interval.high <= TELLING * interval.low {
            let told = Estimate { value, interval, runs: best.runs }.grained();
            return self.told.push(told.told(SERVER, best.from.clone()));
        }
        let at_least = interval.low.min(NO_TIME);
        let why = if at_least < NO_TIME {
            "larger blocks would show its value".to_owned()
        } else {
            format!("{} take the same whatever their size", best.from)
        };
        self.bounds.push(Bound { parameter: SERVER, at_least, why });
    }

    /// How many are served at once: the highest of those that the sweeps over requests in flight
    /// tell, each of one size of block.
    fn parallel(&mut self, groups: &[Asked<'_>], highest: f64) {
        let mut sweeps = asked::over_requests_in_flight(groups);
        // Small blocks in random places first: there the least stands beside commands.
        sweeps.sort_by_key(|sweep| (sweep[0].place, sweep[0].block_bytes));
        let mut least: Option<(f64, String)> = None;
        for sweep in &sweeps {
            let Some(servers) = Servers::of(sweep) else { continue };
            let from = asked::shown(sweep);
            let is_below = servers.plateau.is_some_and(|rate| rate < BELOW_LINK * highest);
            let Estimate { value, interval, .. } = servers.number;
            if is_below && interval.high <= TELLING * interval.low {
                // A whole number, and no less than what was seen.
                let value = value.round().max(interval.low.ceil()).max(1.0);
                let told = Estimate { value, ..servers.number };
                return self.told.push(told.told(PARALLEL, from));
            }
            let at_least = interval.low.floor().max(1.0);
            if least.as_ref().is_none_or(|(known, _)| at_least > *known) {
                let why = match servers.plateau {
                    Some(_) => format!(
                        "{from} stop at a rate that may be the disk's as a whole; smaller blocks, \
                         or a larger size beside them, would tell"
                    ),
                    None => format!("{from} still grow: more in flight would show the limit"),
                };
                least = Some((at_least, why));
            }
        }
        match least {
            Some((at_least, why)) => {
                self.bounds.push(Bound { parameter: PARALLEL, at_least, why });
            }
            None => self.not_told(
                PARALLEL,
                "it takes repeated direct reads of one size with one request in flight and with \
                 several (--depth 1,4,16,64)",
            ),
        }
    }

    /// The highest rate, where it stays the same although more is asked for and could be had.
    fn link(&mut self, groups: &[Asked<'_>], highest: f64) {
        let known = self.told.iter().find(|told| told.parameter == PARALLEL);
        let bound = self.bounds.iter().find(|bound| bound.parameter == PARALLEL);
        let servers = known.map(|told| told.value).or(bound.map(|bound| bound.at_least));
        let servers = servers.unwrap_or(1.0);
        let is_held = |group: &&Asked<'_>| {
            let rate = group.rate().map_or(0.0, |rate| rate.value);
            let free = group.free(groups, servers).unwrap_or(0.0);
            // How many parts of a request that the kernel cuts are in flight is not known.
            let is_near = group.is_whole() && rate >= SAME_RATE * highest;
            is_near && free >= COULD_BE_MORE * rate
        };
        let held: Vec<&Asked<'_>> = groups.iter().filter(is_held).collect();
        let under_way = || held.iter().map(|group| group.bytes_in_flight());
        let is_plateau = under_way().max().zip(under_way().min());
        let is_plateau =
            is_plateau.is_some_and(|(most, least)| most as f64 >= FURTHER * least as f64);
        let values: Vec<(u64, f64)> = held.iter().flat_map(|group| group.rates()).collect();
        let found = by_repeat(&values).filter(|_| is_plateau);
        if let Some(found) = found.filter(|it| it.interval.high <= TELLING * it.interval.low) {
            let from =
                format!("what {} direct reads come to although more was asked for", values.len());
            return self.told.push(found.told(LINK, from));
        }
        let why = "no run shows a rate that stays the same although more is asked for and could \
                   be had: larger blocks with more in flight";
        self.bounds.push(Bound { parameter: LINK, at_least: highest, why: why.to_owned() });
    }

    fn largest_request(&mut self, groups: &[Asked<'_>]) {
        let one = groups.iter().filter(|group| group.is_whole()).map(|group| group.block_bytes);
        let why = "whether the disk cuts larger ones, or these, no run tells: one that does looks \
                   like one that moves less";
        match one.max() {
            Some(bytes) => self.bounds.push(Bound {
                parameter: REQUEST,
                at_least: bytes as f64,
                why: why.to_owned(),
            }),
            None => self.not_told(REQUEST, "no direct read reached the disk in one piece"),
        }
    }
}

/// The sweep over sizes of block that has the most of them.
fn alone(groups: &[Asked<'_>], place: RequestPlace) -> Option<Alone> {
    let sweeps = asked::over_sizes(groups, place);
    let top = |sweep: &Vec<&Asked<'_>>| {
        sweep.iter().filter_map(|group| group.rate()).map(|rate| rate.value).fold(0.0, f64::max)
    };
    let better = |a: &Vec<&Asked<'_>>, b: &Vec<&Asked<'_>>| {
        a.len().cmp(&b.len()).then(top(a).total_cmp(&top(b)))
    };
    let sweep = sweeps.into_iter().max_by(better)?;
    let from = asked::shown(&sweep);
    let step = |group: &&Asked<'_>| Step { level: group.block_bytes as f64, rates: group.rates() };
    let steps: Vec<Step> = sweep.iter().map(step).collect();
    let runs = steps.iter().map(|step| step.rates.len()).sum();
    let curve = if sweep.len() < SIZES_MIN { None } else { Curve::through(&steps) };
    let smallest = sweep[0];
    let Some(Curve { model, known }) = curve else {
        let from = match sweep.len() {
            1 => format!("{from}, their bytes included"),
            _ => format!("{}, their bytes included", asked::shown(&[smallest])),
        };
        let request = smallest.time_ns().map(with_way).filter(is_telling);
        let request = request.ok_or_else(|| format!("{from} scatter too much"));
        return Some(Alone { request, bytes: None, from, runs: smallest.rates().len() });
    };
    let Interval { low, high } = known.overhead_ns;
    let value = model.overhead_ns;
    let interval = Interval { low: low.min(value), high: high.max(value) };
    let found = Estimate { value, interval, runs };
    let request = if low > 0.0 && is_telling(&found) {
        Ok(with_way(found.grained()))
    } else {
        let most = duration(high / NS);
        Err(format!(
            "a request takes at most {most} besides its bytes: smaller blocks would show it"
        ))
    };
    let mut bytes = (model.bytes_per_second, known.bytes_per_second);
    bytes.1.low = bytes.1.low.min(bytes.0);
    Some(Alone { request, bytes: Some(bytes), from, runs })
}

fn is_telling(found: &Estimate) -> bool {
    found.interval.low > 0.0 && found.interval.high <= TELLING * found.interval.low
}

/// Some of the time may be the host's.
fn with_way(found: Estimate) -> Estimate {
    let way = WAY_NS.min(found.value / 2.0);
    let interval = Interval { low: found.interval.low - way, ..found.interval };
    Estimate {
        interval: Interval { low: interval.low.max(found.value / 4.0), ..interval },
        ..found
    }
}

/// How many times the rate of one request at a time a sweep comes to.
struct Servers {
    number: Estimate,
    /// Bytes per second, where more in flight bring no more.
    plateau: Option<f64>,
}

impl Servers {
    /// Of one size of block, by requests in flight, the fewest first.
    fn of(sweep: &[&Asked<'_>]) -> Option<Servers> {
        let (one, last) = (sweep.first()?, sweep.last()?);
        let single = one.rate().filter(|_| one.in_flight == 1 && last.in_flight > 1)?;
        let rate = |group: &Asked<'_>| group.rate().map_or(0.0, |rate| rate.value);
        let highest = sweep.iter().map(|group| rate(group)).fold(0.0, f64::max);
        let is_same = |group: &&&Asked<'_>| rate(group) >= SAME_RATE * highest;
        let flat: Vec<&Asked<'_>> = sweep.iter().rev().take_while(is_same).copied().collect();
        let least = flat.last().map_or(f64::INFINITY, |group| group.in_flight as f64);
        let is_further = |in_flight: u64| last.in_flight as f64 >= FURTHER * in_flight as f64;
        let is_flat = last.in_flight as f64 >= FURTHER * least;
        let of = if flat.is_empty() { vec![*last] } else { flat };
        let values: Vec<(u64, f64)> = of.iter().flat_map(|group| group.rates()).collect();
        let all = by_repeat(&values)?;
        // One at a time each request has its way through the kernel, and with many in flight none.
        let way = 1.0 - (WAY_NS / (one.block_bytes as f64 / single.value * NS)).min(0.5);
        let interval = Interval {
            low: all.interval.low / single.interval.high * way,
            high: all.interval.high / single.interval.low,
        };
        let before = sweep.iter().filter(|group| is_further(group.in_flight));
        let before = before.map(|group| rate(group)).fold(0.0, f64::max);
        // Little's law: what is in flight beyond those that are served waits in the queue of the
        // device. The last of the servers is not always busy when as many are in flight.
        let waits = last.in_flight as f64 >= WAITING * interval.high;
        let is_plateau = is_flat || (waits && before >= NEARLY_ALL * highest);
        // Disks of an array are never all busy: of n of them n d / (d + n - 1) are, with d in
        // flight (a closed network of equal queues). What is still to come is then up to about
        // twice what the last levels brought.
        let grown = if is_plateau { (highest / before).max(1.0) - 1.0 } else { 0.0 };
        let interval = Interval { high: interval.high * (1.0 + 2.0 * grown), ..interval };
        let number = Estimate { value: all.value / single.value, interval, runs: values.len() };
        Some(Servers { number, plateau: is_plateau.then_some(all.value) })
    }
}

fn one_disk(runs: &[&RunRecord]) -> Result<String, CalibrationError> {
    let name = |run: &&RunRecord| {
        let named = |name: &str| run.environment.get(name).filter(|text| !text.is_empty());
        let device = named("device").or_else(|| named("path"));
        let device = device.map_or("a disk without a name", String::as_str);
        match named("device model") {
            Some(model) => format!("{device} ({model})"),
            None => device.to_owned(),
        }
    };
    let names: BTreeSet<String> = runs.iter().map(name).collect();
    let all: Vec<String> = names.into_iter().collect();
    match &all[..] {
        [one] => Ok(one.clone()),
        _ => Err(CalibrationError::SeveralDisks { names: all.join(", ") }),
    }
}

/// Whether it turns, and how it is attached, is all that the kernel says.
fn nearest_preset(run: &RunRecord) -> &'static str {
    let device = run.environment.get("device").map_or("", String::as_str);
    match run.environment.get("queue rotational").map(String::as_str) {
        Some("1") => "sata7200",
        Some("0") if device.starts_with("nvme") => "nvme",
        Some("0") => "ssd-sata",
        _ => "sas15k",
    }
}

/// A bound as people read it.
pub fn shown_bound(bound: &Bound) -> String {
    match bound.parameter {
        SERVER | LINK if bound.at_least >= NO_TIME => "without limit".to_owned(),
        SERVER | LINK => format!("at least {}", rate(bound.at_least)),
        REQUEST => format!("at least {}", binary_size(bound.at_least as u64)),
        _ => format!("at least {:.0}", bound.at_least),
    }
}
