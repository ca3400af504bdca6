//! Extended attributes and POSIX ACLs of one object.
//!
//! The kernel presents ACLs as the attributes `system.posix_acl_*`, in a binary form that a
//! [`Member`] keeps unchanged. All other listed attributes are kept too, in order of name.
//!
//! The `f...xattr` calls fail with EBADF on a descriptor opened with O_PATH. Its magic link in
//! /proc works, and leads to exactly this object, even if it is a symbolic link.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use archive::member::Member;
use rustix::fs::{fgetxattr, flistxattr, getxattr, listxattr};
use rustix::io::Errno;

/// Name of the access ACL among the attributes.
pub(crate) const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// Name of the default ACL among the attributes.
pub(crate) const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";

/// XATTR_LIST_MAX and XATTR_SIZE_MAX of <linux/limits.h>.
const BYTES_MAX: usize = 64 << 10;
/// Enough for the lists seen in practice.
const LIST_BYTES: usize = 4 << 10;

/// How the object is reached.
#[derive(Clone, Copy)]
pub(crate) enum Handle<'a> {
    /// Opened for reading or writing.
    Open(BorrowedFd<'a>),
    /// Opened with O_PATH.
    Path(BorrowedFd<'a>),
}

/// Reads attributes; keeps its buffers.
#[derive(Debug)]
pub(crate) struct AttributeReader {
    list: Vec<u8>,
    value: Vec<u8>,
}

impl AttributeReader {
    pub(crate) fn new() -> AttributeReader {
        AttributeReader { list: vec![0; LIST_BYTES], value: Vec::new() }
    }

    /// Sets the attributes and ACLs of `member`. One system call if there are none.
    pub(crate) fn read(&mut self, handle: Handle<'_>, member: &mut Member) -> io::Result<()> {
        let handle = Reached::new(handle);
        let length = match handle.list(&mut self.list) {
            Err(Errno::RANGE) => {
                self.list.resize(BYTES_MAX, 0);
                handle.list(&mut self.list)?
            }
            result => result?,
        };
        if length == 0 {
            return Ok(());
        }
        self.value.resize(BYTES_MAX, 0);
        for name in self.list[..length].split_inclusive(|&byte| byte == 0) {
            let Some((0, name)) = name.split_last() else { continue };
            let value = match handle.get(name, &mut self.value) {
                Ok(length) => self.value[..length].to_vec(),
                // Removed since it was listed, or listed but not readable for us.
                Err(Errno::NODATA) => continue,
                Err(error) => return Err(error.into()),
            };
            match name {
                ACL_ACCESS => member.acl_access = Some(value),
                ACL_DEFAULT => member.acl_default = Some(value),
                _ => member.xattrs.push((name.to_vec(), value)),
            }
        }
        member.xattrs.sort_unstable();
        Ok(())
    }
}

/// The path of a descriptor in /proc.
pub(crate) fn proc_path(descriptor: impl AsFd) -> CString {
    let path = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    CString::new(path).expect("digits hold no NUL")
}

enum Reached<'a> {
    Open(BorrowedFd<'a>),
    Proc(CString),
}

impl<'a> Reached<'a> {
    fn new(handle: Handle<'a>) -> Reached<'a> {
        match handle {
            Handle::Open(descriptor) => Reached::Open(descriptor),
            Handle::Path(descriptor) => Reached::Proc(proc_path(descriptor)),
        }
    }

    fn list(&self, list: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Reached::Open(descriptor) => flistxattr(descriptor, list),
            Reached::Proc(path) => listxattr(path.as_c_str(), list),
        }
    }

    fn get(&self, name: &[u8], value: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Reached::Open(descriptor) => fgetxattr(descriptor, name, value),
            Reached::Proc(path) => getxattr(path.as_c_str(), name, value),
        }
    }
}
