//! How much a run will move, where that is known before its end.
//!
//! Nothing here reads data or walks a tree: a backup that counted its tree first would read it
//! twice. So a folder that is not the root of a file system has no forecast until its scan has
//! ended.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use archive::stream::StoredOffset;
use flow::monitor::{Basis, Counter, Expected, Measure};
use flow::run::StageKind;
use machine::mounts::{self, Mount};
use tree::FileSystems;

use crate::backup::{ArchiveSize, BackupOptions};
use crate::read::Input;
use crate::read::excerpt::Excerpt;

/// What a backup will read: from the archive that it replaces, else from its sources.
pub(crate) fn of_backup(options: &BackupOptions, before: Option<ArchiveSize>) -> Option<Expected> {
    if let Some(before) = before {
        return Some(Expected {
            amount: before.bytes,
            measure: Measure::Counter(Counter::ArchiveBytes),
            basis: Basis::ReplacedArchive,
        });
    }
    let mounts = mounts::now().ok()?;
    let mut expected =
        Expected { amount: 0, measure: Measure::Stage(StageKind::Read), basis: Basis::FileSize };
    for source in &options.sources {
        let status = std::fs::metadata(source).ok()?;
        if status.is_file() {
            expected.amount += status.size();
        } else {
            expected.amount += space_in_use(source, options.file_systems, &mounts)?;
            expected.basis = Basis::SpaceInUse;
        }
    }
    Some(expected)
}

/// Bytes in use on the file system of which `folder` is the root; `None` for another folder, and
/// where a backup enters further file systems.
fn space_in_use(folder: &Path, file_systems: FileSystems, mounts: &[Mount]) -> Option<u64> {
    let folder = std::fs::canonicalize(folder).ok()?;
    // Where several are mounted at one place, the last one is seen.
    let mount = mounts.iter().rev().find(|mount| mount.point == folder)?;
    // A bind mount shows a part of its file system. The subvolumes of btrfs share their space.
    if mount.root != Path::new("/") || mount.kind == "btrfs" {
        return None;
    }
    let others = mounts.iter().filter(|other| is_below(&other.point, &folder));
    if file_systems == FileSystems::All
        && others.into_iter().any(|other| used_bytes(&other.point) != Some(0))
    {
        return None;
    }
    used_bytes(&folder).filter(|bytes| *bytes > 0)
}

fn is_below(point: &Path, folder: &Path) -> bool {
    point != folder && point.starts_with(folder)
}

/// Bytes in use on the file system at `path`; 0 for those without storage, such as /proc.
fn used_bytes(path: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(path).ok()?;
    Some(status.f_blocks.saturating_sub(status.f_bfree).saturating_mul(status.f_frsize))
}

/// The members of a tree whose scan has ended.
pub(crate) fn of_scan(members: u64) -> Expected {
    Expected {
        amount: members,
        measure: Measure::Counter(Counter::Members),
        basis: Basis::ScanAhead,
    }
}

/// What will be read of a file, for a run that reads all of it.
pub(crate) fn of_file(length_bytes: u64) -> Expected {
    Expected {
        amount: length_bytes,
        measure: Measure::Stage(StageKind::Read),
        basis: Basis::FileSize,
    }
}

/// What will be read of an archive: its excerpt, or all of it.
pub(crate) fn of_archive(input: &Input, excerpt: Option<&Excerpt>) -> Option<Expected> {
    let amount = match (excerpt, input) {
        (Some(excerpt), _) => {
            let bytes = |range: &std::ops::Range<StoredOffset>| range.end - range.start;
            excerpt.source.iter().map(bytes).sum()
        }
        (None, Input::File(source)) => source.length_bytes?,
        (None, Input::Tape(tape)) => {
            tape.index()?.extents.iter().map(|extent| extent.stream_bytes).sum()
        }
    };
    let measure = Measure::Stage(StageKind::Read);
    Some(Expected { amount, measure, basis: Basis::ArchiveSize })
}

/// The same for a listing that goes from header to header: its place in the archive counts.
pub(crate) fn of_headers(length_bytes: u64) -> Expected {
    Expected {
        amount: length_bytes,
        measure: Measure::Counter(Counter::ArchiveBytes),
        basis: Basis::ArchiveSize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, root: &str, kind: &str) -> Mount {
        Mount {
            device: "8:1".to_owned(),
            root: root.into(),
            point: point.into(),
            kind: kind.to_owned(),
            source: "/dev/sda1".into(),
            options: "rw".to_owned(),
            file_system_options: "rw".to_owned(),
        }
    }

    /// The root of this machine stands for a mounted disk.
    #[test]
    fn only_the_root_of_a_file_system_has_its_space() {
        let used = |folder: &str, mounts: &[Mount]| {
            space_in_use(folder.as_ref(), FileSystems::All, mounts)
        };
        let root = mount("/", "/", "ext4");
        assert!(used("/", std::slice::from_ref(&root)) > Some(0));
        assert_eq!(used("/usr", std::slice::from_ref(&root)), None, "a folder of it");
        assert_eq!(used("/", &[mount("/", "/home", "ext4")]), None, "a bind mount");
        assert_eq!(used("/", &[mount("/", "/", "btrfs")]), None, "subvolumes");
        let below = [root.clone(), mount("/usr", "/", "ext4")];
        assert_eq!(used("/", &below), None, "another file system below");
        assert!(space_in_use("/".as_ref(), FileSystems::One, &below) > Some(0));
        assert!(used("/", &[root, mount("/proc", "/", "proc")]) > Some(0), "without storage");
    }
}
