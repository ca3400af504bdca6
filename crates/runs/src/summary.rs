//! The end of a run as one document: what `--json` prints.

use std::borrow::Cow;

use base::finding::Finding;
use flow::bottleneck::{Cause, analyse};
use flow::run::{Endpoint, RunReport, StageKind, StageReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::explanation::{explain, short};
use crate::verdict::Verdict;

/// Everything known at the end of a run: its record, and what follows from it. The names are part
/// of the promise of the command line: fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// The verdict: the first line.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The counts.
    #[serde(flatten)]
    pub run: RunReport,
    /// The stages in the order in which data pass through them.
    pub stages: Vec<StageSummary>,
    /// What the user chose: the target (backup, pipe) or the source (restore, list, verify).
    pub endpoint: Endpoint,
    /// `source_bytes` by `seconds`.
    pub bytes_per_second: f64,
    /// Warnings; at most as many as the monitor keeps.
    pub warnings: Vec<Warning>,
    pub warnings_total: u64,
    /// The stage that was the limit.
    pub bottleneck: Option<StageKind>,
    /// Kind of the limit: stage, few threads, source, rate limit, processor, turns, unknown.
    pub limit: Cow<'static, str>,
    /// Time that the run would have taken if the bottleneck cost nothing.
    pub seconds_without_bottleneck: f64,
    /// Time that the stages would have taken more without overlap.
    pub overlap_saved_seconds: f64,
    /// Part of `seconds` in which data could move: without the time until a tape was ready
    /// (`ready_seconds`), later winding, changes of volume and the final synchronisation.
    pub moving_seconds: f64,
    /// Share of the cores that other programs used meanwhile.
    pub others_processor_share: f64,
    /// Bytes that other programs moved on the disk of the source meanwhile; zero where unknown.
    pub others_on_source_bytes: u64,
    /// The same for the disk of the target.
    pub others_on_target_bytes: u64,
    /// The limit in words.
    pub explanation: String,
    /// The limit in a few words, and what to type; `None` where it is unknown. It follows from the
    /// rest, so it is no part of the document.
    #[serde(skip)]
    pub limit_in_short: Option<String>,
    /// The limit in parts, followed by other findings.
    pub findings: Vec<Finding>,
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The object, escaped like a name on the terminal.
    pub object: String,
    /// What happened.
    pub text: String,
}

impl RunSummary {
    /// Analyses a run.
    pub fn new(run: RunReport, warnings: Vec<Warning>, warnings_total: u64) -> RunSummary {
        let analysis = analyse(&run);
        let limit = explain(&analysis, &run);
        let bottleneck = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
        let rates = analysis.stages.iter().map(|it| it.bytes_per_second);
        let stages = rates.enumerate().map(|(at, rate)| StageSummary::of(&run, at, rate)).collect();
        RunSummary {
            verdict: Verdict::default(),
            endpoint: run.endpoint(),
            bytes_per_second: run.bytes_per_second(),
            warnings,
            warnings_total,
            bottleneck: bottleneck.map(|stage| stage.kind),
            limit: cause_name(analysis.cause).into(),
            seconds_without_bottleneck: analysis.seconds_without,
            overlap_saved_seconds: analysis.saved_seconds,
            moving_seconds: moving_seconds(&run),
            others_processor_share: analysis.others_share,
            others_on_source_bytes: run.others_on_source_bytes.unwrap_or(0),
            others_on_target_bytes: run.others_on_target_bytes.unwrap_or(0),
            explanation: limit.line(),
            limit_in_short: short(&analysis, &run),
            findings: vec![limit],
            stages,
            run,
        }
    }

    /// The fields as one document, for the record of the run.
    ///
    /// # Panics
    /// Never: they are texts, numbers, and lists of them.
    pub fn to_document(&self) -> Value {
        serde_json::to_value(self).expect("strings and numbers can be written as JSON")
    }
}

