//! How the disk of a source is read, and how long that takes.

use model::disk::{DiskChanges, DiskParameters, Positioning};
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use model::sweep::{FetchLimits, FilesOnDisk};
use runs::backup::ReadWindow;

use super::request::PlanSourceRequest;

/// Linux' default of `read_ahead_kb`.
const READ_AHEAD_BYTES: u64 = 128 << 10;
const READ_BLOCK_BYTES: u64 = 1 << 20;
/// Files that a backup reads at once from a disk.
const FILES_AT_ONCE: u64 = 8;

/// How the plan assumes a disk to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskReads {
    /// Bytes of one read of a stream through the page cache.
    pub read_bytes: u64,
    pub read_ahead_bytes: u64,
    /// How files are read, if the disk has heads and their number is known.
    pub heads: Option<HeadsReads>,
}

/// How files are read from a disk with heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadsReads {
    /// Mean content of a file.
    pub file_bytes: u64,
    /// The part in the middle of the disk on which the files lie.
    pub spread_bytes: u64,
    /// Content that may be read ahead.
    pub window_bytes: u64,
    /// Files that are read ahead in the order of the disk; `None`: they are read by name.
    pub window_files: Option<u64>,
    /// Time of all files.
    pub seconds: f64,
    /// Time in which their bytes pass under the heads as one stream.
    pub stream_seconds: f64,
    /// Time of all files in the order of their names.
    pub by_name_seconds: f64,
}

impl HeadsReads {
    /// Share of the time in which the heads are on their way, 0 to 1.
    pub fn seek_share(&self) -> f64 {
        (1.0 - self.stream_seconds / self.seconds.max(1e-9)).clamp(0.0, 1.0)
    }
}

/// Content, files, and memory for the ring of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilesToRead {
    pub(super) size_bytes: u64,
    pub(super) files: u64,
    pub(super) ring_bytes: u64,
}

impl DiskReads {
    /// Of files on a disk.
    pub(super) fn new(
        given: &PlanSourceRequest,
        disk: &DiskParameters,
        tree: FilesToRead,
    ) -> DiskReads {
        DiskReads {
            read_bytes: given.read_block_bytes.unwrap_or(READ_BLOCK_BYTES),
            read_ahead_bytes: given.read_ahead_bytes.unwrap_or(READ_AHEAD_BYTES),
            heads: heads(given, disk, tree),
        }
    }

    /// Rate of content while a file is read, in bytes a second.
    pub(super) fn bytes_per_second(&self, disk: &DiskParameters, tree: FilesToRead) -> u64 {
        if let Some(heads) = &self.heads {
            return (tree.size_bytes as f64 / heads.stream_seconds.max(1e-9)) as u64;
        }
        let policy = Policy::Linux { window_bytes: self.read_ahead_bytes };
        let reader = Reader { read_bytes: self.read_bytes, copy_bytes_per_second: 5_000_000_000 };
        sequential_bytes_per_second(disk, policy, reader)
    }

    /// Time of a file besides its bytes.
    pub(super) fn file_ns(&self, disk: &DiskParameters, tree: FilesToRead) -> u64 {
        match &self.heads {
            Some(heads) => {
                let seeks = (heads.seconds - heads.stream_seconds).max(0.0);
                (seeks * 1e9 / tree.files.max(1) as f64) as u64
            }
            None => disk_file_ns(disk),
        }
    }
}

/// `None` where the disk has no heads or the number of files is not known.
fn heads(
    given: &PlanSourceRequest,
    disk: &DiskParameters,
    tree: FilesToRead,
) -> Option<HeadsReads> {
    let FilesToRead { size_bytes, files, ring_bytes } = tree;
    if files == 0 || size_bytes == 0 || !matches!(disk.positioning, Positioning::Heads(_)) {
        return None;
    }
    let changes = DiskChanges { capacity_bytes: given.capacity_bytes, ..DiskChanges::default() };
    let disk = &disk.clone().with(&changes);
    let window = ReadWindow::of_run(given.read_window_bytes, ring_bytes);
    let limits = FetchLimits {
        window_bytes: window.bytes,
        window_files: window.objects,
        fetched_bytes_max: window.file_bytes_max,
        several_bytes_max: window.several_bytes_max,
    };
    let spread_bytes = given.spread_bytes.unwrap_or(0).max(size_bytes);
    let on_disk = FilesOnDisk { files, file_bytes: (size_bytes / files).max(1), spread_bytes };
    let seconds = |ns: u64| ns as f64 / 1e9;
    Some(HeadsReads {
        file_bytes: on_disk.file_bytes,
        spread_bytes,
        window_bytes: window.bytes,
        window_files: on_disk.is_fetched(&limits).then(|| on_disk.window_files(&limits)),
        seconds: seconds(on_disk.read_ns(disk, &limits)),
        stream_seconds: seconds(on_disk.stream_ns(disk)),
        by_name_seconds: seconds(on_disk.by_name_ns(disk, &limits)),
    })
}

/// Two random reads for each file, one for its inode and one for its content, several files at
/// once.
fn disk_file_ns(disk: &DiskParameters) -> u64 {
    2 * (disk.positioning.mean_ns() + disk.command_ns)
        / FILES_AT_ONCE.min(disk.servers as u64).max(1)
}
