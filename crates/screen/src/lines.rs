//! An interval as lines of at most 80 columns: for each active device its name, a row for each
//! direction, and the findings.

use std::collections::BTreeSet;
use std::fmt::Write;

use base::calendar::time_text;
use base::escape::escape;
use report::findings::wrapped;
use report::table::Colour;
use watch::columns::{COLUMNS, Column, ColumnGroup, Columns, printed};
use watch::intervals::{CounterState, DeviceInterval, Interval};
use watch::tapes::{TapeDirection, TapeInterval};

/// Maximum width of sentences on a wide terminal, because longer lines are hard to read.
pub(crate) const WIDEST: usize = 100;
/// Width if there is no terminal, or its width is unknown.
const USUAL_WIDTH: usize = 80;
/// Minimum width of lines.
const NARROWEST: usize = 40;

/// The directions: the word before a row, and the letter of its columns.
const DIRECTIONS: [(&str, char, ColumnGroup); 4] = [
    ("read", 'r', ColumnGroup::Read),
    ("write", 'w', ColumnGroup::Write),
    ("discard", 'd', ColumnGroup::Discard),
    ("flush", 'f', ColumnGroup::Flush),
];

/// The columns of a row: heading, the name in `iostat` without the letter of the direction, and
/// width.
const HEADS: [(&str, &str, usize); 6] = [
    ("req/s", "/s", 11),
    ("kB/s", "kB/s", 13),
    ("rqm/s", "rqm/s", 11),
    ("%rqm", "%rqm", 8),
    ("await", "_await", 10),
    ("areq-sz", "areq-sz", 10),
];

/// Writes intervals, and remembers what need not be repeated.
pub struct ScreenLines {
    colour: Colour,
    told_uncounted: BTreeSet<String>,
    says_idle: bool,
}

impl ScreenLines {
    /// Begins.
    pub fn new(colour: Colour) -> ScreenLines {
        ScreenLines { colour, told_uncounted: BTreeSet::new(), says_idle: false }
    }

    /// The same, with a line for an idle interval too, because the user asked for a number of
    /// intervals.
    #[must_use]
    pub fn saying_idle(self) -> ScreenLines {
        ScreenLines { says_idle: true, ..self }
    }

    /// The lines of an interval, for a terminal of this width if there is one; empty for an idle
    /// interval.
    pub fn of(&mut self, interval: &Interval, terminal: Option<usize>) -> String {
        let shown: Vec<&DeviceInterval> =
            interval.devices.iter().filter(|device| self.is_shown(device)).collect();
        let tapes: Vec<&TapeInterval> =
            interval.tapes.iter().filter(|tape| tape.is_busy()).collect();
        if shown.is_empty() && tapes.is_empty() && interval.vanished.is_empty() {
            return if self.says_idle { idle(interval) } else { String::new() };
        }
        let width = terminal.filter(|width| *width > 0).unwrap_or(USUAL_WIDTH);
        let width = width.clamp(NARROWEST, WIDEST);
        let time = time_text(interval.unix_seconds);
        let mut text = format!("{time}  {:.2} s\n", interval.seconds);
        if shown.iter().any(|device| !rows(&device.columns).is_empty())
            || tapes.iter().any(|tape| !tape_rows(tape).is_empty())
        {
            text.push_str(&heads());
        }
        let names: Vec<String> = shown.iter().map(|it| escape(it.name.as_bytes())).collect();
        let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (device, name) in shown.iter().zip(&names) {
            let head = self.strong(&format!("{name:<name_width$}  {}", whole(device)));
            text.push_str(&format!("{head}\n{}", rows(&device.columns)));
            for finding in &device.findings {
                text.push_str(&wrapped(&escape(finding.sentence().as_bytes()), width));
            }
        }
        for tape in tapes {
            let head = self.strong(&tape_whole(tape));
            text.push_str(&format!("{head}\n{}", tape_rows(tape)));
            // Its line says that there are no numbers.
            for finding in tape.findings.iter().filter(|_| !tape.is_new) {
                text.push_str(&wrapped(&escape(finding.sentence().as_bytes()), width));
            }
        }
        for name in &interval.vanished {
            self.told_uncounted.remove(name);
            text.push_str(&format!("{} is gone\n", escape(name.as_bytes())));
        }
        text + "\n"
    }

    fn is_shown(&mut self, device: &DeviceInterval) -> bool {
        if device.state != CounterState::NotCounted {
            self.told_uncounted.remove(&device.name);
            return device.is_busy() || !device.findings.is_empty();
        }
        self.told_uncounted.insert(device.name.clone())
    }

    fn strong(&self, line: &str) -> String {
        match self.colour {
            Colour::Ansi => format!("\x1b[1m{line}\x1b[0m"),
            Colour::Plain => line.to_owned(),
        }
    }
}

