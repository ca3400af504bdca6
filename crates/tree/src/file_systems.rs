//! Which file systems a scan enters.

/// Whether the walk stays on the file system of each source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSystems {
    /// Other mounted file systems are walked too.
    #[default]
    All,
    /// A directory on which another file system is mounted is archived, but not entered.
    One,
}
