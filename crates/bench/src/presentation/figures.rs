//! The figures of an experiment: rate against each factor, throughput over time, latencies.

use std::collections::BTreeMap;

use crate::judgement::{CellSummary, Judgement, Sweep};
use crate::model::Model;
use crate::record::{Cell, Experiment, Factor, Level, RunRecord, shown_cell, title};
use report::figure::{Axis, Figure, GROUPS_MAX, Group, Marks, Value};
use report::format::{duration, rate};
use report::page::Section;

/// Small multiples under one heading; the rest is in the tables.
const PANELS_MAX: usize = 12;

/// Steps of a line over time.
const STEPS_SHOWN_MAX: usize = 50;

/// All sections with figures.
pub fn figures(experiment: &Experiment, judgement: &Judgement) -> Vec<Section> {
    let factors = &experiment.header.factors;
    let varied: Vec<&Factor> = factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    let rates =
        varied.iter().filter_map(|factor| sweep_section(factor, &varied, factors, judgement));
    let rates: Vec<Section> = rates.collect();
    let runs = series_section(experiment, judgement).into_iter();
    let runs: Vec<Section> = runs.chain(latency_section(experiment, judgement)).collect();
    [beside("Rates", rates), beside("Runs", runs)].concat()
}

/// Sections of a figure each stand beside each other under one heading.
fn beside(heading: &str, sections: Vec<Section>) -> Vec<Section> {
    if sections.len() < 2 || sections.iter().any(|section| section.figures.len() > 2) {
        return sections;
    }
    let mut texts: Vec<String> = sections.iter().map(|section| section.text.clone()).collect();
    texts.dedup();
    vec![Section {
        title: heading.to_owned(),
        text: texts.join(" "),
        figures: sections.into_iter().flat_map(|section| section.figures).collect(),
        tables: Vec::new(),
    }]
}

/// Rate against one factor: a line for each level of a second one, a panel for each combination of
/// the others.
fn sweep_section(
    factor: &Factor,
    varied: &[&Factor],
    factors: &[Factor],
    judgement: &Judgement,
) -> Option<Section> {
    let lined = varied
        .iter()
        .filter(|other| other.name != factor.name && other.levels.len() <= GROUPS_MAX)
        .min_by_key(|other| usize::from(other.is_numeric()))
        .map(|other| other.name.clone());
    let mut panels: Vec<(Cell, Vec<&Sweep>)> = Vec::new();
    for sweep in judgement.sweeps.iter().filter(|sweep| sweep.factor == factor.name) {
        let mut panel = sweep.others.clone();
        if let Some(lined) = &lined {
            panel.remove(lined);
        }
        match panels.iter_mut().find(|(known, _)| *known == panel) {
            Some((_, sweeps)) => sweeps.push(sweep),
            None => panels.push((panel, vec![sweep])),
        }
    }
    if panels.is_empty() {
        return None;
    }
    let left_out = panels.len().saturating_sub(PANELS_MAX);
    let figure = |(panel, sweeps): &(Cell, Vec<&Sweep>)| Figure {
        title: match shown_cell(panel, factors).as_str() {
            "the only cell" => format!("rate by {}", factor.title()),
            shown => shown.to_owned(),
        },
        x_name: factor.title(),
        y_name: "MB/s".to_owned(),
        axis: axis(factor),
        y_least: 0.0,
        places: Vec::new(),
        groups: sweeps
            .iter()
            .take(GROUPS_MAX)
            .map(|sweep| sweep_group(factor, sweep, lined.as_deref(), judgement))
            .collect(),
    };
    Some(Section {
        title: format!("Rate by {}", factor.title()),
        text: match left_out {
            0 => "Error bars are 95 % intervals; smooth curves are fitted.".to_owned(),
            more => format!("Error bars are 95 % intervals. {more} more are in the tables."),
        },
        figures: panels.iter().take(PANELS_MAX).map(figure).collect(),
        tables: Vec::new(),
    })
}

fn axis(factor: &Factor) -> Axis {
    // Zero has no place on a logarithmic axis.
    let positive = |level: &Level| matches!(level, Level::Number(number) if *number > 0);
    match factor.levels.iter().all(positive) {
        true if factor.name.ends_with("_bytes") => Axis::Bytes,
        true => Axis::Log2,
        false => Axis::Words(factor.levels.iter().map(|level| level.shown(&factor.name)).collect()),
    }
}

fn sweep_group(
    factor: &Factor,
    sweep: &Sweep,
    lined: Option<&str>,
    judgement: &Judgement,
) -> Group {
    let axis = axis(factor);
    let value = |&index: &usize| {
        let cell = &judgement.cells[index];
        let level = cell.cell.get(&factor.name)?;
        let x = match (level, &axis) {
            (_, Axis::Words(_)) => factor.levels.iter().position(|known| known == level)? as f64,
            (Level::Number(number), _) => *number as f64,
            (Level::Text(_), _) => return None,
        };
        Some(Value {
            x,
            y: cell.mean_bytes_per_second / 1e6,
            range: cell.interval.map(|interval| (interval.low / 1e6, interval.high / 1e6)),
            label: label(factor, level, cell),
        })
    };
    let values: Vec<Value> = sweep.cells.iter().filter_map(value).collect();
    let name = lined
        .and_then(|name| Some((name, sweep.others.get(name)?)))
        .map_or(String::new(), |(name, level)| format!("{} {}", title(name), level.shown(name)));
    let curve = match (&sweep.model, matches!(axis, Axis::Words(_))) {
        (Some(model), false) => curve(model, &values),
        _ => Vec::new(),
    };
    Group { name, values, curve, marks: Marks::Each }
}

