//! What rows of `iostat -x` say, with the jobs and settings that were sent beside them.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::jobs::{ALL_OFFERED, Load, loads};
use super::{COMPARED_MAX, Conclusions, is_one_machine, span};
use crate::piece::{DeviceRow, Piece, Requests, Setting, What};
use crate::rules;

/// Rows of a table that move this share of its busiest one count: the load begins and ends.
const BUSIEST: f64 = 0.8;
/// Share of merged requests that is worth a sentence, in per cent.
const MERGED_PERCENT: f64 = 20.0;
/// Below this share nothing was merged.
const UNMERGED_PERCENT: f64 = 1.0;
/// A size is that of the job if it differs by no more than this share.
const SAME: f64 = 0.03;
/// From this share of the time on a device counts as busy, in per cent.
const BUSY_PERCENT: f64 = 90.0;
/// Below this share nothing is said of its requests.
const IDLE_PERCENT: f64 = 5.0;
/// Share of the requests that go in the direction of a job that reads or writes only.
const ONE_WAY: f64 = 0.9;
/// More than it offers are not all of it.
const MORE_THAN_OFFERED: f64 = 1.05;

/// The busy rows of a device in a table.
struct Table {
    device: String,
    machine: String,
    /// Tables of one run of iostat have the same number.
    run: usize,
    mean: DeviceRow,
    /// It may be of all the time since the machine was started.
    is_since_start: bool,
    lines: (u32, u32),
}

impl Table {
    fn caveat(&self) -> Option<String> {
        let text = "one report: it may be of all the time since the machine was started; \
                    `iostat -x 10 3` shows what is so now";
        self.is_since_start.then(|| text.to_owned())
    }
}

/// Returns the lines of the jobs whose requests these are.
pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) -> Vec<(u32, u32)> {
    let mut used = Vec::new();
    let tables = tables(pieces);
    let loads = loads(pieces);
    let settings = settings(pieces);
    for table in &tables {
        if table.mean.busy_percent < IDLE_PERCENT {
            continue;
        }
        let limit = setting(&settings, table, "max_sectors_kb").and_then(kibibytes);
        let is_its = |load: &&Load| {
            is_one_machine(&load.machine, &table.machine) && fits(load, &table.mean, limit)
        };
        let load = loads.iter().rfind(is_its);
        merged(table, found);
        as_made(table, load, found);
        split(table, load, limit, found);
        if !is_part(table, load, &tables) {
            in_flight(table, load, limit, found);
        }
        used.extend(load.map(|load| load.lines));
    }
    merging_off(&settings, &tables, found);
    used
}

/// Whether another device of the run has all that the job offers, and the others share it: they lie
/// below that one, as disks below md0.
fn is_part(table: &Table, load: Option<&Load>, tables: &[Table]) -> bool {
    let Some(offers) = load.and_then(Load::offers).map(|it| it as f64) else { return false };
    let of = |it: &Table| it.mean.in_flight.unwrap_or(0.0);
    let is_all = |it: f64| (ALL_OFFERED..=MORE_THAN_OFFERED).contains(&(it / offers));
    let in_run = || tables.iter().filter(|it| it.run == table.run);
    let parts: f64 = in_run().map(of).filter(|it| !is_all(*it)).sum();
    in_run().any(|it| is_all(of(it))) && !is_all(of(table)) && is_all(parts)
}

