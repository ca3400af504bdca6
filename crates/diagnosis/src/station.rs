//! The stations of a chain, and what each gives by itself.

use crate::amount::Amount;
use crate::chain::{Chain, Reading, Target, Work};

/// A part of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    LargeFiles,
    SmallFiles,
    /// A program, by its place in the chain.
    Program(usize),
    Target,
}

/// What a station gives by itself, in bytes of the source for each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationRate {
    pub station: Station,
    /// With the chain as it stands.
    pub now: Option<Amount>,
    /// The most it could give.
    pub most: Option<Amount>,
}

/// What each station gives by itself.
pub fn stations(chain: &Chain) -> Vec<StationRate> {
    let source = &chain.source;
    let bytes = source.bytes() as f64;
    let mut all = Vec::new();
    if let Some(stream) = source.stream.as_ref().filter(|_| source.large_bytes > 0) {
        let part = bytes / source.large_bytes as f64;
        let now = match source.reading {
            Reading::OneByOne => stream.now,
            Reading::ManyAtOnce => stream.most,
        };
        all.push(StationRate {
            station: Station::LargeFiles,
            now: Some(now.times(part)),
            most: Some(stream.most.times(part)),
        });
    }
    if let Some(small) = source.small.filter(|_| source.small_files > 0) {
        let rate = |each: Amount| {
            let of = |seconds: f64| bytes / (seconds * source.small_files as f64).max(1e-9);
            Amount {
                typical: of(each.typical),
                low: of(each.high),
                high: of(each.low),
                certainty: each.certainty,
            }
        };
        let now = match source.reading {
            Reading::OneByOne => small.one_by_one,
            Reading::ManyAtOnce => small.at_once,
        };
        all.push(StationRate {
            station: Station::SmallFiles,
            now: Some(rate(now)),
            most: Some(rate(small.at_once)),
        });
    }
    // Bytes of the source for each byte that comes here.
    let mut smaller = 1.0;
    for (at, link) in chain.links.iter().enumerate() {
        let station = Station::Program(at);
        let own = |rate: Amount| rate.times(smaller);
        let (now, most) = match &link.work {
            Work::Passes => continue,
            Work::Unknown(_) => (None, None),
            Work::Holds { bytes_per_second } => (Some(own(Amount::told(*bytes_per_second))), None),
            Work::Compresses { rate, threads, .. } => {
                let at_once = threads.min(chain.processors).max(1.0);
                (Some(own(rate.times(at_once))), Some(own(rate.times(chain.processors.max(1.0)))))
            }
        };
        if let Work::Compresses { ratio, .. } = link.work {
            smaller *= ratio.max(1.0);
        }
        all.push(StationRate { station, now, most });
    }
    let now = match &chain.target {
        Target::Nowhere => return all,
        Target::Unknown { .. } => None,
        Target::Disk { rate, .. } => Some(rate.times(smaller)),
        Target::Tape(tape) => {
            let native = tape.parameters.highest_bytes_per_second() as f64 * tape.speed_up;
            let shrinks = if chain.compresses() { smaller } else { tape.ratio };
            Some(Amount::told(native * shrinks))
        }
    };
    all.push(StationRate { station: Station::Target, now, most: now });
    all
}

/// A station in words.
pub fn name(chain: &Chain, station: Station) -> String {
    match station {
        Station::LargeFiles => format!("{} (large files)", chain.source.shown),
        Station::SmallFiles => format!("{} (small files)", chain.source.shown),
        Station::Program(at) => {
            chain.links.get(at).map_or("a program", |link| link.shown.as_str()).to_owned()
        }
        Station::Target => chain.target.shown().to_owned(),
    }
}
