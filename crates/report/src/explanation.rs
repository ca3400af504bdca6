//! The limit of a run in words: which stage it was and by how much, what the run would have been
//! without it, and what to change.
//!
//! The numbers come from [`flow::limit`]; the advice is a table by stage and by what is at its
//! other end.

use flow::limit::{Analysis, Limit, StageShare};

use crate::format::{duration, percent, rate};

/// What the advice depends on besides the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What was run.
    pub command: Command,
    /// What the first stage reads from, as the user knows it: "file", "pipe", "tree" ...
    pub source: &'a str,
    /// What the last stage writes to.
    pub target: &'a str,
    /// Compression as the user would write it: `zstd:3`, `gzip`, `none`.
    pub compression: &'a str,
    /// Mean size of a regular file, where there are any.
    pub mean_file_bytes: Option<f64>,
    /// The user's limit on the rate.
    pub rate_limit_bytes_per_second: Option<u64>,
    /// Whether the ring could hold all that was moved.
    pub volume: Volume,
}

/// What was moved, measured by the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// All of it would fit: the time went into opening, positioning and closing.
    FitsRing,
    /// More than that.
    MoreThanRing,
}

/// What was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A tree into an archive.
    Backup,
    /// An archive into a tree.
    Restore,
    /// An archive read back.
    Verify,
    /// The names in an archive.
    List,
    /// A stream through the ring.
    Pipe,
}

/// The words. Lowercase fragments without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Which stage was the limit, and by how much.
    pub limit: String,
    /// What it would have been without it, and what the overlap saved.
    pub numbers: Option<String>,
    /// What to change.
    pub advice: Option<String>,
}

/// Changes of volume that took less are not worth a word.
const CHANGES_WORTH_NAMING_SECONDS: f64 = 0.1;

impl Explanation {
    /// The same, said to be of the run without so many seconds of changes of volume.
    #[must_use]
    pub fn without_changes(mut self, seconds: f64) -> Explanation {
        if seconds >= CHANGES_WORTH_NAMING_SECONDS {
            let took = duration(seconds);
            self.limit.push_str(&format!("; changes of volume took {took} and are left out here"));
        }
        self
    }
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.limit)?;
        for more in [&self.numbers, &self.advice].into_iter().flatten() {
            write!(formatter, "; {more}")?;
        }
        Ok(())
    }
}

/// Puts an analysis into words.
pub fn explain(analysis: &Analysis, context: &Context<'_>) -> Explanation {
    let stage = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
    let (Some(stage), false) = (stage, analysis.limit == Limit::Unknown) else {
        let limit = if analysis.stages.is_empty() {
            "nothing was measured, so no limit can be named".to_owned()
        } else {
            "the run was too short to say what its limit was".to_owned()
        };
        return Explanation { limit, numbers: None, advice: None };
    };
    Explanation {
        limit: limit_sentence(analysis, stage, context),
        numbers: Some(numbers_sentence(analysis, stage)),
        advice: advice(analysis, stage, context),
    }
}

fn limit_sentence(analysis: &Analysis, stage: &StageShare, context: &Context<'_>) -> String {
    let name = stage.name;
    let share = percent(stage.busy_share);
    let whole = duration(analysis.seconds);
    let next = next_clause(analysis);
    match analysis.limit {
        Limit::Unknown => String::new(),
        Limit::Stage => {
            let rate = rate_clause(stage);
            format!("{name} was the limit: busy for {share} of {whole}{rate}{next}")
        }
        Limit::FewThreads => {
            let (threads, share) = (stage.threads, percent(stage.occupied_share));
            format!(
                "{name} was the limit: some of its {threads} threads were busy for {share} of \
                 {whole}{next}"
            )
        }
        Limit::Source => format!(
            "the source was the limit: {name} waited for the {} and read it for {share} of \
             {whole}{next}",
            context.source
        ),
        Limit::RateLimit => {
            let limit = context.rate_limit_bytes_per_second.map_or(0.0, |limit| limit as f64);
            let limit = rate(limit);
            format!("the rate limit of {limit} was the limit: {name} was held back by it{next}")
        }
        Limit::Processor => processor_sentence(analysis, stage),
        Limit::Turns => format!(
            "no stage was the limit alone: the busiest, {name}, was busy for {share} of \
             {whole}{next}"
        ),
    }
}

