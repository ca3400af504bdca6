//! The devices that a request names, and those below them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use machine::counters::disk;
use storage::StorageError;
use storage::layers::Storage;
use storage::stack::{Stack, StackTarget};
use watch::live::WatchedDevices;
use watch::tapes;

use crate::failure::Failure;

/// The name of the tape drive of a device node.
pub fn drive_of(path: &str) -> Option<String> {
    let name = plain_name(OsStr::new(path));
    (path.starts_with("/dev/") && tapes::is_drive(&name)).then_some(name)
}

/// The kernel's name for a name or a node; for any node of a tape drive, the name of the drive.
pub(super) fn plain_name(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let name = text.strip_prefix("/dev/").unwrap_or(&text);
    let drive = name.strip_prefix('n').filter(|name| tapes::is_drive(name));
    drive.unwrap_or(name).to_owned()
}

/// The devices to watch for the named ones; all if none is named.
///
/// # Errors
/// When there is no such device, or no device below a path.
pub fn watched(devices: &[PathBuf]) -> Result<WatchedDevices, Failure> {
    if devices.is_empty() {
        return Ok(WatchedDevices::All);
    }
    let rows = disk::rows_now().map_err(|error| Failure::new(&error, None))?;
    let drives = tapes::below(Path::new("/sys"));
    let mut names = BTreeSet::new();
    for device in devices {
        let name = plain_name(device.as_os_str());
        if drives.contains_key(&name) {
            names.insert(name);
            continue;
        }
        match rows.iter().find(|row| row.name == name) {
            // Hidden paths have the number 0:0, and no devices below.
            Some(row) if row.number == (0, 0) => names.extend([name]),
            Some(row) => {
                let number = format!("{}:{}", row.number.0, row.number.1);
                names.extend([name]);
                names.extend(layers(&Storage::of_number(Path::new("/sys"), &number, || None)));
            }
            None => names.extend(below_path(device)?),
        }
    }
    Ok(WatchedDevices::Named(names))
}

/// The block devices below a path.
fn below_path(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = path.display();
    let storage = Storage::of(path).map_err(|error| match &error {
        StorageError::Inspect { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            not_there(path)
        }
        _ => Failure::new(&error, None),
    })?;
    if path.metadata().is_ok_and(|it| it.file_type().is_char_device()) {
        let hint = "the only character devices supported are `st` tape drives";
        return Err(Failure::of(format!("{shown} is not a block device"), Some(hint)));
    }
    let mut names: Vec<String> = layers(&storage).collect();
    // If the device number of a file system leads nowhere, its mount does: for a ZFS pool, or the
    // layers of an overlay.
    if names.is_empty()
        && let Ok(place) = StackTarget::of(path)
    {
        let devices = Stack::devices(&machine::Machine::this(), &place);
        names.extend(devices.iter().map(|name| name.replace('!', "/")));
    }
    if names.is_empty() {
        let message = format!("there is no block device below {shown}");
        let hint = "name a path on a local disk: file systems in memory, over the network or in \
                    user space have no block device";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(names)
}

fn not_there(path: &Path) -> Failure {
    let shown = path.display();
    let devices = "run `ls /sys/class/block` to list the block devices";
    if path == Path::new("") {
        return Failure::of("the name of a device is empty".to_owned(), Some(devices));
    }
    // As in `iostat -x 1`.
    if let Some(seconds) = path.to_str().filter(|text| text.parse::<f64>().is_ok()) {
        let hint = format!("use --interval {seconds}s for the time between two readings");
        return Failure::of(format!("there is no block device {shown}"), Some(&hint));
    }
    if path.starts_with("/dev") || path.parent() == Some(Path::new("")) {
        return Failure::of(format!("there is no block device {shown}"), Some(devices));
    }
    let hint = "name a device (sda), a node below /dev, or an existing path";
    Failure::of(format!("there is no file or folder {shown}"), Some(hint))
}

/// Names of all layers in the form of the counters.
fn layers(storage: &Storage) -> impl Iterator<Item = String> {
    storage.layers.iter().map(|layer| layer.name.replace('!', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_meant_as_an_interval() {
        let text = watched(&[PathBuf::from("5")]).unwrap_err().to_text();
        assert!(text.ends_with("hint: use --interval 5s for the time between two readings\n"));
        let text = watched(&[PathBuf::from("sdnone")]).unwrap_err().to_text();
        assert!(text.contains("ls /sys/class/block"), "{text}");
    }

    #[test]
    fn all_ways_to_a_drive_are_the_drive() {
        for (argument, name) in [
            ("/dev/nst0", "st0"),
            ("st12", "st12"),
            ("nst3", "st3"),
            ("nsto", "nsto"),
            ("nst", "nst"),
        ] {
            assert_eq!(plain_name(OsStr::new(argument)), name, "{argument}");
        }
    }
}
