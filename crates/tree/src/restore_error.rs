//! Why an object was not restored.

use std::io;
use std::path::PathBuf;

use crate::resolve::Refusal;

/// An object could not be restored. Paths are those of the archive.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The directory to restore into cannot be made or opened.
    #[error("cannot open directory to restore into: {}", path.display())]
    Destination {
        /// As given.
        path: PathBuf,
        source: io::Error,
    },
    /// The place of the directory to restore into has another kind of object.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// As given.
        path: PathBuf,
    },
    /// The path might lead outside of the destination.
    #[error("refused, {reason}: {}", lossy(path))]
    Refused {
        /// Path of the member.
        path: Vec<u8>,
        reason: Refusal,
    },
    /// The target of a hard link might lie outside of the destination.
    #[error("refused, link target: {reason}: {} -> {}", lossy(path), lossy(target))]
    LinkRefused {
        /// Path of the member.
        path: Vec<u8>,
        /// The link target.
        target: Vec<u8>,
        reason: Refusal,
    },
    /// An object exists already and may not be replaced.
    #[error("already exists: {}", lossy(path))]
    Exists {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// A directory that is not empty is in the place of another kind of object.
    #[error("a directory that is not empty is in the way: {}", lossy(path))]
    DirectoryInTheWay {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// The directory for the object cannot be opened or made.
    #[error("cannot reach the directory of: {}", lossy(path))]
    Parent {
        /// Path of the member.
        path: Vec<u8>,
        source: io::Error,
    },
    /// The object cannot be made.
    #[error("cannot create: {}", lossy(path))]
    Create {
        /// Path of the member.
        path: Vec<u8>,
        source: io::Error,
    },
    /// The target of a hard link is missing or cannot be linked to.
    #[error("cannot link: {} -> {}", lossy(path), lossy(target))]
    Link {
        /// Path of the member.
        path: Vec<u8>,
        /// The link target.
        target: Vec<u8>,
        source: io::Error,
    },
    /// The target of a hard link is not the object that was restored there: another program changed
    /// it.
    #[error("another program changed the link target: {} -> {}", lossy(path), lossy(target))]
    LinkChanged {
        /// Path of the member.
        path: Vec<u8>,
        /// The link target.
        target: Vec<u8>,
    },
    /// The object under the new name is not the one that was made.
    #[error("another program changed it during the restore: {}", lossy(path))]
    Changed {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// The metadata of a directory cannot be stored until the end.
    #[error("cannot store its metadata until the end: {}", lossy(path))]
    Remember {
        /// Path of the member.
        path: Vec<u8>,
        /// The kernel's error for the temporary file.
        source: io::Error,
    },
    /// Only root may make devices.
    #[error("only root can restore device files: {}", lossy(path))]
    DeviceNeedsRoot {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// Content cannot be written.
    #[error("cannot write: {}", lossy(path))]
    Write {
        /// Path of the member.
        path: Vec<u8>,
        source: io::Error,
    },
    /// The complete file cannot be renamed to its name.
    #[error("cannot rename into place: {}", lossy(path))]
    Rename {
        /// Path of the member.
        path: Vec<u8>,
        source: io::Error,
    },
    /// The restored data cannot be written to the disk.
    #[error("cannot synchronise the destination")]
    Synchronise { source: io::Error },
}

fn lossy(path: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(path)
}
