//! How near a job comes to what it was made of: the profile of its run against the one captured.
//!
//! Each property has a score from 0 to 100 %:
//!
//! - *sizes*, *offsets*, *mix*: 1 minus the total variation distance of the two distributions,
//!   which is half the sum of the differences of their shares (Levin, Peres, Wilmer, *Markov Chains
//!   and Mixing Times*, chapter 4). It is the largest share of operations that is alike in both.
//!   Sizes are told apart by direction, each direction counted for itself, so that the mix is not
//!   counted twice; offsets are behind an earlier end, within the last write, or elsewhere.
//! - *sync*: 0 if the calls differ, else the smaller number of writes for each sync by the larger.
//! - *depth*: the smaller by the larger.
//! - *engine* and *direct*: the same or not.
//!
//! What cannot be seen on one of the sides has no score, and a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base::format::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::operation::Engine;
use super::super::profile::{FileProfile, Profile};
use super::group::FileGroup;
use super::numbers::bytes;
use super::section::JobSection;
use super::{FioJob, Written, words};
use crate::words::short_number;

/// The compared properties, in the order of the report.
pub const PROPERTIES: [&str; 7] = ["engine", "direct", "sizes", "offsets", "mix", "sync", "depth"];

/// How near a job comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// Each property over all groups, by their reads and writes.
    pub properties: BTreeMap<String, Score>,
    /// Each group of files.
    pub groups: Vec<Compared>,
    /// What the job does not reproduce, in sentences.
    pub not_reproduced: Vec<String>,
    /// How long the run took, in s.
    pub seconds: f64,
    /// Events that were lost while it ran.
    pub lost_events: u64,
    /// Reads and writes that the job lacks and that may have gone to files which were closed before
    /// their names were looked up: of their groups nothing is told.
    pub unnamed_operations: u64,
}

/// A group of files and its counterpart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Name of its sections, without `-reads` and `-writes`.
    pub name: String,
    /// Paths that were captured.
    pub paths: Vec<String>,
    /// Reads and writes that were captured.
    pub operations: u64,
    /// Those of the job.
    pub job_operations: u64,
    /// By property.
    pub properties: BTreeMap<String, Score>,
}

/// How near a property of the job comes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// 0 to 100; `None` with a reason.
    pub percent: Option<f64>,
    /// What was captured, in words; empty over several groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub captured: String,
    /// What the job did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// Why there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Holds the profile of a job's run against the one that it was made of. `captured` and `job` are
/// those of [`FioJob::of`].
#[must_use]
pub fn compare(captured: &Profile, job: &FioJob, run: &Profile) -> Validation {
    let mut groups = Vec::new();
    let mut not_reproduced = Vec::new();
    let mut unnamed_operations = 0;
    for written in &job.groups {
        let own = &written.group;
        let names: BTreeSet<&str> = own.names.iter().map(String::as_str).collect();
        let files: Vec<&FileProfile> =
            run.files.iter().filter(|file| is_one_of(file, &names)).collect();
        let made = (!files.is_empty()).then(|| FileGroup::of(&files, run.seconds));
        let unnamed = unnamed(written, run, made.as_ref().map_or(0, FileGroup::operations));
        unnamed_operations += unnamed;
        let scored = |property: &&str| match unnamed {
            0 => score(property, own, made.as_ref()),
            some => Score { reason: Some(words::unnamed(some)), ..Score::default() },
        };
        let properties: BTreeMap<String, Score> =
            PROPERTIES.iter().map(|property| ((*property).to_owned(), scored(property))).collect();
        match unnamed {
            0 => not_reproduced.extend(words::of_group(own, made.as_ref(), &properties)),
            some => {
                let why = words::unnamed(some);
                not_reproduced.push(format!("{}: cannot be compared: {why}", own.name));
            }
        }
        groups.push(Compared {
            name: own.name.clone(),
            paths: own.paths.clone(),
            operations: own.operations(),
            job_operations: made.as_ref().map_or(0, FileGroup::operations),
            properties,
        });
    }
    not_reproduced.extend(words::of_all(captured, job, run));
    // Several groups may lack what nobody can tell apart.
    let nameless = run.files.iter().filter(|file| file.path.is_none());
    let nameless = nameless.map(|file| file.reads + file.writes).sum();
    let unnamed_operations = unnamed_operations.min(nameless);
    let properties =
        PROPERTIES.iter().map(|property| ((*property).to_owned(), over(&groups, property)));
    Validation {
        properties: properties.collect(),
        groups,
        not_reproduced,
        seconds: run.seconds,
        lost_events: run.lost_events,
        unnamed_operations,
    }
}

