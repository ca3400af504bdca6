//! How a setting survives a restart: by a udev rule for a device with a persistent name, or by the
//! configuration of a program that sets it after udev (tuned, multipathd, lvm, NFS).
//!
//! udev sets a value when a device appears. If another program sets it later, a rule cannot keep
//! it. Takeup then shows the line for the configuration of that program, and does not write it:
//! that file belongs to the administrator. A device without a persistent name cannot be kept.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::changes::SettingsChange;
use super::device::{Device, KnownBy};
use super::{Setting, SettingKind};
use crate::stack::{Owner, owners_of_device};
use machine::Machine;
use machine::mounts::{self, Mount};

/// The file of rules; its number sorts it after the rules of other programs.
pub const RULES: &str = "/etc/udev/rules.d/99-takeup.rules";

/// A setting to keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Keep {
    /// The present name of the device.
    pub device: String,
    pub kind: SettingKind,
    pub value: String,
    /// What keeps it.
    #[serde(flatten)]
    pub keeper: Keeper,
    /// Other rules that set it when the device appears, before ours.
    pub also: Vec<Owner>,
}

/// What keeps a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Keeper {
    /// A udev rule: `device` is the condition that matches only this device.
    Udev {
        /// Parts of a rule.
        device: String,
    },
    /// A program that sets it after udev.
    Named {
        /// `tuned`, `multipath.conf`, `lvm`, `nfs.conf`, `tmpfiles.d`.
        who: &'static str,
        /// The file, or the command.
        place: String,
        /// The line that the place needs.
        line: String,
    },
    /// Nothing keeps it.
    Nothing { why: &'static str },
}

/// What keeps the settings of changes, with the last value of each, in the order of setting.
pub fn keeps(machine: &Machine, changes: &[SettingsChange]) -> Vec<Keep> {
    let mut set: Vec<(&Device, SettingKind, &str)> = Vec::new();
    for changed in changes.iter().flat_map(|change| &change.settings) {
        let Some(value) = &changed.set else { continue };
        let is_same = |it: &&mut (&Device, SettingKind, &str)| {
            it.1 == changed.kind
                && (&it.0.known_by, &it.0.name) == (&changed.device.known_by, &changed.device.name)
        };
        match set.iter_mut().find(is_same) {
            Some(known) => known.2 = value,
            None => set.push((&changed.device, changed.kind, value)),
        }
    }
    set.sort_by_key(|(device, kind, _)| (&device.name, *kind));
    let text = machine.bytes(&machine.at("proc/self/mountinfo")).unwrap_or_default();
    let mounts = mounts::parse(&text);
    set.into_iter()
        .map(|(device, kind, value)| keep(machine, &mounts, device, kind, value))
        .collect()
}

impl Keeper {
    /// The keeper in words, for a record of a measurement: `udev`, the program that sets it, or
    /// `nothing` with the reason.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Keeper::Udev { .. } => BY_RULE.to_owned(),
            Keeper::Named { who, .. } => (*who).to_owned(),
            Keeper::Nothing { why } => format!("{BY_NOTHING}{why}"),
        }
    }
}

const BY_RULE: &str = "udev";
const BY_NOTHING: &str = "nothing: ";

/// The reason why nothing keeps a setting, from the words of its keeper.
#[must_use]
pub fn why_not_kept(words: &str) -> Option<&str> {
    words.strip_prefix(BY_NOTHING)
}

/// What would keep a setting over a restart, independent of its value.
#[must_use]
pub fn keeper(machine: &Machine, setting: &Setting) -> Keeper {
    let text = machine.bytes(&machine.at("proc/self/mountinfo")).unwrap_or_default();
    let mounts = mounts::parse(&text);
    match Device::of(&machine.at("sys"), setting, &mounts) {
        Some(device) => keep(machine, &mounts, &device, setting.kind, "").keeper,
        None => Keeper::Nothing { why: "the device is gone" },
    }
}