/// What a stage spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// It worked.
    Working,
    /// It waited for data.
    Starved,
    /// It waited for room.
    Blocked,
    /// The tape winds to where it is written or read.
    Winding,
    /// The label is read, and the index of a tape that is read; no stage runs.
    Label,
    /// A volume is changed.
    Changing,
    /// The last stage waits until the medium has everything.
    Flushing,
    /// Its threads do not exist yet, or any more.
    Idle,
}

impl TimeKind {
    /// In the order of the columns.
    pub const ALL: [TimeKind; 8] = [
        TimeKind::Winding,
        TimeKind::Label,
        TimeKind::Working,
        TimeKind::Starved,
        TimeKind::Blocked,
        TimeKind::Changing,
        TimeKind::Flushing,
        TimeKind::Idle,
    ];

    /// Its column.
    pub fn name(self) -> &'static str {
        match self {
            TimeKind::Working => "working",
            TimeKind::Starved => "starved",
            TimeKind::Blocked => "blocked",
            TimeKind::Winding => "winding",
            TimeKind::Label => "label",
            TimeKind::Changing => "changing",
            TimeKind::Flushing => "flushing",
            TimeKind::Idle => "idle",
        }
    }

    /// Whether it has a column also where no stage has a share of it.
    pub fn is_always_shown(self) -> bool {
        matches!(self, TimeKind::Working | TimeKind::Starved | TimeKind::Blocked)
    }
}

/// A stage, and what became of its time: all kinds of it add up to the time of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSummary {
    /// What it counted.
    #[serde(flatten)]
    pub report: StageReport,
    /// Its rate while it was busy.
    pub busy_bytes_per_second: f64,
    /// Time of winding a tape.
    pub winding_seconds: f64,
    /// Time of reading the label of a tape.
    pub label_seconds: f64,
    /// Time of changing volumes.
    pub changing_seconds: f64,
    /// Time until the medium had everything.
    pub flushing_seconds: f64,
    /// Time without threads.
    pub idle_seconds: f64,
}

impl StageSummary {
    fn of(run: &RunReport, number: usize, busy_bytes_per_second: f64) -> StageSummary {
        let report = run.stages[number].clone();
        let is_last = number + 1 == run.stages.len();
        let at_end = |seconds: f64| if is_last { seconds } else { 0.0 };
        let is_at_tape = match run.source {
            Endpoint::Tape => report.kind == StageKind::Read,
            _ => is_last,
        };
        let at_tape = |seconds: f64| if is_at_tape { seconds } else { 0.0 };
        let winding = run.ready_seconds - run.label_seconds + at_tape(run.winding_seconds);
        let mut stage = StageSummary {
            report,
            busy_bytes_per_second,
            winding_seconds: winding.max(0.0),
            label_seconds: run.label_seconds.max(0.0),
            changing_seconds: at_tape(run.change_seconds).max(0.0),
            flushing_seconds: at_end(run.synchronise_seconds).max(0.0),
            idle_seconds: 0.0,
        };
        let told: f64 = TimeKind::ALL.iter().map(|kind| stage.seconds(*kind)).sum();
        stage.idle_seconds = (run.seconds - told).max(0.0);
        stage
    }

    /// Its time of one kind.
    pub fn seconds(&self, kind: TimeKind) -> f64 {
        match kind {
            TimeKind::Working => self.report.working_seconds.max(0.0),
            TimeKind::Starved => self.report.starved_seconds.max(0.0),
            TimeKind::Blocked => self.report.blocked_seconds.max(0.0),
            TimeKind::Winding => self.winding_seconds,
            TimeKind::Label => self.label_seconds,
            TimeKind::Changing => self.changing_seconds,
            TimeKind::Flushing => self.flushing_seconds,
            TimeKind::Idle => self.idle_seconds,
        }
    }
}

