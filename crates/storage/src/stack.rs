//! Every layer of the storage below a path, from the file system down to the hardware: its kind,
//! its settings, what sets them, and its persistent names.
//!
//! [`crate::layers`] decides which read-ahead has an effect on files. Values are the kernel's own
//! words. Only files of `/proc`, `/sys`, `/dev`, `/etc` and rules of udev and tuned are opened, so
//! that a recorded [`Machine`] works like this one. Some facts come from programs (`dmsetup`,
//! `zpool`, `vxtunefs`, `smartctl`); without these programs they are unknown.
//!
//! Not here: what is wrong or slow in a stack, see [`crate::findings`].

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

use crate::StorageError;
use crate::layers::{Storage, file_name};
use machine::Machine;
use machine::mounts::{self, Mount};

/// The type of VxFS in the mount table.
const VXFS: &str = "vxfs";

/// Maximum number of layers, more than any stack has; the rest is left out.
const LAYERS_MAX: usize = 512;
/// Maximum depth, for file systems on loop devices on file systems.
const DEPTH_MAX: usize = 48;

/// The kind of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A mounted file system; its type is the fact `type`.
    FileSystem,
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
    /// A SAS disk.
    Sas,
    /// A SATA or PATA disk.
    Ata,
    /// A USB disk.
    Usb,
    /// A SCSI disk with another transport.
    Scsi,
    /// An NVMe namespace.
    Nvme,
    /// One path to a namespace with several (native multipath).
    NvmePath,
    /// A virtual disk that the host provides.
    Virtio,
    /// A Ceph image.
    Rbd,
    /// A disk over the network (NBD).
    Nbd,
    /// Compressed memory.
    Zram,
    /// Any other block device.
    Disk,
}

impl LayerKind {
    /// Whether it is a device that the kernel reaches directly, with no layer below.
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

/// Facts about a layer by name, such as `model` or `target`, in the kernel's words.
pub type Facts = BTreeMap<Cow<'static, str>, String>;

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    pub kind: LayerKind,
    /// The kernel's name of a device, or the mount point of a file system. Unique in a stack.
    pub name: String,
    /// The size of a device.
    pub size_bytes: Option<u64>,
    /// Facts about it.
    pub facts: Facts,
    /// Persistent names: `wwn`, `uuid`.
    pub names: Facts,
    pub settings: BTreeMap<Cow<'static, str>, LayerSetting>,
    /// Members of an array or a pool, or paths of a multipath disk, with their states.
    pub members: Vec<Member>,
    /// The health of a disk, where `smartctl` is installed and permitted.
    pub health: Option<Health>,
    /// Names of the layers directly above.
    pub above: Vec<String>,
    /// Names of the layers directly below.
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

    /// The read-ahead of a VxFS, where known.
    pub fn vxfs_read_ahead(&self) -> Option<VxfsReadAhead> {
        let fact = |name: &str| self.fact(name)?.parse().ok();
        let (read_pref_io, read_nstream) = (fact("read_pref_io")?, fact("read_nstream")?);
        Some(VxfsReadAhead { read_pref_io, read_nstream })
    }

    /// A setting's value as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }
}

/// The path or device to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTarget {
    /// The device number of the file's file system, or of a block device.
    pub number: String,
    /// The path without symbolic links.
    pub path: PathBuf,
    /// Whether it is a block device and not a file on one.
    pub is_device: bool,
}

impl StackTarget {
    /// The target for a path on this machine.
    ///
    /// # Errors
    /// When `stat` fails on the path.
    pub fn of(path: &Path) -> Result<StackTarget, StorageError> {
        let failed = |source| StorageError::Inspect { path: path.to_owned(), source };
        let status = rustix::fs::stat(path).map_err(|error| failed(error.into()))?;
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice;
        let number = if is_device { status.st_rdev } else { status.st_dev };
        let number = format!("{}:{}", major(number), minor(number));
        let path = std::fs::canonicalize(path).map_err(failed)?;
        Ok(StackTarget { number, path, is_device })
    }

    /// The target for a block device by its name, `sda`, with or without a node.
    pub fn of_name(machine: &Machine, name: &Path) -> Option<StackTarget> {
        // The kernel writes `!` where a name has a slash.
        let name = name.strip_prefix("/dev").unwrap_or(name).to_str()?.replace('/', "!");
        // A leading dot could lead out of the folder.
        if name.is_empty() || name.starts_with('.') {
            return None;
        }
        let number = machine.word(&machine.at("sys/class/block").join(&name).join("dev"))?;
        let path = Path::new("/dev").join(name.replace('!', "/"));
        Some(StackTarget { number, path, is_device: true })
    }
}

/// The storage below a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// The layers, each once, before the layers below it.
    pub layers: Vec<Layer>,
    /// Files that this user may not read.
    pub not_readable: Vec<PathBuf>,
    /// Whether layers were left out because there are too many.
    pub is_cut: bool,
}