/// The persistent name of a block device: the link in `by_id` (`/dev/disk/by-id`) that leads to the
/// same device as `path`. `None` if there is no link, or the file is not a block device.
#[must_use]
pub fn lasting_name(by_id: &Path, path: &Path) -> Option<PathBuf> {
    let own = path.canonicalize().ok()?;
    if !std::fs::metadata(&own).ok()?.file_type().is_block_device() {
        return None;
    }
    lasting_link(by_id, &own)
}

fn lasting_link(by_id: &Path, own: &Path) -> Option<PathBuf> {
    // The most specific first, as in `PROPERTIES`.
    const SURE: [&str; 5] = ["dm-uuid-", "md-uuid-", "wwn-", "nvme-eui.", "nvme-uuid."];
    let links = std::fs::read_dir(by_id).ok()?.flatten().map(|entry| entry.path());
    let mut links: Vec<PathBuf> =
        links.filter(|link| link.canonicalize().is_ok_and(|target| target == own)).collect();
    links.sort_by_key(|link| {
        let name = crate::layers::file_name(link).to_owned();
        (SURE.iter().position(|sure| name.starts_with(sure)).unwrap_or(SURE.len()), name)
    });
    links.into_iter().next()
}

/// The text of the file of rules; `None` if no rule keeps anything.
pub fn rules(keeps: &[Keep]) -> Option<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for keep in keeps {
        let Keeper::Udev { device } = &keep.keeper else { continue };
        let set = format!(", ATTR{{queue/{}}}=\"{}\"", keep.kind.file_name(), keep.value);
        match lines.iter_mut().find(|(of, _)| of == device) {
            // udev sets attributes in the order of the rule: limits first, read-ahead last.
            Some((_, sets)) => sets.push_str(&set),
            None => lines.push((device, set)),
        }
    }
    if lines.is_empty() {
        return None;
    }
    let line = |(device, sets): &(&str, String)| {
        format!("ACTION==\"add|change\", SUBSYSTEM==\"block\", {device}{sets}\n")
    };
    let head =
        "# Written by `takeup tune persist`; to remove it: `takeup tune persist --remove`.\n";
    Some(head.to_owned() + &lines.iter().map(line).collect::<String>())
}

fn keep(
    machine: &Machine,
    mounts: &[Mount],
    device: &Device,
    kind: SettingKind,
    value: &str,
) -> Keep {
    let whole = |name: &str, keeper, also| {
        let value = value.to_owned();
        Keep { device: name.to_owned(), kind, value, keeper, also }
    };
    let Some(setting) = device.find(&machine.at("sys"), kind, mounts) else {
        let why = "the device is gone";
        return whole(&device.name, Keeper::Nothing { why }, Vec::new());
    };
    let folder = setting.path.parent().unwrap_or(Path::new("/"));
    if !folder.ends_with("queue") {
        return whole(&device.name, of_file_system(mounts, &device.known_by, value), Vec::new());
    }
    let folder = folder.parent().unwrap_or(folder);
    let name = crate::layers::file_name(folder).replace('!', "/");
    let mut also = owners_of_device(machine, folder, kind.file_name());
    also.retain(|owner| owner.place.as_deref().is_none_or(|it| !it.starts_with(RULES)));
    let keeper = of_device(machine, folder, kind, value, &also);
    let is_named = matches!(keeper, Keeper::Named { .. });
    whole(&name, keeper, if is_named { Vec::new() } else { also })
}

/// File systems without a block device: udev has no persistent name for them.
fn of_file_system(mounts: &[Mount], known_by: &KnownBy, kib: &str) -> Keeper {
    match known_by {
        KnownBy::Btrfs(uuid) => Keeper::Named {
            who: "tmpfiles.d",
            place: "/etc/tmpfiles.d/read-ahead.conf, for file systems mounted at boot".to_owned(),
            line: format!("w /sys/fs/btrfs/{uuid}/bdi/read_ahead_kb - - - - {kib}"),
        },
        KnownBy::Mounted(kind, source) if kind.starts_with("nfs") => {
            let is_it = |mount: &&Mount| mount.kind == *kind && mount.source == Path::new(source);
            let point = mounts.iter().rev().find(is_it).map(|mount| mount.point.display());
            Keeper::Named {
                who: "nfs.conf",
                place: "/etc/nfs.conf, section [nfsrahead]".to_owned(),
                line: point.map_or(format!("{kind}={kib}"), |point| format!("{point}={kib}")),
            }
        }
        KnownBy::Mounted(kind, _) if kind.starts_with("fuse") => {
            Keeper::Nothing { why: "the FUSE server sets it at every mount" }
        }
        _ => Keeper::Nothing { why: "the file system has no persistent name" },
    }
}

