//! Compares a live tree with an archive: metadata here, content in the caller.
//!
//! The live object is captured as for a backup ([`Capturer`]), so both sides mean the same by every
//! field. The path is resolved as for a restore: never outside of the tree and never through a
//! symbolic link.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use archive::member::{Member, MemberKind, Timestamp};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::capture::{
    Attributes, Capture, CaptureError, CaptureOptions, Capturer, ObjectPlace, emptied,
};
use crate::entry_kind::EntryKind;
use crate::identity::{Identity, Version};
use crate::lease::LeaseWait;
use crate::resolve::{Beneath, Missing, Refusal, ResolveError, ResolveMethod, checked, split};

/// One difference between the live and the archived object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The path does not exist, or a component of it is not a directory.
    Missing,
    /// The kind differs; `live` is the new one.
    Kind {
        live: EntryKind,
    },
    /// Permissions.
    Mode {
        archived: u32,
        live: u32,
    },
    /// Owner: the number differs, and the name differs or is missing.
    User {
        archived: u64,
        live: u64,
    },
    Group {
        archived: u64,
        live: u64,
    },
    /// Time of modification. If the archive keeps whole seconds, only these are compared.
    Modified {
        /// The archived time.
        archived: Timestamp,
        /// The live time.
        live: Timestamp,
    },
    /// Size of a regular file.
    Size {
        /// The archived size, in bytes.
        archived_bytes: u64,
        /// The live size in bytes.
        live_bytes: u64,
    },
    /// The target of a symbolic link.
    LinkTarget {
        /// The live target.
        live: Vec<u8>,
    },
    /// It and the archived link target are different files, or the target is missing.
    NotLinked,
    Device {
        /// Major number of the live object.
        live_major: u32,
        /// Minor number of the live object.
        live_minor: u32,
    },
    /// An extended attribute.
    Attribute {
        name: Vec<u8>,
        /// In what way.
        how: AttributeDifference,
    },
    AccessAcl,
    DefaultAcl,
}

/// How an attribute differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeDifference {
    /// The live object lacks the attribute.
    Missing,
    /// The archived object did not have the attribute.
    Added,
    /// The value differs.
    Value,
}

/// A live object compared with its archived state.
#[derive(Debug)]
pub struct Comparison {
    /// The differences; empty if there are none.
    pub differences: Vec<Difference>,
    /// The live file, open for reading, if both it and the archived object are regular files.
    pub file: Option<OwnedFd>,
    /// State of the live object. If `changed` is after the time of the backup, it was modified
    /// since.
    pub version: Option<Version>,
}

/// Which parts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareOptions {
    /// Whether attributes and ACLs count.
    pub attributes: Attributes,
    /// Whether owner and group count.
    pub owners: CompareOwners,
}

/// Whether owner and group count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOwners {
    Compare,
    /// They do not: the tree was restored by a user who cannot set them.
    Ignore,
}

/// A directory that is compared with an archive. Every thread has its own.
#[derive(Debug)]
pub struct LiveTree {
    beneath: Beneath,
    capturer: Capturer,
    options: CompareOptions,
}

impl LiveTree {
    /// Opens the directory that the paths of the archive start in.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(
        root: &Path,
        options: CompareOptions,
        accounts: Arc<Accounts>,
    ) -> io::Result<LiveTree> {
        let capture =
            CaptureOptions { attributes: options.attributes, ..CaptureOptions::default() };
        Ok(LiveTree {
            beneath: Beneath::open(root, rustix::fs::OFlags::empty(), ResolveMethod::Auto)?,
            capturer: Capturer::new(capture, accounts),
            options,
        })
    }

    /// Compares the live object at `member.path` with `member`.
    ///
    /// # Errors
    /// See [`CaptureError`]: when it is unknown whether they differ.
    pub fn compare(&mut self, member: &Member) -> Result<Comparison, CaptureError> {
        let Some((directory, name)) = self.find(&member.path)? else {
            return Ok(Comparison::of(Difference::Missing));
        };
        let place = ObjectPlace {
            directory: directory.as_fd(),
            directory_inode: 0,
            name: &name,
            listed: match member.kind {
                MemberKind::File => EntryKind::File,
                _ => EntryKind::Unknown,
            },
        };
        let captured = match self.capture(&place) {
            Ok(Capture::Object(captured)) => captured,
            Ok(Capture::Skipped(_)) => {
                return Ok(Comparison::of(Difference::Kind { live: EntryKind::Socket }));
            }
            Err(CaptureError::Vanished) => return Ok(Comparison::of(Difference::Missing)),
            Err(error) => return Err(error),
        };
        let mut differences = Vec::new();
        let mut file = None;
        let live = captured.member;
        if let MemberKind::HardLink { target } = &member.kind {
            if !self.is_same(target, captured.identity)? {
                differences.push(Difference::NotLinked);
            }
        } else if compare_kinds(member, &live, &mut differences) {
            compare_metadata(member, &live, self.options, &mut differences);
            file = captured.file.filter(|_| member.kind == MemberKind::File);
        }
        Ok(Comparison { differences, file, version: Some(captured.version) })
    }

    /// Captures the object, after waiting for leases on it.
    fn capture(&mut self, place: &ObjectPlace<'_>) -> Result<Capture, CaptureError> {
        let mut wait = None;
        loop {
            match self.capturer.capture_at(place, emptied(None)) {
                Err(CaptureError::Leased) if wait.get_or_insert_with(LeaseWait::begin).step() => {}
                captured => return captured,
            }
        }
    }

    fn find(&self, path: &[u8]) -> Result<Option<(OwnedFd, CString)>, CaptureError> {
        let path = checked(path).map_err(CaptureError::Refused)?;
        let (directory, name) = split(&path);
        let name = if name.is_empty() { b"." } else { name };
        let name = CString::new(name).expect("checked for NUL");
        match self.beneath.directory(directory, Missing::Fail) {
            Ok(directory) => Ok(Some((directory, name))),
            Err(ResolveError::Refused(Refusal::NotADirectory) | ResolveError::Io(Errno::NOENT)) => {
                Ok(None)
            }
            Err(ResolveError::Refused(reason)) => Err(CaptureError::Refused(reason)),
            Err(ResolveError::Io(error)) => Err(CaptureError::Reach(error.into())),
        }
    }

    fn is_same(&self, target: &[u8], identity: Identity) -> Result<bool, CaptureError> {
        let Some((directory, name)) = self.find(target)? else { return Ok(false) };
        match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Identity::of(&stat) == identity),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(CaptureError::Reach(error.into())),
        }
    }
}

