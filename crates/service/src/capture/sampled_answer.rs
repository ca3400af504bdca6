//! Samples of `/proc` as an answer: the fields of a recording, null with a reason where `/proc`
//! does not show them.

use std::collections::BTreeMap;

use base::finding::Finding;
use capture::operation::{Engine, FileKind};
use capture::profile::timeline::Timeline;
use capture::profile::{BlockSizes, Class, Cost, Places, Sync};
use capture::sampled::{Position, SampledFile, Totals, findings, unseen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CapturedSamples, JobAnswer};

const OF_CALLS: &str = "calls were not recorded: /proc shows only positions of files and counters \
                        of the process";
const OF_POSITION: &str = "/proc does not show whether a position moved by reads, writes or seeks";
const OF_NAME: &str = "its name does not show it, and its use was not recorded";
const OF_BOTH: &str = "it was opened with and without, or /proc does not show it";
const OF_SIZE: &str = "only regular files have a size here";
const OF_NO_POSITION: &str = "this file has no position";
const OF_EVENTS: &str = "no events were recorded";

/// Samples of `/proc`. `why` calls were not recorded is in `fallback`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledAnswer {
    /// From the first sample to the last.
    pub seconds: f64,
    /// Open files that were met, those whose position moved most first.
    pub files: Vec<SampledFileAnswer>,
    /// Files beyond the limit.
    pub files_left_out: u64,
    /// What samples cannot show, in sentences.
    pub unseen: Vec<String>,
    /// What only events show.
    #[serde(flatten)]
    pub events: EventsUnknown,
    /// Number of samples.
    pub looks: u64,
    /// The processes that were met.
    pub processes: u64,
    /// What all of them did, at least.
    pub totals: Totals,
    /// What stands out; the first finding says that nothing was recorded.
    pub findings: Vec<Finding>,
    /// Why calls were not recorded.
    pub fallback: String,
    /// How the command failed, if it did.
    pub failed: Option<String>,
    /// Whether a signal stopped it.
    pub is_stopped: bool,
    /// Null: no job can be made of samples.
    #[serde(flatten)]
    pub job: JobAnswer,
    /// Why a field above is null, by its name.
    pub unknown: BTreeMap<String, String>,
}

/// What only events show: null here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsUnknown {
    /// Number of recorded events.
    pub events: Option<u64>,
    /// Events that were lost.
    pub lost_events: Option<u64>,
    /// Operations on files beyond the limit.
    pub operations_left_out: Option<u64>,
    /// What was done over time.
    pub timeline: Option<Timeline>,
    /// The cost of the recording.
    pub cost: Option<Cost>,
}

/// A file that at least one sample found open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFileAnswer {
    pub path: String,
    /// What it is for, if its name or kind says so.
    pub class: Option<Class>,
    pub kind: FileKind,
    /// Opened with `O_DIRECT`; null if it was opened with and without.
    pub direct: Option<bool>,
    /// Opened with `O_SYNC` or `O_DSYNC`.
    pub synchronous: Option<bool>,
    /// Opened with `O_APPEND`.
    pub append: Option<bool>,
    /// Its size at the last sample.
    pub size_bytes: Option<u64>,
    /// How much it grew between the first and the last sample.
    pub grown_bytes: Option<u64>,
    /// How its positions moved; null for what has none, as pipes.
    pub position: Option<Position>,
    /// `reading`, `writing` or `both`.
    pub opened_for: Option<String>,
    /// Processes that had it open.
    pub processes: u64,
    /// What only calls show.
    #[serde(flatten)]
    pub calls: CallsUnknown,
    /// Empty: nothing here is known for only a part of the calls.
    pub known_share: BTreeMap<String, f64>,
    /// Why a field above is null, by its name.
    pub unknown: BTreeMap<String, String>,
}

/// What only calls show of a file: null here, and described where a file was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
// The fields of `capture::profile::FileProfile`.
pub struct CallsUnknown {
    pub engine: Option<Engine>,
    pub engines: Option<BTreeMap<Engine, u64>>,
    pub calls: Option<u64>,
    pub reads: Option<u64>,
    pub writes: Option<u64>,
    pub read_share: Option<f64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub block_bytes: Option<u64>,
    pub block_sizes: Option<BlockSizes>,
    pub sequential_share: Option<f64>,
    pub rewrite_share: Option<f64>,
    pub reuse_share: Option<f64>,
    pub sync: Option<Sync>,
    pub depth: Option<f64>,
    pub threads: Option<u32>,
    pub think_seconds: Option<f64>,
    pub operations_per_second: Option<f64>,
    pub burstiness: Option<f64>,
    pub latency_seconds: Option<f64>,
    pub errors: Option<u64>,
    pub series: Option<Vec<[u64; 2]>>,
    pub places: Option<Places>,
}

impl SampledAnswer {
    /// The samples.
    pub(super) fn of(samples: &CapturedSamples) -> SampledAnswer {
        let CapturedSamples { sampled, why, failed, is_stopped } = samples;
        let events = EventsUnknown::default();
        SampledAnswer {
            seconds: sampled.seconds,
            files: sampled.files.iter().map(SampledFileAnswer::of).collect(),
            files_left_out: sampled.files_left_out,
            unseen: unseen(sampled),
            unknown: reasons(&events, OF_EVENTS),
            events,
            looks: sampled.looks,
            processes: sampled.processes,
            totals: sampled.totals,
            findings: findings(sampled, why),
            fallback: why.clone(),
            failed: failed.clone(),
            is_stopped: *is_stopped,
            job: JobAnswer::default(),
        }
    }
}

impl SampledFileAnswer {
    fn of(file: &SampledFile) -> SampledFileAnswer {
        let calls = CallsUnknown::default();
        let mut unknown = reasons(&calls, OF_CALLS);
        for name in ["read_bytes", "written_bytes"] {
            unknown.insert(name.to_owned(), OF_POSITION.to_owned());
        }
        for (name, is_known, why) in [
            ("class", file.class.is_some(), OF_NAME),
            ("direct", file.direct.is_some(), OF_BOTH),
            ("synchronous", file.synchronous.is_some(), OF_BOTH),
            ("append", file.append.is_some(), OF_BOTH),
            ("size_bytes", file.size_bytes.is_some(), OF_SIZE),
            ("grown_bytes", file.grown_bytes.is_some(), OF_SIZE),
            ("position", file.position.is_some(), OF_NO_POSITION),
        ] {
            if !is_known {
                unknown.insert(name.to_owned(), why.to_owned());
            }
        }
        SampledFileAnswer {
            path: file.path.clone(),
            class: file.class,
            kind: file.kind,
            direct: file.direct,
            synchronous: file.synchronous,
            append: file.append,
            size_bytes: file.size_bytes,
            grown_bytes: file.grown_bytes,
            position: file.position,
            opened_for: file.opened_for().map(str::to_owned),
            processes: file.processes,
            calls,
            known_share: BTreeMap::new(),
            unknown,
        }
    }
}

/// The same reason for each of these fields.
fn reasons(fields: &impl Serialize, why: &str) -> BTreeMap<String, String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(fields) else { return BTreeMap::new() };
    fields.into_iter().map(|(name, _)| (name, why.to_owned())).collect()
}

#[cfg(test)]
mod tests;
