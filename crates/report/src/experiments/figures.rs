//! The figures of an experiment: rate against each factor, throughput over time, latencies.

use std::collections::BTreeMap;

use crate::figure::{Axis, Figure, FigureGroup, GROUPS_MAX, Marks, Value};
use crate::page::PageSection;
use base::format::duration;
use experiment::judgement::{CellSummary, Judgement, Pooled, Sweep};
use experiment::quantities::{self, Unit, title};
use experiment::record::shown_cell;
use experiment::record::{Cell, Experiment, Factor, Level, Role, RunRecord, Value as Compared};
use statistics::curve::Model;
use statistics::histogram::Histogram;
use statistics::interval::Interval;

/// Largest number of panels under one heading; the rest is in the tables.
const PANELS_MAX: usize = 12;

/// Points of a line; a figure is not wide enough to show more.
const POINTS_MAX: usize = 1_000;

/// Largest number of combinations whose runs are shown.
const TOLD_MAX: usize = 8;

/// Largest number of steps of a line over time.
const STEPS_SHOWN_MAX: usize = 50;

/// All sections with figures.
pub fn figures(experiment: &Experiment, judgement: &Judgement) -> Vec<PageSection> {
    let factors = &experiment.header.factors;
    let compared = experiment.header.value;
    let mut rates: Vec<PageSection> = match &judgement.pooled {
        Some(pooled) => overview(pooled, compared).into_iter().collect(),
        None => Vec::new(),
    };
    let varied: Vec<&Factor> = factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    for factor in &varied {
        let lines = match &judgement.pooled {
            // The overview and the table of effects have the rest.
            Some(_) if !(factor.is_numeric() && factor.role == Role::Setting) => continue,
            Some(pooled) => pooled_lines(pooled, &varied),
            None => usual_line(factor, &varied),
        };
        rates.extend(Sweeps { factor, lines, factors, judgement, compared }.section());
    }
    let runs = series_section(experiment, judgement).into_iter();
    let runs: Vec<PageSection> = runs.chain(latency_section(experiment, judgement)).collect();
    let heading = if compared.is_rate() { "Rates" } else { "Times" };
    [beside(heading, rates), beside("Runs", runs)].concat()
}

/// Puts sections with one figure each beside each other under one heading.
fn beside(heading: &str, sections: Vec<PageSection>) -> Vec<PageSection> {
    if sections.len() < 2 || sections.iter().any(|section| section.figures.len() > 2) {
        return sections;
    }
    let mut texts: Vec<String> = sections.iter().map(|section| section.text.clone()).collect();
    texts.dedup();
    vec![PageSection {
        title: heading.to_owned(),
        text: texts.join(" "),
        figures: sections.into_iter().flat_map(|section| section.figures).collect(),
        ..PageSection::default()
    }]
}

/// Rates averaged over the pooled conditions, with as many of the remaining factors as lines as
/// there are line styles.
fn overview(pooled: &Pooled, compared: Compared) -> Option<PageSection> {
    let varied: Vec<&Factor> =
        pooled.factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    let factor = varied
        .iter()
        .find(|factor| factor.is_numeric() && factor.role == Role::Setting)
        .or(varied.first())?;
    let mut lines: Vec<&Factor> = Vec::new();
    for other in varied.iter().filter(|other| other.name != factor.name) {
        let groups: usize = lines.iter().map(|line| line.levels.len()).product();
        if groups * other.levels.len() <= GROUPS_MAX {
            lines.push(other);
        }
    }
    let sweeps =
        Sweeps { factor, lines, factors: &pooled.factors, judgement: &pooled.judgement, compared };
    let mut section = sweeps.section()?;
    let over: Vec<String> = pooled.over.iter().map(|name| title(name)).collect();
    section.title = "Overview".to_owned();
    section.text = format!("Means over {}. {}", over.join(", "), section.text);
    Some(section)
}

