//! What reports say by themselves: `sar -d`, and last lines of programs.

use base::finding::{Certainty, Finding, Unit};
use base::format;

use super::Conclusions;
use super::targets::{asks_for_tapes, is_tar_to_null};
use crate::piece::{Command, DiskReport, Interval, Moved, Mover, Piece, What};
use crate::rules;

/// Below this share of the time nothing is said of a device, in per cent.
const IDLE_PERCENT: f64 = 5.0;
/// Most findings of a kind: a machine may have hundreds of devices.
const SAID_MAX: usize = 20;
/// A shorter time has no rate that means anything.
const SECONDS_MIN: f64 = 1.0;

pub(super) fn conclude(pieces: &[Piece], found: &mut Conclusions) {
    disks(pieces, found);
    last_lines(pieces, found);
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

/// What programs said that they moved, each with the command before it.
fn last_lines(pieces: &[Piece], found: &mut Conclusions) {
    let (mut open, mut said): (Option<(&Command, u32)>, usize) = (None, 0);
    for piece in pieces {
        match &piece.what {
            What::Command(command) => open = Some((command, piece.quoted)),
            What::Moved(it) if said < SAID_MAX => {
                said += 1;
                let command = open.filter(|(_, quoted)| *quoted == piece.quoted);
                found.add(piece.lines, moved(it, command.map(|(command, _)| command)));
            }
            _ => {}
        }
    }
}

/// GNU tar knows the null device, and does not read the files for it.
fn of_nothing(size: &str) -> Finding {
    let what = format!("tar read none of the {size} that it counted: its target is /dev/null");
    Finding::new(&rules::MOVED, Certainty::Inferred, what)
        .because("GNU tar does not read files for the null device, so its rate says nothing")
        .with_action("tar cf - FILES | cat > /dev/null reads them")
}

fn moved(moved: &Moved, command: Option<&Command>) -> Finding {
    let name = match moved.label.as_str() {
        "" => moved.mover.name().to_owned(),
        label => format!("{} of `{label}`", moved.mover.name()),
    };
    let size = format::size(moved.bytes as u64);
    if moved.mover == Mover::Tar && command.is_some_and(is_tar_to_null) {
        return of_nothing(&size);
    }
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
        Mover::Tar if command.is_some_and(asks_for_tapes) => {
            Some("the wait for the next tape counts, too".to_owned())
        }
        Mover::Tar => Some("the rate was printed with two digits".to_owned()),
        Mover::Rsync => Some("what did not change was not sent".to_owned()),
        Mover::Pv | Mover::Restic => None,
    };
    finding
}
