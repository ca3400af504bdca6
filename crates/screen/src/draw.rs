//! The picture: the visible part of a timeline, for the size of the terminal.
//!
//! It is drawn completely each time; `ratatui` sends only changes to the terminal.

use base::calendar::time_text;
use base::escape::escape;
use base::finding::Severity;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use report::table::Colour;
use watch::intervals::{CounterState, DeviceInterval, Interval};
use watch::tapes::TapeInterval;

use crate::fields::{Division, Value, division};
use crate::lines::{self, WIDEST, tape_rows, tape_whole};
use crate::timeline::Timeline;
use crate::view::{Order, Page, View};
use crate::{details, help};
use report::device_tree::DeviceRow;
use report::findings::wrapped;
use report::glyphs::fitted;

/// Minimum size of the terminal, in columns and lines.
const SMALLEST: (u16, u16) = (40, 6);

/// Fixed properties of the picture.
#[derive(Clone, Debug)]
pub struct Look {
    /// The title at the top left.
    pub title: String,
    /// Whether to use colours, bold and dim.
    pub colour: Colour,
}

impl Look {
    pub(crate) fn style(&self, style: Style) -> Style {
        match self.colour {
            Colour::Ansi => style,
            Colour::Plain => Style::new(),
        }
    }

    pub(crate) fn strong(&self) -> Style {
        self.style(Style::new().add_modifier(Modifier::BOLD))
    }

    pub(crate) fn sentence(&self, severity: Severity) -> Style {
        self.style(match severity {
            Severity::Information => Style::new().fg(Color::Cyan),
            Severity::Warning => Style::new().fg(Color::Yellow),
            Severity::Critical => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        })
    }
}

/// Draws the picture.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, timeline: &Timeline, look: &Look) {
    let area = frame.area();
    if too_small(frame) {
        return;
    }
    let interval = timeline.get(view.place.number);
    put(frame, 0, head(view, interval, look, area.width.into()));
    let body = Rect { y: 1, height: area.height - 2, ..area };
    let shown = match view.page {
        Page::Help => {
            let lines: Vec<Line<'_>> = help::lines().into_iter().map(Line::raw).collect();
            Shown::whole(lines)
        }
        Page::Details => details::shown(view, interval, timeline, look, body),
        Page::Devices => devices(view, interval, timeline, look, body),
    };
    let height = usize::from(body.height);
    let more = shown.more(height);
    let lines = shown.lines.into_iter().skip(shown.skipped).take(height);
    for (line, y) in lines.zip(body.y..) {
        put(frame, y, line);
    }
    put(frame, area.height - 1, foot(view, interval, look, &more, area.width.into()));
}

/// Whether the terminal is too small for any picture; that is then said in its place.
pub(crate) fn too_small(frame: &mut Frame<'_>) -> bool {
    let area = frame.area();
    let is_too_small = area.width < SMALLEST.0 || area.height < SMALLEST.1;
    if is_too_small {
        let text = format!("terminal too small: use {} x {}", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Line::raw(text), Rect { height: area.height.min(1), ..area });
    }
    is_too_small
}

pub(crate) fn put(frame: &mut Frame<'_>, y: u16, line: Line<'_>) {
    let area = Rect { y, height: 1, ..frame.area() };
    frame.render_widget(line, area);
}

/// Lines between head and foot, and how many of them are scrolled past.
pub(crate) struct Shown {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) skipped: usize,
}

impl Shown {
    pub(crate) fn whole(lines: Vec<Line<'static>>) -> Shown {
        Shown { lines, skipped: 0 }
    }

    /// Which lines are visible, if not all are.
    fn more(&self, height: usize) -> String {
        let end = (self.skipped + height).min(self.lines.len());
        if self.skipped == 0 && end == self.lines.len() {
            return String::new();
        }
        format!("lines {} to {end} of {}", self.skipped + 1, self.lines.len())
    }
}

/// Two texts at the ends of a line.
pub(crate) fn between(left: &str, right: &str, width: usize) -> String {
    let room = width.saturating_sub(right.chars().count() + usize::from(!right.is_empty()));
    let left: String = left.chars().take(room).collect();
    let gap = width.saturating_sub(right.chars().count());
    format!("{left:<gap$}{right}")
}

fn head(view: &View, interval: Option<&Interval>, look: &Look, width: usize) -> Line<'static> {
    let title = escape(look.title.as_bytes());
    let mut left = title;
    if let Some(total) = view.total {
        left.push_str(&format!("  {} of {total}", (view.place.number + 1).min(total)));
    }
    if let Some(interval) = interval {
        let busy = interval.devices.iter().filter(|device| device.is_busy()).count();
        let devices = base::format::counted(interval.devices.len() as u64, "device", "devices");
        let time = time_text(interval.unix_seconds);
        left.push_str(&format!("  {time}  {:.2} s  {devices}, {busy} busy", interval.seconds));
    }
    let right = match (view.place.goes_on, view.total) {
        (false, _) => "PAUSE".to_owned(),
        (true, Some(_)) if view.place.speed > 1 => format!("x{}", view.place.speed),
        (true, _) => String::new(),
    };
    Line::styled(between(&left, &right, width), look.strong())
}

