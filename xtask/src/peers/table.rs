//! Tables from records: every contender at every work, then the targets.
//!
//! A file may hold many campaigns, whole ones and single works; for each work the latest campaign
//! that timed it counts. The same rows are printed for a terminal and as Markdown for the docs.

use std::fmt::Write as _;

use super::record::{Environment, Phase, Record, Run, Skipped};
use super::statistics::{Estimate, estimate, median};
use super::tape;
use super::targets::{self, TARGETS, Verdict};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns padded with spaces.
    Terminal,
    /// Markdown.
    Markdown,
}

const DRIVES_EXPLAINED: &str = "
\"model\" is the same run in virtual time; for Takeup on a drive as it comes, the least time that
the drive needs. \"MB/s then\" is the rate on the medium while it streams.

";

/// Prints the tables of the records.
pub fn render(records: &[Record], format: Format) -> String {
    let runs = latest_runs(records);
    let mut out = String::new();
    if let Some(environment) = last_environment(records, &runs) {
        out.push_str(&environment_line(environment));
        out.push_str("\n\n");
    }
    let contenders = contender_rows(&runs);
    let heads = ["work", "contender", "rounds", "seconds", "MB/s", "CPU s", "RSS MiB", "takeup is"];
    grid(&mut out, format, &heads, &contenders);
    out.push_str("\n\"takeup is\" n times as fast: median of the ratios of each round, and its ");
    out.push_str("spread (95 % bootstrap interval,\nor the range below five rounds).\n\n");
    let drives = tape::table::rows(&runs);
    if !drives.is_empty() {
        grid(&mut out, format, &tape::table::HEADS, &drives);
        out.push_str(DRIVES_EXPLAINED);
    }
    grid(
        &mut out,
        format,
        &["work", "against", "asked", "measured", "verdict"],
        &target_rows(&runs),
    );
    let disturbed = disturbance(&runs);
    if !disturbed.is_empty() {
        let _ = write!(out, "\n{disturbed}\n");
    }
    for skipped in skips(records, &runs) {
        let who = skipped.contender.as_deref().unwrap_or("all");
        let _ = write!(out, "\nskipped: {}: {who}: {}", skipped.work, skipped.reason);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Timed and check runs of the latest campaign of each work.
fn latest_runs(records: &[Record]) -> Vec<Run> {
    let all = || {
        records.iter().filter_map(|record| match record {
            Record::Run(run) => Some(run),
            _ => None,
        })
    };
    let latest = |work: &str| {
        let mut timed = all().filter(|run| run.work == work && run.phase == Phase::Timed);
        timed.next_back().map(|run| run.campaign.as_str())
    };
    all()
        .filter(|run| run.phase != Phase::Sweep)
        .filter(|run| latest(&run.work) == Some(run.campaign.as_str()))
        .cloned()
        .collect()
}

fn last_environment<'a>(records: &'a [Record], runs: &[Run]) -> Option<&'a Environment> {
    let campaign = runs.last().map(|run| run.campaign.as_str());
    records.iter().rev().find_map(|record| match record {
        Record::Campaign(environment)
            if campaign.is_none_or(|name| name == environment.campaign) =>
        {
            Some(environment)
        }
        _ => None,
    })
}

fn environment_line(environment: &Environment) -> String {
    let read_ahead = environment
        .read_ahead_bytes
        .map_or_else(String::new, |bytes| format!(", read-ahead {} KiB", bytes >> 10));
    format!(
        "{}, {} data: {} x {}, {} GiB, Linux {}, {}{read_ahead}, commit {}",
        environment.campaign,
        environment.size,
        environment.processors,
        environment.processor,
        environment.memory_bytes.div_ceil(1 << 30),
        environment.kernel,
        environment.file_system,
        environment.commit.as_deref().unwrap_or("unknown"),
    )
}

