//! The limit of a run in words: which stage it was and by how much, what the run would have been
//! without it, and what to change.
//!
//! The numbers come from [`flow::bottleneck`]; the advice is a table by stage and by source or
//! target.

mod advice;
mod short;

use base::finding::{Certainty, Finding, Rule, Unit};
use flow::bottleneck::{Analysis, Cause, LargerRing, StageShare};
use flow::run::{Command, Endpoint, RunReport, StageKind};

use crate::rules;
use advice::{ON_CORE, SMALL_FILE_BYTES, advice};
use base::format::{duration, percent, rate, size};
use base::rounding::Rounding;
pub(crate) use short::short;

/// Changes of volume that took less are not reported.
const CHANGES_WORTH_NAMING_SECONDS: f64 = 0.1;

/// Smallest share of a stage's time for which the final synchronisation is reported.
const SYNCHRONISE_WORTH_NAMING: f64 = 0.1;
/// Smallest share of a stage's time for which the program at the other end is reported.
const HIDDEN_WORTH_NAMING: f64 = 0.1;
/// Smallest share of the run that a stage must wait for cores of other programs to be reported.
const OTHERS_WORTH_NAMING: f64 = 0.05;
/// Smallest share of the disk's bytes for which other programs are reported.
const DISK_SHARE_WORTH_NAMING: f64 = 0.1;

/// Share of the run from which on the tape's winding, labels and changes are the result.
const APART_SHARE: f64 = 0.5;

/// What the tape took of a run in which the stages hardly ran, each with its seconds: empty for any
/// other run.
fn apart(run: &RunReport) -> Vec<(&'static str, f64)> {
    let wound_seconds = run.ready_seconds - run.label_seconds + run.winding_seconds;
    let apart_seconds = wound_seconds + run.label_seconds + run.change_seconds;
    if apart_seconds < APART_SHARE * run.seconds {
        return Vec::new();
    }
    let parts = [
        ("winding", wound_seconds),
        (read_first(run), run.label_seconds),
        ("changes of volume", run.change_seconds),
        ("flushing", run.synchronise_seconds),
    ];
    parts.into_iter().filter(|(_, seconds)| *seconds >= CHANGES_WORTH_NAMING_SECONDS).collect()
}

/// `winding took 6.42 s, flushing 274 ms`, where the stages hardly ran.
fn apart_clause(run: &RunReport) -> Option<String> {
    let parts = apart(run);
    let (first, rest) = parts.split_first()?;
    let mut clause = format!("{} took {}", first.0, duration(first.1));
    for (what, seconds) in rest {
        clause.push_str(&format!(", {what} {}", duration(*seconds)));
    }
    Some(clause)
}

/// What Takeup reads of a tape before the data.
fn read_first(run: &RunReport) -> &'static str {
    if run.source == Endpoint::Tape { "reading labels and index" } else { "reading the label" }
}

/// What bounds the claim: changes of volume, winding, and other programs that show in the numbers
/// but are not the limit.
fn caveat(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    let mut caveats = Vec::new();
    if run.change_seconds >= CHANGES_WORTH_NAMING_SECONDS {
        let took = duration(run.change_seconds);
        caveats.push(format!("changes of volume took {took} of it, outside the stages"));
    }
    if run.ready_seconds + run.winding_seconds >= CHANGES_WORTH_NAMING_SECONDS {
        let wound_seconds = run.ready_seconds - run.label_seconds + run.winding_seconds;
        let (wound, read) = (duration(wound_seconds.max(0.0)), duration(run.label_seconds));
        let what = read_first(run);
        caveats
            .push(format!("winding took {wound} of it and {what} {read}, both outside the stages"));
    }
    let waited_share = stage.core_wait_share * stage.busy_share;
    let others_are_more = analysis.others_share > analysis.processor_share;
    if analysis.cause != Cause::Processor && others_are_more && waited_share >= OTHERS_WORTH_NAMING
    {
        let (theirs, wait) = (percent(analysis.others_share), percent(stage.core_wait_share));
        let name = stage.kind;
        caveats.push(format!(
            "other programs used {theirs} of the cores, and {name} waited for a core {wait} of its \
             time"
        ));
    }
    if let Some(theirs) = others_on_disk(analysis, stage, run) {
        caveats.push(format!("other programs moved {} on that disk meanwhile", size(theirs)));
    }
    (!caveats.is_empty()).then(|| caveats.join(", and "))
}

