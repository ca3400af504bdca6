//! The limit of a run in words: which stage it was and by how much, what the run would have been
//! without it, and what to change.
//!
//! The numbers come from [`flow::bottleneck`]; the advice is a table by stage and by what is at its
//! other end.

use finding::{Certainty, Finding, Rule, Unit};
use flow::bottleneck::{Analysis, Cause, LargerRing, RATE_LIMITED_STAGE, StageShare};
use flow::run::{Command, Endpoint, RunReport, StageKind};

use crate::format::{counted, duration, percent, rate, size};
use crate::rounding::Rounding;
use crate::rules;

/// Changes of volume that took less are not worth a word.
const CHANGES_WORTH_NAMING_SECONDS: f64 = 0.1;

/// Share of a stage's time that the end of the run may take without a word.
const SYNCHRONISE_WORTH_NAMING: f64 = 0.1;
/// Share of a stage's time that the program behind it may take without a word.
const HIDDEN_WORTH_NAMING: f64 = 0.1;
/// Share of the run that a stage waited for cores that others had: from here on it is named.
const OTHERS_WORTH_NAMING: f64 = 0.05;
/// Share of a run that both ends of a ring must wait for it, where nothing else shows that it is
/// small.
const RING_WAITS_SHARE: f64 = 0.2;
/// What is not compressed has to be written in this share of the run to be worth it.
const NONE_IS_FASTER: f64 = 0.9;
/// Share of the run in which a disk had requests, from which on it is the limit itself.
const DISK_BUSY_SHARE: f64 = 0.9;
/// Share of what passes a disk that is worth one.
const DISK_SHARE_WORTH_NAMING: f64 = 0.1;

/// Fewer pieces of compression hardly overlap with what is in front of them.
const PIECES_TO_OVERLAP: u64 = 4;

/// What advice about a program at one end says.
const LOOK_AT: &str = "look at ";

/// Less of a run is no gain.
const GAIN_WORTH_NAMING: f64 = 0.05;

/// Share of a run from which on what a tape took is what the run is about.
const APART_SHARE: f64 = 0.5;

/// What a tape took of a run in which stages ran for next to nothing.
fn apart_clause(run: &RunReport) -> Option<String> {
    let wound_seconds = run.ready_seconds - run.label_seconds + run.winding_seconds;
    let apart_seconds = wound_seconds + run.label_seconds + run.change_seconds;
    if apart_seconds < (APART_SHARE * run.seconds).max(CHANGES_WORTH_NAMING_SECONDS) {
        return None;
    }
    let mut clause = format!("winding took {}", duration(wound_seconds.max(0.0)));
    let (label, changes) = (run.label_seconds, run.change_seconds);
    if label >= CHANGES_WORTH_NAMING_SECONDS {
        clause.push_str(&format!(", reading {} {}", read_first(run), duration(label)));
    }
    if changes >= CHANGES_WORTH_NAMING_SECONDS {
        clause.push_str(&format!(", changes of volume {}", duration(changes)));
    }
    Some(clause)
}

/// What is read of a tape before its data.
fn read_first(run: &RunReport) -> &'static str {
    if run.source == Endpoint::Tape { "labels and index" } else { "the label" }
}

/// What the limit is not said of: the changes of volume of the run, and what other programs did
/// that is seen in the numbers and not in the limit.
fn caveat(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    let mut caveats = Vec::new();
    if run.change_seconds >= CHANGES_WORTH_NAMING_SECONDS {
        let took = duration(run.change_seconds);
        caveats.push(format!("changes of volume took {took} of it and are no stage's"));
    }
    if run.ready_seconds + run.winding_seconds >= CHANGES_WORTH_NAMING_SECONDS {
        let wound_seconds = run.ready_seconds - run.label_seconds + run.winding_seconds;
        let (wound, read) = (duration(wound_seconds.max(0.0)), duration(run.label_seconds));
        let what = read_first(run);
        caveats.push(format!(
            "winding took {wound} of it, reading {what} {read}, and both are no stage's"
        ));
    }
    let waited_share = stage.core_wait_share * stage.busy_share;
    let others_are_more = analysis.others_share > analysis.processor_share;
    if analysis.cause != Cause::Processor && others_are_more && waited_share >= OTHERS_WORTH_NAMING
    {
        let (theirs, wait) = (percent(analysis.others_share), percent(stage.core_wait_share));
        let name = stage.kind;
        caveats.push(format!(
            "other programs took {theirs} of the cores, for which {name} waited {wait} of its time"
        ));
    }
    if let Some(theirs) = others_on_disk(analysis, stage, run) {
        caveats.push(format!("other programs moved {} on that disk meanwhile", size(theirs)));
    }
    (!caveats.is_empty()).then(|| caveats.join(", and "))
}

