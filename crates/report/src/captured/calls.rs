//! Figures of file operations: over time by the purpose of files, and file by file.

use crate::captures::class_name;
use crate::figure::spans::{Lane, Span, Spans};
use crate::figure::{Axis, Figure, FigureGroup, GROUPS_MAX, Marks, Value};
use base::format::{binary_size, count};
use capture::profile::FileProfile;
use capture::profile::timeline::{ClassTimeline, Interval, Timeline};
use capture::words::{distinct_name, is_place, is_used_much, short_name};

use super::Together;
use crate::history::page::stretch;

/// Minimum length of a point in seconds, if the capture is long enough.
const POINT_SECONDS: f64 = 0.1;
/// Minimum number of points before points get longer.
const POINTS_LEAST: f64 = 40.0;
/// Maximum number of sizes to draw, the most frequent ones.
const SIZES_MAX: usize = 8;

/// A part of the time of a capture.
struct Point {
    /// Its middle on the axis.
    at: f64,
    /// Its length in s.
    seconds: f64,
    /// The operations in it.
    done: Interval,
}

/// The points of a class: short intervals are combined.
fn points(together: &Together<'_>, class: &ClassTimeline) -> Vec<Point> {
    let profile = &together.captured.profile;
    let joined = joined(&profile.timeline, profile.seconds);
    let point = |(number, intervals): (usize, &[Interval])| {
        let first = number * joined;
        let length = |at: usize| profile.timeline.length_seconds(at, profile.seconds);
        let seconds: f64 = (first..first + intervals.len()).map(length).sum();
        let began = profile.timeline.began_seconds(first);
        let at = together.calls_frame.at(began + seconds / 2.0);
        Point { at, seconds, done: sum(intervals) }
    };
    let all = class.intervals.chunks(joined).enumerate().map(point);
    all.filter(|it| it.seconds > 0.0).collect()
}

/// Number of intervals in a point.
pub(super) fn joined(timeline: &Timeline, seconds: f64) -> usize {
    let wanted = POINT_SECONDS.min(seconds / POINTS_LEAST);
    let mut joined = 1;
    while joined < 256 && timeline.interval_seconds * (joined as f64) < wanted {
        joined *= 2;
    }
    joined
}

fn sum(intervals: &[Interval]) -> Interval {
    let mut sum = Interval::default();
    let (mut weighted, mut operations) = (0.0, 0.0);
    for it in intervals {
        sum.reads += it.reads;
        sum.writes += it.writes;
        sum.read_bytes = sum.read_bytes.saturating_add(it.read_bytes);
        sum.written_bytes = sum.written_bytes.saturating_add(it.written_bytes);
        sum.syncs += it.syncs;
        if let Some(depth) = it.depth {
            let count = (it.reads + it.writes) as f64;
            weighted += depth * count;
            operations += count;
        }
        sum.depth_most = sum.depth_most.max(it.depth_most);
    }
    sum.depth = (operations > 0.0).then(|| weighted / operations);
    sum
}

/// The value of a class that a line shows.
type Shown = fn(&Point) -> f64;

const BYTES: [(&str, Shown); 2] = [
    ("read", |it| it.done.read_bytes as f64 / it.seconds / 1e6),
    ("written", |it| it.done.written_bytes as f64 / it.seconds / 1e6),
];
const OPERATIONS: [(&str, Shown); 2] = [
    ("reads", |it| it.done.reads as f64 / it.seconds),
    ("writes", |it| it.done.writes as f64 / it.seconds),
];
const SYNCS: [(&str, Shown); 1] = [("syncs", |it| it.done.syncs as f64 / it.seconds)];
const DEPTH: [(&str, Shown); 1] = [("in flight", |it| it.done.depth.unwrap_or(f64::NAN))];

/// Rates, syncs and depth over time: an even number of figures, so that later figures line up below
/// those of their kind.
pub(super) fn over_time(together: &Together<'_>) -> Vec<Figure> {
    let lines = |shown: &[(&str, Shown)]| lines(together, shown);
    let mut figures = vec![
        figure(together, "bytes", "MB/s", 0.0, lines(&BYTES)),
        figure(together, "reads and writes", "in a second", 0.0, lines(&OPERATIONS)),
        figure(together, "in flight", "mean of those that began", 1.0, lines(&DEPTH)),
        figure(together, "syncs", "in a second", 1.0, lines(&SYNCS)),
    ];
    for figure in &mut figures {
        stretch(figure, together.calls_frame.seconds);
    }
    figures
}

