//! Advice on the limit of a run: a table by stage and by source or target.

use flow::bottleneck::{Analysis, Cause, RATE_LIMITED_STAGE, StageShare};
use flow::run::{Command, DiskOrder, Endpoint, RunReport, StageKind};

use super::{is_mostly_flushing, is_of_small_files, others_on_disk};
use base::format::{count, counted, percent};

/// Smallest share of the run that is worth reporting as a gain.
const GAIN_WORTH_NAMING: f64 = 0.05;
/// How advice to check a program at one end begins.
const LOOK_AT: &str = "look at ";
/// With fewer pieces, compression hardly overlaps with the stages in front of it.
const PIECES_TO_OVERLAP: u64 = 4;
/// Share of the run in which the disk had requests, from which on the disk itself is the limit.
const DISK_BUSY_SHARE: f64 = 0.9;
/// What a disk without heads takes at most for a file, and for its bytes. Heads that choose among
/// many requests take two milliseconds for a file (`docs/design/read-order.md`).
const FILE_SECONDS_WITHOUT_HEADS: f64 = 0.5e-3;
const BYTES_PER_SECOND_WITHOUT_HEADS: f64 = 100e6;
/// Writing without compression must take less than this share of the run to be worth proposing.
const NONE_IS_FASTER: f64 = 0.9;
/// Share of the run that both ends of a ring must wait for it, where nothing else shows that the
/// ring is small.
const RING_WAITS_SHARE: f64 = 0.2;
/// Share of a stage's busy time on a core, from which on the stage counts as computing.
pub(super) const ON_CORE: f64 = 0.7;
/// Files of this mean size (bytes) and less are small: opening them costs more than reading.
pub(super) const SMALL_FILE_BYTES: f64 = 128e3;

/// Advice on the limit, and the ring where a larger one would help, too.
pub(super) fn advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> Option<String> {
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
            format!("too little data to tell: {winding}opening and closing took most of the time")
        }
        Cause::Turns => return turns_advice(analysis, run),
        Cause::Processor if analysis.is_foreign => {
            if run.command == Command::Pipe {
                return Some("the programs of the pipeline need more or faster cores".to_owned());
            }
            if !analysis.without_is_known {
                return Some(
                    "other programs use the cores; this run does not show whether it would be \
                     faster without them"
                        .to_owned(),
                );
            }
            "other programs use the cores: run it when they are idle, or raise its priority (nice)"
                .to_owned()
        }
        _ if others_on_disk(analysis, stage, run).is_some() => {
            "other programs use that disk: run it when they are idle".to_owned()
        }
        Cause::Processor | Cause::Stage | Cause::FewThreads => {
            return Some(as_sure_as_known(stage_advice(analysis, stage, run), analysis, run));
        }
    };
    Some(text)
}

/// The run that shows which end is the slower one, where this run does not.
fn see_first(run: &RunReport) -> String {
    let what = if run.command == Command::Pipe { "source" } else { "tree" };
    format!("measure the {what} alone first: --to /dev/null")
}

/// What a faster bottleneck would bring.
pub(super) enum Gain {
    /// A shorter run.
    Known,
    /// The run does not show it.
    Unknown,
    /// Nothing: the rest of the run takes as long.
    None {
        /// What takes as long.
        as_long: &'static str,
    },
}

/// A faster bottleneck helps only as far as the rest of the run is shorter.
pub(super) fn gain(analysis: &Analysis, run: &RunReport) -> Gain {
    if !analysis.without_is_known {
        return Gain::Unknown;
    }
    let gained = analysis.seconds - analysis.seconds_without;
    match analysis.next.and_then(|index| analysis.stages.get(index)) {
        Some(next) if gained < GAIN_WORTH_NAMING * analysis.seconds => Gain::None {
            as_long: match run.rate_limit_bytes_per_second {
                Some(_) if next.kind == RATE_LIMITED_STAGE => "the rate limit or the target",
                _ => next.kind.name(),
            },
        },
        _ => Gain::Known,
    }
}

/// Where the rest takes as long, this promises nothing; where its time is unknown, it says "may".
fn as_sure_as_known(text: String, analysis: &Analysis, run: &RunReport) -> String {
    match gain(analysis, run) {
        Gain::Unknown if text.contains(LOOK_AT) => see_first(run),
        Gain::Unknown => text.replace("would help", "may help"),
        Gain::None { as_long } => {
            format!("no change to this stage alone would help: {as_long} takes as long")
        }
        Gain::Known => text,
    }
}

/// Whether all data fit into the ring, and the stages together were busy for less than half of the
/// run: the rest was setup.
fn is_mostly_opening(analysis: &Analysis, run: &RunReport) -> bool {
    let busy: f64 = analysis.stages.iter().map(|stage| stage.busy_seconds).sum();
    run.archive_bytes <= run.ring_bytes && busy < analysis.seconds / 2.0
}