fn label(factor: &Factor, level: &Level, cell: &CellSummary) -> String {
    let mut text = format!(
        "{} {}: {}",
        factor.title(),
        level.shown(&factor.name),
        rate(cell.mean_bytes_per_second)
    );
    if let Some(interval) = cell.interval {
        text.push_str(&format!(", {} to {}", rate(interval.low), rate(interval.high)));
    }
    text + &format!(", {} runs", cell.rates.len())
}

/// The model in steps of a quarter of a power of two.
fn curve(model: &Model, values: &[Value]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Vec::new() };
    let steps = ((last.x / first.x).log2() * 4.0).ceil().clamp(1.0, 200.0) as u32;
    (0..=steps)
        .map(|step| first.x * (last.x / first.x).powf(f64::from(step) / f64::from(steps)))
        .map(|x| (x, model.predict(x) / 1e6))
        .collect()
}

/// Throughput over time of the recommended cell and of what is in force today.
fn series_section(experiment: &Experiment, judgement: &Judgement) -> Option<Section> {
    let mut figures = Vec::new();
    for (name, cell) in told_cells(experiment, judgement) {
        let runs: Vec<&RunRecord> = experiment
            .runs
            .iter()
            .filter(|run| run.cell == cell.cell)
            .filter(|run| run.series.as_ref().is_some_and(|series| series.bytes.len() > 4))
            .take(GROUPS_MAX)
            .collect();
        let groups: Vec<Group> = runs.iter().filter_map(|run| series_group(run)).collect();
        if !groups.is_empty() {
            figures.push(Figure {
                title: name,
                x_name: "seconds".to_owned(),
                y_name: "MB/s".to_owned(),
                axis: Axis::Linear,
                y_least: 0.0,
                places: Vec::new(),
                groups,
            });
        }
    }
    (!figures.is_empty()).then(|| Section {
        title: "Throughput over time".to_owned(),
        text: "Each line is a run.".to_owned(),
        figures,
        tables: Vec::new(),
    })
}

fn series_group(run: &RunRecord) -> Option<Group> {
    let series = run.series.as_ref()?;
    let rates = series.rates();
    // Finer steps show the size of requests, not how the rate goes.
    let every = rates.len().div_ceil(STEPS_SHOWN_MAX).max(1);
    let values = rates.chunks_exact(every).enumerate().map(|(step, rates)| Value {
        x: (step as f64 + 0.5) * series.step_seconds * every as f64,
        y: rates.iter().sum::<f64>() / every as f64 / 1e6,
        range: None,
        label: String::new(),
    });
    let name = format!("repeat {}", run.repeat);
    Some(Group { name, values: values.collect(), curve: Vec::new(), marks: Marks::None })
}

/// Latencies as the share of requests that took no longer.
fn latency_section(experiment: &Experiment, judgement: &Judgement) -> Option<Section> {
    let mut groups = Vec::new();
    for (name, cell) in told_cells(experiment, judgement).into_iter().take(GROUPS_MAX) {
        let mut all = crate::histogram::Histogram::default();
        let runs = experiment.runs.iter().filter(|run| run.cell == cell.cell);
        runs.filter_map(|run| run.latency.as_ref()).for_each(|latency| all.merge(latency));
        if all.count() == 0 {
            continue;
        }
        let value = |share: f64| {
            let ns = all.quantile_ns(share).unwrap_or(0).max(1);
            let took = match ns {
                small if small < 1_000_000 => format!("{:.1} us", small as f64 / 1e3),
                large => duration(large as f64 / 1e9),
            };
            let label = format!("{name}: {:.1} % of requests within {took}", share * 100.0);
            Value { x: ns as f64, y: share * 100.0, range: None, label }
        };
        let values = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0].map(value).to_vec();
        groups.push(Group { name, values, curve: Vec::new(), marks: Marks::Each });
    }
    (!groups.is_empty()).then(|| Section {
        title: "Latency".to_owned(),
        text: "Share of requests that were answered within a time.".to_owned(),
        figures: vec![Figure {
            title: "latency of requests".to_owned(),
            x_name: "time".to_owned(),
            y_name: "% of requests".to_owned(),
            axis: Axis::Nanoseconds,
            y_least: 0.0,
            places: Vec::new(),
            groups,
        }],
        tables: Vec::new(),
    })
}

/// The recommended cell and the present one of each load, by their names.
fn told_cells<'a>(
    experiment: &Experiment,
    judgement: &'a Judgement,
) -> BTreeMap<String, &'a CellSummary> {
    let both = judgement.recommended.iter().flat_map(|found| [found.cell, found.baseline]);
    both.map(|index| &judgement.cells[index])
        .map(|cell| (shown_cell(&cell.cell, &experiment.header.factors), cell))
        .collect()
}
