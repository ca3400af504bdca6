//! The end of a run as one document: what `--json` prints, and the table for people.

use finding::Finding;
use flow::bottleneck::{Cause, analyse};
use flow::run::{Endpoint, RunReport, StageKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::explanation::explain;
use crate::findings::line;
use crate::format::{counted, duration, percent, rate, size};
use crate::table::{Align, Colour, Emphasis, Table};

/// Everything that is known at the end of a run: its record, and what follows from it. The names
/// are part of the command line's promise: fields are added, never renamed.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// What was counted.
    #[serde(flatten)]
    pub run: RunReport,
    /// What the user chose: the target (backup, pipe) or the source (restore, list, verify).
    pub endpoint: Endpoint,
    /// `source_bytes` by `seconds`.
    pub bytes_per_second: f64,
    /// What was not done as asked; at most as many as the monitor keeps.
    pub warnings: Vec<Warning>,
    /// How many there were.
    pub warnings_total: u64,
    /// The stage that was the limit.
    pub bottleneck: Option<StageKind>,
    /// Kind of the limit: stage, source, rate limit, processor, turns, unknown.
    pub limit: &'static str,
    /// Time that the run would have taken if the bottleneck cost nothing.
    pub seconds_without_bottleneck: f64,
    /// Time that the stages would have taken more, one after the other.
    pub overlap_saved_seconds: f64,
    /// Share of their time that other programs used meanwhile.
    pub others_processor_share: f64,
    /// Bytes that other programs moved on the disk of the source meanwhile; zero where that is not
    /// known.
    pub others_on_source_bytes: u64,
    /// The same of the target's disk.
    pub others_on_target_bytes: u64,
    /// All of it in words.
    pub explanation: String,
    /// The same by its parts; what else was found comes behind it.
    pub findings: Vec<Finding>,
    /// Rate of each stage while it was busy.
    #[serde(skip)]
    pub busy_bytes_per_second: Vec<f64>,
}

/// Something that was not done as asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What it is about, escaped like a name on the terminal.
    pub object: String,
    /// What happened.
    pub text: String,
}

impl RunSummary {
    /// Draws the conclusions from a run.
    pub fn new(run: RunReport, warnings: Vec<Warning>, warnings_total: u64) -> RunSummary {
        let analysis = analyse(&run);
        let limit = explain(&analysis, &run);
        let bottleneck = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
        RunSummary {
            endpoint: run.endpoint(),
            bytes_per_second: run.bytes_per_second(),
            warnings,
            warnings_total,
            bottleneck: bottleneck.map(|stage| stage.kind),
            limit: cause_name(analysis.cause),
            seconds_without_bottleneck: analysis.seconds_without,
            overlap_saved_seconds: analysis.saved_seconds,
            others_processor_share: analysis.others_share,
            others_on_source_bytes: run.others_on_source_bytes.unwrap_or(0),
            others_on_target_bytes: run.others_on_target_bytes.unwrap_or(0),
            explanation: line(&limit),
            findings: vec![limit],
            busy_bytes_per_second: analysis.stages.iter().map(|it| it.bytes_per_second).collect(),
            run,
        }
    }

    /// The document.
    pub fn to_document(&self) -> Value {
        let mut document =
            serde_json::to_value(self).expect("strings and numbers can be written as JSON");
        let stages = document["stages"].as_array_mut().into_iter().flatten();
        for (stage, rate) in stages.zip(&self.busy_bytes_per_second) {
            stage["busy_bytes_per_second"] = json!(rate);
        }
        document
    }

    /// One line with what was done, for example
    /// `100 000 files, 900 MB in 2.9 s: 310 MB/s`.
    pub fn headline(&self) -> String {
        let what = match self.run.members {
            0 => String::new(),
            members => {
                let files = counted(self.run.files, "file", "files");
                format!("{files}, {}, ", counted(members, "member", "members"))
            }
        };
        let size = size(self.run.source_bytes);
        let time = duration(self.run.seconds);
        format!("{what}{size} in {time}: {}", rate(self.bytes_per_second))
    }

    /// The table of the stages, times as shares of the run.
    pub fn stage_table(&self, colour: Colour) -> String {
        let mut table = Table::new(&[
            ("stage", Align::Left),
            ("threads", Align::Right),
            ("working", Align::Right),
            ("starved", Align::Right),
            ("blocked", Align::Right),
            ("processor", Align::Right),
            ("bytes", Align::Right),
            ("rate while busy", Align::Right),
        ]);
        for (stage, busy_rate) in self.run.stages.iter().zip(&self.busy_bytes_per_second) {
            let share = |seconds: f64| {
                if self.run.seconds > 0.0 {
                    percent(seconds / self.run.seconds)
                } else {
                    percent(0.0)
                }
            };
            let emphasis =
                if self.bottleneck == Some(stage.kind) { Emphasis::Strong } else { Emphasis::None };
            let cells = vec![
                stage.kind.to_string(),
                stage.threads.to_string(),
                share(stage.working_seconds),
                share(stage.starved_seconds),
                share(stage.blocked_seconds),
                duration(stage.processor_seconds),
                size(stage.bytes),
                rate(*busy_rate),
            ];
            table.row(cells, emphasis);
        }
        table.render(colour)
    }

    /// Headline, table and explanation, for people.
    pub fn to_text(&self, colour: Colour) -> String {
        let mut text = self.headline() + "\n";
        if !self.run.stages.is_empty() {
            text.push_str(&self.stage_table(colour));
        }
        for sentence in self.explanation.split("; ") {
            text.push_str(sentence);
            text.push('\n');
        }
        text
    }
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

    #[test]
    fn one_is_no_many() {
        let one = summary(RunReport { files: 1, members: 1, ..run() });
        assert!(one.headline().starts_with("1 file, 1 member, "), "{}", one.headline());
        let many = summary(RunReport { files: 0, members: 1000, ..run() });
        assert!(many.headline().starts_with("0 files, 1 000 members, "), "{}", many.headline());
    }

    #[test]
    fn for_people() {
        insta::assert_snapshot!(summary(run()).to_text(Colour::Plain));
    }

    #[test]
    fn for_programs() {
        insta::assert_snapshot!(format!("{:#}", summary(run()).to_document()));
    }
}
