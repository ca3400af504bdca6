//! A diagnosis as an answer. What is not known is null.

use base::finding::Finding;
use diagnosis::amount::Amount;
use diagnosis::station::{Station, StationRate, name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Diagnosed;
use crate::Answer;
use crate::explain::PipelineRunAnswer;

/// What limits a backup, and what helps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseAnswer {
    /// The line; null for `takeup backup`.
    pub line: Option<String>,
    pub source: DiagnosedSource,
    /// Where the data go, as it was typed.
    pub target: String,
    /// Forecast of the chain as it is, in bytes of the source for each second.
    pub bytes_per_second: RangeAnswer,
    /// Forecast of the seconds for all that was seen of the source, to the last byte on the tape.
    pub expected_seconds: f64,
    /// Stops of the tape in each hour, by the forecast.
    pub stops_per_hour: f64,
    /// What each station gives by itself.
    pub stations: Vec<DiagnosedStation>,
    /// Changes, each on top of those before it: the first one acts on the limit.
    pub steps: Vec<DiagnosedStep>,
    /// What limits with all changes; null where no station would bring 5 %.
    pub limit_at_last: Option<String>,
    /// What it means, the limit first.
    pub findings: Vec<Finding>,
    /// The run of the line, with --run or a process.
    pub run: Option<PipelineRunAnswer>,
    /// What became of the first change, with --try.
    pub tried: Option<TriedStep>,
    /// How long it took.
    pub seconds: f64,
}

impl Answer for DiagnoseAnswer {
    const COMMAND: &'static str = "diagnose";
}

/// What there is to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedSource {
    /// As it was typed.
    pub path: String,
    /// Files of 1 MiB and more.
    pub large_files: u64,
    pub large_bytes: u64,
    pub small_files: u64,
    pub small_bytes: u64,
    /// Whether all of it was looked at.
    pub is_whole: bool,
    /// The read-ahead in force.
    pub read_ahead_bytes: Option<u64>,
    /// Bytes that the trials read.
    pub read_bytes: u64,
    /// Share of the time in which its disks were busy for others before the trials.
    pub busy_before: f64,
    /// Share of the tried files that lay in memory.
    pub cached_share: f64,
}

/// A number with its range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RangeAnswer {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl RangeAnswer {
    pub(super) fn of(amount: &Amount) -> RangeAnswer {
        RangeAnswer { value: amount.typical, low: amount.low, high: amount.high }
    }
}

/// A part of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedStation {
    /// large-files, small-files, program or target.
    pub kind: String,
    /// What it is called.
    pub name: String,
    /// The share of the source's bytes that it handles: less than 1 for large and small files.
    pub share_of_bytes: f64,
    /// What it gives by itself as it is, in bytes of the whole source for each second: files that
    /// are a tenth of the bytes and are read at 50 MB/s give 500 MB/s.
    pub bytes_per_second: Option<RangeAnswer>,
    /// The most that it could give.
    pub most_bytes_per_second: Option<RangeAnswer>,
    /// How these are known.
    pub certainty: base::finding::Certainty,
}

/// A change, and what it brings on top of those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedStep {
    /// The id of the rule that proposes it.
    pub rule: String,
    /// What to type.
    pub command: Option<String>,
    /// What takes it back.
    pub undo: Option<String>,
    /// Forecast with the change.
    pub bytes_per_second: RangeAnswer,
    /// The rate with the change divided by the one without it.
    pub gain: RangeAnswer,
}

/// What became of a change that was made for a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedStep {
    /// Why nothing was tried.
    pub not_tried: Option<String>,
    /// The two lines that ran, with their output thrown away; null where a setting was tried.
    pub lines: Option<[String; 2]>,
    /// Rate that was predicted with the change: of the large files where a setting was tried, of
    /// the line without its target where a line ran.
    pub predicted: Option<RangeAnswer>,
    /// Measured without the change, in turn.
    pub before: Option<RangeAnswer>,
    /// Measured with the change.
    pub after: Option<RangeAnswer>,
    /// Whether the ranges of what was predicted and measured touch.
    pub is_as_predicted: Option<bool>,
}