/// In the panels of an experiment with an overview, the lines are the levels of the numeric
/// condition.
fn pooled_lines<'a>(pooled: &Pooled, varied: &[&'a Factor]) -> Vec<&'a Factor> {
    let conditions = varied.iter().filter(|factor| pooled.over.contains(&factor.name));
    let fitting = conditions.filter(|factor| factor.levels.len() <= GROUPS_MAX);
    fitting.max_by_key(|factor| usize::from(factor.is_numeric())).copied().into_iter().collect()
}

fn usual_line<'a>(factor: &Factor, varied: &[&'a Factor]) -> Vec<&'a Factor> {
    let others = varied.iter().filter(|other| other.name != factor.name);
    let fitting = others.filter(|other| other.levels.len() <= GROUPS_MAX);
    fitting.min_by_key(|other| usize::from(other.is_numeric())).copied().into_iter().collect()
}

/// Rate against one factor: a line for each combination of some of the others, a panel for each
/// combination of the rest.
struct Sweeps<'a> {
    factor: &'a Factor,
    lines: Vec<&'a Factor>,
    factors: &'a [Factor],
    judgement: &'a Judgement,
    compared: Compared,
}

impl Sweeps<'_> {
    fn section(&self) -> Option<PageSection> {
        let mut panels: Vec<(Cell, Vec<&Sweep>)> = Vec::new();
        for sweep in self.judgement.sweeps.iter().filter(|one| one.factor == self.factor.name) {
            let mut panel = sweep.others.clone();
            panel.retain(|name, _| !self.lines.iter().any(|line| line.name == *name));
            match panels.iter_mut().find(|(known, _)| *known == panel) {
                Some((_, sweeps)) => sweeps.push(sweep),
                None => panels.push((panel, vec![sweep])),
            }
        }
        if panels.is_empty() {
            return None;
        }
        let mut text = "Error bars are 95 % intervals; smooth curves are fitted.".to_owned();
        if panels.len() > 1 {
            text.push_str(" All panels have one scale.");
        }
        match panels.iter().flat_map(|(_, sweeps)| sweeps).map(|one| step(one)).max() {
            None | Some(1) => {}
            Some(step) => text.push_str(&format!(" One point in {step} is drawn.")),
        }
        match panels.len().saturating_sub(PANELS_MAX) {
            0 => {}
            more => text.push_str(&format!(" {more} more are in the tables.")),
        }
        let mut figures: Vec<Figure> = panels
            .iter()
            .take(PANELS_MAX)
            .map(|(cell, sweeps)| self.figure(cell, sweeps))
            .collect();
        share_scale(&mut figures);
        let what = if self.compared.is_rate() { "Rate" } else { "Time" };
        let title = format!("{what} by {}", self.factor.title());
        Some(PageSection { title, text, figures, ..PageSection::default() })
    }

    fn figure(&self, panel: &Cell, sweeps: &[&Sweep]) -> Figure {
        let group = |sweep: &&Sweep| {
            let name = if self.lines.is_empty() {
                String::new()
            } else {
                shown_cell(&self.of_lines(sweep), self.factors)
            };
            sweep_group(self.factor, sweep, name, self.judgement, self.compared)
        };
        Figure {
            title: match shown_cell(panel, self.factors).as_str() {
                "the only combination" if self.compared.is_rate() => {
                    format!("rate by {}", self.factor.title())
                }
                "the only combination" => format!("time by {}", self.factor.title()),
                shown => shown.to_owned(),
            },
            x_name: self.factor.title(),
            y_name: if self.compared.is_rate() { "MB/s" } else { "seconds" }.to_owned(),
            axis: axis(self.factor),
            y_least: 0.0,
            places: Vec::new(),
            groups: sweeps.iter().take(GROUPS_MAX).map(group).collect(),
        }
    }

    fn of_lines(&self, sweep: &Sweep) -> Cell {
        let mut cell = sweep.others.clone();
        cell.retain(|name, _| self.lines.iter().any(|line| line.name == *name));
        cell
    }
}