/// Proposes a ring where a replay of the run used one, or where both ends waited for it.
fn turns_advice(analysis: &Analysis, run: &RunReport) -> Option<String> {
    if let Some(ring) = analysis.larger_ring {
        return Some(format!("--ring {}", typed(ring.bytes)));
    }
    if let Some(pieces) = run.compressed_pieces.filter(|pieces| *pieces < PIECES_TO_OVERLAP) {
        return Some(format!(
            "compression had only {}, too few to overlap with reading: a longer run overlaps more",
            counted(pieces, "piece", "pieces")
        ));
    }
    let share = |seconds: f64| seconds / run.seconds.max(f64::MIN_POSITIVE);
    // The last stage waits for a rate limit, not for room; names of files do not go through the
    // ring.
    let front = run.stages.len().saturating_sub(1);
    let fills = run.stages[..front].iter().filter(|it| it.kind != StageKind::Scan);
    let waits = fills.map(|it| share(it.blocked_seconds));
    let blocked = waits.fold(0.0, f64::max);
    let starved = run.stages.last().map_or(0.0, |it| share(it.starved_seconds));
    let holds_all = run.archive_bytes <= run.ring_bytes;
    if run.command == Command::Pipe || holds_all || blocked.min(starved) < RING_WAITS_SHARE {
        return None;
    }
    Some(format!(
        "a larger --ring may help: stages waited for room in it {} of the time, and for data {}",
        percent(blocked),
        percent(starved)
    ))
}

/// Bytes in the form that an option accepts.
pub(super) fn typed(bytes: u64) -> String {
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
        StageKind::Parse => "one thread parses the archive: a faster core would help".to_owned(),
        StageKind::Create => {
            if on_core {
                "more cores would help: every file is created, filled and closed".to_owned()
            } else {
                "the target file system cannot write faster: a faster disk would help".into()
            }
        }
        StageKind::Compare if on_core => {
            "one thread reads the live files and compares them: a faster core would help".into()
        }
        StageKind::Compare => {
            "the disk of the live files cannot read faster: a faster one would help".into()
        }
        StageKind::Write if is_mostly_flushing(stage, run) => {
            "most of that time the drive emptied its buffer after the last block: a longer run \
             shows better how it streams"
                .to_owned()
        }
        StageKind::Write if run.target == Endpoint::Tape && run.times_ran_empty > 0 => format!(
            "the drive writes as fast as it can while data arrive, but the ring ran empty {}: a \
             faster source or a larger --ring avoids the stops",
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
            "one thread hashes each file, and few files come at a time: a faster core would help"
        }
        _ if stage.threads < analysis.cores as u64 => "more --threads would help",
        _ => "more or faster cores would help",
    }
}

/// What the readers of a tree wait for. A run reads in one way, so it cannot show whether another
/// setting would help, and this proposes none.
fn disk_advice(stage: &StageShare, run: &RunReport) -> String {
    let busy = run.source_disk_seconds.map(|seconds| seconds / run.seconds.max(f64::MIN_POSITIVE));
    match (busy, run.source_disk_in_flight) {
        (Some(busy), Some(in_flight))
            if busy >= DISK_BUSY_SHARE * stage.occupied_share.min(1.0) && busy > 0.0 =>
        {
            let order = run.disk_order.filter(|order| order.jumps_by_name > 0);
            let what = format!(
                "the disk of the tree had requests for {} of the run, {in_flight:.1} at once{}",
                percent(busy.min(1.0)),
                order.as_ref().map(disk_order_clause).unwrap_or_default()
            );
            match disk_ms_of_a_file(run).filter(|_| run.is_by_name) {
                Some(ms) => format!(
                    "{what}, {ms:.1} ms for each file: without --read-order name takeup reads the \
                     files of a slow disk in its order"
                ),
                None => format!(
                    "{what}: a faster disk would help; this run does not show whether a setting \
                     would"
                ),
            }
        }
        (Some(busy), _) => format!(
            "the disk of the tree had requests for only {} of the run; this run does not show \
             what else the readers waited for",
            percent(busy.min(1.0))
        ),
        _ => {
            "the readers waited for the file system of the tree; this run does not show whether a \
              setting would help"
                .to_owned()
        }
    }
}

/// How long the disk had requests for each file, if that is longer than what has no heads takes.
fn disk_ms_of_a_file(run: &RunReport) -> Option<f64> {
    let seconds = run.source_disk_seconds?;
    let files = run.files as f64;
    let without_heads = files * FILE_SECONDS_WITHOUT_HEADS
        + run.source_bytes as f64 / BYTES_PER_SECOND_WITHOUT_HEADS;
    (files > 0.0 && seconds > without_heads).then(|| seconds / files * 1e3)
}