impl Comparison {
    fn of(difference: Difference) -> Comparison {
        Comparison { differences: vec![difference], file: None, version: None }
    }
}

/// Compares the kinds and the fields of that kind. False if nothing else can be compared.
fn compare_kinds(archived: &Member, live: &Member, differences: &mut Vec<Difference>) -> bool {
    match (&archived.kind, &live.kind) {
        (MemberKind::SymbolicLink { target }, MemberKind::SymbolicLink { target: now }) => {
            if target != now {
                differences.push(Difference::LinkTarget { live: now.clone() });
            }
        }
        (
            MemberKind::CharacterDevice { major, minor },
            MemberKind::CharacterDevice { major: a, minor: b },
        )
        | (
            MemberKind::BlockDevice { major, minor },
            MemberKind::BlockDevice { major: a, minor: b },
        ) => {
            if (major, minor) != (a, b) {
                differences.push(Difference::Device { live_major: *a, live_minor: *b });
            }
        }
        (MemberKind::File, MemberKind::File) => {
            let (archived_bytes, live_bytes) = (archived.size_bytes, live.size_bytes);
            if archived_bytes != live_bytes {
                differences.push(Difference::Size { archived_bytes, live_bytes });
            }
        }
        (MemberKind::Directory, MemberKind::Directory) | (MemberKind::Fifo, MemberKind::Fifo) => {}
        (_, now) => {
            differences.push(Difference::Kind { live: kind_of(now) });
            return false;
        }
    }
    true
}

fn compare_metadata(
    archived: &Member,
    live: &Member,
    options: CompareOptions,
    differences: &mut Vec<Difference>,
) {
    // Permissions of symbolic links mean nothing on Linux, and other systems archive other values.
    if archived.mode != live.mode && !matches!(archived.kind, MemberKind::SymbolicLink { .. }) {
        differences.push(Difference::Mode { archived: archived.mode, live: live.mode });
    }
    if options.owners == CompareOwners::Compare {
        let differs = |ids: (u64, u64), names: (&[u8], &[u8])| {
            ids.0 != ids.1 && (names.0.is_empty() || names.0 != names.1)
        };
        if differs((archived.uid, live.uid), (&archived.user, &live.user)) {
            differences.push(Difference::User { archived: archived.uid, live: live.uid });
        }
        if differs((archived.gid, live.gid), (&archived.group, &live.group)) {
            differences.push(Difference::Group { archived: archived.gid, live: live.gid });
        }
    }
    let (was, is) = (archived.modified, live.modified);
    let same_second = was.seconds == is.seconds && was.nanoseconds == 0;
    if was != is && !same_second {
        differences.push(Difference::Modified { archived: was, live: is });
    }
    if options.attributes == Attributes::Read {
        compare_attributes(&archived.xattrs, &live.xattrs, differences);
        if archived.acl_access != live.acl_access {
            differences.push(Difference::AccessAcl);
        }
        if archived.acl_default != live.acl_default {
            differences.push(Difference::DefaultAcl);
        }
    }
}

type Named = (Vec<u8>, Vec<u8>);

fn compare_attributes(archived: &[Named], live: &[Named], differences: &mut Vec<Difference>) {
    let find = |list: &[Named], name: &[u8]| list.iter().position(|(other, _)| other == name);
    for (name, value) in archived {
        let how = match find(live, name) {
            None => AttributeDifference::Missing,
            Some(at) if live[at].1 != *value => AttributeDifference::Value,
            Some(_) => continue,
        };
        differences.push(Difference::Attribute { name: name.clone(), how });
    }
    for (name, _) in live {
        if find(archived, name).is_none() {
            let how = AttributeDifference::Added;
            differences.push(Difference::Attribute { name: name.clone(), how });
        }
    }
}

fn kind_of(kind: &MemberKind) -> EntryKind {
    match kind {
        MemberKind::File | MemberKind::HardLink { .. } => EntryKind::File,
        MemberKind::Directory => EntryKind::Directory,
        MemberKind::SymbolicLink { .. } => EntryKind::SymbolicLink,
        MemberKind::Fifo => EntryKind::Fifo,
        MemberKind::CharacterDevice { .. } => EntryKind::CharacterDevice,
        MemberKind::BlockDevice { .. } => EntryKind::BlockDevice,
    }
}
