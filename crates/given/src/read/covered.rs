//! Statistics of programs that store only what is new: `rsync --stats`, `borg create --stats`.

use super::number::{decimal, grouped, leading, unit};
use super::{Before, Met};
use crate::piece::{CoveredLine, What};

pub(super) fn line(text: &str, _: &mut Before) -> Met {
    let line = text.trim();
    let readers: [fn(&str) -> Met; 5] = [files, bytes, changed, duration, archive];
    let read = readers.iter().map(|reader| reader(line)).find(|met| *met != Met::Nothing);
    read.unwrap_or(Met::Nothing)
}

fn whole(line: CoveredLine) -> Met {
    Met::Whole(What::Covered(line))
}

/// `Number of files: 1,234 (reg: 1,000, dir: 234)` of rsync, `Number of files: 127` of borg.
fn files(line: &str) -> Met {
    let Some(value) = line.strip_prefix("Number of files: ") else { return Met::Nothing };
    let (all, kinds) = value.split_once(" (").unwrap_or((value, ""));
    // A list of kinds that is cut may have lost digits.
    let regular = kinds.strip_prefix("reg: ").and_then(|it| it.split_once([' ', ')']));
    let number = regular.map_or(all, |(number, _)| number.trim_end_matches(','));
    match grouped(number.trim()) {
        Some(count) => whole(CoveredLine::Files(count)),
        None => Met::begun("a number of files that is not whole"),
    }
}

/// `Total file size: 5,000,000,000 bytes`; with `-h` the number is rounded.
fn bytes(line: &str) -> Met {
    size(line, "Total file size: ", CoveredLine::Bytes)
}

fn changed(line: &str) -> Met {
    size(line, "Total transferred file size: ", CoveredLine::ChangedBytes)
}

fn size(line: &str, name: &str, of: fn(f64) -> CoveredLine) -> Met {
    let Some(value) = line.strip_prefix(name) else { return Met::Nothing };
    match value.strip_suffix(" bytes").and_then(|it| grouped(it.trim())) {
        Some(bytes) => whole(of(bytes as f64)),
        None => Met::begun("statistics of rsync with rounded numbers (-h)"),
    }
}

/// `Duration: 1 hours 2 minutes 3.45 seconds`
fn duration(line: &str) -> Met {
    let Some(value) = line.strip_prefix("Duration: ") else { return Met::Nothing };
    let words: Vec<&str> = value.split_whitespace().collect();
    let mut total = 0.0;
    for pair in words.chunks(2) {
        let [number, name] = pair else { return Met::Nothing };
        let factor = match *name {
            "days" => 86_400.0,
            "hours" => 3600.0,
            "minutes" => 60.0,
            "seconds" => 1.0,
            // Other programs, or a line that is cut.
            _ => return Met::Nothing,
        };
        let Some(number) = decimal(number) else { return Met::Nothing };
        total += number * factor;
    }
    match words.last() {
        Some(&"seconds") => whole(CoveredLine::Seconds(total)),
        _ => Met::Nothing,
    }
}

/// `This archive:    4.17 MB    4.15 MB    254.05 kB`: original, compressed, deduplicated.
fn archive(line: &str) -> Met {
    let Some(value) = line.strip_prefix("This archive: ") else { return Met::Nothing };
    let words: Vec<&str> = value.split_whitespace().collect();
    let [original, first, compressed, second, new, last] = words[..] else {
        return Met::begun("the sizes of an archive of borg, of which some are missing");
    };
    let of = |number: &str, name: &str| {
        let (number, rest) = leading(number)?;
        let (decimal, binary) = unit(name)?;
        let factor = if name.contains('i') { binary } else { decimal };
        (rest.is_empty() && name.ends_with('B')).then_some(number * factor)
    };
    let both = of(compressed, second).zip(of(new, last));
    match of(original, first).zip(both) {
        Some((bytes, (compressed_bytes, new_bytes))) => {
            whole(CoveredLine::Archive { bytes, compressed_bytes, new_bytes })
        }
        None => Met::begun("the sizes of an archive of borg in units that are not known"),
    }
}
