//! A whole record as a text for the terminal, and as a page: what each device did over time, and
//! when each finding held.
//!
//! Devices are in the order of the screen: a tree of layers, the busiest first.

pub(crate) mod page;

use crate::table::{Align, Emphasis, Style, Table};
use base::calendar::time_text;
use base::escape::escape;
use base::format::{counted, duration};
use watch::columns::{COLUMNS, Column};
use watch::history::{DeviceHistory, DeviceKind, Frame, History, NumberRange, Spell};

use crate::device_tree::{DeviceRow, Node, rows_of};
use crate::findings::wrapped;
use crate::glyphs::Glyphs;
pub use page::page;

/// The columns of a table: heading, key, and factor of the value.
pub(crate) const SHOWN: [(&str, &str, f64); 10] = [
    ("read MB/s", "rkB/s", 1024e-6),
    ("write MB/s", "wkB/s", 1024e-6),
    ("reads/s", "r/s", 1.0),
    ("writes/s", "w/s", 1.0),
    ("r_await ms", "r_await", 1.0),
    ("w_await ms", "w_await", 1.0),
    ("read KiB", "rareq-sz", 1.0),
    ("write KiB", "wareq-sz", 1.0),
    ("aqu-sz", "aqu-sz", 1.0),
    ("%util", "util", 1.0),
];

/// The columns that fit a terminal of 80 columns.
const ON_TERMINAL: [&str; 6] = ["rkB/s", "wkB/s", "r_await", "w_await", "aqu-sz", "util"];
/// Width of sentences.
const WIDTH: usize = 80;

/// The column of that key.
pub(crate) fn column(key: &str) -> &'static Column {
    COLUMNS.iter().find(|column| column.key == key).expect("the keys here are those of columns")
}

/// Devices as a tree, the busiest first, each once.
pub(crate) fn ordered(history: &History, glyphs: Glyphs) -> Vec<(DeviceRow, &DeviceHistory)> {
    let node = |device| {
        let DeviceHistory { name, made_of, .. }: &DeviceHistory = device;
        Node { name, made_of, weight: device.busy_seconds() }
    };
    let nodes: Vec<Node<'_>> = history.devices.iter().map(node).collect();
    let rows = rows_of(&nodes, glyphs).into_iter().filter(|row| !row.is_repeat);
    rows.map(|row| (row.device, row)).map(|(at, row)| (row, &history.devices[at])).collect()
}

/// The record for the terminal.
pub fn text(history: &History, style: Style) -> String {
    format!("{}\n{}", summary(history), table_and_sentences(&Frame::of(history), history, style))
}

/// The table and the sentences about the devices of a record, with times on this axis.
pub(crate) fn table_and_sentences(frame: &Frame, history: &History, style: Style) -> String {
    let busy = |device: &DeviceHistory| device.busy_seconds() > 0.0 || !device.spells.is_empty();
    let shown: Vec<(DeviceRow, &DeviceHistory)> = ordered(history, Glyphs::of_environment())
        .into_iter()
        .filter(|(_, device)| busy(device))
        .collect();
    if shown.is_empty() {
        return "no device was busy enough for a finding\n".to_owned();
    }
    let keys = SHOWN.iter().filter(|(_, key, _)| ON_TERMINAL.contains(key));
    let mut heads = vec![("device", Align::Left), ("busy", Align::Right)];
    heads.extend(keys.clone().map(|(head, ..)| (*head, Align::Right)));
    let mut table = Table::new(&heads);
    for (row, device) in &shown {
        let name = format!("{}{}", row.indent, escape(device.name.as_bytes()));
        let mut cells = vec![name, share(device.busy_seconds(), device.seconds)];
        cells.extend(keys.clone().map(|(_, key, factor)| {
            let spread = device.spread(column(key));
            spread.map_or("-".to_owned(), |it| number(it.median * factor))
        }));
        table.row(cells, Emphasis::None);
    }
    let mut text = table.render(style);
    text.push_str("columns are medians over the intervals in which a device was busy\n");
    for (_, device) in &shown {
        for spell in &device.spells {
            let name = escape(device.name.as_bytes());
            let when = spell_time(frame, spell);
            text.push_str(&format!("\n{name}  {when}\n"));
            text.push_str(&wrapped(&escape(spell.finding.sentence().as_bytes()), WIDTH));
            if let Some(action) = &spell.finding.action {
                text.push_str(&wrapped(
                    &format!("what to do: {}", escape(action.as_bytes())),
                    WIDTH,
                ));
            }
        }
        for gone in &device.gone_seconds {
            let name = escape(device.name.as_bytes());
            text.push_str(&format!("\n{name}  {}  is gone\n", frame.clock(*gone)));
        }
    }
    text
}

