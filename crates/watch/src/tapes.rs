//! Tape drives: the kernel's counters of each, in the same columns as disks where the meaning is
//! the same.
//!
//! The kernel counts calls at the driver (`/sys/class/scsi_tape/stN/stats`), not requests of the
//! block layer: each write of a program is one block on tape, nothing is merged, and the time is
//! that of the whole call. Tape drives have their own rules.

mod explain;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base::finding::Finding;
use machine::counters::tape::Statistics;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, DirectionColumns};
use crate::stuck::Stuck;

/// Maximum number of drives.
pub const TAPES_MAX: usize = 512;

/// The counters of a drive at one moment, named like the kernel's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeCounters {
    /// Writes that have ended.
    pub write_cnt: u64,
    pub write_byte_cnt: u64,
    /// Time in them, in nanoseconds.
    pub write_ns: u64,
    /// Reads that have ended.
    pub read_cnt: u64,
    pub read_byte_cnt: u64,
    /// Time in them, in nanoseconds.
    pub read_ns: u64,
    /// Other commands that have ended: winding, filemarks, loading.
    pub other_cnt: u64,
    /// Time in commands of any kind, in nanoseconds.
    pub io_ns: u64,
    /// Transfers that were shorter than requested.
    pub resid_cnt: u64,
    /// Commands that have not ended.
    #[serde(default)]
    pub in_flight: u64,
}

impl TapeCounters {
    /// Reads the sysfs folder of a drive; `None` if it is gone.
    fn of(folder: &Path) -> Option<TapeCounters> {
        let counted = Statistics::of(folder)?;
        let in_flight = fs::read_to_string(folder.join("stats/in_flight")).ok();
        Some(TapeCounters {
            write_cnt: counted.writes,
            write_byte_cnt: counted.write_bytes,
            write_ns: counted.write_ns,
            read_cnt: counted.reads,
            read_byte_cnt: counted.read_bytes,
            read_ns: counted.read_ns,
            other_cnt: counted.others,
            io_ns: counted.io_ns,
            resid_cnt: counted.residuals,
            in_flight: in_flight.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        })
    }

    /// The counts since `earlier`; `None` if the counters restarted.
    fn since(&self, earlier: &TapeCounters) -> Option<TapeCounters> {
        Some(TapeCounters {
            write_cnt: self.write_cnt.checked_sub(earlier.write_cnt)?,
            write_byte_cnt: self.write_byte_cnt.checked_sub(earlier.write_byte_cnt)?,
            write_ns: self.write_ns.checked_sub(earlier.write_ns)?,
            read_cnt: self.read_cnt.checked_sub(earlier.read_cnt)?,
            read_byte_cnt: self.read_byte_cnt.checked_sub(earlier.read_byte_cnt)?,
            read_ns: self.read_ns.checked_sub(earlier.read_ns)?,
            other_cnt: self.other_cnt.checked_sub(earlier.other_cnt)?,
            io_ns: self.io_ns.checked_sub(earlier.io_ns)?,
            resid_cnt: self.resid_cnt.checked_sub(earlier.resid_cnt)?,
            in_flight: self.in_flight,
        })
    }
}

/// The drives in the sysfs below `sys`, by their names: `st0`.
pub fn below(sys: &Path) -> BTreeMap<String, TapeCounters> {
    let entries = fs::read_dir(sys.join("class/scsi_tape")).into_iter().flatten().flatten();
    let drive = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| is_drive(name))?;
        Some((name, TapeCounters::of(&entry.path())?))
    };
    entries.filter_map(drive).take(TAPES_MAX).collect()
}

/// Whether this is the name of a drive, not of another node of it (`nst0`, `st0a`).
pub fn is_drive(name: &str) -> bool {
    let number = name.strip_prefix("st").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The columns of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeDirection {
    /// Calls that ended: one block each, or several in fixed block mode.
    pub per_second: f64,
    /// Of 1024 bytes.
    pub kib_per_second: f64,
    /// Mean time of one in milliseconds.
    pub await_ms: f64,
    /// Mean size of one in KiB.
    pub request_kib: f64,
}

/// A drive over an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeInterval {
    /// Its name, `st0`.
    pub device: String,
    /// Whether the interval has no numbers, because the drive appeared or its counters restarted.
    pub is_new: bool,
    pub read: TapeDirection,
    pub write: TapeDirection,
    /// Other commands that ended in a second.
    pub others_per_second: f64,
    /// Transfers that were shorter than requested, in the whole interval: blocks shorter than the
    /// buffer, filemarks.
    pub residuals: u64,
    /// The share of the time in commands of any kind, in per cent.
    pub busy_percent: f64,
    /// Commands that have not ended, at the end of the interval.
    pub in_flight: u64,
    /// The time in which no command ended although one is in progress, up to the end of this
    /// interval.
    #[serde(skip)]
    pub stuck: Stuck,
    pub findings: Vec<Finding>,
}

