//! Block devices: the kind of each, and the devices below it, from sysfs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Facts, Layer, LayerKind, Node, Reads, Walk, members, scsi};
use crate::layers::{entries, file_name};

/// The unit of `size` and `start` in sysfs, independent of the block size of the device.
const SECTOR_BYTES: u64 = 512;

impl Walk<'_> {
    pub(super) fn device(&self, folder: &Path) -> (Layer, Vec<Node>) {
        let mut layer = Layer::new(LayerKind::Disk, file_name(folder));
        let sectors = |name: &str| self.machine.text(&folder.join(name))?.parse::<u64>().ok();
        layer.size_bytes = sectors("size").map(|count| count.saturating_mul(SECTOR_BYTES));
        let slaves = entries(&folder.join("slaves"));
        let mut below: Vec<Node> = slaves.iter().cloned().map(Node::Device).collect();
        self.take(&mut layer, folder, &[("alignment_offset", "alignment_offset")]);
        let has = |name: &str| folder.join(name).exists();
        if has("partition") {
            layer.kind = LayerKind::Partition;
            if let Some(start) = sectors("start") {
                let bytes = start.saturating_mul(SECTOR_BYTES);
                layer.facts.insert("start_bytes".into(), bytes.to_string());
            }
            below.extend(folder.parent().map(|disk| Node::Device(disk.to_owned())));
        } else if has("dm") {
            self.device_mapper(&mut layer, folder);
        } else if has("md") {
            self.array(&mut layer, folder);
        } else if has("bcache") && !slaves.is_empty() {
            layer.kind = LayerKind::Bcache;
            let own = [("cache_mode", "bcache/cache_mode"), ("state", "bcache/state")];
            self.take(&mut layer, folder, &own);
        } else if layer.name.starts_with("loop") {
            below.extend(self.loop_device(&mut layer, folder));
        } else if layer.name.starts_with("zram") {
            layer.kind = LayerKind::Zram;
            self.take(&mut layer, folder, &[("algorithm", "comp_algorithm")]);
        } else if layer.name.starts_with("rbd") {
            self.image_of_ceph(&mut layer);
        } else if layer.name.starts_with("nbd") {
            layer.kind = LayerKind::Nbd;
            self.take(&mut layer, folder, &[("client", "pid"), ("backend", "backend")]);
        } else if layer.name.starts_with("nvme") {
            below.extend(self.namespace(&mut layer, folder));
        } else {
            self.disk(&mut layer, folder);
        }
        let links = self.names_by_link(&layer.name, &["by-partuuid", "by-id"]);
        layer.names.extend(links);
        (layer, below)
    }

    /// Reads facts, each from its own file.
    pub(super) fn take(&self, layer: &mut Layer, folder: &Path, files: &[(&'static str, &str)]) {
        for (fact, file) in files {
            if let Some(text) = self.machine.word(&folder.join(file)) {
                layer.facts.insert((*fact).into(), crate::settings::chosen(&text).to_owned());
            }
        }
    }

    fn take_names(&self, names: &mut Facts, folder: &Path, files: &[(&'static str, &str)]) {
        for (name, file) in files {
            if let Some(text) = self.machine.word(&folder.join(file)) {
                names.entry((*name).into()).or_insert(text);
            }
        }
    }

    /// The kind follows from the prefix of the UUID, which the tool that created the device sets
    /// (Documentation/ABI/testing/sysfs-block-dm; libdevmapper).
    fn device_mapper(&self, layer: &mut Layer, folder: &Path) {
        self.take(layer, folder, &[("mapped_name", "dm/name")]);
        self.take_names(&mut layer.names, folder, &[("dm_uuid", "dm/uuid")]);
        let uuid = layer.names.get("dm_uuid").cloned().unwrap_or_default();
        let name = layer.facts.get("mapped_name").cloned().unwrap_or_default();
        layer.kind = match uuid.split('-').next() {
            Some("LVM") => LayerKind::Lvm,
            Some("mpath") => LayerKind::Multipath,
            Some("CRYPT") => {
                let how = uuid.split('-').nth(1).unwrap_or_default().to_owned();
                layer.facts.insert("encryption".into(), how);
                LayerKind::Crypt
            }
            Some(part) if part.starts_with("part") && uuid.contains("mpath-") => {
                LayerKind::Partition
            }
            _ => LayerKind::DeviceMapper,
        };
        if layer.kind == LayerKind::Lvm
            && let Some((group, volume)) = group_and_volume(&name)
        {
            layer.facts.insert("volume_group".into(), group);
            layer.facts.insert("volume".into(), volume);
        }
        if layer.kind == LayerKind::Multipath {
            let paths: Vec<String> =
                entries(&folder.join("slaves")).iter().map(|path| file_name(path)).collect();
            layer.members = members::of_multipath(self.machine, &name, &paths);
        }
    }

    fn array(&self, layer: &mut Layer, folder: &Path) {
        layer.kind = LayerKind::Md;
        let own = [
            ("level", "md/level"),
            ("disks", "md/raid_disks"),
            ("state", "md/array_state"),
            ("missing", "md/degraded"),
            ("work", "md/sync_action"),
            ("work_done", "md/sync_completed"),
            ("chunk_bytes", "md/chunk_size"),
            ("metadata", "md/metadata_version"),
        ];
        self.take(layer, folder, &own);
        self.take_names(&mut layer.names, folder, &[("uuid", "md/uuid")]);
        // An array without metadata has a UUID of zeros.
        layer.names.retain(|_, name| name.bytes().any(|it| it != b'0' && it != b'-'));
        layer.members = members::of_array(self.machine, folder);
    }

    /// A loop device, and the file system of its file.
    fn loop_device(&self, layer: &mut Layer, folder: &Path) -> Option<Node> {
        layer.kind = LayerKind::Loop;
        let own = [
            ("backing_file", "loop/backing_file"),
            ("offset_bytes", "loop/offset"),
            ("direct_io", "loop/dio"),
        ];
        self.take(layer, folder, &own);
        let file = layer.fact("backing_file")?;
        // For a removed file, the kernel shows the old path.
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        let path = PathBuf::from(file);
        let is_direct = layer.fact("direct_io") == Some("1");
        let reads = if is_direct { Reads::Direct } else { Reads::Cached };
        let place = self.machine.at(&path);
        // If the file is a device node, that device is the layer below.
        if path.starts_with("/dev")
            && let Ok(device) = std::fs::canonicalize(&place)
            && let Ok(folder) =
                std::fs::canonicalize(self.machine.at("sys/class/block").join(file_name(&device)))
        {
            return Some(Node::Device(folder));
        }
        self.backing_file_system(&layer.name, &path, reads)
    }

    /// The file system of the file of a loop device. The path is valid for the process that
    /// attached it: with another root, or under a mount that is gone, it may be another file or
    /// none. The kernel knows the device number of the file system.
    fn backing_file_system(&self, name: &str, path: &Path, reads: Reads) -> Option<Node> {
        let device = format!("/dev/{name}");
        let asked = ["--noheadings", "--output", "BACK-MAJ:MIN", &device];
        let told = self.machine.answer("losetup", &asked);
        let number = told.map(|text| text.trim().to_owned()).filter(|text| text.contains(':'));
        let here = std::fs::metadata(self.machine.at(path)).ok().map(|found| {
            let device = found.dev();
            format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
        });
        match number {
            Some(number) if here.as_ref() != Some(&number) => {
                if let Some(mount) = self.mounts.iter().rfind(|mount| mount.device == number) {
                    return Some(Node::Mounted(mount.clone(), reads));
                }
                let device = self.machine.at("sys/dev/block").join(number);
                std::fs::canonicalize(device).ok().map(Node::Device)
            }
            // A recorded machine does not contain the files themselves.
            None if here.is_none() && !self.machine.is_recorded() => None,
            _ => self.below_path(path, reads),
        }
    }

    /// `/sys/bus/rbd/devices/N` (Documentation/ABI/testing/sysfs-bus-rbd).
    fn image_of_ceph(&self, layer: &mut Layer) {
        layer.kind = LayerKind::Rbd;
        let number = layer.name.trim_start_matches("rbd").to_owned();
        let folder = self.machine.at("sys/bus/rbd/devices").join(number);
        let own = [("pool", "pool"), ("image", "name"), ("snapshot", "current_snap")];
        self.take(layer, &folder, &own);
        let names = [("cluster", "cluster_fsid"), ("image_id", "image_id")];
        self.take_names(&mut layer.names, &folder, &names);
    }

    /// A namespace, or a path to one. With native multipath the namespace belongs to a subsystem,
    /// and each controller has a hidden disk as a path to it: `nvme0c0n1` and `nvme0c1n1` lead to
    /// `nvme0n1` (drivers/nvme/host/multipath.c).
    fn namespace(&self, layer: &mut Layer, folder: &Path) -> Vec<Node> {
        let name = layer.name.clone();
        layer.kind =
            if hidden_path(&name).is_some() { LayerKind::NvmePath } else { LayerKind::Nvme };
        let own = [("wwn", "wwid"), ("uuid", "uuid")];
        self.take_names(&mut layer.names, folder, &own);
        let own = [
            ("model", "device/model"),
            ("serial", "device/serial"),
            ("firmware", "device/firmware_rev"),
            ("transport", "device/transport"),
            ("address", "device/address"),
            ("state", "device/state"),
            ("policy", "device/iopolicy"),
            ("subsystem", "device/subsysnqn"),
            ("access", "ana_state"),
        ];
        self.take(layer, folder, &own);
        let Ok(subsystem) = std::fs::canonicalize(folder.join("device")) else { return Vec::new() };
        let mut paths = Vec::new();
        for controller in entries(&subsystem).iter().filter(|it| it.join("transport").exists()) {
            for path in entries(controller) {
                let path_name = file_name(&path);
                if layer.kind == LayerKind::Nvme
                    && hidden_path(&path_name).as_deref() == Some(name.as_str())
                {
                    layer.members.push(self.path_of(path_name, controller, &path));
                    paths.push(Node::Device(path));
                }
            }
        }
        paths
    }

    fn path_of(&self, name: String, controller: &Path, path: &Path) -> members::Member {
        let word = |place: PathBuf| self.machine.word(&place);
        let controller = word(controller.join("state")).unwrap_or_else(|| "not known".to_owned());
        let access = word(path.join("ana_state"));
        let lost = ["inaccessible", "persistent-loss", "change"];
        let is_lost = access.as_deref().is_some_and(|state| lost.contains(&state));
        let state = match access {
            Some(access) => format!("{controller}, {access}"),
            None => controller.clone(),
        };
        members::Member { name, state, works: controller == "live" && !is_lost }
    }

    /// A disk that a driver reaches directly.
    fn disk(&self, layer: &mut Layer, folder: &Path) {
        let own = [
            ("vendor", "device/vendor"),
            ("model", "device/model"),
            ("firmware", "device/rev"),
            ("state", "device/state"),
            ("serial", "serial"),
        ];
        self.take(layer, folder, &own);
        self.take_names(&mut layer.names, folder, &[("wwn", "device/wwid")]);
        let driver = std::fs::canonicalize(folder.join("device/driver"));
        let driver = driver.map(|driver| file_name(&driver)).unwrap_or_default();
        if driver == "virtio_blk" {
            layer.kind = LayerKind::Virtio;
            // This is the vendor number on the virtio bus, not of the disk.
            layer.facts.remove("vendor");
        } else if folder.join("device/scsi_level").exists() {
            scsi::look(self.machine, layer, folder);
        }
        if !driver.is_empty() {
            layer.facts.insert("driver".into(), driver);
        }
    }
}

/// The namespace of a hidden path: `nvme0n1` for `nvme0c1n1`.
fn hidden_path(name: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let (subsystem, rest) = name.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    let all = [subsystem, controller, namespace];
    all.iter().all(|it| is_number(it)).then(|| format!("nvme{subsystem}n{namespace}"))
}

/// Volume group and volume in a device-mapper name: a hyphen separates them, and hyphens within the
/// names are doubled (lvm2, `dm_split_lvm_name`).
fn group_and_volume(name: &str) -> Option<(String, String)> {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'-' {
            if bytes.get(at + 1) != Some(&b'-') {
                let plain = |text: &str| text.replace("--", "-");
                return Some((plain(&name[..at]), plain(&name[at + 1..])));
            }
            at += 1;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others() {
        let named = |name| group_and_volume(name).map(|(a, b)| format!("{a} {b}"));
        assert_eq!(named("vg0-data").as_deref(), Some("vg0 data"));
        assert_eq!(named("a--b-c--d").as_deref(), Some("a-b c-d"));
        assert_eq!(named("none--at--all"), None);
        assert_eq!(named(""), None);
        assert_eq!(hidden_path("nvme0c1n1").as_deref(), Some("nvme0n1"));
        assert_eq!(hidden_path("nvme10c2n33").as_deref(), Some("nvme10n33"));
        for plain in ["nvme0n1", "nvme0n1p1", "nvmec0n1", "sda", "nvme0c1n"] {
            assert_eq!(hidden_path(plain), None, "{plain}");
        }
    }
}
