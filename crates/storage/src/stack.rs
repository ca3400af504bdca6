//! Every layer of the storage below a path, from the file system down to the hardware: what it is,
//! how it is set, who sets it, and by which names it is found again.
//!
//! Which read-ahead acts on files is [`crate::layers`]' answer. Values are the kernel's own words.
//! Nothing is opened but files of `/proc`, `/sys`, `/dev`, `/etc` and rules of udev and tuned, so
//! that a recorded [`Machine`] is looked at as this one is. A few things only programs tell
//! (`dmsetup`, `zpool`, `vxtunefs`, `smartctl`); without them these are not known.
//!
//! Not here: what of it matters, which is in [`crate::findings`].

mod block;
mod file_system;
mod glob;
mod health;
mod members;
mod names;
mod owners;
mod scsi;
mod settings;
mod udev;
mod vxfs;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, major, minor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use health::Health;
pub use members::Member;
pub use owners::Owner;
pub(crate) use owners::of_device as owners_of_device;
pub use settings::LayerSetting;
pub use vxfs::VxfsReadAhead;

use crate::layers::{Storage, StorageError, file_name};
use machine::Machine;
use machine::mounts::{self, Mount};

/// VxFS by the name that it is mounted by.
const VXFS: &str = "vxfs";

/// No stack has more layers; what is below is left out.
const LAYERS_MAX: usize = 512;
/// Nor is one deeper: file systems on loop devices on file systems.
const DEPTH_MAX: usize = 48;

/// What a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A file system that is mounted; the fact `type` says which.
    FileSystem,
    /// A pool of ZFS.
    ZfsPool,
    /// A partition of a disk.
    Partition,
    /// A logical volume of LVM.
    Lvm,
    /// An encrypted device (dm-crypt).
    Crypt,
    /// Several paths to one disk (dm-multipath).
    Multipath,
    /// Anything else of the device mapper.
    DeviceMapper,
    /// An array of md.
    Md,
    /// A device with a cache (bcache).
    Bcache,
    /// A file as a device.
    Loop,
    /// A disk over iSCSI.
    Iscsi,
    /// A disk over Fibre Channel.
    FibreChannel,
    /// A disk at SAS.
    Sas,
    /// A disk at SATA or its forerunner.
    Ata,
    /// A disk at USB.
    Usb,
    /// A disk that speaks SCSI over something else.
    Scsi,
    /// A namespace of NVMe.
    Nvme,
    /// One path to a namespace that has several (native multipath).
    NvmePath,
    /// A disk of the host that a guest runs on.
    Virtio,
    /// An image of Ceph.
    Rbd,
    /// A disk over the network (NBD).
    Nbd,
    /// Memory that is compressed.
    Zram,
    /// Any other block device.
    Disk,
}

impl LayerKind {
    /// Whether it is a device that the kernel reaches by a transport of its own, below which there
    /// is nothing.
    pub fn is_hardware(self) -> bool {
        matches!(
            self,
            LayerKind::Iscsi
                | LayerKind::FibreChannel
                | LayerKind::Sas
                | LayerKind::Ata
                | LayerKind::Usb
                | LayerKind::Scsi
                | LayerKind::Nvme
                | LayerKind::Virtio
                | LayerKind::Rbd
                | LayerKind::Nbd
                | LayerKind::Disk
        )
    }
}

/// What is told of a layer, by name: `model`, `target`; in the kernel's words.
pub type Facts = BTreeMap<Cow<'static, str>, String>;

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// What it is.
    pub kind: LayerKind,
    /// The kernel's name of a device; of a file system where it is mounted. No two layers of a
    /// stack share one.
    pub name: String,
    /// Its length, of a device.
    pub size_bytes: Option<u64>,
    /// What is told of it.
    pub facts: Facts,
    /// Names that stay when disks are found in another order: `wwn`, `uuid`.
    pub names: Facts,
    /// Settings, by name.
    pub settings: BTreeMap<Cow<'static, str>, LayerSetting>,
    /// Members of an array or a pool, paths of a disk that has several, with their states.
    pub members: Vec<Member>,
    /// What a disk says of its own health, where `smartctl` is there and may ask.
    pub health: Option<Health>,
    /// What lies directly on it, by name.
    pub above: Vec<String>,
    /// What it lies on.
    pub below: Vec<String>,
}