/// Intervals count as different in length if the longest exceeds the shortest by this factor.
const LENGTHS_ALIKE: f64 = 1.5;

/// Period and size of a record.
pub(crate) fn summary(history: &History) -> String {
    let began = time_text(history.began_unix_seconds);
    let ended = time_text(history.unix_seconds(history.seconds));
    let busy = history.devices.iter().filter(|device| device.busy_seconds() > 0.0).count();
    // Show the range if one interval was delayed: a mean would fit no interval.
    let length = match history.lengths_seconds {
        (shortest, longest) if longest > LENGTHS_ALIKE * shortest => {
            format!("{shortest:.1} to {longest:.1} s")
        }
        _ => format!("{} s", tenths(history.seconds / history.intervals.max(1) as f64)),
    };
    let joined = match history.joined {
        1 => String::new(),
        joined => format!(" (each {joined} of the record)"),
    };
    format!(
        "{began} to {ended} UTC, {}: {} of {length}{joined}, {}, {busy} busy",
        duration(history.seconds),
        counted(history.intervals, "interval", "intervals"),
        counted(history.devices.len() as u64, "device", "devices"),
    )
}

/// With one decimal, or two for less than a second if one would distort the value.
pub(crate) fn tenths(seconds: f64) -> String {
    let away = (seconds * 10.0 - (seconds * 10.0).round()).abs();
    if seconds < 1.0 && away > 0.2 { format!("{seconds:.2}") } else { format!("{seconds:.1}") }
}

/// `10:40:01 to 10:52:00, in 700 of 719 intervals`.
pub(crate) fn spell_time(frame: &Frame, spell: &Spell) -> String {
    let (from, until) = (frame.clock(spell.began_seconds), frame.clock(spell.ended_seconds));
    let all = counted(spell.intervals, "interval", "intervals");
    if spell.spoken == spell.intervals {
        format!("{from} to {until}, {all}")
    } else {
        format!("{from} to {until}, in {} of {all}", spell.spoken)
    }
}

/// A share of a time, in per cent.
pub(crate) fn share(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.0} %", part / all * 100.0) } else { "-".to_owned() }
}

/// A number with about three digits.
pub(crate) fn number(value: f64) -> String {
    match value {
        large if large >= 99.95 => format!("{large:.0}"),
        middle if middle >= 9.995 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

/// `in flight 29 to 32`, for all numbers behind a finding.
pub(crate) fn numbers(ranges: &[NumberRange]) -> String {
    let one = |range: &NumberRange| {
        let shown = |value: f64| match range.unit {
            base::finding::Unit::Seconds => duration_of(value),
            base::finding::Unit::Share => format!("{:.0} %", value * 100.0),
            base::finding::Unit::Bytes => format!("{} KiB", number(value / 1024.0)),
            _ => number(value),
        };
        let (least, most) = (shown(range.least), shown(range.most));
        if least == most {
            format!("{} {least}", range.name)
        } else {
            format!("{} {least} to {most}", range.name)
        }
    };
    ranges.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A time of a request, which may be short.
fn duration_of(seconds: f64) -> String {
    if seconds < 1.0 { format!("{} ms", number(seconds * 1e3)) } else { duration(seconds) }
}

/// The kind of a device in words.
pub(crate) fn kind(device: &DeviceHistory) -> &'static str {
    match device.kind {
        DeviceKind::Disk => "block device",
        DeviceKind::Tape => "tape drive",
    }
}
