//! Tables from experiments: every contender at every work, then the targets.
//!
//! A folder may hold many campaigns, complete ones and single works; for each work the latest
//! counts. The same rows are printed for a terminal and as Markdown for the docs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use base::calendar::time_text;
use experiment::record::Experiment;
use report::table::{Align, Emphasis, Style, Table};
use statistics::{geometric_mean, mean};

use crate::environment::memory_gib;
use crate::estimate::Estimate;
use crate::record::{self, Run};
use crate::tape;
use crate::targets::{self, TARGETS, TargetVerdict};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// Columns padded with spaces.
    Terminal,
    /// Markdown.
    Markdown,
}

const DRIVES_EXPLAINED: &str = "
\"model\" is the same run in virtual time; for Takeup on a drive as it comes, the least time that
the drive needs. \"MB/s then\" is the rate on the medium while it streams.

";

const CONTENDERS_EXPLAINED: &str = "
\"takeup is\" n times as fast: geometric mean of the ratios of each round, and its interval of 95 %
(Student's t of their logarithms).

";

const HEADS: [&str; 8] =
    ["work", "contender", "rounds", "seconds", "MB/s", "CPU s", "RSS MiB", "takeup is"];
const TARGET_HEADS: [&str; 5] = ["work", "against", "asked", "measured", "verdict"];

/// The data of each work, from its latest experiment.
#[derive(Default)]
struct Latest {
    /// Of the last campaign, and when it began.
    environment: BTreeMap<String, String>,
    started_unix_seconds: u64,
    runs: Vec<Run>,
    /// Work, contender, reason.
    left_out: Vec<(String, String, String)>,
}

/// Prints the tables of the experiments.
///
/// # Errors
/// When a run is not one of a contender.
pub fn render(experiments: &[Experiment], format: TableFormat) -> anyhow::Result<String> {
    let latest = Latest::of(experiments)?;
    let runs = &latest.runs;
    let mut out = String::new();
    if !latest.environment.is_empty() {
        let _ = write!(out, "{}\n\n", latest.environment_line());
    }
    out.push_str(&grid(format, &HEADS, contender_rows(runs)));
    out.push_str(CONTENDERS_EXPLAINED);
    let drives = tape::table::rows(runs);
    if !drives.is_empty() {
        out.push_str(&grid(format, &tape::table::HEADS, drives));
        out.push_str(DRIVES_EXPLAINED);
    }
    out.push_str(&grid(format, &TARGET_HEADS, target_rows(runs)));
    let disturbed = disturbance(runs);
    if !disturbed.is_empty() {
        let _ = write!(out, "\n{disturbed}\n");
    }
    for (work, contender, reason) in &latest.left_out {
        let who = if contender.is_empty() { "all" } else { contender };
        let _ = write!(out, "\nnot run: {work}: {who}: {reason}");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    Ok(out)
}

impl Latest {
    fn of(experiments: &[Experiment]) -> anyhow::Result<Latest> {
        let mut order: Vec<&Experiment> = experiments.iter().collect();
        order.sort_by_key(|experiment| experiment.header.started_unix_seconds);
        let mut latest = Latest::default();
        for experiment in order {
            let works = experiment.header.factors.iter().find(|factor| factor.name == record::WORK);
            let works = works.context("an experiment without works")?;
            let works: Vec<String> =
                works.levels.iter().map(|work| work.shown(record::WORK)).collect();
            latest.runs.retain(|run| !works.contains(&run.work));
            latest.left_out.retain(|(work, ..)| !works.contains(work));
            latest.started_unix_seconds = experiment.header.started_unix_seconds;
            for run in &experiment.runs {
                latest.environment.clone_from(&run.environment);
                latest.runs.extend(Run::of(run)?);
                if let Some(error) = &run.error {
                    let of = |factor| record::word(&run.cell, factor);
                    let one = (of(record::WORK), of(record::CONTENDER), error.clone());
                    latest.left_out.push(one);
                }
            }
        }
        Ok(latest)
    }

    fn environment_line(&self) -> String {
        let of = |name: &str| self.environment.get(name).map_or("unknown", String::as_str);
        format!(
            "{}: {} x {}, {} GiB, Linux {}, {}, read-ahead {} KiB, commit {}",
            time_text(i64::try_from(self.started_unix_seconds).unwrap_or(i64::MAX)),
            of("cores"),
            of("processor"),
            memory_gib(&self.environment),
            of("kernel"),
            of("file system"),
            of("queue read_ahead_kb"),
            of("commit"),
        )
    }
}

fn contender_rows(runs: &[Run]) -> Vec<Vec<String>> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    // A drive's rate does not compare programs: it has a separate table.
    let is_compared = |run: &&Run| run.tape.as_ref().is_none_or(|tape| tape.rate.is_none());
    for run in runs.iter().filter(is_compared) {
        let key = (run.work.as_str(), run.contender.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    // Each round has its own order; the table keeps works in the order of their first run, the
    // product first, then the fastest.
    let works: Vec<&str> = seen.iter().map(|(work, _)| *work).collect();
    let place = |work: &str| works.iter().position(|other| *other == work);
    let seconds = |work: &str, contender: &str| {
        let seconds: Vec<f64> = runs_of(runs, work, contender).map(|run| run.seconds).collect();
        geometric_mean(&seconds).unwrap_or(f64::INFINITY)
    };
    seen.sort_by(|a, b| {
        let key =
            |(work, contender): (&str, &str)| (place(work), !targets::is(contender, "takeup"));
        key(*a).cmp(&key(*b)).then(seconds(a.0, a.1).total_cmp(&seconds(b.0, b.1)))
    });
    seen.into_iter().map(|(work, contender)| contender_row(runs, work, contender)).collect()
}

fn contender_row(runs: &[Run], work: &str, contender: &str) -> Vec<String> {
    let those: Vec<&Run> = runs_of(runs, work, contender).collect();
    let all = |value: fn(&Run) -> f64| those.iter().map(|run| value(run)).collect::<Vec<f64>>();
    let seconds = geometric_mean(&all(|run| run.seconds)).unwrap_or(f64::NAN);
    let processor_seconds = mean(&all(Run::cpu_seconds)).unwrap_or(f64::NAN);
    let input_bytes = those.first().map_or(0, |run| run.input_bytes) as f64;
    let most_bytes = those.iter().flat_map(|run| &run.uses).map(|stage| stage.max_rss_bytes).max();
    let ratio = if targets::is(contender, "takeup") {
        String::new()
    } else {
        let ratios = targets::paired(runs, work, "takeup", contender, |product, other| {
            other.seconds / product.seconds
        });
        Estimate::of(&ratios).map_or_else(|| "-".to_string(), |ratio| ratio.shown(3, " x"))
    };
    vec![
        work.to_string(),
        contender.to_string(),
        those.len().to_string(),
        format!("{seconds:.3}"),
        format!("{:.0}", input_bytes / seconds / 1e6),
        format!("{processor_seconds:.2}"),
        format!("{}", most_bytes.unwrap_or(0) >> 20),
        ratio,
    ]
}

fn runs_of<'a>(
    runs: &'a [Run],
    work: &'a str,
    contender: &'a str,
) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.work == work && run.contender == contender)
}

