//! The stages of a run over time, as a text and as a page, alone or above a capture and a watch of
//! the same time.

use crate::figure::{Axis, Figure, FigureGroup, GROUPS_MAX, Marks, Value};
use crate::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};
use base::escape::escape;
use base::format::{count, duration, percent, size};
use flow::series::StageSeries;
use runs::run_record::RecordedStage;
use service::capture::Ran;

use crate::history::page::stretch;

/// Minimum length of a point in seconds, if the run is long enough.
const POINT_SECONDS: f64 = 0.1;
/// Minimum number of points before points get longer.
const POINTS_LEAST: f64 = 40.0;

/// The run for the terminal: the text that it printed at its end.
pub fn text(ran: &Ran<'_>) -> String {
    // Escape the text: someone may have edited the file, and must not control the terminal.
    let lines = ran.record.text.lines().map(|line| escape(line.as_bytes()) + "\n");
    format!("{}, {}\n{}", ran.title(), ran.time(), lines.collect::<String>())
}

/// The page of a run; `name` is that of its file.
pub fn page(ran: &Ran<'_>, name: &str) -> Page {
    Page {
        title: "takeup report".to_owned(),
        subtitle: "what the stages of a run did, and what that means".to_owned(),
        facts: vec![("record".to_owned(), name.to_owned()), fact(ran)],
        sentences: conclusion(ran).into_iter().collect(),
        sections: vec![section(ran)],
    }
}

/// The run at the top of a page.
pub(crate) fn fact(ran: &Ran<'_>) -> (String, String) {
    (ran.title(), format!("{}; {}", ran.record.headline, ran.time()))
}

/// The limit that the run reported.
pub(crate) fn conclusion(ran: &Ran<'_>) -> Option<Conclusion> {
    let text = ran.record.explanation()?.to_owned();
    Some(Conclusion { subject: ran.title(), text, ..Conclusion::default() })
}

/// Its stages: figures over time and the table.
pub(crate) fn section(ran: &Ran<'_>) -> PageSection {
    let mut text =
        "Times of a stage are shares of the time that its threads had: working, waiting \
                    for input (starved), waiting for room in its output (blocked)."
            .to_owned();
    if let Some(seconds) = series(ran).map(|(_, it)| point_seconds(ran, it)).reduce(f64::max) {
        let mean = duration(seconds);
        text.push_str(&format!(" A point is the mean of {mean} at most. Times are UTC."));
    }
    PageSection {
        title: format!("Stages of {}", ran.title()),
        text,
        figures: over_time(ran),
        tables: vec![(table(ran), Folding::Open)],
        ..PageSection::default()
    }
}

fn series<'a>(ran: &'a Ran<'_>) -> impl Iterator<Item = (&'a RecordedStage, &'a StageSeries)> {
    let all = ran.record.stages.iter();
    all.filter_map(|stage| Some((stage, stage.over_time.as_ref()?)))
}

/// The bytes through the stages, and the time shares of each.
fn over_time(ran: &Ran<'_>) -> Vec<Figure> {
    let bytes = series(ran).filter(|(_, it)| it.bytes.iter().any(|bytes| *bytes > 0));
    let bytes = bytes.take(GROUPS_MAX).map(|(stage, it)| {
        let point = |part: &Part| part.bytes as f64 / part.seconds / 1e6;
        line(stage.report.kind.name(), &parts(ran, it), point)
    });
    let mut figures = vec![figure(ran, "bytes".to_owned(), "MB/s", 0.0, bytes.collect())];
    for (stage, it) in series(ran) {
        let parts = parts(ran, it);
        let states = [("working", 0), ("starved", 1), ("blocked", 2), ("apart", 3)];
        let group = |(name, state): (&str, usize)| {
            let share = |part: &Part| {
                let all: f64 = part.states.iter().sum();
                // The stage had no threads, so there is no share.
                if all > 0.0 { part.states[state] / all * 100.0 } else { f64::NAN }
            };
            line(name, &parts, share)
        };
        // The state "apart" is rare: draw it only if it occurs.
        let groups = states.into_iter().filter(|(name, state)| {
            *name != "apart" || parts.iter().any(|part| part.states[*state] > 0.0)
        });
        let title = format!("time of {}", stage.report.kind.name());
        figures.push(figure(ran, title, "%", 100.0, groups.map(group).collect()));
    }
    figures
}