/// Bytes that other programs moved on the disk that was the limit, if enough to report.
fn others_on_disk(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<u64> {
    let (theirs, own) = match stage.kind {
        StageKind::Scan | StageKind::Read => (run.others_on_source_bytes?, run.source_bytes),
        StageKind::Write => (run.others_on_target_bytes?, run.target_bytes),
        StageKind::Create => (run.others_on_target_bytes?, run.source_bytes),
        _ => return None,
    };
    let waits = stage.on_core_share < ON_CORE && analysis.cause != Cause::Processor;
    let share = theirs as f64 / (theirs.saturating_add(own) as f64).max(1.0);
    (waits && share >= DISK_SHARE_WORTH_NAMING).then_some(theirs)
}

fn rule(cause: Cause) -> &'static Rule {
    match cause {
        Cause::Unknown => &rules::UNKNOWN,
        Cause::Stage => &rules::STAGE,
        Cause::FewThreads => &rules::FEW_THREADS,
        Cause::Source => &rules::SOURCE,
        Cause::RateLimit => &rules::RATE_LIMIT,
        Cause::Processor => &rules::PROCESSOR,
        Cause::Turns => &rules::TURNS,
    }
}

/// Describes an analysis in words.
pub fn explain(analysis: &Analysis, run: &RunReport) -> Finding {
    let stage = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
    let (Some(stage), false) = (stage, analysis.cause == Cause::Unknown) else {
        let limit = if analysis.stages.is_empty() {
            "nothing was measured, so no limit can be named".to_owned()
        } else if let Some(apart) = apart_clause(run) {
            let whole = duration(run.seconds);
            return Finding::new(
                &rules::UNKNOWN,
                Certainty::Measured,
                format!("no stage was the limit: of {whole} {apart}"),
            )
            .with_number("run", run.seconds, Unit::Seconds);
        } else {
            "the run was too short to say what its limit was".to_owned()
        };
        return Finding::new(&rules::UNKNOWN, Certainty::Unknown, limit);
    };
    let mut what = limit_sentence(analysis, stage, run);
    let of_file = seconds_of_file(stage, run);
    if let Some(seconds) = of_file {
        what.push_str(&format!("; {}", file_sentence(seconds, run)));
    }
    let found = Finding {
        caveat: caveat(analysis, stage, run),
        gain: gain(analysis, stage, run),
        action: advice(analysis, stage, run),
        ..Finding::new(rule(analysis.cause), Certainty::Measured, what)
    };
    let found = match of_file {
        Some(seconds) => found.with_number("file_at_most", seconds, Unit::Seconds),
        None => found,
    };
    found
        .with_number("busy", stage.busy_share, Unit::Share)
        .with_number("run", analysis.seconds, Unit::Seconds)
        .with_number("without", analysis.seconds_without, Unit::Seconds)
        .with_number("processor", analysis.processor_share, Unit::Share)
        .with_number("other_programs", analysis.others_share, Unit::Share)
}

/// Seconds of a reader for each small file, its bytes included. That is an upper bound on the fixed
/// cost of a file; separating the two needs files of several sizes.
fn seconds_of_file(stage: &StageShare, run: &RunReport) -> Option<f64> {
    let is_asked = stage.kind == StageKind::Read && run.command == Command::Backup;
    let busy = stage.busy_seconds * stage.threads as f64;
    (is_asked && is_of_small_files(run)).then(|| busy / run.files as f64)
}

fn file_sentence(seconds: f64, run: &RunReport) -> String {
    format!(
        "each file takes a reader {}, including {} of data on average: the fixed cost of a file is \
         at most that",
        Rounding::digits(3).seconds(seconds),
        size(run.source_bytes / run.files.max(1))
    )
}

