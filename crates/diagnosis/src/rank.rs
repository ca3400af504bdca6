//! The limit of a chain, and the changes by what they bring.
//!
//! Each change is played on the whole chain, and so brings only what the next limit leaves. The one
//! that brings most is taken, then the next is looked for, until none brings [`WORTH`].

use model::ModelError;

use crate::amount::{Amount, Pick};
use crate::chain::{Chain, Reading, Target, Work};
use crate::change::{Change, Changed, Ground};
use crate::forecast::{Forecast, forecast};
use crate::line::{self, Typed};
use crate::station::{Station, StationRate, stations};

/// A change that brings less is not told.
pub const WORTH: f64 = 1.05;
/// Another program in the place of the line has to bring this much more than a smaller change.
const REPLACED: f64 = 1.15;
/// Of two sizes the smaller one is enough, where it brings nearly as much.
const NEARLY: f64 = 0.97;
/// Stations that differ by less are told together.
const ALIKE: f64 = 0.10;
/// The lower end of a gain: a change that may well make things slower is not told.
const NO_LOSS: f64 = 0.9;
/// How far forecasts of this model are off by themselves (`cargo xtask trial diagnose`).
const MODEL_SPREAD: f64 = 0.08;
/// Another program reads in ways that the trials only imitate (`cargo xtask trial diagnose`: 0.6 to
/// 1.5 times what they let expect).
const REPLACED_SPREAD: f64 = 0.4;
/// Two levels of one compressor, tried on the same data.
const LEVEL_SPREAD: f64 = 0.25;
const SPREAD_MAX: f64 = 0.9;
const STEPS_MAX: usize = 4;
/// Steps that bring less than this share of what the limit costs leave it what it is.
const HARDLY: f64 = 1.0 / 3.0;

/// What holds a chain back, and what helps.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The chain as it is.
    pub now: Rates,
    /// What limits the chain as it is, where no step acts on that, and all bring only a small part
    /// of what it costs ([`HARDLY`]).
    pub first: Option<Limit>,
    /// Changes, each on top of those before it.
    pub steps: Vec<Step>,
    /// What limits the chain with all changes, by its gain if it cost nothing.
    pub last: Option<Limit>,
    /// The chain with all changes.
    pub end: Chain,
    /// What each station of the chain as it is gives by itself.
    pub stations: Vec<StationRate>,
}

/// A change, and what it brings.
#[derive(Clone, Debug)]
pub struct Step {
    pub changed: Changed,
    pub before: Rates,
    pub after: Rates,
}

impl Step {
    /// The rate behind the change divided by the one before it.
    pub fn gain(&self) -> Amount {
        let ratio = |amount: &Amount| (amount.high - amount.low) / 2.0 / amount.typical;
        let (before, after) = (&self.before.bytes, &self.after.bytes);
        let another = match self.changed.change {
            Change::TakeupBackup | Change::OwnCompression { .. } => REPLACED_SPREAD,
            _ => 0.0,
        };
        let spread = match self.changed.change {
            // What is not known of the compressor is the same on both sides.
            Change::FastestLevel { .. } => LEVEL_SPREAD,
            _ => (ratio(before).powi(2) + ratio(after).powi(2) + f64::powi(another, 2)).sqrt(),
        };
        let spread = spread.min(SPREAD_MAX);
        let gain = after.typical / before.typical;
        Amount {
            typical: gain,
            low: gain * (1.0 - spread),
            high: gain * (1.0 + spread),
            certainty: after.certainty,
        }
    }
}

/// A forecast with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes of the source for each second.
    pub bytes: Amount,
    /// Seconds of the run beside those of its data.
    pub beside_seconds: f64,
    /// Stops of the tape in each hour.
    pub stops_per_hour: f64,
}

/// The station that would bring most if it cost nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub station: Station,
    /// How much faster the chain would be then.
    pub gain: f64,
    /// Another one that is nearly as slow.
    pub alike: Option<Station>,
}