fn of_device(
    machine: &Machine,
    folder: &Path,
    kind: SettingKind,
    value: &str,
    owners: &[Owner],
) -> Keeper {
    let word = |name: &str| machine.word(&folder.join(name));
    if folder.join("loop").exists() || crate::layers::file_name(folder).starts_with("loop") {
        let why = "a loop device gets default settings each time it is attached";
        return Keeper::Nothing { why };
    }
    if let Some(owner) = owners.iter().find(|owner| owner.by == "tuned") {
        let name = if kind == SettingKind::ReadAhead { "readahead" } else { "elevator" };
        return Keeper::Named {
            who: "tuned",
            place: owner.place.clone().unwrap_or_default(),
            line: format!("{name}={value}"),
        };
    }
    let uuid = word("dm/uuid").unwrap_or_default();
    match (uuid.split_once('-'), kind) {
        (Some(("mpath", wwid)), SettingKind::MaxSectors) => {
            return Keeper::Named {
                who: "multipath.conf",
                place: "/etc/multipath.conf, applied when the paths appear".to_owned(),
                line: format!(
                    "multipaths {{ multipath {{ wwid \"{wwid}\" max_sectors_kb {value} }} }}"
                ),
            };
        }
        (Some(("LVM", _)), SettingKind::ReadAhead) => {
            let name = word("dm/name").unwrap_or_default();
            let sectors = value.parse::<u64>().unwrap_or(0) * 2;
            return Keeper::Named {
                who: "lvm",
                place: "the volume itself, applied when lvm activates it".to_owned(),
                line: format!("lvchange --readahead {sectors} /dev/mapper/{name}"),
            };
        }
        _ => {}
    }
    match condition(machine, folder) {
        Some(device) => Keeper::Udev { device },
        None => Keeper::Nothing { why: "the device has no WWN, serial number or UUID" },
    }
}

/// udev properties that identify a device, the most specific first. Several units of one array
/// share `ID_WWN` (NAA 6), so the one with the extension comes before it.
const PROPERTIES: [&str; 5] =
    ["DM_UUID", "MD_UUID", "ID_WWN_WITH_EXTENSION", "ID_SERIAL", "ID_WWN"];

/// The condition that matches the device: a property in udev's database, or else a file in sysfs.
fn condition(machine: &Machine, folder: &Path) -> Option<String> {
    let number = machine.word(&folder.join("dev"))?;
    let noted = machine.text(&machine.at(format!("run/udev/data/b{number}"))).unwrap_or_default();
    let property = |name: &&str| {
        let prefix = format!("E:{name}=");
        let value = noted.lines().find_map(|line| line.strip_prefix(&prefix))?;
        (!value.is_empty()).then(|| format!("ENV{{{name}}}==\"{}\"", literal(value)))
    };
    let device = PROPERTIES.iter().find_map(property).or_else(|| {
        // `ATTRS` also matches parent devices: a SCSI disk has its names there.
        let files = [
            ("dm/uuid", "ATTR{dm/uuid}"),
            ("md/uuid", "ATTR{md/uuid}"),
            ("wwid", "ATTR{wwid}"),
            ("device/wwid", "ATTRS{wwid}"),
            ("serial", "ATTR{serial}"),
            ("device/serial", "ATTRS{serial}"),
        ];
        files.iter().find_map(|(file, key)| {
            let value = machine.word(&folder.join(file))?;
            Some(format!("{key}==\"{}\"", literal(&value)))
        })
    })?;
    // Partitions have the same properties as their disk.
    Some(format!("ENV{{DEVTYPE}}==\"disk\", {device}"))
}

