//! The end of a run as one document: what `--json` prints.

use base::finding::Finding;
use flow::bottleneck::{Cause, analyse};
use flow::run::{Endpoint, RunReport, StageKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::explanation::explain;
use crate::verdict::Verdict;

/// Everything known at the end of a run: its record, and what follows from it. The names are part
/// of the promise of the command line: fields are added, never renamed.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// The verdict: the first line.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The counts.
    #[serde(flatten)]
    pub run: RunReport,
    /// What the user chose: the target (backup, pipe) or the source (restore, list, verify).
    pub endpoint: Endpoint,
    /// `source_bytes` by `seconds`.
    pub bytes_per_second: f64,
    /// Warnings; at most as many as the monitor keeps.
    pub warnings: Vec<Warning>,
    /// Number of all warnings.
    pub warnings_total: u64,
    /// The stage that was the limit.
    pub bottleneck: Option<StageKind>,
    /// Kind of the limit: stage, few threads, source, rate limit, processor, turns, unknown.
    pub limit: &'static str,
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
    /// The limit in parts, followed by other findings.
    pub findings: Vec<Finding>,
    /// Rate of each stage while it was busy.
    #[serde(skip)]
    pub busy_bytes_per_second: Vec<f64>,
}

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        RunSummary {
            verdict: Verdict::default(),
            endpoint: run.endpoint(),
            bytes_per_second: run.bytes_per_second(),
            warnings,
            warnings_total,
            bottleneck: bottleneck.map(|stage| stage.kind),
            limit: cause_name(analysis.cause),
            seconds_without_bottleneck: analysis.seconds_without,
            overlap_saved_seconds: analysis.saved_seconds,
            moving_seconds: moving_seconds(&run),
            others_processor_share: analysis.others_share,
            others_on_source_bytes: run.others_on_source_bytes.unwrap_or(0),
            others_on_target_bytes: run.others_on_target_bytes.unwrap_or(0),
            explanation: limit.line(),
            findings: vec![limit],
            busy_bytes_per_second: analysis.stages.iter().map(|it| it.bytes_per_second).collect(),
            run,
        }
    }

    /// The document that `--json` prints.
    pub fn to_document(&self) -> Value {
        let mut document =
            serde_json::to_value(self).expect("strings and numbers can be written as JSON");
        let stages = document["stages"].as_array_mut().into_iter().flatten();
        for (number, (stage, rate)) in stages.zip(&self.busy_bytes_per_second).enumerate() {
            stage["busy_bytes_per_second"] = json!(rate);
            for (kind, seconds) in self.times(number).named() {
                if let Some(field) = kind.field() {
                    stage[field] = json!(seconds);
                }
            }
        }
        document
    }

    /// What became of the time of a stage, by its number.
    pub fn times(&self, stage: usize) -> Times {
        Times::of(&self.run, stage)
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

    /// Its name in the document, unless the report already has it.
    fn field(self) -> Option<&'static str> {
        match self {
            TimeKind::Working | TimeKind::Starved | TimeKind::Blocked => None,
            TimeKind::Winding => Some("winding_seconds"),
            TimeKind::Label => Some("label_seconds"),
            TimeKind::Changing => Some("changing_seconds"),
            TimeKind::Flushing => Some("flushing_seconds"),
            TimeKind::Idle => Some("idle_seconds"),
        }
    }

    /// Whether it has a column also where no stage has a share of it.
    pub fn is_always_shown(self) -> bool {
        matches!(self, TimeKind::Working | TimeKind::Starved | TimeKind::Blocked)
    }
}

/// The time of a stage by kind, which adds up to the time of the run.
pub struct Times([f64; 8]);

impl Times {
    fn of(run: &RunReport, number: usize) -> Times {
        let stage = &run.stages[number];
        let is_last = number + 1 == run.stages.len();
        let at_end = |seconds: f64| if is_last { seconds } else { 0.0 };
        let is_at_tape = match run.source {
            Endpoint::Tape => stage.kind == StageKind::Read,
            _ => is_last,
        };
        let at_tape = |seconds: f64| if is_at_tape { seconds } else { 0.0 };
        let known = |kind: TimeKind| match kind {
            TimeKind::Working => stage.working_seconds,
            TimeKind::Starved => stage.starved_seconds,
            TimeKind::Blocked => stage.blocked_seconds,
            TimeKind::Winding => {
                run.ready_seconds - run.label_seconds + at_tape(run.winding_seconds)
            }
            TimeKind::Label => run.label_seconds,
            TimeKind::Changing => at_tape(run.change_seconds),
            TimeKind::Flushing => at_end(run.synchronise_seconds),
            TimeKind::Idle => 0.0,
        };
        let mut seconds = TimeKind::ALL.map(|kind| known(kind).max(0.0));
        let told: f64 = seconds.iter().sum();
        // Idle is the last entry of the list.
        seconds[TimeKind::ALL.len() - 1] = (run.seconds - told).max(0.0);
        Times(seconds)
    }

    fn named(&self) -> impl Iterator<Item = (TimeKind, f64)> + '_ {
        TimeKind::ALL.into_iter().zip(self.0)
    }

    /// Of one kind.
    pub fn seconds(&self, wanted: TimeKind) -> f64 {
        self.named().find(|(kind, _)| *kind == wanted).map_or(0.0, |(_, seconds)| seconds)
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
    use flow::run::{Command, StageReport};

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
            engine: "io_uring",
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