impl Layer {
    fn new(kind: LayerKind, name: String) -> Layer {
        Layer {
            kind,
            name,
            size_bytes: None,
            facts: Facts::new(),
            names: Facts::new(),
            settings: BTreeMap::new(),
            members: Vec::new(),
            health: None,
            above: Vec::new(),
            below: Vec::new(),
        }
    }

    /// A fact, where it is known.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// A setting's value in force, where it is known.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|setting| setting.value.as_str())
    }

    /// How a VxFS reads ahead, where that is known.
    pub fn vxfs_read_ahead(&self) -> Option<VxfsReadAhead> {
        let fact = |name: &str| self.fact(name)?.parse().ok();
        let (read_pref_io, read_nstream) = (fact("read_pref_io")?, fact("read_nstream")?);
        Some(VxfsReadAhead { read_pref_io, read_nstream })
    }

    /// The same as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTarget {
    /// The device number that a file lies on, or that a block device has.
    pub number: String,
    /// The path without symbolic links.
    pub path: PathBuf,
    /// Whether it is a block device itself and not a file on one.
    pub is_device: bool,
}

impl StackTarget {
    /// The place of a path on this machine.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn of(path: &Path) -> Result<StackTarget, StorageError> {
        let failed = |source| StorageError { path: path.to_owned(), source };
        let status = rustix::fs::stat(path).map_err(|error| failed(error.into()))?;
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice;
        let number = if is_device { status.st_rdev } else { status.st_dev };
        let number = format!("{}:{}", major(number), minor(number));
        let path = std::fs::canonicalize(path).map_err(failed)?;
        Ok(StackTarget { number, path, is_device })
    }

    /// The place of a block device by its name, `sda`, whether it has a node or not.
    pub fn of_name(machine: &Machine, name: &Path) -> Option<StackTarget> {
        // The kernel writes `!` where a name has a slash.
        let name = name.strip_prefix("/dev").unwrap_or(name).to_str()?.replace('/', "!");
        // Dots lead out of the list of names.
        if name.is_empty() || name.starts_with('.') {
            return None;
        }
        let number = machine.word(&machine.at("sys/class/block").join(&name).join("dev"))?;
        let path = Path::new("/dev").join(name.replace('!', "/"));
        Some(StackTarget { number, path, is_device: true })
    }
}

/// The storage below a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// The layers, each once, before all that it lies on.
    pub layers: Vec<Layer>,
    /// What this user may not read of them.
    pub not_readable: Vec<PathBuf>,
    /// Whether there is more than is told.
    pub is_cut: bool,
}

impl Stack {
    /// The storage of a place on this machine, or on one that was recorded.
    pub fn of(machine: &Machine, place: &StackTarget) -> Stack {
        let (mut layers, acting, is_cut) = drawn(machine, place);
        settings::look(machine, &mut layers, &acting);
        owners::look(machine, &mut layers);
        health::look(machine, &mut layers);
        Stack { layers, not_readable: machine.not_readable(), is_cut }
    }

    /// Names of the block devices of a stack, without a look at their settings and their health.
    pub fn devices(machine: &Machine, place: &StackTarget) -> Vec<String> {
        let (layers, ..) = drawn(machine, place);
        let is_device =
            |layer: &Layer| !matches!(layer.kind, LayerKind::FileSystem | LayerKind::ZfsPool);
        layers.into_iter().filter(is_device).map(|layer| layer.name).collect()
    }

    /// A layer by its name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// The layer whose read-ahead acts on the files of the place, or on the device.
    pub fn read_ahead(&self) -> Option<&Layer> {
        let acts = |layer: &&Layer| {
            layer.settings.get("read_ahead_kb").is_some_and(|setting| setting.acts)
        };
        self.layers.iter().find(acts)
    }
}

