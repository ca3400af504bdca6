//! Settings of a device's queue, read by `cat` or written by `echo`, and limits of tape drives.

use super::number::decimal;
use super::{Before, Met};
use crate::piece::{Setting, What};

/// The setting that a command asks for, whose value is the next line.
pub(super) fn asked(line: &str) -> Option<(String, String)> {
    device_and_name(line.strip_prefix("cat ")?.trim())
}

/// The setting that a command writes, by `>` or by `tee`.
pub(super) fn set(line: &str, machine: &str) -> Option<Setting> {
    let rest = line.strip_prefix("echo ")?;
    let (value, path) = match rest.split_once('|') {
        Some((value, tee)) => {
            let tee = tee.trim();
            (value, tee.strip_prefix("sudo ").unwrap_or(tee).strip_prefix("tee ")?)
        }
        None => rest.split_once('>')?,
    };
    let (device, name) = device_and_name(path.trim())?;
    let value = value.trim().trim_matches(['"', '\'']).to_owned();
    Some(Setting { device, name, value, is_set: true, machine: machine.to_owned() })
}

/// `/sys/block/DEVICE/queue/NAME`.
fn device_and_name(path: &str) -> Option<(String, String)> {
    let (device, name) = path.strip_prefix("/sys/block/")?.split_once("/queue/")?;
    let is_one = |it: &str| !it.is_empty() && !it.contains(['/', ' ', '*', '{', '[', '?', '$']);
    (is_one(device) && is_one(name)).then(|| (device.to_owned(), name.to_owned()))
}

pub(super) fn value(text: &str, before: &mut Before) -> Met {
    let line = text.trim();
    if let Some((device, name)) = before.asked.take() {
        let (value, machine) = (line.to_owned(), before.machine.clone());
        let setting = Setting { device, name, value, is_set: false, machine };
        return Met::Whole(What::Setting(setting));
    }
    // The kernel's line, and that of tapeinfo.
    let limits = line.split_once("Block limits ").and_then(|(_, it)| it.split_once(" - "));
    let kernel = limits.and_then(|(_, it)| it.strip_suffix(" bytes."));
    let told = line.strip_prefix("MaxBlock:").map(str::trim).or(kernel);
    match told.and_then(decimal) {
        Some(bytes) => Met::Whole(What::BlockLimits { bytes_max: bytes as u64 }),
        None if line.starts_with("MinBlock:") => Met::Whole(What::Passed),
        None => Met::Nothing,
    }
}