impl Stack {
    /// The storage of a target on this machine or a recorded one.
    pub fn of(machine: &Machine, place: &StackTarget) -> Stack {
        let (mut layers, acting, is_cut) = drawn(machine, place);
        settings::look(machine, &mut layers, &acting);
        owners::look(machine, &mut layers);
        health::look(machine, &mut layers);
        Stack { layers, not_readable: machine.not_readable(), is_cut }
    }

    /// Names of the block devices of a stack, without reading their settings and health.
    pub fn devices(machine: &Machine, place: &StackTarget) -> Vec<String> {
        let (layers, ..) = drawn(machine, place);
        let is_device =
            |layer: &Layer| !matches!(layer.kind, LayerKind::FileSystem | LayerKind::ZfsPool);
        layers.into_iter().filter(is_device).map(|layer| layer.name).collect()
    }

    /// Whether the disks of a target are known to have no heads: each is a drive of a computer that
    /// is no virtual machine, and says that it does not rotate. The disks of a virtual machine, of
    /// an array and of a network say what somebody has set, so nothing is known of them.
    pub fn is_without_heads(machine: &Machine, place: &StackTarget) -> bool {
        let (layers, _, is_cut) = drawn(machine, place);
        let mut drives = layers.iter().filter(|layer| layer.kind.is_hardware()).peekable();
        let ends_in_drives = layers.iter().all(|layer| {
            !layer.below.is_empty() || layer.kind.is_hardware() || layer.kind == LayerKind::NvmePath
        });
        !is_cut
            && ends_in_drives
            && drives.peek().is_some()
            && is_real(machine)
            && drives.all(|drive| {
                let folder = machine.at("sys/class/block").join(&drive.name);
                let rotational = machine.word(&folder.join("queue/rotational"));
                matches!(drive.kind, LayerKind::Nvme | LayerKind::Ata | LayerKind::Sas)
                    && rotational.as_deref() == Some("0")
            })
    }

    /// A layer by its name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// The layer whose read-ahead has an effect on the files of the target, or on the device.
    pub fn read_ahead(&self) -> Option<&Layer> {
        let acts = |layer: &&Layer| {
            layer.settings.get("read_ahead_kb").is_some_and(|setting| setting.acts)
        };
        self.layers.iter().find(acts)
    }
}

/// Whether it is known to be no virtual machine: the processors of x86 say so (the bit `hypervisor`
/// of CPUID), others do not.
fn is_real(machine: &Machine) -> bool {
    let text = machine.bytes(&machine.at("proc/cpuinfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().all(|flag| flag != "hypervisor"))
}

/// The layers with their links, the read-ahead files that have an effect, and whether layers were
/// left out.
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

/// The next node to visit.
#[derive(Clone, Debug)]
enum Node {
    /// A file system, and whether it is read through the page cache.
    Mounted(Mount, Reads),
    Pool(String),
    /// A block device by its folder in sysfs.
    Device(PathBuf),
}

/// Whether the layer above reads a file system through the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Cached,
    Direct,
}

struct Walk<'a> {
    machine: &'a Machine,
    mounts: Vec<Mount>,
    seen: BTreeSet<String>,
    /// Read-ahead files that have an effect.
    acting: BTreeSet<PathBuf>,
    /// Each layer after all layers below it.
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
                // In another mount namespace, the table may show a different device number.
                mount.device.clone_from(&place.number);
            }
            self.visit(Node::Mounted(mount, Reads::Cached), DEPTH_MAX);
            return;
        }
        // Hidden paths have no device number of their own; find them by name.
        let by_name = || {
            let name = place.path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
            std::fs::canonicalize(sys.join("class/block").join(name)).ok()
        };
        if let Some(device) = device.or_else(by_name) {
            self.visit(Node::Device(device), DEPTH_MAX);
        }
    }

    /// Visits a layer and all layers below it, and returns its name.
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
            // In reverse order, because the whole list is reversed at the end.
            for node in below.into_iter().rev() {
                layer.below.extend(self.visit(node, depth - 1));
            }
            layer.below.reverse();
            layer.below.dedup();
            self.done.push(layer);
        }
        Some(name)
    }

    /// The storage of a mount as [`crate::layers`] sees it.
    fn storage(&self, mount: &Mount) -> Storage {
        let sys = self.machine.at("sys");
        let source = || {
            let source = std::fs::canonicalize(self.machine.at(&mount.source)).ok()?;
            Some(file_name(&source))
        };
        Storage::of_number(&sys, &mount.device, source)
    }

    /// The file system below a path of the machine.
    fn below_path(&self, path: &Path, reads: Reads) -> Option<Node> {
        let mount = mounts::above(&self.mounts, path)?.clone();
        Some(Node::Mounted(mount, reads))
    }
}

#[cfg(test)]
mod tests;
