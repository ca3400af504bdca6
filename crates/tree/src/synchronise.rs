//! Writes the restored data to the disk.
//!
//! syncfs(2) is one call for any number of files, but only for one file system, and other file
//! systems may be mounted below the destination. So each directory that objects are made in is
//! checked when it is opened, and the first one of each file system keeps a descriptor. It is
//! opened before anything is written there, because the kernel reports only write errors that
//! occurred after the open (and reports them at all only since Linux 5.8).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use base::failures::lock;
use base::interruptible::openat;
use rustix::fs::{Mode, OFlags, fstat, syncfs};
use rustix::io::Errno;

/// The file systems that a restore writes to: the destination's and those mounted below it.
#[derive(Debug, Default)]
pub(crate) struct WrittenFileSystems {
    /// By device number. An error is kept until `synchronise` reports it.
    handles: Mutex<Vec<(u64, Result<OwnedFd, Errno>)>>,
}

impl WrittenFileSystems {
    /// Notes that objects will be made in `directory`, which may have been opened with O_PATH.
    pub(crate) fn note(&self, directory: impl AsFd) {
        // The last number stands for a directory without a stat result.
        let device = fstat(&directory).map_or(u64::MAX, |stat| stat.st_dev);
        let mut handles = lock(&self.handles);
        if handles.iter().all(|(known, _)| *known != device) {
            handles.push((device, open(directory)));
        }
    }

    /// Waits until all of them have everything on their disks.
    ///
    /// # Errors
    /// The first error; the other file systems are synchronised all the same.
    pub(crate) fn synchronise(&self) -> Result<(), Errno> {
        let handles = lock(&self.handles);
        let each = |(_, handle): &(u64, Result<OwnedFd, Errno>)| match handle {
            Ok(handle) => syncfs(handle).and_then(|()| check_alive(handle)),
            Err(error) => Err(*error),
        };
        handles.iter().map(each).fold(Ok(()), Result::and)
    }
}

/// If ext4 aborted its journal before syncfs(2), nothing is left to commit, and syncfs reports
/// success. But ext4 then refuses every later change. So we make an invisible change as a test.
fn check_alive(directory: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    match openat(directory, c".", flags, Mode::from_raw_mode(0o600)) {
        Err(error @ (Errno::IO | Errno::ROFS)) => Err(error),
        // Without support for unnamed files, or without room for one, no more can be found out.
        _ => Ok(()),
    }
}

/// A descriptor for syncfs(2), which refuses O_PATH.
fn open(directory: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(&directory, c".", flags, Mode::empty()) {
        // The directory has no read permission; an unnamed file in it works as well.
        Err(Errno::ACCESS) => {
            let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
            openat(&directory, c".", flags, Mode::from_raw_mode(0o600))
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;

    #[test]
    fn each_file_system_is_kept_once() {
        let written = WrittenFileSystems::default();
        for path in [c"/", c"/proc", c"/", c"/proc/self"] {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            written.note(openat(CWD, path, flags, Mode::empty()).unwrap());
        }
        let handles = written.handles.into_inner().unwrap();
        assert_eq!(handles.len(), 2);
        assert!(handles.iter().all(|(_, handle)| handle.is_ok()));
    }

    #[test]
    fn one_that_cannot_be_synchronised_is_an_error() {
        let written = WrittenFileSystems::default();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, c"/proc", flags, Mode::empty()).unwrap();
        written.note(&directory);
        assert_eq!(written.synchronise(), Ok(()));
        // An O_PATH descriptor, which the kernel refuses.
        written.handles.lock().unwrap().push((0, Ok(directory)));
        assert_eq!(written.synchronise(), Err(Errno::BADF));
        written.handles.lock().unwrap()[1].1 = Err(Errno::ACCESS);
        assert_eq!(written.synchronise(), Err(Errno::ACCESS));
    }
}