fn target_rows(runs: &[Run]) -> Vec<Vec<String>> {
    TARGETS
        .iter()
        .map(|target| {
            let measured = target.measured(runs);
            let verdict = match target.verdict(measured) {
                TargetVerdict::Reached => "reached",
                TargetVerdict::TypicalOnly => "typical only",
                TargetVerdict::Missed => "MISSED",
                TargetVerdict::NotMeasured => "not measured",
            };
            let work = target.work.trim_end_matches('-').to_string();
            let measured = measured.map_or_else(|| "-".to_string(), |value| value.shown(3, ""));
            vec![work, target.against.to_string(), target.asked(), measured, verdict.to_string()]
        })
        .collect()
}

/// Reports when other programs used the processors during timed runs: such numbers are worth less.
fn disturbance(runs: &[Run]) -> String {
    let disturbed = runs
        .iter()
        .filter(|run| run.other_cpu_seconds + run.steal_seconds > 0.1 * run.seconds.max(0.5))
        .count();
    if disturbed == 0 {
        return String::new();
    }
    let all = runs.len();
    format!("note: in {disturbed} of {all} runs others used more than a tenth of a processor")
}

fn grid(format: TableFormat, heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let columns: Vec<(&str, Align)> = heads.iter().map(|head| (*head, Align::Left)).collect();
    let mut table = Table::new(&columns);
    rows.into_iter().for_each(|row| table.row(row, Emphasis::None));
    match format {
        TableFormat::Terminal => table.render(Style::PLAIN),
        TableFormat::Markdown => table.markdown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::plan;
    use experiment::record::{Header, RunRecord};

    fn run(work: &str, contender: &str, seconds: f64) -> RunRecord {
        let run = Run { seconds, input_files: 1, input_bytes: 2_000_000, ..Run::default() };
        let cell = record::cell(work, contender);
        RunRecord { cell, repeat: 1, ..run.to_record().unwrap() }
    }

    fn experiment(started_unix_seconds: u64, runs: Vec<RunRecord>) -> Experiment {
        let header = experiment::run::header(&plan(record::KIND, &["mixed-zstd"], &["takeup"], 1));
        let header = Header { started_unix_seconds, ..header };
        Experiment { header, runs, torn_bytes: 0 }
    }

    #[test]
    fn the_latest_campaign_of_a_work_counts() {
        let work = "mixed-zstd";
        let failed = RunRecord {
            cell: record::cell(work, "bsdtar|zstd"),
            error: Some("not installed".to_owned()),
            ..RunRecord::default()
        };
        let experiments = [
            experiment(2, vec![run(work, "takeup", 1.0), run(work, "tar|zstd", 2.0), failed]),
            experiment(1, vec![run(work, "takeup", 9.0), run(work, "tar|zstd", 1.0)]),
        ];
        let text = render(&experiments, TableFormat::Terminal).unwrap();
        assert!(text.contains("2.000 x"), "{text}");
        assert!(!text.contains("9.000"), "{text}");
        let target = text.lines().find(|line| line.contains("at least 1.25")).unwrap();
        assert!(target.ends_with("typical only"), "one round has no interval: {target}");
        assert!(text.contains(": mixed-zstd: bsdtar|zstd: not installed"), "{text}");
        assert!(text.contains("not measured"), "{text}");
    }

    #[test]
    fn markdown_rows_have_as_many_cells_as_heads() {
        let runs = vec![run("mixed-zstd", "takeup", 1.0), run("mixed-zstd", "tar|zstd", 2.0)];
        let text = render(&[experiment(1, runs)], TableFormat::Markdown).unwrap();
        let mut tables = 0;
        let mut cells = 0;
        for line in text.lines().filter(|line| line.starts_with('|')) {
            let count = line.replace("\\|", "").matches('|').count();
            if line.starts_with("| work") {
                tables += 1;
                cells = count;
            }
            assert_eq!(count, cells, "{line}");
        }
        assert_eq!(tables, 2);
    }
}
