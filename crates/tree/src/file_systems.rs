//! Which file systems a scan enters.

/// Whether the walk stays on the file system of each source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSystems {
    /// Mounted file systems are walked too.
    #[default]
    All,
    /// A directory on which another file system is mounted is an entry, but is not entered.
    One,
}
