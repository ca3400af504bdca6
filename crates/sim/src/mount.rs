//! Virtual devices as folders, for any program: FUSE.
//!
//! [`drive`] is the folder with a tape drive in it, [`disk`] that with a disk. What every such
//! folder does with a request is in `folder`, how large one may be in `storage::settings::fuse`.
//!
//! Not here: the devices themselves, and the time that they take.

pub mod disk;
pub mod drive;
mod folder;

use std::io;
use std::path::{Path, PathBuf};

use fuser::{Config, MountOption, Session, SessionUnmounter};

use folder::{Files, Folder};

pub use folder::attributes_of;

/// Why there is no folder with a device.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// FUSE does not mount it.
    #[error("cannot mount a virtual {what} on {path}")]
    Mount {
        /// The device.
        what: &'static str,
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection to the kernel broke.
    #[error("the connection of {path} to the kernel broke")]
    Connection {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Requests that are taken at the same time: one may wait for the device while others ask how it
/// is.
const THREADS: usize = 4;

/// What is mounted as what.
struct MountAs {
    /// In messages.
    what: &'static str,
    /// Of the file system.
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

/// Serves until the folder is unmounted and nobody has a file of it open.
fn serve<F: Files>(session: Session<Folder<F>>) -> io::Result<()> {
    ended(session.run())
}

/// The connection ends with `ENODEV`, which fuser takes for the end; but a thread that was just
/// being handed a request (the release of the last file, mostly) gets `ECONNABORTED`. It says no
/// more than that: a request that somebody still waited for would have kept the file system busy.
fn ended(session: io::Result<()>) -> io::Result<()> {
    match session {
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
        other => other,
    }
}

/// Unmounts; where it is busy, nobody can open a file of it any more, and who has one open keeps
/// it.
fn unmount(session: &mut SessionUnmounter, path: &Path) -> io::Result<()> {
    match session.unmount() {
        Ok(()) => Ok(()),
        // Busy.
        Err(_) => Ok(rustix::mount::unmount(path, rustix::mount::UnmountFlags::DETACH)?),
    }
}

/// Makes this thread and those that it starts serve as a device does: at once. Without the
/// privilege it does without.
fn serve_at_once() {
    /// In front of everything that has not asked for more.
    const NICE: i32 = -15;
    // On Linux this is the thread's alone.
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
