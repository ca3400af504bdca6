//! The devices below captured files.

use std::collections::BTreeSet;
use std::path::Path;

use capture::operation::FileKind;
use capture::profile::{FileProfile, Profile};
use capture::words::is_used_much;
use storage::layers::Storage;
use watch::Reading;

use crate::watch::drive_of;

/// Names of the devices below the files of a capture, down to the disks. Files that were hardly
/// used, such as libraries, count only if there are no others.
pub fn devices(profile: &Profile) -> BTreeSet<String> {
    let all = || profile.files.iter().filter(|it| it.reads + it.writes > 0);
    let of = |files: &mut dyn Iterator<Item = &FileProfile>| -> BTreeSet<String> {
        files.flat_map(below).collect()
    };
    let much = of(&mut all().filter(|it| is_used_much(it)));
    if much.is_empty() { of(&mut all()) } else { much }
}

/// The devices below one file; below its folder if the file is gone by now.
fn below(file: &FileProfile) -> Vec<String> {
    let Some(path) = file.path.as_deref().filter(|path| path.starts_with('/')) else {
        return Vec::new();
    };
    match file.kind {
        FileKind::CharacterDevice => drive_of(path).into_iter().collect(),
        FileKind::Pipe | FileKind::Socket => Vec::new(),
        FileKind::Regular | FileKind::BlockDevice | FileKind::Other => {
            let path = Path::new(path);
            let found = Storage::of(path).ok();
            let found = found.or_else(|| Storage::of(path.parent()?).ok());
            let layers = found.map(|it| it.layers).unwrap_or_default();
            layers.iter().map(|layer| layer.name.replace('!', "/")).collect()
        }
    }
}

/// Removes all devices from readings except those in `names`.
pub fn keep(readings: &mut [Reading], names: &BTreeSet<String>) {
    for reading in readings {
        reading.rows.retain(|row| names.contains(&row.name));
        reading.in_flight.retain(|name, _| names.contains(name));
        reading.queues.retain(|name, _| names.contains(name));
        reading.tapes.retain(|name, _| names.contains(name));
    }
}
