//! What `tapeinfo` and `sg_logs` say of a tape drive: block size, density, buffer, compression,
//! TapeAlert.

use super::{Before, Met};
use crate::piece::{Switch, TapeStatus, What};

pub(super) fn line(text: &str, before: &mut Before) -> Met {
    let line = text.trim();
    if line.ends_with(']') && line.contains(" page ") {
        before.in_alerts = line.starts_with("Tape alert page");
        return Met::Nothing;
    }
    let Some((name, value)) = line.split_once(':') else { return Met::Nothing };
    let value = value.trim();
    if name.starts_with("TapeAlert[") {
        // Behind the name of the flag stands what it means.
        let alert = value.split_once(':').map(|(name, _)| name.trim().to_owned());
        return Met::of(alert.map(|name| What::TapeStatus(TapeStatus::Alert(name))));
    }
    before.in_alerts &= is_flag(name);
    if before.in_alerts {
        return match value {
            "0" => Met::Whole(What::Passed),
            "1" => Met::Whole(What::TapeStatus(TapeStatus::Alert(name.to_owned()))),
            _ => Met::Nothing,
        };
    }
    match (name, value) {
        ("Ready", "yes") => return Met::Whole(What::Passed),
        ("Ready", "no") => return Met::Whole(What::TapeStatus(TapeStatus::NotReady)),
        _ => {}
    }
    let of_hex = |it: &str| u8::from_str_radix(it.strip_prefix("0x")?, 16).ok();
    let status = match name {
        "BlockSize" => match value.parse() {
            // Variable, as a drive should be.
            Ok(0) => return Met::Whole(What::Passed),
            size => size.ok().map(TapeStatus::BlockSize),
        },
        "Density Code" => of_hex(value).map(TapeStatus::Density),
        "BufferedMode" => switch(value, "yes", "no").map(TapeStatus::Buffer),
        "DataCompEnabled" => switch(value, "yes", "no").map(TapeStatus::Compression),
        "Data compression enabled" => switch(value, "0x1", "0x0").map(TapeStatus::Compression),
        "Write compression ratio x100" => {
            // 0: nothing was written.
            let ratio = value.parse::<u32>().ok().map(|it| f64::from(it) / 100.0);
            match ratio {
                Some(0.0) => return Met::Whole(What::Passed),
                ratio => ratio.map(TapeStatus::WriteRatio),
            }
        }
        _ => return Met::Nothing,
    };
    match status {
        Some(status) => Met::Whole(What::TapeStatus(status)),
        None => Met::Begun(format!("a tape drive without its {name}")),
    }
}

/// Flags of TapeAlert as versions of `sg_logs` print them; SSC-3 numbers them from 1.
const FLAGS: [&str; 57] = [
    "read warning",
    "write warning",
    "hard error",
    "media",
    "read failure",
    "write failure",
    "media life",
    "not data grade",
    "write protect",
    "no removal",
    "cleaning media",
    "unsupported format",
    "recoverable mechanical cartridge failure",
    "recoverable snapped tape",
    "unrecoverable mechanical cartridge failure",
    "unrecoverable snapped tape",
    "memory chip in cartridge failure",
    "forced eject",
    "read only format",
    "tape directory corrupted on load",
    "nearing media life",
    "cleaning required",
    "clean now",
    "cleaning requested",
    "clean periodic",
    "expired cleaning media",
    "invalid cleaning tape",
    "retension requested",
    "dual port interface error",
    "cooling fan failing",
    "power supply failure",
    "power consumption",
    "drive maintenance",
    "drive preventive maintenance",
    "hardware a",
    "hardware b",
    "interface",
    "eject media",
    "microcode update fail",
    "download failed",
    "drive humidity",
    "drive temperature",
    "drive voltage",
    "predictive failure",
    "diagnostics required",
    "lost statistics",
    "tape directory invalid at unload",
    "tape system area write failure",
    "tape system area read failure",
    "no start of data",
    "loading or threading failure",
    "unrecoverable unload failure",
    "automation interface failure",
    "microcode failure",
    "firmware failure",
    "worm volume - integrity check failed",
    "worm volume - overwrite attempted",
];

fn is_flag(name: &str) -> bool {
    let name = name.trim().to_lowercase().replace("worm medium", "worm volume");
    let is_unused =
        name.ends_with("h)") && ["obsolete (", "reserved ("].iter().any(|it| name.starts_with(it));
    is_unused || FLAGS.contains(&name.as_str())
}

fn switch(value: &str, on: &str, off: &str) -> Option<Switch> {
    let is = |it: &str| value == it;
    if is(on) { Some(Switch::On) } else { is(off).then_some(Switch::Off) }
}