/// What others moved on the disk that was the limit, where that is worth a word.
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

/// Puts an analysis into words.
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
            );
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

/// What a small file takes of the time of a reader, its bytes included: the most that a file may
/// take however long it is. How much less that is, a run does not tell, for which files of several
/// sizes would have to be read apart.
fn seconds_of_file(stage: &StageShare, run: &RunReport) -> Option<f64> {
    let is_asked = stage.kind == StageKind::Read && run.command == Command::Backup;
    let busy = stage.busy_seconds * stage.threads as f64;
    (is_asked && is_of_small_files(run)).then(|| busy / run.files as f64)
}

fn file_sentence(seconds: f64, run: &RunReport) -> String {
    format!(
        "a file takes {} of a reader, its {} on average included, and at most that however long \
         it is",
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
                "{name} was the limit: some of its {threads} threads were busy for {share} of \
                 {whole}{next}"
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
            "no stage was the limit alone: the busiest, {name}, was busy for {share} of \
             {whole}{next}"
        ),
    }
}

/// The ring did not hold what came while the other end was slow.
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
    // Of those that hardly use the processor there is nothing to say.
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
    let others = if analysis.others_share >= WORTH_NAMING {
        format!(" with other programs, which take {}", percent(analysis.others_share))
    } else {
        String::new()
    };
    let share = percent(stage.processor_share);
    let name = stage.kind;
    let whose = match names.len() {
        0 | 1 => String::new(),
        _ => format!(", of the rest {name} takes {share}"),
    };
    let whose = if others.is_empty() && names.len() > 1 {
        format!(", {name} takes {share}")
    } else {
        whose
    };
    format!("the processor was the limit: {who} {verb} {cores}{others}{whose}")
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

/// What of its time is that of the program behind it.
fn hidden_clause(stage: &StageShare, run: &RunReport) -> String {
    if stage.kind != StageKind::Write || stage.hidden_share < HIDDEN_WORTH_NAMING {
        return String::new();
    }
    let share = percent(stage.hidden_share);
    format!(", {share} of that the reader of the {} with what it had been given", run.target)
}

/// What of its time a last stage did not write, but waited until the medium had all.
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

/// Whether a tape had most of its writer's time behind the last block: its buffer took the run.
fn is_mostly_flushing(stage: &StageShare, run: &RunReport) -> bool {
    run.target == Endpoint::Tape && run.synchronise_seconds >= stage.busy_seconds / 2.0
}

fn next_clause(analysis: &Analysis) -> String {
    match analysis.next.and_then(|index| analysis.stages.get(index)) {
        Some(next) => format!(", the next, {}, for {}", next.kind, percent(next.busy_share)),
        None => String::new(),
    }
}

/// What the run would have been without the limit, and what the overlap saved.
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

/// The program at the other end always had to wait for this stage.
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
        "what {what} would bring is not known: the {other} always waited, and so did not show its \
         own pace"
    )
}

/// From which share on the processor counts as what a stage waits for.
const ON_CORE: f64 = 0.7;
/// Files of this mean size and less are small: opening them costs more than reading.
const SMALL_FILE_BYTES: f64 = 128e3;

