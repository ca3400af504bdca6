//! Compares two records: what each device did in its busy time, and the findings about it.
//!
//! Consecutive seconds are similar, so that 3600 seconds are not 3600 independent measurements. The
//! busy intervals of a record are cut into blocks in the order of time, and the medians of the
//! blocks are compared (batch means: Conway 1963; of quantiles, Seila 1982). If blocks are still
//! similar to the previous one, confidence intervals are widened accordingly
//! ([`statistics::sample::widening`]). Verdicts are those of experiments.

use std::borrow::Cow;

use base::finding::RuleId;
use experiment::judgement::{JudgementOptions, RateVerdict, settle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::interval::Interval;
use statistics::ratio::{Ratio, independent};
use statistics::{median, quantile, sample};

use crate::columns::{COLUMNS, Column, ColumnGroup, Columns};
use crate::history::{DeviceHistory, History, Sample};

/// Maximum number of blocks of a record: more blocks are shorter and more similar to each other.
const BLOCKS_MAX: usize = 16;
/// Minimum number of blocks that show how similar they are.
const BLOCKS_MIN: usize = 5;
/// Minimum number of intervals of a block.
const BLOCK_INTERVALS_MIN: usize = 8;
/// Minimum number of busy intervals for a comparison.
pub const BUSY_MIN: usize = BLOCKS_MIN * BLOCK_INTERVALS_MIN;
/// A direction is compared in the intervals in which it had this share of requests or bytes.
const SHARE: f64 = 0.1;
/// Intervals whose lengths have a smaller ratio count as equally long.
const LENGTHS_ALIKE: f64 = 1.1;

/// The columns that are compared, by their keys.
const COMPARED: [&str; 10] = [
    "rkB/s", "wkB/s", "r/s", "w/s", "r_await", "w_await", "rareq-sz", "wareq-sz", "aqu-sz", "util",
];

/// Which of two different values is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LargerSide {
    /// B is larger.
    Higher,
    /// A is larger.
    Lower,
}

impl LargerSide {
    /// How B compares with A, in a word.
    pub fn name(self) -> &'static str {
        match self {
            LargerSide::Higher => "higher",
            LargerSide::Lower => "lower",
        }
    }
}

/// A column of a device in one record, over its busy intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    pub intervals: usize,
    /// Number of blocks; 0 for too few intervals.
    pub blocks: usize,
    /// The 5 % quantile.
    pub low: f64,
    pub median: f64,
    /// The 95 % quantile.
    pub high: f64,
}

/// A column of a device in both records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    pub device: String,
    /// The column, by its key in `iostat -x -o JSON`; its unit is that of the column.
    pub column: Cow<'static, str>,
    pub a: Spread,
    pub b: Spread,
    /// B divided by A, of the geometric means of the medians of blocks.
    pub ratio: Option<f64>,
    /// Its 95 % interval, not corrected for the number of pairs.
    pub interval: Option<Interval>,
    /// Probability of a ratio this far from 1 without a difference, corrected for all pairs.
    pub p_value: Option<f64>,
    pub verdict: RateVerdict,
    /// The direction of a difference.
    pub direction: Option<LargerSide>,
}

/// How long a device was busy in both records; pairs are (A, B).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyTime {
    pub device: String,
    /// Seconds in which it was present and counted.
    pub seconds: (f64, f64),
    /// Seconds in which it was busy enough for findings.
    pub busy_seconds: (f64, f64),
}

/// Whether a finding is in both records.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SentenceChange {
    /// Only in B.
    New,
    /// Only in A.
    Gone,
    /// In both.
    Kept,
}

/// The findings of a rule about a device in both records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    pub device: String,
    pub rule: RuleId,
    /// Whether it is new.
    pub change: SentenceChange,
    /// Number of intervals with this finding: in A, in B.
    pub spoken: (u64, u64),
    /// Number of all intervals: in A, in B.
    pub intervals: (u64, u64),
    /// The finding, that of B if there is one.
    pub sentence: String,
    pub action: Option<String>,
}

/// Requests of a direction in only one of the records, of a device that was busy in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneSided {
    pub device: String,
    /// `reads` or `writes`.
    pub direction: Cow<'static, str>,
    /// `A` or `B`.
    pub record: Cow<'static, str>,
    /// Busy intervals in which they mattered.
    pub intervals: usize,
    /// Median of requests per second.
    pub requests_per_second: f64,
    /// Median of KiB per second.
    pub kib_per_second: f64,
}

/// The comparison of two records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Devices in both records that were busy in at least one.
    pub busy: Vec<BusyTime>,
    /// Columns of devices that were busy in both.
    pub pairs: Vec<Pair>,
    /// Directions in only one record.
    pub one_sided: Vec<OneSided>,
    /// Findings about devices in both records: new, gone, kept.
    pub said: Vec<Said>,
    /// Devices that only A has.
    pub only_in_a: Vec<String>,
    /// Devices that only B has.
    pub only_in_b: Vec<String>,
    /// Remarks in words.
    pub sentences: Vec<String>,
}

