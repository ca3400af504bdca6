//! A plan in words, as a document, and as charts.

use base::format::{count, counted, duration, percent, rate, size};
use experiment::record::binary_size;
use model::plan::alternatives::{Alternative, Choices, Effort, best};
use model::plan::{Compression, Limit, Plan, PlanError, Setup, plan};
use model::tape::generation::Generation;
use model::tape::parameters::{Known, Origin, ParameterRow, TapeParameters};
use report::figure::{Axis, AxisPlace, Figure, FigureGroup, Marks, Value as Point};
use report::table::{Align, Colour, Emphasis, Table};
use serde_json::{Value, json};

use super::DiskReads;
use super::measure::Measured;
use super::window::Window;
use crate::calibration::FromRuns;
use crate::calibration::disk::DiskFromRuns;

/// What follows the plan in the text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// Nothing.
    None,
    /// The table of the parameters of the drive model.
    Parameters,
}

/// A plan with everything for its presentation.
pub struct Presentation<'a> {
    /// The generation, with the maker if given.
    pub drive: &'static Generation,
    /// The generation of its media, if it differs.
    pub medium: Option<&'static Generation>,
    /// Other drives to compare it with.
    pub others: &'a [&'static Generation],
    /// The setup as requested.
    pub setup: &'a Setup,
    /// The requested plan and the alternatives; at least one.
    pub list: &'a [Alternative],
    /// The experiment that the drive model comes from.
    pub from: Option<&'a FromRuns>,
    /// The experiment that the disk of the source comes from.
    pub source_from: Option<&'a DiskFromRuns>,
    /// How the disk of the source is assumed to be read, if the rate comes from a disk.
    pub reads: Option<DiskReads>,
    /// The measurement of PATH.
    pub measured: Option<&'a Measured>,
    /// The choices for the alternatives.
    pub choices: &'a Choices<'a>,
    /// The number of cores, if they limit the rate of the source.
    pub bounded_by_cores: Option<usize>,
    /// Whether the ratio of compression is a guess.
    pub is_ratio_assumed: bool,
    /// The available time, if given.
    pub window: Option<Window>,
}

/// Number of rates at which the charts are computed.
const CHART_POINTS: u64 = 60;
/// Bytes of content that the stops in the chart refer to.
const TERABYTE: f64 = 1e12;
/// Two times within this factor are not compared.
const WORTH_COMPARING: f64 = 1.02;

