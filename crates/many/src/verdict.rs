//! Which host is slow, and whether what they use is shared.
//!
//! Two questions, which both need more than one look at the rates of one run:
//! - *Slow*: a host that gets less than the others while all run, and that is also slower alone. If
//!   it is as fast alone, it gets less of what is shared. A host that is slower alone by twice as
//!   much, in two runs or more, is slow, too, whatever it gets together.
//! - *Shared*: hosts that get less together than each gets alone.
//!
//! Each host's rates are compared with the median of the others in the same run, so that what slows
//! all of them in one run does not count. Such a difference counts if its interval lies beyond
//! [`RELEVANT`]; medians of runs alone count if they differ by as much. Of several combinations the
//! fastest one is looked at. The level is divided by the number of hosts, since each of them is
//! asked.

use std::collections::BTreeMap;

use experiment::record::{Cell, RunRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::interval::{Interval, of_geometric_mean};
use statistics::median;

/// Smallest difference of rates that is said, as a share.
pub const RELEVANT: f64 = 0.15;
/// Chance of a wrong finding, of all hosts together.
const LEVEL: f64 = 0.05;
/// Fewest runs from which anything is concluded.
const RUNS_MIN: usize = 3;

/// What the hosts' rates say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsVerdict {
    /// Each host, the slowest first.
    pub hosts: Vec<HostRates>,
    /// Ranks that are slower than the others, alone as well as together.
    pub slow: Vec<u64>,
    /// Ranks that get less than the others only while all run.
    pub disadvantaged: Vec<u64>,
    /// Whether hosts get less together than alone; `None` where that cannot be told.
    pub is_shared: Option<bool>,
    /// What all get together, over what they would get if none took from another; below 1 where
    /// something is shared.
    pub together_over_alone: Option<f64>,
    /// Why something cannot be told.
    pub not_known: Option<String>,
}

/// The rates of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRates {
    pub host: String,
    pub rank: u64,
    /// Median bytes per second while all hosts ran.
    pub together_bytes_per_second: Option<f64>,
    /// Median bytes per second while it ran alone.
    pub alone_bytes_per_second: Option<f64>,
    /// What it got together over the median of the others.
    pub over_others: Option<ShareInterval>,
}

/// A ratio and its interval, of 95 % for all hosts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareInterval {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// The verdict on the runs of an experiment; `all` is the number of ranks.
pub fn verdict(runs: &[RunRecord], all: usize) -> HostsVerdict {
    let good = of_the_fastest(runs, all);
    let together: Vec<Vec<f64>> =
        good.iter().filter(|run| run.hosts.len() == all).filter_map(|run| rates(run)).collect();
    let mut found = HostsVerdict::default();
    let Some(names) = good.iter().find(|run| run.hosts.len() == all) else {
        found.not_known = Some("no run had all hosts".to_owned());
        return found;
    };
    let mut alone_runs = BTreeMap::new();
    for (index, part) in names.hosts.iter().enumerate() {
        let own: Vec<f64> = together.iter().map(|run| run[index]).collect();
        let alone: Vec<f64> = good
            .iter()
            .filter(|run| run.hosts.len() == 1 && run.hosts[0].rank == part.rank)
            .filter_map(|run| run.hosts[0].window_bytes_per_second)
            .collect();
        alone_runs.insert(part.rank, alone.len());
        found.hosts.push(HostRates {
            host: part.host.clone(),
            rank: part.rank,
            together_bytes_per_second: median(&own),
            alone_bytes_per_second: median(&alone),
            over_others: over_others(&together, index, all),
        });
    }
    let key = |host: &HostRates| host.together_bytes_per_second.unwrap_or(f64::INFINITY);
    found.hosts.sort_by(|left, right| key(left).total_cmp(&key(right)));
    if all < 2 {
        found.not_known = Some("there is one host".to_owned());
        return found;
    }
    if together.is_empty() {
        found.not_known = Some("the runs of all hosts have no rates of the hosts".to_owned());
        return found;
    }
    if together.len() < RUNS_MIN {
        found.not_known = Some(format!(
            "{RUNS_MIN} runs of all hosts are needed, and there are {}",
            together.len()
        ));
        return found;
    }
    conclude(&mut found, &alone_runs);
    found
}

