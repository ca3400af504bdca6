//! What is said of a virtual drive or disk: that it was mounted, and what it did since.

use base::escape::{escape, escape_path};
use base::format::{count, counted, duration, percent, rate, size};
use model::tape::media::MediumAccess;
use service::sim::SimStatusAnswer;
use service::sim::disk::MountedDisk;
use service::sim::tape::{BLOCK_BYTES_MAX, MountedTape};

use sim::mount::DeviceStatus;
use sim::mount::disk::{DiskStatus, DiskTime};
use sim::mount::drive::{DriveStatus, DriveTime};

use crate::calibration;
use crate::prose::fitted;
use crate::table::Style;

/// The lines on a drive that is ready.
pub fn tape(mounted: &MountedTape) -> String {
    let from = mounted.from.as_ref().map(|from| calibration::drive(from, Style::PLAIN));
    greeting(mounted) + &from.unwrap_or_default() + &room_warning(mounted)
}

/// The lines on a disk that is ready.
pub fn disk(mounted: &MountedDisk) -> String {
    let over = match mounted.loop_path() {
        Some(path) => format!(" and {}", escape_path(path)),
        None => String::new(),
    };
    let (name, disk) = (&mounted.preset, escape_path(&mounted.disk));
    let from = mounted.from.as_ref().map(|from| calibration::disk(from, Style::PLAIN));
    format!("takeup: {name} disk at {disk}{over} until it is unmounted\n")
        + &from.unwrap_or_default()
}

fn greeting(mounted: &MountedTape) -> String {
    let (folder, name) = (mounted.mountpoint.display(), mounted.generation.name);
    let other = mounted.medium.filter(|medium| medium.name != name).map(|medium| medium.name);
    let mut text = format!("takeup: {name} drive at {folder}/nst0 until it is unmounted\n");
    if let Some(medium) = other {
        let what = match mounted.access {
            MediumAccess::ReadAndWrite => "reads and writes it at the speeds of its generation",
            MediumAccess::ReadOnly => "only reads it",
        };
        text.push_str(&format!("takeup: the medium is {medium}; the drive {what}\n"));
    }
    let block_bytes_max = mounted.block_bytes_max();
    if block_bytes_max < BLOCK_BYTES_MAX {
        text.push_str(&format!(
            "takeup: blocks above {block_bytes_max} bytes would be split\n\
             hint: run sysctl fs.fuse.max_pages_limit=2049, or run takeup as root, which does so\n"
        ));
    }
    text
}

/// Warns if the medium could outgrow the disk of its file: real capacities exceed most disks.
fn room_warning(mounted: &MountedTape) -> String {
    let wanted_bytes = mounted.growth_bytes;
    match mounted.room_bytes {
        Some(room) if room < wanted_bytes => format!(
            "takeup: the medium can grow by {}, but its disk has room for {}: further writes would \
             fail with an I/O error\nhint: make the medium smaller with --capacity\n",
            size(wanted_bytes),
            size(room)
        ),
        _ => String::new(),
    }
}

/// The state of a virtual device: what it is and does, then lines of names and values.
pub fn status(answer: &SimStatusAnswer, style: Style) -> String {
    let (head, rows) = match &answer.status {
        DeviceStatus::Drive(drive) => drive_status(drive),
        DeviceStatus::Disk(disk) => disk_status(disk),
    };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = head + "\n";
    for (name, value) in rows {
        text.push_str(&format!("{name:width$}  {}\n", escape(value.as_bytes())));
    }
    fitted(&text, style)
}