fn figure(
    together: &Together<'_>,
    what: &str,
    unit: &str,
    y_least: f64,
    mut groups: Vec<FigureGroup>,
) -> Figure {
    let of = match groups.as_slice() {
        [] => ": none".to_owned(),
        [one] => format!(", {}", one.name),
        _ => String::new(),
    };
    if groups.is_empty() {
        // An empty figure still has the axis of the others.
        groups.push(line(String::new(), &[], |_| f64::NAN));
    }
    Figure {
        title: format!("calls: {what}{of}"),
        x_name: "time (UTC)".to_owned(),
        y_name: unit.to_owned(),
        axis: Axis::Time(together.calls_frame.began_unix_seconds),
        y_least,
        places: Vec::new(),
        groups,
    }
}

/// A line for each class and kind with data, the largest ones.
fn lines(together: &Together<'_>, shown: &[(&str, Shown)]) -> Vec<FigureGroup> {
    let mut groups: Vec<(f64, FigureGroup)> = Vec::new();
    for class in &together.captured.profile.timeline.classes {
        let points = points(together, class);
        for (what, of) in shown {
            let sum: f64 =
                points.iter().map(|it| of(it) * it.seconds).filter(|it| it.is_finite()).sum();
            if sum > 0.0 {
                let class = class_name(class.class);
                let name = if shown.len() > 1 { format!("{class}, {what}") } else { class.into() };
                groups.push((sum, line(name, &points, of)));
            }
        }
    }
    // Lines of a kind stay together; the smallest ones are dropped.
    let mut sums: Vec<f64> = groups.iter().map(|it| it.0).collect();
    sums.sort_by(|a, b| b.total_cmp(a));
    let least = sums.get(GROUPS_MAX - 1).copied().unwrap_or(0.0);
    let kept = groups.into_iter().filter(|(sum, _)| *sum >= least).take(GROUPS_MAX);
    kept.map(|(_, group)| group).collect()
}

fn line(name: String, points: &[Point], of: impl Fn(&Point) -> f64) -> FigureGroup {
    let value = |it: &Point| Value { x: it.at, y: of(it), range: None, label: String::new() };
    let values = points.iter().map(value).collect();
    FigureGroup { name, values, curve: Vec::new(), marks: Marks::None }
}

/// When files of each class were used.
pub(super) fn used(together: &Together<'_>) -> Spans {
    let lane = |class: &ClassTimeline| {
        let points = points(together, class);
        let is_used = |it: &Point| it.done.reads + it.done.writes + it.done.syncs > 0;
        let mut spans = Vec::new();
        for part in points.chunk_by(|a, b| is_used(a) == is_used(b)) {
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            if !is_used(first) {
                continue;
            }
            let done: Vec<Interval> = part.iter().map(|it| it.done).collect();
            let (from, until) = (first.at - first.seconds / 2.0, last.at + last.seconds / 2.0);
            let label = format!("{}: {}", class_name(class.class), words(&sum(&done)));
            spans.push(Span { from, until, label });
        }
        Lane { name: class_name(class.class).to_owned(), is_warning: false, spans }
    };
    Spans {
        title: "calls: files in use over time".to_owned(),
        x_name: "time (UTC)".to_owned(),
        began: together.calls_frame.began_unix_seconds,
        seconds: together.calls_frame.seconds,
        lanes: together.captured.profile.timeline.classes.iter().map(lane).collect(),
    }
}

fn words(done: &Interval) -> String {
    let all = [(done.reads, "reads"), (done.writes, "writes"), (done.syncs, "syncs")];
    let some = all.iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| format!("{} {what}", count(*number))).collect::<Vec<_>>().join(", ")
}

/// Files with something to draw, those with the most operations first. Files of which only a few
/// blocks were read are included only if there are no others, as in the sentences.
fn files<'a>(together: &Together<'a>, is_wanted: fn(&FileProfile) -> bool) -> Vec<&'a FileProfile> {
    let all = || together.captured.profile.files.iter().filter(|it| is_place(it) && is_wanted(it));
    let mut files: Vec<&FileProfile> = all().filter(|it| is_used_much(it)).collect();
    if files.is_empty() {
        files = all().collect();
    }
    files.sort_by_key(|it| std::cmp::Reverse(it.calls));
    files.truncate(GROUPS_MAX);
    files
}

/// Sizes, order, and syncs, file by file.
pub(super) fn by_file(together: &Together<'_>) -> Vec<Figure> {
    let mut figures = vec![sizes(together), order(together)];
    let synced = files(together, |it| it.sync.calls > 0);
    if !synced.is_empty() {
        let between = |it: &FileProfile| it.sync.operations_between;
        figures.push(figure_of_files(
            "writes between two syncs",
            "median",
            &synced,
            &[("writes between two syncs", &between)],
        ));
        let time = |it: &FileProfile| it.sync.seconds.map(|seconds| seconds * 1e3);
        figures.push(figure_of_files(
            "time of a sync",
            "ms, median",
            &synced,
            &[("time of a sync", &time)],
        ));
    }
    figures.retain(|figure| figure.groups.iter().any(|it| !it.values.is_empty()));
    figures
}

