//! Settings of each layer, and whether they act there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Layer, LayerKind, Owner};
use crate::layers::file_name;
use crate::queue;
use crate::settings::chosen;
use machine::Machine;

/// A setting of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerSetting {
    /// The value in force, as the kernel shows it.
    pub value: String,
    pub path: PathBuf,
    /// Whether it has an effect on I/O from above in this stack. Read-ahead has an effect in one
    /// place for each file system. Ordering and merging have an effect where bios become requests;
    /// most devices on other devices pass bios on.
    pub acts: bool,
    /// The largest value that the device accepts, where it reports one.
    pub limit: Option<String>,
    /// What sets it, as far as Takeup can find out.
    pub owners: Vec<Owner>,
}

/// Where a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acts {
    /// At every layer that has it.
    Everywhere,
    /// Where a device has a queue of requests.
    Requests,
    /// There, and where bios are split before they are passed on.
    Cutting,
    /// There, but not on the paths of a multipath device, which get finished requests.
    Ordering,
    /// Where files are read.
    ReadAhead,
    /// Where the kernel checks it before it counts.
    Counting,
}

/// Settings in the folder of the queue: name, where it has an effect, the file with its limit.
const QUEUE: &[(&str, Acts, Option<&str>)] = &[
    ("scheduler", Acts::Ordering, None),
    ("read_ahead_kb", Acts::ReadAhead, None),
    ("max_sectors_kb", Acts::Cutting, Some("max_hw_sectors_kb")),
    ("nr_requests", Acts::Requests, None),
    ("nomerges", Acts::Ordering, None),
    ("wbt_lat_usec", Acts::Ordering, None),
    ("write_cache", Acts::Everywhere, None),
    ("discard_max_bytes", Acts::Everywhere, Some("discard_max_hw_bytes")),
    ("discard_granularity", Acts::Everywhere, None),
    ("rotational", Acts::Everywhere, None),
    ("iostats", Acts::Counting, None),
    ("optimal_io_size", Acts::Everywhere, None),
    ("minimum_io_size", Acts::Everywhere, None),
    ("logical_block_size", Acts::Everywhere, None),
    ("physical_block_size", Acts::Everywhere, None),
];

pub(super) fn look(machine: &Machine, layers: &mut [Layer], acting: &BTreeSet<PathBuf>) {
    let orders: BTreeSet<String> = layers
        .iter()
        .filter(|layer| {
            layer.kind == LayerKind::Multipath && has_requests(machine, &folder(machine, layer))
        })
        .flat_map(|layer| layer.below.iter().cloned())
        .collect();
    for layer in layers.iter_mut() {
        match layer.kind {
            LayerKind::FileSystem => own_read_ahead(machine, layer, acting),
            LayerKind::ZfsPool => {}
            // A kernel partition has the settings of its disk.
            _ => {
                let is_path = orders.contains(&layer.name);
                let folder = folder(machine, layer);
                layer.settings = of_device(machine, layer.kind, &folder, is_path, acting);
                if has_requests(machine, &folder) {
                    let queues = machine.entries(&folder.join("mq")).len();
                    // Old queues of requests have none.
                    if queues > 0 {
                        layer.facts.insert("hardware_queues".into(), queues.to_string());
                    }
                }
            }
        }
    }
}

/// The folder of a device.
pub(super) fn folder(machine: &Machine, layer: &Layer) -> PathBuf {
    let entry = machine.at("sys/class/block").join(&layer.name);
    fs::canonicalize(&entry).unwrap_or(entry)
}

/// As [`queue::Queue::has_requests`].
fn has_requests(machine: &Machine, folder: &Path) -> bool {
    let scheduler = machine.word(&folder.join("queue/scheduler"));
    folder.join("mq").is_dir() || scheduler.is_some_and(|text| chosen(&text) != "none")
}

fn of_device(
    machine: &Machine,
    kind: LayerKind,
    folder: &Path,
    is_path: bool,
    acting: &BTreeSet<PathBuf>,
) -> BTreeMap<Cow<'static, str>, LayerSetting> {
    let requests = has_requests(machine, folder);
    let mut settings = BTreeMap::new();
    let own = folder.join("queue");
    for (name, where_it_acts, limit) in QUEUE {
        let path = own.join(name);
        let Some(text) = machine.word(&path) else { continue };
        let acts = match where_it_acts {
            Acts::Everywhere => true,
            Acts::Requests => requests,
            Acts::Cutting => requests || matches!(kind, LayerKind::Md | LayerKind::Nvme),
            Acts::Ordering => requests && !is_path,
            Acts::ReadAhead => acting.contains(&path),
            Acts::Counting => queue::heeds_iostats(&file_name(folder), requests.into()),
        };
        let setting = LayerSetting {
            value: chosen(&text).to_owned(),
            path: machine.shown(&path),
            acts,
            limit: limit.and_then(|limit| machine.word(&own.join(limit))),
            owners: Vec::new(),
        };
        settings.insert((*name).into(), setting);
    }
    let depth = folder.join("device/queue_depth");
    if let Some(value) = machine.word(&depth) {
        let path = machine.shown(&depth);
        let setting = LayerSetting { value, path, acts: true, limit: None, owners: Vec::new() };
        settings.insert("queue_depth".into(), setting);
    }
    settings
}

/// The read-ahead of a file system that does not use the one of its device.
fn own_read_ahead(machine: &Machine, layer: &mut Layer, acting: &BTreeSet<PathBuf>) {
    let number = layer.fact("number").unwrap_or_default();
    let by_number = machine.at("sys/class/bdi").join(number).join("read_ahead_kb");
    let uuid = layer.names.get("uuid").cloned().unwrap_or_default();
    let by_uuid = machine.at("sys/fs/btrfs").join(uuid).join("bdi/read_ahead_kb");
    for path in [by_number, by_uuid].into_iter().filter(|path| acting.contains(path)) {
        if let Some(value) = machine.word(&path) {
            let path = machine.shown(&path);
            let setting = LayerSetting { value, path, acts: true, limit: None, owners: Vec::new() };
            layer.settings.insert("read_ahead_kb".into(), setting);
        }
    }
}
