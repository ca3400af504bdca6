//! A record as one page of HTML.

use base::format::counted;
use report::figure::spans::{Lane, Span, Spans};
use report::figure::{Axis, Figure, FigureGroup, Marks, Value};
use report::page::{Cells, Conclusion, Folding, Page, PageSection, PageTable};
use watch::history::{DeviceHistory, History, POINTS_MAX, Point, PointDirection, Spell, series};

use super::{Frame, SHOWN, column, kind, number, numbers, ordered, share, spell_time, summary};
use crate::glyphs::Glyphs;
use crate::tree::Row;

/// Maximum number of devices with figures, the busiest ones; the others are only in the table.
pub(crate) const DRAWN_MAX: usize = 24;
/// Maximum number of rows of a table.
const ROWS_MAX: usize = 1000;
/// Maximum number of sentences at the top of the page.
pub(crate) const CONCLUSIONS_MAX: usize = 40;

type Direction = (&'static str, fn(&Point) -> &PointDirection);

const DIRECTIONS: [Direction; 3] =
    [("read", |it| &it.read), ("write", |it| &it.write), ("discard", |it| &it.discard)];

/// The page of a record; `name` is that of its file.
pub fn page(history: &History, name: &str) -> Page {
    let frame = Frame::of(history);
    let devices = ordered(history, Glyphs::Unicode);
    let is_drawn = |device: &&DeviceHistory| {
        device.busy_seconds() > 0.0 || !device.spells.is_empty() || !device.gone_seconds.is_empty()
    };
    let drawn: Vec<&DeviceHistory> =
        devices.iter().map(|(_, device)| *device).filter(is_drawn).collect();
    let mut sections = vec![overview(&devices, drawn.len())];
    sections.extend(drawn.iter().take(DRAWN_MAX).map(|device| section(&frame, history, device)));
    Page {
        title: "takeup report".to_owned(),
        subtitle: "what block devices did, and what it means".to_owned(),
        facts: vec![("record".to_owned(), name.to_owned()), ("time".to_owned(), summary(history))],
        sentences: drawn
            .iter()
            .flat_map(|device| conclusions(&frame, device))
            .take(CONCLUSIONS_MAX)
            .collect(),
        sections,
    }
}

/// Findings about a device, each rule once, with its longest spell.
pub(crate) fn conclusions(frame: &Frame, device: &DeviceHistory) -> Vec<Conclusion> {
    let mut longest: Vec<&Spell> = Vec::new();
    for spell in &device.spells {
        match longest.iter_mut().find(|it| it.finding.rule == spell.finding.rule) {
            Some(known) if known.spoken < spell.spoken => *known = spell,
            Some(_) => {}
            None => longest.push(spell),
        }
    }
    let conclusion = |spell: &&Spell| {
        let sentence = spell.finding.sentence();
        let action = spell.finding.action.as_ref().map(|it| format!("; what to do: {it}"));
        let when = spell_time(frame, spell);
        Conclusion {
            subject: device.name.clone(),
            text: format!("{sentence} ({when}){}", action.unwrap_or_default()),
            ..Conclusion::default()
        }
    };
    longest.iter().map(conclusion).collect()
}

pub(crate) fn overview(devices: &[(Row, &DeviceHistory)], drawn: usize) -> PageSection {
    let mut columns = vec![("device".to_owned(), Cells::Words)];
    let heads = ["there", "busy"].into_iter().chain(SHOWN.iter().map(|(head, ..)| *head));
    columns.extend(heads.map(|head| (head.to_owned(), Cells::Numbers)));
    let row = |(row, device): &(Row, &DeviceHistory)| {
        let mut cells = vec![
            format!("{}{}", row.indent, device.name),
            format!("{:.0} s", device.seconds),
            share(device.busy_seconds(), device.seconds),
        ];
        cells.extend(SHOWN.iter().map(|(_, key, factor)| {
            let spread = device.spread(column(key));
            spread.map_or("-".to_owned(), |it| number(it.median * factor))
        }));
        cells
    };
    let caption = "Medians over the busy intervals of a device; for reads or writes, over those \
                   with at least a tenth of requests or bytes";
    let table = PageTable {
        caption: caption.to_owned(),
        columns,
        rows: devices.iter().take(ROWS_MAX).map(row).collect(),
    };
    let mut text =
        "Devices are above the devices they consist of, the busiest first. Times are UTC."
            .to_owned();
    if drawn > DRAWN_MAX {
        text.push_str(&format!(" {DRAWN_MAX} of {drawn} active devices are drawn below."));
    }
    let tables = vec![(table, Folding::Open)];
    PageSection { title: "Devices".to_owned(), text, tables, ..PageSection::default() }
}

/// A device: its findings, figures and tables.
pub(crate) fn section(frame: &Frame, history: &History, device: &DeviceHistory) -> PageSection {
    let points = series(history, device);
    let mut text = format!(
        "A {}, busy for {} of {:.0} s.",
        kind(device),
        share(device.busy_seconds(), device.seconds),
        device.seconds
    );
    if !device.made_of.is_empty() {
        text.push_str(&format!(" It lies on {}.", device.made_of.join(", ")));
    }
    if history.intervals > POINTS_MAX as u64 {
        let width = history.seconds / POINTS_MAX as f64;
        text.push_str(&format!(
            " A point is the mean of {width:.0} s, and shorter peaks are higher."
        ));
    }
    for gone in &device.gone_seconds {
        text.push_str(&format!(" It disappeared at {}.", frame.clock(*gone)));
    }
    let mut tables = Vec::new();
    if !device.spells.is_empty() {
        tables.push((spell_table(frame, device), Folding::Open));
    }
    tables.push((spread_table(device), Folding::Folded));
    let spans = (!device.spells.is_empty()).then(|| spans(frame, device));
    PageSection {
        title: device.name.clone(),
        text,
        spans: spans.into_iter().collect(),
        figures: figures(frame, device, &points),
        tables,
        ..PageSection::default()
    }
}

fn spans(frame: &Frame, device: &DeviceHistory) -> Spans {
    Spans {
        title: format!("{}: findings over time", device.name),
        x_name: "time (UTC)".to_owned(),
        began: frame.began_unix_seconds,
        seconds: frame.seconds,
        lanes: lanes(frame, device, |rule| rule.to_owned()),
    }
}

/// When each rule had findings about a device; `name` makes the name of a lane.
pub(crate) fn lanes(
    frame: &Frame,
    device: &DeviceHistory,
    name: impl Fn(&str) -> String,
) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for spell in &device.spells {
        let name = name(&spell.finding.rule);
        let is_warning = spell.finding.severity != base::finding::Severity::Information;
        let label =
            format!("{}: {} ({})", device.name, spell.finding.what, spell_time(frame, spell));
        let (from, until) = (frame.at(spell.began_seconds), frame.at(spell.ended_seconds));
        let span = Span { from, until, label };
        match lanes.iter_mut().find(|lane| lane.name == name) {
            Some(lane) => {
                lane.spans.push(span);
                lane.is_warning |= is_warning;
            }
            None => lanes.push(Lane { name, is_warning, spans: vec![span] }),
        }
    }
    lanes
}

