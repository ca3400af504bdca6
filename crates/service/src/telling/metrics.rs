//! Numbers in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), as the textfile collector of
//! node_exporter reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use runs::streaming::TapeSummary;
use runs::summary::RunSummary;

use super::Ended;
use crate::jobs::{JobStatusAnswer, StatusAnswer};

/// The label of a job: `job` is what Prometheus calls the place that it has numbers from.
pub(super) const JOB: &str = "takeup_job";

/// Kept from the file of the run before, where this run has no newer one.
const KEPT: [&str; 2] =
    ["takeup_last_success_timestamp_seconds", "takeup_last_verified_timestamp_seconds"];

/// Gauges by name, each with its samples.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    families: BTreeMap<&'static str, Family>,
}

#[derive(Debug, Default)]
struct Family {
    help: &'static str,
    /// Labels as they are written, with the value.
    samples: BTreeMap<String, f64>,
}

type Labels<'a> = [(&'a str, &'a str)];

impl Metrics {
    fn gauge(&mut self, name: &'static str, help: &'static str, labels: &Labels<'_>, value: f64) {
        let family = self.families.entry(name).or_default();
        family.help = help;
        family.samples.insert(written(labels), value);
    }

    /// Takes over from an older text what is to stay of this run: targets whose names have the date
    /// would fill the file.
    pub(super) fn keep(&mut self, older: &str, labels: &Labels<'_>) {
        let labels = written(labels);
        for name in KEPT {
            let own =
                |line: &str| line.strip_prefix(name)?.strip_prefix(&labels)?.trim().parse().ok();
            let Some(value) = older.lines().find_map(own) else { continue };
            let family = self.families.entry(name).or_default();
            family.help = help_of_kept(name);
            family.samples.entry(labels.clone()).or_insert(value);
        }
    }

    /// The file.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, family) in &self.families {
            let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} gauge", family.help);
            for (labels, value) in &family.samples {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        }
        text
    }
}

fn help_of_kept(name: &str) -> &'static str {
    if name == KEPT[0] {
        "When a run last ended with exit code 0."
    } else {
        "When what was read back was last sound."
    }
}

/// Labels between braces. Backslashes, quotes and line ends are escaped, as the format asks for;
/// other control characters are left out.
fn written(labels: &Labels<'_>) -> String {
    let value = |text: &str| {
        let mut escaped = String::new();
        for letter in text.chars() {
            match letter {
                '\\' => escaped.push_str("\\\\"),
                '"' => escaped.push_str("\\\""),
                '\n' => escaped.push_str("\\n"),
                control if control.is_control() => {}
                other => escaped.push(other),
            }
        }
        escaped
    };
    let all: Vec<String> =
        labels.iter().map(|(name, text)| format!("{name}=\"{}\"", value(text))).collect();
    format!("{{{}}}", all.join(","))
}

/// The numbers of a run.
pub(super) fn run(metrics: &mut Metrics, labels: &Labels<'_>, ended: &Ended<'_>, now: u64) {
    let now = now as f64;
    metrics.gauge("takeup_run_end_timestamp_seconds", "When the last run ended.", labels, now);
    let help =
        "How it ended: 0 done, 1 failed or damage found, 2 incomplete, 3 of a later version.";
    metrics.gauge("takeup_run_exit_code", help, labels, f64::from(ended.exit_code));
    metrics.gauge("takeup_run_seconds", "How long it took.", labels, ended.seconds);
    if ended.is_success() {
        metrics.gauge(KEPT[0], help_of_kept(KEPT[0]), labels, now);
    }
    if ended.is_verified {
        metrics.gauge(KEPT[1], help_of_kept(KEPT[1]), labels, now);
    }
    if let Some(summary) = ended.run {
        counts(metrics, labels, summary);
    }
    if let Some(tape) = ended.tape {
        tape_numbers(metrics, labels, tape);
    }
    if let Some(job) = ended.job {
        let unsound = job.verified.iter().filter(|it| !it.sound && !it.unread).count() as f64;
        let help = "Archives that were read back after it and are damaged.";
        metrics.gauge("takeup_run_damaged_archives", help, labels, unsound);
    }
}