/// Reads and writes that the sections of a group were to make, were not seen to, and may have made
/// all the same: in a file that was closed before its name was looked up, which happens to the
/// short sections of a job where the machine has no time for the recording. None where they are too
/// few to matter.
fn unnamed(written: &Written, run: &Profile, seen: u64) -> u64 {
    /// Fewer change no property.
    const SHARE_MIN: f64 = 0.01;
    let own = &written.group;
    let asked: u64 = written.sections.iter().map(JobSection::operations).sum();
    let is_engine =
        |engine: Engine| engine == own.engine || (engine == Engine::Psync && own.syncs_beside());
    let may_be = |file: &&FileProfile| {
        let is_direct = [file.direct, own.direct];
        file.path.is_none()
            && is_engine(file.engine)
            && (is_direct.contains(&None) || file.direct == own.direct)
    };
    let unnamed: u64 = run.files.iter().filter(may_be).map(|file| file.reads + file.writes).sum();
    let unnamed = unnamed.min(asked.saturating_sub(seen));
    if unnamed as f64 > SHARE_MIN * asked as f64 { unnamed } else { 0 }
}

fn is_one_of(file: &FileProfile, names: &BTreeSet<&str>) -> bool {
    let name = file.path.as_deref().and_then(|path| Path::new(path).file_name());
    name.and_then(|name| name.to_str()).is_some_and(|name| names.contains(name))
}

/// The mean of the groups that have a score, by their operations.
fn over(groups: &[Compared], property: &str) -> Score {
    let (mut sum, mut operations, mut reason) = (0.0, 0.0, None);
    for group in groups {
        let Some(score) = group.properties.get(property) else { continue };
        match score.percent {
            Some(percent) => {
                sum += percent * group.operations as f64;
                operations += group.operations as f64;
            }
            None => reason = reason.or_else(|| score.reason.clone()),
        }
    }
    let percent = (operations > 0.0).then(|| sum / operations);
    let reason = if percent.is_none() { reason } else { None };
    Score { percent, captured: String::new(), job: String::new(), reason }
}

/// One side of a property: what it is in words, and whether it can be told.
struct Side<T> {
    words: String,
    value: Result<T, &'static str>,
}

impl<T> Side<T> {
    fn of(value: Option<T>, words: impl Fn(&T) -> String, reason: &'static str) -> Side<T> {
        match value {
            Some(value) => Side { words: words(&value), value: Ok(value) },
            None => Side { words: "unknown".to_owned(), value: Err(reason) },
        }
    }
}

/// Scores both sides if both can be told.
fn judge<T>(
    captured: &FileGroup,
    job: &FileGroup,
    side: impl Fn(&FileGroup) -> Side<T>,
    share: impl Fn(&T, &T) -> f64,
) -> Score {
    let (one, other) = (side(captured), side(job));
    let (percent, reason) = match (&one.value, &other.value) {
        (Ok(one), Ok(other)) => (Some(share(one, other).clamp(0.0, 1.0) * 100.0), None),
        (Err(reason), _) => (None, Some(format!("not known in the capture: {reason}"))),
        (_, Err(reason)) => (None, Some(format!("not known of the job: {reason}"))),
    };
    Score { percent, captured: one.words, job: other.words, reason }
}

fn score(property: &str, captured: &FileGroup, job: Option<&FileGroup>) -> Score {
    let Some(job) = job else {
        let reason = "the job did nothing with these files".to_owned();
        let (captured, job) = (String::new(), String::new());
        return Score { percent: Some(0.0), captured, job, reason: Some(reason) };
    };
    let equal = |one: bool| if one { 1.0 } else { 0.0 };
    match property {
        "engine" => {
            let known = |group: &FileGroup| {
                let engine = Some(group.engine).filter(|engine| *engine != Engine::Unknown);
                Side::of(engine, |engine| words::engine(*engine), "no call was recorded")
            };
            judge(captured, job, known, |one, other| equal(one == other))
        }
        "direct" => {
            let known = |group: &FileGroup| {
                let words = |direct: &bool| if *direct { "direct" } else { "buffered" }.to_owned();
                Side::of(group.direct, words, group.reason("direct"))
            };
            judge(captured, job, known, |one, other| equal(one == other))
        }
        "sizes" => judge(captured, job, sizes, alike_sizes),
        "offsets" => judge(captured, job, offsets, |one, other| alike(one, other)),
        "mix" => {
            let known = |group: &FileGroup| {
                let words = |share: &f64| format!("{} reads", percent(*share));
                Side::of(group.read_share(), words, "there are no reads or writes")
            };
            judge(captured, job, known, |one, other| 1.0 - (one - other).abs())
        }
        "sync" => {
            judge(captured, job, sync, |one, other| equal(one.0 == other.0) * ratio(one.1, other.1))
        }
        _ => {
            let known = |group: &FileGroup| {
                Side::of(group.depth, |depth| format!("{depth:.1}"), group.reason("depth"))
            };
            judge(captured, job, known, |one, other| ratio(*one, *other))
        }
    }
}

