//! Conditions of a run besides its cell: kernel, device, settings, versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use machine::Machine;
use storage::layers::Storage;
use storage::settings::keep::{keeper, lasting_name};
use storage::settings::{Setting, SettingKind, chosen};

/// Settings of a block device's queue that change results.
const QUEUE_SETTINGS: &[&str] = &[
    "scheduler",
    "max_sectors_kb",
    "nr_requests",
    "nomerges",
    "rotational",
    "read_ahead_kb",
    "write_cache",
];

/// The kernel's setting of when to give huge pages.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Devices of the balloon driver, which also reports free pages to the host.
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";

/// `VIRTIO_BALLOON_F_REPORTING`: features are shown as digits, the lowest bit first.
const REPORTING_BIT: usize = 5;

/// Host, kernel, processors and this program.
pub fn of_this_machine() -> BTreeMap<String, String> {
    let system = rustix::system::uname();
    let cores = flow::crew::cores();
    let found = [
        ("host", system.nodename().to_string_lossy().into_owned()),
        ("kernel", system.release().to_string_lossy().into_owned()),
        ("machine", system.machine().to_string_lossy().into_owned()),
        ("cores", cores.to_string()),
        ("takeup", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    found.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Kernel, processors, this program, and the device behind a path.
pub fn of(path: &Path, device: &Storage) -> BTreeMap<String, String> {
    let mut found = of_this_machine();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            found.insert(name.to_owned(), value);
        }
    };
    put("path", path.display().to_string());
    let lasting = lasting_name(Path::new("/dev/disk/by-id"), path);
    put(LASTING_PATH, lasting.map_or(String::new(), |name| name.display().to_string()));
    put("huge pages", huge_page_setting().unwrap_or_default());
    let reported = if is_memory_given_back() { "given back to the host" } else { "" };
    put("free memory", reported.to_owned());
    put("device", device.name.clone());
    put("disks", device.disks().join(" "));
    let queues = device.disk_queues();
    let disk = |queue: &PathBuf| Some(queue.parent()?.file_name()?.to_string_lossy().into_owned());
    put("queues", queues.iter().filter_map(disk).collect::<Vec<String>>().join(" "));
    for name in QUEUE_SETTINGS {
        put(&format!("queue {name}"), device.queue_setting(name).unwrap_or_default());
    }
    if let Some(queue) = &device.queue {
        for name in ["model", "vendor", "rev", "firmware_rev"] {
            let read = fs::read_to_string(queue.join("../device").join(name));
            put(&format!("device {name}"), read.unwrap_or_default().trim().to_owned());
        }
    }
    found
}

/// When the kernel gives huge pages: `always`, `madvise` or `never`.
pub fn huge_page_setting() -> Option<String> {
    let text = fs::read_to_string(HUGE_PAGES).ok()?;
    Some(chosen(text.trim()).to_owned())
}

/// Whether this machine gives free memory back to a host.
pub fn is_memory_given_back() -> bool {
    let Ok(entries) = fs::read_dir(BALLOONS) else { return false };
    let mut features =
        entries.flatten().filter_map(|entry| fs::read(entry.path().join("features")).ok());
    features.any(|features| features.get(REPORTING_BIT) == Some(&b'1'))
}

/// The name under which the persistent path of a device is recorded.
pub const LASTING_PATH: &str = "path by id";

/// What keeps a setting of this kind over a restart, with the name under which it is recorded. Of
/// several disks it is the one that nothing keeps, or that another program than udev keeps. The
/// look-up takes milliseconds and is done once for all runs.
pub fn of_restart(kind: SettingKind, settings: &[Setting]) -> Option<(String, String)> {
    let machine = Machine::this();
    let words = settings.iter().map(|setting| keeper(&machine, setting).words());
    let found = words.max_by_key(|words| match words.as_str() {
        "udev" => 0,
        words if storage::settings::keep::why_not_kept(words).is_none() => 1,
        _ => 2,
    })?;
    Some((kept_by(kind.file_name()), found))
}

/// The name under which the keeper of a setting is recorded.
pub fn kept_by(setting: &str) -> String {
    format!("restart {setting}")
}
