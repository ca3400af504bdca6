//! The tape drive that a pipeline writes to, and its rates, without a command to the drive.

use std::path::Path;

use device::tape;
use model::tape::generation::Generation;
use pipeline::{Drive, Look};

use crate::virtual_drive::VirtualDrive;

/// The drive among the files that the last stage waited for, if its rate is known: from the
/// settings of a virtual drive, or from the product name of a real one, which the kernel has.
pub(super) fn behind(look: &Look) -> Option<Drive> {
    look.stages.last()?.waits_for.iter().find_map(|wait| drive(&wait.what))
}

fn drive(name: &str) -> Option<Drive> {
    if let Some(played) = VirtualDrive::of_tape(name) {
        return Some(Drive {
            name: name.to_owned(),
            highest_bytes_per_second: played.highest_bytes_per_second as f64,
            lowest_bytes_per_second: Some(played.lowest_bytes_per_second as f64),
            stop_seconds: played.stop_seconds,
            start_bytes: played.start_bytes,
            compresses: played.compresses,
            command_seconds: played.command_seconds,
            interface_bytes_per_second: played.interface_bytes_per_second,
            synchronise_seconds: played.synchronise_seconds,
        });
    }
    let found = tape::find(Path::new(name))?;
    let product = found.folder()?.device_text("model")?;
    Some(Drive {
        name: name.to_owned(),
        highest_bytes_per_second: Generation::of_product(&product)?.highest_speed() as f64,
        lowest_bytes_per_second: None,
        stop_seconds: None,
        start_bytes: None,
        // It may; only a command to the drive would show it.
        compresses: true,
        // Makers do not publish the time of a command or a filemark.
        command_seconds: None,
        interface_bytes_per_second: None,
        synchronise_seconds: None,
    })
}
