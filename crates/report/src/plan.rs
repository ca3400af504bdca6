//! A plan in words and as charts.

mod window;

use base::format::{count, counted, duration, percent, rate, size};
use experiment::record::binary_size;
use model::ModelError;
use model::plan::alternatives::Effort;
use model::plan::{Compression, Plan};
use model::tape::generation::Generation;
use model::tape::parameters::{Known, Origin, ParameterRow, TapeParameters};
use service::plan::{
    CurvePoint, HeadsReads, MeasuredSource, PlanCurve, Planned, back_hitches, rounded,
};

use crate::calibration;
use crate::figure::{self, Axis, AxisPlace, Figure, FigureGroup, Marks, Value as Point};
use crate::next::{diagnose, next};
use crate::prose::fitted;
use crate::table::{Align, Emphasis, Style, Table};

/// The end of the names of ways that fill the memory before each run of the tape.
const FILL_FIRST: &str = ", fill first";

/// What follows the plan in the text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// Nothing.
    None,
    /// The table of the parameters of the drive model.
    Parameters,
}

/// Rate and stops against the rate of the source, with and without the drive's compression, as an
/// SVG document.
///
/// # Errors
/// When a setup cannot be planned.
pub fn chart(planned: &Planned) -> Result<String, ModelError> {
    Ok(figure::document(&charts(planned, &planned.curves()?)))
}

/// A plan and its alternatives.
pub fn text(planned: &Planned, details: Details, style: Style) -> String {
    let mut text = String::new();
    let mut line = |words: String| text.push_str(&(words + "\n"));
    line(result(planned));
    line(limit(planned));
    planned.heads_sentence().into_iter().for_each(&mut line);
    let window = planned.window.iter();
    window
        .flat_map(|window| window::lines(window, &planned.setup, &planned.list))
        .for_each(&mut line);
    for way in planned.advice() {
        line(way.sentence);
        way.command.map(|command| format!("    {command}")).into_iter().for_each(&mut line);
    }
    text.push('\n');
    text.push_str(&(what(planned) + "\n"));
    planned.measured.iter().for_each(|measured| text.push_str(&(found(measured) + "\n")));
    text.push_str(&table(planned).render(style));
    text.push('\n');
    text.push_str(legend(planned));
    text.push_str(&doubts(planned));
    text.push_str(&told_makers(planned));
    if let Some(from) = &planned.from {
        text.push('\n');
        text.push_str(&calibration::drive(from, style));
    }
    if let Some(from) = &planned.source_from {
        text.push('\n');
        text.push_str(&calibration::disk(from, style));
    }
    if details == Details::Parameters {
        text.push('\n');
        text.push_str(&parameters(planned).render(style));
    }
    text.push('\n');
    fitted(&text, style) + &measures(planned)
}

/// What measures where this plan had to be told.
fn measures(planned: &Planned) -> String {
    match &planned.paths[..] {
        [] => next("takeup diagnose SOURCE TARGET", "measures how fast a source is read"),
        [path, ..] => diagnose(path),
    }
}

fn charts(planned: &Planned, curves: &[PlanCurve]) -> [Figure; 2] {
    let here = planned.setup.archive_rate() as f64 / 1e6;
    let places = vec![AxisPlace { name: format!("this source: {here:.0} MB/s"), x: here }];
    let x_name = "rate of the source, MB/s".to_owned();
    let chart = |title: String, y_name: &str, of: fn(&CurvePoint) -> f64| Figure {
        title,
        x_name: x_name.clone(),
        y_name: y_name.to_owned(),
        axis: Axis::Linear,
        y_least: 0.0,
        places: places.clone(),
        groups: curves.iter().map(|curve| line(curve, of)).collect(),
    };
    let ratio = planned.drive_ratio.as_f64();
    let title = format!("{}: throughput, data that compress {ratio:.2}:1", drive_title(planned));
    let stops_title = format!("{}: back-hitches for each TB", drive_title(planned));
    [
        chart(title, "MB/s", |point| point.bytes_per_second / 1e6),
        chart(stops_title, "back-hitches", |point| point.back_hitches),
    ]
}

/// The drive, and its media if they are older.
fn drive_title(planned: &Planned) -> String {
    match planned.medium {
        Some(medium) => format!("{} with {} media", planned.drive.title(), medium.name),
        None => planned.drive.title(),
    }
}