fn foot(
    view: &View,
    interval: Option<&Interval>,
    look: &Look,
    more: &str,
    width: usize,
) -> Line<'static> {
    let gone = interval.map_or(&[][..], |interval| &interval.vanished);
    let gone: Vec<String> =
        gone.iter().map(|name| format!("{} is gone", escape(name.as_bytes()))).collect();
    let left = match view.page {
        Page::Devices if view.is_typing => format!("/{}_", escape(view.filter.as_bytes())),
        Page::Devices if !gone.is_empty() => gone.join(", "),
        Page::Devices if !view.filter.is_empty() => {
            format!("names with {}; Esc shows all", escape(view.filter.as_bytes()))
        }
        Page::Devices => {
            let sorted = match view.order {
                Order::Kernel => "s sort".to_owned(),
                Order::By(quantity) => format!("s sort: {}", quantity.name()),
            };
            format!("q end  ? keys  {sorted}  / find  g graph  space pause  Enter details")
        }
        Page::Details => {
            "Enter back  up down other devices  g graph  space pause  q end".to_owned()
        }
        Page::Help => "? back  q end".to_owned(),
    };
    Line::styled(between(&left, more, width), look.style(Style::new().add_modifier(Modifier::DIM)))
}

fn devices(
    view: &mut View,
    interval: Option<&Interval>,
    timeline: &Timeline,
    look: &Look,
    body: Rect,
) -> Shown {
    let Some(interval) = interval else {
        let is_empty = view.total == Some(0);
        let text =
            if is_empty { "the record has no interval" } else { "waiting for the first interval" };
        return Shown::whole(vec![Line::raw(""), Line::raw(format!("  {text}"))]);
    };
    let rows = view.rows(interval, timeline);
    let is_chosen = |row: &DeviceRow| {
        !row.is_repeat && view.chosen.as_deref() == Some(&*interval.devices[row.device].name)
    };
    if !rows.iter().any(is_chosen) {
        view.chosen = rows.first().map(|row| interval.devices[row.device].name.clone());
    }
    let tapes = tapes(view, interval, look, usize::from(body.width).min(WIDEST));
    if rows.is_empty() && tapes.is_empty() {
        let text = nothing(view, interval);
        return Shown::whole(vec![Line::raw(""), Line::raw(format!("  {text}"))]);
    }
    let table = Table::new(view, interval, timeline, look, &rows, body.width.into());
    let heads = table.heads();
    let mut lines = Vec::new();
    let mut chosen = 0..0;
    for row in &rows {
        let begin = lines.len();
        let device = &interval.devices[row.device];
        let is_chosen = !row.is_repeat && view.chosen.as_deref() == Some(&*device.name);
        lines.push(table.row(row, device, if is_chosen { Mark::Chosen } else { Mark::Other }));
        if view.shows_sentences && !row.is_repeat {
            lines.extend(sentences(view, row, device, look, body.width.into()));
        }
        if is_chosen {
            chosen = begin..lines.len();
        }
    }
    lines.extend(tapes);
    let height = usize::from(body.height) - 1;
    view.scrolled = view.scrolled.max(chosen.end.saturating_sub(height)).min(chosen.start);
    view.scrolled = view.scrolled.min(lines.len().saturating_sub(height));
    // The column headings do not scroll.
    lines.insert(view.scrolled, heads);
    Shown { lines, skipped: view.scrolled }
}

/// Tape drives have other columns than disks, and so have separate lines below them.
fn tapes(view: &View, interval: &Interval, look: &Look, width: usize) -> Vec<Line<'static>> {
    let wanted = view.filter.to_lowercase();
    let is_shown = |tape: &&TapeInterval| {
        tape.device.to_lowercase().contains(&wanted) && (view.shows_idle || tape.is_busy())
    };
    let of_tape = |tape: &TapeInterval| {
        let rows = tape_rows(tape);
        let heads = (!rows.is_empty()).then(lines::heads).unwrap_or_default();
        let head = Line::styled(format!(" {}", tape_whole(tape)), look.strong());
        let told = tape.findings.iter().filter(|_| view.shows_sentences && !tape.is_new);
        let told: String =
            told.map(|it| wrapped(&escape(it.sentence().as_bytes()), width)).collect();
        let below = format!("{heads}{rows}{told}");
        let below = below.lines().map(|line| Line::raw(line.to_owned())).collect::<Vec<_>>();
        std::iter::once(head).chain(below).collect::<Vec<_>>()
    };
    interval.tapes.iter().filter(is_shown).flat_map(of_tape).collect()
}