/// Gives figures beside each other one scale, so that they can be compared by eye.
fn share_scale(figures: &mut [Figure]) {
    let most = figures.iter().map(Figure::y_highest).fold(0.0, f64::max);
    figures.iter_mut().for_each(|figure| figure.y_least = most);
}

fn axis(factor: &Factor) -> Axis {
    // Zero has no place on a logarithmic axis.
    let positive = |level: &Level| matches!(level, Level::Number(number) if *number > 0);
    if !factor.levels.iter().all(positive) {
        Axis::Words(factor.levels.iter().map(|level| level.shown(&factor.name)).collect())
    } else if Unit::of(&factor.name) == Unit::Bytes {
        Axis::Bytes
    } else {
        Axis::Log2
    }
}

fn sweep_group(
    factor: &Factor,
    sweep: &Sweep,
    name: String,
    judgement: &Judgement,
    compared: Compared,
) -> FigureGroup {
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
            y: height(cell.bytes_per_second, compared),
            range: cell.interval.map(|interval| range(interval, compared)),
            label: label(factor, level, cell, compared),
        })
    };
    let values: Vec<Value> = sweep.cells.iter().step_by(step(sweep)).filter_map(value).collect();
    let model = sweep.model.as_ref().filter(|model| model.holds());
    let curve = match (model, matches!(axis, Axis::Words(_))) {
        (Some(model), false) => {
            let cell = &judgement.cells[sweep.cells[0]].cell;
            curve(model, &values, quantities::bytes_of_one(&factor.name, cell))
        }
        _ => Vec::new(),
    };
    FigureGroup { name, values, curve, marks: Marks::Each }
}

/// Every how many points one is drawn.
fn step(sweep: &Sweep) -> usize {
    sweep.cells.len().div_ceil(POINTS_MAX).max(1)
}

/// The height of a point: millions of bytes a second, or seconds.
fn height(speed: f64, compared: Compared) -> f64 {
    if compared.is_rate() { speed / 1e6 } else { 1.0 / speed }
}

fn range(interval: Interval, compared: Compared) -> (f64, f64) {
    let (low, high) = (height(interval.low, compared), height(interval.high, compared));
    (low.min(high), low.max(high))
}

fn label(factor: &Factor, level: &Level, cell: &CellSummary, compared: Compared) -> String {
    let mut text =
        format!("{} {}: {}", factor.title(), level.shown(&factor.name), cell.told(compared));
    if let Some(interval) = cell.interval {
        text.push_str(&format!(
            ", {} to {}",
            cell.told_as(interval.low, compared),
            cell.told_as(interval.high, compared)
        ));
    }
    text + &format!(", {} runs", cell.rates.len())
}

/// The model in steps of a quarter of a power of two.
fn curve(model: &Model, values: &[Value], bytes_of_one: f64) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Vec::new() };
    let steps = ((last.x / first.x).log2() * 4.0).ceil().clamp(1.0, 200.0) as u32;
    (0..=steps)
        .map(|step| first.x * (last.x / first.x).powf(f64::from(step) / f64::from(steps)))
        .map(|x| (x, model.predict(x * bytes_of_one) / 1e6))
        .collect()
}