/// What to do about the limit, and the ring where a larger one brings something, too.
fn advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    let limit = advice_on_limit(analysis, stage, run);
    match (&limit, analysis.larger_ring) {
        (Some(text), Some(ring)) if analysis.cause != Cause::Turns => {
            Some(format!("{text}; --ring {}", typed(ring.bytes)))
        }
        _ => limit,
    }
}

fn advice_on_limit(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
    let text = match analysis.cause {
        Cause::Unknown => return None,
        Cause::RateLimit => {
            let text = "raise or drop --rate-limit to go faster".to_owned();
            return Some(as_sure_as_known(text, analysis, run));
        }
        Cause::Source => {
            let text = format!("look at what fills the {}", run.source);
            return Some(as_sure_as_known(text, analysis, run));
        }
        Cause::Turns if is_mostly_opening(analysis, run) => {
            let winding = if run.source == Endpoint::Tape { "winding, " } else { "" };
            format!("so little was moved that {winding}opening and closing took the time")
        }
        Cause::Turns => return turns_advice(analysis, run),
        Cause::Processor if analysis.is_foreign => {
            if run.command == Command::Pipe {
                return Some("the programs of the pipeline need more or faster cores".to_owned());
            }
            "other programs use the cores: run it when they do not, or let it go first with nice"
                .to_owned()
        }
        _ if others_on_disk(analysis, stage, run).is_some() => {
            "other programs use that disk: run it when they do not".to_owned()
        }
        Cause::Processor | Cause::Stage | Cause::FewThreads => {
            return Some(as_sure_as_known(stage_advice(analysis, stage, run), analysis, run));
        }
    };
    Some(text)
}

/// Which end is the slower one is not known: what shows it.
fn see_first(run: &RunReport) -> String {
    let what = if run.command == Command::Pipe { "source" } else { "tree" };
    format!("see first what the {what} gives alone: --to /dev/null")
}

/// A change of the stage that was the limit helps as far as what is left of the run is less: where
/// that is as long nothing is promised, and where it is not known nothing is certain.
fn as_sure_as_known(text: String, analysis: &Analysis, run: &RunReport) -> String {
    let gained = analysis.seconds - analysis.seconds_without;
    let next = analysis.next.and_then(|index| analysis.stages.get(index));
    match next {
        _ if !analysis.without_is_known && text.contains(LOOK_AT) => see_first(run),
        _ if !analysis.without_is_known => text.replace("would help", "may help"),
        Some(next) if gained < GAIN_WORTH_NAMING * analysis.seconds => {
            let as_long = match run.rate_limit_bytes_per_second {
                Some(_) if next.kind == RATE_LIMITED_STAGE => "the rate limit or what is behind it",
                _ => next.kind.name(),
            };
            format!("no change of it alone would help: {as_long} takes as long")
        }
        _ => text,
    }
}

/// Whether all that was moved fits into the ring, and the stages together were busy for less than
/// half of the run: what is left was none of their work.
fn is_mostly_opening(analysis: &Analysis, run: &RunReport) -> bool {
    let busy: f64 = analysis.stages.iter().map(|stage| stage.busy_seconds).sum();
    run.archive_bytes <= run.ring_bytes && busy < analysis.seconds / 2.0
}

/// A ring is proposed where it was played through, or where both ends were seen to wait for it.
fn turns_advice(analysis: &Analysis, run: &RunReport) -> Option<String> {
    if let Some(ring) = analysis.larger_ring {
        return Some(format!("--ring {}", typed(ring.bytes)));
    }
    if let Some(pieces) = run.compressed_pieces.filter(|pieces| *pieces < PIECES_TO_OVERLAP) {
        return Some(format!(
            "so little was archived that compression had {}, and began with each when that was \
             read: a longer run overlaps more",
            counted(pieces, "piece", "pieces")
        ));
    }
    let share = |seconds: f64| seconds / run.seconds.max(f64::MIN_POSITIVE);
    // The last one waits for a rate limit, and for no room.
    let front = run.stages.len().saturating_sub(1);
    let waits = run.stages[..front].iter().map(|it| share(it.blocked_seconds));
    let blocked = waits.fold(0.0, f64::max);
    let starved = run.stages.last().map_or(0.0, |it| share(it.starved_seconds));
    if run.command == Command::Pipe || blocked.min(starved) < RING_WAITS_SHARE {
        return None;
    }
    Some(format!(
        "a larger --ring may help: stages waited for room in it {} of the time, and for data {}",
        percent(blocked),
        percent(starved)
    ))
}