fn figures(frame: &Frame, device: &DeviceHistory, points: &[Point]) -> Vec<Figure> {
    let group = |name: &str, of: &dyn Fn(&Point) -> f64| FigureGroup {
        name: name.to_owned(),
        values: points
            .iter()
            .map(|it| Value {
                x: frame.at(it.at_seconds),
                y: of(it),
                range: None,
                label: String::new(),
            })
            .collect(),
        curve: Vec::new(),
        marks: Marks::None,
    };
    let moved = |(_, of): &&Direction| points.iter().any(|it| of(it).requests_per_second > 0.0);
    let directions: Vec<&Direction> = DIRECTIONS.iter().filter(moved).collect();
    let each = |value: &dyn Fn(&PointDirection) -> f64| -> Vec<FigureGroup> {
        directions.iter().map(|(name, of)| group(name, &|it| value(of(it)))).collect()
    };
    let figure = |what: &str, unit: &str, y_least: f64, groups: Vec<FigureGroup>| {
        // A single line is named in the title, because the figure has no legend.
        let of = match groups.as_slice() {
            [one] if one.name != what => format!(", {}", one.name),
            _ => String::new(),
        };
        Figure {
            title: format!("{}: {what}{of}", device.name),
            x_name: "time (UTC)".to_owned(),
            y_name: unit.to_owned(),
            axis: Axis::Time(frame.began_unix_seconds),
            y_least,
            places: Vec::new(),
            groups,
        }
    };
    let mut requests = each(&|it| it.requests_per_second);
    if points.iter().any(|it| it.flushes_per_second > 0.0) {
        requests.push(group("flush", &|it| it.flushes_per_second));
    }
    let mut figures = vec![
        figure("throughput", "MB/s", 0.0, each(&|it| it.bytes_per_second / 1e6)),
        figure("requests", "in a second", 0.0, requests),
        figure("await", "ms", 0.0, each(&|it| it.await_ms.unwrap_or(f64::NAN))),
        figure(
            "queue",
            "requests in flight",
            1.0,
            vec![
                group("mean (aqu-sz)", &|it| it.queue_length),
                group("most seen", &|it| f64::from(it.in_flight_most)),
            ],
        ),
        figure("%util", "%", 100.0, vec![group("%util", &|it| it.busy_percent)]),
    ];
    figures.retain(|figure| !figure.groups.is_empty());
    for figure in &mut figures {
        stretch(figure, frame.seconds);
    }
    figures
}

