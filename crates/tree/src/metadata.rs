//! Owner, mode, attributes, ACLs and times of a restored object, in the order that keeps them.
//!
//! The order is what matters. chown(2) takes set-user-ID bits and `security.capability` away, so
//! owner comes first; attributes come before the mode, because `user.*` needs a writable object;
//! the access ACL comes after the mode, whose group bits are the ACL's mask; times come last,
//! because everything else is a change.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use archive::member::{Kind, Member, Timestamp};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chmodat, chownat,
    fchmod, fchown, fremovexattr, fsetxattr, futimens, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::attributes::{ACL_ACCESS, ACL_DEFAULT, Handle, proc_path};
use crate::capture::Attributes;

/// Whose the restored objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Whoever runs the restore.
    Ignore,
    /// The users and groups of this machine with the archived names; without a name, or where this
    /// machine does not know it, the archived numbers.
    Names,
    /// The archived numbers.
    Numbers,
}

/// Which permissions the restored objects get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// The archived ones. Set-user-ID and set-group-ID only where the owner is the archived one.
    Exact,
    /// What the umask leaves of the archived ones, without set-user-ID, set-group-ID and sticky.
    Umask,
}

/// One thing about a restored object that is not as archived.
#[derive(Debug, thiserror::Error)]
#[error("cannot restore {what}: {}", String::from_utf8_lossy(path))]
pub struct MetadataProblem {
    /// Path in the archive.
    pub path: Vec<u8>,
    /// What it is.
    pub what: MetadataPart,
    /// What the kernel said.
    pub source: io::Error,
}

/// A part of an object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataPart {
    /// Owner and group.
    Owner,
    /// Permissions.
    Mode,
    /// The extended attribute of this name.
    Attribute(Vec<u8>),
    /// The access ACL.
    AccessAcl,
    /// The default ACL.
    DefaultAcl,
    /// Time of modification.
    Times,
    /// The directory could not be opened again at the end; it lacks all of its metadata.
    Directory,
}

impl std::fmt::Display for MetadataPart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MetadataPart::Owner => formatter.write_str("owner"),
            MetadataPart::Mode => formatter.write_str("permissions"),
            MetadataPart::Attribute(name) => {
                write!(formatter, "attribute {}", String::from_utf8_lossy(name))
            }
            MetadataPart::AccessAcl => formatter.write_str("access ACL"),
            MetadataPart::DefaultAcl => formatter.write_str("default ACL"),
            MetadataPart::Times => formatter.write_str("times"),
            MetadataPart::Directory => formatter.write_str("metadata of directory"),
        }
    }
}

/// Owner and group as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// What is done with metadata in one restore.
#[derive(Debug)]
pub(crate) struct MetadataPolicy {
    pub(crate) owners: Owners,
    pub(crate) modes: Modes,
    pub(crate) attributes: Attributes,
    pub(crate) umask: u32,
}

/// What an object is to get.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    /// As archived, whether or not it is restored.
    pub(crate) archived_owner: Owner,
    pub(crate) mode: u32,
    pub(crate) modified: Timestamp,
    /// Present when there is any.
    pub(crate) extra: Option<Box<Extra>>,
}

/// What few objects have.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    acl_access: Option<Vec<u8>>,
    acl_default: Option<Vec<u8>>,
}

/// What the kernel gave an object when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) owner: Owner,
    /// The permissions it surely has; `None` when something else may have come in between (an
    /// inherited ACL, an object that was there before).
    pub(crate) mode: Option<u32>,
    /// An ACL may have been inherited, which the archived object did not have.
    pub(crate) inherits_acl: bool,
}

impl MetadataPolicy {
    pub(crate) fn metadata_of(&self, member: &Member, accounts: &Accounts) -> Metadata {
        let by_name = self.owners == Owners::Names;
        // Numbers beyond 32 bits do not exist on Linux; -1 means "leave" to chown(2).
        let number = |archived: u64| u32::try_from(archived).unwrap_or(u32::MAX - 1);
        let uid = by_name.then(|| accounts.user_id(&member.user)).flatten();
        let gid = by_name.then(|| accounts.group_id(&member.group)).flatten();
        let has_extra = !member.xattrs.is_empty()
            || member.acl_access.is_some()
            || member.acl_default.is_some();
        let extra = (has_extra && self.attributes == Attributes::Read).then(|| {
            Box::new(Extra {
                xattrs: member.xattrs.clone(),
                acl_access: member.acl_access.clone(),
                acl_default: member.acl_default.clone(),
            })
        });
        Metadata {
            archived_owner: Owner {
                uid: uid.unwrap_or_else(|| number(member.uid)),
                gid: gid.unwrap_or_else(|| number(member.gid)),
            },
            mode: match self.modes {
                Modes::Exact => member.mode & 0o7777,
                Modes::Umask => member.mode & 0o777 & !self.umask,
            },
            modified: member.modified,
            extra: extra.filter(|_| !matches!(member.kind, Kind::HardLink { .. })),
        }
    }

    /// Permissions to create a file with, so that most files need no chmod afterwards.
    pub(crate) fn creation_mode(&self, metadata: &Metadata) -> u32 {
        let mode = metadata.mode & 0o777;
        // `user.*` attributes can be set on a writable file only, whatever the descriptor.
        if metadata.extra.is_some() { mode | 0o200 } else { mode }
    }

