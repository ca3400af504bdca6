//! The files of a disk, and its process as a part of the block layer.

/// Name of the file whose calls are requests.
pub const DISK_NAME: &str = "disk";

/// Name of the file that goes through the page cache.
pub const CACHED_NAME: &str = "cached";

/// Makes this thread and those that it starts serve as a device does: at once, and without waiting
/// for memory that only they can free. Without the privileges it does without.
pub(super) fn be_a_device() {
    crate::mount::serve_at_once();
    // They write what the kernel gets rid of when it is short of memory (prctl(2),
    // PR_SET_IO_FLUSHER). A tape is not mounted.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}
