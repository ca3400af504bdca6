//! What reports say by themselves: `sar -d`, job reports, last lines of programs, `lsblk`.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::{Conclusions, span};
use crate::piece::{DiskReport, Interval, JobReport, Layer, Moved, Mover, Piece, What};
use crate::rules;

/// Below this share of the time nothing is said of a device, in per cent.
const IDLE_PERCENT: f64 = 5.0;
/// Most findings of a kind: a machine may have hundreds of devices.
const SAID_MAX: usize = 20;
/// A shorter time has no rate that means anything.
const SECONDS_MIN: f64 = 1.0;

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    disks(pieces, found);
    jobs(pieces, found);
    for piece in pieces.iter().filter(|it| matches!(it.what, What::Moved(_))).take(SAID_MAX) {
        let What::Moved(it) = piece.what else { continue };
        found.add(piece.lines, moved(it));
    }
    layers(pieces, found);
}

/// The busiest interval of each device. Another table begins at a command, or behind other text.
fn disks(pieces: &[Piece], found: &mut Conclusions) {
    let mut best: Vec<(u32, &DiskReport, (u32, u32))> = Vec::new();
    let mut table = 0;
    for piece in pieces {
        let is_command = matches!(piece.what, What::Command(_));
        table += u32::from(piece.after_text || is_command);
        let What::DiskReport(report) = &piece.what else { continue };
        let has_room = best.len() < 10 * SAID_MAX;
        let is_same = |it: &&mut (u32, &DiskReport, (u32, u32))| {
            it.0 == table && it.1.device == report.device
        };
        match best.iter_mut().find(is_same) {
            Some(known) if is_busier(report, known.1) => *known = (table, report, piece.lines),
            Some(_) => {}
            None if has_room => best.push((table, report, piece.lines)),
            None => {}
        }
    }
    let is_busy = |it: &&(u32, &DiskReport, (u32, u32))| it.1.busy_percent >= IDLE_PERCENT;
    for (_, report, lines) in best.iter().filter(is_busy).take(SAID_MAX) {
        found.add(*lines, busiest(report));
    }
}

/// An average says less than an interval.
fn is_busier(one: &DiskReport, other: &DiskReport) -> bool {
    let order = |it: &DiskReport| (it.interval == Interval::One, it.busy_percent);
    order(one) > order(other)
}

fn busiest(report: &DiskReport) -> Finding {
    let rate = report.read_bytes_per_second + report.written_bytes_per_second;
    let of = match report.interval {
        Interval::One => "in its busiest interval",
        Interval::Average => "in the mean of all intervals",
    };
    let what = format!(
        "{} was busy for {:.0} % of the time {of}: {}",
        report.device,
        report.busy_percent,
        format::rate(rate)
    );
    let why = format!(
        "{} requests each second of {:.1} KiB in the mean, {:.1} of them in flight",
        format::count(report.requests_per_second as u64),
        report.request_bytes / 1024.0,
        report.in_flight
    );
    let mut finding = Finding::new(&rules::DISK_REPORT, Certainty::Measured, what)
        .because(why)
        .with_number("busy", report.busy_percent / 100.0, Unit::Share)
        .with_number("rate", rate, Unit::BytesPerSecond)
        .with_number("in flight", report.in_flight, Unit::Count);
    finding.caveat = Some(
        "sar counts reads and writes together, and its rows are means of their intervals: \
         `iostat -x 10 3` says more"
            .to_owned(),
    );
    finding
}

/// One job of Bacula or Bareos.
#[derive(Clone, Copy, Default)]
struct Report {
    elapsed: Option<f64>,
    client_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    saved: Option<f64>,
    lines: (u32, u32),
}

fn jobs(pieces: &[Piece], found: &mut Conclusions) {
    let mut reports: Vec<Report> = Vec::new();
    for piece in pieces {
        let What::JobReport(line) = piece.what else { continue };
        // The elapsed time is the first line of a report.
        let begins = matches!(line, JobReport::Elapsed(_));
        if begins && reports.len() < SAID_MAX {
            reports.push(Report { lines: piece.lines, ..Report::default() });
        } else if begins {
            break;
        }
        let Some(report) = reports.last_mut() else { continue };
        match line {
            JobReport::Elapsed(seconds) => report.elapsed = Some(seconds),
            // Another report has lost its beginning.
            JobReport::ClientBytes(_) if report.client_bytes.is_some() => report.elapsed = None,
            JobReport::ClientBytes(bytes) => report.client_bytes = Some(bytes),
            JobReport::StoredBytes(bytes) => report.stored_bytes = Some(bytes),
            JobReport::Compressed(share) => report.saved = Some(share),
            JobReport::Rate(_) | JobReport::Uncompressed => {}
        }
        report.lines = span([report.lines, piece.lines]);
    }
    for report in reports {
        job(&report, found);
    }
}

