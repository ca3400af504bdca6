//! The end of a run for people: the answer, and the table of its stages.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base::escape::escape;
use base::format::{counted, duration, percent, rate, size};
use flow::run::Command;
use runs::run_record::RunWords;
use runs::selection::NotFound;
use runs::summary::{RunSummary, StageSummary, TimeKind};
use runs::verdict::{RunState, Verdict};
use service::failure::near_hint;

use crate::prose::fitted;
use crate::table::{self, Align, Emphasis, Style, Table, Tone};

/// The end of a run, with what only its command adds.
pub struct RunText<'a> {
    pub summary: &'a RunSummary,
    /// What exists now, such as `wrote NAME`; empty where that has no name.
    pub outcome: String,
    /// Lines at the end.
    pub lines: String,
}

impl RunText<'_> {
    /// The answer, without the stages.
    pub fn short(&self, style: Style) -> String {
        fitted(&(answer(self.summary, &self.outcome, style) + &self.lines), style)
    }

    /// All of it, with the stages.
    pub fn whole(&self, style: Style) -> String {
        fitted(&(text(self.summary, &self.outcome, style) + &self.lines), style)
    }
}

/// The end of a run for its record.
pub fn words(summary: &RunSummary) -> RunWords {
    RunWords { text: text(summary, "", Style::PLAIN), headline: headline(summary) }
}

/// What a run that wrote to `to` has made; empty for standard output, which has no name.
pub fn wrote(to: &Path) -> String {
    match to.as_os_str().as_bytes() {
        b"-" => String::new(),
        name => format!("wrote {}", escape(name)),
    }
}

/// A bad verdict in a line, for where no summary is printed; empty for a good one.
pub fn bad_verdict(verdict: &Verdict) -> String {
    if verdict.text.is_empty() || verdict.state == RunState::Done {
        String::new()
    } else {
        format!("takeup: {}\n", verdict.text)
    }
}

/// Most missing paths for which a similar path is proposed.
const NEAR_TOLD_MAX: usize = 5;

/// Hints with similar paths of the archive for missing ones, a line each.
pub fn near_hints(missing: &[NotFound]) -> String {
    let line = |missing: &NotFound| {
        Some(format!("hint: {}\n", near_hint(&missing.path, missing.near.as_ref()?)))
    };
    missing.iter().filter_map(line).take(NEAR_TOLD_MAX).collect()
}

/// Kinds of time with a smaller share of the run have no column.
const LEAST_SHARE: f64 = 0.005;

/// One line with what was done, for example
/// `100 000 files, 900 MB in 2.9 s: 310 MB/s`.
pub fn headline(summary: &RunSummary) -> String {
    let what = match summary.run.members {
        0 => String::new(),
        members => {
            let files = counted(summary.run.files, "file", "files");
            format!("{files}, {}, ", counted(members, "member", "members"))
        }
    };
    let size = size(summary.run.source_bytes);
    let time = duration(summary.run.seconds);
    format!("{what}{size} in {time}: {}", rate(summary.bytes_per_second))
}

/// The table of the stages, times as shares of the run. Each row adds up to 100 %. A kind of
/// time that no stage spent has no column.
pub fn stage_table(summary: &RunSummary, style: Style) -> String {
    let share = |seconds: f64| seconds / summary.run.seconds.max(f64::MIN_POSITIVE);
    let has_share = |kind: &TimeKind| {
        kind.is_always_shown()
            || summary.stages.iter().any(|stage| share(stage.seconds(*kind)) >= LEAST_SHARE)
    };
    let kinds: Vec<TimeKind> = TimeKind::ALL.into_iter().filter(has_share).collect();
    let mut columns = vec![("stage", Align::Left), ("threads", Align::Right)];
    columns.extend(kinds.iter().map(|kind| (kind.name(), Align::Right)));
    columns.extend(["processor", "bytes", "rate while busy"].map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns).leaving_out_first(&["processor", "bytes"]);
    for one in &summary.stages {
        let StageSummary { report: stage, busy_bytes_per_second, .. } = one;
        let emphasis =
            if summary.bottleneck == Some(stage.kind) { Emphasis::Strong } else { Emphasis::None };
        let mut cells = vec![stage.kind.to_string(), stage.threads.to_string()];
        cells.extend(kinds.iter().map(|kind| percent(share(one.seconds(*kind)))));
        cells.extend([
            duration(stage.processor_seconds),
            size(stage.bytes),
            rate(*busy_bytes_per_second),
        ]);
        table.row(cells, emphasis);
    }
    table.render(style)
}

/// The verdict in a line, in the colour of its state; empty where the headline says everything.
fn verdict(verdict: &Verdict, style: Style) -> String {
    let tone = match verdict.state {
        RunState::Done => Tone::Good,
        RunState::Empty
        | RunState::Doubtful
        | RunState::Different
        | RunState::Incomplete
        | RunState::Later => Tone::Warning,
        RunState::Damaged => Tone::Bad,
    };
    match &*verdict.text {
        "" => String::new(),
        text => table::toned(text, tone, style) + "\n",
    }
}