/// The runs of the combination with the highest rate of all hosts, with whatever number of hosts.
pub fn of_the_fastest(runs: &[RunRecord], all: usize) -> Vec<&RunRecord> {
    let mut groups: BTreeMap<Cell, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.error.is_none()) {
        let mut cell = run.cell.clone();
        cell.remove(crate::together::HOSTS);
        groups.entry(cell).or_default().push(run);
    }
    let speed = |group: &Vec<&RunRecord>| {
        let all = group.iter().filter(|run| run.hosts.len() == all);
        median(&all.filter_map(|run| run.speed()).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let fastest = groups.into_values().max_by(|left, right| speed(left).total_cmp(&speed(right)));
    fastest.unwrap_or_default()
}

/// The rates of all hosts of a run, if each is known.
fn rates(run: &RunRecord) -> Option<Vec<f64>> {
    let one = |part: &experiment::record::HostPart| part.window_bytes_per_second;
    run.hosts.iter().map(one).map(|rate| rate.filter(|rate| *rate > 0.0)).collect()
}

/// The rates of one host over the median of the others, run by run.
fn over_others(together: &[Vec<f64>], index: usize, all: usize) -> Option<ShareInterval> {
    let ratio = |run: &Vec<f64>| {
        let others: Vec<f64> =
            run.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, rate)| *rate).collect();
        Some(run[index] / median(&others)?)
    };
    let ratios: Vec<f64> = together.iter().filter_map(ratio).collect();
    let Interval { low, high } = of_geometric_mean(&ratios, 1.0 - LEVEL / all as f64)?;
    Some(ShareInterval { ratio: median(&ratios)?, low, high })
}

/// Runs of a host alone from which it is called slow although it gets as much as the others
/// together: one may have been disturbed.
const ALONE_MIN: usize = 2;

fn conclude(found: &mut HostsVerdict, alone_runs: &BTreeMap<u64, usize>) {
    let alone: Vec<f64> =
        found.hosts.iter().filter_map(|host| host.alone_bytes_per_second).collect();
    let usual_alone = median(&alone).filter(|_| alone.len() > 1);
    for host in &found.hosts {
        let is_behind = host.over_others.is_some_and(|share| share.high < 1.0 - RELEVANT);
        let (Some(own), Some(usual)) = (host.alone_bytes_per_second, usual_alone) else {
            if is_behind {
                found.not_known = Some(format!(
                    "{} (rank {}) gets less than the others; alone it, or all others, did not run",
                    host.host, host.rank
                ));
            }
            continue;
        };
        // What is shared can be so scarce that a slow host gets as much as the others.
        let is_sure = alone_runs.get(&host.rank).is_some_and(|runs| *runs >= ALONE_MIN);
        let is_slow_alone = alone.len() > 2 && own < (1.0 - 2.0 * RELEVANT) * usual && is_sure;
        if is_slow_alone || (is_behind && own <= (1.0 - RELEVANT) * usual) {
            found.slow.push(host.rank);
        } else if is_behind {
            found.disadvantaged.push(host.rank);
        }
    }
    // The median over the hosts: one that is slow alone is as slow together.
    let lost: Vec<f64> = found
        .hosts
        .iter()
        .filter_map(|host| Some(host.together_bytes_per_second? / host.alone_bytes_per_second?))
        .collect();
    if lost.len() < 2.min(found.hosts.len()) {
        found.not_known = Some("fewer than two hosts ran alone".to_owned());
        return;
    }
    let ratio = median(&lost);
    found.together_over_alone = ratio;
    found.is_shared = ratio.map(|ratio| ratio < 1.0 - RELEVANT);
}

#[cfg(test)]
mod tests;
