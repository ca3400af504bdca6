//! What a drive counted over a run: the kernel's counters and the drive's own log of a real one,
//! the status file of a virtual one. The log is asked for before the first block and behind the
//! last filemark, when the drive stands.

use std::path::{Path, PathBuf};

use device::tape::scsi::log::SequentialAccess;
use machine::counters::tape::Statistics;
use sim::mount::drive::{DriveStatus, DriveTime};

use experiment::observed::Measures;

/// The status file that a virtual drive has beside its tape files.
#[derive(Clone, Debug)]
pub(crate) struct StatusFile {
    path: PathBuf,
}

impl StatusFile {
    /// The one beside a tape file in user space, if it is one of ours.
    pub(crate) fn beside(tape: &Path) -> Option<StatusFile> {
        let status = StatusFile { path: tape.parent()?.join("status") };
        status.read().map(|_| status)
    }

    /// How many times as fast as ours its clock runs (`sim tape --speed-up`); 1 of a drive that
    /// takes no time.
    pub(crate) fn clock_ratio(&self) -> f64 {
        let told = || self.read()?.time?.speed_up.as_f64();
        told().filter(|times| times.is_finite() && *times > 0.0).unwrap_or(1.0)
    }

    /// What it says now.
    pub(crate) fn read(&self) -> Option<DriveStatus> {
        let text = machine::small_file::regular(&self.path).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// The kernel's, of a real drive.
    pub(crate) kernel: Option<Statistics>,
    /// The drive's own, where it keeps them (log page 0Ch).
    pub(crate) log: Option<SequentialAccess>,
    /// What a virtual drive says of its time.
    pub(crate) time: Option<DriveTime>,
}

impl Counters {
    /// The differences to an earlier moment, over a run of `seconds`. Those of a virtual drive are
    /// in its own time.
    pub(crate) fn since(&self, before: &Counters, seconds: f64) -> Measures {
        let mut measures = Measures::new();
        if let (Some(now), Some(before)) = (self.kernel, before.kernel) {
            put_kernel(&mut measures, now, before, seconds);
        }
        if let (Some(now), Some(before)) = (self.log, before.log) {
            put_log(&mut measures, now, before);
        }
        if let (Some(now), Some(before)) = (&self.time, &before.time) {
            put_virtual(&mut measures, now, before);
        }
        measures
    }
}

/// As `tapestat` of sysstat computes them.
fn put_kernel(measures: &mut Measures, now: Statistics, before: Statistics, seconds: f64) {
    let mut put = |name: &str, value: f64| measures.insert(name.to_owned(), value);
    let percent = |ns: u64| (100.0 * ns as f64 / 1e9 / seconds.max(1e-9)).min(100.0);
    let counted = now.since(before);
    if counted.writes > 0 {
        put("drive_writes", counted.writes as f64);
        put("drive_written_bytes", counted.write_bytes as f64);
        put("drive_write_percent", percent(counted.write_ns));
    }
    if counted.reads > 0 {
        put("drive_reads", counted.reads as f64);
        put("drive_read_bytes", counted.read_bytes as f64);
        put("drive_read_percent", percent(counted.read_ns));
    }
    put("drive_other_commands", counted.others as f64);
    put("drive_busy_percent", percent(counted.io_ns));
}

fn put_log(measures: &mut Measures, now: SequentialAccess, before: SequentialAccess) {
    let difference = |now: Option<u64>, before: Option<u64>| {
        now?.checked_sub(before?).filter(|&bytes| bytes > 0).map(|bytes| bytes as f64)
    };
    let native = difference(now.medium_written_bytes, before.medium_written_bytes);
    let host = difference(now.host_written_bytes, before.host_written_bytes);
    if let Some(native) = native {
        measures.insert("drive_native_bytes".to_owned(), native);
    }
    if let (Some(native), Some(host)) = (native, host) {
        measures.insert("drive_compression_ratio".to_owned(), host / native);
    }
}

fn put_virtual(measures: &mut Measures, now: &DriveTime, before: &DriveTime) {
    let mut put = |name: &str, of: fn(&DriveTime) -> f64| {
        let difference = of(now) - of(before);
        measures.insert(name.to_owned(), difference);
        difference
    };
    put("drive_back_hitches", |time| time.back_hitches as f64);
    put("drive_back_hitch_seconds", |time| time.back_hitch_seconds);
    put("drive_streaming_seconds", |time| time.streaming_seconds);
    put("drive_still_seconds", |time| time.still_seconds);
    put("drive_lost_seconds", |time| time.lost_seconds);
    put("drive_turns", |time| time.turns as f64);
    put("drive_synchronise_seconds", |time| time.synchronise_seconds);
    put("drive_host_blocked_seconds", |time| time.host_blocked_seconds);
    let native = put("drive_native_bytes", |time| time.native_bytes as f64);
    let host = now.host_bytes as f64 - before.host_bytes as f64;
    if host > 0.0 && native > 0.0 {
        measures.insert("drive_compression_ratio".to_owned(), host / native);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::samples::DRIVE_STATUS;

    #[test]
    fn differences_of_the_kernels_counters() {
        let before = Statistics { writes: 10, write_ns: 5, others: 3, ..Statistics::default() };
        let now = Statistics {
            writes: 14,
            write_bytes: 4000,
            write_ns: 500_000_005,
            others: 4,
            io_ns: 3_000_000_000,
            ..before
        };
        let counters = |kernel| Counters { kernel: Some(kernel), ..Counters::default() };
        let measures = counters(now).since(&counters(before), 2.0);
        let expected = [
            ("drive_busy_percent", 100.0),
            ("drive_other_commands", 1.0),
            ("drive_write_percent", 25.0),
            ("drive_writes", 4.0),
            ("drive_written_bytes", 4000.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(measures, Measures::from(expected));
    }

    #[test]
    fn differences_of_the_drives_log() {
        let at = |host, native| Counters {
            log: Some(SequentialAccess {
                host_written_bytes: Some(host),
                medium_written_bytes: Some(native),
                ..SequentialAccess::default()
            }),
            ..Counters::default()
        };
        let measures = at(9000, 5000).since(&at(3000, 3000), 1.0);
        assert_eq!(measures["drive_native_bytes"], 2000.0);
        assert_eq!(measures["drive_compression_ratio"], 3.0);
        // A drive that has forgotten, and one that does not count.
        assert!(at(0, 0).since(&at(3000, 3000), 1.0).is_empty());
        let silent = Counters { log: Some(SequentialAccess::default()), ..Counters::default() };
        assert!(silent.since(&silent, 1.0).is_empty());
    }

    #[test]
    fn differences_of_a_virtual_drives_counters() {
        let status: DriveStatus = serde_json::from_str(DRIVE_STATUS).unwrap();
        let at = |back_hitches, host_bytes, native_bytes| Counters {
            time: status.time.clone().map(|time| DriveTime {
                back_hitches,
                host_bytes,
                native_bytes,
                ..time
            }),
            ..Counters::default()
        };
        let measures = at(3, 700, 250).since(&at(1, 100, 50), 2.0);
        assert_eq!(measures["drive_back_hitches"], 2.0);
        assert_eq!(measures["drive_compression_ratio"], 3.0);
        // A drive that took nothing has no ratio.
        let idle = at(3, 700, 250).since(&at(3, 700, 250), 2.0);
        assert!(!idle.contains_key("drive_compression_ratio"), "{idle:?}");
    }
}