    /// Gives an object its metadata.
    pub(crate) fn apply(
        &self,
        handle: Handle<'_>,
        metadata: &Metadata,
        given: Given,
        problems: &mut Problems<'_>,
    ) {
        let object = Object::new(handle);
        let owner = self.apply_owner(&object, metadata, given, problems);
        if let Some(extra) = &metadata.extra {
            for (name, value) in &extra.xattrs {
                let result = object.set_attribute(name, value);
                problems.note(result, || MetadataPart::Attribute(name.clone()));
            }
        }
        if given.inherits_acl && self.attributes == Attributes::Read {
            object.remove_attribute(ACL_ACCESS);
            object.remove_attribute(ACL_DEFAULT);
        }
        let mut mode = metadata.mode;
        if owner.uid != metadata.archived_owner.uid {
            mode &= !0o4000;
        }
        if owner.gid != metadata.archived_owner.gid {
            mode &= !0o2000;
        }
        // chown(2) takes the special bits away.
        let lost_bits = owner != given.owner && mode & 0o6000 != 0;
        if given.mode != Some(mode) || lost_bits {
            problems.note(object.set_mode(mode), || MetadataPart::Mode);
        }
        if let Some(extra) = &metadata.extra {
            if let Some(acl) = &extra.acl_access {
                let result = object.set_attribute(ACL_ACCESS, acl);
                problems.note(result, || MetadataPart::AccessAcl);
            }
            if let Some(acl) = &extra.acl_default {
                let result = object.set_attribute(ACL_DEFAULT, acl);
                problems.note(result, || MetadataPart::DefaultAcl);
            }
        }
        problems.note(object.set_times(metadata.modified), || MetadataPart::Times);
    }

    /// The owner after it was set, or after that failed.
    fn apply_owner(
        &self,
        object: &Object<'_>,
        metadata: &Metadata,
        given: Given,
        problems: &mut Problems<'_>,
    ) -> Owner {
        let wanted = metadata.archived_owner;
        if self.owners == Owners::Ignore || wanted == given.owner {
            return given.owner;
        }
        let result = object.set_owner(wanted);
        let owner = if result.is_ok() { wanted } else { given.owner };
        problems.note(result, || MetadataPart::Owner);
        owner
    }

    /// Gives a symbolic link its metadata, through its directory: two calls, most often one.
    pub(crate) fn apply_to_link(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        metadata: &Metadata,
        given: Owner,
        problems: &mut Problems<'_>,
    ) {
        let wanted = metadata.archived_owner;
        if self.owners != Owners::Ignore && wanted != given {
            let (uid, gid) = wanted.raw();
            let result = chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
            problems.note(result, || MetadataPart::Owner);
        }
        if let Some(extra) = &metadata.extra {
            let flags = rustix::fs::OFlags::PATH
                | rustix::fs::OFlags::NOFOLLOW
                | rustix::fs::OFlags::CLOEXEC;
            match rustix::fs::openat(directory, name, flags, Mode::empty()) {
                Ok(link) => {
                    let object = Object::new(Handle::Path(link.as_fd()));
                    for (name, value) in &extra.xattrs {
                        let result = object.set_attribute(name, value);
                        problems.note(result, || MetadataPart::Attribute(name.clone()));
                    }
                }
                Err(error) => problems.note(Err(error), || MetadataPart::Attribute(Vec::new())),
            }
        }
        let times = timestamps(metadata.modified);
        let result = utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW);
        problems.note(result, || MetadataPart::Times);
    }
}

/// Collects what did not work on one object. Nothing is allocated as long as all works.
pub(crate) struct Problems<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) found: Vec<MetadataProblem>,
}

impl<'a> Problems<'a> {
    pub(crate) fn of(path: &'a [u8]) -> Problems<'a> {
        Problems { path, found: Vec::new() }
    }

    pub(crate) fn note(&mut self, result: Result<(), Errno>, what: impl FnOnce() -> MetadataPart) {
        if let Err(error) = result {
            self.found.push(MetadataProblem {
                path: self.path.to_vec(),
                what: what(),
                source: error.into(),
            });
        }
    }
}

impl Owner {
    fn raw(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }
}

/// An object reached by a descriptor of either sort.
struct Object<'a> {
    handle: Handle<'a>,
    /// Path in /proc for a descriptor that only O_PATH gave.
    path: CString,
}

impl<'a> Object<'a> {
    fn new(handle: Handle<'a>) -> Object<'a> {
        let path = match handle {
            Handle::Open(_) => CString::default(),
            Handle::Path(descriptor) => proc_path(descriptor),
        };
        Object { handle, path }
    }

    fn set_owner(&self, owner: Owner) -> Result<(), Errno> {
        let (uid, gid) = owner.raw();
        match self.handle {
            Handle::Open(descriptor) => fchown(descriptor, uid, gid),
            Handle::Path(descriptor) => chownat(descriptor, c"", uid, gid, AtFlags::EMPTY_PATH),
        }
    }

    fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(mode);
        match self.handle {
            Handle::Open(descriptor) => fchmod(descriptor, mode),
            Handle::Path(_) => chmodat(CWD, &*self.path, mode, AtFlags::empty()),
        }
    }

    fn set_attribute(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        match self.handle {
            Handle::Open(descriptor) => fsetxattr(descriptor, name, value, XattrFlags::empty()),
            Handle::Path(_) => setxattr(&*self.path, name, value, XattrFlags::empty()),
        }
    }

    /// Takes away what is most often not there.
    fn remove_attribute(&self, name: &[u8]) {
        let _ = match self.handle {
            Handle::Open(descriptor) => fremovexattr(descriptor, name),
            Handle::Path(_) => removexattr(&*self.path, name),
        };
    }

    fn set_times(&self, modified: Timestamp) -> Result<(), Errno> {
        let times = timestamps(modified);
        match self.handle {
            Handle::Open(descriptor) => futimens(descriptor, &times),
            Handle::Path(_) => utimensat(CWD, &*self.path, &times, AtFlags::empty()),
        }
    }
}

/// The time of access stays what it is: no archive format of ours keeps it.
fn timestamps(modified: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.min(999_999_999).into(),
        },
    }
}
