//! The names of the files of a disk.

/// Name of the file whose calls are requests.
pub const DISK_NAME: &str = "disk";

/// Name of the file that goes through the page cache.
pub const CACHED_NAME: &str = "cached";
