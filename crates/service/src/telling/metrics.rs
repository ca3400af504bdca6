//! Numbers in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), as the textfile collector of
//! node_exporter reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use runs::streaming::TapeSummary;
use runs::summary::RunSummary;

use super::{Ended, Media};
use crate::jobs::{JobStatusAnswer, StatusAnswer};

/// The label of a job: `job` is what Prometheus calls the place that it has numbers from.
pub(super) const JOB: &str = "takeup_job";

/// Every number of `--metrics`, with what it is. Names are a promise: `docs/promises.md`.
pub const NUMBERS: [(&str, &str); 27] = [
    (LAST_SUCCESS, "When a run last ended with exit code 0."),
    (LAST_VERIFIED, "When what was read back was last sound."),
    ("takeup_run_end_timestamp_seconds", "When the last run ended."),
    (
        "takeup_run_exit_code",
        "How it ended: 0 done, 1 failed or damage found, 2 incomplete, 3 of a later version.",
    ),
    ("takeup_run_seconds", "How long it took."),
    ("takeup_run_damaged_archives", "Archives that were read back after it and are damaged."),
    ("takeup_run_files", "Files that were handled."),
    ("takeup_run_source_bytes", "Bytes of their content."),
    ("takeup_run_archive_bytes", "Bytes of the archive as stored."),
    ("takeup_run_warnings", "What it warned about: left out, damaged or different."),
    ("takeup_run_limit", "What limited it; the value is always 1."),
    (
        "takeup_run_finding",
        "What its summary told, by rule (takeup help rules); the value is always 1.",
    ),
    ("takeup_tape_volumes", "Media that the set is on."),
    ("takeup_tape_bytes_per_second", "Bytes for each second that the drive was given."),
    (
        "takeup_tape_lowest_bytes_per_second",
        "The lowest speed of the drive; below it the drive stops and winds back.",
    ),
    (
        "takeup_tape_below_lowest_speed",
        "1 where the drive was given less than its lowest speed, and stops.",
    ),
    ("takeup_tape_ring_ran_empty", "How often there was nothing to give to the drive."),
    (
        "takeup_job_last_success_timestamp_seconds",
        "When the last set that can be restored was begun.",
    ),
    (
        "takeup_job_last_verified_timestamp_seconds",
        "When the last set that was read back whole and is sound was begun.",
    ),
    ("takeup_job_overdue", "1 where its last success is too long ago."),
    ("takeup_job_failed", "1 where its last run failed."),
    ("takeup_job_sets", "Sets that can be restored."),
    ("takeup_job_bytes", "Bytes of all its archives."),
    ("takeup_job_unread_archives", "Archives that were not read within the time that it promises."),
    ("takeup_job_problems", "What is wrong with it."),
    ("takeup_tape_media", "Media that hold sets, by whether a run of a job may write over them."),
    ("takeup_status_timestamp_seconds", "When this was found."),
];

const LAST_SUCCESS: &str = "takeup_last_success_timestamp_seconds";
const LAST_VERIFIED: &str = "takeup_last_verified_timestamp_seconds";

/// Kept from the file of the run before, where this run has no newer one.
const KEPT: [&str; 2] = [LAST_SUCCESS, LAST_VERIFIED];

/// What a number is.
fn help(name: &str) -> &'static str {
    let known = NUMBERS.iter().find(|(own, _)| *own == name);
    debug_assert!(known.is_some(), "{name} is not among the numbers that are promised");
    known.map_or("", |(_, help)| help)
}

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
    fn gauge(&mut self, name: &'static str, labels: &Labels<'_>, value: f64) {
        let family = self.families.entry(name).or_default();
        family.help = help(name);
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
            family.help = help(name);
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
    metrics.gauge("takeup_run_end_timestamp_seconds", labels, now);
    metrics.gauge("takeup_run_exit_code", labels, f64::from(ended.exit_code));
    metrics.gauge("takeup_run_seconds", labels, ended.seconds);
    if ended.is_success() {
        metrics.gauge(LAST_SUCCESS, labels, now);
    }
    if ended.is_verified {
        metrics.gauge(LAST_VERIFIED, labels, now);
    }
    if let Some(summary) = ended.run {
        counts(metrics, labels, summary);
    }
    if let Some(tape) = ended.tape {
        tape_numbers(metrics, labels, tape);
    }
    if let Some(job) = ended.job {
        let unsound = job.verified.iter().filter(|it| !it.sound && !it.unread).count() as f64;
        metrics.gauge("takeup_run_damaged_archives", labels, unsound);
    }
}

