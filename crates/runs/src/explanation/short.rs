//! The limit of a run in one short line: what it is in words of an administrator, and what to type.
//!
//! The long form ([`super::explain`]) has the numbers. Both follow the same analysis.

use std::borrow::Cow;

use base::format::{duration, percent, rate, size};
use flow::bottleneck::{Analysis, Cause, StageShare};
use flow::run::{Command, Endpoint, RunReport, StageKind};

use super::advice::{Gain, ON_CORE, compress_ways, gain, typed};
use super::{apart, is_mostly_flushing};

/// The limit and what is faster, for example `the processor (zstd); --compress zstd:1 is faster`.
/// `None` where the run does not show its limit.
pub(crate) fn short(analysis: &Analysis, run: &RunReport) -> Option<String> {
    // Where the stages hardly ran, none of them is the limit of the run, whichever was busiest.
    let longest = apart(run).into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    if let Some((what, seconds)) = longest.filter(|_| !analysis.stages.is_empty()) {
        let (whole, part) = (duration(run.seconds), duration(seconds));
        return Some(format!("none of the stages; of {whole} {what} took {part}"));
    }
    let stage = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
    let stage = stage.filter(|_| analysis.cause != Cause::Unknown)?;
    let limit = limit(analysis, stage, run);
    Some(match faster(analysis, stage, run) {
        Some(faster) => format!("{limit}; {faster}"),
        None => limit.into_owned(),
    })
}

/// The limit as a noun.
fn limit(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Cow<'static, str> {
    match analysis.cause {
        Cause::Unknown => "unknown".into(),
        Cause::RateLimit => {
            let limit = run.rate_limit_bytes_per_second.map_or(0.0, |limit| limit as f64);
            format!("--rate-limit, {}", rate(limit)).into()
        }
        Cause::Source => match run.source {
            Endpoint::Pipe | Endpoint::Stream => "the program that fills the pipe".into(),
            source => format!("the {source} that is read").into(),
        },
        Cause::Turns if analysis.larger_ring.is_some() => {
            format!("the ring of {}, too small for the bursts", size(run.ring_bytes)).into()
        }
        Cause::Turns => {
            let (name, share) = (stage.kind, percent(stage.busy_share));
            format!("no stage alone; {name} was busy most, {share} of the time").into()
        }
        Cause::Processor if analysis.is_foreign => {
            let theirs = percent(analysis.others_share);
            format!("the processor, used by other programs ({theirs})").into()
        }
        Cause::Processor => format!("the processor ({})", work(stage, run)).into(),
        Cause::Stage | Cause::FewThreads => limit_of_stage(stage, run),
    }
}

fn limit_of_stage(stage: &StageShare, run: &RunReport) -> Cow<'static, str> {
    let is_computing = stage.on_core_share >= ON_CORE;
    let device = match (stage.kind, run.command) {
        (StageKind::Write, _) if is_mostly_flushing(stage, run) => {
            return "the drive, which emptied its buffer at the end".into();
        }
        (StageKind::Write, _) => end_of(run.target, "target"),
        (StageKind::Create, _) => Cow::Borrowed("the disk of the restored files"),
        (StageKind::Compare, _) => Cow::Borrowed("the disk of the live files"),
        (StageKind::Scan, _) | (StageKind::Read, Command::Backup) => {
            Cow::Borrowed("the disk of the tree")
        }
        (StageKind::Read, Command::Pipe) => end_of(run.source, "source"),
        (StageKind::Read, _) => end_of(run.source, "archive"),
        // The others only compute.
        _ => return format!("the processor ({})", work(stage, run)).into(),
    };
    // A drive that is written to is the limit, whatever its driver takes of a core.
    if is_computing && !matches!(run.endpoint(), Endpoint::Tape) {
        return format!("the processor ({})", work(stage, run)).into();
    }
    device
}

/// The device or program at one end of a run.
fn end_of(end: Endpoint, role: &str) -> Cow<'static, str> {
    match end {
        Endpoint::Tape => "the tape drive".into(),
        Endpoint::Pipe | Endpoint::Stream if role == "target" => {
            "the program that reads the pipe".into()
        }
        Endpoint::Pipe | Endpoint::Stream => "the program that fills the pipe".into(),
        Endpoint::CharacterDevice => format!("the device that is the {role}").into(),
        _ => format!("the disk of the {role}").into(),
    }
}

/// What a stage does, as a noun.
fn work(stage: &StageShare, run: &RunReport) -> Cow<'static, str> {
    let method = run.compression.split(':').next().unwrap_or_default();
    match stage.kind {
        StageKind::Compress | StageKind::Decompress if method == "none" => "compression".into(),
        StageKind::Compress | StageKind::Decompress => method.to_owned().into(),
        StageKind::Scan => "listing folders".into(),
        StageKind::Read if run.command == Command::Backup => "reading files".into(),
        StageKind::Read => "copying".into(),
        StageKind::Hash => "checksums".into(),
        StageKind::Parse => "parsing the archive".into(),
        StageKind::Create => "creating files".into(),
        StageKind::Compare => "comparing files".into(),
        StageKind::Write => "writing".into(),
        other => other.name().into(),
    }
}

/// What to type, or where to look, if something would be faster.
fn faster(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    if analysis.is_foreign {
        return None;
    }
    if let Some(ring) = analysis.larger_ring.filter(|_| analysis.cause == Cause::Turns) {
        return Some(format!("--ring {} is faster", typed(ring.bytes)));
    }
    let option = match (analysis.cause, stage.kind) {
        (Cause::Turns | Cause::Source | Cause::Unknown, _) => return None,
        (Cause::RateLimit, _) => "a higher one".to_owned(),
        (_, StageKind::Compress) => {
            compress_ways(analysis, stage, run).iter().find_map(|way| way.typed())?
        }
        (_, StageKind::Hash)
            if run.command != Command::Backup
                && analysis.cause == Cause::Stage
                && stage.threads < analysis.cores as u64 =>
        {
            "more --threads".to_owned()
        }
        _ => return None,
    };
    let verb = if option.ends_with("threads") { "are" } else { "is" };
    match gain(analysis, run) {
        Gain::Known => Some(format!("{option} {verb} faster")),
        Gain::Unknown => Some(format!("{option} may be faster")),
        Gain::None { as_long } => Some(format!("{as_long} takes as long")),
    }
}
