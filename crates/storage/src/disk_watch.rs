//! What other programs move on the disk of a run: what the kernel counts of the disk, less what it
//! counts of this process. And how long the disk was busy, which no foreign use of cores hides.

use std::path::Path;

use crate::layers::Storage;
use machine::counters::disk::DiskCounters;
use machine::table;

/// A look at the disk below a path, to know later what others have moved on it.
#[derive(Debug)]
pub struct DiskWatch {
    storage: Storage,
    before: DiskCounters,
    own_before: OwnTransfers,
}

/// Time in which a disk had requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskTime {
    /// Of anybody.
    pub busy_seconds: f64,
    /// The part of it that this process has a right to, by what it read.
    pub own_seconds: f64,
    /// How many requests it had at once while it had any, on average.
    pub in_flight: f64,
}

/// What this process had from disks and gave to them, all disks together (proc_pid_io(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnTransfers {
    read_bytes: u64,
    written_bytes: u64,
}

impl DiskWatch {
    /// Begins. `None` where nothing is known of a disk there, or there are several: of what a
    /// mirror writes, or a parity, nobody tells whose it is.
    pub fn start(path: &Path) -> Option<DiskWatch> {
        let storage = Storage::of(path).ok().filter(|storage| storage.disks().len() == 1)?;
        let before = storage.counters()?;
        Some(DiskWatch { storage, before, own_before: OwnTransfers::now()? })
    }

    /// How long it was busy since, and for how much of that with what this process reads.
    pub fn time(&self) -> Option<DiskTime> {
        let disk = self.storage.counters()?.since(self.before);
        let own = OwnTransfers::now()?.read_bytes.saturating_sub(self.own_before.read_bytes);
        let busy_seconds = f64::from(disk.busy_ms) / 1e3;
        let all = disk.read.plus(disk.write).bytes();
        let share = if all > 0 { (own as f64 / all as f64).min(1.0) } else { 0.0 };
        let in_flight = f64::from(disk.weighted_ms) / f64::from(disk.busy_ms.max(1));
        Some(DiskTime { busy_seconds, own_seconds: busy_seconds * share, in_flight })
    }

    /// Bytes that others have moved on it since. Rather too few than too many: what this process
    /// moved on any disk is taken off, and of writes twice, since a file system adds its own.
    pub fn others_bytes(&self) -> Option<u64> {
        let disk = self.storage.counters()?.since(self.before);
        let own = OwnTransfers::now()?;
        let read = own.read_bytes.saturating_sub(self.own_before.read_bytes);
        let written = own.written_bytes.saturating_sub(self.own_before.written_bytes);
        let others_read = disk.read.bytes().saturating_sub(read);
        Some(others_read + disk.write.bytes().saturating_sub(written.saturating_mul(2)))
    }
}

impl OwnTransfers {
    fn now() -> Option<OwnTransfers> {
        OwnTransfers::parse(&std::fs::read_to_string("/proc/self/io").ok()?)
    }

    fn parse(text: &str) -> Option<OwnTransfers> {
        let number = |name| table::field(text, name)?.trim().parse().ok();
        let (read_bytes, written_bytes) = (number("read_bytes")?, number("write_bytes")?);
        Some(OwnTransfers { read_bytes, written_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_transfers_as_the_kernel_shows_them() {
        let text = "rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 7\n\
                    cancelled_write_bytes: 0\n";
        let expected = OwnTransfers { read_bytes: 4096, written_bytes: 7 };
        assert_eq!(OwnTransfers::parse(text), Some(expected));
        assert_eq!(OwnTransfers::parse("read_bytes: x\nwrite_bytes: 7\n"), None);
        assert!(OwnTransfers::now().is_some());
    }
}
