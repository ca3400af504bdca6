//! What commands take, and the way to the drive, from rates over block sizes: the law of the model
//! of a drive, in which a block of `b` bytes takes a fixed time and `b` by the rate of the host,
//! one after the other, as long as the tape does not make it wait.

use std::collections::BTreeMap;

use super::curve::{Curve, Step};
use super::estimate::Estimate;
use super::written::{CellRuns, Written, block_range};
use super::{COMMAND, Finding, HOST, Reach, TELLING, not_told};
use base::rounding::Rounding;
use experiment::record::Cell;
use statistics::curve::Model;
use statistics::curve::known::Known;
use statistics::interval::Interval;

/// Two sizes of block leave nothing by which the law could be seen to be wrong.
const SIZES_MIN: usize = 3;

/// The rate of the host and the time of a command.
pub(super) fn commands(groups: &[CellRuns<'_>]) -> (Finding, Finding) {
    let Some(sweep) = sweep(groups) else {
        let why = format!(
            "there are fewer than {SIZES_MIN} repeated sizes of block in which the tape does not \
             hold the host back: --data zeros with the drive's compression on, and smaller blocks"
        );
        return (Err(not_told(HOST, why.clone())), Err(not_told(COMMAND, why)));
    };
    let Some(Curve { model, known }) = sweep.curve() else {
        let why = "the rates over the sizes of block are on no line of fixed time and bytes";
        return (Err(not_told(HOST, why)), Err(not_told(COMMAND, why)));
    };
    let from = format!("{}, {}", sweep.groups[0].data(), block_range(&sweep.groups));
    (sweep.host(&model, &known, &from), sweep.command(&model, &known, &from))
}

/// Groups that differ in the size of their blocks alone, the smallest first.
struct Sweep<'a> {
    groups: Vec<&'a CellRuns<'a>>,
}

/// Of all sweeps that are long enough the one that comes to the highest rate: there the least
/// stands beside commands and the way.
fn sweep<'a>(groups: &'a [CellRuns<'a>]) -> Option<Sweep<'a>> {
    let mut by_others: BTreeMap<Cell, Vec<&CellRuns<'_>>> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.is_of_commands()) {
        if group.estimate(Written::bare).is_some() {
            let mut others = group.cell().clone();
            others.remove("block_bytes");
            by_others.entry(others).or_default().push(group);
        }
    }
    let highest = |groups: &Vec<&CellRuns<'_>>| {
        let rates = groups.iter().filter_map(|group| group.estimate(Written::bare));
        rates.map(|rate| rate.value).fold(0.0, f64::max)
    };
    let long = by_others.into_values().filter(|groups| groups.len() >= SIZES_MIN);
    let mut groups = long.max_by(|a, b| highest(a).total_cmp(&highest(b)))?;
    groups.sort_by_key(|group| group.block_bytes());
    Some(Sweep { groups })
}

impl Sweep<'_> {
    fn curve(&self) -> Option<Curve> {
        let step = |group: &&CellRuns<'_>| Step {
            level: group.block_bytes() as f64,
            rates: group.values(Written::bare),
        };
        Curve::through(&self.groups.iter().map(step).collect::<Vec<Step>>())
    }

    fn runs(&self) -> usize {
        self.groups.iter().map(|group| group.values(Written::bare).len()).sum()
    }

    fn host(&self, model: &Model, known: &Known, from: &str) -> Finding {
        let (value, interval) = match (model.plateau_bytes_per_second, known.plateau) {
            (Some(value), Some(interval)) => (value, interval),
            _ => (model.bytes_per_second, known.bytes_per_second),
        };
        if !value.is_finite() || interval.high > TELLING * interval.low {
            let least = base::format::rate(interval.low);
            let why = format!("at least {least}: larger blocks would show its value");
            return Err(not_told(HOST, why).within(Reach::AtLeast(interval.low.max(0.0) as u64)));
        }
        Ok(self.estimate(value, interval).told(HOST, from.to_owned()))
    }

    fn command(&self, model: &Model, known: &Known, from: &str) -> Finding {
        let interval = known.overhead_ns;
        if interval.low <= 0.0 || interval.high > TELLING * interval.low {
            let most = Rounding::digits(2).seconds(interval.high / 1e9);
            let why = format!("at most {most}: smaller blocks would show its value");
            return Err(not_told(COMMAND, why).within(Reach::AtMost(interval.high.max(0.0) as u64)));
        }
        Ok(self.estimate(model.overhead_ns, interval).told(COMMAND, from.to_owned()))
    }

    fn estimate(&self, value: f64, interval: Interval) -> Estimate {
        let interval = Interval { low: interval.low.min(value), high: interval.high.max(value) };
        Estimate { value, interval, runs: self.runs() }.grained()
    }
}
