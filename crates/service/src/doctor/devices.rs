//! Drives, disks and file systems, from files of the kernel alone: nothing is queried, and no disk
//! wakes up.

use std::collections::BTreeMap;
use std::path::Path;

use base::escape::escape_path;
use base::failures::with_causes;
use machine::Machine;
use rustix::fs::Access;

use super::{BlockDeviceAnswer, FileSystemAnswer, Names, TapeDeviceAnswer};
use crate::failure::without_error_numbers;

/// More are not listed.
const DEVICES_MAX: usize = 64;
/// More mount points of one kind are not listed.
const POINTS_MAX: usize = 32;

/// The drives by the names of their nodes that do not rewind.
pub(super) fn tape_drives(machine: &Machine) -> Vec<TapeDeviceAnswer> {
    let folders = machine.entries(&machine.at("/sys/class/scsi_tape"));
    let drive = |folder: &std::path::PathBuf| {
        let name = folder.file_name()?.to_str()?.to_owned();
        let digits = name.strip_prefix("nst")?;
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let word = |file: &str| machine.word(&folder.join("device").join(file));
        let node = machine.at(format!("/dev/{name}"));
        is_plain.then(|| TapeDeviceAnswer {
            vendor: word("vendor"),
            product: word("model"),
            firmware: word("rev"),
            refused: refused(&node),
            name,
        })
    };
    folders.iter().filter_map(drive).take(DEVICES_MAX).collect()
}

/// Why the permissions of a node do not let this user read and write it.
fn refused(node: &Path) -> Option<String> {
    let error = rustix::fs::access(node, Access::READ_OK | Access::WRITE_OK).err()?;
    Some(without_error_numbers(&with_causes(&std::io::Error::from(error))).to_string())
}

/// Disks and arrays; no loop devices, memory, or mapped devices, whose names can be private.
pub(super) fn block_devices(machine: &Machine) -> Vec<BlockDeviceAnswer> {
    let folders = machine.entries(&machine.at("/sys/block"));
    let device = |folder: &std::path::PathBuf| {
        let name = folder.file_name()?.to_str()?.to_owned();
        let left_out = ["loop", "ram", "zram", "dm-", "md_"];
        if left_out.iter().any(|prefix| name.starts_with(prefix)) {
            return None;
        }
        let word = |file: &str| machine.word(&folder.join(file));
        let number = |file: &str| word(file)?.parse::<u64>().ok();
        let model = machine.text(&folder.join("device/model")).map(|text| text.trim().to_owned());
        Some(BlockDeviceAnswer {
            // A target in software calls its units what its administrator calls them.
            model: model.filter(|model| {
                !model.is_empty() && !is_named_by_hand(word("device/vendor").as_deref())
            }),
            // In sectors of 512 bytes, whatever the sectors of the device are.
            bytes: number("size").map(|sectors| sectors.saturating_mul(512)),
            rotational: number("queue/rotational").map(|rotational| rotational != 0),
            scheduler: machine
                .text(&folder.join("queue/scheduler"))
                .map(|text| storage::settings::chosen(text.trim()).to_owned()),
            read_ahead_bytes: number("queue/read_ahead_kb").map(|kib| kib.saturating_mul(1024)),
            largest_request_bytes: number("queue/max_sectors_kb")
                .map(|kib| kib.saturating_mul(1024)),
            name,
        })
    };
    folders.iter().filter_map(device).take(DEVICES_MAX).collect()
}

/// Vendors whose models are what an administrator calls a unit.
fn is_named_by_hand(vendor: Option<&str>) -> bool {
    let by_hand = ["LIO-ORG", "SCST", "Areca"];
    vendor.is_some_and(|vendor| by_hand.iter().any(|name| vendor.starts_with(name)))
}