fn is_of_small_files(run: &RunReport) -> bool {
    run.files > 0 && run.source_bytes as f64 / run.files as f64 <= SMALL_FILE_BYTES
}

fn limit_sentence(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> String {
    let name = stage.kind;
    let share = percent(stage.busy_share);
    let whole = duration(analysis.seconds);
    let next = next_clause(analysis);
    match analysis.cause {
        Cause::Unknown => String::new(),
        Cause::Stage => {
            let rate = rate_clause(stage);
            let end = synchronise_clause(stage, run);
            let hidden = hidden_clause(stage, run);
            format!("{name} was the limit: busy for {share} of {whole}{hidden}{rate}{end}{next}")
        }
        Cause::FewThreads => {
            let (threads, share) = (stage.threads, percent(stage.occupied_share));
            format!(
                "{name} was the limit: at least one of its {threads} threads was busy for {share} \
                 of {whole}{next}"
            )
        }
        Cause::Source => format!(
            "the source was the limit: {name} waited for the {} and read it for {share} of \
             {whole}{next}",
            run.source
        ),
        Cause::RateLimit => {
            let limit = run.rate_limit_bytes_per_second.map_or(0.0, |limit| limit as f64);
            let limit = rate(limit);
            format!("the rate limit of {limit} was the limit: {name} was held back by it{next}")
        }
        Cause::Processor => processor_sentence(analysis, stage),
        Cause::Turns if analysis.larger_ring.is_some() => ring_sentence(analysis, run),
        Cause::Turns => format!(
            "no single bottleneck: the busiest stage, {name}, was busy for {share} of \
             {whole}{next}"
        ),
    }
}

/// The ring was too small for the data that arrived while the other end was slow.
fn ring_sentence(analysis: &Analysis, run: &RunReport) -> String {
    let ends: Vec<String> = run
        .stages
        .iter()
        .zip([true, false])
        .map(|(stage, is_first)| {
            let (for_what, waited) = if is_first {
                ("room", stage.blocked_seconds)
            } else {
                ("data", stage.starved_seconds)
            };
            let share = percent(waited / run.seconds.max(f64::MIN_POSITIVE));
            format!("{} waited for {for_what} {share} of the time", stage.kind)
        })
        .collect();
    format!(
        "the ring of {} was the limit, too small for the bursts: in {} {}",
        size(run.ring_bytes),
        duration(analysis.seconds),
        ends.join(", ")
    )
}

fn processor_sentence(analysis: &Analysis, stage: &StageShare) -> String {
    // Stages that hardly use the processor are not named.
    const WORTH_NAMING: f64 = 0.05;
    let worth = |stage: &&StageShare| stage.processor_share >= WORTH_NAMING;
    let names: Vec<&str> =
        analysis.stages.iter().filter(worth).map(|stage| stage.kind.name()).collect();
    let cores = match analysis.cores {
        0 | 1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let who = match names.as_slice() {
        [] => "the stages".to_owned(),
        [one] => (*one).to_owned(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    };
    let verb = if names.len() == 1 { "uses" } else { "share" };
    let share = percent(stage.processor_share);
    let name = stage.kind;
    let most = match names.len() {
        0 | 1 => String::new(),
        _ => format!(", {share} of that is {name}"),
    };
    if analysis.others_share < WORTH_NAMING {
        return format!("the processor was the limit: {who} {verb} {cores}{most}");
    }
    let theirs = percent(analysis.others_share);
    format!(
        "the processor was the limit: other programs use {theirs} of {cores}, {who} {verb} the \
         rest{most}"
    )
}

fn rate_clause(stage: &StageShare) -> String {
    let threads = match stage.threads {
        0 | 1 => String::new(),
        threads => format!(" on {threads} threads"),
    };
    if stage.bytes_per_second > 0.0 {
        format!(", at {}{threads}", rate(stage.bytes_per_second))
    } else {
        threads
    }
}

/// The part of a stage's time that belongs to the program at the other end.
fn hidden_clause(stage: &StageShare, run: &RunReport) -> String {
    if stage.kind != StageKind::Write || stage.hidden_share < HIDDEN_WORTH_NAMING {
        return String::new();
    }
    let share = percent(stage.hidden_share);
    format!(", {share} of that while the reader of the {} worked on earlier data", run.target)
}

/// The part of its time that the last stage waited until the medium had everything.
fn synchronise_clause(stage: &StageShare, run: &RunReport) -> String {
    let is_last = run.stages.last().is_some_and(|last| last.kind == stage.kind);
    if is_last && run.synchronise_seconds >= SYNCHRONISE_WORTH_NAMING * stage.busy_seconds {
        let took = duration(run.synchronise_seconds);
        let share = percent(run.synchronise_seconds / run.seconds.max(f64::MIN_POSITIVE));
        format!(", {share} of it flushing, {took} until all was on the medium")
    } else {
        String::new()
    }
}

/// Whether most of the writer's time came after the last block: the drive's buffer took the run.
fn is_mostly_flushing(stage: &StageShare, run: &RunReport) -> bool {
    run.target == Endpoint::Tape && run.synchronise_seconds >= stage.busy_seconds / 2.0
}

fn next_clause(analysis: &Analysis) -> String {
    match analysis.next.and_then(|index| analysis.stages.get(index)) {
        Some(next) => format!(", the next, {}, for {}", next.kind, percent(next.busy_share)),
        None => String::new(),
    }
}

/// How long the run would have taken without the limit, and what the overlap saved.
fn gain(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    if let (Cause::Turns, Some(ring)) = (analysis.cause, analysis.larger_ring) {
        return Some(ring_gain(&ring, analysis));
    }
    if !analysis.without_is_known {
        return Some(unknown_gain(analysis, stage, run));
    }
    let without = duration(analysis.seconds_without);
    let whole = duration(analysis.seconds);
    let whose = match analysis.cause {
        _ if analysis.is_foreign => "with the cores for itself".to_owned(),
        Cause::Source => "with a source that costs nothing".to_owned(),
        Cause::RateLimit => "without that limit".to_owned(),
        _ => format!("if {} cost nothing", stage.kind),
    };
    let saved = match analysis.saved_seconds {
        saved if saved < analysis.seconds * 0.01 => String::new(),
        saved => format!("; the overlap of the stages saved {}", duration(saved)),
    };
    let of_ring = analysis.larger_ring.map(|ring| format!("; {}", ring_gain(&ring, analysis)));
    let of_ring = of_ring.unwrap_or_default();
    Some(format!("{whose} the run would have taken {without} instead of {whole}{of_ring}{saved}"))
}

fn ring_gain(ring: &LargerRing, analysis: &Analysis) -> String {
    let (with, whole) = (duration(ring.seconds), duration(analysis.seconds));
    format!(
        "with a ring of {} the run would have taken {with} at best instead of {whole}",
        size(ring.bytes)
    )
}

/// The program at the other end always waited for this stage, so its own speed is unknown.
fn unknown_gain(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> String {
    let what = match (analysis.cause, stage.kind) {
        _ if analysis.is_foreign => "having the cores for itself".to_owned(),
        (Cause::RateLimit, _) => "a higher limit".to_owned(),
        (_, StageKind::Read) => "a faster source".to_owned(),
        (_, StageKind::Write) => "a faster target".to_owned(),
        (_, other) => format!("a faster {other}"),
    };
    let is_of_the_source = stage.kind == StageKind::Write && analysis.cause == Cause::Stage;
    let other = match run.target {
        _ if is_of_the_source => format!("program that fills the {}", run.source),
        Endpoint::Tape => "drive".to_owned(),
        target => format!("reader of the {target}"),
    };
    format!(
        "this run does not show what {what} would bring: the {other} always waited, so its own \
         speed is unknown"
    )
}

#[cfg(test)]
mod tests;
