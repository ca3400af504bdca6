//! What is said of a virtual drive or disk that was mounted.

use base::escape::escape_path;
use base::format::size;
use model::tape::media::MediumAccess;
use service::sim::disk::MountedDisk;
use service::sim::tape::{BLOCK_BYTES_MAX, MountedTape};

use crate::calibration;
use crate::table::Style;

/// The lines on a drive that is ready.
pub fn tape(mounted: &MountedTape) -> String {
    let from = mounted.from.as_ref().map(|from| calibration::drive(from, Style::PLAIN));
    greeting(mounted) + &from.unwrap_or_default() + &room_warning(mounted)
}

/// The lines on a disk that is ready.
pub fn disk(mounted: &MountedDisk) -> String {
    let over = match mounted.loop_path() {
        Some(path) => format!(" and {}", escape_path(path)),
        None => String::new(),
    };
    let (name, disk) = (&mounted.preset, escape_path(&mounted.disk));
    let from = mounted.from.as_ref().map(|from| calibration::disk(from, Style::PLAIN));
    format!("takeup: {name} disk at {disk}{over} until it is unmounted\n")
        + &from.unwrap_or_default()
}

fn greeting(mounted: &MountedTape) -> String {
    let (folder, name) = (mounted.mountpoint.display(), mounted.generation.name);
    let other = mounted.medium.filter(|medium| medium.name != name).map(|medium| medium.name);
    let mut text = format!("takeup: {name} drive at {folder}/nst0 until it is unmounted\n");
    if let Some(medium) = other {
        let what = match mounted.access {
            MediumAccess::ReadAndWrite => "reads and writes it at the speeds of its generation",
            MediumAccess::ReadOnly => "only reads it",
        };
        text.push_str(&format!("takeup: the medium is {medium}; the drive {what}\n"));
    }
    let block_bytes_max = mounted.block_bytes_max();
    if block_bytes_max < BLOCK_BYTES_MAX {
        text.push_str(&format!(
            "takeup: blocks above {block_bytes_max} bytes would be split\n\
             hint: run sysctl fs.fuse.max_pages_limit=2049, or run takeup as root, which does so\n"
        ));
    }
    text
}

/// Warns if the medium could outgrow the disk of its file: real capacities exceed most disks.
fn room_warning(mounted: &MountedTape) -> String {
    let wanted_bytes = mounted.growth_bytes;
    match mounted.room_bytes {
        Some(room) if room < wanted_bytes => format!(
            "takeup: the medium can grow by {}, but its disk has room for {}: further writes would \
             fail with an I/O error\nhint: make the medium smaller with --capacity\n",
            size(wanted_bytes),
            size(room)
        ),
        _ => String::new(),
    }
}
