//! The device of a setting, identified so that Takeup finds it again when names change.
//!
//! `sda` can be another disk after the next start, and `dm-3` another volume after volumes were
//! created and removed. So a device is identified by its WWN, by the UUID of its volume or array,
//! or by the file below a loop device; a file system without a block device by its mount. Without
//! any of these, the identity is the place in sysfs: the slot, not the disk in it.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Setting, SettingKind};
use machine::mounts::Mount;

/// The identity of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// World-wide name or similar, as SCSI and NVMe disks report it.
    Wwid(String),
    /// Serial number, where there is no WWN.
    Serial(String),
    /// UUID of a device-mapper device: LVM, dm-crypt, multipath.
    DeviceMapper(String),
    /// UUID of an md array.
    Array(String),
    /// The file below a loop device.
    BackingFile(String),
    /// UUID of a btrfs.
    Btrfs(String),
    /// The mount of a file system without a block device: its type and its source.
    Mounted(String, String),
    /// Its place in sysfs.
    Place(PathBuf),
}

/// A device, or a file system without one, that has settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Its name at the time: `sda`, or `0:50` for a file system without a device.
    pub name: String,
    /// Its identity.
    pub known_by: KnownBy,
    /// The number that the kernel gave this appearance of the device (`diskseq`). A device that
    /// went and came back has another number, and has lost its settings.
    pub sequence: Option<u64>,
}

impl Device {
    /// The device of a setting, in the sysfs below `sys`.
    pub fn of(sys: &Path, setting: &Setting, mounts: &[Mount]) -> Option<Device> {
        let folder = setting.path.parent()?;
        if folder.ends_with("queue") {
            return Some(of_block_device(folder.parent()?));
        }
        if let Ok(below) = folder.strip_prefix(sys.join("fs/btrfs")) {
            let uuid = below.components().next()?.as_os_str().to_string_lossy().into_owned();
            let known_by = KnownBy::Btrfs(uuid.clone());
            return Some(Device { name: format!("btrfs {uuid}"), known_by, sequence: None });
        }
        let number = folder.file_name()?.to_string_lossy().into_owned();
        let mount = mounts.iter().find(|mount| mount.device == number);
        let known_by = match mount {
            Some(mount) => KnownBy::Mounted(mount.kind.clone(), mount.source.display().to_string()),
            None => KnownBy::Place(folder.to_owned()),
        };
        Some(Device { name: number, known_by, sequence: None })
    }

    /// A setting of this device under its present name. `None` if the device is gone.
    pub fn find(&self, sys: &Path, kind: SettingKind, mounts: &[Mount]) -> Option<Setting> {
        let bdi = |folder: PathBuf| Some(Setting::read_ahead(&folder.join("read_ahead_kb")));
        let setting = match &self.known_by {
            KnownBy::Btrfs(uuid) => bdi(sys.join("fs/btrfs").join(uuid).join("bdi")),
            KnownBy::Mounted(fs, source) => {
                let is_it = |mount: &&Mount| {
                    mount.kind == *fs && mount.source.to_string_lossy() == source.as_str()
                };
                let mount = mounts.iter().rev().find(is_it)?;
                bdi(sys.join("class/bdi").join(&mount.device))
            }
            KnownBy::Place(place) if !place.join("queue").exists() => bdi(place.clone()),
            _ => {
                let folder = self.block_device(sys)?;
                Some(Setting::of_queue(kind, &folder.join("queue")))
            }
        }?;
        setting.path.exists().then_some(setting)
    }

    /// The sysfs folder of this block device; its old name is tried first.
    fn block_device(&self, sys: &Path) -> Option<PathBuf> {
        let class = sys.join("class/block");
        let names = fs::read_dir(&class).ok()?.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> =
            names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_by_key(|name| (name.replace('!', "/") != self.name, name.clone()));
        let folders = names.iter().filter_map(|name| fs::canonicalize(class.join(name)).ok());
        let mut disks = folders.filter(|folder| folder.join("queue").exists());
        disks.find(|folder| of_block_device(folder).known_by == self.known_by)
    }
}