fn what(planned: &Planned) -> String {
    let setup = &planned.setup;
    let files = match setup.source.files {
        0 => String::new(),
        number => format!(" in {}", counted(number, "file", "files")),
    };
    let drives = match setup.drives {
        1 => format!("to {}", drive_title(planned)),
        number => format!("to {number} drives of {}", drive_title(planned)),
    };
    let compression = match setup.compression {
        Compression::None => "no compression".to_owned(),
        Compression::Drive(ratio) => {
            format!("drive compression {:.2}:1", ratio.as_f64())
        }
        Compression::Software { ratio, bytes_per_second } => format!(
            "software compression {:.2}:1 at {}",
            ratio.as_f64(),
            rate(bytes_per_second as f64)
        ),
    };
    let mut from = rate(setup.source.bytes_per_second as f64);
    if let Some(cores) = planned.bounded_by_cores {
        let cores = counted(cores as u64, "core can read", "cores can read");
        from.push_str(&format!(", limited to what {cores} and hash (--cores),"));
    }
    let bytes = size(setup.source.size_bytes);
    let ring = size(setup.ring_bytes);
    format!("plan: {bytes}{files} at {from} {drives}, {compression}, {ring} of ring memory")
}

fn result(planned: &Planned) -> String {
    let plan = planned.asked();
    let stops = match rounded(plan.back_hitches) {
        0 => "no back-hitches".to_owned(),
        1 => "the tape stops once (a back-hitch)".to_owned(),
        number => format!("the tape stops {} times (back-hitches)", count(number)),
    };
    // Time, tapes and stops all hang on it.
    let assumed = match planned.setup.compression {
        Compression::Drive(ratio) if planned.is_ratio_assumed => {
            format!(", if the drive compresses {:.2}:1 (assumed)", ratio.as_f64())
        }
        _ => String::new(),
    };
    format!(
        "{} for {} to {}, on {}; {stops}{assumed}",
        duration(plan.seconds),
        size(planned.setup.source.size_bytes),
        drive_title(planned),
        counted(plan.volumes, "volume", "volumes"),
    )
}

/// The limit, and the rate that the drive needs where the source is too slow for it.
fn limit(planned: &Planned) -> String {
    let limit = planned.limit();
    if !planned.setup.is_slow() {
        return format!("limit: {limit}");
    }
    let plan = planned.asked();
    format!(
        "limit: {limit}; the drive needs {} of content to keep moving, and writes for {} of the \
         time",
        rate(plan.lowest_bytes_per_second),
        percent(plan.streaming_share)
    )
}

/// Explains the names of ways that do not explain themselves.
fn legend(planned: &Planned) -> &'static str {
    if planned.list.iter().any(|one| one.name.ends_with(FILL_FIRST)) {
        "fill first: the drive waits until the memory is full, then empties it \
            at its lowest speed\n"
    } else {
        ""
    }
}

fn table(planned: &Planned) -> Table {
    let right = |name| (name, Align::Right);
    let mut columns = vec![
        ("way", Align::Left),
        right("time"),
        right("content"),
        right("volumes"),
        right("back-hitches"),
        right("in motion"),
        ("limit", Align::Left),
    ];
    let within = planned.window.as_ref().map(window::title);
    if let Some(title) = &within {
        columns.insert(2, right(title));
    }
    let mut table = Table::new(&columns);
    let named = planned.best_name(Effort::Hardware);
    for one in &planned.list {
        let plan = &one.plan;
        let emphasis = if Some(&*one.name) == named { Emphasis::Strong } else { Emphasis::None };
        let mut cells = vec![
            one.name.clone(),
            duration(plan.seconds),
            rate(plan.bytes_per_second),
            count(plan.volumes),
            count(rounded(plan.back_hitches)),
            format!("{:.1} h", plan.motion_hours),
            plan.limit.name().to_owned(),
        ];
        if let Some(window) = planned.window {
            cells.insert(2, window::cell(&window, plan));
        }
        table.row(cells, emphasis);
    }
    table
}

