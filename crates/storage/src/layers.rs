//! The storage below a path, layer by layer, from its own device down to the disks.
//!
//! Read-ahead belongs to the *backing device info* of the file system's own device. Below LVM, md
//! or multipath, the disks have other values, which have no effect on files. So the value must be
//! looked up from the file, not from the disk (Documentation/ABI/testing/sysfs-class-bdi).
//!
//! This has only what a run needs; [`crate::stack`] has each layer in detail.
//!
//! Not here: changing a setting, see [`settings`].

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, major, minor};

use crate::StorageError;
use crate::settings::{self};
use machine::counters::disk::{self, DiskCounters};
use machine::mounts;

/// Maximum number of links followed from a device to the devices below, more than any stack has.
const STEPS_MAX: usize = 1024;

/// The storage below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Name of the block device, `sda1`; or of the file system where there is none, `0:42`.
    pub name: String,
    /// The file in sysfs with its read-ahead in KiB, where there is one.
    pub read_ahead: Option<PathBuf>,
    /// Directory of its queue's settings, where it is a block device.
    pub queue: Option<PathBuf>,
    /// The block devices below the path, each once, before the devices below it. Empty if there is
    /// no block device.
    pub layers: Vec<Layer>,
}

/// A block device in a stack of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name, as in `/proc/diskstats`.
    pub name: String,
    /// Names of the devices directly below: members of an array, the disk below an encrypted
    /// device. Empty for a disk or a partition.
    pub below: Vec<String>,
}

impl Storage {
    /// The storage below a file, a directory or a block device of this machine.
    ///
    /// # Errors
    /// When `stat` fails on the path.
    pub fn of(path: &Path) -> Result<Storage, StorageError> {
        let failed = |source| StorageError::Inspect { path: path.to_owned(), source };
        let status = rustix::fs::stat(path).map_err(|error| failed(error.into()))?;
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice;
        let number = if is_device { status.st_rdev } else { status.st_dev };
        let number = format!("{}:{}", major(number), minor(number));
        let mounted = || mounted_device(path);
        Ok(Storage::of_number(Path::new("/sys"), &number, mounted))
    }

    /// The storage of a device number, from the sysfs below `sys`: of this machine or a recorded
    /// one. `mounted` names the mounted device, for file systems whose number sysfs does not know.
    pub fn of_number(
        sys: &Path,
        number: &str,
        mounted: impl FnOnce() -> Option<String>,
    ) -> Storage {
        match fs::canonicalize(sys.join("dev/block").join(number)) {
            Ok(directory) => of_block_device(&directory),
            Err(_) => without_block_device(sys, number, mounted),
        }
    }

