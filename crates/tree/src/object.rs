//! An object reached by a descriptor of either kind, and the calls that set its metadata.

use std::ffi::CString;

use archive::member::Timestamp;
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chmodat,
    chownat, fchmod, fchown, fremovexattr, fsetxattr, fstat, futimens, removexattr, setxattr,
    utimensat,
};
use rustix::io::Errno;

use crate::attributes::{Handle, proc_path};

/// An object whose metadata is set.
pub(crate) struct Object<'a> {
    handle: Handle<'a>,
    /// Path in /proc for a descriptor opened with O_PATH. It leads to exactly this object, even if
    /// it is a symbolic link.
    path: CString,
}

impl<'a> Object<'a> {
    pub(crate) fn new(handle: Handle<'a>) -> Object<'a> {
        let path = match handle {
            Handle::Open(_) => CString::default(),
            Handle::Path(descriptor) => proc_path(descriptor),
        };
        Object { handle, path }
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let (Handle::Open(descriptor) | Handle::Path(descriptor)) = self.handle;
        fstat(descriptor)
    }

    pub(crate) fn set_owner(&self, uid: u32, gid: u32) -> Result<(), Errno> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        match self.handle {
            Handle::Open(descriptor) => fchown(descriptor, uid, gid),
            Handle::Path(descriptor) => chownat(descriptor, c"", uid, gid, AtFlags::EMPTY_PATH),
        }
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(mode);
        match self.handle {
            Handle::Open(descriptor) => fchmod(descriptor, mode),
            Handle::Path(_) => chmodat(CWD, &*self.path, mode, AtFlags::empty()),
        }
    }

    pub(crate) fn set_attribute(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        match self.handle {
            Handle::Open(descriptor) => fsetxattr(descriptor, name, value, XattrFlags::empty()),
            Handle::Path(_) => setxattr(&*self.path, name, value, XattrFlags::empty()),
        }
    }

    /// Removes an attribute that is usually absent.
    pub(crate) fn remove_attribute(&self, name: &[u8]) {
        let _ = match self.handle {
            Handle::Open(descriptor) => fremovexattr(descriptor, name),
            Handle::Path(_) => removexattr(&*self.path, name),
        };
    }

    pub(crate) fn set_times(&self, modified: Timestamp) -> Result<(), Errno> {
        let times = timestamps(modified);
        match self.handle {
            Handle::Open(descriptor) => futimens(descriptor, &times),
            Handle::Path(_) => utimensat(CWD, &*self.path, &times, AtFlags::empty()),
        }
    }
}

/// The access time is left alone, because our archive formats do not store it.
fn timestamps(modified: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.min(999_999_999).into(),
        },
    }
}
