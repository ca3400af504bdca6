//! File systems and pools.

use std::path::Path;

use super::members::Member;
use super::vxfs::VxfsReadAhead;
use super::{Layer, LayerKind, Node, Reads, VXFS, Walk};
use crate::layers::{self, file_name};
use machine::mounts::Mount;

/// Maximum number of folders of an overlay that are followed.
const LOWER_MAX: usize = 64;
/// Options of a network mount that affect its speed or name its server.
const SHARE_OPTIONS: &[(&str, &str)] = &[
    ("vers", "version"),
    ("addr", "address"),
    ("proto", "protocol"),
    ("rsize", "rsize"),
    ("wsize", "wsize"),
    ("nconnect", "nconnect"),
];

impl Walk<'_> {
    pub(super) fn file_system(&self, mount: &Mount) -> (Layer, Vec<Node>) {
        let name = mount.point.to_string_lossy().into_owned();
        let mut layer = Layer::new(LayerKind::FileSystem, name);
        let source = mount.source.to_string_lossy().into_owned();
        layer.facts.insert("type".into(), mount.kind.clone());
        layer.facts.insert("source".into(), source.clone());
        layer.facts.insert("options".into(), mount.options.clone());
        layer.facts.insert("file_system_options".into(), mount.file_system_options.clone());
        layer.facts.insert("number".into(), mount.device.clone());
        let below = match mount.kind.as_str() {
            "zfs" => {
                let pool = source.split('/').next().unwrap_or_default().to_owned();
                vec![Node::Pool(pool)]
            }
            "overlay" => self.overlay(mount),
            "btrfs" => self.btrfs(mount, &mut layer),
            VXFS => {
                if let Some(told) = VxfsReadAhead::look(self.machine, &layer.name) {
                    layer.facts.insert("read_pref_io".into(), told.read_pref_io.to_string());
                    layer.facts.insert("read_nstream".into(), told.read_nstream.to_string());
                }
                self.own_device(mount)
            }
            kind if kind == "nfs" || kind == "nfs4" || kind == "cifs" || kind == "smb3" => {
                for (option, fact) in SHARE_OPTIONS {
                    if let Some(value) = mount.file_system_option(option) {
                        layer.facts.insert((*fact).into(), value.to_owned());
                    }
                }
                Vec::new()
            }
            _ => self.own_device(mount),
        };
        if let [Node::Device(folder)] = &below[..] {
            for (fact, value) in self.names_by_link(&file_name(folder), &["by-uuid", "by-label"]) {
                layer.names.insert(fact, value);
            }
        }
        (layer, below)
    }

    fn own_device(&self, mount: &Mount) -> Vec<Node> {
        let folder = self.machine.at("sys/dev/block").join(&mount.device);
        std::fs::canonicalize(folder).map(Node::Device).into_iter().collect()
    }

    fn btrfs(&self, mount: &Mount, layer: &mut Layer) -> Vec<Node> {
        let source = std::fs::canonicalize(self.machine.at(&mount.source));
        let device = source.map(|source| file_name(&source)).unwrap_or_default();
        let Some((folder, devices)) = layers::btrfs_folder(&self.machine.at("sys"), &device) else {
            return self.own_device(mount);
        };
        layer.names.insert("uuid".into(), file_name(&folder));
        if let Some(label) = self.machine.word(&folder.join("label")) {
            layer.names.insert("label".into(), label);
        }
        for (fact, place) in [("data", "allocation/data"), ("metadata", "allocation/metadata")] {
            let entries = self.machine.entries(&folder.join(place));
            let profiles: Vec<String> =
                entries.iter().filter(|entry| entry.is_dir()).map(|it| file_name(it)).collect();
            if !profiles.is_empty() {
                layer.facts.insert(fact.into(), profiles.join(", "));
            }
        }
        for entry in self.machine.entries(&folder.join("devinfo")) {
            if self.machine.text(&entry.join("missing")).as_deref() == Some("1") {
                let name = format!("device {}", file_name(&entry));
                layer.members.push(Member { name, state: "missing".to_owned(), works: false });
            }
        }
        devices.into_iter().map(Node::Device).collect()
    }

    /// The layers of an overlay, as far as they are visible from here.
    fn overlay(&self, mount: &Mount) -> Vec<Node> {
        let upper = mount.file_system_option("upperdir");
        let lower = mount.file_system_option("lowerdir").unwrap_or_default();
        let folders = upper.into_iter().chain(lower.split(':')).take(LOWER_MAX);
        let mut found: Vec<Mount> = Vec::new();
        for folder in folders.filter(|folder| self.machine.at(folder).is_dir()) {
            // In a container the names are those of the host, and can lead back to the overlay.
            if let Some(Node::Mounted(below, _)) = self.below_path(Path::new(folder), Reads::Cached)
                && below != *mount
                && !found.contains(&below)
            {
                found.push(below);
            }
        }
        found.into_iter().map(|mount| Node::Mounted(mount, Reads::Cached)).collect()
    }

    pub(super) fn pool(&self, name: String) -> (Layer, Vec<Node>) {
        let state = self.machine.at("proc/spl/kstat/zfs").join(&name).join("state");
        let answer = self.machine.answer("zpool", &["list", "-vHPL", &name]);
        let mut layer = Layer::new(LayerKind::ZfsPool, name);
        if let Some(state) = self.machine.word(&state) {
            layer.facts.insert("state".into(), state);
        }
        let mut below = Vec::new();
        for (device, state) in answer.iter().flat_map(|text| pool_devices(text)) {
            let works = state == "ONLINE" || state == "-";
            layer.members.push(Member { name: device.clone(), state, works });
            let device = std::fs::canonicalize(self.machine.at(&device)).map(|it| file_name(&it));
            let folder = device.map(|device| self.machine.at("sys/class/block").join(device));
            below.extend(folder.and_then(std::fs::canonicalize).map(Node::Device));
        }
        (layer, below)
    }
}

/// Devices and their states in the output of `zpool list -vHPL`: lines of the pool and its parts,
/// tabs between the columns, devices by their paths.
fn pool_devices(text: &str) -> Vec<(String, String)> {
    let states = ["ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL"];
    let device = |line: &str| {
        let mut fields = line.split('\t').map(str::trim).filter(|field| !field.is_empty());
        let name = fields.next().filter(|name| name.starts_with('/'))?;
        let state = fields.find(|field| states.contains(field)).unwrap_or("-");
        Some((name.to_owned(), state.to_owned()))
    };
    text.lines().filter_map(device).collect()
}
