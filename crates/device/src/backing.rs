//! The device behind a file: whose read-ahead counts for it, and whose counters.
//!
//! Read-ahead belongs to the *backing device info* of the file system's own device. Below LVM, md
//! or multipath the disks have values of their own, which do nothing for files, so the value has to
//! be found from the file and not from the disk (Documentation/ABI/testing/sysfs-class-bdi).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use host::counters::disk::{self, DiskCounters};
use rustix::fs::{FileType, Mode, OFlags, major, minor};
use rustix::io::Errno;

/// What stands behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackingDevice {
    /// Name of the block device, `sda1`; or of the file system where there is none, `0:42`.
    pub name: String,
    /// The file in sysfs that holds its read-ahead in KiB, where there is one.
    pub read_ahead: Option<PathBuf>,
    /// Directory of its queue's settings, where it is a block device.
    pub queue: Option<PathBuf>,
    /// The disks at the bottom of its stack, by their names in `/proc/diskstats`.
    pub leaves: Vec<String>,
}

/// Why the device behind a path is not known.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// The path cannot be looked at.
    #[error("look at {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A setting cannot be read or written.
    #[error("{what} {}", path.display())]
    Setting {
        /// `read` or `write`.
        what: &'static str,
        /// The file in sysfs.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path that is to be written as a read-ahead is something else.
    #[error("{} is no read-ahead of the kernel", path.display())]
    NoReadAhead {
        /// The path.
        path: PathBuf,
    },
    /// The kernel took another value than the one written.
    #[error("{} is {found} KiB after {written} KiB were written", path.display())]
    NotTaken {
        /// The file in sysfs.
        path: PathBuf,
        /// What was written.
        written: u64,
        /// What it holds.
        found: u64,
    },
}

/// Levels of devices on devices that are followed, more than any stack has.
const STACK_DEPTH_MAX: usize = 16;

impl BackingDevice {
    /// The device behind a file, a directory or a block device.
    pub fn of(path: &Path) -> Result<BackingDevice, BackingError> {
        let failed = |source| BackingError::Path { path: path.to_owned(), source };
        let status = rustix::fs::stat(path).map_err(|error| failed(error.into()))?;
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice;
        let number = if is_device { status.st_rdev } else { status.st_dev };
        let number = format!("{}:{}", major(number), minor(number));
        let directory = fs::canonicalize(format!("/sys/dev/block/{number}")).ok();
        Ok(match directory {
            Some(directory) => of_block_device(&directory),
            None => without_block_device(&number, path),
        })
    }

    /// Read-ahead in bytes, where there is one.
    pub fn read_ahead_bytes(&self) -> Result<Option<u64>, BackingError> {
        let Some(path) = &self.read_ahead else { return Ok(None) };
        read_ahead_bytes(path).map(Some)
    }

