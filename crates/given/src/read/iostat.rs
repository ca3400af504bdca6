//! `iostat -x`, of all versions, with `-m`, `-k` or neither, also without lines in between.

use super::number::decimal;
use super::{Before, Met};
use crate::piece::{DeviceRow, Requests, What};

/// Columns of a row, behind the name of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<String>);

/// Fewest numbers that look like a row where the columns are missing.
const NUMBERS_MIN: usize = 10;
const SECTOR_BYTES: f64 = 512.0;

pub(super) fn row(text: &str, before: &mut Before) -> Met {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else { return Met::Nothing };
    let is_behind_processors = std::mem::replace(&mut before.processors, first == "avg-cpu:");
    if first == "avg-cpu:" || is_of_report(text, is_behind_processors) {
        return Met::Whole(What::Passed);
    }
    let rest: Vec<&str> = words.collect();
    if matches!(first, "Device" | "Device:") {
        return header(&rest, before);
    }
    if rest.len() < 2 || !rest.iter().all(|word| decimal(word).is_some()) || !is_device(first) {
        // A row with a note behind it; one that goes on with the next row has lost its end.
        let numbers = rest.iter().take_while(|word| decimal(word).is_some()).count();
        let is_row = before.columns.is_some() && numbers + 2 >= NUMBERS_MIN && is_device(first);
        return if is_row {
            Met::begun("a row of iostat with more than numbers")
        } else {
            Met::Nothing
        };
    }
    let Some(columns) = &before.columns else {
        return if rest.len() >= NUMBERS_MIN && text.contains(['.', ',']) {
            Met::begun("numbers of iostat without the line of columns that begins with Device")
        } else {
            Met::Nothing
        };
    };
    let (found, needed) = (rest.len(), columns.0.len());
    if found != needed {
        return Met::Begun(format!("a row of iostat with {found} of {needed} columns"));
    }
    let numbers: Option<Vec<f64>> = rest.iter().map(|word| decimal(word)).collect();
    let row = numbers.and_then(|numbers| columns.row(first, &numbers));
    match row {
        Some(row) => Met::Whole(What::Device(Box::new(row))),
        None => Met::begun("a row of iostat without rates"),
    }
}

/// Numbers of the processors, and the time of a report.
fn is_of_report(text: &str, is_behind_processors: bool) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |it: &&str| decimal(it).is_some();
    let is_of = |it: &str, sign: &[u8]| {
        let signs = it.bytes().filter(|it| sign.contains(it)).count();
        signs == 2 && it.bytes().all(|it| it.is_ascii_digit() || sign.contains(&it))
    };
    let is_iso = words.len() == 1
        && text.contains('T')
        && words[0].matches(':').count() >= 2
        && words[0].starts_with(|it: char| it.is_ascii_digit());
    let is_time = is_iso || words.len() >= 2 && is_of(words[0], b"/-.") && is_of(words[1], b":");
    (is_behind_processors && words.iter().all(is_number)) || is_time
}

fn header(columns: &[&str], before: &mut Before) -> Met {
    if !columns.contains(&"r/s") {
        return Met::Nothing;
    }
    if columns.last() != Some(&"%util") {
        return Met::begun("columns of iostat that do not end in %util");
    }
    before.columns = Some(Columns(columns.iter().map(|name| (*name).to_owned()).collect()));
    Met::Whole(What::Columns)
}

/// Names of devices have a letter, and nothing that ends a sentence.
fn is_device(word: &str) -> bool {
    word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b'/'))
}

impl Columns {
    fn of(&self, numbers: &[f64], names: &[&str]) -> Option<f64> {
        let at = self.0.iter().position(|column| names.contains(&column.as_str()))?;
        numbers.get(at).copied()
    }

    fn row(&self, device: &str, numbers: &[f64]) -> Option<DeviceRow> {
        let of = |names: &[&str]| self.of(numbers, names);
        Some(DeviceRow {
            device: device.to_owned(),
            reads: self.requests(numbers, 'r')?,
            writes: self.requests(numbers, 'w')?,
            in_flight: of(&["aqu-sz", "avgqu-sz"]),
            busy_percent: of(&["%util"])?,
        })
    }

    fn requests(&self, numbers: &[f64], letter: char) -> Option<Requests> {
        let of = |name: &str| self.of(numbers, &[&format!("{letter}{name}")]);
        let per_second = of("/s")?;
        let kib = of("kB/s").map(|it| it * 1024.0);
        let mib = of("MB/s").map(|it| it * 1024.0 * 1024.0);
        let sectors = of("sec/s").map(|it| it * SECTOR_BYTES);
        let bytes_per_second = kib.or(mib).or(sectors)?;
        let merged = of("rqm/s").unwrap_or(0.0);
        let all = per_second + merged;
        let counted = if all > 0.0 { 100.0 * merged / all } else { 0.0 };
        let told = self.of(numbers, &[&format!("%{letter}rqm")]);
        Some(Requests { per_second, bytes_per_second, merged_percent: told.unwrap_or(counted) })
    }
}