fn of_block_device(folder: &Path) -> Device {
    let text = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let known_by = (text("wwid").or_else(|| text("device/wwid")).map(KnownBy::Wwid))
        .or_else(|| text("dm/uuid").map(KnownBy::DeviceMapper))
        .or_else(|| text("md/uuid").map(KnownBy::Array))
        .or_else(|| text("loop/backing_file").map(KnownBy::BackingFile))
        .or_else(|| text("serial").or_else(|| text("device/serial")).map(KnownBy::Serial))
        .unwrap_or_else(|| KnownBy::Place(folder.to_owned()));
    let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    Device { name, known_by, sequence: text("diskseq").and_then(|text| text.parse().ok()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn recorded(disks: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        fs::create_dir_all(sys.path().join("class/block")).unwrap();
        for (name, file, text) in disks {
            let folder = sys.path().join("devices").join(name);
            fs::create_dir_all(folder.join("queue")).unwrap();
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join("queue/read_ahead_kb"), "128\n").unwrap();
            fs::write(folder.join(file), text).unwrap();
            symlink(&folder, sys.path().join("class/block").join(name)).unwrap();
        }
        sys
    }

    fn device(sys: &Path, name: &str) -> Device {
        let queue = sys.join("devices").join(name).join("queue");
        Device::of(sys, &Setting::of_queue(SettingKind::ReadAhead, &queue), &[]).unwrap()
    }

    #[test]
    fn a_device_is_found_under_another_name_and_no_other_for_it() {
        let before = recorded(&[
            ("sda", "device/wwid", "naa.1\n"),
            ("sdb", "device/wwid", "naa.2\n"),
            ("dm-0", "dm/uuid", "LVM-a\n"),
            ("loop0", "loop/backing_file", "/srv/image\n"),
            ("vda", "serial", "\n"),
        ]);
        let after = recorded(&[
            ("sda", "device/wwid", "naa.2\n"),
            ("sdc", "device/wwid", "naa.1\n"),
            ("dm-0", "dm/uuid", "LVM-b\n"),
            ("loop3", "loop/backing_file", "/srv/image\n"),
        ]);
        for (name, found) in
            [("sda", Some("sdc")), ("sdb", Some("sda")), ("loop0", Some("loop3")), ("dm-0", None)]
        {
            let known = device(before.path(), name);
            let setting = known.find(after.path(), SettingKind::ReadAhead, &[]);
            let folder = setting.map(|setting| setting.path.ancestors().nth(2).unwrap().to_owned());
            let expected = found.map(|name| after.path().join("devices").join(name));
            assert_eq!(folder, expected, "{name}");
        }
        let known = device(before.path(), "vda").known_by;
        assert!(matches!(known, KnownBy::Place(_)), "an empty serial number is none: {known:?}");
    }

    #[test]
    fn file_systems_without_a_disk_are_known_by_what_is_mounted() {
        let sys = tempfile::tempdir().unwrap();
        let mount = |device: &str, source: &str| Mount {
            device: device.into(),
            root: "/".into(),
            point: "/mnt".into(),
            kind: "nfs4".into(),
            source: source.into(),
            options: "rw".into(),
            file_system_options: "rw".into(),
        };
        for number in ["0:50", "0:61"] {
            let folder = sys.path().join("class/bdi").join(number);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("read_ahead_kb"), "128\n").unwrap();
        }
        let before = [mount("0:49", "host:/a"), mount("0:50", "host:/b")];
        let share = Setting::read_ahead(&sys.path().join("class/bdi/0:50/read_ahead_kb"));
        let known = Device::of(sys.path(), &share, &before).unwrap();
        assert_eq!(known.known_by, KnownBy::Mounted("nfs4".into(), "host:/b".into()));
        let after = [mount("0:50", "host:/a"), mount("0:61", "host:/b")];
        let found = known.find(sys.path(), SettingKind::ReadAhead, &after).unwrap();
        assert!(found.path.ends_with("0:61/read_ahead_kb"), "{found:?}");
        assert_eq!(known.find(sys.path(), SettingKind::ReadAhead, &after[..1]), None);
    }
}