    /// Read-ahead in bytes, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_ahead_bytes(&self) -> Result<Option<u64>, StorageError> {
        self.read_ahead.as_deref().map(settings::read_ahead_bytes).transpose()
    }

    /// A setting of its queue as the kernel shows it, `scheduler` or `max_sectors_kb`.
    pub fn queue_setting(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.queue.as_ref()?.join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The disks at the bottom, by their names in `/proc/diskstats`, sorted.
    pub fn disks(&self) -> Vec<&str> {
        let bottom = self.layers.iter().filter(|layer| layer.below.is_empty());
        let mut names: Vec<&str> = bottom.map(|layer| layer.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The queue folders of these disks on this machine, each once; a partition has its disk's.
    pub fn disk_queues(&self) -> Vec<PathBuf> {
        let queue = |name: &&str| {
            let directory = fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
            of_block_device(&directory).queue
        };
        let mut queues: Vec<PathBuf> = self.disks().iter().filter_map(queue).collect();
        queues.dedup();
        queues
    }

    /// The dm-multipath device of this machine in the stack, if there is one, by its UUID.
    pub fn multipath(&self) -> Option<&str> {
        let is_multipath = |layer: &&Layer| {
            let uuid = Path::new("/sys/class/block").join(&layer.name).join("dm/uuid");
            fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("mpath-"))
        };
        self.layers.iter().find(is_multipath).map(|layer| layer.name.as_str())
    }

    /// The sum of the counters of all disks at the bottom.
    pub fn counters(&self) -> Option<DiskCounters> {
        disk::sum(&disk::now().ok()?, &self.disks())
    }
}

fn of_block_device(directory: &Path) -> Storage {
    // A partition shares the queue and the read-ahead of its disk.
    let disk = if directory.join("partition").exists() {
        directory.parent().unwrap_or(directory)
    } else {
        directory
    };
    let queue = disk.join("queue");
    let read_ahead = queue.join("read_ahead_kb");
    Storage {
        name: file_name(directory),
        read_ahead: read_ahead.exists().then_some(read_ahead),
        queue: queue.exists().then_some(queue),
        layers: layers_from(vec![directory.to_owned()]),
    }
}

/// The layers of these devices and of all devices below them, by the `slaves` folders.
fn layers_from(tops: Vec<PathBuf>) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut open = std::collections::VecDeque::from(tops);
    for _ in 0..STEPS_MAX {
        let Some(directory) = open.pop_front() else { break };
        let slaves = entries(&directory.join("slaves"));
        let name = file_name(&directory);
        // A device found again moves to the end, so that it stays after all devices above it.
        layers.retain(|layer| layer.name != name);
        layers.push(Layer { name, below: slaves.iter().map(|slave| file_name(slave)).collect() });
        open.extend(slaves);
    }
    layers
}

/// A file system with a device number of its own: NFS, FUSE, Ceph, btrfs.
fn without_block_device(
    sys: &Path,
    number: &str,
    mounted: impl FnOnce() -> Option<String>,
) -> Storage {
    let own = sys.join("class/bdi").join(number).join("read_ahead_kb");
    let (read_ahead, layers) = if own.exists() {
        (Some(own), Vec::new())
    } else {
        mounted().and_then(|device| of_btrfs(sys, &device)).unwrap_or_default()
    };
    Storage { name: number.to_owned(), read_ahead, queue: None, layers }
}

/// btrfs subvolumes have device numbers that sysfs does not know; the UUID of the file system leads
/// to its read-ahead and its disks (`/sys/fs/btrfs/UUID`).
fn of_btrfs(sys: &Path, mounted: &str) -> Option<(Option<PathBuf>, Vec<Layer>)> {
    let (folder, devices) = btrfs_folder(sys, mounted)?;
    let read_ahead = folder.join("bdi/read_ahead_kb");
    Some((read_ahead.exists().then_some(read_ahead), layers_from(devices)))
}

/// The sysfs folder of the btrfs with a device of this name, and all of its devices.
pub(crate) fn btrfs_folder(sys: &Path, device: &str) -> Option<(PathBuf, Vec<PathBuf>)> {
    fs::read_dir(sys.join("fs/btrfs")).ok()?.flatten().find_map(|entry| {
        let devices = entries(&entry.path().join("devices"));
        devices.iter().find(|one| file_name(one) == device)?;
        Some((entry.path(), devices))
    })
}

/// Name of the device that is mounted at or above a path.
fn mounted_device(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let mounts = mounts::now().ok()?;
    let source = fs::canonicalize(&mounts::above(&mounts, &path)?.source).ok()?;
    Some(file_name(&source))
}