    /// A setting of its queue as the kernel shows it, `scheduler` or `max_sectors_kb`.
    pub fn queue_setting(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.queue.as_ref()?.join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Counters of all disks at its bottom, added up.
    pub fn counters(&self) -> Option<DiskCounters> {
        let all = disk::now().ok()?;
        let of_leaf = |name: &String| {
            all.iter().find(|(known, _)| known == name).map(|(_, counters)| *counters)
        };
        self.leaves.iter().filter_map(of_leaf).reduce(DiskCounters::plus)
    }
}

/// The read-ahead in force, in bytes.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, or cannot be read.
pub fn read_ahead_bytes(path: &Path) -> Result<u64, BackingError> {
    let failed = |source| BackingError::Setting { what: "read", path: path.to_owned(), source };
    let mut file = open_read_ahead(path, OFlags::RDONLY)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let kib: u64 = text.trim().parse().map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
    Ok(kib * 1024)
}

/// Whether this process may set the read-ahead.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, or may not be written.
pub fn check_read_ahead(path: &Path) -> Result<(), BackingError> {
    open_read_ahead(path, OFlags::WRONLY).map(|_| ())
}

/// Sets a read-ahead in sysfs and reads it back.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, may not be written, or the kernel takes another
/// value.
pub fn set_read_ahead(path: &Path, bytes: u64) -> Result<(), BackingError> {
    let kib = bytes / 1024;
    let failed = |source| BackingError::Setting { what: "write", path: path.to_owned(), source };
    let mut file = open_read_ahead(path, OFlags::WRONLY)?;
    file.write_all(kib.to_string().as_bytes()).map_err(failed)?;
    let found = read_ahead_bytes(path)? / 1024;
    if found == kib {
        Ok(())
    } else {
        Err(BackingError::NotTaken { path: path.to_owned(), written: kib, found })
    }
}

/// `statfs(2)` of every file of sysfs (<linux/magic.h>).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// Opens `/sys/**/read_ahead_kb` and nothing else. Who sets a read-ahead is root as a rule, and the
/// path may come from a file.
fn open_read_ahead(path: &Path, access: OFlags) -> Result<File, BackingError> {
    let no_setting = || BackingError::NoReadAhead { path: path.to_owned() };
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    if !is_plain || !path.starts_with("/sys") || !path.ends_with("read_ahead_kb") {
        return Err(no_setting());
    }
    let what = if access == OFlags::RDONLY { "read" } else { "write" };
    let failed =
        |error: Errno| BackingError::Setting { what, path: path.to_owned(), source: error.into() };
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = interruptible::open(path, flags, Mode::empty()).map_err(failed)?;
    // Its width and sign are the architecture's.
    let kind = rustix::fs::fstatfs(&file).map_err(failed)?.f_type as u64 & 0xffff_ffff;
    if kind == SYSFS_MAGIC { Ok(file.into()) } else { Err(no_setting()) }
}

fn of_block_device(directory: &Path) -> BackingDevice {
    // A partition shares the queue and the read-ahead of its disk.
    let disk = if directory.join("partition").exists() {
        directory.parent().unwrap_or(directory)
    } else {
        directory
    };
    let queue = disk.join("queue");
    let read_ahead = queue.join("read_ahead_kb");
    let mut leaves = Vec::new();
    collect_leaves(directory, &mut leaves, STACK_DEPTH_MAX);
    leaves.sort();
    leaves.dedup();
    BackingDevice {
        name: file_name(directory),
        read_ahead: read_ahead.exists().then_some(read_ahead),
        queue: queue.exists().then_some(queue),
        leaves,
    }
}

/// A device with slaves is made of them; one without is a disk, or a partition of one.
fn collect_leaves(directory: &Path, leaves: &mut Vec<String>, depth: usize) {
    let slaves: Vec<PathBuf> = fs::read_dir(directory.join("slaves"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    if slaves.is_empty() || depth == 0 {
        leaves.push(file_name(directory));
        return;
    }
    for slave in slaves {
        if let Ok(slave) = fs::canonicalize(slave) {
            collect_leaves(&slave, leaves, depth - 1);
        }
    }
}

/// A file system with a device number of its own: NFS, FUSE, Ceph, btrfs.
fn without_block_device(number: &str, path: &Path) -> BackingDevice {
    let own = PathBuf::from(format!("/sys/class/bdi/{number}/read_ahead_kb"));
    let (read_ahead, leaves) =
        if own.exists() { (Some(own), Vec::new()) } else { of_btrfs(path).unwrap_or_default() };
    BackingDevice { name: number.to_owned(), read_ahead, queue: None, leaves }
}

/// Subvolumes of btrfs have numbers that no other place knows; the file system's own name leads to
/// its read-ahead and its disks (`/sys/fs/btrfs/UUID`).
fn of_btrfs(path: &Path) -> Option<(Option<PathBuf>, Vec<String>)> {
    let source = mount_source(path)?;
    let source = fs::canonicalize(source).ok()?.file_name()?.to_owned();
    for entry in fs::read_dir("/sys/fs/btrfs").ok()?.flatten() {
        let devices: Vec<String> = fs::read_dir(entry.path().join("devices"))
            .map(|devices| devices.flatten().map(|device| file_name(&device.path())).collect())
            .unwrap_or_default();
        if devices.iter().any(|device| **device == *source) {
            let read_ahead = entry.path().join("bdi/read_ahead_kb");
            return Some((read_ahead.exists().then_some(read_ahead), devices));
        }
    }
    None
}

/// What is mounted at the longest mount point above the path (proc_pid_mountinfo(5)).
fn mount_source(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let one = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let point = PathBuf::from(before.split(' ').nth(4)?);
        let source = after.split(' ').nth(1)?.to_owned();
        path.starts_with(&point).then_some((point.components().count(), source))
    };
    mounts.lines().filter_map(one).max_by_key(|(length, _)| *length).map(|(_, source)| source)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_behind_a_file_is_one_that_the_kernel_counts() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let device = BackingDevice::of(&path).unwrap();
        assert!(!device.name.is_empty());
        // In a container there may be no block device behind the tree; where there is one, it has
        // counters, and they count.
        if device.queue.is_some() {
            assert!(device.counters().is_some(), "{device:?}");
            assert!(device.read_ahead_bytes().unwrap().is_some(), "{device:?}");
        }
        assert!(BackingDevice::of(Path::new("/nowhere/at/all")).is_err());
    }
}