/// The share of each request size in the reads and writes of a file.
fn sizes(together: &Together<'_>) -> Figure {
    let files = files(together, |it| it.reads + it.writes > 0);
    let of = |file: &FileProfile, bytes: u64| -> u64 {
        let all = file.block_sizes.read.iter().chain(&file.block_sizes.write);
        all.filter(|(size, _)| *size == bytes).map(|(_, number)| number).sum()
    };
    let each = files.iter().flat_map(|it| it.block_sizes.read.iter().chain(&it.block_sizes.write));
    let mut sizes: Vec<u64> = each.map(|(bytes, _)| *bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
        .sort_by_key(|bytes| std::cmp::Reverse(files.iter().map(|it| of(it, *bytes)).sum::<u64>()));
    sizes.truncate(SIZES_MAX);
    sizes.sort_unstable();
    let group = |file: &&FileProfile| {
        let all = (file.reads + file.writes).max(1) as f64;
        let value = |(place, bytes): (usize, &u64)| {
            let share = of(file, *bytes) as f64 / all * 100.0;
            let name = distinct_name(file, files.iter().copied());
            let label = format!("{name}: {share:.1} % in {}", binary_size(*bytes));
            Value { x: place as f64, y: share, range: None, label }
        };
        let values = sizes.iter().enumerate().map(value).filter(|it| it.y > 0.0).collect();
        FigureGroup {
            name: distinct_name(file, files.iter().copied()),
            values,
            curve: Vec::new(),
            marks: Marks::Each,
        }
    };
    Figure {
        title: "sizes of reads and writes".to_owned(),
        x_name: "size of one request".to_owned(),
        y_name: "% of a file's reads and writes".to_owned(),
        axis: Axis::Words(sizes.iter().map(|bytes| binary_size(*bytes)).collect()),
        y_least: 100.0,
        places: Vec::new(),
        groups: files.iter().map(group).filter(|it| !it.values.is_empty()).collect(),
    }
}

/// Shares of sequential, rewritten and reused places.
fn order(together: &Together<'_>) -> Figure {
    let files = files(together, |it| it.sequential_share.is_some() || it.reuse_share.is_some());
    let percent = |share: Option<f64>| share.map(|it| it * 100.0);
    let figure = figure_of_files(
        "order",
        "% of a file's reads and writes",
        &files,
        &[
            ("in order", &|it| percent(it.sequential_share)),
            ("within the last write, of writes", &|it| percent(it.rewrite_share)),
            ("where it was before", &|it| percent(it.reuse_share)),
        ],
    );
    Figure { y_least: 100.0, ..figure }
}

/// A value of a file, by its name.
type OfFile<'a> = (&'a str, &'a dyn Fn(&FileProfile) -> Option<f64>);

fn figure_of_files(
    title: &str,
    unit: &str,
    files: &[&FileProfile],
    shown: &[OfFile<'_>],
) -> Figure {
    let group = |(name, of): &OfFile<'_>| {
        let value = |(place, file): (usize, &&FileProfile)| {
            let y = of(file)?;
            let label = format!("{}: {name} {y:.1}", distinct_name(file, files.iter().copied()));
            Some(Value { x: place as f64, y, range: None, label })
        };
        let values = files.iter().enumerate().filter_map(value).collect();
        FigureGroup { name: (*name).to_owned(), values, curve: Vec::new(), marks: Marks::Each }
    };
    Figure {
        title: title.to_owned(),
        x_name: "file".to_owned(),
        y_name: unit.to_owned(),
        axis: Axis::Words(files.iter().map(|it| last_part(it)).collect()),
        y_least: 1.0,
        places: Vec::new(),
        groups: shown.iter().map(group).filter(|it| !it.values.is_empty()).collect(),
    }
}

/// The name without its folder; for a long name its end, which says more than its beginning.
fn last_part(file: &FileProfile) -> String {
    const LETTERS: usize = 11;
    let name = short_name(file);
    let name = name.rsplit('/').next().unwrap_or(&name);
    let letters = name.chars().count();
    if letters <= LETTERS {
        return name.to_owned();
    }
    let rest: String = name.chars().skip(letters - (LETTERS - 2)).collect();
    format!("..{rest}")
}

#[cfg(test)]
mod tests;
