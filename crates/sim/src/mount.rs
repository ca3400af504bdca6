//! Virtual devices as folders, for any program: FUSE.
//!
//! [`drive`] is the folder with a tape drive, [`disk`] the folder with a disk. `folder` handles
//! requests for both, and `storage::settings::fuse` sets the largest size of a request. What a
//! device says of itself is in its file `status`: [`DeviceStatus`].
//!
//! Not here: the devices themselves, and their timing.

pub mod disk;
pub mod drive;
mod folder;

use std::io;
use std::path::{Path, PathBuf};

use fuser::{Config, MountOption, Session, SessionUnmounter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use disk::DiskStatus;
use drive::DriveStatus;
use folder::{Files, Folder};

pub use folder::attributes_of;

/// What a virtual device says of itself, in its file `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DeviceStatus {
    Drive(DriveStatus),
    Disk(DiskStatus),
}

impl DeviceStatus {
    /// Of the device that is mounted on a folder.
    ///
    /// # Errors
    /// When the folder has no such file, or the file is none of a virtual device.
    pub fn of_folder(folder: &Path) -> io::Result<DeviceStatus> {
        let text = machine::small_file::regular(&folder.join(STATUS_NAME))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    /// Of the drive whose tape this is, if it is one of ours.
    pub fn of_tape(tape: &Path) -> Option<DriveStatus> {
        match DeviceStatus::of_folder(tape.parent()?).ok()? {
            DeviceStatus::Drive(status) => Some(status),
            DeviceStatus::Disk(_) => None,
        }
    }
}

/// Name of the file with the state.
const STATUS_NAME: &str = "status";

/// Why a virtual device has no folder, no storage or no loop device.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The FUSE mount failed.
    #[error("cannot mount a virtual {what} on {path}")]
    Mount {
        /// The device.
        what: &'static str,
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The connection to the kernel failed.
    #[error("the FUSE connection of {path} failed")]
    Connection {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No thread could be started to serve the disk.
    #[error("cannot start a thread for the disk")]
    Thread(#[source] io::Error),
    /// The file on the mounted disk cannot be opened from here.
    #[error("cannot use {path}")]
    Through {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The storage of the disk, or the free loop device, cannot be opened or created.
    #[error("cannot open {path}")]
    Open {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The storage does not exist, and no size was given.
    #[error("cannot create {path}: no size given")]
    NoSize { path: PathBuf },
    /// The size of the storage differs from the requested size.
    #[error("{path} has {bytes} bytes, not {wanted_bytes}")]
    OtherSize {
        path: PathBuf,
        bytes: u64,
        /// The requested size.
        wanted_bytes: u64,
    },
    /// The storage is smaller than a sector.
    #[error("{path} is smaller than a sector")]
    Empty { path: PathBuf },
    /// The storage is a folder or a pipe.
    #[error("{path} is neither a file nor a block device")]
    Kind { path: PathBuf },
    /// The storage has a mounted file system, or belongs to an array, a volume group or swap.
    #[error("{path} is mounted or in use")]
    Mounted {
        /// The device.
        path: PathBuf,
    },
    /// Another disk uses the storage.
    #[error("another virtual disk uses {path}")]
    InUse { path: PathBuf },
    /// `/dev/loop-control` is missing, or this user may not open it.
    #[error("cannot get a loop device from /dev/loop-control")]
    LoopControl {
        /// The system's error.
        source: io::Error,
    },
    /// The loop device does not accept the file.
    #[error("cannot attach {path}")]
    LoopAttach {
        /// The device.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The loop device would go through the page cache, with one request at a time.
    #[error("{path} does not support direct I/O to a FUSE file on this kernel")]
    LoopBuffered {
        /// The device.
        path: PathBuf,
    },
}

/// Requests that are handled at the same time: one may wait for the device while others ask for its
/// status.
const THREADS: usize = 4;

/// What is mounted, and under which names.
struct MountAs {
    /// Name in messages.
    what: &'static str,
    /// Name of the file system.
    subtype: &'static str,
    options: Vec<MountOption>,
}

impl MountAs {
    fn mount<F: Files>(self, files: F, path: &Path) -> Result<Session<Folder<F>>, MountError> {
        let mut config = Config::default();
        config.mount_options = self.options;
        config.mount_options.push(MountOption::FSName("takeup".into()));
        config.mount_options.push(MountOption::Subtype(self.subtype.into()));
        config.n_threads = Some(THREADS);
        let what = self.what;
        Session::new(Folder::new(files), path, &config).map_err(|source| MountError::Mount {
            what,
            path: path.to_owned(),
            source,
        })
    }
}

/// Serves until the folder is unmounted and no program has a file of it open.
fn serve<F: Files>(session: Session<Folder<F>>) -> io::Result<()> {
    ended(session.run())
}

/// The connection ends with `ENODEV`, which fuser takes as the end. But a thread that was just
/// receiving a request (mostly the release of the last file) gets `ECONNABORTED`. That means no
/// more than the end: a request with a waiting program would have kept the file system busy.
fn ended(session: io::Result<()>) -> io::Result<()> {
    match session {
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
        other => other,
    }
}

/// Unmounts. If the folder is busy, no program can open a file of it any more, and a program with
/// an open file keeps it.
fn unmount(session: &mut SessionUnmounter, path: &Path) -> io::Result<()> {
    match session.unmount() {
        Ok(()) => Ok(()),
        // Busy.
        Err(_) => Ok(rustix::mount::unmount(path, rustix::mount::UnmountFlags::DETACH)?),
    }
}

/// Raises the priority of this thread and those that it starts, to respond at once as a device
/// does. Without the privilege nothing changes.
fn serve_at_once() {
    /// Before everything of normal priority.
    const NICE: i32 = -15;
    // On Linux this applies to the calling thread only.
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_connection_that_ends_is_no_error() {
        assert!(ended(Ok(())).is_ok());
        assert!(ended(Err(Errno::CONNABORTED.into())).is_ok());
        let other = ended(Err(Errno::IO.into())).unwrap_err();
        assert_eq!(other.raw_os_error(), Some(Errno::IO.raw_os_error()));
    }
}