impl Presentation<'_> {
    fn asked(&self) -> &Plan {
        &self.list[0].plan
    }

    /// For standard output.
    pub fn text(&self, details: Details, colour: Colour) -> String {
        let mut text = String::new();
        let mut line = |words: String| text.push_str(&(words + "\n"));
        line(self.what());
        self.measured.iter().for_each(|measured| line(found(measured)));
        line(self.result());
        line(self.limit());
        if self.setup.is_slow() {
            line(self.stops());
        }
        let window = self.window.iter();
        window.flat_map(|window| window.lines(self.setup, self.list)).for_each(&mut line);
        text.push('\n');
        text.push_str(&self.table().render(colour));
        text.push('\n');
        self.advice().iter().for_each(|words| text.push_str(&format!("{words}\n")));
        text.push_str(&self.doubts());
        text.push_str(&self.told_makers());
        if let Some(from) = self.from {
            text.push('\n');
            text.push_str(&from.text(colour));
        }
        if let Some(from) = self.source_from {
            text.push('\n');
            text.push_str(&from.text(colour));
        }
        if details == Details::Parameters {
            text.push('\n');
            text.push_str(&self.parameters().render(colour));
        }
        text
    }

    /// One JSON document.
    pub fn document(&self) -> Value {
        let setup = self.setup;
        let parameters: Vec<Value> = setup
            .drive
            .rows()
            .iter()
            .map(|row| {
                let value = match &row.values[..] {
                    [one] => json!(one),
                    all => json!(all),
                };
                json!({ "name": row.name, "value": value, "origin": row.origin.name() })
            })
            .collect();
        json!({
            "command": "plan",
            "drive": self.drive.name,
            "medium": self.medium.unwrap_or(self.drive).name,
            "maker": self.drive.maker.map(|maker| maker.to_string()),
            "makers": self.makers().iter().map(maker_document).collect::<Vec<_>>(),
            "drives": setup.drives,
            "from": self.from.map(FromRuns::document),
            "source": {
                "size_bytes": setup.source.size_bytes,
                "files": setup.source.files,
                "bytes_per_second": setup.source.bytes_per_second,
                "file_ns": setup.source.file_ns,
                "bounded_by_cores": self.bounded_by_cores,
                "read_block_bytes": self.reads.map(|reads| reads.read_bytes),
                "read_ahead_bytes": self.reads.map(|reads| reads.read_ahead_bytes),
                "from": self.source_from.map(DiskFromRuns::document),
            },
            "measured": self.measured.map(|measured| json!({
                "read_bytes": measured.read_bytes,
                "seconds": measured.seconds,
                "drive_ratio": measured.drive_ratio,
                "software_ratio": measured.software.map(|(ratio, _)| ratio),
                "software_bytes_per_second": measured.software.map(|(_, rate)| rate),
                "problems": measured.problems,
            })),
            "compression": self.compression_document(),
            "ring_bytes": setup.ring_bytes,
            "start_fill_percent": setup.start_fill_percent,
            "block_bytes": setup.block_bytes,
            "plan": plan_document(self.asked()),
            "window": self.window.map(|window| window.document(self.setup, self.list)),
            "alternatives": self.list[1..].iter().map(alternative_document).collect::<Vec<_>>(),
            "best": {
                "with_settings": self.best_name(Effort::Setting),
                "with_procedures": self.best_name(Effort::Procedure),
                "of_all": self.best_name(Effort::Hardware),
            },
            "explanation": format!("{}; {}", self.limit(), self.advice().join("; ")),
            "parameters": parameters,
        })
    }

    /// Rate and stops against the rate of the source, with and without the drive's compression.
    pub fn charts(&self) -> Result<[Figure; 2], PlanError> {
        let most = self.chart_rate_most();
        let names = [
            ("drive compression off", Compression::None),
            ("drive compression on", Compression::Drive(self.choices.drive_ratio)),
        ];
        let (mut rates, mut stops) = (Vec::new(), Vec::new());
        for (name, compression) in names {
            let mut rate_points = Vec::new();
            let mut stop_points = Vec::new();
            for point in 1..=CHART_POINTS {
                let mut setup = Setup { compression, ..self.setup.clone() };
                setup.source.bytes_per_second = most / CHART_POINTS * point;
                setup.source.files = 0;
                let plan = plan(&setup)?;
                let writing_s = plan.seconds - plan.change_seconds;
                let x = setup.source.bytes_per_second as f64 / 1e6;
                let size = setup.source.size_bytes as f64;
                rate_points.push(point_at(x, size / writing_s / 1e6));
                stop_points.push(point_at(x, plan.back_hitches as f64 / size * TERABYTE));
            }
            rates.push(line(name, rate_points));
            stops.push(line(name, stop_points));
        }
        let here = self.setup.archive_rate() as f64 / 1e6;
        let places = vec![AxisPlace { name: format!("this source: {here:.0} MB/s"), x: here }];
        let x_name = "rate of the source, MB/s".to_owned();
        let chart = |title: String, y_name: &str, groups| Figure {
            title,
            x_name: x_name.clone(),
            y_name: y_name.to_owned(),
            axis: Axis::Linear,
            y_least: 0.0,
            places: places.clone(),
            groups,
        };
        let ratio = self.choices.drive_ratio.as_f64();
        let title = format!("{}: throughput, data that compress {ratio:.2}:1", self.drive_title());
        let stops_title = format!("{}: back-hitches for each TB", self.drive_title());
        Ok([chart(title, "MB/s", rates), chart(stops_title, "back-hitches", stops)])
    }

    /// The highest rate in the charts: a little above what the drive takes, or above the source.
    fn chart_rate_most(&self) -> u64 {
        let drive = &self.setup.drive;
        let native = drive.highest_bytes_per_second();
        let compressed = self.choices.drive_ratio.host_rate(native);
        let takes = compressed.max(native).min(drive.host_bytes_per_second.value.max(native));
        let shown = takes.max(self.setup.archive_rate()).min(4 * takes);
        (shown / 5).saturating_mul(6).saturating_mul(self.setup.drives).max(CHART_POINTS)
    }

    /// The drive, and its media if they are older.
    fn drive_title(&self) -> String {
        match self.medium {
            Some(medium) => format!("{} with {} media", self.drive.title(), medium.name),
            None => self.drive.title(),
        }
    }

    fn what(&self) -> String {
        let setup = self.setup;
        let files = match setup.source.files {
            0 => String::new(),
            number => format!(" in {}", counted(number, "file", "files")),
        };
        let drives = match setup.drives {
            1 => format!("to {}", self.drive_title()),
            number => format!("to {number} drives of {}", self.drive_title()),
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
        if let Some(cores) = self.bounded_by_cores {
            let cores = counted(cores as u64, "core can read", "cores can read");
            from.push_str(&format!(", limited to what {cores} and hash (--cores),"));
        }
        let bytes = size(setup.source.size_bytes);
        let ring = size(setup.ring_bytes);
        format!("{bytes}{files} at {from} {drives}, {compression}, {ring} of ring memory")
    }

    fn result(&self) -> String {
        let plan = self.asked();
        format!(
            "{} on {}, {}, {:.1} hours of tape in motion",
            duration(plan.seconds),
            counted(plan.volumes, "volume", "volumes"),
            stops(plan.back_hitches),
            plan.motion_hours
        )
    }

    fn limit(&self) -> String {
        let plan = self.asked();
        let at = rate(plan.limit_bytes_per_second);
        match plan.limit {
            Limit::Source if self.setup.source.files == 0 => {
                format!("the source is the limit, at {at}")
            }
            Limit::Source => format!("the source is the limit: with its files it gives {at}"),
            Limit::StagingDisk => format!("the staging disk is the limit, at {at}"),
            Limit::SoftwareCompression => format!("compression in software is the limit, at {at}"),
            Limit::Commands => format!(
                "commands are the limit: blocks of {} reach {at} at most",
                size(self.setup.block_bytes)
            ),
            Limit::Interface => format!("the drive's interface is the limit, at {at}"),
            Limit::Medium => {
                format!("the tape is the limit, at {at} of content at its highest speed")
            }
        }
    }

    fn stops(&self) -> String {
        let plan = self.asked();
        let streaming = percent(plan.streaming_share);
        format!(
            "the drive stops below {} of content; it writes for {streaming} of the time",
            rate(plan.lowest_bytes_per_second)
        )
    }

    fn table(&self) -> Table {
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
        let within = self.window.map(|window| window.title());
        if let Some(title) = &within {
            columns.insert(2, right(title));
        }
        let mut table = Table::new(&columns);
        let named = self.best_name(Effort::Hardware);
        for one in self.list {
            let plan = &one.plan;
            let emphasis =
                if Some(&one.name) == named.as_ref() { Emphasis::Strong } else { Emphasis::None };
            let mut cells = vec![
                one.name.clone(),
                duration(plan.seconds),
                rate(plan.bytes_per_second),
                count(plan.volumes),
                count(foretold(plan.back_hitches)),
                format!("{:.1} h", plan.motion_hours),
                plan.limit.name().to_owned(),
            ];
            if let Some(window) = self.window {
                cells.insert(2, window.cell(plan));
            }
            table.row(cells, emphasis);
        }
        table
    }

    fn best_name(&self, most: Effort) -> Option<String> {
        best(self.list, most).map(|one| one.name.clone())
    }

    /// The best plan with settings alone, and the best ones with more effort.
    fn advice(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut told: Option<&Alternative> = None;
        let efforts = [
            (Effort::Setting, "best with settings alone"),
            (Effort::Procedure, "with more than settings"),
            (Effort::Hardware, "with other drives"),
        ];
        for (effort, words) in efforts {
            let Some(one) = best(self.list, effort) else { continue };
            if told.is_some_and(|told| told.name == one.name) {
                continue;
            }
            let typed = one.options.as_ref();
            let asked = self.asked().seconds;
            let instead = if asked > one.plan.seconds * WORTH_COMPARING {
                format!(" instead of {}", duration(asked))
            } else {
                String::new()
            };
            lines.push(format!(
                "{words}: {}, {}{instead} and {}{}",
                one.name,
                duration(one.plan.seconds),
                stops(one.plan.back_hitches),
                typed.map_or(String::new(), |options| format!("; takeup backup {options}")),
            ));
            told = Some(one);
        }
        lines
    }

    fn doubts(&self) -> String {
        let drive = &self.setup.drive;
        let assumed = |known: Known, words: String| {
            let is_known = matches!(known.origin, Origin::Given | Origin::Fitted);
            (!is_known).then_some(words)
        };
        let stop = duration(drive.back_hitch_ns.value as f64 / 1e9);
        let buffer = size(drive.buffer_bytes.value);
        let told = [
            assumed(drive.back_hitch_ns, format!("a back-hitch is assumed to take {stop}")),
            assumed(drive.buffer_bytes, format!("a buffer is assumed to hold {buffer}")),
        ];
        let told: Vec<String> = told.into_iter().flatten().collect();
        let mut lines = if told.is_empty() {
            String::new()
        } else {
            format!("{}: --parameters, --set\n", told.join(", "))
        };
        if let Some(reads) = self.reads {
            lines.push_str(&format!(
                "its disk is assumed to be read in one stream, {} at a time, with a read-ahead of \
                 {}: --read-block-size, --read-ahead\n",
                binary_size(reads.read_bytes),
                binary_size(reads.read_ahead_bytes),
            ));
        }
        if self.is_ratio_assumed && matches!(self.setup.compression, Compression::Drive(_)) {
            lines.push_str("the ratio of compression is assumed: --ratio, or a PATH to sample\n");
        }
        lines
    }

    /// The same backup with the drive of each maker, if the maker is not given and their speeds
    /// differ.
    fn makers(&self) -> Vec<(&'static Generation, Plan)> {
        let setup = self.setup;
        let is_of_table = matches!(setup.drive.speeds_origin, Origin::Table(_));
        if self.drive.maker.is_some() || self.medium.is_some() || !is_of_table {
            return Vec::new();
        }
        let planned = |row: &'static Generation| {
            let own = TapeParameters::of(row);
            let drive = TapeParameters {
                speeds_bytes_per_second: own.speeds_bytes_per_second,
                speeds_origin: own.speeds_origin,
                ..setup.drive.clone()
            };
            Some((row, plan(&Setup { drive, ..setup.clone() }).ok()?))
        };
        self.drive.by_maker().filter_map(planned).collect()
    }

    fn told_makers(&self) -> String {
        let makers = self.makers();
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
                stops(plan.back_hitches)
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
    fn parameters(&self) -> Table {
        let others: Vec<_> = self.others.iter().map(|other| TapeParameters::of(other)).collect();
        let mut columns = vec![("parameter", Align::Left)];
        let others_titles = self.others.iter().map(|drive| drive.title());
        let titles: Vec<String> =
            std::iter::once(self.drive_title()).chain(others_titles).collect();
        for name in &titles {
            columns.extend([(name.as_str(), Align::Right), ("known", Align::Left)]);
        }
        let mut table = Table::new(&columns);
        let rows: Vec<_> =
            std::iter::once(&self.setup.drive).chain(&others).map(TapeParameters::rows).collect();
        for number in 0..rows[0].len() {
            let mut cells = vec![rows[0][number].name.to_owned()];
            for drive in &rows {
                cells.extend([shown(&drive[number]), drive[number].origin.name().to_owned()]);
            }
            table.row(cells, Emphasis::None);
        }
        table
    }

    fn compression_document(&self) -> Value {
        match self.setup.compression {
            Compression::None => json!({ "by": "none" }),
            Compression::Drive(ratio) => json!({
                "by": "drive",
                "ratio": ratio.as_f64(),
                "is_ratio_assumed": self.is_ratio_assumed,
            }),
            Compression::Software { ratio, bytes_per_second } => json!({
                "by": "software",
                "ratio": ratio.as_f64(),
                "bytes_per_second": bytes_per_second,
            }),
        }
    }
}