fn contender_rows(runs: &[Run]) -> Vec<Vec<String>> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    // A drive's rate is no comparison of programs: it has a table of its own.
    let is_compared = |run: &&Run| {
        run.phase == Phase::Timed && run.tape.as_ref().is_none_or(|t| t.rate.is_none())
    };
    for run in runs.iter().filter(is_compared) {
        let key = (run.work.as_str(), run.contender.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    // Rounds turn the order; the table keeps works in the order of their first run, the product
    // first, then the fastest.
    let works: Vec<&str> = seen.iter().map(|(work, _)| *work).collect();
    let place = |work: &str| works.iter().position(|other| *other == work);
    let seconds = |work: &str, contender: &str| {
        median(&timed(runs, work, contender).map(|run| run.seconds).collect::<Vec<_>>())
            .unwrap_or(f64::INFINITY)
    };
    seen.sort_by(|a, b| {
        let key = |(work, contender): (&str, &str)| (place(work), contender != "takeup");
        key(*a).cmp(&key(*b)).then(seconds(a.0, a.1).total_cmp(&seconds(b.0, b.1)))
    });
    seen.into_iter().map(|(work, contender)| contender_row(runs, work, contender)).collect()
}

fn contender_row(runs: &[Run], work: &str, contender: &str) -> Vec<String> {
    let those: Vec<&Run> = timed(runs, work, contender).collect();
    let middle = |value: &dyn Fn(&Run) -> f64| {
        median(&those.iter().map(|run| value(run)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let seconds = middle(&|run| run.seconds);
    let input_bytes = those.first().map_or(0, |run| run.input_bytes) as f64;
    let most_bytes = those.iter().flat_map(|run| &run.uses).map(|stage| stage.max_rss_bytes).max();
    let ratio = if contender == "takeup" {
        String::new()
    } else {
        let ratios = targets::paired(runs, work, "takeup", contender, |product, other| {
            other.seconds / product.seconds
        });
        estimate(&ratios).map_or_else(|| "-".to_string(), |ratio| spread(ratio, " x"))
    };
    vec![
        work.to_string(),
        contender.to_string(),
        those.len().to_string(),
        format!("{seconds:.3}"),
        format!("{:.0}", input_bytes / seconds / 1e6),
        format!("{:.2}", middle(&Run::cpu_seconds)),
        format!("{}", most_bytes.unwrap_or(0) >> 20),
        ratio,
    ]
}

fn timed<'a>(
    runs: &'a [Run],
    work: &'a str,
    contender: &'a str,
) -> impl Iterator<Item = &'a Run> + 'a {
    let of = move |run: &&Run| run.work == work && run.contender == contender;
    runs.iter().filter(|run| run.phase == Phase::Timed).filter(of)
}

fn target_rows(runs: &[Run]) -> Vec<Vec<String>> {
    TARGETS
        .iter()
        .map(|target| {
            let measured = target.measured(runs);
            let verdict = match target.verdict(measured) {
                Verdict::Reached => "reached",
                Verdict::MedianOnly => "median only",
                Verdict::Missed => "MISSED",
                Verdict::NotMeasured => "not measured",
            };
            let work = target.work.trim_end_matches('-').to_string();
            let measured = measured.map_or_else(|| "-".to_string(), |value| spread(value, ""));
            vec![work, target.against.to_string(), target.asked(), measured, verdict.to_string()]
        })
        .collect()
}

fn spread(estimate: Estimate, unit: &str) -> String {
    let Estimate { median, low, high, count } = estimate;
    match count {
        1 => format!("{median:.3}{unit}"),
        _ => format!("{median:.3}{unit} ({low:.3}..{high:.3})"),
    }
}

/// Says when others used the processors during timed runs: such numbers are worth less.
fn disturbance(runs: &[Run]) -> String {
    let timed: Vec<&Run> = runs.iter().filter(|run| run.phase == Phase::Timed).collect();
    let disturbed = timed
        .iter()
        .filter(|run| run.other_cpu_seconds + run.steal_seconds > 0.1 * run.seconds.max(0.5))
        .count();
    if disturbed == 0 {
        return String::new();
    }
    format!(
        "note: in {disturbed} of {} timed runs others used more than a tenth of a processor",
        timed.len()
    )
}

fn skips<'a>(records: &'a [Record], runs: &[Run]) -> Vec<&'a Skipped> {
    let mut campaigns: Vec<&str> = runs.iter().map(|run| run.campaign.as_str()).collect();
    campaigns.dedup();
    records
        .iter()
        .filter_map(|record| match record {
            Record::Skipped(skipped) if campaigns.contains(&skipped.campaign.as_str()) => {
                Some(skipped)
            }
            _ => None,
        })
        .collect()
}

fn grid(out: &mut String, format: Format, heads: &[&str], rows: &[Vec<String>]) {
    // A pipe in a cell would end it in Markdown.
    let text = |cell: &str| match format {
        Format::Terminal => cell.to_string(),
        Format::Markdown => cell.replace('|', "\\|"),
    };
    let heads: Vec<String> = heads.iter().map(|head| text(head)).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| text(cell)).collect()).collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let cells = rows.iter().chain([&heads]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(3)
        })
        .collect();
    let line = |row: &[String]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())))
            .collect();
        match format {
            Format::Terminal => cells.join("  ").trim_end().to_string(),
            Format::Markdown => format!("| {} |", cells.join(" | ")),
        }
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    for row in [&heads, &rule].into_iter().chain(&rows) {
        out.push_str(&line(row));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::contenders::Cache;
    use super::super::pipeline::StageUse;
    use super::*;

    fn timed_run(campaign: &str, contender: &str, seconds: f64) -> Record {
        Record::Run(Run {
            campaign: campaign.to_string(),
            work: "mixed-zstd".to_string(),
            contender: contender.to_string(),
            phase: Phase::Timed,
            round: 1,
            place: 0,
            cache: Cache::Warm,
            stages: Vec::new(),
            seconds,
            uses: vec![StageUse {
                program: "tar".to_string(),
                user_seconds: 1.0,
                system_seconds: 0.5,
                max_rss_bytes: 3 << 20,
            }],
            input_files: 1,
            input_bytes: 2_000_000,
            output_bytes: None,
            other_cpu_seconds: 0.0,
            steal_seconds: 0.0,
            tape: None,
        })
    }

    #[test]
    fn the_latest_campaign_of_a_work_counts() {
        let records = [
            timed_run("1", "takeup", 9.0),
            timed_run("1", "tar|zstd", 1.0),
            timed_run("2", "takeup", 1.0),
            timed_run("2", "tar|zstd", 2.0),
        ];
        let text = render(&records, Format::Terminal);
        assert!(text.contains("2.000 x"), "{text}");
        assert!(!text.contains("9.000"), "{text}");
        let reached = text.lines().find(|line| line.contains("at least 1.15")).unwrap();
        assert!(reached.ends_with("reached"), "{reached}");
        assert!(text.contains("not measured"), "{text}");
    }

    #[test]
    fn markdown_rows_have_as_many_cells_as_heads() {
        let records = [timed_run("1", "takeup", 1.0), timed_run("1", "tar|zstd", 2.0)];
        let text = render(&records, Format::Markdown);
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
