//! Settings of the kernel in sysfs: read, set, read back. [`guard`] restores temporary settings,
//! [`changes`] keeps a list of permanent ones.
//!
//! A setting is a file that holds a value as text. [`SettingKind`] lists the settings that may be
//! written at all: the writer is usually root, and the path may come from a file.

pub mod changes;
pub mod device;
pub mod fuse;
mod guard;
mod journal;
pub mod keep;
pub mod limits;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StorageError;

pub use guard::{Guard, Pending, pending, recover};

/// The settings that may be written, and no others.
///
/// In the order in which they are set and restored: writing one resets later ones, see
/// [`SettingKind::resets`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SettingKind {
    /// The I/O scheduler, which orders the requests.
    Scheduler,
    /// Whether the kernel flushes a cache of the device: `write back` yes, `write through` no. The
    /// cache of the device itself stays as it is.
    WriteCache,
    /// Whether the kernel treats the device as a rotating disk: 0 or 1.
    Rotational,
    /// Largest request, in KiB.
    MaxSectors,
    /// Whether requests are merged: 0 yes, 1 only simple merges, 2 never.
    NoMerges,
    /// Read latency above which the kernel throttles write-back, in microseconds; 0 is never. Most
    /// kernels have another default for rotating devices.
    WriteBackLatency,
    /// Requests that may wait for the device.
    Requests,
    /// The read-ahead, in KiB.
    ReadAhead,
}

impl SettingKind {
    /// All of them, in their order.
    pub const ALL: [SettingKind; 8] = [
        SettingKind::Scheduler,
        SettingKind::WriteCache,
        SettingKind::Rotational,
        SettingKind::MaxSectors,
        SettingKind::NoMerges,
        SettingKind::WriteBackLatency,
        SettingKind::Requests,
        SettingKind::ReadAhead,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            SettingKind::Scheduler => "scheduler",
            SettingKind::WriteCache => "write cache",
            SettingKind::Rotational => "rotational",
            SettingKind::MaxSectors => "max_sectors_kb",
            SettingKind::NoMerges => "nomerges",
            SettingKind::WriteBackLatency => "wbt_lat_usec",
            SettingKind::Requests => "nr_requests",
            SettingKind::ReadAhead => "read-ahead",
        }
    }

    /// The end of its path. A file system without a disk has its read-ahead below
    /// `/sys/class/bdi`.
    fn path_end(self) -> &'static str {
        match self {
            SettingKind::Scheduler => "queue/scheduler",
            SettingKind::WriteCache => "queue/write_cache",
            SettingKind::Rotational => "queue/rotational",
            SettingKind::MaxSectors => "queue/max_sectors_kb",
            SettingKind::NoMerges => "queue/nomerges",
            SettingKind::WriteBackLatency => "queue/wbt_lat_usec",
            SettingKind::Requests => "queue/nr_requests",
            SettingKind::ReadAhead => "read_ahead_kb",
        }
    }

    /// The name of its file, which administrators use.
    pub fn file_name(self) -> &'static str {
        let end = self.path_end();
        end.rsplit_once('/').map_or(end, |(_, name)| name)
    }

    /// The kind with a file of that name.
    pub fn of_file(name: &str) -> Option<SettingKind> {
        SettingKind::ALL.into_iter().find(|kind| kind.file_name() == name)
    }

    /// Settings that the kernel resets when this one is written. A new scheduler resets the number
    /// of requests (`block/elevator.c`) and the write-back latency (`bfq` switches it off,
    /// `block/bfq-iosched.c`). A limit of the queue resets the read-ahead: it is raised where it
    /// was lowered (`block/blk-settings.c`, tried on Linux 6.18).
    pub fn resets(self) -> &'static [SettingKind] {
        match self {
            SettingKind::Scheduler => &[SettingKind::WriteBackLatency, SettingKind::Requests],
            SettingKind::WriteCache | SettingKind::Rotational | SettingKind::MaxSectors => {
                &[SettingKind::ReadAhead]
            }
            SettingKind::NoMerges
            | SettingKind::WriteBackLatency
            | SettingKind::Requests
            | SettingKind::ReadAhead => &[],
        }
    }

    /// The value of write-back latency that asks the kernel for its default.
    pub const DEFAULT_LATENCY: &str = "-1";

    /// A value with its unit.
    pub fn with_unit(self, value: &str) -> String {
        match self {
            SettingKind::MaxSectors | SettingKind::ReadAhead => format!("{value} KiB"),
            SettingKind::WriteBackLatency => format!("{value} us"),
            SettingKind::Scheduler
            | SettingKind::WriteCache
            | SettingKind::Rotational
            | SettingKind::NoMerges
            | SettingKind::Requests => value.to_owned(),
        }
    }
}

/// A setting of the kernel of this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    pub kind: SettingKind,
    /// Its file in sysfs.
    pub path: PathBuf,
}

impl Setting {
    /// The read-ahead in this file.
    pub fn read_ahead(path: &Path) -> Setting {
        Setting { kind: SettingKind::ReadAhead, path: path.to_owned() }
    }

    /// A setting of the queue in that folder.
    pub fn of_queue(kind: SettingKind, queue: &Path) -> Setting {
        let name = Path::new(kind.path_end()).file_name().unwrap_or_default();
        Setting { kind, path: queue.join(name) }
    }