/// Two digits: the assumed time of a stop and the assumed buffer allow no more.
fn foretold(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    (number + unit / 2) / unit * unit
}

fn stops(number: u64) -> String {
    counted(foretold(number), "back-hitch", "back-hitches")
}

fn point_at(x: f64, y: f64) -> Point {
    Point { x, y, range: None, label: String::new() }
}

fn line(name: &str, values: Vec<Point>) -> FigureGroup {
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

fn found(measured: &Measured) -> String {
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

fn plan_document(plan: &Plan) -> Value {
    json!({
        "seconds": plan.seconds,
        "change_seconds": plan.change_seconds,
        "volumes": plan.volumes,
        "back_hitches": plan.back_hitches,
        "motion_hours": plan.motion_hours,
        "bytes_per_second": plan.bytes_per_second,
        "native_bytes_per_second": plan.native_bytes_per_second,
        "streaming_share": plan.streaming_share,
        "archive_bytes": plan.archive_bytes,
        "medium_bytes": plan.medium_bytes,
        "limit": plan.limit.name(),
        "limit_bytes_per_second": plan.limit_bytes_per_second,
        "lowest_bytes_per_second": plan.lowest_bytes_per_second,
    })
}

fn maker_document((row, plan): &(&'static Generation, Plan)) -> Value {
    json!({
        "maker": row.maker.map(|maker| maker.to_string()),
        "lowest_bytes_per_second": row.lowest_speed(),
        "highest_bytes_per_second": row.highest_speed(),
        "speeds_certainty": row.speed_certainty.to_string(),
        "seconds": plan.seconds,
        "back_hitches": plan.back_hitches,
    })
}

fn alternative_document(one: &Alternative) -> Value {
    json!({
        "name": one.name,
        "effort": one.effort.name(),
        "options": one.options,
        "plan": plan_document(&one.plan),
    })
}