impl TriedStep {
    pub(super) fn not(why: &str) -> TriedStep {
        TriedStep {
            not_tried: Some(why.to_owned()),
            lines: None,
            predicted: None,
            before: None,
            after: None,
            is_as_predicted: None,
        }
    }

    pub(super) fn measured(predicted: &Amount, before: &Amount, after: &Amount) -> TriedStep {
        TriedStep {
            not_tried: None,
            lines: None,
            predicted: Some(RangeAnswer::of(predicted)),
            before: Some(RangeAnswer::of(before)),
            after: Some(RangeAnswer::of(after)),
            is_as_predicted: Some(after.high >= predicted.low && after.low <= predicted.high),
        }
    }
}

impl Diagnosed {
    /// As an answer.
    pub fn answer(&self) -> DiagnoseAnswer {
        let tree = &self.found.tree;
        let ranking = &self.ranking;
        let rules = self.rules();
        let steps = ranking.steps.iter().zip(&rules);
        let steps = steps.map(|(step, rule)| DiagnosedStep {
            rule: rule.clone(),
            command: step.changed.command.clone(),
            undo: step.changed.undo.map(str::to_owned),
            bytes_per_second: RangeAnswer::of(&step.after.bytes),
            gain: RangeAnswer::of(&step.gain()),
        });
        DiagnoseAnswer {
            line: self.line.clone(),
            source: DiagnosedSource {
                path: self.chain.source.shown.clone(),
                large_files: tree.large_files,
                large_bytes: tree.large_bytes,
                small_files: tree.small_files,
                small_bytes: tree.small_bytes,
                is_whole: tree.is_whole,
                read_ahead_bytes: self.found.stream.as_ref().and_then(|it| it.window_bytes),
                read_bytes: self.found.read_bytes,
                busy_before: self.found.busy_before,
                cached_share: self.found.cached_share,
            },
            target: self.chain.target.shown().to_owned(),
            bytes_per_second: RangeAnswer::of(&ranking.now.bytes),
            expected_seconds: tree.bytes() as f64 / ranking.now.bytes.typical.max(1.0),
            stops_per_hour: ranking.now.stops_per_hour,
            stations: ranking.stations.iter().map(|it| self.station(it)).collect(),
            steps: steps.collect(),
            limit_at_last: ranking.last.map(|last| kind(last.station).to_owned()),
            findings: self.findings.clone(),
            run: self.run.clone(),
            tried: self.tried.clone(),
            seconds: self.seconds,
        }
    }

    /// The rules of the steps, in their order.
    fn rules(&self) -> Vec<String> {
        self.ranking.step_rules().iter().map(|rule| rule.id.to_owned()).collect()
    }

    fn share(&self, station: Station) -> f64 {
        let tree = &self.found.tree;
        let part = match station {
            Station::LargeFiles => tree.large_bytes,
            Station::SmallFiles => tree.small_bytes,
            Station::Program(_) | Station::Target => return 1.0,
        };
        part as f64 / tree.bytes().max(1) as f64
    }

    fn station(&self, station: &StationRate) -> DiagnosedStation {
        let certainty = station.now.map_or(base::finding::Certainty::Unknown, |it| it.certainty);
        DiagnosedStation {
            kind: kind(station.station).to_owned(),
            name: name(&self.chain, station.station),
            share_of_bytes: self.share(station.station),
            bytes_per_second: station.now.as_ref().map(RangeAnswer::of),
            most_bytes_per_second: station.most.as_ref().map(RangeAnswer::of),
            certainty,
        }
    }
}

fn kind(station: Station) -> &'static str {
    match station {
        Station::LargeFiles => "large-files",
        Station::SmallFiles => "small-files",
        Station::Program(_) => "program",
        Station::Target => "target",
    }
}