/// The layers and what lies on what, the settings whose read-ahead acts, and whether there is more.
fn drawn(machine: &Machine, place: &StackTarget) -> (Vec<Layer>, BTreeSet<PathBuf>, bool) {
    let text = machine.bytes(&machine.at("proc/self/mountinfo")).unwrap_or_default();
    let mut walk = Walk {
        machine,
        mounts: mounts::parse(&text),
        seen: BTreeSet::new(),
        acting: BTreeSet::new(),
        done: Vec::new(),
        is_cut: false,
    };
    walk.begin(place);
    let mut layers = walk.done;
    layers.reverse();
    for upper in 0..layers.len() {
        let name = layers[upper].name.clone();
        for lower in layers[upper].below.clone() {
            if let Some(layer) = layers.iter_mut().find(|layer| layer.name == lower) {
                layer.above.push(name.clone());
            }
        }
    }
    (layers, walk.acting, walk.is_cut)
}

/// What is visited next.
#[derive(Clone, Debug)]
enum Node {
    /// A file system, and whether it is read through the page cache.
    Mounted(Mount, Reads),
    Pool(String),
    /// A block device by its folder in sysfs.
    Device(PathBuf),
}

/// Whether what lies on a file system reads it through the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Cached,
    Direct,
}

struct Walk<'a> {
    machine: &'a Machine,
    mounts: Vec<Mount>,
    seen: BTreeSet<String>,
    /// Files of read-ahead that act.
    acting: BTreeSet<PathBuf>,
    /// Each layer behind all that it lies on.
    done: Vec<Layer>,
    is_cut: bool,
}

impl Walk<'_> {
    fn begin(&mut self, place: &StackTarget) {
        let sys = self.machine.at("sys");
        let device = std::fs::canonicalize(sys.join("dev/block").join(&place.number)).ok();
        if place.is_device {
            let storage = Storage::of_number(&sys, &place.number, || None);
            self.acting.extend(storage.read_ahead);
        } else if let Some(mut mount) = mounts::above(&self.mounts, &place.path).cloned() {
            if device.is_some() {
                // A mount of another name space may hide the file system's own.
                mount.device.clone_from(&place.number);
            }
            self.visit(Node::Mounted(mount, Reads::Cached), DEPTH_MAX);
            return;
        }
        // Hidden paths share the number of nobody, and are found by their name.
        let by_name = || {
            let name = place.path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
            std::fs::canonicalize(sys.join("class/block").join(name)).ok()
        };
        if let Some(device) = device.or_else(by_name) {
            self.visit(Node::Device(device), DEPTH_MAX);
        }
    }

    /// Looks at a layer and at all below it; its name.
    fn visit(&mut self, node: Node, depth: usize) -> Option<String> {
        if let Node::Mounted(mount, Reads::Cached) = &node
            && mount.kind != VXFS
        {
            let read_ahead = self.storage(mount).read_ahead;
            self.acting.extend(read_ahead);
        }
        let name = match &node {
            Node::Mounted(mount, _) => mount.point.to_string_lossy().into_owned(),
            Node::Pool(name) => name.clone(),
            Node::Device(folder) => file_name(folder),
        };
        if !self.seen.contains(&name) {
            if depth == 0 || self.seen.len() >= LAYERS_MAX {
                self.is_cut = true;
                return None;
            }
            self.seen.insert(name.clone());
            let (mut layer, below) = match node {
                Node::Mounted(mount, _) => self.file_system(&mount),
                Node::Pool(name) => self.pool(name),
                Node::Device(folder) => self.device(&folder),
            };
            // Read from the last one on, since the whole is turned round in the end.
            for node in below.into_iter().rev() {
                layer.below.extend(self.visit(node, depth - 1));
            }
            layer.below.reverse();
            layer.below.dedup();
            self.done.push(layer);
        }
        Some(name)
    }

    /// The storage of a mount as all others see it.
    fn storage(&self, mount: &Mount) -> Storage {
        let sys = self.machine.at("sys");
        let source = || {
            let source = std::fs::canonicalize(self.machine.at(&mount.source)).ok()?;
            Some(file_name(&source))
        };
        Storage::of_number(&sys, &mount.device, source)
    }

    /// The file system that a path of the machine lies on.
    fn below_path(&self, path: &Path, reads: Reads) -> Option<Node> {
        let mount = mounts::above(&self.mounts, path)?.clone();
        Some(Node::Mounted(mount, reads))
    }
}

#[cfg(test)]
mod tests;