fn processor_sentence(analysis: &Analysis, stage: &StageShare) -> String {
    // Of those that hardly use the processor there is nothing to say.
    const WORTH_NAMING: f64 = 0.05;
    let worth = |stage: &&StageShare| stage.processor_share >= WORTH_NAMING;
    let names: Vec<&str> = analysis.stages.iter().filter(worth).map(|stage| stage.name).collect();
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
    let name = stage.name;
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

fn next_clause(analysis: &Analysis) -> String {
    match analysis.next.and_then(|index| analysis.stages.get(index)) {
        Some(next) => format!(", the next, {}, for {}", next.name, percent(next.busy_share)),
        None => String::new(),
    }
}

fn numbers_sentence(analysis: &Analysis, stage: &StageShare) -> String {
    let without = duration(analysis.seconds_without);
    let whole = duration(analysis.seconds);
    let whose = match analysis.limit {
        Limit::Source => "with a source that costs nothing".to_owned(),
        Limit::RateLimit => "without that limit".to_owned(),
        _ => format!("if {} cost nothing", stage.name),
    };
    let saved = match analysis.saved_seconds {
        saved if saved < analysis.seconds * 0.01 => String::new(),
        saved => format!("; the overlap of the stages saved {}", duration(saved)),
    };
    format!("{whose} the run would have taken {without} instead of {whole}{saved}")
}

/// From which share on the processor counts as what a stage waits for.
const ON_CORE: f64 = 0.7;
/// Files of this mean size and less are small: opening them costs more than reading.
const SMALL_FILE_BYTES: f64 = 128e3;

fn advice(analysis: &Analysis, stage: &StageShare, context: &Context<'_>) -> Option<String> {
    let text = match analysis.limit {
        Limit::Unknown => return None,
        Limit::RateLimit => "raise or drop --rate-limit to go faster".to_owned(),
        Limit::Source => format!("look at what fills the {}", context.source),
        Limit::Turns if context.volume == Volume::FitsRing => {
            "so little was moved that opening and closing took the time".to_owned()
        }
        Limit::Turns => "a larger --ring lets the stages overlap more".to_owned(),
        Limit::Processor if analysis.others_share > analysis.processor_share => {
            if context.command == Command::Pipe {
                return Some("the programs of the pipeline need more or faster cores".to_owned());
            }
            "other programs use the cores: run it when they do not, or let it go first with nice"
                .to_owned()
        }
        Limit::Processor | Limit::Stage | Limit::FewThreads => {
            stage_advice(analysis, stage, context)
        }
    };
    Some(text)
}

fn stage_advice(analysis: &Analysis, stage: &StageShare, context: &Context<'_>) -> String {
    let on_core = stage.on_core_share >= ON_CORE || analysis.limit == Limit::Processor;
    match stage.name {
        "scan" => "a tree with fewer, larger directories or a faster disk would help".to_owned(),
        "read" => read_advice(on_core, context).to_owned(),
        "encode" | "decode" => "one faster core would help".to_owned(),
        "compress" => compress_advice(analysis, stage, context),
        "decompress" => decompress_advice(context).to_owned(),
        "hash" => hash_advice(analysis, stage, context).to_owned(),
        "parse" => "one thread goes through the archive: a faster core would help".to_owned(),
        "create" => {
            if on_core {
                "more cores would help: every file is created, filled and closed".to_owned()
            } else {
                "the file system of the tree takes no more: a faster disk would help".into()
            }
        }
        "compare" => "the disk of the live files gives no more: a faster one would help".into(),
        "write" => write_advice(on_core, context).to_owned(),
        _ if on_core => "more or faster cores would help".to_owned(),
        _ => "a faster device behind it would help".to_owned(),
    }
}

fn decompress_advice(context: &Context<'_>) -> &'static str {
    match context.compression.split(':').next() {
        Some("gzip") => "more cores would help, or zstd for the next backup",
        _ => "more or faster cores would help",
    }
}

fn hash_advice(analysis: &Analysis, stage: &StageShare, context: &Context<'_>) -> &'static str {
    match (context.command, analysis.limit) {
        (Command::Backup, _) => {
            "one thread hashes in the order of the archive: a faster core would help"
        }
        (_, Limit::FewThreads) => {
            "one thread hashes all of a file, and there are few at a time: a faster core would help"
        }
        _ if stage.threads < analysis.cores as u64 => "more --threads would help",
        _ => "more or faster cores would help",
    }
}

fn read_advice(on_core: bool, context: &Context<'_>) -> &'static str {
    let small = context.mean_file_bytes.is_some_and(|bytes| bytes <= SMALL_FILE_BYTES);
    match (context.command, on_core) {
        (Command::Backup, true) if small => {
            "the cost is in opening small files: more or faster cores would help"
        }
        (Command::Backup, false) if small => {
            "more files in flight (--read-threads) or a faster disk would help"
        }
        (_, true) => "the cost is in copying: a faster core would help",
        (Command::Backup, false) => {
            "the disk of the tree gives no more: a faster one, or one with more read-ahead, would \
             help"
        }
        (Command::Pipe, false) if context.source == "pipe" => "look at what fills the pipe",
        (_, false) => "what holds the archive gives no more: a faster device would help",
    }
}

fn write_advice(on_core: bool, context: &Context<'_>) -> &'static str {
    match (context.target, on_core) {
        ("pipe" | "stream", true) => {
            "the cost is in copying into the pipe: a file as the target saves that"
        }
        ("pipe" | "stream", false) => "the reader of the pipe is slow: look at that program",
        ("tape", _) => "the drive takes no more, which is how it should be",
        ("character device", _) => {
            "the device takes no more: larger blocks (--block-size) may help"
        }
        (_, true) => "the cost is in copying to the page cache: a faster core would help",
        (_, false) => {
            "the disk of the target takes no more: a faster one or stronger compression would help"
        }
    }
}

fn compress_advice(analysis: &Analysis, stage: &StageShare, context: &Context<'_>) -> String {
    let (method, level) = context.compression.split_once(':').unwrap_or((context.compression, ""));
    let level = level.parse::<i32>().unwrap_or(0);
    let spare_cores = analysis.processor_share < 0.75 && stage.threads < analysis.cores as u64;
    let mut ways = Vec::new();
    if spare_cores {
        ways.push(format!("--compress-threads {}", analysis.cores));
    }
    match method {
        "gzip" => ways.push("--compress zstd".to_owned()),
        "zstd" if level > 1 => ways.push("a lower level (--compress zstd:1)".to_owned()),
        _ => {}
    }
    if !spare_cores {
        ways.push("more cores".to_owned());
    }
    ways.push("--compress none".to_owned());
    let last = ways.pop().expect("a way was pushed above");
    format!("{} or {last} would help", ways.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::account::StageReport;
    use flow::limit::{Run, analyse};

    fn stage(name: &'static str, states: [f64; 3], processor_seconds: f64) -> StageReport {
        let [working_seconds, starved_seconds, blocked_seconds] = states;
        StageReport {
            name,
            threads: if name == "compress" { 2 } else { 1 },
            working_seconds,
            starved_seconds,
            blocked_seconds,
            processor_seconds,
            core_wait_seconds: 0.0,
            occupied_seconds: working_seconds,
            bytes: 2_000_000_000,
        }
    }

    const PIPE: Context<'_> = Context {
        command: Command::Pipe,
        source: "pipe",
        target: "pipe",
        compression: "none",
        mean_file_bytes: None,
        rate_limit_bytes_per_second: None,
        volume: Volume::MoreThanRing,
    };
    const BACKUP: Context<'_> = Context {
        command: Command::Backup,
        source: "tree",
        target: "file",
        compression: "zstd:9",
        mean_file_bytes: Some(9e3),
        ..PIPE
    };

    fn run<'a>(stages: &'a [StageReport], context: &Context<'_>) -> Run<'a> {
        Run {
            stages,
            seconds: 10.0,
            synchronise_seconds: 0.0,
            rate_limit_bytes_per_second: context.rate_limit_bytes_per_second,
            cores: 2,
            others_seconds: None,
        }
    }

    fn words(stages: &[StageReport], context: &Context<'_>) -> String {
        explain(&analyse(&run(stages, context)), context).to_string()
    }

    #[test]
    fn sentences() {
        let mut text = String::new();
        let mut case = |name: &str, stages: &[StageReport], context: &Context<'_>| {
            text.push_str(&format!("{name}\n    {}\n", words(stages, context)));
        };
        let (slow, fast) = ([9.7, 0.3, 0.0], [2.0, 8.0, 0.0]);
        case("no stages", &[], &PIPE);
        let full = [2.0, 0.0, 8.0];
        case("slow reader", &[stage("read", full, 1.0), stage("write", slow, 1.0)], &PIPE);
        let held = [0.3, 0.1, 9.6];
        let limited = Context { rate_limit_bytes_per_second: Some(200_000_000), ..PIPE };
        case("rate", &[stage("read", [0.4, 0.0, 9.6], 0.4), stage("write", held, 0.3)], &limited);
        let starved = [0.3, 9.7, 0.0];
        case("source", &[stage("read", starved, 0.3), stage("write", starved, 0.3)], &PIPE);
        let tree = |read, compress, write| {
            [
                stage("scan", [0.4, 0.0, 9.6], 0.3),
                stage("read", read, read[0] / 3.0),
                stage("compress", compress, compress[0] * 1.2),
                stage("write", write, write[0] / 2.0),
            ]
        };
        case("level", &tree(fast, slow, fast), &BACKUP);
        let gzip = Context { compression: "gzip:6", ..BACKUP };
        case("gzip", &tree(fast, slow, fast), &gzip);
        case("small files", &tree(slow, fast, fast), &BACKUP);
        let large = Context { mean_file_bytes: Some(4e9), ..BACKUP };
        case("large files", &tree(slow, fast, fast), &large);
        case("slow disk", &tree(fast, fast, slow), &BACKUP);
        let share = [
            stage("read", [9.0, 0.0, 1.0], 5.0),
            stage("compress", slow, 11.0),
            stage("write", [5.0, 5.0, 0.0], 2.0),
        ];
        let share = share.map(|stage| {
            let core_wait_seconds = stage.working_seconds * 0.4 * stage.threads as f64;
            StageReport { core_wait_seconds, ..stage }
        });
        case("shared cores", &share, &BACKUP);
        let run = Run { cores: 4, others_seconds: Some(24.0), ..run(&share, &BACKUP) };
        text.push_str(&format!("others\n    {}\n", explain(&analyse(&run), &BACKUP)));
        let mut case = |name: &str, stages: &[StageReport], context: &Context<'_>| {
            text.push_str(&format!("{name}\n    {}\n", words(stages, context)));
        };
        let turns = [stage("read", [4.9, 0.0, 5.1], 1.0), stage("write", [5.0, 5.0, 0.0], 1.0)];
        case("turns", &turns, &PIPE);
        case("turns of little", &turns, &Context { volume: Volume::FitsRing, ..PIPE });
        insta::assert_snapshot!(text);
    }

    const VERIFY: Context<'_> = Context {
        command: Command::Verify,
        source: "file",
        target: "check",
        compression: "zstd",
        mean_file_bytes: Some(9e3),
        ..PIPE
    };

    fn verified(last: StageReport, decompress: [f64; 3], context: &Context<'_>) -> String {
        let decompress = stage("decompress", decompress, decompress[0] * 0.9);
        words(&[stage("read", [1.0, 0.0, 9.0], 0.5), decompress, last], context)
    }

    #[test]
    fn whoever_has_zstd_is_not_told_to_take_it() {
        let hash = || stage("hash", [1.0, 9.0, 0.0], 0.9);
        let slow = [9.8, 0.2, 0.0];
        for (compression, advised) in [("zstd", false), ("zstd:9", false), ("gzip", true)] {
            let text = verified(hash(), slow, &Context { compression, ..VERIFY });
            assert!(text.starts_with("decompress was the limit"), "{text}");
            assert_eq!(text.contains("zstd for the next backup"), advised, "{text}");
            assert!(text.contains("cores would help"), "{text}");
        }
    }

    #[test]
    fn hashing_is_one_thread_in_a_backup_and_many_in_verify() {
        let hash = |threads| StageReport { threads, ..stage("hash", [9.8, 0.2, 0.0], 9.5) };
        let idle = [1.0, 9.0, 0.0];
        let text = verified(hash(2), idle, &VERIFY);
        assert!(text.ends_with("more or faster cores would help"), "{text}");
        let text = verified(hash(1), idle, &VERIFY);
        assert!(text.ends_with("more --threads would help"), "{text}");
        let text = verified(hash(1), idle, &BACKUP);
        assert!(text.contains("in the order of the archive"), "{text}");
        let few = StageReport {
            threads: 4,
            occupied_seconds: 9.8,
            ..stage("hash", [2.5, 0.1, 7.4], 2.4)
        };
        let text = verified(few, idle, &VERIFY);
        assert!(text.contains("some of its 4 threads"), "{text}");
        assert!(text.contains("one thread hashes all of a file"), "{text}");
    }

    #[test]
    fn nobody_is_told_of_a_rate_limit_that_was_not_set() {
        for name in ["compare", "hash", "check", "parse", "decompress", "create", "write"] {
            for states in [[0.3, 0.1, 9.6], [2.5, 0.1, 7.4], [9.5, 0.1, 0.4]] {
                let last = StageReport { threads: 4, ..stage(name, states, states[0]) };
                let text = verified(last, [1.0, 0.0, 9.0], &VERIFY);
                assert!(!text.contains("rate"), "{text}");
            }
        }
    }

    #[test]
    fn changes_of_volume_are_left_out_and_that_is_said() {
        let plain = Explanation { limit: "l".into(), numbers: Some("n".into()), advice: None };
        assert_eq!(plain.clone().without_changes(0.0), plain);
        let words = plain.without_changes(95.0).to_string();
        assert_eq!(words, "l; changes of volume took 1 min 35 s and are left out here; n");
    }

    #[test]
    fn a_run_of_no_length_has_a_sentence() {
        let stages = [stage("read", [0.0; 3], 0.0)];
        let run = Run { seconds: 0.0, ..run(&stages, &PIPE) };
        let text = explain(&analyse(&run), &PIPE).to_string();
        assert_eq!(text, "the run was too short to say what its limit was");
    }
}
