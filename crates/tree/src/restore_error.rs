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
        /// What the kernel said.
        source: io::Error,
    },
    /// Something else is where the directory to restore into should be.
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
        /// What is wrong with it.
        reason: Refusal,
    },
    /// The target of a hard link might lie outside of the destination.
    #[error("refused, link target: {reason}: {} -> {}", lossy(path), lossy(target))]
    LinkRefused {
        /// Path of the member.
        path: Vec<u8>,
        /// What it links to.
        target: Vec<u8>,
        /// What is wrong with the target.
        reason: Refusal,
    },
    /// Something is there already and may not be replaced.
    #[error("already exists: {}", lossy(path))]
    Exists {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// A directory that is not empty is where another kind of object is to go.
    #[error("a directory that is not empty is in the way: {}", lossy(path))]
    DirectoryInTheWay {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// The directory that the object goes into cannot be opened or made.
    #[error("cannot reach the directory of: {}", lossy(path))]
    Parent {
        /// Path of the member.
        path: Vec<u8>,
        /// What the kernel said.
        source: io::Error,
    },
    /// The object cannot be made.
    #[error("cannot create: {}", lossy(path))]
    Create {
        /// Path of the member.
        path: Vec<u8>,
        /// What the kernel said.
        source: io::Error,
    },
    /// The target of a hard link is missing or cannot be linked to.
    #[error("cannot link: {} -> {}", lossy(path), lossy(target))]
    Link {
        /// Path of the member.
        path: Vec<u8>,
        /// What it links to.
        target: Vec<u8>,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is found at the target of a hard link is not what was put there: somebody else changed
    /// it meanwhile.
    #[error("another program changed the link target: {} -> {}", lossy(path), lossy(target))]
    LinkChanged {
        /// Path of the member.
        path: Vec<u8>,
        /// What it links to.
        target: Vec<u8>,
    },
    /// What is found under the name that was just made is not what was made.
    #[error("another program changed it during the restore: {}", lossy(path))]
    Changed {
        /// Path of the member.
        path: Vec<u8>,
    },
    /// The metadata of a directory cannot be kept until the end.
    #[error("cannot store its metadata until the end: {}", lossy(path))]
    Remember {
        /// Path of the member.
        path: Vec<u8>,
        /// What the kernel said of the temporary file.
        source: io::Error,
    },
    /// Only the superuser may make devices.
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
        /// What the kernel said.
        source: io::Error,
    },
    /// The finished file cannot be given its name.
    #[error("cannot rename into place: {}", lossy(path))]
    Rename {
        /// Path of the member.
        path: Vec<u8>,
        /// What the kernel said.
        source: io::Error,
    },
    /// What was restored cannot be brought to the disk.
    #[error("cannot synchronise the destination")]
    Synchronise {
        /// What the kernel said.
        source: io::Error,
    },
}

fn lossy(path: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(path)
}
