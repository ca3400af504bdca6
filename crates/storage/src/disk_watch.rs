//! I/O of other programs on the disk of a run: the kernel's counters of the disk, minus the
//! counters of this process. Also the busy time of the disk, which load on the cores does not
//! distort.

use std::path::Path;

use crate::layers::Storage;
use machine::counters::disk::DiskCounters;
use machine::table;

/// The counters of the disk below a path at a moment, to compute later what other programs moved.
#[derive(Debug)]
pub struct DiskWatch {
    storage: Storage,
    before: DiskCounters,
    own_before: OwnTransfers,
}

/// Busy time of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskTime {
    /// Time with requests of any program.
    pub busy_seconds: f64,
    /// The part of it for this process, by its share of the bytes read.
    pub own_seconds: f64,
    /// Mean number of requests in flight while the disk was busy.
    pub in_flight: f64,
}

/// Bytes that this process read from and wrote to all disks together (proc_pid_io(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnTransfers {
    read_bytes: u64,
    written_bytes: u64,
}

impl DiskWatch {
    /// Begins. `None` if no disk is known below the path, or several are: writes of a mirror or of
    /// parity cannot be assigned to a program.
    pub fn start(path: &Path) -> Option<DiskWatch> {
        let storage = Storage::of(path).ok().filter(|storage| storage.disks().len() == 1)?;
        let before = storage.counters()?;
        Some(DiskWatch { storage, before, own_before: OwnTransfers::now()? })
    }

    /// Busy time of the disk since the start, and the part of it for reads of this process.
    pub fn time(&self) -> Option<DiskTime> {
        let disk = self.storage.counters()?.since(self.before);
        let own = OwnTransfers::now()?.read_bytes.saturating_sub(self.own_before.read_bytes);
        let busy_seconds = f64::from(disk.busy_ms) / 1e3;
        let all = disk.read.plus(disk.write).bytes();
        let share = if all > 0 { (own as f64 / all as f64).min(1.0) } else { 0.0 };
        let in_flight = f64::from(disk.weighted_ms) / f64::from(disk.busy_ms.max(1));
        Some(DiskTime { busy_seconds, own_seconds: busy_seconds * share, in_flight })
    }

    /// Bytes that other programs have moved since the start. A lower bound: all I/O of this process
    /// is subtracted, even on other disks, and writes twice, because the file system adds its own.
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