/// Bytes as an option takes them.
fn typed(bytes: u64) -> String {
    match bytes {
        whole if whole.is_multiple_of(1 << 20) => format!("{}M", whole >> 20),
        whole if whole.is_multiple_of(1 << 10) => format!("{}K", whole >> 10),
        other => other.to_string(),
    }
}

fn stage_advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> String {
    let on_core = stage.on_core_share >= ON_CORE || analysis.cause == Cause::Processor;
    match stage.kind {
        StageKind::Scan if on_core => {
            "the cost is in listing directories: fewer, larger ones or faster cores would help"
                .to_owned()
        }
        StageKind::Scan => {
            "a tree with fewer, larger directories or a faster disk would help".to_owned()
        }
        StageKind::Read if !on_core && run.command == Command::Backup => disk_advice(stage, run),
        StageKind::Read => read_advice(on_core, run).to_owned(),
        StageKind::Compress => compress_advice(analysis, stage, run),
        StageKind::Decompress => decompress_advice(run).to_owned(),
        StageKind::Hash => hash_advice(analysis, stage, run).to_owned(),
        StageKind::Parse => {
            "one thread goes through the archive: a faster core would help".to_owned()
        }
        StageKind::Create => {
            if on_core {
                "more cores would help: every file is created, filled and closed".to_owned()
            } else {
                "the file system of the tree takes no more: a faster disk would help".into()
            }
        }
        StageKind::Compare if on_core => {
            "one thread reads the live files and compares them: a faster core would help".into()
        }
        StageKind::Compare => {
            "the disk of the live files gives no more: a faster one would help".into()
        }
        StageKind::Write if is_mostly_flushing(stage, run) => {
            "most of that the drive emptied its buffer behind the last block: a longer run shows \
             more of how it streams"
                .to_owned()
        }
        StageKind::Write if run.target == Endpoint::Tape && run.times_ran_empty > 0 => format!(
            "the drive takes no more while it is given something, but the ring ran empty {}: a \
             faster source or a larger --ring spares it the stops",
            counted(run.times_ran_empty, "time", "times")
        ),
        StageKind::Write => write_advice(on_core, run).to_owned(),
        StageKind::Index
        | StageKind::Generate
        | StageKind::Check
        | StageKind::Io
        | StageKind::Other => {
            if on_core {
                "more or faster cores would help".to_owned()
            } else {
                "a faster device behind it would help".to_owned()
            }
        }
    }
}

fn decompress_advice(run: &RunReport) -> &'static str {
    match run.compression.split(':').next() {
        Some("gzip") => "more cores would help, or zstd for the next backup",
        _ => "more or faster cores would help",
    }
}

fn hash_advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> &'static str {
    match (run.command, analysis.cause) {
        (Command::Backup, _) => "more or faster cores would help",
        (_, Cause::FewThreads) => {
            "one thread hashes all of a file, and there are few at a time: a faster core would help"
        }
        _ if stage.threads < analysis.cores as u64 => "more --threads would help",
        _ => "more or faster cores would help",
    }
}

