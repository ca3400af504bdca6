//! In which order files are read, and how much may be under way.

use super::{CHUNK_ENTRIES, SWEEP_THREADS};

/// The order in which files are read. What is made of them has the order of their names in any
/// case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadOrder {
    /// By address on a disk that is as slow as with heads, which a short look at the beginning
    /// finds out; else by name.
    #[default]
    Auto,
    /// As they are needed.
    Name,
    /// By inode number: on many file systems near the order of addresses.
    Inode,
    /// By the address of each extent, where the file system tells it; else by inode number.
    Physical,
}

/// Files of this size are fetched whatever the window.
const FILE_BYTES_LEAST: usize = 256 << 10;
/// Bounds of the window of a run that is not told one.
const WINDOW_BYTES_MIN: usize = 32 << 20;
const WINDOW_BYTES_MAX: usize = 4 << 30;
/// For so many bytes of the window there may be an entry in it: these take a hundredth of its
/// memory then.
const ENTRY_BYTES: usize = 32 << 10;
/// Bounds of the entries in the window.
const WINDOW_ENTRIES_MIN: usize = 32 << 10;
const WINDOW_ENTRIES_MAX: usize = 4 << 20;
/// Most folders in which they are: each is kept open.
pub(crate) const WINDOW_FOLDERS: usize = 32 << 10;
/// Fewer are none: that brings less than what else would be given up for it.
const WINDOW_FOLDERS_LEAST: usize = 1024;

/// What may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Content in the page cache whose turn has not come.
    pub(crate) window_bytes: usize,
    /// Objects that wait for it.
    pub(crate) window_entries: usize,
    /// Folders of these objects.
    pub(super) window_folders: usize,
    /// Larger files are not fetched.
    pub(crate) file_bytes_max: u64,
}

impl Limits {
    /// Of a window in so many folders; without folders there is none.
    pub(crate) fn new(
        window_bytes: Option<usize>,
        window_folders: usize,
        file_bytes_max: usize,
    ) -> Option<Limits> {
        let limits = || Limits::of(window_bytes, window_folders, file_bytes_max);
        (window_folders > 0).then(limits)
    }

    /// A file takes at most a part of the window, so that others go on while it waits for them.
    /// Without a size of the window it is the usual one.
    pub(crate) fn of(
        window_bytes: Option<usize>,
        window_folders: usize,
        file_bytes_max: usize,
    ) -> Limits {
        let window_bytes = window_bytes.unwrap_or_else(usual_window_bytes);
        let part = (window_bytes / 64).max(FILE_BYTES_LEAST);
        let file_bytes_max = part.min(file_bytes_max) as u64;
        let entries = window_bytes / ENTRY_BYTES;
        let window_entries = entries.clamp(WINDOW_ENTRIES_MIN, WINDOW_ENTRIES_MAX);
        Limits { window_bytes, window_entries, window_folders, file_bytes_max }
    }

    /// Most batches that come out of the window before they are taken.
    pub(crate) fn batches(&self) -> usize {
        self.window_entries
    }
}

/// Half the folders of a window, as fewer files may be open; 0 where that would be too few.
pub(crate) fn halved(window_folders: usize) -> usize {
    let half = window_folders / 2;
    if half < WINDOW_FOLDERS_LEAST { 0 } else { half }
}

/// Most descriptors that a window of so many folders keeps open. What is looked at together, and
/// ends with a whole batch, may have a folder for each entry.
pub(crate) fn descriptors(window_folders: usize, batch_entries: usize) -> usize {
    match window_folders {
        0 => 0,
        folders => folders + CHUNK_ENTRIES + batch_entries + SWEEP_THREADS,
    }
}

/// The window of a run that is not told one: an eighth of the memory that this program can get.
fn usual_window_bytes() -> usize {
    let available = machine::counters::memory::Memory::now().map_or(0, |it| it.available_bytes);
    let left = machine::control_groups::memory_left_bytes();
    let available = left.map_or(available, |left| left.min(available));
    usize::try_from(available / 8).unwrap_or(usize::MAX).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
}