/// The targets of the links in a folder, sorted; broken links stay as they are.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| fs::canonicalize(entry.path()).unwrap_or_else(|_| entry.path()))
        .collect();
    paths.sort();
    paths
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs with a logical volume over two mirrored disks, and a disk with a partition.
    fn recorded() -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let root = sys.path();
        let make = |path: &str| fs::create_dir_all(root.join(path)).unwrap();
        for path in ["dev/block", "class/bdi/0:50", "fs/btrfs/1234/devices", "fs/btrfs/1234/bdi"] {
            make(path);
        }
        for (number, device, slaves) in [
            ("253:0", "dm-0", &["md0"][..]),
            ("9:0", "md0", &["sda", "sdb"][..]),
            ("8:0", "sda", &[][..]),
            ("8:16", "sdb", &[][..]),
            ("8:17", "sdb/sdb1", &[][..]),
        ] {
            make(&format!("block/{device}/slaves"));
            symlink(format!("../../block/{device}"), root.join("dev/block").join(number)).unwrap();
            for slave in slaves {
                let link = root.join(format!("block/{device}/slaves/{slave}"));
                symlink(format!("../../{slave}"), link).unwrap();
            }
        }
        make("block/sdb/queue");
        for (path, text) in [
            ("block/sdb/sdb1/partition", "1\n"),
            ("block/sdb/queue/read_ahead_kb", "128\n"),
            ("block/sdb/queue/scheduler", "[none] mq-deadline\n"),
            ("class/bdi/0:50/read_ahead_kb", "0\n"),
            ("fs/btrfs/1234/bdi/read_ahead_kb", "4096\n"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        let member = root.join("fs/btrfs/1234/devices/dm-0");
        symlink("../../../../block/dm-0", member).unwrap();
        sys
    }

    fn layer(name: &str, below: &[&str]) -> Layer {
        let below = below.iter().map(|name| (*name).to_owned()).collect();
        Layer { name: name.to_owned(), below }
    }

    #[test]
    fn a_stack_is_followed_down_to_its_disks() {
        let sys = recorded();
        let of = |number: &str| Storage::of_number(sys.path(), number, || None);
        let volume = of("253:0");
        let expected = [
            layer("dm-0", &["md0"]),
            layer("md0", &["sda", "sdb"]),
            layer("sda", &[]),
            layer("sdb", &[]),
        ];
        assert_eq!((volume.name.as_str(), &volume.layers[..]), ("dm-0", &expected[..]));
        assert_eq!(volume.disks(), ["sda", "sdb"]);
        assert_eq!((volume.queue, volume.read_ahead), (None, None));
        let partition = of("8:17");
        assert_eq!((partition.name.as_str(), partition.disks()), ("sdb1", vec!["sdb1"]));
        assert!(partition.read_ahead.as_ref().unwrap().ends_with("sdb/queue/read_ahead_kb"));
        assert_eq!(partition.queue_setting("scheduler").unwrap(), "[none] mq-deadline");
    }

    #[test]
    fn file_systems_with_numbers_of_their_own() {
        let sys = recorded();
        let of = |number: &str, mounted: Option<&str>| {
            Storage::of_number(sys.path(), number, || mounted.map(str::to_owned))
        };
        let share = of("0:50", None);
        assert!(share.read_ahead.unwrap().ends_with("class/bdi/0:50/read_ahead_kb"));
        assert_eq!(share.layers, []);
        let subvolume = of("0:51", Some("dm-0"));
        assert!(subvolume.read_ahead.as_ref().unwrap().ends_with("1234/bdi/read_ahead_kb"));
        assert_eq!(subvolume.disks(), ["sda", "sdb"]);
        let unknown = of("0:52", Some("sdc"));
        assert_eq!((unknown.name.as_str(), unknown.read_ahead), ("0:52", None));
    }

    /// No kernel allows a circle.
    #[test]
    fn a_circle_ends() {
        let sys = recorded();
        symlink("../../dm-0", sys.path().join("block/sda/slaves/dm-0")).unwrap();
        let storage = Storage::of_number(sys.path(), "253:0", || None);
        assert_eq!(storage.layers.len(), 4);
        assert_eq!(storage.disks(), ["sdb"]);
    }

    #[test]
    fn the_storage_below_a_file_is_one_that_the_kernel_counts() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let storage = Storage::of(&path).unwrap();
        assert!(!storage.name.is_empty());
        // In a container there may be no block device below the tree; if there is one, it must have
        // counters.
        if storage.queue.is_some() {
            assert!(storage.counters().is_some(), "{storage:?}");
            assert!(storage.read_ahead_bytes().unwrap().is_some(), "{storage:?}");
        }
        assert!(Storage::of(Path::new("/nowhere/at/all")).is_err());
    }
}