fn counts(metrics: &mut Metrics, labels: &Labels<'_>, summary: &RunSummary) {
    let run = &summary.run;
    let mut gauge = |name, help, value: f64| metrics.gauge(name, help, labels, value);
    gauge("takeup_run_files", "Files that were handled.", run.files as f64);
    gauge("takeup_run_source_bytes", "Bytes of their content.", run.source_bytes as f64);
    gauge("takeup_run_archive_bytes", "Bytes of the archive as stored.", run.target_bytes as f64);
    let help = "What it warned about: left out, damaged or different.";
    gauge("takeup_run_warnings", help, summary.warnings_total as f64);
    let stage = summary.bottleneck.map_or("none", |stage| stage.name());
    let limit = [labels, &[("limit", &*summary.limit), ("stage", stage)]].concat();
    metrics.gauge("takeup_run_limit", "What limited it; the value is always 1.", &limit, 1.0);
    let rules: BTreeSet<String> = summary.findings.iter().map(|it| it.rule.to_string()).collect();
    for rule in rules {
        let finding = [labels, &[("rule", rule.as_str())]].concat();
        let help = "What its summary told, by rule (takeup help rules); the value is always 1.";
        metrics.gauge("takeup_run_finding", help, &finding, 1.0);
    }
}

fn tape_numbers(metrics: &mut Metrics, labels: &Labels<'_>, tape: &TapeSummary) {
    let mut gauge = |name, help, value: f64| metrics.gauge(name, help, labels, value);
    gauge("takeup_tape_volumes", "Media that the set is on.", f64::from(tape.volumes));
    let help = "Bytes for each second that the drive was given.";
    gauge("takeup_tape_bytes_per_second", help, tape.streaming_bytes_per_second);
    if let Some(kept) = tape.kept_streaming {
        let help = "1 where the drive was given less than its lowest speed, and stops.";
        gauge("takeup_tape_below_lowest_speed", help, if kept { 0.0 } else { 1.0 });
    }
}

/// The state of all jobs.
pub(super) fn status(metrics: &mut Metrics, status: &StatusAnswer, now: u64) {
    for job in &status.jobs {
        of_job(metrics, job);
    }
    metrics.gauge("takeup_status_timestamp_seconds", "When this was found.", &[], now as f64);
}

fn of_job(metrics: &mut Metrics, job: &JobStatusAnswer) {
    let labels = [(JOB, job.job.as_str())];
    let mut gauge = |name, help, value: f64| metrics.gauge(name, help, &labels, value);
    if let Some(seconds) = job.last_success_seconds {
        let help = "When the last set that can be restored was begun.";
        gauge("takeup_job_last_success_timestamp_seconds", help, seconds as f64);
    }
    if let Some(seconds) = job.last_verified_success_seconds {
        let help = "When the last set that was read back whole and is sound was begun.";
        gauge("takeup_job_last_verified_timestamp_seconds", help, seconds as f64);
    }
    let of = |is: bool| if is { 1.0 } else { 0.0 };
    gauge("takeup_job_overdue", "1 where its last success is too long ago.", of(job.overdue));
    let has_failed = job.last_result.as_deref() == Some("failed");
    gauge("takeup_job_failed", "1 where its last run failed.", of(has_failed));
    gauge("takeup_job_sets", "Sets that can be restored.", job.sets as f64);
    gauge("takeup_job_bytes", "Bytes of all its archives.", job.bytes as f64);
    let help = "Archives that were not read within the time that it promises.";
    gauge("takeup_job_unread_archives", help, job.unread as f64);
    gauge("takeup_job_problems", "What is wrong with it.", job.problems.len() as f64);
}