/// Extends the time axis to the whole record with an empty value at either end, so that figures
/// show the same time at the same position.
pub(crate) fn stretch(figure: &mut Figure, seconds: f64) {
    if let Some(group) = figure.groups.first_mut() {
        let nothing = |x| Value { x, y: f64::NAN, range: None, label: String::new() };
        group.values.insert(0, nothing(0.0));
        group.values.push(nothing(seconds));
    }
}

fn spell_table(frame: &Frame, device: &DeviceHistory) -> PageTable {
    let names = [
        ("began", Cells::Words),
        ("ended", Cells::Words),
        ("in intervals", Cells::Numbers),
        ("rule", Cells::Words),
        ("what it says", Cells::Sentences),
        ("numbers", Cells::Sentences),
        ("what to do", Cells::Sentences),
    ];
    let row = |spell: &Spell| {
        vec![
            frame.clock(spell.began_seconds),
            frame.clock(spell.ended_seconds),
            format!("{} of {}", spell.spoken, spell.intervals),
            spell.finding.rule.to_string(),
            spell.finding.sentence(),
            numbers(&spell.numbers),
            spell.finding.action.clone().unwrap_or_default(),
        ]
    };
    let more = device.spells.len().saturating_sub(ROWS_MAX) as u64;
    let more = match more {
        0 => String::new(),
        more => format!("; {} more", counted(more, "is", "are")),
    };
    let table = PageTable {
        caption: format!(
            "Findings about {}, in the words of its busiest interval{more}",
            device.name
        ),
        columns: names.map(|(name, cells)| (name.to_owned(), cells)).to_vec(),
        rows: device.spells.iter().take(ROWS_MAX).map(row).collect(),
    };
    table.without_empty_columns()
}

fn spread_table(device: &DeviceHistory) -> PageTable {
    let mut columns = vec![("column".to_owned(), Cells::Words)];
    let heads = ["intervals", "5 %", "median", "95 %"];
    columns.extend(heads.map(|head| (head.to_owned(), Cells::Numbers)));
    let row = |(head, key, factor): &(&str, &str, f64)| {
        let spread = device.spread(column(key))?;
        let mut cells = vec![(*head).to_owned(), spread.intervals.to_string()];
        let values = [spread.low, spread.median, spread.high];
        cells.extend(values.map(|value| number(value * factor)));
        Some(cells)
    };
    PageTable {
        caption: format!("{} in its busy intervals", device.name),
        columns,
        rows: SHOWN.iter().filter_map(row).collect(),
    }
}