/// Compares B with A.
pub fn compare(a: &History, b: &History) -> Comparison {
    let options = JudgementOptions::default();
    let both: Vec<(&DeviceHistory, &DeviceHistory)> = a
        .devices
        .iter()
        .filter_map(|in_a| Some((in_a, b.device(&in_a.name).filter(|it| it.kind == in_a.kind)?)))
        .collect();
    let mut pairs: Vec<Pair> =
        both.iter().flat_map(|(in_a, in_b)| columns_of(in_a, in_b, &options)).collect();
    decide(&mut pairs, &options);
    let busy = both.iter().map(|(in_a, in_b)| BusyTime {
        device: in_a.name.clone(),
        seconds: (in_a.seconds, in_b.seconds),
        busy_seconds: (in_a.busy_seconds(), in_b.busy_seconds()),
    });
    let busy = busy.filter(|it| it.busy_seconds != (0.0, 0.0)).collect();
    let mut said: Vec<Said> = both.iter().flat_map(|(in_a, in_b)| said(in_a, in_b)).collect();
    said.sort_by_key(|it| it.change);
    let only = |mine: &History| -> Vec<String> {
        let is_both = |name: &str| both.iter().any(|(in_a, _)| in_a.name == name);
        let own = mine.devices.iter().map(|device| device.name.clone());
        own.filter(|name| !is_both(name)).collect()
    };
    let mut comparison = Comparison {
        busy,
        pairs,
        one_sided: both.iter().flat_map(|(in_a, in_b)| one_sided(in_a, in_b)).collect(),
        said,
        only_in_a: only(a),
        only_in_b: only(b),
        sentences: Vec::new(),
    };
    comparison.sentences = sentences(&comparison, a, b);
    comparison
}

/// Reads or writes that only one of the records has.
fn one_sided(a: &DeviceHistory, b: &DeviceHistory) -> Vec<OneSided> {
    let column = |key: &str| COLUMNS.iter().find(|column| column.key == key);
    let median_of = |device: &DeviceHistory, key: &str| {
        column(key).and_then(|column| median(&values(device, column))).unwrap_or(0.0)
    };
    let directions = [("reads", "r/s", "rkB/s"), ("writes", "w/s", "wkB/s")];
    let one = |(direction, requests, kib): (&'static str, &'static str, &'static str)| {
        let count =
            |device: &DeviceHistory| column(requests).map_or(0, |it| values(device, it).len());
        let (in_a, in_b) = (count(a), count(b));
        let (record, device, intervals) = match (in_a, in_b) {
            (0, 1..) => ("B", b, in_b),
            (1.., 0) => ("A", a, in_a),
            _ => return None,
        };
        Some(OneSided {
            device: a.name.clone(),
            direction: direction.into(),
            record: record.into(),
            intervals,
            requests_per_second: median_of(device, requests),
            kib_per_second: median_of(device, kib),
        })
    };
    let is_busy = |device: &DeviceHistory| device.samples.iter().any(|sample| sample.is_busy);
    if !is_busy(a) || !is_busy(b) {
        return Vec::new();
    }
    directions.into_iter().filter_map(one).collect()
}

fn columns_of(a: &DeviceHistory, b: &DeviceHistory, options: &JudgementOptions) -> Vec<Pair> {
    let compared = COLUMNS.iter().filter(|column| COMPARED.contains(&column.key));
    let pair = |column: &Column| {
        let (in_a, in_b) = (values(a, column), values(b, column));
        let (blocks_a, blocks_b) = (blocks(&in_a), blocks(&in_b));
        let ratio = ratio(&blocks_a, &blocks_b, options);
        Some(Pair {
            device: a.name.clone(),
            column: column.key.into(),
            a: Spread::of(&in_a, blocks_a.len())?,
            b: Spread::of(&in_b, blocks_b.len())?,
            ratio: ratio.map(|it| it.ratio),
            interval: ratio.map(|it| it.interval),
            p_value: ratio.map(|it| it.p_value),
            verdict: RateVerdict::NotSettled,
            direction: None,
        })
    };
    compared.filter_map(pair).collect()
}

/// A column in the busy intervals; for a direction, in the intervals in which it mattered.
fn values(device: &DeviceHistory, column: &Column) -> Vec<f64> {
    let matters = |columns: &Columns| {
        let own = match column.group {
            ColumnGroup::Read => &columns.read,
            ColumnGroup::Write => &columns.write,
            _ => return true,
        };
        let requests = [&columns.read, &columns.write, &columns.discard];
        let requests: f64 = requests.iter().map(|it| it.requests_per_second).sum();
        let kib = columns.read.kib_per_second + columns.write.kib_per_second;
        own.requests_per_second > 0.0
            && (own.requests_per_second >= SHARE * requests || own.kib_per_second >= SHARE * kib)
    };
    let busy = device.samples.iter().filter(|it| it.is_busy && matters(&it.columns));
    busy.map(|it: &Sample| (column.value)(&it.columns)).collect()
}