/// How far files that were read in the order of the disk lie from each other there. How much of the
/// time that took is not known: the drive chooses among the requests that it has.
fn disk_order_clause(order: &DiskOrder) -> String {
    format!(
        ", and {} came in its order, with {} instead of {}",
        counted(order.files, "file", "files"),
        counted(order.jumps, "jump", "jumps"),
        count(order.jumps_by_name)
    )
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
        (_, false) => "the device of the archive cannot read faster: a faster one would help",
    }
}

fn write_advice(on_core: bool, run: &RunReport) -> &'static str {
    match (run.target, on_core) {
        (Endpoint::Pipe | Endpoint::Stream, true) => {
            "the cost is in copying into the pipe: write to a file to avoid it"
        }
        (Endpoint::Pipe | Endpoint::Stream, false) => {
            "the reader of the pipe is slow: look at that program"
        }
        (Endpoint::Tape, _) => "the drive writes as fast as it can, as it should",
        (Endpoint::CharacterDevice, _) => {
            "the device cannot take data faster: larger blocks (--block-size) may help"
        }
        (_, true) => "the cost is in copying to the page cache: a faster core would help",
        (_, false) => {
            "the disk of the target cannot write faster: a faster one or stronger compression \
             would help"
        }
    }
}

/// A way to compress faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompressWay {
    /// More threads, up to this number.
    Threads(usize),
    /// Another method.
    Zstd,
    /// The lowest level.
    LowerLevel,
    Cores,
    /// No compression.
    None,
}

impl CompressWay {
    /// The option as it is typed, where there is one.
    pub(super) fn typed(self) -> Option<String> {
        Some(match self {
            CompressWay::Threads(cores) => format!("--compress-threads {cores}"),
            CompressWay::Zstd => "--compress zstd".to_owned(),
            CompressWay::LowerLevel => "--compress zstd:1".to_owned(),
            CompressWay::Cores => return None,
            CompressWay::None => "--compress none".to_owned(),
        })
    }

    fn name(self) -> String {
        match (self, self.typed()) {
            (CompressWay::LowerLevel, Some(typed)) => format!("a lower level ({typed})"),
            (_, Some(typed)) => typed,
            (_, None) => "more cores".to_owned(),
        }
    }
}

/// The ways to compress faster that this run shows to be open.
pub(super) fn compress_ways(
    analysis: &Analysis,
    stage: &StageShare,
    run: &RunReport,
) -> Vec<CompressWay> {
    let (method, level) = run.compression.split_once(':').unwrap_or((&run.compression, ""));
    let level = level.parse::<i32>().unwrap_or(0);
    // Enough pieces for more threads, at least two for each core.
    let has_pieces = run.compressed_pieces.is_none_or(|pieces| pieces >= 2 * analysis.cores as u64);
    let has_cores = analysis.processor_share < 0.75 && stage.threads < analysis.cores as u64;
    let mut ways = Vec::new();
    if has_cores && has_pieces {
        ways.push(CompressWay::Threads(analysis.cores));
    }
    match method {
        "gzip" => ways.push(CompressWay::Zstd),
        "zstd" if level > 1 => ways.push(CompressWay::LowerLevel),
        _ => {}
    }
    if !has_cores && has_pieces {
        ways.push(CompressWay::Cores);
    }
    if none_is_faster(analysis, run) {
        ways.push(CompressWay::None);
    }
    ways
}

fn compress_advice(analysis: &Analysis, stage: &StageShare, run: &RunReport) -> String {
    let ways = compress_ways(analysis, stage, run);
    let mut ways: Vec<String> = ways.into_iter().map(CompressWay::name).collect();
    let Some(last) = ways.pop() else { return "a faster core would help".to_owned() };
    match ways.as_slice() {
        [] => format!("{last} would help"),
        ways => format!("{} or {last} would help", ways.join(", ")),
    }
}

/// Whether the target would take the uncompressed data in less time than this run took. Unknown for
/// programs and drives, which may keep to a clock.
fn none_is_faster(analysis: &Analysis, run: &RunReport) -> bool {
    let grows = run.archive_bytes as f64 / run.target_bytes.max(1) as f64;
    let grows = if run.target_bytes == 0 { 1.0 } else { grows };
    let write = analysis.stages.iter().find(|stage| stage.kind == StageKind::Write);
    let takes = write.map_or(0.0, |stage| stage.busy_seconds * grows);
    let is_known = !matches!(run.target, Endpoint::Pipe | Endpoint::Stream | Endpoint::Tape);
    is_known && takes < NONE_IS_FASTER * analysis.seconds
}