    /// Settings of the same queue that the kernel resets when this one is written, if the device
    /// has them. (`wbt_lat_usec` also exists on devices that cannot throttle write-back.)
    pub(crate) fn reset_with_it(&self) -> Vec<Setting> {
        let Some(queue) = self.path.parent() else { return Vec::new() };
        let others = self.kind.resets().iter().map(|kind| Setting::of_queue(*kind, queue));
        others.filter(|other| other.value().is_ok()).collect()
    }

    /// All possible values, of a setting that lists them with the one in force in brackets.
    ///
    /// # Errors
    /// When there is no such setting of this kind, or it cannot be read.
    pub fn choices(&self) -> Result<Vec<String>, StorageError> {
        let text = self.text()?;
        Ok(text.split_whitespace().map(|one| chosen(one).to_owned()).collect())
    }

    /// The value in force, as the kernel shows it; for a list of choices, the chosen one.
    ///
    /// # Errors
    /// When there is no such setting of this kind, or it cannot be read.
    pub fn value(&self) -> Result<String, StorageError> {
        Ok(chosen(self.text()?.trim()).to_owned())
    }

    fn text(&self) -> Result<String, StorageError> {
        let mut text = String::new();
        let read = self.open(OFlags::RDONLY)?.read_to_string(&mut text);
        read.map_err(|source| self.failed("read", source))?;
        Ok(text)
    }

    /// Whether this process may set it.
    ///
    /// # Errors
    /// When there is no such setting of this kind, or it may not be written.
    pub fn check_settable(&self) -> Result<(), StorageError> {
        self.open(OFlags::WRONLY).map(|_| ())
    }

    /// Sets it and reads it back.
    ///
    /// # Errors
    /// When there is no such setting of this kind, it may not be written, or the kernel takes
    /// another value.
    pub fn set(&self, value: &str) -> Result<(), StorageError> {
        self.write(value)?;
        let found = self.value()?;
        if found == value {
            return Ok(());
        }
        Err(StorageError::NotTaken { setting: self.clone(), written: value.to_owned(), found })
    }

    /// Writes it, without a look at what the kernel made of it.
    fn write(&self, value: &str) -> Result<(), StorageError> {
        let written = self.open(OFlags::WRONLY)?.write_all(value.as_bytes());
        written.map_err(|source| self.failed("write", source))
    }

    /// Opens a file of sysfs whose name fits the kind; refuses any other file.
    fn open(&self, access: OFlags) -> Result<File, StorageError> {
        let no_setting = || StorageError::NoSetting { setting: self.clone() };
        let path = &self.path;
        let is_plain = path.components().all(|part| part != Component::ParentDir);
        if !is_plain || !path.starts_with("/sys") || !path.ends_with(self.kind.path_end()) {
            return Err(no_setting());
        }
        let what = if access == OFlags::RDONLY { "read" } else { "write" };
        let failed = |error: Errno| self.failed(what, error.into());
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = base::interruptible::open(path, flags, Mode::empty()).map_err(failed)?;
        // The width and sign of `f_type` depend on the architecture.
        let kind = rustix::fs::fstatfs(&file).map_err(failed)?.f_type as u64 & 0xffff_ffff;
        if kind == SYSFS_MAGIC { Ok(file.into()) } else { Err(no_setting()) }
    }

    fn failed(&self, what: &'static str, source: io::Error) -> StorageError {
        StorageError::Setting { what, path: self.path.clone(), source }
    }
}

/// `statfs(2)` of every file of sysfs (<linux/magic.h>).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// The read-ahead in force, in bytes.
///
/// # Errors
/// When `path` is not a read-ahead setting of the kernel, or cannot be read.
pub fn read_ahead_bytes(path: &Path) -> Result<u64, StorageError> {
    let setting = Setting::read_ahead(path);
    let invalid = |_| setting.failed("read", io::ErrorKind::InvalidData.into());
    let kib: u64 = setting.value()?.parse().map_err(invalid)?;
    Ok(kib * 1024)
}

/// The value to write for a read-ahead of this many bytes.
pub fn read_ahead_value(bytes: u64) -> String {
    (bytes / 1024).to_string()
}

/// The choice in brackets, of a setting that lists all choices: `none [mq-deadline]`.
pub fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_mark_the_choice() {
        assert_eq!(chosen("mq-deadline kyber [none]"), "none");
        assert_eq!(chosen("none"), "none");
        assert_eq!(chosen("write back"), "write back");
    }

    #[test]
    fn what_is_reset_comes_behind_what_resets_it() {
        let mut kinds = SettingKind::ALL;
        kinds.sort_unstable();
        assert_eq!(kinds, SettingKind::ALL);
        for kind in SettingKind::ALL {
            assert!(kind.resets().iter().all(|other| *other > kind), "{kind:?}");
            assert_eq!(SettingKind::of_file(kind.file_name()), Some(kind));
        }
        let setting = Setting::of_queue(SettingKind::MaxSectors, Path::new("/sys/block/sda/queue"));
        assert_eq!(setting.path, Path::new("/sys/block/sda/queue/max_sectors_kb"));
    }

    #[test]
    fn read_ahead_is_written_in_kibibytes() {
        assert_eq!([0, 128 << 10, 4 << 20].map(read_ahead_value), ["0", "128", "4096"]);
    }
}