/// What the readers of a tree wait for. A run reads in one way, so it does not show what another
/// would bring, and no setting is proposed.
fn disk_advice(stage: &StageShare, run: &RunReport) -> String {
    let busy = run.source_disk_seconds.map(|seconds| seconds / run.seconds.max(f64::MIN_POSITIVE));
    match (busy, run.source_disk_in_flight) {
        (Some(busy), Some(in_flight))
            if busy >= DISK_BUSY_SHARE * stage.occupied_share.min(1.0) && busy > 0.0 =>
        {
            format!(
                "the disk of the tree had requests for {} of the run, {in_flight:.1} at once: a \
                 faster disk would help; whether a setting would, this run does not show",
                percent(busy.min(1.0))
            )
        }
        (Some(busy), _) => format!(
            "the disk of the tree had requests for {} of the run only; what else the readers \
             waited for is not known",
            percent(busy.min(1.0))
        ),
        _ => "the readers waited for the file system of the tree; whether a setting would help, \
              this run does not show"
            .to_owned(),
    }
}

fn read_advice(on_core: bool, run: &RunReport) -> &'static str {
    let small = is_of_small_files(run);
    match (run.command, on_core) {
        (Command::Backup, true) if small => {
            "the cost is in opening small files: more or faster cores would help"
        }
        (Command::Backup, true) => {
            "the cost is in copying from the page cache and in hashing: more or faster cores would \
             help"
        }
        (_, true) => "the cost is in copying: a faster core would help",
        (Command::Pipe, false) if run.source == Endpoint::Pipe => "look at what fills the pipe",
        (_, false) => "what holds the archive gives no more: a faster device would help",
    }
}

fn write_advice(on_core: bool, run: &RunReport) -> &'static str {
    match (run.target, on_core) {
        (Endpoint::Pipe | Endpoint::Stream, true) => {
            "the cost is in copying into the pipe: a file as the target saves that"
        }
        (Endpoint::Pipe | Endpoint::Stream, false) => {
            "the reader of the pipe is slow: look at that program"
        }
        (Endpoint::Tape, _) => "the drive takes no more, which is how it should be",
        (Endpoint::CharacterDevice, _) => {
            "the device takes no more: larger blocks (--block-size) may help"
        }
        (_, true) => "the cost is in copying to the page cache: a faster core would help",
        (_, false) => {
            "the disk of the target takes no more: a faster one or stronger compression would help"
        }
    }
}

fn compress_advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> String {
    let (method, level) = run.compression.split_once(':').unwrap_or((&run.compression, ""));
    let level = level.parse::<i32>().unwrap_or(0);
    // Pieces that more threads could share, each of them more than one.
    let has_pieces = run.compressed_pieces.is_none_or(|pieces| pieces >= 2 * analysis.cores as u64);
    let has_cores = analysis.processor_share < 0.75 && stage.threads < analysis.cores as u64;
    let spare_cores = has_cores && has_pieces;
    let mut ways = Vec::new();
    if spare_cores {
        ways.push(format!("--compress-threads {}", analysis.cores));
    }
    match method {
        "gzip" => ways.push("--compress zstd".to_owned()),
        "zstd" if level > 1 => ways.push("a lower level (--compress zstd:1)".to_owned()),
        _ => {}
    }
    if !has_cores && has_pieces {
        ways.push("more cores".to_owned());
    }
    if none_is_faster(analysis, run) {
        ways.push("--compress none".to_owned());
    }
    let Some(last) = ways.pop() else { return "a faster core would help".to_owned() };
    match ways.as_slice() {
        [] => format!("{last} would help"),
        ways => format!("{} or {last} would help", ways.join(", ")),
    }
}

/// Whether the target takes what is not compressed in less time than this run took. A program and a
/// drive may keep to a clock: of them that is not known.
fn none_is_faster(analysis: &Analysis, run: &RunReport) -> bool {
    let grows = run.archive_bytes as f64 / run.target_bytes.max(1) as f64;
    let grows = if run.target_bytes == 0 { 1.0 } else { grows };
    let write = analysis.stages.iter().find(|stage| stage.kind == StageKind::Write);
    let takes = write.map_or(0.0, |stage| stage.busy_seconds * grows);
    let is_known = !matches!(run.target, Endpoint::Pipe | Endpoint::Stream | Endpoint::Tape);
    is_known && takes < NONE_IS_FASTER * analysis.seconds
}

#[cfg(test)]
mod tests;
