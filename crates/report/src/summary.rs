//! The end of a run as one document: what `--json` prints, and the table for people.

use flow::account::StageReport;
use flow::limit::{Analysis, Limit};
use serde::Serialize;

use crate::explanation::Explanation;
use crate::format::{counted, duration, percent, rate, size};
use crate::table::{Align, Colour, Emphasis, Table};

/// Everything that is known at the end of a run. The names are part of the command line's promise:
/// fields are added, never renamed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunSummary {
    /// Subcommand.
    pub command: String,
    /// Objects handled: files, directories, links, devices.
    pub members: u64,
    /// Regular files among them.
    pub files: u64,
    /// Bytes of content that the run read or restored.
    pub source_bytes: u64,
    /// Bytes of the archive before compression.
    pub archive_bytes: u64,
    /// Bytes handed to the target, or taken from the archive.
    pub target_bytes: u64,
    /// Wall time.
    pub seconds: f64,
    /// Part of it in which the target was synchronised at the end.
    pub synchronise_seconds: f64,
    /// `source_bytes` by `seconds`.
    pub bytes_per_second: f64,
    /// What was not done as asked; at most as many as the monitor keeps.
    pub warnings: Vec<Warning>,
    /// How many there were.
    pub warnings_total: u64,
    /// The stages in the order in which data pass through them.
    pub stages: Vec<StageSummary>,
    /// Name of the stage that was the limit.
    pub bottleneck: Option<String>,
    /// Kind of the limit: stage, source, rate limit, processor, turns, unknown.
    pub limit: &'static str,
    /// Time that the run would have taken if the bottleneck cost nothing.
    pub seconds_without_bottleneck: f64,
    /// Time that the stages would have taken more, one after the other.
    pub overlap_saved_seconds: f64,
    /// All of it in words.
    pub explanation: String,
    /// How often the ring ran empty, so that the writer stopped.
    pub times_ran_empty: u64,
    /// Memory of the rings.
    pub ring_bytes: u64,
    /// Back end: `io_uring` or `pread`.
    pub engine: String,
    /// Cores that the run could use.
    pub cores: usize,
    /// Share of their time that other programs used meanwhile.
    pub others_processor_share: f64,
    /// What the target (backup, pipe) or the source (restore, list, verify) is.
    pub endpoint: String,
    /// Compression as the user would write it.
    pub compression: String,
}

/// Something that was not done as asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What it is about, escaped like a name on the terminal.
    pub object: String,
    /// What happened.
    pub text: String,
}

/// One stage. The three states are means over its threads.
#[derive(Clone, Debug, Serialize)]
pub struct StageSummary {
    /// Name.
    pub name: &'static str,
    /// Threads.
    pub threads: u64,
    /// Seconds of doing its job.
    pub working_seconds: f64,
    /// Seconds of waiting for input.
    pub starved_seconds: f64,
    /// Seconds of waiting for room in its output.
    pub blocked_seconds: f64,
    /// Seconds in which at least one of its threads did its job.
    pub occupied_seconds: f64,
    /// Seconds of processor time, all threads together.
    pub processor_seconds: f64,
    /// Seconds of waiting for a core, all threads together.
    pub core_wait_seconds: f64,
    /// Bytes that passed through.
    pub bytes: u64,
    /// Bytes by second of being busy.
    pub busy_bytes_per_second: f64,
}

impl RunSummary {
    /// Fills in what follows from the stages: the table, the limit and its words.
    pub fn set_stages(
        &mut self,
        stages: &[StageReport],
        analysis: &Analysis,
        explanation: &Explanation,
    ) {
        let one = |(report, share): (&StageReport, &flow::limit::StageShare)| StageSummary {
            name: report.name,
            threads: report.threads,
            working_seconds: report.working_seconds,
            starved_seconds: report.starved_seconds,
            blocked_seconds: report.blocked_seconds,
            occupied_seconds: report.occupied_seconds,
            processor_seconds: report.processor_seconds,
            core_wait_seconds: report.core_wait_seconds,
            bytes: report.bytes,
            busy_bytes_per_second: share.bytes_per_second,
        };
        self.stages = stages.iter().zip(&analysis.stages).map(one).collect();
        let bottleneck = analysis.bottleneck.and_then(|index| analysis.stages.get(index));
        self.bottleneck = bottleneck.map(|stage| stage.name.to_owned());
        self.limit = limit_name(analysis.limit);
        self.seconds_without_bottleneck = analysis.seconds_without;
        self.overlap_saved_seconds = analysis.saved_seconds;
        self.others_processor_share = analysis.others_share;
        self.explanation = explanation.to_string();
    }