/// Plays the chain and its changes.
///
/// # Errors
/// When the model stands still.
pub fn rank(chain: &Chain, ground: &Ground<'_>) -> Result<Ranking, ModelError> {
    let now = rates(chain)?;
    let mut steps: Vec<Step> = Vec::new();
    let (mut present, mut before) = (chain.clone(), now);
    let mut typed = ground.typed.cloned();
    while steps.len() < STEPS_MAX {
        // Its compression was tried at the level of the line.
        let is_level = |it: &Step| matches!(it.changed.change, Change::FastestLevel { .. });
        let own = ground.own.filter(|_| !steps.iter().any(is_level));
        let ground = Ground { typed: typed.as_ref(), own, ..*ground };
        let best = match best(&present, ground.changes(&present), &before, NO_LOSS)? {
            // What has a price must not be slower.
            None => best(&present, ground.trade_offs(&present), &before, 1.0)?,
            found => found,
        };
        let Some(best) = best else { break };
        present = best.changed.chain.clone();
        before = best.after;
        if let Some(line) = &best.changed.line {
            typed = renamed(line, &mut present);
        }
        steps.push(best);
    }
    let first = match &steps[..] {
        [] => None,
        steps => limit(chain)?.filter(|limit| is_elsewhere(limit, steps, chain)),
    };
    let last = limit(&present)?;
    Ok(Ranking { now, first, steps, last, end: present, stations: stations(chain) })
}

/// Whether a chain is held back by something that no step touches, and all of them bring little.
fn is_elsewhere(limit: &Limit, steps: &[Step], chain: &Chain) -> bool {
    let gains: f64 = steps.iter().map(|step| step.gain().typical).product();
    let is_touched = steps.iter().any(|step| touches(&step.changed.change, limit.station, chain));
    !is_touched && gains - 1.0 < HARDLY * (limit.gain - 1.0)
}

/// Whether a change acts on a station of the chain as it was typed.
fn touches(change: &Change, station: Station, chain: &Chain) -> bool {
    let is_source = matches!(station, Station::LargeFiles | Station::SmallFiles);
    let compresses = |at: usize| {
        chain.links.get(at).is_some_and(|it| matches!(it.work, Work::Compresses { .. }))
    };
    match (change, station) {
        (Change::TakeupBackup | Change::OwnCompression { .. }, Station::Program(at)) => {
            compresses(at)
        }
        (Change::TakeupBackup | Change::OwnCompression { .. }, _) => is_source,
        (Change::ReadAhead { .. }, _) => station == Station::LargeFiles,
        (Change::Blocks { is_read_faster: true, .. }, Station::LargeFiles) => true,
        // Reading and writing that take turns hold each other back.
        (Change::Buffer, Station::LargeFiles | Station::SmallFiles) => true,
        (Change::Blocks { .. } | Change::Buffer, _) => station == Station::Target,
        (
            Change::AllCores { link, .. }
            | Change::WithoutRate { link }
            | Change::FastestLevel { link, .. },
            _,
        ) => station == Station::Program(*link),
    }
}

/// A changed line, read again, with its programs' names in the chain; `None` where it has become
/// another one, and is not changed further.
fn renamed(line: &str, chain: &mut Chain) -> Option<Typed> {
    let typed = line::typed(line).filter(|it| it.programs.len() == chain.links.len())?;
    for (link, program) in chain.links.iter_mut().zip(&typed.programs) {
        (link.shown, link.stage) = (program.name.clone(), program.stage);
    }
    Some(typed)
}

fn best(
    present: &Chain,
    changes: Vec<Changed>,
    before: &Rates,
    gain_min: f64,
) -> Result<Option<Step>, ModelError> {
    let mut best: Option<(f64, Step)> = None;
    for changed in changes {
        // Of another program only its way of reading is weighed: the rest smaller changes do.
        let (typical, penalty) = match &changed.change {
            Change::TakeupBackup => (forecast(&read_at_once(present), Pick::Typical)?, REPLACED),
            Change::OwnCompression { .. } => (forecast(&changed.chain, Pick::Typical)?, REPLACED),
            _ => (forecast(&changed.chain, Pick::Typical)?, 1.0),
        };
        let typical = typical.bytes_per_second;
        let worth = typical / penalty;
        let is_worth = worth >= WORTH * before.bytes.typical;
        // The list has smaller sizes first.
        let is_better = best.as_ref().is_none_or(|(other, _)| worth > other / NEARLY);
        if is_worth && is_better {
            let after = rates(&changed.chain)?;
            let step = Step { changed, before: *before, after };
            if step.gain().low >= gain_min {
                best = Some((worth, step));
            }
        }
    }
    Ok(best.map(|(_, step)| step))
}