impl TapeInterval {
    /// From two readings, this many seconds apart; `stuck` is from the previous interval.
    pub fn between(
        name: &str,
        earlier: Option<&TapeCounters>,
        now: &TapeCounters,
        seconds: f64,
        stuck: Stuck,
    ) -> TapeInterval {
        let mut interval = TapeInterval::counted(name, earlier, now, seconds);
        let has_ended = interval.is_new || interval.calls_per_second() > 0.0;
        let is_under_way = now.in_flight > 0 && earlier.is_some_and(|it| it.in_flight > 0);
        if is_under_way && !has_ended {
            let (intervals, seconds) = (stuck.intervals + 1, stuck.seconds + seconds);
            interval.stuck = Stuck { intervals, seconds };
        }
        interval.findings = explain::findings(&interval, seconds);
        interval
    }

    fn counted(
        name: &str,
        earlier: Option<&TapeCounters>,
        now: &TapeCounters,
        seconds: f64,
    ) -> TapeInterval {
        let device = name.to_owned();
        let in_flight = now.in_flight;
        let counted = earlier.and_then(|earlier| now.since(earlier)).filter(|_| seconds > 0.0);
        let Some(counted) = counted else {
            return TapeInterval { device, is_new: true, in_flight, ..TapeInterval::default() };
        };
        let direction = |count: u64, bytes: u64, ns: u64| TapeDirection {
            per_second: count as f64 / seconds,
            kib_per_second: bytes as f64 / 1024.0 / seconds,
            await_ms: if count > 0 { ns as f64 / 1e6 / count as f64 } else { 0.0 },
            request_kib: if count > 0 { bytes as f64 / 1024.0 / count as f64 } else { 0.0 },
        };
        TapeInterval {
            device,
            is_new: false,
            read: direction(counted.read_cnt, counted.read_byte_cnt, counted.read_ns),
            write: direction(counted.write_cnt, counted.write_byte_cnt, counted.write_ns),
            others_per_second: counted.other_cnt as f64 / seconds,
            residuals: counted.resid_cnt,
            busy_percent: counted.io_ns as f64 / 1e7 / seconds,
            in_flight,
            ..TapeInterval::default()
        }
    }

    /// The columns of a disk. A drive has one command at a time, so the mean number in flight is
    /// the share of the time with a command.
    pub fn columns(&self) -> Columns {
        let direction = |it: &TapeDirection| DirectionColumns {
            requests_per_second: it.per_second,
            kib_per_second: it.kib_per_second,
            await_ms: it.await_ms,
            request_kib: it.request_kib,
            ..DirectionColumns::default()
        };
        Columns {
            read: direction(&self.read),
            write: direction(&self.write),
            queue_length: self.busy_percent / 100.0,
            busy_percent: self.busy_percent,
            ..Columns::default()
        }
    }

    /// Whether there was any activity.
    pub fn is_busy(&self) -> bool {
        self.is_new || self.calls_per_second() > 0.0 || self.in_flight > 0
    }

    /// Commands of all kinds that ended, per second.
    fn calls_per_second(&self) -> f64 {
        self.read.per_second + self.write.per_second + self.others_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs with a drive, its other nodes, and a drive without counters.
    fn recorded(writes: u64) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        for name in ["st0", "st0a", "nst0", "st1"] {
            fs::create_dir_all(sys.path().join("class/scsi_tape").join(name)).unwrap();
        }
        let stats = sys.path().join("class/scsi_tape/st0/stats");
        fs::create_dir(&stats).unwrap();
        for (name, value) in [
            ("write_cnt", writes),
            ("write_byte_cnt", writes * 262_144),
            ("write_ns", writes * 2_000_000),
            ("read_cnt", 7),
            ("read_byte_cnt", 0),
            ("read_ns", 0),
            ("other_cnt", 3),
            ("io_ns", writes * 2_000_000),
            ("resid_cnt", 1),
            ("in_flight", 1),
        ] {
            fs::write(stats.join(name), format!("{value}\n")).unwrap();
        }
        sys
    }

    #[test]
    fn a_drive_is_one_whatever_ways_lead_to_it() {
        let before = below(recorded(100).path());
        let after = below(recorded(1100).path());
        assert_eq!(before.keys().collect::<Vec<_>>(), ["st0"]);
        let it =
            TapeInterval::between("st0", before.get("st0"), &after["st0"], 4.0, Stuck::default());
        let expected = TapeDirection {
            per_second: 250.0,
            kib_per_second: 64_000.0,
            await_ms: 2.0,
            request_kib: 256.0,
        };
        assert_eq!((it.write, it.read), (expected, TapeDirection::default()));
        assert_eq!((it.busy_percent, it.residuals, it.in_flight), (50.0, 0, 1));
        assert!(it.is_busy() && !it.is_new);
        // The drive came back and counts from 0 again, or is new.
        for earlier in [None, after.get("st0")] {
            let it = TapeInterval::between("st0", earlier, &before["st0"], 4.0, Stuck::default());
            assert!(it.is_new && it.write == TapeDirection::default());
        }
        assert!(below(Path::new("/nowhere")).is_empty());
    }
}