fn job(report: &Report, found: &mut Conclusions) {
    let Some(seconds) = report.elapsed.filter(|it| *it >= SECONDS_MIN) else { return };
    let Some(bytes) = report.client_bytes.filter(|bytes| *bytes > 0) else { return };
    let rate = bytes as f64 / seconds;
    let what = format!("the job moved {}", format::rate(rate));
    let mut why = format!("{} in {}", format::size(bytes), format::duration(seconds));
    if let Some(stored) = report.stored_bytes {
        why += &format!(", of which the storage daemon wrote {}", format::size(stored));
    }
    let mut finding = Finding::new(&rules::MOVED, Certainty::Told, what).because(why).with_number(
        "rate",
        rate,
        Unit::BytesPerSecond,
    );
    finding.caveat = Some(
        "waiting for a volume and writing a spool to tape count as time of the job".to_owned(),
    );
    found.add(report.lines, finding);
    let Some(share) = report.saved else { return };
    let what = format!("the client compresses: {:.0} % smaller", share * 100.0);
    let finding = Finding::new(&rules::CLIENT_COMPRESSES, Certainty::Told, what)
        .because("each job does so in one thread of the file daemon")
        .with_number("share saved", share, Unit::Share);
    found.add(report.lines, finding);
    let command = "on the client, during the job: top -b -H -n 3".to_owned();
    found.lacks("whether compression by the client is the limit", command);
}

fn moved(moved: Moved) -> Finding {
    let name = moved.mover.name();
    let size = format::size(moved.bytes as u64);
    let seconds = moved.seconds.filter(|it| *it >= SECONDS_MIN);
    let rate = seconds.map(|seconds| moved.bytes / seconds).or(moved.bytes_per_second);
    let in_time = seconds.map(|it| format!(" in {}", format::duration(it))).unwrap_or_default();
    let mut finding = match (moved.mover, rate) {
        (Mover::Restic, _) => {
            let what = format!("restic went through {size}{in_time}");
            let mut finding = Finding::new(&rules::MOVED, Certainty::Told, what);
            finding.caveat = Some(
                "unchanged files count, and are not read: this is no rate of reading".to_owned(),
            );
            return finding;
        }
        (_, Some(rate)) => {
            let what = format!("{name} moved {size}{in_time}: {}", format::rate(rate));
            Finding::new(&rules::MOVED, Certainty::Told, what).with_number(
                "rate",
                rate,
                Unit::BytesPerSecond,
            )
        }
        (_, None) => {
            Finding::new(&rules::MOVED, Certainty::Told, format!("{name} moved {size}{in_time}"))
        }
    };
    finding.caveat = match moved.mover {
        Mover::Tar => Some("the rate was printed with two digits".to_owned()),
        Mover::Rsync => Some("what did not change was not sent".to_owned()),
        Mover::Pv | Mover::Restic => None,
    };
    finding
}

/// What lies below mount points that do not lie on a disk or a partition itself.
fn layers(pieces: &[Piece], found: &mut Conclusions) {
    let mut stack: Vec<(&Layer, (u32, u32))> = Vec::new();
    let mut said = 0;
    for piece in pieces {
        let What::Layer(layer) = &piece.what else {
            stack.clear();
            continue;
        };
        stack.truncate(layer.depth as usize);
        // A row between is missing.
        if stack.len() != layer.depth as usize {
            stack.clear();
            continue;
        }
        stack.push((layer, piece.lines));
        let is_plain = |it: &&(&Layer, (u32, u32))| matches!(it.0.kind.as_str(), "disk" | "part");
        let is_deep = !stack.iter().all(|it| is_plain(&it));
        if layer.mounted_at.is_empty() || !is_deep || stack.len() < 2 || said == SAID_MAX {
            continue;
        }
        said += 1;
        let names: Vec<String> =
            stack.iter().rev().map(|(it, _)| format!("{} ({})", it.name, it.kind)).collect();
        let what = format!("{} lies on {}", layer.mounted_at, names.join(" on "));
        let finding = Finding::new(&rules::LAYERS, Certainty::Told, what);
        found.add(span(stack.iter().map(|it| it.1)), finding);
    }
}