fn read_at_once(chain: &Chain) -> Chain {
    let mut chain = chain.clone();
    chain.source.reading = Reading::ManyAtOnce;
    chain
}

/// Plays a chain with its rates at both ends of their ranges, too.
///
/// # Errors
/// When the model stands still.
pub fn rates(chain: &Chain) -> Result<Rates, ModelError> {
    let [low, typical, high] = [Pick::Low, Pick::Typical, Pick::High].map(|it| forecast(chain, it));
    let (low, typical, high): (Forecast, Forecast, Forecast) = (low?, typical?, high?);
    let bytes = Amount {
        typical: typical.bytes_per_second,
        low: low.bytes_per_second * (1.0 - MODEL_SPREAD),
        high: high.bytes_per_second * (1.0 + MODEL_SPREAD),
        certainty: base::finding::Certainty::Inferred,
    };
    Ok(Rates {
        bytes,
        beside_seconds: typical.beside_seconds,
        stops_per_hour: typical.stops_per_second * 3600.0,
    })
}

/// The chain if one of its stations cost nothing: of the source, all its files.
fn without(chain: &Chain, station: Station) -> Chain {
    let mut chain = chain.clone();
    match station {
        Station::LargeFiles | Station::SmallFiles => {
            (chain.source.stream, chain.source.small) = (None, None);
        }
        Station::Program(at) => {
            if let Some(link) = chain.links.get_mut(at) {
                link.work = Work::Passes;
            }
        }
        Station::Target => chain.target = Target::Nowhere,
    }
    chain
}

/// The stations with their rates, the source as one: its files are read one after the other. It is
/// called by what takes longer.
fn weighed(chain: &Chain) -> Vec<(Station, Option<f64>)> {
    let is_source =
        |it: &StationRate| matches!(it.station, Station::LargeFiles | Station::SmallFiles);
    let all = stations(chain);
    let rate = |it: &StationRate| it.now.map(|own| own.typical);
    let parts: Vec<(Station, f64)> = all
        .iter()
        .filter(|it| is_source(it))
        .filter_map(|it| Some((it.station, rate(it)?)))
        .collect();
    let slowest = parts.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let together = 1.0 / parts.iter().map(|it| 1.0 / it.1).sum::<f64>();
    let source = slowest.map(|slowest| (slowest.0, Some(together)));
    let rest = all.iter().filter(|it| !is_source(it)).map(|it| (it.station, rate(it)));
    source.into_iter().chain(rest).collect()
}

/// What brings most if it cost nothing; `None` where nothing brings [`WORTH`].
pub fn limit(chain: &Chain) -> Result<Option<Limit>, ModelError> {
    let now = forecast(chain, Pick::Typical)?.bytes_per_second;
    let mut gains = Vec::new();
    for (station, own) in weighed(chain) {
        let gain = forecast(&without(chain, station), Pick::Typical)?.bytes_per_second / now;
        gains.push((station, gain, own));
    }
    let Some(best) = gains.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
    // Two that are alike hide each other: then the slowest by itself counts.
    let slowest =
        gains.iter().filter_map(|it| Some((it.0, it.2?))).min_by(|a, b| a.1.total_cmp(&b.1));
    let station = match slowest {
        _ if best.1 >= WORTH => best.0,
        Some((station, rate)) if rate <= now * (1.0 + ALIKE) => station,
        _ => return Ok(None),
    };
    let (gain, own) =
        gains.iter().find(|it| it.0 == station).map_or((1.0, None), |it| (it.1, it.2));
    let alike = gains.iter().filter(|it| it.0 != station).find_map(|it| {
        let (own, other) = (own?, it.2?);
        ((own - other).abs() <= ALIKE * own.min(other)).then_some(it.0)
    });
    Ok(Some(Limit { station, gain, alike }))
}

#[cfg(test)]
mod tests;
