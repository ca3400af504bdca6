//! Samples of `/proc` as text.

use base::escape::escape_controls;
use base::format::{binary_size, count, counted, duration, size};
use capture::sampled::{Position, Sampled, SampledFile, Totals, findings};

use crate::captures::{class_name, shortened};
use crate::findings::list;
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};

#[cfg(test)]
mod tests;

/// The most files in the table.
const FILES: usize = 30;
/// What is said on standard error before `/proc` is sampled.
pub const INSTEAD: &str = "takeup: cannot record system calls; sampling /proc instead\n";

/// The reason for sampling, the two tables, and the findings.
pub fn text(sampled: &Sampled, why: &str, style: Style) -> String {
    let mut text = format!("No calls were recorded: {}.\n", escape_controls(why));
    let apart = sampled.seconds / sampled.looks.saturating_sub(1).max(1) as f64;
    text += &format!(
        "Takeup sampled /proc instead: {}, {} in {}, one every {}.\n",
        counted(sampled.processes, "process", "processes"),
        counted(sampled.looks, "sample", "samples"),
        duration(sampled.seconds),
        duration(apart),
    );
    text += &format!("\n{}", totals_table(&sampled.totals, style));
    let places: Vec<&SampledFile> = sampled.files.iter().filter(|it| it.is_place()).collect();
    let shown = &places[..places.len().min(FILES)];
    if !shown.is_empty() {
        text += &format!("\n{}", files_table(shown, style));
    }
    if places.len() > FILES {
        let more = counted((places.len() - FILES) as u64, "more file", "more files");
        text += &format!("{more}, in --json\n");
    }
    let others = sampled.files.len() - places.len();
    if others > 0 {
        let what = counted(others as u64, "other descriptor", "other descriptors");
        let rest = "pipes, sockets, terminals and the like (--json lists them)";
        text += &format!("{what}: {rest}\n");
    }
    fitted(&text, style) + &format!("\n{}", list(&findings(sampled, why), style))
}

fn totals_table(totals: &Totals, style: Style) -> String {
    let columns = [
        ("", Align::Left),
        ("calls", Align::Right),
        ("bytes", Align::Right),
        ("a call", Align::Right),
        ("devices", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for (name, calls, bytes, devices) in [
        ("read", totals.read_calls, totals.read_bytes, totals.device_read_bytes),
        ("written", totals.write_calls, totals.written_bytes, totals.device_written_bytes),
    ] {
        let each = bytes.checked_div(calls).map_or("-".to_owned(), binary_size_of_mean);
        let cells = vec![name.to_owned(), count(calls), size(bytes), each, size(devices)];
        table.row(cells, Emphasis::None);
    }
    table.render(style)
}

fn binary_size_of_mean(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) { binary_size(bytes) } else { size(bytes) }
}

fn files_table(files: &[&SampledFile], style: Style) -> String {
    let columns = [
        ("file", Align::Left),
        ("class", Align::Left),
        ("opened for", Align::Left),
        ("moved", Align::Right),
        ("forward", Align::Right),
        ("back", Align::Right),
        ("grown", Align::Right),
        ("direct", Align::Right),
        ("synchronous", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let or_unknown = |it: Option<&str>| it.unwrap_or("?").to_owned();
    let is = |it: Option<bool>| or_unknown(it.map(|it| if it { "yes" } else { "no" }));
    for file in files {
        let Position { forward_bytes, forward, backward } = file.position.unwrap_or_default();
        let cells = vec![
            shortened(Some(&file.path)),
            or_unknown(file.class.map(class_name)),
            or_unknown(file.opened_for()),
            size(forward_bytes),
            count(forward),
            count(backward),
            file.grown_bytes.map_or("?".to_owned(), size),
            is(file.direct),
            is(file.synchronous),
        ];
        table.row(cells, Emphasis::None);
    }
    table.render(style)
}
