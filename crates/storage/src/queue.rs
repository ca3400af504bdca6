//! The settings of the queue of a block device, as the kernel shows them below `/sys/class/block`.
//!
//! They decide how to read its counters: the largest request, the number of requests in flight, the
//! read-ahead, whether requests are merged or counted at all. [`crate::settings`] changes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::chosen;

/// A queue; a setting that the kernel does not show is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// The I/O scheduler, which orders the requests; `none` is a valid name.
    pub scheduler: Option<String>,
    /// Largest request, in KiB.
    pub max_sectors_kb: Option<u64>,
    /// Memory segments per request; adjacent pages are one segment.
    pub max_segments: Option<u64>,
    /// The read-ahead, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// Requests that may wait, in each hardware queue.
    pub nr_requests: Option<u64>,
    pub hardware_queues: Option<u64>,
    /// Requests that the device itself accepts at once, as SCSI and SATA disks report it
    /// (`queue_depth`).
    pub device_depth: Option<u64>,
    /// Whether requests are merged: 0 yes, 2 never.
    pub nomerges: Option<u64>,
    /// Whether the kernel treats the device as a rotating disk: 0 or 1.
    pub rotational: Option<u64>,
    /// `write back` if the device has a cache that must be flushed, else `write through`.
    pub write_cache: Option<String>,
    /// Read latency above which write-back is throttled, in microseconds; 0 is never.
    pub wbt_lat_usec: Option<u64>,
    /// Whether requests are counted at all: 0 or 1.
    pub iostats: Option<u64>,
    /// The devices directly below: members of an array, the disk below an encrypted device.
    pub made_of: Vec<String>,
}

impl Queue {
    /// The queue of a device of this name; a partition has the queue of its disk.
    pub fn of(name: &str) -> Option<Queue> {
        Queue::below(Path::new("/sys"), name)
    }

    /// The same, from the sysfs below `sys`.
    pub fn below(sys: &Path, name: &str) -> Option<Queue> {
        // The kernel writes `!` where a name has a slash.
        let entry = sys.join("class/block").join(name.replace('/', "!"));
        let own = fs::canonicalize(entry).ok()?;
        let disk = if own.join("partition").exists() { own.parent()? } else { &own };
        let queue = disk.join("queue");
        let text = |name: &str| {
            let text = fs::read_to_string(queue.join(name)).ok()?;
            Some(chosen(text.trim()).to_owned())
        };
        let number = |name: &str| text(name)?.parse().ok();
        let depth = fs::read_to_string(disk.join("device/queue_depth")).ok();
        Some(Queue {
            scheduler: text("scheduler"),
            max_sectors_kb: number("max_sectors_kb"),
            max_segments: number("max_segments"),
            read_ahead_kb: number("read_ahead_kb"),
            nr_requests: number("nr_requests"),
            hardware_queues: entries(&disk.join("mq")).map(|queues| queues.len() as u64),
            device_depth: depth.and_then(|text| text.trim().parse().ok()),
            nomerges: number("nomerges"),
            rotational: number("rotational"),
            write_cache: text("write_cache"),
            wbt_lat_usec: number("wbt_lat_usec"),
            iostats: number("iostats"),
            made_of: entries(&own.join("slaves")).unwrap_or_default(),
        })
    }

    /// Requests that the device accepts at once, where known: as the device reports it, or the tags
    /// of its driver. `nr_requests` shows the tags if there is no scheduler with its own queue.
    /// `None` for a device on other devices, whose depth only these know.
    pub fn depth(&self) -> Option<u64> {
        let tags = || {
            let has_none = self.scheduler.as_deref() == Some("none");
            Some(self.nr_requests.filter(|_| has_none)? * self.hardware_queues?.max(1))
        };
        self.device_depth.or_else(|| if self.made_of.is_empty() { tags() } else { None })
    }

    /// Whether the device turns bios into requests, which it can merge and order. Other devices
    /// pass bios on (block/blk-mq-sysfs.c: a queue of requests has hardware queues). Before Linux
    /// 5.0 there were queues of requests without any, with schedulers of their own (noop, deadline,
    /// cfq), where a device that passes bios on has none.
    pub fn has_requests(&self) -> bool {
        self.hardware_queues.is_some_and(|queues| queues > 0)
            || self.scheduler.as_deref().is_some_and(|name| name != "none")
    }

    /// Whether the kernel counts the I/O of a device of this name, by its settings.
    pub fn is_counted(&self, name: &str) -> bool {
        let queues = u64::from(self.has_requests());
        self.iostats != Some(0) || !heeds_iostats(name, queues)
    }

    /// Requests that fit into the queue of the scheduler, if there is one.
    pub fn scheduled_depth(&self) -> Option<u64> {
        let has_one = self.scheduler.as_deref().is_some_and(|name| name != "none");
        Some(self.nr_requests.filter(|_| has_one)? * self.hardware_queues.unwrap_or(1).max(1))
    }
}