/// The smaller by the larger.
fn ratio(one: f64, other: f64) -> f64 {
    if one == other { 1.0 } else { one.min(other).max(0.0) / one.max(other) }
}

/// Calls of one size.
type Sizes = BTreeMap<u64, f64>;

/// Sizes of reads and of writes as shares of their direction, and how many there are of each.
type BothSizes = [(Sizes, u64); 2];

fn sizes(group: &FileGroup) -> Side<BothSizes> {
    let of = |sizes: &[(u64, u64)], calls: u64| {
        let listed: u64 = sizes.iter().map(|(_, calls)| calls).sum();
        // What is not listed is like nothing of the other side.
        let all = calls.max(listed).max(1) as f64;
        let sizes = sizes.iter().map(|(bytes, calls)| (*bytes, *calls as f64 / all));
        (sizes.collect::<Sizes>(), calls)
    };
    let value = [of(&group.read_sizes, group.reads), of(&group.write_sizes, group.writes)];
    let told = value.iter().all(|(sizes, calls)| *calls == 0 || !sizes.is_empty());
    let words = |value: &BothSizes| {
        let most = |(sizes, _): &(Sizes, u64)| {
            let most = sizes.iter().max_by(|a, b| a.1.total_cmp(b.1));
            most.map(|(size, share)| format!("{} in {}", percent(*share), bytes(*size)))
        };
        value.iter().filter_map(most).collect::<Vec<_>>().join(", ")
    };
    let reason = group.reason("block_bytes");
    Side::of(told.then_some(value), words, reason)
}

/// Each direction for itself, by how often the captured side used it.
fn alike_sizes(one: &BothSizes, other: &BothSizes) -> f64 {
    let calls: u64 = one.iter().map(|(_, calls)| calls).sum();
    let both = one.iter().zip(other);
    both.map(|((own, calls), (others, _))| {
        let common: f64 =
            own.iter().map(|(size, share)| share.min(*others.get(size).unwrap_or(&0.0))).sum();
        common * *calls as f64
    })
    .sum::<f64>()
        / calls.max(1) as f64
}

/// Shares that go on behind an end, that write the last place again, and the rest.
fn offsets(group: &FileGroup) -> Side<[f64; 3]> {
    let value = group.sequential.map(|sequential| {
        // Of all operations, as the others are.
        let writes = group.writes as f64 / group.operations().max(1) as f64;
        // An operation that begins both ways counts as going on.
        let again = (group.rewrite.unwrap_or(0.0) * writes).min(1.0 - sequential).max(0.0);
        [sequential, again, (1.0 - sequential - again).max(0.0)]
    });
    let words = |value: &[f64; 3]| {
        let mut text = format!("{} in order", percent(value[0]));
        if value[1] > 0.005 {
            text += &format!(", {} again", percent(value[1]));
        }
        text
    };
    Side::of(value, words, group.reason("sequential_share"))
}

fn alike(one: &[f64], other: &[f64]) -> f64 {
    1.0 - one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum::<f64>() / 2.0
}

/// The call and the writes that it makes sure of.
fn sync(group: &FileGroup) -> Side<(&'static str, f64)> {
    if group.writes == 0 {
        return Side { words: "none".to_owned(), value: Ok(("none", 1.0)) };
    }
    let value = match group.sync_call {
        "none" => ("none", 1.0),
        // How many there are, and not how many lie between two: that says little where they bunch.
        call => (call, group.writes as f64 / group.syncs.max(1) as f64),
    };
    let words = match value {
        ("none", _) => "none".to_owned(),
        (call, each) => format!("{call} each {}", short_number(each)),
    };
    Side { words, value: Ok(value) }
}
