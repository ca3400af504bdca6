//! An interval as lines: a table of the devices that do something, and below each what it means.

use std::collections::BTreeSet;

use finding::Finding;
use observe::columns::{COLUMNS, Column, Group, printed};
use observe::watch::{DeviceInterval, Interval, State};
use report::calendar::time_text;
use report::escape::escape;
use report::table::{Align, Colour, Emphasis, Table};

/// Writes intervals, and remembers what need not be said twice.
pub struct Text {
    colour: Colour,
    told_uncounted: BTreeSet<String>,
}

impl Text {
    /// Begins.
    pub fn new(colour: Colour) -> Text {
        Text { colour, told_uncounted: BTreeSet::new() }
    }

    /// The lines of an interval; none where nothing happened.
    pub fn of(&mut self, interval: &Interval) -> String {
        let shown: Vec<&DeviceInterval> =
            interval.devices.iter().filter(|device| self.is_shown(device)).collect();
        if shown.is_empty() && interval.vanished.is_empty() {
            return String::new();
        }
        let time = time_text(interval.unix_seconds);
        let mut text = format!("{time}  {:.2} s\n", interval.seconds);
        if !shown.is_empty() {
            let table = table(&shown).render(self.colour);
            let mut lines = table.lines();
            text.extend(lines.next().map(|head| format!("{head}\n")));
            for (line, device) in lines.zip(&shown) {
                text.push_str(&format!("{line}\n"));
                text.push_str(&meaning(&device.findings));
            }
        }
        for name in &interval.vanished {
            self.told_uncounted.remove(name);
            text.push_str(&format!("{} is gone\n", escape(name.as_bytes())));
        }
        text + "\n"
    }

    fn is_shown(&mut self, device: &DeviceInterval) -> bool {
        if device.state != State::NotCounted {
            self.told_uncounted.remove(&device.name);
            return device.is_busy() || !device.findings.is_empty();
        }
        self.told_uncounted.insert(device.name.clone())
    }
}

/// The columns that anybody has something in; those of the device as a whole always.
fn table(shown: &[&DeviceInterval]) -> Table {
    let groups = [Group::Read, Group::Write, Group::Discard, Group::Flush, Group::Whole];
    let of_group = |group: Group| COLUMNS.iter().filter(move |column| column.group == group);
    let is_needed = |group: &Group| {
        let is_empty =
            |column: &Column| shown.iter().all(|device| (column.value)(&device.columns) == 0.0);
        *group == Group::Whole || !of_group(*group).all(is_empty)
    };
    let columns: Vec<&Column> = groups.into_iter().filter(is_needed).flat_map(of_group).collect();
    let mut heads = vec![("device", Align::Left)];
    heads.extend(columns.iter().map(|column| (column.head, Align::Right)));
    heads.push(("in flight", Align::Right));
    let mut table = Table::new(&heads);
    for device in shown {
        let mut cells = vec![escape(device.name.as_bytes())];
        cells.extend(columns.iter().map(|column| printed((column.value)(&device.columns))));
        cells.push(device.in_flight.now.to_string());
        table.row(cells, Emphasis::Strong);
    }
    table
}

/// All that was found, in one line; none where nothing was.
fn meaning(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let sentences: Vec<String> = findings.iter().map(Finding::sentence).collect();
    format!("  {}\n", escape(sentences.join("; ").as_bytes()))
}
