//! Where the bytes of sets are, as a table, for people.

use base::calendar::{date_text, time_text};
use base::escape::{escape, escape_path};
use base::format::{counted, size};
use catalogue::{SeriesUsage, Usage};
use service::catalog::{CatalogDu, all_bytes};

/// Sets that are listed, the newest.
const SETS_MAX: usize = 10;

/// Where the bytes are: for each series what is largest, then how it changed.
pub fn du(found: &CatalogDu) -> String {
    let series = found.series.iter().map(|series| of_series(series, found.most));
    series.collect::<Vec<String>>().join("\n")
}

fn of_series(series: &SeriesUsage, most: usize) -> String {
    let day = |set: Option<&catalogue::KnownSet>| {
        set.map(|set| date_text(set.time_seconds)).unwrap_or_default()
    };
    let place = series.sets.last().and_then(|set| set.place.parent());
    let mut text = format!(
        "{}: {} from {} to {}, in {}\n",
        escape(&series.path),
        counted(series.sets.len() as u64, "set", "sets"),
        day(series.sets.first()),
        day(series.sets.last()),
        place.map(escape_path).unwrap_or_default(),
    );
    text.push_str(&row(["newest set", "change", "all versions"], ""));
    for usage in series.below.iter().take(most) {
        let slash = if usage.is_folder { "/" } else { "" };
        text.push_str(&of_usage(usage, &format!("{}{slash}", escape(&usage.path))));
    }
    let others = &series.below[most.min(series.below.len())..];
    if !others.is_empty() {
        let name = counted(others.len() as u64, "other", "others");
        text.push_str(&of_usage(&sum(others), &format!("{name}: --most lists more")));
    }
    text.push_str(&of_usage(&sum(&series.below), "all"));
    text.push_str(&changes(series));
    text
}

fn row(cells: [&str; 3], name: &str) -> String {
    let [newest, change, versions] = cells;
    format!("{newest:>11} {change:>11} {versions:>13}  {name}").trim_end().to_owned() + "\n"
}

fn of_usage(usage: &Usage, name: &str) -> String {
    let newest = size(usage.bytes.last().copied().unwrap_or(0));
    row([&newest, &last_change(&usage.bytes), &size(usage.versions_bytes)], name)
}

/// How much more the newest set has than the one before it.
fn last_change(bytes: &[u64]) -> String {
    match bytes {
        [.., before, newest] => change(*before, *newest),
        _ => "-".to_owned(),
    }
}

fn change(before: u64, after: u64) -> String {
    if after >= before {
        return format!("+{}", size(after - before));
    }
    format!("-{}", size(before - after))
}

fn sum(all: &[Usage]) -> Usage {
    let sets = all.first().map_or(0, |usage| usage.bytes.len());
    let of = |at: usize| all.iter().map(|usage| usage.bytes[at]).sum();
    Usage {
        path: Vec::new(),
        is_folder: true,
        bytes: (0..sets).map(of).collect(),
        versions_bytes: all.iter().map(|usage| usage.versions_bytes).sum(),
    }
}

/// The newest sets, with what changed most in each.
fn changes(series: &SeriesUsage) -> String {
    let bytes = all_bytes(series);
    let from = bytes.len().saturating_sub(SETS_MAX).max(1);
    let mut text = String::new();
    for at in from..bytes.len() {
        let by = |usage: &Usage| usage.bytes[at].abs_diff(usage.bytes[at - 1]);
        let most = series.below.iter().max_by_key(|usage| by(usage)).filter(|usage| by(usage) > 0);
        let most = most.map_or_else(String::new, |usage| {
            let changed = change(usage.bytes[at - 1], usage.bytes[at]);
            format!(", most of it in {} ({changed})", escape(&usage.path))
        });
        let (time, set) = (time_text(series.sets[at].time_seconds), series.sets[at].number);
        let changed = change(bytes[at - 1], bytes[at]);
        text.push_str(&format!("set {set} of {time}: {changed}{most}\n"));
    }
    text
}