/// Throughput over time of the recommended cell and of the one in force.
fn series_section(experiment: &Experiment, judgement: &Judgement) -> Option<PageSection> {
    let mut figures = Vec::new();
    for (name, cell) in told_cells(experiment, judgement) {
        let runs: Vec<&RunRecord> = experiment
            .runs
            .iter()
            .filter(|run| run.cell == cell.cell)
            .filter(|run| run.series.as_ref().is_some_and(|series| series.bytes.len() > 4))
            .take(GROUPS_MAX)
            .collect();
        let groups: Vec<FigureGroup> = runs.iter().filter_map(|run| series_group(run)).collect();
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
    share_scale(&mut figures);
    (!figures.is_empty()).then(|| PageSection {
        title: "Throughput over time".to_owned(),
        text: match judgement.pooled {
            Some(_) => "Each line is a run: of files, the longest.".to_owned(),
            None => "Each line is a run.".to_owned(),
        },
        figures,
        ..PageSection::default()
    })
}

fn series_group(run: &RunRecord) -> Option<FigureGroup> {
    let series = run.series.as_ref()?;
    let rates = series.rates();
    // Finer steps show the size of requests, not the course of the rate.
    let every = rates.len().div_ceil(STEPS_SHOWN_MAX).max(1);
    let values = rates.chunks_exact(every).enumerate().map(|(step, rates)| Value {
        x: (step as f64 + 0.5) * series.step_seconds * every as f64,
        y: rates.iter().sum::<f64>() / every as f64 / 1e6,
        range: None,
        label: String::new(),
    });
    let name = format!("repeat {}", run.repeat);
    Some(FigureGroup { name, values: values.collect(), curve: Vec::new(), marks: Marks::None })
}

/// Latencies as the share of requests that took no longer.
fn latency_section(experiment: &Experiment, judgement: &Judgement) -> Option<PageSection> {
    let mut groups = Vec::new();
    for (name, all) in latencies(experiment, judgement) {
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
        groups.push(FigureGroup { name, values, curve: Vec::new(), marks: Marks::Each });
    }
    (!groups.is_empty()).then(|| PageSection {
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
        ..PageSection::default()
    })
}

/// The latencies of these cells by name; if runs did several kinds of operations, for each kind.
fn latencies(experiment: &Experiment, judgement: &Judgement) -> Vec<(String, Histogram)> {
    let mut found: Vec<(String, Histogram)> = Vec::new();
    let mut add = |name: String, latency: &Histogram| match found.iter_mut().find(|it| it.0 == name)
    {
        Some((_, known)) => known.merge(latency),
        None => found.push((name, latency.clone())),
    };
    for (name, cell) in told_cells(experiment, judgement) {
        for run in experiment.runs.iter().filter(|run| run.cell == cell.cell) {
            if run.operations.iter().any(|one| one.operation != run.operations[0].operation) {
                for one in &run.operations {
                    add(format!("{name}, {}", one.operation.name()), &one.latency);
                }
            } else if let Some(latency) = &run.latency {
                add(name.clone(), latency);
            }
        }
    }
    found.retain(|(_, latency)| latency.count() > 0);
    found.truncate(GROUPS_MAX);
    found
}

/// The recommended cell and the present one of each load, named by the levels in which they differ.
/// If conditions were pooled: at the first level of each, but the longest files.
fn told_cells<'a>(
    experiment: &Experiment,
    judgement: &'a Judgement,
) -> BTreeMap<String, &'a CellSummary> {
    let factors = &experiment.header.factors;
    let source = judgement.pooled.as_ref().map_or(judgement, |pooled| &pooled.judgement);
    let both = source.recommended.iter().flat_map(|found| [found.cell, found.baseline]);
    let cells: Vec<&CellSummary> = both
        .filter_map(|index| {
            let mut wanted = source.cells[index].cell.clone();
            for name in judgement.pooled.iter().flat_map(|pooled| &pooled.over) {
                let factor = factors.iter().find(|factor| factor.name == *name)?;
                let levels = &factor.levels;
                let level = if factor.is_numeric() { levels.last() } else { levels.first() };
                wanted.insert(name.clone(), level?.clone());
            }
            judgement.cells.iter().find(|cell| cell.cell == wanted)
        })
        .take(TOLD_MAX)
        .collect();
    let differs = |name: &String| {
        cells.len() < 2 || cells.iter().any(|cell| cell.cell.get(name) != cells[0].cell.get(name))
    };
    let named = |cell: &&'a CellSummary| {
        let mut differing = cell.cell.clone();
        differing.retain(|name, _| differs(name));
        (shown_cell(&differing, factors), *cell)
    };
    cells.iter().map(named).collect()
}