fn nothing(view: &View, interval: &Interval) -> String {
    let devices = base::format::counted(interval.devices.len() as u64, "device", "devices");
    match view.filter.as_str() {
        "" => format!("{devices}, all idle so far; press i to show them"),
        part => {
            let part = escape(part.as_bytes());
            format!("no active device has {part} in its name; press i to include idle devices")
        }
    }
}

fn sentences(
    view: &View,
    row: &DeviceRow,
    device: &DeviceInterval,
    look: &Look,
    width: usize,
) -> Vec<Line<'static>> {
    let trunk = view.glyphs.trunks()[usize::from(!row.has_children)];
    let front = format!(" {}{trunk}", row.below);
    let room = width.min(WIDEST).saturating_sub(front.chars().count());
    let of_finding = |finding: &base::finding::Finding| {
        let style = look.sentence(finding.severity);
        let text = wrapped(&escape(finding.sentence().as_bytes()), room + 2);
        let line = |line: &str| {
            // Wrapped lines begin with two spaces, in place of which the tree is drawn.
            let line = line.get(2..).unwrap_or(line).to_owned();
            Line::from(vec![Span::raw(front.clone()), Span::styled(line, style)])
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    device.findings.iter().flat_map(of_finding).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Chosen,
    Other,
}

/// Common parts of all rows.
struct Table<'a> {
    view: &'a View,
    timeline: &'a Timeline,
    look: &'a Look,
    division: Division,
    full: f32,
}

impl<'a> Table<'a> {
    fn new(
        view: &'a View,
        interval: &Interval,
        timeline: &'a Timeline,
        look: &'a Look,
        rows: &[DeviceRow],
        width: usize,
    ) -> Table<'a> {
        let label = |row: &DeviceRow| label(row, &interval.devices[row.device]).chars().count() + 1;
        let division = division(width, rows.iter().map(label).max().unwrap_or(0));
        let mut table = Table { view, timeline, look, division, full: 0.0 };
        let values = |row: &DeviceRow| table.values(&interval.devices[row.device].name);
        table.full = rows.iter().flat_map(values).fold(0.0, f32::max);
        table
    }

    fn values(&self, device: &str) -> Vec<f32> {
        let width = self.division.graph.saturating_sub(1);
        self.timeline.values(device, self.view.quantity, self.view.place.number, width)
    }

    fn heads(&self) -> Line<'static> {
        let mut text = format!("{:<1$}", " device", self.division.name);
        for field in &self.division.fields {
            text.push_str(&format!("{:>1$}", field.head, field.width));
        }
        let graph = self.division.graph;
        if graph > 0 {
            let name = self.view.quantity.name();
            let full = |width| fitted(self.full.into(), width);
            let long = format!("{name} to {}", full(7));
            let head = if long.len() < graph { long } else { format!("{name} {}", full(4)) };
            text.push_str(&format!("{head:>graph$}"));
        }
        let style = Style::new().add_modifier(Modifier::REVERSED);
        Line::styled(text, self.look.style(style))
    }

    fn row(&self, row: &DeviceRow, device: &DeviceInterval, mark: Mark) -> Line<'static> {
        let name_width = self.division.name;
        let front = if mark == Mark::Chosen { '>' } else { ' ' };
        let mut name = format!("{front}{}", label(row, device));
        if name.chars().count() > name_width {
            name = name.chars().take(name_width - 1).collect::<String>() + "~";
        }
        let mut text = format!("{name:<name_width$}");
        if row.is_repeat {
            text.push_str("  see above");
            return Line::styled(text, self.look.style(Style::new().add_modifier(Modifier::DIM)));
        }
        for field in &self.division.fields {
            let value = match device.state {
                CounterState::NotCounted | CounterState::CountedAnew if field.head != "now" => {
                    "-".to_owned()
                }
                _ => match (field.value)(device) {
                    Value::Real(value) => fitted(value, field.width - 1),
                    Value::Count(count) => count.to_string(),
                },
            };
            text.push_str(&format!("{value:>0$}", field.width));
        }
        let style = match (mark, device.is_busy()) {
            (Mark::Chosen, _) => Style::new().add_modifier(Modifier::BOLD),
            (Mark::Other, true) => Style::new(),
            (Mark::Other, false) => Style::new().add_modifier(Modifier::DIM),
        };
        let mut spans = vec![Span::styled(text, self.look.style(style))];
        if let Some(width) = self.division.graph.checked_sub(1) {
            let values = self.values(&device.name);
            let graph = self.view.glyphs.graph(&values, self.full, width);
            let style = self.look.style(Style::new().fg(Color::Green));
            spans.push(Span::styled(format!(" {graph}"), style));
        }
        Line::from(spans)
    }
}

/// The name with its indentation in the tree.
fn label(row: &DeviceRow, device: &DeviceInterval) -> String {
    format!("{}{}", row.indent, escape(device.name.as_bytes()))
}
