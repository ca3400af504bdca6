//! The report on a pipeline as text.

use base::escape::{escape, escape_controls};
use base::format::{duration, percent};
use experiment::judgement::quoted;
use pipeline::judge::shown_bytes;
use pipeline::{Look, Stage};
use service::explain::{ExplainEnd, Explained, OtherRun, PipelineRun};

use crate::findings;
use crate::next::next;
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};

/// Letters of a command that the table shows.
const LETTERS: usize = 32;
/// A kind of time below this share of the run has no column.
const LEAST_SHARE: f64 = 0.005;

/// A kind of time.
struct StageTimeKind {
    name: &'static str,
    seconds: fn(&Stage) -> f64,
    is_always_shown: bool,
}

const KINDS: [StageTimeKind; 5] = [
    StageTimeKind { name: "working", seconds: |it| it.working_seconds, is_always_shown: true },
    StageTimeKind { name: "starved", seconds: |it| it.starved_seconds, is_always_shown: true },
    StageTimeKind { name: "blocked", seconds: |it| it.blocked_seconds, is_always_shown: true },
    StageTimeKind { name: "device", seconds: |it| it.device_seconds, is_always_shown: true },
    StageTimeKind { name: "other", seconds: |it| it.other_seconds, is_always_shown: false },
];

/// The whole report.
pub fn text(explained: &Explained, style: Style) -> String {
    let Explained { pipeline, run, baseline, tried, .. } = explained;
    let mut text = String::new();
    if let Some(pipeline) = pipeline {
        text.push_str(&format!("{}\n", escape_controls(pipeline)));
    }
    text.push_str(&fitted(&format!("{}\n\n", headline(run)), style));
    text.push_str(&table(run, style));
    for (number, stage) in run.look.stages.iter().enumerate() {
        if let Some(why) = &stage.bytes_unknown_because {
            text.push_str(&format!("bytes of stage {} are not known: {why}\n", number + 1));
        }
    }
    text.push('\n');
    text.push_str(&findings::list(&run.judgement.findings, style));
    if let Some(OtherRun { line, run: baseline }) = baseline {
        let (whole, rest) = (run.look.seconds, baseline.look.seconds);
        text.push_str(&format!(
            "\nwithout the last stage: {} ({})\n",
            duration(rest),
            escape_controls(line)
        ));
        text.push_str(&format!(
            "the last stage costs {} of the run\n",
            percent(((whole - rest) / whole).max(0.0))
        ));
    }
    if let Some(OtherRun { line, run: tried }) = tried {
        let forecast = run.judgement.predicted.as_ref().map_or(0.0, |it| it.seconds);
        text.push_str(&format!("\ntried: {}\n", escape_controls(line)));
        text.push_str(&format!(
            "{}; forecast {}, before {}\n\n",
            duration(tried.look.seconds),
            duration(forecast),
            duration(run.look.seconds)
        ));
        text.push_str(&table(tried, style));
        text.push('\n');
        text.push_str(&findings::list(&tried.judgement.findings, style));
    }
    text + &next_of(explained)
}

/// Where the run has no advice of its own: the disk below its files may have.
fn next_of(explained: &Explained) -> String {
    let Some(line) = explained.readable_line() else { return String::new() };
    let line = quoted(line);
    "\n".to_owned()
        + &next(
            &format!("takeup diagnose {line}"),
            "tries its source, and what a change would bring",
        )
}

/// What is said on standard error about the end, where something is wrong.
pub fn remark(end: &ExplainEnd) -> Option<String> {
    let text = match end {
        ExplainEnd::Done => return None,
        ExplainEnd::Failed(how) => escape(format!("the pipeline failed: {how}").as_bytes()),
        ExplainEnd::Stopped => "stopped; the report covers the time until then".to_owned(),
        ExplainEnd::NotInserted => {
            "nothing was tried: Takeup cannot insert the proposed change into this line".to_owned()
        }
        ExplainEnd::NothingProposed => {
            "nothing was tried: Takeup has no change to propose".to_owned()
        }
    };
    Some(format!("takeup: {text}\n"))
}

fn headline(run: &PipelineRun) -> String {
    let mut line = format!("took {}", duration(run.look.seconds));
    if let Some([user, system]) = run.processor_seconds {
        let (user, system) = (duration(user), duration(system));
        line.push_str(&format!("; processor time: {user} in programs, {system} in the kernel"));
    }
    if run.is_ended {
        line.push_str("; ended after the time of --for");
    }
    line
}

fn table(run: &PipelineRun, style: Style) -> String {
    // Shares of the pipeline, as in the findings, without other commands of the line.
    let Look { stages, piped_seconds: seconds, .. } = &run.look;
    if stages.is_empty() {
        return String::new();
    }
    let share = |part: f64| part / seconds.max(f64::MIN_POSITIVE);
    let ended = |stage: &Stage| (seconds - stage.lifetime_seconds).max(0.0);
    let has = |kind: &&StageTimeKind| {
        kind.is_always_shown || stages.iter().any(|it| share((kind.seconds)(it)) >= LEAST_SHARE)
    };
    let kinds: Vec<&StageTimeKind> = KINDS.iter().filter(has).collect();
    let has_ended = stages.iter().any(|it| share(ended(it)) >= 0.02);
    let mut columns = vec![("stage", Align::Left)];
    columns.extend(kinds.iter().map(|kind| (kind.name, Align::Right)));
    if has_ended {
        columns.push(("not running", Align::Right));
    }
    columns.extend(["processor", "in", "out"].map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for (number, stage) in stages.iter().enumerate() {
        let is_limit = run.judgement.limit == Some(number);
        let mut cells = vec![format!("{} {}", number + 1, shortened(&stage.command))];
        cells.extend(kinds.iter().map(|kind| percent(share((kind.seconds)(stage)))));
        if has_ended {
            cells.push(percent(share(ended(stage))));
        }
        cells.extend([
            duration(stage.processor_seconds),
            shown_bytes(stage.bytes_in),
            shown_bytes(stage.bytes_out),
        ]);
        table.row(cells, if is_limit { Emphasis::Strong } else { Emphasis::None });
    }
    table.render(style)
}

fn shortened(command: &str) -> String {
    let shown = escape_controls(command);
    match shown.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}...", &shown[..at]),
        None => shown,
    }
}