type Row = (&'static str, String);

fn drive_status(drive: &DriveStatus) -> (String, Vec<Row>) {
    let does = match (&drive.time, drive.loaded) {
        (_, false) => "no cartridge in it".to_owned(),
        (None, true) => "takes no time".to_owned(),
        (Some(time), true) => motion(time),
    };
    let mut rows = Vec::new();
    rows.extend(drive.trouble.clone().map(|trouble| ("trouble", trouble)));
    rows.extend(drive.medium.clone().map(|medium| ("cartridge", medium)));
    if drive.loaded {
        rows.push(("position", position(drive)));
        let protected = if drive.write_protected { "write-protected" } else { "can be written" };
        rows.push(("medium", protected.to_owned()));
    }
    rows.push((
        "blocks",
        match drive.block_bytes {
            0 => "of any size (variable mode)".to_owned(),
            bytes => format!("of {} (fixed mode)", counted(bytes.into(), "byte", "bytes")),
        },
    ));
    let compression = match (&drive.time, drive.compression) {
        (_, false) => "off".to_owned(),
        (None, true) => "on".to_owned(),
        (Some(time), true) => format!("on, {:.2} to 1 so far", time.compression_ratio),
    };
    rows.push(("compression", compression));
    rows.extend(drive.time.iter().flat_map(drive_time));
    (format!("{} drive, {does}", escape(drive.drive.as_bytes())), rows)
}

fn motion(time: &DriveTime) -> String {
    let name = time.motion.name();
    match (time.speed_bytes_per_second, time.step) {
        (Some(speed), Some(step)) => {
            let speed = rate(speed as f64);
            format!("{name}: step {step} of {}, {speed} on the medium", time.steps)
        }
        _ => name.to_owned(),
    }
}

/// `object 12: file 1, block 3`.
fn position(drive: &DriveStatus) -> String {
    let mut text = format!("object {}", count(drive.position));
    let place = match (drive.file_number, drive.block_number) {
        (Some(file), Some(block)) => format!(": file {file}, block {block}"),
        (Some(file), None) => format!(": file {file}"),
        (None, _) => String::new(),
    };
    text.push_str(&place);
    text
}

fn drive_time(time: &DriveTime) -> Vec<Row> {
    let [low, high] = [time.lowest_bytes_per_second, time.highest_bytes_per_second]
        .map(|speed| rate(speed as f64));
    let sped = match time.speed_up.as_f64() {
        Some(times) if times != 1.0 => format!("; its time passes {times} times as fast"),
        _ => String::new(),
    };
    let host = rate(time.host_bytes_per_second as f64);
    vec![
        ("streams at", format!("{low} to {high}{sped}")),
        ("buffer", format!("{} of {}", size(time.buffered_bytes), size(time.buffer_bytes))),
        (
            "passed",
            format!(
                "{}, {} on the medium; {host} in the last ten seconds",
                size(time.host_bytes),
                size(time.native_bytes)
            ),
        ),
        ("back-hitches", number_and_time(time.back_hitches, time.back_hitch_seconds)),
        ("streaming", duration(time.streaming_seconds)),
        ("waiting for data", duration(time.still_seconds)),
        ("winding", number_and_time(time.winds, time.wind_seconds)),
        ("filemarks", number_and_time(time.synchronisations, time.synchronise_seconds)),
        (
            "host waited",
            format!(
                "{}, {} of it while no tape moved",
                duration(time.host_blocked_seconds),
                duration(time.lost_seconds)
            ),
        ),
    ]
}

fn number_and_time(number: u64, seconds: f64) -> String {
    match number {
        0 => "none".to_owned(),
        _ => format!("{}, {}", count(number), duration(seconds)),
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

fn disk_status(disk: &DiskStatus) -> (String, Vec<Row>) {
    let busy = disk.time.as_ref().and_then(|time| time.busy_share);
    let does = match (&disk.time, busy) {
        (None, _) => "takes no time".to_owned(),
        (Some(_), None) => "not used yet".to_owned(),
        (Some(_), Some(share)) => format!("busy {} of the time", percent(share)),
    };
    let mut rows = Vec::new();
    rows.extend(disk.trouble.clone().map(|trouble| ("trouble", trouble)));
    let access = if disk.read_only { ", read-only" } else { "" };
    rows.push(("bytes in", format!("{} ({}{access})", disk.backing, size(disk.bytes))));
    rows.push(("reads", format!("{}, {}", count(disk.reads), size(disk.read_bytes))));
    rows.push(("writes", format!("{}, {}", count(disk.writes), size(disk.written_bytes))));
    rows.push(("flushes", count(disk.flushes)));
    rows.push(("discards", count(disk.discards)));
    rows.extend(disk.mean_request_bytes.map(|mean| ("mean request", size(mean as u64))));
    let most = disk.depth_max;
    let mean = disk.time.as_ref().and_then(|time| time.mean_depth);
    let mean = mean.map(|mean| format!(", {mean:.1} on average")).unwrap_or_default();
    rows.push(("in flight", format!("{} now, {most} at most{mean}", disk.in_flight)));
    rows.extend(disk.time.iter().flat_map(disk_time));
    (format!("{} disk, {does}", escape(disk.disk.as_bytes())), rows)
}

fn disk_time(time: &DiskTime) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(time.mean_response_seconds.map(|mean| ("mean response", milliseconds(mean))));
    rows.extend(time.mean_service_seconds.map(|mean| ("mean service", milliseconds(mean))));
    rows.push(("seeks", count(time.seeks)));
    if time.late_requests > 0 {
        let late = duration(time.late_seconds);
        rows.push(("late", format!("{}, {late} in all", count(time.late_requests))));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use testkit::samples::{DISK_STATUS, DRIVE_STATUS};

    fn told(document: &Value) -> String {
        status(&serde_json::from_value(document.clone()).unwrap(), Style::PLAIN)
    }

    #[test]
    fn a_drive_says_what_it_does_and_did() {
        let mut drive: Value = serde_json::from_str(DRIVE_STATUS).unwrap();
        insta::assert_snapshot!("a_streaming_drive", told(&drive));
        drive["loaded"] = false.into();
        drive.as_object_mut().unwrap().remove("time");
        let text = told(&drive);
        assert!(text.starts_with("LTO-7 drive, no cartridge in it\n"), "{text}");
        assert!(!text.contains("position"), "{text}");
    }

    #[test]
    fn a_disk_says_what_it_does_and_did() {
        let mut disk: Value = serde_json::from_str(DISK_STATUS).unwrap();
        insta::assert_snapshot!("a_busy_disk", told(&disk));
        disk["trouble"] = "no space left".into();
        disk.as_object_mut().unwrap().remove("time");
        let text = told(&disk);
        assert!(text.starts_with("sas15k disk, takes no time\ntrouble"), "{text}");
    }
}
