//! What is settled and what is not, as intervals against the band; and the head of a page: device,
//! host, time and plan.

use crate::figure::forest::{Forest, RATES, Row, Settled};
use crate::page::PageSection;
use base::calendar::time_text;
use experiment::judgement::{Effect, Judgement, JudgementOptions, RateVerdict, Recommendation};
use experiment::quantities::title;
use experiment::record::{Experiment, shown_cell};
use statistics::interval::Interval;

use super::shown_change;

/// Largest number of rows in a figure.
const ROWS_MAX: usize = 16;

/// A verdict in words.
pub fn name(verdict: RateVerdict, options: &JudgementOptions) -> String {
    match verdict {
        RateVerdict::Differs => "differs".to_owned(),
        RateVerdict::Same => format!("same within {:.0} %", options.band * 100.0),
        RateVerdict::NotSettled => "not settled".to_owned(),
    }
}

/// The sign of a verdict in a figure.
pub fn settled(verdict: RateVerdict) -> Settled {
    match verdict {
        RateVerdict::Differs => Settled::Differs,
        RateVerdict::Same => Settled::Same,
        RateVerdict::NotSettled => Settled::Not,
    }
}

fn row(name: String, ratio: f64, interval: Option<Interval>, verdict: RateVerdict) -> Row {
    let interval = interval.map(|interval| (interval.low, interval.high));
    Row { name, ratio, interval, settled: settled(verdict) }
}

/// The recommended settings against those in force, and each change on average over all else.
pub(super) fn section(experiment: &Experiment, judgement: &Judgement) -> Option<PageSection> {
    let (source, factors) = match &judgement.pooled {
        Some(pooled) => (&pooled.judgement, &pooled.factors),
        None => (judgement, &experiment.header.factors),
    };
    // A single run has no interval to draw, and artificial data (zeros) are no reason for a
    // setting.
    let is_gain = |found: &&Recommendation| {
        found.cell != found.baseline && found.is(found.cell) && !found.is_nobodys()
    };
    let gains = source.recommended.iter().filter(is_gain);
    let gain = |found: &Recommendation| {
        let name = shown_cell(&source.cells[found.cell].cell, factors);
        row(name, found.gain, found.gain_interval, found.verdict)
    };
    let mains = judgement.effects.iter().filter(|effect| effect.is_average());
    let main = |effect: &Effect| {
        row(shown_change(&effect.change), effect.ratio, effect.interval, effect.verdict)
    };
    let band = JudgementOptions::default().band;
    let is_rate = experiment.header.value.is_rate();
    let forest = |title: &str, x_name: &str, rows: Vec<Row>| Forest {
        title: title.to_owned(),
        x_name: x_name.to_owned(),
        band,
        ways: RATES,
        rows,
    };
    let forests = vec![
        forest(
            "Recommended, against what is in force",
            if is_rate { "times the rate of what is in force" } else { "times as fast as now" },
            gains.map(gain).take(ROWS_MAX).collect(),
        ),
        forest(
            "Each change, on average over everything else",
            if is_rate { "times the rate before the change" } else { "times as fast as before" },
            mains.map(main).take(ROWS_MAX).collect(),
        ),
    ];
    let is_empty = forests.iter().all(|forest| forest.rows.is_empty());
    (!is_empty).then(|| PageSection {
        title: "What is settled".to_owned(),
        text:
            "Bars are 95 % intervals. Square: the interval excludes 1, so there is a difference. \
             Dot: the whole interval is in the grey band, so no difference is noticeable. Ring: \
             not settled; add repeats."
                .to_owned(),
        forests,
        ..PageSection::default()
    })
}

/// Device, host, kernel, date and plan of an experiment.
pub(super) fn facts(experiment: &Experiment) -> Vec<(String, String)> {
    let header = &experiment.header;
    let get =
        |name: &str| experiment.runs.iter().find_map(|run| run.environment.get(name)).cloned();
    let join = |names: &[&str]| {
        let known: Vec<String> = names.iter().filter_map(|name| get(name)).collect();
        (!known.is_empty()).then(|| known.join(" "))
    };
    let drive = join(&["drive", "drive firmware"]);
    // Virtual disks have a number in the place of the vendor's name.
    let vendor = get("device vendor").filter(|vendor| !vendor.starts_with("0x"));
    let disk = get("device").into_iter().chain(vendor);
    let disk: Vec<String> = disk.chain(join(&["device model", "device rev"])).collect();
    let disk = (!disk.is_empty()).then(|| disk.join(" "));
    let device = match (get("path"), drive.or(disk)) {
        (Some(path), Some(device)) => Some(format!("{path} ({device})")),
        (path, device) => path.or(device),
    };
    let host = join(&["host", "machine"]);
    let cores = get("cores").map(|cores| format!("{cores} cores"));
    let host: Vec<String> = host.into_iter().chain(cores).collect();
    let began = header.started_unix_seconds;
    let date = (began > 0).then(|| format!("{} UTC", time_text(began.cast_signed())));
    let levels = |factor: &experiment::record::Factor| {
        let shown: Vec<String> =
            factor.levels.iter().map(|level| level.shown(&factor.name)).collect();
        format!("{} {}", title(&factor.name), shown.join(", "))
    };
    let asked: Vec<String> = header.factors.iter().map(levels).collect();
    let stop = |name: &str| header.plan.get("stop")?.get(name)?.as_u64();
    let repeats = match (stop("repeats_min"), stop("repeats_max")) {
        (Some(least), Some(most)) if least == most => format!("; {least} repeats"),
        (Some(least), Some(most)) => format!("; {least} to {most} repeats"),
        _ => String::new(),
    };
    let asked = format!("takeup bench {}: {}{repeats}", header.kind, asked.join("; "));
    let facts = [
        ("device", device),
        ("host", (!host.is_empty()).then(|| host.join(", "))),
        ("kernel", get("kernel")),
        ("date", date),
        ("plan", Some(asked)),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}