/// Medians of consecutive blocks with about equally many intervals; empty for too few intervals.
fn blocks(values: &[f64]) -> Vec<f64> {
    let count = (values.len() / BLOCK_INTERVALS_MIN).min(BLOCKS_MAX);
    if count < BLOCKS_MIN {
        return Vec::new();
    }
    let block = |number: usize| {
        let from = number * values.len() / count;
        let until = (number + 1) * values.len() / count;
        median(&values[from..until])
    };
    (0..count).filter_map(block).collect()
}

fn ratio(a: &[f64], b: &[f64], options: &JudgementOptions) -> Option<Ratio> {
    let widening = |blocks: &[f64]| sample::widening(&[blocks.to_vec()]);
    let ratio = independent(b, a, options.confidence)?;
    ratio.widened(widening(a).max(widening(b)), options.confidence)
}

impl DeviceHistory {
    /// A column in its busy intervals; `None` if it mattered in none.
    pub fn spread(&self, column: &Column) -> Option<Spread> {
        let values = values(self, column);
        Spread::of(&values, blocks(&values).len())
    }
}

impl Spread {
    fn of(values: &[f64], blocks: usize) -> Option<Spread> {
        Some(Spread {
            intervals: values.len(),
            blocks,
            low: quantile(values, 0.05)?,
            median: median(values)?,
            high: quantile(values, 0.95)?,
        })
    }
}

/// Corrects the p-values for their number, and sets the verdicts.
fn decide(pairs: &mut [Pair], options: &JudgementOptions) {
    let ratios: Vec<_> = pairs.iter().map(|pair| (pair.p_value, pair.interval)).collect();
    for (pair, settled) in pairs.iter_mut().zip(settle(&ratios, options)) {
        let Some((corrected, verdict)) = settled else { continue };
        (pair.p_value, pair.verdict) = (Some(corrected), verdict);
        let is_higher = pair.ratio.is_some_and(|ratio| ratio > 1.0);
        let way = if is_higher { LargerSide::Higher } else { LargerSide::Lower };
        pair.direction = (pair.verdict == RateVerdict::Differs).then_some(way);
    }
}

fn said(a: &DeviceHistory, b: &DeviceHistory) -> Vec<Said> {
    let mut rules: Vec<&RuleId> = Vec::new();
    for spell in b.spells.iter().chain(&a.spells) {
        if !rules.contains(&&spell.finding.rule) {
            rules.push(&spell.finding.rule);
        }
    }
    let one = |rule: &RuleId| {
        let spells = b.spells.iter().chain(&a.spells);
        let finding = spells.map(|it| &it.finding).find(|it| it.rule == *rule)?;
        let spoken = (a.spoken(rule), b.spoken(rule));
        Some(Said {
            device: a.name.clone(),
            rule: rule.clone(),
            change: match spoken {
                (0, _) => SentenceChange::New,
                (_, 0) => SentenceChange::Gone,
                _ => SentenceChange::Kept,
            },
            spoken,
            intervals: (a.intervals, b.intervals),
            sentence: finding.sentence(),
            action: finding.action.clone(),
        })
    };
    rules.into_iter().filter_map(one).collect()
}

fn sentences(comparison: &Comparison, a: &History, b: &History) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(comparison.one_sided.iter().map(|one| {
        let OneSided { device, direction, record, .. } = one;
        let rate = base::format::rate(one.kib_per_second * 1024.0);
        let intervals = base::format::counted(one.intervals as u64, "interval", "intervals");
        let requests = one.requests_per_second;
        format!(
            "{device}: only {record} has {direction}: {requests:.0} a second, {rate}, in \
             {intervals}"
        )
    }));
    let few = comparison.pairs.iter().filter(|it| it.a.blocks.min(it.b.blocks) == 0).count();
    if few > 0 {
        texts.push(format!(
            "{} had fewer than {BUSY_MIN} busy intervals in A or B, too few to tell a difference \
             from chance: watch for longer",
            base::format::counted(few as u64, "column", "columns"),
        ));
    }
    if comparison.pairs.is_empty() {
        texts
            .push("no device was busy in both records: there are no numbers to compare".to_owned());
    }
    let length = |history: &History| history.seconds / history.intervals.max(1) as f64;
    let (in_a, in_b) = (length(a), length(b));
    if in_a.max(in_b) > LENGTHS_ALIKE * in_a.min(in_b) {
        texts.push(format!(
            "intervals are {in_a:.1} s long in A and {in_b:.1} s in B: longer intervals average \
             more, which shifts medians of a device that is busy only at times"
        ));
    }
    for (name, history) in [("A", a), ("B", b)] {
        if history.joined > 1 {
            let joined = history.joined;
            texts.push(format!("{joined} intervals of {name} are combined into one"));
        }
    }
    if !comparison.pairs.is_empty() {
        texts.push(
            "verdicts hold for these two periods only: other load and the time of day are part of \
             every difference"
                .to_owned(),
        );
    }
    texts
}

#[cfg(test)]
mod tests;