/// One table for each device of a run of iostat. A run begins at a command, or behind other text.
fn tables(pieces: &[Piece]) -> Vec<Table> {
    let mut tables: Vec<Rows<'_>> = Vec::new();
    let (mut begins, mut shows_start, mut machine) = (0, true, "");
    for piece in pieces {
        let is_of_table = matches!(piece.what, What::Columns | What::Device(_));
        if piece.after_text || !is_of_table {
            begins = tables.len();
        }
        match &piece.what {
            What::Command(command) => {
                shows_start = !leaves_out_start(&command.line);
                machine = &command.machine;
            }
            What::Device(row) => {
                let has_room = tables.len() < COMPARED_MAX;
                let is_same = |rows: &&mut Rows<'_>| rows.device == row.device;
                match tables.iter_mut().skip(begins).find(is_same) {
                    Some(rows) => rows.all.push((row, piece.lines)),
                    None if has_room => {
                        let device = row.device.as_str();
                        let all = vec![(row.as_ref(), piece.lines)];
                        tables.push(Rows { device, machine, run: begins, shows_start, all });
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
    tables.iter().filter_map(busy).collect()
}

/// Rows of a device in a run of iostat.
struct Rows<'a> {
    device: &'a str,
    machine: &'a str,
    run: usize,
    /// The first report is of the time since the machine was started.
    shows_start: bool,
    all: Vec<(&'a DeviceRow, (u32, u32))>,
}

/// `iostat -xy 30`
fn leaves_out_start(line: &str) -> bool {
    let is_option = |word: &str| word.starts_with('-') && !word.starts_with("--");
    line.split(' ').any(|word| is_option(word) && word.contains('y'))
}

/// The mean of the busy rows. The first report of iostat is of the time since the machine was
/// started, so it counts only if it is the only one.
fn busy(rows: &Rows<'_>) -> Option<Table> {
    let is_since_start = rows.all.len() == 1 && rows.shows_start;
    let skipped = usize::from(rows.shows_start && !is_since_start);
    let (machine, run) = (rows.machine.to_owned(), rows.run);
    let rows = &rows.all[skipped..];
    let most = rows.iter().map(|(row, _)| row.bytes_per_second()).fold(0.0, f64::max);
    let busy: Vec<&DeviceRow> = rows
        .iter()
        .map(|(row, _)| *row)
        .filter(|row| most > 0.0 && row.bytes_per_second() >= most * BUSIEST)
        .collect();
    let count = busy.len() as f64;
    let mean = |of: &dyn Fn(&DeviceRow) -> f64| busy.iter().map(|row| of(row)).sum::<f64>() / count;
    let requests = |of: fn(&DeviceRow) -> &Requests| Requests {
        per_second: mean(&|row| of(row).per_second),
        bytes_per_second: mean(&|row| of(row).bytes_per_second),
        merged_percent: merged_percent(&busy, of),
    };
    let first = busy.first()?;
    let all_told = busy.iter().all(|row| row.in_flight.is_some());
    Some(Table {
        device: first.device.clone(),
        machine,
        run,
        is_since_start,
        mean: DeviceRow {
            device: first.device.clone(),
            reads: requests(|row| &row.reads),
            writes: requests(|row| &row.writes),
            in_flight: all_told.then(|| mean(&|row| row.in_flight.unwrap_or(0.0))),
            busy_percent: mean(&|row| row.busy_percent),
        },
        lines: span(rows.iter().map(|(_, lines)| *lines)),
    })
}

/// The share of all requests that were merged.
fn merged_percent(rows: &[&DeviceRow], of: fn(&DeviceRow) -> &Requests) -> f64 {
    let left: f64 = rows.iter().map(|row| of(row).per_second).sum();
    let made = |it: &Requests| it.per_second / (1.0 - (it.merged_percent / 100.0).min(0.9999));
    let all: f64 = rows.iter().map(|row| made(of(row))).sum();
    if all > 0.0 { 100.0 * (1.0 - left / all) } else { 0.0 }
}

/// Whether these requests can be those of the job.
fn fits(load: &Load, row: &DeviceRow, limit: Option<f64>) -> bool {
    let Some(block) = load.job.block_bytes.map(|bytes| bytes as f64) else { return false };
    let directions = [row.reads, row.writes];
    let sizes: Vec<f64> = directions.iter().filter_map(Requests::mean_bytes).collect();
    let is_own = sizes.iter().all(|size| (size / block - 1.0).abs() <= SAME);
    let is_part = |limit: f64| {
        block > limit && sizes.iter().all(|size| *size >= limit / 2.0 && *size <= limit * 1.02)
    };
    let all = row.requests_per_second();
    let is_its_way = match load.job.pattern.as_deref().map(|it| it.trim_start_matches("rand")) {
        Some("read") => row.reads.per_second >= all * ONE_WAY,
        Some("write") => row.writes.per_second >= all * ONE_WAY,
        _ => true,
    };
    // Random requests that are merged are not those of a random job.
    let is_unmerged = directions.iter().all(|it| it.merged_percent < MERGED_PERCENT);
    is_its_way && !sizes.is_empty() && is_unmerged && (is_own || limit.is_some_and(is_part))
}

/// Settings with their lines, in the order of the text.
type Settings<'a> = [(&'a Setting, (u32, u32))];

fn settings(pieces: &[Piece]) -> Vec<(&Setting, (u32, u32))> {
    let all = pieces.iter().filter_map(|piece| match &piece.what {
        What::Setting(setting) => Some((setting, piece.lines)),
        _ => None,
    });
    all.take(COMPARED_MAX).collect()
}

/// The value of a setting where a table was printed: what was typed or read last before it, else
/// what was read behind it.
fn setting<'a>(settings: &Settings<'a>, table: &Table, name: &str) -> Option<&'a str> {
    let is_its = |it: &Setting| {
        it.device == table.device && it.name == name && is_one_machine(&it.machine, &table.machine)
    };
    let mut all = settings.iter().filter(|(it, _)| is_its(it));
    let before = all.clone().rfind(|(_, lines)| lines.0 < table.lines.0);
    let found = before.or_else(|| all.find(|(it, _)| !it.is_set));
    found.map(|(it, _)| it.value.as_str())
}

fn kibibytes(value: &str) -> Option<f64> {
    value.parse::<u64>().ok().map(|kib| kib as f64 * 1024.0)
}

fn named(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}

fn merged(table: &Table, found: &mut Conclusions) {
    for (name, requests) in [("reads", table.mean.reads), ("writes", table.mean.writes)] {
        let (Some(made), Some(mean)) = (requests.made_bytes(), requests.mean_bytes()) else {
            continue;
        };
        if requests.merged_percent < MERGED_PERCENT {
            continue;
        }
        let percent = requests.merged_percent;
        let what = format!("{percent:.0} % of the {name} of {} are merged", table.device);
        let why = format!("requests of {} become {}", named(made), named(mean));
        let mut finding = Finding::new(&rules::MERGED, Certainty::Measured, what)
            .because(why)
            .with_number("share merged", percent / 100.0, Unit::Share)
            .with_number("size before", made, Unit::Bytes)
            .with_number("size after", mean, Unit::Bytes);
        finding.caveat = table.caveat();
        found.add(table.lines, finding);
    }
}

fn as_made(table: &Table, load: Option<&Load>, found: &mut Conclusions) {
    let Some(block) = load.and_then(|load| load.job.block_bytes) else { return };
    let directions = [table.mean.reads, table.mean.writes];
    let is_own = |it: &Requests| {
        it.mean_bytes().is_none_or(|size| (size / block as f64 - 1.0).abs() <= SAME)
            && it.merged_percent < UNMERGED_PERCENT
    };
    if !directions.iter().all(is_own) {
        return;
    }
    let what = format!("the requests of {} are the program's", table.device);
    let why =
        format!("{} as in its job: nothing merges or splits them", format::binary_size(block));
    let finding = Finding::new(&rules::AS_MADE, Certainty::Inferred, what)
        .because(why)
        .with_number("block size", block as f64, Unit::Bytes);
    found.add(table.lines, finding);
}

fn split(table: &Table, load: Option<&Load>, limit: Option<f64>, found: &mut Conclusions) {
    let block = load.and_then(|load| load.job.block_bytes);
    let sizes = [table.mean.reads, table.mean.writes];
    let largest = sizes.iter().filter_map(Requests::mean_bytes).fold(0.0, f64::max);
    let Some(limit) = limit else {
        // iostat -N prints names that the kernel does not have.
        if largest >= 128.0 * 1024.0 && !table.device.contains("--") {
            let path = format!("cat /sys/block/{}/queue/max_sectors_kb", table.device);
            found.lacks("whether larger requests are split", path);
        }
        return;
    };
    let Some(block) = block.filter(|block| *block as f64 > limit && largest >= limit / 2.0) else {
        return;
    };
    let (whole, part) = (format::binary_size(block), format::binary_size(limit as u64));
    let what = format!("{whole} are split at {part} on {}", table.device);
    let why = format!(
        "max_sectors_kb is {:.0}, and its requests have {} in the mean",
        limit / 1024.0,
        named(largest)
    );
    let finding = Finding::new(&rules::SPLIT, Certainty::Inferred, what)
        .because(why)
        .with_number("block size", block as f64, Unit::Bytes)
        .with_number("limit", limit, Unit::Bytes)
        .with_number("mean size", largest, Unit::Bytes);
    found.add(table.lines, finding);
}

fn in_flight(table: &Table, load: Option<&Load>, limit: Option<f64>, found: &mut Conclusions) {
    let Some(in_flight) = table.mean.in_flight else { return };
    if table.mean.busy_percent < BUSY_PERCENT {
        return;
    }
    let device = &table.device;
    let Some((load, offers)) = load.and_then(|load| Some((load, load.offers()?))) else {
        let what = format!("{device} has {in_flight:.1} requests in flight in the mean");
        let why = "that it is busy all the time says only that there was always one".to_owned();
        let mut finding = Finding::new(&rules::IN_FLIGHT, Certainty::Measured, what)
            .because(why)
            .with_number("in flight", in_flight, Unit::Count);
        finding.caveat = table.caveat();
        found.add(table.lines, finding);
        let command = "the command or the job that reads and writes".to_owned();
        found.lacks("whether the program or the device sets that number", command);
        return;
    };
    let lines = span([table.lines, load.lines]);
    // Parts of a request that was split are in flight together.
    let block = load.job.block_bytes.unwrap_or(0) as f64;
    let parts = limit.map_or(1.0, |limit| (block / limit).ceil().max(1.0));
    let whole = in_flight / parts;
    let seen = if parts > 1.0 {
        format!("{device} has {in_flight:.1} parts of them in the mean, {whole:.1} whole ones")
    } else {
        format!("{device} has {in_flight:.1} of them in the mean")
    };
    let numbers = |finding: Finding| {
        finding.with_number("in flight", whole, Unit::Count).with_number(
            "offered",
            offers as f64,
            Unit::Count,
        )
    };
    if whole >= offers as f64 * ALL_OFFERED && whole <= offers as f64 * MORE_THAN_OFFERED {
        let what = format!("{offers} in flight are all that the job offers");
        let why = format!("{seen}: whether it takes more is not known");
        let finding = Finding::new(&rules::IN_FLIGHT, Certainty::Inferred, what).because(why);
        let action = format!(
            "ask it: the same job with {}; if the rate does not rise, the device is the limit",
            load.twice()
        );
        found.add(lines, numbers(finding).with_action(action));
        let job = format!("the output of the same job with {}", load.twice());
        found.lacks("whether the device takes more requests at once", job);
    } else {
        let what = format!("the job offers {offers} requests at once");
        let why = format!("{seen}: where the others are, or where these are from, is not known");
        let finding = Finding::new(&rules::IN_FLIGHT, Certainty::Inferred, what).because(why);
        found.add(lines, numbers(finding));
        if !device.contains("--") {
            let path = format!("cat /sys/block/{device}/queue/nr_requests");
            found.lacks("how many requests the queue takes", path);
        }
    }
}

/// What single requests cost where merging was switched off.
fn merging_off(settings: &Settings<'_>, tables: &[Table], found: &mut Conclusions) {
    let is_off = |table: &&Table| {
        let all = [table.mean.reads, table.mean.writes];
        setting(settings, table, "nomerges") == Some("2")
            && table.mean.busy_percent >= IDLE_PERCENT
            && all.iter().all(|it| it.merged_percent < UNMERGED_PERCENT)
    };
    let Some(off) = tables.iter().find(is_off) else { return };
    let is_its = |it: &Setting| it.device == off.device && it.name == "nomerges";
    let mut lines = settings.iter().filter(|(it, _)| is_its(it)).map(|(_, lines)| *lines);
    let before = lines.rfind(|it| it.0 < off.lines.0);
    let lines = span(before.into_iter().chain([off.lines]));
    let made = |table: &Table| {
        let all = [table.mean.reads, table.mean.writes];
        let most = all.iter().max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
        most.and_then(Requests::made_bytes)
    };
    let Some(size) = made(off) else { return };
    let like_it = |table: &&Table| {
        let all = [table.mean.reads, table.mean.writes];
        table.device == off.device
            && all.iter().any(|it| it.merged_percent >= MERGED_PERCENT)
            && made(table).is_some_and(|it| (it / size - 1.0).abs() <= 0.1)
    };
    let (per_second, rate) = (off.mean.requests_per_second(), off.mean.bytes_per_second());
    let Some(on) = tables.iter().find(like_it) else {
        let what = format!("merging is switched off on {}", off.device);
        let why = format!(
            "{} requests of {} each second, {}, and none is merged",
            format::count(per_second as u64),
            named(size),
            format::rate(rate)
        );
        let finding = Finding::new(&rules::MERGING_OFF, Certainty::Told, what).because(why);
        let command = format!("echo 0 > /sys/block/{}/queue/nomerges", off.device);
        found.add(lines, finding.with_command(command));
        found.lacks("what that costs", "iostat -x of the same load with nomerges at 0".to_owned());
        return;
    };
    let times = per_second / on.mean.requests_per_second();
    let less = 1.0 - rate / on.mean.bytes_per_second();
    let cost = if less > 0.05 {
        format!("and {:.0} % of the rate", less * 100.0)
    } else {
        "and nothing of the rate".to_owned()
    };
    let what = format!("merges off cost {} {times:.0} times the requests {cost}", off.device);
    let why = format!(
        "{} each second and {} in the place of {} and {}",
        format::count(per_second as u64),
        format::rate(rate),
        format::count(on.mean.requests_per_second() as u64),
        format::rate(on.mean.bytes_per_second())
    );
    let command = format!("echo 0 > /sys/block/{}/queue/nomerges", off.device);
    let mut finding = Finding::new(&rules::MERGING_OFF, Certainty::Measured, what)
        .because(why)
        .with_number("times the requests", times, Unit::Ratio)
        .with_number("share of the rate lost", less, Unit::Share)
        .with_command(command);
    finding.caveat = Some(
        "the busiest intervals of both: the load comes in bursts, and it is taken to be the same"
            .to_owned(),
    );
    found.add(span([lines, on.lines]), finding);
}