fn counts(metrics: &mut Metrics, labels: &Labels<'_>, summary: &RunSummary) {
    let run = &summary.run;
    let mut gauge = |name, value: f64| metrics.gauge(name, labels, value);
    gauge("takeup_run_files", run.files as f64);
    gauge("takeup_run_source_bytes", run.source_bytes as f64);
    gauge("takeup_run_archive_bytes", run.target_bytes as f64);
    gauge("takeup_run_warnings", summary.warnings_total as f64);
    let stage = summary.bottleneck.map_or("none", |stage| stage.name());
    let limit = [labels, &[("limit", &*summary.limit), ("stage", stage)]].concat();
    metrics.gauge("takeup_run_limit", &limit, 1.0);
    let rules: BTreeSet<String> = summary.findings.iter().map(|it| it.rule.to_string()).collect();
    for rule in rules {
        let finding = [labels, &[("rule", rule.as_str())]].concat();
        metrics.gauge("takeup_run_finding", &finding, 1.0);
    }
}

fn tape_numbers(metrics: &mut Metrics, labels: &Labels<'_>, tape: &TapeSummary) {
    let mut gauge = |name, value: f64| metrics.gauge(name, labels, value);
    gauge("takeup_tape_volumes", f64::from(tape.volumes));
    gauge("takeup_tape_bytes_per_second", tape.streaming_bytes_per_second);
    gauge("takeup_tape_ring_ran_empty", tape.ring_ran_empty as f64);
    if let Some(lowest) = tape.lowest_bytes_per_second {
        gauge("takeup_tape_lowest_bytes_per_second", lowest as f64);
    }
    if let Some(kept) = tape.kept_streaming {
        gauge("takeup_tape_below_lowest_speed", if kept { 0.0 } else { 1.0 });
    }
}

/// The state of all jobs.
pub(super) fn status(metrics: &mut Metrics, status: &StatusAnswer, now: u64) {
    for job in &status.jobs {
        of_job(metrics, job);
    }
    metrics.gauge("takeup_status_timestamp_seconds", &[], now as f64);
}

/// The media, where there are any.
pub(super) fn media(metrics: &mut Metrics, media: Media) {
    if media == Media::default() {
        return;
    }
    for (state, count) in [("free", media.free), ("kept", media.kept)] {
        metrics.gauge("takeup_tape_media", &[("state", state)], count as f64);
    }
}

fn of_job(metrics: &mut Metrics, job: &JobStatusAnswer) {
    let labels = [(JOB, job.job.as_str())];
    let mut gauge = |name, value: f64| metrics.gauge(name, &labels, value);
    if let Some(seconds) = job.last_success_seconds {
        gauge("takeup_job_last_success_timestamp_seconds", seconds as f64);
    }
    if let Some(seconds) = job.last_verified_success_seconds {
        gauge("takeup_job_last_verified_timestamp_seconds", seconds as f64);
    }
    let of = |is: bool| if is { 1.0 } else { 0.0 };
    gauge("takeup_job_overdue", of(job.overdue));
    let has_failed = job.last_result.as_deref() == Some("failed");
    gauge("takeup_job_failed", of(has_failed));
    gauge("takeup_job_sets", job.sets as f64);
    gauge("takeup_job_bytes", job.bytes as f64);
    gauge("takeup_job_unread_archives", job.unread as f64);
    gauge("takeup_job_problems", job.problems.len() as f64);
}