/// Maximum number of idle devices to name.
const NAMED_MAX: usize = 4;

/// An idle interval.
fn idle(interval: &Interval) -> String {
    let time = time_text(interval.unix_seconds);
    let disks = interval.devices.iter().map(|device| device.name.as_str());
    let names: Vec<&str> =
        disks.chain(interval.tapes.iter().map(|it| it.device.as_str())).collect();
    let who = match names.len() {
        0 => "there is no device".to_owned(),
        1..=NAMED_MAX => format!("{} did nothing", escape(names.join(", ").as_bytes())),
        count => format!("{count} devices did nothing"),
    };
    format!("{time}  {:.2} s\n{who}\n\n", interval.seconds)
}

/// A drive as a whole.
pub(crate) fn tape_whole(tape: &TapeInterval) -> String {
    let name = escape(tape.device.as_bytes());
    if tape.is_new {
        return format!("{name}  appeared, or its counters restarted: no numbers");
    }
    format!(
        "{name}  others/s {:>6}  %util {:>6}  in flight {:>3}  short {:>3}",
        printed(tape.others_per_second),
        printed(tape.busy_percent),
        tape.in_flight,
        tape.residuals
    )
}

/// A row for each active direction of a drive.
pub(crate) fn tape_rows(tape: &TapeInterval) -> String {
    let of_direction = |(word, it): (&str, &TapeDirection)| {
        if it.per_second == 0.0 {
            return String::new();
        }
        row(word, |(_, rest, _)| match *rest {
            "/s" => printed(it.per_second),
            "kB/s" => printed(it.kib_per_second),
            "_await" => printed(it.await_ms),
            "areq-sz" => printed(it.request_kib),
            // Tape has no merging.
            _ => String::new(),
        })
    };
    [("read", &tape.read), ("write", &tape.write)].into_iter().map(of_direction).collect()
}

/// The columns of the device as a whole, each after its name.
pub(crate) fn whole(device: &DeviceInterval) -> String {
    let columns = COLUMNS.iter().filter(|column| column.group == ColumnGroup::Whole);
    let value = |column: &Column| {
        let value = printed((column.value)(&device.columns));
        format!("{} {value:>6}  ", column.head)
    };
    let columns: String = columns.map(value).collect();
    format!("{columns}in flight {:>3}", device.in_flight.now)
}

/// The headings of the columns of a direction.
pub(crate) fn heads() -> String {
    row("", |(head, ..)| (*head).to_owned())
}

/// A row for each active direction.
pub(crate) fn rows(columns: &Columns) -> String {
    let of_direction = |(word, letter, group): &(&str, char, ColumnGroup)| {
        let own = || COLUMNS.iter().filter(|column| column.group == *group);
        if own().all(|column| (column.value)(columns) == 0.0) {
            return String::new();
        }
        row(word, |(_, rest, _)| {
            let is_it = |column: &&Column| is_without(column.head, *letter, rest);
            own().find(is_it).map(|column| printed((column.value)(columns))).unwrap_or_default()
        })
    };
    DIRECTIONS.iter().map(of_direction).collect()
}

/// Whether a heading without the letter of its direction is `rest`.
fn is_without(head: &str, letter: char, rest: &str) -> bool {
    head.split_once(letter).is_some_and(|(front, behind)| {
        rest.len() == front.len() + behind.len()
            && rest.starts_with(front)
            && rest.ends_with(behind)
    })
}

fn row(word: &str, cell: impl Fn(&(&str, &str, usize)) -> String) -> String {
    let mut line = format!("  {word:<8}");
    for head in &HEADS {
        // Writing to a string cannot fail.
        let _ = write!(line, "{:>1$}", cell(head), head.2);
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_columns_and_no_other() {
        for (_, letter, group) in &DIRECTIONS[..3] {
            let own = COLUMNS.iter().filter(|column| column.group == *group);
            for column in own {
                let heads = HEADS.iter().filter(|head| is_without(column.head, *letter, head.1));
                assert_eq!(heads.count(), 1, "{}", column.head);
                assert!(!is_without(column.head, *letter, "areq"), "{}", column.head);
            }
        }
    }

    #[test]
    fn every_column_has_its_place_within_80() {
        let columns = COLUMNS.iter().filter(|column| column.group != ColumnGroup::Whole);
        for column in columns {
            let (_, letter, _) = DIRECTIONS.iter().find(|it| it.2 == column.group).unwrap();
            let rest = column.head.replacen(*letter, "", 1);
            assert!(HEADS.iter().any(|head| head.1 == rest), "{}", column.head);
        }
        let head = heads();
        assert!(head.trim_end().len() <= 80, "{head}");
    }
}
