//! `/sys/class/scsi_tape/*/stats`: what the kernel counts of each tape drive. Reading it sends no
//! command to the drive (Documentation/ABI/testing/sysfs-class-scsi_tape).

use std::fs;
use std::path::Path;

/// Counters since the drive was found, 64 bits wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// `write_cnt`: writes that have ended.
    pub writes: u64,
    /// `write_byte_cnt`.
    pub write_bytes: u64,
    /// `write_ns`: time in writes.
    pub write_ns: u64,
    /// `read_cnt`.
    pub reads: u64,
    /// `read_byte_cnt`.
    pub read_bytes: u64,
    /// `read_ns`.
    pub read_ns: u64,
    /// `other_cnt`: all other commands.
    pub others: u64,
    /// `io_ns`: time in commands of any kind.
    pub io_ns: u64,
    /// `resid_cnt`: transfers shorter than asked for.
    pub residuals: u64,
}

impl Statistics {
    /// The counters of the drive with this folder in sysfs; `None` when the drive is gone.
    pub fn of(folder: &Path) -> Option<Statistics> {
        let count = |name| -> Option<u64> {
            let text = fs::read_to_string(folder.join("stats").join(name)).ok()?;
            text.trim().parse().ok()
        };
        Some(Statistics {
            writes: count("write_cnt")?,
            write_bytes: count("write_byte_cnt")?,
            write_ns: count("write_ns")?,
            reads: count("read_cnt")?,
            read_bytes: count("read_byte_cnt")?,
            read_ns: count("read_ns")?,
            others: count("other_cnt")?,
            io_ns: count("io_ns")?,
            residuals: count("resid_cnt")?,
        })
    }

    /// What was counted since `earlier`. A drive that went and came back counts from 0 again: the
    /// difference is 0 where it is unknown.
    #[must_use]
    pub fn since(self, earlier: Statistics) -> Statistics {
        Statistics {
            writes: self.writes.saturating_sub(earlier.writes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            write_ns: self.write_ns.saturating_sub(earlier.write_ns),
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            others: self.others.saturating_sub(earlier.others),
            io_ns: self.io_ns.saturating_sub(earlier.io_ns),
            residuals: self.residuals.saturating_sub(earlier.residuals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("stats")).unwrap();
        let names = [
            "write_cnt",
            "write_byte_cnt",
            "write_ns",
            "read_cnt",
            "read_byte_cnt",
            "read_ns",
            "other_cnt",
            "io_ns",
            "resid_cnt",
        ];
        for (number, name) in names.iter().enumerate() {
            assert_eq!(Statistics::of(folder.path()), None);
            fs::write(folder.path().join("stats").join(name), format!("{number}\n")).unwrap();
        }
        let found = Statistics::of(folder.path()).unwrap();
        assert_eq!((found.writes, found.read_bytes, found.residuals), (0, 4, 8));
        assert_eq!(found.since(Statistics { read_bytes: 3, ..found }).read_bytes, 1);
        // The drive came back after it was gone.
        assert_eq!(Statistics::default().since(found), Statistics::default());
    }
}