    /// The document.
    pub fn to_document(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("strings and numbers can be written as JSON")
    }

    /// One line with what was done, for example
    /// `100 000 files, 900 MB in 2.9 s: 310 MB/s`.
    pub fn headline(&self) -> String {
        let what = match self.members {
            0 => String::new(),
            members => {
                let files = counted(self.files, "file", "files");
                format!("{files}, {}, ", counted(members, "member", "members"))
            }
        };
        let size = size(self.source_bytes);
        let time = duration(self.seconds);
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
        for stage in &self.stages {
            let share = |seconds: f64| {
                if self.seconds > 0.0 { percent(seconds / self.seconds) } else { percent(0.0) }
            };
            let emphasis = if self.bottleneck.as_deref() == Some(stage.name) {
                Emphasis::Strong
            } else {
                Emphasis::None
            };
            let cells = vec![
                stage.name.to_owned(),
                stage.threads.to_string(),
                share(stage.working_seconds),
                share(stage.starved_seconds),
                share(stage.blocked_seconds),
                duration(stage.processor_seconds),
                size(stage.bytes),
                rate(stage.busy_bytes_per_second),
            ];
            table.row(cells, emphasis);
        }
        table.render(colour)
    }

    /// Headline, table and explanation, for people.
    pub fn to_text(&self, colour: Colour) -> String {
        let mut text = self.headline() + "\n";
        if !self.stages.is_empty() {
            text.push_str(&self.stage_table(colour));
        }
        for sentence in self.explanation.split("; ") {
            text.push_str(sentence);
            text.push('\n');
        }
        text
    }
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Unknown => "unknown",
        Limit::Stage => "stage",
        Limit::FewThreads => "few threads",
        Limit::Source => "source",
        Limit::RateLimit => "rate limit",
        Limit::Processor => "processor",
        Limit::Turns => "turns",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explanation::{Command, Context, explain};
    use flow::limit::{Run, analyse};

    fn summary() -> RunSummary {
        let stage = |name, states: [f64; 3], bytes| StageReport {
            name,
            threads: 1,
            working_seconds: states[0],
            starved_seconds: states[1],
            blocked_seconds: states[2],
            processor_seconds: states[0] / 2.0,
            core_wait_seconds: 0.0,
            occupied_seconds: states[0],
            bytes,
        };
        let stages = [
            stage("read", [1.25, 0.0, 3.75], 1_000_000_000),
            stage("write", [4.75, 0.25, 0.0], 1_000_000_000),
        ];
        let run = Run {
            stages: &stages,
            seconds: 5.0,
            synchronise_seconds: 0.0,
            rate_limit_bytes_per_second: None,
            cores: 2,
            others_seconds: None,
        };
        let context = Context {
            command: Command::Pipe,
            source: "file",
            target: "pipe",
            compression: "none",
            mean_file_bytes: None,
            rate_limit_bytes_per_second: None,
            volume: crate::explanation::Volume::MoreThanRing,
        };
        let analysis = analyse(&run);
        let mut summary = RunSummary {
            command: "pipe".to_owned(),
            source_bytes: 1_000_000_000,
            archive_bytes: 1_000_000_000,
            target_bytes: 1_000_000_000,
            seconds: 5.0,
            bytes_per_second: 200e6,
            warnings: vec![Warning { object: "a\\033b".to_owned(), text: "vanished".to_owned() }],
            warnings_total: 1,
            ring_bytes: 64 << 20,
            engine: "io_uring".to_owned(),
            cores: 2,
            endpoint: "pipe".to_owned(),
            compression: "none".to_owned(),
            ..RunSummary::default()
        };
        summary.set_stages(&stages, &analysis, &explain(&analysis, &context));
        summary
    }

    #[test]
    fn one_is_no_many() {
        let one = RunSummary { files: 1, members: 1, ..summary() };
        assert!(one.headline().starts_with("1 file, 1 member, "), "{}", one.headline());
        let many = RunSummary { files: 0, members: 1000, ..summary() };
        assert!(many.headline().starts_with("0 files, 1 000 members, "), "{}", many.headline());
    }

    #[test]
    fn for_people() {
        insta::assert_snapshot!(summary().to_text(Colour::Plain));
    }

    #[test]
    fn for_programs() {
        insta::assert_snapshot!(format!("{:#}", summary().to_document()));
    }
}