/// Whether `iostats` switches the counters of a device of this name, with this many queues of
/// requests. A device without one counts by itself and mostly ignores `iostats`: in Linux 6.1, LVM
/// volumes and all other device-mapper devices show 0 there, but count (drivers/md/dm.c,
/// `dm_start_io_acct`). md and NVMe multipath do obey it (drivers/md/md.c, `md_account_bio`;
/// drivers/nvme/host/multipath.c); md of Linux 4.18 and 5.10 shows 0 as well, and counts. Makers of
/// kernels may have changed that earlier.
pub fn heeds_iostats(name: &str, queues: u64) -> bool {
    let is_md = name.starts_with("md");
    queues > 0 || name.starts_with("nvme") || (is_md && *MD_HEEDS)
}

/// Whether md obeys `iostats` on this machine.
static MD_HEEDS: LazyLock<bool> = LazyLock::new(|| {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    md_heeds(&release)
});

/// The same for a release of Linux; a later one where it cannot be read.
fn md_heeds(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    version.is_none_or(|version| version >= (5, 14))
}

/// Requests in flight on a device of this machine at this moment, reads and writes together.
pub fn in_flight(name: &str) -> Option<u32> {
    let path: PathBuf = Path::new("/sys/class/block").join(name.replace('/', "!"));
    let text = fs::read_to_string(path.join("inflight")).ok()?;
    let numbers: Option<Vec<u32>> = text.split_whitespace().map(|it| it.parse().ok()).collect();
    numbers?.into_iter().reduce(u32::saturating_add)
}

/// Whether this is a whole disk of this machine, not a partition.
pub fn is_whole_disk(name: &str) -> bool {
    Path::new("/sys/block").join(name.replace('/', "!")).exists()
}

fn entries(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn recorded(files: &[(&str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(sys.path().join("class/block")).unwrap();
        sys
    }

    #[test]
    fn a_disk_a_partition_of_it_and_a_volume_over_it() {
        let sys = recorded(&[
            ("block/sda/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("block/sda/queue/nr_requests", "64\n"),
            ("block/sda/queue/max_sectors_kb", "1280\n"),
            ("block/sda/queue/iostats", "0\n"),
            ("block/sda/queue/write_cache", "write back\n"),
            ("block/sda/queue/max_segments", "168\n"),
            ("block/sda/device/queue_depth", "32\n"),
            ("block/sda/mq/0/cpu0", ""),
            ("block/sda/sda1/partition", "1\n"),
            ("block/dm-0/slaves/sda1", ""),
            ("block/nvme0n1/queue/scheduler", "[none]\n"),
            ("block/nvme0n1/queue/nr_requests", "1023\n"),
            ("block/nvme0n1/mq/0/cpu0", ""),
            ("block/nvme0n1/mq/1/cpu0", ""),
        ]);
        for (name, place) in
            [("sda", "sda"), ("sda1", "sda/sda1"), ("dm-0", "dm-0"), ("nvme0n1", "nvme0n1")]
        {
            let link = sys.path().join("class/block").join(name);
            symlink(format!("../../block/{place}"), link).unwrap();
        }
        let of = |name: &str| Queue::below(sys.path(), name);
        let disk = of("sda").unwrap();
        assert_eq!((disk.depth(), disk.scheduled_depth()), (Some(32), Some(64)));
        assert_eq!(
            (disk.max_sectors_kb, disk.iostats, disk.rotational),
            (Some(1280), Some(0), None)
        );
        assert_eq!(
            (disk.write_cache.as_deref(), disk.max_segments),
            (Some("write back"), Some(168))
        );
        assert_eq!(of("sda1").unwrap(), disk);
        assert_eq!(of("dm-0").unwrap().made_of, ["sda1"]);
        let fast = of("nvme0n1").unwrap();
        assert_eq!((fast.depth(), fast.scheduled_depth()), (Some(2046), None));
        assert_eq!(of("sdz"), None);
    }

    /// As Linux 4.18 shows a disk, and a volume over it.
    #[test]
    fn an_old_queue_of_requests_has_a_scheduler_and_no_hardware_queue() {
        let sys = recorded(&[
            ("block/sda/queue/scheduler", "noop deadline [cfq]\n"),
            ("block/sda/queue/iostats", "0\n"),
            ("block/dm-0/queue/scheduler", "none\n"),
            ("block/dm-0/queue/iostats", "0\n"),
            ("block/dm-0/slaves/sda", ""),
        ]);
        for name in ["sda", "dm-0"] {
            symlink(format!("../../block/{name}"), sys.path().join("class/block").join(name))
                .unwrap();
        }
        let of = |name: &str| Queue::below(sys.path(), name).unwrap();
        assert!(of("sda").has_requests() && !of("sda").is_counted("sda"));
        assert!(!of("dm-0").has_requests() && of("dm-0").is_counted("dm-0"));
    }

    #[test]
    fn md_obeys_the_setting_from_5_14_on() {
        for old in ["4.18.0-25-generic", "5.10.0-32-amd64", "5.4", "5.13.19-rt"] {
            assert!(!md_heeds(old), "{old}");
        }
        for new in ["5.14.0-427.el9", "6.1.0-18-amd64", "6.18.44", "10.0", "what"] {
            assert!(md_heeds(new), "{new}");
        }
    }
}