/// What is mounted, by kind, without those that only the kernel fills.
pub(super) fn file_systems(machine: &Machine, names: Names) -> Vec<FileSystemAnswer> {
    let text = machine.bytes(&machine.at("/proc/self/mountinfo")).unwrap_or_default();
    let mut kinds: BTreeMap<String, FileSystemAnswer> = BTreeMap::new();
    for mount in machine::mounts::parse(&text) {
        if IN_THE_KERNEL.contains(&mount.kind.as_str()) {
            continue;
        }
        // Behind `fuse.` is any word, such as the name of a file.
        let is_named = (mount.kind.starts_with("fuse.") || mount.kind.starts_with("fuseblk."))
            && !KNOWN_FUSE.contains(&mount.kind.as_str());
        let kind = if is_named && names == Names::LeftOut { "fuse" } else { mount.kind.as_str() };
        let found = kinds.entry(kind.to_owned()).or_insert_with(|| FileSystemAnswer {
            kind: kind.to_owned(),
            count: 0,
            mounted_at: Vec::new(),
        });
        found.count += 1;
        if names == Names::Shown && found.mounted_at.len() < POINTS_MAX {
            found.mounted_at.push(escape_path(&mount.point).to_string());
        }
    }
    kinds.into_values().collect()
}

const KNOWN_FUSE: [&str; 8] = [
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.glusterfs",
    "fuse.mergerfs",
    "fuse.ceph-fuse",
    "fuse.takeup",
    "fuse.lxcfs",
];

const IN_THE_KERNEL: [&str; 17] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "mqueue",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "configfs",
    "fusectl",
    "hugetlbfs",
    "autofs",
    "binfmt_misc",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let machine = Machine::recorded(folder.path()).unwrap();
        (folder, machine)
    }

    #[test]
    fn drives_by_their_plain_names() {
        let (_folder, machine) = machine(&[
            ("sys/class/scsi_tape/nst0/device/vendor", "HP      \n"),
            ("sys/class/scsi_tape/nst0/device/model", "Ultrium 6-SCSI  \n"),
            ("sys/class/scsi_tape/nst0/device/rev", "35GD\n"),
            ("sys/class/scsi_tape/nst0a/device/rev", "35GD\n"),
            ("sys/class/scsi_tape/st0/device/rev", "35GD\n"),
        ]);
        let drives = tape_drives(&machine);
        assert_eq!(drives.len(), 1, "{drives:?}");
        assert_eq!(drives[0].name, "nst0");
        assert_eq!(drives[0].firmware.as_deref(), Some("35GD"));
        assert!(drives[0].refused.as_deref().is_some_and(|why| why.contains("no such file")));
    }

    #[test]
    fn disks_without_those_that_have_names_of_users() {
        let (_folder, machine) = machine(&[
            ("sys/block/sda/size", "2000\n"),
            ("sys/block/sda/device/model", "FAST DISK 9  \n"),
            ("sys/block/sda/queue/rotational", "1\n"),
            ("sys/block/sda/queue/scheduler", "none [mq-deadline]\n"),
            ("sys/block/sda/queue/read_ahead_kb", "128\n"),
            ("sys/block/dm-0/size", "8\n"),
            ("sys/block/loop0/size", "8\n"),
        ]);
        let disks = block_devices(&machine);
        let expected = BlockDeviceAnswer {
            name: "sda".into(),
            model: Some("FAST DISK 9".into()),
            bytes: Some(2000 * 512),
            rotational: Some(true),
            scheduler: Some("mq-deadline".into()),
            read_ahead_bytes: Some(128 << 10),
            largest_request_bytes: None,
        };
        assert_eq!(disks, [expected]);
    }

    #[test]
    fn mount_points_only_where_they_are_asked_for() {
        let mounts = "\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 8:2 / /home/anna rw - ext4 /dev/sda2 rw
23 21 0:5 / /proc rw - proc proc rw
24 21 0:6 / /tmp/x rw - fuse.anna.AppImage x rw
";
        let (_folder, machine) = machine(&[("proc/self/mountinfo", mounts)]);
        let of = |names| {
            let found = file_systems(&machine, names);
            assert_eq!(found.len(), 2);
            assert_eq!(found[1].kind == "fuse", names == Names::LeftOut, "{found:?}");
            (found[0].count, found[0].mounted_at.join(" "))
        };
        assert_eq!(of(Names::LeftOut), (2, String::new()));
        assert_eq!(of(Names::Shown), (2, "/ /home/anna".to_owned()));
    }
}