/// A value in a rule: characters that are patterns or would end the value become `?` (udev(7)).
fn literal(value: &str) -> String {
    let plain = |letter: char| match letter {
        '*' | '?' | '[' | ']' | '|' | '"' | '\\' => '?',
        other if other.is_control() => '?',
        other => other,
    };
    value.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::changes::Changed;

    /// What keeps these settings of a recorded machine with extra files.
    fn kept(
        name: &str,
        besides: &[(&str, &str)],
        settings: &[(&str, SettingKind, &str)],
    ) -> Vec<Keep> {
        let folder = tempfile::tempdir().unwrap();
        testkit::samples::unpack_machine(&testkit::samples::machine(name), folder.path()).unwrap();
        for (path, text) in besides {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let machine = Machine::recorded(folder.path()).unwrap();
        let sys = machine.at("sys");
        let mounts =
            mounts::parse(&machine.bytes(&machine.at("proc/self/mountinfo")).unwrap_or_default());
        let changed = |(device, kind, value): &(&str, SettingKind, &str)| {
            let setting = if device.contains(':') {
                Setting::read_ahead(&sys.join("class/bdi").join(device).join("read_ahead_kb"))
            } else {
                let folder = std::fs::canonicalize(sys.join("class/block").join(device)).unwrap();
                Setting::of_queue(*kind, &folder.join("queue"))
            };
            let device = Device::of(&sys, &setting, &mounts).unwrap();
            let (kind, set) = (*kind, Some((*value).to_owned()));
            Changed { kind, device, before: "1".to_owned(), set }
        };
        let change = SettingsChange {
            for_path: "/srv".to_owned(),
            made_unix_seconds: 1,
            boot: None,
            trial: None,
            settings: settings.iter().map(changed).collect(),
        };
        keeps(&machine, &[change])
    }

    fn told(keeps: &[Keep]) -> Vec<String> {
        let one = |keep: &Keep| {
            let keeper = match &keep.keeper {
                Keeper::Udev { device } => format!("udev: {device}"),
                Keeper::Named { who, place, line } => format!("{who}: {place}: {line}"),
                Keeper::Nothing { why } => format!("nothing: {why}"),
            };
            format!("{} {} {}", keep.device, keep.kind.file_name(), keeper)
        };
        keeps.iter().map(one).collect()
    }

    #[test]
    fn disks_of_sas_are_kept_by_what_stays_and_what_tuned_sets_by_tuned() {
        let keeps = kept(
            "sas-disks",
            &[],
            &[
                ("sda", SettingKind::ReadAhead, "1024"),
                ("sda", SettingKind::MaxSectors, "512"),
                ("sda", SettingKind::Requests, "64"),
            ],
        );
        let profile = "/usr/lib/tuned/profiles/throughput-performance/tuned.conf:2";
        let expected = [
            "sda max_sectors_kb udev: ENV{DEVTYPE}==\"disk\", ATTRS{wwid}==\
             \"naa.5000c500a1b2c3d4\""
                .to_owned(),
            "sda nr_requests udev: ENV{DEVTYPE}==\"disk\", ATTRS{wwid}==\"naa.5000c500a1b2c3d4\""
                .to_owned(),
            format!("sda read_ahead_kb tuned: {profile}: readahead=1024"),
        ];
        assert_eq!(told(&keeps), expected);
        let text = rules(&keeps).unwrap();
        let rule = "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", \
                    ATTRS{wwid}==\"naa.5000c500a1b2c3d4\", ATTR{queue/max_sectors_kb}=\"512\", \
                    ATTR{queue/nr_requests}=\"64\"\n";
        assert!(text.starts_with('#') && text.ends_with(rule), "{text}");
    }

    /// The keeper predicted before a change is the one shown after it.
    #[test]
    fn what_would_keep_a_setting_is_what_keeps_it() {
        let words = |name: &str, device: &str, kind: SettingKind| {
            let folder = tempfile::tempdir().unwrap();
            testkit::samples::unpack_machine(&testkit::samples::machine(name), folder.path())
                .unwrap();
            let machine = Machine::recorded(folder.path()).unwrap();
            let class = machine.at("sys").join("class/block").join(device);
            let queue = std::fs::canonicalize(class).unwrap().join("queue");
            keeper(&machine, &Setting::of_queue(kind, &queue)).words()
        };
        assert_eq!(words("sas-disks", "sda", SettingKind::Requests), "udev");
        assert_eq!(words("sas-disks", "sda", SettingKind::ReadAhead), "tuned");
        assert_eq!(words("san", "dm-0", SettingKind::MaxSectors), "multipath.conf");
        let of_loop = words("loop-on-virtio", "loop0", SettingKind::ReadAhead);
        let why = why_not_kept(&of_loop).unwrap();
        assert!(why.starts_with("a loop device gets default settings"), "{why}");
        assert_eq!(why_not_kept("udev"), None);
    }

    #[test]
    fn a_device_has_a_name_that_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (by_id, disk) = (folder.path().join("by-id"), folder.path().join("sdb"));
        std::fs::create_dir(&by_id).unwrap();
        for name in ["sdb", "sdc"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let link = |name: &str, to: &str| {
            std::os::unix::fs::symlink(folder.path().join(to), by_id.join(name)).unwrap();
        };
        assert_eq!(lasting_link(&by_id, &disk), None);
        link("wwn-0x1", "sdc");
        link("ata-disk_of_2", "sdb");
        assert_eq!(lasting_link(&by_id, &disk), Some(by_id.join("ata-disk_of_2")));
        link("wwn-0x2", "sdb");
        assert_eq!(lasting_link(&by_id, &disk), Some(by_id.join("wwn-0x2")));
        // A regular file has no other name.
        assert_eq!(lasting_name(&by_id, &disk), None);
    }

    /// udev's database comes before files in sysfs, and a WWN that several units share is not used.
    #[test]
    fn udev_knows_a_device_by_its_properties() {
        let noted = "S:disk/by-id/x\nE:ID_WWN=0x6001405123456789\n\
                     E:ID_WWN_WITH_EXTENSION=0x600140512345678901234567890abcde\nE:ID_SERIAL=36\n";
        let keeps =
            kept("san", &[("run/udev/data/b8:16", noted)], &[("sdb", SettingKind::NoMerges, "2")]);
        let expected = "sdb nomerges udev: ENV{DEVTYPE}==\"disk\", \
                        ENV{ID_WWN_WITH_EXTENSION}==\"0x600140512345678901234567890abcde\"";
        assert_eq!(told(&keeps), [expected]);
        let noted = "E:ID_SERIAL=a*b\"c\n";
        let keeps =
            kept("san", &[("run/udev/data/b8:16", noted)], &[("sdb", SettingKind::NoMerges, "2")]);
        assert!(told(&keeps)[0].ends_with("ENV{ID_SERIAL}==\"a?b?c\""), "{keeps:?}");
    }

    #[test]
    fn multipath_and_lvm_keep_what_they_set_themselves() {
        let san = [
            ("dm-0", SettingKind::MaxSectors, "256"),
            ("dm-0", SettingKind::Scheduler, "none"),
            ("dm-2", SettingKind::ReadAhead, "1024"),
        ];
        let keeps = kept("san", &[], &san);
        let wwid = "3600140512345678901234567890abcde";
        let disk = "ENV{DEVTYPE}==\"disk\"";
        assert_eq!(
            told(&keeps),
            [
                format!("dm-0 scheduler udev: {disk}, ATTR{{dm/uuid}}==\"mpath-{wwid}\""),
                format!(
                    "dm-0 max_sectors_kb multipath.conf: /etc/multipath.conf, applied when the \
                     paths appear: multipaths {{ multipath {{ wwid \"{wwid}\" max_sectors_kb \
                     256 }} }}"
                ),
                "dm-2 read_ahead_kb udev: ENV{DEVTYPE}==\"disk\", ATTR{dm/uuid}==\
                 \"CRYPT-LUKS2-0a1b2c3d4e5f60718293a4b5c6d7e8f9-luks-db\""
                    .to_owned(),
            ]
        );
        let other = [("etc/tuned/active_profile", "none-there")];
        let keeps = kept("sas-disks", &other, &[("dm-1", SettingKind::ReadAhead, "1024")]);
        let line = "lvchange --readahead 2048 /dev/mapper/vg0-my--data";
        assert!(told(&keeps)[0].contains("dm-1 read_ahead_kb lvm: "), "{keeps:?}");
        assert!(told(&keeps)[0].ends_with(line), "{keeps:?}");
        assert_eq!(rules(&keeps), None);
    }

    #[test]
    fn a_loop_device_and_a_slot_are_not_kept() {
        let keeps = kept("loop-on-virtio", &[], &[("loop0", SettingKind::ReadAhead, "64")]);
        assert!(
            told(&keeps)[0].contains("nothing: a loop device gets default settings"),
            "{keeps:?}"
        );
        let serial = "sys/class/block/vda/serial";
        let keeps = kept("loop-on-virtio", &[], &[("vda", SettingKind::ReadAhead, "64")]);
        assert!(told(&keeps)[0].ends_with("ATTR{serial}==\"disk-1\""), "{keeps:?}");
        let keeps =
            kept("loop-on-virtio", &[(serial, "\n")], &[("vda", SettingKind::ReadAhead, "64")]);
        let expected = "vda read_ahead_kb nothing: the device has no WWN, serial number or UUID";
        assert_eq!(told(&keeps), [expected]);
    }

    #[test]
    fn shares_are_kept_by_their_own_configuration() {
        let mounted = "41 22 0:50 / /srv/share rw - nfs4 host:/export rw\n\
                       42 22 0:51 / /mnt/own rw - fuse.own own rw\n";
        let besides = [
            ("proc/self/mountinfo", mounted),
            ("sys/class/bdi/0:50/read_ahead_kb", "128\n"),
            ("sys/class/bdi/0:51/read_ahead_kb", "128\n"),
        ];
        let settings =
            [("0:50", SettingKind::ReadAhead, "1024"), ("0:51", SettingKind::ReadAhead, "1024")];
        let keeps = kept("loop-on-virtio", &besides, &settings);
        let line = "nfs.conf: /etc/nfs.conf, section [nfsrahead]: /srv/share=1024";
        assert_eq!(told(&keeps)[0], format!("0:50 read_ahead_kb {line}"));
        assert!(told(&keeps)[1].contains("0:51 read_ahead_kb nothing: the FUSE server sets"));
    }

    #[test]
    fn what_would_end_a_rule_stands_for_any_character() {
        assert_eq!(literal("WDC [a]*\"b\\\u{7}\n\u{9f}|c"), "WDC ?a???b?????c");
    }

    #[test]
    fn the_name_of_a_disk_that_stays_is_the_surest_link_to_it() {
        testkit::require!(Root);
        use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let by_id = folder.path().join("by-id");
        std::fs::create_dir(&by_id).unwrap();
        for name in ["sda", "sdb"] {
            // Never opened.
            let mode = Mode::from_raw_mode(0o600);
            let path = folder.path().join(name);
            mknodat(CWD, &path, FileType::BlockDevice, mode, makedev(1, 0)).unwrap();
        }
        std::fs::write(folder.path().join("file"), "").unwrap();
        for (link, to) in
            [("ata-WDC", "sda"), ("wwn-0x5", "sda"), ("wwn-0x4", "sdb"), ("f", "file")]
        {
            std::os::unix::fs::symlink(folder.path().join(to), by_id.join(link)).unwrap();
        }
        let name = |of: &str| lasting_name(&by_id, &folder.path().join(of));
        assert_eq!(name("sda"), Some(by_id.join("wwn-0x5")));
        assert_eq!(name("by-id/ata-WDC"), Some(by_id.join("wwn-0x5")));
        assert_eq!(name("sdb"), Some(by_id.join("wwn-0x4")));
        assert_eq!((name("file"), name("missing")), (None, None));
    }
}