/// What people see first: the verdict, what was done, the limit, and what to type. `outcome` says
/// what exists now, for example `wrote home.tar.zst`; the stages are in
/// [`text`].
pub fn answer(summary: &RunSummary, outcome: &str, style: Style) -> String {
    let mut text = verdict(&summary.verdict, style);
    text.push_str(&format!("{}{}\n", before(outcome), counts(summary)));
    // A run too short to have a limit says nothing about it.
    if let Some(limit) = &summary.limit_in_short {
        text.push_str(&format!("limit: {limit}. -v shows the stages\n"));
        // A claim is always printed with what bounds it.
        let caveat = summary.findings.first().and_then(|it| it.caveat.as_deref());
        text.push_str(&caveat.map_or_else(String::new, |caveat| format!("{caveat}\n")));
    }
    text
}

/// What was counted, in one line, for example
/// `46 416 files, 475 MB in, 191 MB out (40 %), 1.80 s, 264 MB/s`.
fn counts(summary: &RunSummary) -> String {
    let run = &summary.run;
    let mut parts = Vec::new();
    if run.members > 0 {
        parts.push(counted(run.files, "file", "files"));
    }
    if run.command == Command::Backup && run.target_bytes < run.source_bytes {
        let share = run.target_bytes as f64 / run.source_bytes as f64;
        parts.push(format!("{} in", size(run.source_bytes)));
        parts.push(format!("{} out ({})", size(run.target_bytes), percent(share)));
    } else {
        parts.push(size(run.source_bytes));
    }
    parts.extend([duration(run.seconds), rate(summary.bytes_per_second)]);
    parts.join(", ")
}

/// What exists now, in front of the numbers.
fn before(outcome: &str) -> String {
    if outcome.is_empty() { String::new() } else { format!("{outcome}: ") }
}

/// Verdict, headline, table and explanation, for people; `outcome` as in [`answer`].
pub fn text(summary: &RunSummary, outcome: &str, style: Style) -> String {
    let mut text = verdict(&summary.verdict, style);
    text.push_str(&format!("{}{}\n", before(outcome), headline(summary)));
    if !summary.stages.is_empty() {
        text.push_str(&stage_table(summary, style));
    }
    for sentence in summary.explanation.split("; ") {
        text.push_str(sentence);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::run::{Endpoint, RunReport, StageKind, StageReport};
    use runs::summary::Warning;

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

    #[test]
    fn one_is_no_many() {
        let one = summary(RunReport { files: 1, members: 1, ..run() });
        assert!(headline(&one).starts_with("1 file, 1 member, "), "{}", headline(&one));
        let many = summary(RunReport { files: 0, members: 1000, ..run() });
        assert!(headline(&many).starts_with("0 files, 1 000 members, "), "{}", headline(&many));
    }

    #[test]
    fn the_answer_is_what_was_done_and_the_limit() {
        let run = RunReport {
            command: Command::Backup,
            files: 1200,
            members: 1300,
            target_bytes: 402_000_000,
            ..run()
        };
        let answer = super::answer(&summary(run), "wrote home.tar.zst", Style::PLAIN);
        let lines: Vec<&str> = answer.lines().collect();
        let done =
            "wrote home.tar.zst: 1 200 files, 1.00 GB in, 402 MB out (40 %), 5.00 s, 200 MB/s";
        assert_eq!(lines.len(), 2, "{answer}");
        assert_eq!(lines[0], done);
        assert_eq!(lines[1], "limit: the program that reads the pipe. -v shows the stages");
    }

    /// What bounds the claim is said with it, and a tape that only wound is named.
    #[test]
    fn the_answer_keeps_what_bounds_it() {
        let changed = RunReport { change_seconds: 60.0, seconds: 65.0, ..run() };
        let answer = super::answer(&summary(changed), "", Style::PLAIN);
        assert!(answer.contains("\nchanges of volume took 1 min 00 s of it"), "{answer}");
        let wound = RunReport {
            seconds: 70.0,
            ready_seconds: 69.9,
            stages: vec![StageReport::of_one_thread(StageKind::Read, [0.01, 0.0, 0.0])],
            ..run()
        };
        let wound = summary(wound);
        assert_eq!(wound.limit, "unknown");
        let answer = super::answer(&wound, "", Style::PLAIN);
        assert!(
            answer.contains("limit: none of the stages; of 1 min 10 s winding took"),
            "{answer}"
        );
    }

    #[test]
    fn a_run_without_a_limit_says_none() {
        let run = RunReport { seconds: 0.001, stages: Vec::new(), ..run() };
        let answer = super::answer(&summary(run), "", Style::PLAIN);
        assert_eq!(answer.lines().count(), 1, "{answer}");
        assert!(!answer.contains("-v"), "{answer}");
    }

    #[test]
    fn for_people() {
        insta::assert_snapshot!(text(&summary(run()), "wrote x.tar", Style::PLAIN));
    }

    /// An LTO-1 that winds for half of the run.
    #[test]
    fn a_tape_has_columns_of_its_own() {
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
        insta::assert_snapshot!(text(&summary, "", Style::PLAIN));
    }
}