/// Wall time in which data could move.
fn moving_seconds(run: &RunReport) -> f64 {
    let apart =
        run.ready_seconds + run.winding_seconds + run.change_seconds + run.synchronise_seconds;
    (run.seconds - apart).max(0.0)
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Unknown => "unknown",
        Cause::Stage => "stage",
        Cause::FewThreads => "few threads",
        Cause::Source => "source",
        Cause::RateLimit => "rate limit",
        Cause::Processor => "processor",
        Cause::Turns => "turns",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::run::Command;

    fn run() -> RunReport {
        let stage = |kind, states: [f64; 3], bytes| StageReport {
            processor_seconds: states[0] / 2.0,
            bytes,
            ..StageReport::of_one_thread(kind, states)
        };
        RunReport {
            command: Command::Pipe,
            source: Endpoint::File,
            target: Endpoint::Pipe,
            source_bytes: 1_000_000_000,
            archive_bytes: 1_000_000_000,
            target_bytes: 1_000_000_000,
            seconds: 5.0,
            ring_bytes: 64 << 20,
            engine: "io_uring".into(),
            cores: 2,
            compression: "none".to_owned(),
            stages: vec![
                stage(StageKind::Read, [1.25, 0.0, 3.75], 1_000_000_000),
                stage(StageKind::Write, [4.75, 0.25, 0.0], 1_000_000_000),
            ],
            ..RunReport::default()
        }
    }

    fn summary(run: RunReport) -> RunSummary {
        let (object, text) = ("a\\033b".to_owned(), "vanished".to_owned());
        RunSummary::new(run, vec![Warning { object, text }], 1)
    }

    /// An LTO-1 that winds for half of the run: each row has all of it.
    #[test]
    fn the_times_of_a_stage_add_up_to_the_run() {
        let write = StageReport {
            apart_seconds: 6.5,
            ..StageReport::of_one_thread(StageKind::Write, [2.9, 0.1, 0.0])
        };
        let tape = RunReport {
            target: Endpoint::Tape,
            seconds: 18.0,
            ready_seconds: 8.25,
            label_seconds: 0.25,
            change_seconds: 1.5,
            synchronise_seconds: 5.0,
            stages: vec![StageReport::of_one_thread(StageKind::Read, [0.5, 0.0, 2.5]), write],
            ..run()
        };
        let summary = summary(tape);
        let document = summary.to_document();
        for stage in document["stages"].as_array().unwrap() {
            let own = ["working", "starved", "blocked", "winding", "label", "changing"];
            let seconds = |kind: &str| stage[format!("{kind}_seconds")].as_f64().unwrap();
            let sum: f64 = own.into_iter().chain(["flushing", "idle"]).map(seconds).sum();
            assert!((sum - 18.0).abs() < 1e-9, "{stage:#}");
        }
        let kinds = ["ready", "moving", "change", "synchronise"];
        let seconds = kinds.map(|kind| document[format!("{kind}_seconds")].as_f64().unwrap());
        assert!((seconds.iter().sum::<f64>() - 18.0).abs() < 1e-9, "{document:#}");
    }

    /// A file from the end of an LTO-4: it is wound before the stages begin and once more.
    #[test]
    fn winding_of_a_tape_that_is_read_is_that_of_its_reader() {
        let tape = RunReport {
            command: Command::Restore,
            source: Endpoint::Tape,
            target: Endpoint::Tree,
            seconds: 60.0,
            ready_seconds: 40.0,
            label_seconds: 2.0,
            winding_seconds: 15.0,
            change_seconds: 1.0,
            synchronise_seconds: 0.5,
            stages: vec![
                StageReport {
                    apart_seconds: 16.0,
                    ..StageReport::of_one_thread(StageKind::Read, [3.0, 0.0, 0.0])
                },
                StageReport::of_one_thread(StageKind::Create, [0.5, 19.0, 0.0]),
            ],
            ..run()
        };
        let summary = summary(tape);
        assert_eq!(summary.moving_seconds, 3.5);
        let document = summary.to_document();
        let seconds = |stage: usize, kind: &str| {
            document["stages"][stage][format!("{kind}_seconds")].as_f64().unwrap()
        };
        let kinds = ["winding", "label", "changing", "flushing", "idle"];
        assert_eq!(kinds.map(|kind| seconds(0, kind)), [53.0, 2.0, 1.0, 0.0, 1.0]);
        assert_eq!(kinds.map(|kind| seconds(1, kind)), [38.0, 2.0, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn for_programs() {
        insta::assert_snapshot!(format!("{:#}", summary(run()).to_document()));
    }
}