/// A point: several intervals combined.
struct Part {
    /// Its middle on the axis.
    at: f64,
    seconds: f64,
    states: [f64; 4],
    bytes: u64,
}

fn point_seconds(ran: &Ran<'_>, series: &StageSeries) -> f64 {
    series.interval_seconds * joined(ran, series) as f64
}

/// Number of intervals in a point.
fn joined(ran: &Ran<'_>, series: &StageSeries) -> usize {
    let wanted = POINT_SECONDS.min(ran.record.seconds / POINTS_LEAST);
    let mut joined = 1;
    while joined < 256 && series.interval_seconds * (joined as f64) < wanted {
        joined *= 2;
    }
    joined
}

fn parts(ran: &Ran<'_>, series: &StageSeries) -> Vec<Part> {
    let joined = joined(ran, series);
    let states = [
        &series.working_seconds,
        &series.starved_seconds,
        &series.blocked_seconds,
        &series.apart_seconds,
    ];
    let part = |first: usize| {
        let end = (first + joined).min(series.bytes.len());
        let began = first as f64 * series.interval_seconds;
        // A stage that ends within a point passes nothing in the rest of it.
        let until = ((first + joined) as f64 * series.interval_seconds).min(ran.record.seconds);
        let seconds = until - began;
        let sum = |of: &[f64]| of.get(first..end).unwrap_or_default().iter().sum();
        Part {
            at: ran.frame.at(began + seconds / 2.0),
            seconds,
            states: states.map(|of| sum(of)),
            bytes: series.bytes[first..end].iter().sum(),
        }
    };
    // A record has at most a few hundred; its end may be slightly before the last one.
    let all = (0..series.bytes.len()).step_by(joined).map(part);
    all.filter(|it| it.seconds > 0.0).collect()
}

fn line(name: &str, parts: &[Part], of: impl Fn(&Part) -> f64) -> FigureGroup {
    let value = |it: &Part| Value { x: it.at, y: of(it), range: None, label: String::new() };
    let values = parts.iter().map(value).collect();
    FigureGroup { name: name.to_owned(), values, curve: Vec::new(), marks: Marks::None }
}

fn figure(
    ran: &Ran<'_>,
    what: String,
    unit: &str,
    y_least: f64,
    mut groups: Vec<FigureGroup>,
) -> Figure {
    if groups.is_empty() {
        // An empty figure still has the axis of the others.
        groups.push(line("", &[], |_| f64::NAN));
    }
    let mut figure = Figure {
        title: format!("{}: {what}", ran.title()),
        x_name: "time (UTC)".to_owned(),
        y_name: unit.to_owned(),
        axis: Axis::Time(ran.frame.began_unix_seconds),
        y_least,
        places: Vec::new(),
        groups,
    };
    stretch(&mut figure, ran.frame.seconds);
    figure
}

fn table(ran: &Ran<'_>) -> PageTable {
    let mut columns = vec![("stage".to_owned(), Cells::Words)];
    let heads = ["threads", "working", "starved", "blocked", "processor", "bytes"];
    columns.extend(heads.map(|head| (head.to_owned(), Cells::Numbers)));
    let share = |seconds: f64| percent(seconds / ran.record.seconds.max(f64::MIN_POSITIVE));
    let row = |stage: &RecordedStage| {
        let stage = &stage.report;
        vec![
            stage.kind.name().to_owned(),
            count(stage.threads),
            share(stage.working_seconds),
            share(stage.starved_seconds),
            share(stage.blocked_seconds),
            duration(stage.processor_seconds),
            size(stage.bytes),
        ]
    };
    PageTable {
        caption: "Of the time of the run, for each thread of a stage; processor time of all"
            .to_owned(),
        columns,
        rows: ran.record.stages.iter().map(row).collect(),
    }
}
