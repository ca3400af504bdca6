//! The page of one device: all columns, findings, queue settings, and graphs.

use base::escape::escape;
use base::finding::Finding;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use storage::queue::Queue;
use watch::intervals::{DeviceInterval, Interval};

use crate::draw::{Look, Shown};
use crate::lines::{WIDEST, heads, rows, whole};
use crate::timeline::{Quantity, Timeline};
use crate::view::View;
use report::findings::wrapped;
use report::glyphs::fitted;

/// The page.
pub(crate) fn shown(
    view: &View,
    interval: Option<&Interval>,
    timeline: &Timeline,
    look: &Look,
    body: Rect,
) -> Shown {
    let device = interval.and_then(|interval| {
        interval.devices.iter().find(|device| view.chosen.as_deref() == Some(&*device.name))
    });
    let Some(device) = device else {
        let name = view.chosen.as_deref().unwrap_or("the device");
        return Shown::whole(vec![
            Line::raw(""),
            Line::raw(format!("  {} is not there", escape(name.as_bytes()))),
        ]);
    };
    let width = usize::from(body.width).min(WIDEST);
    let (major, minor) = device.number;
    let name = escape(device.name.as_bytes());
    let mut lines = vec![
        Line::raw(""),
        Line::styled(format!("{name}  {major}:{minor}  {}", whole(device)), look.strong()),
        Line::raw(heads().trim_end().to_owned()),
    ];
    lines.extend(rows(&device.columns).lines().map(|line| Line::raw(line.to_owned())));
    let in_flight = device.in_flight;
    lines.push(Line::raw(format!(
        "  in flight: {} at the end, {:.1} on average, {} at most, in {} looks",
        in_flight.now, in_flight.mean, in_flight.most, in_flight.looks
    )));
    lines.push(Line::raw(""));
    for finding in &device.findings {
        lines.extend(of_finding(finding, look, width));
    }
    if let Some(queue) = &device.queue {
        let text = wrapped(&escape(settings(queue).as_bytes()), width);
        lines.extend(text.lines().map(|line| Line::raw(line.to_owned())));
    }
    lines.push(Line::raw(""));
    lines.extend(graphs(view, device, timeline, look, body.width.into()));
    Shown::whole(lines)
}

fn of_finding(finding: &Finding, look: &Look, width: usize) -> Vec<Line<'static>> {
    let mut texts = vec![finding.sentence()];
    texts.extend(finding.caveat.clone());
    texts.extend(finding.action.as_ref().map(|action| format!("what to do: {action}")));
    texts.push(format!("(rule {})", finding.rule));
    let style = look.sentence(finding.severity);
    let mut lines = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let text = wrapped(&escape(text.as_bytes()), width - 2);
        for line in text.lines() {
            let line = line.to_owned();
            lines.push(match number {
                0 => Line::styled(line, style),
                _ => Line::raw(format!("  {line}")),
            });
        }
    }
    lines
}

/// Queue settings in one sentence.
fn settings(queue: &Queue) -> String {
    let numbers = [
        ("max_sectors_kb", queue.max_sectors_kb),
        ("max_segments", queue.max_segments),
        ("read_ahead_kb", queue.read_ahead_kb),
        ("nr_requests", queue.nr_requests),
        ("queue_depth", queue.device_depth),
        ("hardware queues", queue.hardware_queues),
        ("nomerges", queue.nomerges),
        ("rotational", queue.rotational),
        ("wbt_lat_usec", queue.wbt_lat_usec),
        ("iostats", queue.iostats),
    ];
    let words = [("scheduler", &queue.scheduler), ("write_cache", &queue.write_cache)];
    let words =
        words.iter().filter_map(|(name, word)| Some(format!("{name} {}", (*word).as_ref()?)));
    let numbers = numbers.iter().filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)));
    let mut parts: Vec<String> = words.chain(numbers).collect();
    if !queue.made_of.is_empty() {
        parts.push(format!("made of {}", queue.made_of.join(" ")));
    }
    parts.join(", ")
}

fn graphs(
    view: &View,
    device: &DeviceInterval,
    timeline: &Timeline,
    look: &Look,
    width: usize,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(2 + 8 + 8 + 2);
    let graph = |quantity: Quantity| {
        let values = timeline.values(&device.name, quantity, view.place.number, room);
        let full = values.iter().copied().fold(0.0, f32::max);
        let drawn = view.glyphs.graph(&values, full, room.min(values.len()));
        let style = look.style(ratatui::style::Style::new().fg(ratatui::style::Color::Green));
        let front = format!("  {:<8}{:>8}  ", quantity.name(), fitted(full.into(), 7));
        Line::from(vec![Span::raw(front), Span::styled(drawn, style)])
    };
    let head =
        Line::raw(format!("  {:<8}{:>8}  {}", "", "at most", "over time, the end at the right"));
    std::iter::once(head).chain(Quantity::ALL.into_iter().map(graph)).collect()
}