fn doubts(planned: &Planned) -> String {
    let drive = &planned.setup.drive;
    let assumed = |known: Known, words: String| {
        let is_known = matches!(known.origin, Origin::Given | Origin::Fitted);
        (!is_known).then_some(words)
    };
    let stop = duration(drive.back_hitch_ns.value as f64 / 1e9);
    let buffer = size(drive.buffer_bytes.value);
    let told = [
        assumed(drive.back_hitch_ns, format!("a back-hitch takes {stop}")),
        assumed(drive.buffer_bytes, format!("the drive's buffer holds {buffer}")),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let mut lines = if told.is_empty() {
        String::new()
    } else {
        format!("assumed: {} (--parameters shows all, --set changes them)\n", told.join(", "))
    };
    if let Some(heads) = planned.reads.and_then(|reads| reads.heads) {
        lines.push_str(&heads_assumed(&heads));
    } else if let Some(reads) = planned.reads {
        lines.push_str(&format!(
            "assumed: the disk is read in one stream, {} at a time, with a read-ahead of {} \
             (--read-block-size, --read-ahead)\n",
            binary_size(reads.read_bytes),
            binary_size(reads.read_ahead_bytes),
        ));
    }
    if planned.is_ratio_assumed && matches!(planned.setup.compression, Compression::Drive(_)) {
        lines.push_str("assumed: the compression ratio (give --ratio, or a PATH to sample)\n");
    }
    lines
}

/// Where files are assumed to lie, and what of them is read ahead.
fn heads_assumed(heads: &HeadsReads) -> String {
    let window = heads.window_files.map_or(String::new(), |files| {
        format!(
            ", and a backup reads {} of them ahead, with {} of memory",
            count(files),
            size(heads.window_bytes)
        )
    });
    format!(
        "assumed: the files have {} each and lie side by side on {} in the middle of the disk, in \
         another order than that of their names{window} (--source-spread, --source-capacity, \
         --read-window)\n",
        size(heads.file_bytes),
        size(heads.spread_bytes),
    )
}

fn told_makers(planned: &Planned) -> String {
    let makers = planned.makers();
    let (Some((first, _)), Some((last, _))) = (makers.first(), makers.last()) else {
        return String::new();
    };
    let told = |(row, plan): &(&'static Generation, Plan)| {
        let (maker, [low, high]) = (row.title(), [row.lowest_speed(), row.highest_speed()]);
        format!(
            "{maker} streams at {} to {} ({}): {} and {}",
            rate(low as f64),
            rate(high as f64),
            row.speed_certainty,
            duration(plan.seconds),
            back_hitches(plan.back_hitches)
        )
    };
    let lines: Vec<String> = makers.iter().map(told).collect();
    let typed = |row: &Generation| row.name.to_ascii_lowercase().replace('-', "");
    format!(
        "the maker of the drive is not given, so the speeds above are those of IBM: --drive \
         ibm-{}, --drive hp-{}\n  {}\n",
        typed(first),
        typed(last),
        lines.join("\n  ")
    )
}

/// The parameters, with two columns for each drive.
fn parameters(planned: &Planned) -> Table {
    let others: Vec<_> = planned.others.iter().map(|other| TapeParameters::of(other)).collect();
    let mut columns = vec![("parameter", Align::Left)];
    let others_titles = planned.others.iter().map(|drive| drive.title());
    let titles: Vec<String> = std::iter::once(drive_title(planned)).chain(others_titles).collect();
    for name in &titles {
        columns.extend([(name.as_str(), Align::Right), ("known", Align::Left)]);
    }
    let mut table = Table::new(&columns);
    let rows: Vec<_> =
        std::iter::once(&planned.setup.drive).chain(&others).map(TapeParameters::rows).collect();
    for number in 0..rows[0].len() {
        let mut cells = vec![rows[0][number].name.to_owned()];
        for drive in &rows {
            cells.extend([shown(&drive[number]), drive[number].origin.name().to_owned()]);
        }
        table.row(cells, Emphasis::None);
    }
    table
}

fn line(curve: &PlanCurve, of: fn(&CurvePoint) -> f64) -> FigureGroup {
    let name = match curve.compression {
        Compression::None => "drive compression off",
        _ => "drive compression on",
    };
    let point = |point: &CurvePoint| Point {
        x: point.source_bytes_per_second as f64 / 1e6,
        y: of(point),
        range: None,
        label: String::new(),
    };
    let values = curve.points.iter().map(point).collect();
    FigureGroup { name: name.to_owned(), values, curve: Vec::new(), marks: Marks::None }
}

/// The values of a parameter, in the unit of its name.
fn shown(row: &ParameterRow) -> String {
    let values: Vec<String> = row.values.iter().map(|value| count(*value)).collect();
    match values.len() {
        0..=2 => values.join(", "),
        number => format!("{} to {} in {number} steps", values[0], values[number - 1]),
    }
}

fn found(measured: &MeasuredSource) -> String {
    let ratio = match measured.drive_ratio {
        Some(ratio) => format!(", a drive would compress them {ratio:.2}:1"),
        None => String::new(),
    };
    let software = match measured.software {
        Some((ratio, bytes)) => format!(", zstd {ratio:.2}:1 at {}", rate(bytes as f64)),
        None => String::new(),
    };
    format!(
        "read {} in {}: {}{ratio}{software}",
        size(measured.read_bytes),
        duration(measured.seconds),
        rate(measured.bytes_per_second as f64)
    )
}
